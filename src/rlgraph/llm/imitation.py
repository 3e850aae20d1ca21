"""The warm start: scripted play becomes samples that a model imitates, to learn the format.

How well the script plays is none of its business; the gain of RL is measured from here on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from rlgraph.llm.chat import Chat
from rlgraph.rl.records import Prompt, Sample, Segment, Trajectory, Turn
from rlgraph.rl.samples import to_sample

Play: TypeAlias = Sequence[tuple[str, str]]
"""(observation, reply) of each turn."""

SCRIPT_VERSION = -1
"""Stands for the policy version of tokens that no policy sampled."""


def imitation_sample(prompt: Prompt, play: Play, chat: Chat) -> Sample:
    """Write scripted play as the tokens a generator would have made; its replies are trained on.

    Raises ValueError when the play has no turn.
    """
    if not play:
        raise ValueError(f"prompt {prompt.id!r}: scripted play without a turn cannot be imitated")
    trajectory = Trajectory(id=prompt.id, prompt=prompt, reward=0.0)
    for observation, reply in play:
        trajectory = replace(trajectory, observation=observation)
        completion_ids = chat.reply_ids(reply)
        turn = Turn(
            prompt_ids=chat.prompt_ids(trajectory),
            completion_ids=completion_ids,
            logprobs=(0.0,) * len(completion_ids),
            segments=(Segment(num_tokens=len(completion_ids), policy_version=SCRIPT_VERSION),),
            text=reply,
            finish_reason="stop",
        )
        trajectory = replace(trajectory, turns=(*trajectory.turns, turn))
    return to_sample(trajectory, advantage=0.0)
