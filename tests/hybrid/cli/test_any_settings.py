"""The keys of `--setting` that every benchmark takes: each is checked once, and becomes an option of the run."""

from pathlib import Path
from typing import Any

import pytest

from hybrid.cli._run_options import SETTINGS, common_settings, config_of
from hybrid.cli.run import command
from hybrid.config import Price, RunConfig
from hybrid.errors import UsageError

MODEL = ("--model", "openai:gpt-4o")


def options(*settings: str, more: tuple[str, ...] = ()) -> RunConfig:
    words = ["blink", *MODEL, *more, *(word for item in settings for word in ("--setting", item))]
    return config_of(command.make_context("run", words).params)


def test_without_any_a_run_is_asked_as_ever() -> None:
    plain, direct = options(), RunConfig("blink", (), "openai:gpt-4o")
    for name in ("answer", "samples", "reasoning", "captioner", "captioner_settings", "context", "context_missing"):
        assert getattr(plain, name) == getattr(direct, name)


def test_each_becomes_an_option_and_none_is_the_benchmarks() -> None:
    given = (
        "reasoning=none",
        "context=a=b.jsonl",
        "context-missing=without",
        "marks=radius:5",
        "caption-model=openai:e",
    )
    config = options(*given, more=("--image-detail", "low", "--max-pixels", "900", "--max-tokens", "7", "--seed", "3"))
    assert config.settings == {"marks": "radius:5"}
    assert (config.reasoning, config.context, config.context_missing) == ("none", Path("a=b.jsonl"), "without")
    second = config.captioner_settings
    assert (config.captioner, second.image_detail, second.max_pixels, second.seed) == ("openai:e", "low", 900, 3)
    # How long a reply may be is said of the model that answers.
    assert (second.max_tokens, config.model_settings.max_tokens) == (None, 7)


def test_the_second_model_has_an_address_and_a_price_of_its_own() -> None:
    config = options("caption-model=openai:e", "caption-url=http://127.0.0.1:1/v1", "caption-price=3/15")
    assert config.captioner_settings.base_url == "http://127.0.0.1:1/v1"
    assert config.captioner_settings.price == Price(3, 15)
    assert config.model_settings.base_url is None


@pytest.mark.parametrize(
    ("settings", "more", "told"),
    [
        (("samples=0",), (), "--setting samples=0: the values are: 1 or more"),
        (("samples=x",), (), "--setting samples=x"),
        (("answer=loud",), (), "--setting answer=loud: the values are: text, likelihood"),
        (("reasoning=last",), (), "--setting reasoning=last: the values are: unsaid, first, none"),
        (("context=",), (), "--setting context=: the values are: FILE.jsonl"),
        (("context-missing=maybe",), (), "--setting context-missing=maybe"),
        (("caption-url=http://x",), (), "give caption-model as well"),
        (("caption-price=1/2",), (), "give caption-model as well"),
        (("caption-model=",), (), "--setting caption-model=: the values are: PROVIDER:NAME"),
        (("caption-model=openai:e", "caption-price=free"), (), "free"),
        (
            ("caption-model=openai:e",),
            ("--max-cost", "1", "--model-arg", "price=1/2"),
            "--max-cost needs the price of the second model too",
        ),
    ],
)
def test_a_value_that_does_not_fit_is_named(settings: Any, more: Any, told: str) -> None:
    with pytest.raises(UsageError) as error:
        options(*settings, more=more)
    assert told in str(error.value)


def test_defaults_are_values_or_nothing() -> None:
    assert [setting.name for setting in common_settings()] == list(SETTINGS)
    for setting in common_settings():
        assert not setting.default or setting.check(setting.default) == setting.default
