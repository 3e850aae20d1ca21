import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rlgraph.llm.sampling import draw, sampling_logprobs, temperature_problems, uniform


def test_logprobs_are_of_the_distribution_at_that_temperature() -> None:
    logprobs = sampling_logprobs(torch.tensor([[0.0, math.log(3.0)]]), temperature=0.5)
    assert logprobs.exp().tolist() == [pytest.approx([0.1, 0.9])]


def test_greedy_logprobs_are_those_of_the_plain_softmax() -> None:
    logits = torch.tensor([[0.3, -1.0, 2.0]])
    assert torch.equal(sampling_logprobs(logits, 0.0), logits.log_softmax(-1))


def test_greedy_takes_the_likeliest_token_whatever_the_uniform() -> None:
    logprobs = torch.tensor([[0.1, 0.2, 0.7]]).log().expand(2, -1)
    assert draw(logprobs, torch.tensor([0.0, 0.99]), temperature=0.0).tolist() == [2, 2]


@pytest.mark.parametrize(
    ("number", "token"), [(0.0, 1), (0.2499, 1), (0.2501, 2), (0.7499, 2), (0.7501, 4), (0.9999, 4)]
)
def test_a_uniform_picks_the_token_whose_interval_holds_it(number: float, token: int) -> None:
    logprobs = torch.tensor([[0.0, 0.25, 0.5, 0.0, 0.25, 0.0]]).log()
    assert draw(logprobs, torch.tensor([number]), temperature=1.0).tolist() == [token]


@given(st.lists(st.floats(-30, 30), min_size=1, max_size=40))
def test_the_largest_uniform_still_picks_a_token(logits: list[float]) -> None:
    logprobs = sampling_logprobs(torch.tensor([logits]), 1.0)
    largest = torch.tensor([1.0 - 2.0**-52], dtype=torch.float64)
    assert draw(logprobs, largest, temperature=1.0).item() < len(logits)


def test_uniforms_are_spread_evenly() -> None:
    drawn = [uniform(seed, index) for seed in range(50) for index in range(20)]
    assert all(0.0 <= number < 1.0 for number in drawn)
    counts = [sum(int(number * 10) == tenth for number in drawn) for tenth in range(10)]
    assert min(counts) > 60
    assert max(counts) < 140


def test_uniforms_depend_on_seed_and_index_alone() -> None:
    assert uniform(7, 3) == uniform(7, 3)
    assert len({uniform(7, 3), uniform(8, 3), uniform(7, 4), uniform(-7, 3)}) == 4


def test_any_integer_is_a_seed() -> None:
    assert uniform(-1, 0) == uniform(2**64 - 1, 0)


@pytest.mark.parametrize("temperature", [-1.0, 1e-45, 0.0099, math.inf, -math.inf, math.nan])
def test_a_temperature_that_gives_no_distribution_is_named(temperature: float) -> None:
    (problem,) = temperature_problems(temperature)
    assert problem.where == "temperature"
    assert f"temperature={temperature} is neither 0 nor" in problem.what


@pytest.mark.parametrize("temperature", [0.0, 0.01, 1.0, 100.0])
def test_greedy_and_usual_temperatures_are_right(temperature: float) -> None:
    assert list(temperature_problems(temperature)) == []
