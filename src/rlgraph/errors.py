"""Every error the library raises on purpose: what is wrong, where, and how to mend it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong with a declaration."""

    what: str
    where: str
    """``file:line`` of the declaration, or the key of a setting."""
    mend: str

    def __str__(self) -> str:
        """Give the three parts, one a line."""
        return f"{self.what}\n    at {self.where}\n    to mend: {self.mend}"


class RlgraphError(Exception):
    """Base of every error of the library."""


class ProblemsError(RlgraphError):
    """Several problems, reported together."""

    def __init__(self, title: str, problems: Sequence[Problem]) -> None:
        self.title = title
        self.problems = tuple(problems)
        numbered = (f"  {i}. {problem}" for i, problem in enumerate(self.problems, 1))
        super().__init__(title + "\n" + "\n".join(numbered))

    def __reduce__(self) -> tuple[type[ProblemsError], tuple[str, tuple[Problem, ...]]]:
        """Travel between processes whole: by default only the text would."""
        return type(self), (self.title, self.problems)


class GraphError(ProblemsError):
    """The graph is wrong; nothing was started."""


class ConfigError(ProblemsError):
    """The configuration is wrong; nothing was started."""


class RunError(RlgraphError):
    """A run ended early; its cause is chained."""


class StageError(RunError):
    """Too many calls of stages failed."""


class StageTimeoutError(RlgraphError):
    """A call of a stage took longer than its deadline."""


class StarvedError(RunError):
    """Filters and failures left nothing to train on, however often it was refilled."""


class StallError(RunError):
    """Nothing runs and nothing can start, yet the run is not finished."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that ``name`` may be a slip of; None where none is near."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return close[0] if close else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the nearest known name, or an empty string.

    >>> did_you_mean("rewrads", ["rewards", "prompts"])
    "; did you mean 'rewards'?"
    """
    close = nearest(name, known)
    return f"; did you mean {close!r}?" if close else ""


def not_a_multiple(
    what: str, number: int, of_what: str, divisor: int, *, where: str
) -> Problem | None:
    """Say with the arithmetic that ``number`` is not a multiple of ``divisor``; None if it is.

    >>> print(not_a_multiple("batch of ", 60, "group of ", 16, where="here").what)
    batch of 60 is not a multiple of group of 16: 60 = 3 x 16 + 12
    """
    times, rest = divmod(number, divisor)
    if rest == 0:
        return None
    around = [str(n * divisor) for n in (times, times + 1) if n > 0] or [str(divisor)]
    return Problem(
        what=f"{what}{number} is not a multiple of {of_what}{divisor}: "
        f"{number} = {times} x {divisor} + {rest}",
        where=where,
        mend=f"use {' or '.join(around)}",
    )
