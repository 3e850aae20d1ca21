"""Graph files: found by name or path, and what is said of one that is wrong."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlgraph.errors import GraphError, RlgraphError
from rlgraph.session.graphfile import GraphFileError, load_graph_file, of_the_user

GOOD = """
from dataclasses import dataclass
@dataclass
class Config:
    n: int = 3
def build(config):
    return config.n
"""


@pytest.fixture(autouse=True)
def own_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    for name in ("mine", "beside"):
        sys.modules.pop(name, None)


def written(tmp_path: Path, text: str, name: str = "mine.py") -> str:
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def test_a_file_is_loaded_by_its_path(tmp_path: Path) -> None:
    module = load_graph_file(written(tmp_path, GOOD))
    assert module.build(module.Config()) == 3


def test_a_shipped_graph_is_loaded_by_its_name() -> None:
    assert load_graph_file("agentic_grpo").__name__ == "rlgraph.graphs.agentic_grpo"


def test_a_file_may_import_what_lies_beside_it(tmp_path: Path) -> None:
    written(tmp_path, "n = 5", "beside.py")
    module = load_graph_file(written(tmp_path, f"from beside import n\n{GOOD}"))
    assert module.n == 5


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("def build(config): ...", "has no dataclass 'Config'"),
        ("Config = 3\ndef build(config): ...", "has no dataclass 'Config'"),
        ("class Config: ...\ndef build(config): ...", "has no dataclass 'Config'"),
        (GOOD.replace("def build", "def biuld"), "has no function 'build'"),
    ],
)
def test_a_file_without_config_or_build_is_refused(
    text: str, complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(GraphFileError, match=complaint):
        load_graph_file(written(tmp_path, text))


def test_a_syntax_error_is_named_by_file_and_line(tmp_path: Path) -> None:
    name = written(tmp_path, "x = 1\nif x\n")
    with pytest.raises(GraphFileError) as caught:
        load_graph_file(name)
    assert str(caught.value).startswith(f"graph file {name}:2: expected ':'")
    assert caught.value.__cause__ is None


def test_what_a_file_raises_is_the_cause_with_the_files_lines_alone(tmp_path: Path) -> None:
    name = written(tmp_path, "def f():\n    return 1 / 0\nf()\n")
    with pytest.raises(GraphFileError, match="cannot be imported: division by zero") as caught:
        load_graph_file(name)
    cause = caught.value.__cause__
    assert cause is not None
    frames = traceback.extract_tb(of_the_user(cause).__traceback__)
    assert [(frame.filename, frame.lineno) for frame in frames] == [(name, 3), (name, 2)]


def test_an_error_of_the_library_stays_as_it_is(tmp_path: Path) -> None:
    text = "from rlgraph.errors import GraphError\nraise GraphError('wrong', [])"
    with pytest.raises(GraphError, match="wrong"):
        load_graph_file(written(tmp_path, text))


def test_an_error_within_the_library_keeps_its_traceback() -> None:
    with pytest.raises(GraphFileError) as caught:
        load_graph_file("nope.py")
    frames = caught.value.__traceback__
    assert frames is not None
    own = caught.value.with_traceback(frames.tb_next)
    assert of_the_user(own).__traceback__ is frames.tb_next


@pytest.mark.parametrize("name", ["nope.py", "tests", "."])
def test_no_such_file_is_said(name: str) -> None:
    with pytest.raises(GraphFileError, match="no graph"):
        load_graph_file(name)


def test_a_folder_is_no_graph_file(tmp_path: Path) -> None:
    (tmp_path / "folder.py").mkdir()
    with pytest.raises(GraphFileError, match="no graph file"):
        load_graph_file(str(tmp_path / "folder.py"))


def test_a_file_named_like_a_module_of_python_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GraphFileError, match="to mend: rename it"):
        load_graph_file(written(tmp_path, GOOD, "queue.py"))


def test_a_slip_in_a_name_is_mended() -> None:
    with pytest.raises(RlgraphError, match="'agentic_grop'; did you mean 'agentic_grpo'"):
        load_graph_file("agentic_grop")
