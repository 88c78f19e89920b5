"""Option rotation (`--rotate`): tests whether a solver answers the question or prefers a letter.

Every question with text options is asked once per rotation of its options: `ID` unchanged, `ID#r1`, `ID#r2`, ... with
the option texts moved left by 1, 2, ... places (as in MVP-Bench's circular protocol). Questions whose letters are drawn
in the picture, or whose text does not show the options in a known form, are excluded and counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from hybrid.core.types import LETTERS, BrokenQuestion, Json, Kind, Question

ROTATED = re.compile(r"#r(\d+)$")
# Stands for all tasks: every choice between texts can be rotated.
ALL_TASKS = "*"


def with_rotations(
    questions: Iterable[Question | BrokenQuestion], rotatable: Sequence[str], *, in_text: bool = True
) -> tuple[Question | BrokenQuestion, ...]:
    """Return every question followed by its rotations; `rotatable` are the tasks whose options are text.

    `in_text`: whether the question's text contains the options (else the benchmark's dialogue adds them).
    """
    result: list[Question | BrokenQuestion] = []
    for question in questions:
        result.append(question)
        # Variants of a benchmark's own protocol (rotations, shuffles) are not rotated again.
        if not isinstance(question, Question) or question.id != question.base:
            continue
        if question.task in rotatable or (ALL_TASKS in rotatable and question.kind is Kind.CHOICE):
            variants = [rotated(question, places, in_text=in_text) for places in range(1, len(question.choices))]
            result += [variant for variant in variants if variant is not None]
    return tuple(result)


def rotated(question: Question, places: int, *, in_text: bool = True) -> Question | None:
    """Move the option texts left by `places`; None if the question's text does not show them in a known form."""
    choices = question.choices[places:] + question.choices[:places]
    text = _with_options(question.text, question.choices, choices) if in_text else question.text
    if text is None:
        return None
    return replace(
        question,
        id=f"{question.id}#r{places}",
        text=text,
        choices=choices,
        target=_moved(question.target, places, len(choices)),
        cluster=question.unit,
    )


def _with_options(text: str, original: Sequence[str], after: Sequence[str]) -> str | None:
    """Replace the options in a text that shows each option exactly once, in order, in one of three forms.

    The result is None for any other text.
    """
    for form in ("({letter}) {words}", "{letter}. {words}", "[{letter}] {words}"):
        old_options = [
            form.format(letter=letter, words=words) for letter, words in zip(LETTERS, original, strict=False)
        ]
        if any(text.count(option) != 1 for option in old_options):
            continue
        places = [text.index(option) for option in old_options]
        if places != sorted(places):
            continue
        for place, option, letter, words in reversed(list(zip(places, old_options, LETTERS, after, strict=False))):
            text = text[:place] + form.format(letter=letter, words=words) + text[place + len(option) :]
        return text
    return None


def _moved(target: Json, places: int, count: int) -> Json:
    """Return the target after the rotation: a letter changes; any other target is the text of its option and stays.

    In a target with several facts (`{"answer": "B", ...}`), only the answer is moved.
    """
    if isinstance(target, Mapping) and "answer" in target:
        return {**target, "answer": _moved(target["answer"], places, count)}
    if not isinstance(target, str) or target.strip("()") not in tuple(LETTERS[:count]):
        return target
    letter = target.strip("()")
    return target.replace(letter, LETTERS[(LETTERS.index(letter) - places) % count])


def unrotated_note(questions: Iterable[Question | BrokenQuestion]) -> tuple[str, ...]:
    """Return one line per task with questions that cannot be rotated."""
    times = Counter((question.base, question.task) for question in questions if isinstance(question, Question))
    once = Counter(task for (_, task), n in times.items() if n == 1)
    return tuple(f"--rotate: {n} of {task} have no options to rotate and are asked once" for task, n in once.items())
