"""The command line, as a user meets it: what it prints, leaves behind and returns."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlgraph.cli import EXECUTORS, main
from rlgraph.session.rundir import RunDirectory
from tests.school import GRAPH


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("mine.py").write_text(GRAPH)
    yield
    sys.modules.pop("mine", None)


def lines(text: str) -> list[str]:
    return text.splitlines()


def test_a_run_ends_with_its_numbers_and_its_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "mine.py"]) == 0
    printed = lines(capsys.readouterr().out)
    assert printed[0] == "loading mine.py ..."
    assert "versions: 3" in printed
    assert "trajectories: 12 consumed" in printed
    assert printed[-1] == "report: runs/mine/report.html"
    assert Path("runs/mine/report.html").exists()


def test_settings_may_stand_before_and_after_options() -> None:
    assert main(["run", "mine.py", "versions=1", "--out", "a", "optim.lr=0.5"]) == 0
    stored = Path("a/mine/config.yaml").read_text()
    assert "versions: 1" in stored
    assert "lr: 0.5" in stored


def test_settings_win_over_files() -> None:
    Path("a.yaml").write_text("versions: 2\noptim: {lr: 7}\n")
    assert main(["run", "mine.py", "--config", "a.yaml", "versions=1"]) == 0
    stored = Path("runs/mine/config.yaml").read_text()
    assert "versions: 1" in stored
    assert "lr: 7.0" in stored


def test_runs_without_a_name_are_numbered() -> None:
    for _ in range(2):
        assert main(["run", "mine.py", "versions=1"]) == 0
    assert sorted(path.name for path in Path("runs").iterdir()) == ["mine", "mine-2"]


def test_a_name_is_used_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "mine.py", "versions=1", "--name", "a"]) == 0
    assert main(["run", "mine.py", "versions=1", "--name", "a"]) == 1
    assert "run 'a' exists already in 'runs'" in capsys.readouterr().err


def test_a_name_is_no_path(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "mine.py", "--name", "../a"]) == 1
    assert "'../a' is no name of a run" in capsys.readouterr().err


def test_every_executor_learns_the_same() -> None:
    learnt = set()
    for executor in EXECUTORS:
        assert main(["run", "mine.py", "--executor", executor, "--name", executor]) == 0
        learnt.add(Path(f"runs/{executor}/checkpoints/00000003/0-Learner/value.json").read_text())
    assert len(learnt) == 1


def test_a_run_that_fails_ends_with_the_cause_the_report_and_how_to_go_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", "mine.py", "fail_from=5", "--executor", "inline"]) == 1
    errors = lines(capsys.readouterr().err)
    line = lines(GRAPH).index('        raise ValueError(f"no {number}")') + 1
    assert errors[:2] == [
        "Traceback (most recent call last):",
        f'  File "{Path.cwd()}/mine.py", line {line}, in check',
    ]
    assert any(line.startswith("rlgraph: ") and "in stage 'check'" in line for line in errors)
    assert errors[-2:] == [
        "report: runs/mine/report.html",
        "to go on: rlgraph run mine.py --out runs --name mine --executor inline --resume",
    ]


def test_a_run_that_is_told_to_end_says_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    told = "import signal; signal.raise_signal(signal.SIGTERM)"
    Path("mine.py").write_text(GRAPH.replace("raise ValueError", f"{told}; raise ValueError"))
    before = signal.getsignal(signal.SIGTERM)
    assert main(["run", "mine.py", "fail_from=5", "--executor", "inline"]) == 130
    assert signal.getsignal(signal.SIGTERM) is before
    assert lines(capsys.readouterr().err) == [
        "rlgraph: stopped",
        "report: runs/mine/report.html",
        "to go on: rlgraph run mine.py --out runs --name mine --executor inline --resume",
    ]


def test_a_job_with_measurements_tells_them_before_and_after(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("mine.py").write_text(
        f"""{GRAPH}
from rlgraph.session.job import PlainJob

class Job(PlainJob):
    def evaluate(self, executor):
        return {{"success": 0.25, "turns": 3.0}}

def job(config, directory):
    return Job(graph=build(config))
"""
    )
    assert main(["run", "mine.py"]) == 0
    printed = lines(capsys.readouterr().out)
    assert "success: 0.25 before, 0.25 after" in printed
    assert "turns: 3 before, 3 after" in printed


def test_a_run_that_breaks_before_its_first_checkpoint_cannot_go_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("mine.py").write_text(
        f"""{GRAPH}
from rlgraph.errors import RunError
from rlgraph.session.job import PlainJob

class Job(PlainJob):
    def prepare(self, executor):
        raise RunError("cold")

def job(config, directory):
    return Job(graph=build(config))
"""
    )
    assert main(["run", "mine.py"]) == 1
    assert lines(capsys.readouterr().err) == [
        "rlgraph: cold",
        "report: runs/mine/report.html",
    ]


def test_a_resumed_run_has_the_settings_it_had(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "mine.py", "fail_from=5", "optim.lr=0.7"]) == 1
    assert main(["run", "mine.py", "--resume"]) == 1
    assert "resuming from version 1" in capsys.readouterr().out
    assert "lr: 0.7" in Path("runs/mine/config.yaml").read_text()


def test_a_resumed_run_may_not_be_given_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "mine.py", "fail_from=5"]) == 1
    capsys.readouterr()
    assert main(["run", "mine.py", "--resume", "fail_from=50", "optim.lr=0.2"]) == 1
    assert lines(capsys.readouterr().err) == [
        "rlgraph: 'runs/mine' was another run; what differs:",
        "    fail_from: 5 -> 50",
        "    optim.lr: 0.1 -> 0.2",
        "    to mend: resume with the settings it had, or start anew with another --name",
    ]


def test_a_finished_run_is_said_to_be_finished(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "mine.py"]) == 0
    assert main(["run", "mine.py", "--resume"]) == 1
    assert "is finished, with 3 versions" in capsys.readouterr().err
    assert main(["run", "mine.py", "--resume", "versions=4"]) == 0
    assert json.loads(Path("runs/mine/summary.json").read_text())["versions"] == 4


def test_nothing_to_resume_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "mine.py", "--resume"]) == 1
    assert "no run 'mine' in 'runs' to resume" in capsys.readouterr().err


def test_all_problems_of_the_configuration_are_told_at_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", "mine.py", "verzions=2", "optim.lr=x", "bach=5"]) == 1
    assert main(["run", "mine.py", "group=3"]) == 1
    errors = capsys.readouterr().err
    assert "rlgraph: Config: 3 problems in the configuration" in errors
    assert "unknown key 'verzions'" in errors
    assert "did you mean 'versions'?" in errors
    assert "optim.lr: expected a number, got 'x'" in errors
    assert "batch=4 is not a multiple of group=3: 4 = 1 x 3 + 1" in errors
    assert "Traceback" not in errors
    assert not Path("runs").exists()


def test_a_run_that_did_not_begin_leaves_no_directory(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("wrong.py").write_text(GRAPH.replace("publish_to(policy)", "batch(2)"))
    assert main(["run", "wrong.py"]) == 1
    sys.modules.pop("wrong")
    assert "rlgraph: graph 'mine' has " in capsys.readouterr().err
    assert list(Path("runs").iterdir()) == []


def test_a_named_run_that_did_not_begin_is_refused_as_any(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("wrong.py").write_text(GRAPH.replace("publish_to(policy)", "batch(2)"))
    assert main(["run", "wrong.py", "--name", "a"]) == 1
    sys.modules.pop("wrong")
    assert "rlgraph: graph 'mine' has " in capsys.readouterr().err
    Path("file").touch()
    assert main(["run", "mine.py", "--name", "a", "--out", "file/runs"]) == 1
    assert "cannot be written: Not a directory" in capsys.readouterr().err


def test_a_name_that_is_too_long_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    for more in ([], ["--resume"]):
        assert main(["run", "mine.py", "--name", "a" * 300, *more]) == 1
        assert "cannot be written: File name too long" in capsys.readouterr().err


def test_a_named_run_that_broke_before_its_first_checkpoint_can_be_begun_again() -> None:
    Path("runs/a").mkdir(parents=True)
    RunDirectory(path=Path("runs/a")).begin({}, {})
    assert main(["run", "mine.py", "--name", "a", "--resume"]) == 1
    assert main(["run", "mine.py", "--name", "a"]) == 0


def test_a_run_goes_on_to_its_end_when_nobody_reads_what_it_prints() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    for command in ("run", "show"):
        ended = subprocess.run(
            [sys.executable, "-m", "rlgraph", command, "mine.py"],
            stdout=writer,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
            check=False,
        )
        assert (ended.returncode, ended.stderr) == (0, b"")
    os.close(writer)
    assert json.loads(Path("runs/mine/summary.json").read_text())["versions"] == 3


def test_an_interrupt_while_the_graph_file_is_imported_stops(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("mine.py").write_text("import signal; signal.raise_signal(signal.SIGTERM)")
    assert main(["run", "mine.py"]) == 130
    assert capsys.readouterr().err == "rlgraph: stopped\n"


def test_what_an_exception_says_neither_floods_nor_steers_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    loud = 'raise ValueError("\\x1b[2J\\x00" + "x" * 1_000_000)'
    Path("mine.py").write_text(GRAPH.replace('raise ValueError(f"no {number}")', loud))
    assert main(["run", "mine.py", "fail_from=5", "--executor", "inline"]) == 1
    errors = capsys.readouterr().err
    assert "\ufffd[2J\ufffdxxx" in errors
    assert "\x1b" not in errors
    assert "\x00" not in errors
    assert len(errors) < 50_000
    assert errors.endswith("--executor inline --resume\n")


def test_a_metric_named_like_a_fixed_field_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.py").write_text(
        f"""{GRAPH}
from tests.school import Lesson

class Learner(Learner):
    def step(self, batch) -> Lesson:
        return Lesson(0.0, {{"version": 1.0}})
"""
    )
    assert main(["run", "mine.py"]) == 1
    assert "rlgraph: metrics named ['version'] of version 1 clash" in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").touch()
    assert main(["run", "mine.py", "--out", "file/runs"]) == 1
    assert "cannot be written: Not a directory" in capsys.readouterr().err


def test_an_unknown_option_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["run", "mine.py", "--bogus"])
    assert caught.value.code == 2
    assert "unknown options: --bogus" in capsys.readouterr().err


def test_odd_text_in_a_setting_survives(capsys: pytest.CaptureFixture[str]) -> None:
    odd = "\udcff\u05e9\U0001f600"
    assert main(["run", "mine.py", f"text={odd}", "fail_from=5"]) == 1
    assert main(["run", "mine.py", "--resume", f"text={odd}"]) == 1
    assert "resuming from version 1" in capsys.readouterr().out


def test_odd_text_in_an_error_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "no\udcff.py"]) == 1
    assert "no graph file 'no\\udcff.py'" in capsys.readouterr().err


def test_a_graph_is_shown_without_being_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "mine.py", "batch=8"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("graph mine: ")
    assert "batch 8" in printed
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("option", "start"),
    [("--mermaid", "flowchart TD"), ("--json", "{"), ("--settings", "key ")],
)
def test_a_graph_is_shown_in_other_forms(
    option: str, start: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", "mine.py", option]) == 0
    assert capsys.readouterr().out.startswith(start)


def test_a_graph_is_drawn_into_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "mine.py", "--svg", "mine.svg"]) == 0
    assert Path("mine.svg").read_text().startswith("<svg")
    assert main(["show", "mine.py", "--svg", "nowhere/mine.svg"]) == 1
    assert "drawing 'nowhere/mine.svg' cannot be written" in capsys.readouterr().err


def test_a_wrong_graph_is_shown_to_be_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    Path("wrong.py").write_text(GRAPH.replace("publish_to(policy)", "batch(2)"))
    assert main(["show", "wrong.py"]) == 1
    sys.modules.pop("wrong")
    assert f"at {Path.cwd()}/wrong.py:" in capsys.readouterr().err


def test_a_graph_file_may_have_no_versions(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.py").write_text(GRAPH.replace("    versions: int = 3\n", ""))
    assert main(["run", "mine.py"]) == 0
    assert "versions: 25" in capsys.readouterr().out


def test_what_the_sources_did_not_suffice_for_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "mine.py", "versions=26"]) == 0
    printed = capsys.readouterr().out
    assert "versions: 25" in printed
    assert "shortfall: " in printed


def test_a_count_of_versions_is_at_least_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "mine.py", "versions=0"]) == 1
    assert "Config.versions=0 is no count" in capsys.readouterr().err
