"""Did the model look at the right place?

For questions with annotated places, this section counts the calls whose region covers a place, and compares accuracy
where the calls cover all places with accuracy elsewhere. By chance: the same with the regions of calls about other
pictures, scaled to this picture (if there are several, to the one with the same index). This baseline accounts for the
size of regions and for a habit of looking at the centre or at the first picture. p (Holm) is adjusted over all rows of
the same quantity.

n: annotated questions with a call that has a region, and that did not fail
source: ours; docs/statistics.md; paired by question, resampled by cluster

- questions with a region = annotated questions with a call that has a region / annotated questions [n: annotated
  questions that did not fail]
- calls with a region (counts) = sum over annotated questions
- calls at the place = calls whose region covers an annotated place / calls with a region
- calls at the place by chance = mean share of up to 50 calls about other pictures, evenly spaced in the order of the
  run, whose region would cover a place; averaged over calls with a region. Left out if there are regions on fewer than
  two pictures.
- above chance (-1 to 1) = calls at the place - calls at the place by chance
- questions at the place = questions whose calls together cover every annotated place / questions with a region
- right at the place = right / questions at the place [n: such questions]
- right elsewhere = right / the other questions with a region [n: such questions]
- difference at the place (-1 to 1) = right at the place - right elsewhere
- gain at the place (-1 to 1) = with tools - alone, on questions at the place [n: such questions that both have and
  neither failed]
- gain elsewhere (-1 to 1) = with tools - alone, on the other questions with a region [n: such questions that both have
  and neither failed]

The place of a question is its `evidence` (docs/own-questions.md), or a box or point that is the right answer. A call's
region consists of the boxes and points in its arguments. Without any, it consists of the parts that the call cut out
and, for a call on one picture, of the boxes that it returned as `box_px`. Boxes whose union is more than half of a
picture single out no place: such a call has no region, and neither has a call that ended in a fault, or a point given
only by its drawn letter. A box covers an annotated box if it contains at least half of its area, and its centre: a crop
through the middle of a thing shows it, and so does a large crop. Therefore, neither containment nor an intersection
over union is required. A point covers the box that contains it. A box covers the points that it contains, and a point
covers points within 5 % of the picture's longer side, or within the answer's tolerance. Higher accuracy where the model
looked is not an effect of looking, because easy things are found more often; the gains compare with the model alone on
the same questions. For a repeated solver, the first repetition is used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from hybrid.core.errors import DataError
from hybrid.core.types import Box, Point, Question
from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.groups import ComparisonGroup, is_imported
from hybrid.scoring.parts import Part, parts
from hybrid.scoring.regions import Look, Place, Target, annotated, covers, look_covers, looks_of
from hybrid.scoring.result import Family, Result, adjusted, contrasted
from hybrid.scoring.score import Floats, Scored
from hybrid.stats import difference_apart, ends_of

NAME: Final = "places"
WITH_REGION: Final = "questions with a region"
CALLS: Final = "calls with a region"
AT_PLACE, BY_CHANCE, ABOVE = "calls at the place", "calls at the place by chance", "above chance"
QUESTIONS_AT: Final = "questions at the place"
RIGHT_AT, RIGHT_ELSEWHERE, DIFFERENCE = "right at the place", "right elsewhere", "difference at the place"
GAIN_AT, GAIN_ELSEWHERE = "gain at the place", "gain elsewhere"
# Number of calls about other pictures with which a call is compared.
OTHERS: Final = 50


@dataclass(frozen=True)
class LookCounts:
    """The annotated places of a question that a solver's calls covered.

    `calls` is the number of calls with a region, `at_place` is how many of these cover an annotated place, and
    `by_chance` is how many would by chance (nan if there is no other picture). `is_right_place` tells whether the calls
    together cover every annotated place.
    """

    calls: int
    at_place: int
    by_chance: float
    is_right_place: bool


def rows(comparison: Comparison) -> list[Result]:
    """Return rows, over all questions and by group, for each hybrid solver with a trace on annotated questions."""
    results: list[Result] = []
    for group in comparison.groups:
        if group.hybrid.folder is not None and not is_imported(group.hybrid):
            seen = seen_by(group.hybrid)
            if any(of.calls for of in seen.values()):
                results += [*_looks(comparison, group.hybrid, seen), *_gains(comparison, group, seen)]
    return adjusted(results, lambda row: Family(row.quantity, ("task",) if row.group else ()))


def seen_by(scored: Scored) -> dict[str, LookCounts]:
    """Return, by id, what a solver's calls covered of each annotated question that it answered."""
    looks, targets, units = {}, {}, {}
    recorded = scored.folder.recorded(scored.recorded) if scored.folder is not None else None
    for score in scored.scores:
        question = scored.questions.get(score.id)
        regions = annotated(question) if isinstance(question, Question) else ()
        if recorded is None or not regions or score.outcome.failed or score.id not in recorded.by_id:
            continue
        assert isinstance(question, Question)  # noqa: S101 - only a question has regions
        try:
            looks[score.id] = looks_of(question, recorded.by_id[score.id])
        except DataError:
            # The trace of this question cannot be read, so its calls are unknown.
            continue
        targets[score.id], units[score.id] = regions, score.unit
    chance = _by_chance(looks, targets, units)
    return {name: _seen(of, targets[name], chance.get(name, np.nan)) for name, of in looks.items()}


def _seen(looks: Sequence[Look], targets: Sequence[Target], by_chance: float) -> LookCounts:
    at_place = sum(any(look_covers(look, target) for target in targets) for look in looks)
    is_right_place = bool(looks) and all(any(look_covers(look, target) for look in looks) for target in targets)
    return LookCounts(len(looks), at_place, by_chance, is_right_place)


def _by_chance(
    looks: Mapping[str, Sequence[Look]], targets: Mapping[str, Sequence[Target]], units: Mapping[str, str]
) -> dict[str, float]:
    """Return, by question, how many of its calls would cover its place by chance.

    This is the number of its calls times the share of sampled calls about other pictures that would cover the place.
    """
    all_looks, by_unit = list[Look](), defaultdict[str, list[int]](list)
    for name, of in looks.items():
        by_unit[units[name]] += range(len(all_looks), len(all_looks) + len(of))
        all_looks += of
    chance = {}
    for name, of in looks.items():
        sampled = _spread(len(all_looks), by_unit[units[name]]) if of else []
        if sampled:
            share = np.mean(
                [any(_would_cover(all_looks[index], target) for target in targets[name]) for index in sampled]
            )
            chance[name] = len(of) * float(share)
    return chance


def _spread(size: int, positions: Sequence[int]) -> list[int]:
    """Return up to `OTHERS` indices below `size`, evenly spaced, without those in `positions`, which ascends."""
    count = size - len(positions)
    ranks = np.linspace(0, count - 1, min(OTHERS, count)).round().astype(int)
    # The r-th index that is not in `positions` is r plus the number of positions before it.
    shared_before = np.asarray(positions, int) - np.arange(len(positions))
    return [int(index) for index in ranks + np.searchsorted(shared_before, ranks, side="right")]


def _would_cover(look: Look, target: Target) -> bool:
    """Return whether a call's regions, scaled to the size of the target's picture, cover the target.

    Only regions in the picture of the same index count, as in `look_covers`.
    """
    width, height = target.image.width, target.image.height
    for region in look.regions:
        across, down = width / region.image.width, height / region.image.height
        if target.index in region.indices and covers(_scaled(region.place, across, down), target):
            return True
    return False


def _scaled(place: Place, across: float, down: float) -> Place:
    if isinstance(place, Point):
        return Point(place.x * across, place.y * down)
    return Box(place.x0 * across, place.y0 * down, place.x1 * across, place.y1 * down)


def _looks(comparison: Comparison, hybrid: Scored, seen: Mapping[str, LookCounts]) -> Iterator[Result]:
    for part in parts(comparison, NAME, hybrid, sides=(hybrid, hybrid), repeated=False):
        answered = replace(part, row=replace(part.row, a="")).only(
            np.array([name in seen for name in part.seen.ids], bool)
        )
        if not len(answered):
            continue
        with_region = np.array([seen[name].calls > 0 for name in answered.seen.ids], float)
        yield from part.gated(answered.share(WITH_REGION, with_region, none=""))
        looked = answered.only(with_region > 0)
        if len(looked):
            yield from part.gated(*_calls(looked, seen), *_accuracy(looked, seen))


def _calls(looked: Part, seen: Mapping[str, LookCounts]) -> Iterator[Result]:
    of = [seen[name] for name in looked.seen.ids]
    calls, at_place = (np.array([getattr(look, field) for look in of], float) for field in ("calls", "at_place"))
    yield looked.number(CALLS, float(calls.sum()), unit="calls", none="")
    yield looked.share(AT_PLACE, at_place, calls, none="")
    chance = np.array([look.by_chance for look in of], float)
    if not np.isnan(chance).any():
        yield looked.share(BY_CHANCE, chance, calls, none="")
        a, b = (looked.seen.ratio("share", above, calls) for above in (chance, at_place))
        row = looked.number(ABOVE, None, none="")
        yield contrasted(row, a, b, looked.shared.untested())[0]
    yield looked.share(QUESTIONS_AT, np.array([look.is_right_place for look in of], float), none="")


def _accuracy(looked: Part, seen: Mapping[str, LookCounts]) -> Iterator[Result]:
    right = np.nan_to_num(looked.seen.correct()[0])
    at_place = _right_place(looked, seen)
    for quantity, inside in ((RIGHT_AT, at_place), (RIGHT_ELSEWHERE, 1 - at_place)):
        if inside.any():
            yield looked.share(quantity, right * inside, inside)
    test = difference_apart(right, 1 - at_place, at_place, looked.seen.unit.tolist())
    if test.difference is not None:
        low, high = ends_of(test.interval)
        yield looked.number(DIFFERENCE, test.difference, low=low, high=high, p=test.p_value)


def _right_place(part: Part, seen: Mapping[str, LookCounts]) -> Floats:
    return np.array([seen[name].is_right_place for name in part.seen.ids], float)


def _gains(comparison: Comparison, group: ComparisonGroup, seen: Mapping[str, LookCounts]) -> Iterator[Result]:
    if group.alone is None:
        return
    # Use all questions, because in a single task too few questions have calls that look at the annotated place.
    part = next(parts(comparison, NAME, group.alone, group.hybrid, repeated=False))
    looked = part.only(np.array([name in seen and seen[name].calls > 0 for name in part.seen.ids], bool))
    if not len(looked):
        return
    at_place = _right_place(looked, seen)
    for quantity, inside in ((GAIN_AT, at_place), (GAIN_ELSEWHERE, 1 - at_place)):
        if inside.any():
            correct = map(np.nan_to_num, looked.seen.correct())
            a, b = (looked.seen.ratio("accuracy", of * inside, inside) for of in correct)
            row = looked.number(quantity, None, n=a.n, ids=tuple(looked.seen.ids[inside > 0]))
            yield contrasted(row, a, b, looked.shared.untested())[0]


def lead(comparison: Comparison, section_rows: Sequence[Result]) -> str:
    """State how often each hybrid solver's calls look at the annotated place, and its accuracy there."""
    sentences = []
    for group in comparison.groups:
        of = {row.quantity: row for row in section_rows if row.b == group.hybrid.solver and not row.group}
        if AT_PLACE not in of:
            continue
        name, share = group.hybrid.solver, f"{100 * (of[AT_PLACE].value or 0):.0f} %"
        chance = f" ({100 * (of[BY_CHANCE].value or 0):.0f} % by chance)" if BY_CHANCE in of else ""
        sentences.append(f"Of the calls of {name} with a region, {share} look at an annotated place{chance}.")
        if RIGHT_AT in of and RIGHT_ELSEWHERE in of:
            at_place, other = (of[key] for key in (RIGHT_AT, RIGHT_ELSEWHERE))
            sentences.append(
                f"It is right on {100 * (at_place.value or 0):.0f} % of {at_place.n} questions where its calls cover "
                f"the place, and on {100 * (other.value or 0):.0f} % of {other.n} where they do not."
            )
    return " ".join(sentences)


SECTION = statistic(rows, lead, headings={"a": "alone", "b": "with tools"}, order=152)
