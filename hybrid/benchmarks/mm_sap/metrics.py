"""MM-SAP's rule for letters and its metrics (paper, section 4, equations 1 to 8), as fractions of 1.

Totals are over questions, not over sets: kk_T = (400 kk_Basic + 350 kk_Know) / 1150, ku_T = (350 ku_Know + 400
ku_Beyond) / 1150. Table 4's Unknown Knowns Rate is consistent only with the number of refusals as denominator, while
equation 8 has the number of questions there, so both rates are given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import stdev

from hybrid.answers.base import Parsed
from hybrid.answers.letters import parse_letter
from hybrid.benchmarks.mm_sap.columns import plain
from hybrid.core.types import LETTERS, Metric

Values = Mapping[str, float]

SHUFFLED = "_by_shuffle."


def read_answer(text: str, choices: Sequence[str], parse: str) -> Parsed[int]:
    """Return the index (from 0) of the chosen option, by the strict parse or the paper's direct match.

    The direct match looks for the option's characters (appendix B): a letter at the start, or an option's exact text.
    The paper does not print its rule; "B", "B.", "(B) ..." and "B: ..." count, and so does the refusal sentence itself.
    """
    if parse != "official":
        parsed = parse_letter(text, choices)
        return Parsed(None if parsed.value is None else LETTERS.index(parsed.value), parsed.rule)
    answer = text.strip()
    match = re.match(r"\(?([A-Z])(?:[).:,]|\s*$)", answer)
    if match and match[1] in LETTERS[: len(choices)]:
        return Parsed(LETTERS.index(match[1]), "official")
    same = [place for place, choice in enumerate(choices) if answer and plain(choice) == plain(answer)]
    return Parsed(same[0], "official") if len(same) == 1 else Parsed(None, "none")


def values_at_chance(name: str, options: int) -> Values:
    """Return the expected terms of a uniform random choice: the score of an abstention."""
    chance = 1 / options
    unknown = {"BasicVisQA": 0.0, "KnowVisQA": 1 - 1 / (options - 1), "BeyondVisQA": 1.0}[name]
    kk = 0.0 if name == "BeyondVisQA" else chance
    return terms(kk, chance * unknown, chance, chance / (options - 1) if name == "KnowVisQA" else 0.0)


def terms(kk: float, ku: float, refused: float, knew: float) -> Values:
    """Return the terms that a question contributes to the sums."""
    return {"kk": kk, "ku": ku, "sa": kk + ku, "refused": refused, "answered": 1.0 - refused, "knew": knew}


# Terms of a question that has no answer or was never asked: neither right nor a refusal.
NOTHING = terms(0.0, 0.0, 0.0, 0.0)


def spreads(metrics: Iterable[Metric]) -> Iterator[Metric]:
    """Yield each shuffle's totals, and their standard deviation (n - 1). The mean of these totals is the total."""
    for key in ("sa", "kk", "ku"):
        runs = [metric for metric in metrics if metric.name.startswith(f"score_{key}{SHUFFLED}")]
        yield from runs
        # A spread is not a ratio of sums, so it has no cells and no interval.
        if values := [metric.value for metric in runs if metric.value is not None]:
            yield Metric(f"spread_over_shuffles.{key}", stdev(values), len(values), "ratio")
