"""Ways out: what becomes of a trajectory that leaves, and of those that counted on it."""

from __future__ import annotations

from abc import abstractmethod

from rlgraph.errors import StarvedError
from rlgraph.graph.node import Node
from rlgraph.scheduling.calls import Calls
from rlgraph.scheduling.items import Item, Launch, Siblings
from rlgraph.scheduling.records import Exit, Exited, Failure

_EXITS = tuple(Exit)
_RANKS = {exit_: rank for rank, exit_ in enumerate(_EXITS)}


class Losses(Calls):
    """Every exit releases what it held, refunds what it was counted for and leaves one event."""

    def stop(self) -> None:
        """Want nothing more: everything under way leaves as CANCELLED."""
        self._stopped = True
        for launch in list(self.live):
            for item in list(launch.items):
                self._leave(item, Exit.CANCELLED)

    def _consume(self, item: Item) -> None:
        for launch in item.launches:
            launch.root.spent |= item.main
        self._leave(item, Exit.CONSUMED)

    def _leave(self, item: Item, exit_: Exit) -> None:
        """Take an item off its way, and its trajectories out where nothing else carries them."""
        if item.exit is not None:
            return
        item.exit = exit_
        if item.parts is not None:
            item.parts.closed = True
            for part in list(item.parts.items.values()):
                self._leave(part, exit_)
            return
        assert item.at is not None
        if item.buffered:
            self.formers[item.at.index].discard(item)
        if exit_ is not Exit.CONSUMED and not self._stopped:
            self._unpair(item, exit_)
        self._judge(item, (not item.main, _RANKS[exit_], item.at.index))
        if item.task is not None:
            self._cancelled.append(item.task)
        else:
            self._let_go(item)
        if not item.buffered:
            self._closed(item.root)

    def _judge(self, item: Item, verdict: tuple[bool, int, int]) -> None:
        for launch in item.launches:
            del launch.items[item]
            if launch.verdict is None or verdict < launch.verdict:
                launch.verdict = verdict
            if not launch.items and not launch.held:
                self._exited(launch)

    def _replaced(self, launch: Launch) -> None:
        """Count siblings instead of a launch that nothing carries any more."""
        if launch.verdict is None:
            self._unlaunch(launch)
        elif not launch.held:
            self._exited(launch)  # another part of it left before

    def _exited(self, launch: Launch) -> None:
        assert launch.verdict is not None
        exit_, stage = _EXITS[launch.verdict[1]], launch.verdict[2]
        del self.live[launch]
        self.exits[exit_] += 1
        for ledger in self.ledgers:
            ledger.forget(launch)
        launch.root.live -= 1
        self._forget(launch.root)
        names = [ledger.name for ledger in self.ledgers]
        self._events.append(
            Exited(
                lineage=launch.lineage,
                domain=launch.root.domain,
                exit=exit_,
                stage=self.program.graph.nodes[stage].name,
                start_versions={names[n]: v for n, v in launch.starts.items()},
                consumed_versions={names[n]: v for n, v in launch.taken.items()},
                tokens=launch.tokens,
                stage_s=launch.stage_s,
                failure=launch.failure,
            )
        )

    def _fail(self, item: Item, error: str) -> None:
        stage = item.at.name if item.at is not None else ""
        lineage = ".".join(map(str, item.lineage))
        failure = Failure(stage=stage, key=f"{stage}/{lineage}", kind="error", error=error)
        for launch in item.launches:
            launch.failure = failure
        self._lose(item, Exit.FAILED)

    def _lose(self, item: Item, exit_: Exit) -> None:
        """Take an item off its way, and make up for it: a sibling more, or its credit back."""
        if item.exit is not None:
            return
        # Held until it is made up for, else its root would look settled and its iterates left.
        self._opened(item.root)
        for frame in item.frames:
            frame.holders += 1
        held = [launch for launch in item.launches if not launch.held]
        for launch in held:
            launch.held = True
        self._leave(item, exit_)
        self._make_up(item, exit_)
        for launch in held:
            launch.held = False
            if not launch.items:
                self._exited(launch)
        self._let_go(item)
        self._closed(item.root)

    def _make_up(self, item: Item, exit_: Exit) -> None:
        assert item.at is not None
        siblings = item.siblings[-1] if item.siblings else None
        number = item.lineage[-1]
        if siblings is None or siblings.items.get(number) is not item:
            self._refund(item)
            return
        if not siblings.grouped:
            self._refund(item)
        if siblings.closed:
            return
        siblings.lost.add(number)
        siblings.arrived.pop(number, None)
        if not siblings.grouped:
            self._unit(siblings)
        elif siblings.launched - len(siblings.lost) < siblings.size:
            if self._may_top_up(siblings, exit_):
                self._deliver(siblings.node, self._sibling(siblings))
            else:
                self._give_up(siblings, exit_)
        for twin in siblings.twins.values():
            self._miss(twin, number, exit_)

    def _miss(self, twin: Siblings, number: int, exit_: Exit) -> None:
        """Note that a sibling was lost before it came to where a side branch starts."""
        if number in twin.items or twin.closed:
            return
        twin.lost.add(number)
        if not twin.grouped:
            self._unit(twin)
        elif twin.launched - len(twin.lost) < twin.size:
            self._give_up(twin, exit_)

    def _give_up(self, siblings: Siblings, exit_: Exit) -> None:
        """Let the members of a group go that cannot be filled, and make up for it as a whole."""
        siblings.closed = True
        given_up = Exit.STALE if exit_ is Exit.STALE else Exit.SURPLUS
        # Synchronous: those under way run on, else how they left would depend on who was first.
        members = siblings.arrived if self.synchronous else siblings.items
        for number, member in list(members.items()):
            self._leave(member, given_up)
            for twin in siblings.twins.values():
                self._miss(twin, number, exit_)
        self._unpair(siblings.parent, given_up)
        self._make_up(siblings.parent, exit_)

    def _may_top_up(self, siblings: Siblings, exit_: Exit) -> bool:
        if self._stopped or siblings.launched >= siblings.most:
            return False
        parent = siblings.parent
        ledgers = [self.ledgers[number] for number in parent.counts]
        if any(ledger.too_old(launch) for ledger in ledgers for launch in parent.launches):
            return False  # it would be born too old
        if exit_ not in (Exit.STALE, Exit.SURPLUS):
            return True
        # A group that is stale as a whole makes room for a new one.
        others = [other for other in siblings.items.values() if other.exit is None]
        return exit_ is Exit.STALE and any(
            not any(ledger.too_old(launch) for ledger in ledgers)
            for other in others
            for launch in other.launches
        )

    def _refund(self, item: Item) -> None:
        assert item.at is not None
        step = self.program.steps[item.at.index]
        for number in item.counts:
            ledger, amount = self.ledgers[number], step.worth[number]
            if number in item.tickets:
                ledger.pending -= 1
            else:
                ledger.settle(amount, item.root.since[number])
            ledger.lose(amount)
            self._refunded = True
        item.tickets = ()

    def _unpair(self, item: Item, exit_: Exit) -> None:
        """Let go of who waits in a join for an item that will not come, or will wait there."""
        assert item.at is not None
        for join in self.program.steps[item.at.index].joins:
            rounds = item.rounds[: len(join.scope.inside)]
            key = (join.index, item.lineage, rounds)
            waiting = item.root.pairs.get(key)
            if isinstance(waiting, Item) and waiting is not item:
                del item.root.pairs[key]
                self._lose(waiting, exit_)
            else:
                item.root.pairs[key] = exit_

    def check_starved(self) -> None:
        """Raise ``StarvedError`` where everything is lost on the way, however often refilled."""
        for ledger in self.ledgers:
            if ledger.lost_since > self._refills * ledger.unit:
                exits = {exit_.value: count for exit_, count in self.exits.items()}
                raise StarvedError(
                    f"{self._refills} batches' worth of items were lost since version "
                    f"{ledger.version} of {ledger.name!r}, so no batch can be filled.\n"
                    f"    exits so far: {exits}\n"
                    "    to mend: loosen the filter, or look at the failures in the run's record"
                )

    @abstractmethod
    def _deliver(self, node: Node, item: Item) -> None:
        """Pass an item on to whoever takes what ``node`` gives."""

    @abstractmethod
    def _sibling(self, siblings: Siblings) -> Item:
        """Make one more sibling."""

    @abstractmethod
    def _unit(self, siblings: Siblings) -> None:
        """Buffer what an ``unbatch`` gave, once all of it that can come has come."""
