"""Metrics that are a sum over a sum, computed as their cards say.

ratios(card.metrics, scores)     # those whose card has a `ratio`, in the order of the cards
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from hybrid.benchmarks.card import Groups, MetricCard, Ratio, metric_of
from hybrid.types import Cell, Metric, Score, base_id

HOLE = re.compile(r"<([^>]+)>")
"""The word of a card's name that differs from metric to metric."""


def ratios(
    cards: Iterable[MetricCard], scores: Sequence[Score], orders: Mapping[str, Iterable[str]]
) -> Iterator[Metric]:
    """The metrics of some scores. Values of a group come as `orders` has them, those that it does not have by name."""
    computed = ((card.name, card.ratio) for card in cards if card.ratio is not None)
    for by, block in groupby(computed, key=lambda one: one[1].by):
        place = {value: number for number, value in enumerate(orders.get(by, ()))}
        made = [one for name, ratio in block for one in _family(name, ratio, scores)]
        # Cards side by side with the same group are read value by value: all of one set, then all of the next.
        yield from (one[1] for one in sorted(made, key=lambda one: (place.get(one[0], 0), one[0]) if by else ()))


def _family(name: str, ratio: Ratio, scores: Sequence[Score]) -> Iterator[tuple[str, Metric]]:
    """The metrics of one card, each with the value or the case that it is of."""
    # A failed score is missing, but its unit must know of it.
    rows = [score for score in scores if (ratio.unit or not score.outcome.failed) and _fits(score, ratio.where)]
    cases = {"": rows} if not ratio.by else _grouped(rows, (ratio.by,))
    if ratio.cases:
        cases = {case: [score for score in rows if _fits(score, where)] for case, where in ratio.cases.items()}
    hole = HOLE.findall(name)[-1:]
    if ratio.by and hole and "|" in hole[0]:
        cases = {case: members for case, members in cases.items() if case in hole[0].split("|")}
    if len(_grouped(rows, (ratio.strata,)) if ratio.strata else cases) < ratio.fewest and not ratio.kept:
        return
    for case, members in cases.items():
        for key in ratio.of.split("|"):
            named = HOLE.sub(lambda _, case=case: case, name.replace(f"<{ratio.of}>", key))  # type: ignore[misc]
            metric = _metric(named, ratio, key, members)
            if metric.n or ratio.kept:
                yield case, metric


def _metric(name: str, ratio: Ratio, key: str, scores: Sequence[Score]) -> Metric:
    known = [score for score in scores if _value(score, key) is not None]
    if not ratio.unit:
        cells = (
            Cell(
                _group(score, ratio.strata),
                score.unit,
                _value(score, key) or 0.0,
                score.values[ratio.over] if ratio.over else 1.0,
            )
            for score in known
        )
        return metric_of(name, cells, "mean_of_ratios" if ratio.strata else "ratio", share=ratio.share)
    fewest, most = ratio.rows
    units = (unit for unit in _grouped(known, ratio.unit).values() if fewest <= len(unit) <= (most or len(unit)))
    return metric_of(
        name,
        (
            Cell("", unit[0].unit, math.prod(_value(score, key) or 0.0 for score in unit), 1.0)
            for unit in units
            if not any(score.outcome.failed for score in unit)
        ),
        share=ratio.share,
    )


def _value(score: Score, key: str) -> float | None:
    return score.correct if key == "correct" else score.values.get(key)


def _fits(score: Score, where: Groups) -> bool:
    return all(_group(score, name) in values for name, values in where.items())


def _group(score: Score, name: str) -> str:
    """The value of a group; nothing where the score has none, as that of broken data."""
    if name == "task":
        return score.task
    return base_id(score.id) if name == "base" else score.groups.get(name, "")


def _grouped(scores: Iterable[Score], names: Sequence[str]) -> dict[str, list[Score]]:
    """The scores by their values of some groups; one without a value of each belongs nowhere."""
    found: defaultdict[str, list[Score]] = defaultdict(list)
    for score in scores:
        values = [_group(score, name) for name in names]
        if all(values):
            found["/".join(values)].append(score)
    return dict(found)
