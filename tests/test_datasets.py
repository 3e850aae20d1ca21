"""Prompts from a file: what is taken, and how a bad line is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlgraph.rl.datasets import DatasetError, read_prompts
from rlgraph.rl.records import Prompt


def written(tmp_path: Path, *lines: bytes) -> Path:
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(b"\n".join(lines))
    return path


def test_every_key_of_a_prompt_is_read(tmp_path: Path) -> None:
    row = {"id": "7", "text": "2+3=", "domain": "sums", "seed": 4, "answer": "5"}
    path = written(tmp_path, json.dumps(row).encode())
    assert list(read_prompts(path)) == [
        Prompt(id="7", text="2+3=", domain="sums", seed=4, answer="5")
    ]


def test_blank_lines_are_skipped_and_prompts_may_repeat(tmp_path: Path) -> None:
    path = written(tmp_path, b'{"id":"1"}', b"", b"  \r", b'{"id":"1"}', b"")
    assert list(read_prompts(path)) == [Prompt(id="1"), Prompt(id="1")]


def test_odd_text_is_kept(tmp_path: Path) -> None:
    odd = "\ud800 \x00 \u05e9 \U0001f600" + "x" * 1_000_000
    path = written(tmp_path, json.dumps({"id": "1", "text": odd}).encode())
    assert list(read_prompts(path)) == [Prompt(id="1", text=odd)]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"{", "not JSON"),
        (b'{"id": "\xff"}', "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'["1"]', "expected an object, got"),
        (b'{"id": 2}', "'id' must be text, got 2"),
        (b'{"id": "1", "text": 5}', "'text' must be text, got 5"),
        (b'{"id": "1", "text": null}', "'text' must be text, got None"),
        (b'{"id": "1", "text": ["a"]}', "'text' must be text, got"),
        (b'{"id": "1", "seed": "4"}', "'seed' must be a whole number, got '4'"),
        (b'{"id": "1", "seed": true}', "'seed' must be a whole number, got True"),
        (b'{"id": "1", "seed": -1}', "'seed' must be >= 0, got -1"),
        (b'{"id": "1", "txet": "a"}', "unknown key 'txet'; did you mean 'text'?"),
        (b'{"text": "a"}', "'id' is missing"),
    ],
)
def test_a_bad_line_is_named_by_file_and_number(
    line: bytes, complaint: str, tmp_path: Path
) -> None:
    path = written(tmp_path, b'{"id": "1"}', b"", line)
    prompts = read_prompts(path)
    assert next(prompts) == Prompt(id="1")
    with pytest.raises(DatasetError) as caught:
        next(prompts)
    assert str(caught.value).startswith(f"{path}:3: {complaint}")
    assert "to mend:" in str(caught.value)


@pytest.mark.parametrize("lines", [(), (b"", b"")])
def test_an_empty_dataset_is_said_to_be_empty(lines: tuple[bytes, ...], tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="holds no prompt"):
        list(read_prompts(written(tmp_path, *lines)))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"nope.jsonl' cannot be read: No such file"):
        list(read_prompts(tmp_path / "nope.jsonl"))
