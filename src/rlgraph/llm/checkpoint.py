"""What a trainer needs to go on: weights, optimizer state, step count, in one safetensors file."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from rlgraph.files import replace_bytes
from rlgraph.llm.weights import WeightsError, copy_into, pack, unpack

FILE_NAME = "trainer.safetensors"
MODEL, OPTIMIZER = "model.", "optimizer."


def save_checkpoint(
    directory: str, model: torch.nn.Module, optimizer: torch.optim.Optimizer, num_steps: int
) -> None:
    """Write the file; a checkpoint that was there before stays until the new one is whole."""
    state = {MODEL + name: tensor for name, tensor in model.state_dict().items()}
    for index, moments in optimizer.state_dict()["state"].items():
        state |= {f"{OPTIMIZER}{index}.{name}": tensor for name, tensor in moments.items()}
    Path(directory).mkdir(parents=True, exist_ok=True)
    replace_bytes(Path(directory) / FILE_NAME, [pack(state, {"num_steps": num_steps})])


def load_checkpoint(
    directory: str, model: torch.nn.Module, optimizer: torch.optim.Optimizer
) -> int:
    """Load what `save_checkpoint` wrote and return its step count.

    Raises WeightsError when the file is missing, damaged, or of another model.
    """
    path = str(Path(directory) / FILE_NAME)
    tensors, metadata = unpack(path)
    if type(metadata.get("num_steps")) is not int:
        raise WeightsError(f"{path!r} holds no trainer's state; give a directory of Trainer.save")
    copy_into(model, _below(MODEL, tensors), path)
    moments: dict[int, dict[str, Tensor]] = {}
    for name, tensor in _below(OPTIMIZER, tensors).items():
        index, kind = name.split(".", 1)
        moments.setdefault(int(index), {})[kind] = tensor
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": moments, "param_groups": groups})
    return int(metadata["num_steps"])


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
