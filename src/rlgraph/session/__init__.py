"""One run of a job, start to end: prepare, evaluate, train, evaluate, and a record of it all.

Knows no command line and no screen: it tells a ``Show`` how far it is.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlgraph.config.schema import plain
from rlgraph.draw.svg import svg
from rlgraph.files import replace_text
from rlgraph.metrics import read_metrics
from rlgraph.report import STOPPED, write_report
from rlgraph.running.execution import Executor
from rlgraph.running.loop import Result, run
from rlgraph.scheduling import Snapshot
from rlgraph.session.job import Job
from rlgraph.session.recorder import Recorder, Show
from rlgraph.session.rundir import RunDirectory, read_json
from rlgraph.text import said_by, shorten
from rlgraph.trace import read_trace

_SAID = 5_000
"""Characters that the summary keeps of what one exception says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a job is run."""

    versions: int | None = None
    """Of the first ``latest``, where there is one; None: until the sources are empty."""
    seed: int = 0
    resume: bool = False


def run_job(
    job: Job,
    *,
    config: object,
    executor: Executor,
    directory: RunDirectory,
    show: Show,
    options: Options,
) -> Mapping[str, Any]:
    """Run a job to its end and return its summary, which is also written.

    What ends it early is recorded in summary and report, and raised. Raises ``GraphError`` and
    ``RunDirectoryError`` before anything starts.
    """
    job.graph.check()
    directory.preflight(job.needed_bytes)
    with directory.locked():
        description = job.graph.describe()
        snapshot, state = Snapshot(), None
        if options.resume:
            directory.refuse_other(config, description)
            directory.refuse_finished(options.versions)
            snapshot, state = directory.read_checkpoint()
        else:
            directory.refuse_begun()
        directory.begin(config, description)
        recorder = Recorder(job, directory, show, executor, snapshot)
        summary: dict[str, Any] = {}
        try:
            _carry_out(job, executor, recorder, options, state, summary)
        except BaseException as error:
            summary |= {"error": _root_cause(error), "outcomes": dict(recorder.exits)}
            try:
                _record(job, config, recorder, summary)
            except Exception as unwritten:  # noqa: BLE001 - must not hide what ended the run
                error.add_note(f"summary and report are missing: {said_by(unwritten)}")
            raise
        _record(job, config, recorder, summary)
    return summary


def _carry_out(
    job: Job,
    executor: Executor,
    recorder: Recorder,
    options: Options,
    state: Path | None,
    summary: dict[str, Any],
) -> None:
    """Do all of it, adding to the summary as it goes; ``state`` is what to go on from."""
    directory, show = recorder.directory, recorder.show
    show.phase("setting up")
    try:
        executor.start(job.graph)  # sets the objects up, which then stay so
    finally:
        executor.close()
    if state is not None:
        show.phase(f"resuming from version {recorder.newest}")
        job.load(state)
        started = read_json(directory.started)
        recorder.earlier_s = started["seconds"]
    else:
        show.phase("preparing")
        prepared = job.prepare(executor)
        show.measured(prepared)
        before = _evaluated(job, executor, show, "evaluating before training")
        started = {"prepared": prepared, "before": before, "seconds": recorder.seconds}
        with directory.writing():
            replace_text(directory.started, [json.dumps(started)])
        directory.write_checkpoint(recorder.resumed, job.save)
    summary |= started["prepared"]
    summary |= {f"{name}_before": value for name, value in started["before"].items()}
    with recorder:
        show.phase("training")
        result = run(
            job.graph,
            executor,
            versions=options.versions if job.graph.feedbacks else None,
            seed=options.seed,
            watches=[recorder.watch],
            resume=recorder.resumed,
        )
    after = _evaluated(job, executor, show, "evaluating after training")
    summary |= {f"{name}_after": value for name, value in after.items()}
    summary |= _outcome(result)


def _evaluated(job: Job, executor: Executor, show: Show, text: str) -> Mapping[str, float]:
    show.phase(text)
    measured = job.evaluate(executor)
    show.measured(measured)
    return measured


def _outcome(result: Result) -> dict[str, Any]:
    outcome: dict[str, Any] = {"shortfall": result.shortfall} if result.shortfall else {}
    return outcome | {
        "versions": max(result.versions.values(), default=0),
        "outcomes": dict(result.exits),
        "launched": result.launched,
        "lags": {name: {str(k): n for k, n in lags.items()} for name, lags in result.lags.items()},
    }


def _root_cause(error: BaseException) -> str:
    """Say what broke, the first cause last and with its place."""
    if isinstance(error, KeyboardInterrupt):
        return STOPPED
    first, *causes = _causes(error)
    texts = [_text(first), *(_text(cause) + _place(cause) for cause in causes)]
    return shorten("\n\ncaused by ".join(texts), 4 * _SAID)


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {shorten(said_by(error), _SAID)}"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception, its cause, the cause of that, ..., each once: they may go in a circle."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        hidden = error.__suppress_context__ or error.__cause__ is not None
        error = error.__cause__ if hidden else error.__context__


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"\n    at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def _record(job: Job, config: object, recorder: Recorder, summary: dict[str, Any]) -> None:
    """Write summary, timeline and report, however the run ended."""
    directory = recorder.directory
    summary |= {"seconds": recorder.seconds, "training_seconds": recorder.trained_s}
    summary.setdefault("versions", recorder.newest)
    with directory.writing():
        directory.write_summary(summary)
        trace = read_trace(directory.spans)
        trace.write_chrome(directory.trace)
        write_report(
            directory.report,
            title=f"{job.graph.name}: {directory.path.name}",
            config=plain(config),
            summary=summary,
            metrics=read_metrics(directory.metrics),
            spans=trace.spans,
            marks=trace.marks,
            graph_svg=svg(job.graph),
        )
