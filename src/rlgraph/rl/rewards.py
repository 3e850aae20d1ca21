"""What counts as a reward: plain finite floats, or None for "no verdict". Checks, no algorithm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from numbers import Real

from rlgraph.rl.records import Status, Trajectory


def verify(trajectory: Trajectory) -> Trajectory:
    """Settle the final reward: what the environment gave, and none for a failed trajectory.

    Raises ValueError or TypeError for a reward that is not a finite number: this trajectory fails,
    its siblings do not.
    """
    if trajectory.status is Status.FAILED:
        return replace(trajectory, reward=None)
    (reward,) = checked_rewards([trajectory.reward], count=1, source=f"verify({trajectory.id!r})")
    return replace(trajectory, reward=reward)


def checked_rewards(rewards: object, *, count: int, source: str) -> list[float | None]:
    """Return what a reward function answered for ``count`` items, as plain floats.

    Raises as ``plain_rewards`` does, and ValueError for a wrong length.
    """
    checked = plain_rewards(rewards, source=source)
    if len(checked) != count:
        raise ValueError(
            f"{source}: {len(checked)} rewards for {count} items; return one reward for each item, "
            "None where there is none"
        )
    return checked


def plain_rewards(rewards: object, *, source: str) -> list[float | None]:
    """Return rewards as plain floats; None stays None.

    Taken: any real number (bool, numpy scalar), and an object of one number with ``item()``, such
    as a tensor, in a sequence, an array or a tensor. One on an autograd graph is detached, for a
    reward is data.
    Raises ValueError for NaN and infinities, TypeError for anything else; the message names
    ``source``, the function that gave the rewards.
    """
    listed = rewards.tolist() if hasattr(rewards, "tolist") else rewards
    if isinstance(listed, str | bytes) or not isinstance(listed, Sequence):
        raise TypeError(
            f"{source}: expected one reward for each item, got {rewards!r}; return a list of floats"
        )
    return [_plain(reward, f"{source}: reward {i}") for i, reward in enumerate(listed)]


def _plain(reward: object, where: str) -> float | None:
    if reward is None:
        return None
    if not isinstance(reward, Real) and hasattr(reward, "item"):
        reward = reward.item()
    if not isinstance(reward, Real):
        raise TypeError(f"{where} is {reward!r}; give a float, or None for no verdict")
    value = float(reward)
    if not math.isfinite(value):
        raise ValueError(f"{where} is {value!r}; give a finite float, or None for no verdict")
    return value
