"""The main job: a tiny model learns to cross tiny lakes, and does so alike on every executor."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from rlgraph.config import load_config
from rlgraph.envs.frozen_lake import FrozenLake, FrozenLakeConfig, map_of
from rlgraph.envs.players import demonstrate
from rlgraph.errors import ConfigError, StarvedError
from rlgraph.executors.inline import InlineExecutor
from rlgraph.executors.simulated import SimulatedExecutor
from rlgraph.executors.thread import ThreadExecutor
from rlgraph.graphs.agentic_grpo import (
    Config,
    OptimConfig,
    WarmStartConfig,
    build,
    held_out_maps,
    job,
    random_play,
    read_tasks,
)
from rlgraph.jsonl import read_lines
from rlgraph.llm.models import ModelConfig
from rlgraph.metrics import read_metrics
from rlgraph.rl.datasets import DatasetError
from rlgraph.rl.records import Trajectory
from rlgraph.running.execution import Executor
from rlgraph.session import Options, run_job
from rlgraph.session.job import RECORDS_BYTES
from rlgraph.session.rundir import RunDirectory
from rlgraph.trace import read_trace
from tests.school import Told

TINY = Config(
    versions=3,
    group_size=4,
    batch_size=16,
    held_out_maps=1,
    model=ModelConfig(hidden_size=32, num_layers=1, num_heads=2, intermediate_size=64),
    env=FrozenLakeConfig(size=2, max_turns=4),
    warm_start=WarmStartConfig(plays=256, batch_size=16, learning_rate=1e-2),
    optim=OptimConfig(learning_rate=1e-2),
)

EXECUTORS: dict[str, Callable[[], Executor]] = {
    "inline": InlineExecutor,
    "thread": ThreadExecutor,
    "simulated": SimulatedExecutor,
}


def go(
    out: Path,
    config: Config = TINY,
    *,
    executor: Executor | None = None,
    show: Told | None = None,
    resume: bool = False,
) -> dict[str, object]:
    summary = run_job(
        job(config, out),
        config=config,
        executor=executor or InlineExecutor(),
        directory=RunDirectory(path=out),
        show=show or Told(),
        options=Options(versions=config.versions, seed=config.seed, resume=resume),
    )
    return dict(summary)


def trained(out: Path) -> bytes:
    """Give weights and optimizer state of the last version."""
    (state,) = out.glob("checkpoints/*/trainer.safetensors")
    return state.read_bytes()


def schedule(out: Path) -> list[tuple[str, int]]:
    """List every call with the version that it was given; the order of their ends is free."""
    return sorted((s.key, s.version) for s in read_trace(RunDirectory(path=out).spans).spans)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One run on each executor."""
    out = tmp_path_factory.mktemp("runs")
    for name, executor in EXECUTORS.items():
        go(out / name, executor=executor())
    return {name: out / name for name in EXECUTORS}


def test_the_run_learns_from_its_rewards(runs: dict[str, Path]) -> None:
    rows = read_metrics(RunDirectory(path=runs["inline"]).metrics)
    assert [row["version"] for row in rows] == [1, 2, 3]
    assert all(0 < row["reward"] < 1 and row["grad_norm"] > 0 for row in rows)


@pytest.mark.parametrize("other", ["thread", "simulated"])
def test_without_staleness_the_weights_are_the_same_on_every_executor(
    runs: dict[str, Path], other: str
) -> None:
    assert trained(runs["inline"]) == trained(runs[other])


@pytest.mark.parametrize("other", ["thread", "simulated"])
def test_without_staleness_the_schedule_is_the_same_on_every_executor(
    runs: dict[str, Path], other: str
) -> None:
    assert schedule(runs["inline"]) == schedule(runs[other])


def test_the_warm_start_is_reported_apart(runs: dict[str, Path]) -> None:
    summary = json.loads((runs["inline"] / "summary.json").read_text())
    assert summary["warm_start_plays"] == 256.0
    assert summary["warm_start_loss"] > 0
    assert {"held_out_success_before", "held_out_success_after"} <= summary.keys()
    assert {"seconds", "versions", "outcomes"} <= summary.keys()


def after_calls(count: int) -> Callable[[str], bool]:
    """Interrupt after so many calls: amid a rollout."""
    calls = iter(range(1, count + 1))
    return lambda line: line.startswith("calls") and next(calls, count) == count


@pytest.mark.parametrize(
    "interrupt",
    [
        pytest.param(lambda line: line == "version 1", id="after a version"),
        pytest.param(after_calls(100), id="amid a rollout"),
        pytest.param(lambda line: line == "evaluating after training", id="when all is trained"),
    ],
)
def test_a_resumed_run_has_the_weights_of_one_that_never_stopped(
    runs: dict[str, Path], interrupt: Callable[[str], bool], tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, show=Told(interrupt))
    go(tmp_path, resume=True)
    assert trained(tmp_path) == trained(runs["inline"])


def test_staleness_stays_within_its_bound(tmp_path: Path) -> None:
    summary = go(tmp_path, replace(TINY, max_staleness=1), executor=ThreadExecutor())
    lags = summary["lags"]
    assert isinstance(lags, dict)
    assert lags["policy"].keys() <= {"0", "1"}
    assert sum(lags["policy"].values()) == TINY.versions * TINY.batch_size


def test_groups_without_signal_are_replaced(tmp_path: Path) -> None:
    summary = go(tmp_path, replace(TINY, dynamic_sampling=True, group_size=2, versions=1))
    outcomes = summary["outcomes"]
    assert isinstance(outcomes, dict)
    assert outcomes["consumed"] == TINY.batch_size
    assert outcomes["filtered"] + outcomes["surplus"] > 0


def test_without_any_signal_the_run_starves_and_makes_no_step(tmp_path: Path) -> None:
    too_far = FrozenLakeConfig(size=4, max_turns=2)
    cold = WarmStartConfig(plays=0)
    with pytest.raises(StarvedError, match="filtered"):
        go(tmp_path, replace(TINY, dynamic_sampling=True, env=too_far, warm_start=cold))
    assert read_metrics(RunDirectory(path=tmp_path).metrics) == []


def test_what_is_too_long_is_truncated_and_trained_on(tmp_path: Path) -> None:
    short = replace(TINY, versions=2, model=replace(TINY.model, context_length=24))
    summary = go(tmp_path, short)
    outcomes = summary["outcomes"]
    assert isinstance(outcomes, dict)
    assert outcomes["consumed"] == 2 * TINY.batch_size
    directory = RunDirectory(path=tmp_path)
    assert 12 < read_metrics(directory.metrics)[-1]["trajectory_tokens"] <= 24
    assert read_lines(directory.failures) == []


def test_no_held_out_map_is_trained_on() -> None:
    known = held_out_maps(TINY)
    tasks = list(islice(read_tasks(TINY), 200))
    assert len(known) == 1
    assert not known & {map_of(task.seed, TINY.env) for task in tasks}


def test_no_held_out_map_is_imitated(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []

    def noting(game: FrozenLake, walk: Sequence[str], seed: int) -> Trajectory:
        seeds.append(seed)
        return demonstrate(game, walk, seed)

    monkeypatch.setattr("rlgraph.graphs.agentic_grpo.demonstrate", noting)
    assert len(list(islice(random_play(TINY), 50))) == len(seeds) == 50
    assert not held_out_maps(TINY) & {map_of(seed, TINY.env) for seed in seeds}


def test_held_out_maps_are_those_of_every_seed() -> None:
    assert held_out_maps(TINY) == held_out_maps(replace(TINY, seed=7))


def tasks_of(tmp_path: Path, *seeds: int) -> Config:
    path = tmp_path / "tasks.jsonl"
    rows = (json.dumps({"id": str(i), "seed": seed}) for i, seed in enumerate(seeds))
    path.write_text("\n".join(rows))
    return replace(TINY, tasks=str(path))


def held_out_seed() -> int:
    return next(seed for seed in range(10_000) if map_of(seed, TINY.env) in held_out_maps(TINY))


def free_seed() -> int:
    return next(seed for seed in range(10_000) if map_of(seed, TINY.env) not in held_out_maps(TINY))


def test_tasks_of_a_file_come_again_and_again_without_those_held_out(tmp_path: Path) -> None:
    config = tasks_of(tmp_path, held_out_seed(), free_seed())
    assert [task.id for task in islice(read_tasks(config), 3)] == ["1", "1", "1"]


def test_tasks_that_are_all_held_out_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="is on a held-out map"):
        job(tasks_of(tmp_path, held_out_seed()), tmp_path)


def test_a_bad_line_of_the_tasks_is_named_before_anything_starts(tmp_path: Path) -> None:
    config = tasks_of(tmp_path, free_seed(), -1)
    with pytest.raises(DatasetError, match=r"tasks.jsonl:2: 'seed' must be >= 0"):
        job(config, tmp_path)


@pytest.mark.parametrize(
    ("env", "complaint"),
    [
        (FrozenLakeConfig(map=("SF", "FG")), "FrozenLake has too few maps"),
        (FrozenLakeConfig(size=6, frozen_probability=0.01), "could be won"),
    ],
)
def test_lakes_that_leave_nothing_to_train_on_are_refused(
    env: FrozenLakeConfig, complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        job(replace(TINY, env=env), tmp_path)


def test_what_is_wrong_between_and_within_settings_is_told_at_once() -> None:
    overrides = [
        "batch_size=100",
        "group_size=16",
        "max_staleness=-1",
        "temperature=0",
        "env.map=[SH,HG]",
        "optim.learning_rate=0",
        "warm_start.batch_size=0",
        "model.name=nope",
    ]
    with pytest.raises(ConfigError) as caught:
        load_config(Config, overrides=overrides)
    assert sorted(problem.where for problem in caught.value.problems) == [
        "batch_size",
        "env.map",
        "max_staleness",
        "model.name",
        "optim.learning_rate",
        "temperature",
        "warm_start.batch_size",
    ]


@pytest.mark.parametrize("temperature", ["1e-45", "-1", ".inf", "0"])
def test_a_temperature_that_teaches_nothing_is_told_once(temperature: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(Config, overrides=[f"temperature={temperature}"])
    assert [problem.where for problem in caught.value.problems] == ["temperature"]


def test_a_model_of_no_size_is_told_with_the_rest() -> None:
    overrides = ["model.hidden_size=0", "model.num_layers=0", "temperature=1e-45"]
    with pytest.raises(ConfigError) as caught:
        load_config(Config, overrides=overrides)
    assert sorted(problem.where for problem in caught.value.problems) == [
        "model.hidden_size",
        "model.num_layers",
        "temperature",
    ]


def test_the_graph_alone_loads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for loader in ("trainer", "generator"):
        monkeypatch.setattr(f"rlgraph.llm.{loader}.load_model", None)
    graph = build(replace(TINY, dynamic_sampling=True))
    graph.check()
    filters = [node.name for node in graph.nodes if node.verb == "filter"]
    assert filters == ["can_train", "has_signal"]


def test_a_larger_model_and_more_staleness_need_more_disk(tmp_path: Path) -> None:
    large = replace(TINY, model=replace(TINY.model, hidden_size=4 * TINY.model.hidden_size))
    needs = [
        job(config, tmp_path).needed_bytes
        for config in (TINY, replace(TINY, max_staleness=1), large)
    ]
    assert RECORDS_BYTES < needs[0] < needs[1] < needs[2]
