"""The page of a run: whole, escaped, and telling what it was given."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from rlgraph.report import write_report
from rlgraph.trace import Mark, Span

VOID = {"meta", "input", "br"}
ODD = "</script><script>alert(1)</script> \x00 \ud800 שלום 🧑‍🚀"


class Checker(HTMLParser):
    """Fails on a tag closed out of order; keeps scripts and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)


def span(stage: str, start_s: float, end_s: float, **changed: Any) -> Span:
    fields: dict[str, Any] = {
        "key": f"{stage}/3.1",
        "trajectory": "3.1",
        "domain": "maze",
        "outcome": "done",
        "version": 2,
        **changed,
    }
    return Span(stage=stage, start_s=start_s, end_s=end_s, **fields)


def rows(count: int, **values: float) -> list[dict[str, float]]:
    return [{"version": v, "seconds": 2.0 * v, **values} for v in range(1, count + 1)]


def page(
    tmp_path: Path,
    *,
    title: str = "run",
    config: Mapping[str, Any] | None = None,
    summary: Mapping[str, Any] | None = None,
    metrics: Sequence[Mapping[str, float]] = (),
    spans: Sequence[Span] = (),
    marks: Sequence[Mark] = (),
    graph_svg: str | None = None,
) -> tuple[str, str]:
    """Write a report; return its source and its text, both checked to be well formed."""
    path = tmp_path / "report.html"
    write_report(
        path,
        title=title,
        config=config or {},
        summary=summary or {},
        metrics=metrics,
        spans=spans,
        marks=marks,
        graph_svg=graph_svg,
    )
    source = path.read_text(encoding="utf-8")
    checker = Checker()
    checker.feed(source)
    checker.close()
    assert checker.open == []
    return source, re.sub(r"\s+", " ", " ".join(checker.words))


def test_an_empty_run_has_a_report(tmp_path: Path) -> None:
    _, text = page(tmp_path, title="nothing yet")
    assert "nothing yet 0 versions trained" in text.replace(
        "versions trained 0", "0 versions trained"
    )
    assert "Neither success nor reward was measured." in text
    assert "No call was recorded." in text


def test_the_headline_is_held_out_success_before_and_after(tmp_path: Path) -> None:
    summary = {
        "held_out_success_before": 0.338,
        "held_out_success_after": 0.672,
        "seconds": 192.4,
        "versions": 60,
        "outcomes": {"CONSUMED": 3_000, "STALE": 1_000},
    }
    _, text = page(tmp_path, summary=summary)
    assert "held-out success, +33.4 percentage points 33.8 % → 67.2 %" in text
    assert "versions trained 60" in text
    assert "wall time 3 min 12 s" in text
    assert "trajectories 4,000" in text


@pytest.mark.parametrize(
    ("summary", "said"),
    [
        ({"held_out_success_before": 0.25}, "held-out success before training 25.0 %"),
        ({"held_out_success_after": 0.5}, "held-out success after training 50.0 %"),
        ({"held_out_success_after": None}, "run versions trained 0"),
    ],
)
def test_half_a_headline_is_called_what_it_is(
    tmp_path: Path, summary: dict[str, float | None], said: str
) -> None:
    assert said in page(tmp_path, summary=summary)[1]


def test_a_failed_run_shows_its_root_cause(tmp_path: Path) -> None:
    _, text = page(tmp_path, summary={"error": "ValueError: action 'jump' is unknown"})
    assert "The run failed ValueError: action 'jump' is unknown" in text


def test_success_and_reward_have_a_chart_each_and_others_are_small(tmp_path: Path) -> None:
    metrics = rows(3, success=0.5, reward=1.5, loss=0.1, reply_tokens=7.0)
    source, text = page(tmp_path, metrics=metrics)
    learning, others = source.split("<h2>Measurements by version</h2>")
    assert re.findall(r"<figcaption><b>(.*?)</b>", learning) == ["Success", "Reward"]
    assert re.findall(r"<figcaption><b>(.*?)</b>", others) == ["loss", "reply"]
    assert "reply tokens" in text


def test_held_out_success_joins_the_curve_where_no_metric_holds_it(tmp_path: Path) -> None:
    summary = {"held_out_success_before": 0.25, "held_out_success_after": 0.75}
    source, _ = page(tmp_path, summary=summary, metrics=rows(4, success=0.5))
    assert "held out: 25.0 % at version 0, 75.0 % at version 4" in source


def test_measured_held_out_success_is_drawn_as_it_was_measured(tmp_path: Path) -> None:
    metrics = [*rows(3, success=0.5), {"version": 4, "seconds": 9.0, "held_out_success": 0.6}]
    source, _ = page(tmp_path, summary={"held_out_success_after": 0.6}, metrics=metrics)
    assert "held out success: 60.0 % at version 4, 60.0 % at version 4" in source
    assert "held out:" not in source


def test_success_above_one_is_a_count_and_not_a_share(tmp_path: Path) -> None:
    source, _ = page(tmp_path, metrics=rows(3, success=12.0))
    assert "success: 12 at version 1" in source


def test_a_long_curve_is_drawn_under_its_mean(tmp_path: Path) -> None:
    source, text = page(tmp_path, metrics=rows(40, reward=0.5, step_s=1.0))
    assert 'class="faint"' in source
    # One curve needs no key; the values under the pointer name both.
    assert "reward, mean of 5: 0.5" in source
    assert "step s" in text


def test_a_very_long_run_is_thinned_and_says_so(tmp_path: Path) -> None:
    _, text = page(tmp_path, metrics=rows(2_500, loss=0.5))
    assert "One version in 3 is drawn." in text
    assert "Measurements as a table (one version in 25 of 2,500)" in text


def test_a_metric_that_is_not_finite_or_missing_is_shown_as_such(tmp_path: Path) -> None:
    metrics = [*rows(1, loss=math.nan), {"version": 2, "seconds": 3.0, "kl": 0.5}]
    source, text = page(tmp_path, metrics=metrics)
    assert "no finite value" in text
    assert '<td class="n">n/a</td><td class="n"></td>' in source


def test_the_timeline_and_the_account_of_time_hold_every_stage(tmp_path: Path) -> None:
    spans = [
        span("generate", 0, 4),
        span("generate", 2, 6, outcome="failed"),
        span("step", 6, 8, trajectory=""),
    ]
    source, text = page(tmp_path, spans=spans, marks=[Mark(name="publish v3", at_s=8, version=3)])
    assert "generate: 2 lanes" in text
    cells = [re.sub("<.*?>", "", row) for row in re.findall(r"<tr>(.*?)</tr>", source)]
    assert cells == [
        "StageCallsNot doneMost at onceBusyMean callIdle",
        "generate2128 s4 s50.0 %",
        "step1012 s2 s75.0 %",
    ]


def test_outcomes_are_counted_with_their_share(tmp_path: Path) -> None:
    _, text = page(tmp_path, summary={"outcomes": {"CONSUMED": 3, "TIMED_OUT": 1}})
    assert "consumed 3 75.0 % timed out 1 25.0 %" in text


def test_outcomes_of_no_trajectory_have_no_share(tmp_path: Path) -> None:
    _, text = page(tmp_path, summary={"outcomes": {"CONSUMED": 0}})
    assert "consumed 0 0.0 %" in text


def test_the_configuration_is_listed_by_section(tmp_path: Path) -> None:
    config = {"seed": 1, "optim": {"lr": 3e-3, "schedule": {"warmup": 10}}, "empty": {}}
    _, text = page(tmp_path, config=config, summary={"parameters": 110_208})
    assert (
        "general seed 1 optim lr 0.003 schedule.warmup 10 further results parameters 110208" in text
    )


def test_an_endless_value_is_cut_and_says_how_long_it_was(tmp_path: Path) -> None:
    source, text = page(tmp_path, config={"prompt": "x" * 1_000_000})
    assert "… (1,000,000 characters)" in text
    assert len(source) < 100_000


def test_the_graph_is_drawn_where_there_is_one(tmp_path: Path) -> None:
    source, _ = page(tmp_path, graph_svg="<svg><title>graph</title></svg>")
    assert '<h2>The graph</h2><div class="graph"><svg><title>graph</title></svg></div>' in source


def test_no_text_can_become_markup(tmp_path: Path) -> None:
    source, text = page(
        tmp_path,
        title=ODD,
        config={ODD: ODD, "section": {ODD: ODD}},
        summary={"error": ODD, "outcomes": {ODD: 1}, ODD: ODD},
        metrics=rows(3, **{ODD: 1.0}),
        spans=[span(ODD, 0, 1, key=ODD, domain=ODD, trajectory=ODD)],
        marks=[Mark(name=ODD, at_s=0.5, version=1)],
    )
    assert "<script>alert(1)" not in source
    assert "alert(1)</script> \ufffd \ufffd שלום 🧑‍🚀" in text
    # The page's own script, and one of data for each chart and each view of the timeline.
    assert source.count("</script>") == 1 + 1 + 2


def test_the_page_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    source, _ = page(tmp_path, metrics=rows(3, loss=1.0), spans=[span("act", 0, 1)])
    assert re.findall(r"(?:src|href)=|url\(|@import|https?:", source) == []
    assert "default-src 'none'" in source


def test_a_new_report_replaces_the_old_one(tmp_path: Path) -> None:
    page(tmp_path, title="old")
    _, text = page(tmp_path, title="new")
    assert "old" not in text
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
