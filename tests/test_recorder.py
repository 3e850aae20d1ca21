"""What is written down while a graph trains."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rlgraph import Batch, Graph, Latest
from rlgraph.executors.inline import InlineExecutor
from rlgraph.metrics import read_metrics
from rlgraph.running.loop import run
from rlgraph.scheduling import Snapshot
from rlgraph.session.job import PlainJob
from rlgraph.session.recorder import Recorder
from rlgraph.session.rundir import RunDirectory
from rlgraph.trace import Span, read_trace
from tests.school import Config, Learner, Lesson, Told, numbers, school


def recorded(graph: Graph, path: Path, versions: int | None = None) -> tuple[RunDirectory, Told]:
    directory, show, executor = RunDirectory(path=path), Told(), InlineExecutor()
    recorder = Recorder(PlainJob(graph=graph), directory, show, executor, Snapshot())
    with recorder:
        run(graph, executor, versions=versions, watches=[recorder.watch])
    return directory, show


@dataclass
class Play:
    score: float
    num_tokens: int


def play(number: int, policy: Latest[Lesson]) -> Play:
    return Play(float(number), 5 + number % 2)


def score(played: Play) -> float:
    return played.score


def playing(learner: Learner) -> Graph:
    g = Graph("playing")
    policy = g.latest("policy", init=learner.weights, max_staleness=0)
    scores = g.source(numbers).map(play, policy).map(score)
    scores.batch(4).map(learner.step).publish_to(policy)
    return g


def test_calls_are_counted_anew_for_each_version(tmp_path: Path) -> None:
    _, show = recorded(school(Config(), Learner()), tmp_path, versions=2)
    of_second = show.lines[show.lines.index("version 1") + 1 :]
    assert of_second[0] == "calls {'scale': 1}"
    assert of_second[-2:] == ["calls {'scale': 4, 'Learner.step': 1}", "version 2"]


def test_versions_are_those_of_the_first_latest(tmp_path: Path) -> None:
    def twice(batch: Batch[float], second: Latest[Lesson]) -> Lesson:
        return Lesson(0.0, {})

    learner, other = Learner(), Learner()
    g = Graph("two")
    first = g.latest("first", init=learner.weights, max_staleness=0)
    second = g.latest("second", init=other.weights, max_staleness=0)
    scores = g.source(numbers).map(play, first).map(score)
    scores.batch(4).map(learner.step).publish_to(first)
    scores.batch(2).map(twice, second).publish_to(second)
    directory, show = recorded(g, tmp_path, versions=2)
    assert [line for line in show.lines if line.startswith("version")] == ["version 1", "version 2"]
    assert [row["version"] for row in read_metrics(directory.metrics)] == [1, 2]


def test_tokens_and_staleness_of_what_was_trained_on_are_measured(tmp_path: Path) -> None:
    directory, _ = recorded(playing(Learner()), tmp_path, versions=3)
    last = read_metrics(directory.metrics)[-1]
    assert (last["trajectory_tokens"], last["staleness_mean"], last["staleness_max"]) == (5.5, 0, 0)


def test_a_call_that_raised_is_a_span_that_failed(tmp_path: Path) -> None:
    def fail_first(number: int) -> int:
        if number == 0:
            raise ValueError("no 0")
        return number

    g = Graph("failing")
    g.source(numbers).map(fail_first).collect("all")
    directory, _ = recorded(g, tmp_path)
    first, *others = read_trace(directory.spans).spans
    assert isinstance(first, Span)
    assert (first.key, first.outcome) == ("fail_first/0/r/a1", "failed")
    assert {span.outcome for span in others} == {"done"}
