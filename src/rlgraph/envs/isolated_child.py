"""What runs in the process that ``Isolated`` starts: a warden, and the environment it watches.

The warden holds no environment. It waits for the end of the lifeline, a pipe that only the parent
can write to and never does, then kills every descendant: those that changed their process group
too, since orphans below it become its children (on Linux; elsewhere its process group is killed).
"""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

from rlgraph.envs.channel import Channel
from rlgraph.envs.protocol import Environment

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def main(channel: int, lifeline: int) -> None:  # pragma: no cover - in a process of its own
    """Fork the environment's process and stand watch. Both arguments are file descriptors."""
    _set_on_process(PR_SET_CHILD_SUBREAPER, 1)
    worker = os.fork()
    if worker == 0:
        os.close(lifeline)
        # Set by the forked process on itself; the warden has one thread, which lives as long as it.
        _set_on_process(PR_SET_PDEATHSIG, signal.SIGKILL)
        serve(Channel(socket.socket(fileno=channel)))
        os._exit(0)
    os.close(channel)
    os.read(lifeline, 1)
    sys.exit(_end_all(worker))


def serve(channel: Channel) -> None:
    """Answer requests until the channel ends.

    The first is a pickled function that makes the environment, the others are JSON
    ``[method, *arguments]``. Each answer is JSON: ``{"returned": ...}`` or ``{"raised": text}``,
    the text being the traceback.
    """
    environment: Environment | None = None
    while True:
        try:
            request = channel.receive()
        except EOFError:
            return
        try:
            if environment is None:
                make: Callable[[], Environment] = pickle.loads(request)
                environment, returned = make(), None
            else:
                returned = _answer(environment, *json.loads(request))
            reply: dict[str, object] = {"returned": returned}
            encoded = json.dumps(reply).encode()
        except Exception:  # noqa: BLE001 - the boundary: what an environment raises goes to the caller
            encoded = json.dumps({"raised": traceback.format_exc()}).encode()
        channel.send(encoded)


def _answer(environment: Environment, method: str, *arguments: str | int) -> list[object] | None:
    if method == "reset":
        observation, info = environment.reset(int(arguments[0]))
        return [_text(observation), _numbers(info)]
    if method == "step":
        observation, reward, terminated, truncated, info = environment.step(str(arguments[0]))
        flags = bool(terminated), bool(truncated)
        return [_text(observation), float(reward), *flags, _numbers(info)]
    environment.close()
    return None


def _text(observation: object) -> str:
    if not isinstance(observation, str):
        raise TypeError(f"an observation must be text, got {type(observation).__name__}")
    return observation


def _numbers(info: object) -> dict[str, float]:
    if not isinstance(info, Mapping):
        raise TypeError(f"info must be a mapping of numbers, got {type(info).__name__}")
    return {str(name): float(value) for name, value in info.items()}


def _end_all(worker: int) -> int:  # pragma: no cover - in a process of its own
    """Kill every descendant; return how the worker ended, 128 + signal where one killed it."""
    if not Path("/proc/self/stat").exists():
        os.killpg(os.getpid(), signal.SIGKILL)
    code = 0
    while True:
        for pid in _children():
            os.kill(pid, signal.SIGKILL)
        try:
            pid, status = os.wait()
        except ChildProcessError:
            return code
        if pid == worker:
            code = os.waitstatus_to_exitcode(status)
            code = 128 - code if code < 0 else code


def _children() -> list[int]:  # pragma: no cover - in a process of its own
    """Return the children of this process, zombies included."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            # "pid (name) state ppid ...": the name may hold blanks and brackets.
            parent = int(status.read_text(errors="replace").rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == os.getpid():
            found.append(int(status.parent.name))
    return found


def _set_on_process(option: int, value: int) -> None:  # pragma: no cover - in its own process
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
