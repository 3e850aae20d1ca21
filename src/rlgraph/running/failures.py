"""Makes a record of what a call raised, and tells when too many trajectories have failed.

Must not know how a graph is run; it only counts what it is told.
"""

from __future__ import annotations

import traceback
from collections import deque

from rlgraph.errors import StageError, StageTimeoutError
from rlgraph.scheduling import Exit, Exited, Failure, Task
from rlgraph.scheduling.records import FailureKind

_LEAST = 64
"""Trajectories that the share of failures is taken of, unless the whole run has fewer."""


def kind_of(error: BaseException) -> FailureKind:
    """Return what it means that a call raised this. Cancelled is only what the run cancelled."""
    return "timeout" if isinstance(error, TimeoutError | StageTimeoutError) else "error"


def failure_of(
    task: Task, error: BaseException, kind: FailureKind, *, start_s: float, end_s: float
) -> Failure:
    """Return the record of a call that gave no value."""
    # Not str(error): a careless exception class may raise there.
    told = traceback.TracebackException.from_exception(error)
    return Failure(
        stage=task.stage,
        key=task.key,
        kind=kind,
        error=f"{type(error).__name__}: {told}",
        trace="".join(told.format()),
        start_s=start_s,
        end_s=end_s,
    )


class ErrorBudget:
    """How many trajectories may fail, of the last 64, or of as many as were ever under way.

    A failure is forgotten after as many launches, for what fails at once leaves before all that
    succeeds; and where nothing is launched to replace what left, after as many exits.
    """

    def __init__(self, share: float) -> None:
        """Take the share that may fail. Raises ValueError unless it is from 0 to 1."""
        if not 0 <= share <= 1:
            raise ValueError(f"error_budget must be a share from 0 to 1, got {share!r}")
        self._share = share
        self._under_way = 0
        self._left = 0
        self._failed_at: deque[int] = deque()
        """Of the last that failed: where the count stood. Each exit has a place of its own."""
        self._last: Failure | None = None
        self._cause: BaseException | None = None

    def under_way(self, count: int) -> None:
        """Note how many trajectories are under way."""
        self._under_way = max(self._under_way, count)

    def raised(self, error: BaseException) -> None:
        """Note what a call raised: the last one is the cause that is told."""
        self._cause = error

    def left(self, event: Exited) -> None:
        """Note that a trajectory left."""
        self._left += 1
        if event.exit in (Exit.FAILED, Exit.TIMEOUT):
            self._failed_at.append(self._count)
            self._last = event.failure

    def check(self) -> None:
        """Raise ``StageError`` with the cause where too many of the last have failed."""
        while self._failed_at and self._failed_at[0] <= self._count - self._window:
            self._failed_at.popleft()
        self._refuse_more_than(self._window)

    def check_at_end(self, launched: int) -> None:
        """Raise ``StageError`` where too many failed of however few there were."""
        self._refuse_more_than(min(self._window, launched))

    @property
    def _window(self) -> int:
        return max(_LEAST, self._under_way)

    @property
    def _count(self) -> int:
        """Launches, while as many are under way as ever were; then also exits not replaced."""
        return self._under_way + self._left

    def _refuse_more_than(self, window: int) -> None:
        failed, last = len(self._failed_at), self._last
        if last is not None and failed > self._share * window:
            raise StageError(
                f"{failed} of the last {window} trajectories failed, more than the error budget "
                f"of {self._share:.0%} allows; the last in stage {last.stage!r} ({last.key}): "
                f"{last.error}"
            ) from self._cause
