"""Motion: whether the camera moved to its left or right between two views, its rotation, and its direction.

    hybrid tools run motion early.jpg late.jpg

Matches give the essential matrix (`two_views.py`); the second camera's centre is on the side it moved to. If one
homography explains them as well (`flat.py`), or one image is mirrored (`_shared/reflection.py`), the answer is
unsure, and `degenerate` says why. The focal length is unknown, so several values are tried. The learned backend finds
the matches with a network, the weight-free one with RootSIFT and ORB. `bench/motion.py` prints the scores of both, and
how often degenerate pairs mislead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Final, Literal, NamedTuple, TypeGuard

import numpy as np
from pydantic import Field, with_config
from typing_extensions import TypedDict

from hybrid.core.types import Finding, Json, Prompt
from hybrid.tool import Args, Claims, Evidence, Picture, Request, Tool
from hybrid.tool.backends import WeightFree
from hybrid.tool.card_file import tool_card
from hybrid.tool.outputs import schema_of
from hybrid.tool.rules import OneCall
from tools._shared.match_models import LearnedPairs
from tools._shared.pair_picture import dot_colours, draw_view, thinned
from tools._shared.reflection import match_either_hand
from tools._shared.view_matches import FRAME_PX, Matches, MatchView, view_of
from tools._shared.wording import wording_of
from tools.motion.checks import CHECKS
from tools.motion.two_views import Motion, best_motion

MIN_INLIERS = 20
# Smallest share of the matches that a motion must explain: by chance, a motion explains about a twelfth of wrong
# matches.
MIN_INLIER_SHARE = 0.15
# Smallest number of inliers off the homography of all matches from which a direction is derived.
MIN_OFF_PLANE = 8
MIN_IN_FRONT = 0.5
# Ratios of focal length to longer side that are tried: fields of view of 64, 49 and 37 degrees.
FOCAL_RATIOS = (0.8, 1.1, 1.5)
# Median shift of matches below which the camera counts as still, in 640ths (`FRAME_PX`) of the long side.
STILL = 1.0
# Smallest parallax that counts: the median shift that remains after a pure rotation, in the unit of `STILL`.
TURN_ONLY = 1.5
# Minimum share of the motion along x to count as left or right.
SIDEWAYS = 0.1
# Minimum share of the motion along an axis at which its direction is reported if left or right is unsure.
MAINLY = 0.5
# Highest confidence, for many inliers off a plane, a sideways motion and a consistent rotation. Set on generated
# orbits.
MAX_CERTAINTY = 0.97
# Highest confidence if the camera turned to the side to which it moved: on an orbit it turns the other way.
DISAGREE = 0.75
# Number of inliers off the plane, above the minimum, at which the confidence has gained 63 % of its range; set with
# `bench.motion --fit`.
OFF_PLANE_SCALE = 25.0


# Reason why the matches do not determine the camera's direction.
Degeneracy = Literal["few matches", "mirror", "no motion", "shift", "zoom", "turn", "plane", "behind", "halves"]


class MotionArgs(Args):
    """Arguments of the motion tool."""

    focal_ratio: float | None = Field(
        default=None, ge=0.3, le=10.0, description="focal length over longer side, if known; phones about 1"
    )


class DirectionRow(TypedDict):
    """A direction of the motion, the largest share first."""

    direction: Literal["left", "right", "up", "down", "backward", "forward"]
    share_0_1: Annotated[float, Field(description="of the unit motion vector")]
    confidence: Annotated[float, Field(description="that it is not the opposite, 0 to 1")]


@with_config(extra="forbid")
class MotionData(TypedDict):
    """Data of motion, from image 1 to image 2."""

    moved: Annotated[Literal["left", "right"] | None, Field(description="side of the camera, null if unsure")]
    seen_from_above: Annotated[
        Literal["clockwise", "counter-clockwise"] | None, Field(description="sense around what is in view")
    ]
    degenerate: Annotated[Degeneracy | None, Field(description="why no direction follows")]
    camera_direction_unit: Annotated[
        tuple[float, float, float] | None, Field(description="right, down, forward of the first camera")
    ]
    turn_deg: Annotated[float | None, Field(description="rotation of the camera")]
    yaw_deg: Annotated[float | None, Field(description="positive to the left")]
    mainly: list[DirectionRow]
    inliers: Annotated[int, Field(description="matches that fit the motion")]
    off_plane: Annotated[int, Field(description="inliers that one homography does not explain")]
    matches: Annotated[int, Field(description="matches of both images")]
    matcher: Annotated[str, Field(description="what found the matches")]
    in_front_0_1: Annotated[float | None, Field(description="share of points in front of both cameras")]
    parallax_px: Annotated[float | None, Field(description="in image 1")]
    focal_ratio: Annotated[float | None, Field(description="focal length over the longer side")]


class Direction(NamedTuple):
    """A direction along one axis of the first camera: "left", "right", "up", "down", "backward" or "forward".

    `share` is the magnitude, 0..1, of the unit motion vector's component along it; `confidence` (0..1) is the
    probability that the opposite direction is wrong.
    """

    name: str
    share: float
    confidence: float


class MotionVerdict(NamedTuple):
    """The side to which the camera moved, with the confidence, 0..1, that this side is right.

    `moved` is "left", "right" or None; `reason` explains a None. `degenerate` names the geometry that determines no
    direction, else None. `mainly` lists the directions with at least `MAINLY` of the motion, largest first; empty if
    the matches determine none.
    """

    moved: str | None
    reason: str
    confidence: float
    mainly: tuple[Direction, ...] = ()
    degenerate: Degeneracy | None = None


# Names of the negative and positive directions of a camera's axes: x right, y down, z forward.
AXES = (("left", "right"), ("up", "down"), ("backward", "forward"))


def judge(motion: Motion | None, matches: int) -> MotionVerdict:
    """Decide, if possible, to which side and in which main directions the camera moved."""
    if not _fits(motion, matches):
        inliers = 0 if motion is None else motion.inliers
        reason = f"only {inliers} of {matches} matches fit one motion, too few"
        return MotionVerdict(None, reason, 0.5, degenerate="few matches")
    # The geometry, if any, that leaves the camera's direction undetermined.
    criteria: tuple[tuple[Degeneracy, bool], ...] = (
        ("mirror", motion.mirrored),
        ("no motion", motion.shift < STILL),
        (motion.map_kind, motion.flat and motion.map_kind != "plane"),
        ("turn", motion.parallax < TURN_ONLY),
        ("plane", motion.flat or motion.off_plane < MIN_OFF_PLANE),
        ("behind", motion.in_front_0_1 < MIN_IN_FRONT),
        ("halves", not motion.halves_agree),
    )
    degenerate = next((name for name, holds in criteria if holds), None)
    if degenerate is not None:
        return MotionVerdict(None, REASONS[degenerate], 0.5, degenerate=degenerate)
    ways = []
    for axis, names in enumerate(AXES):
        along = float(motion.centre[axis])
        share = abs(along)
        gain = (1 - math.exp(-(motion.off_plane - MIN_OFF_PLANE + 2) / OFF_PLANE_SCALE)) * min(1.0, share / 0.5)
        confidence = 0.5 + (MAX_CERTAINTY - 0.5) * gain * min(1.0, motion.in_front_0_1 / 0.9)
        if axis == 0 and (motion.yaw_deg > 0) != (along > 0):
            confidence = min(confidence, DISAGREE)
        ways.append(Direction(names[int(along > 0)], share, confidence))
    mainly = tuple(sorted((way for way in ways if way.share >= MAINLY), key=lambda way: -way.share))
    side = ways[0]
    if side.share < SIDEWAYS:
        return MotionVerdict(None, "it went hardly sideways", 0.5, mainly)
    return MotionVerdict(side.name, "", side.confidence, mainly)


REASONS: Mapping[Degeneracy, str] = {
    "mirror": "one image shows the scene as in a mirror, and no camera does",
    "no motion": "the images show no motion",
    "shift": "image 2 is image 1 shifted as a whole: a crop or a slight turn",
    "zoom": "image 2 is image 1 enlarged or reduced as a whole: a zoom, or a flat scene",
    "turn": "near and far points move alike: a turn on the spot explains it",
    "plane": "one flat mapping explains the matches: a flat scene or no parallax",
    "behind": "the motion would put most points behind the camera",
    "halves": "one half of the matches tells another motion than the other half",
}


def _fits(motion: Motion | None, matches: int) -> TypeGuard[Motion]:
    return motion is not None and motion.inliers >= max(MIN_INLIERS, MIN_INLIER_SHARE * matches)


def views_of(request: Request[MotionArgs]) -> tuple[MatchView, MatchView]:
    """Prepare both images for matching."""
    return view_of(request.images[0]), view_of(request.images[1])


def solve(request: Request[MotionArgs], _: tuple[MatchView, MatchView], matches: Matches) -> Evidence:
    """Judge the motion between the two images of a request with the matches of its views.

    Returns:
        Evidence with `MotionData` and an overlay of each image with the matches that fit the motion. Direction and
        rotation are null if `degenerate` is set.
    """
    sizes = [(image.shape[0], image.shape[1]) for image in request.images]
    ratios = FOCAL_RATIOS if request.args.focal_ratio is None else (request.args.focal_ratio,)
    motion = best_motion(matches, sizes[0], sizes[1], ratios)
    verdict = judge(motion, len(matches))
    # A geometry without a direction has no reliable rotation either: two equal images would give 180 degrees.
    reliable = motion if verdict.degenerate is None else None
    data: dict[str, Json] = {
        "moved": verdict.moved,
        "seen_from_above": {"left": "clockwise", "right": "counter-clockwise"}.get(verdict.moved or ""),
        "degenerate": verdict.degenerate,
        "camera_direction_unit": None if reliable is None else [float(value) for value in reliable.centre],
        "turn_deg": None if reliable is None else reliable.turn_deg,
        "yaw_deg": None if reliable is None else reliable.yaw_deg,
        "mainly": [
            {"direction": way.name, "share_0_1": way.share, "confidence": way.confidence} for way in verdict.mainly
        ],
        "inliers": 0 if motion is None else motion.inliers,
        "off_plane": 0 if motion is None else motion.off_plane,
        "matches": len(matches),
        "matcher": matches.matcher,
        "in_front_0_1": None if motion is None else motion.in_front_0_1,
        "parallax_px": None if motion is None else motion.parallax * max(sizes[0]) / FRAME_PX,
        "focal_ratio": None if motion is None else motion.focal_ratio,
    }
    fitting = np.flatnonzero(motion.kept) if _fits(motion, len(matches)) else np.zeros(0, np.intp)
    sampled = fitting[thinned(len(fitting))]
    colours = dot_colours(matches.first[sampled])
    dots = "dots of one colour: matched points (x, y in px)" if len(sampled) else "no motion that enough matches fit"
    directions = verdict.moved or " and ".join(way.name for way in verdict.mainly)
    moved = f"camera moved {directions} from image 1" if directions else "direction of the camera's motion unsure"
    pictures = (
        Picture(partial(draw_view, request.images[0], matches.first[sampled], colours, [], [dots]), of=0),
        Picture(partial(draw_view, request.images[1], matches.second[sampled], colours, [], [dots, moved]), of=1),
    )
    return Evidence(_describe(verdict, motion, matches), data, verdict.confidence, pictures)


def _describe(verdict: MotionVerdict, motion: Motion | None, matches: Matches) -> str:
    if verdict.moved is not None:
        above = "clockwise" if verdict.moved == "left" else "counter-clockwise"
        lines = [
            f"From image 1 to image 2 the camera moved to its {verdict.moved}, confidence {verdict.confidence:.2f}.",
            f"Around what is in view that is {above} seen from above.",
        ]
        if verdict.mainly and verdict.mainly[0].name != verdict.moved:
            lines.append(f"Mainly it moved {verdict.mainly[0].name}, confidence {verdict.mainly[0].confidence:.2f}.")
    elif verdict.mainly:
        ways = " and ".join(f"{way.name} (confidence {way.confidence:.2f})" for way in verdict.mainly)
        lines = [
            f"From image 1 to image 2 the camera moved {ways}.",
            f"Unsure whether left or right: {verdict.reason}.",
        ]
    else:
        lines = [f"Unsure whether the camera moved left or right from image 1 to image 2: {verdict.reason}."]
    if motion is not None and (verdict.moved is not None or verdict.mainly):
        parts = [
            f"{abs(float(along)):.2f} {names[int(along > 0)]}" for along, names in zip(motion.centre, AXES, strict=True)
        ]
        lines.append(f"Direction of the motion: {', '.join(parts)} (length 1).")
        side = "left" if motion.yaw_deg > 0 else "right"
        lines.append(f"It turned by {motion.turn_deg:.0f} degrees, {abs(motion.yaw_deg):.0f} of them to its {side}.")
    inliers = 0 if motion is None else motion.inliers
    lines.append(f"Basis: {len(matches)} matches, {inliers} fit; the focal length is a guess.")
    return "\n".join(lines)


class FeatureMotion(WeightFree[MotionArgs]):
    """The weight-free backend: RootSIFT and ORB."""

    def answer(self, request: Request[MotionArgs]) -> Evidence:
        """Judge the motion of a request."""
        views = views_of(request)
        return solve(request, views, match_either_hand(*views))


class LearnedMotion(LearnedPairs[MotionArgs]):
    """The learned backend: a network finds the matches; the motion is derived as in `FeatureMotion`."""

    views, solve = staticmethod(views_of), staticmethod(solve)


# Patterns of choices that say where a camera went. Clockwise, seen from above, means that the camera went to its left.
SIDES: Final = {
    "left": r"(?i)\bleft\b|(?<!counter)(?<!anti)(?<!counter[- ])(?<!anti[- ])clockwise",
    "right": r"(?i)\bright\b|(?:counter|anti)[- ]?clockwise",
}


def side(finding: Finding, prompt: Prompt) -> str | None:
    """Return a pattern for the side that the camera moved to; choices name sides or rotations in words."""
    moved = finding.data.get("moved")
    return SIDES.get(moved) if isinstance(moved, str) else None


TOOL = Tool(
    card=tool_card(__file__, LearnedMotion, FeatureMotion),
    args=MotionArgs,
    checks=CHECKS,
    claims=Claims(("moved", "mainly", "camera_direction_unit"), same_pictures=True),
    # Without a model, the rule answers with the side that the camera moved to.
    rules={"Multi-view_Reasoning": OneCall("motion", side)},
    wording=wording_of(__file__),
    output=schema_of(MotionData),
)
