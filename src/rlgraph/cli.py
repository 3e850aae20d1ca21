"""The command line: ``rlgraph run`` and ``rlgraph show``.

Knows no graph and no algorithm: see ``session.graphfile`` and ``session.job`` for what it is given.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shlex
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NoReturn

from rlgraph.config import load_config, override_help
from rlgraph.errors import RlgraphError
from rlgraph.running.execution import Executor
from rlgraph.session.graphfile import load_graph_file, of_the_user
from rlgraph.session.job import Job, PlainJob
from rlgraph.session.rundir import (
    RunDirectory,
    RunRefusedError,
    fresh_directory,
    named_directory,
    newest_directory,
)
from rlgraph.text import printable, said_by, shorten

EXECUTORS = {
    "thread": "rlgraph.executors.thread:ThreadExecutor",
    "inline": "rlgraph.executors.inline:InlineExecutor",
    "simulated": "rlgraph.executors.simulated:SimulatedExecutor",
}
_INTERRUPTED = 130
_SHOWN = 20_000
"""Characters of an error that are printed at most."""


class CommandError(RlgraphError):
    """The command line asks for what is not there."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out a command line; return the exit code: 0, 1 when it failed, 130 when stopped."""
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        options = _parsed(arguments)
        options.command(options)
    except RlgraphError as error:
        if error.__cause__ is not None:
            trace = traceback.format_exception(of_the_user(error.__cause__))
            _print_error(shorten("".join(trace), _SHOWN))
        _complain(said_by(error), error)
        return 1
    except KeyboardInterrupt as error:
        _complain("stopped", error)
        return _INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    # argparse takes settings in one place only; people write them before and after options.
    if unknown := [text for text in rest if text.startswith("-")]:
        parser.error(f"unknown options: {' '.join(unknown)}")
    options.overrides += rest
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rlgraph", description="Reinforcement learning of agents as a typed graph."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="train: run a graph and record it under runs/")
    show = commands.add_parser("show", help="check a graph and draw it, without running it")
    for command in (run, show):
        command.add_argument("graph", help="name of a shipped graph, or path of a Python file")
        command.add_argument("overrides", nargs="*", metavar="key=value", help="settings")
        command.add_argument(
            "--config", action="append", type=Path, default=[], metavar="FILE", help="YAML settings"
        )
    run.add_argument("--out", type=Path, default=Path("runs"), help="where runs are kept")
    run.add_argument("--name", help="name of the run; the graph's by default")
    run.add_argument(
        "--resume",
        action="store_true",
        help="go on from the newest checkpoint, with the settings the run had",
    )
    run.add_argument("--executor", choices=EXECUTORS, default="thread")
    run.set_defaults(command=_run)
    shown = show.add_mutually_exclusive_group()
    shown.add_argument("--mermaid", action="store_true", help="print it as a Mermaid flowchart")
    shown.add_argument("--json", action="store_true", help="print its description")
    shown.add_argument("--settings", action="store_true", help="list what can be set")
    show.add_argument("--svg", type=Path, metavar="FILE", help="draw it into a file, too")
    show.set_defaults(command=_show)
    return parser


def _run(options: argparse.Namespace) -> None:
    from rlgraph.session import Options, run_job
    from rlgraph.session.progress import Progress

    _say(f"loading {options.graph} ...")  # torch and its like take seconds
    module = load_graph_file(options.graph)
    directory, config = _settled(options, module)
    versions = getattr(config, "versions", None)
    if not (versions is None or (isinstance(versions, int) and versions >= 1)):
        raise CommandError(
            f"Config.versions={versions!r} is no count; to mend: set versions=1 or more"
        )
    try:
        with Progress(versions) as progress:
            summary = run_job(
                _job(module, config, directory.path),
                config=config,
                executor=_executor(options.executor),
                directory=directory,
                show=progress,
                options=Options(
                    versions=versions, seed=getattr(config, "seed", 0), resume=options.resume
                ),
            )
    except BaseException as error:
        _note_what_is_left(options, directory, error)
        raise
    _say(f"{_told(summary)}\nreport: {directory.report}")


def _settled(options: argparse.Namespace, module: ModuleType) -> tuple[RunDirectory, Any]:
    """Return where the run is kept, and its settings; a resumed one starts from those it had."""
    name = options.name or Path(options.graph).stem
    if Path(name).name != name:
        raise CommandError(f"{name!r} is no name of a run; to mend: give the folder with --out")
    if options.resume:
        directory = newest_directory(options.out, name, numbered=not options.name)
        files = [directory.config, *options.config]
        return directory, load_config(module.Config, files=files, overrides=options.overrides)
    config = load_config(module.Config, files=options.config, overrides=options.overrides)
    find = named_directory if options.name else fresh_directory
    return find(options.out, name), config


def _note_what_is_left(
    options: argparse.Namespace, directory: RunDirectory, error: BaseException
) -> None:
    with suppress(OSError):
        directory.path.rmdir()  # where it is empty, nothing was begun: leave no trace
    # os.path, for it raises nothing: what was raised already must be told.
    if os.path.exists(directory.summary) and not isinstance(error, RunRefusedError):
        error.add_note(f"report: {directory.report}")
        if directory.resumable:
            again = ["rlgraph", "run", options.graph, "--out", str(options.out)]
            again += ["--name", directory.path.name, "--executor", options.executor, "--resume"]
            error.add_note(f"to go on: {shlex.join(again)}")


def _told(summary: Mapping[str, Any]) -> str:
    """Say in a few lines what came of a run; all of it is in ``summary.json``."""
    lines = []
    for name, value in summary.items():
        stem = name.removesuffix("_before")
        if stem != name and f"{stem}_after" in summary:
            lines.append(f"{stem}: {value:.4g} before, {summary[f'{stem}_after']:.4g} after")
        elif name == "outcomes":
            counts = (f"{count} {exit_}" for exit_, count in value.items() if count)
            lines.append(f"trajectories: {', '.join(counts)}")
        elif not name.endswith("_after") and not isinstance(value, Mapping):
            lines.append(f"{name}: {value:.4g}" if isinstance(value, float) else f"{name}: {value}")
    return "\n".join(lines)


def _say(text: str) -> None:
    try:
        print(printable(text), flush=True)
    except BrokenPipeError:
        # Nobody reads it any more, as in ``| head -2``; a run goes on. See ``progress.Screen``.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(text: str, error: BaseException) -> None:
    _print_error("\n".join([f"rlgraph: {shorten(text, _SHOWN)}", *getattr(error, "__notes__", ())]))


def _print_error(text: str) -> None:
    print(printable(text).rstrip("\n"), file=sys.stderr)


def _show(options: argparse.Namespace) -> None:
    import json

    from rlgraph import draw
    from rlgraph.draw.svg import svg

    module = load_graph_file(options.graph)
    if options.settings:
        _say(override_help(module.Config).removesuffix("\n"))
        return
    config = load_config(module.Config, files=options.config, overrides=options.overrides)
    graph = module.build(config)
    graph.check()
    if options.mermaid:
        _say(draw.mermaid(graph))
    elif options.json:
        _say(json.dumps(graph.describe(), indent=2))
    else:
        _say(draw.table(graph))
    if options.svg:
        try:
            options.svg.write_text(svg(graph), encoding="utf-8")
        except OSError as error:
            raise CommandError(
                f"drawing {str(options.svg)!r} cannot be written: {error.strerror}; to mend: give "
                "another file"
            ) from None


def _job(module: ModuleType, config: Any, directory: Path) -> Job:
    make = getattr(module, "job", None)
    job: Job = PlainJob(graph=module.build(config)) if make is None else make(config, directory)
    return job


def _executor(name: str) -> Executor:
    module, _, attribute = EXECUTORS[name].partition(":")
    executor: Executor = getattr(importlib.import_module(module), attribute)()
    return executor


def _terminate(signum: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 - signature
    raise KeyboardInterrupt
