"""What a stage may be given besides its item: the newest published value, and a seed.

A stage declares these in its signature and knows nothing else of the library; a test builds them
by hand: ``generate(trajectory, policy=Latest(name="policy", version=3, value=weights), seed=7)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Batch: TypeAlias = tuple[T, ...]
"""Several items that travel as one: made by ``group`` and ``batch``, taken apart by ``unbatch``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latest(Generic[T_co]):
    """A published value as it stood when the call was submitted."""

    name: str
    version: int
    """0 for the initial value, +1 at each publish."""
    value: T_co


class Seed(int):
    """Stands for a number that each call gets anew, derived from run, lineage and turn.

    ``graph.seed`` is one. A stage declares the parameter as a plain ``int``. Equal on every
    executor, on every retry and after a resume; different for every item, member and turn.
    """
