"""From rewards to advantages. Plain floats: a group is small, and float64 keeps every digit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from rlgraph.rl.rewards import plain_rewards


def grpo_advantages(
    rewards: Sequence[float | None],
    *,
    std: Literal["sample", "population"] = "sample",
    eps: float = 1e-6,
) -> list[float]:
    """Center a group's rewards and divide by their standard deviation + eps.

    Rewards: [G] of siblings, any unit; None: no verdict, takes no part in mean and deviation, and
    its advantage is 0.0 (drop that sample). Returns [G], unitless; all exactly 0.0 when the
    rewards are equal, or when only one is there: no signal.
    std: "sample" divides by n - 1, "population" by n. Defaults as in verl, ROLL, SkyRL; TRL has
    eps=1e-4, AReaL eps=1e-5.
    Raises ValueError on an empty group, NaN and infinities, TypeError on what is not a number.
    Source: arXiv:2402.03300, section 4.1.2.

    >>> [round(advantage, 3) for advantage in grpo_advantages([0.0, 1.0, None])]
    [-0.707, 0.707, 0.0]
    """
    checked = plain_rewards(rewards, source="grpo_advantages")
    if not checked:
        raise ValueError("grpo_advantages: the group is empty; give at least one reward")
    known = [reward for reward in checked if reward is not None]
    if not known or min(known) == max(known):
        return [0.0] * len(checked)
    mean = math.fsum(known) / len(known)
    # Two passes: E[x^2] - E[x]^2 loses every digit of a group like 100.0, 100.001, 99.999.
    squares = math.fsum((reward - mean) ** 2 for reward in known)
    deviation = math.sqrt(squares / (len(known) - (std == "sample")))
    return [0.0 if reward is None else (reward - mean) / (deviation + eps) for reward in checked]
