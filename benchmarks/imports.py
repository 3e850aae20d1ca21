"""What ``import rlgraph`` costs: fresh interpreters, less the cost of starting one.

Run: ``python benchmarks/imports.py``; prints a table, stores results/imports.json.
"""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

from machine import machine, store

RUNS = 15
STATEMENTS = {"nothing": "", "rlgraph": "import rlgraph", "torch": "import torch"}


def seconds(statement: str) -> float:
    """Return the wall seconds of a fresh interpreter that runs a statement."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - begun


def main() -> None:
    """Print the table and store it."""
    times = {name: [seconds(code) for _ in range(RUNS)] for name, code in STATEMENTS.items()}
    bare = median(times["nothing"])
    rows = [
        {"import": name, "median_s": median(found), "less_start_s": median(found) - bare}
        for name, found in times.items()
    ]
    print(f"{machine()}, {RUNS} runs each")
    print(f"{'import':<10} {'median s':>9} {'less start s':>13}")
    for row in rows:
        print(f"{row['import']:<10} {row['median_s']:>9.3f} {row['less_start_s']:>13.3f}")
    store("imports", rows)


if __name__ == "__main__":
    main()
