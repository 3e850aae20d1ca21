"""How many events a second the pure scheduler handles, and whether that depends on the load.

An event is one task handed out and completed, with everything that this sets off: the next task of
the trajectory, groups, batches, versions, exits, new trajectories. No stage is really called.
Run: ``python benchmarks/scheduler.py``; prints a table, stores results/scheduler.json.
"""

from __future__ import annotations

import gc
import itertools
import random
import statistics
import time
from collections import deque

from machine import machine, store

from rlgraph.graph import Graph, Stream
from rlgraph.ports import Batch, Latest
from rlgraph.profile import Profile
from rlgraph.scheduling import Outcome, Scheduler, Task

IN_FLIGHT = (1_024, 4_096, 16_384)
EVENTS = 200_000
REPEATS = 3
MANY = Profile(concurrency=1 << 20)


class Model:
    """A generator and trainer in one, of which nothing is ever called."""

    def weights(self) -> int:
        """Version 0."""
        return 0

    def step(self, batch: Batch[int]) -> int:
        """Train."""
        return len(batch)


def read() -> list[int]:
    return []


def reset(task: int, *, seed: int) -> int:
    return task + seed


def generate(live: int, *, policy: Latest[int], seed: int) -> int:
    return live + policy.value + seed


def act(live: int) -> int:
    return live


def is_done(live: int) -> bool:
    return live > 0


def advantages(group: Batch[int]) -> Batch[int]:
    return group


def agentic(in_flight: int) -> Graph:
    """Multi-turn GRPO that keeps ``in_flight`` trajectories under way at staleness 1."""
    g = Graph("agentic")
    model = Model()
    policy = g.latest("policy", init=model.weights, max_staleness=1)

    def turn(live: Stream[int]) -> Stream[int]:
        return live.map(generate, policy=policy, seed=g.seed).map(act)

    started = g.source(read).fan_out(8).map(reset, seed=g.seed)
    trajectories = started.iterate(turn, until=is_done, limit=8)
    samples = trajectories.group().map(advantages).unbatch()
    samples.batch(in_flight // 2).map(model.step).needs(MANY).publish_to(policy)
    return g


def measure(in_flight: int) -> dict[str, float]:
    """Drive one run; returns seconds per event, by the wall and by this process's CPU time."""
    scheduler = Scheduler(agentic(in_flight), in_flight=in_flight)
    (source,) = scheduler.sources
    items = itertools.count()
    running: deque[Task] = deque()
    rng = random.Random(0)
    more, last = Outcome(value=(0,) * 8), Outcome(value=(0,) * 8, verdict=True)
    done = live = 0
    started = (0.0, 0.0)
    warm = in_flight * 8
    while done < warm + EVENTS:
        while scheduler.hungry():
            scheduler.feed(source, next(items))
        running.extend(scheduler.ready())
        live = max(live, len(scheduler.live))
        for task in scheduler.cancelled():
            running.remove(task)
            scheduler.done(task, last)
        for _ in range(min(len(running), 256)):
            scheduler.done(running.popleft(), last if rng.random() < 0.3 else more)
            done += 1
            if done == warm:
                started = (time.perf_counter(), time.process_time())
        scheduler.events()
    wall, cpu = time.perf_counter() - started[0], time.process_time() - started[1]
    return {"live": live, "wall_s": wall / (done - warm), "cpu_s": cpu / (done - warm)}


def us_per_event(in_flight: int) -> tuple[list[dict[str, float]], float]:
    """Measure some runs; returns them and the median microseconds of CPU per event."""
    gc.collect()
    runs = [measure(in_flight) for _ in range(REPEATS)]
    return runs, 1e6 * statistics.median(run["cpu_s"] for run in runs)


def main() -> None:
    """Measure, print and store."""
    rows = []
    for in_flight in IN_FLIGHT:
        runs, us = us_per_event(in_flight)
        # Python's collector walks over all that is alive: the scheduler's own cost is without it.
        gc.disable()
        _, own_us = us_per_event(in_flight)
        gc.enable()
        rows.append(
            {
                "in_flight": in_flight,
                "live_max": max(run["live"] for run in runs),
                "events_per_cpu_s": 1e6 / us,
                "events_per_s": 1 / statistics.median(run["wall_s"] for run in runs),
                "cpu_us_per_event": us,
                "cpu_us_per_event_without_gc": own_us,
            }
        )
    print(machine())
    columns = ("in flight", "live", "us/event", "without GC", "events/CPU s", "events/s")
    print(" ".join(f"{column:>12}" for column in columns))
    for row in rows:
        print(
            f"{row['in_flight']:>12,} {row['live_max']:>12,.0f} {row['cpu_us_per_event']:>12.1f} "
            f"{row['cpu_us_per_event_without_gc']:>12.1f} {row['events_per_cpu_s']:>12,.0f} "
            f"{row['events_per_s']:>12,.0f}"
        )
    store("scheduler", rows)


if __name__ == "__main__":
    main()
