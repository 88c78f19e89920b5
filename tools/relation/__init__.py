"""Relation: whether one named object is left of, on, inside, touching, behind ... another one.

`hybrid tools run relation photo.jpg --weights ... --args '{"subject": "cat", "relation": "on", "reference": "bed"}'`

`tools/detection/` finds both objects, and the rules of `box_relations.py` compare their boxes; "in front of" and
"behind" also call `tools/depth/` at both centres. Without detection weights it does not answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, NamedTuple

from pydantic import Field, with_config
from typing_extensions import TypedDict

from hybrid.core.coordinates import span_px
from hybrid.core.errors import ToolError
from hybrid.core.types import Finding, Json, Prompt
from hybrid.tool import Args, CheckCase, Claims, Evidence, Found, Pixels, Request, Tool
from hybrid.tool.backends import WeightFree
from hybrid.tool.card_file import tool_card
from hybrid.tool.outputs import schema_of
from hybrid.tool.rules import OneCall, Rule
from tools._shared.boxes import corners
from tools._shared.overlay import PALETTE, overlay
from tools._shared.wording import wording_of
from tools.detection.models import Detection
from tools.detection.rules import DetectedBox, ThingName, seen_from
from tools.relation.box_relations import BY_DEPTH, CERTAIN, PHRASES, RelationName, holds

# A degree within this distance of 0.5 is undecided.
UNCLEAR = 0.1
# Another object of the same name with at least this share of the best score might be the intended one.
RIVAL = 0.7


class RelationArgs(Args):
    """Arguments of the relation tool: whether `subject` is in `relation` to `reference`."""

    subject: ThingName = Field(description="e.g. cat")
    relation: RelationName = Field(description="of subject to reference")
    reference: ThingName = Field(description="e.g. bed")


@with_config(extra="forbid")
class RelationData(TypedDict):
    """Data of relation."""

    holds: Annotated[bool | None, Field(description="null if undecided")]
    degree_0_1: Annotated[float | None, Field(description="1 if the relation holds fully, null if it cannot be told")]
    subject: Annotated[DetectedBox | None, Field(description="the detected object, null if it was not found")]
    reference: Annotated[DetectedBox | None, Field(description="the detected object, null if it was not found")]


class RelationVerdict(NamedTuple):
    """The two compared objects, the degree of the relation between them, and the confidence in the verdict.

    `degree` and `confidence` are in 0..1; `degree` is None if the relation cannot be decided.
    """

    subject: Detection | None
    reference: Detection | None
    degree: float | None
    confidence: float

    @property
    def holds(self) -> bool | None:
        """Return whether the relation holds; None if undecided."""
        return None if self.degree is None or abs(self.degree - 0.5) < UNCLEAR else self.degree > 0.5


def pair_of(args: RelationArgs, seen: Sequence[Detection]) -> tuple[Detection | None, Detection | None]:
    """Return the subject and the reference with the highest scores; for one name, its two best objects."""
    subjects = [detection for detection in seen if detection.name == args.subject]
    references = [detection for detection in seen if detection.name == args.reference]
    if args.subject == args.reference:
        references = references[1:]
    return next(iter(subjects), None), next(iter(references), None)


def decide(
    args: RelationArgs, seen: Sequence[Detection], depths: tuple[float, float] | None, depth_sure: float
) -> RelationVerdict:
    """Judge the relation from detections, best first, and the relative depths 0..1 of the best pair."""
    subject, reference = pair_of(args, seen)
    if subject is None or reference is None or (args.relation in BY_DEPTH and depths is None):
        return RelationVerdict(subject, reference, None, 0.5)
    degree = holds(args.relation, subject.box, reference.box, depths)
    certainty = (CERTAIN[args.relation] - 0.5) * abs(2 * degree - 1) * min(subject.score, reference.score) ** 0.25
    if args.relation in BY_DEPTH:
        certainty *= max(0.0, 2 * depth_sure - 1)
    else:
        # The confidence drops if any other pair of objects with nearly equal scores gives another verdict.
        subjects = [
            detection
            for detection in seen
            if detection.name == args.subject and detection.score >= RIVAL * subject.score
        ]
        references = [
            detection
            for detection in seen
            if detection.name == args.reference and detection.score >= RIVAL * reference.score
        ]
        degrees = [holds(args.relation, a.box, b.box) for a in subjects for b in references if a != b]
        if any((other > 0.5) != (degree > 0.5) for other in degrees):
            certainty *= 0.3
    return RelationVerdict(subject, reference, degree, 0.5 + certainty)


class BoxRelation(WeightFree[RelationArgs]):
    """The learned backend: rules over boxes from the detection tool."""

    def answer(self, request: Request[RelationArgs]) -> Evidence:
        """Judge the relation of a request. Raises `ToolError` without an output of the detection tool."""
        findings = request.needs.get("detection", ())
        if not findings:
            raise ToolError("relation: the detection tool was not asked")
        depth = next(iter(request.needs.get("depth", ())), None)
        certainty = depth.confidence if depth else 0.5
        verdict = decide(request.args, seen_from(findings[0].data), depths_of(depth), certainty)
        return report(request, verdict, "the detection tool")


def depths_of(finding: Finding | None) -> tuple[float, float] | None:
    """Return the relative depths of subject and reference, 0..1, from an output of the depth tool.

    Return None if depth was not called or is undecided.
    """
    if finding is None:
        return None
    # If the depth tool leaves the order undecided, the relation has no degree either.
    if finding.data.get("nearer_index", 0) is None:
        return None
    points = finding.data.get("points")
    rows = [point for point in points if isinstance(point, Mapping)] if isinstance(points, list | tuple) else []
    values = [value for row in rows if isinstance(value := row.get("depth_0_1"), int | float)]
    if len(values) != 2:
        raise ToolError("relation: the depth output does not contain the depth of two points")
    return float(values[0]), float(values[1])


def report(request: Request[RelationArgs], verdict: RelationVerdict, basis: str) -> Evidence:
    """Build the tool output from the verdict.

    Returns:
        Evidence with `RelationData` and an overlay. The confidence is the probability that `holds` is right.
    """
    args = request.args
    data: dict[str, Json] = {
        "holds": verdict.holds,
        "degree_0_1": verdict.degree,
        **{
            name: None
            if detection is None
            else {"name": detection.name, "score_0_1": detection.score, "box_px": corners(detection.box)}
            for name, detection in (("subject", verdict.subject), ("reference", verdict.reference))
        },
    }
    boxes = [
        (detection.box, f"{detection.name} {detection.score:.2f}", PALETTE[place])
        for place, detection in enumerate((verdict.subject, verdict.reference))
        if detection is not None
    ]
    legend = f"{args.subject} {args.relation} {args.reference}? boxes: name and score 0-1"
    question = f"the {args.subject[:40]} {args.relation} the {args.reference[:40]}"
    pair = ((args.subject, verdict.subject), (args.reference, verdict.reference))
    if missing := [name[:40] for name, detection in pair if detection is None]:
        text = f"Undecided whether {question}: no {' and no '.join(missing)} found in image 1."
    else:
        answer = {True: "Yes", False: "No", None: "Undecided"}[verdict.holds]
        degree = "no depth" if verdict.degree is None else f"degree {verdict.degree:.2f} (0 = no, 1 = yes)"
        places = "; ".join(
            f"{detection.name[:30]} {span_px(detection.box)}" for _, detection in pair if detection is not None
        )
        text = f"{answer}: {question} in image 1; {degree}.\n{places}.\nBasis: boxes of {basis}."
    return Evidence(text, data, verdict.confidence, (overlay(request.images[0], legend, boxes=boxes),))


def detection_arguments(args: RelationArgs) -> Mapping[str, Json]:
    """Return the detection tool's arguments, which request both objects by name."""
    return {"names": list(dict.fromkeys((args.subject, args.reference)))}


def depth_arguments(args: RelationArgs, findings: Found) -> Mapping[str, Json] | None:
    """Return the centres of both boxes, for relations by depth if both objects were found."""
    if args.relation not in BY_DEPTH:
        return None
    pair = pair_of(args, seen_from(findings["detection"][0].data))
    boxes = [detection.box for detection in pair if detection is not None]
    if len(boxes) < 2:
        return None
    # Bounds are exclusive: the centre of a one-pixel box at the border is still a pixel of the image.
    points = [{"x": (box.x0 + box.x1 - 1) / 2, "y": (box.y0 + box.y1 - 1) / 2} for box in boxes]
    return {
        "points": [{**point, "label": label} for point, label in zip(points, ("subject", "reference"), strict=True)]
    }


def no_arguments(_: RelationArgs) -> None:
    """Return None: depth is called after the boxes are found."""


@dataclass(frozen=True)
class AskedRelation:
    """A question whether the `subject` is in this `relation` to the `reference`."""

    subject: str
    relation: RelationName
    reference: str


def asked_relation(text: str) -> AskedRelation | None:
    """Return the relation that a yes-no question asks for; None for facing, being part of, or any other wording."""
    if match := re.search(r"\bdoes the (?P<a>[a-z -]+?) contain the (?P<b>[a-z -]+?)\s*\?", text, re.IGNORECASE):
        return AskedRelation(match["a"].lower(), "containing", match["b"].lower())
    # The longest phrase is tried first: "on top of" before "on".
    for phrase in sorted(PHRASES, key=len, reverse=True):
        match = re.search(rf"\b(?:is|are) the (?P<a>[a-z -]+?) {phrase} the (?P<b>[a-z -]+?)\s*\?", text, re.IGNORECASE)
        if match:
            return AskedRelation(match["a"].lower(), PHRASES[phrase], match["b"].lower())
    return None


def yes_or_no(finding: Finding, prompt: Prompt) -> str | None:
    """Return a pattern for "yes" if the relation holds, else for "no"."""
    holds = finding.data.get("holds")
    if not isinstance(holds, bool):
        return None
    return r"(?i)^\W*yes\b" if holds else r"(?i)^\W*no\b"


# Rules by route.
RULES: Mapping[str, Rule] = {
    "Spatial_Relation": OneCall(
        "relation",
        yes_or_no,
        lambda prompt: None if (relation := asked_relation(prompt.text)) is None else asdict(relation),
        ("no relation", "the question's wording names no relation that boxes can speak of"),
    )
}


CARD = tool_card(__file__, BoxRelation, depth_arguments, detection_arguments, no_arguments)


def two_things(draw: Callable[[int, int], Pixels]) -> CheckCase:
    """Make a question whether one object is left of another."""
    args: dict[str, Json] = {"subject": "dog", "relation": "left of", "reference": "cat"}
    return CheckCase((draw(240, 320),), args, lambda _: None)


TOOL = Tool(
    CARD,
    RelationArgs,
    claims=Claims(("holds",), pose=two_things),
    rules=RULES,
    wording=wording_of(__file__),
    output=schema_of(RelationData),
)
