"""Metrics of a run, one line a version."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from rlgraph.jsonl import JsonLinesError
from rlgraph.metrics import MetricError, append_metrics, read_metrics, rewind_metrics


def written(path: Path, versions: range) -> Path:
    for version in versions:
        append_metrics(path, version=version, seconds=version / 2, values={"loss": 0.5**version})
    return path


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = written(tmp_path / "metrics.jsonl", range(3))
    assert read_metrics(path) == [
        {"version": 0, "seconds": 0.0, "loss": 1.0},
        {"version": 1, "seconds": 0.5, "loss": 0.5},
        {"version": 2, "seconds": 1.0, "loss": 0.25},
    ]


def test_a_run_without_metrics_reads_as_none(tmp_path: Path) -> None:
    assert read_metrics(tmp_path / "metrics.jsonl") == []


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_json_lacks_is_written_as_null_and_read_as_nan(tmp_path: Path, value: float) -> None:
    path = tmp_path / "metrics.jsonl"
    append_metrics(path, version=1, seconds=0.0, values={"loss": value})
    assert path.read_text() == '{"version":1,"seconds":0.0,"loss":null}\n'
    assert math.isnan(read_metrics(path)[0]["loss"])


@pytest.mark.parametrize("name", ["version", "seconds"])
def test_a_metric_named_like_a_fixed_field_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(MetricError, match=f"{name}.* of version 1 .*to mend: rename"):
        append_metrics(tmp_path / "m.jsonl", version=1, seconds=0.0, values={name: 1.0})


def test_a_number_too_large_for_a_float_is_written_as_null(tmp_path: Path) -> None:
    append_metrics(tmp_path / "m.jsonl", version=1, seconds=0.0, values={"loss": 10**400})
    assert math.isnan(read_metrics(tmp_path / "m.jsonl")[0]["loss"])


def test_rewinding_drops_later_versions_and_a_torn_line(tmp_path: Path) -> None:
    path = written(tmp_path / "metrics.jsonl", range(5))
    with path.open("a") as file:
        file.write('{"version":5,"sec')
    rewind_metrics(path, version=2)
    written(path, range(3, 4))
    assert [row["version"] for row in read_metrics(path)] == [0, 1, 2, 3]


def test_rewinding_a_run_that_wrote_nothing_makes_no_file(tmp_path: Path) -> None:
    rewind_metrics(tmp_path / "metrics.jsonl", version=2)
    assert list(tmp_path.iterdir()) == []


def test_a_file_changed_by_someone_else_is_not_rewound(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('oops\n{"version":1,"seconds":0.0}\n')
    with pytest.raises(JsonLinesError, match=":1: not a JSON object"):
        rewind_metrics(path, version=1)
    assert path.read_text().startswith("oops")
