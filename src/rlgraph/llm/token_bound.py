"""How few tokens a text can become, found without tokenizing it.

A huge text takes the tokenizer seconds, only to turn out too long. Knows no chat format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tokenizers.pre_tokenizers import ByteLevel
from transformers import PreTrainedTokenizerFast


class TokenBound:
    """A lower bound on the tokens of a text; 0 for tokenizers of which nothing is sure.

    Of a byte-level tokenizer each character of a token stands for one byte of the text, so no
    token holds more bytes than the longest one has characters. Others may normalize or drop text.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        made = json.loads(tokenizer.backend_tokenizer.to_str())
        self._is_sure = _keeps_bytes(made)
        if self._is_sure:
            vocabulary, added = made["model"]["vocab"], made["added_tokens"]
            # Added tokens are matched in the text itself, where a character may be four bytes.
            sizes = [len(token["content"].encode()) for token in added]
            self._longest = max(*map(len, vocabulary), *sizes)
            # Bytes that are in no vocabulary are dropped; SmolLM2 lacks U+0004, for one.
            names = _names_of_bytes()
            self._lost = bytes(byte for byte in range(256) if names[byte] not in vocabulary)

    def fewest(self, text: str) -> int:
        """Return a number of tokens that the text has at least. The text is valid Unicode."""
        if not self._is_sure:
            return 0
        return -(-len(text.encode().translate(None, self._lost)) // self._longest)


def _keeps_bytes(made: Mapping[str, Any]) -> bool:
    """Whether a tokenizer.json describes byte-level BPE that leaves out nothing on the way."""
    steps = made["pre_tokenizer"]
    return (
        made["model"]["type"] == "BPE"
        and made["normalizer"] is None
        and made["truncation"] is None
        and steps is not None
        and '"ByteLevel"' in json.dumps(steps)
        and _drops_nothing(steps)
        # These swallow any number of blanks.
        and not any(token["lstrip"] or token["rstrip"] for token in made["added_tokens"])
    )


def _drops_nothing(step: Mapping[str, Any]) -> bool:
    if step["type"] == "Sequence":
        return all(map(_drops_nothing, step["pretokenizers"]))
    if step["type"] == "Split":
        return bool(step["behavior"] != "Removed")
    return step["type"] in ("ByteLevel", "Digits")


def _names_of_bytes() -> dict[int, str]:
    """Return the character that stands for each byte in a byte-level vocabulary.

    Printable bytes stand for themselves; the others got the code points from 256 on, in order.
    """
    alphabet = sorted(ByteLevel.alphabet())
    themselves = [ord(name) for name in alphabet if ord(name) < 256]
    others = [byte for byte in range(256) if byte not in themselves]
    return dict(zip(themselves + others, alphabet, strict=True))
