"""Shows a run on the terminal: a live table where there is one, plain lines where there is not."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from rlgraph.text import printable

SHOWN = ("reward", "entropy", "staleness_mean", "trajectory_tokens")
"""Metrics with a column of their own, else the first few; all of them are in ``metrics.jsonl``."""
_ROWS = 12
_REFRESH_S = 0.5


class Screen(Console):
    """Standard output; silent from when nobody reads it any more, as in ``| head -2``."""

    def on_broken_pipe(self) -> None:
        """Turn silent instead of ending the process."""
        with suppress(SystemExit):
            super().on_broken_pipe()


class Progress:
    """A ``Show`` on a terminal."""

    def __init__(self, versions: int | None, console: Console | None = None) -> None:
        self._console = console or Screen()
        self._of = "" if versions is None else f"/{versions}"
        self._rows: list[tuple[int, float, Mapping[str, float]]] = []
        self._begun_s = time.monotonic()
        self._drawn_s = 0.0
        self._status = ""
        self._live: Live | None = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *details: object) -> None:
        self._settle()

    def phase(self, text: str) -> None:
        """Say what is being done now."""
        self._settle()
        self._line(f"{text} ...")

    def measured(self, metrics: Mapping[str, float]) -> None:
        """Show what a phase measured."""
        for name, value in metrics.items():
            self._line(f"  {name}: {value:.4g}")

    def version(self, version: int, metrics: Mapping[str, float]) -> None:
        """Show a new version."""
        seconds = time.monotonic() - self._begun_s
        self._rows.append((version, seconds, metrics))
        if not self._console.is_terminal:
            shown = "  ".join(f"{name} {metrics[name]:.3f}" for name in _columns(metrics))
            self._line(f"version {version}{self._of}  {seconds:.0f} s  {shown}".rstrip())
        self._draw()

    def progress(self, exits: Mapping[str, int], calls: Mapping[str, int]) -> None:
        """Show how many trajectories have left in which way, and the calls since a version."""
        now_s = time.monotonic()
        if now_s - self._drawn_s >= _REFRESH_S:
            self._drawn_s = now_s
            left, made = (", ".join(f"{n} {k}" for k, n in m.items() if n) for m in (exits, calls))
            self._status = f"trajectories: {left or 'none has left'}; calls now: {made}"
            self._draw()

    def _line(self, text: str) -> None:
        # As it stands: no markup in the names of others, no breaking of what a program may read.
        self._console.print(printable(text), markup=False, highlight=False, soft_wrap=True)

    def _draw(self) -> None:
        if not self._console.is_terminal:
            return
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
        shown = [self._table()] if self._rows else []
        status = [Text(printable(self._status))] if self._status else []
        self._live.update(Group(*shown, *status), refresh=True)

    def _settle(self) -> None:
        """Leave on the screen what is live; what follows stands below it."""
        if self._live is not None:
            self._status = ""
            self._draw()
            self._live.stop()
            self._live = None

    def _table(self) -> Table:
        table = Table()
        columns = _columns(self._rows[-1][2])
        for name in ("version", "seconds", *columns):
            table.add_column(Text(printable(name)), justify="right")
        for version, seconds, metrics in self._rows[-_ROWS:]:
            values = (f"{metrics[name]:.3f}" if name in metrics else "" for name in columns)
            table.add_row(f"{version}{self._of}", f"{seconds:.0f}", *values)
        return table


def _columns(metrics: Mapping[str, float]) -> list[str]:
    return [name for name in SHOWN if name in metrics] or list(metrics)[: len(SHOWN)]
