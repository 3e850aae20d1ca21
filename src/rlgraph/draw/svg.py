"""A graph as an SVG picture: layers from top to bottom, iterate bodies in frames.

The picture takes its colours from the page it stands in (``--ink`` and the like) and has its own
where the page sets none.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterator, Sequence

from rlgraph.draw import Edge, calls, does, drawn, edges, is_frame, rate_text, rounds
from rlgraph.draw.layout import (
    FRAME_SIDE_PX,
    Box,
    Layout,
    lay_out,
    member_of,
    shown_does,
    shown_name,
    text_px,
)
from rlgraph.graph import Graph
from rlgraph.graph.node import Node
from rlgraph.hints import show
from rlgraph.text import printable, shorten

_MARGIN_PX, _FEEDBACK_PX = 12, 26

_STYLE = """
.rg{font:12.5px system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}
.rg text{fill:var(--ink,#20262b)}.rg .soft{fill:var(--soft,#5c6770);font-size:11.5px}
.rg .name{font-weight:600}.rg rect{fill:var(--paper,#fff);stroke:var(--soft,#5c6770)}
.rg .frame{fill:var(--panel,#f5f6f3);stroke:var(--line,#d5d8d3)}
.rg .pill{stroke:var(--line,#c5c9c4)}
.rg path{fill:none;stroke:var(--soft,#5c6770)}.rg .tip{fill:var(--soft,#5c6770);stroke:none}
.rg .again{stroke-dasharray:2 3}
.rg .feedback{stroke:var(--accent,#2f62a8);stroke-dasharray:6 4}
.rg .feedback-tip{fill:var(--accent,#2f62a8);stroke:none}
.rg text.by{fill:var(--accent,#2f62a8)}
.rg .halo{paint-order:stroke;stroke:var(--paper,#fff);stroke-width:3px;stroke-linejoin:round}
"""


def svg(graph: Graph) -> str:
    """Draw the graph; feedback runs as dashed curves from what publishes to what reads it."""
    lines = edges(graph)
    layout = lay_out(graph, (), lines)
    width, height = _size(graph, layout)
    stages = drawn(graph.nodes)
    body = [
        *_frames(graph, layout),
        *(_edge(line, layout) for line in lines),
        *(_again(line, layout) for line in rounds(graph)),
        *_feedback(graph, layout),
        *_frame_titles(graph, layout),
        *_labels(lines, layout),
        *(_stage(node, layout.boxes[node.index]) for node in stages),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="rg" role="img" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="{-_MARGIN_PX} {-_MARGIN_PX} {width:.0f} {height:.0f}">'
        f"<title>{_escape(f'Graph {graph.name}: {len(stages)} stages')}</title>"
        f"<style>{_STYLE}</style>{''.join(body)}</svg>"
    )


def _size(graph: Graph, layout: Layout) -> tuple[float, float]:
    """Give the picture room for what is drawn right of the boxes and below them."""
    num_feedbacks = sum(len(f.publishers) * len(f.readers) for f in graph.feedbacks)
    right = layout.width + num_feedbacks * _FEEDBACK_PX
    for node in drawn(graph.nodes):
        right = max(right, layout.boxes[node.index].top[0] + 12 + text_px(_given(node)))
    return right + 2 * _MARGIN_PX, layout.height + 3 * _MARGIN_PX


def _given(node: Node) -> str:
    """Write what a stage gives: the type of its items and their rate."""
    return f"{shorten(show(node.item), 40)} {rate_text(node)}".strip()


def _escape(text: str) -> str:
    return html.escape(printable(text))


def _frames(graph: Graph, layout: Layout) -> Iterator[str]:
    for node in graph.nodes:
        if is_frame(node):
            yield _rect(layout.boxes[node.index], "frame", 10)


def _frame_titles(graph: Graph, layout: Layout) -> Iterator[str]:
    for node in graph.nodes:
        if is_frame(node):
            box = layout.boxes[node.index]
            name = f'<tspan class="name">{_escape(shown_name(node))}</tspan>'
            yield (
                f'<text class="halo" x="{box.x + 12:g}" y="{box.y + 20:g}">{name} '
                f'<tspan class="soft">{_escape(does(node))}</tspan></text>'
            )


def _rect(box: Box, kind: str, radius: float) -> str:
    return (
        f'<rect class="{kind}" x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" '
        f'height="{box.height:g}" rx="{radius:g}"/>'
    )


def _stage(node: Node, box: Box) -> str:
    x, y = box.top
    if not calls(node):
        pill = _rect(box, "pill", box.height / 2)
        return pill + _centred("", x, y + 17, shown_does(node))
    return (
        _rect(box, "box", 7)
        + _centred("name", x, y + 19, shown_name(node))
        + _centred("soft", x, y + 34, shown_does(node))
    )


def _centred(kind: str, x: float, y: float, text: str) -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="middle">{_escape(text)}</text>'


def _edge(line: Edge, layout: Layout) -> str:
    """Draw a line down from box to box, through its bends."""
    source, target = line.source.scope.inside, line.target.scope.inside
    depth = sum(1 for a, b in zip(source, target, strict=False) if a == b)
    scope = source[:depth]
    ends = (member_of(line.source, scope), member_of(line.target, scope))
    bends = sorted((key[2], box) for key, box in layout.bends.items() if key[:2] == ends)
    stops = [layout.boxes[line.source.index].bottom]
    for _, box in bends:
        stops += [box.top, box.bottom]
    stops.append(layout.boxes[line.target.index].top)
    x, y = stops[0]
    path = [f"M{x:g} {y:g}"]
    for n, ((x, y), (to_x, to_y)) in enumerate(itertools.pairwise(stops)):
        half = (to_y - y) / 2
        straight = n % 2 == 1
        curve = f"C{x:g} {y + half:g} {to_x:g} {to_y - half:g} {to_x:g} {to_y:g}"
        path.append(f"V{to_y:g}" if straight else curve)
    return f'<path d="{"".join(path)}"/>{_arrow_down(*stops[-1])}'


def _arrow_down(x: float, y: float) -> str:
    return f'<path class="tip" d="M{x:g} {y:g}l-3.5 -7h7z"/>'


def _again(line: Edge, layout: Layout) -> str:
    """Draw the way back to the next round, left of the boxes in the frame."""
    source, target = layout.boxes[line.source.index], layout.boxes[line.target.index]
    left = min(source.x, target.x) - FRAME_SIDE_PX * 0.75
    low, high = source.y + source.height * 0.7, target.y + target.height * 0.3
    return (
        f'<path class="again" d="M{source.x:g} {low:g}C{left:g} {low:g} {left:g} {high:g} '
        f'{target.x:g} {high:g}"/><path class="tip" d="M{target.x:g} {high:g}l-7 -3.5v7z"/>'
    )


def _feedback(graph: Graph, layout: Layout) -> Iterator[str]:
    """Draw each delayed edge right of everything, one beside the other."""
    right = layout.width
    for feedback in graph.feedbacks:
        for publisher, reader in itertools.product(feedback.publishers, feedback.readers):
            right += _FEEDBACK_PX
            (x, y), target = layout.boxes[publisher.index].bottom, layout.boxes[reader.index]
            low, high, end = y + 12, target.y + target.height / 2, target.x + target.width
            yield (
                f'<path class="feedback" d="M{x:g} {y:g}V{low:g}H{right - 12:g}'
                f"Q{right:g} {low:g} {right:g} {low - 12:g}V{high + 12:g}"
                f'Q{right:g} {high:g} {right - 12:g} {high:g}H{end:g}"/>'
                f'<path class="feedback-tip" d="M{end:g} {high:g}l7 -3.5v7z"/>'
                f'<text class="by halo" x="{end + 12:g}" y="{high - 6:g}">'
                f"{_escape(feedback.name)}</text>"
            )


def _labels(lines: Sequence[Edge], layout: Layout) -> Iterator[str]:
    """Write below each stage what it gives."""
    for node in {line.source.index: line.source for line in lines}.values():
        x, y = layout.boxes[node.index].bottom
        yield f'<text class="soft halo" x="{x + 9:g}" y="{y + 17:g}">{_escape(_given(node))}</text>'
