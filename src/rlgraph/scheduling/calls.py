"""Calls: which may start now, what they are given, who waits for whose place.

The base of the scheduler's state: items under way, counted, and the slots of stateful objects.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from typing import Any

from rlgraph.graph.node import Node
from rlgraph.scheduling.batches import Former
from rlgraph.scheduling.items import Frame, Item, Launch, Root
from rlgraph.scheduling.ledger import Ledger
from rlgraph.scheduling.program import Program, Slot, Step, bound, seed_of
from rlgraph.scheduling.records import Event, Exit, Lineage, Task


class Calls(ABC):
    """Items under way in one graph, and the calls that carry them on."""

    def __init__(
        self,
        program: Program,
        ledgers: list[Ledger],
        formers: dict[int, Former],
        *,
        seed: int,
        refills: int,
    ) -> None:
        self.program = program
        self.ledgers = ledgers
        self.formers = formers
        self.seed = seed
        self.synchronous = all(ledger.max_staleness == 0 for ledger in ledgers)
        self.launched = 0
        """Trajectories started. Equals ``len(live)`` plus the sum of ``exits``, always."""
        self.exits: Counter[Exit] = Counter()
        self.live: dict[Launch, None] = {}
        self.roots: dict[int, dict[int, Root]] = {
            node.index: {} for node in program.graph.nodes if node.verb == "source"
        }
        """Of each source: the items whose trajectories have not all left."""
        self._open = 0
        self._open_roots = dict.fromkeys(self.roots, 0)
        self._refills = refills
        self._tasks: list[Task] = []
        self._cancelled: list[Task] = []
        self._events: list[Event] = []
        self._stopped = False
        self._refunded = False
        """Credit came back since the last look at who waits for it."""

    def _launch(self, lineage: Lineage, root: Root) -> Launch:
        launch = Launch(lineage, root)
        self.live[launch] = None
        self.launched += 1
        root.live += 1
        return launch

    def _unlaunch(self, launch: Launch) -> None:
        """Count a launch no longer: its siblings are counted instead."""
        del self.live[launch]
        self.launched -= 1
        launch.root.live -= 1
        for ledger in self.ledgers:
            ledger.forget(launch)

    def _enlist(self, item: Item) -> None:
        """Count an item that is under way from now on."""
        for launch in item.launches:
            launch.items[item] = None
        for frame in item.frames:
            frame.holders += 1
        self._opened(item.root)

    def _delist(self, item: Item) -> None:
        """Count an item no longer: others go on in its place."""
        for launch in item.launches:
            launch.items.pop(item, None)
        self._let_go(item)
        if not item.buffered:
            self._closed(item.root)

    def _let_go(self, item: Item) -> None:
        for frame in reversed(item.frames):
            self._leave_frame(frame)

    def _leave_frame(self, frame: Frame) -> None:
        frame.holders -= 1
        if frame.holders == 0 and frame.release is not None:
            self._release(frame.node, frame.release, frame.value, frame.lineage, frame.outside)

    def _release(
        self,
        iterate: Node,
        release: Callable[[Any], object],
        value: Any,
        lineage: Lineage,
        rounds: tuple[int, ...],
    ) -> None:
        self._call_free(Task(iterate, None, lineage, rounds, 1, release, (value,), {}))

    def _opened(self, root: Root) -> None:
        if root.open == 0 and root.origin in self._open_roots:
            self._open_roots[root.origin] += 1
        root.open += 1
        self._open += 1

    def _closed(self, root: Root) -> None:
        """Count one item of a root less under way; at none it is settled."""
        root.open -= 1
        self._open -= 1
        if root.open:
            return
        if root.origin in self._open_roots:
            self._open_roots[root.origin] -= 1
            self._forget(root)
        for former in self.formers.values():
            if former.ordered and former.node.inputs[0].scope.origin == root.origin:
                former.settle()
                self._form(former)

    def _forget(self, root: Root) -> None:
        """Drop a source's item of which nothing is left."""
        if root.open == 0 and root.live == 0:
            self.roots[root.origin].pop(root.index, None)

    def _announce(self, root: Root) -> None:
        for former in self.formers.values():
            if former.node.inputs[0].scope.origin == root.origin:
                former.announce(root)

    def _queue(self, node: Node, item: Item) -> None:
        item.at = node
        step = self.program.steps[node.index]
        taken = self._take(step, item) if step.takes else ()
        if item.exit is not None:
            return
        if step.slot.running < step.slot.limit:
            self._start(step, item)
        else:
            step.slot.waiting.append(item)
        if taken:
            self._expire(taken)

    def _start(self, step: Step, item: Item) -> None:
        node, version = step.node, -1
        for _, number in step.reads:
            ledger = self.ledgers[number]
            counted = number in item.counts and number not in item.tickets
            for launch in item.launches:
                ledger.start(launch, counted=counted)
            if counted and any(map(ledger.too_old, item.launches)):
                self._lose(item, ledger.reason)
                return
            version = max(version, ledger.version)
        rounds = item.rounds if item.frames else ()
        args: tuple[Any, ...]
        if step.reads or step.seeds:
            latest = [ledger.latest for ledger in self.ledgers]
            seed = seed_of(self.seed, node.index, item.lineage, rounds) if step.seeds else 0
            args, kwargs = bound(step, item.value, latest, seed)
        else:
            args, kwargs = (item.value, *node.args), node.kwargs
        task = Task(
            node,
            item,
            item.lineage,
            rounds,
            item.attempt,
            node.call,
            args,
            kwargs,
            step.until,
            version,
        )
        item.task = task
        step.slot.running += 1
        self._tasks.append(task)

    def _call_free(self, task: Task) -> None:
        """Start a call that belongs to no item: an init, a release."""
        slot = self.program.steps[task.node.index].slot
        if slot.running < slot.limit:
            slot.running += 1
            self._tasks.append(task)
        else:
            slot.waiting.appendleft(task)

    def _freed(self, slot: Slot) -> None:
        """Give the place of a call that ended to whoever waits for it."""
        slot.running -= 1
        while slot.waiting and slot.running < slot.limit:
            waiting = slot.waiting.popleft()
            if isinstance(waiting, Task):
                slot.running += 1
                self._tasks.append(waiting)
            elif waiting.exit is None and waiting.at is not None:
                self._start(self.program.steps[waiting.at.index], waiting)

    @abstractmethod
    def _lose(self, item: Item, exit_: Exit) -> None:
        """Take an item off its way and make up for it."""

    @abstractmethod
    def _take(self, step: Step, item: Item) -> tuple[int, ...]:
        """Fix which version an item is to make; return the feedbacks for which it was taken."""

    @abstractmethod
    def _expire(self, numbers: tuple[int, ...]) -> None:
        """Drop what has become too old now that a batch was taken for these feedbacks."""

    @abstractmethod
    def _form(self, former: Former) -> None:
        """Make the batches that can be made."""
