"""The training side of a policy: logprobs and entropy of given tokens, with gradients.

Shapes: B samples, L tokens, N trained tokens, D hidden size, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedModel

from rlgraph.llm.sampling import sampling_logprobs
from rlgraph.rl.records import Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """Samples padded on the right to one length."""

    samples: tuple[Sample, ...]
    token_ids: Tensor
    """[B, L]; 0 in the padding."""
    mask: Tensor
    """[B, L] True on trained tokens."""
    behavior_logprobs: Tensor
    """[B, L]; 0.0 where mask is False."""
    advantages: Tensor
    """[B, L]"""


class TokenLogprobs(torch.nn.Module):
    """Wraps a causal language model; logits are computed for trained tokens only."""

    def __init__(self, model: PreTrainedModel, temperature: float) -> None:
        super().__init__()
        self.model = model
        self._temperature = temperature

    def forward(self, token_ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return logprobs and entropies [B, L], in nats; 0.0 where mask is False.

        The first token has nothing before it, so mask[:, 0] must be False. Padding needs no
        attention mask: it stands on the right, where no trained token looks.
        """
        hidden = self.model.base_model(input_ids=token_ids, use_cache=False).last_hidden_state
        before = hidden[:, :-1][mask[:, 1:]]  # [N, D]: token t is predicted at t - 1
        logits = self.model.get_submodule("lm_head")(before)  # [N, V]
        logprobs = sampling_logprobs(logits, self._temperature)
        taken = logprobs.gather(1, token_ids[mask][:, None])[:, 0]
        entropy = -(logprobs.exp() * logprobs).sum(dim=-1)
        empty = torch.zeros(token_ids.shape, device=token_ids.device)
        return empty.masked_scatter(mask, taken), empty.masked_scatter(mask, entropy.detach())


def micro_batches(
    samples: Sequence[Sample], max_tokens: int, device: torch.device
) -> list[MicroBatch]:
    """Split by length into micro-batches of at most ``max_tokens``, padding counted.

    A sample longer than that is a micro-batch of its own.
    """
    rows: list[list[Sample]] = []
    # The id breaks ties: the order of arrival must not change the sums.
    for sample in sorted(samples, key=lambda s: (-len(s.token_ids), s.trajectory_id)):
        if rows and (len(rows[-1]) + 1) * len(rows[-1][0].token_ids) <= max_tokens:
            rows[-1].append(sample)
        else:
            rows.append([sample])
    return [collate(row, device) for row in rows]


def collate(samples: Sequence[Sample], device: torch.device) -> MicroBatch:
    """Pad samples to the longest of them."""
    length = max(len(sample.token_ids) for sample in samples)

    def padded(rows: Sequence[Sequence[float]], dtype: torch.dtype) -> Tensor:
        full = [[*row, *(0 for _ in range(length - len(row)))] for row in rows]
        return torch.tensor(full, dtype=dtype, device=device)

    return MicroBatch(
        samples=tuple(samples),
        token_ids=padded([sample.token_ids for sample in samples], torch.long),
        mask=padded([sample.loss_mask for sample in samples], torch.bool),
        behavior_logprobs=padded([s.behavior_logprobs for s in samples], torch.float32),
        advantages=torch.tensor([[s.advantage] for s in samples], device=device).expand(-1, length),
    )
