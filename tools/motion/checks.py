"""Known answers of motion: the camera goes to its left in one pair of views and to its right in the other.

The side alone would also be right with matches that are some pixels off or half wrong. Therefore, other checks use
pairs of flat scenes, not those of correspondence, on which the matches must agree with the known mapping.
"""

from __future__ import annotations

from functools import partial

from hybrid.tool import CheckCase, KnownAnswer
from tools._shared.flat_pairs import SIZES, agreeing, flat_pair, wrong_matches
from tools._shared.known_answers import SEED, expects, known_item


def _side(index: int) -> CheckCase:
    from hybrid.samples.geometry import multi_view_reasoning

    item = known_item(multi_view_reasoning, "Multi-view_Reasoning", index, index)
    return CheckCase(item.images, {}, expects("moved", ("left", "right")[item.answer]))


def _flat(index: int) -> CheckCase:
    pair = flat_pair(index, SEED + 1)
    return CheckCase(pair.images, {}, agreeing, partial(wrong_matches, pair=pair))


CHECKS = (
    *(KnownAnswer(f"camera's side, pair {index}", partial(_side, index)) for index in (0, 1)),
    *(KnownAnswer(f"matches in a flat scene, pair {index}", partial(_flat, index)) for index in range(len(SIZES))),
)
