"""PPO-clip against other code bases, with gradients, and what a mask must hide."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rlgraph.rl.aggregation import token_mean
from rlgraph.rl.losses import ppo_clip
from tests.vectors import load, mask, tensor

VECTORS = load("loss_ppo_clip")
DUAL_CLIP = ("dual_clip_c", "dual_clip", "c_clip", "delta", "clip_ratio_c")
LOW = ("clip_low", "eps_clip", "epsilon_low", "pg_clip_low")
HIGH = ("clip_high", "eps_clip_higher", "epsilon_high", "pg_clip_high")


def first(arguments: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((arguments[name] for name in names if arguments.get(name) is not None), None)


def is_plain(case: dict[str, Any]) -> bool:
    """Say whether a case is PPO-clip without dual clip, aggregated over tokens."""
    arguments = case["args"]
    mode = arguments.get("loss_agg_mode", arguments.get("agg", "token-mean"))
    dual = first(arguments, DUAL_CLIP) is not None or arguments.get("dual_clip_loss", False)
    return mode == "token-mean" and not dual


PLAIN = [case for case in VECTORS["cases"] if is_plain(case)]


def test_there_are_cases_of_five_code_bases() -> None:
    assert {case["peer"]["name"] for case in PLAIN} == {"OpenRLHF", "slime", "AReaL", "TRL", "ROLL"}
    assert len(PLAIN) == 32


@pytest.mark.parametrize("case", PLAIN, ids=[case["id"] for case in PLAIN])
def test_loss_and_gradient_equal_those_of(case: dict[str, Any]) -> None:
    tensors, inputs = VECTORS["tensors"], case["inputs"]
    logprobs = tensor(tensors[inputs["logp"]], case["dtype"]).requires_grad_()
    trained = mask(tensors[inputs["mask"]])
    per_token = ppo_clip(
        logprobs=logprobs,
        old_logprobs=tensor(tensors[inputs["old_logp"]], case["dtype"]),
        advantages=tensor(tensors[inputs["adv"]], case["dtype"]),
        mask=trained,
        clip_low=first(case["args"], LOW),
        clip_high=first(case["args"], HIGH),
    )
    loss = token_mean(loss=per_token, mask=trained, num_tokens=int(trained.sum()))
    loss.backward()
    tolerance = {"rtol": case["rtol"], "atol": case["atol"]}
    expected = case["expected"]
    torch.testing.assert_close(loss, tensor(expected["loss"], case["dtype"]), **tolerance)
    torch.testing.assert_close(logprobs.grad, tensor(expected["grad"], case["dtype"]), **tolerance)


def random_batch(seed: int) -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    return {
        "logprobs": -torch.rand(3, 5, generator=draw, dtype=torch.float64),
        "old_logprobs": -torch.rand(3, 5, generator=draw, dtype=torch.float64),
        "advantages": torch.randn(3, 5, generator=draw, dtype=torch.float64),
        "mask": torch.rand(3, 5, generator=draw) < 0.5,
    }


def loss_and_gradient(batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    logprobs = batch["logprobs"].clone().requires_grad_()
    loss = ppo_clip(**{**batch, "logprobs": logprobs})
    (gradient,) = torch.autograd.grad(loss.sum(), logprobs)
    return loss, gradient


@settings(deadline=None)
@given(
    seed=st.integers(0, 10_000),
    name=st.sampled_from(["logprobs", "old_logprobs", "advantages"]),
    value=st.sampled_from([float("nan"), float("inf"), float("-inf"), 1e30]),
)
def test_what_stands_outside_the_mask_never_matters(seed: int, name: str, value: float) -> None:
    batch = random_batch(seed)
    poisoned = {**batch, name: batch[name].masked_fill(~batch["mask"], value)}
    for clean, other in zip(loss_and_gradient(batch), loss_and_gradient(poisoned), strict=True):
        assert torch.equal(clean, other)
        assert not other[~batch["mask"]].any()


@settings(deadline=None)
@given(seed=st.integers(0, 10_000))
def test_at_ratio_one_the_gradient_is_that_of_reinforce(seed: int) -> None:
    batch = random_batch(seed)
    on_policy = {**batch, "old_logprobs": batch["logprobs"]}
    loss, gradient = loss_and_gradient(on_policy)
    expected = -batch["advantages"].masked_fill(~batch["mask"], 0.0)
    torch.testing.assert_close(loss.detach(), expected)
    torch.testing.assert_close(gradient, expected)


def test_beyond_the_clip_the_gradient_is_zero_on_the_gaining_side_only() -> None:
    batch = {
        "logprobs": torch.zeros(1, 4),
        "old_logprobs": torch.tensor([[-1.0, -1.0, 1.0, 1.0]]),
        "advantages": torch.tensor([[1.0, -1.0, 1.0, -1.0]]),
        "mask": torch.ones(1, 4, dtype=torch.bool),
    }
    _, gradient = loss_and_gradient(batch)
    assert (gradient != 0.0).tolist() == [[False, True, True, False]]


def test_other_shapes_are_refused() -> None:
    batch = random_batch(0)
    with pytest.raises(ValueError, match=r"one shape \[B, L\], got \(3, 5\), \(3, 5\), \(3,\)"):
        ppo_clip(**{**batch, "advantages": torch.ones(3)})


def test_a_mask_that_is_not_bool_is_refused() -> None:
    batch = random_batch(0)
    with pytest.raises(TypeError, match=r"mask must be bool, got torch\.float64"):
        ppo_clip(**{**batch, "mask": batch["advantages"]})
