"""Versioned weights on disk: what the trainer publishes and a generator loads.

A `Weights` handle travels through the graph; tensors never do. Knows tensors and files, no model
family and no scheduler.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from rlgraph.errors import RlgraphError, did_you_mean
from rlgraph.files import replace_bytes

HEADER, ALIASES = "rlgraph", "aliases"
"""The one entry in a file's metadata, and in it the names that share the tensor of another."""


class WeightsError(RlgraphError):
    """Weights that cannot be read, or that do not fit the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """A handle on one published set of weights."""

    path: str
    """A safetensors file; complete when the handle exists."""
    version: int
    """Optimizer steps of the trainer behind it."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """What the step that made them measured (loss, grad_norm, reward, entropy, ...)."""


class WeightStore:
    """A directory of published weights; the newest ``keep`` of its own stay.

    Files are named after version and content, so that two publications of one version that differ
    (before and after a warm start, say) are two paths.
    """

    def __init__(self, directory: str, keep: int = 4) -> None:
        if keep < 1:
            raise ValueError(f"keep must be >= 1, got {keep!r}")
        self._directory = Path(directory)
        self._keep = keep
        self._published: deque[Path] = deque()

    def publish(
        self, state: Mapping[str, torch.Tensor], version: int, metrics: Mapping[str, float]
    ) -> Weights:
        """Write the tensors, each shared one once, and return the handle of the complete file."""
        self._directory.mkdir(parents=True, exist_ok=True)
        data = pack(state, {"version": version})
        digest = hashlib.blake2b(data, digest_size=6).hexdigest()
        path = self._directory / f"v{version:06d}-{digest}.safetensors"
        replace_bytes(path, [data])
        self._prune(path)
        return Weights(path=str(path), version=version, metrics=dict(metrics))

    def _prune(self, newest: Path) -> None:
        if newest in self._published:
            self._published.remove(newest)
        self._published.append(newest)
        while len(self._published) > self._keep:
            self._published.popleft().unlink(missing_ok=True)


def load_weights(weights: Weights) -> dict[str, torch.Tensor]:
    """Return every tensor by name; tied names share one tensor.

    Raises WeightsError when the file is gone or is not a safetensors file.
    """
    return unpack(weights.path)[0]


def load_into(model: torch.nn.Module, weights: Weights) -> None:
    """Copy the weights into the model, after every name and shape was found to fit.

    Raises WeightsError that names each missing, extra or misshapen tensor; the model is unchanged.
    """
    copy_into(model, load_weights(weights), weights.path)


def copy_into(model: torch.nn.Module, loaded: Mapping[str, torch.Tensor], path: str) -> None:
    """Copy tensors that came from ``path`` into the model. Raises as `load_into` does."""
    own = model.state_dict()
    problems = [f"missing {name!r}{did_you_mean(name, loaded)}" for name in own.keys() - loaded]
    problems += [f"extra {name!r}{did_you_mean(name, own)}" for name in loaded.keys() - own]
    problems += [
        f"{name!r} has shape {tuple(loaded[name].shape)}, the model wants {tuple(own[name].shape)}"
        for name in own.keys() & loaded
        if own[name].shape != loaded[name].shape
    ]
    if problems:
        raise WeightsError(
            f"{path!r} does not fit {type(model).__name__}: " + "; ".join(sorted(problems))
        )
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(loaded[name])


def pack(state: Mapping[str, torch.Tensor], metadata: Mapping[str, int]) -> bytes:
    """Return the content of a safetensors file that holds each shared tensor once.

    Equal arguments give equal bytes.
    """
    tensors, aliases = _without_aliases(state)
    # One entry: safetensors writes several in random order, and equal weights must be equal bytes.
    header = json.dumps({**metadata, ALIASES: aliases}, sort_keys=True)
    return save(tensors, metadata={HEADER: header})


def unpack(path: str) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Read (tensors, metadata) of a file that `pack` made; any safetensors file will do.

    Raises WeightsError.
    """
    try:
        with safe_open(path, framework="pt") as file:
            header = (file.metadata() or {}).get(HEADER, "{}")
            names = file.keys()
            tensors = {name: file.get_tensor(name) for name in names}
    except FileNotFoundError:
        raise WeightsError(
            f"{path!r} does not exist; weights that are too old are deleted: "
            "raise keep_weights of the trainer when generators lag behind it"
        ) from None
    except (SafetensorError, OSError) as error:
        raise WeightsError(f"{path!r} is no readable safetensors file: {error}") from None
    try:
        metadata = json.loads(header)
        aliases = metadata.pop(ALIASES, {})
        return tensors | {alias: tensors[name] for alias, name in aliases.items()}, metadata
    except (ValueError, KeyError, TypeError, AttributeError):
        raise WeightsError(
            f"{path!r} is damaged: its entry {HEADER!r} is not what `pack` wrote: {header[:200]!r}"
        ) from None


def _without_aliases(
    state: Mapping[str, torch.Tensor],
) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Split into tensors to store (contiguous, on CPU) and names that repeat one of them."""
    tensors: dict[str, torch.Tensor] = {}
    aliases: dict[str, str] = {}
    first_name: dict[object, str] = {}
    for name, tensor in state.items():
        # Two views are the same values only when offset, shape and strides agree as well.
        view = (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)
        if tensor.numel() and view in first_name:
            aliases[name] = first_name[view]
            continue
        first_name[view] = name
        # clone: safetensors refuses tensors that share a storage, even where they do not overlap.
        tensors[name] = tensor.detach().cpu().contiguous().clone()
    return tensors, aliases
