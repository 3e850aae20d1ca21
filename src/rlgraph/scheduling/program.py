"""A checked graph, worked out once so that an event costs little: who takes whose items.

Static facts only; what changes while a graph runs is in ``items`` and ``ledger``.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, cast

from rlgraph.graph import Feedback, Graph
from rlgraph.graph.node import CALLING, FeedbackNode, Node, Scope
from rlgraph.hints.callables import owner_of
from rlgraph.ports import Seed
from rlgraph.scheduling.items import Item
from rlgraph.scheduling.records import Lineage, Task


@dataclass(slots=True, eq=False)
class Slot:
    """How many calls an object takes at once, and who waits for it."""

    limit: float
    running: int = 0
    waiting: deque[Item | Task] = field(default_factory=deque)


@dataclass(slots=True, eq=False, kw_only=True)
class Step:
    """A stage as the scheduler meets it."""

    node: Node
    slot: Slot
    consumers: list[tuple[Node, tuple[int, ...]]] = field(default_factory=list)
    """Who takes its items, and for which feedbacks that copy of the item counts. The first goes
    on as the item itself, the others start side branches."""
    round_of: Node | None = None
    """The ``iterate`` whose round its items end."""
    until: Callable[[Any], bool] | None = None
    """Asked about what the stage returns: whether the round was the last, whether to keep it."""
    worth: tuple[int, ...] = ()
    """For each feedback: versions that one item it takes amounts to, in ``Ledger.unit``."""
    reads: tuple[tuple[int | str, int], ...] = ()
    """Argument (position or name) and number of each feedback that it reads."""
    seeds: tuple[int | str, ...] = ()
    """Arguments that take a seed."""
    publishes: int = -1
    """Of a ``publish``: number of its feedback."""
    takes: tuple[int, ...] = ()
    """Feedbacks whose next version the items taken here make."""
    joins: tuple[Node, ...] = ()
    """Joins, here or further down, where what it takes meets its counterpart."""
    grouped: bool = False
    """A ``group`` will bring what it takes together with its innermost siblings."""
    apart: dict[int, tuple[bool, ...]] = field(default_factory=dict)
    """By consumer that starts a side branch, for each of the siblings around, outermost first:
    whether a ``group`` of its own brings the copies together there."""
    iterate: Node | None = None
    """Of an ``entry``: whose body starts there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The whole graph, ready to be scheduled."""

    graph: Graph
    steps: list[Step]
    """By node index; the inits of the feedbacks follow the stages."""
    units: list[int]
    """For each feedback: what one version amounts to, in integer units."""
    slots: dict[int, Slot]
    """By ``id`` of the object whose calls they count."""


def compile_graph(graph: Graph) -> Program:
    """Check a graph and work out its steps. Raises ``GraphError``."""
    graph.check()
    slots: dict[int, Slot] = {}
    steps = [Step(node=node, slot=_slot(node, slots)) for node in graph.nodes]
    below = [_consumers(graph, node) for node in graph.nodes]
    rounds = {node.exit.index: node for node in graph.nodes if node.exit is not None}
    flow = [
        [*below[n.index], *([rounds[n.index]] if n.index in rounds else [])] for n in graph.nodes
    ]
    reach = [_reachable(flow, node.index) for node in graph.nodes]
    units, worths = _worths(graph, reach)
    for node, step in zip(graph.nodes, steps, strict=True):
        step.worth = tuple(worth[node.index] for worth in worths)
        step.round_of = rounds.get(node.index)
        step.consumers = _with_counts(below[node.index], worths, whole=step.round_of is None)
        step.reads, step.seeds = _ports(graph, node)
        step.joins = tuple(
            join
            for join in graph.nodes
            if join.verb == "join"
            and join.index in reach[node.index] | {node.index}
            and _meet(_scope(node), _scope(join))
        )
        if step.round_of is not None:
            step.until = step.round_of.until
        elif node.verb == "filter":
            step.until = bool
        if node.entry is not None:
            steps[node.entry.index].iterate = node
    for step in steps:
        step.grouped = _grouped(steps, step.node, _scope(step.node).frames, ())
        main = _main_way(steps, step)
        for consumer, _ in step.consumers:
            frames = _scope(consumer).frames
            step.apart[consumer.index] = tuple(
                _grouped(steps, consumer, frames[: depth + 1], main) for depth in range(len(frames))
            )
    for number, feedback in enumerate(graph.feedbacks):
        steps.append(_init_step(feedback, len(steps), slots))
        for publisher in feedback.publishers:
            taker = steps[_taker(publisher).index]
            taker.takes = (*taker.takes, number)
            steps[publisher.index].publishes = number
    return Program(graph=graph, steps=steps, units=units, slots=slots)


def seed_of(run_seed: int, stage: int, lineage: Lineage, rounds: Sequence[int]) -> int:
    """Derive the seed of a call: equal on every executor, different for every call.

    Returns an int in [0, 2**63). The first 8 bytes of BLAKE2b over the numbers.
    """
    numbers = (run_seed, stage, len(lineage), *lineage, *rounds)
    packed = struct.pack(f"<{len(numbers)}q", *numbers)
    return int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest(), "little") >> 1


def bound(
    step: Step, value: Any, latest: Sequence[Any], seed: int
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """Fill a stage's ports: constants as declared, feedbacks as they stand, the seed anew."""
    args, kwargs = [value, *step.node.args], dict(step.node.kwargs)
    for name, number in step.reads:
        if isinstance(name, int):
            args[name + 1] = latest[number]
        else:
            kwargs[name] = latest[number]
    for name in step.seeds:
        if isinstance(name, int):
            args[name + 1] = seed
        else:
            kwargs[name] = seed
    return tuple(args), kwargs


def _slot(node: Node, slots: dict[int, Slot]) -> Slot:
    if node.owner is None:
        return Slot(limit=math.inf)
    slot = slots.setdefault(id(node.owner), Slot(limit=1))
    slot.limit = max(slot.limit, node.concurrency)
    return slot


def _init_step(feedback: FeedbackNode, index: int, slots: dict[int, Slot]) -> Step:
    init = cast("Callable[[], Any]", feedback.init)  # check() refuses a feedback without one
    node = Node(
        index=index,
        verb="init",
        name=f"init {feedback.name}",
        where=feedback.where,
        inputs=(),
        item=feedback.item,
        rate=Fraction(0),
        scope=Scope(origin=index),
        call=init,
        owner=owner_of(init),
    )
    return Step(node=node, slot=_slot(node, slots))


def _consumers(graph: Graph, node: Node) -> list[Node]:
    found = [n for n in graph.nodes if node in n.inputs]
    return [n.entry if n.entry is not None else n for n in found]


def _reachable(below: list[list[Node]], start: int) -> set[int]:
    seen: set[int] = set()
    todo = [start]
    while todo:
        for node in below[todo.pop()]:
            if node.index not in seen:
                seen.add(node.index)
                todo.append(node.index)
    return seen


def _worths(graph: Graph, reach: list[set[int]]) -> tuple[list[int], list[list[int]]]:
    units, worths = [], []
    for feedback in graph.feedbacks:
        publisher = feedback.publishers[0]
        shares = [
            publisher.rate / (node.inputs[0] if node.inputs else node).rate
            if publisher.index in reach[node.index] or node is publisher
            else Fraction(0)
            for node in graph.nodes
        ]
        unit = math.lcm(*(share.denominator for share in shares))
        units.append(unit)
        worths.append([int(share * unit) for share in shares])
    return units, worths


def _with_counts(
    consumers: list[Node], worths: list[list[int]], *, whole: bool
) -> list[tuple[Node, tuple[int, ...]]]:
    """Let each feedback count one copy of a branching item: the first that comes to it."""
    left = set(range(len(worths))) if whole else set()
    given = []
    for node in consumers:
        counts = tuple(n for n in sorted(left) if worths[n][node.index])
        left -= set(counts)
        given.append((node, counts))
    # The main branch is the one that the first feedback counts.
    return sorted(given, key=lambda pair: pair[1] or (len(worths),))


def _scope(node: Node) -> Scope:
    """Return the scope of what a stage takes."""
    return (node.inputs[0] if node.inputs else node).scope


def _meet(scope: Scope, join: Scope) -> bool:
    """Whether items have the lineage that the join asks for, inside its iterates or deeper."""
    same = (scope.origin, scope.frames) == (join.origin, join.frames)
    return same and scope.inside[: len(join.inside)] == join.inside


def _main_way(steps: Sequence[Step], step: Step) -> list[int]:
    """List the stages that an item comes to after this one, side branches left out."""
    way: list[int] = []
    while True:
        after = step if step.round_of is None else steps[step.round_of.index]
        if not after.consumers:
            return way
        step = steps[after.consumers[0][0].index]
        way.append(step.node.index)


def _grouped(
    steps: Sequence[Step], start: Node, frames: tuple[int, ...], main: Sequence[int]
) -> bool:
    """Whether siblings are brought together on the way from ``start``, before it joins ``main``."""
    for index in (start.index, *_main_way(steps, steps[start.index])):
        node = steps[index].node
        if node.verb == "group" and _scope(node).frames == frames:
            return True
        if node.verb == "batch" or (node.verb == "join" and index in main):
            return False
    return False


def _ports(
    graph: Graph, node: Node
) -> tuple[tuple[tuple[int | str, int], ...], tuple[int | str, ...]]:
    named: list[tuple[int | str, Any]] = [*enumerate(node.args), *node.kwargs.items()]
    reads = tuple(
        (name, graph.feedbacks.index(value.node))
        for name, value in named
        if isinstance(value, Feedback)
    )
    return reads, tuple(name for name, value in named if isinstance(value, Seed))


def _taker(publisher: Node) -> Node:
    """Find where the items of the next version are chosen: the last batch, else the last call."""
    last = node = publisher.inputs[0]
    while node.rate == publisher.rate and node.inputs:
        if node.verb == "batch":
            return node
        node = node.inputs[0]
    same = last.inputs and last.inputs[0].rate == publisher.rate
    return last if same and last.verb in CALLING else publisher
