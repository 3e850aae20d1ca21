"""A language model small enough for two CPU cores: a Llama from scratch and a byte-level tokenizer.

Any text can be encoded; the words of small text games are one token each.
"""

from __future__ import annotations

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

END = "<|end|>"
SYSTEM, USER, ASSISTANT = "<|system|>", "<|user|>", "<|assistant|>"

DIRECTIONS = ("left", "down", "right", "up", "north", "east", "south", "west")
PLAIN_WORDS = """
    here wall ice hole goal start lake map you are at go to the and is of in on it a an one two
    say yes no not true false number answer question what which how many move turn done
"""
WORDS = (
    *DIRECTIONS,
    *(f"{way}:{what}" for way in DIRECTIONS for what in ("wall", "ice", "hole", "goal")),
    *(f"{way}:{steps}" for way in DIRECTIONS for steps in range(10)),
    *PLAIN_WORDS.split(),
)
"""Each is one token, with and without a space before it; everything else is spelt in bytes."""


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Build the byte-level BPE tokenizer: bytes, WORDS and the chat markup; always the same."""
    tokenizer = Tokenizer(models.BPE())
    # Split at spaces only: "left:wall" is a word too. A thing and its place in one token spare the
    # model a layer that puts them together.
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\s?\S+|\s+"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=4096,
        special_tokens=[END, SYSTEM, USER, ASSISTANT],
        # All 256 bytes: no text is unknown.
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    # Each word twice: on a line of its own and after a space.
    tokenizer.train_from_iterator([text for word in WORDS for text in (word, f" {word}")], trainer)
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]  # transformers
        tokenizer_object=tokenizer, eos_token=END, pad_token=END
    )


def make_model(
    *,
    seed: int,
    context_length: int,
    hidden_size: int,
    num_layers: int,
    num_heads: int,
    intermediate_size: int,
) -> LlamaForCausalLM:
    """Make a Llama whose weights depend on the arguments alone, not on torch's random state."""
    tokenizer = make_tokenizer()
    config = LlamaConfig(
        # A multiple of 16, so that vectorised kernels leave no odd tail.
        vocab_size=-(-len(tokenizer) // 16) * 16,
        hidden_size=hidden_size,
        intermediate_size=intermediate_size,
        num_hidden_layers=num_layers,
        num_attention_heads=num_heads,
        num_key_value_heads=num_heads,
        max_position_embeddings=context_length,
        tie_word_embeddings=True,
        # Llama's 0.02 suits wide layers; at this width attention starts out blind and stays so for
        # hundreds of steps (imitating legal moves: 0.62 nats a token after 80 steps, here 0.54).
        initializer_range=0.1,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlamaForCausalLM(config)
