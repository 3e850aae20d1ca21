"""A graph as plain data that JSON holds, and in words how two of them differ.

Stable: no paths, no addresses, the order of the declaration. What a stage is given besides its
item is left out: that is the business of the configuration. Knows nodes, not streams.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rlgraph import hints
from rlgraph.graph.node import FeedbackNode, Node
from rlgraph.hints.anatomy import callable_name
from rlgraph.profile import Distribution, Profile

Description = dict[str, Any]
"""What ``json.dumps`` takes and ``json.loads`` gives back equal."""

_NOTHING = "nothing"


def description_of(
    name: str, nodes: Sequence[Node], feedbacks: Sequence[FeedbackNode]
) -> Description:
    """Describe the graph of this name: its stages and its latests, in order of declaration.

    What is left at its default (a redundancy, a limit, a field of a profile) is left out.
    """
    labels = _labels(nodes)
    return {
        "graph": name,
        "stages": [_stage(node, nodes, labels) for node in nodes],
        "latests": [_latest(feedback, labels) for feedback in feedbacks],
    }


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Say in words what differs between two descriptions, a line each; none if nothing does.

    Rates are left out: they follow from the sizes, which are told.

    >>> old, new = {"graph": "old", "stages": []}, {"graph": "new", "stages": []}
    >>> differences(old, new)
    ["the graph: name is 'new', was 'old'"]
    """
    names = ({"name": each.get("graph", _NOTHING)} for each in (before, now))
    found = list(_changes("the graph", *names))
    for section, kind in (("stages", "stage"), ("latests", "latest")):
        old, new = (_by_name(each.get(section, ())) for each in (before, now))
        found += [f"{kind} {name!r} is gone" for name in old if name not in new]
        found += [f"{kind} {name!r} is new" for name in new if name not in old]
        for name in new:
            if name in old:
                found += _changes(f"{kind} {name!r}", old[name], new[name])
        if list(old) != list(new) and set(old) == set(new):
            found.append(f"{section} stand in another order: {_listed(new)}; was {_listed(old)}")
    return found


def _labels(nodes: Sequence[Node]) -> list[str]:
    """Return a name for each node that no other has: the second ``batch`` is ``batch 2``."""
    labels: dict[str, None] = {}
    for node in nodes:
        label, count = node.name, 1
        while label in labels:
            count += 1
            label = f"{node.name} {count}"
        labels[label] = None
    return list(labels)


def _stage(node: Node, nodes: Sequence[Node], labels: Sequence[str]) -> Description:
    described: Description = {
        "name": labels[node.index],
        "verb": node.verb,
        "item": _shown(node.item),
        "rate": str(node.rate),
        "inputs": [labels[above.index] for above in node.inputs],
    }
    if node.verb in ("source", "map", "map_async", "filter"):
        described["calls"] = callable_name(node.call)
    if node.verb in ("fan_out", "batch", "unbatch"):
        described["size"] = node.size
    if node.redundancy:
        described["redundancy"] = node.redundancy
    if node.exit is not None and node.until is not None:
        described |= {
            "limit": node.limit,
            "until": callable_name(node.until),
            "ends_with": labels[node.exit.index],
        }
    if node.release is not None:
        described["release"] = callable_name(node.release)
    if node.feedback is not None:
        described["latest"] = node.feedback.name
    if node.scope.inside:
        described["inside"] = [labels[nodes[i].index] for i in node.scope.inside]
    profiles = {domain: _profile(profile) for domain, profile in node.profiles.items()}
    if any(profiles.values()):
        described["profiles"] = dict(sorted(profiles.items()))
    return described


def _latest(feedback: FeedbackNode, labels: Sequence[str]) -> Description:
    return {
        "name": feedback.name,
        "item": _shown(feedback.item),
        "init": None if feedback.init is None else callable_name(feedback.init),
        "max_staleness": feedback.max_staleness,
        "when_stale": feedback.when_stale,
        "publishers": [labels[node.index] for node in feedback.publishers],
        "readers": [labels[node.index] for node in feedback.readers],
    }


def _profile(profile: Profile) -> Description:
    """Return the fields that differ from those of an empty profile."""
    default = Profile()
    values = ((f.name, getattr(profile, f.name)) for f in dataclasses.fields(profile))
    return {
        name: _distribution(value) if hasattr(value, "sample") else value
        for name, value in values
        if value != getattr(default, name)
    }


def _distribution(value: Distribution) -> Description:
    kind = {"kind": type(value).__name__}
    if not dataclasses.is_dataclass(value) or not type(value).__module__.startswith("rlgraph."):
        return kind | {"mean": value.mean}
    numbers = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    return kind | {n: list(v) if isinstance(v, tuple) else v for n, v in numbers.items()}


def _shown(hint: Any) -> str:
    # What stands in Annotated[...] may print with its address, another one in each process.
    return re.sub(r" at 0x[0-9a-fA-F]+", "", hints.show(hint))


def _by_name(described: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {each["name"]: each for each in described}


def _changes(of: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    before, now = dict(_flat(old)), dict(_flat(new))
    for key in dict.fromkeys((*before, *now)):
        if key == "rate":
            continue
        was, is_ = before.get(key, _NOTHING), now.get(key, _NOTHING)
        if was != is_:
            yield f"{of}: {key} is {_value(is_)}, was {_value(was)}"


def _flat(described: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in described.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def _value(value: Any) -> str:
    if value == _NOTHING:
        return _NOTHING
    return _listed(value) if isinstance(value, list) else repr(value)


def _listed(values: Any) -> str:
    return ", ".join(map(repr, values)) or _NOTHING
