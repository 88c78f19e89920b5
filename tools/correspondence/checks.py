"""Known answers of correspondence: the candidate that shows the same place of a surface, and points of flat scenes.

In a flat scene every match can be looked at: they must lie where the known mapping of the two pictures puts them, and
the point that is asked for must arrive there. Of the three pairs one is upright in one picture and lying in the other,
and one is larger than what matchers are given.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from hybrid.tool import CheckCase, Evidence, KnownAnswer
from hybrid.types import Json
from tools._shared.flat_pairs import NEAR, SIZES, FlatPair, agreeing, flat_pair, wrong_matches
from tools._shared.known_answers import expects, known_item, number, point_args
from tools._shared.view_matches import FRAME_PX

# The point that is asked for, in shares of the first picture.
ASKED = (0.6, 0.4)


def _same_place(index: int) -> CheckCase:
    from hybrid.samples.geometry import visual_correspondence
    from hybrid.samples.item import CorrespondenceFacts

    made = known_item(visual_correspondence, "Visual_Correspondence", index, 1 - index)
    assert isinstance(made.facts, CorrespondenceFacts)  # noqa: S101 - what this task makes
    facts = made.facts
    args: dict[str, Json] = {"point": point_args([facts.ref])[0], "candidates": point_args(facts.candidates)}
    return CheckCase(made.images, args, expects("best_index", made.answer))


def _flat(index: int) -> CheckCase:
    pair = flat_pair(index)
    height, width = pair.images[0].shape[:2]
    asked = (ASKED[0] * width, ASKED[1] * height)
    args: dict[str, Json] = {"point": point_args([asked])[0]}
    return CheckCase(pair.images, args, partial(_misplaced, pair, asked), partial(wrong_matches, pair=pair))


def _misplaced(pair: FlatPair, asked: tuple[float, float], evidence: Evidence) -> str | None:
    place = evidence.data["transferred_px"]
    if not isinstance(place, dict):
        return "the point was not found"
    here = np.array([number(place, "x"), number(place, "y")])
    unit = max(pair.images[1].shape[:2]) / FRAME_PX
    off = float(np.hypot(*(here - pair.true_points(np.array([asked]))[0]))) / unit
    return f"the point is {off:.1f} of {FRAME_PX:.0f} off" if off > NEAR else agreeing(evidence)


CHECKS = (
    *(KnownAnswer(f"same place, pair {index}", partial(_same_place, index)) for index in (0, 1)),
    *(KnownAnswer(f"flat scene, pair {index}", partial(_flat, index)) for index in range(len(SIZES))),
)
