"""A description holds what a graph is, the same in every process; differences read as words."""

import functools
import json
import random
from typing import Annotated, Any

from rlgraph.graph import Graph, Stream
from rlgraph.graph.describe import differences
from rlgraph.ports import Batch, Latest
from rlgraph.profile import Empirical, Fixed, LogNormal, Profile


class Policy:
    def weights(self) -> bytes:
        return b""

    def step(self, numbers: Batch[int]) -> bytes:
        return b""


class Sandbox(Policy):
    def act(self, number: int) -> int:
        return number

    def close(self, number: int) -> None: ...


class Waits:
    mean = 2.0

    def sample(self, rng: random.Random) -> float:
        return rng.expovariate(0.5)


class Marker:
    """Prints with its address, as objects do."""


def read() -> list[int]:
    return [1]


def guess(number: int, policy: Latest[bytes], scale: float = 1.0) -> int:
    return number


def is_done(number: int) -> bool:
    return number > 9


def loop(group_size: int = 4, max_staleness: int = 0) -> Graph:
    graph = Graph("loop")
    policy, sandbox = Policy(), Sandbox()
    weights = graph.latest("policy", init=policy.weights, max_staleness=max_staleness)

    def turn(live: Stream[int]) -> Stream[int]:
        said = live.map(functools.partial(guess, scale=2.0), policy=weights)
        return said.map(sandbox.act).needs({"maths": Profile(), "code": Profile(cpu_s=0.5)})

    started = graph.source(read).fan_out(group_size, redundancy=1)
    done = started.iterate(turn, until=is_done, limit=3, release=sandbox.close)
    samples = done.group().unbatch()
    samples.batch(8).map(policy.step).needs(Profile(concurrency=2)).publish_to(weights)
    return graph


DESCRIPTION = {
    "graph": "loop",
    "stages": [
        {
            "name": "read",
            "verb": "source",
            "item": "int",
            "rate": "1",
            "inputs": [],
            "calls": "read",
        },
        {
            "name": "fan_out",
            "verb": "fan_out",
            "item": "int",
            "rate": "4",
            "inputs": ["read"],
            "size": 4,
            "redundancy": 1,
        },
        {
            "name": "turn",
            "verb": "iterate",
            "item": "int",
            "rate": "4",
            "inputs": ["fan_out"],
            "limit": 3,
            "until": "is_done",
            "ends_with": "Sandbox.act",
            "release": "Sandbox.close",
        },
        {
            "name": "turn round",
            "verb": "entry",
            "item": "int",
            "rate": "4",
            "inputs": [],
            "inside": ["turn"],
        },
        {
            "name": "guess",
            "verb": "map",
            "item": "int",
            "rate": "4",
            "inputs": ["turn round"],
            "calls": "guess",
            "inside": ["turn"],
        },
        {
            "name": "Sandbox.act",
            "verb": "map",
            "item": "int",
            "rate": "4",
            "inputs": ["guess"],
            "calls": "Sandbox.act",
            "inside": ["turn"],
            "profiles": {"code": {"cpu_s": 0.5}, "maths": {}},
        },
        {
            "name": "group",
            "verb": "group",
            "item": "Batch[int]",
            "rate": "1",
            "inputs": ["turn"],
        },
        {
            "name": "unbatch",
            "verb": "unbatch",
            "item": "int",
            "rate": "4",
            "inputs": ["group"],
            "size": 4,
        },
        {
            "name": "batch",
            "verb": "batch",
            "item": "Batch[int]",
            "rate": "1/2",
            "inputs": ["unbatch"],
            "size": 8,
        },
        {
            "name": "Policy.step",
            "verb": "map",
            "item": "bytes",
            "rate": "1/2",
            "inputs": ["batch"],
            "calls": "Policy.step",
            "profiles": {"default": {"concurrency": 2}},
        },
        {
            "name": "publish policy",
            "verb": "publish",
            "item": "bytes",
            "rate": "1/2",
            "inputs": ["Policy.step"],
            "latest": "policy",
        },
    ],
    "latests": [
        {
            "name": "policy",
            "item": "bytes",
            "init": "Policy.weights",
            "max_staleness": 0,
            "when_stale": "drop",
            "publishers": ["publish policy"],
            "readers": ["guess"],
        }
    ],
}


def stage(graph: Graph, name: str) -> Any:
    (found,) = [each for each in graph.describe()["stages"] if each["name"] == name]
    return found


def test_a_graph_is_described_in_full() -> None:
    assert loop().describe() == DESCRIPTION


def test_a_description_comes_back_from_json_equal() -> None:
    assert json.loads(json.dumps(loop().describe())) == DESCRIPTION


def test_a_graph_declared_again_is_described_the_same() -> None:
    assert json.dumps(loop().describe()) == json.dumps(loop().describe())


def test_distributions_are_described_by_their_numbers() -> None:
    graph = Graph("g")
    profile = Profile(latency=LogNormal(2.0, 0.5), turns=Empirical((1.0, 3.0)))
    graph.source(read).map(lambda number: number).needs(profile)
    assert stage(graph, "<lambda>")["profiles"]["default"] == {
        "latency": {"kind": "LogNormal", "median": 2.0, "sigma": 0.5},
        "turns": {"kind": "Empirical", "values": [1.0, 3.0]},
    }


def test_a_distribution_of_the_users_is_described_by_its_mean() -> None:
    graph = Graph("g")
    graph.source(read).needs(Profile(latency=Waits()))
    assert stage(graph, "read")["profiles"]["default"] == {
        "latency": {"kind": "Waits", "mean": 2.0}
    }


def test_no_address_is_in_a_description() -> None:
    def mark(number: int) -> Annotated[int, Marker()]:
        return number

    graph = Graph("g")
    graph.source(read).map(mark)
    shown = stage(graph, "mark")["item"]
    assert shown.startswith("Annotated[int, <")
    assert " at 0x" not in shown


def test_callable_objects_and_class_methods_are_named_by_their_class() -> None:
    class Scorer:
        def __call__(self, number: int) -> int:
            return number

        @classmethod
        def make(cls, number: int) -> int:
            return number

    graph = Graph("g")
    graph.source(read).map(Scorer()).map(Scorer.make)
    assert [each["calls"] for each in graph.describe()["stages"]] == [
        "read",
        "Scorer",
        "Scorer.make",
    ]


def test_nothing_that_shares_a_name_is_lost() -> None:
    graph = Graph("g")
    stream = graph.source(read).named("read")
    stream.collect("read")
    assert [each["name"] for each in graph.describe()["stages"]] == ["read", "read 2"]


def test_equal_graphs_do_not_differ() -> None:
    assert differences(DESCRIPTION, loop().describe()) == []


def test_changed_sizes_and_settings_are_told() -> None:
    now = loop(group_size=8, max_staleness=2).describe()
    assert differences(DESCRIPTION, now) == [
        "stage 'fan_out': size is 8, was 4",
        "stage 'unbatch': size is 8, was 4",
        "latest 'policy': max_staleness is 2, was 0",
    ]


def pipeline(*names: str, profile: Profile | None = None, name: str = "g") -> dict[str, Any]:
    graph = Graph(name)
    stream: Stream[Any] = graph.source(read)
    for each in names:
        stream = stream.map(lambda item: item).named(each)
    if profile is not None:
        stream.needs(profile)
    return graph.describe()


def test_added_and_removed_stages_are_told() -> None:
    assert differences(pipeline("a", "b"), pipeline("a", "c")) == [
        "stage 'b' is gone",
        "stage 'c' is new",
    ]


def test_another_wiring_and_order_are_told() -> None:
    assert differences(pipeline("a", "b"), pipeline("b", "a")) == [
        "stage 'b': inputs is 'read', was 'a'",
        "stage 'a': inputs is 'b', was 'read'",
        "stages stand in another order: 'read', 'b', 'a'; was 'read', 'a', 'b'",
    ]


def test_another_name_and_profile_are_told_down_to_the_field() -> None:
    before = pipeline("a", profile=Profile(latency=Fixed(1.0)))
    now = pipeline("a", profile=Profile(latency=Fixed(2.0), cpu_s=1.0), name="h")
    assert differences(before, now) == [
        "the graph: name is 'h', was 'g'",
        "stage 'a': profiles.default.latency.value is 2.0, was 1.0",
        "stage 'a': profiles.default.cpu_s is 1.0, was nothing",
    ]


def test_what_was_empty_is_told_as_nothing() -> None:
    before, now = pipeline("a"), pipeline("a")
    now["stages"][1]["inputs"] = []
    assert differences(before, now) == ["stage 'a': inputs is nothing, was 'read'"]
