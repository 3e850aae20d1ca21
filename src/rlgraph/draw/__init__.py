"""A graph as text: a table for a terminal, a flowchart for Mermaid.

Only reads the declaration; a graph that ``check`` would refuse is drawn as far as it goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import PurePath

from rlgraph.graph import Graph
from rlgraph.graph.node import CALLING, Node
from rlgraph.hints import show
from rlgraph.hints.anatomy import callable_name
from rlgraph.profile import DEFAULT_DOMAIN, Profile
from rlgraph.text import printable, shorten

_MAX_TEXT = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """Items on their way from one drawn stage to another."""

    source: Node
    target: Node


def drawn(nodes: Sequence[Node]) -> list[Node]:
    """List the stages that are drawn as boxes: an iterate is a frame around its body."""
    return [node for node in nodes if node.verb != "entry" and not is_frame(node)]


def is_frame(node: Node) -> bool:
    """Tell whether a node is drawn as a frame: an iterate with something in its body."""
    return node.verb == "iterate" and node.exit is not None and node.exit is not node.entry


def calls(node: Node) -> bool:
    """Tell whether a stage calls a function of the user; the others route items."""
    return node.verb in CALLING or node.verb == "source"


def edges(graph: Graph) -> list[Edge]:
    """List the edges between drawn stages, those into and out of an iterate through its frame."""
    return [
        Edge(source=_giver(above, graph), target=node)
        for node in drawn(graph.nodes)
        for above in node.inputs
    ]


def rounds(graph: Graph) -> list[Edge]:
    """List, for each iterate, the ways from the end of its body back to the start."""
    return [
        Edge(source=_giver(node, graph), target=reader)
        for node in graph.nodes
        if is_frame(node)
        for reader in drawn(graph.nodes)
        if any(node in _entered(above, graph) for above in reader.inputs)
    ]


def does(node: Node) -> str:
    """Say what a stage does: its verb and what the verb was given."""
    if node.verb == "iterate":
        until = callable_name(node.until) if node.until is not None else "?"
        return f"at most {node.limit} rounds, until {until}"
    if calls(node):
        return f"{node.verb} {callable_name(node.call)}"
    if node.verb in ("fan_out", "batch"):
        more = f" + {node.redundancy} spare" if node.redundancy else ""
        return f"{node.verb} {node.size}{more}"
    if node.verb == "publish" and node.feedback is not None:
        return f"publish_to {node.feedback.name}"
    return f"collect {node.name}" if node.verb == "collect" else node.verb


def rate_text(node: Node) -> str:
    """Write how many items leave for each item of the source; empty for one."""
    return "" if node.rate == 1 else f"x {node.rate}"


def needs_text(node: Node) -> str:
    """Summarize the profiles of a stage: what differs from needing nothing, by domain."""
    texts = {domain: _profile_text(profile) for domain, profile in node.profiles.items()}
    if texts.keys() <= {DEFAULT_DOMAIN}:
        return "".join(texts.values())
    return "; ".join(f"{domain}: {text}" for domain, text in texts.items())


def table(graph: Graph) -> str:
    """Write the graph as a table of its stages, in order of declaration, for a terminal."""
    heads = ("stage", "does", "types", "rate", "declared at", "needs")
    rows = [_row(node) for node in graph.nodes if node.verb != "entry"]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (heads, tuple("-" * width for width in widths), *rows)
    ]
    title = f"graph {graph.name}: {len(rows)} stages"
    return printable("\n".join([title, "", *lines, *_feedback_lines(graph)])) + "\n"


def mermaid(graph: Graph) -> str:
    """Write the graph as a Mermaid flowchart; iterate bodies are subgraphs, feedback is dotted."""
    lines = ["flowchart TD"]
    lines += _mermaid_scope(graph, (), "  ")
    for edge in edges(graph):
        label = f"{show(edge.source.item)} {rate_text(edge.source)}".strip()
        lines.append(f"  n{edge.source.index} -->|{_quoted(label)}| n{edge.target.index}")
    lines += [f'  n{e.source.index} -.->|"again"| n{e.target.index}' for e in rounds(graph)]
    for feedback in graph.feedbacks:
        label = _quoted(f"{feedback.name}, staleness <= {feedback.max_staleness}")
        lines += [
            f"  n{publisher.index} -.->|{label}| n{reader.index}"
            for publisher in feedback.publishers
            for reader in feedback.readers
        ]
    return "\n".join(lines) + "\n"


def _giver(node: Node, graph: Graph) -> Node:
    """Find the drawn stage whose items a node hands on: of a frame, the end of its body."""
    if node.verb == "entry":
        owner = graph.nodes[node.scope.inside[-1]]
        return _giver(owner.inputs[0], graph)
    if node.exit is not None and is_frame(node):
        return _giver(node.exit, graph)
    return node


def _entered(node: Node, graph: Graph) -> Iterator[Node]:
    """List the iterates, innermost first, at whose start the items of a node are."""
    while node.verb == "entry":
        owner = graph.nodes[node.scope.inside[-1]]
        yield owner
        node = owner.inputs[0]


def _row(node: Node) -> tuple[str, ...]:
    taken = ", ".join(show(above.item) for above in node.inputs)
    given = "" if node.verb in ("publish", "collect") else show(node.item)
    indent = "  " * len(node.scope.inside)
    cells = (
        indent + node.name,
        does(node),
        f"{taken} -> {given}".strip() if given else taken,
        rate_text(node),
        PurePath(node.where).name,
    )
    return (*(shorten(cell, _MAX_TEXT) for cell in cells), needs_text(node))


def _feedback_lines(graph: Graph) -> Iterator[str]:
    for feedback in graph.feedbacks:
        yield ""
        publishers = ", ".join(above.name for node in feedback.publishers for above in node.inputs)
        readers = ", ".join(node.name for node in feedback.readers)
        yield (
            f"latest {feedback.name}: {show(feedback.item)}, published by {publishers or 'nothing'}"
            f", read by {readers or 'nothing'}, max_staleness {feedback.max_staleness}"
            f" (else {feedback.when_stale})"
        )


_WORDS = {
    "flops": "FLOP",
    "hbm_bytes": "B moved",
    "resident_bytes": "B resident",
    "out_bytes": "B out",
    "prefill_tokens": "tokens read",
    "decode_tokens": "tokens sampled",
    "cpu_s": "s of CPU",
}


def _profile_text(profile: Profile) -> str:
    default = Profile()
    texts = []
    for field in fields(profile):
        value = getattr(profile, field.name)
        if value == getattr(default, field.name):
            continue
        if field.name in _WORDS:
            texts.append(_amount(value, _WORDS[field.name]))
        elif field.name in ("latency", "turns"):
            unit = " s" if field.name == "latency" else ""
            texts.append(f"{field.name} ~ {value.mean:.3g}{unit}")
        elif field.name == "stateless":
            texts.append("stateless")
        else:
            texts.append(f"{field.name.removesuffix('_s')} {value:g}")
    return ", ".join(texts)


def _amount(value: float, unit: str) -> str:
    """Write an amount with its unit; FLOP and B with an SI prefix.

    >>> _amount(2.1e9, "FLOP"), _amount(120.0, "B out"), _amount(32768.0, "tokens read")
    ('2.1 GFLOP', '120 B out', '32768 tokens read')
    """
    if unit[0] in "FB":
        for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
            if value >= factor:
                return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.6g} {unit}"


def _mermaid_scope(graph: Graph, scope: tuple[int, ...], indent: str) -> Iterator[str]:
    for node in graph.nodes:
        if node.scope.inside != scope or node.verb == "entry":
            continue
        if is_frame(node):
            yield f"{indent}subgraph s{node.index}[{_quoted(f'{node.name}: {does(node)}')}]"
            yield from _mermaid_scope(graph, (*scope, node.index), indent + "  ")
            yield f"{indent}end"
        elif calls(node):
            yield f"{indent}n{node.index}[{_quoted(node.name, does(node))}]"
        else:
            yield f"{indent}n{node.index}([{_quoted(does(node))}])"


def _quoted(*lines: str) -> str:
    """Write lines as a label that Mermaid takes as plain text.

    >>> _quoted('a"b', "list[int]")
    '"a#quot;b<br/>list#91;int#93;"'
    """
    shown = (printable(shorten(line, _MAX_TEXT)) for line in lines)
    return '"' + "<br/>".join("".join(_SPECIAL.get(c, c) for c in line) for line in shown) + '"'


_SPECIAL = {c: f"#{ord(c)};" for c in "#<>&`[]{}()|\\*_~;\n"} | {'"': "#quot;"}
