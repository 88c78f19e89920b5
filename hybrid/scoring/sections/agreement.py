"""Do two solvers make the same mistakes?

A question is wrong here where it is not answered rightly; no answer is not right, under either rule. expected: both
wrong if their errors were independent, over all questions at once; within tasks: the same within each task and number
of choices. kappa: agreement in right and wrong beyond chance. p is of independence within tasks, adjusted (Holm) over
the rows.

n: questions that both have and neither failed
source: ours
values: 0 to n, in questions

- wrong <a|b> = questions that the solver does not answer rightly
- both wrong = questions that neither answers rightly
- expected = wrong a * wrong b / n [source: independence of errors over all questions]
- expected within tasks = sum over strata of wrong a * wrong b / questions [source: independence of errors within each
  task and number of choices]
- same wrong answer = questions to which both give the same wrong answer
- both wrong / expected within tasks (0 and above) = both wrong / expected within tasks. 1 is independence. [source:
  p: exact and conditional, Gart, Biometrika 57 (1970) 471-475; over clusters Mantel and Haenszel, JNCI 22 (1959)
  719-748, with Zhang and Boos, Biometrics 53 (1997) 1185-1198]
- kappa (-1 to 1) = (p_o - p_e) / (1 - p_e). p_o: share of questions that both have right or both have wrong; p_e:
  that share were they independent. [source: Cohen, Educational and Psychological Measurement 20 (1960) 37-46;
  interval after Fleiss, Cohen and Everitt (1969), over clusters Yang and Zhou (2014)]

Two solvers that are wrong about the same questions more often than independent errors would be have something in
common: hard questions, the same training data, the same weakness. A vote of the two, or a rule that asks the second
where the first is unsure, gains little from such a pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hybrid.scoring.compare import Comparison, SolverPair
from hybrid.scoring.definitions import statistic
from hybrid.scoring.overlap import SharedQuestion
from hybrid.scoring.result import QUESTIONS, Result, adjusted, gated
from hybrid.scoring.score import Scored
from hybrid.stats.kappa import kappa, shared_mistakes
from hybrid.types import Question

NAME = "agreement"
RATIO = "both wrong / expected within tasks"


def rows(comparison: Comparison) -> list[Result]:
    """Counts, ratio and kappa of each pair on the questions that both have and neither failed."""
    return adjusted([row for pair in comparison.pairs for row in _of_pair(comparison, pair)], lambda row: row.section)


def _of_pair(comparison: Comparison, pair: SolverPair) -> Iterator[Result]:
    a, b = comparison.named(pair.a), comparison.named(pair.b)
    shared = comparison.overlap(a, b, repeated=False)
    kept = shared.kept
    if not kept:
        return
    right_a, right_b = ([row.right[place] == 1 for row in kept] for place in (0, 1))
    units = [row.first.unit for row in kept]
    mistakes = shared_mistakes(right_a, right_b, [_stratum(row, a, b) for row in kept], units)
    both_wrong = tuple(row.first.id for row in kept if 1 not in row.right)
    same = tuple(
        row.first.id for row in kept if 1 not in row.right and row.scores[0].answer == row.scores[1].answer is not None
    )
    line = Result(NAME, "", QUESTIONS, None, *pair, n=mistakes.n)
    counts: dict[str, tuple[float, tuple[str, ...]]] = {
        "wrong a": (mistakes.wrong_a, ()),
        "wrong b": (mistakes.wrong_b, ()),
        "both wrong": (mistakes.both_wrong, both_wrong),
        "expected": (mistakes.expected, ()),
        "expected within tasks": (mistakes.expected_within, ()),
        "same wrong answer": (len(same), same),
    }
    for name, (value, ids) in counts.items():
        yield replace(line, quantity=name, value=float(value), ids=ids)
    agreed = kappa(right_a, right_b, units)
    low, high = (agreed.interval.low, agreed.interval.high) if agreed.interval else (None, None)
    made = (
        replace(line, quantity=RATIO, unit="ratio", value=mistakes.ratio, p=mistakes.p_value),
        replace(line, quantity="kappa", unit="kappa", value=agreed.value, low=low, high=high),
    )
    yield from gated(made, shared.untested(allow_failed=comparison.options.allow_failed, whole=shared))


def _stratum(row: SharedQuestion, a: Scored, b: Scored) -> str:
    """Task and number of choices: within these, what is hard for everybody is not taken for something shared."""
    asked = [one.questions.get(row.first.id) for one in (a, b)]
    choices = max((len(question.choices) for question in asked if isinstance(question, Question)), default=0)
    return f"{row.first.task}, {choices} choices"


SECTION = statistic(rows, order=160)
