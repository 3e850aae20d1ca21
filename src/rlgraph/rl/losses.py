"""Policy losses per token, to be minimised. They do not aggregate; see ``aggregation``."""

from __future__ import annotations

import torch
from torch import Tensor


def ppo_clip(
    *,
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    """Return -min(ratio A, clip(ratio, 1 - clip_low, 1 + clip_high) A), ratio = exp(new - old).

    All tensors [B, L]; logprobs natural; mask bool, True where the token was sampled. Returns
    [B, L], exactly 0 where mask is False: whatever stands there, NaN too, reaches neither the value
    nor the gradient. clip_high > clip_low is DAPO's clip-higher.
    Raises ValueError when shapes differ, TypeError when mask is not bool (advantages and mask look
    alike otherwise). Source: arXiv:1707.06347, eq. 7; arXiv:2503.14476, section 3.1.
    """
    shapes = [tuple(t.shape) for t in (logprobs, old_logprobs, advantages, mask)]
    if len(set(shapes)) > 1:
        raise ValueError(
            "ppo_clip: logprobs, old_logprobs, advantages and mask must have one shape [B, L], got "
            + ", ".join(map(str, shapes))
        )
    if mask.dtype != torch.bool:
        raise TypeError(f"ppo_clip: mask must be bool, got {mask.dtype}; use mask.bool()")
    # Masked before the arithmetic: 0 * NaN is NaN, in a gradient too.
    new, old, advantage = (t.masked_fill(~mask, 0.0) for t in (logprobs, old_logprobs, advantages))
    ratio = torch.exp(new - old)
    clipped = torch.clamp(ratio, 1.0 - clip_low, 1.0 + clip_high)
    return -torch.minimum(ratio * advantage, clipped * advantage)
