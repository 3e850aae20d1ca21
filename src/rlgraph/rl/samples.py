"""From trajectories to training rows: what a graph maps after ``group()``."""

from __future__ import annotations

from collections.abc import Iterable

from rlgraph.ports import Batch
from rlgraph.rl.advantages import grpo_advantages
from rlgraph.rl.records import Sample, Status, Trajectory, Turn


def group_samples(group: Batch[Trajectory]) -> Batch[Sample]:
    """Return the training rows of siblings, with GRPO advantages over the group.

    A trajectory without a reward (it failed) or without a sampled token (its prompt was too long)
    is left out of the baseline and of the result. Raises ValueError on siblings of two prompts.
    """
    if len({trajectory.prompt.id for trajectory in group}) > 1:
        prompts = sorted({trajectory.prompt.id for trajectory in group})
        raise ValueError(f"group_samples: a group has one prompt, got {prompts!r}")
    counted = [trajectory for trajectory in group if can_train(trajectory)]
    if not counted:
        return ()
    advantages = grpo_advantages([trajectory.reward for trajectory in counted])
    return tuple(map(to_sample, counted, advantages))


def can_train(trajectory: Trajectory) -> bool:
    """Say whether a trajectory has a verdict and a sampled token. For ``filter``, ahead of a group.

    One whose prompt alone is over the limit has no token.
    """
    return trajectory.reward is not None and any(turn.completion_ids for turn in trajectory.turns)


def has_signal(group: Batch[Sample]) -> bool:
    """Say whether a group teaches anything: some advantage is not 0. For ``filter``."""
    return any(sample.advantage != 0.0 for sample in group)


def to_sample(trajectory: Trajectory, advantage: float) -> Sample:
    """Lay the turns of a trajectory in a row.

    Raises ValueError when it has no reward, or when a turn's logprobs or segments do not cover its
    completion tokens.
    """
    if trajectory.reward is None:
        raise ValueError(
            f"to_sample: trajectory {trajectory.id!r} ({trajectory.status.value}) has no reward; "
            "leave it out"
        )
    token_ids: list[int] = []
    loss_mask: list[bool] = []
    logprobs: list[float] = []
    versions: list[int] = []
    for i, turn in enumerate(trajectory.turns):
        _check(turn, f"to_sample: turn {i} of trajectory {trajectory.id!r}")
        shown, sampled = len(turn.prompt_ids), len(turn.completion_ids)
        token_ids += (*turn.prompt_ids, *turn.completion_ids)
        loss_mask += [False] * shown + [True] * sampled
        logprobs += (*[0.0] * shown, *turn.logprobs)
        versions += (*[-1] * shown, *_versions(turn))
    return Sample(
        token_ids=tuple(token_ids),
        loss_mask=tuple(loss_mask),
        behavior_logprobs=tuple(logprobs),
        versions=tuple(versions),
        advantage=advantage,
        reward=trajectory.reward,
        trajectory_id=trajectory.id,
        prompt_id=trajectory.prompt.id,
        domain=trajectory.prompt.domain,
        truncated=trajectory.status is Status.TRUNCATED,
    )


def _versions(turn: Turn) -> Iterable[int]:
    for segment in turn.segments:
        yield from [segment.policy_version] * segment.num_tokens


def _check(turn: Turn, where: str) -> None:
    covered = sum(segment.num_tokens for segment in turn.segments)
    if not len(turn.completion_ids) == len(turn.logprobs) == covered:
        raise ValueError(
            f"{where}: {len(turn.completion_ids)} completion tokens, {len(turn.logprobs)} "
            f"logprobs, {covered} tokens in segments; a generator must give all three alike"
        )
