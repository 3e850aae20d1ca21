"""The tables of a report: stages, outcomes, settings, metrics; as HTML."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rlgraph.report.gantt import stage_colours
from rlgraph.report.text import duration, escape, number, percent
from rlgraph.text import shorten
from rlgraph.trace import Span, stage_times

_MAX_ROWS = 100
_MAX_TEXT = 2_000
HEADLINE = frozenset(
    {
        "held_out_success_before",
        "held_out_success_after",
        "seconds",
        "versions",
        "outcomes",
        "error",
    }
)
"""Entries of a summary that have a place of their own in the report."""


def metric_names(metrics: Sequence[Mapping[str, float]]) -> list[str]:
    """List every metric of any row, in order of first appearance."""
    names = dict.fromkeys(name for row in metrics for name in row)
    return [name for name in names if name not in ("version", "seconds")]


def stage_table(spans: Sequence[Span]) -> str:
    """Account for the time of every stage; empty where no call was recorded."""
    if not spans:
        return ""
    colours = stage_colours(spans)
    rows = [
        [
            f'<span class="key box" style="--c:var(--c{colours[time.stage]})">'
            f"{escape(time.stage)}</span>",
            f"{time.calls:,}",
            f"{time.unfinished:,}",
            f"{time.lanes:,}",
            duration(time.busy_s),
            duration(time.busy_s / time.calls),
            f"{percent(time.idle_share)}{_share(time.idle_share)}",
        ]
        for time in stage_times(spans)
    ]
    heads = ["Stage", "Calls", "Not done", "Most at once", "Busy", "Mean call", "Idle"]
    return (
        "<section><h2>Where the time went</h2>"
        '<p class="lead">Busy is summed over the lanes of a stage, as many as it ever had calls at '
        "once. Idle is the share of those lanes&rsquo; wall time without a call: the bubble.</p>"
        f"{_table(heads, rows)}</section>"
    )


def _share(share: float) -> str:
    return f'<span class="share"><i style="width:{100 * share:.1f}%"></i></span>'


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay cells of HTML out; the first column is text, the others are numbers."""
    kinds = ["t", *("n" for _ in heads[1:])]
    head = "".join(
        f'<th scope="col" class="{kind}">{text}</th>'
        for kind, text in zip(kinds, heads, strict=True)
    )
    body = "".join(
        f'<tr><th scope="row" class="t">{row[0]}</th>'
        + "".join(f'<td class="n">{cell}</td>' for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def outcome_table(outcomes: Mapping[str, int]) -> str:
    """Count how trajectories ended; empty where none did."""
    if not outcomes:
        return ""
    total = sum(outcomes.values())
    rows = [
        [
            escape(name.lower().replace("_", " ")),
            f"{count:,}",
            f"{percent(count / total if total else 0.0)}{_share(count / total if total else 0.0)}",
        ]
        for name, count in outcomes.items()
    ]
    return (
        '<section class="slim"><h2>How trajectories ended</h2>'
        f"{_table(['Outcome', 'Trajectories', 'Share'], rows)}</section>"
    )


def _flat(value: Any, prefix: str = "") -> list[tuple[str, str]]:
    """List the leaves of nested mappings by dotted key."""
    if isinstance(value, Mapping) and value:
        return [leaf for key, inner in value.items() for leaf in _flat(inner, f"{prefix}{key}.")]
    return [(prefix.removesuffix("."), shorten(str(value), _MAX_TEXT))]


def _listing(caption: str, leaves: Sequence[tuple[str, str]]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(key)}</th><td>{escape(value)}</td></tr>'
        for key, value in leaves
    )
    return f"<table><caption>{escape(caption)}</caption><tbody>{rows}</tbody></table>"


def settings(config: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    """List the configuration, and what else the summary holds, by section."""
    plain = {key: value for key, value in config.items() if not isinstance(value, Mapping)}
    listings = [_listing("general", _flat(plain))] if plain else []
    listings += [
        _listing(key, _flat(value)) for key, value in config.items() if key not in plain and value
    ]
    rest = {key: value for key, value in summary.items() if key not in HEADLINE}
    if rest:
        listings.append(_listing("further results", _flat(rest)))
    if not listings:
        return ""
    return (
        f'<section><h2>Configuration</h2><div class="columns">{"".join(listings)}</div></section>'
    )


def metrics_table(metrics: Sequence[Mapping[str, float]]) -> str:
    """List the metrics by version, thinned to a length that can be read; it says so."""
    if not metrics:
        return ""
    names = ["version", "seconds", *metric_names(metrics)]
    every = math.ceil(len(metrics) / _MAX_ROWS)
    shown = metrics[::every]
    rows = [[number(row[name]) if name in row else "" for name in names] for row in shown]
    said = "all versions" if every == 1 else f"one version in {every} of {len(metrics):,}"
    return (
        f"<details><summary>Measurements as a table ({said})</summary>"
        f"{_table([escape(name) for name in names], rows)}</details>"
    )
