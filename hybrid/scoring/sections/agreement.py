"""Do two solvers make the same mistakes?

A question is wrong here if it is not answered correctly; an unanswered question is not correct, under either rule.
expected: the number of questions that both would get wrong if their errors were independent, over all questions
together; within tasks: the same within each task and number of choices. kappa: agreement in right and wrong beyond
chance. p tests independence within tasks. p (Holm) is adjusted over the rows. For a repeated solver, the first
repetition is used.

n: questions that both have and neither failed
source: ours
values: 0 to n, in questions

- wrong <a|b> = questions that the solver does not answer correctly
- both wrong = questions that neither answers correctly
- expected = wrong a * wrong b / n [source: independence of errors over all questions]
- expected within tasks = sum over strata of wrong a * wrong b / questions [source: independence of errors within each
  task and number of choices]
- same wrong answer = questions to which both give the same wrong answer
- both wrong / expected within tasks (0 and above) = both wrong / expected within tasks. 1 means independence. [source:
  p: exact and conditional, Gart, Biometrika 57 (1970) 471-475; over clusters Mantel and Haenszel, JNCI 22 (1959)
  719-748, with Zhang and Boos, Biometrics 53 (1997) 1185-1198]
- kappa (-1 to 1) = (p_o - p_e) / (1 - p_e). p_o: share of questions that both have right or both have wrong; p_e: that
  share if they were independent. [source: Cohen, Educational and Psychological Measurement 20 (1960) 37-46; interval
  after Fleiss, Cohen and Everitt (1969), over clusters Yang and Zhou (2014)]

Two solvers that are wrong about the same questions more often than independent errors would be have something in
common: hard questions, the same training data, or the same weakness. A vote of the two, or a rule that asks the second
if the first is unsure, gains little from such a pair.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace

from hybrid.core.types import Question
from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.families import ALL_PAIRS
from hybrid.scoring.parts import parts
from hybrid.scoring.result import QUESTIONS, Result, adjusted
from hybrid.scoring.score import AnyQuestions, answered
from hybrid.stats import ends_of
from hybrid.stats.kappa import kappa, shared_mistakes

NAME = "agreement"
RATIO = "both wrong / expected within tasks"


def rows(comparison: Comparison) -> list[Result]:
    """Return counts, ratio and kappa of each pair on the questions that both have and neither failed."""
    section_rows: list[Result] = []
    # The solvers of a run share their questions, so the choices of each are counted once.
    choice_counts: dict[int, dict[str, int]] = defaultdict(dict)
    for pair in comparison.pairs:
        solvers = comparison.named(pair.a), comparison.named(pair.b)
        part = next(parts(comparison, NAME, *solvers, repeated=False, notes=False))
        if not len(part):
            continue
        part = replace(part, row=replace(part.row, none="", unit=QUESTIONS))
        right_a, right_b = (column == 1 for column in part.seen.right)
        units, tasks = part.seen.unit.tolist(), part.seen.task
        # Stratify by task and number of choices, so that questions that are hard for everybody do not count as shared
        # errors.
        counts = [
            _count_choices(solver.questions, part.seen.ids, choice_counts[id(solver.questions)]) for solver in solvers
        ]
        choices = map(max, *counts)
        strata = [f"{task}, {count} choices" for task, count in zip(tasks, choices, strict=True)]
        mistakes = shared_mistakes(right_a.tolist(), right_b.tolist(), strata, units)
        both_wrong = ~right_a & ~right_b
        same = both_wrong & answered(part.seen.answer[0]) & (part.seen.answer[0] == part.seen.answer[1])
        agreed = kappa(right_a.tolist(), right_b.tolist(), units)
        low, high = ends_of(agreed.interval)
        section_rows += (
            part.number("wrong a", float(mistakes.wrong_a)),
            part.number("wrong b", float(mistakes.wrong_b)),
            part.count("both wrong", both_wrong),
            part.number("expected", float(mistakes.expected)),
            part.number("expected within tasks", float(mistakes.expected_within)),
            part.count("same wrong answer", same),
        )
        section_rows += part.gated(
            part.number(RATIO, mistakes.ratio, unit="ratio", p=mistakes.p_value),
            part.number("kappa", agreed.value, unit="kappa", low=low, high=high),
        )
    return adjusted(section_rows, lambda row: ALL_PAIRS)


def _count_choices(questions: AnyQuestions, ids: Collection[str], known: dict[str, int]) -> list[int]:
    """Return the number of choices of each question, 0 if it has none or cannot be read; `known` is the cache."""
    for identity in ids:
        if identity not in known:
            question = questions.get(identity)
            known[identity] = len(question.choices) if isinstance(question, Question) else 0
    return [known[identity] for identity in ids]


SECTION = statistic(rows, order=160)
