"""Reinforcement learning of language-model agents as a typed graph of plain functions.

The public names of the core. Importing them imports nothing heavy: torch, dask and the like are
imported by the modules that use them.
"""

from rlgraph.errors import (
    ConfigError,
    GraphError,
    Problem,
    ProblemsError,
    RlgraphError,
    RunError,
    StageError,
    StageTimeoutError,
    StallError,
    StarvedError,
)
from rlgraph.graph import Feedback, Graph, Stream
from rlgraph.graph.describe import differences
from rlgraph.ports import Batch, Latest, Seed
from rlgraph.profile import Distribution, Empirical, Fixed, LogNormal, Normal, Profile
from rlgraph.running.loop import Result, Watch, run
from rlgraph.scheduling import Exit, Failure, Outcome, Snapshot, Task

__version__ = "0.1.0"

__all__ = [
    "Batch",
    "ConfigError",
    "Distribution",
    "Empirical",
    "Exit",
    "Failure",
    "Feedback",
    "Fixed",
    "Graph",
    "GraphError",
    "Latest",
    "LogNormal",
    "Normal",
    "Outcome",
    "Problem",
    "ProblemsError",
    "Profile",
    "Result",
    "RlgraphError",
    "RunError",
    "Seed",
    "Snapshot",
    "StageError",
    "StageTimeoutError",
    "StallError",
    "StarvedError",
    "Stream",
    "Task",
    "Watch",
    "differences",
    "run",
]
