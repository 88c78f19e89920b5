"""MM-SAP's rule for letters and its numbers (paper, section 4, equations 1 to 8), as fractions of 1.

Totals are over questions, not over sets: kk_T = (400 kk_Basic + 350 kk_Know) / 1150, ku_T = (350 ku_Know +
400 ku_Beyond) / 1150. Table 4's Unknown Knowns Rate only fits with the refusals as denominator; equation 8 prints the
number of questions, so both are given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import stdev

from hybrid.answers.base import Parsed
from hybrid.answers.letters import parse_letter
from hybrid.benchmarks._shared.scores import grouped, ratio
from hybrid.benchmarks.base import present
from hybrid.benchmarks.mm_sap.columns import SETS, plain
from hybrid.types import LETTERS, Metric, Score

Values = Mapping[str, float]

SIZES = {name: count for name, (_, count) in SETS.items()}


def read_answer(text: str, choices: Sequence[str], parse: str) -> Parsed[int]:
    """The place (from 0) of the option chosen, by the strict parse or the paper's direct match of letters."""
    if parse == "official":
        place = official_place(text, choices)
        return Parsed(place, "none" if place is None else "official")
    parsed = parse_letter(text, choices)
    return Parsed(None if parsed.value is None else LETTERS.index(parsed.value), parsed.rule)


def official_place(text: str, choices: Sequence[str]) -> int | None:
    """Direct match of the option's characters (paper, appendix B): a letter at the start, or an option's exact text.

    The paper does not print its rule; "B", "B.", "(B) ..." and "B: ..." count, and so does the refusal sentence itself.
    """
    answer = text.strip()
    match = re.match(r"\(?([A-Z])(?:[).:,]|\s*$)", answer)
    if match and match[1] in LETTERS[: len(choices)]:
        return LETTERS.index(match[1])
    same = [place for place, choice in enumerate(choices) if answer and plain(choice) == plain(answer)]
    return same[0] if len(same) == 1 else None


def values_of(name: str, correct: int | None, refusal: int, first: int | None, second_right: bool | None) -> Values:
    """Terms that one answered question adds to the sums.

    Args:
        name: the set.
        correct: place of the correct option, None where there is none.
        refusal: place of the refusal option.
        first: the place chosen; None (unreadable) counts as answered and wrong.
        second_right: whether the second pass chose the correct option; None where there was none.
    """
    refused = first == refusal
    right = correct is not None and first == correct
    knew = name == "KnowVisQA" and refused and second_right is True
    unknown = name == "BeyondVisQA" or (name == "KnowVisQA" and second_right is False)
    return _record(float(right), float(refused and unknown), float(refused), float(knew))


def values_at_chance(name: str, options: int) -> Values:
    """Expected terms of a uniform random choice: the worth of an abstention."""
    each = 1 / options
    unknown = {"BasicVisQA": 0.0, "KnowVisQA": 1 - 1 / (options - 1), "BeyondVisQA": 1.0}[name]
    kk = 0.0 if name == "BeyondVisQA" else each
    return _record(kk, each * unknown, each, each / (options - 1) if name == "KnowVisQA" else 0.0)


def values_of_nothing() -> Values:
    """Terms of an ask without any answer, and of a question that was never asked: neither right nor a refusal."""
    return _record(0.0, 0.0, 0.0, 0.0)


def _record(kk: float, ku: float, refused: float, knew: float) -> Values:
    return {"kk": kk, "ku": ku, "sa": kk + ku, "refused": refused, "answered": 1.0 - refused, "knew": knew}


def totals(sizes: Mapping[str, int], kk: Mapping[str, float], ku: Mapping[str, float]) -> tuple[float, float, float]:
    """Total kk, ku and sa from the columns of a table (in its own unit), weighted by the sizes of the sets.

    `kk` and `ku` hold the columns that exist: kk of Basic and Know, ku of Know and Beyond.
    """
    count = sum(sizes.values())
    total_kk = sum(sizes[name] * value for name, value in kk.items()) / count
    total_ku = sum(sizes[name] * value for name, value in ku.items()) / count
    return total_kk, total_ku, total_kk + total_ku


def summarise(scores: Sequence[Score]) -> tuple[Metric, ...]:
    """The scores in total, by set and by type of question, the refusals, and mean and spread over the shuffles."""
    counted = [score if score.values else replace(score, values=values_of_nothing()) for score in present(scores)]
    by_set = grouped(counted, lambda score: score.task)
    metrics = [ratio(f"score_{key}.total", counted, key) for key in ("sa", "kk", "ku")]
    for name in (name for name in SETS if name in by_set):
        metrics += [ratio(f"score_{key}.{name}", by_set[name], key) for key in _columns(name)]
    for kind, part in grouped(counted, lambda score: score.groups.get("type", "")).items():
        metrics += [ratio(f"score_{key}_by_type.{kind}", part, key) for key in ("sa", "kk", "ku")]
    for name in (name for name in SETS if name in by_set):
        metrics += _answers(name, by_set[name])
    if know := by_set.get("KnowVisQA"):
        metrics.append(ratio("unknown_knowns_rate", know, "knew", "refused"))
        metrics.append(ratio("unknown_knowns_rate_eq8", know, "knew"))
    return (*metrics, *_spread(counted))


def _columns(name: str) -> tuple[str, ...]:
    return {"BasicVisQA": ("kk",), "KnowVisQA": ("kk", "ku", "sa"), "BeyondVisQA": ("ku",)}[name]


def _answers(name: str, scores: Sequence[Score]) -> list[Metric]:
    metrics = [ratio(f"answer_rate.{name}", scores, "answered"), ratio(f"refusal_rate.{name}", scores, "refused")]
    if name != "BeyondVisQA":
        metrics.append(ratio(f"answer_accuracy.{name}", scores, "kk", "answered"))
    if name == "BasicVisQA":
        metrics.append(ratio("false_refusals", scores, "refused"))
    if name == "BeyondVisQA":
        metrics.append(ratio("missed_refusals", scores, "answered"))
    return metrics


def _spread(scores: Sequence[Score]) -> Iterable[Metric]:
    """Each shuffle's totals, and the standard deviation (n - 1) over the shuffles; their mean is the total itself."""
    shuffles = dict(sorted(grouped(scores, lambda score: score.groups.get("shuffle", "")).items()))
    if len(shuffles) < 2:
        return
    for key in ("sa", "kk", "ku"):
        runs = {name: ratio(f"score_{key}_by_shuffle.{name}", part, key) for name, part in shuffles.items()}
        yield from runs.values()
        known = [metric.value for metric in runs.values() if metric.value is not None]
        # A spread is no ratio of sums: it carries no cells, and so no interval.
        yield Metric(f"spread_over_shuffles.{key}", stdev(known), len(known), "ratio")
