"""Rules between settings: what passes, and the arithmetic of what does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from rlgraph.config.rules import above, at_least, between, divides
from rlgraph.errors import Problem


@dataclass(frozen=True, kw_only=True)
class Optim:
    lr: float = 1e-3


@dataclass(frozen=True, kw_only=True)
class Config:
    group_size: int = 16
    batch_size: int = 32
    timeout_s: float | None = None
    optim: Optim = field(default_factory=Optim)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (
            divides(Config(batch_size=60), "group_size", "batch_size"),
            Problem(
                what="batch_size=60 is not a multiple of group_size=16: 60 = 3 x 16 + 12",
                where="batch_size",
                mend="use 48 or 64",
            ),
        ),
        (
            divides(Config(batch_size=5), "group_size", "batch_size"),
            Problem(
                what="batch_size=5 is not a multiple of group_size=16: 5 = 0 x 16 + 5",
                where="batch_size",
                mend="use 16",
            ),
        ),
        (
            at_least(Config(group_size=1), "group_size", 2),
            Problem(
                what="group_size=1 is not at least 2",
                where="group_size",
                mend="give a number at least 2",
            ),
        ),
        (
            above(Config(optim=Optim(lr=float("nan"))), "optim.lr", 0),
            Problem(
                what="optim.lr=nan is not above 0",
                where="optim.lr",
                mend="give a number above 0",
            ),
        ),
        (
            between(Config(timeout_s=2.0), "timeout_s", 0, 1),
            Problem(
                what="timeout_s=2.0 is not between 0 and 1",
                where="timeout_s",
                mend="give a number between 0 and 1",
            ),
        ),
    ],
)
def test_a_broken_rule_shows_its_arithmetic(rule: Iterator[Problem], expected: Problem) -> None:
    assert list(rule) == [expected]


@pytest.mark.parametrize(
    "rule",
    [
        divides(Config(), "group_size", "batch_size"),
        at_least(Config(), "group_size", 16),
        above(Config(), "group_size", 15),
        between(Config(), "group_size", 16, 16),
    ],
)
def test_what_is_sound_passes(rule: Iterator[Problem]) -> None:
    assert list(rule) == []


@pytest.mark.parametrize(
    "rule",
    [
        at_least(Config(), "timeout_s", 0),
        above(Config(), "timeout_s", 0),
        between(Config(), "timeout_s", 0, 1),
    ],
)
def test_none_is_in_every_range(rule: Iterator[Problem]) -> None:
    assert list(rule) == []


def test_a_divisor_below_one_is_left_to_at_least() -> None:
    assert list(divides(Config(group_size=0), "group_size", "batch_size")) == []
