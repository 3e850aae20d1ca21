"""From a loss per token to one number, with counts of the whole batch."""

from __future__ import annotations

import torch
from torch import Tensor


def token_mean(*, loss: Tensor, mask: Tensor, num_tokens: float) -> Tensor:
    """Sum the loss where mask is True and divide by ``num_tokens``.

    loss, mask: [B, L] of one micro-batch, mask bool. num_tokens counts the True of the GLOBAL batch
    (all micro-batches, all ranks), so the sum over any split equals the value of the whole; a
    micro-batch without a True gives 0 with zero gradient. Values at False never matter, NaN
    included.
    Raises ValueError when shapes differ or num_tokens is not > 0, TypeError when mask is not bool.
    Source: arXiv:2503.14476, section 3.3.
    """
    if loss.shape != mask.shape:
        raise ValueError(
            f"token_mean: loss and mask must have one shape [B, L], got {tuple(loss.shape)} and "
            f"{tuple(mask.shape)}"
        )
    if mask.dtype != torch.bool:
        raise TypeError(f"token_mean: mask must be bool, got {mask.dtype}; use mask.bool()")
    if not num_tokens > 0:
        raise ValueError(
            f"token_mean: num_tokens must be > 0, got {num_tokens!r}; count the trained tokens of "
            "the whole batch, and do not step on a batch without any"
        )
    return loss.masked_fill(~mask, 0.0).sum() / num_tokens
