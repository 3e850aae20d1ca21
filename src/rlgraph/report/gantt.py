"""The timeline of a run as a Gantt chart, by stage and by trajectory: HTML with inline SVG.

The chart is drawn here once, whole; the page's script draws it again when the reader zooms in.
Time runs from 0 to 1,000,000 along the chart, whatever its length in seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rlgraph.report.charts import NUM_COLOURS
from rlgraph.report.text import CLOCK_STEPS, duration, embed, escape, instant, time_ticks
from rlgraph.text import printable
from rlgraph.trace import Mark, Span, assign_lanes, spans_by_stage

MAX_BARS = 20_000
"""In one view; above it, neighbours are drawn as one and the page says so."""
MAX_LANES = 96
"""Of one band; above it, the busiest are drawn and the page says so."""
MAX_MARKS = 200
"""In sight; above it, none are drawn and the page says so."""
_WIDTH = 1_000_000
_FAILED, _OTHER = "bad", "other"
_LABEL_PX, _GAP_PX, _BAND_PX, _MARKS_PX = 18, 8, 240, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bar:
    row: int
    start: float
    end: float
    colour: str
    label: str
    calls: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Band:
    """Rows under one label."""

    label: str
    colour: str
    extents: list[tuple[float, float]]
    """One for each of ``members``."""
    members: list[list[Span]]
    """Spans that share a lane from the start of the first to the end of the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """Bars laid out on rows, and the labels above them."""

    height: int
    rows: list[tuple[int, int]]
    """(top, height) of each row in pixels."""
    labels: list[tuple[int, str, str]]
    """(top in pixels, colour, text) of each band."""
    bars: list[_Bar]
    note: str


def stage_colours(spans: Iterable[Span]) -> dict[str, str]:
    """Give a colour of the page's palette to each stage, in order of first start.

    The stages with the most time get one of their own; the rest share "other".
    """
    stages = spans_by_stage(spans)
    busy = {stage: sum(s.end_s - s.start_s for s in own) for stage, own in stages.items()}
    chosen = set(sorted(busy, key=lambda stage: -busy[stage])[:NUM_COLOURS])
    free = iter(range(NUM_COLOURS))
    return {stage: str(next(free)) if stage in chosen else _OTHER for stage in stages}


def timeline(spans: Sequence[Span], marks: Sequence[Mark]) -> str:
    """Draw all spans, once with a row for each stage's lanes and once for each trajectory."""
    start = min(span.start_s for span in spans)
    wall = max(span.end_s for span in spans) - start
    colours = stage_colours(spans)
    signs = [_place(m.at_s, start, wall) for m in marks if 0 <= m.at_s - start <= wall]
    views = {
        "By stage": _stage_bands(spans, colours),
        "By trajectory": _trajectory_bands(spans, colours),
    }
    parts = ['<div class="timeline">']
    for index, name in enumerate(views):
        chosen = " checked" if index == 0 else ""
        parts.append(
            f'<input type="radio" name="view" id="view{index}"{chosen}>'
            f'<label for="view{index}">{name}</label>'
        )
    parts.append(_legend(colours, failed=any(span.outcome != "done" for span in spans)))
    for index, bands in enumerate(views.values()):
        view = _lay_out(bands, colours, start, wall)
        parts.append(_draw(view, signs, index, start, wall))
    if len(signs) > MAX_MARKS:
        parts.append(
            f'<p class="note">The lines of the {len(signs):,} new versions appear when fewer than '
            f"{MAX_MARKS} are in sight: zoom in.</p>"
        )
    return "".join([*parts, "</div>"])


def _place(at_s: float, start: float, wall: float) -> float:
    return round(_WIDTH * (at_s - start) / wall) if wall else 0


def _stage_bands(spans: Sequence[Span], colours: Mapping[str, str]) -> list[_Band]:
    return [
        _Band(
            label=stage,
            colour=colours[stage],
            extents=[(span.start_s, span.end_s) for span in own],
            members=[[span] for span in own],
        )
        for stage, own in spans_by_stage(spans).items()
    ]


def _trajectory_bands(spans: Sequence[Span], colours: Mapping[str, str]) -> list[_Band]:
    """Pack the trajectories in flight on lanes; calls that serve no single one stay by stage."""
    lineages: dict[str, list[Span]] = {}
    for span in sorted(spans, key=lambda span: span.start_s):
        lineages.setdefault(span.trajectory, []).append(span)
    shared = _stage_bands(lineages.pop("", []), colours)
    if not lineages:
        return shared
    members = list(lineages.values())
    extents = [(own[0].start_s, max(span.end_s for span in own)) for own in members]
    label = f"trajectories in flight ({len(members):,} in all)"
    return [*shared, _Band(label=label, colour="", extents=extents, members=members)]


def _lay_out(
    bands: Sequence[_Band], colours: Mapping[str, str], start: float, wall: float
) -> _View:
    top, hidden = _MARKS_PX, 0
    rows: list[tuple[int, int]] = []
    labels: list[tuple[int, str, str]] = []
    bars: list[_Bar] = []
    for band in bands:
        lanes = assign_lanes(band.extents)
        shown = min(1 + max(lanes), MAX_LANES)
        more = f" of {1 + max(lanes):,}" if max(lanes) >= MAX_LANES else ""
        labels.append(
            (top, band.colour, f"{band.label}: {shown}{more} lane{'s' if shown > 1 else ''}")
        )
        first, height = len(rows), max(3, min(14, _BAND_PX // shown))
        rows += [(top + _LABEL_PX + lane * height, height) for lane in range(shown)]
        top += _LABEL_PX + shown * height + _GAP_PX
        for lane, own in zip(lanes, band.members, strict=True):
            if lane < MAX_LANES:
                bars += [_bar(span, first + lane, colours, start, wall) for span in own]
            else:
                hidden += len(own)
    drawn, gap = _merge(bars)
    note = _note(len(bars) + hidden, len(bars), len(drawn), gap * wall / _WIDTH)
    return _View(height=top, rows=rows, labels=labels, bars=drawn, note=note)


def _bar(span: Span, row: int, colours: Mapping[str, str], start: float, wall: float) -> _Bar:
    done = span.outcome == "done"
    return _Bar(
        row=row,
        start=_place(span.start_s, start, wall),
        end=_place(span.end_s, start, wall),
        colour=colours[span.stage] if done else _FAILED,
        label=f"{span.key}\nversion {span.version}" + ("" if done else f", {span.outcome}"),
    )


def _merge(bars: list[_Bar]) -> tuple[list[_Bar], float]:
    """Draw neighbours as one until at most MAX_BARS are left.

    Returns the bars by row and start, and the gap below which neighbours were joined.
    """
    bars = sorted(bars, key=lambda bar: (bar.row, bar.start, bar.end))
    gap = 0.0
    while len(bars) > MAX_BARS:
        gap = 2 * gap or _WIDTH / 16_384
        bars = _joined(bars, gap)
    return bars, gap


def _joined(bars: Sequence[_Bar], gap: float) -> list[_Bar]:
    joined: list[_Bar] = []
    for bar in bars:
        last = joined[-1] if joined else None
        if last is None or last.row != bar.row or bar.start - last.end > gap:
            joined.append(bar)
            continue
        longer = last if last.end - last.start >= bar.end - bar.start else bar
        shorter = min(last.end - last.start, bar.end - bar.start)
        if last.colour == bar.colour or shorter < gap:
            calls, end = last.calls + bar.calls, max(last.end, bar.end)
            label = f"{calls:,} calls drawn as one"
            joined[-1] = replace(longer, start=last.start, end=end, calls=calls, label=label)
        else:
            joined.append(bar)
    return joined


def _note(calls: int, shown: int, bars: int, gap_s: float) -> str:
    said = f"{calls:,} calls."
    if shown < calls:
        said += f" {shown:,} of them are on the lanes drawn, the busiest of each band."
    if bars < shown:
        said += (
            f" These are drawn as {bars:,} bars: neighbours on a lane that are less than "
            f"{duration(gap_s)} apart or shorter than that are joined, in the colour of the longer."
        )
    return said


def _legend(colours: Mapping[str, str], *, failed: bool) -> str:
    keys = [(stage, colour) for stage, colour in colours.items() if colour != _OTHER]
    if _OTHER in colours.values():
        keys.append(("other stages", _OTHER))
    if failed:
        keys.append(("not done", _FAILED))
    return (
        '<p class="legend">'
        + "".join(
            f'<span class="key box" style="--c:var(--c{colour})">{escape(name)}</span>'
            for name, colour in keys
        )
        + "</p>"
    )


def _draw(view: _View, signs: Sequence[float], index: int, start: float, wall: float) -> str:
    paths: dict[str, list[str]] = {}
    for bar in view.bars:
        top, height = view.rows[bar.row]
        # At least 600 of 1,000,000 wide: a shorter call would vanish between two pixels.
        wide, inner = max(bar.end - bar.start, 600) / 1000, height - (1 if height > 3 else 0.5)
        paths.setdefault(bar.colour, []).append(
            f"M{bar.start / 1000:g} {top}h{wide:.4g}v{inner:g}h-{wide:.4g}z"
        )
    data = {
        "start": start,
        "clock": CLOCK_STEPS,
        "wall": wall,
        "height": view.height,
        "rows": view.rows,
        "bars": [[b.row, b.start, b.end, b.colour, printable(b.label)] for b in view.bars],
        "marks": signs,
        "most": MAX_MARKS,
    }
    return "".join(
        [
            f'<div class="view view{index}" tabindex="0" role="group" aria-label="timeline">',
            f'<div class="gantt" style="height:{view.height}px"><svg viewBox="0 0 1000 '
            f'{view.height}" preserveAspectRatio="none" role="img" aria-label="Timeline. '
            f'{escape(view.note)} The table below gives the time of each stage.">',
            _marks(signs, view.height),
            *(
                f'<path class="bars" data-colour="{colour}" style="--c:var(--c{colour})" '
                f'd="{"".join(d)}"/>'
                for colour, d in paths.items()
            ),
            "</svg>",
            *(
                f'<span class="band" style="top:{top}px">{escape(text)}</span>'
                for top, _, text in view.labels
            ),
            '</div><div class="x">',
            *_time_axis(start, wall),
            f'</div><p class="note">{escape(view.note)}</p>',
            embed(data),
            "</div>",
        ]
    )


def _marks(signs: Sequence[float], height: int) -> str:
    lines = "".join(f"M{at / 1000:g} 0v{height}" for at in signs if len(signs) <= MAX_MARKS)
    return f'<path class="marks" d="{lines}"/>'


def _time_axis(start: float, wall: float) -> list[str]:
    if wall <= 0:
        return [f'<span style="left:0%">{instant(start)}</span>']
    return [
        f'<span style="left:{100 * (at - start) / wall:.4g}%">{instant(at)}</span>'
        for at in time_ticks(start, start + wall, count=6)
    ]
