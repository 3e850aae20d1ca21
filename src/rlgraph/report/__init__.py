"""The report of a run: one self-contained HTML page.

Everything is in the file: styles, drawings, a small script for hover and zoom. It is told what
happened and computes no metric of its own. All text is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlgraph.files import replace_text
from rlgraph.report.charts import MAX_POINTS, Series, chart, running_mean, thin
from rlgraph.report.gantt import timeline
from rlgraph.report.script import SCRIPT
from rlgraph.report.style import STYLE
from rlgraph.report.tables import (
    metric_names,
    metrics_table,
    outcome_table,
    settings,
    stage_table,
)
from rlgraph.report.text import duration, escape, number, percent, title_of, unit_of
from rlgraph.text import shorten
from rlgraph.trace import Mark, Span

STOPPED = "stopped by the user"
"""The ``error`` of a run that somebody ended."""

_MEAN_OF, _MEAN_FROM = 5, 20


def write_report(
    path: Path,
    *,
    title: str,
    config: Mapping[str, Any],
    summary: Mapping[str, Any],
    metrics: Sequence[Mapping[str, float]],
    spans: Sequence[Span],
    marks: Sequence[Mark] = (),
    graph_svg: str | None = None,
) -> None:
    """Write the report; an old one at ``path`` is replaced in one step.

    Of the summary these have a place of their own, all optional: ``held_out_success_before`` and
    ``held_out_success_after`` (0 to 1), ``seconds``, ``versions``, ``outcomes`` (how many
    trajectories left in which way) and ``error`` (the root cause of a run that failed); whatever
    else it holds is listed. Metrics are rows as ``read_metrics`` gives them. ``graph_svg`` is
    put in as it is, so it must come from ``draw``.
    """
    body = [
        _header(title, summary, metrics),
        _failure(summary),
        _learning(summary, metrics),
        _other_metrics(metrics),
        _timeline(spans, marks),
        stage_table(spans),
        outcome_table(summary.get("outcomes") or {}),
        _graph(graph_svg),
        settings(config, summary),
        metrics_table(metrics),
    ]
    replace_text(path, [_PAGE_HEAD.format(title=escape(title), style=STYLE), *body, _PAGE_FOOT])


_PAGE_HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{title}</title><style>{style}</style></head><body><main>
"""
_PAGE_FOOT = f"<footer>Written by rlgraph.</footer></main><script>{SCRIPT}</script></body></html>\n"


def _header(title: str, summary: Mapping[str, Any], metrics: Sequence[Mapping[str, float]]) -> str:
    last = int(max((row["version"] for row in metrics), default=0))
    versions = summary.get("versions", last)
    facts = [
        _headline(*_held_out(summary)),
        ("versions trained", number(versions), ""),
    ]
    if summary.get("seconds") is not None:
        facts.append(("wall time", duration(summary["seconds"]), ""))
    if summary.get("outcomes"):
        facts.append(("trajectories", number(sum(summary["outcomes"].values())), ""))
    listed = "".join(
        f'<div class="{kind}"><dt>{name}</dt><dd>{value}</dd></div>'
        for name, value, kind in facts
        if value
    )
    return f'<header><h1>{escape(title)}</h1><dl class="facts">{listed}</dl></header>'


def _headline(before: float, after: float) -> tuple[str, str, str]:
    """Return the name, the value and the width of the number that counts."""
    if not math.isfinite(after):
        value = percent(before) if math.isfinite(before) else ""
        return "held-out success before training", value, ""
    if not math.isfinite(before):
        return "held-out success after training", percent(after), ""
    gain = f"held-out success, {100 * (after - before):+.1f} percentage points"
    return gain, f'{percent(before)}<span class="arrow">→</span>{percent(after)}', "wide"


def _held_out(summary: Mapping[str, Any]) -> tuple[float, float]:
    pair = [summary.get(f"held_out_success_{when}") for when in ("before", "after")]
    before, after = (math.nan if value is None else float(value) for value in pair)
    return before, after


def _failure(summary: Mapping[str, Any]) -> str:
    if not summary.get("error"):
        return ""
    cause = escape(shorten(str(summary["error"]), 20_000))
    title = "The run was stopped" if summary["error"] == STOPPED else "The run failed"
    return f'<section class="failure"><h2>{title}</h2><pre>{cause}</pre></section>'


def _points(metrics: Sequence[Mapping[str, float]], name: str) -> list[tuple[float, float]]:
    return [(row["version"], row[name]) for row in metrics if name in row]


def _is_learning(name: str) -> bool:
    return "success" in name or "reward" in name


def _learning(summary: Mapping[str, Any], metrics: Sequence[Mapping[str, float]]) -> str:
    names = [name for name in metric_names(metrics) if _is_learning(name)]
    success = [name for name in names if "success" in name]
    charts = []
    series = _curves(metrics, success)
    before, after = _held_out(summary)
    if not any("held_out" in name for name in success) and metrics and math.isfinite(after):
        ends = ((0.0, before), (max(row["version"] for row in metrics), after))
        series.append(Series(name="held out", points=ends, style="dots", colour=len(success)))
    if series:
        unit, share = "share of attempts", _all_shares(series)
        charts.append(chart("Success", series, unit=unit, share=share))
    rewards = [name for name in names if name not in success]
    if rewards:
        charts.append(chart("Reward", _curves(metrics, rewards)))
    if not charts:
        charts.append('<p class="none">Neither success nor reward was measured.</p>')
    return f'<section><h2>Learning</h2><div class="pair">{"".join(charts)}</div></section>'


def _all_shares(series: Sequence[Series]) -> bool:
    return all(0 <= y <= 1 for one in series for _, y in one.points if math.isfinite(y))


def _curves(metrics: Sequence[Mapping[str, float]], names: Sequence[str]) -> list[Series]:
    """Draw each metric; a long one faint, under its running mean."""
    series = []
    for colour, name in enumerate(names):
        points, words = _points(metrics, name), title_of(name)
        if "held_out" in name:
            series.append(Series(name=words, points=thin(points), style="dots", colour=colour))
        elif len(points) < _MEAN_FROM:
            series.append(Series(name=words, points=thin(points), colour=colour))
        else:
            mean = thin(running_mean(points, _MEAN_OF))
            series.append(Series(name=words, points=thin(points), style="faint", colour=colour))
            series.append(Series(name=f"{words}, mean of {_MEAN_OF}", points=mean, colour=colour))
    return series


def _other_metrics(metrics: Sequence[Mapping[str, float]]) -> str:
    charts = [
        chart(
            title_of(name),
            [Series(name=title_of(name), points=thin(_points(metrics, name)))],
            unit=unit_of(name),
        )
        for name in metric_names(metrics)
        if not _is_learning(name)
    ]
    if not charts:
        return ""
    every = math.ceil(len(metrics) / MAX_POINTS)
    note = f' <p class="note">One version in {every} is drawn.</p>' if every > 1 else ""
    return (
        '<section><h2>Measurements by version</h2><div class="many">'
        f"{''.join(charts)}</div>{note}</section>"
    )


def _timeline(spans: Sequence[Span], marks: Sequence[Mark]) -> str:
    drawn = '<p class="none">No call was recorded.</p>'
    if spans:
        drawn = (
            '<p class="lead">A bar is one call of a stage; dashed lines are new versions. Point '
            "at a bar to see which call it is; drag to move; zoom with the buttons, Ctrl and the "
            "wheel, or, after a click, with the wheel alone or the + and - keys.</p>"
            + timeline(spans, marks)
        )
    return f"<section><h2>Timeline</h2>{drawn}</section>"


def _graph(graph_svg: str | None) -> str:
    if graph_svg is None:
        return ""
    return f'<section><h2>The graph</h2><div class="graph">{graph_svg}</div></section>'
