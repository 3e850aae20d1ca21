"""Single-turn tasks of reasoning-gym (extra ``envs``)."""

from __future__ import annotations

import sys
from functools import partial
from itertools import islice

import pytest

from rlgraph.envs.protocol import Environment, EnvironmentFailedError
from rlgraph.envs.reasoning import ReasoningConfig, ReasoningTask, make_reasoning, reasoning_tasks
from rlgraph.errors import ConfigError
from rlgraph.rl.records import Prompt

SUMS = ReasoningConfig(task="chain_sum", settings={"max_terms": 3})


def asked(config: ReasoningConfig, seed: int = 3) -> ReasoningTask:
    task = ReasoningTask(config)
    task.reset(seed)
    return task


def test_it_is_an_environment() -> None:
    assert isinstance(ReasoningTask(SUMS), Environment)


def test_a_task_can_be_asked_again_from_its_own_seed() -> None:
    first, second = islice(reasoning_tasks(SUMS, seed=0), 2)
    assert first.text != second.text
    assert make_reasoning(second, config=SUMS).reset(second.seed) == (second.text, {})
    assert (first.id, first.domain) == ("chain_sum/0", "chain_sum")


def test_tasks_are_the_same_for_the_same_seed() -> None:
    drawn = [list(islice(reasoning_tasks(SUMS, seed), 3)) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_the_right_answer_ends_with_success() -> None:
    (prompt,) = islice(reasoning_tasks(SUMS, seed=0), 1)
    info = {"success": 1.0, "unreadable": 0.0}
    answered = asked(SUMS, prompt.seed).step(f" {prompt.answer}\n")
    assert answered == ("", 1.0, True, False, info)


@pytest.mark.parametrize("answer", ["", "no idea", "\ud800\x00", "x" * 1_000_000])
def test_a_wrong_answer_ends_without_a_score(answer: str) -> None:
    task = asked(SUMS)
    assert task.step(answer)[:3] == ("", 0.0, True)
    task.close()


def test_an_answer_that_the_scorer_cannot_read_is_no_crash() -> None:
    # The scorer of prime_factorization raises ValueError on what is no product of numbers.
    answered = asked(ReasoningConfig(task="prime_factorization")).step("two times three")
    assert answered == ("", 0.0, True, False, {"success": 0.0, "unreadable": 1.0})


def test_a_step_before_the_question_is_an_error() -> None:
    with pytest.raises(EnvironmentFailedError, match="call reset"):
        ReasoningTask(SUMS).step("1")


def test_an_unknown_task_is_refused_at_once_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match=r"no task 'chain_sums'; did you mean 'chain_sum'\?"):
        reasoning_tasks(ReasoningConfig(task="chain_sums"), seed=0)


@pytest.mark.parametrize("settings", [{"max_term": 3}, {"min_terms": 5, "max_terms": 3}])
def test_settings_that_the_task_refuses_are_named(settings: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=r"task 'chain_sum' refuses settings .*_term"):
        reasoning_tasks(ReasoningConfig(settings=settings), seed=0)


def test_a_missing_extra_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    with pytest.raises(ConfigError, match=r"to mend: pip install 'rlgraph-flow\[envs\]'"):
        partial(make_reasoning, config=SUMS)(Prompt(id="p")).reset(0)
