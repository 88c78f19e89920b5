"""`hybrid tools serve` reports errors before it serves anything; `tests/hybrid/integrations` connects to the server."""

import pytest

from tests.finished_runs import Command, Words
from tests.tables import cases

pytest.importorskip("mcp")


@pytest.mark.parametrize(*cases(__file__, "test_wrong_words_are_said_before_anything_is_served"))
def test_wrong_words_are_said_before_anything_is_served(command: Command, words: Words, message: str) -> None:
    assert message in command("tools", "serve", *words, code=2).err
