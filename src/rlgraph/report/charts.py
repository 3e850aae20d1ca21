"""Curves of metrics by version, as HTML with inline SVG; knows no metric by name.

The plot stretches to the width it is given; labels are HTML beside it, so that they stay legible
on a phone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from rlgraph.report.text import embed, escape, number, percent, ticks
from rlgraph.text import printable

MAX_POINTS = 1_000
NUM_COLOURS = 8
_DOTS_UP_TO = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One curve."""

    name: str
    points: tuple[tuple[float, float], ...]
    """(version, value) in order of version; a NaN breaks the line."""
    style: Literal["line", "faint", "dots"] = "line"
    """Faint: thin, behind another. Dots: joined by a dashed line."""
    colour: int = 0
    """Of the page's palette of NUM_COLOURS; a higher one begins anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axis:
    low: float
    high: float
    ticks: list[float]

    def place(self, value: float) -> float:
        """Give the position along the axis, 0 to 1000."""
        return round(1000 * (value - self.low) / (self.high - self.low), 1)


def running_mean(points: Sequence[tuple[float, float]], width: int) -> list[tuple[float, float]]:
    """Average each value with those before it, ``width`` in all; NaN are left out.

    >>> running_mean([(0, 1.0), (1, 3.0), (2, 5.0)], 2)
    [(0, 1.0), (1, 2.0), (2, 4.0)]
    """
    means = []
    for index, (x, _) in enumerate(points):
        window = [y for _, y in points[max(0, index + 1 - width) : index + 1] if math.isfinite(y)]
        means.append((x, math.fsum(window) / len(window) if window else math.nan))
    return means


def thin(
    points: Sequence[tuple[float, float]], limit: int = MAX_POINTS
) -> tuple[tuple[float, float], ...]:
    """Keep every k-th point and the last, at most ``limit`` and one."""
    step = math.ceil(len(points) / limit) or 1
    kept = tuple(points[::step])
    return kept if not points or kept[-1] == points[-1] else (*kept, points[-1])


def chart(title: str, series: Sequence[Series], *, unit: str = "", share: bool = False) -> str:
    """Draw curves over a common axis of versions.

    With ``share`` the values are shares, written in percent on an axis from 0 to 100 %.
    """
    values = [y for one in series for _, y in one.points if math.isfinite(y)]
    head = (
        f"<figcaption><b>{escape(title)}</b>"
        f'<span class="unit">{escape(unit)}</span>{_legend(series)}</figcaption>'
    )
    if not values:
        return f'<figure class="chart">{head}<p class="none">no finite value</p></figure>'
    xs = sorted({x for one in series for x, _ in one.points})
    x_axis = _inner_axis(xs[0], xs[-1])
    y_axis = _outer_axis(0.0, 1.0) if share else _outer_axis(min(values), max(values))
    write = percent if share else number
    write_tick = _whole_percent if share else number
    said = "; ".join(_said(one, write) for one in series if one.style != "faint")
    return "".join(
        [
            f'<figure class="chart">{head}<div class="plot"><div class="y">',
            *(_tick("bottom", y_axis, y, write_tick(y)) for y in y_axis.ticks),
            '</div><div class="area">',
            '<svg viewBox="0 0 1000 1000" preserveAspectRatio="none" role="img"',
            f' aria-label="{escape(title)} by version. {escape(said)}"><path class="grid" d="',
            *(f"M0 {1000 - y_axis.place(y):g}h1000" for y in y_axis.ticks),
            '"/>',
            *(_curve(one, x_axis, y_axis) for one in series),
            '</svg></div><div class="x">',
            *(_tick("left", x_axis, x, number(x)) for x in x_axis.ticks),
            "</div></div>",
            _hover(series, xs, x_axis, write),
            "</figure>",
        ]
    )


def _whole_percent(share: float) -> str:
    return f"{100 * share:g} %"


def _outer_axis(low: float, high: float) -> _Axis:
    """Make an axis that ends on round values around the data."""
    at = ticks(low, high, count=4)
    return _Axis(low=at[0], high=at[-1], ticks=at)


def _inner_axis(low: float, high: float) -> _Axis:
    """Make an axis that ends with the data, round whole values inside."""
    if low == high:
        low, high = low - 1, high + 1
    at = [tick for tick in ticks(low, high, count=6, whole=True) if low <= tick <= high]
    return _Axis(low=low, high=high, ticks=at)


def _tick(side: str, axis: _Axis, value: float, text: str) -> str:
    return f'<span style="{side}:{axis.place(value) / 10:g}%">{text}</span>'


def _legend(series: Sequence[Series]) -> str:
    return "".join(
        f'<span class="key {one.style}" {_colour(one)}>{escape(one.name)}</span>'
        for one in series
        if len(series) > 1 and one.style != "faint"
    )


def _colour(one: Series) -> str:
    return f'style="--c:var(--c{one.colour % NUM_COLOURS})"'


def _said(one: Series, write: Callable[[float], str]) -> str:
    finite = [(x, y) for x, y in one.points if math.isfinite(y)]
    if not finite:
        return f"{one.name}: no finite value"
    (first, begun), (last, ended) = finite[0], finite[-1]
    return (
        f"{one.name}: {write(begun)} at version {number(first)}, "
        f"{write(ended)} at version {number(last)}"
    )


def _curve(one: Series, x_axis: _Axis, y_axis: _Axis) -> str:
    line, dots, pen = [], [], "M"
    for x, y in one.points:
        if not math.isfinite(y):
            pen = "M"
            continue
        at = f"{x_axis.place(x):g} {1000 - y_axis.place(y):g}"
        line.append(f"{pen}{at}")
        dots.append(f"M{at}h0")
        pen = "L"
    colour = _colour(one)
    drawn = f'<path class="{one.style}" {colour} d="{"".join(line)}"/>'
    if one.style == "dots" or (one.style == "line" and len(dots) <= _DOTS_UP_TO):
        drawn += f'<path class="dot" {colour} d="{"".join(dots)}"/>'
    return drawn


def _hover(
    series: Sequence[Series],
    xs: Sequence[float],
    x_axis: _Axis,
    write: Callable[[float], str],
) -> str:
    """Embed what the page shows when a version is pointed at: place and lines of text."""
    lines: dict[float, list[str]] = {x: [f"version {number(x)}"] for x in xs}
    for one in series:
        for x, y in one.points:
            lines[x].append(f"{one.name}: {write(y)}")
    return embed([[x_axis.place(x), "\n".join(printable(t) for t in lines[x])] for x in xs])
