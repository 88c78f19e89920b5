"""The keys of `--setting` that every benchmark takes: each is checked once, and becomes an option of the run."""

from typing import Any

import pytest

from hybrid.cli._run_options import config_of
from hybrid.cli.run import command
from hybrid.config import Price, RunConfig
from hybrid.errors import UsageError

MODEL = ("--model", "openai:gpt-4o")


def options(*settings: str, more: tuple[str, ...] = ()) -> RunConfig:
    words = ["blink", *MODEL, *more, *(word for item in settings for word in ("--setting", item))]
    return config_of(command.make_context("run", words).params)


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
