"""README and the pages of docs are true: their code runs, and prints what the page says."""

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield each block of Python, with the block of text that follows it as its output."""
    fenced = re.findall(r"^```(\w+)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    for (kind, code), (next_kind, output) in zip(fenced, [*fenced[1:], ("", "")], strict=True):
        if kind == "python":
            yield code, output if next_kind == "text" else ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_page_prints_what_the_page_shows(page: Path) -> None:
    names: dict[str, Any] = {"__name__": "pipeline"}
    for code, output in blocks(page.read_text(encoding="utf-8")):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "pipeline.py", "exec", dont_inherit=True), names)
        assert printed.getvalue() == output


def test_there_is_a_page_about_writing_a_graph() -> None:
    assert "write_a_graph" in [page.stem for page in PAGES]
