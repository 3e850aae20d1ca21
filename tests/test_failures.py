from __future__ import annotations

from concurrent.futures import CancelledError

import pytest

from rlgraph import Graph, StageError, StageTimeoutError
from rlgraph.running.failures import ErrorBudget, failure_of
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
    assert failure_of(task(), ValueError("broken"), start_s=1.0, end_s=2.0) == Failure(
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
        (CancelledError("unwanted"), "cancelled"),
        (OSError("gone"), "error"),
    ],
)
def test_the_kind_of_a_failure_follows_from_its_class(error: Exception, kind: str) -> None:
    assert failure_of(task(), error, start_s=0, end_s=0).kind == kind


def test_as_many_may_fail_as_the_share_of_the_window_allows() -> None:
    budget = ErrorBudget(0.25)
    for _ in range(16):
        budget.left(exited(), 64)
    budget.check(64)
    budget.left(exited(Exit.TIMEOUT), 64)
    with pytest.raises(StageError, match="17 of the last 64 trajectories failed"):
        budget.check(64)


def test_a_failure_is_forgotten_after_a_window_of_launches() -> None:
    budget = ErrorBudget(0.25)
    for _ in range(17):
        budget.left(exited(), 10)
    budget.check(10 + 64)
    budget.check_at_end(10 + 64)


def test_the_window_is_what_was_ever_under_way_where_that_is_more() -> None:
    budget = ErrorBudget(0.25)
    budget.under_way(1000)
    budget.under_way(5)
    for _ in range(250):
        budget.left(exited(), 1000)
    budget.check(1000)
    budget.left(exited(), 1000)
    with pytest.raises(StageError, match="251 of the last 1000 trajectories failed"):
        budget.check(1000)


def test_other_exits_are_no_failures() -> None:
    budget = ErrorBudget(0)
    for exit_ in set(Exit) - {Exit.FAILED, Exit.TIMEOUT}:
        budget.left(exited(exit_), 1)
    budget.check(1)
    budget.check_at_end(7)


def test_at_the_end_the_share_is_that_of_however_few_there_were() -> None:
    budget = ErrorBudget(0.25)
    budget.left(exited(), 3)
    budget.check(3)
    with pytest.raises(StageError, match="1 of the last 3 trajectories failed, more than the"):
        budget.check_at_end(3)


def test_the_error_names_the_last_failure_and_has_its_cause() -> None:
    budget, cause = ErrorBudget(0), ValueError("broken")
    budget.raised(cause)
    budget.left(exited(), 1)
    with pytest.raises(StageError) as raised:
        budget.check(1)
    assert str(raised.value) == (
        "1 of the last 64 trajectories failed, more than the error budget of 0% allows; the last "
        "in stage 'act' (act/3/r/a1): ValueError: broken"
    )
    assert raised.value.__cause__ is cause
