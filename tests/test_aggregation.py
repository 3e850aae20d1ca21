"""Token mean over the global batch, against other code bases and reported bugs."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlgraph.rl.aggregation import token_mean
from tests.vectors import load, mask, regression, tensor

VECTORS = load("loss_aggregation")
LOSS = tensor(VECTORS["tensors"]["L"])
MASK = mask(VECTORS["tensors"]["mask"])


def expected(name: str, value: str) -> list[float]:
    (case,) = (case for case in VECTORS["cases"] if case["id"] == name)
    return tensor(case["expected"][value]).reshape(-1).tolist()


@pytest.mark.parametrize("peer", ["verl/token-mean", "OpenRLHF/token_level=True"])
def test_the_value_equals_that_of(peer: str) -> None:
    ours = token_mean(loss=LOSS, mask=MASK, num_tokens=49)
    assert [ours.item()] == pytest.approx(expected(f"{peer}/float64", "loss"), rel=1e-12)


def test_nan_outside_the_mask_changes_nothing() -> None:
    poisoned = tensor(VECTORS["tensors"]["L_nan"])
    ours = token_mean(loss=poisoned, mask=MASK, num_tokens=49)
    (theirs,) = expected("verl/token-mean/nan_outside_mask/float64", "loss")
    assert ours.item() == pytest.approx(theirs, rel=1e-12)


def test_micro_batches_sum_to_the_value_of_the_whole() -> None:
    parts = [
        token_mean(loss=LOSS[rows], mask=MASK[rows], num_tokens=49).item()
        for rows in (slice(0, 3), slice(3, 8))
    ]
    name = "verl/token-mean/microbatches/gbs=7/float64"
    assert parts == pytest.approx(expected(name, "parts"), rel=1e-12)
    assert [sum(parts)] == pytest.approx(expected(name, "sum"), rel=1e-12)


def test_the_mask_counts_in_the_numerator() -> None:
    case = regression("token_mean_ignores_mask")
    inputs = case["inputs"]
    loss = tensor(inputs["loss_mat"]).requires_grad_()
    trained = mask(inputs["loss_mask"])
    ours = token_mean(loss=loss, mask=trained, num_tokens=2)
    ours.backward()
    assert ours.item() == case["right"]["data"]
    assert torch.equal(loss.grad, trained.double() / 2) if loss.grad is not None else False


def test_short_rows_weigh_no_more_in_a_micro_batch_of_their_own() -> None:
    case = regression("token_mean_per_microbatch")
    loss, trained = tensor(case["inputs"]["loss_mat"]), mask(case["inputs"]["loss_mask"])
    parts = [token_mean(loss=loss[[i]], mask=trained[[i]], num_tokens=5) for i in (0, 1)]
    assert sum(part.item() for part in parts) == pytest.approx(case["right"]["data"])


def test_a_micro_batch_without_a_token_gives_zero_and_no_gradient() -> None:
    loss = torch.full((2, 3), float("nan"), requires_grad=True)
    ours = token_mean(loss=loss, mask=torch.zeros(2, 3, dtype=torch.bool), num_tokens=7)
    ours.backward()
    assert ours.item() == 0.0
    assert loss.grad is not None
    assert not loss.grad.any()


@settings(deadline=None)
@given(
    seed=st.integers(0, 10_000),
    cuts=st.lists(st.integers(0, 6), max_size=3),
    poison=st.sampled_from([float("nan"), float("inf"), 1e30]),
)
def test_any_split_and_anything_outside_the_mask_give_the_same(
    seed: int, cuts: list[int], poison: float
) -> None:
    draw = torch.Generator().manual_seed(seed)
    loss = torch.randn(6, 4, generator=draw, dtype=torch.float64)
    trained = torch.rand(6, 4, generator=draw) < 0.5
    count = max(int(trained.sum()), 1)
    edges = [0, *sorted(cuts), 6]
    parts = [
        token_mean(
            loss=loss[a:b].masked_fill(~trained[a:b], poison), mask=trained[a:b], num_tokens=count
        )
        for a, b in pairwise(edges)
    ]
    whole = token_mean(loss=loss, mask=trained, num_tokens=count)
    torch.testing.assert_close(torch.stack(parts).sum(), whole)


@pytest.mark.parametrize("count", [0, -1, float("nan")])
def test_a_batch_without_trained_tokens_is_an_error(count: float) -> None:
    with pytest.raises(ValueError, match=f"num_tokens must be > 0, got {count}"):
        token_mean(loss=LOSS, mask=MASK, num_tokens=count)


def test_other_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"got \(8, 12\) and \(12,\)"):
        token_mean(loss=LOSS, mask=MASK[0], num_tokens=1)


def test_a_mask_that_is_not_bool_is_refused() -> None:
    with pytest.raises(TypeError, match=r"mask must be bool, got torch\.float64"):
        token_mean(loss=LOSS, mask=LOSS, num_tokens=1)
