"""How old what is trained on may be, and who is dropped, waited for or preferred."""

from __future__ import annotations

from collections import Counter

from rlgraph.graph import Graph
from rlgraph.scheduling import Exit, Scheduler
from rlgraph.testing import drive
from tests.scheduling import (
    Clock,
    Model,
    act,
    first,
    flat,
    good,
    grpo,
    halve,
    lags,
    last,
    left,
    prompts,
    rejecting,
    sample,
    slow,
)


def test_without_staleness_nothing_starts_while_a_batch_is_trained_on() -> None:
    scheduler_at_step: list[list[int]] = []

    def watch(scheduler: Scheduler) -> None:
        if any(task.stage == "Model.step" for task in scheduler._running):
            scheduler_at_step.append(scheduler.hungry())

    trace = drive(grpo(), order=first, versions=3, watch=watch)
    assert set(map(tuple, scheduler_at_step)) <= {()}
    assert lags(trace) == {0: 12}


def test_a_bound_of_one_lets_the_next_batch_start_while_one_is_trained_on() -> None:
    trace = drive(grpo(staleness=1), order=slow((0,), (1,), stage="Model.step"), versions=3)
    assert lags(trace)[1] > 0
    assert max(lags(trace)) == 1


def test_drop_takes_what_is_too_old_out_at_once() -> None:
    trace = drive(flat(staleness=1, batch=2), order=slow((0,)), versions=4)
    assert left(trace, Exit.STALE) == [(0,)]
    (stale,) = [event for event in trace.exited if event.exit is Exit.STALE]
    assert stale.stage == "sample"
    assert stale.start_versions == {"policy": 0}
    assert len(trace.published) == 4


def test_drop_takes_a_finished_item_out_of_the_buffer_too() -> None:
    g, model = Graph("three"), Model()
    policy = g.latest("policy", model.weights)
    halves = g.source(prompts).map(sample, policy=policy).map(halve).unbatch(2).filter(good)
    halves.batch(4).map(model.step).publish_to(policy)
    trace = drive(g, order=first, versions=1, outcomes=rejecting(lambda lineage: lineage != (0, 0)))
    # Two roots make a batch; one half was filtered, so a third was started for the other half.
    assert trace.published[0].lineages == ((0,), (1,), (2,))
    assert left(trace, Exit.CONSUMED) == [(0,), (1,), (2,)]
    assert trace.scheduler.ledgers[0].lost == 2


def test_what_would_be_too_old_before_its_first_turn_does_not_start_it() -> None:
    g, model = Graph("late"), Model()
    policy = g.latest("policy", model.weights)
    acted = g.source(prompts).map(act).map(sample, policy=policy)
    acted.batch(2, redundancy=1).map(model.step).publish_to(policy)
    clock = Clock(
        lambda t: {"Model.step": 50.0, "act": 5.0 if t.lineage == (0,) else 1.0}.get(t.stage, 1.0)
    )
    trace = drive(g, order=clock, versions=1)
    assert left(trace, Exit.SURPLUS) == [(0,)]
    assert not any(task.key.startswith("sample/0/") for task in trace.tasks)


def test_wait_holds_the_batch_back_for_what_would_become_too_old() -> None:
    clock = slow((0,))
    trace = drive(flat(staleness=1, when_stale="wait", batch=2), order=clock, versions=4)
    assert left(trace, Exit.STALE) == []
    assert max(lags(trace)) <= 1
    assert (0,) in trace.published[1].lineages
    assert clock.now > 1000


def test_wait_takes_the_oldest_first() -> None:
    trace = drive(flat(staleness=3, when_stale="wait", batch=2), order=last, versions=12)
    assert left(trace, Exit.STALE) == []
    assert max(lags(trace)) <= 3


def test_a_domain_ten_times_slower_neither_starves_nor_holds_the_others_up() -> None:
    clock = Clock(lambda task: 10.0 if task.domain == "slow" and task.stage == "sample" else 1.0)
    trace = drive(flat(staleness=8, batch=8), order=clock, versions=40)
    domains = Counter(event.domain for event in trace.exited if event.exit is Exit.CONSUMED)
    assert domains["slow"] >= domains.total() / 4
    assert clock.now < 40 * 10 / 2
