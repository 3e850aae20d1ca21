"""What an executor is, and how any of them carries out one task.

An executor is any object with these methods: there is no base class and no registry. The
conformance suite (``tests/test_executors.py``) is what pluggable means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from concurrent.futures import Future, InvalidStateError
from contextlib import AbstractContextManager, nullcontext
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, Protocol

from rlgraph.errors import StageTimeoutError
from rlgraph.graph import Graph
from rlgraph.hints.callables import owner_of
from rlgraph.scheduling import Outcome, Task

Clock = Callable[[], float]

_UNLIMITED: AbstractContextManager[None] = nullcontext()
_CLEAN_UP_S = 0.5
"""How long cancelled coroutines may take to clean up when their loop is closed."""


class Executor(Protocol):
    """Carries out tasks, in whatever order and place."""

    def start(self, graph: Graph) -> None:
        """Be ready for tasks: set up the objects of the graph that are not yet, each once.

        May be called again, before ``close`` or after it, with the same graph or another: an
        object that was set up stays so.
        """
        ...

    def submit(self, task: Task) -> Future[Outcome]:
        """Begin a task, or queue it. Its future fails with what the stage raised.

        A call that outlasts ``task.deadline_s`` fails with ``StageTimeoutError`` and frees its
        place. A future may be cancelled; a call that cannot be stopped then runs to its end.
        """
        ...

    def wait(
        self, futures: Collection[Future[Outcome]], timeout_s: float | None = None
    ) -> list[Future[Outcome]]:
        """Return those that are done, at least one unless the time is up. Order is free."""
        ...

    def now(self) -> float:
        """Return seconds on the clock that outcomes are stamped with."""
        ...

    def close(self) -> None:
        """End what was started, and drop what is queued. Idempotent; never waits long."""
        ...


class Interrupted(BaseException):
    """Raised inside a call whose time is up. No ``except Exception`` of a stage stops it."""


def carry_out(
    task: Task,
    future: Future[Outcome],
    clock: Clock,
    limit: AbstractContextManager[None] = _UNLIMITED,
) -> bool:
    """Make the call of a task; the future gets its outcome, or whatever it raised.

    ``limit`` is entered for as long as the stage's own code runs, and may raise ``Interrupted``
    in it. Returns False where the call had been given up meanwhile.
    """
    try:
        with limit:
            start_s = clock()
            outcome = _outcome(task, task.call(*task.args, **task.kwargs), start_s, clock)
    except Interrupted as error:
        return settle(future, overdue(task).with_traceback(error.__traceback__))
    except BaseException as error:  # noqa: BLE001 - a stage may raise anything; the run loop sorts it
        return settle(future, error)
    return settle(future, outcome)


async def carry_out_async(task: Task, future: Future[Outcome], clock: Clock) -> None:
    """Await the call of a task; the future gets its outcome, or whatever it raised."""
    try:
        start_s = clock()
        outcome = _outcome(task, await task.call(*task.args, **task.kwargs), start_s, clock)
    except BaseException as error:  # noqa: BLE001 - a stage may raise anything; the run loop sorts it
        settle(future, error)
    else:
        settle(future, outcome)


def settle(future: Future[Outcome], result: Outcome | BaseException) -> bool:
    """Give a future its result. Returns False where it had been given up meanwhile."""
    try:
        if isinstance(result, Outcome):
            future.set_result(result)
        else:
            future.set_exception(result)
    except InvalidStateError:
        return False
    return True


def overdue(task: Task) -> StageTimeoutError:
    """Say that a call outlasted its deadline."""
    return StageTimeoutError(
        f"stage {task.stage!r} took longer than its deadline of {task.deadline_s:g} s on "
        f"{task.key}; to mend: .needs(Profile(deadline_s=...)), or look why it hangs"
    )


def set_up(graph: Graph, device: str, done: dict[int, object]) -> None:
    """Call ``setup(device)`` once on every object whose methods the graph calls.

    ``done`` holds the objects already set up, by identity, and is added to. Raises what a setup
    raises, with a note that says whose.
    """
    called = [fn for node in graph.nodes for fn in (node.call, node.until, node.release)]
    called += [feedback.init for feedback in graph.feedbacks]
    for owner in [owner_of(fn) for fn in called if fn is not None]:
        if owner is None or id(owner) in done:
            continue
        setup = getattr(owner, "setup", None)
        if callable(setup):
            try:
                setup(device)
            except Exception as error:
                error.add_note(f"while {type(owner).__name__} was set up on {device!r}")
                raise
        done[id(owner)] = owner


def close_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what a stopped event loop still holds, let it clean up, and close it."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left, timeout=_CLEAN_UP_S))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


def _outcome(task: Task, value: Any, start_s: float, clock: Clock) -> Outcome:
    if isinstance(value, CoroutineType | GeneratorType | AsyncGeneratorType):
        _refuse_lazy(task, value)
    verdict = bool(task.until(value)) if task.until is not None else False
    tokens = getattr(value, "num_tokens", 0)
    return Outcome(
        value=value,
        verdict=verdict,
        tokens=tokens if isinstance(tokens, int) else 0,
        start_s=start_s,
        end_s=clock(),
    )


def _refuse_lazy(task: Task, value: Any) -> None:
    if isinstance(value, CoroutineType):
        value.close()  # else Python complains, far from here, that it was never awaited
        raise TypeError(
            f"stage {task.stage!r} returned a coroutine that nobody awaits; to mend: use "
            ".map_async(...)"
        )
    raise TypeError(
        f"stage {task.stage!r} returned a {type(value).__name__}, which cannot travel; to mend: "
        "return a tuple, and follow the stage with .unbatch(size)"
    )
