import random
from collections.abc import Callable
from functools import cache

import pytest
import torch
from transformers import PreTrainedModel

from rlgraph.llm.engine import Engine, EngineConfig, Request
from rlgraph.llm.models import ModelConfig, load_model
from rlgraph.llm.sampling import sampling_logprobs

END = 0
LENGTH = 192

Result = tuple[tuple[int, ...], tuple[float, ...], str]


@pytest.fixture(scope="module")
def model() -> PreTrainedModel:
    torch.set_num_threads(1)
    return load_model(ModelConfig(context_length=LENGTH))


def engine(model: PreTrainedModel, **changes: object) -> Engine:
    settings: dict[str, object] = {
        "num_slots": 40,
        "length": LENGTH,
        "chunk_tokens": 32,
        "temperature": 1.0,
        "end_id": END,
    }
    return Engine(model, EngineConfig(**(settings | changes)), "cpu")  # type: ignore[arg-type]


def request(name: int, **changes: object) -> Request:
    """Make a request that its name determines: 1 to 100 prompt tokens, 1 to 12 new ones."""
    rng = random.Random(name)
    settings: dict[str, object] = {
        "key": f"key {name}",
        "prompt": tuple(rng.randrange(1, 300) for _ in range(rng.randrange(1, 100))),
        "max_new_tokens": rng.randrange(1, 13),
        "seed": name,
    }
    return Request(**(settings | changes))  # type: ignore[arg-type]


def result(request: Request) -> Result:
    return tuple(request.completion), tuple(request.logprobs), request.finish_reason


def drain(engine: Engine) -> dict[str, Result]:
    results = {}
    while engine.busy:
        results.update({done.key: result(done) for done in engine.step()})
    return results


def served(engine: Engine, *requests: Request) -> dict[str, Result]:
    for one in requests:
        engine.add(one)
    return drain(engine)


@pytest.fixture(scope="module")
def alone(model: PreTrainedModel) -> Callable[[int], Result]:
    """Return what a request gets that has an engine to itself."""
    return cache(lambda name: served(engine(model), request(name))[f"key {name}"])


def continued(first: Result, start: Request) -> Request:
    """Make the next turn of a conversation."""
    rng = random.Random(start.key)
    said = tuple(rng.randrange(1, 300) for _ in range(20))
    return request(start.seed, prompt=start.prompt + first[0] + said, seed=start.seed + 1000)


def test_replies_are_the_same_bits_alone_and_among_many_in_any_order(
    model: PreTrainedModel, alone: Callable[[int], Result]
) -> None:
    names = list(range(40))
    expected = {f"key {name}": alone(name) for name in names}
    for shuffle in range(2):
        random.Random(shuffle).shuffle(names)
        assert served(engine(model), *map(request, names)) == expected


def test_replies_are_the_same_bits_when_requests_join_one_by_one(
    model: PreTrainedModel, alone: Callable[[int], Result]
) -> None:
    running, results = engine(model), {}
    for name in range(30):
        running.add(request(name))
        results.update({done.key: result(done) for done in running.step()})
    results |= drain(running)
    assert results == {f"key {name}": alone(name) for name in range(30)}


@pytest.mark.parametrize("changes", [{"num_slots": 1}, {"num_slots": 3}, {"chunk_tokens": 5}])
def test_replies_are_the_same_bits_whatever_the_sizes_of_the_engine(
    model: PreTrainedModel, changes: dict[str, object], alone: Callable[[int], Result]
) -> None:
    requests = [request(name) for name in range(12)]
    expected = {f"key {name}": alone(name) for name in range(12)}
    assert served(engine(model, **changes), *requests) == expected


@pytest.mark.parametrize("num_slots", [40, 4, 1])
def test_a_second_turn_is_the_same_bits_with_its_cache_kept_or_evicted(
    model: PreTrainedModel, num_slots: int
) -> None:
    starts = [request(name) for name in range(10)]
    kept = engine(model, num_slots=num_slots)
    firsts = served(kept, *starts)
    follow_ups = [continued(firsts[start.key], start) for start in starts]
    expected = {one.key: served(engine(model), request_again(one))[one.key] for one in follow_ups}
    assert served(kept, *follow_ups) == expected


def request_again(one: Request) -> Request:
    return Request(key=one.key, prompt=one.prompt, max_new_tokens=one.max_new_tokens, seed=one.seed)


def test_a_kept_cache_is_not_computed_again(model: PreTrainedModel) -> None:
    running = engine(model)
    start = request(1)
    first = served(running, start)[start.key]
    follow_up = continued(first, start)
    running.add(follow_up)
    running.step()
    # All but the last token of the first turn were in the slot, and 32 are taken in a step.
    fresh = len(follow_up.prompt) - len(start.prompt) - len(first[0]) + 1
    assert fresh < 32 < len(follow_up.prompt)
    assert len(follow_up.completion) == 1


def test_a_conversation_that_changed_its_past_gets_no_stale_cache(model: PreTrainedModel) -> None:
    running, prompt = engine(model), tuple(range(1, 60))
    served(running, request(1, prompt=prompt))
    changed = (*prompt[:30], 299, *prompt[31:])
    expected = served(engine(model), request(1, prompt=changed))
    assert served(running, request(1, prompt=changed)) == expected


def test_the_same_prompt_again_samples_the_same_reply(model: PreTrainedModel) -> None:
    running = engine(model)
    assert served(running, request(5)) == served(running, request(5))


def test_two_requests_of_one_key_at_once_do_not_share_a_slot(
    model: PreTrainedModel, alone: Callable[[int], Result]
) -> None:
    both = [request(3), request(3)]
    running = engine(model)
    for one in both:
        running.add(one)
    drain(running)
    assert [result(one) for one in both] == [alone(3)] * 2
    assert served(running, *map(request, range(40))) == {
        f"key {name}": alone(name) for name in range(40)
    }


def test_logprobs_are_those_of_the_model(model: PreTrainedModel) -> None:
    one = request(11, max_new_tokens=12)
    served(engine(model, temperature=0.7), one)
    ids = torch.tensor([[*one.prompt, *one.completion]])
    with torch.no_grad():
        logprobs = sampling_logprobs(model(ids).logits, 0.7)[0]
    start = len(one.prompt) - 1
    expected = [logprobs[start + i, token].item() for i, token in enumerate(one.completion)]
    assert one.logprobs == pytest.approx(expected, abs=1e-5)


def test_greedy_replies_do_not_depend_on_the_seed(model: PreTrainedModel) -> None:
    replies = {
        result(one)[0]
        for seed in range(3)
        for one in [request(2, seed=seed)]
        if served(engine(model, temperature=0.0), one)
    }
    assert len(replies) == 1


def test_a_reply_ends_with_the_end_token_or_at_its_limit(
    model: PreTrainedModel, alone: Callable[[int], Result]
) -> None:
    results = [alone(name) for name in range(12)]
    assert {reason for _, _, reason in results} <= {"stop", "length"}
    for name, (completion, logprobs, reason) in enumerate(results):
        assert len(completion) == len(logprobs)
        assert END not in completion[:-1]
        assert (completion[-1] == END) == (reason == "stop")
        assert reason == "stop" or len(completion) == request(name).max_new_tokens


def test_an_end_token_at_the_limit_is_a_stop(model: PreTrainedModel) -> None:
    # Any token ends a reply if it is the one that is sampled.
    (token,), _, _ = served(engine(model), request(1, max_new_tokens=1))["key 1"]
    stopped = served(engine(model, end_id=token), request(1, max_new_tokens=1))["key 1"]
    assert stopped[0] == (token,)
    assert stopped[2] == "stop"


def test_a_slot_can_be_filled_to_its_last_position(model: PreTrainedModel) -> None:
    full = request(1, prompt=(5,) * (LENGTH - 2), max_new_tokens=2)
    served(engine(model, end_id=-1), full)
    assert (len(full.completion), full.finish_reason) == (2, "length")


@pytest.mark.parametrize(
    ("prompt", "max_new_tokens"), [((), 1), ((1,), 0), ((1,) * LENGTH, 1), ((1,) * 100, 93)]
)
def test_a_request_that_does_not_fit_is_refused(
    model: PreTrainedModel, prompt: tuple[int, ...], max_new_tokens: int
) -> None:
    with pytest.raises(ValueError, match=r"'key 1'.*together at most 192"):
        engine(model).add(request(1, prompt=prompt, max_new_tokens=max_new_tokens))


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_a_cancelled_request_gives_its_slot_back(
    model: PreTrainedModel, steps: int, alone: Callable[[int], Result]
) -> None:
    running = engine(model, num_slots=1)
    hanging = request(1, prompt=(1,) * 80, max_new_tokens=100)
    running.add(hanging)
    for _ in range(steps):
        running.step()
    running.cancel(hanging)
    running.cancel(hanging)
    assert not running.busy
    assert served(running, request(2)) == {"key 2": alone(2)}


def test_cancelling_what_is_done_changes_nothing(
    model: PreTrainedModel, alone: Callable[[int], Result]
) -> None:
    running, one = engine(model), request(1)
    served(running, one)
    running.cancel(one)
    assert result(one) == alone(1)


def test_releasing_twice_frees_one_slot(
    model: PreTrainedModel, alone: Callable[[int], Result]
) -> None:
    running = engine(model, num_slots=2)
    served(running, request(1))
    running.release("key 1")
    running.release("key 1")
    results = served(running, *map(request, range(6)))
    assert results == {f"key {name}": alone(name) for name in range(6)}


def test_new_weights_in_mid_reply_rebuild_the_cache() -> None:
    model, other = (load_model(ModelConfig(context_length=LENGTH, seed=seed)) for seed in (0, 1))
    running, one = engine(model, end_id=-1), request(4, max_new_tokens=8)
    kept = request(5)
    served(running, kept)
    running.add(one)
    while len(one.completion) < 3:
        running.step()
    model.load_state_dict(other.state_dict())
    running.use_weights_of(7)
    drain(running)
    assert one.versions == [0] * 3 + [7] * 5
    # What follows is what the new model says of the same tokens.
    ids = torch.tensor([[*one.prompt, *one.completion]])
    with torch.no_grad():
        logprobs = other(ids).logits[0].log_softmax(-1)
    start = len(one.prompt) - 1
    expected = [logprobs[start + i, one.completion[i]].item() for i in range(3, 8)]
    assert one.logprobs[3:] == pytest.approx(expected, abs=1e-5)
    # And a cache kept from before is not used.
    assert served(running, request(5)) == served(engine(other, end_id=-1), request(5))
