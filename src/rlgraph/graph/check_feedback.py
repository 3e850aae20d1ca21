"""Rules about feedback: who publishes and reads it, how late it comes, what closes a cycle."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from rlgraph.errors import Problem, did_you_mean
from rlgraph.graph.node import FeedbackNode, Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """The whole graph, as the rules read it."""

    nodes: Sequence[Node]
    feedbacks: Sequence[FeedbackNode]


def feedback_rule(graph: Declared) -> Iterator[Problem]:
    """Want one publisher and some reader of each feedback, and a staleness that can be kept."""
    names = [f.name for f in graph.feedbacks]
    for feedback in graph.feedbacks:
        others = [n for n in names if n != feedback.name]
        if not feedback.publishers:
            yield Problem(
                what=f"nothing publishes {feedback.name!r}" + did_you_mean(feedback.name, others),
                where=feedback.where,
                mend=f"end a stream with .publish_to({feedback.name})",
            )
        if not feedback.readers:
            yield Problem(
                what=f"no stage reads {feedback.name!r}" + did_you_mean(feedback.name, others),
                where=feedback.where,
                mend=f"pass it to a stage: .map(fn, {feedback.name}={feedback.name})",
            )
        places = [publisher.where for publisher in feedback.publishers]
        if len(places) > 1:
            yield Problem(
                what=f"{feedback.name!r} has {len(places)} producers; also at "
                + ", ".join(places[:-1]),
                where=places[-1],
                mend="publish to it once; give the other streams latests of their own",
            )
        yield from _staleness(feedback)


def cycle_rule(graph: Declared) -> Iterator[Problem]:
    """Want a version 0 of each feedback; name the path that closes a cycle without one."""
    undelayed = [f for f in graph.feedbacks if f.init is None]
    if not undelayed:
        return
    # Imported here: a right graph does without it.
    import networkx as nx

    edges = nx.DiGraph()
    for node in graph.nodes:
        edges.add_edges_from((above.index, node.index) for above in node.inputs)
        if node.entry is not None and node.exit is not None:
            edges.add_edges_from((above.index, node.entry.index) for above in node.inputs)
            edges.add_edge(node.exit.index, node.index)
    for feedback in undelayed:
        what = f"{feedback.name!r} has no version 0 for its first readers"
        for publisher, reader in product(feedback.publishers, feedback.readers):
            if nx.has_path(edges, reader.index, publisher.index):
                path = nx.shortest_path(edges, reader.index, publisher.index)
                names = " -> ".join(repr(graph.nodes[i].name) for i in (*path, reader.index))
                what = (
                    f"a path closes a cycle: {names}: {feedback.name!r} has no version 0, so none "
                    "of these can ever start"
                )
                break
        yield Problem(
            what=what,
            where=feedback.where,
            mend=f"give it one: graph.latest({feedback.name!r}, init=...)",
        )


def _staleness(feedback: FeedbackNode) -> Iterator[Problem]:
    for publisher in feedback.publishers[:1]:
        least = math.ceil(publisher.rate) - 1
        if feedback.max_staleness < least:
            yield Problem(
                what=f"one item of the source feeds {publisher.rate} versions of "
                f"{feedback.name!r}, so the last is trained on {least} versions late, but "
                f"max_staleness is {feedback.max_staleness}",
                where=feedback.where,
                mend=f"use max_staleness={least} or more, or larger batches",
            )
