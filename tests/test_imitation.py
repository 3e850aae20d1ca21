import pytest

from rlgraph.llm.chat import Chat
from rlgraph.llm.imitation import imitation_sample
from rlgraph.llm.tiny import make_tokenizer
from rlgraph.rl.records import Prompt, Sample

CHAT = Chat(make_tokenizer(), system="go")


def test_scripted_play_becomes_the_tokens_that_a_generator_would_have_made() -> None:
    prompt = Prompt(id="p", domain="lake")
    made = imitation_sample(prompt, [("left:wall", "down"), ("up:ice", "right")], CHAT)
    text = make_tokenizer().decode(list(made.token_ids))
    assert text == (
        "<|system|>go<|user|>left:wall<|assistant|>down<|end|>"
        "<|user|>up:ice<|assistant|>right<|end|>"
    )
    length = len(made.token_ids)
    replies = (False,) * 5 + (True, True) + (False,) * 3 + (True, True)
    assert made == Sample(
        token_ids=made.token_ids,
        loss_mask=replies,
        behavior_logprobs=(0.0,) * length,
        versions=(-1,) * length,
        advantage=0.0,
        reward=0.0,
        trajectory_id="p",
        prompt_id="p",
        domain="lake",
    )


def test_play_without_a_turn_is_refused() -> None:
    with pytest.raises(ValueError, match="'p': scripted play without a turn"):
        imitation_sample(Prompt(id="p"), [], CHAT)
