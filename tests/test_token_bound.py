import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

from rlgraph.llm.chat import Chat
from rlgraph.llm.tiny import make_tokenizer
from rlgraph.llm.token_bound import TokenBound
from rlgraph.rl.records import Prompt, Trajectory

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
TINY = make_tokenizer()


def remade(change: Callable[[dict[str, Any]], object]) -> PreTrainedTokenizerFast:
    """Make the tiny tokenizer with a change in its tokenizer.json."""
    made = json.loads(TINY.backend_tokenizer.to_str())
    change(made)
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(json.dumps(made)))


def without_a_byte(made: dict[str, Any]) -> None:
    """Leave out U+0004, named U+0104 in the vocabulary, as SmolLM2 does."""
    del made["model"]["vocab"]["\u0104"]


def num_tokens(tokenizer: PreTrainedTokenizerFast, text: str) -> int:
    encoded = tokenizer(text, add_special_tokens=False, split_special_tokens=True)
    return len(encoded["input_ids"])


@given(st.text(st.characters(exclude_categories=["Cs"])) | st.text(" \n\x04x"))
def test_no_text_has_fewer_tokens_than_the_bound(text: str) -> None:
    for tokenizer in (TINY, remade(without_a_byte)):
        assert TokenBound(tokenizer).fewest(text) <= num_tokens(tokenizer, text)


def test_the_bound_is_reached_by_the_longest_word() -> None:
    # "<|assistant|>" has 13 characters, the longest word 11.
    assert num_tokens(TINY, " south:wall" * 13) == 13
    assert TokenBound(TINY).fewest(" south:wall" * 13) == 11


def test_bytes_that_the_tokenizer_drops_count_nothing() -> None:
    tokenizer = remade(without_a_byte)
    assert num_tokens(tokenizer, "\x04" * 1000) == 0
    assert TokenBound(tokenizer).fewest("\x04" * 1000) == 0
    assert TokenBound(TINY).fewest("\x04" * 1000) > 0


@pytest.mark.parametrize(
    "change",
    [
        lambda made: made.update(normalizer={"type": "NFC"}),
        lambda made: made.update(pre_tokenizer=None),
        lambda made: made.update(pre_tokenizer={"type": "Whitespace"}),
        lambda made: made["pre_tokenizer"]["pretokenizers"][0].update(behavior="Removed"),
        lambda made: made["pre_tokenizer"]["pretokenizers"].append({"type": "WhitespaceSplit"}),
        lambda made: made["added_tokens"][0].update(rstrip=True),
    ],
    ids=["normalizer", "no steps", "not byte-level", "removes", "removes more", "strips"],
)
def test_of_a_tokenizer_that_may_lose_text_nothing_is_sure(
    change: Callable[[dict[str, Any]], object],
) -> None:
    assert TokenBound(remade(change)).fewest("x" * 10_000) == 0


def test_of_a_tokenizer_of_words_nothing_is_sure() -> None:
    words = Tokenizer(WordLevel({"a": 0}, unk_token="a"))
    assert TokenBound(PreTrainedTokenizerFast(tokenizer_object=words)).fewest("x" * 10_000) == 0


def test_digits_apart_are_byte_level_still() -> None:
    steps = [{"type": "Digits", "individual_digits": True}, {**BYTE_LEVEL, "use_regex": True}]
    pieces = {"type": "Sequence", "pretokenizers": steps}
    tokenizer = remade(lambda made: made.update(pre_tokenizer=pieces))
    assert TokenBound(tokenizer).fewest("x" * 1300) == 100


@pytest.mark.parametrize(
    ("task", "observation"), [("", "x" * 1301), ("x" * 1301, ""), ("", "\ud800" * 434)]
)
def test_a_task_or_an_observation_alone_can_be_too_long(task: str, observation: str) -> None:
    start = Trajectory(id="t", prompt=Prompt(id="p", text=task), observation=observation)
    assert Chat(TINY).is_too_long(start, 100)
    assert not Chat(TINY).is_too_long(start, 101)


@given(st.text(max_size=60), st.integers(0, 12))
def test_what_is_called_too_long_is_too_long(text: str, room: int) -> None:
    start = Trajectory(id="t", prompt=Prompt(id="p"), observation=text)
    chat = Chat(TINY)
    assert not chat.is_too_long(start, room) or len(chat.prompt_ids(start)) > room
