"""`hybrid tools serve`: what is said before anything is served; `tests/hybrid/integrations` talks to it."""

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("mcp")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--port", "8000"), "hybrid: --port goes with --http"),
        (("--tools", "crob"), "no 'crob' in tools/ (did you mean 'crop'?)"),
        (("--tools", ","), "hybrid: --tools names no tool"),
        (("--allow-folder", "absent"), "'absent' does not exist"),
        (("--weights", "depth"), "--weights"),
    ],
)
def test_wrong_words_are_said_before_anything_is_served(
    command: Callable[..., Any], words: tuple[str, ...], said: str
) -> None:
    ended = command("tools", "serve", *words)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
