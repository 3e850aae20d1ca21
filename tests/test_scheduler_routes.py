"""The way of items through iterates, joins, branches and to several feedbacks."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from rlgraph.graph import Graph, Stream
from rlgraph.ports import Batch, Latest
from rlgraph.scheduling import Exit, Failure, Outcome, Scheduler, Task
from rlgraph.testing import drive
from tests.scheduling import (
    Model,
    Prompt,
    act,
    also,
    exits,
    failing,
    first,
    good,
    grpo,
    halve,
    lags,
    last,
    left,
    prompts,
    rejecting,
    sample,
    score,
    slow,
)


def first_of(group: Batch[Any]) -> Any:
    return group[0]


def loop(*, limit: int = 3, group: bool = False) -> Graph:
    g = Graph("loop")

    def turn(live: Stream[Any]) -> Stream[Any]:
        spoken = live.map(act)
        return spoken.fan_out(2).map(also).group().map(first_of) if group else spoken.map(also)

    played = g.source(prompts, 2).iterate(turn, until=good, limit=limit, release=good)
    played.collect("out")
    return g


def never(task: Task) -> Outcome:
    return Outcome(value=task.lineage, verdict=False)


def test_an_iterate_ends_at_its_limit() -> None:
    trace = drive(loop(), order=first, outcomes=never)
    assert [
        task.rounds for task in trace.tasks if task.lineage == (0,) and task.stage == "act"
    ] == [
        (0,),
        (1,),
        (2,),
    ]
    assert len(trace.outputs) == 2


def test_an_iterate_ends_when_it_is_told_to() -> None:
    trace = drive(loop(), order=first)
    assert Counter(task.stage for task in trace.tasks) == {"act": 2, "also": 2, "turn": 2}


def test_what_entered_an_iterate_is_released_once_however_it_leaves() -> None:
    trace = drive(loop(), order=first, outcomes=failing("also/0/r1"))
    released = [task for task in trace.tasks if task.stage == "turn"]
    assert sorted(task.lineage for task in released) == [(0,), (1,)]


def test_a_group_inside_an_iterate_releases_when_the_last_member_has_ended() -> None:
    behave = failing("also/0.")
    trace = drive(loop(group=True), order=last, outcomes=behave)
    released = [task.lineage for task in trace.tasks if task.stage == "turn"]
    assert sorted(released) == [(0,), (1,)]
    assert trace.keys[-1].startswith("turn/")


def test_a_release_waits_for_the_call_that_runs() -> None:
    scheduler = Scheduler(loop())
    scheduler.feed(0, Prompt("a"))
    (task,) = scheduler.ready()
    scheduler.stop()
    assert scheduler.ready() == []
    scheduler.failed(task, Failure(stage="act", key=task.key, kind="cancelled", error=""))
    (release,) = scheduler.ready()
    assert (release.stage, release.item, release.args) == ("turn", None, (Prompt("a"),))
    scheduler.failed(release, Failure(stage="turn", key=release.key, kind="error", error=""))
    assert scheduler.finished


def test_what_was_about_to_enter_an_iterate_is_released_when_it_is_no_longer_wanted() -> None:
    g = Graph("begun")
    begun = g.source(prompts, 1).map(also)
    begun.iterate(lambda live: live.map(act), until=good, limit=1, release=good).collect("out")
    scheduler = Scheduler(g)
    scheduler.feed(0, Prompt("a"))
    (task,) = scheduler.ready()
    scheduler.stop()
    scheduler.done(task, Outcome(value=Prompt("an open environment")))
    (release,) = scheduler.ready()
    assert (release.call, release.args) == (good, (Prompt("an open environment"),))


def test_a_batch_of_another_length_than_unbatch_takes_fails() -> None:
    g = Graph("halves")
    g.source(prompts, 1).map(halve).unbatch(3).collect("out")
    trace = drive(g, order=first)
    (event,) = trace.exited
    assert event.exit is Exit.FAILED
    assert event.failure is not None
    assert event.failure.error == "stage 'halve' returned 2 items where its unbatch takes 3"


def branching() -> tuple[Graph, Stream[Any]]:
    g = Graph("branches")
    return g, g.source(prompts, 4).map(act)


def test_a_join_pairs_by_lineage_in_the_order_of_its_declaration() -> None:
    g, trunk = branching()
    trunk.map(also).join(trunk.map(halve)).map(score).collect("out")
    trace = drive(g, order=random.Random(3))
    assert {o.lineage: o.value for o in trace.outputs} == {
        (n,): (Prompt(str(n)), (Prompt(str(n)), Prompt(str(n)))) for n in range(4)
    }


@pytest.mark.parametrize("order", [first, last])
def test_who_waits_in_a_join_leaves_with_its_counterpart(order: Callable[..., int]) -> None:
    g, trunk = branching()
    trunk.map(also).join(trunk.filter(good)).map(score).collect("out")
    trace = drive(g, order=order, outcomes=rejecting(lambda lineage: lineage != (2,)))
    assert left(trace, Exit.FILTERED) == [(2,)]
    assert len(trace.outputs) == 3


def test_the_loss_of_a_side_branch_does_not_touch_the_main_one() -> None:
    g, trunk = branching()
    trunk.map(also).collect("main")
    trunk.filter(good).collect("side")
    trace = drive(g, order=first, outcomes=rejecting(lambda _: False))
    assert exits(trace) == {Exit.CONSUMED: 4}
    assert [output.name for output in trace.outputs] == ["main"] * 4


def test_the_branch_that_leads_to_a_version_is_the_main_one() -> None:
    g, model = Graph("side first"), Model()
    policy = g.latest("policy", model.weights)
    trunk = g.source(prompts, 4).map(sample, policy=policy)
    trunk.filter(good).collect("side")
    trunk.batch(2).map(model.step).publish_to(policy)
    trace = drive(g, order=first, outcomes=rejecting(lambda _: False))
    assert exits(trace) == {Exit.CONSUMED: 4}
    assert len(trace.published) == 2


def test_siblings_are_grouped_apart_on_every_branch() -> None:
    g = Graph("two groups")
    members = g.source(prompts, 2).fan_out(2).map(act)
    members.map(also).group().join(members.map(halve).group()).map(score).collect("out")
    trace = drive(g, order=random.Random(1))
    one, two = Prompt("0"), Prompt("1")
    assert sorted((o.lineage, o.value) for o in trace.outputs) == [
        ((0,), ((one, one), ((one, one), (one, one)))),
        ((1,), ((two, two), ((two, two), (two, two)))),
    ]


def test_a_group_on_a_side_branch_that_cannot_be_filled_takes_its_counterpart_along() -> None:
    g = Graph("two groups")
    members = g.source(prompts, 2).fan_out(2).map(act)
    members.map(also).group().join(members.map(halve).group()).map(score).collect("out")
    trace = drive(g, order=random.Random(1), outcomes=failing("halve/0.1/"))
    assert [output.lineage for output in trace.outputs] == [(1,)]
    assert left(trace, Exit.SURPLUS) == [(0, 0), (0, 1)]


def two_feedbacks(*, side: int, source: int) -> Graph:
    g, model, other = Graph("two"), Model(), Model()
    policy = g.latest("policy", model.weights, max_staleness=1, when_stale="wait")
    bank = g.latest("bank", other.weights, max_staleness=2, when_stale="wait")
    trunk = g.source(prompts, source).map(sample, policy=policy).map(learn, bank=bank)
    trunk.batch(4).map(model.step).publish_to(policy)
    trunk.filter(good).batch(side).map(other.step).named("extract").publish_to(bank)
    return g


def learn(item: Any, bank: Latest[int]) -> Any:
    return item


def test_two_feedbacks_take_their_own_batches_of_the_same_trajectories() -> None:
    trace = drive(two_feedbacks(side=2, source=16), order=random.Random(0))
    assert Counter(p.name for p in trace.published) == {"policy": 4, "bank": 8}
    assert exits(trace) == {Exit.CONSUMED: 16}


def test_a_loss_on_one_branch_refunds_only_the_feedback_of_that_branch() -> None:
    outcomes = rejecting(lambda lineage: lineage[0] % 2 == 0)
    trace = drive(two_feedbacks(side=2, source=16), order=random.Random(0), outcomes=outcomes)
    policy, bank = trace.scheduler.ledgers
    assert (policy.lost, bank.lost) == (0, 8 * bank.unit // 2)
    assert (policy.version, bank.version) == (4, 4)


def test_items_may_be_published_without_a_batch() -> None:
    g, model = Graph("online"), Model()
    policy = g.latest("policy", model.weights, max_staleness=1)
    g.source(prompts, 5).map(sample, policy=policy).map(model.step).publish_to(policy)
    trace = drive(g, order=random.Random(0))
    assert [p.version for p in trace.published] == list(range(1, len(trace.published) + 1))
    assert max(lags(trace)) <= 1


def test_parts_may_be_published_one_by_one() -> None:
    g, model = Graph("parts"), Model()
    bank = g.latest("bank", model.weights, max_staleness=3)
    g.source(prompts, 2).map(learn, bank=bank).map(halve).unbatch(2).publish_to(bank)
    trace = drive(g, order=first)
    assert [p.version for p in trace.published] == [1, 2, 3, 4]


def test_a_batch_whose_training_failed_is_replaced() -> None:
    trace = drive(grpo(), order=first, versions=1, outcomes=failing("Model.step/0/"))
    assert trace.published[0].lineages == ((2, 0), (2, 1), (3, 0), (3, 1))
    assert len(left(trace, Exit.FAILED)) == 4
    assert trace.scheduler.ledgers[0].pending == 0


def test_a_batch_of_batches_makes_one_version() -> None:
    g, model = Graph("twice"), Model()
    policy = g.latest("policy", model.weights)
    small = g.source(prompts).map(sample, policy=policy).batch(2).map(score)
    small.batch(3).map(model.step).publish_to(policy)
    trace = drive(g, order=last, versions=2)
    assert trace.published[0].lineages == tuple((n,) for n in range(6))
    assert lags(trace) == {0: 12}


def test_a_release_waits_for_its_object() -> None:
    class Sandbox:
        def play(self, item: Any) -> Any:
            return item

        def close(self, item: Any) -> None:
            pass

    g, sandbox = Graph("sandbox"), Sandbox()

    def turn(live: Stream[Any]) -> Stream[Any]:
        return live.map(sandbox.play)

    played = g.source(prompts, 3).iterate(turn, until=good, limit=2, release=sandbox.close)
    played.collect("out")
    running: list[int] = []
    trace = drive(g, order=first, watch=lambda s: running.append(len(s._running)))
    assert Counter(task.stage for task in trace.tasks) == {"Sandbox.play": 3, "turn": 3}
    assert max(running) <= 1


def test_a_stage_that_gives_nothing_ends_the_stream() -> None:
    def log(item: Any) -> None:
        pass

    g = Graph("log")
    g.source(prompts, 3).map(log)
    assert exits(drive(g, order=first)) == {Exit.CONSUMED: 3}


def test_what_is_too_old_is_not_published_without_a_batch_either() -> None:
    g, model = Graph("online"), Model()
    policy = g.latest("policy", model.weights, max_staleness=1)
    g.source(prompts, 9).map(sample, policy=policy).map(act).publish_to(policy)
    trace = drive(g, order=slow((0,)))
    assert left(trace, Exit.STALE) == [(0,)]
    assert len(trace.published) == 8


def test_ports_may_be_passed_by_position() -> None:
    g, model = Graph("position"), Model()
    policy = g.latest("policy", model.weights)
    sampled = g.source(prompts, 2).map(sample, policy, g.seed)
    sampled.batch(2).map(model.step).publish_to(policy)
    trace = drive(g, order=first)
    seeds = {task.args[2] for task in trace.tasks if task.stage == "sample"}
    assert len(seeds) == 2
    assert all(task.deadline_s == 600 for task in trace.tasks)


def test_every_round_of_an_iterate_may_be_looked_at_on_the_side() -> None:
    def log(item: Any) -> None:
        pass

    g = Graph("rounds")

    def turn(live: Stream[Any]) -> Stream[Any]:
        said = live.map(act)
        said.map(log)
        return said

    g.source(prompts, 2).iterate(turn, until=good, limit=3, release=good).collect("out")
    trace = drive(g, order=first, outcomes=never)
    assert exits(trace) == {Exit.CONSUMED: 2}
    assert Counter(task.stage for task in trace.tasks) == {"act": 6, "log": 6, "turn": 2}
