"""The keys of `--setting` that every benchmark accepts: each is checked once, and becomes an option of the run."""

from typing import Any

import pytest

from hybrid.cli._run_config import config_of
from hybrid.cli.run import command
from hybrid.config import Price, RunConfig
from hybrid.core.errors import UsageError
from tests.finished_runs import Words
from tests.tables import cases

MODEL = ("--model", "openai:gpt-4o")


def options(*settings: str, more: Words = ()) -> RunConfig:
    words = ["blink", *MODEL, *more, *(word for item in settings for word in ("--setting", item))]
    return config_of(command.make_context("run", words).params)


def test_the_second_model_has_an_address_and_a_price_of_its_own() -> None:
    config = options("caption-model=openai:e", "caption-url=http://127.0.0.1:1/v1", "caption-price=3/15")
    assert config.captioner_settings.base_url == "http://127.0.0.1:1/v1"
    assert config.captioner_settings.price == Price(3, 15)
    assert config.model_settings.base_url is None


@pytest.mark.parametrize(*cases(__file__, "test_a_value_that_does_not_fit_is_named"))
def test_a_value_that_does_not_fit_is_named(settings: Any, more: Any, message: str) -> None:
    with pytest.raises(UsageError) as error:
        options(*settings, more=more)
    assert message in str(error.value)
