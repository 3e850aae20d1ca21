"""What a stage needs for one item, before any device is chosen. Units stand in the names."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Protocol, TypeGuard


# First, because the defaults of Profile below are checked when this module is imported.
def _require_amount(name: str, value: object) -> None:
    if not _is_finite(value) or value < 0:
        raise ValueError(f"{name} must be a finite number >= 0, got {value!r}")


def _require_positive(name: str, value: object) -> None:
    if not _is_finite(value) or value <= 0:
        raise ValueError(f"{name} must be a finite number > 0, got {value!r}")


def _require_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} must be an int >= 1, got {value!r}")


def _require_bool(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def _require_distribution(name: str, value: object) -> None:
    parts = (value, "sample"), (value, "mean")
    if isinstance(value, type) or not all(hasattr(*part) for part in parts):
        raise ValueError(f"{name} must be a distribution such as Fixed(1.5), got {value!r}")


def _is_finite(value: object) -> TypeGuard[float]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value)


class Distribution(Protocol):
    """A number that varies from call to call; its unit is that of the field that holds it."""

    @property
    def mean(self) -> float:
        """Expected value."""
        ...

    def sample(self, rng: random.Random) -> float:
        """Draw one value; never negative."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always the same value."""

    value: float

    def __post_init__(self) -> None:
        """Refuse a negative or non-finite value."""
        _require_amount("Fixed.value", self.value)

    @property
    def mean(self) -> float:
        """Expected value."""
        return self.value

    def sample(self, rng: random.Random) -> float:  # noqa: ARG002 - the protocol's signature
        """Return the value."""
        return self.value


@dataclass(frozen=True, slots=True)
class Normal:
    """A normal distribution, drawn again while negative (RollArt, arXiv:2512.22560, figure 11b)."""

    location: float
    std: float

    def __post_init__(self) -> None:
        """Refuse a negative location or spread."""
        _require_amount("Normal.location", self.location)
        _require_amount("Normal.std", self.std)

    @property
    def mean(self) -> float:
        """Expected value of the truncated distribution."""
        if self.std == 0:
            return self.location
        z = self.location / self.std
        density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        above_zero = 0.5 * (1 + math.erf(z / math.sqrt(2)))
        return self.location + self.std * density / above_zero

    def sample(self, rng: random.Random) -> float:
        """Draw one value."""
        while (value := rng.gauss(self.location, self.std)) < 0:
            pass
        return value


@dataclass(frozen=True, slots=True)
class LogNormal:
    """A heavy tail: half the values are below ``median``, the logarithm has spread ``sigma``."""

    median: float
    sigma: float

    def __post_init__(self) -> None:
        """Refuse a median of 0 or less and a negative spread."""
        _require_positive("LogNormal.median", self.median)
        _require_amount("LogNormal.sigma", self.sigma)

    @property
    def mean(self) -> float:
        """Expected value."""
        return self.median * math.exp(self.sigma**2 / 2)

    def sample(self, rng: random.Random) -> float:
        """Draw one value."""
        return self.median * math.exp(rng.gauss(0.0, self.sigma))


@dataclass(frozen=True, slots=True)
class Empirical:
    """Values that were measured, drawn with equal probability."""

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuse an empty list and negative values."""
        if not self.values:
            raise ValueError("Empirical.values must hold at least one value, got ()")
        for value in self.values:
            _require_amount("Empirical.values", value)

    @property
    def mean(self) -> float:
        """Arithmetic mean."""
        return math.fsum(self.values) / len(self.values)

    def sample(self, rng: random.Random) -> float:
        """Draw one of the values."""
        return rng.choice(self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Needs of one call of a stage. All amounts are per item unless the field says otherwise."""

    flops: float = 0.0
    """Floating point operations, dense."""
    hbm_bytes: float = 0.0
    """Bytes moved between device memory and its cores."""
    resident_bytes: float = 0.0
    """Device memory that one replica of the stage's object holds: weights, caches."""
    out_bytes: float = 0.0
    """Size of the item that leaves."""
    cpu_s: float = 0.0
    """Seconds of one CPU core."""
    latency: Distribution = Fixed(0.0)
    """Seconds of waiting that no faster device shortens: a remote environment, a start-up."""
    prefill_tokens: float = 0.0
    """Tokens read for the first time in this call."""
    decode_tokens: float = 0.0
    """Tokens sampled in this call."""
    turns: Distribution = Fixed(1.0)
    """Rounds of an ``iterate`` that a trajectory takes, at least 1; read on its stages."""
    stateless: bool = False
    """The result depends on the input alone, so the call may run anywhere, any number of times."""
    concurrency: int = 1
    """Calls that the stage's object takes at once."""
    deadline_s: float = 600.0
    """Seconds after which a call is given up, counted from its start."""
    attempts: int = 1
    """Calls before a failing item is given up."""

    def __post_init__(self) -> None:
        """Refuse amounts that no stage can need."""
        for field in fields(self):
            value = getattr(self, field.name)
            check = _CHECKS.get(field.name, _require_amount)
            check(f"Profile.{field.name}", value)
        if self.turns.mean < 1:
            raise ValueError(f"Profile.turns must be at least 1 on average, got {self.turns!r}")


DEFAULT_DOMAIN = "default"
"""Of items whose source names none; its profile also serves domains without one of their own."""


_CHECKS: Mapping[str, Callable[[str, object], None]] = {
    "latency": _require_distribution,
    "turns": _require_distribution,
    "stateless": _require_bool,
    "concurrency": _require_count,
    "attempts": _require_count,
    "deadline_s": _require_positive,
}
"""Fields of a profile that are not an amount."""
