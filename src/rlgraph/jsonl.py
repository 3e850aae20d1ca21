"""One JSON object a line: a file that a killed process leaves readable.

Lines are ASCII, so odd text (lone surrogates, NUL, right-to-left) comes back as it was. Knows
nothing of what the objects mean.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rlgraph.errors import RlgraphError
from rlgraph.files import replace_text


class JsonLinesError(RlgraphError):
    """A line that is not the last one cannot be read."""


def to_line(row: Mapping[str, Any]) -> str:
    """Write one object as a line, newline included. Raises ValueError on NaN and infinities."""
    return json.dumps(row, allow_nan=False, separators=(",", ":")) + "\n"


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read every object of a file; a missing file has none.

    A torn last line (the process died while it wrote) is dropped. Raises JsonLinesError when
    another line is not a JSON object: the file was changed by someone else.
    """
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    lines.pop()  # Empty after a whole line, torn otherwise.
    return [_parse(line, path, number) for number, line in enumerate(lines, 1)]


def mend_lines(path: Path) -> None:
    """Cut a torn last line off a file, if there is one, so that it can be appended to."""
    if path.exists():
        with path.open("r+b") as file:
            file.truncate(file.read().rfind(b"\n") + 1)


def replace_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Put these objects in place of the whole file, all or nothing."""
    replace_text(path, map(to_line, rows))


def _parse(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    if not isinstance(row, dict):
        raise JsonLinesError(
            f"{path}:{number}: not a JSON object: {line[:80]!r}; delete that line to read the rest"
        )
    return row
