"""Maps as data: drawn from a seed, always with a way, and judged when given."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlgraph.envs.lake_map import draw_map, find, letter_at, moved, shortest_path, what_is_wrong


def test_the_shortest_path_goes_around_holes() -> None:
    assert shortest_path(("SHF", "FHF", "FFG")) == ("down", "down", "right", "right")


def test_a_map_behind_holes_has_no_path() -> None:
    assert shortest_path(("SH", "HG")) is None


def test_the_same_seed_draws_the_same_map() -> None:
    drawn = [draw_map(seed=7, size=4, frozen_probability=0.8) for _ in range(2)]
    assert drawn[0] == drawn[1]


def test_another_seed_draws_another_map() -> None:
    assert len({draw_map(seed=i, size=8, frozen_probability=0.8) for i in range(20)}) == 20


@settings(deadline=None)
@given(seed=st.integers(0, 2**63), size=st.integers(2, 6))
def test_every_drawn_map_can_be_played(seed: int, size: int) -> None:
    assert what_is_wrong(draw_map(seed=seed, size=size, frozen_probability=0.6)) == ""


@settings(deadline=None)
@given(seed=st.integers(0, 2**31))
def test_the_shortest_path_ends_on_the_goal(seed: int) -> None:
    rows = draw_map(seed=seed, size=5, frozen_probability=0.7)
    cell = find(rows, "S")
    for action in shortest_path(rows) or ():
        assert letter_at(rows, cell) != "H"
        cell = moved(cell, action)
    assert letter_at(rows, cell) == "G"


def test_drawing_gives_up_when_there_is_hardly_any_ice() -> None:
    with pytest.raises(ValueError, match=r"none of 10000 maps .* raise frozen_probability"):
        draw_map(seed=0, size=8, frozen_probability=0.01)


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        (("SF", "G"), "rows differ in length"),
        (("", ""), "rows differ in length or are empty"),
        (("SX", "FG"), r"letters other than S, F, H, G: \['X'\]"),
        (("SS", "FG"), "2 starts and 1 goals"),
        (("SF", "FF"), "1 starts and 0 goals"),
        (("SH", "HG"), "cannot be won"),
    ],
)
def test_a_map_that_cannot_be_played_is_explained(rows: tuple[str, ...], wrong: str) -> None:
    assert re.search(wrong, what_is_wrong(rows))


def test_nothing_is_beyond_the_edge() -> None:
    assert [letter_at(("SF", "FG"), cell) for cell in [(-1, 0), (0, -1), (2, 0), (0, 2)]] == [
        ""
    ] * 4


def test_looking_for_a_letter_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="needs a cell 'G'"):
        find(("SF",), "G")
