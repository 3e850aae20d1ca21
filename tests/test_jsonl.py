"""Files of one JSON object a line."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from rlgraph.jsonl import JsonLinesError, mend_lines, read_lines, replace_lines, to_line

ODD = "lone \ud800, NUL \x00, RTL שלום, \u2028, 🧑‍🚀"


def test_odd_text_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_text(to_line({"text": ODD}) + to_line({"text": "x" * 1_000_000}))
    assert read_lines(path) == [{"text": ODD}, {"text": "x" * 1_000_000}]


def test_a_missing_file_has_no_lines(tmp_path: Path) -> None:
    assert read_lines(tmp_path / "none.jsonl") == []


@pytest.mark.parametrize("torn", ['{"a": 2', '{"a": 2}', "\x00\x00"])
def test_a_torn_last_line_is_dropped(tmp_path: Path, torn: str) -> None:
    path = tmp_path / "torn.jsonl"
    path.write_text(to_line({"a": 1}) + torn)
    assert read_lines(path) == [{"a": 1}]


@pytest.mark.parametrize("bad", [b"{", b"[1]", b"\xff", b""])
def test_another_unreadable_line_is_named(tmp_path: Path, bad: bytes) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b'{"a":1}\n' + bad + b'\n{"a":3}\n')
    with pytest.raises(JsonLinesError, match=r"bad\.jsonl:2: not a JSON object"):
        read_lines(path)


def test_a_mended_file_can_be_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "mend.jsonl"
    path.write_text('{"a":1}\n{"a":')
    mend_lines(path)
    with path.open("a") as file:
        file.write(to_line({"a": 2}))
    assert read_lines(path) == [{"a": 1}, {"a": 2}]


def test_mending_leaves_whole_and_missing_files_alone(tmp_path: Path) -> None:
    whole, missing = tmp_path / "whole.jsonl", tmp_path / "missing.jsonl"
    whole.write_text('{"a":1}\n')
    mend_lines(whole)
    mend_lines(missing)
    assert (whole.read_text(), missing.exists()) == ('{"a":1}\n', False)


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_number_that_json_lacks_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_line({"a": number})


def test_a_failed_replacement_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    path.write_text('{"a":1}\n')
    with pytest.raises(ValueError, match="not JSON compliant"):
        replace_lines(path, [{"a": 2}, {"a": math.nan}])
    assert read_lines(path) == [{"a": 1}]
