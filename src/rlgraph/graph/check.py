"""What only the whole graph can tell: rates, open groups, orphans, names.

Each rule is a function that yields problems; ``problems_of`` collects them all. The rules about
feedback are in ``check_feedback``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rlgraph.errors import Problem, not_a_multiple
from rlgraph.graph.check_feedback import Declared, cycle_rule, feedback_rule
from rlgraph.graph.node import FeedbackNode, Node


def problems_of(
    nodes: Sequence[Node], feedbacks: Sequence[FeedbackNode], found: Sequence[Problem] = ()
) -> list[Problem]:
    """List everything wrong, ``found`` (what declarations noticed) first."""
    graph = Declared(nodes=nodes, feedbacks=feedbacks)
    return [*found, *(problem for rule in _RULES for problem in rule(graph))]


def _lengths(graph: Declared) -> Iterator[Problem]:
    for node in graph.nodes:
        if node.verb != "unbatch":
            continue
        above = node.inputs[0]
        if node.size == 0:
            yield Problem(
                what=f"unbatch after {above.name!r} cannot tell how many items each batch holds",
                where=node.where,
                mend="say it: .unbatch(size)",
            )
        elif above.length and node.size != above.length:
            yield Problem(
                what=f"unbatch({node.size}) after {above.name!r}, whose batches hold "
                f"{above.length} items",
                where=node.where,
                mend=f"write .unbatch(), or see to it that {above.name!r} gets {node.size}",
            )


def _groups(graph: Declared) -> Iterator[Problem]:
    for node in graph.nodes:
        frames = node.inputs[0].scope.frames if node.inputs else ()
        if node.verb == "group" and not frames:
            yield Problem(
                what="group has no siblings to bring together: no fan_out is open above it",
                where=node.where,
                mend="put .fan_out(size) above it",
            )
        if node.verb in ("batch", "publish", "collect"):
            opened = [graph.nodes[i] for i in frames if graph.nodes[i].verb == "fan_out"]
            for fan_out in opened:
                yield Problem(
                    what=f"the siblings of fan_out({fan_out.size}) at {fan_out.where} reach "
                    f"{node.name!r} without a group",
                    where=node.where,
                    mend="bring them together with .group(), and take them apart again with "
                    ".unbatch() where single items are wanted",
                )


def _batches(graph: Declared) -> Iterator[Problem]:
    for node in graph.nodes:
        if node.verb != "batch":
            continue
        unit = 1
        for index in node.inputs[0].scope.frames:
            unit *= max(graph.nodes[index].size, 1)
        problem = not_a_multiple("batch of ", node.size, "group of ", unit, where=node.where)
        if problem:
            yield problem


def _ends(graph: Declared) -> Iterator[Problem]:
    for node in graph.nodes:
        if node.verb in ("batch", "publish", "collect") and node.scope.inside:
            around = graph.nodes[node.scope.inside[-1]].name
            yield Problem(
                what=f"{node.verb} of {node.inputs[0].name!r} takes items out of the body of "
                f"iterate {around!r}: how many rounds give one cannot be known",
                where=node.where,
                mend=f"return the stream from the body, and {node.verb} what iterate returns",
            )


def _joins(graph: Declared) -> Iterator[Problem]:
    for node in graph.nodes:
        if node.verb != "join":
            continue
        left, right = node.inputs
        if left is right:
            yield Problem(
                what=f"{left.name!r} is joined with itself",
                where=node.where,
                mend="join two different streams",
            )
        if left.scope != right.scope:
            yield Problem(
                what=f"{left.name!r} and {right.name!r} cannot be joined: their items have other "
                f"lineages (rates {left.rate} and {right.rate}, "
                f"{_lineage(graph, left)} and {_lineage(graph, right)})",
                where=node.where,
                mend="join streams that come from the same source through the same fan_outs, "
                "groups and iterates",
            )


def _bodies(graph: Declared) -> Iterator[Problem]:
    for node in graph.nodes:
        if node.entry is None or node.exit is None:
            continue
        if node.exit is node.entry:
            yield Problem(
                what=f"the body of {node.name!r} gives back what it takes: no round changes it",
                where=node.where,
                mend="call something in the body: live.map(fn)",
            )
        elif node.exit.scope != node.entry.scope:
            yield Problem(
                what=f"the body of {node.name!r} must give one item for each it takes, from its "
                f"own stream: rate {node.exit.rate / node.entry.rate}, "
                f"{_lineage(graph, node.exit)} instead of {_lineage(graph, node.entry)}",
                where=node.where,
                mend="return a stream that starts from the body's argument, with every fan_out "
                "closed by a group",
            )
        elif node.exit.verb not in ("map", "map_async"):
            yield Problem(
                what=f"the body of {node.name!r} ends with {node.exit.name!r}; only after a call "
                "can it be asked whether the round was the last",
                where=node.where,
                mend="end the body with .map(fn)",
            )


def _orphans(graph: Declared) -> Iterator[Problem]:
    if not graph.nodes:
        yield Problem(
            what="the graph has no stage",
            where="the graph",
            mend="open a stream with graph.source(...)",
        )
    used = {above.index for node in graph.nodes for above in node.inputs}
    used |= {node.exit.index for node in graph.nodes if node.exit is not None}
    for node in graph.nodes:
        ends = node.verb in ("publish", "collect") or node.item is type(None)
        if node.index not in used and not ends:
            yield Problem(
                what=f"nothing takes what {node.name!r} gives",
                where=node.where,
                mend="publish it, .collect(name) it, drop the stage, or annotate its function "
                "with -> None",
            )


def _names(graph: Declared) -> Iterator[Problem]:
    unnamed = ("entry", "publish", "collect")
    outputs = [n for n in graph.nodes if n.verb == "collect"]
    for kind, mend, named in (
        ("stages", ".named({!r})", [n for n in graph.nodes if n.verb not in unnamed]),
        ("outputs", ".collect({!r})", outputs),
        ("latests", "graph.latest({!r}, ...)", graph.feedbacks),
    ):
        places: dict[str, list[str]] = {}
        for each in named:
            places.setdefault(each.name, []).append(each.where)
        for name, (*others, last) in places.items():
            if others:
                yield Problem(
                    what=f"{len(others) + 1} {kind} are named {name!r}; also at "
                    + ", ".join(others),
                    where=last,
                    mend=f"give one another name: {mend.format(name + '_2')}",
                )


def _lineage(graph: Declared, node: Node) -> str:
    scope = node.scope
    frames = " x ".join(graph.nodes[i].name for i in (scope.origin, *scope.frames, *scope.inside))
    return f"lineage {frames}"


_RULES: tuple[Callable[[Declared], Iterator[Problem]], ...] = (
    _lengths,
    _groups,
    _batches,
    _ends,
    _joins,
    _bodies,
    _orphans,
    _names,
    feedback_rule,
    cycle_rule,
)
