"""Curves of metrics by version."""

from __future__ import annotations

import json
import math
import re

import pytest

from rlgraph.report.charts import Series, chart, running_mean, thin


def curve(*ys: float, **changed: object) -> Series:
    fields: dict[str, object] = {"name": "loss", "points": tuple(enumerate(ys)), **changed}
    return Series(**fields)  # type: ignore[arg-type]


def paths(html: str, kind: str) -> list[str]:
    return re.findall(rf'<path class="{kind}"[^>]* d="([^"]*)"', html)


def hover(html: str) -> list[tuple[float, str]]:
    found = re.search(r'<script type="application/json">(.*)</script>', html)
    assert found
    return [(at, text) for at, text in json.loads(found[1])]


def test_a_curve_spans_the_plot_from_first_to_last_version() -> None:
    html = chart("loss", [curve(0.0, 4.0, 2.0)])
    assert paths(html, "line") == ["M0 1000L500 0L1000 500"]


def test_a_missing_value_breaks_the_line() -> None:
    html = chart("loss", [curve(0.0, 1.0, math.nan, 1.0, 0.0)])
    assert paths(html, "line") == ["M0 1000L250 0M750 0L1000 1000"]


def test_pointing_at_a_version_shows_every_value() -> None:
    html = chart("loss", [curve(0.25, math.nan), curve(3.0, 4.0, name="kl </script>")])
    assert hover(html) == [
        (0.0, "version 0\nloss: 0.25\nkl </script>: 3"),
        (1000.0, "version 1\nloss: n/a\nkl </script>: 4"),
    ]


def test_a_share_is_written_in_percent_on_the_whole_axis() -> None:
    html = chart("success", [curve(0.5, 0.75)], share=True)
    assert re.findall(r">(\d+ %)<", html) == ["0 %", "25 %", "50 %", "75 %", "100 %"]
    assert hover(html)[1] == (1000.0, "version 1\nloss: 75.0 %")


def test_a_chart_is_described_for_those_who_do_not_see_it() -> None:
    html = chart("Success", [curve(0.5, 0.75), curve(math.nan, math.nan, name="b")])
    assert (
        'aria-label="Success by version. loss: 0.5 at version 0, 0.75 at version 1; '
        'b: no finite value"' in html
    )


def test_one_version_is_drawn_as_a_dot_in_the_middle() -> None:
    html = chart("loss", [curve(0.5)])
    assert paths(html, "dot") == ["M500 500h0"]


def test_many_versions_have_no_dots() -> None:
    assert paths(chart("loss", [curve(*range(60))]), "dot") == []


def test_a_curve_behind_another_is_faint_and_has_no_key() -> None:
    html = chart("loss", [curve(1.0, 2.0, style="faint", name="raw"), curve(1.0, 1.5, name="mean")])
    assert len(paths(html, "faint")) == 1
    assert 'class="key line"' in html
    assert ">raw<" not in html


@pytest.mark.parametrize("points", [(), ((0.0, math.nan),)])
def test_a_chart_without_a_finite_value_says_so(points: tuple[tuple[float, float], ...]) -> None:
    html = chart("loss <", [curve(points=points)])
    assert "no finite value" in html
    assert "loss &lt;" in html


def test_a_running_mean_leaves_missing_values_out() -> None:
    means = running_mean([(0, math.nan), (1, 1.0), (2, 3.0)], 2)
    assert math.isnan(means[0][1])
    assert means[1:] == [(1, 1.0), (2, 2.0)]


def test_thinning_keeps_first_and_last() -> None:
    points = [(x, 0.0) for x in range(10)]
    assert [x for x, _ in thin(points, 4)] == [0, 3, 6, 9]
    assert [x for x, _ in thin(points, 3)] == [0, 4, 8, 9]
    assert thin([], 3) == ()
