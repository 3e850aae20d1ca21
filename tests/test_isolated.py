"""An environment in a process of its own: it may hang, crash and fork, and nothing is left (P7)."""

from __future__ import annotations

import importlib
import json
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rlgraph.envs.channel import Channel
from rlgraph.envs.isolated import Isolated
from rlgraph.envs.isolated_child import serve
from rlgraph.envs.protocol import Environment, EnvironmentFailedError
from rlgraph.envs.sandbox import Sandbox
from rlgraph.envs.scripted import EchoEnvironment, ScriptedEnvironment, ScriptedStep
from rlgraph.errors import StageTimeoutError
from rlgraph.rl.records import Prompt

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

SOURCE = '''
import ctypes, os, subprocess, sys, threading

GRANDCHILD = """
import os, threading
os.setsid()
print(os.getpid(), flush=True)
threading.Event().wait()
"""

class Wild:
    """Does what it is told, the worst included."""

    def reset(self, seed):
        return f"{os.getpid()} {seed}", {"seed": seed}

    def step(self, action):
        if action == "fork":
            command = [sys.executable, "-c", GRANDCHILD]
            self.child = subprocess.Popen(command, stdout=subprocess.PIPE)
            return self.child.stdout.readline().decode().strip(), 0.0, False, False, {}
        if action == "hang":
            threading.Event().wait()
        if action.startswith("tell "):
            with open(action[5:], "w") as told:
                told.write("hanging")
            threading.Event().wait()
        if action == "exit":
            os._exit(7)
        if action == "crash":
            ctypes.string_at(0)
        if action == "raise":
            raise KeyError("what is gone")
        if action == "wrong":
            return 3, 0.0, False, False, {}
        return action, 1, 0, True, {"steps": True}

    def close(self):
        pass

class Sticky(Wild):
    def close(self):
        threading.Event().wait()

def broken():
    raise RuntimeError("no world today")
'''


@pytest.fixture
def wild(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module that the child can import, as it could the user's own."""
    (tmp_path / "wild_worlds.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("wild_worlds")
    del sys.modules["wild_worlds"]


@pytest.fixture
def isolated() -> Iterator[Callable[..., Isolated]]:
    """Make isolated environments, and close them whatever happens."""
    made: list[Isolated] = []

    def make(of: Callable[[], Environment], deadline_s: float = 20.0) -> Isolated:
        made.append(Isolated(of, deadline_s))
        return made[-1]

    yield make
    for environment in made:
        environment.close()


def wait_until_gone(*pids: int) -> None:
    """Wait for processes that are not our children; the kernel wakes us at their end."""
    for pid in pids:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            assert select.select([handle], [], [], 20.0)[0], f"process {pid} is still there"
        finally:
            os.close(handle)


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_it_behaves_like_the_environment_inside(isolated: Any, wild: Any) -> None:
    environment = isolated(wild.Wild)
    assert isinstance(environment, Environment)
    observation, info = environment.reset(5)
    assert (observation.split()[1], info) == ("5", {"seed": 5.0})
    assert int(observation.split()[0]) != os.getpid()
    assert environment.step("walk") == ("walk", 1.0, False, True, {"steps": 1.0})


def test_the_process_is_kept_over_resets_and_gone_after_close(isolated: Any, wild: Any) -> None:
    environment = isolated(wild.Wild)
    pids = [int(environment.reset(seed)[0].split()[0]) for seed in (1, 2)]
    assert pids[0] == pids[1]
    environment.close()
    environment.close()
    assert not is_there(pids[0])


@pytest.mark.parametrize(
    "text", ["\ud800", "a\x00b", "\u202eabc", "y" * 1_000_000], ids=["lone", "nul", "rtl", "1MB"]
)
def test_odd_text_comes_back_unchanged(isolated: Any, text: str) -> None:
    environment = isolated(EchoEnvironment)
    environment.reset(0)
    assert environment.step(text)[0] == text


def test_a_hang_meets_the_deadline_and_leaves_no_process(isolated: Any, wild: Any) -> None:
    environment = isolated(wild.Wild)
    child = int(environment.reset(0)[0].split()[0])
    grandchild = int(environment.step("fork")[0])
    assert os.getsid(grandchild) == grandchild
    environment._deadline_s = 0.2
    with pytest.raises(StageTimeoutError, match=r"Isolated\.step: no answer within 0\.2 s"):
        environment.step("hang")
    assert not is_there(child)
    assert not is_there(grandchild)


def test_after_a_hang_the_same_object_starts_anew(isolated: Any, wild: Any) -> None:
    environment = isolated(wild.Wild)
    environment.reset(0)
    environment._deadline_s = 0.2
    with pytest.raises(StageTimeoutError):
        environment.step("hang")
    with pytest.raises(EnvironmentFailedError, match=r"no process runs; call reset first"):
        environment.step("walk")
    environment._deadline_s = 20.0
    environment.reset(1)
    assert environment.step("walk")[0] == "walk"


def test_a_hang_in_one_leaves_the_others_alone(isolated: Any, wild: Any) -> None:
    hung, other = isolated(wild.Wild), isolated(wild.Wild)
    for environment in (hung, other):
        environment.reset(0)
    hung._deadline_s = 0.2
    with pytest.raises(StageTimeoutError):
        hung.step("hang")
    assert other.step("walk")[0] == "walk"


def test_close_kills_descendants_that_left_the_group(isolated: Any, wild: Any) -> None:
    environment = isolated(wild.Wild)
    environment.reset(0)
    grandchild = int(environment.step("fork")[0])
    environment.close()
    assert not is_there(grandchild)


def test_close_from_another_thread_ends_a_hanging_call(
    isolated: Any, wild: Any, tmp_path: Path
) -> None:
    environment = isolated(wild.Wild)
    child = int(environment.reset(0)[0].split()[0])
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(environment.step, f"tell {fifo}")
        assert fifo.read_text() == "hanging"
        environment.close()
        with pytest.raises(EnvironmentFailedError, match="killed by SIGKILL"):
            hanging.result()
    assert not is_there(child)
    assert environment._child is None


def test_what_cannot_close_is_killed(isolated: Any, wild: Any) -> None:
    environment = isolated(wild.Sticky)
    child = int(environment.reset(0)[0].split()[0])
    environment._deadline_s = 0.2
    environment.close()
    assert not is_there(child)


@pytest.mark.parametrize(
    ("action", "ended"), [("exit", "exit status 7"), ("crash", "killed by SIGSEGV")]
)
def test_a_dead_process_is_told_with_its_end(
    isolated: Any, wild: Any, action: str, ended: str
) -> None:
    environment = isolated(wild.Wild)
    environment.reset(0)
    with pytest.raises(EnvironmentFailedError, match=rf"environment died \({ended}\)"):
        environment.step(action)


def test_what_the_environment_raises_comes_with_its_traceback(isolated: Any, wild: Any) -> None:
    environment = isolated(wild.Wild)
    environment.reset(0)
    with pytest.raises(EnvironmentFailedError, match=r"wild_worlds\.py(.|\n)*'what is gone'"):
        environment.step("raise")
    assert environment.step("walk")[0] == "walk"


def test_an_environment_that_cannot_be_made_leaves_no_process(isolated: Any, wild: Any) -> None:
    environment = isolated(wild.broken)
    for _ in range(2):
        with pytest.raises(EnvironmentFailedError, match="no world today"):
            environment.reset(0)
        assert environment._child is None


def test_when_the_parent_is_killed_nothing_is_left(wild: Any) -> None:
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, json; sys.path[:] = json.loads(sys.argv[1])\n"
            "import wild_worlds; from rlgraph.envs.isolated import Isolated\n"
            "environment = Isolated(wild_worlds.Wild, 60.0)\n"
            "print(environment.reset(0)[0].split()[0], environment.step('fork')[0], flush=True)\n"
            "environment.step('hang')",
            json.dumps(sys.path),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    with parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 2
        assert all(map(is_there, pids))
        parent.send_signal(signal.SIGKILL)
    wait_until_gone(*pids)


def test_a_killed_warden_takes_the_rest_along(isolated: Any, wild: Any) -> None:
    environment = isolated(wild.Wild)
    child = int(environment.reset(0)[0].split()[0])
    os.kill(environment._child._process.pid, signal.SIGKILL)
    wait_until_gone(child)
    with pytest.raises(EnvironmentFailedError, match="died"):
        environment.step("walk")


def test_a_warden_that_does_not_answer_is_killed(
    isolated: Any, wild: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlgraph.envs.isolated.GRACE_S", 0.1)
    environment = isolated(wild.Wild)
    child = int(environment.reset(0)[0].split()[0])
    os.kill(environment._child._process.pid, signal.SIGSTOP)
    environment.close()
    wait_until_gone(child)


def test_what_cannot_be_pickled_is_refused_before_anything_starts() -> None:
    with pytest.raises(EnvironmentFailedError, match="pass a module-level function"):
        Isolated(lambda: EchoEnvironment(), 1.0)


@pytest.mark.parametrize("deadline_s", [0.0, -1.0, float("nan")])
def test_a_deadline_that_is_not_positive_is_refused(deadline_s: float) -> None:
    with pytest.raises(ValueError, match="deadline_s must be > 0"):
        Isolated(EchoEnvironment, deadline_s)


def test_a_sandbox_can_hold_it(isolated: Any) -> None:
    script = [ScriptedStep(observation="on", reward=0.5)]
    sandbox = Sandbox(lambda _prompt: isolated(partial(ScriptedEnvironment, "go", script)), 3)
    assert sandbox.reset(Prompt(id="p"), 0).observation == "go"


def served(make: Callable[[], Environment], *requests: list[Any]) -> list[dict[str, Any]]:
    """Run the child's loop in a thread, to see its answers as they are sent."""
    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=serve, args=(Channel(theirs),))
    thread.start()
    channel = Channel(ours)
    messages = [pickle.dumps(make), *(json.dumps(request).encode() for request in requests)]
    answers = [json.loads(channel.ask(message, 20.0)) for message in messages]
    channel.close()
    thread.join()
    theirs.close()
    return answers


def test_the_child_answers_in_json() -> None:
    make = partial(ScriptedEnvironment, "first", [ScriptedStep(observation="on", reward=0.5)])
    assert served(make, ["reset", 3], ["step", "a"], ["close"]) == [
        {"returned": None},
        {"returned": ["first", {}]},
        {"returned": ["on", 0.5, False, False, {}]},
        {"returned": None},
    ]


class Mistaken(EchoEnvironment):
    def reset(self, seed: int) -> Any:
        return "text", [seed]

    def step(self, action: str) -> Any:
        return len(action), 0.0, False, False, {}


def test_the_child_refuses_what_is_no_text_and_no_mapping() -> None:
    _, reset, step = served(Mistaken, ["reset", 3], ["step", "a"])
    assert "info must be a mapping of numbers, got list" in reset["raised"]
    assert "an observation must be text, got int" in step["raised"]


class Trickle:
    """A socket whose other end sends one byte a second, on a clock of its own."""

    now = 0.0
    timeout = 0.0

    def monotonic(self) -> float:
        return self.now

    def settimeout(self, timeout: float) -> None:
        self.timeout = timeout

    def sendall(self, message: bytes) -> None:
        self.sent = message

    def recv(self, _length: int) -> bytes:
        if self.timeout < 1.0:
            raise TimeoutError
        self.now += 1.0
        return b"\x00"


def test_the_deadline_holds_for_all_parts_of_an_answer_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trickle: Any = Trickle()
    monkeypatch.setattr("rlgraph.envs.channel.time", trickle)
    with pytest.raises(TimeoutError):
        Channel(trickle).ask(b"question", 5.5)
    assert trickle.now == 5.0
