"""Finds and imports the file of a graph, shipped or the user's own, and says what is wrong with it.

A graph file holds a ``Config`` dataclass and ``build(config) -> Graph``; see ``session.job``.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import pkgutil
import sys
from pathlib import Path
from types import ModuleType

from rlgraph.errors import RlgraphError, did_you_mean
from rlgraph.text import said_by


class GraphFileError(RlgraphError):
    """No such graph, or its file is not what it should be."""


def load_graph_file(name: str) -> ModuleType:
    """Import a shipped graph by name, or a file by the path of a ``.py``.

    Raises ``GraphFileError``; what the user's code raised is its cause.
    """
    module = _from_file(Path(name)) if name.endswith(".py") else _shipped(name)
    config, build = (getattr(module, needed, None) for needed in ("Config", "build"))
    if not (isinstance(config, type) and dataclasses.is_dataclass(config)):
        raise GraphFileError(f"graph file {name!r} has no dataclass 'Config'; to mend: give it one")
    if not callable(build):
        raise GraphFileError(
            f"graph file {name!r} has no function 'build'; to mend: write build(config) -> Graph"
        )
    return module


def of_the_user(error: BaseException) -> BaseException:
    """Leave out of a traceback what this library and Python's import did before the user's code."""
    own = (str(Path(__file__).parents[1]), "<frozen importlib")
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(own):
        frames = frames.tb_next
    return error if frames is None else error.with_traceback(frames)


def _shipped(name: str) -> ModuleType:
    graphs = importlib.import_module("rlgraph.graphs")
    known = [module.name for module in pkgutil.iter_modules(graphs.__path__)]
    if name not in known:
        raise GraphFileError(
            f"no graph {name!r}{did_you_mean(name, known)}; to mend: name one of "
            f"{', '.join(known)}, or give the path of a .py file"
        )
    return importlib.import_module(f"rlgraph.graphs.{name}")


def _from_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise GraphFileError(f"no graph file {str(path)!r}; to mend: give the path of a .py file")
    if path.stem in sys.stdlib_module_names:
        raise GraphFileError(
            f"graph file {str(path)!r} is named like a module of Python; to mend: rename it"
        )
    # As ``python FILE`` does it: modules beside the file can be imported, and other processes
    # find the file's functions by its name. Dataclasses and type hints are resolved there, too.
    sys.path.insert(0, str(path.parent.resolve()))
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise GraphFileError(
            f"graph file {error.filename}:{error.lineno}: {error.msg}; to mend: correct that line"
        ) from None
    except RlgraphError:
        raise
    except Exception as error:
        raise GraphFileError(
            f"graph file {str(path)!r} cannot be imported: {said_by(error)}"
        ) from error
    return module
