"""GRPO advantages against other code bases, against reported bugs, and as properties."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlgraph.rl.advantages import grpo_advantages
from tests.vectors import load, regression, tensor

VECTORS = load("adv_grpo")
REWARDS = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12)


def eps_of(case: dict[str, Any]) -> float | None:
    """Return the eps of a case that is plain GRPO with whole groups, else None."""
    arguments = case["args"]
    plain = (
        arguments.get("norm_adv_by_std_in_grpo", arguments.get("grpo_norm_by_std"))
        or arguments.get("scale_rewards") == "group"
        or arguments.get("norm_std_type") == "group"
        or arguments.get("std_level") == "group"
    )
    # A group of one gets its raw reward in verl and SkyRL; ours gets no signal, see below.
    singleton = case["inputs"].get("index") == "index_singleton"
    eps = arguments.get("eps", arguments.get("epsilon"))
    return float(eps) if plain and not singleton else None


PLAIN = [case for case in VECTORS["cases"] if eps_of(case) is not None]


def test_there_are_cases_of_five_code_bases() -> None:
    names = {case["peer"]["name"] for case in PLAIN}
    assert names == {"verl", "SkyRL", "TRL", "ROLL", "AReaL"}
    assert len(PLAIN) > 40


@pytest.mark.parametrize("case", PLAIN, ids=[case["id"] for case in PLAIN])
def test_advantages_equal_those_of(case: dict[str, Any]) -> None:
    rewards = tensor(VECTORS["tensors"][case["inputs"]["rewards"]], case["dtype"]).tolist()
    std: Any = "population" if case["args"].get("std_unbiased") is False else "sample"
    eps = eps_of(case)
    assert eps is not None
    ours = [
        advantage
        for group in (rewards[:4], rewards[4:])
        for advantage in grpo_advantages(group, std=std, eps=eps)
    ]
    expected = case["expected"]
    theirs = tensor(expected.get("advantages_seq") or expected["advantages"])
    theirs = theirs[:, 0] if theirs.dim() == 2 else theirs
    # Statistics in float32 lose digits on rewards like 100.001; ours are float64.
    single = case["dtype"] == "float32" or "float32" in case.get("note", "")
    tolerance = 2e-2 if single and "lowvar" in case["id"] else max(case["rtol"], 1e-6)
    assert ours == pytest.approx(theirs.tolist(), rel=tolerance, abs=tolerance)


def test_a_group_of_almost_equal_large_rewards_keeps_its_digits() -> None:
    case = regression("group_std_catastrophic_cancellation")
    rewards = tensor(case["inputs"]["rewards_float32"]).tolist()
    ours = grpo_advantages(rewards, eps=case["inputs"]["eps"])
    assert ours == pytest.approx(tensor(case["right"]).tolist(), rel=1e-9, abs=1e-9)


def test_a_reward_of_none_leaves_the_baseline_of_its_siblings_unchanged() -> None:
    # The reported values are centred only; ours are divided by one number, the deviation.
    centred = tensor(regression("none_reward_counts_as_zero")["right"])
    ours = torch.tensor(grpo_advantages([1.0, None, 0.0, 0.0]), dtype=torch.float64)
    torch.testing.assert_close(ours / ours[0], centred / centred[0])


@pytest.mark.parametrize(
    "rewards", [[0.5] * 8, [0.1] * 3, [1.0], [None, 1.0], [None, None]], ids=str
)
def test_no_difference_is_exactly_no_signal(rewards: list[float | None]) -> None:
    assert grpo_advantages(rewards) == [0.0] * len(rewards)


def test_population_and_sample_deviation_differ_by_the_known_factor() -> None:
    rewards = [0.0, 1.0, 1.0, 0.5]
    sample = grpo_advantages(rewards, eps=0.0)
    population = grpo_advantages(rewards, std="population", eps=0.0)
    assert population == pytest.approx([a * math.sqrt(4 / 3) for a in sample])


def test_an_empty_group_is_an_error() -> None:
    with pytest.raises(ValueError, match="grpo_advantages: the group is empty"):
        grpo_advantages([])


@pytest.mark.parametrize("reward", [float("nan"), float("inf")])
def test_a_reward_that_is_not_finite_names_the_function(reward: float) -> None:
    with pytest.raises(ValueError, match="grpo_advantages: reward 1 is"):
        grpo_advantages([0.0, reward])


def test_a_bare_float_names_the_function() -> None:
    bare: Any = 1.0
    with pytest.raises(TypeError, match=r"grpo_advantages: expected one reward .* got 1\.0"):
        grpo_advantages(bare)


def test_a_text_names_the_function() -> None:
    text: Any = ["1.0", 0.0]
    with pytest.raises(TypeError, match=r"grpo_advantages: reward 0 is '1\.0'"):
        grpo_advantages(text)


def test_numpy_scalars_and_tensors_on_a_graph_give_plain_floats() -> None:
    on_graph: Any = [np.float32(1.0), torch.zeros((), requires_grad=True) * 2.0]
    advantages = grpo_advantages(on_graph)
    assert json.dumps(advantages) == json.dumps(grpo_advantages([1.0, 0.0]))


@settings(deadline=None)
@given(rewards=REWARDS, shift=st.integers(-100, 100))
def test_a_constant_added_to_all_rewards_changes_nothing(rewards: list[float], shift: int) -> None:
    coarse = [round(reward * 64) / 64 for reward in rewards]
    moved = grpo_advantages([reward + shift for reward in coarse])
    assert moved == pytest.approx(grpo_advantages(coarse), rel=1e-6, abs=1e-6)


@settings(deadline=None)
@given(rewards=REWARDS, order=st.randoms(use_true_random=False))
def test_the_order_of_siblings_does_not_matter(rewards: list[float], order: Any) -> None:
    places = list(range(len(rewards)))
    order.shuffle(places)
    shuffled = grpo_advantages([rewards[place] for place in places])
    straight = grpo_advantages(rewards)
    assert shuffled == pytest.approx([straight[place] for place in places])


@settings(deadline=None)
@given(rewards=REWARDS)
def test_advantages_sum_to_zero_and_stay_below_the_known_bound(rewards: list[float]) -> None:
    advantages = grpo_advantages(rewards)
    assert math.fsum(advantages) == pytest.approx(0.0, abs=1e-6)
    # The largest deviation that n numbers allow is (n - 1) / sqrt(n) sample deviations.
    n = len(rewards)
    assert max(map(abs, advantages)) <= (n - 1) / math.sqrt(n) + 1e-9


@settings(deadline=None)
@given(rewards=REWARDS, places=st.lists(st.integers(0, 12), max_size=4))
def test_rewards_of_none_never_matter(rewards: list[float], places: list[int]) -> None:
    holed: list[float | None] = list(rewards)
    for place in places:
        holed.insert(min(place, len(holed)), None)
    kept = zip(holed, grpo_advantages(holed), strict=True)
    assert [advantage for reward, advantage in kept if reward is not None] == grpo_advantages(
        rewards
    )
