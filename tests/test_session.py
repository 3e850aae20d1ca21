"""One run of a job, start to end, stopped and resumed, broken and recorded."""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlgraph import Graph, Latest
from rlgraph.errors import GraphError, StageError
from rlgraph.executors.inline import InlineExecutor
from rlgraph.executors.simulated import SimulatedExecutor
from rlgraph.executors.thread import ThreadExecutor
from rlgraph.jsonl import read_lines
from rlgraph.metrics import read_metrics
from rlgraph.profile import Fixed
from rlgraph.running.execution import Executor
from rlgraph.session import Options, run_job
from rlgraph.session.job import PlainJob
from rlgraph.session.rundir import RunDirectory, RunDirectoryError, RunRefusedError
from rlgraph.trace import read_trace
from tests.school import Config, Learner, Lesson, Scale, Told, scale, school


class School:
    """A job with a warm start and an evaluation."""

    def __init__(self, config: Config, scale: Scale = scale) -> None:
        self.learner = Learner()
        self.plain = PlainJob(graph=school(config, self.learner, scale))
        self.graph, self.needed_bytes = self.plain.graph, self.plain.needed_bytes
        self.save: Callable[[Path], None] = self.plain.save
        self.load, self.measure = self.plain.load, self.plain.measure

    def prepare(self, executor: Executor) -> Mapping[str, float]:
        self.learner.value = 2.0
        return {"warmth": 1.0}

    def evaluate(self, executor: Executor) -> Mapping[str, float]:
        return {"success": self.learner.value}


def go(
    out: Path,
    config: Config | None = None,
    *,
    job: Any = None,
    show: Told | None = None,
    resume: bool = False,
    executor: Executor | None = None,
) -> tuple[Mapping[str, Any], Any, RunDirectory]:
    config = config or Config()
    job = job or School(config)
    directory = RunDirectory(path=out)
    summary = run_job(
        job,
        config=config,
        executor=executor or InlineExecutor(),
        directory=directory,
        show=show or Told(),
        options=Options(versions=config.versions, resume=resume),
    )
    return summary, job, directory


def stored(directory: RunDirectory) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads(directory.summary.read_text())
    return summary


def same(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out times, and the lags, which are counted anew by a resumed run."""
    return {k: v for k, v in summary.items() if "seconds" not in k and k != "lags"}


def broken_from(first: int) -> Scale:
    def break_(number: int, policy: Latest[Lesson], factor: float) -> float:
        if number >= first:
            raise ValueError(f"no {number}")
        return scale(number, policy, factor)

    return break_


def test_a_run_leaves_its_record(tmp_path: Path) -> None:
    go(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoints",
        "config.yaml",
        "failures.jsonl",
        "graph.json",
        "lock",
        "metrics.jsonl",
        "report.html",
        "spans.jsonl",
        "started.json",
        "summary.json",
        "trace.json",
    ]


def test_the_summary_tells_warm_start_and_success_before_and_after(tmp_path: Path) -> None:
    summary, job, directory = go(tmp_path)
    timeless = {k: v for k, v in summary.items() if "seconds" not in k}
    none = ("failed", "timeout", "filtered", "stale", "surplus", "cancelled")
    assert timeless == {
        "warmth": 1.0,
        "success_before": 2.0,
        "success_after": job.learner.value,
        "versions": 3,
        "outcomes": {"consumed": 12} | dict.fromkeys(none, 0),
        "launched": 12,
        "lags": {"policy": {"0": 12}},
    }
    assert stored(directory) == summary


def test_the_phases_are_told_in_order(tmp_path: Path) -> None:
    show = Told()
    go(tmp_path, show=show)
    assert [line for line in show.lines if not line.startswith(("calls", "measured"))] == [
        "setting up",
        "preparing",
        "evaluating before training",
        "training",
        *("version 1", "version 2", "version 3"),
        "evaluating after training",
    ]


def test_every_version_has_its_metrics_and_its_mark(tmp_path: Path) -> None:
    _, job, directory = go(tmp_path)
    rows = read_metrics(directory.metrics)
    assert [row["version"] for row in rows] == [1, 2, 3]
    assert rows[-1]["value"] == job.learner.value
    assert [mark.name for mark in read_trace(directory.spans).marks] == [
        f"publish v{version}" for version in (1, 2, 3)
    ]


def test_the_timeline_names_the_trajectory_of_a_call_that_serves_one(tmp_path: Path) -> None:
    _, _, directory = go(tmp_path, Config(versions=1))
    spans = read_trace(directory.spans).spans
    assert sorted((span.stage, span.trajectory, span.version, span.outcome) for span in spans) == [
        ("Learner.step", "", -1, "done"),
        ("init policy", "", -1, "done"),
        *(("scale", str(number), 0, "done") for number in range(4)),
    ]


def test_a_trace_viewer_can_read_the_timeline(tmp_path: Path) -> None:
    _, _, directory = go(tmp_path, Config(versions=1))
    events = json.loads(directory.trace.read_text())["traceEvents"]
    assert {e["name"] for e in events if e["ph"] == "X"} == {"Learner.step", "init policy", "scale"}


INTERRUPTIONS: dict[str, Callable[[str], bool]] = {
    "after the first version": lambda line: line == "version 1",
    "amid a rollout": lambda line: line == "calls {'scale': 2}",
    "before a step": lambda line: line == "calls {'scale': 4}",
    "when all is trained": lambda line: line == "version 3",
    "in the last evaluation": lambda line: line == "evaluating after training",
}


@pytest.mark.parametrize("executor", [InlineExecutor, ThreadExecutor])
@pytest.mark.parametrize("moment", INTERRUPTIONS)
def test_a_resumed_run_ends_as_one_that_never_stopped(
    moment: str, executor: Callable[[], Executor], tmp_path: Path
) -> None:
    whole, untouched, _ = go(tmp_path / "whole", executor=executor())
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "stopped", show=Told(INTERRUPTIONS[moment]), executor=executor())
    resumed, job, directory = go(tmp_path / "stopped", resume=True, executor=executor())
    assert job.learner.value == untouched.learner.value
    assert same(resumed) == same(whole)
    assert [row["version"] for row in read_metrics(directory.metrics)] == [1, 2, 3]


def test_a_resumed_run_is_neither_warmed_nor_measured_before_again(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, show=Told(INTERRUPTIONS["after the first version"]))
    show = Told()
    go(tmp_path, show=show, resume=True)
    phases = [line for line in show.lines if not line.startswith(("calls", "measured"))]
    assert phases[:3] == ["setting up", "resuming from version 1", "training"]


def test_the_clock_of_a_resumed_run_goes_on(tmp_path: Path) -> None:
    costs = {"scale": Fixed(1.0)}
    with pytest.raises(KeyboardInterrupt):
        go(
            tmp_path,
            show=Told(INTERRUPTIONS["after the first version"]),
            executor=SimulatedExecutor(costs),
        )
    summary, _, directory = go(tmp_path, resume=True, executor=SimulatedExecutor(costs))
    assert [row["seconds"] for row in read_metrics(directory.metrics)] == [1.0, 2.0, 3.0]
    assert (summary["seconds"], summary["training_seconds"]) == (3.0, 3.0)


def test_a_run_stopped_by_the_user_says_so(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, show=Told(INTERRUPTIONS["after the first version"]))
    summary = stored(RunDirectory(path=tmp_path))
    assert (summary["error"], summary["versions"]) == ("stopped by the user", 1)


def test_a_finished_run_is_not_resumed(tmp_path: Path) -> None:
    go(tmp_path)
    with pytest.raises(RunRefusedError, match=r"finished, with 3 versions; .* above 3,"):
        go(tmp_path, resume=True)


def test_a_finished_run_goes_on_to_more_versions(tmp_path: Path) -> None:
    _, whole, _ = go(tmp_path / "whole", Config(versions=5))
    go(tmp_path / "short")
    _, job, directory = go(tmp_path / "short", Config(versions=5), resume=True)
    assert job.learner.value == whole.learner.value
    assert "versions: 5" in directory.config.read_text()


def test_a_run_of_other_settings_and_another_graph_is_not_resumed(tmp_path: Path) -> None:
    go(tmp_path)
    other = School(Config(factor=2.0), broken_from(3))
    with pytest.raises(RunRefusedError, match="was another run") as caught:
        go(tmp_path, Config(factor=2.0, versions=9), job=other, resume=True)
    assert str(caught.value).splitlines()[1:-1] == [
        "    stage 'scale' is gone",
        "    stage 'break_' is new",
        "    stage 'batch': inputs is 'break_', was 'scale'",
        "    latest 'policy': readers is 'break_', was 'scale'",
        "    factor: 0.5 -> 2.0",
    ]


def test_a_run_without_a_checkpoint_is_not_resumed(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, show=Told(lambda line: line == "preparing"))
    with pytest.raises(RunRefusedError, match="ended before its first checkpoint"):
        go(tmp_path, resume=True)


def test_one_failure_among_eight_is_a_record_and_the_others_go_on(tmp_path: Path) -> None:
    def fail_third(number: int, policy: Latest[Lesson], factor: float) -> float:
        if number == 2:
            raise ValueError("no 2")
        return scale(number, policy, factor)

    config = Config(versions=2)
    summary, _, directory = go(tmp_path, config, job=School(config, fail_third))
    assert summary["outcomes"]["consumed"] == 8
    (failure,) = read_lines(directory.failures)
    assert (failure["stage"], failure["key"]) == ("fail_third", "fail_third/2/r/a1")
    assert (failure["kind"], failure["error"]) == ("error", "ValueError: no 2")
    assert f'File "{__file__}"' in failure["trace"]


def test_too_many_failures_end_the_run_with_the_root_cause(tmp_path: Path) -> None:
    config = Config()
    with pytest.raises(StageError):
        go(tmp_path, config, job=School(config, broken_from(5)))
    directory = RunDirectory(path=tmp_path)
    error = stored(directory)["error"]
    assert "caused by ValueError: no " in error
    assert f"at {__file__}:" in error
    assert stored(directory)["outcomes"]["consumed"] == 4
    assert "caused by ValueError: no " in directory.report.read_text(encoding="utf-8")


def test_a_context_that_was_suppressed_is_no_cause(tmp_path: Path) -> None:
    class Odd(School):
        def prepare(self, executor: Executor) -> Mapping[str, float]:
            try:
                raise KeyError("hidden")
            except KeyError:
                raise ValueError("shown") from None

    with pytest.raises(ValueError, match="shown"):
        go(tmp_path, job=Odd(Config()))
    assert stored(RunDirectory(path=tmp_path))["error"] == "ValueError: shown"


def test_odd_text_in_a_failure_survives_record_and_report(tmp_path: Path) -> None:
    odd = "\ud800 \x00 \u202e \U0001f600 " + "x" * 1_000_000

    def fail(number: int, policy: Latest[Lesson], factor: float) -> float:
        raise ValueError(odd)

    with pytest.raises(StageError):
        go(tmp_path, job=School(Config(), fail))
    directory = RunDirectory(path=tmp_path)
    assert read_lines(directory.failures)[0]["error"] == f"ValueError: {odd}"
    assert odd[:1000] in stored(directory)["error"]
    assert "\U0001f600" in directory.report.read_text(encoding="utf-8")


def test_the_summary_is_not_flooded_by_what_an_exception_says(tmp_path: Path) -> None:
    class Loud(School):
        def prepare(self, executor: Executor) -> Mapping[str, float]:
            try:
                raise KeyError("x" * 1_000_000)
            except KeyError as error:
                raise ValueError("y" * 1_000_000) from error

    with pytest.raises(ValueError, match="yyy"):
        go(tmp_path, job=Loud(Config()))
    error = stored(RunDirectory(path=tmp_path))["error"]
    assert "… (1,000,000 characters)\n\ncaused by KeyError: 'xxx" in error
    assert len(error) < 20_000


def test_causes_that_go_in_a_circle_are_told_once(tmp_path: Path) -> None:
    class Round(School):
        def prepare(self, executor: Executor) -> Mapping[str, float]:
            first, second = ValueError("first"), ValueError("second")
            second.__cause__ = first
            raise first from second

    with pytest.raises(ValueError, match="first"):
        go(tmp_path, job=Round(Config()))
    error = stored(RunDirectory(path=tmp_path))["error"]
    assert error == "ValueError: first\n\ncaused by ValueError: second"


def test_an_exception_that_cannot_say_what_it_is_is_recorded(tmp_path: Path) -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("mute")

    class Mute(School):
        def prepare(self, executor: Executor) -> Mapping[str, float]:
            raise MuteError

    with pytest.raises(MuteError):
        go(tmp_path, job=Mute(Config()))
    directory = RunDirectory(path=tmp_path)
    assert stored(directory)["error"] == "MuteError: <exception str() failed>"
    assert directory.report.exists()


def test_a_run_that_came_to_a_checkpoint_is_not_begun_again(tmp_path: Path) -> None:
    go(tmp_path)
    with pytest.raises(RunRefusedError, match="exists already"):
        go(tmp_path)


def test_a_run_killed_before_its_first_checkpoint_is_begun_again(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, show=Told(lambda line: line == "preparing"))
    assert go(tmp_path)[0]["versions"] == 3
    assert "error" not in stored(RunDirectory(path=tmp_path))


def test_a_measurement_that_is_no_number_is_null_in_the_summary(tmp_path: Path) -> None:
    class Lost(School):
        def evaluate(self, executor: Executor) -> Mapping[str, float]:
            return {"success": math.nan}

    _, _, directory = go(tmp_path, job=Lost(Config()))
    assert stored(directory)["success_after"] is None


def test_a_disk_that_fills_up_leaves_the_checkpoint_before(tmp_path: Path) -> None:
    job = School(Config())

    def save(directory: Path) -> None:
        job.plain.save(directory)
        if job.learner.value > 50:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    job.save = save
    with pytest.raises(RunDirectoryError, match="No space left on device"):
        go(tmp_path, job=job)
    assert stored(RunDirectory(path=tmp_path))["versions"] == 2
    resumed, _, _ = go(tmp_path, resume=True)
    whole, _, _ = go(tmp_path / "whole")
    assert resumed["success_after"] == whole["success_after"]


def test_a_stop_amid_a_checkpoint_leaves_the_one_before(tmp_path: Path) -> None:
    job = School(Config())

    def save(directory: Path) -> None:
        (directory / "0-Learner").mkdir()
        if job.learner.value > 50:
            raise KeyboardInterrupt
        job.learner.save(str(directory / "0-Learner"))

    job.save = save
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, job=job)
    resumed, _, _ = go(tmp_path, resume=True)
    whole, _, _ = go(tmp_path / "whole")
    assert resumed["success_after"] == whole["success_after"]


def test_a_record_that_cannot_be_made_hides_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*details: object, **more: object) -> None:
        raise ZeroDivisionError("in the report")

    monkeypatch.setattr("rlgraph.session.write_report", fail)
    with pytest.raises(StageError) as caught:
        go(tmp_path, job=School(Config(), broken_from(0)))
    assert caught.value.__notes__[-1] == "summary and report are missing: in the report"


def test_a_record_that_cannot_be_written_hides_no_error(tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()
    with pytest.raises(StageError) as caught:
        go(tmp_path, job=School(Config(), broken_from(0)))
    assert "summary and report are missing" in caught.value.__notes__[-1]


def test_a_wrong_graph_leaves_nothing(tmp_path: Path) -> None:
    g = Graph("wrong")
    g.latest("policy", init=Learner().weights, max_staleness=0)
    with pytest.raises(GraphError):
        go(tmp_path / "run", job=PlainJob(graph=g))
    assert not (tmp_path / "run").exists()


def test_a_full_disk_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlgraph.session.job.RECORDS_BYTES", 10**18)
    show = Told()
    with pytest.raises(RunDirectoryError, match="the run needs about"):
        go(tmp_path, show=show)
    assert show.lines == []


def test_a_graph_without_feedback_runs_until_its_source_is_empty(tmp_path: Path) -> None:
    def double(number: int) -> int:
        return 2 * number

    g = Graph("plain")
    g.source(lambda: range(5)).named("five").map(double).collect("doubled")
    summary = run_job(
        PlainJob(graph=g),
        config=replace(Config()),
        executor=InlineExecutor(),
        directory=RunDirectory(path=tmp_path),
        show=Told(),
        options=Options(),
    )
    assert (summary["versions"], summary["outcomes"]["consumed"]) == (0, 5)
