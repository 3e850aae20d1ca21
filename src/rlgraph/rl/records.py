"""What travels along the edges of an RL graph: prompt, turn, trajectory, sample.

All are immutable; a stage returns a new one. Token ids are kept as they were sampled: nothing is
ever tokenised a second time. A failure is a status, never a reward.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from rlgraph.profile import DEFAULT_DOMAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One task of the data set."""

    id: str
    text: str = ""
    domain: str = DEFAULT_DOMAIN
    """Task domain: the scheduler is fair across domains, the placer tells them apart."""
    seed: int = 0
    """Seed of the environment: siblings share it, so a group meets the same task."""
    answer: str = ""
    """What a verifier compares with, where the task has such an answer."""


class Status(enum.Enum):
    """How a trajectory stands."""

    RUNNING = "running"
    DONE = "done"
    """The environment ended it."""
    TRUNCATED = "truncated"
    """Cut by a limit: turns, tokens, or the environment's own."""
    FAILED = "failed"
    """Something broke; it has no reward."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A run of completion tokens sampled by one version of the policy."""

    num_tokens: int
    policy_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What the model was shown, what it replied, and what came of it."""

    prompt_ids: tuple[int, ...]
    """Tokens new to the context before the reply: observation, chat markup. Never trained on."""
    completion_ids: tuple[int, ...]
    """Tokens that the model sampled, the end token included where it was sampled."""
    logprobs: tuple[float, ...]
    """[len(completion_ids)] under the sampling distribution. Natural log."""
    segments: tuple[Segment, ...]
    """Their num_tokens sum to len(completion_ids)."""
    text: str
    """The reply as text, end token and markup left out."""
    finish_reason: str
    """"stop" (an end token), "length" (a limit) or "abort"."""
    reward: float = 0.0
    """What the environment gave for this reply; unit of the task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """One attempt at a prompt, turn by turn."""

    id: str
    """Unique in a run; ``prompt.id`` is shared by siblings."""
    prompt: Prompt
    turns: tuple[Turn, ...] = ()
    observation: str = ""
    """What the environment said last and the model has not yet answered."""
    status: Status = Status.RUNNING
    reward: float | None = None
    """Verdict on the whole trajectory; None: none was given, and no baseline counts it."""
    info: Mapping[str, float] = field(default_factory=dict)
    """Named measurements of the environment (``success``, ...)."""

    @property
    def num_tokens(self) -> int:
        """Count the tokens of the context so far, prompt and completion tokens together."""
        return sum(len(turn.prompt_ids) + len(turn.completion_ids) for turn in self.turns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One training row, made from a trajectory. L is its length in tokens.

    A trajectory of prompt ids (7, 8) and completion ids (9,) gives
    ``token_ids=(7, 8, 9), loss_mask=(False, False, True), behavior_logprobs=(0.0, 0.0, lp)``.
    """

    token_ids: tuple[int, ...]
    """[L]"""
    loss_mask: tuple[bool, ...]
    """[L] True where the token was sampled by the policy and is trained on."""
    behavior_logprobs: tuple[float, ...]
    """[L] of the policy that sampled; 0.0 where loss_mask is False. Natural log."""
    versions: tuple[int, ...]
    """[L] policy version that sampled the token; -1 where loss_mask is False."""
    advantage: float
    """After the baseline; the same for every token."""
    reward: float
    trajectory_id: str
    prompt_id: str
    domain: str = DEFAULT_DOMAIN
    truncated: bool = False

    def __post_init__(self) -> None:
        """Refuse a row whose arrays do not line up."""
        lengths = {
            "token_ids": len(self.token_ids),
            "loss_mask": len(self.loss_mask),
            "behavior_logprobs": len(self.behavior_logprobs),
            "versions": len(self.versions),
        }
        if len(set(lengths.values())) > 1:
            raise ValueError(f"sample {self.trajectory_id!r}: lengths differ: {lengths}")
