"""Executors: inline, thread, simulated. Each imports rlgraph's protocols, never another one."""

from rlgraph.executors.inline import InlineExecutor
from rlgraph.executors.simulated import SimulatedExecutor, pretend
from rlgraph.executors.thread import ThreadExecutor

__all__ = ["InlineExecutor", "SimulatedExecutor", "ThreadExecutor", "pretend"]
