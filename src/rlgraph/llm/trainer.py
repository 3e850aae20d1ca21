"""The stage that learns: one optimizer step on a batch of samples, then new weights.

Knows nothing of environments, generators or the graph. It draws no random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from accelerate import Accelerator  # type: ignore[import-untyped]  # it ships no types
from torch import Tensor

from rlgraph.config import above, at_least
from rlgraph.errors import ConfigError, Problem, RlgraphError
from rlgraph.llm.checkpoint import load_checkpoint, save_checkpoint
from rlgraph.llm.models import ModelConfig, load_model
from rlgraph.llm.sampling import temperature_problems
from rlgraph.llm.token_logprobs import MicroBatch, TokenLogprobs, micro_batches
from rlgraph.llm.weights import Weights, WeightStore
from rlgraph.rl.aggregation import token_mean
from rlgraph.rl.losses import ppo_clip
from rlgraph.rl.records import Sample

TokenLoss: TypeAlias = Callable[[MicroBatch, Tensor], Tensor]
"""(micro-batch, logprobs [B, L]) -> loss of each token [B, L]."""


class TrainingError(RlgraphError):
    """A batch that nothing can be learnt from; no step was made and nothing was published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerConfig:
    """How the policy is optimized (AdamW, PPO-clip, token-mean over the global batch)."""

    model: ModelConfig = field(default_factory=ModelConfig)
    weights_dir: str = "weights"
    """Where weights are published."""
    keep_weights: int = 4
    """Published weights that stay on disk; more than max_staleness + 1."""
    learning_rate: float = 1e-3
    warmup_steps: int = 5
    """Steps in which the learning rate rises linearly to its value; constant thereafter."""
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    clip_low: float = 0.2
    clip_high: float = 0.28
    """Clip-higher keeps unlikely tokens alive (arXiv:2503.14476, section 3.1)."""
    temperature: float = 1.0
    """The generator's: logprobs on both sides are of the sampling distribution."""
    max_micro_batch_tokens: int = 16384
    """Tokens of a forward and backward pass, padding counted; gradients accumulate over them."""
    num_threads: int = 1

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong; ``where`` is the name of the field."""
        yield from above(self, "learning_rate", 0)
        yield from above(self, "max_grad_norm", 0)
        yield from above(self, "clip_low", 0)
        yield from above(self, "clip_high", 0)
        yield from temperature_problems(self.temperature)
        yield from at_least(self, "keep_weights", 1)
        yield from at_least(self, "max_micro_batch_tokens", 1)
        yield from at_least(self, "num_threads", 1)


class Trainer:
    """A language model that learns. Cheap to make; `setup` loads it."""

    def __init__(self, config: TrainerConfig) -> None:
        """Raise ConfigError that lists what is wrong with the settings."""
        if problems := list(config.problems()):
            raise ConfigError("the trainer configuration is wrong", problems)
        self._config = config
        self._device = ""
        self._store = WeightStore(config.weights_dir, keep=config.keep_weights)
        self._num_steps = 0
        self._metrics: Mapping[str, float] = {}

    def setup(self, device: str) -> None:
        """Load the model and its optimizer onto the device.

        Does nothing where they are there already: what was learnt stays.
        """
        if self._device == device:
            return
        self._device = device
        config = self._config
        torch.set_num_threads(config.num_threads)
        self._accelerator = Accelerator(cpu=device == "cpu")
        self._model = load_model(config.model).train()
        policy = TokenLogprobs(self._model, config.temperature)
        optimizer = torch.optim.AdamW(
            policy.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
        )
        self._policy, self._optimizer = self._accelerator.prepare(policy, optimizer)

    def weights(self) -> Weights:
        """Publish the weights as they are now."""
        return self._store.publish(self._model.state_dict(), self._num_steps, self._metrics)

    def step(self, batch: tuple[Sample, ...]) -> Weights:
        """Make one optimizer step on the whole batch and publish what came of it.

        Raises TrainingError for a batch without trained tokens, or when loss or gradient is not
        finite; it names the trajectories.
        """
        config = self._config
        # An advantage of 0 gives no gradient: such samples count as tokens but are not computed.
        rows = [sample for sample in batch if sample.advantage != 0.0]
        tally = _Tally(config.clip_low, config.clip_high)

        def token_loss(rows: MicroBatch, logprobs: Tensor) -> Tensor:
            tally.add(rows, logprobs.detach())
            return ppo_clip(
                logprobs=logprobs,
                old_logprobs=rows.behavior_logprobs,
                advantages=rows.advantages,
                mask=rows.mask,
                clip_low=config.clip_low,
                clip_high=config.clip_high,
            )

        warmth = min(1.0, (self._num_steps + 1) / max(1, config.warmup_steps))
        learning_rate = config.learning_rate * warmth
        num_tokens = _num_trained_tokens(batch)
        measured = self._optimize(rows, num_tokens, token_loss, self._optimizer, learning_rate)
        self._num_steps += 1
        rewards = [sample.reward for sample in batch]
        self._metrics = {
            **measured,
            **tally.metrics(),
            "learning_rate": learning_rate,
            "reward": sum(rewards) / len(rewards),
            "num_samples": float(len(batch)),
        }
        return self.weights()

    def imitate(
        self, batches: Iterable[tuple[Sample, ...]], learning_rate: float
    ) -> list[dict[str, float]]:
        """Make one supervised step a batch on its trained tokens; return what each measured.

        The version stays as it is, and so does the state of the optimizer that `step` uses.
        """
        optimizer = torch.optim.AdamW(self._policy.parameters(), weight_decay=0.0)

        def token_loss(rows: MicroBatch, logprobs: Tensor) -> Tensor:
            return torch.where(rows.mask, -logprobs, 0.0)

        return [
            self._optimize(batch, _num_trained_tokens(batch), token_loss, optimizer, learning_rate)
            for batch in batches
        ]

    def save(self, directory: str) -> None:
        """Store weights, optimizer state and step count; the file is whole or absent."""
        save_checkpoint(directory, self._model, self._optimizer, self._num_steps)

    def load(self, directory: str) -> None:
        """Go on from what `save` stored. Raises WeightsError when it does not fit."""
        self._num_steps = load_checkpoint(directory, self._model, self._optimizer)

    def _optimize(
        self,
        batch: Sequence[Sample],
        num_tokens: int,
        token_loss: TokenLoss,
        optimizer: torch.optim.Optimizer,
        learning_rate: float,
    ) -> dict[str, float]:
        optimizer.zero_grad()
        loss_sum, entropy_sum, num_computed = 0.0, 0.0, 0
        parts = micro_batches(batch, self._config.max_micro_batch_tokens, self._accelerator.device)
        for rows in parts:
            logprobs, entropies = self._policy(rows.token_ids, rows.mask)
            losses = token_loss(rows, logprobs)
            _refuse_non_finite(losses, rows.samples)
            # Divided by the tokens of the whole batch: how it is split changes nothing.
            loss = token_mean(loss=losses, mask=rows.mask, num_tokens=num_tokens)
            self._accelerator.backward(loss)
            loss_sum += loss.item()
            entropy_sum += entropies.sum().item()
            num_computed += int(rows.mask.sum())
        parameters = self._policy.parameters()
        grad_norm = float(self._accelerator.clip_grad_norm_(parameters, self._config.max_grad_norm))
        if not math.isfinite(grad_norm):
            optimizer.zero_grad()
            raise TrainingError(
                f"the gradient of {_names(batch)} is not finite ({grad_norm}). No step was made"
            )
        for group in optimizer.param_groups:
            group["lr"] = learning_rate
        optimizer.step()
        # Where no group teaches anything nothing was computed, so there is no entropy to report.
        entropy = {"entropy": entropy_sum / num_computed} if num_computed else {}
        return {
            **entropy,
            "loss": loss_sum,
            "grad_norm": grad_norm,
            "num_tokens": float(num_tokens),
            "num_computed_tokens": float(num_computed),
            "num_micro_batches": float(len(parts)),
        }


class _Tally:
    """Sums over micro-batches how far the policy has moved from the one that sampled."""

    def __init__(self, clip_low: float, clip_high: float) -> None:
        self._low, self._high = 1.0 - clip_low, 1.0 + clip_high
        self._clipped = self._kl = 0.0
        self._num_tokens = 0

    def add(self, rows: MicroBatch, logprobs: Tensor) -> None:
        """Count the trained tokens of one micro-batch."""
        log_ratio = (logprobs - rows.behavior_logprobs)[rows.mask]
        ratio, advantages = log_ratio.exp(), rows.advantages[rows.mask]
        too_high = (ratio > self._high) & (advantages > 0)
        too_low = (ratio < self._low) & (advantages < 0)
        self._clipped += (too_high | too_low).sum().item()
        # k3, never negative (http://joschu.net/blog/kl-approx.html).
        self._kl += (ratio - 1.0 - log_ratio).sum().item()
        self._num_tokens += log_ratio.numel()

    def metrics(self) -> dict[str, float]:
        """Return means over the tokens; KL in nats."""
        return {
            "clip_fraction": self._clipped / max(1, self._num_tokens),
            "kl_to_behavior": self._kl / max(1, self._num_tokens),
        }


def _num_trained_tokens(batch: Sequence[Sample]) -> int:
    if num_tokens := sum(sum(sample.loss_mask) for sample in batch):
        return num_tokens
    raise TrainingError(
        f"a batch of {len(batch)} samples has no token to train on; "
        "form batches of samples whose loss_mask holds at least one True"
    )


def _refuse_non_finite(losses: Tensor, samples: Sequence[Sample]) -> None:
    finite = torch.isfinite(losses.detach()).all(dim=1).tolist()
    bad = [sample for sample, is_finite in zip(samples, finite, strict=True) if not is_finite]
    if bad:
        raise TrainingError(
            f"the loss of {_names(bad)} is not finite; look at their advantages and logprobs. "
            "No step was made"
        )


def _names(samples: Sequence[Sample]) -> str:
    shown = ", ".join(repr(sample.trajectory_id) for sample in samples[:8])
    more = f" and {len(samples) - 8} more" if len(samples) > 8 else ""
    return f"{len(samples)} trajectories ({shown}{more})"
