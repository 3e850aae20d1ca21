"""A key-value cache of fixed slots, so that trajectories join and leave a batch at any step.

A slot holds the keys and values of one trajectory. Shapes: R slots, S positions, H key-value
heads, D head size, n rows of a forward pass, C its columns.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import Cache, PreTrainedConfig


class SlotCache(Cache):
    """Keys and values of ``num_slots`` trajectories, plus one slot for rows that only pad.

    `aim` says where the next forward pass writes and how far it reads.
    """

    def __init__(
        self, config: PreTrainedConfig, *, num_slots: int, length: int, device: torch.device
    ) -> None:
        super().__init__(layers=[])
        heads = getattr(config, "num_key_value_heads", config.num_attention_heads)
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        # One more slot and one more position: padding is written there and never read.
        shape = (num_slots + 1, length + 1, heads, size)
        self._keys = [torch.zeros(shape, device=device) for _ in range(config.num_hidden_layers)]
        """Of each layer, [R + 1, S + 1, H, D]."""
        self._values = [torch.zeros_like(keys) for keys in self._keys]
        self._slots = torch.zeros(0, dtype=torch.long)
        self._positions = torch.zeros(0, 0, dtype=torch.long)
        self._length = 0

    def clear(self) -> None:
        """Set everything to zero. Needed after NaN alone: even what is masked would spread it."""
        for cached in (*self._keys, *self._values):
            cached.zero_()

    def aim(self, slots: Tensor, positions: Tensor, length: int) -> None:
        """Direct the next forward pass: row i works in ``slots[i]`` at ``positions[i]``.

        slots: [n]; positions: [n, C]; length: the first positions of a slot that are read back.
        """
        self._slots, self._positions, self._length = slots, positions, length

    def update(
        self,
        key_states: Tensor,
        value_states: Tensor,
        layer_idx: int,
        *args: Any,  # noqa: ARG002 - the signature of the base class
        **kwargs: Any,  # noqa: ARG002 - the same
    ) -> tuple[Tensor, Tensor]:
        """Write [n, H, C, D] where `aim` said; return all [n, H, length, D] of the rows' slots."""
        return (
            self._written_and_read(self._keys[layer_idx], key_states),
            self._written_and_read(self._values[layer_idx], value_states),
        )

    def _written_and_read(self, cached: Tensor, states: Tensor) -> Tensor:
        cached[self._slots[:, None], self._positions] = states.transpose(1, 2)
        return cached[:, : self._length].index_select(0, self._slots).transpose(1, 2)
