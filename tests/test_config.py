"""Configuration: what is accepted, what is refused, and in which words."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlgraph.config import (
    above,
    differences,
    divides,
    load_config,
    override_help,
    to_yaml,
)
from rlgraph.errors import ConfigError, Problem


class Policy(enum.Enum):
    DROP = "drop"
    WINDOWED = "windowed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Optim:
    lr: float = 1e-3
    """Step size, unitless."""
    betas: tuple[float, float] = (0.9, 0.99)
    decay: dict[str, float] = field(default_factory=lambda: {"bias": 0.0})

    def problems(self) -> Iterator[Problem]:
        yield from above(self, "lr", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    greedy: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Eval:
    num_maps: int
    sampling: Sampling


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    name: str = "run"
    group_size: int = 16
    batch_size: int = 64
    policy: Policy = Policy.DROP
    device: Literal["cpu", "cuda", 0] = "cpu"
    out: Path = Path("runs")
    tags: list[str] = field(default_factory=list)
    seeds: Sequence[int] = ()
    limits: Mapping[str, int] = field(default_factory=dict)
    timeout_s: float | None = None
    optim: Optim = field(default_factory=Optim)
    eval: Eval | None = None

    def problems(self) -> Iterator[Problem]:
        yield from divides(self, "group_size", "batch_size")


@dataclass(kw_only=True)
class Required:
    path: str
    """Where the
    data is."""
    eval: Eval


def load(*overrides: str, files: Sequence[Path] = ()) -> Config:
    return load_config(Config, files=files, overrides=overrides)


def problems_of(
    *overrides: str, files: Sequence[Path] = (), schema: type = Config
) -> list[Problem]:
    with pytest.raises(ConfigError) as caught:
        load_config(schema, files=files, overrides=overrides)
    return list(caught.value.problems)


def written(folder: Path, text: str, name: str = "run.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


# What is accepted


def test_nothing_given_is_the_defaults() -> None:
    assert load() == Config()


def test_an_override_wins_over_files_and_a_later_file_over_an_earlier(tmp_path: Path) -> None:
    first = written(tmp_path, "group_size: 1\nbatch_size: 1\noptim: {lr: 1}", "1.yaml")
    second = written(tmp_path, "batch_size: 2\noptim:\n  lr: 2", "2.yaml")
    expected = Config(group_size=1, batch_size=2, optim=Optim(lr=3))
    assert load("optim.lr=3", files=[first, second]) == expected


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("optim.lr=1e-3", Config(optim=Optim(lr=0.001))),
        ("optim.lr=3", Config(optim=Optim(lr=3.0))),
        ("timeout_s=.inf", Config(timeout_s=float("inf"))),
        ("timeout_s=null", Config(timeout_s=None)),
        ("optim.betas=[0, 1e-1]", Config(optim=Optim(betas=(0.0, 0.1)))),
        ("optim.decay.head=1", Config(optim=Optim(decay={"bias": 0.0, "head": 1.0}))),
        ("limits={a.b: 1}", Config(limits={"a.b": 1})),
        ("seeds=[1, 2]", Config(seeds=(1, 2))),
        ("tags=[no, 1.10]", Config(tags=["no", "1.10"])),
        ("policy=windowed", Config(policy=Policy.WINDOWED)),
        ("policy=WINDOWED", Config(policy=Policy.WINDOWED)),
        ("device=0", Config(device=0)),
        ("out=/tmp/x y", Config(out=Path("/tmp/x y"))),
        ("name=", Config(name="")),
        ("name=a: b # c = d", Config(name="a: b # c = d")),
        ("name='null'", Config(name="null")),
        ("name=${policy}-${optim.lr}", Config(name="drop-0.001")),
        (r"name=\${policy}", Config(name="${policy}")),
        ("name=???", Config()),
        ("eval.num_maps=4", Config(eval=Eval(num_maps=4, sampling=Sampling()))),
        (
            "eval={num_maps: 4, sampling: {greedy: off}}",
            Config(eval=Eval(num_maps=4, sampling=Sampling(greedy=False))),
        ),
        ("eval=null", Config()),
    ],
)
def test_an_override_is_read_by_the_type_of_its_field(override: str, expected: Config) -> None:
    assert load(override) == expected


def test_a_file_keeps_text_as_it_is_written(tmp_path: Path) -> None:
    file = written(tmp_path, "name: 010\ntags: [yes, 1.10, 2020-01-01]")
    assert load(files=[file]) == Config(name="010", tags=["yes", "1.10", "2020-01-01"])


def test_a_mapping_in_a_file_replaces_the_default(tmp_path: Path) -> None:
    file = written(tmp_path, "optim: {decay: {head: 1}}")
    assert load(files=[file]) == Config(optim=Optim(decay={"head": 1.0}))


def test_an_interpolation_may_name_a_list(tmp_path: Path) -> None:
    file = written(tmp_path, "seeds: ['${group_size}', 2]")
    assert load(files=[file]) == Config(seeds=(16, 2))


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    assert load(files=[written(tmp_path, "# nothing\n")]) == Config()


def test_sections_may_be_required_and_not_frozen() -> None:
    loaded = load_config(Required, overrides=["path=x", "eval.num_maps=1"])
    assert loaded == Required(path="x", eval=Eval(num_maps=1, sampling=Sampling()))


# What is refused (P11)

KNOWN = ", ".join(Config.__dataclass_fields__)


@pytest.mark.parametrize(
    ("override", "what", "mend"),
    [
        ("lr=1", "unknown key 'lr'", f"known here: {KNOWN}; did you mean 'optim.lr'?"),
        ("lrr=1", "unknown key 'lrr'", f"known here: {KNOWN}; did you mean 'optim.lr'?"),
        ("optm.lr=1", "unknown key 'optm'", f"known here: {KNOWN}; did you mean 'optim'?"),
        ("zzz=1", "unknown key 'zzz'", f"known here: {KNOWN}"),
        (
            "optim.betsa=[1]",
            "unknown key 'optim.betsa'",
            "known here: lr, betas, decay; did you mean 'optim.betas'?",
        ),
        ("lr", "the override has no '='", "write 'lr=VALUE'"),
        ("=1", "the key '' of the override has an empty part", "write section.key=VALUE"),
        ("--name=x", "an override starts with a dash", "leave the dashes out: 'name=x'"),
        (
            "group_size=1.5",
            "group_size: expected a whole number, got '1.5'",
            "give a whole number",
        ),
        (
            "group_size=true",
            "group_size: expected a whole number, got 'true'",
            "give a whole number",
        ),
        ("group_size=null", "group_size: expected a whole number, got null", "give a whole number"),
        ("optim.lr=fast", "optim.lr: expected a number, got 'fast'", "give a number"),
        ("optim.lr.x=1", "optim.lr: expected a number, got {'x': '1'}", "give a number"),
        ("timeout_s=x", "timeout_s: expected a number, got 'x'", "give a number"),
        (
            "eval={num_maps: 1, sampling: {greedy: 2}}",
            "eval.sampling.greedy: expected true or false, got '2'",
            "give true or false",
        ),
        ("tags=a", "tags: expected a list, each item text, got 'a'", "give a list, each item text"),
        ("seeds=[1, x]", "seeds.1: expected a whole number, got 'x'", "give a whole number"),
        (
            "optim.betas=[1]",
            "optim.betas: expected a list of 2: a number, a number, got ['1']",
            "give a list of 2: a number, a number",
        ),
        (
            "limits=[1]",
            "limits: expected a mapping, each value a whole number, got ['1']",
            "give a mapping, each value a whole number",
        ),
        ("limits.a=x", "limits.a: expected a whole number, got 'x'", "give a whole number"),
        (
            "policy=dorp",
            "policy: expected one of 'drop', 'windowed', got 'dorp'",
            "give one of 'drop', 'windowed'; did you mean 'drop'?",
        ),
        (
            "device=tpu",
            "device: expected one of 'cpu', 'cuda', 0, got 'tpu'",
            "give one of 'cpu', 'cuda', 0; did you mean 'cpu'?",
        ),
        (
            "device=[cpu]",
            "device: expected one of 'cpu', 'cuda', 0, got ['cpu']",
            "give one of 'cpu', 'cuda', 0",
        ),
        (
            "optim=sgd",
            "optim: expected a section, got 'sgd'",
            "write keys under it: lr, betas, decay",
        ),
        (
            "optim=null",
            "optim: expected a section, got null",
            "write keys under it: lr, betas, decay",
        ),
        (
            "tags=[a",
            "the value is not YAML: expected ',' or ']', but got '<stream end>'",
            "close the brackets or quotes, or quote it all: '[a'",
        ),
        (
            "name=${nmae}",
            "name: Interpolation key 'nmae' not found",
            r"give the full key of a setting, \${ for the characters themselves",
        ),
        (
            "name=${",
            "not an interpolation: no viable alternative at input '${'",
            r"write ${section.key} to use another setting, \${ for the characters themselves",
        ),
    ],
)
def test_a_wrong_override_is_named_with_its_remedy(override: str, what: str, mend: str) -> None:
    expected = Problem(what=what, where=f"override {override!r}", mend=mend)
    assert problems_of(override) == [expected]


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("name: x\noptim:\n  lr:\n    fast", 3, "optim.lr: expected a number, got 'fast'"),
        ("\noptim:\n  rl: 1", 3, "unknown key 'optim.rl'"),
        ("seeds:\n- 1\n- x", 3, "seeds.1: expected a whole number, got 'x'"),
        ("name: x\ntags: [a\nout: b", 3, "not YAML: expected ',' or ']', but got ':'"),
        ("name: x\nout: \0", 2, "not YAML: the character '\\x00' is not allowed"),
        ("[" * 500, 1, "not YAML: nested too deep"),
        ("name: x\nname: y", 2, "the key 'name' stands twice"),
        ("? [name]\n: x", 1, "a key is not plain text"),
        ("\ntags: &a [*a]", 2, "an alias holds itself"),
        ("- name", 1, "the file holds no settings"),
        (
            "name: ok\ntags: [x, '${']",
            2,
            "not an interpolation: no viable alternative at input '${'",
        ),
    ],
)
def test_a_wrong_file_is_named_with_its_line(
    tmp_path: Path, text: str, line: int, what: str
) -> None:
    file = written(tmp_path, text)
    problem = problems_of(files=[file])[0]
    assert (problem.what, problem.where) == (what, f"{file}:{line}")


def test_files_that_cannot_be_read_are_all_named(tmp_path: Path) -> None:
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"name: ok\nout: caf\xe9")
    missing = tmp_path / "missing.yaml"
    assert problems_of(files=[missing, tmp_path, latin]) == [
        Problem(
            what=f"cannot read the file: {reason}",
            where=str(path),
            mend="check the path and its rights",
        )
        for path, reason in [(missing, "No such file or directory"), (tmp_path, "Is a directory")]
    ] + [Problem(what="the file is not UTF-8 text", where=f"{latin}:2", mend="save it as UTF-8")]


def test_a_file_name_that_is_no_text_can_still_be_printed() -> None:
    (problem,) = problems_of(files=[Path("caf\udce9.yaml")])
    assert problem.where == "caf\\udce9.yaml"


def test_a_key_that_is_no_text_can_still_be_printed() -> None:
    (problem,) = problems_of("limits.\ud800=x")
    assert problem.what == "limits.\\ud800: expected a whole number, got 'x'"


def test_what_is_required_and_absent_is_named_at_every_depth() -> None:
    assert problems_of("path=???", schema=Required) == [
        Problem(
            what="path: required, and given nowhere",
            where="override 'path=???'",
            mend="add path=VALUE (text) or a line of a YAML file",
        ),
        Problem(
            what="eval.num_maps: required, and given nowhere",
            where="eval.num_maps",
            mend="add eval.num_maps=VALUE (a whole number) or a line of a YAML file",
        ),
    ]


def test_everything_wrong_is_one_error_with_the_rules_of_sound_sections() -> None:
    with pytest.raises(ConfigError) as caught:
        load("lr", "optim.lr=-1", "batch_size=60", "nmae=x")
    assert str(caught.value) == (
        "Config: 4 problems in the configuration\n"
        "  1. the override has no '='\n"
        "    at override 'lr'\n"
        "    to mend: write 'lr=VALUE'\n"
        "  2. unknown key 'nmae'\n"
        "    at override 'nmae=x'\n"
        f"    to mend: known here: {KNOWN}; did you mean 'name'?\n"
        "  3. lr=-1.0 is not above 0\n"
        "    at optim.lr\n"
        "    to mend: give a number above 0\n"
        "  4. batch_size=60 is not a multiple of group_size=16: 60 = 3 x 16 + 12\n"
        "    at batch_size\n"
        "    to mend: use 48 or 64"
    )


def test_a_section_with_a_wrong_value_is_not_asked_for_its_rules() -> None:
    assert len(problems_of("batch_size=60", "group_size=x")) == 1


def test_a_value_error_of_the_schema_itself_is_a_problem() -> None:
    assert problems_of("odd=true", schema=Picky) == [
        Problem(what="odd is not even", where="Picky", mend="change the settings it names")
    ]


@dataclass(frozen=True, kw_only=True)
class Picky:
    odd: bool = False

    def __post_init__(self) -> None:
        if self.odd:
            raise ValueError("odd is not even")


@dataclass(frozen=True, kw_only=True)
class Unsupported:
    either: int | str = 0


def test_a_schema_with_a_type_that_no_setting_can_have_is_a_programming_error() -> None:
    with pytest.raises(TypeError, match=r"cannot have the type int \| str"):
        load_config(Unsupported)


# Writing, comparing, explaining


odd_text = st.text(
    st.characters() | st.sampled_from("\ud800\\${}:#\0\r\n\x85\u2028\ufeff'\" ?~")
).filter(lambda text: text != "???")
configs = st.builds(
    Config,
    name=odd_text | st.sampled_from(["null", "yes", "1e-3", "010", "~", "\U0001f600", "\u202eabc"]),
    group_size=st.just(1),
    batch_size=st.integers(),
    policy=st.sampled_from(Policy),
    device=st.sampled_from(["cpu", "cuda", 0]),
    out=st.sampled_from(["a b", "../x", "/"]).map(Path),
    tags=st.lists(odd_text),
    seeds=st.lists(st.integers()).map(tuple),
    limits=st.dictionaries(odd_text, st.integers()),
    timeout_s=st.none() | st.floats(allow_nan=False),
    optim=st.builds(Optim, lr=st.floats(min_value=1e-300, exclude_min=True)),
    eval=st.none() | st.builds(Eval, num_maps=st.integers(), sampling=st.builds(Sampling)),
)


@settings(deadline=None, max_examples=50)
@given(config=configs)
def test_a_written_configuration_loads_as_an_equal_one(
    config: Config, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = written(tmp_path_factory.getbasetemp(), to_yaml(config))
    assert load(files=[file]) == config


def test_a_very_long_line_survives(tmp_path: Path) -> None:
    config = Config(name="\u05d0 " * 10_000)
    assert load(files=[written(tmp_path, to_yaml(config))]) == config


def test_differences_name_each_key_with_both_values() -> None:
    other = Config(
        name="b", optim=Optim(decay={"head": 1.0}), eval=Eval(num_maps=2, sampling=Sampling())
    )
    assert differences(Config(), other) == [
        "name: 'run' -> 'b'",
        "optim.decay.bias: 0.0 -> not set",
        "optim.decay.head: not set -> 1.0",
        "eval: null -> {'num_maps': 2, 'sampling': {'greedy': True}}",
    ]


def test_equal_configurations_do_not_differ() -> None:
    assert differences(Config(), Config()) == []


def test_help_lists_key_type_default_and_doc() -> None:
    assert override_help(Required) == (
        "key                   type            default     what it is\n"
        "path                  text            (required)  Where the data is.\n"
        "eval.num_maps         a whole number  (required)\n"
        "eval.sampling.greedy  true or false   True\n"
    )


def test_help_says_in_words_what_each_type_holds() -> None:
    types = [line[22:60].rstrip() for line in override_help(Config).splitlines()[1:12]]
    assert types == [
        "text",
        "a whole number",
        "a whole number",
        "one of 'drop', 'windowed'",
        "one of 'cpu', 'cuda', 0",
        "a path",
        "a list, each item text",
        "a list, each item a whole number",
        "a mapping, each value a whole number",
        "a number or null",
        "a number",
    ]


def test_help_of_a_schema_without_source_has_no_docs() -> None:
    made: dict[str, Any] = {}
    exec("from dataclasses import dataclass\n@dataclass\nclass Made:\n    a: int\n    'doc'", made)
    assert override_help(made["Made"]) == (
        "key  type            default     what it is\na    a whole number  (required)\n"
    )
