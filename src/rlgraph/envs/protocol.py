"""What an environment is: text in, text out, one world at a time. It knows nothing of models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias, runtime_checkable

from rlgraph.errors import RlgraphError

Info: TypeAlias = Mapping[str, float]
"""Named measurements (``success``, ``invalid_actions``, ...). The last value of a name counts."""


class EnvironmentFailedError(RlgraphError):
    """An environment cannot go on: it died, was never started, or its script is at its end."""


@runtime_checkable
class Environment(Protocol):
    """One world that a trajectory acts in. The calls of one environment never overlap."""

    def reset(self, seed: int) -> tuple[str, Info]:
        """Start anew, wholly determined by ``seed`` (>= 0); return (observation, info)."""
        ...

    def step(self, action: str) -> tuple[str, float, bool, bool, Info]:
        """Answer any text; return (observation, reward, terminated, truncated, info).

        Terminated: the task is over. Truncated: a limit was reached. An action that makes no
        sense is answered in the observation, never with an exception.
        """
        ...

    def close(self) -> None:
        """Let go of everything it holds; may be called twice."""
        ...
