"""The main job: does the agent learn, how fast, and what does asynchrony change?

    python benchmarks/agentic_grpo.py [--seeds 0,1,2] [--staleness 0,1] [key=value ...]

Each run is ``rlgraph run agentic_grpo`` in a process of its own, one after the other. Success is on
held-out maps that are never trained on; "before" is after the warm start, so the gain is RL's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from machine import machine, store


def train(seed: int, staleness: int, overrides: list[str], out: Path) -> dict[str, Any]:
    """Run the job once and return a row of the table."""
    name = f"seed{seed}-staleness{staleness}"
    settings = [f"seed={seed}", f"max_staleness={staleness}", *overrides]
    command = [sys.executable, "-m", "rlgraph", "run", "agentic_grpo", *settings]
    begun = time.perf_counter()
    subprocess.run([*command, "--out", str(out), "--name", name], check=True, stdout=sys.stderr)
    wall_s = time.perf_counter() - begun
    summary = json.loads((out / name / "summary.json").read_text(encoding="utf-8"))
    lines = (out / name / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    metrics = [json.loads(line) for line in lines]
    return {
        "seed": seed,
        "max_staleness": staleness,
        "before": summary["held_out_success_before"],
        "after": summary["held_out_success_after"],
        "gain": summary["held_out_success_after"] - summary["held_out_success_before"],
        "versions": summary["versions"],
        "train_s": summary["training_seconds"],
        "wall_s": wall_s,
        "staleness_mean": fmean(row.get("staleness_mean", 0.0) for row in metrics),
        "outcomes": summary["outcomes"],
        "curve": [row["reward"] for row in metrics],
    }


def main() -> None:
    """Print the table and the curves, and store them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--staleness", default="0,1")
    parser.add_argument("overrides", nargs="*", metavar="key=value")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as out:
        rows = [
            train(int(seed), int(staleness), options.overrides, Path(out))
            for seed in options.seeds.split(",")
            for staleness in options.staleness.split(",")
        ]
    print(machine())
    columns = ("max_staleness", "seed", "before", "after", "gain", "train_s", "wall_s")
    print("  ".join(f"{name:>14}" for name in columns))
    for staleness in options.staleness.split(","):
        some = [row for row in rows if row["max_staleness"] == int(staleness)]
        for row in some:
            print("  ".join(f"{row[name]:>14.3f}" for name in columns))
        for name in ("gain", "train_s", "wall_s"):
            values = [row[name] for row in some]
            spread = stdev(values) if len(values) > 1 else 0.0
            print(f"  max_staleness={staleness} {name}: {fmean(values):.3f} +- {spread:.3f}")
    print("mean reward of each tenth of the run:")
    for row in rows:
        print(f"  staleness {row['max_staleness']} seed {row['seed']}: {tenths(row['curve'])}")
    store("agentic_grpo", rows)


def tenths(curve: list[float]) -> str:
    """Shorten a curve to ten numbers."""
    size = max(len(curve) // 10, 1)
    return " ".join(f"{fmean(curve[i : i + size]):.2f}" for i in range(0, len(curve), size))


if __name__ == "__main__":
    main()
