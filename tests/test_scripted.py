"""The environments that tests use in place of a game."""

from __future__ import annotations

import pytest

from rlgraph.envs.protocol import Environment, EnvironmentFailedError
from rlgraph.envs.scripted import EchoEnvironment, ScriptedEnvironment, ScriptedStep


def test_both_are_environments() -> None:
    assert isinstance(ScriptedEnvironment("", ()), Environment)
    assert isinstance(EchoEnvironment(), Environment)


def test_the_script_is_followed_whatever_is_said() -> None:
    steps = [ScriptedStep(observation="a", reward=0.5), ScriptedStep(terminated=True)]
    environment = ScriptedEnvironment("first", steps)
    assert environment.reset(3) == ("first", {})
    assert environment.step("x") == ("a", 0.5, False, False, {})
    assert environment.step("y") == ("", 0.0, True, False, {})
    assert (environment.actions, environment.seeds) == (["x", "y"], [3])


def test_reset_starts_the_script_again() -> None:
    environment = ScriptedEnvironment("first", [ScriptedStep(observation="a")])
    environment.reset(0)
    environment.step("x")
    environment.close()
    environment.reset(0)
    assert environment.step("y")[0] == "a"
    assert not environment.closed


def test_the_end_of_the_script_is_an_error() -> None:
    environment = ScriptedEnvironment("first", [])
    environment.reset(0)
    with pytest.raises(EnvironmentFailedError, match="the script of 0 steps is at its end"):
        environment.step("x")


def test_the_echo_repeats() -> None:
    environment = EchoEnvironment("hello")
    assert environment.reset(0) == ("hello", {})
    assert environment.step("\ud800") == ("\ud800", 0.0, False, False, {})
    environment.close()
