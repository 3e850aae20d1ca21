"""What a stage is given besides its item is made by hand in a test of the stage."""

import dataclasses

import pytest

from rlgraph.graph import Graph
from rlgraph.ports import Latest, Seed


def generate(prompt: str, policy: Latest[dict[str, int]], seed: int) -> str:
    return f"{prompt} {policy.value['bias']} of version {policy.version}, {seed}"


def test_a_stage_is_called_with_ports_made_by_hand() -> None:
    policy = Latest(name="policy", version=3, value={"bias": 2})
    assert generate("hi", policy=policy, seed=7) == "hi 2 of version 3, 7"


def test_a_published_value_cannot_be_exchanged() -> None:
    policy = Latest(name="policy", version=3, value=b"")
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.version = 4  # type: ignore[misc]


def test_two_looks_at_the_same_version_are_equal() -> None:
    assert Latest(name="p", version=1, value=b"x") == Latest(name="p", version=1, value=b"x")


def test_a_seed_is_an_int_to_type_checkers_and_to_stages() -> None:
    assert isinstance(Graph("g").seed, Seed)
    assert issubclass(Seed, int)
