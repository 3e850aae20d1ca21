"""Turn what verbs are given into nodes; refuse at once what no graph could make right.

The place of each declaration is the caller's line, found here. Knows nodes, not streams.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from types import GenericAlias
from typing import Any, Literal

from rlgraph import hints
from rlgraph.errors import Problem
from rlgraph.graph.arguments import arguments_of
from rlgraph.graph.node import CALLING, Feedback, FeedbackNode, Node, Scope, Verb
from rlgraph.graph.places import declared_at
from rlgraph.graph.routes import ROUTING, entered, routed
from rlgraph.graph.wiring import Call, item_of, plain, read, result_of
from rlgraph.hints.anatomy import callable_name
from rlgraph.hints.callables import owner_of
from rlgraph.hints.generics import is_variadic
from rlgraph.ports import Seed
from rlgraph.profile import Profile


class Declarations:
    """What was declared of one graph, in order."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.feedbacks: list[FeedbackNode] = []
        self.problems: list[Problem] = []
        """What single declarations got wrong without breaking a type; ``check`` reports it."""

    def source(
        self, fn: Callable[..., Iterable[Any]], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Node:
        """Add a source. Raises GraphError where it gives no items or takes what calls get."""
        call = Call(verb="source", stage=callable_name(fn), where=declared_at())
        signature = read(call, fn)
        for value in (*args, *kwargs.values()):
            if isinstance(value, Feedback | Seed):
                raise call.error(
                    f"{call.title} is given {value!r}, which is new for each call of a stage",
                    "pass it to a stage, and a plain value to the source",
                )
        if signature.kind in ("coroutine", "async generator"):
            raise call.error(f"{call.title} is asynchronous", "make it an ordinary function")
        self.problems += arguments_of(call, signature, args, kwargs, taken=0)
        return self._add(
            verb="source",
            name=call.stage,
            where=call.where,
            inputs=(),
            item=item_of(signature.result, call),
            rate=Fraction(1),
            scope=Scope(origin=len(self.nodes)),
            call=fn,
            args=args,
            kwargs=kwargs,
        )

    def latest(
        self,
        name: str,
        init: Callable[[], Any] | None,
        max_staleness: int,
        when_stale: Literal["drop", "wait"],
    ) -> FeedbackNode:
        """Add a feedback. Raises GraphError where an argument is none that it could take."""
        call = Call(verb="latest", stage=name, where=declared_at())
        item = Any
        if init is not None:
            signature = read(call, init)
            self.problems += arguments_of(call, signature, (), {}, taken=0)
            item = plain(call, signature, signature.result)
        call.require_int("max_staleness", max_staleness, least=0)
        if when_stale not in ("drop", "wait"):
            raise call.error(
                f"when_stale of {call.title} must be 'drop' or 'wait', got {when_stale!r}",
                "drop what would be too old, or let it wait",
            )
        feedback = FeedbackNode(
            name=name,
            where=call.where,
            item=item,
            init=init,
            max_staleness=max_staleness,
            when_stale=when_stale,
        )
        self.feedbacks.append(feedback)
        return feedback

    def call(
        self,
        verb: Verb,
        above: Node,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Node:
        """Add a stage that calls a function. Raises GraphError where the types do not fit."""
        call = Call(verb=verb, stage=callable_name(fn), where=declared_at(), upstream=above.name)
        signature = read(call, fn)
        result = result_of(call, signature, above.item)
        self.problems += arguments_of(call, signature, args, kwargs, taken=1)
        readings = [v.node for v in (*args, *kwargs.values()) if isinstance(v, Feedback)]
        for feedback in readings:
            self._require_own(call, feedback)
        kept = verb == "filter" or (is_variadic(above.item) and is_variadic(result))
        node = self._add(
            verb=verb,
            name=call.stage,
            where=call.where,
            inputs=(above,),
            item=above.item if verb == "filter" else result,
            rate=above.rate,
            scope=above.scope,
            length=above.length if kept else 0,
            call=fn,
            owner=owner_of(fn),
            args=args,
            kwargs=kwargs,
        )
        for feedback in dict.fromkeys(readings):
            feedback.readers.append(node)
        return node

    def route(
        self,
        verb: Verb,
        above: Node,
        *,
        size: int = 1,
        redundancy: int = 0,
        other: Node | None = None,
    ) -> Node:
        """Add a stage that only routes. Raises GraphError where a size is none."""
        call = Call(verb=verb, stage=verb, where=declared_at(), upstream=above.name)
        if verb == "unbatch":
            call.require_int("size", size, least=0)
            size = size or above.length
        else:
            call.require_int("size", size, least=1)
        call.require_int("redundancy", redundancy, least=0)
        item = above.item
        if verb in ("group", "batch"):
            item = GenericAlias(tuple, (item, ...))
        elif verb == "unbatch":
            item = item_of(item, call)
        elif other is not None:
            item = GenericAlias(tuple, (item, other.item))
        left = routed(verb, self.nodes, above, size)
        return self._add(
            verb=verb,
            name=verb,
            where=call.where,
            inputs=(above,) if other is None else (above, other),
            item=item,
            rate=left.rate,
            scope=left.scope,
            length=left.length,
            size=size,
            redundancy=redundancy,
        )

    def iterate(
        self,
        start: Node,
        name: str,
        body: Callable[[Node], Node],
        *,
        until: Callable[[Any], bool],
        limit: int,
        release: Callable[[Any], object] | None,
    ) -> Node:
        """Add an iterate and, by calling ``body`` on where a round starts, what is in it."""
        call = Call(verb="iterate", stage=name, where=declared_at(), upstream=start.name)
        call.require_int("limit", limit, least=1)
        self._ask("until", until, start, call.where)
        if release is not None:
            self._ask("release", release, start, call.where)
        shared: dict[str, Any] = {
            "where": call.where,
            "item": start.item,
            "rate": start.rate,
            "length": start.length,
        }
        node = self._add(
            verb="iterate",
            name=name,
            inputs=(start,),
            scope=start.scope,
            limit=limit,
            until=until,
            release=release,
            owner=None if release is None else owner_of(release),
            **shared,
        )
        inside = entered(start.scope, node.index)
        node.entry = self._add(
            verb="entry", name=f"{node.name} round", inputs=(), scope=inside, **shared
        )
        node.exit = body(node.entry)
        if not hints.fits(node.exit.item, start.item):
            raise call.error(
                f"{call.title}: a round takes {hints.show(start.item)}, but its body gives "
                f"{hints.show(node.exit.item)}",
                "end the body with a stage that gives what the next round takes",
            )
        return node

    def publish(self, above: Node, feedback: FeedbackNode) -> None:
        """End a stream as versions of a feedback. Raises GraphError where the types do not fit."""
        call = Call(verb="publish_to", stage=feedback.name, where=declared_at())
        self._require_own(call, feedback)
        if not hints.fits(above.item, feedback.item):
            raise call.error(
                f"latest {feedback.name!r} takes {hints.show(feedback.item)}, as its init gives, "
                f"but {above.name!r} gives {hints.show(above.item)}",
                f"publish what is {hints.show(feedback.item)}, or let init give the other",
            )
        node = self._end("publish", above, f"publish {feedback.name}", call.where)
        node.feedback = feedback
        feedback.publishers.append(node)

    def collect(self, above: Node, name: str) -> None:
        """End a stream as an output of the run."""
        self._end("collect", above, name, declared_at())

    def needs(self, node: Node, profiles: Mapping[str, Profile]) -> None:
        """Say what a stage needs. Raises GraphError where a profile is none it could have."""
        call = Call(verb="needs", stage=node.name, where=declared_at())
        for domain, profile in profiles.items():
            if not isinstance(profile, Profile):
                raise call.error(
                    f"needs of {call.title} takes a Profile or one for each domain, "
                    f"got {profile!r}",
                    "write .needs(Profile(...)) or .needs({'domain': Profile(...)})",
                )
            if profile.stateless and _has_state(node.owner):
                raise call.error(
                    f"{call.title} claims stateless=True for domain {domain!r}, but is a method "
                    f"of a {type(node.owner).__name__}, an object with state",
                    "make it a function of its input alone, or drop stateless=True",
                )
        if node.verb != "source" and node.verb not in CALLING:
            self.problems.append(
                call.problem(
                    f"{call.title} is a {node.verb}: it calls nothing, so it needs nothing",
                    "put .needs(...) behind the stage that calls the function",
                )
            )
        node.profiles = dict(profiles)

    def _ask(self, verb: str, fn: Callable[..., Any], start: Node, where: str) -> None:
        call = Call(verb=verb, stage=callable_name(fn), where=where, upstream=start.name)
        signature = read(call, fn)
        result_of(call, signature, start.item)
        self.problems += arguments_of(call, signature, (), {}, taken=1)

    def _require_own(self, call: Call, feedback: FeedbackNode) -> None:
        if feedback not in self.feedbacks:
            raise call.error(
                f"{call.title} is given latest {feedback.name!r} of another graph, declared at "
                f"{feedback.where}",
                "declare it with latest() of this graph",
            )

    def _end(self, verb: Verb, above: Node, name: str, where: str) -> Node:
        return self._add(
            verb=verb,
            name=name,
            where=where,
            inputs=(above,),
            item=above.item,
            rate=above.rate,
            scope=above.scope,
            length=above.length,
        )

    def _add(self, *, verb: Verb, name: str, **fields: Any) -> Node:
        if verb in ROUTING or name.endswith("<lambda>"):
            name = self._numbered(name)
        node = Node(index=len(self.nodes), verb=verb, name=name, **fields)
        self.nodes.append(node)
        return node

    def _numbered(self, name: str) -> str:
        """Tell names that nobody chose apart, from the second on: runs are recorded by name."""
        taken = {node.name for node in self.nodes}
        later = (f"{name} {count}" for count in itertools.count(2))
        return next(each for each in itertools.chain([name], later) if each not in taken)


def _has_state(owner: object | None) -> bool:
    parameters = getattr(type(owner), "__dataclass_params__", None)
    return not (owner is None or isinstance(owner, type) or getattr(parameters, "frozen", False))
