"""The stage that speaks: appends one turn to a trajectory, sampled from the newest weights.

Calls for many trajectories overlap on one asyncio loop and are batched by the engine. Knows
nothing of environments, rewards or the graph.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby

import torch
from transformers import PreTrainedModel

from rlgraph.config import at_least
from rlgraph.errors import ConfigError, Problem, RlgraphError
from rlgraph.llm.chat import Chat
from rlgraph.llm.engine import Engine, EngineConfig, Request
from rlgraph.llm.models import ModelConfig, load_model, load_tokenizer
from rlgraph.llm.sampling import temperature_problems
from rlgraph.llm.weights import Weights, load_into
from rlgraph.ports import Latest
from rlgraph.rl.records import Segment, Status, Trajectory, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorConfig:
    """How replies are sampled."""

    model: ModelConfig = field(default_factory=ModelConfig)
    system: str = ""
    """Text ahead of every trajectory."""
    temperature: float = 1.0
    """0: greedy, with logprobs under the plain softmax."""
    max_new_tokens: int = 8
    """Tokens of the longest reply, its end token included."""
    num_slots: int = 64
    """Trajectories whose keys and values are kept; more than that wait, or are computed again."""
    chunk_tokens: int = 64
    """Prompt tokens of one trajectory that one step takes in."""
    num_threads: int = 1
    """Torch threads. One where cores are shared: two were ten times slower (SmolLM2, 2 cores)."""

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong; ``where`` is the name of the field."""
        yield from temperature_problems(self.temperature)
        yield from at_least(self, "max_new_tokens", 1)
        yield from at_least(self, "num_slots", 1)
        yield from at_least(self, "chunk_tokens", 1)
        yield from at_least(self, "num_threads", 1)


class GeneratorStoppedError(RlgraphError):
    """The generator's loop ended while a request was being served."""


class Generator:
    """A language model that replies. Cheap to make; `setup` loads it."""

    def __init__(self, config: GeneratorConfig) -> None:
        """Raise ConfigError that lists what is wrong with the settings."""
        if problems := list(config.problems()):
            raise ConfigError("the generator configuration is wrong", problems)
        self._config = config
        self._device = ""

    def setup(self, device: str) -> None:
        """Load model and tokenizer onto the device. Does nothing where they are there already."""
        if self._device == device:
            return
        self._device = device
        config = self._config
        torch.set_num_threads(config.num_threads)
        self._model: PreTrainedModel = load_model(config.model)
        # Not self._model.to: transformers wraps it in a way that loses its types.
        torch.nn.Module.to(self._model, device)
        self._chat = Chat(load_tokenizer(config.model), config.system)
        self._engine = Engine(
            self._model,
            EngineConfig(
                num_slots=config.num_slots,
                length=config.model.context_length,
                chunk_tokens=config.chunk_tokens,
                temperature=config.temperature,
                end_id=self._chat.end_id,
            ),
            device,
        )
        self._loaded: Latest[Weights] | None = None
        """What the model holds; None before the first request."""
        self._futures: dict[Request, asyncio.Future[Request]] = {}
        """Requests in the engine, each with the future its caller waits for."""
        self._newest: Latest[Weights] | None = None
        self._pump: asyncio.Task[None] | None = None

    async def generate(
        self, trajectory: Trajectory, policy: Latest[Weights], seed: int
    ) -> Trajectory:
        """Append one turn: the observation as prompt, and a reply sampled with this seed.

        The reply may come from newer weights than asked for, never from older ones. A trajectory
        that leaves no room for a reply comes back TRUNCATED, without a turn. At one version the
        result depends on the trajectory and the seed alone. Raises SamplingError when the weights
        give no distribution, WeightsError when they cannot be loaded.
        """
        context = [i for turn in trajectory.turns for i in (*turn.prompt_ids, *turn.completion_ids)]
        room = self._config.model.context_length - len(context)
        # Asked first: the tokenizer would hold up every other call for as long as it takes.
        if self._chat.is_too_long(trajectory, room):
            return self._truncated(trajectory)
        prompt_ids = self._chat.prompt_ids(trajectory)
        room -= len(prompt_ids)
        if room < 1:
            return self._truncated(trajectory)
        request = Request(
            key=trajectory.id,
            prompt=(*context, *prompt_ids),
            max_new_tokens=min(self._config.max_new_tokens, room),
            seed=seed,
        )
        self._ask_for(policy)
        done = await self._served(request)
        turn = Turn(
            prompt_ids=prompt_ids,
            completion_ids=tuple(done.completion),
            logprobs=tuple(done.logprobs),
            segments=tuple(
                Segment(num_tokens=len(list(run)), policy_version=version)
                for version, run in groupby(done.versions)
            ),
            text=self._chat.reply_text(tuple(done.completion)),
            finish_reason=done.finish_reason,
        )
        return replace(trajectory, turns=(*trajectory.turns, turn))

    def release(self, trajectory: Trajectory) -> None:
        """Forget the trajectory's keys and values; from any thread, as often as you like.

        Without it the least recently used go when slots run out.
        """
        self._engine.release(trajectory.id)

    def _truncated(self, trajectory: Trajectory) -> Trajectory:
        self.release(trajectory)
        return replace(trajectory, status=Status.TRUNCATED)

    async def _served(self, request: Request) -> Request:
        self._engine.add(request)
        future: asyncio.Future[Request] = asyncio.get_running_loop().create_future()
        self._futures[request] = future
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._step_while_busy())
            self._pump.add_done_callback(self._fail_the_waiting)
        try:
            return await future
        finally:
            # A caller that was cancelled gives its slot back.
            if self._futures.pop(request, None) is not None:
                self._engine.cancel(request)

    async def _step_while_busy(self) -> None:
        while self._engine.busy:
            # Callers that are ready go first, so that they share the step.
            await asyncio.sleep(0)
            self._switch_weights()
            for request in self._engine.step():
                future = self._futures.pop(request)
                if not future.done():
                    future.set_result(request)

    def _fail_the_waiting(self, pump: asyncio.Task[None]) -> None:
        """Tell every caller when the engine broke; none of them may wait for ever."""
        error = GeneratorStoppedError("cancelled") if pump.cancelled() else pump.exception()
        if error is None:
            return
        for request, future in self._futures.items():
            self._engine.cancel(request)
            if not future.done():
                future.set_exception(error)
        self._futures.clear()

    def _ask_for(self, policy: Latest[Weights]) -> None:
        if self._newest is None:
            self._newest = policy
            return
        asked, newest = policy.value, self._newest.value
        # Another file of the same age: weights after a warm start, or those of another run.
        is_other = asked.version == newest.version and asked.path != newest.path
        if asked.version > newest.version or is_other:
            self._newest = policy

    def _switch_weights(self) -> None:
        newest, loaded = self._newest, self._loaded
        if newest is None or newest is loaded:
            return
        # Weights that cannot be loaded fail those who wait for them, not everyone after.
        self._newest = loaded
        if loaded is None or newest.value.path != loaded.value.path:
            load_into(self._model, newest.value)
        self._engine.use_weights_of(newest.version)
        self._loaded = self._newest = newest
