"""What an error says, and that it arrives whole in another process."""

import pickle

import pytest

from rlgraph.errors import ConfigError, GraphError, Problem, ProblemsError, did_you_mean, nearest


def problem(what: str = "a is wrong") -> Problem:
    return Problem(what=what, where="graph.py:3", mend="change a")


def test_an_error_numbers_its_problems_and_tells_what_where_and_how_to_mend() -> None:
    error = GraphError("graph 'g' has 2 problems", [problem(), problem("b is wrong")])
    assert str(error) == (
        "graph 'g' has 2 problems\n"
        "  1. a is wrong\n"
        "    at graph.py:3\n"
        "    to mend: change a\n"
        "  2. b is wrong\n"
        "    at graph.py:3\n"
        "    to mend: change a"
    )


@pytest.mark.parametrize("kind", [GraphError, ConfigError])
def test_an_error_survives_the_way_to_another_process(kind: type[ProblemsError]) -> None:
    error = kind("it is wrong", [problem()])
    arrived = pickle.loads(pickle.dumps(error))
    assert type(arrived) is kind
    assert (str(arrived), arrived.problems) == (str(error), (problem(),))


def test_the_nearest_name_is_the_one_that_was_meant() -> None:
    assert nearest("rewrads", ["prompts", "rewards"]) == "rewards"


def test_no_name_is_near_when_none_resembles() -> None:
    assert nearest("policy", ["rewards"]) is None


def test_a_slip_is_answered_with_the_name_that_was_meant() -> None:
    assert did_you_mean("polcy", ["policy"]) == "; did you mean 'policy'?"


def test_an_unknown_name_is_not_answered_with_a_guess() -> None:
    assert did_you_mean("policy", ["rewards"]) == ""
