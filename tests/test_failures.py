from __future__ import annotations

from concurrent.futures import CancelledError

import pytest

from rlgraph import Graph, StageError, StageTimeoutError
from rlgraph.running.failures import ErrorBudget, failure_of, kind_of
from rlgraph.scheduling import Exit, Exited, Failure, Scheduler, Task

BROKEN = Failure(stage="act", key="act/3/r/a1", kind="error", error="ValueError: broken")


def task() -> Task:
    g = Graph("one")
    g.source(lambda: [0]).map(lambda item: item).named("act").collect("done")
    state = Scheduler(g)
    state.feed(next(iter(state.sources)), 0)
    return state.ready()[0]


def exited(exit_: Exit = Exit.FAILED) -> Exited:
    return Exited(
        lineage=(3,),
        domain="default",
        exit=exit_,
        stage="act",
        start_versions={},
        consumed_versions={},
        tokens=0,
        stage_s={},
        failure=BROKEN if exit_ in (Exit.FAILED, Exit.TIMEOUT) else None,
    )


def test_a_record_says_which_call_raised_what_and_when() -> None:
    error = ValueError("broken")
    assert failure_of(task(), error, "error", start_s=1.0, end_s=2.0) == Failure(
        stage="act",
        key="act/0/r/a1",
        kind="error",
        error="ValueError: broken",
        trace="ValueError: broken\n",
        start_s=1.0,
        end_s=2.0,
    )


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (StageTimeoutError("late"), "timeout"),
        (TimeoutError("late"), "timeout"),
        (CancelledError("of the stage's own accord"), "error"),
        (OSError("gone"), "error"),
        (SystemExit(0), "error"),
    ],
)
def test_the_kind_of_a_failure_follows_from_its_class(error: BaseException, kind: str) -> None:
    assert kind_of(error) == kind


def test_as_many_may_fail_as_the_share_of_the_window_allows() -> None:
    budget = ErrorBudget(0.25)
    for _ in range(16):
        budget.left(exited())
    budget.check()
    budget.left(exited(Exit.TIMEOUT))
    with pytest.raises(StageError, match="17 of the last 64 trajectories failed"):
        budget.check()


def test_a_failure_is_forgotten_after_a_window_of_others() -> None:
    budget = ErrorBudget(0.25)
    for exit_ in [Exit.FAILED] * 17 + [Exit.CONSUMED] * 47:
        budget.left(exited(exit_))
    with pytest.raises(StageError, match="17 of the last 64 trajectories failed"):
        budget.check()
    budget.left(exited(Exit.CONSUMED))
    budget.check()
    budget.check_at_end(65)


def test_a_failure_is_forgotten_when_a_window_was_launched_though_none_has_left() -> None:
    budget = ErrorBudget(0.25)
    budget.under_way(100)
    for _ in range(26):
        budget.left(exited())
    budget.under_way(127)
    budget.check()


def test_the_window_is_what_was_ever_under_way_where_that_is_more() -> None:
    budget = ErrorBudget(0.25)
    budget.under_way(1000)
    budget.under_way(5)
    for _ in range(250):
        budget.left(exited())
    budget.check()
    budget.left(exited())
    with pytest.raises(StageError, match="251 of the last 1000 trajectories failed"):
        budget.check()


def test_no_more_fail_of_a_window_than_it_has() -> None:
    budget = ErrorBudget(1)
    budget.under_way(100)
    for _ in range(300):
        budget.left(exited())
        budget.check()
    budget.check_at_end(300)


def test_other_exits_are_no_failures() -> None:
    budget = ErrorBudget(0)
    for exit_ in set(Exit) - {Exit.FAILED, Exit.TIMEOUT}:
        budget.left(exited(exit_))
    budget.check()
    budget.check_at_end(7)


def test_at_the_end_the_share_is_that_of_however_few_there_were() -> None:
    budget = ErrorBudget(0.25)
    budget.left(exited())
    budget.check()
    with pytest.raises(StageError, match="1 of the last 3 trajectories failed, more than the"):
        budget.check_at_end(3)


def test_the_error_names_the_last_failure_and_has_its_cause() -> None:
    budget, cause = ErrorBudget(0), ValueError("broken")
    budget.raised(cause)
    budget.left(exited())
    with pytest.raises(StageError) as raised:
        budget.check()
    assert str(raised.value) == (
        "1 of the last 64 trajectories failed, more than the error budget of 0% allows; the last "
        "in stage 'act' (act/3/r/a1): ValueError: broken"
    )
    assert raised.value.__cause__ is cause
