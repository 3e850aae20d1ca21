"""Which line of the user's file is being run: what an error about a declaration points at."""

from __future__ import annotations

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def declared_at() -> str:
    """Return ``file:line`` of the nearest caller outside the library's core.

    Exact to the line of each call in a chain of many lines.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
