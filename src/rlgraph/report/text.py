"""How a report writes text, numbers and axes; knows nothing of runs."""

from __future__ import annotations

import html
import json
import math
from typing import Any

from rlgraph.text import printable

_UNITS = {"_s": "s", "_bytes": "bytes", "_flops": "FLOPs", "_tokens": "tokens"}
_NAMED_UNITS = {"staleness": "versions", "entropy": "nats", "kl": "nats"}

CLOCK_STEPS = (15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
"""Seconds between the ticks of a longer time axis."""


def escape(value: object) -> str:
    """Write any value as HTML text that cannot become markup; see ``printable``."""
    return html.escape(printable(str(value)))


def embed(value: Any) -> str:
    """Write a value as JSON inside a script element, which no text can close."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return f'<script type="application/json">{text.replace("<", chr(92) + "u003c")}</script>'


def number(value: float) -> str:
    """Write a number with at most four digits that matter, thousands apart.

    >>> number(12345.6), number(0.123456), number(3.0), number(0.0000123)
    ('12,346', '0.1235', '3', '1.23e-05')
    """
    if not math.isfinite(value):
        return "n/a"
    if abs(value) >= 1000:
        return f"{value:,.0f}" if abs(value) < 1e9 else f"{value:.3g}"
    return f"{value:.4g}" if value == 0 or abs(value) >= 1e-3 else f"{value:.3g}"


def percent(share: float) -> str:
    """Write a share of 0 to 1 in percent.

    >>> percent(0.3412), percent(1.0)
    ('34.1 %', '100.0 %')
    """
    return f"{100 * share:.1f} %" if math.isfinite(share) else "n/a"


def duration(seconds: float) -> str:
    """Write seconds in the unit that a reader would choose.

    >>> [duration(s) for s in (0.00002, 0.012, 3.21, 192.4, 7500.0)]
    ['20 µs', '12 ms', '3.21 s', '3 min 12 s', '2 h 05 min']
    """
    if not math.isfinite(seconds):
        return "n/a"
    if seconds < 1e-3:
        return f"{1e6 * seconds:.3g} µs" if seconds > 0 else "0 s"
    if seconds < 1:
        return f"{1e3 * seconds:.3g} ms"
    if seconds < 59.95:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min" + (f" {whole % 60:02} s" if whole % 60 else "")
    minutes = whole % 3600 // 60
    return f"{whole // 3600} h" + (f" {minutes:02} min" if minutes else "")


def instant(seconds: float) -> str:
    """Write a point in time in full, as its axis needs it.

    >>> [instant(s) for s in (0.0, 0.25, 2.655, 122.5, 7200.0)]
    ['0 s', '250 ms', '2.655 s', '2 min 2.5 s', '2 h']
    """
    if seconds < 60:
        return duration(seconds) if seconds < 1 else f"{seconds:.9g} s"
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    parts = ((hours, "h"), (minutes, "min"), (rest, "s"))
    return " ".join(f"{amount:.9g} {unit}" for amount, unit in parts if amount)


def unit_of(metric: str) -> str:
    """Return the unit of a metric as its name tells it; empty where it has none.

    >>> unit_of("step_s"), unit_of("train/entropy"), unit_of("loss")
    ('s', 'nats', '')
    """
    for suffix, unit in _UNITS.items():
        if metric.endswith(suffix):
            return unit
    words = metric.replace("/", "_").split("_")
    return next((unit for word, unit in _NAMED_UNITS.items() if word in words), "")


def title_of(metric: str) -> str:
    """Write the name of a metric in words, its unit left out.

    >>> title_of("reply_tokens"), title_of("train/grad_norm")
    ('reply', 'train: grad norm')
    """
    for suffix in _UNITS:
        metric = metric.removesuffix(suffix)
    return metric.replace("/", ": ").replace("_", " ")


def ticks(low: float, high: float, *, count: int, whole: bool = False) -> list[float]:
    """Choose round values from at most ``low`` to at least ``high``, about ``count`` of them.

    With ``whole`` they are integers. The two ends are the axis.

    >>> ticks(0.0, 0.83, count=4)
    [0.0, 0.25, 0.5, 0.75, 1.0]
    >>> ticks(0, 3, count=6, whole=True)
    [0.0, 1.0, 2.0, 3.0]
    """
    if high <= low:
        margin = 1.0 if whole else abs(low) / 10 or 1.0
        low, high = low - margin, high + margin
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= rough * 0.999)
    if whole:
        step = max(1.0, round(step))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    digits = max(0, 2 - math.floor(math.log10(step)))
    return [round(index * step, digits) + 0.0 for index in range(first, last + 1)]


def time_ticks(low_s: float, high_s: float, *, count: int) -> list[float]:
    """Choose instants between two that a clock would show, about ``count`` of them.

    >>> time_ticks(0.0, 250.0, count=6)
    [0.0, 60.0, 120.0, 180.0, 240.0]
    """
    rough = (high_s - low_s) / count
    step = next((s for s in CLOCK_STEPS if s >= rough * 0.999), 0) if rough > 10 else 0
    if not step:
        return [tick for tick in ticks(low_s, high_s, count=count) if low_s <= tick <= high_s]
    return [float(step * n) for n in range(math.ceil(low_s / step), math.floor(high_s / step) + 1)]
