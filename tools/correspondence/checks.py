"""Known answers of correspondence: the candidate that shows the same place of a surface must be chosen."""

from __future__ import annotations

from functools import partial

from hybrid.tool import KnownAnswer, Posed
from hybrid.types import Json
from tools._shared.known_answers import expects, known_item, point_args


def _same_place(index: int) -> Posed:
    from hybrid.samples.geometry import visual_correspondence
    from hybrid.samples.item import CorrespondenceFacts

    made = known_item(visual_correspondence, "Visual_Correspondence", index, 1 - index)
    assert isinstance(made.facts, CorrespondenceFacts)  # noqa: S101 - what this task makes
    facts = made.facts
    args: dict[str, Json] = {"point": point_args([facts.ref])[0], "candidates": point_args(facts.candidates)}
    return Posed(made.images, args, expects("best_index", made.answer))


CHECKS = tuple(KnownAnswer(f"same place, pair {index}", partial(_same_place, index)) for index in (0, 1))
