"""The scheduler: which call of which stage may start now, and what becomes of its result.

Pure state. ``feed`` and ``exhausted`` bring items in, ``ready`` hands tasks out, ``done`` and
``failed`` take what came of them, ``events`` tells what left and what was published.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlgraph.errors import StageError
from rlgraph.graph import Graph
from rlgraph.graph.node import Node
from rlgraph.ports import Latest
from rlgraph.profile import DEFAULT_DOMAIN
from rlgraph.scheduling.books import open_formers, open_ledgers
from rlgraph.scheduling.flow import Flow
from rlgraph.scheduling.items import Item, Root
from rlgraph.scheduling.program import compile_graph
from rlgraph.scheduling.records import Event, Exit, Failure, Outcome, Snapshot, Task


class Scheduler(Flow):
    """The state of one run of a graph."""

    def __init__(
        self,
        graph: Graph,
        *,
        seed: int = 0,
        versions: int | None = None,
        in_flight: int = 1024,
        refills: int = 10,
        resume: Snapshot | None = None,
    ) -> None:
        """Take a graph. Raises ``GraphError`` where it is wrong.

        ``versions`` of the first feedback end the run; None runs until the sources are empty.
        ``in_flight``: source items under way at once. ``refills``: batches' worth of items that
        may be lost in a row before the run counts as starved.
        """
        resume = resume or Snapshot()
        program = compile_graph(graph)
        ledgers = open_ledgers(program, versions, resume)
        super().__init__(
            program, ledgers, open_formers(program, ledgers, resume), seed=seed, refills=refills
        )
        self.launched = resume.launched
        self.exits.update({Exit(name): count for name, count in resume.exits.items()})
        self._in_flight = in_flight
        self._cursors = {i: resume.cursors.get(graph.nodes[i].name, 0) for i in self.roots}
        self._dry: set[int] = set()
        self._running: dict[Task, None] = {}
        self._taking = [
            self.formers[s.node.index]
            for s in program.steps
            if s.takes and s.node.index in self.formers
        ]
        """Formers that may have to wait though they hold enough: for a version, for a place."""
        for step in program.steps[len(graph.nodes) :]:
            self._call_free(Task(step.node, None, (), (), 1, step.node.call, (), {}))
        if versions is not None and ledgers and ledgers[0].version >= versions:
            self.stop()

    @property
    def finished(self) -> bool:
        """Whether nothing runs and nothing more is wanted or to be had."""
        if self._running or self._tasks:
            return False
        return self._stopped or (self._dry >= self.roots.keys() and not self.live)

    @property
    def stopped(self) -> bool:
        """Whether nothing more is wanted; calls that cannot be stopped may still run."""
        return self._stopped

    @property
    def sources(self) -> Mapping[int, Node]:
        """The sources by number."""
        return {index: self.program.graph.nodes[index] for index in self.roots}

    def hungry(self) -> list[int]:
        """List the sources of which another item may start now."""
        if self._stopped or any(ledger.latest is None for ledger in self.ledgers):
            return []
        return [index for index in self.roots if index not in self._dry and self._wants(index)]

    def feed(
        self, source: int, value: Any, *, domain: str = DEFAULT_DOMAIN, index: int | None = None
    ) -> None:
        """Start an item of a source; ``index`` only where a resumed run feeds it again."""
        if index is None:
            index = self._cursors[source]
            self._cursors[source] += 1
        root = Root(source, index, domain)
        self.roots[source][index] = root
        self._announce(root)
        worth = self.program.steps[source].worth
        counts = tuple(number for number, amount in enumerate(worth) if amount)
        for number in counts:
            root.since[number] = self.ledgers[number].version
            self.ledgers[number].admit(worth[number])
        node = self.program.graph.nodes[source]
        item = Item(value, (index,), root, (self._launch((index,), root),), counts=counts, at=node)
        self._enlist(item)
        self._deliver(node, item)

    def exhausted(self, source: int) -> None:
        """Note that a source has no further item."""
        self._dry.add(source)
        self._progress()

    def ready(self) -> list[Task]:
        """Hand out the tasks that may start now; each is handed out once."""
        tasks: list[Task] = []
        while self._tasks:
            found, self._tasks = self._tasks, []
            for task in found:
                if task.item is not None and task.item.exit is not None:
                    self._ended(task)
                else:
                    tasks.append(task)
        self._running.update(dict.fromkeys(tasks))
        return tasks

    def cancelled(self) -> list[Task]:
        """Hand out the running tasks whose result is no longer wanted."""
        tasks, self._cancelled = self._cancelled, []
        return [task for task in tasks if task in self._running]

    def events(self) -> list[Event]:
        """Hand out what left and what was published since the last call."""
        events, self._events = self._events, []
        return events

    def done(self, task: Task, outcome: Outcome) -> None:
        """Take what a task returned."""
        del self._running[task]
        self._spent(task, outcome.end_s - outcome.start_s)
        self._ended(task)
        item = task.item
        if item is None:
            self._initialise(task, outcome.value)
        elif item.exit is None:
            for launch in item.launches:
                launch.tokens = max(launch.tokens, outcome.tokens)
            self._returned(task.node, item, outcome)
        else:
            self._turn_away(task, outcome.value)
        self._progress()

    def failed(self, task: Task, failure: Failure) -> None:
        """Take the news that a task gave no value."""
        del self._running[task]
        self._spent(task, failure.end_s - failure.start_s)
        self._ended(task)
        item = task.item
        if item is None:
            self._uninitialised(task, failure)
        elif item.exit is None:
            if item.attempt < task.node.profile(task.domain).attempts:
                item.attempt += 1
                self._queue(task.node, item)
            else:
                for launch in item.launches:
                    launch.failure = failure
                self._lose(item, Exit.TIMEOUT if failure.kind == "timeout" else Exit.FAILED)
        self._progress()

    def snapshot(self) -> Snapshot:
        """Return where the control plane stands."""
        nodes = self.program.graph.nodes
        return Snapshot(
            versions={ledger.name: ledger.version for ledger in self.ledgers},
            cursors={nodes[i].name: cursor for i, cursor in self._cursors.items()},
            unfinished={
                nodes[i].name: tuple(sorted(n for n, root in roots.items() if not root.spent))
                for i, roots in self.roots.items()
            },
            batches={nodes[i].name: former.made for i, former in self.formers.items()},
            exits={exit_.value: count for exit_, count in self.exits.items()},
            lags={
                ledger.name: {str(lag): n for lag, n in ledger.lags.items()}
                for ledger in self.ledgers
            },
            launched=self.launched - len(self.live),
        )

    def story(self) -> str:
        """Say who waits where: what a stalled run is asked for."""
        lines = [
            f"    {'.'.join(map(str, item.lineage))} at {item.at.name!r}"
            + (" (running)" if item.task else "")
            for launch in list(self.live)[:8]
            for item in launch.items
            if item.at is not None
        ]
        return "\n".join([f"    {len(self.live)} trajectories under way:", *lines])

    def _wants(self, source: int) -> bool:
        if self._open_roots[source] >= self._in_flight:
            return False
        worth = self.program.steps[source].worth
        return all(
            ledger.has_credit(amount)
            for ledger, amount in zip(self.ledgers, worth, strict=True)
            if amount
        )

    def _spent(self, task: Task, seconds: float) -> None:
        if task.item is not None:
            stage = task.node.name
            for launch in task.item.launches:
                launch.stage_s[stage] = launch.stage_s.get(stage, 0.0) + seconds

    def _ended(self, task: Task) -> None:
        item = task.item
        if item is not None:
            item.task = None
            if item.exit is not None:
                self._let_go(item)
        self._freed(self.program.steps[task.node.index].slot)

    def _uninitialised(self, task: Task, failure: Failure) -> None:
        if task.node.verb == "init":
            raise StageError(f"{task.stage} failed, so nothing can start: {failure.error}")

    def _initialise(self, task: Task, value: Any) -> None:
        number = task.node.index - len(self.program.graph.nodes)
        if number >= 0:
            ledger = self.ledgers[number]
            ledger.latest = Latest(name=ledger.name, version=ledger.version, value=value)

    def _returned(self, node: Node, item: Item, outcome: Outcome) -> None:
        item.attempt = 1
        step = self.program.steps[node.index]
        if node.verb == "filter":
            if not outcome.verdict:
                self._lose(item, Exit.FILTERED)
                return
        else:
            item.value = outcome.value
        if step.round_of is None:
            self._deliver(node, item)
            return
        item.came = node
        for consumer, counts in step.consumers:
            self._arrive[consumer.verb](consumer, self._branch(item, consumer, counts))
        self._next_round(step.round_of, item, done=outcome.verdict)

    def _turn_away(self, task: Task, value: Any) -> None:
        """Release a value that would have entered an ``iterate``, had it still been wanted."""
        for consumer, _ in self.program.steps[task.node.index].consumers:
            iterate = self.program.steps[consumer.index].iterate
            if iterate is not None and iterate.release is not None:
                self._release(iterate, iterate.release, value, task.lineage, task.rounds)

    def _at_rest(self) -> bool:
        return self._open == 0 and not self.hungry()

    def _progress(self) -> None:
        if self._stopped:
            return
        if self._refunded:
            self._refunded = False
            self.check_starved()
        for former in self._taking:
            if former.count >= former.node.size:
                self._form(former)
        if self._open == 0 and self._dry >= self.roots.keys():
            # No more can come: what is too little for a batch is left over.
            for former in self.formers.values():
                for item in former.buffered():
                    self._leave(item, Exit.SURPLUS)
