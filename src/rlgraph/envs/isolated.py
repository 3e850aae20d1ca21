"""Run an environment in a process of its own, so that it may hang, crash or fork.

The process is the leader of a session of its own and is watched by a warden (``isolated_child``):
when ``close`` is called, a deadline passes or this process dies in any way, the environment and all
its descendants are killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Pipe
from typing import Any

from rlgraph.envs.channel import Channel
from rlgraph.envs.protocol import Environment, EnvironmentFailedError, Info
from rlgraph.errors import RlgraphError, StageTimeoutError

START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[3]); "
    "from rlgraph.envs.isolated_child import main; main(int(sys.argv[1]), int(sys.argv[2]))"
)
"""The search path goes by argument: PYTHONPATH would reach programs that the environment starts."""

GRACE_S = 5.0
"""How long the warden may take to kill; after that we kill its process group."""


class Isolated:
    """An ``Environment`` in a process of its own, started by ``reset`` and kept until ``close``.

    make: builds the environment there. It is pickled, so it is a module-level function or a
    ``functools.partial`` of one. What comes back is JSON: nothing of the environment is unpickled.
    deadline_s: wall time that any one call may take, the start of the process included; after that
    its processes are killed and the call raises StageTimeoutError.
    """

    def __init__(self, make: Callable[[], Environment], deadline_s: float) -> None:
        if not deadline_s > 0:
            raise ValueError(f"Isolated: deadline_s must be > 0, got {deadline_s!r}")
        try:
            self._make = pickle.dumps(make)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise EnvironmentFailedError(
                f"Isolated: make cannot be sent to another process ({error}); pass a module-level "
                "function or a functools.partial of one"
            ) from None
        self._deadline_s = deadline_s
        self._child: _Child | None = None
        self._in_call = threading.Lock()

    def reset(self, seed: int) -> tuple[str, Info]:
        """Start the process if there is none, and reset the environment in it."""
        if self._child is None:
            self._child = _Child()
            try:
                self._exchange("make", self._make)
            except RlgraphError:
                self._end()
                raise
        observation, info = self._call("reset", seed)
        return observation, info

    def step(self, action: str) -> tuple[str, float, bool, bool, Info]:
        """Step the environment.

        Raises StageTimeoutError after the deadline; EnvironmentFailedError when it raised (with its
        traceback) or its process died.
        """
        observation, reward, terminated, truncated, info = self._call("step", action)
        return observation, reward, terminated, truncated, info

    def close(self) -> None:
        """Let the environment close, then kill its process with all its descendants.

        While another thread is in a call, kill at once; that call raises EnvironmentFailedError.
        """
        child = self._child
        if child is None:
            return
        if self._in_call.locked():
            child.kill()
            return
        # What cannot close is killed a line later: nothing is left to tell.
        with contextlib.suppress(RlgraphError):
            self._call("close")
        self._end()

    def _call(self, method: str, *arguments: object) -> Any:
        return self._exchange(method, json.dumps([method, *arguments]).encode())

    def _exchange(self, method: str, request: bytes) -> Any:
        child = self._child
        if child is None:
            raise EnvironmentFailedError(
                f"Isolated.{method}: no process runs; call reset first (a failed call ends it)"
            )
        try:
            with self._in_call:
                reply = json.loads(child.channel.ask(request, self._deadline_s))
        except TimeoutError:
            self._end()
            raise StageTimeoutError(
                f"Isolated.{method}: no answer within {self._deadline_s} s; its process was killed"
            ) from None
        except (EOFError, ConnectionError):
            died = _how_it_ended(self._end())
            raise EnvironmentFailedError(
                f"Isolated.{method}: the process of the environment died ({died}); see its stderr"
            ) from None
        if "raised" in reply:
            raise EnvironmentFailedError(
                f"Isolated.{method}: the environment raised, its traceback is\n{reply['raised']}"
            )
        return reply["returned"]

    def _end(self) -> int:
        child, self._child = self._child, None
        if child is None:
            return 0
        code = child.kill()
        child.channel.close()
        return code


class _Child:
    """The process, the channel to it, and its lifeline: a pipe that we hold open."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.channel = Channel(ours)
        watched, self._lifeline = Pipe(duplex=False)
        with theirs, watched:
            numbers = (theirs.fileno(), watched.fileno())
            self._process = subprocess.Popen(
                [sys.executable, "-c", START, *map(str, numbers), json.dumps(sys.path)],
                stdin=subprocess.DEVNULL,
                pass_fds=numbers,
                start_new_session=True,
            )
        self._killing = threading.Lock()

    def kill(self) -> int:
        """Kill it with all descendants; return how the environment had ended (128 + signal)."""
        with self._killing:
            self._lifeline.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE_S)
            if self._process.returncode is None or self._process.returncode < 0:
                # The warden hangs or was killed itself.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
            return self._process.wait()


def _how_it_ended(code: int) -> str:
    numbers = {128 + number.value: number.name for number in signal.Signals}
    return f"killed by {numbers[code]}" if code in numbers else f"exit status {code}"
