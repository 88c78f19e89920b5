"""Jigsaw: which candidate completes an image whose lower-right quarter is missing, judged at the two seams.

`hybrid tools run jigsaw reference.png second.png third.png --args '{}'`; `bench/jigsaw.py` prints its scores.

Costs of a seam (Pomeranz, Shemesh and Ben-Shahar 2011; Gallagher 2012) are compared in CIE L*a*b*: the last line of
the reference outside the hole against the first line of the candidate, for the upper and the left seam. Nothing is
fitted; three costs vote. If the vote is undecided, the learned backend compares features of a vision transformer on
both sides of the seams; a decided vote is never overruled.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal, NamedTuple, NotRequired

import numpy as np
import numpy.typing as npt
from pydantic import Field, with_config
from typing_extensions import TypedDict

from hybrid.core.coordinates import at, size_px
from hybrid.core.errors import ToolError
from hybrid.core.types import Box, Json
from hybrid.tool import Args, Claims, Evidence, Picture, Pixels, Request, Tool
from hybrid.tool.backends import Learned, WeightFree
from hybrid.tool.card_file import tool_card
from hybrid.tool.outputs import schema_of
from hybrid.tool.rules import OneCall, later_image
from tools._shared.batches import shape, side_by_side
from tools._shared.dense_features import PATCHES, DenseFeatures, FeatureGrid, FeatureInput, FeatureMap, feature_map
from tools._shared.picture_content import has_edges, shows_something
from tools._shared.wording import wording_of
from tools.jigsaw.checks import CHECKS, probe, unrelated_pieces

# Distance of a point from the seam, in patches: far enough to be outside a patch that the seam cuts.
STEP = 1.0
# Number of sample points along each seam.
PLACES = 16
# Lead in mean cosine at which the confidence in the second opinion has gained 63 % of its range; an assumption, not
# measured.
COSINE_SCALE = 0.05
# Highest confidence in a second opinion, which was never measured with trained weights.
OPINION_CERTAIN = 0.75


class Opinion(NamedTuple):
    """The comparison of all candidates, with a confidence 0..1 in the best one.

    `cosines` has each candidate's mean cosine across the seams, -1..1. `best` is the best candidate's index; None for a
    tie.
    """

    cosines: tuple[float, ...]
    best: int | None
    confidence: float


def affinity(features: FeatureMap, x0: int, y0: int) -> float:
    """Return the mean cosine, -1..1, across both seams of a piece from (x0, y0) to the lower right corner.

    Args:
        features: features of the image with the piece in place.
        x0: x of the piece's first column, pixels.
        y0: y of the piece's first row, pixels.
    """
    height, width = features.size
    distance = STEP * max(height, width) / PATCHES
    along_x = x0 + (np.arange(PLACES) + 0.5) * (width - x0) / PLACES - 0.5
    along_y = y0 + (np.arange(PLACES) + 0.5) * (height - y0) / PLACES - 0.5
    pairs = [((x, y0 - distance), (x, y0 + distance)) for x in along_x]
    pairs += [((x0 - distance, y), (x0 + distance, y)) for y in along_y]
    cosines = [float(features.at(*outside) @ features.at(*inside)) for outside, inside in pairs]
    return float(np.clip(cosines, -1.0, 1.0).mean())


def decide_by_features(cosines: Sequence[float]) -> Opinion:
    """Choose the candidate with the largest mean cosine (of at least two); the confidence grows with its lead."""
    ordered = sorted(cosines, reverse=True)
    lead, chance = ordered[0] - ordered[1], 1 / len(cosines)
    if lead < 1e-6:
        return Opinion(tuple(cosines), None, chance)
    gain = 1 - float(np.exp(-lead / COSINE_SCALE))
    certainty = min(OPINION_CERTAIN, chance + (1 - chance) * gain)
    return Opinion(tuple(cosines), list(cosines).index(ordered[0]), certainty)


# Lines of pixels along a seam, shape (N, 3) or (2, N, 3), L*a*b* with L* in 0..100.
SeamLine = npt.NDArray[np.float32]

# Shortest seam to compare: below it the correlation of two lines is meaningless.
MIN_SIDE_PX = 8
# A candidate may be trimmed on each side by this fraction of its own size (at least 4 px) and is still placed.
MAX_TRIM = 0.05
# Highest channel value that counts as the black of the hole; JPEG ringing exceeds it near the seams.
DARK = 16
DARK_FRACTION = 0.98
# Margin at which the confidence in a unanimous vote has gained 63 % of its range; set on generated puzzles
# (`bench/jigsaw.py`).
MARGIN_SCALE = 0.06
# If one of the three costs prefers another candidate, the confidence rises only by this share of the full rise.
SPLIT_VOTE = 0.75
# Confidence of the vote from which no second opinion is needed. On all 75 val items, trimmed or not, the vote's
# confidence is above 0.97.
DECIDED = 0.8


class JigsawArgs(Args):
    """Arguments of the jigsaw tool."""

    trim_px: int = Field(
        default=0, ge=0, le=32, description="pixels to ignore at the edges of a piece, e.g. 2 for a drawn frame"
    )


class SeamRow(TypedDict):
    """Costs of a candidate, averaged over the two seams, in the order of the images."""

    l1_lab: Annotated[float, Field(description="mean absolute difference across the seam")]
    ncc: Annotated[float, Field(description="correlation of the lines on both sides, -1 to 1")]
    step_ratio: Annotated[float, Field(description="difference across the seam over differences beside it")]


@with_config(extra="forbid")
class JigsawData(TypedDict):
    """Data of jigsaw."""

    best: Annotated[int | None, Field(description="index of the candidate, 0 for image 2; null if undecided")]
    candidates: list[SeamRow]
    votes: Annotated[int, Field(description="of the three costs for the candidate of the seams")]
    margin_0_1: Annotated[float, Field(description="lead of that candidate")]
    by: Annotated[NotRequired[Literal["seams", "features"]], Field(description="what decided, with a network")]
    cosine: Annotated[
        NotRequired[list[float] | None],
        Field(description="mean cosine of each candidate across the seams, with a network; null if the seams decided"),
    ]


# Correlation of two lines at a seam that fine noise does not reach by chance.
RELATED = 0.5
# A seam is visible if its step ratio is above `VISIBLE`, and it fits no better than by chance if its `shift_ratio` is
# above `BY_CHANCE`. Between unrelated pictures of 1/f noise, 9 of 10 seams are above both. On BLINK's val items, the
# `shift_ratio` of the right piece is at most 0.63.
VISIBLE = 1.3
BY_CHANCE = 0.85
# Smallest step across a seam with shifted lines, in L*a*b* units, at which the lines have more than one colour.
ONE_COLOUR = 1.0
# Step ratio above which a seam is an edge. The ratio is at most 2.9 for the right piece of generated puzzles, trimmed
# by up to 6 px, and at least 7 between unrelated pictures of coarse noise, whose lines correlate by chance.
CONTINUES = 5.0
# Step ratio from which a seam is doubtful. The confidence falls from here to `CONTINUES`, above which the seam is an
# edge.
DOUBTFUL_SEAM = 3.0
# Ratio of the lowest other L1 cost to that of the chosen candidate from which colours decide, although the lines fit
# only by chance.
COLOUR_LEAD = 1.5
# Mean difference across the seams, in L*a*b* units, below which nobody sees them: a grey level is about 0.4.
UNSEEN = 0.25


class SeamCosts(NamedTuple):
    """Costs of a candidate, averaged over the two seams.

    `l1` is the mean absolute difference in L*a*b* units. `ncc` is the correlation of the two lines, -1..1. `step_ratio`
    is the difference across the seam over the differences between neighbouring lines beside it. Lower is better in `l1`
    and `step_ratio`, higher in `ncc`.
    """

    l1: float
    ncc: float
    step_ratio: float

    @property
    def costs(self) -> tuple[float, float, float]:
        """The three measures as costs >= 0, lower is better."""
        return self.l1, 1.0 - self.ncc, self.step_ratio


class SeamVerdict(NamedTuple):
    """The candidate chosen by the seam costs, with its margin and the confidence, both 0..1.

    `best` is the candidate's index; None if the costs are equal.
    """

    best: int | None
    votes: int
    margin: float
    confidence: float


class PiecePosition(NamedTuple):
    """Position of a candidate's first pixel in the reference."""

    x: int
    y: int


# The trimmed piece, the position and the costs of each candidate, and the vote of the seams.
Puzzle = tuple[Sequence[tuple[Pixels, PiecePosition, SeamCosts]], SeamVerdict]


class PuzzleInput(NamedTuple):
    """A puzzle and, if it is undecided, the network's inputs: for each candidate, the image with it in place."""

    puzzle: Puzzle
    wholes: tuple[FeatureInput, ...]


def place(reference: tuple[int, int], candidate: tuple[int, int], number: int) -> PiecePosition:
    """Return the top-left corner of a candidate (h, w) in a reference (H, W), allowing for a symmetric trim.

    Raises:
        ToolError: the candidate is not a quarter of the reference; the message contains `number`.
    """
    start = []
    for full, part in zip(reference, candidate, strict=True):
        trim = (full - 2 * part) / 4
        if part < MIN_SIDE_PX or trim < -0.5 or trim > max(4.0, MAX_TRIM * part):
            raise ToolError(
                f"jigsaw: image {number} is {size_px(candidate[1], candidate[0], number)} px, expected half the width "
                f"and height of image 1 ({size_px(reference[1], reference[0])} px), i.e. "
                f"{size_px(reference[1] / 2, reference[0] / 2)} px, at least {at('width', MIN_SIDE_PX)} px"
            )
        start.append(full - part - max(0, int(trim + 0.5)))
    return PiecePosition(x=start[1], y=start[0])


def seam_costs(reference: Pixels, candidate: Pixels, at: PiecePosition) -> SeamCosts:
    """Compute the costs of both seams of a candidate (h, w, 3) with its first pixel at `at` in the reference."""
    import cv2

    rows = []
    for outside, inside in _seam_bands(reference, candidate, at):
        jump = float(np.abs(outside[0] - inside[0]).mean())
        variation = (float(np.abs(outside[0] - outside[1]).mean()) + float(np.abs(inside[0] - inside[1]).mean())) / 2
        smooth = (np.asarray(cv2.GaussianBlur(band[:1], (0, 0), 0.8)[0], np.float32) for band in (outside, inside))
        # The 0.5 is the rounding error of 8-bit values. Without it, a flat image would cause a division by zero.
        rows.append((jump, correlation(*smooth), jump / (variation + 0.5)))
    return SeamCosts(*(float(np.mean(column)) for column in zip(*rows, strict=True)))


def _seam_bands(reference: Pixels, candidate: Pixels, at: PiecePosition) -> tuple[tuple[SeamLine, SeamLine], ...]:
    """Return two lines outside and two inside of each seam, each (2, N, 3) in L*a*b*, the line at the seam first."""
    height, width = candidate.shape[:2]
    # The hole extends beyond a trimmed candidate to the left and above, so the last visible lines are farther away.
    hole_y = at.y - (reference.shape[0] - at.y - height)
    hole_x = at.x - (reference.shape[1] - at.x - width)
    above_side = lab(reference[hole_y - 2 : hole_y, at.x : at.x + width])[::-1]
    left_side = lab(reference[at.y : at.y + height, hole_x - 2 : hole_x]).swapaxes(0, 1)[::-1]
    return (above_side, lab(candidate[:2])), (left_side, lab(candidate[:, :2]).swapaxes(0, 1))


def lab(pixels: Pixels) -> npt.NDArray[np.float32]:
    """Convert RGB uint8 (H, W, 3) to CIE L*a*b* float32, L* in 0..100, a* and b* about -127..127."""
    import cv2

    return np.asarray(cv2.cvtColor(pixels.astype(np.float32) / 255, cv2.COLOR_RGB2LAB), np.float32)


def correlation(first: SeamLine, second: SeamLine) -> float:
    """Return the normalised cross-correlation of two lines over all channels, -1..1; 0 if one of them is flat."""
    a, b = (line - line.mean(axis=0) for line in (first, second))
    norm = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float(np.clip((a * b).sum() / norm, -1.0, 1.0)) if norm > 1e-3 else 0.0


def decide(fits: Sequence[SeamCosts]) -> SeamVerdict:
    """Choose the candidate, of at least two, that most of the three costs prefer; the margin breaks ties.

    The margin of a candidate is the mean over the costs of (best other - own) / (best other + own).
    """
    costs = np.array([fit.costs for fit in fits])
    margins = []
    for index, cost in enumerate(costs):
        other = np.delete(costs, index, axis=0).min(axis=0)
        margins.append(float(((other - cost) / (other + cost + 1e-6)).mean()))
    votes = [
        int(sum(bool(column[index] + 1e-6 < np.delete(column, index).min()) for column in costs.T))
        for index in range(len(fits))
    ]
    best = max(range(len(fits)), key=lambda index: (votes[index], margins[index]))
    chance = 1 / len(fits)
    if votes[best] == 0:
        return SeamVerdict(None, 0, 0.0, chance)
    margin = float(np.clip(margins[best], 0.0, 1.0))
    gain = (1 - np.exp(-margin / MARGIN_SCALE)) * (1.0 if votes[best] == costs.shape[1] else SPLIT_VOTE)
    return SeamVerdict(best, votes[best], margin, float(min(0.99, chance + (1 - chance) * gain)))


def shift_ratio(reference: Pixels, candidate: Pixels, at: PiecePosition) -> float | None:
    """Return the step across the seams, divided by the median step after shifting the lines along the seams.

    The lines are those on the two sides of a seam. Unrelated lines differ as much in place as shifted, so
    their ratio is about 1, whatever their spectrum; it is lower for a piece that continues the reference. The result is
    the mean over the seams whose lines have several colours; None if there is no such seam, so that only colours
    decide.
    """
    ratios = []
    for outside, inside in _seam_bands(reference, candidate, at):
        length = len(outside[0])
        shifts = range(length // 8, length - length // 8, max(1, length // 64))
        shifted = float(np.median([np.abs(outside[0] - np.roll(inside[0], by, axis=0)).mean() for by in shifts]))
        if shifted >= ONE_COLOUR:
            ratios.append(float(np.abs(outside[0] - inside[0]).mean()) / shifted)
    return float(np.mean(ratios)) if ratios else None


def fits_by_chance(
    reference: Pixels, candidate: Pixels, at: PiecePosition, costs: SeamCosts, others: Sequence[SeamCosts]
) -> bool:
    """Return whether the lines at the seams fit hardly better than shifted ones, so that the fit proves nothing.

    If the seams are not visible, another candidate (`others`) must also fit about as well: its L1 cost is less than
    `COLOUR_LEAD` times as high.
    """
    ratio = shift_ratio(reference, candidate, at)
    if ratio is None or ratio <= BY_CHANCE:
        return False
    return costs.step_ratio > VISIBLE or min(other.l1 for other in others) < COLOUR_LEAD * costs.l1


def compose(reference: Pixels, candidate: Pixels, at: PiecePosition) -> Pixels:
    """Return a copy of the reference with the candidate in its hole."""
    composed = reference.copy()
    height, width = candidate.shape[:2]
    composed[at.y : at.y + height, at.x : at.x + width] = candidate
    return composed


class SeamVote(WeightFree[JigsawArgs]):
    """The weight-free backend: L1, correlation and step ratio of the seams, by majority."""

    def answer(self, request: Request[JigsawArgs]) -> Evidence:
        """Vote on a puzzle. Raises `ToolError` if the images do not form one."""
        return solve(request.images, request.args.trim_px)


class SecondOpinion(Learned[JigsawArgs, PuzzleInput, list[FeatureGrid], DenseFeatures]):
    """The learned backend: the same vote, plus features of a vision transformer if it is undecided."""

    load = staticmethod(partial(DenseFeatures, tool="jigsaw"))

    def prepare(self, request: Request[JigsawArgs]) -> PuzzleInput:
        """Return the vote and the network's input. Raises `ToolError` like `vote`, or for an elongated image."""
        model, images = self.model, request.images
        puzzle = vote(images, request.args.trim_px)
        # Features of pieces without any content differ, too, but prove nothing.
        open_ = puzzle[1].confidence < DECIDED and any(
            shows_something(piece) or has_edges(piece) for piece, _, _ in puzzle[0]
        )
        undecided = puzzle[0] if open_ else ()
        return PuzzleInput(puzzle, tuple(model.prepare(compose(images[0], piece, at)) for piece, at, _ in undecided))

    def batch_key(self, prepared: PuzzleInput) -> Hashable:
        """Return the shapes of the network's images; empty for a decided puzzle."""
        return shape(*(composed.values for composed in prepared.wholes))

    def compute(self, prepared: Sequence[PuzzleInput]) -> list[list[FeatureGrid]]:
        """Compute the features of every image of each undecided puzzle; all requests share passes."""
        return side_by_side(self.model.predict, [item.wholes for item in prepared])

    def finish(self, request: Request[JigsawArgs], prepared: PuzzleInput, output: list[FeatureGrid]) -> Evidence:
        """Return the result of `report`, plus `"by"` ("seams" or "features") and each candidate's `"cosine"` or null.

        Raises:
            ToolError: the network returned values that are not finite.
        """
        maps = [feature_map("jigsaw", *pair) for pair in zip(prepared.wholes, output, strict=True)]
        opinion = None
        if maps:
            places = [at for _, at, _ in prepared.puzzle[0]]
            opinion = decide_by_features(
                [affinity(features, at.x, at.y) for features, at in zip(maps, places, strict=True)]
            )
        evidence = report(request.images, prepared.puzzle, opinion)
        by = "features" if opinion is not None and opinion.best is not None else "seams"
        return replace(evidence, data={**evidence.data, "by": by, "cosine": list(opinion.cosines) if opinion else None})


def vote(images: Sequence[Pixels], trim_px: int = 0) -> Puzzle:
    """Place the candidates `images[1:]` in `images[0]`, trim `trim_px` at every edge of each, and vote on them.

    Raises:
        ToolError: sizes do not fit, or the quarter is not missing; the message states the expected sizes.
    """
    reference = images[0]
    # Check that the lower-right quarter is black, except for two lines along the seams.
    height, width = reference.shape[:2]
    hole = reference[height - height // 2 + 2 :, width - width // 2 + 2 :]
    dark = float((hole.max(axis=2) <= DARK).mean()) if hole.size else 0.0
    if dark < DARK_FRACTION:
        raise ToolError(
            f"jigsaw: image 1 must be the picture with its lower-right quarter missing (black); "
            f"{dark:.0%} of that quarter is black"
        )
    fitted = []
    for number, picture in enumerate(images[1:], 2):
        corner = place((reference.shape[0], reference.shape[1]), (picture.shape[0], picture.shape[1]), number)
        if min(picture.shape[:2]) < 2 * trim_px + MIN_SIDE_PX:
            least = at("width", MIN_SIDE_PX)
            raise ToolError(f"jigsaw: trim_px={trim_px} leaves less than {least} px of image {number}")
        piece = picture[trim_px : picture.shape[0] - trim_px, trim_px : picture.shape[1] - trim_px]
        start = PiecePosition(corner.x + trim_px, corner.y + trim_px)
        fitted.append((piece, start, seam_costs(reference, piece, start)))
    return fitted, weigh_seams(images, fitted)


def weigh_seams(images: Sequence[Pixels], fitted: Sequence[tuple[Pixels, PiecePosition, SeamCosts]]) -> SeamVerdict:
    """Return the vote of the seams: undecided if the images are no evidence, less sure above `DOUBTFUL_SEAM`."""
    reference, costs = images[0], [fit for _, _, fit in fitted]
    verdict, chance = decide(costs), 1 / len(fitted)
    if verdict.best is None:
        return verdict
    # In noise any line fits any other equally well, up to chance. The hole is excluded from the test.
    related = max(fit.ncc for fit in costs) >= RELATED
    continues = min(fit.step_ratio for fit in costs) <= CONTINUES
    height = reference.shape[0]
    empty = not related and not shows_something(reference[: height - height // 2])
    others = [fit for number, fit in enumerate(costs) if number != verdict.best]
    by_chance = fits_by_chance(reference, *fitted[verdict.best], others)
    if not continues or empty or by_chance or fit_alike(images, costs):
        return SeamVerdict(None, 0, 0.0, chance)
    doubt = (costs[verdict.best].step_ratio - DOUBTFUL_SEAM) / (CONTINUES - DOUBTFUL_SEAM)
    share = float(np.clip(1 - doubt, 0, 1))
    return verdict._replace(confidence=chance + (verdict.confidence - chance) * share)


def fit_alike(images: Sequence[Pixels], fits: Sequence[SeamCosts]) -> bool:
    """Return whether the pictures `images` show nothing and no candidate has a visible seam.

    If so, only rounding distinguishes the candidates. The reference `images[0]` is judged by its upper and its left
    half.
    """
    if max(costs.l1 for costs in fits) >= UNSEEN:
        return False
    height, width = images[0].shape[:2]
    halves = images[0][: height - height // 2], images[0][:, : width - width // 2]
    return not any(map(shows_something, (*halves, *images[1:])))


def solve(images: Sequence[Pixels], trim_px: int = 0) -> Evidence:
    """Build the tool output from the seams alone, like `report`. Raises `ToolError` like `vote`."""
    return report(images, vote(images, trim_px))


def report(images: Sequence[Pixels], puzzle: Puzzle, opinion: Opinion | None = None) -> Evidence:
    """Build the tool output from the vote of the seams, or from a second opinion on an undecided vote.

    Returns:
        Evidence with `JigsawData` without `by` and `cosine`, and one derived image: the puzzle with the chosen piece
        in place.
    """
    fitted, verdict = puzzle
    fits = [costs for _, _, costs in fitted]
    best, certainty = verdict.best, verdict.confidence
    # If the features are tied, the vote stays.
    if opinion is not None and opinion.best is not None:
        best, certainty = opinion.best, opinion.confidence
    rows: list[Json] = [{"l1_lab": fit.l1, "ncc": fit.ncc, "step_ratio": fit.step_ratio} for fit in fits]
    data: dict[str, Json] = {"best": best, "candidates": rows, "votes": verdict.votes, "margin_0_1": verdict.margin}
    pictures: tuple[Picture, ...] = ()
    if best is not None:
        piece, at, _ = fitted[best]
        height, width = images[0].shape[:2]
        pictures = (Picture(compose(images[0], piece, at), box=Box(0, 0, width, height)),)
    if opinion is not None and opinion.best is not None:
        values = ", ".join(f"image {n} {value:.2f}" for n, value in enumerate(opinion.cosines, 2))
        head = (
            f"The seams leave it open; by features beside them image {opinion.best + 2} continues image 1 best "
            f"(mean cosine: {values})."
        )
    elif verdict.best is None:
        head = "The seams do not tell the candidates apart: they fit the missing lower-right quarter equally well."
    else:
        head = (
            f"Image {verdict.best + 2} continues the missing lower-right quarter of image 1 best: "
            f"{verdict.votes} of 3 seam measures, margin {verdict.margin:.2f} (0..1)."
        )
    return Evidence("\n".join([head, *_measures(fits)]), data, certainty, pictures)


def _measures(fits: Sequence[SeamCosts]) -> list[str]:
    """Return the seam measures of each piece and their meaning, which is given only once for more than two pieces."""
    if len(fits) <= 2:
        return [
            f"Image {n}: colour step across the seam {fit.l1:.1f} (lower fits better), "
            f"correlation {fit.ncc:.2f} (higher fits better), step ratio {fit.step_ratio:.1f} (1 = no visible seam)."
            for n, fit in enumerate(fits, 2)
        ]
    # With the explanation repeated for each of four pieces, the text would be longer than a tool's text may be.
    return [
        "Seams: colour step (lower fits), correlation (higher fits), step ratio (1 = no visible seam).",
        *(
            f"Image {n}: step {fit.l1:.1f}, correlation {fit.ncc:.2f}, ratio {fit.step_ratio:.1f}."
            for n, fit in enumerate(fits, 2)
        ),
    ]


TOOL = Tool(
    card=tool_card(__file__, SecondOpinion, SeamVote),
    args=JigsawArgs,
    checks=CHECKS,
    probe=probe,
    claims=Claims(("best",), same_pictures=True, pose=unrelated_pieces),
    # Without a model, the rule answers with the image that completes the first.
    rules={"Jigsaw": OneCall("jigsaw", later_image)},
    wording=wording_of(__file__),
    output=schema_of(JigsawData),
)
