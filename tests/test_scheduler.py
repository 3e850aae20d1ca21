"""Each rule of the scheduler on a graph small enough to follow by hand."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from rlgraph.errors import StageError, StallError, StarvedError
from rlgraph.graph import Graph
from rlgraph.ports import Latest
from rlgraph.profile import Profile
from rlgraph.scheduling import Exit, Outcome, Output, Published, Scheduler, Snapshot, Task
from rlgraph.testing import drive
from tests.scheduling import (
    Model,
    Prompt,
    act,
    exits,
    failing,
    first,
    good,
    grpo,
    last,
    left,
    prompts,
    rejecting,
    sample,
    slow,
)


def test_a_batch_makes_the_next_version() -> None:
    trace = drive(grpo(), order=first, versions=1)
    lineages = ((0, 0), (0, 1), (1, 0), (1, 1))
    assert trace.published == [Published(name="policy", version=1, value=1, lineages=lineages)]
    assert exits(trace) == {Exit.CONSUMED: 4}


def test_siblings_meet_whatever_order_they_finish_in() -> None:
    forward, backward = (drive(grpo(), order=order, versions=3) for order in (first, last))
    assert forward.published == backward.published
    assert forward.exited != []


def test_equal_prompts_stay_apart() -> None:
    same = [Prompt("same")] * 3
    trace = drive(grpo(group=4, batch=12, source=same), order=random.Random(0))
    assert exits(trace) == {Exit.CONSUMED: 12}
    assert Counter(n for n, _ in trace.published[0].lineages) == {0: 4, 1: 4, 2: 4}


def test_one_failed_item_of_eight_leaves_seven_results() -> None:
    g = Graph("eight")
    g.source(prompts, 8).map(act).collect("out")
    trace = drive(g, order=first, outcomes=failing("act/3/"))
    assert [output.lineage for output in trace.outputs] == [(n,) for n in range(8) if n != 3]
    (failed,) = [event for event in trace.exited if event.exit is Exit.FAILED]
    assert failed.lineage == (3,)
    assert failed.stage == "act"
    assert failed.failure is not None
    assert failed.failure.error == "ValueError: no"


def test_a_group_takes_the_first_members_and_cancels_the_rest() -> None:
    trace = drive(grpo(spare=1), order=slow((0, 1)), versions=1)
    assert trace.published[0].lineages == ((0, 0), (0, 2), (1, 0), (1, 1))
    assert left(trace, Exit.SURPLUS) == [(0, 1), (1, 2)]


def test_a_batch_with_redundancy_does_not_wait_for_the_slowest() -> None:
    clock = slow((0, 0))
    trace = drive(grpo(spare_items=2), order=clock, versions=1)
    assert trace.published[0].lineages == ((1, 0), (1, 1), (2, 0), (2, 1))
    assert left(trace, Exit.SURPLUS) == [(0, 0), (0, 1)]
    assert clock.now < 1000


def test_a_lost_member_is_replaced_by_one_with_a_new_number() -> None:
    trace = drive(grpo(), order=first, versions=1, outcomes=failing("sample/0.1/"))
    assert trace.published[0].lineages == ((0, 0), (0, 2), (1, 0), (1, 1))
    assert left(trace, Exit.FAILED) == [(0, 1)]


def test_spare_members_make_up_for_losses_before_any_is_replaced() -> None:
    trace = drive(grpo(spare=1), order=first, versions=1, outcomes=failing("sample/0.1/"))
    assert trace.published[0].lineages[:2] == ((0, 0), (0, 2))
    assert trace.scheduler.launched == 6


def test_a_group_that_keeps_losing_members_is_given_up_and_replaced_by_another() -> None:
    trace = drive(grpo(), order=first, versions=1, outcomes=failing("sample/0."))
    assert trace.published[0].lineages == ((1, 0), (1, 1), (2, 0), (2, 1))
    assert left(trace, Exit.FAILED) == [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert trace.scheduler.ledgers[0].lost == trace.scheduler.ledgers[0].unit // 2


def test_a_failed_call_is_tried_again_with_the_same_seed() -> None:
    trace = drive(grpo(attempts=2), order=first, versions=1, outcomes=failing("sample/0.1/r/a1"))
    tries = [task for task in trace.tasks if task.key.startswith("sample/0.1/")]
    assert [task.attempt for task in tries] == [1, 2]
    assert tries[0].kwargs["seed"] == tries[1].kwargs["seed"]
    assert exits(trace) == {Exit.CONSUMED: 4}


def test_a_call_past_its_deadline_leaves_as_timeout() -> None:
    outcomes = failing("sample/0.1/", kind="timeout")
    trace = drive(grpo(), order=first, versions=1, outcomes=outcomes)
    assert left(trace, Exit.TIMEOUT) == [(0, 1)]
    assert len(trace.published) == 1


def test_filtered_items_are_replaced_so_that_the_batch_is_full() -> None:
    g, model = Graph("filtered"), Model()
    policy = g.latest("policy", model.weights)
    sampled = g.source(prompts).map(sample, policy=policy).filter(good)
    sampled.batch(3).map(model.step).publish_to(policy)
    trace = drive(g, order=last, versions=1, outcomes=rejecting(lambda lineage: lineage[0] % 3))
    assert trace.published[0].lineages == ((1,), (2,), (4,))
    assert left(trace, Exit.FILTERED) == [(0,), (3,)]


def test_a_run_in_which_everything_is_filtered_says_that_it_starves() -> None:
    g, model = Graph("starved"), Model()
    policy = g.latest("policy", model.weights)
    kept = g.source(prompts).map(sample, policy=policy).filter(good)
    kept.batch(3).map(model.step).publish_to(policy)
    with pytest.raises(StarvedError, match=r"4 batches' worth .* 'policy'[^$]*'filtered': 13"):
        drive(g, order=first, outcomes=rejecting(lambda _: False), refills=4)


def test_too_few_items_for_a_batch_are_left_over_at_the_end_of_the_stream() -> None:
    trace = drive(grpo(source=prompts(3)), order=first)
    assert len(trace.published) == 1
    assert left(trace, Exit.SURPLUS) == [(2, 0), (2, 1)]


def test_stop_cancels_what_is_under_way() -> None:
    scheduler = Scheduler(grpo())
    (init,) = scheduler.ready()
    scheduler.done(init, Outcome(value=0))
    scheduler.feed(0, Prompt("a"))
    running = scheduler.ready()
    scheduler.stop()
    assert scheduler.cancelled() == running
    assert scheduler.exits == {Exit.CANCELLED: 2}
    assert not scheduler.finished
    for task in running:
        scheduler.done(task, Outcome(value=None))
    assert scheduler.finished
    assert scheduler.hungry() == []


def test_a_task_that_nobody_wants_any_more_is_not_handed_out() -> None:
    scheduler = Scheduler(grpo())
    (init,) = scheduler.ready()
    scheduler.done(init, Outcome(value=0))
    scheduler.feed(0, Prompt("a"))
    scheduler.stop()
    assert scheduler.ready() == []
    assert scheduler.cancelled() == []
    assert scheduler.finished


def test_calls_of_one_object_run_one_at_a_time() -> None:
    class Engine(Model):
        def sample(self, item: Any, policy: Latest[int]) -> Any:
            return item

    g, engine = Graph("one"), Engine()
    policy = g.latest("policy", engine.weights, max_staleness=1)
    g.source(prompts).map(engine.sample, policy).batch(4).map(engine.step).publish_to(policy)
    running: list[int] = []
    drive(g, order=first, versions=3, watch=lambda s: running.append(len(s._running)))
    assert max(running) <= 1


def test_concurrency_lets_as_many_calls_of_an_object_run() -> None:
    class Engine(Model):
        def act(self, item: Any) -> Any:
            return item

    g = Graph("three")
    g.source(prompts, 20).map(Engine().act).needs(Profile(concurrency=3)).collect("out")
    running: list[int] = []
    drive(g, order=last, watch=lambda s: running.append(len(s._running)))
    assert max(running) == 2  # three run; the watch looks after one of them ended


def test_in_flight_bounds_the_items_of_a_source_under_way() -> None:
    g = Graph("bounded")
    g.source(prompts, 30).map(act).collect("out")
    live: list[int] = []
    drive(g, order=first, in_flight=3, watch=lambda s: live.append(len(s.live)))
    assert max(live) <= 3


def test_seeds_differ_by_item_member_and_run() -> None:
    seeds = [
        task.kwargs["seed"]
        for run in (1, 2)
        for task in drive(grpo(), order=first, versions=2, seed=run).tasks
        if task.stage == "sample"
    ]
    assert len(set(seeds)) == len(seeds) == 16


def test_coroutines_are_awaited() -> None:
    async def fetch(item: Prompt) -> str:
        return item.text

    g = Graph("async")
    g.source(prompts, 2).map_async(fetch).collect("out")
    trace = drive(g, order=first)
    assert trace.outputs == [
        Output(name="out", lineage=(0,), value="0"),
        Output(name="out", lineage=(1,), value="1"),
    ]


def test_an_empty_source_ends_the_run_at_once() -> None:
    trace = drive(grpo(source=[]), order=first)
    assert trace.scheduler.launched == 0
    assert trace.scheduler.finished


def test_an_init_that_fails_ends_the_run() -> None:
    with pytest.raises(StageError, match=r"init policy failed.*ValueError: no"):
        drive(grpo(), order=first, outcomes=failing("init policy"))


def test_a_snapshot_says_what_to_start_again() -> None:
    snapshots: list[Snapshot] = []

    def watch(scheduler: Scheduler) -> None:
        snapshots.append(scheduler.snapshot())

    drive(grpo(staleness=1, batch=2), order=slow((0, 1)), versions=2, watch=watch)
    published = next(s for s in snapshots if s.versions == {"policy": 1})
    assert published.unfinished == {"prompts": (0,)}
    assert published.exits == {"consumed": 2}
    assert published.launched == 2


def test_a_resumed_run_goes_on_with_the_next_version() -> None:
    resume = Snapshot(
        versions={"policy": 3},
        cursors={"prompts": 9},
        unfinished={"prompts": (5,)},
        batches={"batch": 4},
        exits={"consumed": 12},
        launched=12,
    )
    trace = drive(grpo(), order=first, versions=4, resume=resume)
    lineages = ((5, 0), (5, 1), (9, 0), (9, 1))
    assert trace.published == [Published(name="policy", version=4, value=1, lineages=lineages)]
    assert trace.scheduler.launched == 16
    assert "Model.step/4/r/a1" in trace.keys


def test_a_run_resumed_at_its_goal_is_finished() -> None:
    trace = drive(grpo(), order=first, versions=3, resume=Snapshot(versions={"policy": 3}))
    assert trace.published == []


def test_a_story_names_who_waits_where() -> None:
    scheduler = Scheduler(grpo())
    scheduler.done(scheduler.ready()[0], Outcome(value=0))
    scheduler.feed(0, Prompt("a"))
    scheduler.ready()
    assert scheduler.story() == (
        "    2 trajectories under way:\n"
        "    0.0 at 'sample' (running)\n"
        "    0.1 at 'sample' (running)"
    )


def test_a_wait_without_end_is_reported_with_its_story() -> None:
    scheduler = Scheduler(grpo())
    scheduler._in_flight = 0
    assert scheduler.hungry() == []

    def stuck(scheduler: Scheduler) -> None:
        scheduler._in_flight = 0

    with pytest.raises(StallError, match="0 trajectories under way"):
        drive(grpo(), order=first, watch=stuck)


def test_times_and_tokens_are_added_up() -> None:
    def behave(task: Task) -> Outcome:
        return Outcome(value=(1,), tokens=7, start_s=1.0, end_s=1.5)

    trace = drive(grpo(group=1, batch=1, source=prompts(1)), order=first, outcomes=behave)
    (event,) = trace.exited
    assert event.tokens == 7
    assert event.stage_s == {"sample": 0.5, "score": 0.5, "Model.step": 0.5}
