"""Continuous batching over a slot cache: requests join and leave between steps. No asyncio.

Batch invariance: the tokens and logprobs of a request are bit for bit the same whatever else is in
the batch, in whichever slot, in whatever order requests come, and whether its cache was kept or
rebuilt. It rests on three facts, tested on the real kernels in tests/test_engine.py: every number
of a row depends on that row alone; matrix products of at least MIN_ROWS rows give each row the
same bits (smaller ones take other kernels); attention gives each query the same bits as long as
there are at least MIN_COLUMNS of them.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from transformers import PreTrainedModel

from rlgraph.errors import RlgraphError
from rlgraph.llm.cache import SlotCache
from rlgraph.llm.sampling import draw, sampling_logprobs, uniform

MIN_ROWS = 16
MIN_COLUMNS = 2
LENGTH_STEP = 64
"""The cache is read up to a multiple of this many positions."""


@dataclass(slots=True, kw_only=True, eq=False)
class Request:
    """One reply to be sampled, and how far it is. The engine alone changes it."""

    key: str
    """Requests of one key continue each other: the cache of the last one is kept for the next."""
    prompt: tuple[int, ...]
    """The whole context so far."""
    max_new_tokens: int
    seed: int
    completion: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    """Version of the weights that sampled each token."""
    finish_reason: str = ""
    """"stop" or "length" once it is done."""
    slot: int = -1
    num_cached: int = 0
    """Tokens of prompt + completion whose keys and values are in the slot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """Sizes and sampling of an engine."""

    num_slots: int
    length: int
    """Positions of a slot: tokens of the longest trajectory."""
    chunk_tokens: int
    """Prompt tokens of one row that one step takes in."""
    temperature: float
    end_id: int


class SamplingError(RlgraphError):
    """The weights give no distribution to sample from."""


class Engine:
    """Samples replies from one model. Not thread-safe; weights change between steps only."""

    def __init__(self, model: PreTrainedModel, config: EngineConfig, device: str) -> None:
        self._model = model
        self._config = config
        self._device = torch.device(device)
        self._head: Callable[[Tensor], Tensor] = model.get_submodule("lm_head")
        self._cache = SlotCache(
            model.config, num_slots=config.num_slots, length=config.length, device=self._device
        )
        forward = inspect.signature(model.base_model.forward).parameters
        # transformers renamed the argument in 5.24.
        self._cache_argument = "cache" if "cache" in forward else "past_key_values"
        self._version = 0
        self._waiting: deque[Request] = deque()
        self._active: list[Request] = []
        self._free = list(reversed(range(config.num_slots)))
        self._kept: OrderedDict[str, tuple[int, tuple[int, ...]]] = OrderedDict()
        """Slots kept between turns, least recently used first: key -> (slot, cached tokens)."""
        self._released: deque[str] = deque()

    @property
    def busy(self) -> bool:
        """Whether a step would do something."""
        return bool(self._waiting or self._active)

    def add(self, request: Request) -> None:
        """Queue a request; prompt and reply must fit into a slot."""
        needed = len(request.prompt) + request.max_new_tokens
        if not request.prompt or request.max_new_tokens < 1 or needed > self._config.length:
            raise ValueError(
                f"request {request.key!r}: {len(request.prompt)} prompt tokens and "
                f"{request.max_new_tokens} new ones must each be >= 1 and together at most "
                f"{self._config.length}, the length of a slot"
            )
        self._waiting.append(request)

    def cancel(self, request: Request) -> None:
        """Drop a request and free its slot. Does nothing when it is done already."""
        if request in self._waiting:
            self._waiting.remove(request)
        elif request in self._active:
            self._active.remove(request)
            self._free.append(request.slot)

    def release(self, key: str) -> None:
        """Free the slot that is kept for a key, if there is one, at the next step.

        The one method that another thread may call while a step runs.
        """
        self._released.append(key)

    def use_weights_of(self, version: int) -> None:
        """Forget every key and value: the model's weights are now those of ``version``.

        Requests go on from their tokens; what they have is fed to the new weights first.
        """
        self._version = version
        self._free += [slot for slot, _ in self._kept.values()]
        self._kept.clear()
        for request in self._active:
            request.num_cached = 0

    @torch.inference_mode()
    def step(self) -> list[Request]:
        """Let waiting requests in, advance every active one, and return those that are done.

        Raises SamplingError when the weights give logits that are no numbers. The requests stay as
        they were: give the model other weights, or cancel them.
        """
        self._admit()
        columns = [_num_pending(request) for request in self._active]
        decoding = [r for r, n in zip(self._active, columns, strict=True) if n <= MIN_COLUMNS]
        reading = [r for r, n in zip(self._active, columns, strict=True) if n > MIN_COLUMNS]
        # Apart: one long prompt would pad every decoding row to its width.
        for rows in (reading, decoding):
            if rows:
                self._forward(rows)
        done = [request for request in self._active if request.finish_reason]
        for request in done:
            self._retire(request)
        return done

    def _admit(self) -> None:
        while self._released:
            self._forget(self._released.popleft())
        while self._waiting and (self._free or self._kept):
            request = self._waiting.popleft()
            slot, tokens = self._kept.pop(request.key, (-1, ()))
            if slot < 0:
                slot = self._free.pop() if self._free else self._kept.popitem(last=False)[1][0]
            request.slot = slot
            # The last token is fed again in any case: its logits choose the first new token.
            request.num_cached = min(_common(tokens, request.prompt), len(request.prompt) - 1)
            self._active.append(request)

    def _retire(self, request: Request) -> None:
        self._active.remove(request)
        self._forget(request.key)
        tokens = (*request.prompt, *request.completion)[: request.num_cached]
        self._kept[request.key] = (request.slot, tokens)

    def _forget(self, key: str) -> None:
        if (kept := self._kept.pop(key, None)) is not None:
            self._free.append(kept[0])

    def _forward(self, rows: Sequence[Request]) -> None:
        pending = [
            [*request.prompt, *request.completion][
                request.num_cached : request.num_cached + self._config.chunk_tokens
            ]
            for request in rows
        ]
        logits = self._logits(rows, pending)
        for request, tokens in zip(rows, pending, strict=True):
            request.num_cached += len(tokens)
        sampling = [i for i, request in enumerate(rows) if not _num_pending(request)]
        if sampling:
            self._sample(rows, sampling, logits)

    def _logits(self, rows: Sequence[Request], pending: Sequence[Sequence[int]]) -> Tensor:
        """Feed the pending tokens; return the logits [n, V] after the last of each row.

        Inside: n rows padded to a multiple of MIN_ROWS, C columns, S cached positions.
        """
        columns = max(MIN_COLUMNS, *(len(tokens) for tokens in pending))
        padding_rows = -len(rows) % MIN_ROWS
        # Padding stands on the left, so that every row ends in the last column. It is written to
        # the spare position, and its queries may see position 0: a row of nothing would be NaN.
        ids, positions, writes = [], [], []
        for request, tokens in zip(rows, pending, strict=True):
            gap = columns - len(tokens)
            steps = range(request.num_cached, request.num_cached + len(tokens))
            ids.append([0] * gap + list(tokens))
            positions.append([0] * gap + list(steps))
            writes.append([self._config.length] * gap + list(steps))
        ids += [[0] * columns] * padding_rows
        positions += [[0] * columns] * padding_rows
        writes += [[self._config.length] * columns] * padding_rows
        slots = [request.slot for request in rows] + [self._config.num_slots] * padding_rows

        read = 1 + max(row[-1] for row in positions)
        read = min(-(-read // LENGTH_STEP) * LENGTH_STEP, self._config.length)
        query_positions = self._tensor(positions)
        self._cache.aim(self._tensor(slots), self._tensor(writes), read)
        visible = torch.arange(read, device=self._device) <= query_positions[:, None, :, None]
        hidden = self._model.base_model(
            input_ids=self._tensor(ids),
            attention_mask=visible,
            position_ids=query_positions,
            use_cache=True,
            **{self._cache_argument: self._cache},
        ).last_hidden_state
        # All rows, padding too: a product of fewer than MIN_ROWS rows takes another kernel.
        return self._head(hidden[:, -1])[: len(rows)]

    def _sample(self, rows: Sequence[Request], sampling: Sequence[int], logits: Tensor) -> None:
        chosen = [rows[i] for i in sampling]
        logprobs = sampling_logprobs(logits[list(sampling)], self._config.temperature)
        if logprobs.isnan().any():
            self._cache.clear()
            self.use_weights_of(self._version)
            raise SamplingError(
                f"version {self._version} of the policy gives logits that are NaN or infinite, so "
                "no token can be sampled: its weights have diverged; to mend: go on from an "
                "earlier checkpoint with a lower learning_rate or max_grad_norm"
            )
        uniforms = torch.tensor(
            [uniform(request.seed, len(request.completion)) for request in chosen],
            dtype=torch.float64,
            device=self._device,
        )
        tokens = draw(logprobs, uniforms, self._config.temperature)
        taken = logprobs.gather(1, tokens[:, None])[:, 0]
        for request, token, logprob in zip(chosen, tokens.tolist(), taken.tolist(), strict=True):
            request.completion.append(token)
            request.logprobs.append(logprob)
            request.versions.append(self._version)
            if token == self._config.end_id:
                request.finish_reason = "stop"
            elif len(request.completion) == request.max_new_tokens:
                request.finish_reason = "length"

    def _tensor(self, values: Sequence[int] | Sequence[Sequence[int]]) -> Tensor:
        return torch.tensor(values, dtype=torch.long, device=self._device)


def _num_pending(request: Request) -> int:
    return len(request.prompt) + len(request.completion) - request.num_cached


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    """Count the tokens that both begin with."""
    shorter = min(len(a), len(b))
    if a[:shorter] == b[:shorter]:
        return shorter
    return next(i for i in range(shorter) if a[i] != b[i])
