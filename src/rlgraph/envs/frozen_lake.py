"""FrozenLake-v1 as a multi-turn text game, and its tasks: random maps, some held out."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count as count_up
from typing import TypeAlias

import gymnasium

from rlgraph.config import above, at_least, between
from rlgraph.envs.gym import GymnasiumText
from rlgraph.envs.lake_map import (
    MOVES,
    NAMES,
    Cell,
    LakeMap,
    draw_map,
    find,
    letter_at,
    moved,
    what_is_wrong,
)
from rlgraph.envs.protocol import Info
from rlgraph.errors import ConfigError, Problem
from rlgraph.rl.records import Prompt

ACTIONS: tuple[str, ...] = tuple(MOVES)
"""left, down, right, up: the index is gymnasium's action."""

Render: TypeAlias = Callable[[LakeMap, Cell], str]
"""The text of (map, cell of the player)."""

Game: TypeAlias = "gymnasium.Env[int, int]"

MAX_REDRAWS = 10_000
"""Maps drawn in a row that are all held out, or all known, before we give up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenLakeConfig:
    """A family of lakes."""

    size: int = 4
    """Rows and columns of a random map."""
    frozen_probability: float = 0.8
    """Chance that a cell of a random map is ice and not a hole."""
    is_slippery: bool = False
    """True: an action moves to its left or right side in two of three cases."""
    max_turns: int = 12
    """Actions after which the play is truncated."""
    map: tuple[str, ...] = ()
    """Rows of S, F, H, G: every task is this map. Empty: the map comes from the task's seed."""
    instruction: str = ""
    """Text of every prompt."""

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong; ``where`` is the name of the field."""
        yield from at_least(self, "size", 2)
        yield from above(self, "frozen_probability", 0)
        yield from between(self, "frozen_probability", 0, 1)
        yield from at_least(self, "max_turns", 1)
        if self.map and (wrong := what_is_wrong(self.map)):
            mend = "give rows of equal length with one S, a G and ice between them, or no map"
            yield Problem(what=f"the map cannot be played: {wrong}", where="map", mend=mend)


class FrozenLake:
    """One lake to walk over; ``Environment``. Reward 1.0 on the goal, else 0.0."""

    def __init__(self, config: FrozenLakeConfig, render: Render) -> None:
        _check(config)
        self._text = GymnasiumText(
            make=partial(_make_game, config),
            parse=read_action,
            render=partial(_render_game, render),
            usage="say left, down, right or up",
            max_turns=config.max_turns,
        )

    def reset(self, seed: int) -> tuple[str, Info]:
        """Go to the start of the map of ``seed``."""
        observation, _ = self._text.reset(seed)
        return observation, {}

    def step(self, action: str) -> tuple[str, float, bool, bool, Info]:
        """Take a step; info: ``success`` (1.0 on the goal) and ``invalid_actions`` so far."""
        observation, reward, terminated, truncated, info = self._text.step(action)
        measured = {"success": float(reward > 0), "invalid_actions": info["invalid_actions"]}
        return observation, reward, terminated, truncated, measured

    def close(self) -> None:
        """Close the game."""
        self._text.close()


def render_neighbours(rows: LakeMap, cell: Cell) -> str:
    """Say which way the goal is and what lies around the player: seven words, no map.

    The number of words never changes, and a thing and its place are one word: that is what a tiny
    model learns to read.

    >>> render_neighbours(("SF", "HG"), (0, 0))
    'goal down:1 right:1 left:wall down:hole right:ice up:wall'
    """
    down, right = (goal - own for goal, own in zip(find(rows, "G"), cell, strict=True))
    way = [f"down:{down}" if down >= 0 else f"up:{-down}"]
    way += [f"right:{right}" if right >= 0 else f"left:{-right}"]
    around = [
        f"{action}:{NAMES.get(letter_at(rows, moved(cell, action)), 'wall')}" for action in ACTIONS
    ]
    return " ".join(["goal", *way, *around])


def render_map(rows: LakeMap, cell: Cell) -> str:
    """Show the rows of the map, the player as P.

    >>> print(render_map(("SF", "HG"), (0, 1)))
    SP
    HG
    """
    own_row, own_column = cell
    shown = [
        row[:own_column] + "P" + row[own_column + 1 :] if i == own_row else row
        for i, row in enumerate(rows)
    ]
    return "\n".join(shown)


def read_action(text: str) -> int | None:
    """Return the action that a reply names: its only direction word, however often it comes.

    >>> read_action("I go Down."), read_action("left or right?"), read_action("")
    (1, None, None)
    """
    named = set(re.findall(r"\b(?:left|down|right|up)\b", text.lower()))
    return ACTIONS.index(named.pop()) if len(named) == 1 else None


def make_lake(
    _prompt: Prompt, *, config: FrozenLakeConfig, render: Render = render_neighbours
) -> FrozenLake:
    """Make the lake of a prompt: ``Sandbox(partial(make_lake, config=config), ...)``."""
    return FrozenLake(config, render)


def map_of(seed: int, config: FrozenLakeConfig) -> LakeMap:
    """Return the map that a task with this seed plays on."""
    if config.map:
        return tuple(config.map)
    return draw_map(seed=seed, size=config.size, frozen_probability=config.frozen_probability)


def held_out_tasks(config: FrozenLakeConfig, count: int, seed: int) -> tuple[Prompt, ...]:
    """Return ``count`` tasks on distinct maps, to be kept out of training by content.

    Raises ConfigError where the family has fewer maps than that.
    """
    _check(config)
    rng = random.Random(f"held out {seed}")
    tasks: dict[LakeMap, Prompt] = {}
    while len(tasks) < count:
        fresh = _draw_task(rng, config, f"held-out/{len(tasks)}", known=tasks)
        tasks[map_of(fresh.seed, config)] = fresh
    return tuple(tasks.values())


def training_tasks(
    config: FrozenLakeConfig, seed: int, held_out: frozenset[LakeMap]
) -> Iterator[Prompt]:
    """Yield tasks without end, none of them on a map of ``held_out``; maps may come again.

    Raises ConfigError where every map is held out.
    """
    _check(config)
    rng = random.Random(f"training {seed}")
    return (_draw_task(rng, config, f"train/{i}", known=held_out) for i in count_up())


def maps_of(tasks: Sequence[Prompt], config: FrozenLakeConfig) -> frozenset[LakeMap]:
    """Return the maps of these tasks: what ``training_tasks`` is to keep out."""
    return frozenset(map_of(task.seed, config) for task in tasks)


def _draw_task(
    rng: random.Random,
    config: FrozenLakeConfig,
    name: str,
    known: frozenset[LakeMap] | dict[LakeMap, Prompt],
) -> Prompt:
    for _ in range(MAX_REDRAWS):
        seed = rng.getrandbits(31)
        if map_of(seed, config) not in known:
            return Prompt(id=name, text=config.instruction, domain="frozen_lake", seed=seed)
    what = f"task {name!r}: {MAX_REDRAWS} maps in a row were held out or drawn before"
    mend = "hold out fewer maps, or widen the family (size, frozen_probability, no map)"
    raise ConfigError("FrozenLake has too few maps", [Problem(what=what, where="size", mend=mend)])


def _make_game(config: FrozenLakeConfig, seed: int) -> Game:
    return gymnasium.make(
        "FrozenLake-v1",
        desc=list(map_of(seed, config)),
        is_slippery=config.is_slippery,
        max_episode_steps=config.max_turns,
        disable_env_checker=True,
    )


def _render_game(render: Render, game: Game, state: int) -> str:
    board = game.get_wrapper_attr("desc")
    rows = tuple(row.tobytes().decode("ascii") for row in board)
    return render(rows, divmod(int(state), len(rows[0])))


def _check(config: FrozenLakeConfig) -> None:
    if problems := list(config.problems()):
        raise ConfigError("the FrozenLake configuration is wrong", problems)
