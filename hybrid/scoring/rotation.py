"""Accuracy and consistency over the rotations of each question's options, and the letters that were chosen."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from hybrid.core.option_rotation import ROTATED
from hybrid.core.types import LETTERS, BrokenQuestion, Cell, Metric, Question, Score
from hybrid.stats import combine


def rotation_metrics(questions: Mapping[str, Question | BrokenQuestion], scores: Sequence[Score]) -> tuple[Metric, ...]:
    """Return the metrics of the rotations; none if no question was rotated.

    `rotation.accuracy` is over all rotations. `rotation.consistency` is the share of questions with the same option
    chosen in every rotation, and `rotation.all_correct` the share of questions right in every rotation.
    `rotation.says.LETTER` is the share of rotations that were answered with this letter. `rotation.excluded` is the
    number of questions without rotations; `rotation.excluded_in.TASK` is that number for each task without any
    rotation. A question is left out if one of its rotations failed.
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
    # These metrics have no cells, because solvers are not compared by chosen letters.
    shares = {f"says.{letter}": letter_counts[letter] / len(asks) for letter in LETTERS[: max(choice_counts)]}
    tasks, moved = (Counter(members[0].task for members in grouping.values()) for grouping in (groups, multiples))
    still = {f"excluded_in.{task}": float(n) for task, n in sorted(tasks.items()) if task not in moved}
    excluded = {"excluded": float(len(groups) - len(multiples)), **still}
    counts = ((name, values, n) for values, n in ((shares, len(asks)), (excluded, len(groups))) for name in values)
    return (*metrics, *(Metric(f"rotation.{name}", values[name], n, "ratio") for name, values, n in counts))


def _original(score: Score, question: Question | BrokenQuestion) -> int | None:
    """Return the index of the chosen option among the unrotated options; None without an answer."""
    count = len(question.choices) if isinstance(question, Question) else 0
    if score.answer is None or score.answer not in tuple(LETTERS[:count]):
        return None
    match = ROTATED.search(score.id)
    return (LETTERS.index(score.answer) + (int(match[1]) if match else 0)) % count
