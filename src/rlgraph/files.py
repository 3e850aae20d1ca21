"""Files that a reader finds whole or not at all, even if the process or the power fails.

Knows nothing of what is in them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def replace_text(path: Path, parts: Iterable[str]) -> None:
    """Write a file of these parts, in UTF-8; an old file stays until the new one is whole."""
    replace_bytes(path, (part.encode() for part in parts))


def replace_bytes(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file of these parts; an old file stays until the new one is whole."""
    # Named after the process: two that write the same file do not write into one another's.
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
