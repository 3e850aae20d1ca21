import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from rlgraph.llm.weights import (
    Weights,
    WeightsError,
    WeightStore,
    load_into,
    load_weights,
    pack,
    unpack,
)


def published(tmp_path: Path, state: dict[str, torch.Tensor]) -> Weights:
    return WeightStore(str(tmp_path)).publish(state, version=3, metrics={"loss": 0.5})


def assert_equal_states(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> None:
    assert set(a) == set(b)
    for name, tensor in a.items():
        assert b[name].dtype == tensor.dtype
        assert torch.equal(b[name], tensor), name


def test_a_handle_says_version_and_metrics_and_its_file_exists(tmp_path: Path) -> None:
    weights = published(tmp_path, {"w": torch.ones(2)})
    assert (weights.version, weights.metrics) == (3, {"loss": 0.5})
    assert Path(weights.path).parent == tmp_path
    assert Path(weights.path).is_file()


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(12.0).reshape(3, 4),
        torch.arange(12.0).reshape(3, 4).t(),
        torch.arange(12.0)[::2],
        torch.tensor(1.5),
        torch.randn(4, 4).to(torch.bfloat16),
        torch.zeros(0, 3),
        torch.tensor([1, -2], dtype=torch.int64),
        torch.tensor([True, False]),
    ],
    ids=["plain", "transposed", "strided", "0-d", "bf16", "empty", "int64", "bool"],
)
def test_a_tensor_comes_back_equal(tmp_path: Path, tensor: torch.Tensor) -> None:
    weights = published(tmp_path, {"w": tensor, "other": torch.ones(1)})
    assert_equal_states({"w": tensor, "other": torch.ones(1)}, load_weights(weights))


def test_tied_tensors_are_stored_once_and_come_back_under_both_names(tmp_path: Path) -> None:
    big = torch.randn(1000)
    tied = published(tmp_path, {"embedding": big, "head": big})
    assert Path(tied.path).stat().st_size < 2 * big.numel() * big.element_size()
    assert_equal_states({"embedding": big, "head": big}, load_weights(tied))


def test_different_views_of_one_storage_stay_different(tmp_path: Path) -> None:
    storage = torch.arange(6.0)
    state = {"left": storage[:3], "right": storage[3:], "whole": storage}
    assert_equal_states(state, load_weights(published(tmp_path, state)))


def test_two_empty_tensors_are_not_taken_for_tied(tmp_path: Path) -> None:
    state = {"a": torch.zeros(0), "b": torch.zeros(0)}
    weights = published(tmp_path, state)
    assert_equal_states(state, load_weights(weights))


def test_what_is_published_later_does_not_change_what_was_published_before(tmp_path: Path) -> None:
    store, tensor = WeightStore(str(tmp_path)), torch.zeros(2)
    before = store.publish({"w": tensor}, version=0, metrics={})
    tensor += 1
    after = store.publish({"w": tensor}, version=0, metrics={})
    assert before.path != after.path
    assert load_weights(before)["w"].tolist() == [0.0, 0.0]
    assert load_weights(after)["w"].tolist() == [1.0, 1.0]


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    store = WeightStore(str(tmp_path), keep=2)
    handles = [store.publish({"w": torch.tensor(float(v))}, v, {}) for v in range(4)]
    assert [Path(h.path).exists() for h in handles] == [False, False, True, True]


def test_publishing_the_same_again_counts_as_one(tmp_path: Path) -> None:
    store = WeightStore(str(tmp_path), keep=2)
    first = store.publish({"w": torch.zeros(1)}, 0, {})
    second = store.publish({"w": torch.ones(1)}, 1, {})
    assert store.publish({"w": torch.zeros(1)}, 0, {}) == first
    assert all(Path(h.path).exists() for h in (first, second))


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "v000000-other.safetensors"
    other.write_bytes(b"not ours")
    store = WeightStore(str(tmp_path), keep=1)
    for version in range(3):
        store.publish({"w": torch.tensor(version)}, version, {})
    assert other.read_bytes() == b"not ours"


def test_keep_below_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="keep must be >= 1, got 0"):
        WeightStore(str(tmp_path), keep=0)


def test_no_partial_file_stays(tmp_path: Path) -> None:
    published(tmp_path, {"w": torch.ones(1)})
    assert [p.suffix for p in tmp_path.iterdir()] == [".safetensors"]


def test_weights_that_were_deleted_are_an_error_that_says_what_to_raise(tmp_path: Path) -> None:
    gone = Weights(path=str(tmp_path / "gone.safetensors"), version=1)
    with pytest.raises(WeightsError, match=r"does not exist.*raise keep_weights"):
        load_weights(gone)


def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    weights = published(tmp_path, {"w": torch.ones(100)})
    Path(weights.path).write_bytes(Path(weights.path).read_bytes()[:50])
    with pytest.raises(WeightsError, match=re.escape(repr(weights.path)) + " is no readable"):
        load_weights(weights)


@pytest.mark.parametrize(
    "entry",
    [
        "{",
        "null",
        "[]",
        "1",
        '{"aliases": []}',
        '{"aliases": {"b": "gone"}}',
        '{"aliases": {"b": []}}',
    ],
)
def test_a_damaged_entry_in_the_metadata_is_an_error_that_names_the_file(
    tmp_path: Path, entry: str
) -> None:
    path = str(tmp_path / "damaged.safetensors")
    save_file({"w": torch.ones(2)}, path, metadata={"rlgraph": entry})
    with pytest.raises(WeightsError, match=re.escape(repr(path)) + " is damaged"):
        load_weights(Weights(path=path, version=0))


def test_a_directory_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=re.escape(repr(str(tmp_path))) + " is no readable"):
        load_weights(Weights(path=str(tmp_path), version=0))


def test_a_plain_safetensors_file_loads_too(tmp_path: Path) -> None:
    path = str(tmp_path / "plain.safetensors")
    save_file({"w": torch.ones(2)}, path)
    assert_equal_states({"w": torch.ones(2)}, load_weights(Weights(path=path, version=0)))


def test_weights_are_copied_into_a_model(tmp_path: Path) -> None:
    source, target = torch.nn.Linear(2, 3), torch.nn.Linear(2, 3)
    load_into(target, published(tmp_path, source.state_dict()))
    assert_equal_states(source.state_dict(), target.state_dict())


def test_every_name_and_shape_that_does_not_fit_is_named_and_nothing_is_copied(
    tmp_path: Path,
) -> None:
    model = torch.nn.Linear(2, 3)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    weights = published(tmp_path, {"weight": torch.zeros(9), "biass": torch.zeros(3)})
    with pytest.raises(WeightsError) as caught:
        load_into(model, weights)
    message = str(caught.value)
    assert "missing 'bias'; did you mean 'biass'?" in message
    assert "extra 'biass'; did you mean 'bias'?" in message
    assert "'weight' has shape (9,), the model wants (3, 2)" in message
    assert_equal_states(before, model.state_dict())


def test_equal_weights_are_equal_files(tmp_path: Path) -> None:
    shared = torch.ones(1)
    state = {"a": shared, "b": shared, "c": torch.zeros(2)}
    assert len({pack(state, {"version": 3, "other": 1}) for _ in range(20)}) == 1


def test_the_file_says_its_version(tmp_path: Path) -> None:
    assert unpack(published(tmp_path, {"a": torch.ones(1)}).path)[1] == {"version": 3}
