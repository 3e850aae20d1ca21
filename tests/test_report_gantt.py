"""The timeline of a run as a Gantt chart."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rlgraph.report import gantt
from rlgraph.report.gantt import stage_colours, timeline
from rlgraph.trace import Mark, Span


def span(stage: str, start_s: float, end_s: float, trajectory: str = "", **changed: Any) -> Span:
    fields: dict[str, Any] = {
        "key": f"{stage}/{trajectory}",
        "domain": "maze",
        "outcome": "done",
        "version": 2,
        **changed,
    }
    return Span(stage=stage, start_s=start_s, end_s=end_s, trajectory=trajectory, **fields)


def views(html: str) -> list[dict[str, Any]]:
    found = re.findall(r'<script type="application/json">(.*?)</script>', html)
    return [json.loads(text) for text in found]


def bands(html: str) -> list[str]:
    return re.findall(r'class="band"[^>]*>([^<]*)<', html)


def test_a_stage_has_a_row_for_each_call_at_once() -> None:
    html = timeline([span("act", 0, 2), span("act", 1, 3), span("step", 3, 4)], [])
    by_stage, _ = views(html)
    assert by_stage["bars"] == [
        [0, 0, 500_000, "0", "act/\nversion 2"],
        [1, 250_000, 750_000, "0", "act/\nversion 2"],
        [2, 750_000, 1_000_000, "1", "step/\nversion 2"],
    ]
    assert (by_stage["start"], by_stage["wall"]) == (0, 4)
    assert bands(html)[:2] == ["act: 2 lanes", "step: 1 lane"]


def test_a_trajectory_keeps_its_lane_from_first_to_last_call() -> None:
    html = timeline(
        [
            span("generate", 0, 1, "1.0"),
            span("act", 3, 4, "1.0"),
            span("generate", 1, 2, "1.1"),
            span("generate", 4, 5, "2.0"),
            span("step", 2, 3),
        ],
        [],
    )
    _, by_trajectory = views(html)
    drawn = [(row, label.split("\n")[0]) for row, _, _, _, label in by_trajectory["bars"]]
    assert drawn == [
        (0, "step/"),
        (1, "generate/1.0"),
        (1, "act/1.0"),
        (1, "generate/2.0"),
        (2, "generate/1.1"),
    ]
    assert bands(html)[-1] == "trajectories in flight (3 in all): 2 lanes"


def test_a_call_that_is_not_done_stands_out_and_says_why() -> None:
    html = timeline([span("act", 0, 1, outcome="timeout")], [])
    assert views(html)[0]["bars"] == [[0, 0, 1_000_000, "bad", "act/\nversion 2, timeout"]]
    assert ">not done<" in html


def test_new_versions_are_lines_across_the_chart() -> None:
    marks = [Mark(name="publish v1", at_s=at_s, version=1) for at_s in (-1, 1, 9)]
    html = timeline([span("act", 0, 4)], marks)
    assert [view["marks"] for view in views(html)] == [[250_000], [250_000]]
    assert 'class="marks" d="M250 0v' in html


def test_too_many_new_versions_are_left_out_until_the_reader_zooms_in() -> None:
    marks = [Mark(name="publish", at_s=n / 100, version=n) for n in range(400)]
    html = timeline([span("act", 0, 4)], marks)
    assert 'class="marks" d=""' in html
    assert "The lines of the 400 new versions appear when fewer than 200 are in sight" in html


def test_a_run_of_no_length_is_drawn() -> None:
    html = timeline([span("act", 5, 5)], [Mark(name="publish v1", at_s=5, version=1)])
    assert views(html)[0]["bars"] == [[0, 0, 0, "0", "act/\nversion 2"]]
    assert ">5 s</span>" in html


def test_odd_text_is_shown_harmless() -> None:
    odd = "</script><b>\x00\ud800"
    html = timeline([span(odd, 0, 1, key=odd)], [])
    assert odd not in html
    assert "&lt;/script&gt;&lt;b&gt;\ufffd\ufffd: 1 lane" in html
    assert views(html)[0]["bars"][0][4] == "</script><b>\ufffd\ufffd\nversion 2"


def test_stages_with_the_most_time_have_colours_of_their_own() -> None:
    spans = [span(f"s{n}", n, n + 1 + n / 10) for n in range(10)]
    assert stage_colours(spans) == {
        "s0": "other",
        "s1": "other",
        **{f"s{n}": str(n - 2) for n in range(2, 10)},
    }
    assert ">other stages<" in timeline(spans, [])


def test_lanes_beyond_the_limit_are_counted() -> None:
    count = gantt.MAX_LANES + 10
    html = timeline([span("act", 0, 1, key=f"act/{n}") for n in range(count)], [])
    assert bands(html)[0] == f"act: {gantt.MAX_LANES} of {count} lanes"
    assert f"{count} calls. {gantt.MAX_LANES} of them are on the lanes drawn" in html


gaps_and_calls = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 30), st.sampled_from("ab")), min_size=1
)


def test_a_large_run_is_joined_to_what_can_be_drawn_and_says_so() -> None:
    count = gantt.MAX_BARS + 5
    html = timeline([span("act", n, n + 0.9) for n in range(count)], [])
    by_stage, _ = views(html)
    assert len(by_stage["bars"]) < count
    assert f"{count:,} calls. These are drawn as {len(by_stage['bars']):,} bars" in html


@settings(deadline=None)
@given(gaps_and_calls)
def test_joining_covers_the_same_time_and_every_call(drawn: list[tuple[int, int, str]]) -> None:
    bars, edge = [], 0
    for gap, length, colour in drawn:
        start, edge = edge + gap, edge + gap + length
        bars.append(gantt._Bar(row=0, start=start, end=edge, colour=colour, label=""))
    joined = gantt._joined(bars, 10)
    assert sum(bar.calls for bar in joined) == len(bars)
    assert (joined[0].start, joined[-1].end) == (bars[0].start, bars[-1].end)
    assert all(a.end <= b.start for a, b in itertools.pairwise(joined))
