"""A run of the command line that is stopped or killed: what it leaves behind, and whom."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from rlgraph.cli import main
from rlgraph.session.rundir import RunDirectory
from tests.school import GRAPH

# A stage that writes to a pipe when it hangs, with a child that hangs too; neither ends by itself.
HANGING = GRAPH.replace(
    "from tests.school import Learner, scale",
    """
from rlgraph import Batch
from rlgraph.envs.isolated import Isolated
from tests import school
from tests.school import Lesson, scale

class Sleeper:
    def reset(self, seed):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
        return f"{os.getpid()} {child.pid}", {}
    def step(self, action):
        time.sleep(3600)
    def close(self):
        pass

def hang():
    env = Isolated(Sleeper, 3600.0)
    print("hanging", env.reset(0)[0], flush=True)
    env.step("")

class Learner(school.Learner):
    def step(self, batch: Batch[float]) -> Lesson:
        if self.value > 10 and os.environ["HANG"] == "step":
            hang()
        return super().step(batch)

    def save(self, directory: str) -> None:
        if self.value > 10 and os.environ["HANG"] == "save":
            hang()
        super().save(directory)
""",
)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("mine.py").write_text(GRAPH)
    yield
    sys.modules.pop("mine", None)


def start(hang: str, executor: str) -> subprocess.Popen[str]:
    """Run the command line in a session of its own, interruptible even where the tests are not."""
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from rlgraph.cli import EXECUTORS, main; sys.exit(main(sys.argv[1:]))"
    )
    Path("hanging.py").write_text(HANGING)
    return subprocess.Popen(
        [sys.executable, "-c", code, "run", "hanging.py", "--executor", executor],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "HANG": hang},
    )


@contextmanager
def hung(running: subprocess.Popen[str]) -> Iterator[None]:
    """Wait until it hangs, and at the end until the processes that hang with it are gone."""
    assert running.stdout is not None
    line = next((line for line in running.stdout if line.startswith("hanging")), "")
    handles = [os.pidfd_open(int(number)) for number in line.split()[1:]]
    assert len(handles) == 2, running.communicate()[1]
    yield
    for handle in handles:
        assert select.select([handle], [], [], 20.0)[0], "a descendant is still there"
        os.close(handle)


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["thread", "inline"])
@pytest.mark.parametrize("hang", ["step", "save"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_ends_at_once_with_its_descendants_and_a_whole_checkpoint(
    number: signal.Signals, hang: str, executor: str
) -> None:
    with start(hang, executor) as running, hung(running):
        running.send_signal(number)
        _, errors = running.communicate(timeout=20)
    assert (running.returncode, errors.splitlines()[:1]) == (130, ["rlgraph: stopped"]), errors
    directory = RunDirectory(path=Path("runs/hanging"))
    assert json.loads(directory.summary.read_text())["error"] == "stopped by the user"
    assert directory.read_checkpoint()[0].versions == {"policy": 2 if hang == "step" else 1}


@pytest.mark.slow
def test_a_killed_run_leaves_a_whole_checkpoint_and_no_descendants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with start("step", "thread") as running, hung(running):
        running.kill()
        running.communicate(timeout=20)
    directory = RunDirectory(path=Path("runs/hanging"))
    assert directory.read_checkpoint()[0].versions == {"policy": 2}
    monkeypatch.setenv("HANG", "never")
    assert main(["run", "hanging.py", "--resume"]) == 0
    sys.modules.pop("hanging")
    assert main(["run", "mine.py", "--executor", "inline"]) == 0
    resumed, whole = (
        Path(f"runs/{name}/checkpoints/00000003/0-Learner/value.json").read_text()
        for name in ("hanging", "mine")
    )
    assert resumed == whole


@pytest.mark.slow
def test_a_second_interrupt_ends_a_run_that_does_not_come_to_its_end() -> None:
    with start("step", "thread") as running, hung(running):
        # A pipe that nobody reads: the summary hangs.
        os.mkfifo(f"runs/hanging/.summary.json.{running.pid}.partial")
        for _ in range(20):
            running.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                running.wait(1.0)
                break
        _, errors = running.communicate(timeout=20)
    # The interpreter may report an interrupt that landed in a callback of the garbage collector.
    assert running.returncode == 130, errors
    assert "rlgraph: stopped" in errors.splitlines()
