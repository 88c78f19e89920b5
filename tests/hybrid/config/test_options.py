"""One declaration of the options: what is made of it is complete, and says the same everywhere."""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hybrid
from hybrid.cli._keywords import RENAMED, RunKeywords
from hybrid.cli._run_options import config_of
from hybrid.cli.run import command
from hybrid.config import Limits, ModelSettings, RunConfig, parse_model_args
from hybrid.config.environment import VARIABLES
from hybrid.config.option import GROUPS, Leaf, is_path, leaves, placed
from hybrid.errors import UsageError

LEAVES = leaves(RunConfig)
CLICK = {word: param for param in command.params for word in param.opts}


def test_every_option_has_a_name_of_its_own_a_help_and_a_group() -> None:
    assert len({leaf.option.name for leaf in LEAVES}) == len(LEAVES)
    assert all(leaf.option.help.endswith((".", "]", ").")) and leaf.option.group in GROUPS for leaf in LEAVES)
    assert {leaf.option.variable for leaf in LEAVES} - {""} <= {one.name for one in VARIABLES}


def test_the_options_of_the_command_are_those_of_the_configuration_and_its_own() -> None:
    assert {leaf.option.name for leaf in LEAVES} <= set(CLICK)
    own = {one.name for one in command.params} - {leaf.option.key for leaf in LEAVES}
    shown = {"tables", "as_json", "verbose", "quiet", "debug"}
    assert own == {"benchmark", "config", "path", "abstain", "allow_failed", "dry_run"} | shown


def test_a_run_without_options_is_that_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable.name, raising=False)
    typed = config_of(command.make_context("run", ["blink"]).params)
    plain = RunConfig("blink")
    for leaf in LEAVES:
        assert at(typed, leaf.path) == at(plain, leaf.path) == leaf.default, leaf.option.name


def at(config: RunConfig, path: tuple[str, ...]) -> Any:
    value: Any = config
    for name in path:
        value = getattr(value, name)
    return value


def other_value(leaf: Leaf) -> tuple[str, Any]:
    """A value that is not the default, as typed, and as the configuration has it."""
    default = leaf.default
    if leaf.option.form in ("on|off", "no"):
        return ("off", False) if leaf.option.form == "on|off" else ("", False)
    if leaf.type is bool:
        return "", True
    if leaf.words:
        word = next(word for word in leaf.words if word != default)
        return word, word
    if leaf.option.form == "GB":
        return "1.5", 1_500_000_000
    if leaf.type in (int, float):
        return "7", leaf.type(7)
    if leaf.is_pairs:
        return "depth=x", {"depth": "x"}
    if leaf.is_many:
        words = get_args(get_args(leaf.type)[0]) or ("mllm",)
        return words[0], (words[0],)
    fitting = {"device": "cpu", "address": "http://127.0.0.1:9/v1", "existing file": __file__}
    named = {"wait_for_server": "2h", "keep_pictures": "latest"}
    text = named.get(leaf.option.key) or fitting.get(leaf.option.form, "any.jsonl")
    return text, Path(text) if is_path(leaf) else text


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.option.key)
def test_what_is_typed_arrives_in_its_field_and_in_no_other(leaf: Leaf) -> None:
    text, wanted = other_value(leaf)
    word = f"{leaf.option.name}={text}" if text else leaf.option.name
    # What is needed beside it; a price for a budget in dollars, a trace for its text.
    beside = ["--model-arg", "price=1/2"] if "cost" in leaf.option.key else []
    beside += ["--trace", "any.jsonl"] if leaf.option.key == "trace_text" else []
    before = config_of(command.make_context("run", ["blink", *beside]).params)
    after = config_of(command.make_context("run", ["blink", *beside, word]).params)
    assert at(after, leaf.path) == wanted
    changed = [one.option.name for one in LEAVES if at(before, one.path) != at(after, one.path)]
    assert changed == [leaf.option.name]


def test_the_keywords_of_python_are_the_options_with_their_types() -> None:
    # What is handed in as an object is a name for type checkers alone.
    hints = get_type_hints(RunKeywords, localns=dict.fromkeys(("BaseChatModel", "Solver", "Tool"), str))
    hints = {RENAMED.get(name, name): hint for name, hint in hints.items()}
    # What a report prints is asked of the report.
    own = {one.name for one in command.params} - {"benchmark", "dry_run", "as_json", "tables"}
    assert set(hints) == own
    for leaf in LEAVES:
        found = {part for part in get_args(hints[leaf.option.key]) if part is not type(None)}
        kinds = found | {part for one in found for part in get_args(one)}
        if leaf.words:
            assert set(leaf.words) <= kinds
        elif not (leaf.is_pairs or leaf.is_many or is_path(leaf) or leaf.option.form == "GB"):
            assert leaf.type in kinds


def test_the_function_of_python_shows_every_option_with_its_help() -> None:
    shown = inspect.signature(hybrid.run).parameters
    assert list(shown) == ["benchmark", "questions", *RunKeywords.__annotations__]
    for leaf in LEAVES:
        (name,) = (one for one in shown if RENAMED.get(one, one) == leaf.option.key)
        assert f"\n    {name}: {' '.join(leaf.option.help.split())}" in str(hybrid.run.__doc__)
    assert shown["limit"].annotation == "int | None"


@given(st.integers(-5, 20))
def test_a_value_below_the_least_is_refused_in_python_too(value: int) -> None:
    if value >= 1:
        assert ModelSettings(max_tokens=value).max_tokens == value
    else:
        with pytest.raises(UsageError, match=rf"--max-tokens {value}: must be at least 1"):
            ModelSettings(max_tokens=value)


def test_no_question_and_no_tool_call_may_be_asked_for_in_python() -> None:
    assert RunConfig("blink", limit=0, limits=Limits(tool_calls=0)).limit == 0


@given(st.dictionaries(st.sampled_from(["a", "b", "stop"]), st.integers(), max_size=3))
def test_what_is_no_key_of_ours_goes_to_the_provider(extra: Mapping[str, int]) -> None:
    assert parse_model_args([f"{key}={value}" for key, value in extra.items()]) == ModelSettings(extra=extra)


def test_values_by_path_are_nested() -> None:
    assert placed({("a",): 1, ("b", "c"): 2, ("b", "d"): 3}) == {"a": 1, "b": {"c": 2, "d": 3}}


def test_every_click_option_of_a_field_is_listed_under_its_group() -> None:
    for leaf in LEAVES:
        param = CLICK[leaf.option.name]
        assert isinstance(param, click.Option)
        assert getattr(param, "group", None) == leaf.option.group
