"""What a stage is given besides its item: whether every port gets something, and what it takes.

Looks at the signature and at the values; knows nothing of scopes or rates.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import GenericAlias
from typing import Any, Literal, NewType, get_args, get_origin, is_typeddict

from rlgraph import hints
from rlgraph.errors import Problem, did_you_mean, nearest
from rlgraph.graph.node import Feedback, Node
from rlgraph.graph.wiring import Call, told
from rlgraph.hints.callables import Parameter, Signature
from rlgraph.hints.generics import is_protocol, is_union, protocol_members, unannotated
from rlgraph.ports import Latest, Seed


def arguments_of(
    call: Call,
    signature: Signature,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    taken: int,
) -> list[Problem]:
    """List ports misnamed, given twice or left empty; raise ``GraphError`` on a wrong type.

    ``taken`` positional parameters are the item's.
    """
    ports = signature.parameters
    positional = [p for p in ports if p.kind in _POSITIONAL]
    item, positional = positional[:taken], positional[taken:]
    named = {p.name: p for p in ports if p.kind in _NAMED and p not in item}
    kinds = {p.kind for p in ports}
    problems = []
    if len(args) > len(positional) and inspect.Parameter.VAR_POSITIONAL not in kinds:
        besides = " besides its item" if taken else ""
        problems.append(
            call.problem(
                f"{call.title} takes {len(positional)} arguments{besides}, {len(args)} are given",
                "drop the surplus ones",
            )
        )
    for port, value in zip(positional, args, strict=False):
        _require(call, port, value)
    filled = {p.name for p in item} | {p.name for p in positional[: len(args)]}
    for name, value in kwargs.items():
        if name in filled:
            problems.append(
                call.problem(
                    f"port {name!r} of {call.title} has two producers",
                    f"pass {name!r} once"
                    + ("; the item itself fills the first parameter" if item else ""),
                )
            )
        elif name in named:
            filled.add(name)
            _require(call, named[name], value)
        elif inspect.Parameter.VAR_KEYWORD not in kinds:
            free = [each for each in named if each not in filled and each not in kwargs]
            problems.append(_misspelt(call, name, value, free))
            # The port that was meant is not reported a second time, as empty.
            filled.add(nearest(name, free) or name)
    empty = [p for p in (*positional, *named.values()) if not p.has_default]
    return problems + [
        call.problem(
            f"port {name!r} of {call.title} gets nothing, and has no default",
            f"pass it: .{call.verb}({call.stage}, {name}=...)",
        )
        for name in dict.fromkeys(p.name for p in empty if p.name not in filled)
    ]


def _misspelt(call: Call, name: str, value: Any, free: list[str]) -> Problem:
    names = ", ".join(map(repr, free))
    return call.problem(
        f"{call.title} has no port {name!r}, which is given {told(value)}"
        + did_you_mean(name, free),
        f"its ports still free are {names}" if names else "drop it: no port of it is free",
    )


def _require(call: Call, port: Parameter, value: Any) -> None:
    """Raise ``GraphError`` unless the value may go to the port."""
    if isinstance(value, Node):
        raise call.error(
            f"{call.title}: port {port.name!r} is given a stream, that of {value.name!r}",
            "a stage takes the items of one stream: pair two with .join(other), and take the pair",
        )
    mend = "pass what the port takes"
    if isinstance(value, Feedback):
        given = GenericAlias(Latest, (value.node.item,))
        fine = hints.fits(given, port.hint)
        mend = f"annotate it as {port.name}: {hints.show(given)}, and read {port.name}.value"
        ending = f"{told(value)} gives {hints.show(given)}"
    else:
        fine = hints.fits(int, port.hint) if isinstance(value, Seed) else _may_be(value, port.hint)
        ending = f"is given {told(value)}"
    if not fine:
        what = f"{call.title}: port {port.name!r} takes {hints.show(port.hint)}, but {ending}"
        raise call.error(what, mend)


def _may_be(value: Any, hint: Any) -> bool:
    """Tell whether the value may be what the hint says, as far as its class shows."""
    hint, _ = unannotated(hint)
    if is_union(hint):
        return any(_may_be(value, part) for part in get_args(hint))
    if isinstance(hint, NewType):
        return _may_be(value, hint.__supertype__)
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    cls = get_origin(hint) or hint
    if is_typeddict(cls):
        return isinstance(value, dict)
    if isinstance(cls, type) and is_protocol(cls):
        return all(hasattr(value, name) for name in protocol_members(cls))
    # Asked, not type(value): a mock may stand for another class.
    return hints.fits(value.__class__, hint)


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
