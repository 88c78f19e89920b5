"""MVP-Bench's metrics (section 5 of the paper, filters as in the released `evaluate.py` and `evaluate_mcq.py`).

Every metric is a share of units that are right as a whole; the score of a unit
is the product of its rows, so that an abstention scored at chance counts as the guess it stands for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hybrid.benchmarks._shared.scores import grouped
from hybrid.benchmarks.base import metric_of
from hybrid.benchmarks.mvp_bench.data import CATEGORY_STARTS
from hybrid.rotation import ROTATED
from hybrid.types import Cell, Metric, Score, base_id

Units = Iterable[Sequence[Score]]
Chosen = Mapping[str, str]
"""Group names and the values that a row must have."""

LEVELS: Mapping[str, Chosen] = {"low": {"level": "low"}, "high": {"level": "high"}}
IMAGES: Mapping[str, Chosen] = {"natural": {"image": "natural"}, "manipulated": {"image": "manipulated"}}
MIN_IMAGE_ROWS, MIN_PAIR_ROWS = 2, 4
CATEGORIES = tuple(sorted(CATEGORY_STARTS, key=lambda name: ("BRIES".index(name[0]), name)))
MCQ: Mapping[str, tuple[str, Chosen]] = {
    "cross_low": ("cross", LEVELS["low"]),
    "cross_high": ("cross", LEVELS["high"]),
    "single": ("single", {}),
}


def summarise(scores: Sequence[Score]) -> tuple[Metric, ...]:
    """All metrics that have at least one unit, as fractions.

    - `qAcc.{low, high, multi}`: a question right on both pictures of its pair.
    - `aAcc.{low, high, natural, manipulated, all}`: a yes/no row.
    - `iAcc.{natural, manipulated, all}`: all yes/no questions of a picture that has more than one.
    - `mAcc`: all yes/no rows of a pair that has more than three.
    - `circular.{cross_low, cross_high, single}`: every rotation of a question.
    - `vanilla.{...}`: the question in the single run; where there is none, its first rotation.
    - `first_rotation.{...}`: the first rotation, where both are there.
    - `pAcc.{B1 ... S2}`: `qAcc` over the pairs of one category (Table 5).
    """
    asked = [score for score in scores if score.task == "yes_no" and score.correct is not None]
    # The rotations of `--rotate` have separate metrics.
    choice = [s for s in scores if s.task in ("cross", "single") and s.correct is not None and not ROTATED.search(s.id)]
    metrics = (*_yes_no(asked), *_multiple_choice(choice), *_categories(asked))
    return tuple(metric for metric in metrics if metric.n)


def _yes_no(asked: Sequence[Score]) -> Iterator[Metric]:
    for name, chosen in {**LEVELS, "multi": {}}.items():
        yield _share(f"qAcc.{name}", _questions(_where(asked, chosen)))
    for name, chosen in {**LEVELS, **IMAGES, "all": {}}.items():
        yield _share(f"aAcc.{name}", [[score] for score in _where(asked, chosen)])
    for name, chosen in {**IMAGES, "all": {}}.items():
        images = grouped(_where(asked, chosen), lambda score: _key(score, "pair", "image"))
        yield _share(f"iAcc.{name}", [rows for rows in images.values() if len(rows) >= MIN_IMAGE_ROWS])
    pairs = grouped(asked, lambda score: _key(score, "pair"))
    yield _share("mAcc", [rows for rows in pairs.values() if len(rows) >= MIN_PAIR_ROWS])


def _multiple_choice(choice: Sequence[Score]) -> Iterator[Metric]:
    rotated = [score for score in choice if "rotation" in score.groups]
    plain = [score for score in choice if score.id == base_id(score.id)]
    first = [score for score in rotated if score.groups["rotation"].startswith("1/")]
    columns = {"vanilla": plain or first, "first_rotation": first if plain else []}
    for name, (task, chosen) in MCQ.items():
        rows = [score for score in _where(rotated, chosen) if score.task == task]
        whole = [
            unit for unit in grouped(rows, lambda score: base_id(score.id)).values() if len(unit) == _rotations(unit)
        ]
        yield _share(f"circular.{name}", whole)
    for column, members in columns.items():
        for name, (task, chosen) in MCQ.items():
            yield _share(f"{column}.{name}", [[score] for score in _where(members, chosen) if score.task == task])


def _categories(asked: Sequence[Score]) -> Iterator[Metric]:
    for name in CATEGORIES:
        yield _share(f"pAcc.{name}", _questions(_where(asked, {"category": name})))


def _questions(asked: Sequence[Score]) -> Units:
    """The two rows of each question that has both."""
    return [rows for rows in grouped(asked, lambda score: _key(score, "question")).values() if len(rows) == 2]


def _rotations(rows: Sequence[Score]) -> int:
    return int(rows[0].groups["rotation"].split("/")[1])


def _where(scores: Iterable[Score], chosen: Chosen) -> list[Score]:
    return [score for score in scores if all(score.groups.get(name) == value for name, value in chosen.items())]


def _key(score: Score, *names: str) -> str | None:
    """The group of a row; None for a row whose data was broken, which belongs nowhere."""
    if any(name not in score.groups for name in names):
        return None
    return "/".join(score.groups[name] for name in names)


def _share(name: str, units: Units) -> Metric:
    """The share of units that are right; one with a failed row is missing as a whole."""
    whole = [unit for unit in units if not any(score.outcome.failed for score in unit)]
    return metric_of(
        name, (Cell("", unit[0].unit, math.prod(score.correct or 0.0 for score in unit), 1.0) for unit in whole)
    )
