"""What holds in every graph and every order of events."""

from __future__ import annotations

import random
from collections.abc import Callable

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from rlgraph.errors import StarvedError
from rlgraph.graph import Graph
from rlgraph.graph.node import Node
from rlgraph.scheduling import Exit, Scheduler, Snapshot, Task
from rlgraph.testing import Behaviour, Driven, Look, drive, faulty, random_graphs

thorough = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
seeds = st.integers(0, 2**32)
goals = st.sampled_from([None, 1, 3, 6])
failing: st.SearchStrategy[Callable[[int], Behaviour]] = st.sampled_from(
    [
        lambda seed: faulty(seed),
        lambda seed: faulty(seed, failures=0.05, timeouts=0.03, kept=0.9),
        lambda seed: faulty(seed, failures=0.2, kept=0.6, done=0.1),
    ]
)


def run(
    graph: Graph,
    seed: int,
    behaviour: Behaviour,
    *,
    versions: int | None = None,
    watch: Look | None = None,
    resume: Snapshot | None = None,
    in_flight: int = 1024,
) -> Driven | None:
    """Drive a graph in a random order; None where so much was lost that it starved."""
    try:
        return drive(
            graph,
            order=random.Random(seed),
            outcomes=behaviour,
            watch=watch,
            versions=versions if graph.feedbacks else None,
            in_flight=in_flight,
            resume=resume,
            refills=5,
        )
    except StarvedError:
        return None


def books_are_balanced(scheduler: Scheduler) -> None:
    assert scheduler.launched == len(scheduler.live) + scheduler.exits.total()
    for ledger in scheduler.ledgers:
        owed = sum(ledger.owed.values())
        assert ledger.pending >= 0
        assert all(amount > 0 for amount in ledger.owed.values())
        assert ledger.admitted - ledger.lost == ledger.next_version * ledger.unit + owed
    for slot in scheduler.program.slots.values():
        assert 0 <= slot.running <= slot.limit
        assert slot.running == slot.limit or not slot.waiting


def entered(node: Node, task: Task, graph: Graph) -> list[tuple[str, str]]:
    """List the stays in an iterate that a task is part of."""
    stays = []
    for depth, index in enumerate(node.scope.inside):
        iterate = graph.nodes[index]
        lineage = task.lineage[: len(iterate.scope.frames) + 1]
        stays.append((iterate.name, f"{lineage} {task.rounds[:depth]}"))
    return stays


@thorough
@given(random_graphs(), seeds, goals, failing, st.sampled_from([1, 3, 1024]))
def test_every_run_ends_with_balanced_books(
    graph: Graph,
    seed: int,
    versions: int | None,
    failing: Callable[[int], Behaviour],
    in_flight: int,
) -> None:
    trace = run(
        graph,
        seed,
        failing(seed),
        versions=versions,
        watch=books_are_balanced,
        in_flight=in_flight,
    )
    if trace is not None:
        assert not trace.scheduler.live
        assert len(trace.exited) == trace.scheduler.launched == trace.scheduler.exits.total()
        assert not any(trace.scheduler.roots.values())


@thorough
@given(random_graphs(), seeds, goals, failing)
def test_the_lag_never_exceeds_the_bound(
    graph: Graph, seed: int, versions: int | None, failing: Callable[[int], Behaviour]
) -> None:
    trace = run(graph, seed, failing(seed), versions=versions)
    bounds = {feedback.name: feedback.max_staleness for feedback in graph.feedbacks}
    for event in trace.exited if trace else []:
        for name, consumed in event.consumed_versions.items():
            assert consumed - event.start_versions.get(name, consumed) <= bounds[name]


@thorough
@given(random_graphs(staleness=0, redundancy=0), seeds, seeds, failing)
def test_without_staleness_the_trace_does_not_depend_on_the_order_of_events(
    graph: Graph, one: int, other: int, failing: Callable[[int], Behaviour]
) -> None:
    first, second = (run(graph, seed, failing(one)) for seed in (one, other))
    if first is None or second is None:
        assert first is None
        assert second is None
        return
    assert record(first) == record(second)


def record(trace: Driven) -> dict[str, object]:
    """What two synchronous runs must have in common."""
    # Of two side branches that are lost in different ways, the first decides how the item that
    # waits for both in a join leaves.
    exits = {
        e.lineage: ("" if e.stage.startswith("join") else e.exit, e.stage, e.start_versions)
        for e in trace.exited
    }
    return {
        "versions": sorted((p.name, p.version, p.lineages) for p in trace.published),
        "exits": exits,
        "consumed": {e.lineage: e.consumed_versions for e in trace.exited},
        "outputs": sorted((o.name, o.lineage, o.value) for o in trace.outputs),
        "seeds": {task.key: task.kwargs.get("seed") for task in trace.tasks},
    }


@thorough
@given(random_graphs(), seeds, failing)
def test_groups_and_batches_and_pairs_hold_who_belongs_together(
    graph: Graph, seed: int, failing: Callable[[int], Behaviour]
) -> None:
    trace = run(graph, seed, failing(seed))
    for task in trace.tasks if trace else []:
        above = task.node.inputs[0] if task.node.inputs else task.node
        value = task.args[0] if task.args else ()
        if above.verb == "group":
            assert len(set(value)) == len(value) == above.length
            assert {member[:-1] for member in value} == {task.lineage}
        elif above.verb == "batch":
            assert len(set(value)) == len(value) == above.size
        elif above.verb == "join":
            assert value == (task.lineage, task.lineage)


@thorough
@given(random_graphs(), seeds, goals, failing)
def test_every_task_is_handed_out_once_and_every_stay_is_released_once(
    graph: Graph, seed: int, versions: int | None, failing: Callable[[int], Behaviour]
) -> None:
    trace = run(graph, seed, failing(seed), versions=versions, watch=releases_come_last)
    if trace is None:
        return
    assert len(set(trace.keys)) == len(trace.keys)
    released = [
        (task.stage, f"{task.lineage} {task.rounds}")
        for task in trace.tasks
        if task.node.verb == "iterate"
    ]
    stays = {stay for task in trace.tasks for stay in entered(task.node, task, graph)}
    assert len(set(released)) == len(released)
    assert stays <= set(released)


def releases_come_last(scheduler: Scheduler) -> None:
    """No call inside an iterate runs any more when what entered is released."""
    running = list(scheduler._running)
    released = {(t.stage, f"{t.lineage} {t.rounds}") for t in running if t.node.verb == "iterate"}
    inside = [
        stay
        for task in running
        if task.item is not None and task.item.main
        for stay in entered(task.node, task, scheduler.program.graph)
    ]
    assert released.isdisjoint(inside)


@thorough
@given(random_graphs(), seeds, goals, failing, st.integers(0, 200))
def test_a_resumed_run_trains_on_nothing_twice(
    graph: Graph,
    seed: int,
    versions: int | None,
    failing: Callable[[int], Behaviour],
    after: int,
) -> None:
    snapshots: list[Snapshot] = []

    def note(scheduler: Scheduler) -> None:
        if len(snapshots) <= after:
            snapshots.append(scheduler.snapshot())

    first = run(graph, seed, failing(seed), versions=versions, watch=note)
    if first is None or not snapshots:
        return
    snapshot = snapshots[-1]
    second = run(
        graph,
        seed + 1,
        failing(seed + 1),
        versions=versions,
        resume=snapshot,
        watch=books_are_balanced,
    )
    for feedback in graph.feedbacks:
        before = trained(first, feedback.name, snapshot.versions[feedback.name])
        assert before.isdisjoint(trained(second, feedback.name, None) if second else set())


def trained(trace: Driven, name: str, versions: int | None) -> set[int]:
    """Roots that the first so many versions of a feedback were made of."""
    return {
        lineage[0]
        for published in trace.published
        if published.name == name and (versions is None or published.version <= versions)
        for lineage in published.lineages
    }


@thorough
@given(random_graphs(redundancy=0, feedbacks=[1]), seeds)
def test_where_a_feedback_waits_nothing_becomes_stale(graph: Graph, seed: int) -> None:
    # A batch of batches mixes items of several versions, and is as old as its oldest.
    assume(sum(node.verb == "batch" for node in graph.nodes) == 1)
    feedback = graph.feedbacks[0]
    feedback.when_stale, feedback.max_staleness = "wait", max(feedback.max_staleness, 1)
    trace = run(graph, seed, faulty(seed, failures=0.05, kept=0.9))
    if trace is not None:
        assert trace.scheduler.exits[Exit.STALE] == 0


@thorough
@given(random_graphs(redundancy=0, feedbacks=[1]), seeds)
def test_without_losses_a_run_reaches_the_versions_that_its_source_is_worth(
    graph: Graph, seed: int
) -> None:
    trace = run(graph, seed, faulty(seed))
    assert trace is not None
    count = graph.nodes[0].args[0]
    rate = graph.feedbacks[0].publishers[0].rate
    if trace.scheduler.exits[Exit.STALE] == 0:
        assert len(trace.published) == int(count * rate)
