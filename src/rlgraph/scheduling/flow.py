"""The way of an item through the graph: one method a verb, called when an item arrives there."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable

from rlgraph.graph.node import Node
from rlgraph.scheduling.batches import Former
from rlgraph.scheduling.items import Frame, Item, Root, Siblings
from rlgraph.scheduling.ledger import Ledger
from rlgraph.scheduling.program import Program, Step
from rlgraph.scheduling.records import Exit, Output, Published
from rlgraph.scheduling.splits import Splits


class Flow(Splits):
    """Items on their way. ``Scheduler`` drives it."""

    def __init__(
        self,
        program: Program,
        ledgers: list[Ledger],
        formers: dict[int, Former],
        *,
        seed: int,
        refills: int,
    ) -> None:
        super().__init__(program, ledgers, formers, seed=seed, refills=refills)
        self._arrive: dict[str, Callable[[Node, Item], None]] = {
            "map": self._queue,
            "map_async": self._queue,
            "filter": self._queue,
            "fan_out": self._fan_out,
            "group": self._group,
            "batch": self._batch,
            "unbatch": self._unbatch,
            "join": self._join,
            "entry": self._enter,
            "publish": self._publish,
            "collect": self._collect,
        }

    def _fan_out(self, node: Node, item: Item) -> None:
        item.at = node
        total = node.size + node.redundancy
        siblings = self._siblings(node, item, most=2 * total)
        for _ in range(total):
            self._sibling(siblings)
        self._delist(item)
        for launch in item.launches:
            if not launch.items:
                self._replaced(launch)
        for sibling in list(siblings.items.values()):
            if sibling.exit is None:
                self._deliver(node, sibling)

    def _group(self, node: Node, item: Item) -> None:
        item.at = node
        siblings = item.siblings[-1]
        if siblings.closed:
            self._leave(item, Exit.SURPLUS)
            return
        siblings.arrived[item.lineage[-1]] = item
        if len(siblings.arrived) < siblings.size:
            return
        siblings.closed = True
        members = [siblings.arrived[number] for number in sorted(siblings.arrived)]
        for number, other in list(siblings.items.items()):
            if number not in siblings.arrived:
                self._leave(other, Exit.SURPLUS)
                for twin in siblings.twins.values():
                    self._miss(twin, number, Exit.SURPLUS)
        outer = item.siblings[:-1]
        self._deliver(node, self._merge(members, siblings.parent.lineage, item.root, outer))

    def _unbatch(self, node: Node, item: Item) -> None:
        item.at = node
        if len(item.value) != node.size:
            self._fail(
                item,
                f"stage {node.inputs[0].name!r} returned {len(item.value)} items where its "
                f"{node.name} takes {node.size}",
            )
            return
        siblings = self._siblings(node, item, most=0)
        siblings.launched = node.size
        one_each = len(item.launches) == node.size
        for number, value in enumerate(item.value):
            launches = (item.launches[number],) if one_each else item.launches
            self._member(siblings, number, value, launches)
        self._delist(item)
        for part in list(siblings.items.values()):
            if part.exit is None:
                self._deliver(node, part)

    def _batch(self, node: Node, item: Item) -> None:
        item.at = node
        if not item.siblings:
            self._buffer(node, [item])
            return
        siblings = item.siblings[-1]
        siblings.arrived[item.lineage[-1]] = item
        self._unit(siblings)

    def _unit(self, siblings: Siblings) -> None:
        """Buffer what an ``unbatch`` gave, once all of it that can come has come."""
        if len(siblings.arrived) + len(siblings.lost) == siblings.size and not siblings.closed:
            siblings.closed = True
            unit = [siblings.arrived[number] for number in sorted(siblings.arrived)]
            if unit and unit[0].at is not None:
                self._buffer(unit[0].at, unit)

    def _buffer(self, node: Node, unit: list[Item]) -> None:
        former, root = self.formers[node.index], unit[0].root
        former.put(unit)
        for _ in unit:
            self._closed(root)
        self._form(former)

    def _form(self, former: Former) -> None:
        node = former.node
        while not self._stopped and former.count >= node.size and self._may_form(former):
            members = former.form()
            root = Root(node.index, former.made, members[0].root.domain)
            former.made += 1
            self._inherit(root, members)
            self._announce(root)
            batch = self._merge(members, (root.index,), root, ())
            taken = self._take(self.program.steps[node.index], batch)
            if batch.exit is None:
                self._deliver(node, batch)
            # Not before: what is lost may fill the next batch, which must come after this one.
            self._expire(taken)

    def _may_form(self, former: Former) -> bool:
        step = self.program.steps[former.node.index]
        if any(self.ledgers[number].pending for number in step.takes):
            # What is taken early is older when it is trained on, and what ends meanwhile (the
            # slow domains) is passed over: the next batch is chosen when it can start.
            slot = self.program.steps[step.consumers[0][0].index].slot
            if slot.limit == math.inf or slot.running >= slot.limit:
                return False
        return not former.too_early() or self._at_rest()

    @abstractmethod
    def _at_rest(self) -> bool:
        """Whether nothing is under way and nothing may start: whoever waits, waits in vain."""

    def _inherit(self, root: Root, members: list[Item]) -> None:
        """Owe for a batch what was owed for its members, as for the oldest of them."""
        for number in dict.fromkeys([number for member in members for number in member.counts]):
            ledger, amount = self.ledgers[number], self.formers[root.origin].worths[number]
            since = [member.root.since[number] for member in members if number in member.counts]
            root.since[number] = oldest = min(since)
            for version in since:
                if version != oldest:
                    ledger.settle(amount, version)
                    ledger.owe(amount, oldest)

    def _take(self, step: Step, item: Item) -> tuple[int, ...]:
        """Fix which version an item is to make; return the feedbacks for which it was taken."""
        numbers = tuple([number for number in step.takes if _to_take(item, number)])
        for number in numbers:
            if any(map(self.ledgers[number].too_old, item.launches)):
                self._lose(item, self.ledgers[number].reason)
                return ()
        item.tickets = (*item.tickets, *numbers)
        for number in numbers:
            ledger = self.ledgers[number]
            ledger.take(item.launches)
            ledger.settle(ledger.unit, item.root.since[number])
            for launch in item.launches:
                if not any(_to_take(other, number) for other in launch.items):
                    ledger.forget(launch)
        return numbers

    def _expire(self, numbers: tuple[int, ...]) -> None:
        """Drop what has become too old now that a batch was taken for these feedbacks."""
        for number in numbers:
            ledger = self.ledgers[number]
            for launch in ledger.doomed():
                for item in list(launch.items):
                    if _to_take(item, number):
                        self._lose(item, ledger.reason)

    def _enter(self, node: Node, item: Item) -> None:
        iterate = self.program.steps[node.index].iterate
        assert iterate is not None
        outside = item.rounds if item.frames else ()
        frame = Frame(iterate, iterate.release, item.value, item.lineage, outside)
        item.frames = (*item.frames, frame)
        self._deliver(node, item)

    def _next_round(self, iterate: Node, item: Item, *, done: bool) -> None:
        frame = item.frames[-1]
        frame.round += 1
        frame.value = item.value
        if done or frame.round == iterate.limit:
            item.frames = item.frames[:-1]
            self._leave_frame(frame)
            self._deliver(iterate, item)
        else:
            assert iterate.entry is not None
            self._deliver(iterate.entry, item)

    def _join(self, node: Node, item: Item) -> None:
        item.at = node
        key = (node.index, item.lineage, item.rounds)
        other = item.root.pairs.pop(key, None)
        if other is None:
            item.root.pairs[key] = item
        elif isinstance(other, Exit):
            self._lose(item, other)
        else:
            pair = [item, other] if item.came is node.inputs[0] else [other, item]
            siblings = next((one for one in pair if one.main), pair[0]).siblings
            self._deliver(node, self._merge(pair, item.lineage, item.root, siblings))

    def _publish(self, node: Node, item: Item) -> None:
        item.at = node
        step = self.program.steps[node.index]
        number = step.publishes
        ledger = self.ledgers[number]
        taken = self._take(step, item)
        if item.exit is not None:
            return
        version = ledger.publish(item.value)
        lineages = tuple([launch.lineage for launch in item.launches])
        for launch in item.launches:
            launch.root.spent = True
        self._consume(item)
        self._events.append(
            Published(name=ledger.name, version=version, value=item.value, lineages=lineages)
        )
        self._expire(taken)
        if ledger.goal is not None and version >= ledger.goal:
            self.stop()

    def _collect(self, node: Node, item: Item) -> None:
        item.at = node
        self._events.append(Output(name=node.name, lineage=item.lineage, value=item.value))
        self._consume(item)


def _to_take(item: Item, number: int) -> bool:
    """Whether an item is still to be trained on for a feedback."""
    return number in item.counts and number not in item.tickets
