"""Text made safe to show: knows nothing of runs, graphs or files."""

from __future__ import annotations

import re
import traceback

# C0 and C1 controls but tab and newline, lone surrogates, and the two non-characters: what an
# XML or HTML parser, a terminal or a trace viewer refuses or acts upon.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def printable(text: str) -> str:
    r"""Replace by U+FFFD every character that no viewer can show.

    These are lone surrogates, NUL and the other control characters except tab and newline.
    Right-to-left text, emoji and combining marks are left as they are.

    >>> printable("a\x00b\ud800c") == "a\ufffdb\ufffdc"
    True
    """
    return _UNPRINTABLE.sub("\ufffd", text)


def shorten(text: str, limit: int) -> str:
    """Cut text to ``limit`` characters and say how long it was.

    >>> shorten("abcdefgh", 3)
    'abc… (8 characters)'
    """
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters)"


def said_by(error: BaseException) -> str:
    """Return ``str(error)``, or that there is none: a careless exception class raises there.

    >>> said_by(ValueError("too long"))
    'too long'
    """
    return str(traceback.TracebackException(type(error), error, None, compact=True))
