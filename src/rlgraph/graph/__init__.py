"""A pipeline as a typed graph: streams of items, verbs that make stages, feedback across versions.

A stage calls a plain function; its type hints are the edge. An edge whose types do not fit raises
``GraphError`` on the line that declares it. What only the whole graph can tell is collected, and
``Graph.check`` reports all of it in one error. Nothing here runs a stage.

>>> from rlgraph.ports import Batch, Latest
>>> def read() -> list[str]:
...     return ["2 + 3", "4 + 4"]
>>> def guess(task: str, policy: Latest[int], seed: int) -> int:
...     return (policy.value + seed) % 10
>>> def start() -> int:
...     return 0
>>> def train(guesses: Batch[int]) -> int:
...     return max(guesses)
>>> graph = Graph("sums")
>>> policy = graph.latest("policy", init=start, max_staleness=1)
>>> guesses = graph.source(read).fan_out(4).map(guess, policy=policy, seed=graph.seed)
>>> guesses.group().unbatch().batch(8).map(train).publish_to(policy)
>>> graph.check()

A stage that does not fit is refused where it is declared:

>>> def shout(text: str) -> str:
...     return text.upper()
>>> guesses.map(shout)  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
rlgraph.errors.GraphError: wrong declaration
  1. stage 'shout': its first parameter 'text' takes str, but 'guess' gives int
    at <doctest rlgraph.graph[...]>:1
    to mend: make 'shout' take int, or put a stage between that turns the one into the other
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Concatenate, Generic, Literal, ParamSpec, TypeVar

from rlgraph.errors import GraphError, Problem
from rlgraph.graph.check import problems_of
from rlgraph.graph.declare import Declarations
from rlgraph.graph.describe import Description, description_of
from rlgraph.graph.node import Feedback as Feedback
from rlgraph.graph.node import FeedbackNode, Node, Verb
from rlgraph.graph.places import declared_at
from rlgraph.hints.anatomy import callable_name
from rlgraph.ports import Batch, Latest, Seed
from rlgraph.profile import DEFAULT_DOMAIN, Profile

T = TypeVar("T")
U = TypeVar("U")
R = TypeVar("R")
T_co = TypeVar("T_co", covariant=True)
P = ParamSpec("P")


class Stream(Generic[T_co]):
    """Items of one type on their way from one stage to the next."""

    __slots__ = ("_declared", "_node")

    def __init__(self, declared: Declarations, node: Node) -> None:
        self._declared = declared
        self._node = node

    def __repr__(self) -> str:
        """Name the stage that it comes from."""
        return f"<stream of {self._node.name!r}>"

    def map(
        self, fn: Callable[Concatenate[T_co, P], R], /, *args: P.args, **kwargs: P.kwargs
    ) -> Stream[R]:
        """Call ``fn(item, *args, **kwargs)`` on every item. Rate 1."""
        return Stream(self._declared, self._call("map", fn, args, kwargs))

    def map_async(
        self,
        fn: Callable[Concatenate[T_co, P], Awaitable[R]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Stream[R]:
        """Await ``fn(item, *args, **kwargs)`` for every item, many at once on one loop. Rate 1."""
        return Stream(self._declared, self._call("map_async", fn, args, kwargs))

    def filter(
        self, fn: Callable[Concatenate[T_co, P], bool], /, *args: P.args, **kwargs: P.kwargs
    ) -> Stream[T_co]:
        """Keep the items for which ``fn`` is true; others leave as FILTERED and are replaced."""
        return Stream(self._declared, self._call("filter", fn, args, kwargs))

    def fan_out(self, size: int, *, redundancy: int = 0) -> Stream[T_co]:
        """Make ``size`` siblings of every item. Rate x size.

        With redundancy more are started, and the first ``size`` to arrive at ``group`` are taken.
        """
        return self._route("fan_out", size=size, redundancy=redundancy)

    def group(self) -> Stream[Batch[T_co]]:
        """Bring the siblings of the innermost ``fan_out`` or ``unbatch`` together. Rate / size."""
        return self._route("group")

    def batch(self, size: int, *, redundancy: int = 0) -> Stream[Batch[T_co]]:
        """Put ``size`` items together, whole groups where they came in groups. Rate / size.

        With redundancy that many items more are kept under way, so that a batch need not wait
        for the slowest.
        """
        return self._route("batch", size=size, redundancy=redundancy)

    def unbatch(self: Stream[Batch[U]], size: int = 0) -> Stream[U]:
        """Take every batch apart. Rate x its length, which is known after ``group`` or ``batch``.

        Where it is not known (a stage made the batch), ``size`` says it, and a batch of another
        length fails.
        """
        return self._route("unbatch", size=size)

    def join(self, other: Stream[U]) -> Stream[tuple[T_co, U]]:
        """Pair every item with the item of ``other`` that has the same lineage. Rate 1."""
        return self._route("join", other=self._own(other, "join takes a stream"))

    def iterate(
        self: Stream[U],
        body: Callable[[Stream[U]], Stream[U]],
        *,
        until: Callable[[U], bool],
        limit: int,
        release: Callable[[U], object] | None = None,
    ) -> Stream[U]:
        """Send every item through ``body`` again and again, until ``until`` or ``limit`` rounds.

        ``body`` is called once, now. ``release`` is called once for every item that entered,
        however it leaves: done, at the limit, failed, stale or cancelled; it is given the item as
        it stood at its last round. So is one that was about to enter and is no longer wanted.
        """
        name = callable_name(body)

        def inner(entry: Node) -> Node:
            last = body(Stream(self._declared, entry))
            return self._own(last, f"the body of iterate {name!r} must return a stream")

        node = self._declared.iterate(
            self._node, name, inner, until=until, limit=limit, release=release
        )
        return Stream(self._declared, node)

    def needs(self, profile: Profile | Mapping[str, Profile]) -> Stream[T_co]:
        """Say what one call of the stage needs, for all items or by task domain."""
        profiles = profile if isinstance(profile, Mapping) else {DEFAULT_DOMAIN: profile}
        self._declared.needs(self._node, profiles)
        return self

    def named(self, name: str) -> Stream[T_co]:
        """Name the stage; the default is the name of its function."""
        self._node.name = name
        if self._node.entry is not None:
            self._node.entry.name = f"{name} round"
        return self

    def publish_to(self: Stream[U], latest: Latest[U]) -> None:
        """End the stream: each item is the next version of a ``graph.latest`` value."""
        if not isinstance(latest, Feedback):
            raise _wrong(f"publish_to takes what graph.latest(...) returned, got {latest!r}")
        self._declared.publish(self._node, latest.node)

    def collect(self, name: str) -> None:
        """End the stream: its items are handed out by the run under this name."""
        self._declared.collect(self._node, name)

    def _call(
        self, verb: Verb, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Node:
        return self._declared.call(verb, self._node, fn, *_bare(args, kwargs))

    def _route(
        self, verb: Verb, *, size: int = 1, redundancy: int = 0, other: Node | None = None
    ) -> Stream[Any]:
        node = self._declared.route(verb, self._node, size=size, redundancy=redundancy, other=other)
        return Stream(self._declared, node)

    def _own(self, given: object, rule: str) -> Node:
        """Return the node of a stream of this graph; raise GraphError for anything else."""
        if not isinstance(given, Stream):
            raise _wrong(f"{rule}, got {given!r}")
        if given._declared is not self._declared:
            raise _wrong(f"{rule} of the same graph, got {given!r} of another")
        return given._node


class Graph:
    """Stages in the order of their declaration."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._declared = Declarations()

    @property
    def nodes(self) -> list[Node]:
        """The stages, in order of declaration."""
        return self._declared.nodes

    @property
    def feedbacks(self) -> list[FeedbackNode]:
        """The delayed edges, in order of declaration."""
        return self._declared.feedbacks

    @property
    def seed(self) -> Seed:
        """Stands for a number of its own for each call; pass it to a stage's ``int`` parameter."""
        return Seed(0)

    def source(
        self, read: Callable[P, Iterable[R]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Stream[R]:
        """Open a stream of the items that ``read(*args, **kwargs)`` yields, pulled as needed."""
        return Stream(self._declared, self._declared.source(read, *_bare(args, kwargs)))

    def latest(
        self,
        name: str,
        init: Callable[[], T] | None = None,
        *,
        max_staleness: int = 0,
        when_stale: Literal["drop", "wait"] = "drop",
    ) -> Feedback[T]:
        """Declare a value that versions are published of, such as the policy's weights.

        ``init`` gives version 0, on the device of its object. ``max_staleness`` bounds, in
        versions, how much older than the trainer's an item's first version may be when it is
        trained on; 0 is synchronous. What would exceed it is dropped, or waited for.
        """
        return Feedback(self._declared.latest(name, init, max_staleness, when_stale))

    def __str__(self) -> str:
        """Show the stages as a table."""
        from rlgraph.draw import table  # which knows graphs; a graph does not know how it is drawn

        return table(self)

    def check(self) -> None:
        """Raise one ``GraphError`` that lists everything wrong with the graph."""
        problems = problems_of(self.nodes, self.feedbacks, self._declared.problems)
        if problems:
            count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
            raise GraphError(f"graph {self.name!r} has {count}", problems)

    def describe(self) -> Description:
        """Return the graph as data for JSON, equal in every process that declares it equally."""
        return description_of(self.name, self.nodes, self.feedbacks)


def _bare(
    args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Put the node of a stream, which no port takes, in its place: the error names it."""

    def bare(value: Any) -> Any:
        return value._node if isinstance(value, Stream) else value

    return tuple(map(bare, args)), {name: bare(value) for name, value in kwargs.items()}


def _wrong(what: str) -> GraphError:
    problem = Problem(what=what, where=declared_at(), mend="pass one, made by this graph")
    return GraphError("wrong declaration", [problem])
