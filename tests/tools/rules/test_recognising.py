"""Recognition: the thing that a wording asks about, and why another wording is unclear to the rule by_text."""

import pytest

from hybrid.core.types import Kind
from tests.tables import cases
from tests.tools.rules.wordings import prompt, recognised, wordings
from tools.rules.questions.recognising import recognise_question
from tools.rules.questions.sentence import Unclear


@pytest.mark.parametrize("letters", ["({letter}) {choice}", "{letter}. {choice}"])
@pytest.mark.parametrize("name", ["recognised", "abstained", "held_out"])
def test_each_wording_is_recognised_as_what_it_asks(name: str, letters: str) -> None:
    wrong = [
        (wording.question, wording.expected, result)
        for wording in wordings(name)
        if (result := recognised(wording.prompt(letters))) != wording.expected
    ]
    assert wrong == []


@pytest.mark.parametrize(*cases(__file__, "test_why_a_question_is_not_clear", kind=Kind))
def test_why_a_question_is_not_clear(text: str, choices: tuple[str, ...], kind: Kind | None, reason: str) -> None:
    assert recognise_question(prompt(text, *choices, kind=kind)) == Unclear(reason)
