"""Is the hybrid solver at most a margin worse than each of its parts?

A hybrid solver is not inferior if the whole interval is above -margin, superior if it is above 0, inferior if it is
below -margin; otherwise the result is undecided. The one-sided p of a loss is below 0.025 if not inferior; it belongs
to no family of tests.

n: questions that both have and neither failed
source: docs/statistics.md; paired by question, resampled by cluster

- difference (-1 to 1) = value of the hybrid solver - value of the part, by the headline metric. Non-inferior if
  the lower end of the 95 % interval is above -margin.
- margin = --margin [source: the user's choice, default 0.05]
- one-sided p of a loss of the margin or more = p of the same statistic at a true difference of -margin [source:
  Piaggio et al., JAMA 308 (2012) 2594-2604; close to Tango, Statistics in Medicine 17 (1998) 891-908]

The section compares the headline metric of the benchmark over the questions that both have and neither failed; the
interval is that of `differences.py`. If nothing is tested, every verdict is undecided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hybrid.scoring.compare import Comparison
from hybrid.scoring.conclusion_rows import ConclusionRows
from hybrid.scoring.conclusion_words import signed
from hybrid.scoring.definitions import statistic
from hybrid.scoring.headline_pair import with_claim
from hybrid.scoring.result import FRACTION, UNTESTED, Result
from hybrid.stats import ends_of, noninferiority

NAME = "noninferior"


def rows(comparison: Comparison) -> Iterator[Result]:
    """Yield difference, margin and one-sided p for each hybrid solver and each of its parts; notes have the verdict.

    Raises `UsageError` if the margin is not above 0.
    """
    rows_of_pairs = ConclusionRows(comparison, ("differences", "helped", "answered"))
    for group in comparison.groups:
        for part in group.parts:
            shared, margin = comparison.overlap(part, group.hybrid), comparison.options.margin
            metrics = shared.headline(group.hybrid.unanswered)
            if metrics is None:
                continue
            a, b = metrics
            row = Result(NAME, "difference", FRACTION, None, a=part.solver, b=group.hybrid.solver, metric=a.name, n=a.n)
            untested = shared.untested(metrics)
            one_sided = None
            if untested is None:
                tested = noninferiority(a, b, margin)
                one_sided, (low, high) = tested.p_value, ends_of(tested.interval)
                row = replace(row, value=tested.difference, low=low, high=high, note=tested.verdict)
                yield with_claim(row, rows_of_pairs.tested_pair(part, group.hybrid))
            else:
                value = None if a.value is None or b.value is None else b.value - a.value
                yield replace(row, value=value, note=f"undecided; {UNTESTED[untested]}")
            bare = replace(row, value=None, low=None, high=None, note="")
            yield replace(bare, quantity="margin", value=margin)
            quantity = "one-sided p of a loss of the margin or more"
            yield replace(bare, quantity=quantity, unit="probability", value=one_sided)


def lead(_: Comparison, section_rows: Sequence[Result]) -> str:
    """Name the pairs whose verdicts cannot be claimed, each with the reason why its difference supports no claim."""
    return " ".join(
        f"No verdict on {row.b} and {row.a} is claimed: the difference is {signed(row)}, {row.no_claim}."
        for row in section_rows
        if row.no_claim
    )


SECTION = statistic(rows, lead, headings={"a": "measured against", "b": "hybrid solver"}, order=110)
