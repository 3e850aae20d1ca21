"""A graph as a table, as Mermaid and as a picture."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from rlgraph.draw import drawn, edges, mermaid, needs_text, rounds, table
from rlgraph.draw.layout import Box, lay_out
from rlgraph.draw.svg import svg
from rlgraph.graph import Graph, Stream
from rlgraph.graph.node import Node
from rlgraph.ports import Batch, Latest
from rlgraph.profile import Fixed, Profile


@dataclass(frozen=True)
class Weights:
    path: str


def numbers() -> list[int]:
    return []


def double(number: int) -> int:
    return 2 * number


def add(pair: tuple[int, int]) -> int:
    return sum(pair)


def is_done(number: int) -> bool:
    return number > 0


class Model:
    def weights(self) -> Weights:
        return Weights("")

    def speak(self, number: int, policy: Latest[Weights]) -> int:
        return number

    def step(self, batch: Batch[int]) -> Weights:
        return Weights("")


def agentic() -> Graph:
    """Two turns of a body, a batch, and feedback to the body."""
    graph, model = Graph("agentic"), Model()
    policy = graph.latest("policy", model.weights, max_staleness=1)

    def turn(live: Stream[int]) -> Stream[int]:
        return live.map(model.speak, policy=policy).map(double).named("act")

    started = graph.source(numbers).fan_out(4, redundancy=1)
    ended = started.iterate(turn, until=is_done, limit=3)
    grouped = ended.group().unbatch()
    grouped.batch(8).map(model.step).needs(Profile(flops=2.5e9)).publish_to(policy)
    return graph


def diamond() -> Graph:
    """A long way and a short way from one stage to a join."""
    graph = Graph("diamond")
    top = graph.source(numbers)
    long = top.map(double).named("left").map(double).named("lower left")
    long.join(top).map(add).collect("sums")
    return graph


def named(graph: Graph, name: str) -> Node:
    return next(node for node in graph.nodes if node.name == name)


def picture(graph: Graph) -> ET.Element:
    return ET.fromstring(svg(graph))


def texts(graph: Graph) -> list[str]:
    words = (" ".join(" ".join(e.itertext()).split()) for e in picture(graph).iter())
    tags = (element.tag for element in picture(graph).iter())
    return [text for text, tag in zip(words, tags, strict=True) if tag.endswith("}text")]


def test_a_graph_prints_as_its_table() -> None:
    assert str(agentic()) == table(agentic())


def test_an_edge_into_an_iterate_goes_to_the_start_of_its_body() -> None:
    pairs = [(edge.source.name, edge.target.name) for edge in edges(agentic())]
    assert pairs == [
        ("numbers", "fan_out"),
        ("fan_out", "Model.speak"),
        ("Model.speak", "act"),
        ("act", "group"),
        ("group", "unbatch"),
        ("unbatch", "batch"),
        ("batch", "Model.step"),
        ("Model.step", "publish policy"),
    ]


def test_a_round_leads_from_the_end_of_a_body_to_its_start() -> None:
    assert [(r.source.name, r.target.name) for r in rounds(agentic())] == [("act", "Model.speak")]


def test_a_body_that_starts_with_a_body_is_gone_through_again_from_the_inner_start() -> None:
    graph = Graph("nested")

    def inner(live: Stream[int]) -> Stream[int]:
        return live.map(double).named("first")

    def outer(live: Stream[int]) -> Stream[int]:
        return live.iterate(inner, until=is_done, limit=2).map(double).named("last")

    graph.source(numbers).iterate(outer, until=is_done, limit=2).collect("out")
    pairs = [(edge.source.name, edge.target.name) for edge in rounds(graph)]
    assert pairs == [("last", "first"), ("first", "first")]


def test_an_iterate_with_nothing_in_its_body_is_a_stage_like_others() -> None:
    graph = Graph("idle")
    graph.source(numbers).iterate(lambda live: live, until=is_done, limit=2).collect("out")
    pairs = [(edge.source.name, edge.target.name) for edge in edges(graph)]
    assert pairs == [("numbers", "<lambda>"), ("<lambda>", "out")]
    assert "at most 2 rounds, until is_done" in texts(graph)


def test_the_table_has_a_line_for_each_stage() -> None:
    lines = [re.split(r"\s{2,}", line) for line in table(agentic()).splitlines()]
    where = [cells[-1] for cells in lines[4:] if "test_draw.py" in cells[-1]]
    cells = [[cell for cell in row if "test_draw.py" not in cell] for row in lines]
    assert cells == [
        ["graph agentic: 10 stages"],
        [""],
        ["stage", "does", "types", "rate", "declared at", "needs"],
        cells[3],
        ["numbers", "source numbers", "-> int"],
        ["fan_out", "fan_out 4 + 1 spare", "int -> int", "x 4"],
        ["turn", "at most 3 rounds, until is_done", "int -> int", "x 4"],
        ["", "Model.speak", "map Model.speak", "int -> int", "x 4"],
        ["", "act", "map double", "int -> int", "x 4"],
        ["group", "group", "int -> Batch[int]"],
        ["unbatch", "unbatch", "Batch[int] -> int", "x 4"],
        ["batch", "batch 8", "int -> Batch[int]", "x 1/2"],
        ["Model.step", "map Model.step", "Batch[int] -> Weights", "x 1/2", "2.5 GFLOP"],
        ["publish policy", "publish_to policy", "Weights", "x 1/2"],
        [""],
        [
            "latest policy: Weights, published by Model.step, read by Model.speak, "
            "max_staleness 1 (else drop)"
        ],
    ]
    assert all(re.fullmatch(r"test_draw\.py:\d+", place) for place in where)


def test_a_feedback_that_nothing_uses_is_still_told() -> None:
    graph = Graph("unused")
    graph.latest("policy", Model().weights)
    assert "published by nothing, read by nothing" in table(graph)


def test_needs_are_told_by_domain_in_units() -> None:
    graph = Graph("needy")
    stream = graph.source(numbers).map(double)
    stream.needs(
        {
            "maze": Profile(cpu_s=0.02, latency=Fixed(0.5), stateless=True, decode_tokens=32_768),
            "math": Profile(resident_bytes=512, concurrency=8, deadline_s=30.0, turns=Fixed(3)),
        }
    )
    assert needs_text(named(graph, "double")) == (
        "maze: 0.02 s of CPU, latency ~ 0.5 s, 32768 tokens sampled, stateless; "
        "math: 512 B resident, turns ~ 3, concurrency 8, deadline 30"
    )


def test_mermaid_has_subgraphs_for_bodies_and_dots_for_feedback() -> None:
    assert mermaid(agentic()) == (
        "flowchart TD\n"
        '  n0["numbers<br/>source numbers"]\n'
        '  n1(["fan#95;out 4 + 1 spare"])\n'
        '  subgraph s2["turn: at most 3 rounds, until is#95;done"]\n'
        '    n4["Model.speak<br/>map Model.speak"]\n'
        '    n5["act<br/>map double"]\n'
        "  end\n"
        '  n6(["group"])\n'
        '  n7(["unbatch"])\n'
        '  n8(["batch 8"])\n'
        '  n9["Model.step<br/>map Model.step"]\n'
        '  n10(["publish#95;to policy"])\n'
        '  n0 -->|"int"| n1\n'
        '  n1 -->|"int x 4"| n4\n'
        '  n4 -->|"int x 4"| n5\n'
        '  n5 -->|"int x 4"| n6\n'
        '  n6 -->|"Batch#91;int#93;"| n7\n'
        '  n7 -->|"int x 4"| n8\n'
        '  n8 -->|"Batch#91;int#93; x 1/2"| n9\n'
        '  n9 -->|"Weights x 1/2"| n10\n'
        '  n5 -.->|"again"| n4\n'
        '  n10 -.->|"policy, staleness #60;= 1"| n4\n'
    )


def test_the_picture_names_stages_types_and_feedback() -> None:
    assert texts(agentic()) == [
        "policy",
        "turn at most 3 rounds, until is_done",
        *("int", "int x 4", "int x 4", "int x 4", "Batch[int]", "int x 4", "Batch[int] x 1/2"),
        "Weights x 1/2",
        *("numbers", "source", "fan_out 4 + 1 spare", "Model.speak", "map", "act", "map double"),
        *("group", "unbatch", "batch 8", "Model.step", "map", "publish_to policy"),
    ]


def test_the_picture_draws_each_edge_round_and_feedback_once() -> None:
    kinds = [element.get("class") for element in picture(agentic()).iter()]
    assert (kinds.count("tip"), kinds.count("again"), kinds.count("feedback")) == (9, 1, 1)


def test_the_picture_is_told_to_those_who_do_not_see_it() -> None:
    root = picture(agentic())
    assert root.get("role") == "img"
    assert [e.text for e in root if e.tag.endswith("}title")] == ["Graph agentic: 9 stages"]


def test_a_long_edge_passes_beside_the_boxes_between() -> None:
    graph = diamond()
    layout = lay_out(graph, (), edges(graph))
    source, join = named(graph, "numbers").index, named(graph, "join").index
    bends = [box for (a, b, _), box in sorted(layout.bends.items()) if (a, b) == (source, join)]
    between = [layout.boxes[named(graph, name).index] for name in ("left", "lower left")]
    assert len(bends) == 2
    assert all(
        not box.x <= bend.x <= box.x + box.width for bend, box in zip(bends, between, strict=True)
    )


def test_odd_names_are_shown_harmless() -> None:
    odd = '</style><script>"\x00\ud800`#;'
    graph = Graph(odd)
    graph.source(numbers).map(double).named(odd).collect(odd)
    shown = '</style><script>"\ufffd\ufffd`#;'
    assert shown in texts(graph)
    assert f"collect {shown}" in texts(graph)
    assert shown in table(graph)
    assert "#60;/style#62;#60;script#62;#quot;\ufffd\ufffd#96;#35;#59;<br/>" in mermaid(graph)


def test_an_empty_graph_is_an_empty_picture() -> None:
    assert texts(Graph("nothing")) == []
    assert mermaid(Graph("nothing")) == "flowchart TD\n"
    assert table(Graph("nothing")).startswith("graph nothing: 0 stages\n")


steps = st.recursive(
    st.sampled_from(["map", "fork", "fan"]),
    lambda inner: st.lists(inner, min_size=1, max_size=3),
    max_leaves=8,
)


def grow(stream: Stream[int], step: str | list[object]) -> Stream[int]:
    """Add one stage, a fork that joins again, siblings that meet again, or a body of steps."""
    if isinstance(step, list):

        def body(live: Stream[int]) -> Stream[int]:
            for inner in step:
                live = grow(live, inner)  # type: ignore[arg-type]
            return live.map(double)

        return stream.iterate(body, until=is_done, limit=2)
    if step == "fork":
        return stream.map(double).map(double).join(stream).map(add)
    if step == "fan":
        return stream.fan_out(2).map(double).group().map(sum)
    return stream.map(double)


def apart(a: Box, b: Box) -> bool:
    across = a.x + a.width <= b.x or b.x + b.width <= a.x
    return across or a.y + a.height <= b.y or b.y + b.height <= a.y


def holds(outer: Box, inner: Box) -> bool:
    return (
        outer.x <= inner.x
        and outer.y <= inner.y
        and inner.x + inner.width <= outer.x + outer.width
        and inner.y + inner.height <= outer.y + outer.height
    )


@settings(deadline=None)
@given(st.lists(steps, max_size=4))
def test_boxes_stand_apart_in_their_frames_and_edges_lead_down(drawing: list[object]) -> None:
    graph = Graph("random")
    stream = graph.source(numbers)
    for step in drawing:
        stream = grow(stream, step)  # type: ignore[arg-type]
    stream.collect("out")
    layout = lay_out(graph, (), edges(graph))
    stages = [(node, layout.boxes[node.index]) for node in drawn(graph.nodes)]
    for number, (node, box) in enumerate(stages):
        assert all(apart(box, other) for _, other in stages[:number])
        assert all(holds(layout.boxes[frame], box) for frame in node.scope.inside)
    for edge in edges(graph):
        source, target = layout.boxes[edge.source.index], layout.boxes[edge.target.index]
        assert source.bottom[1] < target.top[1]
    ET.fromstring(svg(graph))
