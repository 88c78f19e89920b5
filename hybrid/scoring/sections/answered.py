"""Is it ahead where the specialists answer, or where they do not?

The first solver is a specialist, which answers some of the questions and gives no answer to others. p is of the
difference in the row, adjusted (Holm) over the pairs.

n: questions of the row that both have and neither failed
source: ours
values: -1 to 1

- difference = value b - value a. Where they give no answer, a guess would be compared: no difference is told.
  [source: ours; docs/arbiter.md; paired by question, resampled by cluster]
- value <a|b> (0 to 1) = the headline metric over the questions of the row
- right <a|b> (0 to n, in questions) = right answers

An abstention counts as a guess or as wrong, so a solver that always answers is ahead on questions that have no
specialist. That is no comparison with one: the difference is tested where the specialists answer, and the rest is told.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.groups import role
from hybrid.scoring.result import QUESTIONS, Result, adjusted, contrasted, unit_of
from hybrid.scoring.table import answered

NAME = "answered"
SPOKEN, SILENT = "the specialists answer", "they give no answer"


def rows(comparison: Comparison) -> list[Result]:
    """Both parts of each pair of a specialist and another solver, where the specialist answers some and not all."""
    made: list[Result] = []
    for pair in comparison.pairs:
        both = sorted(map(comparison.named, pair), key=lambda one: role(one) != "specialist")
        if [role(one) == "specialist" for one in both] != [True, False]:
            continue
        whole = comparison.overlap(*both)
        spoken = whole.present & answered(whole.answer[0])
        silent = whole.present & ~spoken
        if not (spoken.any() and silent.any()):
            continue
        for name, answers in ((SPOKEN, spoken), (SILENT, silent)):
            # What failed belongs to both parts: a benchmark leaves out what it is a part of.
            part = whole.at(np.flatnonzero(answers | ~whole.present))
            metrics, names = part.headline(part.rule), (both[0].solver, both[1].solver)
            if metrics is None:
                continue
            a, b = metrics
            row = Result(NAME, "difference", unit_of(metrics), None, *names, a.name, name, a.n, none=part.rule)
            if name == SPOKEN:
                made.append(contrasted(row, a, b, part.untested(metrics))[0])
                made.append(replace(row, quantity="value a", value=a.value))
            made.append(replace(row, quantity="value b", value=b.value))
            for side, right in zip("ab", part.right, strict=True) if part.kept.any() else ():
                ids = tuple(part.ids[part.kept & (right == 1)])
                counted = replace(row, quantity=f"right {side}", unit=QUESTIONS, n=part.n, none="", ids=ids)
                made.append(replace(counted, value=float(len(ids))))
    return adjusted(made, lambda row: row.quantity)


SECTION = statistic(rows, headings={"group": "questions where", "a": "specialists", "b": "next to them"}, order=25)
