"""Option rotation (`--rotate`): tests whether a solver answers the question or prefers a letter.

Every question with text options is asked once per rotation of them: `ID` unchanged, `ID#r1`, `ID#r2`, ... with the
option texts moved left by 1, 2, ... places (as in MVP-Bench's circular protocol). Questions whose letters are drawn
in the picture, or whose text does not show the options in a known form, are excluded and counted.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from hybrid.core.types import LETTERS, BrokenQuestion, Cell, Json, Kind, Metric, Question, Score

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
    """Replace the options in a text that shows each exactly once, in order, in one of three forms; else None."""
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
    """The target after the rotation: a letter is moved, any other text stays, as it names its option itself.

    In a target with several facts (`{"answer": "B", ...}`) the answer is moved.
    """
    if isinstance(target, Mapping) and "answer" in target:
        return {**target, "answer": _moved(target["answer"], places, count)}
    if not isinstance(target, str) or target.strip("()") not in tuple(LETTERS[:count]):
        return target
    letter = target.strip("()")
    return target.replace(letter, LETTERS[(LETTERS.index(letter) - places) % count])


def rotation_metrics(questions: Mapping[str, Question | BrokenQuestion], scores: Sequence[Score]) -> tuple[Metric, ...]:
    """The metrics of the rotations; none if no question was rotated.

    `rotation.accuracy` over all rotations, `rotation.consistency` (the same option chosen in every one),
    `rotation.all_correct`, `rotation.says.LETTER` (the share of asks with this answer), and `rotation.excluded`:
    the number of questions without rotations, also for each task that has none. A question is left out if one of its
    rotations failed.
    """
    groups: dict[str, list[Score]] = defaultdict(list)
    for score in scores:
        groups[ROTATED.sub("", score.id)].append(score)
    multiples = {base: members for base, members in groups.items() if len(members) > 1}
    answered_groups = {
        base: members for base, members in multiples.items() if not any(score.outcome.failed for score in members)
    }
    if not answered_groups:
        return ()
    from hybrid.stats import combine

    right: list[Cell] = []
    same: list[Cell] = []
    all_correct: list[Cell] = []
    for members in answered_groups.values():
        unit = members[0].unit
        credit = [score.correct or 0.0 for score in members]
        answers = {_original(score, questions[score.id]) for score in members}
        right.append(Cell("", unit, sum(credit), len(members)))
        same.append(Cell("", unit, float(len(answers) == 1 and None not in answers), 1.0))
        all_correct.append(Cell("", unit, float(min(credit) == 1.0), 1.0))
    cells = {"accuracy": right, "consistency": same, "all_correct": all_correct}
    metrics = [Metric(f"rotation.{name}", combine(c, "ratio"), len(c), "ratio", tuple(c)) for name, c in cells.items()]
    asks = [score for members in answered_groups.values() for score in members]
    letter_counts = Counter(score.answer for score in asks)
    choice_counts = {
        len(question.choices) for question in map(questions.get, answered_groups) if isinstance(question, Question)
    }
    # Without cells: solvers are not compared by the letters they choose.
    shares = {f"says.{letter}": letter_counts[letter] / len(asks) for letter in LETTERS[: max(choice_counts)]}
    tasks, moved = (Counter(members[0].task for members in grouping.values()) for grouping in (groups, multiples))
    still = {f"excluded_in.{task}": float(n) for task, n in sorted(tasks.items()) if task not in moved}
    excluded = {"excluded": float(len(groups) - len(multiples)), **still}
    counts = ((name, values, n) for values, n in ((shares, len(asks)), (excluded, len(groups))) for name in values)
    return (*metrics, *(Metric(f"rotation.{name}", values[name], n, "ratio") for name, values, n in counts))


def unrotated_note(questions: Iterable[Question | BrokenQuestion]) -> tuple[str, ...]:
    """One line per task with questions that cannot be rotated."""
    times = Counter((question.base, question.task) for question in questions if isinstance(question, Question))
    once = Counter(task for (_, task), n in times.items() if n == 1)
    return tuple(f"--rotate: {n} of {task} have no options to move and are asked once" for task, n in once.items())


def _original(score: Score, question: Question | BrokenQuestion) -> int | None:
    """Index of the chosen option among the unrotated options; None without an answer."""
    count = len(question.choices) if isinstance(question, Question) else 0
    if score.answer is None or score.answer not in tuple(LETTERS[:count]):
        return None
    match = ROTATED.search(score.id)
    return (LETTERS.index(score.answer) + (int(match[1]) if match else 0)) % count
