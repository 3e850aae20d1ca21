"""The distribution that replies are drawn from, and how a token is drawn from it.

Generator and trainer both use `sampling_logprobs`, so that their numbers can be compared.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterator

import torch
from torch import Tensor

from rlgraph.errors import Problem

COLDEST = 0.01
"""The lowest temperature above 0: logits divided by much less would overflow."""


def temperature_problems(temperature: float) -> Iterator[Problem]:
    """Yield what is wrong with a temperature, a setting of that name: 0, or COLDEST and above."""
    if temperature != 0.0 and not COLDEST <= temperature < math.inf:
        yield Problem(
            what=f"temperature={temperature} is neither 0 nor a finite number from {COLDEST} on",
            where="temperature",
            mend=f"give a number from {COLDEST} on; 1.0 is usual",
        )


def sampling_logprobs(logits: Tensor, temperature: float) -> Tensor:
    """Return [..., V] log-probabilities of the sampling distribution. Natural log.

    Temperature 0 means greedy decoding; its logprobs are those of the plain softmax.
    """
    return torch.log_softmax(logits.float() / (temperature or 1.0), dim=-1)


def draw(logprobs: Tensor, uniforms: Tensor, temperature: float) -> Tensor:
    """Draw [N] token ids from [N, V] logprobs by inverse CDF, one uniform of [0, 1) a row.

    No logprob is NaN: there would be no token to draw.
    Temperature 0 takes the likeliest token. Each row depends on nothing but itself.
    """
    if temperature == 0.0:
        return logprobs.argmax(dim=-1)
    cumulative = logprobs.double().exp().cumsum(dim=-1)
    # Scaled by the total: rounding must not leave the last uniforms without a token.
    targets = uniforms.double()[:, None] * cumulative[:, -1:]
    return torch.searchsorted(cumulative, targets, right=True)[:, 0]


def uniform(seed: int, index: int) -> float:
    """Return the number in [0, 1) that belongs to token ``index`` of the reply seeded ``seed``.

    A counter-based generator: no stream is shared, so neighbours in a batch cannot matter.
    """
    counter = struct.pack("<QQ", seed % 2**64, index)
    word = hashlib.blake2b(counter, digest_size=8).digest()
    # 52 bits: with 53 the largest number times a total could round up to the total itself.
    return (int.from_bytes(word, "little") >> 12) / 2**52
