"""A small graph that learns, for the tests of a run's shell: its state is one number."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rlgraph import Batch, Graph, Latest


@dataclass(frozen=True, kw_only=True)
class Config:
    versions: int = 3
    factor: float = 0.5


@dataclass(frozen=True)
class Lesson:
    value: float
    metrics: Mapping[str, float]


class Learner:
    """Sums with a decay, so that what is learnt depends on every batch and on their order."""

    def __init__(self) -> None:
        self.value = 1.0

    def weights(self) -> Lesson:
        return Lesson(self.value, {})

    def step(self, batch: Batch[float]) -> Lesson:
        self.value = self.value / 3 + sum(batch)
        return Lesson(self.value, {"value": self.value})

    def save(self, directory: str) -> None:
        Path(directory, "value.json").write_text(json.dumps(self.value))

    def load(self, directory: str) -> None:
        self.value = json.loads(Path(directory, "value.json").read_text())


def numbers() -> list[int]:
    return list(range(100))


def scale(number: int, policy: Latest[Lesson], factor: float) -> float:
    return number * factor + policy.value.value


Scale = Callable[[int, Latest[Lesson], float], float]


def school(config: Config, learner: Learner, scale: Scale = scale) -> Graph:
    g = Graph("school")
    policy = g.latest("policy", init=learner.weights, max_staleness=0)
    scaled = g.source(numbers).map(scale, policy, config.factor)
    scaled.batch(4).map(learner.step).publish_to(policy)
    return g


@dataclass
class Told:
    """A ``Show`` that remembers, and may interrupt."""

    interrupt: Callable[[str], bool] = lambda _: False
    lines: list[str] = field(default_factory=list)

    def _add(self, line: str) -> None:
        self.lines.append(line)
        if self.interrupt(line):
            raise KeyboardInterrupt

    def phase(self, text: str) -> None:
        self._add(text)

    def measured(self, metrics: Mapping[str, float]) -> None:
        self._add(f"measured {dict(metrics)}")

    def version(self, version: int, metrics: Mapping[str, float]) -> None:
        self._add(f"version {version}")

    def progress(self, exits: Mapping[str, int], calls: Mapping[str, int]) -> None:
        self._add(f"calls {dict(calls)}")


GRAPH = """
import os, subprocess, sys, time
from dataclasses import dataclass, field
from pathlib import Path
from rlgraph import Graph
from rlgraph.config import divides
from tests.school import Learner, scale

@dataclass(frozen=True, kw_only=True)
class Optim:
    lr: float = 0.1

@dataclass(frozen=True, kw_only=True)
class Config:
    versions: int = 3
    group: int = 2
    batch: int = 4
    fail_from: int = 1000
    text: str = ""
    optim: Optim = field(default_factory=Optim)

    def problems(self):
        yield from divides(self, "group", "batch")

def numbers() -> list[int]:
    return list(range(100))

def check(number: int, fail_from: int) -> int:
    if number >= fail_from:
        raise ValueError(f"no {number}")
    return number

def build(config: Config) -> Graph:
    g = Graph("mine")
    learner = Learner()
    policy = g.latest("policy", init=learner.weights, max_staleness=0)
    checked = g.source(numbers).map(check, config.fail_from)
    scaled = checked.map(scale, policy, 0.5).batch(config.batch)
    scaled.map(learner.step).publish_to(policy)
    return g
"""
"""A graph file as a user writes it."""
