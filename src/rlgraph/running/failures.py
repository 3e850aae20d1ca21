"""Makes a record of what a call raised, and tells when too many trajectories have failed.

Must not know how a graph is run; it only counts what it is told.
"""

from __future__ import annotations

import traceback
from collections import deque
from concurrent.futures import CancelledError

from rlgraph.errors import StageError, StageTimeoutError
from rlgraph.scheduling import Exit, Exited, Failure, Task
from rlgraph.scheduling.records import FailureKind

_LEAST = 64
"""Trajectories that the share of failures is taken of, unless the whole run has fewer."""


def failure_of(task: Task, error: BaseException, *, start_s: float, end_s: float) -> Failure:
    """Return the record of a call that raised."""
    kind: FailureKind
    if isinstance(error, CancelledError):
        kind = "cancelled"
    elif isinstance(error, TimeoutError | StageTimeoutError):
        kind = "timeout"
    else:
        kind = "error"
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
    """How many trajectories may fail, of those launched last.

    These are the last 64, or as many as were ever under way where that is more. Launches are
    counted, not exits: what fails at once leaves before all that succeeds, and what times out
    after it.
    """

    def __init__(self, share: float) -> None:
        """Take the share that may fail. Raises ValueError unless it is from 0 to 1."""
        if not 0 <= share <= 1:
            raise ValueError(f"error_budget must be a share from 0 to 1, got {share!r}")
        self._share = share
        self._window = _LEAST
        self._failed_at: deque[int] = deque()
        """Of the last that failed: how many had been launched by then."""
        self._last: Failure | None = None
        self._cause: BaseException | None = None

    def under_way(self, count: int) -> None:
        """Note how many trajectories are under way."""
        self._window = max(self._window, count)

    def raised(self, error: BaseException) -> None:
        """Note what a call raised: the last one is the cause that is told."""
        self._cause = error

    def left(self, event: Exited, launched: int) -> None:
        """Note that a trajectory left, when so many had been launched."""
        if event.exit in (Exit.FAILED, Exit.TIMEOUT):
            self._failed_at.append(launched)
            self._last = event.failure

    def check(self, launched: int) -> None:
        """Raise ``StageError`` with the cause where too many of the last have failed."""
        while self._failed_at and self._failed_at[0] <= launched - self._window:
            self._failed_at.popleft()
        self._refuse_more_than(self._window)

    def check_at_end(self, launched: int) -> None:
        """Raise ``StageError`` where too many failed of however few there were."""
        self._refuse_more_than(min(self._window, launched))

    def _refuse_more_than(self, window: int) -> None:
        failed, last = len(self._failed_at), self._last
        if last is not None and failed > self._share * window:
            raise StageError(
                f"{failed} of the last {window} trajectories failed, more than the error budget "
                f"of {self._share:.0%} allows; the last in stage {last.stage!r} ({last.key}): "
                f"{last.error}"
            ) from self._cause
