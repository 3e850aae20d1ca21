"""Runs a graph on an executor: pull, submit, wait, pass on. The loop that all executors share.

The one place where whatever a stage raised becomes a record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Any

from rlgraph.errors import StageError, StallError, StarvedError
from rlgraph.graph import Graph
from rlgraph.running.execution import Executor
from rlgraph.running.failures import ErrorBudget, failure_of, kind_of
from rlgraph.running.sources import items_of
from rlgraph.scheduling import (
    Exit,
    Exited,
    Failure,
    Outcome,
    Output,
    Scheduler,
    Snapshot,
    Task,
)
from rlgraph.scheduling.records import Event, FailureKind

OnTask = Callable[[Task, Outcome | Failure], None]
OnEvent = Callable[[Event, Scheduler], None]

_GRACE_S = 10.0
"""How long calls that cannot be stopped may go on once nothing more is wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Who is told what happens, in the run loop's thread; both must be quick."""

    on_task: OnTask = lambda _task, _result: None
    on_event: OnEvent = lambda _event, _scheduler: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a run gave."""

    versions: Mapping[str, int]
    """Of each ``latest``: its newest version."""
    outputs: Mapping[str, tuple[Any, ...]]
    """Of each ``collect``: its items, in the order of their lineages."""
    exits: Mapping[str, int]
    """How many trajectories left in which way; the sum is ``launched``."""
    launched: int
    failures: tuple[Failure, ...]
    """Calls that gave no value, retried ones included."""
    lags: Mapping[str, Mapping[int, int]]
    """Of each ``latest``: trained trajectories by lag, in versions."""
    shortfall: str
    """What is missing, and why, where the sources ended before the versions asked for."""
    seconds: float
    """On the executor's clock."""


def run(
    graph: Graph,
    executor: Executor,
    *,
    versions: int | None = None,
    seed: int = 0,
    in_flight: int = 1024,
    refills: int = 10,
    error_budget: float = 0.25,
    watches: Sequence[Watch] = (),
    resume: Snapshot | None = None,
) -> Result:
    """Run a graph until its first ``latest`` has ``versions``, or its sources are empty.

    ``in_flight``: source items under way at once. ``refills``: batches' worth of items that may be
    lost in a row. ``error_budget``: share of trajectories that may fail, see ``ErrorBudget``.
    ``resume``: where an earlier run stood; its sources are read again and what is done is skipped.
    The executor is closed at the end, however it ends.

    Raises ``GraphError`` before anything starts; ``StageError`` with the cause when too much
    fails; ``StarvedError`` when nothing is left to train on; ``StallError`` when nothing can move.
    """
    _require_objects(graph, executor)
    _require_options(graph, versions, in_flight, refills)
    budget = ErrorBudget(error_budget)
    resume = resume or Snapshot()
    state = Scheduler(
        graph, seed=seed, versions=versions, in_flight=in_flight, refills=refills, resume=resume
    )
    loop = _Loop(state, executor, watches, budget, resume)
    try:
        executor.start(graph)
        begun_s = executor.now()
        loop.run()
        return loop.result(executor.now() - begun_s)
    finally:
        executor.close()


def _require_objects(graph: object, executor: object) -> None:
    if not isinstance(graph, Graph):
        raise TypeError(f"run(graph, executor, ...) takes a Graph first, got {graph!r:.80}")
    if isinstance(executor, type) or not callable(getattr(executor, "submit", None)):
        raise TypeError(
            f"run() takes an executor, such as ThreadExecutor(), got {executor!r:.80}; to mend: "
            "make one and pass it"
        )


def _require_options(graph: Graph, versions: int | None, in_flight: int, refills: int) -> None:
    if versions is not None and versions < 1:
        raise ValueError(f"versions must be >= 1, or None for all, got {versions!r}")
    if versions is not None and not graph.feedbacks:
        raise ValueError(
            f"versions={versions!r} of what? graph {graph.name!r} has no latest; to mend: leave "
            "it out, and the run ends with its sources"
        )
    if in_flight < 1:
        raise ValueError(f"in_flight must be >= 1, got {in_flight!r}")
    if refills < 0:
        raise ValueError(f"refills must be >= 0, got {refills!r}")


class _Loop:
    def __init__(
        self,
        state: Scheduler,
        executor: Executor,
        watches: Sequence[Watch],
        budget: ErrorBudget,
        resume: Snapshot,
    ) -> None:
        self.state = state
        self.executor = executor
        self.watches = watches
        self.budget = budget
        self.sources = {index: items_of(node, resume) for index, node in state.sources.items()}
        self.futures: dict[Task, Future[Outcome]] = {}
        self.running: dict[Future[Outcome], tuple[Task, float]] = {}
        """Each with the time it was submitted at."""
        self.outputs: dict[str, list[Output]] = {
            node.name: [] for node in state.program.graph.nodes if node.verb == "collect"
        }
        self.failures: list[Failure] = []

    def run(self) -> None:
        state = self.state
        try:
            while not state.finished:
                # Before anything new starts: a checkpoint at a publish meets an idle trainer.
                self._tell()
                self._turn()
        except StarvedError:
            self._tell()  # how the last ones left
            raise
        self._tell()
        self._judge()

    def _turn(self) -> None:
        state = self.state
        self._pull()
        self._submit()
        if not self.running:
            if not (state.finished or state.hungry()):
                raise StallError(f"nothing runs and nothing can start:\n{state.story()}")
            return
        done = self.executor.wait(self.running, _GRACE_S if state.stopped else None)
        for future in done:
            self._take(future)
        if not done:
            self._abandon()

    def result(self, seconds: float) -> Result:
        state = self.state
        return Result(
            versions={ledger.name: ledger.version for ledger in state.ledgers},
            outputs={
                name: tuple(o.value for o in sorted(outputs, key=lambda o: o.lineage))
                for name, outputs in self.outputs.items()
            },
            exits={exit_.value: state.exits[exit_] for exit_ in Exit},
            launched=state.launched,
            failures=tuple(self.failures),
            lags={ledger.name: dict(sorted(ledger.lags.items())) for ledger in state.ledgers},
            shortfall=self._shortfall(),
            seconds=seconds,
        )

    def _pull(self) -> None:
        while hungry := self.state.hungry():
            for index in hungry:
                self._feed(index)
        self.budget.under_way(len(self.state.live))

    def _feed(self, index: int) -> None:
        pulled = next(self.sources[index], None)
        if pulled is None:
            self.state.exhausted(index)
            return
        number, value, domain = pulled
        self.state.feed(index, value, domain=domain, index=number)

    def _submit(self) -> None:
        state, now_s = self.state, self.executor.now()
        for task in state.ready():
            future = self.executor.submit(task)
            self.running[future] = task, now_s
            self.futures[task] = future
        for task in state.cancelled():
            self.futures[task].cancel()

    def _take(self, future: Future[Outcome]) -> None:
        if future.cancelled():
            self._take_failure(future, CancelledError("cancelled"), "cancelled")
            return
        if (error := future.exception()) is not None:
            self._take_failure(future, error, kind_of(error))
            return
        task, _ = self.running.pop(future)
        del self.futures[task]
        outcome = future.result()
        for watch in self.watches:
            watch.on_task(task, outcome)
        self.state.done(task, outcome)

    def _take_failure(
        self, future: Future[Outcome], error: BaseException, kind: FailureKind
    ) -> None:
        # Not SystemExit: a stage that exits would end a training half-way, with status 0.
        if isinstance(error, KeyboardInterrupt):
            raise error
        task, submitted_s = self.running.pop(future)
        del self.futures[task]
        failure = failure_of(task, error, kind, start_s=submitted_s, end_s=self.executor.now())
        if kind != "cancelled":
            self.failures.append(failure)
            self.budget.raised(error)
        for watch in self.watches:
            watch.on_task(task, failure)
        if task.node.verb == "init":
            raise StageError(f"{task.stage} failed: {failure.error}") from error
        self.state.failed(task, failure)

    def _abandon(self) -> None:
        """Wait no longer for calls that cannot be stopped; what they hold is released."""
        for future in list(self.running):
            error = CancelledError("still running when the run had ended")
            self._take_failure(future, error, "cancelled")

    def _tell(self) -> None:
        for event in self.state.events():
            if isinstance(event, Output):
                self.outputs[event.name].append(event)
            elif isinstance(event, Exited):
                self.budget.left(event)
            for watch in self.watches:
                watch.on_event(event, self.state)
        self.budget.check()

    def _judge(self) -> None:
        """Hold a run that ended by itself to what was asked of it, however short it was."""
        state = self.state
        # Those that the end of the run cancelled could not show whether they would have failed.
        self.budget.check_at_end(state.launched - state.exits[Exit.CANCELLED])
        if state.ledgers and state.ledgers[0].version == 0:
            exits = {exit_.value: count for exit_, count in state.exits.items() if count}
            raise StarvedError(
                f"the sources ended before a first version of {state.ledgers[0].name!r} could be "
                f"made; the {state.launched} trajectories left as {exits}; to mend: give the "
                "source more items, make the batch smaller, or loosen the filter"
            )

    def _shortfall(self) -> str:
        main = next(iter(self.state.ledgers), None)
        if main is None or main.goal is None or main.version >= main.goal:
            return ""
        return (
            f"the sources ended at version {main.version} of {main.name!r}, {main.goal} were "
            "asked for; to mend: give the source more items, or ask for fewer versions"
        )
