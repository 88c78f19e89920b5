"""`hybrid run --config FILE`: what a file says is what the command line would say, or one line that names the place."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.cli._configured import NOT_KEPT, NOT_VARIED, options_of, variants_of
from hybrid.cli._option_types import AddressType, Amount, Device, OneOf
from hybrid.cli._run_options import config_of
from hybrid.cli.run import command as run_command
from hybrid.config import RunConfig
from hybrid.core.errors import UsageError
from hybrid.log.manifest import seal_of
from tests.ended import Command, Words
from tests.tables import cases

FULL = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["FULL"]


def context(*words: object) -> click.Context:
    return run_command.make_context("run", list(map(str, words)))


def config(*words: object) -> RunConfig:
    return config_of(context(*words).params)


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_the_command_line_wins(tmp_path: Path) -> None:
    file = written(tmp_path / "run.yaml", FULL)
    found = config("--config", file, "mvp_bench", "--max-turns", 5, "--solver", "caption", "--setting", "hints=off")
    assert (found.benchmark, found.limits.turns, found.solvers) == ("mvp_bench", 5, ("caption",))
    # Of a mapping only the keys that are given again.
    assert (found.settings, found.samples, found.limits.tool_calls) == ({"hints": "off"}, 2, 3)


@pytest.mark.parametrize(
    ("text", "told"), [*cases(__file__, "misfits")[1], ("[" * 5000, "line 1: more than 20 values in each other")]
)
def test_what_does_not_fit_is_one_line_with_its_place(command: Command, tmp_path: Path, text: str, told: str) -> None:
    written(tmp_path / "run.yaml", text)
    ended = command("run", "blink", "--config", "run.yaml", code=2)
    assert f"run.yaml{'' if told[0] in 'iwv' else ', '}" in ended.err
    assert told in ended.err
    assert ended.err.count("\n") == 1


def test_a_file_that_cannot_be_read(command: Command, tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"model: \xff\n")
    (tmp_path / "large.yaml").write_bytes(b"#" * 1_000_001)
    (tmp_path / "folder").mkdir()
    for name, told in {
        "absent.yaml": "No such file",
        "latin.yaml": "is not text in UTF-8",
        "large.yaml": "1,000,001 bytes are no configuration",
        "folder": "this folder is no run",
    }.items():
        ended = command("run", "blink", "--config", name)
        assert (ended.code, told in ended.err) == (2, True), ended.err


# The manifest as a configuration


def values() -> st.SearchStrategy[dict[str, Any]]:
    """Options of `hybrid run`, drawn from what each takes; of mappings and lists as they are in a file."""
    text = st.text(st.characters(codec="utf-8", exclude_characters="\0=,", exclude_categories=["Cc"]), min_size=1)
    found: dict[str, st.SearchStrategy[Any]] = {}
    for option in run_command.params:
        key = option.opts[0].removeprefix("--")
        if isinstance(option, click.Argument) or key in NOT_KEPT | {"prompts", "tools", "path"}:
            continue
        found[key] = one_of(option, text)
    found |= {"model": text.filter(lambda word: not word.startswith(("replay:", "embedded"))), "tools": text}
    found["model-arg"] = st.fixed_dictionaries(
        {"price": st.just("1/2")}, optional={"temperature": st.sampled_from(["null", "0.5"]), "top_p": st.just("0.9")}
    )
    found["setting"] = st.dictionaries(st.sampled_from(["hints", "set", "style"]), text, max_size=2)
    found["wait-for-server"] = found["batch-wait"] = st.sampled_from(["90m", "2h"])
    found["keep-pictures"] = st.sampled_from(["all", "latest", "asked", "3"])
    found["task"] = st.lists(text.map(str.strip).filter(bool), min_size=1, max_size=2)
    found["weights"] = st.dictionaries(st.sampled_from(["ocr", "depth"]), text, max_size=2)
    found["mcp-image"] = st.dictionaries(st.sampled_from(["a_look", "b"]), text, min_size=1, max_size=2)
    return st.fixed_dictionaries({name: found.pop(name) for name in ("model-arg",)}, optional=found)


def one_of(option: click.Parameter, text: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    if isinstance(option, click.Option) and option.is_flag:
        return st.just(True)
    kind: Any = option.type
    if isinstance(kind, click.Choice):
        one: st.SearchStrategy[Any] = st.sampled_from(list(kind.choices))
    elif isinstance(kind, click.types.IntParamType):
        one = st.integers(1, 10**6)
    elif isinstance(kind, Device):
        one = st.sampled_from(["auto", "cpu", "cuda", "cuda:1"])
    elif isinstance(kind, click.types.FloatParamType | Amount):
        one = st.floats(0.001, 1e6)
    elif isinstance(kind, OneOf):
        one = st.sampled_from(["mllm", "specialist", "controller"])
    elif isinstance(kind, AddressType):
        one = st.sampled_from(["http://127.0.0.1:8000/v1", "https://host/v1"])
    elif option.name in ("wait_for_server", "batch_wait"):
        one = st.sampled_from(["45s", "90m", "2h"])
    else:
        one = text
    return st.lists(one, min_size=1, max_size=2) if isinstance(option, click.Option) and option.multiple else one


def words_of(options: Mapping[str, Any]) -> list[str]:
    words = []
    for key, value in options.items():
        if isinstance(value, dict):
            words += [f"--{key}={name}={part}" for name, part in value.items()]
        elif value is True:
            words.append(f"--{key}")
        else:
            words += [f"--{key}={one}" for one in (value if isinstance(value, list) else [value])]
    return words


def manifest(path: Path, options: Mapping[str, Any]) -> Path:
    content = {"format": 2, "identity": {"benchmark": "blink", "split": "val"}, "solvers": {}, "options": options}
    return written(path, json.dumps({**content, "sha256": seal_of(content)}))


@settings(max_examples=50)
@given(options=values())
def test_the_manifest_of_a_run_derives_its_configuration_again(tmp_path: Path, options: dict[str, Any]) -> None:
    first = context("blink", *words_of(options), "--out", tmp_path)
    kept = options_of(first)
    again = context("--config", manifest(tmp_path / "manifest.json", kept))
    assert replace(config_of(first.params), out=None) == config_of(again.params)
    assert options_of(again) == kept
    assert "out" not in kept


def test_a_run_and_its_manifest_share_their_folder(
    command: Command, blink: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [*blink[:-2], "--solver", "mllm", "--limit", "2", "--max-turns", "3"]
    first = json.loads(command("run", *words, "--json").out)
    monkeypatch.setenv("HYBRID_DEVICE", "cpu")
    told = json.loads(Path(first["run"], "manifest.json").read_text())["options"]
    assert told["limit"] == 2
    assert told["solver"] == ["mllm"]
    assert not told.keys() & NOT_KEPT
    assert "device" not in told
    for given_back in (first["run"], Path(first["run"], "manifest.json")):
        assert json.loads(command("run", "--config", given_back, "--json").out) == first
    saved = written(Path("saved.json"), Path(first["run"], "manifest.json").read_text())
    other = json.loads(command("run", "--config", saved, "--max-turns", "4", "--dry-run", "--json").out)
    assert other["run"] != first["run"]


def test_a_manifest_without_options_or_with_a_secret_says_so(tmp_path: Path) -> None:
    file = manifest(tmp_path / "manifest.json", {"base-url": "http://u:[redacted]@host/v1"})
    with pytest.raises(UsageError, match="base-url held a secret"):
        context("--config", file)
    content = json.loads(file.read_text())
    del content["options"]
    written(file, json.dumps({**content, "sha256": seal_of(content)}))
    with pytest.raises(UsageError, match="tells no options"):
        context("--config", file)


@pytest.mark.parametrize(*cases(__file__, "test_a_run_that_is_given_back_asks_the_same_commit"))
def test_a_run_that_is_given_back_asks_the_same_commit(
    tmp_path: Path, told: dict[str, Any], origin: Any, data: str
) -> None:
    file = manifest(tmp_path / "manifest.json", {"benchmark": "blink", **told})
    content = json.loads(file.read_text())
    content["identity"]["data"] = origin
    written(file, json.dumps({**content, "sha256": seal_of(content)}))
    assert config("--config", file).data == data
    assert config("--config", file, "--data", "hub@other").data == "hub@other"


# The environment


def test_a_server_is_asked_for_models_of_its_provider_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HYBRID_BASE_URL", "http://h/v1")
    # Without HYBRID_MODEL it is for every server that speaks OpenAI's API: nothing goes to OpenAI unasked.
    assert config("blink", "--model", "openai:a").model_settings.base_url == "http://h/v1"
    assert config("blink", "--model", "openai:a", "--base-url", "http://i/v1").model_settings.base_url == "http://i/v1"
    assert config("blink", "--model", "embedded").model_settings.base_url is None
    assert config("blink").model_settings.base_url is None
    assert not capsys.readouterr().err
    assert config("blink", "--model", "anthropic:c").model_settings.base_url is None
    assert "HYBRID_BASE_URL is for models of openai and not used for anthropic:c" in capsys.readouterr().err
    monkeypatch.setenv("HYBRID_MODEL", "openai:a")
    servers = {model: config("blink", "--model", model).model_settings.base_url for model in ("openai:b", "other:c")}
    assert servers == {"openai:b": "http://h/v1", "other:c": None}


def test_the_second_model_and_a_judge_are_asked_at_the_server_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HYBRID_BASE_URL", "http://h/v1")
    words = ("blink", "--model", "embedded", "--images", "caption", "--setting", "caption-model=openai:c")
    second = config(*words).captioner_settings
    assert second.base_url == "http://h/v1"
    second = config(*words, "--setting", "caption-url=http://i/v1").captioner_settings
    assert second.base_url == "http://i/v1"


# Several runs


def test_lists_make_a_run_for_each_combination(tmp_path: Path) -> None:
    text = (
        "benchmark: blink\nsetting: {hints: on}\nimages: [separate, concat]\n"
        "matrix:\n  solver: [mllm, specialist]\n  model: [openai:a, hf:b/c]\n  setting: [{hints: off}, {set: x}]\n"
        "  trust: [null]\n  rotate: [true, false]\n  tools: [[depth, crop], none]\n"
    )
    found = variants_of(context("--config", written(tmp_path / "run.yaml", text)))
    assert len(found) == len({one.name for one in found}) == len({str(options_of(one.context)) for one in found}) == 32
    assert found[0].told == "images=separate, model=openai:a, setting=hints=off, rotate=on, tools=depth,crop"
    assert found[0].name == "separate_openai-a_hints=off_on_depth-crop"
    configs = [config_of(one.context.params) for one in found]
    assert {one.solvers for one in configs} == {("mllm", "specialist")}
    assert {json.dumps(one.settings) for one in configs} == {'{"hints": "off"}', '{"hints": "on", "set": "x"}'}
    assert {one.tools for one in configs} == {("depth", "crop"), ("none",)}
    # The command line decides: lists of what is typed there are gone.
    fewer = context("--config", tmp_path / "run.yaml", "--model", "openai:d", "--setting", "hints=on", "--rotate")
    assert len(variants_of(fewer)) == 2 * 2 * 2
    assert {config_of(one.context.params).model for one in variants_of(fewer)} == {"openai:d"}


def test_too_many_runs_are_refused(tmp_path: Path) -> None:
    file = written(tmp_path / "run.yaml", f"benchmark: blink\nmodel: {list(range(40))}\nseed: {list(range(40))}\n")
    with pytest.raises(UsageError, match="1600 runs; at most 1000"):
        context("--config", file)


def test_what_is_not_varied_is_an_option() -> None:
    assert NOT_VARIED - {"benchmark"} <= {word.removeprefix("--") for one in run_command.params for word in one.opts}
