"""Assigns scores to the runs that MVP-Bench's metrics count, after section 5 of the paper and `evaluate_mcq.py`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from hybrid.benchmarks.mvp_bench.data import CATEGORY_STARTS
from hybrid.core.option_rotation import ROTATED
from hybrid.core.types import Score, base_id

CATEGORIES = tuple(sorted(CATEGORY_STARTS, key=lambda name: ("BRIES".index(name[0]), name)))


def with_runs(scores: Iterable[Score]) -> Iterator[Score]:
    """Yield the scores as the cards count them: a choice occurs once for each `run` to which it belongs.

    The run `rotated` has the questions of which every rotation is scored. `vanilla` has the questions of the single
    run; without a single run, the first rotations. `first` has the first rotations if there is also a single run.
    """
    judged = [score for score in scores if score.correct is not None]
    yield from (score for score in judged if score.task == "yes_no")
    # The rotations of `--rotate` have separate metrics.
    choice = [score for score in judged if score.task in ("cross", "single") and not ROTATED.search(score.id)]
    rotated = [score for score in choice if "rotation" in score.groups]
    plain = [score for score in choice if score.id == base_id(score.id)]
    first = [score for score in rotated if score.groups["rotation"].startswith("1/")]
    sets: defaultdict[tuple[str, str], list[Score]] = defaultdict(list)
    for score in rotated:
        sets[base_id(score.id), score.task].append(score)
    counts = {key: int(rows[0].groups["rotation"].split("/")[1]) for key, rows in sets.items()}
    complete = [score for key, rows in sets.items() if len(rows) == counts[key] for score in rows]
    for run, members in {"rotated": complete, "vanilla": plain or first, "first": first if plain else []}.items():
        yield from (replace(score, groups={**score.groups, "run": run}) for score in members)
