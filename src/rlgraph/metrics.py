"""The metrics of a run, one line a version: written as it trains, cut back when it resumes.

A line is ``{"version": 3, "seconds": 12.5, "loss": 0.1, ...}``. Not a tracker, and knows no
metric by name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from rlgraph.errors import RlgraphError
from rlgraph.jsonl import read_lines, replace_lines, to_line

_RESERVED = frozenset({"version", "seconds"})


class MetricError(RlgraphError):
    """A metric cannot be recorded."""


def as_float(number: float) -> float:
    """Return any real number as a float; one too large for that, as an integer may be, as inf."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def append_metrics(
    path: Path, *, version: int, seconds: float, values: Mapping[str, float]
) -> None:
    """Add one line. Seconds are wall time since the run began.

    NaN and the infinities, which JSON lacks, are written as null and read back as NaN.
    Raises ``MetricError`` when a value is named like one of the two fixed fields.
    """
    if clash := _RESERVED & values.keys():
        raise MetricError(
            f"metrics named {sorted(clash)!r} of version {version} clash with fields that every "
            f"line of {path.name!r} has; to mend: rename them in the metrics that are published"
        )
    row: dict[str, float | None] = {"version": version, "seconds": seconds}
    for name, value in values.items():
        number = as_float(value)
        row[name] = number if math.isfinite(number) else None
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(to_line(row))


def read_metrics(path: Path) -> list[dict[str, float]]:
    """Read all lines as ``{"version": ..., "seconds": ..., name: value}``; null becomes NaN.

    A missing file has none; a torn last line is dropped. Raises JsonLinesError on another line
    that cannot be read.
    """
    return [
        {name: math.nan if value is None else value for name, value in row.items()}
        for row in read_lines(path)
    ]


def rewind_metrics(path: Path, *, version: int) -> None:
    """Drop every line of a later version, and a torn last line, before a run resumes.

    After it, a run resumed at ``version`` appends as if it had never stopped. Raises
    JsonLinesError on a line that cannot be read.
    """
    if path.exists():
        replace_lines(path, [row for row in read_lines(path) if row["version"] <= version])
