"""The stage that acts: holds one live environment a trajectory and feeds it the replies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rlgraph.envs.protocol import Environment, EnvironmentFailedError
from rlgraph.rl.records import Prompt, Status, Trajectory


class Sandbox:
    """Live environments by trajectory id. Calls for different trajectories may overlap.

    No lock is needed: each call reads and writes only the entry of its own trajectory, and one
    operation on a dict is atomic.
    """

    def __init__(self, make: Callable[[Prompt], Environment], max_turns: int) -> None:
        if max_turns < 1:
            raise ValueError(f"Sandbox: max_turns must be >= 1, got {max_turns!r}")
        self._make = make
        self._max_turns = max_turns
        self._live: dict[str, Environment] = {}

    def setup(self, device: str) -> None:
        """Do nothing: environments are made when a trajectory starts, on any device."""

    def reset(self, prompt: Prompt, seed: int) -> Trajectory:
        """Start a trajectory. Its seed names it; the prompt's seeds the environment.

        So siblings meet the same task. A live trajectory of the same id is replaced.
        """
        started = Trajectory(id=f"{prompt.id}/{seed:016x}", prompt=prompt)
        self.release(started)
        environment = self._make(prompt)
        if not isinstance(environment, Environment):
            raise EnvironmentFailedError(
                f"Sandbox.reset: {environment!r:.80} is not an environment; to mend: give "
                "it reset(seed), step(action) and close(), as rlgraph.envs.protocol says"
            )
        self._live[started.id] = environment
        try:
            answer = environment.reset(prompt.seed)
            observation, info = _parts(answer, environment, "reset", "(observation, info)")
        except BaseException:
            # The caller has no trajectory to release yet.
            self.release(started)
            raise
        return replace(started, observation=observation, info=dict(info))

    def act(self, trajectory: Trajectory) -> Trajectory:
        """Feed the last reply to the environment and return what came of it.

        At the end the environment is closed and the reward is the sum over the turns. A trajectory
        that another stage has ended (the context is full, say) is closed without a step.
        Raises EnvironmentFailedError when the trajectory is not live, has no reply, or was released
        or reset meanwhile.
        """
        if is_done(trajectory):
            return self._finished(trajectory)
        environment = self._live.get(trajectory.id)
        if environment is None:
            raise EnvironmentFailedError(
                f"Sandbox.act: trajectory {trajectory.id!r} has no live environment; reset it first"
            )
        if not trajectory.turns:
            raise EnvironmentFailedError(
                f"Sandbox.act: trajectory {trajectory.id!r} has no turn; generate a reply first"
            )
        last = trajectory.turns[-1]
        answer = environment.step(last.text)
        wanted = "(observation, reward, terminated, truncated, info)"
        observation, reward, terminated, truncated, info = _parts(
            answer, environment, "step", wanted
        )
        if self._live.get(trajectory.id) is not environment:
            # A call that its caller gave up on must not touch the retry, which has the same id.
            raise EnvironmentFailedError(
                f"Sandbox.act: trajectory {trajectory.id!r} was released or reset during the call"
            )
        acted = replace(
            trajectory,
            turns=(*trajectory.turns[:-1], replace(last, reward=reward)),
            observation=observation,
            info={**trajectory.info, **info},
        )
        if terminated:
            return self._finished(replace(acted, status=Status.DONE))
        if truncated or len(acted.turns) >= self._max_turns:
            return self._finished(replace(acted, status=Status.TRUNCATED))
        return acted

    def release(self, trajectory: Trajectory) -> None:
        """Close and forget the trajectory's environment, if it has one."""
        environment = self._live.pop(trajectory.id, None)
        if environment is not None:
            environment.close()

    def _finished(self, trajectory: Trajectory) -> Trajectory:
        self.release(trajectory)
        if trajectory.status is Status.FAILED:
            return trajectory
        return replace(trajectory, reward=sum(turn.reward for turn in trajectory.turns))


def _parts(answer: Any, environment: Environment, method: str, wanted: str) -> tuple[Any, ...]:
    """Take an answer apart. Raises EnvironmentFailedError where it is not of the wanted form."""
    if not isinstance(answer, tuple) or len(answer) != wanted.count(",") + 1:
        raise EnvironmentFailedError(
            f"{type(environment).__name__}.{method} returned {answer!r:.80}; "
            f"to mend: return {wanted}"
        )
    return answer


def is_done(trajectory: Trajectory) -> bool:
    """Say whether the trajectory has ended, in whatever way."""
    return trajectory.status is not Status.RUNNING
