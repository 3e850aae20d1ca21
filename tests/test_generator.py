import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from rlgraph.errors import ConfigError
from rlgraph.llm.chat import Chat
from rlgraph.llm.engine import SamplingError
from rlgraph.llm.generator import Generator, GeneratorConfig, GeneratorStoppedError
from rlgraph.llm.models import ModelConfig, load_model
from rlgraph.llm.weights import Weights, WeightsError, WeightStore
from rlgraph.ports import Latest
from rlgraph.rl.records import Prompt, Segment, Status, Trajectory

SMALL = ModelConfig(
    context_length=128, hidden_size=32, num_layers=1, num_heads=2, intermediate_size=64
)


def policy_at(directory: Path, version: int, *, seed: int | None = None) -> Latest[Weights]:
    """Publish the weights of a model of this seed (default: the version) under this version."""
    model = load_model(replace(SMALL, seed=version if seed is None else seed))
    weights = WeightStore(str(directory)).publish(model.state_dict(), version, {})
    return Latest(name="policy", version=version, value=weights)


def generator(**changes: Any) -> Generator:
    made = Generator(GeneratorConfig(**({"model": SMALL} | changes)))
    made.setup("cpu")
    return made


def started(name: str, observation: str = "goal down:1 left:wall") -> Trajectory:
    return Trajectory(id=name, prompt=Prompt(id=name), observation=observation)


async def played(
    generator: Generator, start: Trajectory, policy: Latest[Weights], num_turns: int = 3
) -> Trajectory:
    """Let the model speak and answer it with the length of what it said."""
    trajectory, seed = start, 100 * sum(start.id.encode())
    for turn in range(num_turns):
        trajectory = await generator.generate(trajectory, policy, seed=seed + turn)
        if trajectory.status is not Status.RUNNING:
            break
        said = len(trajectory.turns[-1].completion_ids)
        trajectory = replace(trajectory, observation=f"turn {turn} said {said} up:hole")
    return trajectory


def together(*calls: Coroutine[Any, Any, Trajectory]) -> list[Trajectory]:
    async def gathered() -> list[Trajectory]:
        return await asyncio.gather(*calls)

    return asyncio.run(gathered())


def test_a_turn_holds_what_was_sampled(tmp_path: Path) -> None:
    (spoken,) = together(generator().generate(started("a"), policy_at(tmp_path, 4), seed=1))
    (turn,) = spoken.turns
    assert turn.prompt_ids
    assert len(turn.completion_ids) == len(turn.logprobs) >= 1
    assert turn.segments == (Segment(num_tokens=len(turn.completion_ids), policy_version=4),)
    assert turn.finish_reason in {"stop", "length"}
    assert all(logprob <= 0.0 for logprob in turn.logprobs)
    assert replace(spoken, turns=()) == started("a")


def test_trajectories_are_the_same_alone_and_together(tmp_path: Path) -> None:
    policy = policy_at(tmp_path, 0)
    names = [f"t{i}" for i in range(20)]
    alone = [together(played(generator(), started(name), policy))[0] for name in names[:4]]
    crowd = generator()
    assert together(*(played(crowd, started(name), policy) for name in names))[:4] == alone


def test_trajectories_are_the_same_with_few_slots(tmp_path: Path) -> None:
    policy = policy_at(tmp_path, 0)
    results = []
    for num_slots in (1, 3, 64):
        crowd = generator(num_slots=num_slots, chunk_tokens=7 * num_slots)
        results.append(together(*(played(crowd, started(f"t{i}"), policy) for i in range(8))))
    assert results[0] == results[1] == results[2]


def test_a_generator_serves_one_event_loop_after_another(tmp_path: Path) -> None:
    policy, made = policy_at(tmp_path, 0), generator()
    first = together(played(made, started("a"), policy))
    assert together(played(made, started("a"), policy)) == first


def test_a_newer_policy_is_switched_to(tmp_path: Path) -> None:
    made, old, new = generator(), policy_at(tmp_path, 0), policy_at(tmp_path, 1)
    together(played(made, started("a"), old))
    assert together(played(made, started("b"), new)) == together(
        played(generator(), started("b"), new)
    )


def test_a_request_for_an_older_policy_is_served_by_the_newer_one(tmp_path: Path) -> None:
    made, old, new = generator(), policy_at(tmp_path, 0), policy_at(tmp_path, 1)
    together(played(made, started("a"), new))
    late = together(played(made, started("b"), old))
    assert late == together(played(generator(), started("b"), new))
    assert {turn.segments[0].policy_version for turn in late[0].turns} == {1}


def test_a_reply_under_way_goes_on_with_the_newer_policy(tmp_path: Path) -> None:
    made = generator(max_new_tokens=40, temperature=5.0)
    old, new = policy_at(tmp_path, 0), policy_at(tmp_path, 1)

    async def joined_in_mid_reply() -> Trajectory:
        first = asyncio.create_task(made.generate(started("a"), old, seed=3))
        for _ in range(8):
            await asyncio.sleep(0)
        await made.generate(started("b"), new, seed=4)
        return await first

    (turn,) = asyncio.run(joined_in_mid_reply()).turns
    assert [segment.policy_version for segment in turn.segments] == [0, 1]
    assert sum(segment.num_tokens for segment in turn.segments) == len(turn.completion_ids)


def test_other_weights_of_the_same_version_are_switched_to(tmp_path: Path) -> None:
    made = generator()
    cold, warm = policy_at(tmp_path, 0, seed=0), policy_at(tmp_path, 0, seed=9)
    together(played(made, started("a"), cold))
    assert together(played(made, started("a"), warm)) == together(
        played(generator(), started("a"), warm)
    )


def test_the_same_file_under_a_new_version_is_relabelled_and_not_loaded_again(
    tmp_path: Path,
) -> None:
    policy, made = policy_at(tmp_path, 0), generator()
    (old,) = together(played(made, started("a"), policy))
    Path(policy.value.path).unlink()
    renumbered = replace(policy, version=6, value=replace(policy.value, version=5))
    (new,) = together(played(made, started("a"), renumbered))
    assert {turn.segments[0].policy_version for turn in new.turns} == {6}
    assert [turn.logprobs for turn in new.turns] == [turn.logprobs for turn in old.turns]


def test_a_prompt_that_leaves_no_room_comes_back_truncated(tmp_path: Path) -> None:
    start = started("a", observation="left:wall " * 7_000)
    (spoken,) = together(generator().generate(start, policy_at(tmp_path, 0), seed=1))
    assert spoken == replace(start, status=Status.TRUNCATED)


@pytest.mark.parametrize("turns", [0, 1])
def test_a_huge_observation_is_truncated_without_being_tokenized(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    policy, made = policy_at(tmp_path, 0), generator()
    (spoken,) = together(played(made, started("a"), policy, turns))
    flooded = replace(spoken, observation="x" * 1_050_000)
    monkeypatch.setattr(Chat, "prompt_ids", None)
    (ended,) = together(made.generate(flooded, policy, seed=2))
    assert ended == replace(flooded, status=Status.TRUNCATED)


def test_a_later_observation_that_leaves_no_room_keeps_the_turns(tmp_path: Path) -> None:
    policy, made = policy_at(tmp_path, 0), generator()
    (spoken,) = together(made.generate(started("a"), policy, seed=1))
    flooded = replace(spoken, observation="x" * 70_000)
    (ended,) = together(made.generate(flooded, policy, seed=2))
    assert ended == replace(flooded, status=Status.TRUNCATED)


@pytest.mark.parametrize(("room", "num_tokens"), [(1, 1), (2, 2), (3, 3), (4, 4), (5, 4)])
def test_a_reply_is_cut_where_the_context_ends(tmp_path: Path, room: int, num_tokens: int) -> None:
    # Two tokens of markup and one a word fill the rest of the context.
    words = " ".join(["up"] * (SMALL.context_length - 2 - room))
    made = generator(max_new_tokens=4, temperature=50.0)
    policy = policy_at(tmp_path, 0)
    (spoken,) = together(made.generate(started("a", words), policy, seed=0))
    (turn,) = spoken.turns
    assert (len(turn.completion_ids), turn.finish_reason) == (num_tokens, "length")
    assert spoken.status is Status.RUNNING
    assert spoken.num_tokens <= SMALL.context_length


def test_a_cancelled_call_gives_its_slot_back(tmp_path: Path) -> None:
    made, policy = generator(num_slots=1, max_new_tokens=100), policy_at(tmp_path, 0)

    async def one_is_cancelled() -> Trajectory:
        hanging = asyncio.create_task(made.generate(started("a"), policy, seed=1))
        for _ in range(5):
            await asyncio.sleep(0)
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        return await made.generate(started("b"), policy, seed=2)

    (expected,) = together(generator(max_new_tokens=100).generate(started("b"), policy, seed=2))
    assert asyncio.run(one_is_cancelled()) == expected


def test_weights_that_cannot_be_loaded_fail_every_caller_and_the_next_call_works(
    tmp_path: Path,
) -> None:
    made, good = generator(), policy_at(tmp_path, 1)
    gone = replace(good, value=Weights(path=str(tmp_path / "gone"), version=2))

    async def two_fail() -> list[Trajectory | BaseException]:
        calls = (made.generate(started(name), gone, seed=1) for name in "ab")
        return await asyncio.gather(*calls, return_exceptions=True)

    assert [type(outcome) for outcome in asyncio.run(two_fail())] == [WeightsError] * 2
    # An older version than the one that failed: the failure is not remembered.
    assert together(played(made, started("c"), good)) == together(
        played(generator(), started("c"), good)
    )


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_an_error_that_names_the_version(
    tmp_path: Path, temperature: float, bad: float
) -> None:
    made, good = generator(temperature=temperature), policy_at(tmp_path, 8)
    state = {name: torch.full_like(t, bad) for name, t in load_model(SMALL).state_dict().items()}
    diverged = WeightStore(str(tmp_path)).publish(state, 7, {})
    broken = Latest(name="policy", version=7, value=diverged)
    with pytest.raises(SamplingError, match=r"version 7 of the policy .* earlier checkpoint"):
        together(*(made.generate(started(name, "up " * 60), broken, seed=1) for name in "ab"))
    # Nothing of them is left in the keys and values, not even where the next prompts end before.
    fresh = generator(temperature=temperature)
    assert together(played(made, started("a"), good)) == together(played(fresh, started("a"), good))


def test_a_stopped_pump_fails_its_callers(tmp_path: Path) -> None:
    made, policy = generator(max_new_tokens=100), policy_at(tmp_path, 0)

    async def stopped() -> None:
        call = asyncio.create_task(made.generate(started("a"), policy, seed=1))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        (pump,) = asyncio.all_tasks() - {call, asyncio.current_task()}
        pump.cancel()
        await call

    with pytest.raises(GeneratorStoppedError):
        asyncio.run(stopped())


def test_releasing_a_trajectory_does_not_change_its_next_turn(tmp_path: Path) -> None:
    policy, made = policy_at(tmp_path, 0), generator()
    (first,) = together(made.generate(started("a"), policy, seed=1))
    first = replace(first, observation="up:ice")
    (kept,) = together(made.generate(first, policy, seed=2))
    made.release(first)
    made.release(first)
    assert together(made.generate(first, policy, seed=2)) == [kept]


def test_the_system_text_heads_the_first_turn_only(tmp_path: Path) -> None:
    policy = policy_at(tmp_path, 0)
    (talk,) = together(played(generator(system="go to the goal"), started("a"), policy, 2))
    (bare,) = together(played(generator(), started("a"), policy, 2))
    first, later = (turn.prompt_ids for turn in talk.turns)
    head = first[: -len(bare.turns[0].prompt_ids)]
    assert first == head + bare.turns[0].prompt_ids
    assert head
    assert head[0] not in later


def test_wrong_settings_are_refused_and_named_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        Generator(GeneratorConfig(temperature=1e-6, num_slots=0))
    assert [problem.where for problem in caught.value.problems] == ["temperature", "num_slots"]


def test_greedy_decoding_is_a_right_setting() -> None:
    assert list(GeneratorConfig(temperature=0.0).problems()) == []
