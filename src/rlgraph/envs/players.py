"""Players without a model: uniform random, scripted, and walks over a lake for a warm start.

They stand where a language-model generator stands, so an environment is tested without one.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

from rlgraph.envs.lake_map import MOVES, LakeMap, find, letter_at, moved
from rlgraph.envs.protocol import Environment
from rlgraph.ports import Latest
from rlgraph.rl.records import Segment, Trajectory, Turn

OBSERVATION_ID = 0
"""Token id that stands for any observation; action i has id i + 1."""


class RandomPlayer:
    """Chooses uniformly among the actions; its logprobs are the true ones."""

    def __init__(self, actions: Sequence[str]) -> None:
        if not actions:
            raise ValueError("RandomPlayer: actions is empty; give at least one")
        self._actions = tuple(actions)

    async def generate(
        self, trajectory: Trajectory, policy: Latest[object], seed: int
    ) -> Trajectory:
        """Append one turn, wholly determined by ``seed``."""
        choice = random.Random(seed).randrange(len(self._actions))
        logprob = -math.log(len(self._actions))
        return _with_turn(trajectory, policy, self._actions[choice], choice + 1, logprob)


class ScriptedPlayer:
    """Plays the given actions, one a turn, whatever it sees."""

    def __init__(self, actions: Sequence[str]) -> None:
        self._actions = tuple(actions)

    async def generate(
        self,
        trajectory: Trajectory,
        policy: Latest[object],
        seed: int,  # noqa: ARG002 - the signature of every generator
    ) -> Trajectory:
        """Append the action of this turn; it was certain, so its logprob is 0.

        Raises IndexError when the script is at its end.
        """
        turn = len(trajectory.turns)
        if turn >= len(self._actions):
            raise IndexError(
                f"ScriptedPlayer: trajectory {trajectory.id!r} asks for action {turn}, the script "
                f"has {len(self._actions)}; give more actions or end the play before"
            )
        return _with_turn(trajectory, policy, self._actions[turn], turn + 1, 0.0)


def random_walk(rows: LakeMap, *, seed: int, limit: int) -> tuple[str, ...]:
    """Return random moves from the start that stay on the board, until goal, hole or ``limit``."""
    rng = random.Random(seed)
    cell = find(rows, "S")
    walk: list[str] = []
    while len(walk) < limit and letter_at(rows, cell) not in {"G", "H"}:
        legal = [action for action in MOVES if letter_at(rows, moved(cell, action))]
        walk.append(rng.choice(legal))
        cell = moved(cell, walk[-1])
    return tuple(walk)


def demonstrate(
    environment: Environment, actions: Sequence[str], seed: int
) -> tuple[tuple[str, str], ...]:
    """Play the actions until the environment ends; return (observation, action) of each turn."""
    observation, _ = environment.reset(seed)
    shown: list[tuple[str, str]] = []
    for action in actions:
        shown.append((observation, action))
        observation, _, terminated, truncated, _ = environment.step(action)
        if terminated or truncated:
            break
    environment.close()
    return tuple(shown)


def _with_turn(
    trajectory: Trajectory, policy: Latest[object], text: str, token: int, logprob: float
) -> Trajectory:
    turn = Turn(
        prompt_ids=(OBSERVATION_ID,),
        completion_ids=(token,),
        logprobs=(logprob,),
        segments=(Segment(num_tokens=1, policy_version=policy.version),),
        text=text,
        finish_reason="stop",
    )
    return replace(trajectory, turns=(*trajectory.turns, turn))
