"""One declaration of the options: everything derived from it is complete and consistent."""

from collections.abc import Mapping
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.cli._configured import OF_MANY_QUESTIONS, runs_of
from hybrid.cli._help import USUAL
from hybrid.cli._run_config import config_of
from hybrid.cli._sources import RunOptions
from hybrid.cli._tool_server import up
from hybrid.cli.ablate import HEEDED
from hybrid.cli.ablate import command as ablate
from hybrid.cli.ask import command as ask
from hybrid.cli.from_python import KEYWORDS, resolve
from hybrid.cli.run import command
from hybrid.cli.study import command as study
from hybrid.config import ModelSettings, RunConfig, parse_model_args
from hybrid.config.command_options import FIELDS as ALL_FIELDS
from hybrid.config.environment import VARIABLES
from hybrid.config.option import GROUPS, option_fields
from hybrid.config.python_words import RENAMED
from hybrid.core.errors import UsageError

FIELDS = option_fields(RunConfig)
CLICK = {word: param for param in command.params for word in param.opts}


def test_every_option_has_a_name_of_its_own_a_help_and_a_group() -> None:
    assert len({field.option.name for field in FIELDS}) == len(FIELDS)
    assert all(field.option.help.endswith((".", "]", ").")) and field.option.group in GROUPS for field in FIELDS)
    assert {field.option.variable for field in FIELDS} - {""} <= {variable.name for variable in VARIABLES}


def at(config: RunConfig, path: tuple[str, ...]) -> Any:
    value: Any = config
    for name in path:
        value = getattr(value, name)
    return value


@given(st.integers(-5, 20))
def test_a_value_below_the_least_is_refused_in_python_too(value: int) -> None:
    if value >= 1:
        assert ModelSettings(max_tokens=value).max_tokens == value
    else:
        with pytest.raises(UsageError, match=rf"--max-tokens {value}: must be at least 1"):
            ModelSettings(max_tokens=value)


@given(st.dictionaries(st.sampled_from(["a", "b", "stop"]), st.integers(), max_size=3))
def test_what_is_no_key_of_ours_goes_to_the_provider(extra: Mapping[str, int]) -> None:
    assert parse_model_args([f"{key}={value}" for key, value in extra.items()]) == ModelSettings(extra=extra)


def test_every_click_option_of_a_field_is_listed_under_its_group() -> None:
    for field in FIELDS:
        param = CLICK[field.option.name]
        assert isinstance(param, click.Option)
        assert getattr(param, "group", None) == field.option.group


def test_every_field_is_an_option_of_python_files_studies_and_ablations() -> None:
    set_by_study = {"tool_output", "show", "solver", "out"}
    for field in FIELDS:
        assert KEYWORDS[RENAMED.get(field.option.key, field.option.key)] is field
        assert ALL_FIELDS[field.option.key] is field
        param = CLICK[field.option.name]
        assert param in ablate.params or field.option.key in ("solver", "out")
        assert param in study.params or field.option.key in set_by_study


def parse_command_line(*words: str) -> RunOptions:
    (options,) = runs_of(command.make_context("run", ["blink", *words]))
    return options


@pytest.mark.parametrize("text", ["fractions", '"fractions"'])
def test_a_frame_may_be_written_as_json(text: str) -> None:
    config = config_of(parse_command_line("--model-arg", f"frame={text}", "--model-arg", 'style="short"').values)
    assert (config.frame, config.model_settings.extra) == ("fractions", {"style": "short"})
    python = resolve("blink", {"model_arg": {"frame": text}})
    assert config_of(python.values).frame == "fractions"


def test_no_tool_has_weights_of_its_own_by_default() -> None:
    for options in (parse_command_line(), resolve("blink", {})):
        assert config_of(options.values, options.recorded).service.weights == {}
        assert "weights" not in options.recorded
    assert up.make_context("up", []).params["weights"] == ()


def test_a_list_of_options_names_options_that_exist() -> None:
    assert ALL_FIELDS.keys() >= OF_MANY_QUESTIONS
    assert {param.name for param in ablate.params} >= HEEDED
    for other in (ask, study, ablate, command):
        assert other.rare <= {param.name for param in other.params} | {"path"} | USUAL, other.name


def test_options_outside_the_identity_cannot_vary() -> None:
    can_vary = {key for key, field in ALL_FIELDS.items() if field.can_vary}
    assert {"benchmark", "model", "data", "seed", "max_turns", "device", "tools", "setting", "model_arg"} <= can_vary
    assert can_vary.isdisjoint({"solver", "limit", "only", "out", "run_max_calls", "unanswered", "trace", "quiet"})
