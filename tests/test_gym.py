"""The text adapter around any gymnasium environment."""

from __future__ import annotations

from typing import Any

import gymnasium
import pytest

from rlgraph.envs.gym import GymnasiumText
from rlgraph.envs.protocol import Environment, EnvironmentFailedError

COUNT = gymnasium.spaces.Discrete(100)


class Counter(gymnasium.Env[int, int]):
    """Adds up what it is told; ends at 3, is cut by its own limit at 50."""

    observation_space = COUNT
    action_space = COUNT

    def __init__(self) -> None:
        self.total = 0
        self.closed = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.total = 0
        return 0, {"seed": seed, "name": "left out"}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.total += action
        return self.total, float(action), self.total == 3, self.total >= 50, {"total": self.total}

    def close(self) -> None:
        self.closed += 1


def counter(games: list[Counter], max_turns: int = 9) -> GymnasiumText[int, int]:
    def make(_seed: int) -> Counter:
        games.append(Counter())
        return games[-1]

    return GymnasiumText(
        make=make,
        parse=lambda text: int(text) if text.isdecimal() else None,
        render=lambda _game, total: f"total {total}",
        usage="say a number",
        max_turns=max_turns,
    )


def test_it_is_an_environment() -> None:
    assert isinstance(counter([]), Environment)


def test_reset_gives_the_rendered_observation_and_the_numbers_of_info() -> None:
    assert counter([]).reset(5) == ("total 0", {"seed": 5.0, "invalid_actions": 0.0})


def test_an_action_is_parsed_and_played() -> None:
    environment = counter([])
    environment.reset(0)
    expected = ("total 2", 2.0, False, False, {"total": 2.0, "invalid_actions": 0.0})
    assert environment.step("2") == expected


def test_an_unreadable_action_is_answered_and_costs_a_turn() -> None:
    environment = counter([], max_turns=2)
    environment.reset(0)
    answered = ("say a number\ntotal 0", 0.0, False, False, {"invalid_actions": 1.0})
    assert environment.step("\ud800\x00 two") == answered
    cut = ("say a number\ntotal 0", 0.0, False, True, {"invalid_actions": 2.0})
    assert environment.step("") == cut


def test_the_end_of_the_game_on_the_last_turn_is_no_truncation() -> None:
    environment = counter([], max_turns=1)
    environment.reset(0)
    assert environment.step("3")[2:4] == (True, False)


def test_the_turn_limit_truncates() -> None:
    environment = counter([], max_turns=1)
    environment.reset(0)
    assert environment.step("1")[2:4] == (False, True)


def test_the_limit_of_the_game_itself_truncates() -> None:
    environment = counter([])
    environment.reset(0)
    assert environment.step("60")[2:4] == (False, True)


def test_reset_closes_the_game_before_and_starts_the_turns_anew() -> None:
    games: list[Counter] = []
    environment = counter(games, max_turns=2)
    environment.reset(0)
    environment.step("1")
    environment.reset(1)
    assert environment.step("1")[2:4] == (False, False)
    assert [game.closed for game in games] == [1, 0]


def test_closing_twice_closes_the_game_once() -> None:
    games: list[Counter] = []
    environment = counter(games)
    environment.reset(0)
    environment.close()
    environment.close()
    assert [game.closed for game in games] == [1]


def test_a_step_without_a_game_is_an_error() -> None:
    with pytest.raises(EnvironmentFailedError, match="call reset first"):
        counter([]).step("1")


def test_a_turn_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="max_turns must be >= 1, got 0"):
        counter([], max_turns=0)
