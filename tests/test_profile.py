"""What a stage needs: refused where impossible; distributions draw what their mean says."""

import math
import random
import statistics
from typing import Any

import pytest

from rlgraph.graph.node import Node, Scope
from rlgraph.profile import Distribution, Empirical, Fixed, LogNormal, Normal, Profile

AMOUNTS = [
    "flops",
    "hbm_bytes",
    "resident_bytes",
    "out_bytes",
    "cpu_s",
    "prefill_tokens",
    "decode_tokens",
]
NO_AMOUNTS = [-1, -0.5, math.nan, math.inf, True, "3", None]
DISTRIBUTIONS = [
    Fixed(2.5),
    Normal(3.0, 0.5),
    Normal(1.0, 2.0),
    Normal(0.0, 1.0),
    Normal(2.0, 0.0),
    LogNormal(2.0, 0.7),
    LogNormal(2.0, 0.0),
    Empirical((1.0, 2.0, 6.0)),
]


class Waits:
    """A distribution of the user's own."""

    mean = 2.0

    def sample(self, rng: random.Random) -> float:
        return rng.expovariate(0.5)


def stage(profiles: dict[str, Profile]) -> Node:
    return Node(
        index=0,
        verb="map",
        name="stage",
        where="here:1",
        inputs=(),
        item=int,
        rate=1,  # type: ignore[arg-type]
        scope=Scope(origin=0),
        profiles=profiles,
    )


@pytest.mark.parametrize("name", AMOUNTS)
@pytest.mark.parametrize("value", NO_AMOUNTS)
def test_an_amount_that_no_stage_can_need_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"Profile.{name} must be a finite number >= 0, got "):
        Profile(**{name: value})


@pytest.mark.parametrize("value", [*NO_AMOUNTS, 0, 0.0])
def test_a_deadline_must_be_positive(value: Any) -> None:
    with pytest.raises(ValueError, match=r"Profile.deadline_s must be a finite number > 0, got "):
        Profile(deadline_s=value)


@pytest.mark.parametrize("name", ["concurrency", "attempts"])
@pytest.mark.parametrize("value", [0, -1, 1.0, True, "2"])
def test_a_count_must_be_a_whole_number_from_one(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"Profile.{name} must be an int >= 1, got {value!r}"):
        Profile(**{name: value})


@pytest.mark.parametrize("name", ["latency", "turns"])
@pytest.mark.parametrize("value", [1.5, Fixed, None, object()])
def test_what_varies_must_be_a_distribution(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"Profile.{name} must be a distribution such as"):
        Profile(**{name: value})


def test_a_trajectory_takes_one_turn_at_least() -> None:
    with pytest.raises(ValueError, match=r"turns must be at least 1 on average, got Fixed"):
        Profile(turns=Fixed(0.5))


@pytest.mark.parametrize("value", ["no", 0, None])
def test_a_stage_is_stateless_or_not(value: Any) -> None:
    with pytest.raises(ValueError, match=r"Profile.stateless must be True or False, got "):
        Profile(stateless=value)


def test_a_profile_takes_amounts_of_either_number_type_and_a_distribution_of_the_users() -> None:
    profile = Profile(flops=2, cpu_s=0.5, latency=Waits(), concurrency=4)
    assert (profile.flops, profile.cpu_s, profile.latency.mean) == (2, 0.5, 2.0)


@pytest.mark.parametrize("kind", [Fixed, lambda value: Empirical((1.0, value))])
@pytest.mark.parametrize("value", NO_AMOUNTS)
def test_a_drawn_value_must_be_an_amount(kind: Any, value: Any) -> None:
    with pytest.raises(ValueError, match=r"must be a finite number >= 0, got "):
        kind(value)


@pytest.mark.parametrize("value", NO_AMOUNTS)
def test_no_parameter_of_a_distribution_is_negative_or_no_number(value: Any) -> None:
    for make in (Normal, LogNormal):
        with pytest.raises(ValueError, match=r"must be a finite number >= 0, got "):
            make(1.0, value)
    with pytest.raises(ValueError, match=r"Normal.location must be a finite number >= 0, got "):
        Normal(value, 1.0)


@pytest.mark.parametrize("value", [*NO_AMOUNTS, 0])
def test_a_median_must_be_positive(value: Any) -> None:
    with pytest.raises(ValueError, match=r"LogNormal.median must be a finite number > 0, got "):
        LogNormal(value, 1.0)


def test_measured_values_must_be_some() -> None:
    with pytest.raises(ValueError, match="at least one value"):
        Empirical(())


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=repr)
def test_the_mean_is_that_of_the_samples(distribution: Distribution) -> None:
    rng = random.Random(1)
    values = [distribution.sample(rng) for _ in range(4000)]
    standard_error = statistics.stdev(values) / math.sqrt(len(values))
    assert statistics.fmean(values) == pytest.approx(distribution.mean, abs=4 * standard_error)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=repr)
def test_no_sample_is_negative(distribution: Distribution) -> None:
    rng = random.Random(2)
    assert min(distribution.sample(rng) for _ in range(1000)) >= 0


def test_half_the_values_of_a_heavy_tail_are_below_its_median() -> None:
    rng = random.Random(3)
    below = sum(LogNormal(2.0, 1.5).sample(rng) < 2.0 for _ in range(4000))
    assert below == pytest.approx(2000, abs=4 * math.sqrt(4000) / 2)


def test_the_same_seed_draws_the_same_value() -> None:
    draw = [Normal(1.0, 1.0).sample(random.Random(5)) for _ in range(2)]
    assert draw[0] == draw[1]


def test_a_domain_without_a_profile_is_served_by_the_default() -> None:
    maths, default = Profile(cpu_s=2.0), Profile(cpu_s=1.0)
    node = stage({"maths": maths, "default": default})
    assert (node.profile("maths"), node.profile("code")) == (maths, default)


def test_a_stage_without_a_profile_needs_nothing() -> None:
    assert stage({}).profile("maths") == stage({"code": Profile(cpu_s=1.0)}).profile() == Profile()


def test_an_object_takes_as_many_calls_at_once_as_its_widest_domain() -> None:
    profiles = {"maths": Profile(concurrency=2), "code": Profile(concurrency=8)}
    assert (stage(profiles).concurrency, stage({}).concurrency) == (8, 1)
