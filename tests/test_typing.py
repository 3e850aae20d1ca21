"""Wrong graphs are flagged by mypy, by pyright and when declared: all three on the same line.

A line of ``tests/typing`` that a checker must flag ends in ``# E: CHECKER: part of its message``.
"""

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rlgraph.errors import GraphError
from rlgraph.graph import Graph

ROOT = Path(__file__).parents[1]
FOLDER = Path(__file__).parent / "typing"
WRONG = sorted(FOLDER.glob("wrong_*.py"))
RIGHT = sorted(FOLDER.glob("right_*.py"))

Flagged = dict[tuple[str, int], str]


def expected(checker: str) -> Flagged:
    flagged = {}
    for path in WRONG + RIGHT:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for name, part in re.findall(r"# E: (\w+): (.*?)(?= # E: |$)", line):
                if name == checker:
                    flagged[path.name, number] = part
    return flagged


def output(*command: str) -> str:
    python = (sys.executable, "-m", *command, str(FOLDER.relative_to(ROOT)))
    done = subprocess.run(python, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr + done.stdout
    return done.stdout


def flagged_by_mypy() -> Flagged:
    said = [json.loads(line) for line in output("mypy", "--output", "json").splitlines()]
    return {
        (Path(each["file"]).name, each["line"]): each["message"]
        for each in said
        if each["severity"] == "error" and (ROOT / each["file"]).parent == FOLDER
    }


def flagged_by_pyright() -> Flagged:
    said = json.loads(output("pyright", "--outputjson", "--pythonpath", sys.executable))
    return {
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1): each["message"]
        for each in said["generalDiagnostics"]
    }


@pytest.mark.parametrize(
    ("checker", "flagged_by"), [("mypy", flagged_by_mypy), ("pyright", flagged_by_pyright)]
)
def test_a_type_checker_flags_the_wrong_lines_and_no_other(
    checker: str, flagged_by: Callable[[], Flagged]
) -> None:
    parts, messages = expected(checker), flagged_by()
    # Where the message holds the part that is expected, the part stands for it.
    told = {
        place: part if (part := parts.get(place, message)) in message else message
        for place, message in messages.items()
    }
    assert told == parts


def declared(path: Path) -> None:
    """Declare the graph of the file, and check it as a run would."""
    spec = importlib.util.spec_from_file_location(f"wrong_graphs_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    graph = Graph(path.stem)
    module.declare(graph)
    graph.check()


@pytest.mark.parametrize("path", WRONG, ids=lambda path: path.stem)
def test_a_wrong_graph_is_refused_when_declared_on_the_line_that_checkers_flag(path: Path) -> None:
    ((_, line),) = [place for place in expected("mypy") if place[0] == path.name]
    with pytest.raises(GraphError) as caught:
        declared(path)
    assert [problem.where for problem in caught.value.problems] == [f"{path}:{line}"]


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.stem)
def test_a_right_graph_is_taken(path: Path) -> None:
    declared(path)


def test_every_wrong_graph_says_what_each_checker_must_flag() -> None:
    names = {path.name for path in WRONG}
    assert {name for name, _ in expected("mypy")} == names
    assert {name for name, _ in expected("pyright")} == names
