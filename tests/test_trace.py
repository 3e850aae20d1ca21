"""Spans of a run: lanes, the account of time, and the files that viewers read."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlgraph.trace import Mark, Span, StageTime, Trace, assign_lanes, read_trace, stage_times

ODD = "lone \ud800, NUL \x00, RTL שלום"


def span(start_s: float, end_s: float, **changed: Any) -> Span:
    fields: dict[str, Any] = {
        "stage": "turn.generate",
        "key": f"turn.generate/3.1/t{start_s}",
        "trajectory": "3.1",
        "domain": "maze",
        "outcome": "done",
        "version": 2,
    }
    return Span(start_s=start_s, end_s=end_s, **{**fields, **changed})


def chrome(trace: Trace, tmp_path: Path) -> list[dict[str, Any]]:
    trace.write_chrome(tmp_path / "trace.json")
    events: list[dict[str, Any]] = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    return events


@pytest.mark.parametrize(
    ("start", "end"), [(2.0, 1.0), (math.nan, 1.0), (0.0, math.nan), (0, math.inf)]
)
def test_a_span_that_ends_before_it_starts_or_never_is_refused(start: float, end: float) -> None:
    with pytest.raises(ValueError, match=r"span 'turn.generate/3.1/t.*' runs from"):
        span(start, end)


instants = st.integers(0, 20).map(float)
intervals = st.lists(st.tuples(instants, instants).map(lambda pair: (min(pair), max(pair))))


@settings(deadline=None)
@given(intervals)
def test_no_two_intervals_of_a_lane_overlap(extents: list[tuple[float, float]]) -> None:
    lanes = assign_lanes(extents)
    for lane in set(lanes):
        members = sorted(extent for extent, own in zip(extents, lanes, strict=True) if own == lane)
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(members))


@settings(deadline=None)
@given(intervals)
def test_lanes_are_as_few_as_the_most_intervals_at_once(extents: list[tuple[float, float]]) -> None:
    at_once = [sum(a <= start < b for a, b in extents) for start, end in extents if start < end]
    # An empty interval overlaps nothing for long, but is drawn beside what runs at its instant.
    beside = [1 + sum(a < start < b for a, b in extents) for start, end in extents if start == end]
    assert len(set(assign_lanes(extents))) == max(at_once + beside, default=0)


@settings(deadline=None)
@given(intervals)
def test_lanes_do_not_depend_on_the_order_of_arrival(extents: list[tuple[float, float]]) -> None:
    forth = zip(extents, assign_lanes(extents), strict=True)
    back = zip(extents[::-1], assign_lanes(extents[::-1]), strict=True)
    assert sorted(forth) == sorted(back)


def test_busy_and_idle_of_the_lanes_add_up_to_the_wall() -> None:
    trace = Trace()
    trace.add(span(0, 4))
    trace.add(span(1, 3, outcome="timeout"))
    trace.add(span(5, 8, stage="step"))
    assert stage_times(trace.spans) == [
        StageTime(stage="turn.generate", calls=2, unfinished=1, lanes=2, busy_s=6, idle_s=10),
        StageTime(stage="step", calls=1, unfinished=0, lanes=1, busy_s=3, idle_s=5),
    ]


def test_the_idle_share_is_the_part_of_the_lanes_time_without_a_call() -> None:
    trace = Trace()
    trace.add(span(0, 1))
    trace.add(span(1, 4, stage="step"))
    assert [time.idle_share for time in stage_times(trace.spans)] == [0.75, 0.25]


def test_a_stage_of_no_length_has_no_idle_share() -> None:
    trace = Trace()
    trace.add(span(1, 1))
    assert [time.idle_share for time in stage_times(trace.spans)] == [0.0]


def test_an_empty_trace_has_no_times_and_writes_an_empty_timeline(tmp_path: Path) -> None:
    trace = Trace()
    assert stage_times(trace.spans) == []
    assert [event["ph"] for event in chrome(trace, tmp_path)] == ["M"]


def test_a_call_becomes_a_complete_event_in_microseconds(tmp_path: Path) -> None:
    trace = Trace()
    trace.add(span(0.5, 0.75))
    run, stage, call = chrome(trace, tmp_path)
    assert run == {"ph": "M", "pid": 0, "tid": 0, "name": "process_name", "args": {"name": "run"}}
    assert stage["args"] == {"name": "turn.generate"}
    assert call == {
        "ph": "X",
        "pid": 1,
        "tid": 0,
        "name": "turn.generate",
        "cat": "maze",
        "ts": 500_000.0,
        "dur": 250_000.0,
        "args": {
            "key": "turn.generate/3.1/t0.5",
            "trajectory": "3.1",
            "outcome": "done",
            "version": 2,
        },
    }


def test_overlapping_calls_lie_on_threads_of_one_process_a_stage(tmp_path: Path) -> None:
    trace = Trace()
    for item in (span(0, 2), span(1, 3), span(2, 4), span(0, 9, stage="step")):
        trace.add(item)
    calls = [event for event in chrome(trace, tmp_path) if event["ph"] == "X"]
    assert [(call["pid"], call["tid"]) for call in calls] == [(1, 0), (1, 1), (1, 0), (2, 0)]


def test_a_mark_becomes_a_global_instant(tmp_path: Path) -> None:
    trace = Trace()
    trace.mark("publish v3", 1.5, 3)
    assert chrome(trace, tmp_path)[-1] == {
        "ph": "i",
        "s": "g",
        "pid": 0,
        "tid": 0,
        "name": "publish v3",
        "ts": 1_500_000.0,
        "args": {"version": 3},
    }


def test_odd_text_is_replaced_in_the_viewers_file(tmp_path: Path) -> None:
    trace = Trace()
    trace.add(span(0, 1, stage=ODD, key=ODD, trajectory=ODD, domain=ODD))
    trace.mark(ODD, 0, 0)
    plain = "lone \ufffd, NUL \ufffd, RTL שלום"
    _, stage, call, mark = chrome(trace, tmp_path)
    assert [stage["args"]["name"], call["name"], call["cat"], mark["name"]] == [plain] * 4
    assert call["args"]["key"] == call["args"]["trajectory"] == plain


def test_a_log_reads_back_as_the_trace_it_was(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    with path.open("a") as log:
        trace = Trace(log)
        trace.add(span(0, 1, key=ODD))
        trace.mark("publish v1", 1, 1)
    again = read_trace(path)
    assert again.spans == [span(0, 1, key=ODD)]
    assert again.marks == [Mark(name="publish v1", at_s=1, version=1)]


def test_a_killed_run_leaves_all_but_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    with path.open("a") as log:
        trace = Trace(log)
        trace.add(span(0, 1))
        # Read while the log is open: each line is flushed.
        with path.open("a") as torn:
            torn.write('{"stage":"turn.gen')
        assert read_trace(path).spans == [span(0, 1)]


def test_a_line_that_is_neither_span_nor_mark_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    path.write_text('{"loss":1.0}\n')
    with pytest.raises(TypeError, match="loss"):
        read_trace(path)


def test_memory_is_bounded_and_what_left_it_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    with path.open("a") as log:
        trace = Trace(log, capacity=2)
        for start in range(5):
            trace.add(span(start, start + 1))
    assert trace.spans == [span(3, 4), span(4, 5)]
    assert trace.dropped == 3
    assert len(read_trace(path).spans) == 5


def test_a_trace_must_hold_something() -> None:
    with pytest.raises(ValueError, match="capacity must be >= 1 span, got 0"):
        Trace(capacity=0)
