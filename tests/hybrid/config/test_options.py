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
from hybrid.config.option import GROUPS, OptionField, is_path, nested, option_fields
from hybrid.errors import UsageError

FIELDS = option_fields(RunConfig)
CLICK = {word: param for param in command.params for word in param.opts}


def test_every_option_has_a_name_of_its_own_a_help_and_a_group() -> None:
    assert len({field.option.name for field in FIELDS}) == len(FIELDS)
    assert all(field.option.help.endswith((".", "]", ").")) and field.option.group in GROUPS for field in FIELDS)
    assert {field.option.variable for field in FIELDS} - {""} <= {one.name for one in VARIABLES}


def test_the_options_of_the_command_are_those_of_the_configuration_and_its_own() -> None:
    assert {field.option.name for field in FIELDS} <= set(CLICK)
    own = {one.name for one in command.params} - {field.option.key for field in FIELDS}
    shown = {"tables", "as_json", "verbose", "quiet", "debug"}
    assert own == {"benchmark", "config", "path", "abstain", "allow_failed", "dry_run"} | shown


def test_a_run_without_options_is_that_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable.name, raising=False)
    typed = config_of(command.make_context("run", ["blink"]).params)
    plain = RunConfig("blink")
    for field in FIELDS:
        assert at(typed, field.path) == at(plain, field.path) == field.default, field.option.name


def at(config: RunConfig, path: tuple[str, ...]) -> Any:
    value: Any = config
    for name in path:
        value = getattr(value, name)
    return value


def other_value(field: OptionField) -> tuple[str, Any]:
    """A value that is not the default, as typed, and as the configuration has it."""
    default = field.default
    if field.option.form in ("on|off", "no"):
        return ("off", False) if field.option.form == "on|off" else ("", False)
    if field.type is bool:
        return "", True
    if field.words:
        word = next(word for word in field.words if word != default)
        return word, word
    if field.option.form == "GB":
        return "1.5", 1_500_000_000
    if field.type in (int, float):
        return "7", field.type(7)
    if field.is_pairs:
        return "depth=x", {"depth": "x"}
    if field.is_many:
        words = get_args(get_args(field.type)[0]) or ("mllm",)
        return words[0], (words[0],)
    fitting = {"device": "cpu", "address": "http://127.0.0.1:9/v1", "existing file": __file__}
    text = "2h" if field.option.key == "wait_for_server" else fitting.get(field.option.form, "any.jsonl")
    return text, Path(text) if is_path(field) else text


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.option.key)
def test_what_is_typed_arrives_in_its_field_and_in_no_other(field: OptionField) -> None:
    text, wanted = other_value(field)
    word = f"{field.option.name}={text}" if text else field.option.name
    # What is needed beside it; a price for a budget in dollars, a trace for its text.
    beside = ["--model-arg", "price=1/2"] if "cost" in field.option.key else []
    beside += ["--trace", "any.jsonl"] if field.option.key == "trace_text" else []
    before = config_of(command.make_context("run", ["blink", *beside]).params)
    after = config_of(command.make_context("run", ["blink", *beside, word]).params)
    assert at(after, field.path) == wanted
    changed = [one.option.name for one in FIELDS if at(before, one.path) != at(after, one.path)]
    assert changed == [field.option.name]


def test_the_keywords_of_python_are_the_options_with_their_types() -> None:
    # What is handed in as an object is a name for type checkers alone.
    hints = get_type_hints(RunKeywords, localns=dict.fromkeys(("BaseChatModel", "Solver", "Tool"), str))
    hints = {RENAMED.get(name, name): hint for name, hint in hints.items()}
    # What a report prints is asked of the report.
    own = {one.name for one in command.params} - {"benchmark", "dry_run", "as_json", "tables"}
    assert set(hints) == own
    for field in FIELDS:
        found = {part for part in get_args(hints[field.option.key]) if part is not type(None)}
        kinds = found | {part for one in found for part in get_args(one)}
        if field.words:
            assert set(field.words) <= kinds
        elif not (field.is_pairs or field.is_many or is_path(field) or field.option.form == "GB"):
            assert field.type in kinds


def test_the_function_of_python_shows_every_option_with_its_help() -> None:
    shown = inspect.signature(hybrid.run).parameters
    assert list(shown) == ["benchmark", "questions", *RunKeywords.__annotations__]
    for field in FIELDS:
        (name,) = (one for one in shown if RENAMED.get(one, one) == field.option.key)
        assert f"\n    {name}: {' '.join(field.option.help.split())}" in str(hybrid.run.__doc__)
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
    assert nested({("a",): 1, ("b", "c"): 2, ("b", "d"): 3}) == {"a": 1, "b": {"c": 2, "d": 3}}


def test_every_click_option_of_a_field_is_listed_under_its_group() -> None:
    for field in FIELDS:
        param = CLICK[field.option.name]
        assert isinstance(param, click.Option)
        assert getattr(param, "group", None) == field.option.group
