"""Writes down what happens while a graph trains: spans, failures, metrics, checkpoints.

Watches a run; decides nothing, and knows no command line and no screen: it tells a ``Show``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import fmean
from typing import Protocol, TextIO

from rlgraph.jsonl import mend_lines, to_line
from rlgraph.metrics import append_metrics, rewind_metrics
from rlgraph.running.execution import Executor
from rlgraph.running.loop import Watch
from rlgraph.scheduling import Exit, Exited, Failure, Outcome, Published, Scheduler, Snapshot, Task
from rlgraph.scheduling.records import Event
from rlgraph.session.job import Job
from rlgraph.session.rundir import RunDirectory
from rlgraph.trace import Span, Trace, read_trace


class Show(Protocol):
    """Shows a run while it goes on."""

    def phase(self, text: str) -> None:
        """Say what is being done now."""
        ...

    def measured(self, metrics: Mapping[str, float]) -> None:
        """Show what a phase measured."""
        ...

    def version(self, version: int, metrics: Mapping[str, float]) -> None:
        """Show a new version."""
        ...

    def progress(self, exits: Mapping[str, int], calls: Mapping[str, int]) -> None:
        """Show how many trajectories have left in which way, and the calls since a version.

        Called after every call: it must be quick.
        """
        ...


class Recorder:
    """The log of one run; a context that is open while the graph trains."""

    def __init__(
        self, job: Job, directory: RunDirectory, show: Show, executor: Executor, resumed: Snapshot
    ) -> None:
        self.directory = directory
        self.show = show
        self.resumed = resumed
        self.exits: Counter[str] = Counter(resumed.exits)
        self.watch = Watch(on_task=self._on_task, on_event=self._on_event)
        self.earlier_s = 0.0
        """Time that the run which this one resumes had taken."""
        self.trained_s = 0.0
        """Time of training, once it has ended."""
        self._job = job
        self._executor = executor
        self._main = job.graph.feedbacks[0].name if job.graph.feedbacks else ""
        self.newest = resumed.versions.get(self._main, 0)
        self._consumed: list[Exited] = []
        self._calls: Counter[str] = Counter()
        """Calls that ended since the newest version, by stage."""
        self._begun_s = executor.now()
        self._epoch_s = self._begun_s
        """What the executor's clock showed when training was at 0 s, resumed runs included."""
        self._files = ExitStack()

    @property
    def seconds(self) -> float:
        """Time that the job has taken so far on the executor's clock, resumed runs included."""
        return self.earlier_s + self._executor.now() - self._begun_s

    @property
    def _now_s(self) -> float:
        """Time of training so far, resumed runs included: the clock of metrics and spans."""
        return self._executor.now() - self._epoch_s

    def __enter__(self) -> None:
        directory = self.directory
        rewind_metrics(directory.metrics, version=self.newest)
        for log in (directory.spans, directory.failures):
            mend_lines(log)
        spans = read_trace(directory.spans).spans
        trained_s = max((span.end_s for span in spans), default=0.0)
        self.earlier_s += trained_s
        self._trace = Trace(self._open(directory.spans))
        self._failures = self._open(directory.failures)
        self._epoch_s = self._executor.now() - trained_s

    def __exit__(self, *_: object) -> None:
        self.trained_s = self._now_s
        self._files.close()

    def _open(self, path: Path) -> TextIO:
        return self._files.enter_context(path.open("a", encoding="utf-8", newline="\n"))

    def _on_task(self, task: Task, result: Outcome | Failure) -> None:
        with self.directory.writing():
            self._write_task(task, result)
        self._calls[task.stage] += 1
        self.show.progress(self.exits, self._calls)

    def _write_task(self, task: Task, result: Outcome | Failure) -> None:
        kind = result.kind if isinstance(result, Failure) else "done"
        nodes = self._job.graph.nodes
        alone = task.item is not None and nodes[task.node.scope.origin].verb == "source"
        self._trace.add(
            Span(
                stage=task.stage,
                key=task.key,
                trajectory=".".join(map(str, task.lineage)) if alone else "",
                domain=task.domain,
                start_s=result.start_s - self._epoch_s,
                end_s=result.end_s - self._epoch_s,
                outcome="failed" if kind == "error" else kind,
                version=task.version,
            )
        )
        if isinstance(result, Failure):
            row = {"stage": result.stage, "key": result.key, "kind": result.kind}
            self._failures.write(to_line({**row, "error": result.error, "trace": result.trace}))
            self._failures.flush()

    def _on_event(self, event: Event, scheduler: Scheduler) -> None:
        if isinstance(event, Exited):
            self.exits[event.exit.value] += 1
            if event.exit is Exit.CONSUMED:
                self._consumed.append(event)
        elif isinstance(event, Published) and event.name == self._main:
            self.newest = event.version
            metrics = {**self._job.measure(event.value), **self._of_trajectories()}
            with self.directory.writing():
                self._write_version(event.version, metrics)
            self.directory.write_checkpoint(scheduler.snapshot(), self._job.save)
            self.show.version(event.version, metrics)
            self._calls.clear()

    def _write_version(self, version: int, metrics: Mapping[str, float]) -> None:
        now_s = self._now_s
        self._trace.mark(f"publish v{version}", now_s, version)
        append_metrics(self.directory.metrics, version=version, seconds=now_s, values=metrics)

    def _of_trajectories(self) -> dict[str, float]:
        """Measure the trajectories of the newest version."""
        consumed, self._consumed = self._consumed, []
        if not consumed:
            return {}
        lags = [
            version - event.start_versions.get(name, version)
            for event in consumed
            for name, version in event.consumed_versions.items()
        ]
        measured = {
            "staleness_mean": fmean(lags or [0]),
            "staleness_max": float(max(lags, default=0)),
        }
        tokens = fmean(event.tokens for event in consumed)
        return {**measured, "trajectory_tokens": tokens} if tokens else measured
