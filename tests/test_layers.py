"""Who may import whom (the design's table), and what ``import rlgraph`` must not pull in."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {
    "rlgraph": ROOT / "src" / "rlgraph",
    "rlgraph.executors": ROOT / "executors",
    "rlgraph.graphs": ROOT / "graphs",
}
MAY_IMPORT = {
    "core": {"core"},
    "rl": {"core", "rl"},
    "llm": {"core", "rl", "llm"},
    "envs": {"core", "rl", "envs"},
    "experience": {"core", "rl", "experience"},
    "sparse": {"core", "sparse"},
    "executors": {"core"},
    "graphs": {"core", "rl", "llm", "envs", "experience", "sparse", "graphs"},
}
"""An executor may also import what lies in its own sub-package."""


def modules() -> dict[str, Path]:
    found = {}
    for package, folder in FOLDERS.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            found[".".join((package, *parts)).removesuffix(".__init__")] = path
    return found


MODULES = modules()


def room(module: str) -> str:
    part = module.removeprefix("rlgraph").lstrip(".").partition(".")[0]
    return part if part in MAY_IMPORT else "core"


def imports(module: str, statements: Iterator[ast.AST]) -> Iterator[str]:
    """Yield the modules of this library that the statements name."""
    is_package = MODULES[module].name == "__init__.py"
    for node in statements:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")[: len(module.split(".")) - node.level + is_package]
            base = ".".join([*(above if node.level else []), *filter(None, [node.module])])
            names = [f"{base}.{alias.name}" for alias in node.names]
            names = [name if name in MODULES else base for name in names]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] == "rlgraph")


def run_at_import(nodes: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the statements that importing the module runs: no functions, no type checking."""
    for node in nodes:
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from run_at_import(node.orelse)
        elif isinstance(node, (ast.If, ast.Try, ast.With, ast.ClassDef)):
            inner = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt)]
            yield from run_at_import(inner)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_its_room_may(module: str) -> None:
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    own = ".".join(module.split(".")[:3])
    wrong = [
        name
        for name in imports(module, ast.walk(tree))
        if room(name) not in MAY_IMPORT[room(module)] and not f"{name}.".startswith(f"{own}.")
    ]
    assert wrong == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    edges = {
        module: set(imports(module, run_at_import(ast.parse(path.read_text("utf-8")).body)))
        for module, path in MODULES.items()
    }
    graphlib.TopologicalSorter(edges).prepare()


def test_no_file_is_over_500_lines() -> None:
    folders = [*FOLDERS.values(), ROOT / "tests", ROOT / "benchmarks"]
    files = [path for folder in folders for path in folder.rglob("*.py")]
    long = [str(p.relative_to(ROOT)) for p in files if p.read_text("utf-8").count("\n") > 500]
    assert long == []


def test_importing_the_library_pulls_in_nothing_heavy() -> None:
    heavy = "torch dask distributed transformers accelerate networkx omegaconf gymnasium yaml rich"
    code = f"import sys, rlgraph; print(sorted(set({heavy.split()!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
