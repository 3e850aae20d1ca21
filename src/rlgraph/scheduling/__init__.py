"""Pure scheduling state: events in, tasks out. No clock, no thread, no I/O."""

from rlgraph.scheduling.records import (
    Event,
    Exit,
    Exited,
    Failure,
    Outcome,
    Output,
    Published,
    Snapshot,
    Task,
)
from rlgraph.scheduling.scheduler import Scheduler

__all__ = [
    "Event",
    "Exit",
    "Exited",
    "Failure",
    "Outcome",
    "Output",
    "Published",
    "Scheduler",
    "Snapshot",
    "Task",
]
