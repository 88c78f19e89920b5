"""Scores replies by the kind of the question, and gives the right reply to each.

| kind | condition for a right reply |
|---|---|
| choice, yes_no, integer, order | the same letter, word, number, order |
| number | a number that differs from the answer by at most its tolerance |
| text | one of the accepted spellings, as `hybrid.answers.words` compares them |
| point | a point in the box, or within the distance |
| box | an intersection over union of at least 0.5 (PASCAL VOC: Everingham et al., IJCV 2010), recorded as `iou` |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from hybrid.answers import parse
from hybrid.answers.comparing import as_json
from hybrid.answers.places import distance, overlap
from hybrid.answers.words import same
from hybrid.benchmarks._shared.scores import score_of
from hybrid.benchmarks.base import ScoreOptions, unanswered
from hybrid.benchmarks.questions.statistics import SAID_YES, YES
from hybrid.core.errors import DataError
from hybrid.core.types import LETTERS, Box, Kind, Outcome, Point, Question, Score

# Minimum intersection over union at which a box is right.
RIGHT_BOX: Final = 0.5


def chance(question: Question) -> float:
    """Return the probability, 0..1, that a guess is right; 0 if the possible answers are not given."""
    if question.kind is Kind.YES_NO:
        return 0.5
    return 1 / len(question.choices) if question.kind is Kind.CHOICE and question.choices else 0.0


def score_text(question: Question, text: str, outcome: Outcome, options: ScoreOptions) -> Score:
    """Score the text of a reply."""
    parsed = parse(text, question.kind, question.choices)
    if parsed.value is None:
        credit = unanswered(Outcome.UNPARSED, chance(question), options)
        return score_of(question, credit, Outcome.UNPARSED, values=yes_values(question, None))
    right, values = _judged(question, parsed.value)
    value = as_json(cast(Any, parsed.value))
    answer = value if isinstance(value, str) else ", ".join(map(_short, value if isinstance(value, list) else [value]))
    return score_of(question, float(right), outcome, answer, rule=parsed.rule, values=values)


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _judged(question: Question, answer: object) -> tuple[bool, dict[str, float]]:
    """Return whether an answer is right, and additional values."""
    target = question.target
    match question.kind:
        case Kind.YES_NO:
            return answer == target, yes_values(question, str(answer))
        case Kind.CHOICE | Kind.INTEGER | Kind.ORDER:
            return answer == target, {}
    facts = _facts(question)
    match answer:
        case float() if question.kind is Kind.NUMBER:
            off = abs(answer - facts["number"])
            allowed = facts["tolerance"] * (abs(facts["number"]) if facts["relative"] else 1.0)
            # Allow for rounding: in binary floating point, 0.1 + 0.2 is slightly more than 0.3.
            return off <= allowed + 1e-9 * max(1.0, abs(facts["number"])), {"error": off}
        case str() if question.kind is Kind.TEXT:
            return same(answer, facts["accepted"]), {}
        case Point():
            if "box" in facts:
                x0, y0, x1, y1 = facts["box"]
                return bool(x0 <= answer.x < x1 and y0 <= answer.y < y1), {}
            return distance(answer, Point(*facts["point"])) <= float(facts["within"]), {}
        case Box():
            iou = overlap(answer, Box(*facts["box"]))
            return iou >= RIGHT_BOX, {"iou": iou}
    raise DataError(f"{question.id}: there is no rule that scores answers of the kind {question.kind}")


def _facts(question: Question) -> Mapping[str, Any]:
    if not isinstance(question.target, Mapping):
        raise DataError(f"{question.id}: expected a target with the facts of its kind, found {question.target!r:.80}")
    return question.target


def yes_values(question: Question, answer: str | None) -> dict[str, float]:
    """Return whether the truth and the reply of a yes/no question are "yes"; nothing for other kinds."""
    if question.kind is not Kind.YES_NO:
        return {}
    return {YES: float(question.target == "yes"), SAID_YES: float(answer == "yes")}


def right_answer(question: Question) -> str:
    """Return the right reply in the form of the kind's format line."""
    match question.kind:
        case Kind.CHOICE:
            return f"Answer: ({question.target})"
        case Kind.YES_NO | Kind.INTEGER | Kind.ORDER:
            return f"Answer: {question.target}"
        case Kind.NUMBER:
            return f"Answer: {_facts(question)['number']:.12g}"
        case Kind.TEXT:
            return f"Answer: {_facts(question)['accepted'][0]}"
    facts = _facts(question)
    if question.kind is Kind.BOX:
        return f"Answer: [{', '.join(map(_short, facts['box']))}]"
    if "box" in facts:
        x0, y0, x1, y1 = facts["box"]
        return f"Answer: ({_short((x0 + x1) / 2)}, {_short((y0 + y1) / 2)})"
    x, y = facts["point"]
    return f"Answer: ({_short(x)}, {_short(y)})"


def describe_target(question: Question) -> str:
    """Return the right answer in words, for a person."""
    answer = right_answer(question).removeprefix("Answer: ")
    if question.kind is Kind.CHOICE:
        return f"{answer} {question.choices[LETTERS.index(str(question.target))]}"
    facts = question.target if isinstance(question.target, Mapping) else {}
    if question.kind is Kind.NUMBER and facts["tolerance"]:
        share = cast(float, facts["tolerance"])
        return f"{answer} +- {f'{share * 100:g}%' if facts['relative'] else f'{share:g}'}"
    if question.kind is Kind.TEXT:
        return " or ".join(cast("list[str]", facts["accepted"]))
    if question.kind is Kind.POINT:
        return f"in the box {facts['box']}" if "box" in facts else f"within {facts['within']} px of {answer}"
    return answer
