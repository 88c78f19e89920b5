"""Does the MLLM use the tool output?

A finding is right if the specialist's rule, run on the tool output of this conversation, gives the right answer.
helped: alone wrong, hybrid right; harmed: the reverse; no readable answer is not right. The first repetition is used.

n: questions that the hybrid solver and the MLLM alone answered, and that are right or wrong
source: docs/evidence.md
values: 0 to n, in questions

- correct adoption = questions with: alone wrong, finding right, hybrid right
- confirmed = questions with: alone right, finding right, hybrid right
- ignored evidence = questions with: finding right, hybrid wrong
- over-trust = questions with: alone right, finding wrong, hybrid wrong
- resisted = questions with: alone right, finding wrong, hybrid right
- wrong from both = questions with: alone wrong, finding wrong, hybrid wrong
- right despite both = questions with: alone wrong, finding wrong, hybrid right
- no finding = questions with: a tool that the rule calls was called, and its output leads to no answer
- wrong tool = questions with: tools were called, but none that the rule calls
- no call = questions with: no tool was called
- unread = questions with: the finding cannot be read as an answer
- adoption rate (0 to 1) = questions with hybrid right / questions with alone wrong and finding right [n: questions
  with alone wrong and finding right]
- over-trust rate (0 to 1) = questions with hybrid wrong / questions with alone right and finding wrong [n: questions
  with alone right and finding wrong]
- harmed against a right finding rate (0 to 1) = questions with hybrid wrong / questions with alone right and finding
  right [n: questions with alone right and finding right]
- harmed without a finding rate (0 to 1) = questions with hybrid wrong / questions with alone right and no finding [n:
  questions with alone right and no finding]
- right findings rate (0 to 1) = questions with finding right / questions with finding right or wrong [n: questions
  with finding right or wrong]
- <class>: <helped|harmed|as found> = questions of the class: alone wrong and hybrid right, the reverse, or answered
  as the findings say [n: questions of the class]
- left out: <why> = questions that are in no class, by reason
- why unread: <why> = questions of the class unread, by reason
- judged by other code: <why> = questions whose tool has other code now than in the run, by reason

`findings.py` judges the finding. Every question that both solvers answered falls into exactly one class (`CLASSES`), so
every question that tools helped or harmed is in exactly one class too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import definition, statistic
from hybrid.scoring.findings import OutputVerdict, outputs_by_question
from hybrid.scoring.parts import Part, parts
from hybrid.scoring.result import QUESTIONS, Result

NAME: Final = "evidence"

DEFINED: Final = definition(__doc__)
FORMULAS: Final = {card.name: card.formula for card in DEFINED.quantities}
OF_CLASS: Final = "questions with: "
# The conditions of each class, by name, parsed from the docstring.
CLASSES: Final[Mapping[str, str]] = {
    name: words.removeprefix(OF_CLASS) for name, words in FORMULAS.items() if words.startswith(OF_CLASS)
}
CONDITIONS: Final = {name: frozenset(words.split(", ")) for name, words in CLASSES.items()}


def class_of(alone_right: bool, findings: OutputVerdict, hybrid_right: bool) -> str:
    """Return the class of a question."""
    if findings.finding in ("right", "wrong"):
        alone, hybrid = ("right" if right else "wrong" for right in (alone_right, hybrid_right))
        labels = {f"alone {alone}", f"finding {findings.finding}", f"hybrid {hybrid}"}
        return next(name for name, conditions in CONDITIONS.items() if conditions <= labels)
    if findings.finding == "unread":
        return "unread"
    if not findings.calls:
        return "no call"
    return "no finding" if findings.to_the_point else "wrong tool"


# Name of the rate over all findings that are right or wrong, and prefix of the counts of unreadable findings.
JUDGED: Final = "right findings rate"
WHY_UNREAD: Final = "why unread: "
# Prefix of the counts of questions judged by code that is not the run's.
OTHER_CODE: Final = "judged by other code: "
RATES: Final = tuple(name for name in FORMULAS if name.endswith(" rate"))


def rows(comparison: Comparison) -> Iterator[Result]:
    """Yield each class with its ids and each rate, in total and by group, if a hybrid's MLLM alone was run too."""
    for group in comparison.groups:
        if group.alone is not None:
            solvers, verdicts = (group.hybrid, group.alone), outputs_by_question(group.hybrid)
            all_parts = parts(
                comparison, NAME, *solvers, sides=(group.alone, group.hybrid), repeated=False, notes=False
            )
            overall, *groups = (replace(part, row=replace(part.row, none="", unit=QUESTIONS)) for part in all_parts)
            for part in (overall, *groups):
                yield from part.gated(*_of_part(part, [verdicts[name] for name in part.seen.ids]))
            asked_hybrid, asked_alone = (places[0] >= 0 for places in overall.shared.positions)
            left_out = {
                "not asked of the MLLM alone": asked_hybrid & ~asked_alone,
                "failed": overall.shared.lost,
                "graded, neither right nor wrong": overall.shared.present & ~overall.shared.kept,
            }
            for quantity, flags in left_out.items():
                if flags.any():
                    ids = tuple(overall.shared.ids[flags])
                    yield replace(overall.row, quantity=f"left out: {quantity}", value=float(len(ids)), ids=ids)
            yield from _by_reason(overall, WHY_UNREAD, {name: verdicts[name].unread for name in overall.seen.ids})
            yield from _by_reason(overall, OTHER_CODE, {name: verdicts[name].other_code for name in overall.seen.ids})


def _by_reason(part: Part, prefix: str, reasons: Mapping[str, str | None]) -> Iterator[Result]:
    """Yield a count of questions for each reason; None is no reason."""
    for reason in sorted({text for text in reasons.values() if text is not None}):
        ids = tuple(name for name, text in reasons.items() if text == reason)
        yield replace(part.row, quantity=f"{prefix}{reason}", value=float(len(ids)), ids=ids)


def _of_part(part: Part, verdicts: Sequence[OutputVerdict]) -> Iterator[Result]:
    hybrid, alone = (correct == 1 for correct in part.seen.correct())
    finding = np.array([verdict.finding for verdict in verdicts])
    classes = np.array([class_of(*facts) for facts in zip(alone.tolist(), verdicts, hybrid.tolist(), strict=True)])
    agrees = [
        verdict.answer is not None and verdict.answer == gave
        for verdict, gave in zip(verdicts, part.seen.answer[0], strict=True)
    ]
    details = {"helped": hybrid & ~alone, "harmed": alone & ~hybrid, "as found": np.array(agrees, bool)}
    for name in CLASSES:
        inside = classes == name
        # If no output can be judged, such as after the loss of a tool's rules, the other counts are unknown and not 0.
        if not inside.any() and (part.row.group or (classes == "unread").all()):
            continue
        yield part.count(name, inside)
        for what, flags in details.items():
            if (members := inside & flags).any():
                yield part.count(f"{name}: {what}", members, n=int(inside.sum()), detail=True)
    right, wrong = finding == "right", finding == "wrong"
    shares = (
        (hybrid, ~alone & right),
        (~hybrid, alone & wrong),
        (~hybrid, alone & right),
        (~hybrid, alone & (finding == "none")),
        (right, right | wrong),
    )
    for rate, (counts, over) in zip(RATES, shares, strict=True):
        if over.any() or not part.row.group:
            yield part.share(rate, (counts & over).astype(float), over.astype(float))


def lead(_: Comparison, section_rows: Sequence[Result]) -> str:
    """State how often each hybrid solver adopted right and followed wrong findings, and how many had no verdict."""
    overall_rows = {(row.a, row.b, row.quantity): row for row in section_rows if not row.group}
    counts = {of: f"{round((row.value or 0.0) * (row.n or 0))} of {row.n}" for of, row in overall_rows.items()}
    sentences = []
    for a, b in dict.fromkeys((a, b) for a, b, _ in overall_rows):
        if (a, b, JUDGED) not in overall_rows:
            continue
        if overall_rows[a, b, JUDGED].n:
            took = f"{b} took up {counts[a, b, 'adoption rate']} right findings that {a} needed"
            followed = f"{b} followed {counts[a, b, 'over-trust rate']} wrong ones against its own right answer"
            if not overall_rows[a, b, "adoption rate"].n:
                took = f"No judged finding of {b} was right where {a} was wrong"
            if not overall_rows[a, b, "over-trust rate"].n:
                followed = f"no judged finding of {b} was wrong where {a} was right"
            sentences.append(f"{took}; {followed}.")
        else:
            sentences.append(f"No finding of {b} could be judged right or wrong.")
        sentences += (
            f"Not judged: {row.value:.0f} questions of {b} ({what.removeprefix(WHY_UNREAD)})."
            for (of_a, of_b, what), row in overall_rows.items()
            if (of_a, of_b) == (a, b) and what.startswith(WHY_UNREAD)
        )
        sentences += (
            f"Uncertain: {row.value:.0f} questions of {b} were judged by other code ({what.removeprefix(OTHER_CODE)})."
            for (of_a, of_b, what), row in overall_rows.items()
            if (of_a, of_b) == (a, b) and what.startswith(OTHER_CODE)
        )
    return " ".join(sentences)


# For each rate, the questions that it counts, and the questions of which these are a share.
COUNTED = {name: FORMULAS[name].removeprefix("questions with ").split(" / questions with ") for name in RATES}

SECTION = statistic(
    rows,
    lead,
    # The explanation, then one line for each class and rate.
    about="\n".join(
        (
            DEFINED.about,
            *(f"{name}: {words}." for name, words in CLASSES.items()),
            *(f"{name}, {over}: {counts}." for name, (counts, over) in COUNTED.items()),
        )
    ),
    headings={"a": "alone", "b": "hybrid"},
    chart="counts",
    charted=tuple(CLASSES),
    order=140,
)
