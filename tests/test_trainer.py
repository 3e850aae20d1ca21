import asyncio
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from rlgraph.errors import ConfigError
from rlgraph.llm.generator import Generator, GeneratorConfig
from rlgraph.llm.models import ModelConfig, load_model
from rlgraph.llm.sampling import sampling_logprobs
from rlgraph.llm.token_logprobs import micro_batches
from rlgraph.llm.trainer import Trainer, TrainerConfig, TrainingError
from rlgraph.llm.weights import Weights, WeightsError, load_weights, pack
from rlgraph.ports import Latest
from rlgraph.rl.records import Prompt, Sample, Trajectory
from rlgraph.rl.samples import to_sample

SMALL = ModelConfig(
    context_length=128, hidden_size=32, num_layers=1, num_heads=2, intermediate_size=64
)


def trainer(directory: Path, **changes: Any) -> Trainer:
    settings = {"model": SMALL, "weights_dir": str(directory / "weights"), "warmup_steps": 0}
    made = Trainer(TrainerConfig(**(settings | changes)))
    made.setup("cpu")
    return made


def sample(name: int, **changes: Any) -> Sample:
    """Make a sample of 4 to 40 tokens that its name determines, near the initial policy."""
    rng = random.Random(name)
    length = rng.randrange(4, 41)
    mask = (False, *(rng.random() < 0.5 for _ in range(length - 2)), True)
    settings: dict[str, Any] = {
        "token_ids": tuple(rng.randrange(1, 300) for _ in range(length)),
        "loss_mask": mask,
        "behavior_logprobs": tuple(-6.0 - rng.random() if trained else 0.0 for trained in mask),
        "versions": tuple(0 if trained else -1 for trained in mask),
        "advantage": rng.choice([-1.0, 0.5, 1.0]),
        "reward": 1.0,
        "trajectory_id": f"t{name}",
        "prompt_id": f"p{name}",
    }
    return Sample(**(settings | changes))


def batch(size: int = 12) -> tuple[Sample, ...]:
    return tuple(sample(name) for name in range(size))


def furthest(a: Weights, b: Weights) -> float:
    left, right = load_weights(a), load_weights(b)
    return max((left[name] - right[name]).abs().max().item() for name in left)


def test_a_step_publishes_the_next_version_with_what_it_measured(tmp_path: Path) -> None:
    made = trainer(tmp_path)
    before, after = made.weights(), made.step(batch())
    assert (before.version, before.metrics) == (0, {})
    assert after.version == 1
    assert furthest(before, after) > 0.0
    assert set(after.metrics) == {
        "loss",
        "grad_norm",
        "entropy",
        "num_tokens",
        "num_computed_tokens",
        "num_micro_batches",
        "clip_fraction",
        "kl_to_behavior",
        "learning_rate",
        "reward",
        "num_samples",
    }
    assert all(math.isfinite(value) for value in after.metrics.values())
    assert made.weights() == after


def test_micro_batches_change_nothing(tmp_path: Path) -> None:
    whole, split = trainer(tmp_path / "a"), trainer(tmp_path / "b", max_micro_batch_tokens=50)
    for _ in range(3):
        a, b = whole.step(batch()), split.step(batch())
        assert a.metrics["num_micro_batches"] == 1.0
        assert b.metrics["num_micro_batches"] > 4.0
        assert a.metrics["loss"] == pytest.approx(b.metrics["loss"], abs=1e-6)
        assert a.metrics["grad_norm"] == pytest.approx(b.metrics["grad_norm"], abs=1e-5)


def test_the_gradient_is_the_same_however_the_batch_is_split(tmp_path: Path) -> None:
    gradients = []
    for folder, tokens in (("a", 10_000), ("b", 50), ("c", 1)):
        made = trainer(tmp_path / folder, max_micro_batch_tokens=tokens, max_grad_norm=1e9)
        made.step(batch())
        gradients.append([p.grad.clone() for p in made._model.parameters() if p.grad is not None])
    for other in gradients[1:]:
        for one, same in zip(gradients[0], other, strict=True):
            assert torch.allclose(one, same, rtol=0.0, atol=1e-6)


def test_the_order_of_the_samples_changes_no_bit(tmp_path: Path) -> None:
    a = trainer(tmp_path / "a", max_micro_batch_tokens=50).step(batch())
    b = trainer(tmp_path / "b", max_micro_batch_tokens=50).step(batch()[::-1])
    assert furthest(a, b) == 0.0


def test_a_sample_without_advantage_counts_as_tokens_and_is_not_computed(tmp_path: Path) -> None:
    idle = tuple(replace(sample(name), advantage=0.0) for name in range(12, 20))
    few, many = trainer(tmp_path / "a").step(batch()), trainer(tmp_path / "b").step(batch() + idle)
    ratio = few.metrics["num_tokens"] / many.metrics["num_tokens"]
    assert many.metrics["num_computed_tokens"] == few.metrics["num_tokens"]
    assert many.metrics["loss"] == pytest.approx(few.metrics["loss"] * ratio, abs=1e-6)


def test_a_batch_without_any_advantage_leaves_the_weights_as_they_are(tmp_path: Path) -> None:
    made = trainer(tmp_path)
    before = made.weights()
    after = made.step(tuple(replace(one, advantage=0.0) for one in batch()))
    assert after.version == 1
    assert furthest(before, after) == 0.0
    assert (after.metrics["loss"], after.metrics["grad_norm"]) == (0.0, 0.0)


def test_tokens_with_an_advantage_become_likelier(tmp_path: Path) -> None:
    made = trainer(tmp_path)
    liked = replace(sample(1), advantage=1.0, behavior_logprobs=(-9.0,) * len(sample(1).token_ids))

    def logprob() -> float:
        rows = micro_batches([liked], 1000, torch.device("cpu"))[0]
        with torch.no_grad():
            return made._policy(rows.token_ids, rows.mask)[0].sum().item()  # type: ignore[no-any-return]

    liked = replace(liked, behavior_logprobs=trained_logprobs(made, liked))
    before = logprob()
    made.step((liked,))
    assert logprob() > before


def trained_logprobs(made: Trainer, one: Sample) -> tuple[float, ...]:
    rows = micro_batches([one], 1000, torch.device("cpu"))[0]
    with torch.no_grad():
        logprobs, _ = made._policy(rows.token_ids, rows.mask)
    return tuple(logprobs[0].tolist())


def test_logprobs_and_entropy_are_those_of_the_whole_forward_pass(tmp_path: Path) -> None:
    made = trainer(tmp_path, temperature=0.5)
    rows = micro_batches(batch(), 10_000, torch.device("cpu"))[0]
    with torch.no_grad():
        logprobs, entropies = made._policy(rows.token_ids, rows.mask)
        whole = sampling_logprobs(load_model(SMALL)(rows.token_ids).logits, 0.5)[:, :-1]
    taken = whole.gather(2, rows.token_ids[:, 1:, None])[:, :, 0]
    entropy = -(whole.exp() * whole).sum(-1)
    mask = rows.mask[:, 1:]
    assert torch.allclose(logprobs[:, 1:], taken * mask, atol=1e-5)
    assert torch.allclose(entropies[:, 1:], entropy * mask, atol=1e-5)


def test_what_moved_too_far_is_counted_as_clipped(tmp_path: Path) -> None:
    one = sample(1)
    on_policy = trained_logprobs(trainer(tmp_path), one)
    mean_kl = {}
    for shift in (0.0, 1.0):
        old = tuple(
            lp - shift * trained for lp, trained in zip(on_policy, one.loss_mask, strict=True)
        )
        liked = replace(one, behavior_logprobs=old, advantage=1.0)
        metrics = trainer(tmp_path).step((liked,)).metrics
        assert metrics["clip_fraction"] == (1.0 if shift else 0.0)
        mean_kl[shift] = metrics["kl_to_behavior"]
    assert mean_kl == {0.0: 0.0, 1.0: pytest.approx(math.e - 2.0, abs=1e-5)}


def test_the_learning_rate_warms_up_and_stays(tmp_path: Path) -> None:
    made = trainer(tmp_path, warmup_steps=3, learning_rate=0.3)
    rates = [made.step(batch(2)).metrics["learning_rate"] for _ in range(5)]
    assert rates == pytest.approx([0.1, 0.2, 0.3, 0.3, 0.3])


@pytest.mark.parametrize("rows", [(), (replace(sample(1), loss_mask=(False,) * 12),)])
def test_a_batch_without_trained_tokens_is_an_error(tmp_path: Path, rows: tuple[Sample]) -> None:
    made = trainer(tmp_path)
    with pytest.raises(TrainingError, match="no token to train on"):
        made.step(rows)
    assert made.weights().version == 0


@pytest.mark.parametrize(
    "broken",
    [
        replace(sample(5), advantage=math.inf),
        replace(sample(5), advantage=math.nan),
        replace(sample(5), behavior_logprobs=(math.nan,) * len(sample(5).token_ids)),
    ],
)
def test_a_loss_that_is_not_finite_names_the_trajectory_and_makes_no_step(
    tmp_path: Path, broken: Sample
) -> None:
    made = trainer(tmp_path, max_micro_batch_tokens=50)
    before = made.weights()
    with pytest.raises(TrainingError, match=r"1 trajectories \('t5'\) is not finite"):
        made.step((*batch(5), broken))
    assert made.weights() == before
    # And nothing of the broken batch is left in the gradients.
    fresh = trainer(tmp_path / "fresh", max_micro_batch_tokens=50)
    assert furthest(made.step(batch()), fresh.step(batch())) == 0.0


def test_a_gradient_that_is_not_finite_names_the_batch_and_makes_no_step(tmp_path: Path) -> None:
    made = trainer(tmp_path)
    before = made.weights()
    huge = tuple(replace(one, advantage=1e38) for one in batch())
    with pytest.raises(TrainingError, match=r"12 trajectories \('t0', .* and 4 more\)"):
        made.step(huge)
    assert made.weights() == before


def test_imitation_teaches_the_tokens_and_leaves_version_and_optimizer(tmp_path: Path) -> None:
    made = trainer(tmp_path)
    shown = tuple(replace(one, advantage=0.0) for one in batch(4))
    measured = made.imitate([shown] * 20, learning_rate=1e-2)
    assert measured[-1]["loss"] < measured[0]["loss"] / 2
    assert made.weights().version == 0
    assert not made._optimizer.state_dict()["state"]


def test_training_goes_on_from_a_checkpoint_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    steady = trainer(tmp_path / "a", warmup_steps=5)
    for _ in range(2):
        steady.step(batch())
    steady.save(str(tmp_path / "saved"))
    resumed = trainer(tmp_path / "b", warmup_steps=5)
    resumed.load(str(tmp_path / "saved"))
    assert resumed.weights().version == 2
    for size in (3, 12):
        a, b = steady.step(batch(size)), resumed.step(batch(size))
        assert (a.version, a.metrics) == (b.version, b.metrics)
        assert furthest(a, b) == 0.0


def test_a_checkpoint_before_the_first_step_loads(tmp_path: Path) -> None:
    made = trainer(tmp_path)
    made.save(str(tmp_path))
    other = trainer(tmp_path, model=replace(SMALL, seed=8))
    other.load(str(tmp_path))
    assert other.weights() == made.weights()


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    trainer(tmp_path).save(str(tmp_path))
    wider = trainer(tmp_path, model=replace(SMALL, hidden_size=64))
    with pytest.raises(WeightsError, match=r"shape \(\d+, 32\), the model wants \(\d+, 64\)"):
        wider.load(str(tmp_path))


def test_a_file_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    made = trainer(tmp_path)
    Path(made.weights().path).rename(tmp_path / "trainer.safetensors")
    with pytest.raises(
        WeightsError, match=r"no trainer's state; give a directory of Trainer\.save"
    ):
        made.load(str(tmp_path))


def test_a_checkpoint_with_a_damaged_step_count_is_refused(tmp_path: Path) -> None:
    damaged = pack({"w": torch.ones(1)}, {"num_steps": None})  # type: ignore[dict-item]
    (tmp_path / "trainer.safetensors").write_bytes(damaged)
    with pytest.raises(WeightsError, match="no trainer's state"):
        trainer(tmp_path).load(str(tmp_path))


def test_a_missing_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="does not exist"):
        trainer(tmp_path).load(str(tmp_path / "nothing"))


def test_micro_batches_hold_every_sample_once_and_keep_to_the_budget() -> None:
    parts = micro_batches(batch(30), 100, torch.device("cpu"))
    names = sorted(one.trajectory_id for part in parts for one in part.samples)
    assert names == sorted(one.trajectory_id for one in batch(30))
    assert all(part.token_ids.numel() <= 100 for part in parts)


def test_a_sample_longer_than_the_budget_is_alone() -> None:
    parts = micro_batches(batch(6), 1, torch.device("cpu"))
    assert [len(part.samples) for part in parts] == [1] * 6


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_the_logprobs_of_the_generator_are_those_of_the_trainer(
    tmp_path: Path, temperature: float
) -> None:
    made = trainer(tmp_path, temperature=temperature, learning_rate=1e-2)
    speaker = Generator(GeneratorConfig(model=SMALL, temperature=temperature, num_slots=3))
    speaker.setup("cpu")

    async def talk(name: int, weights: Weights) -> Trajectory:
        trajectory = Trajectory(id=f"{weights.version}/{name}", prompt=Prompt(id="p"), reward=1.0)
        policy = Latest(name="policy", version=weights.version, value=weights)
        for turn in range(4):
            trajectory = replace(trajectory, observation=f"up:hole right:{(name + turn) % 9}")
            trajectory = await speaker.generate(trajectory, policy, seed=100 * name + turn)
        return trajectory

    async def talks(weights: Weights) -> list[Trajectory]:
        return await asyncio.gather(*(talk(name, weights) for name in range(6)))

    weights = made.weights()
    for _ in range(3):
        played = asyncio.run(talks(weights))
        rows = tuple(to_sample(t, advantage=(-1.0) ** i) for i, t in enumerate(played))
        for row in rows:
            assert trained_logprobs(made, row) == pytest.approx(row.behavior_logprobs, abs=1e-4)
        weights = made.step(rows)
        assert weights.metrics["kl_to_behavior"] < 1e-6


def test_wrong_settings_are_refused_and_named_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        Trainer(TrainerConfig(learning_rate=0.0, keep_weights=0, temperature=-1.0))
    assert [problem.where for problem in caught.value.problems] == [
        "learning_rate",
        "temperature",
        "keep_weights",
    ]


def test_setting_up_again_keeps_what_was_learnt(tmp_path: Path) -> None:
    learning = trainer(tmp_path)
    learnt = learning.step(batch())
    learning.setup("cpu")
    assert furthest(learning.weights(), learnt) == 0.0
