"""What ran when: the spans of a run, laid out on lanes, written for a trace viewer.

Knows no clock and no executor: it is told when things began and ended. Used by one thread.
"""

from __future__ import annotations

import heapq
import json
import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TextIO

from rlgraph.files import replace_text
from rlgraph.jsonl import read_lines, to_line
from rlgraph.text import printable


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One call of a stage, from submission to outcome."""

    stage: str
    key: str
    """Unique key of the task, such as "turn.generate/3.1/t2/a1"."""
    trajectory: str
    """Lineage of the item, such as "3.1"; empty where the call serves no single one."""
    domain: str
    start_s: float
    """Seconds since the run began, on the executor's clock."""
    end_s: float
    outcome: str
    """"done", "failed", "timeout" or "cancelled"."""
    version: int
    """Version of the policy that the call was given, or the trainer's."""

    def __post_init__(self) -> None:
        """Refuse a span that ends before it starts, or never."""
        if not (math.isfinite(self.start_s) and self.start_s <= self.end_s < math.inf):
            raise ValueError(f"span {self.key!r} runs from {self.start_s!r} to {self.end_s!r} s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """An instant of the run, such as "publish v3"."""

    name: str
    at_s: float
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTime:
    """Where the time of one stage went; over its lanes, busy and idle add up to the wall."""

    stage: str
    calls: int
    unfinished: int
    """Calls whose outcome is not "done"."""
    lanes: int
    """Most calls at once."""
    busy_s: float
    """Summed over lanes."""
    idle_s: float
    """lanes x wall - busy_s: the bubble."""

    @property
    def idle_share(self) -> float:
        """Give the idle part of the lanes' time, 0 to 1."""
        total = self.busy_s + self.idle_s
        return self.idle_s / total if total else 0.0


class Trace:
    """The newest spans and marks of a run in memory; all of them, line by line, in its log.

    The log is a text file that the caller opened for appending, such as ``spans.jsonl``, and
    closes; each line is flushed, so that a killed run leaves a readable timeline. Before going on
    with an old log, ``mend_lines`` it.
    """

    def __init__(self, log: TextIO | None = None, *, capacity: int = 200_000) -> None:
        """Keep at most ``capacity`` spans in memory; without a log, nothing else."""
        if capacity < 1:
            raise ValueError(f"capacity must be >= 1 span, got {capacity!r}")
        self._log = log
        self._spans: deque[Span] = deque(maxlen=capacity)
        self._marks: deque[Mark] = deque(maxlen=capacity)
        self.dropped = 0
        """Oldest spans no longer in memory because there were more than ``capacity``."""

    @property
    def spans(self) -> list[Span]:
        """Give the spans in memory, in order of arrival."""
        return list(self._spans)

    @property
    def marks(self) -> list[Mark]:
        """Give the marks in memory, in order of arrival."""
        return list(self._marks)

    def add(self, span: Span) -> None:
        """Record a call that has ended."""
        self.dropped += len(self._spans) == self._spans.maxlen
        self._spans.append(span)
        self._write(span)

    def mark(self, name: str, at_s: float, version: int) -> None:
        """Record an instant."""
        mark = Mark(name=name, at_s=at_s, version=version)
        self._marks.append(mark)
        self._write(mark)

    def write_chrome(self, path: Path) -> None:
        """Write a trace that chrome://tracing and ui.perfetto.dev open.

        A process is a stage, a thread one of its lanes. Characters that viewers refuse are
        replaced (see ``printable``); the log keeps them.
        """
        replace_text(path, _chrome_parts(self.spans, self.marks))

    def _write(self, item: Span | Mark) -> None:
        if self._log is not None:
            self._log.write(to_line(asdict(item)))
            self._log.flush()


def read_trace(path: Path) -> Trace:
    """Read back a log of spans and marks; a torn last line is dropped.

    Raises JsonLinesError on another line that cannot be read, TypeError on one that is neither
    a span nor a mark.
    """
    trace = Trace()
    span_fields = {field.name for field in fields(Span)}
    for row in read_lines(path):
        if row.keys() == span_fields:
            trace.add(Span(**row))
        else:
            trace.mark(**row)
    return trace


def assign_lanes(extents: Sequence[tuple[float, float]]) -> list[int]:
    """Lay intervals [start, end) out on the fewest lanes on which none overlap.

    Returns the lane of each, counted from 0; the lowest free lane is taken, so low lanes are the
    busiest. An interval may begin where another ends. Source: greedy interval partitioning,
    Kleinberg & Tardos, Algorithm Design, section 4.1.

    >>> assign_lanes([(0.0, 2.0), (1.0, 3.0), (2.0, 4.0)])
    [0, 1, 0]
    """
    lanes = [0] * len(extents)
    busy: list[tuple[float, int]] = []
    free: list[int] = []
    used = 0
    for index in sorted(range(len(extents)), key=extents.__getitem__):
        start, end = extents[index]
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            lane, used = used, used + 1
        lanes[index] = lane
        heapq.heappush(busy, (end, lane))
    return lanes


def spans_by_stage(spans: Iterable[Span]) -> dict[str, list[Span]]:
    """Sort spans into stages; stages in order of their first start."""
    stages: dict[str, list[Span]] = {}
    for span in sorted(spans, key=lambda span: span.start_s):
        stages.setdefault(span.stage, []).append(span)
    return stages


def stage_times(spans: Iterable[Span]) -> list[StageTime]:
    """Account for the time of every stage, in order of first start.

    The wall runs from the first start to the last end over all stages.
    """
    stages = spans_by_stage(spans)
    every = [span for members in stages.values() for span in members]
    if not every:
        return []
    wall_s = max(span.end_s for span in every) - min(span.start_s for span in every)
    return [_stage_time(stage, members, wall_s) for stage, members in stages.items()]


def _stage_time(stage: str, spans: Sequence[Span], wall_s: float) -> StageTime:
    lanes = 1 + max(assign_lanes([(span.start_s, span.end_s) for span in spans]))
    busy_s = math.fsum(span.end_s - span.start_s for span in spans)
    return StageTime(
        stage=stage,
        calls=len(spans),
        unfinished=sum(span.outcome != "done" for span in spans),
        lanes=lanes,
        busy_s=busy_s,
        # Never below zero: the sum of many lengths may exceed the wall by a rounding.
        idle_s=max(0.0, lanes * wall_s - busy_s),
    )


def _chrome_parts(spans: Sequence[Span], marks: Sequence[Mark]) -> Iterator[str]:
    yield '{"displayTimeUnit":"ms","traceEvents":[\n'
    yield json.dumps(_meta(0, "process_name", "run"))
    for pid, (stage, members) in enumerate(spans_by_stage(spans).items(), 1):
        yield ",\n" + json.dumps(_meta(pid, "process_name", printable(stage)))
        lanes = assign_lanes([(span.start_s, span.end_s) for span in members])
        for span, lane in zip(members, lanes, strict=True):
            yield ",\n" + json.dumps(_complete(span, pid=pid, tid=lane))
    for mark in marks:
        yield ",\n" + json.dumps(_instant(mark))
    yield "\n]}\n"


def _meta(pid: int, name: str, value: str) -> dict[str, Any]:
    return {"ph": "M", "pid": pid, "tid": 0, "name": name, "args": {"name": value}}


def _complete(span: Span, *, pid: int, tid: int) -> dict[str, Any]:
    return {
        "ph": "X",
        "pid": pid,
        "tid": tid,
        "name": printable(span.stage),
        "cat": printable(span.domain),
        "ts": round(span.start_s * 1e6, 3),
        "dur": round((span.end_s - span.start_s) * 1e6, 3),
        "args": {
            "key": printable(span.key),
            "trajectory": printable(span.trajectory),
            "outcome": span.outcome,
            "version": span.version,
        },
    }


def _instant(mark: Mark) -> dict[str, Any]:
    return {
        "ph": "i",
        "s": "g",
        "pid": 0,
        "tid": 0,
        "name": printable(mark.name),
        "ts": round(mark.at_s * 1e6, 3),
        "args": {"version": mark.version},
    }
