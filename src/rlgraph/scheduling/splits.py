"""Where one item becomes several, or several become one: branches, siblings, merges.

Keeps the books of who carries which trajectory; where items go next is in ``flow``.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from typing import Any

from rlgraph.graph.node import Node
from rlgraph.scheduling.items import Item, Launch, Root, Siblings
from rlgraph.scheduling.losses import Losses
from rlgraph.scheduling.records import Exit, Lineage


class Splits(Losses):
    """Items taken apart and brought together."""

    _arrive: dict[str, Callable[[Node, Item], None]]
    """What happens to an item that comes to a stage, by the stage's verb."""

    def _deliver(self, node: Node, item: Item) -> None:
        """Pass an item on to whoever takes what ``node`` gives."""
        item.came = node
        consumers = self.program.steps[node.index].consumers
        if len(consumers) == 1:
            consumer = consumers[0][0]
            self._arrive[consumer.verb](consumer, item)
        elif not consumers:
            self._consume(item)
        else:
            copies = [self._branch(item, *consumer) for consumer in consumers[1:]]
            item.counts = kept(item.counts, consumers[0][1])
            item.tickets = kept(item.tickets, consumers[0][1])
            for (consumer, _), copy in zip(consumers, [item, *copies], strict=True):
                if copy.exit is None:
                    self._arrive[consumer.verb](consumer, copy)

    def _branch(self, item: Item, consumer: Node, counts: Sequence[int]) -> Item:
        siblings = self._twins(item, consumer, counts)
        copy = Item(
            item.value,
            item.lineage,
            item.root,
            item.launches,
            siblings,
            tuple([replace(frame, release=None) for frame in item.frames]),
            counts=kept(item.counts, counts),
            tickets=kept(item.tickets, counts),
            main=False,
            came=item.came,
            at=consumer,
        )
        if siblings:
            siblings[-1].items[item.lineage[-1]] = copy
        self._enlist(copy)
        return copy

    def _twins(self, item: Item, consumer: Node, counts: Sequence[int]) -> tuple[Siblings, ...]:
        """Return an item's siblings as they go along a side branch."""
        twins: tuple[Siblings, ...] = ()
        if item.siblings and item.came is not None:
            apart = self.program.steps[item.came.index].apart[consumer.index]
            for siblings, grouped in zip(item.siblings, apart, strict=True):
                twins = (*twins, self._twin(siblings, twins, consumer, counts, grouped=grouped))
        return twins

    def _twin(
        self,
        siblings: Siblings,
        outer: tuple[Siblings, ...],
        consumer: Node,
        counts: Sequence[int],
        *,
        grouped: bool,
    ) -> Siblings:
        twin = siblings.twins.get(consumer.index)
        if twin is None:
            parent = siblings.parent
            copy = Item(
                parent.value,
                parent.lineage,
                parent.root,
                parent.launches,
                outer,
                counts=kept(parent.counts, counts),
                tickets=kept(parent.tickets, counts),
                main=False,
                at=parent.at,
            )
            if copy.siblings:
                copy.siblings[-1].items[parent.lineage[-1]] = copy
            parent.counts = tuple(n for n in parent.counts if n not in counts)
            parent.tickets = tuple(n for n in parent.tickets if n not in counts)
            twin = Siblings(
                copy,
                siblings.node,
                siblings.size,
                grouped=grouped,
                most=0,
                launched=siblings.launched,
                lost=set(siblings.lost),
            )
            siblings.twins[consumer.index] = twin
        return twin

    def _siblings(self, node: Node, parent: Item, *, most: int) -> Siblings:
        consumer = self.program.steps[node.index].consumers[0][0]
        grouped = self.program.steps[consumer.index].grouped
        parent.parts = Siblings(parent, node, node.size, grouped=grouped, most=most)
        return parent.parts

    def _sibling(self, siblings: Siblings) -> Item:
        parent, number = siblings.parent, siblings.launched
        siblings.launched += 1
        for twin in siblings.twins.values():
            twin.launched += 1
        lineage = (*parent.lineage, number)
        launches = parent.launches
        if len(launches) == 1:
            launch = self._launch(lineage, parent.root)
            launch.starts.update(launches[0].starts)
            launch.stage_s.update(launches[0].stage_s)
            launches = (launch,)
            for feedback in kept(parent.counts, launch.starts):
                self.ledgers[feedback].start(launch, counted=True)
        return self._member(siblings, number, parent.value, launches)

    def _member(
        self, siblings: Siblings, number: int, value: Any, launches: tuple[Launch, ...]
    ) -> Item:
        parent = siblings.parent
        member = Item(
            value,
            (*parent.lineage, number),
            parent.root,
            launches,
            (*parent.siblings, siblings),
            parent.frames,
            counts=parent.counts,
            tickets=parent.tickets,
            main=parent.main,
            at=self.program.steps[siblings.node.index].consumers[0][0],
        )
        siblings.items[number] = member
        self._enlist(member)
        return member

    def _merge(
        self, members: list[Item], lineage: Lineage, root: Root, siblings: tuple[Siblings, ...]
    ) -> Item:
        main = next((member for member in members if member.main), members[0])
        merged = Item(
            tuple([member.value for member in members]),
            lineage,
            root,
            tuple(dict.fromkeys([launch for m in members for launch in m.launches])),
            siblings,
            main.frames,
            counts=tuple(dict.fromkeys([n for m in members for n in m.counts])),
            tickets=tuple(dict.fromkeys([n for m in members for n in m.tickets])),
            main=main.main,
            at=main.at,
        )
        if siblings:
            siblings[-1].items[lineage[-1]] = merged
        self._enlist(merged)
        for member in members:
            member.exit = Exit.CONSUMED
            self._delist(member)
        return merged


def kept(numbers: tuple[int, ...], wanted: Container[int]) -> tuple[int, ...]:
    """Return the numbers that are wanted."""
    return tuple([number for number in numbers if number in wanted])
