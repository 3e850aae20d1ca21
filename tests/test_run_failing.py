from __future__ import annotations

import pytest

from rlgraph import Batch, Graph, Latest, Profile, StageError, StarvedError
from rlgraph.executors.inline import InlineExecutor
from rlgraph.running.loop import run
from rlgraph.scheduling import Failure
from tests.training import Trainer, collecting, left, log, same, training

# --- failures ---


def third_fails(item: int) -> int:
    if item == 3:
        raise ValueError("odd one out")
    return item


def test_one_failure_of_eight_leaves_seven_results_and_one_record() -> None:
    result = run(collecting(third_fails), InlineExecutor())
    assert result.outputs == {"done": (0, 1, 2, 4, 5, 6, 7)}
    assert (left(result), result.launched) == ({"consumed": 7, "failed": 1}, 8)
    (failure,) = result.failures
    assert (failure.stage, failure.key, failure.kind, failure.error) == (
        "stage",
        "stage/3/r/a1",
        "error",
        "ValueError: odd one out",
    )
    assert f'{__file__}", line {third_fails.__code__.co_firstlineno + 2}' in failure.trace


def test_beyond_the_error_budget_the_run_ends_with_the_cause() -> None:
    message = (
        r"1 of the last 8 trajectories failed, more than the error budget of 10% allows; the last "
        r"in stage 'stage' \(stage/3/r/a1\): ValueError: odd one out"
    )
    with pytest.raises(StageError, match=message) as raised:
        run(collecting(third_fails), InlineExecutor(), error_budget=0.1)
    assert isinstance(raised.value.__cause__, ValueError)


def test_a_long_run_ends_as_soon_as_too_many_of_the_last_64_failed() -> None:
    def fail_later(item: int) -> int:
        if item >= 100:
            raise ValueError("late")
        return item

    told = log()
    with pytest.raises(StageError, match="17 of the last 64 trajectories failed"):
        run(collecting(fail_later, 100_000), InlineExecutor(), in_flight=1, watches=[told.watch])
    assert told.exits == {"consumed": 100, "failed": 17}


def test_failures_that_leave_before_what_succeeds_do_not_end_the_run() -> None:
    """Of 256 under way 20 fail at once, while the others take a second stage."""

    def fail_some(item: int) -> int:
        if item % 13 == 0:
            raise ValueError("some")
        return item

    g = Graph("early")
    kept = g.source(lambda: range(256)).map(fail_some).map(same)
    kept.collect("done")
    assert left(run(g, InlineExecutor())) == {"consumed": 236, "failed": 20}


def test_failures_that_leave_after_what_succeeds_do_not_end_the_run() -> None:
    def fail(item: int) -> int:
        raise ValueError("some")

    g = Graph("late")
    tasks = g.source(lambda: range(256)).named("tasks").map(same).named("first")
    late = tasks.filter(lambda item: item % 13 == 0).map(same).named("second").map(fail)
    late.collect("failed")
    result = run(g, InlineExecutor())
    assert left(result) == {"filtered": 236, "failed": 20}


def test_a_full_error_budget_lets_everything_fail() -> None:
    def fail(item: int) -> int:
        raise ValueError("always")

    result = run(collecting(fail, 100), InlineExecutor(), error_budget=1)
    assert left(result) == {"failed": 100}


def test_a_full_error_budget_lets_everything_fail_however_much_it_is() -> None:
    def fail(item: int) -> int:
        raise ValueError("always")

    graph = collecting(fail, 300)
    assert left(run(graph, InlineExecutor(), error_budget=1, in_flight=100)) == {"failed": 300}


def test_trajectories_that_end_after_the_last_launch_push_earlier_ones_out_of_the_budget() -> None:
    """A fifth fails all along, also while the last 100 leave and nothing replaces them."""

    def fail_some(item: int) -> int:
        if item % 5 == 0:
            raise ValueError("some")
        return item

    result = run(collecting(fail_some, 300), InlineExecutor(), in_flight=100)
    assert left(result) == {"consumed": 240, "failed": 60}


def test_what_was_cancelled_at_the_end_does_not_dilute_the_failures() -> None:
    trainer = Trainer()
    g = Graph("diluted")
    policy = g.latest("policy", init=trainer.init, max_staleness=50)

    def play(item: int, policy: Latest[int]) -> int:
        if item == 0:
            raise ValueError("first")
        return item

    played = g.source(lambda: range(100)).map(play, policy=policy)
    played.batch(2, redundancy=7).map(trainer.step).publish_to(policy)
    with pytest.raises(StageError, match="1 of the last 3 trajectories failed"):
        run(g, InlineExecutor(), versions=1)


def test_a_trainer_that_fails_ends_the_run_at_once() -> None:
    class Broken(Trainer):
        def step(self, batch: Batch[int]) -> int:
            super().step(batch)
            raise FloatingPointError("loss is nan")

    trainer = Broken()
    g = Graph("broken")
    policy = g.latest("policy", init=trainer.init)
    played = g.source(lambda: range(1000)).map(lambda item, policy: item, policy=policy)
    played.batch(64).map(trainer.step).publish_to(policy)
    with pytest.raises(StageError, match="FloatingPointError: loss is nan") as raised:
        run(g, InlineExecutor(), versions=3)
    assert isinstance(raised.value.__cause__, FloatingPointError)
    assert len(trainer.batches) == 1


def test_a_batch_of_the_wrong_length_is_a_failure_of_its_stage() -> None:
    g = Graph("lengths")
    g.source(lambda: range(4)).map(lambda item: (item,)).named("split").unbatch(2).collect("done")
    with pytest.raises(StageError, match=r"4 of the last 4 .* stage 'unbatch'.*'split' returned 1"):
        run(g, InlineExecutor())


def test_an_attempt_that_failed_is_on_record_though_the_next_succeeded() -> None:
    calls: list[int] = []

    def flaky(item: int) -> int:
        calls.append(item)
        if len(calls) == 1:
            raise ConnectionError("try again")
        return item

    result = run(collecting(flaky, 1, Profile(attempts=2)), InlineExecutor())
    assert result.outputs == {"done": (0,)}
    assert [(f.key, f.error) for f in result.failures] == [
        ("stage/0/r/a1", "ConnectionError: try again")
    ]


def test_a_release_that_fails_is_on_record_and_the_run_goes_on() -> None:
    def release(item: int) -> None:
        raise OSError("cannot close")

    g = Graph("release")
    ended = g.source(lambda: range(2)).iterate(
        lambda live: live.map(same), until=lambda item: True, limit=1, release=release
    )
    ended.collect("done")
    result = run(g, InlineExecutor())
    assert result.outputs == {"done": (0, 1)}
    assert [failure.error for failure in result.failures] == ["OSError: cannot close"] * 2


def test_a_failure_lasts_from_its_submission() -> None:
    told = log()
    run(collecting(third_fails), InlineExecutor(), watches=[told.watch])
    (failed,) = [result for _, result in told.tasks if isinstance(result, Failure)]
    started = min(result.start_s for _, result in told.tasks)
    assert failed.start_s <= started < failed.end_s


# --- nothing to train on ---


def test_a_run_whose_groups_are_all_filtered_starves_and_never_trains() -> None:
    trainer, told = Trainer(), log()
    graph = training(trainer, keep=lambda group: False)
    with pytest.raises(StarvedError, match="10 batches' worth of items were lost"):
        run(graph, InlineExecutor(), versions=1, watches=[told.watch])
    assert trainer.batches == []
    groups = [task for task, _ in told.tasks if task.stage == "keep"]
    assert told.exits == {"filtered": 2 * len(groups)}
    assert len(groups) > 10 * 2


def test_refills_bound_how_often_what_was_lost_is_replaced() -> None:
    def filtered(refills: int) -> int:
        told = log()
        graph = training(Trainer(), keep=lambda group: False)
        with pytest.raises(StarvedError, match=f"{refills} batches' worth"):
            run(graph, InlineExecutor(), versions=1, refills=refills, watches=[told.watch])
        return told.exits["filtered"]

    assert filtered(1) < filtered(3)


def test_a_short_source_that_is_filtered_out_starves_too() -> None:
    trainer = Trainer()
    graph = training(trainer, lambda: range(3), keep=lambda group: False)
    message = (
        "the sources ended before a first version of 'policy' could be made; the 6 trajectories "
        "left as {'filtered': 6}; to mend"
    )
    with pytest.raises(StarvedError, match=message):
        run(graph, InlineExecutor(), versions=1)
    assert trainer.batches == []


def test_a_source_too_short_for_one_batch_starves() -> None:
    with pytest.raises(StarvedError, match=r"the 2 trajectories left as {'surplus': 2}"):
        run(training(Trainer(), lambda: range(1)), InlineExecutor())
