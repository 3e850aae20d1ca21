"""What all benchmarks share: the name of the machine, and where results are kept."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def machine() -> str:
    """Name the processor, its cores and the interpreter."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [
            line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
        ]
        name = models[0].partition(":")[2].strip() if models else name
    return f"{name}, {os.cpu_count()} cores, Python {platform.python_version()}"


def store(name: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Keep a table as ``results/NAME.json``."""
    RESULTS.mkdir(exist_ok=True)
    found = {"machine": machine(), "rows": rows}
    (RESULTS / f"{name}.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
