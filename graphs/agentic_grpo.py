"""Multi-turn agents trained with GRPO: a language model learns to cross a frozen lake.

    lakes -> fan_out(group_size) -> reset -> (generate <-> act)* -> verify -> group -> advantages
                                              ^                                           |
                                              +- policy <- publish <- step <- batch <-----+

GRPO: arXiv:2402.03300. Clip-higher: arXiv:2503.14476. Run it: ``rlgraph run agentic_grpo``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

from rlgraph import Graph, Latest, Profile, Stream
from rlgraph.config import above, at_least, divides
from rlgraph.envs.frozen_lake import (
    FrozenLake,
    FrozenLakeConfig,
    held_out_tasks,
    make_lake,
    map_of,
    maps_of,
    render_neighbours,
    training_tasks,
)
from rlgraph.envs.players import demonstrate, random_walk
from rlgraph.envs.sandbox import Sandbox, is_done
from rlgraph.errors import ConfigError, Problem
from rlgraph.llm.chat import Chat
from rlgraph.llm.generator import Generator, GeneratorConfig
from rlgraph.llm.imitation import imitation_sample
from rlgraph.llm.models import ModelConfig, load_tokenizer, stored_bytes
from rlgraph.llm.sampling import temperature_problems
from rlgraph.llm.trainer import Trainer, TrainerConfig
from rlgraph.llm.weights import Weights
from rlgraph.rl.datasets import DatasetError, read_prompts
from rlgraph.rl.records import Prompt, Sample, Trajectory
from rlgraph.rl.rewards import verify
from rlgraph.rl.samples import can_train, group_samples, has_signal
from rlgraph.running.execution import Executor
from rlgraph.running.loop import run
from rlgraph.session.job import RECORDS_BYTES

KEPT_WEIGHTS = 3
"""Published weights that stay on disk beyond those that a trajectory may still be behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimConfig:
    """How the policy is updated."""

    learning_rate: float = 2e-3
    warmup_steps: int = 5
    """Updates in which the learning rate rises to its value."""
    max_grad_norm: float = 1.0
    clip_low: float = 0.2
    clip_high: float = 0.28
    """Clip-higher keeps unlikely tokens alive (arXiv:2503.14476, section 3.1)."""
    max_micro_batch_tokens: int = 16384
    """Tokens of a forward and backward pass; gradients accumulate over them."""

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with a setting."""
        for name in ("learning_rate", "max_grad_norm", "clip_low", "clip_high"):
            yield from above(self, name, 0)
        yield from at_least(self, "warmup_steps", 0)
        yield from at_least(self, "max_micro_batch_tokens", 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmStartConfig:
    """Imitation of random legal moves: the model learns to answer in the right format, no more."""

    plays: int = 1280
    """Imitated plays; 0: no warm start."""
    batch_size: int = 32
    """Plays of a step."""
    learning_rate: float = 4e-3

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with a setting."""
        yield from at_least(self, "plays", 0)
        yield from at_least(self, "batch_size", 1)
        yield from above(self, "learning_rate", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings of the job; every one can be given as ``key=value``."""

    seed: int = 0
    versions: int = 40
    """Updates of the policy."""
    max_staleness: int = 0
    """Versions that a trajectory may be behind the trainer; 0 is synchronous."""
    group_size: int = 8
    """Attempts at one map."""
    batch_size: int = 128
    """Trajectories of an update."""
    tasks: str = ""
    """JSON-lines file of prompts whose seeds give the maps; empty: random maps without end."""
    dynamic_sampling: bool = False
    """Replace groups whose rewards are all equal (arXiv:2503.14476, section 3.2)."""
    held_out_maps: int = 100
    """Maps that success is measured on and that are never trained on."""
    model: ModelConfig = field(default_factory=ModelConfig)
    env: FrozenLakeConfig = field(default_factory=FrozenLakeConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    warm_start: WarmStartConfig = field(default_factory=WarmStartConfig)
    temperature: float = 1.0
    max_new_tokens: int = 4
    """Tokens of a reply, its end token included."""
    in_flight: int = 128
    """Trajectories that the generator serves at once."""

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong between settings."""
        positive = ("versions", "group_size", "batch_size", "held_out_maps", "max_new_tokens")
        for name in (*positive, "in_flight"):
            yield from at_least(self, name, 1)
        if self.temperature == 0:
            # Greedy attempts at one map are all alike: nothing to learn from.
            yield from above(self, "temperature", 0)
        yield from temperature_problems(self.temperature)
        yield from at_least(self, "max_staleness", 0)
        yield from divides(self, "group_size", "batch_size")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The objects with state that the stages are methods of."""

    generator: Generator
    sandbox: Sandbox
    trainer: Trainer

    @classmethod
    def of(cls, config: Config, directory: Path) -> Parts:
        """Make them; nothing is loaded yet."""
        model = replace(config.model, seed=config.seed)
        generator = GeneratorConfig(
            model=model,
            temperature=config.temperature,
            max_new_tokens=config.max_new_tokens,
            # Of those under way at once, which grows with the staleness, all keep their cache.
            num_slots=config.in_flight * (1 + config.max_staleness),
        )
        optim = config.optim
        trainer = TrainerConfig(
            model=model,
            weights_dir=str(directory / "weights"),
            keep_weights=config.max_staleness + KEPT_WEIGHTS,
            learning_rate=optim.learning_rate,
            warmup_steps=optim.warmup_steps,
            max_grad_norm=optim.max_grad_norm,
            clip_low=optim.clip_low,
            clip_high=optim.clip_high,
            temperature=config.temperature,
            max_micro_batch_tokens=optim.max_micro_batch_tokens,
        )
        return cls(
            generator=Generator(generator),
            sandbox=Sandbox(partial(make_lake, config=config.env), config.env.max_turns),
            trainer=Trainer(trainer),
        )

    def release(self, trajectory: Trajectory) -> None:
        """Give back what a trajectory holds: its environment, its place in the generator."""
        self.sandbox.release(trajectory)
        self.generator.release(trajectory)


def build(config: Config) -> Graph:
    """Return the graph alone, for ``rlgraph show``."""
    return agentic_grpo(config, Parts.of(config, Path("runs")))


def agentic_grpo(config: Config, parts: Parts) -> Graph:
    """Wire the parts: attempts in groups, their advantages, a training step, the next policy."""
    g = Graph("agentic_grpo")
    policy = g.latest("policy", init=parts.trainer.weights, max_staleness=config.max_staleness)
    tasks = g.source(read_tasks, config)
    trajectories = played(tasks.fan_out(config.group_size), policy, config, parts, g.seed)
    groups = trajectories.map(verify).filter(can_train).group().map(group_samples)
    if config.dynamic_sampling:
        groups = groups.filter(has_signal)
    groups.unbatch().batch(config.batch_size).map(parts.trainer.step).publish_to(policy)
    return g


def evaluation(config: Config, parts: Parts, policy: Latest[Weights]) -> Graph:
    """Wire one attempt at each held-out map."""
    g = Graph("evaluation")
    played(g.source(held_out, config), policy, config, parts, g.seed).collect("played")
    return g


def played(
    tasks: Stream[Prompt], policy: Latest[Weights], config: Config, parts: Parts, seed: int
) -> Stream[Trajectory]:
    """Play each task to its end: observe, reply, act, turn by turn."""

    def turn(live: Stream[Trajectory]) -> Stream[Trajectory]:
        spoken = live.map_async(parts.generator.generate, policy=policy, seed=seed)
        return spoken.needs(Profile(concurrency=config.in_flight)).map(parts.sandbox.act)

    started = tasks.map(parts.sandbox.reset, seed=seed)
    started.needs(Profile(concurrency=config.in_flight, attempts=3))
    return started.iterate(turn, until=is_done, limit=config.env.max_turns, release=parts.release)


def read_tasks(config: Config) -> Iterator[Prompt]:
    """Yield maps to train on without end, none of them held out."""
    known = held_out_maps(config)
    if not config.tasks:
        yield from training_tasks(config.env, config.seed, held_out=known)  # never ends
    while True:
        for task in read_prompts(Path(config.tasks)):
            if map_of(task.seed, config.env) not in known:
                yield task


def held_out_maps(config: Config) -> frozenset[tuple[str, ...]]:
    """Return the maps that are never trained on."""
    return maps_of(held_out(config), config.env)


def held_out(config: Config) -> tuple[Prompt, ...]:
    """Return the tasks that success is measured on; the same for every seed of the job."""
    return held_out_tasks(config.env, config.held_out_maps, seed=0)


class Training:
    """The job: warm start, training, success on held-out maps before and after."""

    def __init__(self, config: Config, directory: Path) -> None:
        self.config = config
        self.parts = Parts.of(config, directory)
        self.graph = agentic_grpo(config, self.parts)

    @property
    def needed_bytes(self) -> int:
        """Records, the published weights that are kept, two checkpoints of weights and AdamW."""
        kept = self.config.max_staleness + KEPT_WEIGHTS
        return RECORDS_BYTES + (kept + 2 * 3) * stored_bytes(self.config.model)

    def prepare(self, executor: Executor) -> Mapping[str, float]:  # noqa: ARG002 - the protocol
        """Imitate random legal moves, so that replies have the right format and no skill."""
        warm = self.config.warm_start
        if not warm.plays:
            return {"warm_start_plays": 0.0}
        samples = tuple(islice(random_play(self.config), warm.plays))
        batches = [samples[i : i + warm.batch_size] for i in range(0, warm.plays, warm.batch_size)]
        losses = self.parts.trainer.imitate(batches, warm.learning_rate)
        return {"warm_start_loss": losses[-1]["loss"], "warm_start_plays": float(warm.plays)}

    def evaluate(self, executor: Executor) -> Mapping[str, float]:
        """Play every held-out map once with the newest weights."""
        weights = self.parts.trainer.weights()
        policy = Latest(name="policy", version=weights.version, value=weights)
        graph = evaluation(self.config, self.parts, policy)
        result = run(graph, executor, seed=self.config.seed)
        plays: tuple[Trajectory, ...] = result.outputs["played"]
        return {
            "held_out_success": sum(t.info.get("success", 0.0) for t in plays)
            / self.config.held_out_maps,
            "held_out_turns": fmean(len(t.turns) for t in plays),
        }

    def measure(self, value: Any) -> Mapping[str, float]:
        """Return what the update that made these weights measured."""
        weights: Weights = value
        return weights.metrics

    def save(self, directory: Path) -> None:
        """Store the trainer."""
        self.parts.trainer.save(str(directory))

    def load(self, directory: Path) -> None:
        """Load the trainer."""
        self.parts.trainer.load(str(directory))


def job(config: Config, directory: Path) -> Training:
    """Return the job that ``rlgraph run`` carries out.

    Raises DatasetError or ConfigError at once where there is nothing to train on.
    """
    refuse_bad_tasks(config)
    return Training(config, directory)


def refuse_bad_tasks(config: Config) -> None:
    """Read what will be trained on, once and whole: a bad line late in a file costs hours.

    Raises DatasetError for the tasks of a file, ConfigError for a family of maps.
    """
    try:
        known = held_out_maps(config)
    except ValueError as error:
        mend = "give other settings of env"
        problem = Problem(what=str(error), where="env.frozen_probability", mend=mend)
        raise ConfigError("FrozenLake has no maps", [problem]) from None
    if not config.tasks:
        next(training_tasks(config.env, config.seed, held_out=known))
        return
    tasks = tuple(read_prompts(Path(config.tasks)))
    if maps_of(tasks, config.env) <= known:
        raise DatasetError(
            f"every task of {config.tasks!r} is on a held-out map; to mend: give other seeds, or "
            "hold out fewer maps"
        )


def random_play(config: Config) -> Iterator[Sample]:
    """Yield random legal walks over maps that are not held out, as samples to imitate."""
    chat = Chat(load_tokenizer(config.model))
    tasks = training_tasks(config.env, config.seed + 1, held_out=held_out_maps(config))
    for number, task in enumerate(tasks):
        walk = random_walk(map_of(task.seed, config.env), seed=number, limit=config.env.max_turns)
        play = demonstrate(FrozenLake(config.env, render_neighbours), walk, task.seed)
        yield imitation_sample(task, play, chat)
