"""The directory of one run: what lies where, whether it can be written, and how it is resumed.

config.yaml  graph.json  started.json  metrics.jsonl  spans.jsonl  failures.jsonl  trace.json
weights/  checkpoints/  summary.json  report.html  lock
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rlgraph.config import differences as config_differences
from rlgraph.config import load_config, to_yaml
from rlgraph.errors import RlgraphError
from rlgraph.files import replace_text
from rlgraph.graph.describe import differences as graph_differences
from rlgraph.scheduling import Snapshot

_SNAPSHOT = "snapshot.json"
"""Written last: a checkpoint that holds it is whole."""

_NUMBERED = "[0-9]" * 8
"""Names of checkpoints; others beside them, such as copies, are left alone."""

MAY_CHANGE = ("versions",)
"""Settings that a resumed run may be given anew."""

_PLACE = "give another place with --out, or free this one"


class RunDirectoryError(RlgraphError):
    """The directory of a run cannot be written, or what lies in it cannot be read."""


class RunRefusedError(RunDirectoryError):
    """A run cannot begin, or go on, in this directory; nothing was started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDirectory:
    """Paths and records of a run."""

    path: Path

    @property
    def config(self) -> Path:
        """Settings as they were used."""
        return self.path / "config.yaml"

    @property
    def graph(self) -> Path:
        """Description of the graph."""
        return self.path / "graph.json"

    @property
    def started(self) -> Path:
        """What was measured before training."""
        return self.path / "started.json"

    @property
    def metrics(self) -> Path:
        """One line a version."""
        return self.path / "metrics.jsonl"

    @property
    def spans(self) -> Path:
        """One line a call, as it ended."""
        return self.path / "spans.jsonl"

    @property
    def failures(self) -> Path:
        """One line a call that gave no value."""
        return self.path / "failures.jsonl"

    @property
    def trace(self) -> Path:
        """Timeline for chrome://tracing."""
        return self.path / "trace.json"

    @property
    def summary(self) -> Path:
        """What came of it, in a few numbers."""
        return self.path / "summary.json"

    @property
    def report(self) -> Path:
        """The page to look at."""
        return self.path / "report.html"

    @property
    def checkpoints(self) -> Path:
        """The newest whole checkpoint; they are numbered as they are written, from 0."""
        return self.path / "checkpoints"

    def preflight(self, needed_bytes: int) -> None:
        """Raise ``RunDirectoryError`` unless files of that size can be written here."""
        with self.writing():
            self.path.mkdir(parents=True, exist_ok=True)
            probe = self.path / ".probe"
            with probe.open("wb") as file:
                file.write(b"\0")
                os.fsync(file.fileno())
            probe.unlink()
        free = shutil.disk_usage(self.path).free
        if free < needed_bytes:
            raise RunDirectoryError(
                f"run directory {str(self.path)!r} has {free / 1e6:.0f} MB free, the run needs "
                f"about {needed_bytes / 1e6:.0f} MB; to mend: {_PLACE}"
            )

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turn what the file system refuses into a ``RunDirectoryError``."""
        try:
            yield
        except OSError as error:
            raise RunDirectoryError(
                f"run directory {str(self.path)!r} cannot be written: {error.strerror or error}; "
                f"to mend: {_PLACE}"
            ) from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes out; the lock goes with this one, however it ends.

        Raises ``RunRefusedError`` when another run is under way here.
        """
        with (self.path / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunRefusedError(
                    f"another run is under way in {str(self.path)!r}; to mend: wait for its end, "
                    "or give another --name"
                ) from None
            yield

    def begin(self, config: object, description: Mapping[str, Any]) -> None:
        """Record what is about to run."""
        with self.writing():
            replace_text(self.config, [to_yaml(config)])
            replace_text(self.graph, [json.dumps(description, indent=2)])

    def refuse_other(self, config: object, description: Mapping[str, Any]) -> None:
        """Raise ``RunRefusedError`` listing what differs from the run that began here."""
        found = graph_differences(read_json(self.graph), dict(description))
        old = load_config(type(config), files=[self.config])
        found += [
            line
            for line in config_differences(old, config)
            if line.partition(":")[0] not in MAY_CHANGE
        ]
        if found:
            listed = "\n".join(f"    {line}" for line in found)
            raise RunRefusedError(
                f"{str(self.path)!r} was another run; what differs:\n{listed}\n"
                "    to mend: resume with the settings it had, or start anew with another --name"
            )

    def refuse_finished(self, versions: int | None) -> None:
        """Raise ``RunRefusedError`` if the run that began here has come to its end.

        ``versions``: how many are wanted now; None where the sources end it.
        """
        if not self.summary.exists():
            return
        summary = read_json(self.summary)
        done = summary.get("versions", 0)
        if "error" not in summary and (versions is None or versions <= done):
            mend = "start anew with another --name"
            raise RunRefusedError(
                f"the run in {str(self.path)!r} is finished, with {done} versions; to mend: "
                + (mend if versions is None else f"raise versions= above {done}, or {mend}")
            )

    def refuse_begun(self) -> None:
        """Raise ``RunRefusedError`` if a run came to a checkpoint here, which would be lost."""
        if self.resumable:
            raise RunRefusedError(
                f"run {self.path.name!r} exists already in {str(self.path.parent)!r}; to mend: "
                "--resume it, or give another --name"
            )

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Write the summary; NaN and the infinities, which JSON lacks, as null."""
        replace_text(self.summary, [json.dumps(_finite(summary), indent=2) + "\n"])

    def write_checkpoint(self, snapshot: Snapshot, save: Callable[[Path], None]) -> None:
        """Store where the run stands; the one before goes only when this one is whole.

        Raises ``RunDirectoryError`` when it cannot be written; the one before is untouched.
        """
        # A number that none had: what is there must stay until this one has its name.
        numbers = (int(path.name) for path in self.checkpoints.glob(_NUMBERED))
        whole = self.checkpoints / f"{max(numbers, default=-1) + 1:08d}"
        fresh = self.checkpoints / "unfinished"
        with self.writing():
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir(parents=True)
            save(fresh)
            replace_text(fresh / _SNAPSHOT, [json.dumps(asdict(snapshot))])
            fresh.rename(whole)
        for older in self.checkpoints.glob(_NUMBERED):
            if older != whole:
                shutil.rmtree(older)

    @property
    def resumable(self) -> bool:
        """Whether there is a checkpoint to go on from."""
        return bool(self._whole_checkpoints())

    def read_checkpoint(self) -> tuple[Snapshot, Path]:
        """Return the newest whole checkpoint. Raises ``RunRefusedError`` if there is none."""
        found = self._whole_checkpoints()
        if not found:
            raise RunRefusedError(
                f"the run in {str(self.path)!r} ended before its first checkpoint, nothing can be "
                f"resumed; to mend: start anew, with --name {self.path.name} and without --resume"
            )
        stored = read_json(found[-1] / _SNAPSHOT)
        try:
            unfinished = {name: tuple(ids) for name, ids in stored.pop("unfinished").items()}
            return Snapshot(**stored, unfinished=unfinished), found[-1]
        except (KeyError, TypeError) as error:
            raise RunRefusedError(
                f"checkpoint {str(found[-1])!r} is of another version of rlgraph ({error}); "
                "to mend: resume with that version, or start anew"
            ) from None

    def _whole_checkpoints(self) -> list[Path]:
        return sorted(path.parent for path in self.checkpoints.glob(f"{_NUMBERED}/{_SNAPSHOT}"))


def fresh_directory(out: Path, name: str) -> RunDirectory:
    """Make ``out/name``, or with a number behind it where that is taken.

    Two that ask at once get two. Raises ``RunDirectoryError`` when it cannot be made.
    """
    directory, number = RunDirectory(path=out / name), 1
    with directory.writing():
        out.mkdir(parents=True, exist_ok=True)
    while True:
        with directory.writing(), suppress(FileExistsError):
            directory.path.mkdir()
            return directory
        number += 1
        directory = RunDirectory(path=out / f"{name}-{number}")


def named_directory(out: Path, name: str) -> RunDirectory:
    """Return ``out/name``. Raises ``RunRefusedError`` if there is a run that can be resumed."""
    directory = RunDirectory(path=out / name)
    directory.refuse_begun()
    return directory


def newest_directory(out: Path, name: str, *, numbered: bool) -> RunDirectory:
    """Return the newest run of that name; ``numbered``: or of that name and a number.

    Raises ``RunRefusedError`` if there is none, ``RunDirectoryError`` if it cannot be looked for.
    """
    with RunDirectory(path=out / name).writing():
        paths = [out / name, *(out.glob(f"{name}-[0-9]*") if numbered else ())]
        runs = [run for path in paths if (run := RunDirectory(path=path)).graph.exists()]
    if not runs:
        raise RunRefusedError(
            f"no run {name!r} in {str(out)!r} to resume; to mend: give its --name, or --out"
        )
    return max(runs, key=lambda run: run.graph.stat().st_mtime_ns)


def read_json(path: Path) -> dict[str, Any]:
    """Read a record of a run. Raises ``RunDirectoryError`` when it is missing or damaged."""
    try:
        stored = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise RunDirectoryError(
            f"record {str(path)!r} cannot be read: {error}; to mend: start anew, or bring it back"
        ) from None
    if not isinstance(stored, dict):
        raise RunDirectoryError(f"record {str(path)!r} is no JSON object; to mend: start anew")
    return stored


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
