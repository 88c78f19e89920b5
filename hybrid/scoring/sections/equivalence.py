"""Are two solvers equal within a margin?

equal: the whole 90 % interval of the difference is inside -margin to margin (two one-sided tests at 5 %); the margin is
--margin, by default 0.05. "No significant difference" does not mean equal: it may only mean too few questions. p is the
greater of the two p values. p (Holm) is adjusted within the family of the claim.

n: questions that both have and neither failed; for the two effects, that all three have
source: Schuirmann 1987, J. Pharmacokinetics and Biopharmaceutics 15, 657-680; docs/statistics.md

- gain (-1 to 1) = with tools - alone; its interval is the 90 % one
- effect of offering (-1 to 1) = with blank tools - alone; its interval is the 90 % one
- effect of output (-1 to 1) = with tools - with blank tools; its interval is the 90 % one

The section uses the benchmark's headline metric if it is a share. p is the greater p value of the two one-sided tests,
"the difference is -margin or less" and "the difference is margin or more". It is below 0.05 if and only if the 90 %
interval is inside the margin. Interval and statistic are those of `differences.py`, at another level. A difference can
be significant and still equal within the margin: it is then small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hybrid.scoring.compare import Comparison
from hybrid.scoring.conclusion_rows import ConclusionRows
from hybrid.scoring.definitions import statistic
from hybrid.scoring.families import family_of_pair
from hybrid.scoring.headline_pair import with_claim
from hybrid.scoring.parts import ToolEffect, tool_effects
from hybrid.scoring.result import Result, adjusted
from hybrid.scoring.tally import OTHER
from hybrid.stats import ends_of, equivalence

NAME: Final = "equivalence"
EQUAL, BEYOND, OPEN = "equal within", "different by more than", "not shown to be equal within"
HANGS: Final = "depends on how unanswered questions count"
UNADJUSTED: Final = "not after adjustment (Holm)"
LEVEL: Final = 0.9


def rows(comparison: Comparison) -> list[Result]:
    """Return gain and effects of each hybrid solver with their 90 % intervals; the note has the verdict.

    Raises `UsageError` for a margin that is not above 0.
    """
    margin = comparison.options.margin
    effects = (effect for group in comparison.groups for effect in tool_effects(comparison, group))
    rows_of_pairs = ConclusionRows(comparison, ("differences", "helped", "answered"))
    tested = [
        with_claim(_tested(effect, margin), rows_of_pairs.tested_pair(effect.a, effect.b))
        for effect in effects
        if effect.is_share
    ]
    section_rows = adjusted(tested, lambda row: family_of_pair(comparison, row.a, row.b))
    return [row.noted(UNADJUSTED if row.note.startswith(EQUAL) and not row.holds else "") for row in section_rows]


def _tested(effect: ToolEffect, margin: float) -> Result:
    row, (a, b) = effect.row(NAME), effect.metrics
    if reason := effect.why_untested:
        difference = None if a.value is None or b.value is None else b.value - a.value
        return replace(row, value=difference).noted(f"{OPEN} {margin:g}", reason)
    test = equivalence(a, b, margin)
    low, high = ends_of(test.interval)
    verdict = EQUAL if test.equal else BEYOND if test.beyond else OPEN
    row = replace(row, value=test.difference, low=low, high=high, p=test.p_value, level=LEVEL)
    other = equivalence(*effect.by_rule(OTHER[effect.shared.rule]), margin)
    return row.noted(f"{verdict} {margin:g}", HANGS if other.equal != test.equal else "")


def is_equal(row: Result) -> bool:
    """Return whether a row asserts equality: after adjustment, by either rule, and of a difference that has a claim."""
    return row.note.startswith(EQUAL) and HANGS not in row.note and row.holds and not row.no_claim


def verdict_of(row: Result) -> str:
    """Return the verdict; "equal" becomes "open" if adjustment or the other rule does not support it."""
    verdict = row.note.split(";")[0]
    return verdict if is_equal(row) or not verdict.startswith(EQUAL) else verdict.replace(EQUAL, OPEN)


def lead(comparison: Comparison, section_rows: Sequence[Result]) -> str:
    """State how many of the differences are equal within the margin."""
    verdicts = [(f"{row.quantity} of {row.b}", is_equal(row)) for row in section_rows]
    equal = [name for name, holds in verdicts if holds]
    margin = f"{100 * comparison.options.margin:g} points"
    if not equal:
        return f"Nothing is shown to be equal within {margin}."
    return f"Equal within {margin}: {', '.join(equal)} ({len(equal)} of {len(verdicts)})."


SECTION = statistic(rows, lead, headings={"a": "measured against", "b": "solver"}, order=111)
