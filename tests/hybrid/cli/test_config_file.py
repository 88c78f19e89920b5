"""`hybrid run --config FILE`: a file has the effect of the command line, or one line names the place of the error."""

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

from hybrid.cli._configured import runs_of
from hybrid.cli._options import FieldOption
from hybrid.cli._run_config import config_of
from hybrid.cli.run import command as run_command
from hybrid.config import RunConfig
from hybrid.config.command_options import FIELDS
from hybrid.core.errors import UsageError
from hybrid.log.manifest import seal_of
from tests.finished_runs import Command, Words
from tests.tables import cases

FULL = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["FULL"]


def context(*words: object) -> click.Context:
    return run_command.make_context("run", list(map(str, words)))


def config(*words: object) -> RunConfig:
    return config_of(context(*words).params)


def write_file(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_the_command_line_wins(tmp_path: Path) -> None:
    file = write_file(tmp_path / "run.yaml", FULL)
    result = config("--config", file, "mvp_bench", "--max-turns", 5, "--solver", "caption", "--setting", "hints=off")
    assert (result.benchmark, result.limits.turns, result.solvers) == ("mvp_bench", 5, ("caption",))
    # In a mapping, only keys that are given again are replaced.
    assert (result.settings, result.samples, result.limits.tool_calls) == ({"hints": "off"}, 2, 3)


def test_weights_of_the_only_tool_that_loads_some_need_no_name(tmp_path: Path) -> None:
    for text in ("weights: DIR", "weights: {depth: DIR}"):
        file = write_file(tmp_path / "run.yaml", f"tools: [crop, depth]\n{text}\n")
        assert config("--config", file, "blink").service.weights == {"depth": "DIR"}
    file = write_file(tmp_path / "run.yaml", "weights: 3\n")
    with pytest.raises(UsageError, match=r"line 1: weights: 3: must be \[TOOL=\]DIR or a mapping"):
        context("--config", file, "blink")


@pytest.mark.usefixtures("tools_as_they_were")
def test_a_file_names_the_folder_of_its_own_solver(tmp_path: Path) -> None:
    (tmp_path / "mine" / "baselines").mkdir(parents=True)
    write_file(tmp_path / "mine" / "baselines" / "mine_alone.py", "from baselines.mllm import SOLVER\n")
    file = write_file(tmp_path / "run.yaml", f"solver: mine_alone\npath: {tmp_path / 'mine'}\n")
    assert config("--config", file, "blink").solvers == ("mine_alone",)


@pytest.mark.parametrize(
    ("text", "message"), [*cases(__file__, "misfits")[1], ("[" * 5000, "line 1: values are nested more than 20 deep")]
)
def test_what_does_not_fit_is_one_line_with_its_place(
    command: Command, tmp_path: Path, text: str, message: str
) -> None:
    write_file(tmp_path / "run.yaml", text)
    result = command("run", "blink", "--config", "run.yaml", code=2)
    assert f"run.yaml{'' if message[0] in 'iwv' else ', '}" in result.err
    assert message in result.err
    assert result.err.count("\n") == 1


def test_a_file_that_cannot_be_read(command: Command, tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"model: \xff\n")
    (tmp_path / "large.yaml").write_bytes(b"#" * 1_000_001)
    (tmp_path / "folder").mkdir()
    for name, value in {
        "absent.yaml": "No such file",
        "latin.yaml": "is not text in UTF-8",
        "large.yaml": "the file has 1,000,001 bytes; a configuration may have 1,000,000",
        "folder": "this folder is not a run",
    }.items():
        result = command("run", "blink", "--config", name)
        assert (result.code, value in result.err) == (2, True), result.err
        assert command("run", "--config", name, "--help", code=0).out.startswith("Usage: ")


# Tests of a manifest as a configuration file.

NOT_IN_MANIFEST = {field.option.long for field in FIELDS.values() if not field.option.in_manifest}


def values() -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy that draws options of `hybrid run`, with mappings and lists in the form that a file uses."""
    text = st.text(st.characters(codec="utf-8", exclude_characters="\0=,", exclude_categories=["Cc"]), min_size=1)
    results: dict[str, st.SearchStrategy[Any]] = {}
    for option in run_command.params:
        key = option.opts[0].removeprefix("--")
        if isinstance(option, click.Argument) or key in NOT_IN_MANIFEST | {"prompts", "tools", "path"}:
            continue
        results[key] = one_of(option, text)
    results |= {"model": text.filter(lambda word: not word.startswith(("replay:", "embedded"))), "tools": text}
    results["model-arg"] = st.fixed_dictionaries(
        {"price": st.just("1/2")}, optional={"temperature": st.sampled_from(["null", "0.5"]), "top_p": st.just("0.9")}
    )
    results["setting"] = st.dictionaries(st.sampled_from(["hints", "set", "style"]), text, max_size=2)
    results["wait-for-server"] = results["batch-wait"] = st.sampled_from(["90m", "2h"])
    results["keep-pictures"] = st.sampled_from(["all", "latest", "asked", "3"])
    results["task"] = st.lists(text.map(str.strip).filter(bool), min_size=1, max_size=2)
    results["weights"] = st.dictionaries(st.sampled_from(["ocr", "depth"]), text, max_size=2)
    results["server-arg"] = st.dictionaries(st.sampled_from(["max-model-len", "b"]), text, min_size=1, max_size=2)
    results["mcp-image"] = st.dictionaries(st.sampled_from(["a_look", "b"]), text, min_size=1, max_size=2)
    return st.fixed_dictionaries({name: results.pop(name) for name in ("model-arg",)}, optional=results)


def one_of(option: click.Parameter, text: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    if isinstance(option, click.Option) and option.is_flag:
        return st.just(True)
    kind: Any = option.type
    form = option.field.option.form if isinstance(option, FieldOption) else ""
    if isinstance(kind, click.Choice):
        item: st.SearchStrategy[Any] = st.sampled_from(list(kind.choices))
    elif isinstance(kind, click.types.IntParamType):
        item = st.integers(1, 10**6)
    elif form == "device":
        item = st.sampled_from(["auto", "cpu", "cuda", "cuda:1"])
    elif isinstance(kind, click.types.FloatParamType) or (
        isinstance(option, FieldOption) and option.field.type is float
    ):
        item = st.floats(0.001, 1e6)
    elif form == "solver":
        item = st.sampled_from(["mllm", "specialist", "controller"])
    elif form == "address":
        item = st.sampled_from(["http://127.0.0.1:8000/v1", "https://host/v1"])
    elif option.name in ("wait_for_server", "batch_wait"):
        item = st.sampled_from(["45s", "90m", "2h"])
    else:
        item = text
    return st.lists(item, min_size=1, max_size=2) if isinstance(option, click.Option) and option.multiple else item


def words_of(options: Mapping[str, Any]) -> list[str]:
    words = []
    for key, value in options.items():
        if isinstance(value, dict):
            words += [f"--{key}={name}={part}" for name, part in value.items()]
        elif value is True:
            words.append(f"--{key}")
        else:
            words += [f"--{key}={item}" for item in (value if isinstance(value, list) else [value])]
    return words


def manifest(path: Path, options: Mapping[str, Any]) -> Path:
    content = {"format": 2, "identity": {"benchmark": "blink", "split": "val"}, "solvers": {}, "options": options}
    return write_file(path, json.dumps({**content, "sha256": seal_of(content)}))


@pytest.mark.system
@settings(max_examples=50)
@given(options=values())
def test_the_manifest_of_a_run_derives_its_configuration_again(tmp_path: Path, options: dict[str, Any]) -> None:
    (first,) = runs_of(context("blink", *words_of(options), "--out", tmp_path))
    selected = first.recorded
    (second,) = runs_of(context("--config", manifest(tmp_path / "manifest.json", selected)))
    assert replace(config_of(first.values), out=None) == config_of(second.values)
    assert second.recorded == selected
    assert "out" not in selected


def test_a_run_and_its_manifest_share_their_folder(
    command: Command, blink: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [*blink[:-2], "--solver", "mllm", "--limit", "2", "--max-turns", "3"]
    first = json.loads(command("run", *words, "--json").out)
    monkeypatch.setenv("HYBRID_DEVICE", "cpu")
    options = json.loads(Path(first["run"], "manifest.json").read_text())["options"]
    assert options["limit"] == 2
    assert options["solver"] == ["mllm"]
    assert not options.keys() & NOT_IN_MANIFEST
    assert "device" not in options
    for given_back in (first["run"], Path(first["run"], "manifest.json")):
        assert json.loads(command("run", "--config", given_back, "--json").out) == first
    saved = write_file(Path("saved.json"), Path(first["run"], "manifest.json").read_text())
    other = json.loads(command("run", "--config", saved, "--max-turns", "4", "--dry-run", "--json").out)
    assert other["run"] != first["run"]


def test_a_manifest_without_options_or_with_a_secret_says_so(tmp_path: Path) -> None:
    file = manifest(tmp_path / "manifest.json", {"base-url": "http://u:[redacted]@host/v1"})
    with pytest.raises(UsageError, match="base-url contained a secret"):
        context("--config", file)
    content = json.loads(file.read_text())
    del content["options"]
    write_file(file, json.dumps({**content, "sha256": seal_of(content)}))
    with pytest.raises(UsageError, match="records no options"):
        context("--config", file)


@pytest.mark.parametrize(*cases(__file__, "test_a_run_that_is_given_back_asks_the_same_commit"))
def test_a_run_that_is_given_back_asks_the_same_commit(
    tmp_path: Path, manifest_fields: dict[str, Any], origin: Any, data: str
) -> None:
    file = manifest(tmp_path / "manifest.json", {"benchmark": "blink", **manifest_fields})
    content = json.loads(file.read_text())
    content["identity"]["data"] = origin
    write_file(file, json.dumps({**content, "sha256": seal_of(content)}))
    assert config("--config", file).data == data
    assert config("--config", file, "--data", "hub@other").data == "hub@other"


# The environment


def test_a_server_is_asked_for_models_of_its_provider_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HYBRID_BASE_URL", "http://h/v1")
    # Without HYBRID_MODEL, HYBRID_BASE_URL applies to any `openai:` model, so nothing is sent to OpenAI by accident.
    assert config("blink", "--model", "openai:a").model_settings.base_url == "http://h/v1"
    assert config("blink", "--model", "openai:a", "--base-url", "http://i/v1").model_settings.base_url == "http://i/v1"
    assert config("blink", "--model", "embedded").model_settings.base_url is None
    assert config("blink").model_settings.base_url is None
    assert not capsys.readouterr().err
    assert config("blink", "--model", "anthropic:c").model_settings.base_url is None
    assert "HYBRID_BASE_URL is for models of openai and not used for anthropic:c" in capsys.readouterr().err
    for model in ("gpt-4o", "opnai:gpt-4o"):
        assert config("blink", "--model", model).model_settings.base_url is None
    assert not capsys.readouterr().err
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


def test_an_error_about_a_typed_value_names_no_variable(command: Command) -> None:
    assert "Invalid value for '--device': 'x' is not a device" in command("run", "blink", "--device", "x", code=2).err


# Several runs


def test_lists_make_a_run_for_each_combination(tmp_path: Path) -> None:
    text = (
        "benchmark: blink\nsetting: {hints: on}\nimages: [separate, concat]\n"
        "matrix:\n  solver: [mllm, specialist]\n  model: [openai:a, hf:b/c]\n  setting: [{hints: off}, {set: x}]\n"
        "  trust: [null]\n  rotate: [true, false]\n  tools: [[depth, crop], none]\n"
    )
    result = runs_of(context("--config", write_file(tmp_path / "run.yaml", text)))
    assert len(result) == len({item.name for item in result}) == len({str(entry.recorded) for entry in result}) == 32
    assert result[0].label == "images=separate, model=openai:a, setting=hints=off, rotate=on, tools=depth,crop"
    assert result[0].name == "separate_openai-a_hints=off_on_depth-crop"
    configs = [config_of(entry.values) for entry in result]
    assert {first_config.solvers for first_config in configs} == {("mllm", "specialist")}
    assert {json.dumps(config_value.settings) for config_value in configs} == {
        '{"hints": "off"}',
        '{"hints": "on", "set": "x"}',
    }
    assert {first_item.tools for first_item in configs} == {("depth", "crop"), ("none",)}
    # The command line has priority: lists in the file are dropped for options that were typed.
    fewer = context("--config", tmp_path / "run.yaml", "--model", "openai:d", "--setting", "hints=on", "--rotate")
    assert len(runs_of(fewer)) == 2 * 2 * 2
    assert {config_of(entry.values).model for entry in runs_of(fewer)} == {"openai:d"}


@pytest.mark.parametrize("text", ["benchmark: [blink, hvsbench]\n", "matrix:\n  benchmark: [blink, hvsbench]\n"])
def test_a_file_may_list_benchmarks(tmp_path: Path, text: str) -> None:
    file = write_file(tmp_path / "run.yaml", text)
    assert [run.values["benchmark"] for run in runs_of(context("--config", file))] == ["blink", "hvsbench"]
    assert [run.values["benchmark"] for run in runs_of(context("--config", file, "mvp_bench"))] == ["mvp_bench"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("benchmark:\n", "Missing argument 'BENCHMARK'"),
        ("matrix:\n", "Missing argument 'BENCHMARK'"),
        ("benchmark: [blink, null]\n", "run.yaml: benchmark: a list must not contain null"),
        ("matrix:\n  benchmark: [null, blink]\n", "run.yaml: benchmark: a list must not contain null"),
    ],
)
def test_a_run_without_a_benchmark_is_refused(command: Command, tmp_path: Path, text: str, message: str) -> None:
    write_file(tmp_path / "run.yaml", text)
    assert message in command("run", "--config", "run.yaml", code=2).err


def test_a_file_that_names_its_questions_as_data_is_told_the_line(command: Command, tmp_path: Path) -> None:
    command("data", "template", "-o", "q.csv", code=0)
    write_file(tmp_path / "run.yaml", "solver: chance\ndata: q.csv\n")
    missing = command("run", "--config", "run.yaml", code=2).err
    assert "write `benchmark: q.csv` in place of `data: q.csv`" in missing
    twice = command("run", "q.csv", "--config", "run.yaml", code=2).err
    assert "run.yaml, line 2: data: the benchmark q.csv is a path, which is the data: remove the line `data" in twice
    assert "--data" not in twice
    write_file(tmp_path / "run.yaml", "solver: chance\ndata: sample\n")
    assert "add the line `benchmark: NAME`" in command("run", "--config", "run.yaml", code=2).err
    write_file(tmp_path / "run.yaml", "solver: chance\nbenchmark: q.csv\n")
    assert command("run", "--config", "run.yaml", "--dry-run", code=0)


def test_too_many_runs_are_refused(tmp_path: Path) -> None:
    file = write_file(tmp_path / "run.yaml", f"benchmark: blink\nmodel: {list(range(40))}\nseed: {list(range(40))}\n")
    with pytest.raises(UsageError, match="1600 runs; at most 1000"):
        context("--config", file)


def test_what_cannot_vary_is_an_option() -> None:
    invariable = {field.option.long for field in FIELDS.values() if not field.can_vary}
    assert invariable <= {word.removeprefix("--") for param in run_command.params for word in param.opts}
