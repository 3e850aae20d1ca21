"""Rules between settings, for the ``problems`` method of a schema.

Each takes the configuration and the names of its fields and yields what is wrong, arithmetic
included. A name may be dotted (``rollout.group_size``). Knows nothing of files and overrides.

    def problems(self) -> Iterator[Problem]:
        yield from above(self, "lr", 0)
        yield from divides(self, "group_size", "batch_size")
"""

from __future__ import annotations

import operator
from collections.abc import Iterator

from rlgraph.errors import Problem, not_a_multiple


def divides(config: object, divisor: str, number: str) -> Iterator[Problem]:
    """Yield a problem unless the field ``divisor`` divides the field ``number``.

    A divisor below 1 yields nothing: ``at_least`` reports it.
    """
    d, n = (int(operator.attrgetter(name)(config)) for name in (divisor, number))
    problem = not_a_multiple(f"{number}=", n, f"{divisor}=", d, where=number) if d >= 1 else None
    if problem is not None:
        yield problem


def at_least(config: object, name: str, low: float) -> Iterator[Problem]:
    """Yield a problem unless the field is None or ``>= low``."""
    value = operator.attrgetter(name)(config)
    if value is not None and not value >= low:
        yield _out_of_range(name, value, f"at least {low}")


def above(config: object, name: str, low: float) -> Iterator[Problem]:
    """Yield a problem unless the field is None or ``> low``."""
    value = operator.attrgetter(name)(config)
    if value is not None and not value > low:
        yield _out_of_range(name, value, f"above {low}")


def between(config: object, name: str, low: float, high: float) -> Iterator[Problem]:
    """Yield a problem unless the field is None or in ``[low, high]``, both ends included."""
    value = operator.attrgetter(name)(config)
    if value is not None and not low <= value <= high:
        yield _out_of_range(name, value, f"between {low} and {high}")


def _out_of_range(name: str, value: object, allowed: str) -> Problem:
    return Problem(
        what=f"{name}={value} is not {allowed}", where=name, mend=f"give a number {allowed}"
    )
