"""What a run shows while it goes on: lines in a pipe, a live table on a terminal."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest
from rich.console import Console

from rlgraph.session.progress import Progress


def console(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=80, height=40)


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that the progress reads; tests set the first."""
    now = [100.0]
    monkeypatch.setattr("rlgraph.session.progress.time.monotonic", lambda: now[0])
    return now


def test_lines_stand_one_below_the_other_where_there_is_no_terminal(clock: list[float]) -> None:
    pipe = console(terminal=False)
    with Progress(3, pipe) as progress:
        progress.phase("preparing")
        progress.measured({"warm_[bold]loss": 0.123456})
        clock[0] = 102.0
        progress.progress({"consumed": 3}, {"step": 1})
        progress.version(1, {"loss": 9.0, "reward": 0.25, "entropy": 1.0})
    assert shown(pipe) == (
        "preparing ...\n  warm_[bold]loss: 0.1235\nversion 1/3  2 s  reward 0.250  entropy 1.000\n"
    )


@pytest.mark.usefixtures("clock")
def test_metrics_without_a_column_of_their_own_are_shown_where_there_are_no_others() -> None:
    pipe = console(terminal=False)
    with Progress(None, pipe) as progress:
        progress.version(7, dict.fromkeys("abcdef", 0.5))
    assert shown(pipe) == "version 7  0 s  a 0.500  b 0.500  c 0.500  d 0.500\n"


@pytest.mark.usefixtures("clock")
def test_a_long_line_is_not_broken() -> None:
    pipe = console(terminal=False)
    with Progress(None, pipe) as progress:
        progress.measured({"x" * 200: 1.0})
    assert shown(pipe) == f"  {'x' * 200}: 1\n"


@pytest.mark.usefixtures("clock")
def test_a_terminal_shows_a_table_of_versions_and_what_goes_on() -> None:
    terminal = console(terminal=True)
    with Progress(3, terminal) as progress:
        progress.phase("training")
        progress.progress({"consumed": 0}, {"generate": 5, "act": 4})
        progress.version(1, {"reward": 0.25})
    text = shown(terminal)
    assert "trajectories: none has left; calls now: 5 generate, 4 act" in text
    assert "│     1/3 │       0 │  0.250 │" in text


def test_what_goes_on_is_drawn_twice_a_second_at_most(clock: list[float]) -> None:
    terminal = console(terminal=True)
    with Progress(None, terminal) as progress:
        for clock[0] in (101.0, 101.2, 101.4, 101.5):
            progress.progress({"consumed": int(clock[0] * 10)}, {})
    assert [n for n in (1010, 1012, 1014, 1015) if f" {n} consumed" in shown(terminal)] == [
        1010,
        1015,
    ]


@pytest.mark.usefixtures("clock")
def test_the_next_phase_stands_below_the_table() -> None:
    terminal = console(terminal=True)
    with Progress(3, terminal) as progress:
        progress.version(1, {"reward": 0.25})
        progress.phase("evaluating")
    last_table, last_phase = (shown(terminal).rindex(text) for text in ("0.250", "evaluating"))
    assert last_table < last_phase


@pytest.mark.usefixtures("clock")
def test_the_table_keeps_the_newest_versions() -> None:
    terminal = console(terminal=True)
    with Progress(None, terminal) as progress:
        for version in range(1, 31):
            progress.version(version, {"reward": 0.25})
    last = shown(terminal).rpartition("┏")[2]
    assert [n for n in range(1, 31) if f" {n} │       0 │" in last] == list(range(19, 31))


@pytest.mark.usefixtures("clock")
def test_the_name_of_a_metric_is_no_markup() -> None:
    terminal = console(terminal=True)
    with Progress(None, terminal) as progress:
        progress.version(1, {"[/easy]": 0.25, "[red]hard": 0.5})
    assert "[/easy]" in shown(terminal)
    assert "[red]hard" in shown(terminal)


def test_a_run_goes_on_when_nobody_reads_it_any_more() -> None:
    code = (
        "import sys; from rlgraph.session.progress import Progress\n"
        "with Progress(None) as progress:\n"
        "    for number in range(3): progress.version(number, {})\n"
        "print('to whom?', flush=True); sys.exit(7)"
    )
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [sys.executable, "-c", code], stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (7, b"")
