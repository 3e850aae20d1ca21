"""Play any gymnasium environment in text: actions are parsed, observations rendered."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, Generic, TypeVar

import gymnasium

from rlgraph.envs.protocol import EnvironmentFailedError, Info

ObsT = TypeVar("ObsT")
ActT = TypeVar("ActT")


class GymnasiumText(Generic[ObsT, ActT]):
    """An ``Environment`` around a gymnasium one; what is specific to a game is passed in.

    make: builds the game of a seed (also called with it by ``reset``).
    parse: the game's action, or None when the text names none; such a text is answered with
    ``usage`` and the unchanged observation, and costs a turn.
    render: the text of an observation; it may look into the game.
    max_turns: actions, unreadable ones included, after which the play is truncated.
    """

    def __init__(
        self,
        *,
        make: Callable[[int], gymnasium.Env[ObsT, ActT]],
        parse: Callable[[str], ActT | None],
        render: Callable[[gymnasium.Env[ObsT, ActT], ObsT], str],
        usage: str,
        max_turns: int,
    ) -> None:
        if max_turns < 1:
            raise ValueError(f"GymnasiumText: max_turns must be >= 1, got {max_turns!r}")
        self._make, self._parse, self._render = make, parse, render
        self._usage, self._max_turns = usage, max_turns
        self._game: gymnasium.Env[ObsT, ActT] | None = None
        self._seen = ""
        self._turns = self._invalid = 0

    def reset(self, seed: int) -> tuple[str, Info]:
        """Build the game of ``seed`` and look at it."""
        self.close()
        self._game = self._make(seed)
        observation, info = self._game.reset(seed=seed)
        self._turns = self._invalid = 0
        self._seen = self._render(self._game, observation)
        return self._seen, self._measured(info)

    def step(self, action: str) -> tuple[str, float, bool, bool, Info]:
        """Play ``action`` where it can be read, else say how to play."""
        if self._game is None:
            raise EnvironmentFailedError("GymnasiumText.step: no game is on; call reset first")
        self._turns += 1
        late = self._turns >= self._max_turns
        move = self._parse(action)
        if move is None:
            self._invalid += 1
            return f"{self._usage}\n{self._seen}", 0.0, False, late, self._measured({})
        observation, reward, terminated, truncated, info = self._game.step(move)
        self._seen = self._render(self._game, observation)
        cut = truncated or (late and not terminated)
        return self._seen, float(reward), terminated, cut, self._measured(info)

    def close(self) -> None:
        """Close the game."""
        if self._game is not None:
            self._game.close()
            self._game = None

    def _measured(self, info: dict[str, Any]) -> Info:
        numbers = {name: float(value) for name, value in info.items() if isinstance(value, Real)}
        return {**numbers, "invalid_actions": float(self._invalid)}
