"""How a report writes text, numbers and axes."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlgraph.report.text import (
    duration,
    embed,
    escape,
    instant,
    number,
    percent,
    ticks,
    time_ticks,
    title_of,
    unit_of,
)


def test_text_cannot_become_markup() -> None:
    assert escape("</script><b a=\"1\" c='2'>&\x00") == (
        "&lt;/script&gt;&lt;b a=&quot;1&quot; c=&#x27;2&#x27;&gt;&amp;\ufffd"
    )


def test_embedded_text_cannot_close_its_script_and_comes_back() -> None:
    value = ["</script><!--", "\u2028", "שלום"]
    text = embed(value)
    assert text.count("</script>") == 1
    inside = text.removeprefix('<script type="application/json">').removesuffix("</script>")
    assert "<" not in inside
    assert json.loads(inside) == value


@pytest.mark.parametrize("write", [number, percent, duration])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_is_said_to_be_missing(write: object, value: float) -> None:
    assert callable(write)
    assert write(value) == "n/a"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (-0.5, "-0.5"), (0.00012345, "0.000123"), (1e12, "1e+12"), (-1234.5, "-1,234")],
)
def test_a_number_has_the_digits_that_matter(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.99, "1 min"), (60, "1 min"), (61, "1 min 01 s"), (3600, "1 h"), (1, "1 s")],
)
def test_a_duration_has_the_unit_a_reader_would_choose(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_instants_a_fraction_of_a_second_apart_read_differently() -> None:
    assert [instant(122.25), instant(122.5)] == ["2 min 2.25 s", "2 min 2.5 s"]


@pytest.mark.parametrize(
    ("metric", "title", "unit"),
    [
        ("staleness", "staleness", "versions"),
        ("train/kl", "train: kl", "nats"),
        ("wait_s", "wait", "s"),
        ("reward", "reward", ""),
    ],
)
def test_a_metric_is_titled_in_words_with_its_unit(metric: str, title: str, unit: str) -> None:
    assert (title_of(metric), unit_of(metric)) == (title, unit)


bounded = st.floats(-1e9, 1e9).map(lambda x: round(x, 6))


@settings(deadline=None)
@given(bounded, bounded)
def test_ticks_enclose_the_data_in_few_equal_steps(a: float, b: float) -> None:
    low, high = min(a, b), max(a, b)
    at = ticks(low, high, count=4)
    margin = 1e-6 * (high - low)
    assert at[0] <= low + margin
    assert at[-1] >= high - margin
    assert 2 <= len(at) <= 7
    assert at == sorted(set(at))


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_whole_ticks_are_whole(a: int, b: int) -> None:
    at = ticks(min(a, b), max(a, b), count=6, whole=True)
    assert all(tick == int(tick) for tick in at)


@settings(deadline=None)
@given(
    st.integers(0, 10**9).map(lambda ms: ms / 1000), st.integers(1, 10**9).map(lambda ms: ms / 1000)
)
def test_time_ticks_lie_within_the_axis(start: float, wall: float) -> None:
    at = time_ticks(start, start + wall, count=6)
    assert len(at) <= 8
    assert all(start <= tick <= start + wall for tick in at)


def test_a_run_longer_than_the_clock_knows_still_has_ticks() -> None:
    assert time_ticks(0, 10_000_000, count=6) == [0, 2e6, 4e6, 6e6, 8e6, 1e7]
