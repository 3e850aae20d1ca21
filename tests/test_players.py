"""Players without a model, and the walks that a warm start imitates."""

from __future__ import annotations

import asyncio
import math
from collections import Counter

import pytest

from rlgraph.envs.frozen_lake import ACTIONS, FrozenLake, FrozenLakeConfig, render_neighbours
from rlgraph.envs.lake_map import draw_map, find, letter_at, moved
from rlgraph.envs.players import RandomPlayer, ScriptedPlayer, demonstrate, random_walk
from rlgraph.envs.scripted import ScriptedEnvironment, ScriptedStep
from rlgraph.ports import Latest
from rlgraph.rl.records import Prompt, Segment, Trajectory, Turn

POLICY = Latest(name="policy", version=4, value=None)
START = Trajectory(id="t", prompt=Prompt(id="p"), observation="where to?")


def generated(player: RandomPlayer | ScriptedPlayer, seed: int = 0) -> Trajectory:
    return asyncio.run(player.generate(START, policy=POLICY, seed=seed))


def test_a_random_turn_has_the_true_logprob_and_the_version_of_the_policy() -> None:
    turn = generated(RandomPlayer(ACTIONS), seed=1).turns[0]
    assert turn == Turn(
        prompt_ids=(0,),
        completion_ids=(ACTIONS.index(turn.text) + 1,),
        logprobs=(-math.log(4),),
        segments=(Segment(num_tokens=1, policy_version=4),),
        text=turn.text,
        finish_reason="stop",
    )


def test_the_random_choice_depends_on_the_seed_alone() -> None:
    player = RandomPlayer(ACTIONS)
    assert generated(player, 7) == generated(player, 7)


def test_the_random_choice_is_uniform() -> None:
    player = RandomPlayer(ACTIONS)
    counts = Counter(generated(player, seed).turns[0].text for seed in range(1000))
    assert all(200 < counts[action] < 300 for action in ACTIONS)


def test_a_random_player_needs_an_action() -> None:
    with pytest.raises(ValueError, match="actions is empty"):
        RandomPlayer([])


def test_a_script_is_played_turn_by_turn() -> None:
    player = ScriptedPlayer(["up", "down"])
    first = generated(player)
    second = asyncio.run(player.generate(first, POLICY, 0))
    assert [(turn.text, turn.logprobs) for turn in second.turns] == [
        ("up", (0.0,)),
        ("down", (0.0,)),
    ]


def test_a_script_at_its_end_is_an_error() -> None:
    with pytest.raises(IndexError, match="'t' asks for action 0, the script has 0"):
        generated(ScriptedPlayer([]))


def test_a_random_walk_stays_on_the_board() -> None:
    rows = draw_map(seed=1, size=4, frozen_probability=0.8)
    for seed in range(50):
        cell = find(rows, "S")
        walk = random_walk(rows, seed=seed, limit=12)
        assert 1 <= len(walk) <= 12
        for action in walk:
            assert letter_at(rows, cell) not in {"G", "H"}
            cell = moved(cell, action)
            assert letter_at(rows, cell) != ""


def test_a_random_walk_depends_on_the_seed_alone() -> None:
    rows = draw_map(seed=1, size=8, frozen_probability=1.0)
    walks = [random_walk(rows, seed=seed, limit=9) for seed in (1, 1, 2)]
    assert walks[0] == walks[1] != walks[2]


def test_a_demonstration_pairs_what_was_seen_with_what_was_done() -> None:
    walk = FrozenLake(FrozenLakeConfig(map=("SF", "HG")), render_neighbours)
    assert demonstrate(walk, ["right", "down", "left"], seed=0) == (
        ("goal down:1 right:1 left:wall down:hole right:ice up:wall", "right"),
        ("goal down:1 right:0 left:ice down:goal right:wall up:wall", "down"),
    )


def test_a_demonstration_shorter_than_the_game_closes_it() -> None:
    environment = ScriptedEnvironment("a", [ScriptedStep(observation="b")])
    assert demonstrate(environment, ["x"], seed=0) == (("a", "x"),)
    assert environment.closed
