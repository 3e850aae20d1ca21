"""The directory of a run: written safely, locked, checked before it is used again."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rlgraph.scheduling import Snapshot
from rlgraph.session.rundir import (
    RunDirectory,
    RunDirectoryError,
    RunRefusedError,
    fresh_directory,
    named_directory,
    newest_directory,
    read_json,
)


def snapshot(version: int) -> Snapshot:
    return Snapshot(
        versions={"policy": version},
        cursors={"tasks": 9},
        unfinished={"tasks": (7, 8)},
        batches={"batch": version},
        exits={"consumed": 7},
        launched=7,
    )


def save(directory: Path) -> None:
    (directory / "state").write_text("all of it")


def begun(path: Path) -> RunDirectory:
    path.mkdir(parents=True)
    directory = RunDirectory(path=path)
    directory.graph.write_text("{}")
    return directory


def names(directory: RunDirectory) -> list[str]:
    return sorted(path.name for path in directory.checkpoints.iterdir())


def test_preflight_makes_the_directory_and_leaves_it_empty(tmp_path: Path) -> None:
    RunDirectory(path=tmp_path / "a" / "b").preflight(1)
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_preflight_refuses_what_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunDirectoryError, match=r"file/run' cannot be written: Not a directory"):
        RunDirectory(path=tmp_path / "file" / "run").preflight(1)


def test_preflight_refuses_a_full_disk(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="MB free, the run needs about 1000000000000 MB"):
        RunDirectory(path=tmp_path).preflight(10**18)


def test_a_checkpoint_is_read_back(tmp_path: Path) -> None:
    directory = RunDirectory(path=tmp_path)
    directory.write_checkpoint(snapshot(3), save)
    read, state = directory.read_checkpoint()
    assert read == snapshot(3)
    assert (state / "state").read_text() == "all of it"


def test_only_the_newest_checkpoint_stays(tmp_path: Path) -> None:
    directory = RunDirectory(path=tmp_path)
    for version in (9, 10, 11):
        directory.write_checkpoint(snapshot(version), save)
    assert names(directory) == ["00000002"]


def test_an_unfinished_checkpoint_does_not_count(tmp_path: Path) -> None:
    directory = RunDirectory(path=tmp_path)
    directory.write_checkpoint(snapshot(1), save)

    def die(_: Path) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        directory.write_checkpoint(snapshot(2), die)
    assert directory.read_checkpoint()[0] == snapshot(1)
    directory.write_checkpoint(snapshot(2), save)
    assert names(directory) == ["00000001"]


def test_half_a_deleted_checkpoint_does_not_count(tmp_path: Path) -> None:
    directory = RunDirectory(path=tmp_path)
    (directory.checkpoints / "00000000").mkdir(parents=True)
    directory.write_checkpoint(snapshot(1), save)
    (directory.checkpoints / "00000000" / "state").mkdir(parents=True)
    assert directory.read_checkpoint()[0] == snapshot(1)
    directory.write_checkpoint(snapshot(2), save)
    assert names(directory) == ["00000002"]


def test_a_copy_that_the_user_made_is_left_alone(tmp_path: Path) -> None:
    directory = RunDirectory(path=tmp_path)
    directory.write_checkpoint(snapshot(1), save)
    (directory.checkpoints / "00000000").rename(directory.checkpoints / "00000000.mine")
    assert not directory.resumable
    directory.write_checkpoint(snapshot(2), save)
    assert names(directory) == ["00000000", "00000000.mine"]


def test_a_whole_checkpoint_is_there_right_up_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(Exception):
        pass

    def kill(path: Path, target: Path) -> Path:
        raise KilledError

    directory = RunDirectory(path=tmp_path)
    directory.write_checkpoint(snapshot(4), save)
    again = replace(snapshot(4), launched=8)  # of another feedback
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", kill)
        with pytest.raises(KilledError):
            directory.write_checkpoint(again, save)
    assert directory.read_checkpoint()[0] == snapshot(4)
    directory.write_checkpoint(again, save)
    assert directory.read_checkpoint()[0] == again


def test_without_a_checkpoint_nothing_is_resumed(tmp_path: Path) -> None:
    directory = RunDirectory(path=tmp_path)
    assert not directory.resumable
    with pytest.raises(RunRefusedError, match="ended before its first checkpoint"):
        directory.read_checkpoint()


@pytest.mark.parametrize("stored", [{"versions": {}}, {"unfinished": {}, "pigs": 1}])
def test_a_checkpoint_of_another_version_is_refused(
    stored: dict[str, object], tmp_path: Path
) -> None:
    directory = RunDirectory(path=tmp_path)
    directory.write_checkpoint(snapshot(1), save)
    (directory.checkpoints / "00000000" / "snapshot.json").write_text(json.dumps(stored))
    with pytest.raises(RunRefusedError, match="is of another version of rlgraph"):
        directory.read_checkpoint()


@pytest.mark.parametrize("damaged", [b"", b'{"a": ', b"\xff", b"[1]"])
def test_a_damaged_record_is_named(damaged: bytes, tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_bytes(damaged)
    with pytest.raises(RunDirectoryError, match=r"record '.*summary.json'"):
        read_json(tmp_path / "summary.json")


def test_a_missing_record_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match=r"record '.*nope.json' cannot be read"):
        read_json(tmp_path / "nope.json")


def test_the_summary_holds_json_only(tmp_path: Path) -> None:
    directory = RunDirectory(path=tmp_path)
    directory.write_summary({"a": math.nan, "b": {"c": math.inf, "d": 0.5}, "e": "\ud800"})
    assert read_json(directory.summary) == {"a": None, "b": {"c": None, "d": 0.5}, "e": "\ud800"}


@pytest.mark.parametrize(
    ("summary", "versions"), [({"versions": 3, "error": "stopped"}, 3), ({"versions": 3}, 4)]
)
def test_what_has_not_come_to_its_end_is_not_finished(
    summary: dict[str, object], versions: int, tmp_path: Path
) -> None:
    directory = RunDirectory(path=tmp_path)
    directory.refuse_finished(versions)
    directory.write_summary(summary)
    directory.refuse_finished(versions)


@pytest.mark.parametrize("versions", [2, 3, None])
def test_what_has_come_to_its_end_is_finished(versions: int | None, tmp_path: Path) -> None:
    directory = RunDirectory(path=tmp_path)
    directory.write_summary({"versions": 3})
    with pytest.raises(RunRefusedError, match="is finished, with 3 versions"):
        directory.refuse_finished(versions)


def test_a_fresh_directory_gets_a_number_where_the_name_is_taken(tmp_path: Path) -> None:
    made = [fresh_directory(tmp_path / "runs", "a").path.name for _ in range(3)]
    assert made == ["a", "a-2", "a-3"]


def test_no_fresh_directory_is_made_where_none_can_be(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere/at/all")
    with pytest.raises(RunDirectoryError, match="cannot be written"):
        fresh_directory(tmp_path / "link", "a")


def test_a_name_is_free_until_a_run_came_to_a_checkpoint_there(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert named_directory(tmp_path, "a").path == tmp_path / "a"
    directory = begun(tmp_path / "b")
    assert named_directory(tmp_path, "b") == directory
    directory.write_checkpoint(snapshot(0), save)
    with pytest.raises(RunRefusedError, match="run 'b' exists already"):
        named_directory(tmp_path, "b")


def test_the_newest_run_is_that_which_began_last(tmp_path: Path) -> None:
    first, second, third = (begun(tmp_path / name) for name in ("a", "a-2", "ab-3"))
    for stamp_ns, directory in enumerate((second, first, third)):
        os.utime(directory.graph, ns=(stamp_ns, stamp_ns))
    assert newest_directory(tmp_path, "a", numbered=True) == first
    assert newest_directory(tmp_path, "a-2", numbered=False) == second


def test_no_run_to_resume_is_said(tmp_path: Path) -> None:
    begun(tmp_path / "a-2")
    with pytest.raises(RunRefusedError, match="no run 'a' in"):
        newest_directory(tmp_path, "a", numbered=False)


def test_a_second_process_is_kept_out(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from rlgraph.session.rundir import *\n"
        "try:\n"
        "    with RunDirectory(path=Path(sys.argv[1])).locked(): print('in')\n"
        "except RunRefusedError as error: print(error)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with RunDirectory(path=tmp_path).locked():
        outside = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        with pytest.raises(RunRefusedError), RunDirectory(path=tmp_path).locked():
            pass
    inside = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert outside.startswith("another run is under way in")
    assert inside == "in\n"


def test_what_the_file_system_refuses_names_the_directory(tmp_path: Path) -> None:
    with (
        pytest.raises(RunDirectoryError, match=f"{tmp_path}' cannot be written: odd"),
        RunDirectory(path=tmp_path).writing(),
    ):
        raise OSError("odd")
