"""FrozenLake as text: what is seen, what is understood, and which maps are held out."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlgraph.envs.frozen_lake import (
    FrozenLake,
    FrozenLakeConfig,
    held_out_tasks,
    make_lake,
    map_of,
    maps_of,
    read_action,
    render_map,
    render_neighbours,
    training_tasks,
)
from rlgraph.envs.lake_map import LakeMap, draw_map, shortest_path
from rlgraph.envs.protocol import Environment
from rlgraph.errors import ConfigError
from rlgraph.rl.records import Prompt

ROWS = ("SF", "HG")


def lake(rows: LakeMap = ROWS, *, max_turns: int = 12, slippery: bool = False) -> FrozenLake:
    config = FrozenLakeConfig(map=rows, max_turns=max_turns, is_slippery=slippery)
    return FrozenLake(config, render_neighbours)


def test_it_is_an_environment() -> None:
    assert isinstance(lake(), Environment)


def test_the_first_observation_tells_the_neighbours_and_the_goal() -> None:
    seen = "goal down:1 right:1 left:wall down:hole right:ice up:wall"
    assert lake().reset(0) == (seen, {})


def test_reaching_the_goal_is_a_success() -> None:
    walk = lake()
    walk.reset(0)
    info = {"success": 0.0, "invalid_actions": 0.0}
    seen = "goal down:1 right:0 left:ice down:goal right:wall up:wall"
    assert walk.step("right") == (seen, 0.0, False, False, info)
    seen = "goal down:0 right:0 left:hole down:wall right:wall up:ice"
    assert walk.step("down") == (seen, 1.0, True, False, {"success": 1.0, "invalid_actions": 0.0})


def test_falling_into_a_hole_ends_without_a_reward() -> None:
    walk = lake()
    walk.reset(0)
    assert walk.step("down")[1:4] == (0.0, True, False)


def test_walking_into_a_wall_stays_where_it_is() -> None:
    walk = lake()
    before, _ = walk.reset(0)
    assert walk.step("left")[0] == before


def test_an_unreadable_reply_is_told_how_to_play() -> None:
    walk = lake()
    seen, _ = walk.reset(0)
    answer = (f"say left, down, right or up\n{seen}", 0.0, False, False)
    assert walk.step("north \u202e\ud800\x00")[:4] == answer


def test_the_turn_limit_truncates() -> None:
    walk = lake(max_turns=1)
    walk.reset(0)
    assert walk.step("left")[2:4] == (False, True)


def test_slippery_ice_follows_the_seed() -> None:
    def path(seed: int) -> list[str]:
        walk = lake(("SFFF", "FFFF", "FFFF", "FFFG"), slippery=True)
        walk.reset(seed)
        return [walk.step("down")[0] for _ in range(4)]

    paths = [tuple(path(seed)) for seed in range(6)]
    assert paths[0] == tuple(path(0))
    assert len(set(paths)) > 1


def test_a_goal_above_and_to_the_left_is_named_so() -> None:
    assert render_neighbours(("GF", "FS"), (1, 1)).startswith("goal up:1 left:1 ")


def test_the_map_shows_the_player() -> None:
    assert render_map(("SF", "HG"), (1, 0)) == "SF\nPG"


def test_the_lake_of_a_prompt_can_show_the_map() -> None:
    walk = make_lake(Prompt(id="p"), config=FrozenLakeConfig(map=ROWS), render=render_map)
    assert walk.reset(0)[0] == "PF\nHG"
    walk.close()


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("left", 0),
        ("I go DOWN.", 1),
        ("right, yes right", 2),
        ("\x00up\ud800", 3),
        ("left or right", None),
        ("upright", None),
        ("", None),
        ("x" * 1_000_000, None),
    ],
)
def test_an_action_is_the_only_direction_named(text: str, action: int | None) -> None:
    assert read_action(text) == action


@settings(deadline=None)
@given(st.text())
def test_any_text_at_all_is_read(text: str) -> None:
    assert read_action(text) in {None, 0, 1, 2, 3}


def test_a_map_that_cannot_be_won_is_refused_with_the_reason() -> None:
    with pytest.raises(ConfigError, match=r"cannot be won.*\n +at map\n"):
        lake(("SH", "HG"))


def test_all_wrong_fields_are_reported_together() -> None:
    config = FrozenLakeConfig(size=1, frozen_probability=0.0, max_turns=0, map=("SX",))
    with pytest.raises(ConfigError) as caught:
        FrozenLake(config, render_neighbours)
    fields = [problem.where for problem in caught.value.problems]
    assert fields == ["size", "frozen_probability", "max_turns", "map"]


def test_a_probability_above_one_is_refused() -> None:
    problems = list(FrozenLakeConfig(frozen_probability=1.5).problems())
    assert [problem.what for problem in problems] == [
        "frozen_probability=1.5 is not between 0 and 1"
    ]


def test_the_map_comes_from_the_seed() -> None:
    config = FrozenLakeConfig(size=5)
    assert map_of(3, config) == draw_map(seed=3, size=5, frozen_probability=0.8)


def test_a_given_map_is_every_task() -> None:
    assert [map_of(seed, FrozenLakeConfig(map=ROWS)) for seed in range(2)] == [ROWS, ROWS]


def test_the_game_is_played_on_the_map_of_its_seed() -> None:
    config = FrozenLakeConfig(size=4)
    for seed in range(5):
        rows = map_of(seed, config)
        walk = FrozenLake(config, render_map)
        assert walk.reset(seed)[0].replace("P", "S") == "\n".join(rows)
        rewards = [walk.step(action)[1] for action in shortest_path(rows) or ()]
        assert rewards[-1] == 1.0


def test_held_out_tasks_have_distinct_maps() -> None:
    config = FrozenLakeConfig()
    tasks = held_out_tasks(config, 50, seed=1)
    assert len(tasks) == len(maps_of(tasks, config)) == 50
    assert len({task.id for task in tasks}) == 50


def test_training_never_yields_a_held_out_map() -> None:
    config = FrozenLakeConfig(size=3, instruction="go")
    held = maps_of(held_out_tasks(config, 20, seed=1), config)
    tasks = list(islice(training_tasks(config, 0, held), 500))
    assert not maps_of(tasks, config) & held
    assert tasks[0] == Prompt(id="train/0", text="go", domain="frozen_lake", seed=tasks[0].seed)


def test_training_tasks_are_the_same_for_the_same_seed() -> None:
    config = FrozenLakeConfig()
    runs = [list(islice(training_tasks(config, 4, frozenset()), 20)) for _ in range(2)]
    assert runs[0] == runs[1]


def test_holding_out_more_maps_than_there_are_is_an_error() -> None:
    with pytest.raises(ConfigError, match="hold out fewer maps"):
        held_out_tasks(FrozenLakeConfig(size=2), 20, seed=0)


def test_holding_out_every_map_is_an_error() -> None:
    tasks = training_tasks(FrozenLakeConfig(map=ROWS), 0, frozenset({ROWS}))
    with pytest.raises(ConfigError, match="held out or drawn before"):
        next(tasks)


def test_a_wrong_configuration_fails_before_the_first_task() -> None:
    with pytest.raises(ConfigError, match="size=1"):
        training_tasks(FrozenLakeConfig(size=1), 0, frozenset())
