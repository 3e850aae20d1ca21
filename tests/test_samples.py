"""From a group of trajectories to training rows."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlgraph.rl.advantages import grpo_advantages
from rlgraph.rl.records import Prompt, Sample, Segment, Status, Trajectory, Turn
from rlgraph.rl.samples import group_samples, has_signal, to_sample


def turn(prompt: int, versions: tuple[int, ...], text: str = "") -> Turn:
    """Make a turn of ``prompt`` prompt tokens and one sampled token for each version."""
    return Turn(
        prompt_ids=tuple(range(prompt)),
        completion_ids=tuple(range(100, 100 + len(versions))),
        logprobs=tuple(-0.5 - i for i in range(len(versions))),
        segments=tuple(Segment(num_tokens=1, policy_version=version) for version in versions),
        text=text,
        finish_reason="stop",
    )


def trajectory(
    name: str, reward: float | None, *turns: Turn, status: Status = Status.DONE, prompt: str = "p"
) -> Trajectory:
    return Trajectory(
        id=name,
        prompt=Prompt(id=prompt, domain="lake"),
        turns=turns or (turn(2, (0,)),),
        status=status,
        reward=reward,
    )


def test_turns_are_laid_in_a_row_with_the_version_of_every_token() -> None:
    played = trajectory("t", 1.0, turn(2, (3, 3, 4)), turn(1, (4,)))
    assert to_sample(played, advantage=0.7) == Sample(
        token_ids=(0, 1, 100, 101, 102, 0, 100),
        loss_mask=(False, False, True, True, True, False, True),
        behavior_logprobs=(0.0, 0.0, -0.5, -1.5, -2.5, 0.0, -0.5),
        versions=(-1, -1, 3, 3, 4, -1, 4),
        advantage=0.7,
        reward=1.0,
        trajectory_id="t",
        prompt_id="p",
        domain="lake",
        truncated=False,
    )


def test_a_segment_of_several_tokens_gives_each_its_version() -> None:
    segments = (Segment(num_tokens=2, policy_version=5), Segment(num_tokens=1, policy_version=6))
    played = trajectory("t", 1.0, replace(turn(0, (0, 0, 0)), segments=segments))
    assert to_sample(played, 0.0).versions == (5, 5, 6)


def test_a_truncated_trajectory_says_so() -> None:
    assert to_sample(trajectory("t", 0.0, status=Status.TRUNCATED), 0.0).truncated


def test_a_trajectory_without_a_reward_is_no_sample() -> None:
    with pytest.raises(ValueError, match=re.escape("'t' (failed) has no reward; leave it out")):
        to_sample(trajectory("t", None, status=Status.FAILED), 0.0)


@pytest.mark.parametrize(
    "broken",
    [
        replace(turn(1, (0, 0)), logprobs=(-0.5,)),
        replace(turn(1, (0, 0)), segments=(Segment(num_tokens=3, policy_version=0),)),
    ],
    ids=["logprobs", "segments"],
)
def test_a_turn_whose_parts_do_not_line_up_is_named(broken: Turn) -> None:
    with pytest.raises(ValueError, match="turn 1 of trajectory 't': 2 completion tokens"):
        to_sample(trajectory("t", 1.0, turn(1, (0,)), broken), 0.0)


def test_a_group_gets_the_advantages_of_its_rewards_in_order() -> None:
    group = tuple(trajectory(str(i), reward) for i, reward in enumerate([1.0, 0.0, 0.0]))
    expected = zip(group, grpo_advantages([1.0, 0.0, 0.0]), strict=True)
    assert group_samples(group) == tuple(to_sample(*pair) for pair in expected)


def test_failed_members_and_members_without_a_token_leave_the_baseline_unchanged() -> None:
    speechless = trajectory("mute", 0.0, turn(9, ()), status=Status.TRUNCATED)
    never_shown = replace(speechless, id="never shown", turns=())
    failed = trajectory("failed", None, status=Status.FAILED)
    good = (trajectory("a", 1.0), trajectory("b", 0.0))
    assert group_samples((good[0], speechless, never_shown, failed, good[1])) == group_samples(good)


def test_a_group_of_failures_has_no_sample() -> None:
    failed = trajectory("t", None, status=Status.FAILED)
    assert group_samples((failed, failed)) == ()


def test_siblings_of_two_prompts_are_refused() -> None:
    group = (trajectory("a", 1.0), trajectory("b", 1.0, prompt="q"))
    with pytest.raises(ValueError, match=re.escape("one prompt, got ['p', 'q']")):
        group_samples(group)


def test_equal_trajectories_are_not_merged() -> None:
    rewards = (1.0, 0.0, 1.0, 0.0)
    groups = [
        tuple(trajectory(f"{i}/{j}", reward) for j, reward in enumerate(rewards)) for i in range(3)
    ]
    samples = [sample for group in groups for sample in group_samples(group)]
    assert len({sample.trajectory_id for sample in samples}) == 12
    assert len({sample.token_ids for sample in samples}) == 1


def test_a_group_of_equal_rewards_has_no_signal() -> None:
    equal = group_samples((trajectory("a", 1.0), trajectory("b", 1.0)))
    unequal = group_samples((trajectory("a", 1.0), trajectory("b", 0.0)))
    assert [has_signal(group) for group in (equal, unequal, ())] == [False, True, False]


def test_a_tool_message_of_70_kb_is_masked_token_by_token() -> None:
    long = trajectory("t", 0.0, *[turn(3, (0,))] * 4, turn(70_000, (0,)), status=Status.TRUNCATED)
    sample = to_sample(long, 0.0)
    assert len(sample.loss_mask) == len(sample.token_ids) == long.num_tokens == 70_017
    assert sum(sample.loss_mask) == 5


def test_odd_text_does_not_touch_the_tokens() -> None:
    plain, odd = (trajectory("t", 1.0, turn(2, (0,), text)) for text in ("", "\ud800\x00\u202e"))
    assert to_sample(odd, 0.0) == to_sample(plain, 0.0)


def test_a_sample_whose_arrays_differ_in_length_is_refused() -> None:
    good = to_sample(trajectory("t", 1.0), 0.0)
    with pytest.raises(ValueError, match=r"sample 't': lengths differ: .*'loss_mask': 2"):
        replace(good, loss_mask=(True, False))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=6))
def test_every_token_is_laid_out_once(shapes: list[tuple[int, int]]) -> None:
    played = trajectory("t", 1.0, *(turn(shown, (1,) * sampled) for shown, sampled in shapes))
    sample = to_sample(played, 0.0)
    assert len(sample.token_ids) == played.num_tokens
    for trained, logprob, version in zip(
        sample.loss_mask, sample.behavior_logprobs, sample.versions, strict=True
    ):
        assert (logprob < 0.0, version) == ((True, 1) if trained else (False, -1))
