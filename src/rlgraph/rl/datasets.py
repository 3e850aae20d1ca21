"""Prompts from a file, one JSON object a line. Knows nothing of environments."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from rlgraph.errors import RlgraphError, did_you_mean
from rlgraph.rl.records import Prompt

_KEYS = [field.name for field in fields(Prompt)]


class DatasetError(RlgraphError):
    """A dataset cannot be read, or a line of it is not a prompt; the place is named."""


def read_prompts(path: Path) -> Iterator[Prompt]:
    """Yield the prompts of a JSON-lines file: ``{"id": "7", "text": "2+3=", "answer": "5"}``.

    The keys are the fields of ``Prompt``; only ``id`` is required, and blank lines are skipped.
    Prompts may repeat. Raises DatasetError for a line that is not such an object, naming
    ``file:line``, and for a file that cannot be read or holds no prompt.
    """
    count = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    count += 1
                    yield _prompt(line, f"{path}:{number}")
    except OSError as error:
        raise DatasetError(
            f"dataset {str(path)!r} cannot be read: {error.strerror}; to mend: give the path of a "
            "JSON-lines file"
        ) from None
    if not count:
        raise DatasetError(
            f"dataset {str(path)!r} holds no prompt; to mend: write one JSON object a line, "
            'such as {"id": "1", "text": "..."}'
        )


def _prompt(line: bytes, where: str) -> Prompt:
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DatasetError(
            f"{where}: not JSON ({error}); to mend: write one object a line"
        ) from None
    if not isinstance(row, dict):
        raise DatasetError(f"{where}: expected an object, got {row!r:.60}; to mend: write {{...}}")
    for name, value in row.items():
        if name not in _KEYS:
            raise DatasetError(
                f"{where}: unknown key {name!r}{did_you_mean(name, _KEYS)}; to mend: use the keys "
                f"{', '.join(_KEYS)}"
            )
        wanted = int if name == "seed" else str
        if not isinstance(value, wanted) or isinstance(value, bool):
            kind = "a whole number" if wanted is int else "text"
            raise DatasetError(
                f"{where}: {name!r} must be {kind}, got {value!r:.60}; to mend: correct that line"
            )
    if row.get("seed", 0) < 0:
        raise DatasetError(
            f"{where}: 'seed' must be >= 0, got {row['seed']}; to mend: drop the sign"
        )
    if "id" not in row:
        raise DatasetError(f"{where}: 'id' is missing; to mend: give every prompt one of its own")
    return Prompt(**row)
