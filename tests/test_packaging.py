"""What a stranger gets from the wheel and the sdist: every module, in its place, importable."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINKED = {"executors": "rlgraph/executors", "graphs": "rlgraph/graphs", "src": ""}
"""Folder of the repository and where it lies in the wheel."""
SHIPPED = {".py", ".typed", ".yaml", ".json"}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def run(*command: str, cwd: Path, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, *command], cwd=cwd, env=os.environ | env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def expected_files() -> set[str]:
    paths = {
        (Path(inside) / path.relative_to(ROOT / folder)).as_posix()
        for folder, inside in LINKED.items()
        for path in (ROOT / folder).rglob("*")
        if path.suffix in SHIPPED
    }
    return {path for path in paths if ".egg-info" not in path}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("built")
    ignore = shutil.ignore_patterns(".*", "runs", "build", "dist", "__pycache__", "*.egg-info")
    shutil.copytree(ROOT, folder / "tree", symlinks=True, ignore=ignore)
    run("-m", "build", "--no-isolation", "--outdir", str(folder), cwd=folder / "tree")
    return folder


def test_the_wheel_holds_every_module_and_data_file(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert sorted(expected_files() - names) == []
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {
        "rlgraph",
        "rlgraph_flow",
    }


def test_the_sdist_holds_files_and_no_links(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        members = {m.name.partition("/")[2]: m for m in archive.getmembers()}
    assert sorted({f"src/{name}" for name in expected_files()} - members.keys()) == []
    assert [name for name, m in members.items() if m.issym() or m.islnk()] == []
    assert {"setup.cfg", "pyproject.toml", "LICENSE"} <= members.keys()


def test_the_installed_wheel_imports(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    target = built / "installed"
    pip = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(target))
    run(*pip, str(wheel), cwd=built)
    code = "import rlgraph, rlgraph.executors, rlgraph.graphs; print(rlgraph.__path__[0])"
    shown = run("-c", code, cwd=built, PYTHONPATH=str(target))
    assert Path(shown.strip()) == target / "rlgraph"
