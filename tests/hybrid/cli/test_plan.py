"""`hybrid plan`: questions for a difference, and a difference for questions."""

from collections.abc import Callable
from typing import Any

import pytest

Command = Callable[..., Any]


def test_questions_for_a_difference_and_back(command: Command) -> None:
    assert command("plan", "--difference", "0.4", "--discordant", "0.5").out == "23 questions\n"
    assert command("plan", "--questions", "155", "--discordant", "0.45").out == "a difference of 0.150\n"
    # Rounded up: the questions suffice for what is printed.
    difference = command("plan", "--questions", "1901").out.split()[-1]
    questions = int(command("plan", "--difference", difference).out.split()[0].replace(",", ""))
    assert questions <= 1901


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "give one of the two: --difference D"),
        (("--difference", "0.1", "--questions", "100"), "give one of the two: --difference D"),
        (("--questions", "3"), "--questions 3: too few"),
        (("--questions", "100", "--discordant", "2"), "'--discordant': 2.0"),
        (("--questions", "many"), "--questions"),
    ],
)
def test_a_plan_that_cannot_be_made_is_one_line(command: Command, words: tuple[str, ...], said: str) -> None:
    ended = command("plan", *words)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert "Traceback" not in ended.err
