"""Relation: geometry on generated boxes, what depth decides, and undecided cases."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from hybrid.benchmarks.blink.sample import item
from hybrid.core.errors import ToolError
from hybrid.core.types import Box, Finding
from hybrid.plugins.registry import load
from hybrid.tool import Request
from tools.detection import report as detected
from tools.detection.models import Detection
from tools.relation import TOOL, BoxRelation, RelationArgs, asked_relation, decide, depths_of
from tools.relation.box_relations import BY_DEPTH, CERTAIN, PLANAR, RelationName, holds

EDGE, LENGTH = st.floats(0, 500), st.floats(1, 300)
BOXES = st.builds(lambda x, y, w, h: Box(x, y, x + w, y + h), EDGE, EDGE, LENGTH, LENGTH)
BLANK = np.full((400, 500, 3), 90, np.uint8)


def relation_args(relation: str, subject: str = "cat", reference: str = "bed") -> RelationArgs:
    return RelationArgs(subject=subject, relation=relation, reference=reference)


@given(BOXES, BOXES)
def test_every_relation_has_a_degree_and_a_limit(subject: Box, reference: Box):
    assert {*PLANAR, *BY_DEPTH} == set(get_args(RelationName)) == set(CERTAIN)
    for relation in get_args(RelationName):
        assert 0 <= holds(relation, subject, reference, (0.3, 0.6)) <= 1


@given(BOXES, BOXES)
def test_opposites_exclude_each_other(subject: Box, reference: Box):
    for text, other in (("left of", "right of"), ("above", "below"), ("inside", "outside")):
        assert holds(text, subject, reference) + holds(other, subject, reference) == pytest.approx(1)
    for message, other in (("left of", "right of"), ("above", "below"), ("inside", "containing")):
        assert holds(message, subject, reference) == pytest.approx(holds(other, reference, subject))


def test_nearer_is_in_front():
    same = Box(0, 0, 9, 9)
    assert holds("in front of", same, same, (0.8, 0.3)) > 0.9
    assert holds("behind", same, same, (0.8, 0.3)) < 0.1
    with pytest.raises(KeyError):
        holds("behind", same, same)


@pytest.mark.system
def test_true_boxes_of_generated_scenes_give_the_true_answer():
    wrong = []
    for index in range(10):
        drawn_item = item("Spatial_Relation", index, 3)
        question = asked_relation(drawn_item.question)
        args = relation_args(question.relation, question.subject, question.reference)
        first, second = drawn_item.facts.boxes
        seen = [Detection(question.subject, 0.9, Box(*first)), Detection(question.reference, 0.9, Box(*second))]
        if decide(args, seen, None, 0.5).holds is not (drawn_item.answer == 0):
            wrong.append(drawn_item.question)
    assert wrong == []


def finding(*detection: Detection) -> Finding:
    evidence = detected(BLANK, sorted({entry.name for entry in detection}) or ["cat"], detection, 0.2)
    return Finding(evidence.text, evidence.data, evidence.confidence, "learned", "detection-1+test")


def depth_finding(nearness: tuple[float, float], confidence: float = 0.9) -> Finding:
    points = [
        {"label": name, "depth_0_1": value} for name, value in zip(("subject", "reference"), nearness, strict=True)
    ]
    return Finding("", {"points": points}, confidence, "learned", "depth-2")


CAT, BED = Detection("cat", 0.9, Box(10, 10, 60, 60)), Detection("bed", 0.8, Box(200, 20, 400, 200))


def ask(args: RelationArgs, **needs: Finding):
    return BoxRelation().run([Request((BLANK,), args, {name: (need,) for name, need in needs.items()})])[0]


def test_a_finding_says_yes_no_or_nothing():
    yes, no = (
        ask(relation_args("left of"), detection=finding(CAT, BED)),
        ask(relation_args("right of"), detection=finding(CAT, BED)),
    )
    assert (yes.data["holds"], no.data["holds"]) == (True, False)
    assert yes.text.startswith("Yes: the cat left of the bed in image 1")
    assert yes.pictures[0].pixels.shape == BLANK.shape
    assert 0.7 < yes.confidence <= CERTAIN["left of"]
    missing = ask(relation_args("left of"), detection=finding(CAT))
    assert missing.data["holds"] is None
    assert "no bed found" in missing.text
    assert missing.confidence == 0.5
    with pytest.raises(ToolError, match="was not asked"):
        ask(relation_args("left of"))


def test_depth_decides_what_is_in_front():
    result = finding(CAT, BED)
    assert ask(relation_args("in front of"), detection=result, depth=depth_finding((0.8, 0.2))).data["holds"] is True
    assert ask(relation_args("behind"), detection=result, depth=depth_finding((0.8, 0.2))).data["holds"] is False
    assert ask(relation_args("behind"), detection=result, depth=depth_finding((0.8, 0.2), 0.55)).confidence < 0.53
    assert ask(relation_args("behind"), detection=result).data["holds"] is None
    with pytest.raises(ToolError, match="depth of two points"):
        depths_of(Finding("", {"points": []}, 0.5, "learned", "x"))


def test_a_rival_on_the_other_side_makes_it_unsure():
    rival = Detection("cat", 0.85, Box(430, 10, 480, 60))
    alone, contested = (
        ask(relation_args("left of"), detection=finding(*result)) for result in ((CAT, BED), (CAT, BED, rival))
    )
    assert contested.confidence < alone.confidence - 0.1


def test_needs_ask_for_both_names_and_for_depth_at_both_middles():
    detection, depth = TOOL.backend("learned").needs
    assert detection.args(relation_args("on")) == {"names": ["cat", "bed"]}
    assert detection.args(relation_args("on", "cat", "cat")) == {"names": ["cat"]}
    assert depth.given(relation_args("on"), {"detection": (finding(CAT, BED),)}) is None
    assert depth.given(relation_args("behind"), {"detection": (finding(CAT),)}) is None
    expected = depth.given(relation_args("behind"), {"detection": (finding(CAT, BED),)})
    points = load("tools", "depth").args.model_validate(expected).points
    assert [(point.x, point.y) for point in points] == [(34.5, 34.5), (299.5, 109.5)]


def test_unknown_relations_are_refused():
    with pytest.raises(ValidationError):
        relation_args("facing")
