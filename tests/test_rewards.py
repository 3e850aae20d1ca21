"""What counts as a reward, and what each bad one gets (P8)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from rlgraph.rl.records import Prompt, Status, Trajectory
from rlgraph.rl.rewards import checked_rewards, plain_rewards, verify


def ended(**fields: Any) -> Trajectory:
    return replace(Trajectory(id="t", prompt=Prompt(id="p"), status=Status.DONE), **fields)


@pytest.mark.parametrize(
    "rewards",
    [
        [1.0, 0.0, None],
        (True, 0, None),
        [np.float32(1.0), np.int64(0), None],
        [torch.tensor(1.0, requires_grad=True) * 1.0, torch.tensor([0]), None],
    ],
    ids=["floats", "bools", "numpy scalars", "tensors on a graph"],
)
def test_numbers_become_plain_floats_and_none_stays(rewards: object) -> None:
    taken = plain_rewards(rewards, source="score")
    assert taken == [1.0, 0.0, None]
    assert [type(reward) for reward in taken] == [float, float, type(None)]


def test_a_whole_array_or_tensor_is_taken() -> None:
    on_graph = torch.ones(2, requires_grad=True) * 0.5
    taken = plain_rewards(on_graph, source="score"), plain_rewards(np.ones(2), source="score")
    assert taken == ([0.5, 0.5], [1.0, 1.0])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), np.float32("nan")])
def test_a_number_that_is_not_finite_is_refused_with_its_place(value: float) -> None:
    with pytest.raises(ValueError, match=r"score: reward 1 is -?(nan|inf); give a finite float"):
        plain_rewards([0.0, value], source="score")


@pytest.mark.parametrize("value", ["1.0", [1.0], 1j, object()], ids=["str", "list", "1j", "object"])
def test_what_is_no_number_is_refused_with_its_place(value: object) -> None:
    with pytest.raises(TypeError, match=r"score: reward 0 is .*; give a float, or None"):
        plain_rewards([value], source="score")


@pytest.mark.parametrize("rewards", [1.0, "12", None, {"a": 1.0}, torch.tensor(1.0), iter([1.0])])
def test_what_is_no_list_is_refused(rewards: object) -> None:
    with pytest.raises(TypeError, match="score: expected one reward for each item, got "):
        plain_rewards(rewards, source="score")


def test_a_tensor_of_rows_is_refused() -> None:
    with pytest.raises(TypeError, match=re.escape("score: reward 0 is [1.0, 1.0]")):
        plain_rewards(torch.ones(2, 2), source="score")


@pytest.mark.parametrize("rewards", [[], [1.0] * 3, [1.0] * 5])
def test_a_wrong_length_names_the_function_and_both_counts(rewards: list[float]) -> None:
    with pytest.raises(ValueError, match=f"score: {len(rewards)} rewards for 4 items"):
        checked_rewards(rewards, count=4, source="score")


def test_the_right_length_is_taken() -> None:
    assert checked_rewards([1, None], count=2, source="score") == [1.0, None]


def test_verify_keeps_what_the_environment_gave() -> None:
    assert verify(ended(reward=0.5)) == ended(reward=0.5)


def test_verify_keeps_the_absence_of_a_verdict() -> None:
    assert verify(ended()).reward is None


def test_verify_takes_the_reward_from_a_failed_trajectory() -> None:
    failed = ended(status=Status.FAILED, reward=0.0)
    assert verify(failed) == replace(failed, reward=None)


def test_verify_names_the_trajectory_of_a_bad_reward() -> None:
    with pytest.raises(ValueError, match=re.escape("verify('t'): reward 0 is nan")):
        verify(ended(reward=float("nan")))
