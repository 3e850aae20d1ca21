"""One feedback's books: its versions, who started at which, and how much may be under way.

All amounts are in units of which ``unit`` make one version, so that they stay integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rlgraph.ports import Latest
from rlgraph.scheduling.items import Launch
from rlgraph.scheduling.records import Exit


@dataclass(slots=True, eq=False, kw_only=True)
class Ledger:
    """The state of a ``graph.latest``."""

    number: int
    name: str
    max_staleness: int
    waits: bool = False
    """Wait for what would become too old, instead of dropping it."""
    unit: int = 1
    extra: int = 0
    """Units kept under way beyond what is needed: the redundancy of its batch."""
    version: int = 0
    goal: int | None = None
    """Versions after which nothing more is wanted."""
    pending: int = 0
    """Batches taken for coming versions and not yet published."""
    admitted: int = 0
    """Units started; ``admitted - lost == next_version * unit + sum(owed)``, always."""
    lost: int = 0
    lost_since: int = 0
    """Units lost since the last version."""
    owed: dict[int, int] = field(default_factory=dict)
    """Units under way and not yet taken, by the version at which they were admitted."""
    latest: Latest[Any] | None = None
    started: dict[int, dict[Launch, None]] = field(default_factory=dict)
    """Launches of which something is still to be taken, by the version they started at."""
    lags: dict[int, int] = field(default_factory=dict)
    """Histogram of trained trajectories by lag."""

    @property
    def next_version(self) -> int:
        """Trainer's version when the next batch is consumed: published and taken ones."""
        return self.version + self.pending

    def has_credit(self, amount: int) -> bool:
        """Whether ``amount`` more may start without breaking the bound."""
        if self.pending > self.max_staleness:
            # What starts now would be too old for the batch after the one being trained on.
            return False
        started = self.admitted - self.lost
        if self.goal is not None and started >= self.goal * self.unit + self.extra:
            return False
        room = (self.version + 1 + self.max_staleness) * self.unit + self.extra - started
        # Without any slack a part of a root that was lost can only be replaced by a whole one.
        return room >= amount or (self.max_staleness == 0 and room > 0)

    @property
    def reason(self) -> Exit:
        """What it is called when a launch became too old: surplus where more were kept going."""
        return Exit.SURPLUS if self.extra else Exit.STALE

    def admit(self, amount: int) -> None:
        """Count what starts now."""
        self.admitted += amount
        self.owe(amount, self.version)

    def start(self, launch: Launch, *, counted: bool) -> None:
        """Note that a launch reads this feedback, for the first time or again.

        ``counted``: the item that reads is to be trained on for this feedback.
        """
        start = launch.starts.setdefault(self.number, self.version)
        if counted:
            if start not in self.started:
                self.started[start] = {}
            self.started[start][launch] = None

    def too_old(self, launch: Launch) -> bool:
        """Whether a launch can no longer be consumed within the bound."""
        start = launch.starts.get(self.number)
        return start is not None and self.next_version - start > self.max_staleness

    def doomed(self) -> list[Launch]:
        """List the launches that have become too old."""
        least = self.next_version - self.max_staleness
        old = sorted(version for version in self.started if version < least)
        return [launch for version in old for launch in self.started[version]]

    def must_wait(self, arrived: Mapping[int, int]) -> bool:
        """Whether a batch now would leave more behind than later ones can take within the bound.

        ``arrived``: units in the buffer, by the version at which they were admitted. What was
        admitted at version v has to be taken by the batch of v + max_staleness.
        """
        owed = here = 0
        for version in sorted(self.owed):
            owed += self.owed[version]
            here += arrived.get(version, 0)
            later = max(version + self.max_staleness - self.next_version, 0) * self.unit
            if here < owed and min(here, self.unit) < owed - later:
                return True
        return False

    def take(self, launches: tuple[Launch, ...]) -> None:
        """Take launches for the next version."""
        consumed = self.next_version
        for launch in launches:
            launch.taken[self.number] = consumed
            start = launch.starts.get(self.number)
            if start is not None:
                self.lags[consumed - start] = self.lags.get(consumed - start, 0) + 1
        self.pending += 1

    def owe(self, amount: int, since: int) -> None:
        """Owe ``amount`` as admitted at version ``since``."""
        self.owed[since] = self.owed.get(since, 0) + amount

    def settle(self, amount: int, since: int) -> None:
        """Owe ``amount`` of what was admitted at version ``since`` no longer."""
        self.owed[since] -= amount
        if not self.owed[since]:
            del self.owed[since]

    def forget(self, launch: Launch) -> None:
        """Drop a launch of which nothing more is to be taken."""
        start = launch.starts.get(self.number)
        if start is not None and start in self.started:
            self.started[start].pop(launch, None)
            if not self.started[start]:
                del self.started[start]

    def lose(self, amount: int) -> None:
        """Give back the credit of what was lost on the way."""
        self.lost += amount
        self.lost_since += amount

    def publish(self, value: Any) -> int:
        """Make ``value`` the next version, and return its number."""
        self.version += 1
        self.pending -= 1
        self.lost_since = 0
        self.latest = Latest(name=self.name, version=self.version, value=value)
        return self.version
