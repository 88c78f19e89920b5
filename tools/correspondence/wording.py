"""The lines that a model reads of a correspondence."""

from __future__ import annotations

from collections.abc import Sequence

from hybrid.places import at, size_px, spot_px
from tools._shared.args import Spot
from tools._shared.view_matches import Matches
from tools.correspondence.choice import FAR, CandidateChoice, distances_px, place_confidence
from tools.correspondence.point_transfer import Transfer

LISTED = 4
# Confidence in the transferred point below which the words call it unsure.
UNSURE_PLACE = 0.5
BASES = {
    "homography": "one flat mapping of the whole picture",
    "local_affine": "the matches nearest to the point",
    "descriptor": "how alike the surroundings of the points look; no mapping hit a candidate",
    "none": "nothing: the matches around the point do not agree",
}


def names_of(candidates: Sequence[Spot]) -> list[str]:
    """The label of each candidate, else `candidate N`."""
    return [spot.label or f"candidate {number}" for number, spot in enumerate(candidates, 1)]


def describe(
    choice: CandidateChoice,
    candidates: Sequence[Spot],
    matches: Matches,
    confidence: float,
    size: tuple[int, int],
    *,
    searched: bool,
) -> str:
    """The lines about a choice. `size` is (height, width) of image 2; `searched`: its drawn points were looked for."""
    lines = [_headline(choice, candidates, confidence)]
    if choice.transfer is not None:
        lines += _place_lines(choice.transfer, candidates, size, place_confidence(choice.transfer))
    if not candidates and searched:
        lines.append("No points to choose from were found in image 2.")
    if matches.mirrored:
        lines.append("Image 2 shows the scene as in a mirror.")
    inliers = 0 if choice.transfer is None else choice.transfer.inliers
    lines.append(f"Basis: {BASES[choice.method]}; {len(matches)} matches, {inliers} agree.")
    return "\n".join(line for line in lines if line)


def _headline(choice: CandidateChoice, candidates: Sequence[Spot], confidence: float) -> str:
    if choice.best is not None:
        name = names_of(candidates)[choice.best]
        return f"{name} of image 2 is the point of image 1, confidence {confidence:.2f}."
    if not candidates:
        return "" if choice.transfer else "Undecided where in image 2 the point of image 1 is."
    if choice.transfer is not None:
        return "None of the points of image 2 lies where the point of image 1 goes."
    return "Undecided which point of image 2 is the point of image 1."


def _place_lines(transfer: Transfer, candidates: Sequence[Spot], size: tuple[int, int], sure: float) -> list[str]:
    """Where the point goes, and how far the candidates nearest to there are from it."""
    (height, width), (x, y) = size, (transfer.x, transfer.y)
    inside = "" if 0 <= x < width and 0 <= y < height else ", outside of it"
    lies = "lies" if sure >= UNSURE_PLACE else "may lie (unsure)"
    there = f"{spot_px(x, y, 2)} of image 2 ({size_px(width, height, 2)}){inside}"
    lines = [f"By the matches the point of image 1 {lies} at {there}."]
    if transfer.gap >= FAR:
        lines.append("No match near the point supports that.")
    names, away = names_of(candidates), distances_px(transfer, candidates)
    order = sorted(range(len(candidates)), key=lambda index: away[index])[:LISTED]
    return lines + (
        ["Distance from there: " + ", ".join(f"{names[i]} {at('width', away[i], 2)} px" for i in order) + "."]
        if order
        else []
    )
