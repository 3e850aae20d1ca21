"""Single-turn tasks of reasoning-gym (extra ``envs``): made from seeds, scored by its scorers."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count as count_up
from typing import Protocol, TypeAlias, cast

from rlgraph.envs.protocol import EnvironmentFailedError, Info
from rlgraph.errors import ConfigError, Problem, did_you_mean
from rlgraph.rl.records import Prompt

Entry: TypeAlias = Mapping[str, object]

UNREADABLE = (ArithmeticError, AttributeError, LookupError, SyntaxError, TypeError, ValueError)
"""What some scorers raise on an answer they cannot read (seen: ValueError, KeyError)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningConfig:
    """One family of tasks."""

    task: str = "chain_sum"
    """A name of reasoning-gym's catalogue."""
    settings: dict[str, int] = field(default_factory=dict)
    """Fields of that task's own configuration, ``{"max_terms": 3}``."""


class ReasoningTask:
    """One question; ``Environment``. Its only step returns the score of the answer, in [0, 1]."""

    def __init__(self, config: ReasoningConfig) -> None:
        self._config = config
        self._scorer: _Tasks | None = None
        self._entry: Entry = {}

    def reset(self, seed: int) -> tuple[str, Info]:
        """Ask the question of ``seed``. Raises ConfigError, see ``reasoning_tasks``."""
        self._scorer = _tasks_of(self._config, seed)
        self._entry = self._scorer[0]
        return str(self._entry["question"]), {}

    def step(self, action: str) -> tuple[str, float, bool, bool, Info]:
        """Score the answer; one that the scorer cannot read gets 0.0 and ``unreadable`` 1.0."""
        if self._scorer is None:
            raise EnvironmentFailedError("ReasoningTask.step: no question was asked; call reset")
        try:
            score, unreadable = float(self._scorer.score_answer(action.strip(), self._entry)), 0.0
        except UNREADABLE:
            score, unreadable = 0.0, 1.0
        return "", score, True, False, {"success": float(score == 1.0), "unreadable": unreadable}

    def close(self) -> None:
        """Hold nothing."""


def make_reasoning(_prompt: Prompt, *, config: ReasoningConfig) -> ReasoningTask:
    """Make the environment of a prompt: ``Sandbox(partial(make_reasoning, config=config), 1)``."""
    return ReasoningTask(config)


def reasoning_tasks(config: ReasoningConfig, seed: int) -> Iterator[Prompt]:
    """Yield questions without end; each can be asked again from its own seed.

    Raises ConfigError at once when the extra is missing, the task is unknown or its settings are
    wrong.
    """
    _tasks_of(config, seed)
    rng = random.Random(f"{config.task} {seed}")
    return (_prompt(config, i, rng.getrandbits(31)) for i in count_up())


def _prompt(config: ReasoningConfig, number: int, seed: int) -> Prompt:
    entry = _tasks_of(config, seed)[0]
    return Prompt(
        id=f"{config.task}/{number}",
        text=str(entry["question"]),
        domain=config.task,
        seed=seed,
        answer=str(entry["answer"]),
    )


class _Tasks(Protocol):
    """A data set of reasoning-gym."""

    def __getitem__(self, index: int) -> Entry: ...

    def score_answer(self, answer: str, entry: Entry) -> float: ...


def _tasks_of(config: ReasoningConfig, seed: int) -> _Tasks:
    try:
        # Two seconds to import, and an extra: only who plays it pays.
        from reasoning_gym import create_dataset
        from reasoning_gym.factory import DATASETS
    except ModuleNotFoundError as error:
        what = f"reasoning-gym cannot be imported: {error}"
        raise _wrong(what, "task", "pip install 'rlgraph-flow[envs]'") from None
    if config.task not in DATASETS:
        what = f"reasoning-gym has no task {config.task!r}{did_you_mean(config.task, DATASETS)}"
        raise _wrong(what, "task", f"use one of its {len(DATASETS)} tasks")
    try:
        return cast(_Tasks, create_dataset(config.task, seed=seed, size=1, **config.settings))
    except (AssertionError, TypeError, ValueError) as error:
        what = f"task {config.task!r} refuses settings {config.settings!r}: {error}"
        raise _wrong(what, "settings", "use fields of that task's configuration") from error


def _wrong(what: str, where: str, mend: str) -> ConfigError:
    problem = Problem(what=what, where=where, mend=mend)
    return ConfigError("the reasoning-gym configuration is wrong", [problem])
