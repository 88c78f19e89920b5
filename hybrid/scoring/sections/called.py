"""How right are the tools where the model calls them?

Compares the answers of the specialists alone on questions where the model called a tool with their answers on questions
where it did not. overconfidence: above 0, the tools claim more than they get right. p (Holm) is adjusted over all rows
of the same quantity.

n: questions that the specialists answer, and that neither failed
source: ours; docs/statistics.md; paired by question, resampled by cluster

- specialists right where called = right / questions with a call that the specialists answer [n: such questions]
- specialists right where not called = right / questions without a call that the specialists answer [n: such questions]
- difference where called (-1 to 1) = specialists right where called - specialists right where not called
- overconfidence where <called|not called> (-1 to 1) = mean of confidence - right, over
  questions with a call, or without [n: such questions whose answer has a confidence]
- Brier score where <called|not called> = mean of (confidence - right)^2, over questions with a call, or without [n:
  such questions whose answer has a confidence]

A call that ended in a fault does not count. The confidence is that of the specialists' last answer to a question, in
0..1; for a calibrated tool it equals the share of right answers, whether or not the tool is called. Brier, Monthly
Weather Review 78 (1950) 1-3. The specialists answer with calls that a fixed rule makes; the model does not see these
answers in its conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from hybrid.scoring.attempt_facts import facts_of
from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.findings import outputs_by_question
from hybrid.scoring.parts import Part, parts
from hybrid.scoring.result import Family, Result, adjusted
from hybrid.scoring.score import Floats, Scored, answered
from hybrid.stats import difference_apart, ends_of, mean_interval


def call_share(comparison: Comparison, hybrid: Scored, ids: Iterable[str], *, repeated: bool = True) -> Floats:
    """Return for each question the share of repetitions in which a tool answered a call; failed calls do not count.

    Without `repeated` only the first repetition is read. nan if no repetition has a readable trace.
    """
    repetitions = comparison.repetitions(hybrid) if repeated else (hybrid,)
    verdicts = [outputs_by_question(scored) for scored in repetitions]

    def share(identity: str) -> float:
        traced = [of[identity] for of in verdicts if identity in of and not of[identity].no_trace]
        return sum(bool(verdict.tools) for verdict in traced) / len(traced) if traced else np.nan

    return np.array([share(identity) for identity in ids], float)


NAME: Final = "called"
WHERE_CALLED, WHERE_NOT = "specialists right where called", "specialists right where not called"
DIFFERENCE: Final = "difference where called"
OVER, BRIER = "overconfidence", "Brier score"


def rows(comparison: Comparison) -> list[Result]:
    """Return rows, over all questions and by group, for hybrid solvers with a trace and separately run specialists."""
    results: list[Result] = []
    for group in comparison.groups:
        if group.specialist is not None:
            results += _of_pair(comparison, group.specialist, group.hybrid)
    return adjusted(results, lambda row: Family(row.quantity, ("task",) if row.group else ()))


def _of_pair(comparison: Comparison, specialist: Scored, hybrid: Scored) -> Iterator[Result]:
    claimed = confidences(specialist)
    for part in parts(comparison, NAME, specialist, hybrid, repeated=False):
        calls = call_share(comparison, hybrid, part.seen.ids, repeated=False)
        flags = answered(part.seen.answer[0]) & ~np.isnan(calls)
        with_calls, calls = part.only(flags), calls[flags]
        if not part.row.group and not calls.any():
            return
        yield from part.gated(*_accuracy(with_calls, calls))
        if not part.row.group:
            yield from part.gated(*_calibration(with_calls, calls, claimed))


def _accuracy(part: Part, calls: Floats) -> Iterator[Result]:
    right = np.nan_to_num(part.seen.correct()[0])
    for quantity, inside in ((WHERE_CALLED, calls), (WHERE_NOT, 1 - calls)):
        if inside.any():
            yield part.share(quantity, right * inside, inside, none="")
    test = difference_apart(right, 1 - calls, calls, part.seen.unit.tolist())
    if test.difference is not None:
        low, high = ends_of(test.interval)
        yield part.number(DIFFERENCE, test.difference, low=low, high=high, p=test.p_value, none="")


def _calibration(part: Part, calls: Floats, claimed: Mapping[str, float]) -> Iterator[Result]:
    confidence = np.array([claimed.get(name, np.nan) for name in part.seen.ids], float)
    for words, inside in (("where called", calls == 1), ("where not called", calls == 0)):
        flags = inside & ~np.isnan(confidence)
        if not flags.any():
            continue
        subset = part.only(flags)
        excess = confidence[flags] - np.nan_to_num(subset.seen.correct()[0])
        units = subset.seen.unit.tolist()
        for name, values in ((OVER, excess), (BRIER, excess**2)):
            low, high = ends_of(mean_interval(values, units))
            yield subset.number(f"{name} {words}", float(values.mean()), low=low, high=high, none="")


def confidences(specialist: Scored) -> dict[str, float]:
    """Return by question the confidence of the specialists' last answer; questions without a usable one are missing."""
    if specialist.folder is None:
        return {}
    recorded = specialist.folder.recorded(specialist.recorded)
    values = {}
    for score in specialist.scores:
        if score.id in recorded.by_id:
            value = facts_of(recorded, score.id).confidence
            if value is not None:
                values[score.id] = value
    return values


def lead(comparison: Comparison, section_rows: Sequence[Result]) -> str:
    """State how often the specialists are right where each hybrid solver calls them, and elsewhere."""
    sentences = []
    for group in comparison.groups:
        of = {row.quantity: row for row in section_rows if row.b == group.hybrid.solver and not row.group}
        if WHERE_CALLED in of and WHERE_NOT in of:
            shares = [f"{100 * (of[name].value or 0):.0f} % of {of[name].n}" for name in (WHERE_CALLED, WHERE_NOT)]
            sentences.append(
                f"The specialists are right on {shares[0]} where {group.hybrid.solver} calls a tool and on "
                f"{shares[1]} elsewhere."
            )
    return " ".join(sentences)


SECTION = statistic(rows, lead, headings={"a": "specialists", "b": "with tools"}, order=151)
