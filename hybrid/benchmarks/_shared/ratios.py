"""Metrics that are a ratio of two sums, computed as their cards define.

ratios(card.metrics, scores)     # the metrics whose card has a `ratio`, in the order of the cards
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from hybrid.benchmarks.card import Groups, MetricCard, Ratio, metric_of
from hybrid.core.types import Cell, Metric, Score, base_id

# The variable part of a card's name.
HOLE = re.compile(r"<([^>]+)>")


def ratios(
    cards: Iterable[MetricCard], scores: Sequence[Score], orders: Mapping[str, Iterable[str]]
) -> Iterator[Metric]:
    """Yield the metrics of scores. Values of a group are in the order of `orders`; without an order, by name."""
    # Metrics with a unit get all scores, because a failed score must exclude its unit.
    answered = [score for score in scores if not score.outcome.failed]
    computed = ((card.name, card.ratio) for card in cards if card.ratio is not None)
    for by, block in groupby(computed, key=lambda named_ratio: named_ratio[1].by):
        place = {value: number for number, value in enumerate(orders.get(by, ()))}
        named_ratio = [
            member for name, ratio in block for member in _family(name, ratio, scores if ratio.unit else answered)
        ]
        # Adjacent cards with the same group are listed value by value: all metrics of one value, then all of the next.
        yield from (
            metrics[1]
            for metrics in sorted(named_ratio, key=lambda entry: (place.get(entry[0], 0), entry[0]) if by else ())
        )


def _family(name: str, ratio: Ratio, scores: Sequence[Score]) -> Iterator[tuple[str, Metric]]:
    """Yield the metrics of one card, each with the value of the group, or the case, that it covers."""
    rows = _those(scores, ratio.where)
    cases = _grouped(rows, (ratio.by,)) if ratio.by else {"": rows}
    if ratio.cases:
        cases = {case: _those(rows, condition) for case, condition in ratio.cases.items()}
    hole = HOLE.findall(name)[-1:]
    if ratio.by and hole and "|" in hole[0]:
        cases = {case: members for case, members in cases.items() if case in hole[0].split("|")}
    if len(_grouped(rows, (ratio.strata,)) if ratio.strata else cases) < ratio.fewest and not ratio.kept:
        return
    for case, members in cases.items():
        for key in ratio.of.split("|"):
            metric_name = HOLE.sub(lambda _, case=case: case, name.replace(f"<{ratio.of}>", key))  # type: ignore[misc]
            metric = _metric(metric_name, ratio, key, members)
            if metric.n or ratio.kept:
                yield case, metric


def _metric(name: str, ratio: Ratio, key: str, scores: Sequence[Score]) -> Metric:
    if key == "correct":
        scored = [(score, score.correct) for score in scores if score.correct is not None]
    else:
        scored = [(score, score.values[key]) for score in scores if key in score.values]
    if not ratio.unit:
        strata, over = ratio.strata, ratio.over
        cells = [
            Cell(_group(score, strata) if strata else "", score.unit, value, score.values[over] if over else 1.0)
            for score, value in scored
        ]
        return metric_of(name, cells, "mean_of_ratios" if strata else "ratio", share=ratio.share)
    value_of, (fewest, most) = {score.id: value for score, value in scored}, ratio.rows
    units = _grouped([score for score, _ in scored], ratio.unit).values()
    full_units = (
        unit
        for unit in units
        if fewest <= len(unit) <= (most or len(unit)) and not any(score.outcome.failed for score in unit)
    )
    products = [Cell("", unit[0].unit, math.prod(value_of[score.id] for score in unit), 1.0) for unit in full_units]
    return metric_of(name, products, share=ratio.share)


def _those(scores: Sequence[Score], condition: Groups) -> Sequence[Score]:
    for name, values in condition.items():
        scores = [score for score in scores if _group(score, name) in values]
    return scores


def _group(score: Score, name: str) -> str:
    """Return the value of a group; empty if the score has no such group, as for broken data."""
    if name == "task":
        return score.task
    return base_id(score.id) if name == "base" else score.groups.get(name, "")


def _grouped(scores: Iterable[Score], names: Sequence[str]) -> Mapping[str, Sequence[Score]]:
    """Group the scores by their values of some groups; scores that lack a value are left out."""
    by_values: defaultdict[str, list[Score]] = defaultdict(list)
    for score in scores:
        values = [_group(score, name) for name in names]
        if all(values):
            by_values["/".join(values)].append(score)
    return by_values
