"""What tests of declarations share: a source, and the problems that declaring raises."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from rlgraph.errors import GraphError, Problem
from rlgraph.graph import Graph, Stream


def read() -> list[int]:
    return [1]


def here(lines_below: int = 0) -> str:
    """Return the place of a line of the caller, as a declaration there is reported."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return f"{frame.f_back.f_code.co_filename}:{frame.f_back.f_lineno + lines_below}"


def problems(graph: Graph) -> list[Problem]:
    with pytest.raises(GraphError) as caught:
        graph.check()
    return list(caught.value.problems)


def problem(graph: Graph) -> Problem:
    (found,) = problems(graph)
    return found


def refused(declare: Callable[[], object]) -> Problem:
    """Return the one problem that declaring raises at once, in the file that declares."""
    with pytest.raises(GraphError) as caught:
        declare()
    (found,) = caught.value.problems
    assert found.where.startswith(f"{declare.__code__.co_filename}:")
    return found


def told(declare: Callable[[], object]) -> tuple[str, str]:
    found = refused(declare)
    return found.what, found.mend


def collected(declare: Callable[[Stream[int]], Stream[Any]]) -> list[tuple[str, str]]:
    """Return what and how to mend of the problems that only ``check`` reports."""
    graph = Graph("g")
    declare(graph.source(read)).collect("out")
    try:
        graph.check()
    except GraphError as error:
        return [(found.what, found.mend) for found in error.problems]
    return []
