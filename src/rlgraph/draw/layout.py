"""Where the stages of a graph stand in a picture: layers from top to bottom, frames in frames.

Lengths are in pixels. Knows nothing of how a stage is drawn but its size.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import networkx as nx

from rlgraph.draw import Edge, calls, does, is_frame
from rlgraph.graph import Graph
from rlgraph.graph.node import Node
from rlgraph.text import shorten

_BOX_PX, _PILL_PX, _ACROSS_PX, _DOWN_PX = 44, 26, 36, 38
_FRAME_TOP_PX, _FRAME_BOTTOM_PX = 34, 28
FRAME_SIDE_PX = 26
_LETTER_PX = 7.4
"""Wider than most sans-serif letters at 12.5 px, so that text stays in its box."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A stage, a frame, or a bend of a long edge (no size); x and y are the top left corner."""

    x: float
    y: float
    width: float
    height: float

    def moved(self, right: float, down: float) -> Box:
        """Move it."""
        return replace(self, x=self.x + right, y=self.y + down)

    @property
    def top(self) -> tuple[float, float]:
        """Give the middle of the upper side."""
        return (self.x + self.width / 2, self.y)

    @property
    def bottom(self) -> tuple[float, float]:
        """Give the middle of the lower side."""
        return (self.x + self.width / 2, self.y + self.height)


Bend = tuple[int, int, int]
"""(source, target, layer) of a long edge where it passes a layer; indices of nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where everything inside one frame, or the whole picture, stands."""

    width: float
    height: float
    boxes: Mapping[int, Box]
    """By index of the node, those of inner frames included."""
    bends: Mapping[Bend, Box]


def lay_out(graph: Graph, scope: tuple[int, ...], lines: Sequence[Edge]) -> Layout:
    """Place the members of a scope in layers; a frame inside it counts as one member."""
    inner: dict[int, Layout] = {}
    sizes: dict[int, tuple[float, float]] = {}
    for node in graph.nodes:
        if node.scope.inside != scope or node.verb == "entry":
            continue
        if is_frame(node):
            inner[node.index] = lay_out(graph, (*scope, node.index), lines)
            sizes[node.index] = _frame_size(node, inner[node.index])
        else:
            sizes[node.index] = _stage_size(node)
    layers = _layers(sizes, _between(scope, lines))
    width = max((_row_px(layer, sizes) for layer in layers), default=0.0)
    boxes: dict[int, Box] = {}
    bends: dict[Bend, Box] = {}
    y = 0.0
    for layer in layers:
        height = max(sizes[m][1] if isinstance(m, int) else 0.0 for m in layer)
        x = (width - _row_px(layer, sizes)) / 2
        for member in layer:
            wide, high = sizes[member] if isinstance(member, int) else (0.0, height)
            box = Box(x=x, y=y + (height - high) / 2, width=wide, height=high)
            if isinstance(member, int):
                boxes[member] = box
            else:
                bends[member] = box
            x += wide + _ACROSS_PX
        y += height + _DOWN_PX
    for index, layout in inner.items():
        right = boxes[index].x + (boxes[index].width - layout.width) / 2
        down = boxes[index].y + _FRAME_TOP_PX
        boxes |= {i: box.moved(right, down) for i, box in layout.boxes.items()}
        bends |= {b: box.moved(right, down) for b, box in layout.bends.items()}
    return Layout(width=width, height=max(0.0, y - _DOWN_PX), boxes=boxes, bends=bends)


def _stage_size(node: Node) -> tuple[float, float]:
    if not calls(node):
        return (text_px(shown_does(node)) + 28, _PILL_PX)
    return (max(text_px(shown_name(node)), text_px(shown_does(node)), 96) + 28, _BOX_PX)


def _frame_size(node: Node, inside: Layout) -> tuple[float, float]:
    title = text_px(f"{shown_name(node)} {does(node)}") + 24
    return (
        max(inside.width + 2 * FRAME_SIDE_PX, title),
        inside.height + _FRAME_TOP_PX + _FRAME_BOTTOM_PX,
    )


def shown_name(node: Node) -> str:
    """Write the name of a stage, cut to what a box holds."""
    return shorten(node.name, 40)


def shown_does(node: Node) -> str:
    """Say what a box does; the function's name is left out where it is the stage's."""
    told = calls(node) and does(node) == f"{node.verb} {node.name}"
    return node.verb if told else shorten(does(node), 48)


def _row_px(layer: Sequence[int | Bend], sizes: Mapping[int, tuple[float, float]]) -> float:
    wide = sum(sizes[member][0] for member in layer if isinstance(member, int))
    return wide + _ACROSS_PX * (len(layer) - 1)


def member_of(node: Node, scope: tuple[int, ...]) -> int:
    """Name the member of a scope that a node is, or the frame of the scope that it is in."""
    inside = node.scope.inside
    return node.index if inside == scope else inside[len(scope)]


def _between(scope: tuple[int, ...], lines: Sequence[Edge]) -> list[tuple[int, int]]:
    depth = len(scope)
    within = [
        (member_of(line.source, scope), member_of(line.target, scope))
        for line in lines
        if line.source.scope.inside[:depth] == scope == line.target.scope.inside[:depth]
    ]
    return [pair for pair in dict.fromkeys(within) if pair[0] != pair[1]]


def _layers(
    members: Mapping[int, object], pairs: Sequence[tuple[int, int]]
) -> list[list[int | Bend]]:
    """Order members in layers by longest path, long edges bent in each layer that they pass.

    Within a layer they stand by the mean place of what they come from. Source: Sugiyama, Tagawa &
    Toda 1981.
    """
    dag = nx.DiGraph()
    dag.add_nodes_from(members)
    dag.add_edges_from(pairs)
    layers: list[list[int | Bend]] = [list(layer) for layer in nx.topological_generations(dag)]
    depth = {member: at for at, layer in enumerate(layers) for member in layer}
    above: dict[int | Bend, list[int | Bend]] = {}
    for source, target in pairs:
        last: int | Bend = source
        for at in range(depth[source] + 1, depth[target]):
            bend = (source, target, at)
            layers[at].append(bend)
            above[bend], last = [last], bend
        above.setdefault(target, []).append(last)
    for upper, layer in itertools.pairwise(layers):
        place = {member: (n + 0.5) / len(upper) for n, member in enumerate(upper)}
        means = {m: [place[a] for a in above.get(m, ()) if a in place] for m in layer}
        layer.sort(key=lambda m: sum(means[m]) / len(means[m]) if means[m] else 0.5)
    return layers


def text_px(text: str) -> float:
    """Estimate how wide a text is."""
    return _LETTER_PX * len(text)
