"""Option rotation (`--rotate`): whether a solver answers the question, or likes a letter.

Every question whose options are text is asked once for each rotation of them: `ID` as it is, `ID#r1`, `ID#r2`, ... with
the option texts moved left by so many places (as MVP-Bench's circular protocol does). Questions whose letters are drawn
in the picture, or whose text does not show the options in a known form, are excluded and counted.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from hybrid.types import LETTERS, BrokenQuestion, Cell, Json, Kind, Metric, Question, Score

ROTATED = re.compile(r"#r(\d+)$")
# Among tasks that can be rotated: every choice between texts, whatever its task.
ALL_TASKS = "*"


def with_rotations(
    questions: Iterable[Question | BrokenQuestion], rotatable: Sequence[str], *, in_text: bool = True
) -> tuple[Question | BrokenQuestion, ...]:
    """Every question followed by its rotations; `rotatable` are the tasks whose options are text.

    `in_text` says whether a question's text holds its options, or its benchmark's dialogue writes them.
    """
    found: list[Question | BrokenQuestion] = []
    for question in questions:
        found.append(question)
        # A variant of a benchmark's own protocol (its own rotations, a shuffle) is not turned once more.
        if not isinstance(question, Question) or question.id != question.base:
            continue
        if question.task in rotatable or (ALL_TASKS in rotatable and question.kind is Kind.CHOICE):
            turned = [rotated(question, places, in_text=in_text) for places in range(1, len(question.choices))]
            found += [variant for variant in turned if variant is not None]
    return tuple(found)


def rotated(question: Question, places: int, *, in_text: bool = True) -> Question | None:
    """The question with its option texts moved left by `places`; None when its text does not show them as options."""
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


def _with_options(text: str, before: Sequence[str], after: Sequence[str]) -> str | None:
    """The text with each option's words exchanged, in one of three forms, each once and in order."""
    for form in ("({letter}) {words}", "{letter}. {words}", "[{letter}] {words}"):
        shown = [form.format(letter=letter, words=words) for letter, words in zip(LETTERS, before, strict=False)]
        if any(text.count(option) != 1 for option in shown):
            continue
        places = [text.index(option) for option in shown]
        if places != sorted(places):
            continue
        for place, option, letter, words in reversed(list(zip(places, shown, LETTERS, after, strict=False))):
            text = text[:place] + form.format(letter=letter, words=words) + text[place + len(option) :]
        return text
    return None


def _moved(target: Json, places: int, count: int) -> Json:
    """The letter of the same option after the rotation; a target that is no letter names its option by itself.

    Of a target of several facts (`{"answer": "B", ...}`) the answer is moved.
    """
    if isinstance(target, Mapping) and "answer" in target:
        return {**target, "answer": _moved(target["answer"], places, count)}
    if not isinstance(target, str) or target.strip("()") not in tuple(LETTERS[:count]):
        return target
    letter = target.strip("()")
    return target.replace(letter, LETTERS[(LETTERS.index(letter) - places) % count])


def rotation_metrics(questions: Mapping[str, Question | BrokenQuestion], scores: Sequence[Score]) -> tuple[Metric, ...]:
    """The metrics of the rotations; none where no question was rotated.

    `rotation.accuracy` over all rotations, `rotation.consistency` (the same option chosen in every one),
    `rotation.all_correct`, `rotation.says.LETTER`, the share of asks that are answered so, and `rotation.excluded`: the
    number of questions that have no rotation, also of each task that has none. A question of which one rotation failed
    is missing.
    """
    groups: dict[str, list[Score]] = defaultdict(list)
    for score in scores:
        groups[ROTATED.sub("", score.id)].append(score)
    turned = {base: members for base, members in groups.items() if len(members) > 1}
    whole = {base: members for base, members in turned.items() if not any(score.outcome.failed for score in members)}
    if not whole:
        return ()
    from hybrid.stats import combine

    right: list[Cell] = []
    same: list[Cell] = []
    every: list[Cell] = []
    for members in whole.values():
        unit = members[0].unit
        credit = [score.correct or 0.0 for score in members]
        chosen = {_original(score, questions[score.id]) for score in members}
        right.append(Cell("", unit, sum(credit), len(members)))
        same.append(Cell("", unit, float(len(chosen) == 1 and None not in chosen), 1.0))
        every.append(Cell("", unit, float(min(credit) == 1.0), 1.0))
    cells = {"accuracy": right, "consistency": same, "all_correct": every}
    metrics = [Metric(f"rotation.{name}", combine(c, "ratio"), len(c), "ratio", tuple(c)) for name, c in cells.items()]
    asks = [score for members in whole.values() for score in members]
    said = Counter(score.answer for score in asks)
    offered = {len(one.choices) for one in map(questions.get, whole) if isinstance(one, Question)}
    # Without cells: which letter is said is no quantity that two solvers are tested by.
    shares = {f"says.{letter}": said[letter] / len(asks) for letter in LETTERS[: max(offered)]}
    tasks, moved = (Counter(own[0].task for own in each.values()) for each in (groups, turned))
    still = {f"excluded_in.{task}": float(n) for task, n in sorted(tasks.items()) if task not in moved}
    excluded = {"excluded": float(len(groups) - len(turned)), **still}
    counts = ((name, own, n) for own, n in ((shares, len(asks)), (excluded, len(groups))) for name in own)
    return (*metrics, *(Metric(f"rotation.{name}", own[name], n, "ratio") for name, own, n in counts))


def asked_unturned(questions: Iterable[Question | BrokenQuestion]) -> tuple[str, ...]:
    """A line on the questions that have no rotation, by task; none where all have."""
    times = Counter((one.base, one.task) for one in questions if isinstance(one, Question))
    once = Counter(task for (_, task), n in times.items() if n == 1)
    return tuple(f"--rotate: {n} of {task} have no options to move and are asked once" for task, n in once.items())


def _original(score: Score, question: Question | BrokenQuestion) -> int | None:
    """The place, among the unrotated options, of the option that was chosen; None without an answer."""
    count = len(question.choices) if isinstance(question, Question) else 0
    if score.answer is None or score.answer not in tuple(LETTERS[:count]):
        return None
    match = ROTATED.search(score.id)
    return (LETTERS.index(score.answer) + (int(match[1]) if match else 0)) % count
