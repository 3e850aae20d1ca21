"""A graph alone as a job: what it measures, stores and loads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rlgraph import Batch, Graph, Latest
from rlgraph.executors.inline import InlineExecutor
from rlgraph.session.job import NotResumableError, PlainJob
from tests.school import Config, Learner, Lesson, numbers, scale, school


@dataclass
class Odd:
    metrics: object = field(default_factory=dict)


def test_a_plain_job_does_nothing_before_and_after() -> None:
    job = PlainJob(graph=school(Config(), Learner()))
    executor = InlineExecutor()
    assert (job.prepare(executor), job.evaluate(executor)) == ({}, {})


@pytest.mark.parametrize(
    ("value", "measured"),
    [
        (Lesson(1.0, {"loss": 2}), {"loss": 2.0}),
        (Odd({"name": "x", "loss": 0.5, "done": True}), {"loss": 0.5, "done": 1.0}),
        (Odd({"big": 10**400, "low": -(10**400)}), {"big": math.inf, "low": -math.inf}),
        (Odd(7), {}),
        (3.0, {}),
    ],
)
def test_the_numbers_among_the_metrics_of_a_value_are_measured(
    value: object, measured: Mapping[str, float]
) -> None:
    assert PlainJob(graph=school(Config(), Learner())).measure(value) == measured


def test_objects_that_can_be_stored_are_stored(tmp_path: Path) -> None:
    before, after = Learner(), Learner()
    before.value = 7.0
    PlainJob(graph=school(Config(), before)).save(tmp_path)
    PlainJob(graph=school(Config(), after)).load(tmp_path)
    assert after.value == 7.0


def test_an_object_of_several_stages_is_stored_once(tmp_path: Path) -> None:
    PlainJob(graph=school(Config(), Learner())).save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["0-Learner"]


class Forgetful:
    def weights(self) -> Lesson:
        return Lesson(0.0, {})

    def step(self, batch: Batch[float]) -> Lesson:
        return Lesson(sum(batch), {})


def first() -> Lesson:
    return Lesson(0.0, {})


@pytest.mark.parametrize("init", [Forgetful().weights, first])
def test_a_latest_that_would_start_anew_is_not_resumed(init: object, tmp_path: Path) -> None:
    g = Graph("forgetful")
    policy: Latest[Lesson] = g.latest("policy", init=init, max_staleness=0)  # type: ignore[arg-type]
    scaled = g.source(numbers).map(scale, policy, 1.0)
    scaled.batch(4).map(Forgetful().step).publish_to(policy)
    job = PlainJob(graph=g)
    job.save(tmp_path)
    with pytest.raises(NotResumableError, match="latest 'policy' would start anew"):
        job.load(tmp_path)
