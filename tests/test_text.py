"""Text made safe to show."""

from __future__ import annotations

import pytest

from rlgraph.text import printable, said_by, shorten


@pytest.mark.parametrize("text", ["plain", "tab\tand\nline", "שלום עולם", "🧑‍🚀", "é", ""])
def test_text_that_can_be_shown_is_left_alone(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize("odd", ["\x00", "\x1b", "\r", "\x7f", "\x85", "\ud800", "\uffff"])
def test_what_cannot_be_shown_becomes_one_replacement_character(odd: str) -> None:
    assert printable(f"a{odd}b") == "a\ufffdb"


def test_printable_text_can_always_be_encoded() -> None:
    every = "".join(map(chr, range(0x11000)))
    assert printable(every).encode("utf-8").decode("utf-8") == printable(every)


def test_an_exception_that_raises_when_asked_still_says_something() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("mute")

    assert said_by(MuteError()) == "<exception str() failed>"


def test_short_text_is_not_cut() -> None:
    assert shorten("four", 4) == "four"


def test_cut_text_says_how_long_it_was() -> None:
    assert shorten("x" * 1_000_000, 2) == "xx… (1,000,000 characters)"
