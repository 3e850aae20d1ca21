"""Environments without a game, to test everything around one: a script, and an echo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlgraph.envs.protocol import EnvironmentFailedError, Info


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedStep:
    """What the environment answers once, to any action."""

    observation: str = ""
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False


class ScriptedEnvironment:
    """Answers with the steps of a script in turn; remembers what it was told."""

    def __init__(self, first: str, steps: Sequence[ScriptedStep]) -> None:
        self._first, self._steps = first, tuple(steps)
        self.actions: list[str] = []
        self.seeds: list[int] = []
        self.closed = False

    def reset(self, seed: int) -> tuple[str, Info]:
        """Go back to the beginning of the script."""
        self.actions.clear()
        self.seeds.append(seed)
        self.closed = False
        return self._first, {}

    def step(self, action: str) -> tuple[str, float, bool, bool, Info]:
        """Answer with the next step. Raises EnvironmentFailedError after the last one."""
        if len(self.actions) >= len(self._steps):
            raise EnvironmentFailedError(
                f"ScriptedEnvironment.step: the script of {len(self._steps)} steps is at its end; "
                "let its last step terminate"
            )
        step = self._steps[len(self.actions)]
        self.actions.append(action)
        return step.observation, step.reward, step.terminated, step.truncated, {}

    def close(self) -> None:
        """Note that it was closed."""
        self.closed = True


class EchoEnvironment:
    """Repeats every action as the observation, for ever, without a reward."""

    def __init__(self, first: str = "") -> None:
        self._first = first

    def reset(self, seed: int) -> tuple[str, Info]:  # noqa: ARG002 - every seed is alike
        """Return the first observation."""
        return self._first, {}

    def step(self, action: str) -> tuple[str, float, bool, bool, Info]:
        """Return the action."""
        return action, 0.0, False, False, {}

    def close(self) -> None:
        """Hold nothing."""
