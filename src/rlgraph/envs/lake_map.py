"""Maps of FrozenLake as pure data: drawn from a seed, read, and searched for a way. No game.

A map is a tuple of rows of the letters S (start), F (ice), H (hole), G (goal).
"""

from __future__ import annotations

import random
from collections import deque
from typing import TypeAlias

LakeMap: TypeAlias = tuple[str, ...]
Cell: TypeAlias = tuple[int, int]
"""(row, column), from the upper left."""

MOVES: dict[str, Cell] = {"left": (0, -1), "down": (1, 0), "right": (0, 1), "up": (-1, 0)}
"""Change of the cell by each action, in gymnasium's order of actions."""

NAMES = {"S": "ice", "F": "ice", "H": "hole", "G": "goal"}
"""What a player sees of each letter."""

MAX_DRAWS = 10_000


def letter_at(rows: LakeMap, cell: Cell) -> str:
    """Return the letter of a cell, or an empty string beyond the edge."""
    row, column = cell
    inside = 0 <= row < len(rows) and 0 <= column < len(rows[row])
    return rows[row][column] if inside else ""


def find(rows: LakeMap, letter: str) -> Cell:
    """Return the first cell with this letter. Raises ValueError when there is none."""
    for row, text in enumerate(rows):
        if letter in text:
            return row, text.index(letter)
    raise ValueError(f"a map needs a cell {letter!r}; got rows {rows!r}")


def moved(cell: Cell, action: str) -> Cell:
    """Return the cell that ``action`` leads to, whatever is there."""
    row, column = MOVES[action]
    return cell[0] + row, cell[1] + column


def shortest_path(rows: LakeMap) -> tuple[str, ...] | None:
    """Return the shortest safe actions from start to goal, or None when there is no way.

    >>> shortest_path(("SF", "HG"))
    ('right', 'down')
    """
    start = find(rows, "S")
    paths: dict[Cell, tuple[str, ...]] = {start: ()}
    queue = deque([start])
    while queue:
        cell = queue.popleft()
        if letter_at(rows, cell) == "G":
            return paths[cell]
        for action in MOVES:
            following = moved(cell, action)
            if letter_at(rows, following) in {"F", "G"} and following not in paths:
                paths[following] = (*paths[cell], action)
                queue.append(following)
    return None


def draw_map(*, seed: int, size: int, frozen_probability: float) -> LakeMap:
    """Draw a map that can be won: each cell is ice with ``frozen_probability``, else a hole.

    Same distribution as gymnasium's ``generate_random_map``, which never gives up.
    Raises ValueError after MAX_DRAWS maps without a way.
    """
    rng = random.Random(seed)
    for _ in range(MAX_DRAWS):
        cells = ["F" if rng.random() < frozen_probability else "H" for _ in range(size * size)]
        cells[0], cells[-1] = "S", "G"
        rows = tuple("".join(cells[i : i + size]) for i in range(0, size * size, size))
        if shortest_path(rows) is not None:
            return rows
    raise ValueError(
        f"draw_map: none of {MAX_DRAWS} maps of size {size!r} could be won; raise "
        f"frozen_probability (now {frozen_probability!r})"
    )


def what_is_wrong(rows: LakeMap) -> str:
    """Say why a map cannot be played, or return an empty string."""
    if len({len(row) for row in rows}) != 1 or not rows[0]:
        return f"its rows differ in length or are empty: {rows!r}"
    letters = "".join(rows)
    if strange := sorted(set(letters) - set(NAMES)):
        return f"it has letters other than S, F, H, G: {strange!r}"
    if letters.count("S") != 1 or letters.count("G") < 1:
        return f"it has {letters.count('S')} starts and {letters.count('G')} goals: {rows!r}"
    if shortest_path(rows) is None:
        return f"it cannot be won, no way leads around the holes: {rows!r}"
    return ""
