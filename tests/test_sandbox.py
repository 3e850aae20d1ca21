"""The stage that acts: one live environment a trajectory, closed at the end in every way."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from rlgraph.envs.frozen_lake import FrozenLakeConfig, make_lake
from rlgraph.envs.players import RandomPlayer
from rlgraph.envs.protocol import Environment, EnvironmentFailedError, Info
from rlgraph.envs.sandbox import Sandbox, is_done
from rlgraph.envs.scripted import EchoEnvironment, ScriptedEnvironment, ScriptedStep
from rlgraph.ports import Latest
from rlgraph.rl.records import Prompt, Segment, Status, Trajectory, Turn

PROMPT = Prompt(id="p", seed=11)
POLICY = Latest(name="policy", version=0, value=None)


def turn(text: str) -> Turn:
    return Turn(
        prompt_ids=(1,),
        completion_ids=(2,),
        logprobs=(-0.5,),
        segments=(Segment(num_tokens=1, policy_version=0),),
        text=text,
        finish_reason="stop",
    )


def said(trajectory: Trajectory, text: str) -> Trajectory:
    return replace(trajectory, turns=(*trajectory.turns, turn(text)))


def scripted(*steps: ScriptedStep) -> ScriptedEnvironment:
    return ScriptedEnvironment("first", steps)


def sandbox_of(environment: Environment, max_turns: int = 9) -> Sandbox:
    sandbox = Sandbox(lambda _prompt: environment, max_turns)
    sandbox.setup("cpu")
    return sandbox


def test_reset_names_the_trajectory_after_prompt_and_seed() -> None:
    started = sandbox_of(scripted()).reset(PROMPT, seed=0xABC)
    expected = Trajectory(id="p/0000000000000abc", prompt=PROMPT, observation="first")
    assert started == expected


def test_the_environment_is_seeded_by_the_prompt_so_siblings_meet_the_same_task() -> None:
    environment = scripted()
    sandbox = sandbox_of(environment)
    sandbox.reset(PROMPT, seed=1)
    sandbox.reset(PROMPT, seed=2)
    assert environment.seeds == [11, 11]


def test_a_step_sets_the_reward_of_the_turn_and_the_next_observation() -> None:
    environment = scripted(ScriptedStep(observation="next", reward=0.25))
    sandbox = sandbox_of(environment)
    spoken = said(sandbox.reset(PROMPT, 0), "go")
    rewarded = replace(turn("go"), reward=0.25)
    assert sandbox.act(spoken) == replace(spoken, turns=(rewarded,), observation="next")
    assert environment.actions == ["go"]
    assert not environment.closed


def test_the_end_sums_the_rewards_and_closes() -> None:
    environment = scripted(ScriptedStep(reward=0.5), ScriptedStep(reward=1.0, terminated=True))
    sandbox = sandbox_of(environment)
    acted = sandbox.act(said(sandbox.reset(PROMPT, 0), "a"))
    assert not is_done(acted)
    ended = sandbox.act(said(acted, "b"))
    assert (ended.status, ended.reward, is_done(ended)) == (Status.DONE, 1.5, True)
    assert environment.closed


def test_truncation_by_the_environment_is_told() -> None:
    sandbox = sandbox_of(scripted(ScriptedStep(truncated=True)))
    ended = sandbox.act(said(sandbox.reset(PROMPT, 0), "a"))
    assert (ended.status, ended.reward) == (Status.TRUNCATED, 0.0)


def test_the_turn_limit_truncates_and_closes() -> None:
    environment = scripted(ScriptedStep(), ScriptedStep(reward=0.5))
    sandbox = sandbox_of(environment, max_turns=2)
    acted = sandbox.act(said(sandbox.reset(PROMPT, 0), "a"))
    ended = sandbox.act(said(acted, "b"))
    assert (ended.status, ended.reward, environment.closed) == (Status.TRUNCATED, 0.5, True)


def test_the_last_value_of_a_measurement_stands() -> None:
    class Measured(EchoEnvironment):
        def reset(self, seed: int) -> tuple[str, Info]:
            return "", {"seed": seed, "steps": 0.0}

        def step(self, action: str) -> tuple[str, float, bool, bool, Info]:
            return action, 0.0, False, False, {"steps": 1.0}

    sandbox = sandbox_of(Measured())
    acted = sandbox.act(said(sandbox.reset(PROMPT, 0), "a"))
    assert acted.info == {"seed": 11, "steps": 1.0}


def test_a_trajectory_that_another_stage_cut_is_closed_without_a_step() -> None:
    environment = scripted(ScriptedStep(reward=1.0))
    sandbox = sandbox_of(environment)
    cut = replace(sandbox.reset(PROMPT, 0), status=Status.TRUNCATED)
    assert sandbox.act(cut) == replace(cut, reward=0.0)
    assert (environment.actions, environment.closed) == ([], True)


def test_a_failed_trajectory_gets_no_reward() -> None:
    sandbox = sandbox_of(scripted())
    failed = replace(sandbox.reset(PROMPT, 0), status=Status.FAILED)
    assert sandbox.act(failed) == failed


def test_a_live_trajectory_of_the_same_id_is_replaced() -> None:
    made = [scripted(), scripted(ScriptedStep(observation="second"))]
    sandbox = Sandbox(lambda _prompt: made[len(made) - 1] if made[0].closed else made[0], 9)
    sandbox.reset(PROMPT, 0)
    again = sandbox.reset(PROMPT, 0)
    assert (made[0].closed, made[1].closed) == (True, False)
    assert sandbox.act(said(again, "x")).observation == "second"


def test_release_closes_once_and_forgets() -> None:
    environment = scripted(ScriptedStep())
    sandbox = sandbox_of(environment)
    started = sandbox.reset(PROMPT, 0)
    sandbox.release(started)
    sandbox.release(started)
    assert environment.closed
    with pytest.raises(EnvironmentFailedError, match="'p/0000000000000000' has no live"):
        sandbox.act(said(started, "a"))


def test_acting_before_a_reply_is_an_error() -> None:
    sandbox = sandbox_of(scripted())
    with pytest.raises(EnvironmentFailedError, match="has no turn; generate a reply first"):
        sandbox.act(sandbox.reset(PROMPT, 0))


def test_what_the_environment_raises_passes_through() -> None:
    class Broken(EchoEnvironment):
        def step(self, action: str) -> tuple[str, float, bool, bool, Info]:
            raise RuntimeError(action)

    sandbox = sandbox_of(Broken())
    with pytest.raises(RuntimeError, match="boom"):
        sandbox.act(said(sandbox.reset(PROMPT, 0), "boom"))


def test_a_late_step_does_not_touch_the_retry_of_its_trajectory() -> None:
    class Late(EchoEnvironment):
        def step(self, action: str) -> tuple[str, float, bool, bool, Info]:
            sandbox.reset(PROMPT, 0)
            return action, 1.0, True, False, {}

    retry = scripted(ScriptedStep(observation="fresh"))
    made = iter([Late(), retry])
    sandbox = Sandbox(lambda _prompt: next(made), 9)
    started = sandbox.reset(PROMPT, 0)
    with pytest.raises(EnvironmentFailedError, match="was released or reset during the call"):
        sandbox.act(said(started, "a"))
    assert not retry.closed
    assert sandbox.act(said(started, "b")).observation == "fresh"


def test_an_environment_that_cannot_start_is_closed() -> None:
    class Unstartable(ScriptedEnvironment):
        def reset(self, seed: int) -> tuple[str, Info]:
            raise RuntimeError(f"no seed {seed}")

    environment = Unstartable("", ())
    with pytest.raises(RuntimeError, match="no seed 11"):
        sandbox_of(environment).reset(PROMPT, 0)
    assert environment.closed


def test_a_sandbox_without_turns_is_refused() -> None:
    with pytest.raises(ValueError, match="max_turns must be >= 1, got 0"):
        sandbox_of(scripted(), max_turns=0)


def test_the_same_prompt_three_times_gives_twelve_trajectories() -> None:
    sandbox = sandbox_of(EchoEnvironment())
    started = [sandbox.reset(PROMPT, seed) for _ in range(3) for seed in range(12)]
    assert len({trajectory.id for trajectory in started}) == 12
    live = [sandbox.act(said(trajectory, str(i))) for i, trajectory in enumerate(started[:12])]
    assert [trajectory.observation for trajectory in live] == [str(i) for i in range(12)]


@pytest.mark.parametrize(
    "text",
    [
        "\ud800 alone",
        "a\x00b",
        "\u202eright to left",
        "x" * 1_000_000,
        "\U0001f9d1\u200d\U0001f680",
    ],
    ids=["surrogate", "nul", "rtl", "1MB", "emoji"],
)
def test_odd_text_passes_unchanged_both_ways(text: str) -> None:
    sandbox = sandbox_of(EchoEnvironment())
    acted = sandbox.act(said(sandbox.reset(PROMPT, 0), text))
    assert (acted.observation, acted.turns[-1].text) == (text, text)


def test_a_tool_message_of_70_kb_at_turn_five_is_kept_whole() -> None:
    message = "log line\n" * 7_800
    steps = [ScriptedStep(observation=message if i == 4 else "ok") for i in range(6)]
    sandbox = sandbox_of(scripted(*steps))
    trajectory = sandbox.reset(PROMPT, 0)
    for _ in range(5):
        trajectory = sandbox.act(said(trajectory, "a"))
    assert len(trajectory.observation) > 70_000
    assert (trajectory.observation, trajectory.status) == (message, Status.RUNNING)


def test_trajectories_on_eight_threads_do_not_mix() -> None:
    config = FrozenLakeConfig()
    player = RandomPlayer(("left", "down", "right", "up"))

    def play(sandbox: Sandbox, seed: int) -> Trajectory:
        trajectory = sandbox.reset(Prompt(id="p", seed=seed % 5), seed)
        while not is_done(trajectory):
            turn_seed = 1000 * seed + len(trajectory.turns)
            spoken = asyncio.run(player.generate(trajectory, POLICY, turn_seed))
            trajectory = sandbox.act(spoken)
        return trajectory

    def make(prompt: Prompt) -> Environment:
        return make_lake(prompt, config=config)

    shared = Sandbox(make, config.max_turns)
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda seed: play(shared, seed), range(40)))
    assert together == [play(Sandbox(make, config.max_turns), seed) for seed in range(40)]


class Odd:
    """An environment whose answers are not of the right form."""

    def reset(self, seed: int) -> object:
        return "hello"

    def step(self, action: str) -> object:
        return "hello", 0.0, False, {}

    def close(self) -> None:
        pass


class Begun(Odd):
    def reset(self, seed: int) -> object:
        return "hello", {}


def test_what_is_not_an_environment_is_refused() -> None:
    sandbox = Sandbox(lambda prompt: "lake", max_turns=1)
    with pytest.raises(EnvironmentFailedError, match="'lake' is not an environment; to mend: give"):
        sandbox.reset(Prompt(id="a"), seed=1)


def test_a_reset_of_another_form_says_which_is_wanted_and_leaves_nothing_open() -> None:
    sandbox = Sandbox(lambda prompt: Odd(), max_turns=1)
    with pytest.raises(EnvironmentFailedError, match=r"Odd.reset returned 'hello'; to mend:"):
        sandbox.reset(Prompt(id="a"), seed=1)
    assert not sandbox._live


def test_a_step_of_another_form_says_which_is_wanted() -> None:
    sandbox = Sandbox(lambda prompt: Begun(), max_turns=1)
    started = sandbox.reset(Prompt(id="a"), seed=1)
    turn = Turn(
        prompt_ids=(), completion_ids=(), logprobs=(), segments=(), text="", finish_reason="stop"
    )
    with pytest.raises(EnvironmentFailedError, match=r"Begun.step returned \('hello', 0.0, False"):
        sandbox.act(replace(started, turns=(turn,)))
