"""The rule for questions from any file: text, kind, choices and number of images determine what is asked.

    hybrid run FILE --solver specialist --weights detection=DIR_OR_ID

`recognising.py` recognises seven kinds of question; anything else is an abstention with the reason in the trace.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

from hybrid.core.types import Prompt
from hybrid.tool.rules import Rule, RuleByText, RuleContext, RuleInWords, SpecialistAnswer
from tools.rules.questions.answers import (
    answer_attribute,
    answer_count,
    answer_existence,
    answer_nearest,
    answer_position,
    answer_relation,
    answer_text,
)
from tools.rules.questions.recognising import recognise_question
from tools.rules.questions.sentence import Unclear
from tools.rules.questions.values import (
    AttributeQuestion,
    CountQuestion,
    ExistenceQuestion,
    NearestQuestion,
    PositionQuestion,
    RecognisedQuestion,
    RelationQuestion,
    TextQuestion,
)

_Kind = TypeVar(
    "_Kind",
    CountQuestion,
    AttributeQuestion,
    ExistenceQuestion,
    NearestQuestion,
    PositionQuestion,
    RelationQuestion,
    TextQuestion,
)


def _rule(
    kind: type[_Kind], answer: Callable[[_Kind, Prompt, RuleContext], Awaitable[SpecialistAnswer | None]], *tools: str
) -> Rule:
    async def answered(prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
        question = recognise_question(prompt)
        return await answer(question, prompt, ctx) if isinstance(question, kind) else None

    return RuleInWords(answered, tools)


NAMES: Final[Mapping[type[RecognisedQuestion], str]] = {
    CountQuestion: "counting",
    AttributeQuestion: "attribute",
    ExistenceQuestion: "existence",
    NearestQuestion: "depth",
    PositionQuestion: "position",
    RelationQuestion: "relation",
    TextQuestion: "reading",
}


def name_of(prompt: Prompt) -> tuple[str | None, str]:
    """Return the name of the kind of question, or None and the reason why it is unclear."""
    question = recognise_question(prompt)
    return (None, question.reason) if isinstance(question, Unclear) else (NAMES[type(question)], "")


_PLACES: Final = ("markers", "detection", "crop")

BY_TEXT: Final = RuleByText(
    {
        "counting": _rule(CountQuestion, answer_count, "detection"),
        "attribute": _rule(AttributeQuestion, answer_attribute, "attributes", *_PLACES),
        "existence": _rule(ExistenceQuestion, answer_existence, "detection", "crop"),
        "depth": _rule(NearestQuestion, answer_nearest, "depth", *_PLACES),
        "position": _rule(PositionQuestion, answer_position, *_PLACES),
        "relation": _rule(RelationQuestion, answer_relation, "relation", *_PLACES),
        "reading": _rule(TextQuestion, answer_text, "ocr"),
    },
    name_of,
)

# Rules by route.
RULES: Mapping[str, Rule] = {"by_text": BY_TEXT}
