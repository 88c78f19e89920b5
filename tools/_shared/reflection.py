"""Matches of two views, one of which may show the scene mirrored.

Features and matching networks do not recognise mirroring: they match the few points with symmetric surroundings, and
these matches can look like a camera motion. If few matches fit one epipolar geometry, the first view is therefore also
matched with the mirrored second view, and the variant with clearly more fitting matches wins. The counts are
comparable, since mirroring a view maps every fundamental matrix to another one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from hybrid.core.types import Box
from hybrid.marks.marks import Marks
from tools._shared.robust_fit import fit_model
from tools._shared.view_matches import Matches, MatchView, Views, match_views, to_frame

# Number of matches on one epipolar geometry from which the mirrored view is not tried.
VERIFIED = 250
# Number of matches on one epipolar geometry below which a mirrored view is rejected.
MIN_REFLECTED = 20
# Smallest ratio of the matches on one epipolar geometry, mirrored over plain, at which the mirrored view wins.
CLEARLY_MORE = 1.5
# Largest distance of a match from its epipolar line, in 640ths (`FRAME_PX`) of the long side of its view.
INLIER = 1.0
MIN_MATCHES = 8


def match_either_hand(first: MatchView, second: MatchView) -> Matches:
    """Match two views without weights (`match_views`), mirrored or not: `believed_hands` chooses.

    Points are in pixels of the original images.
    """
    views = (first, second)
    return believed_hands([views], [match_views(*views)], lambda pairs: [match_views(*pair) for pair in pairs])[0]


def believed_hands(
    pairs: Sequence[Views], matches: Sequence[Matches], match: Callable[[Sequence[Views]], list[Matches]]
) -> list[Matches]:
    """Return the matches of each pair, or those with its second view mirrored if clearly more of them fit one geometry.

    Args:
        pairs: views of two images each.
        matches: result of `match(pairs)`.
        match: matches several pairs, in pixels of the original images. It is called at most once, with the pairs that
            have fewer than `VERIFIED` fitting matches and with their second views mirrored.
    """
    believed = list(matches)
    counts = [verified(match, pair) for match, pair in zip(matches, pairs, strict=True)]
    doubtful = [index for index, count in enumerate(counts) if count < VERIFIED]
    if not doubtful:
        return believed
    reflected = match([(pairs[index][0], mirrored(pairs[index][1])) for index in doubtful])
    for index, mirrored_match in zip(doubtful, reflected, strict=True):
        # Convert points of the mirrored second view to the unmirrored one.
        width = _original_size(pairs[index][1])[1]
        points = np.stack([width - 1 - mirrored_match.second[:, 0], mirrored_match.second[:, 1]], axis=1)
        back = replace(mirrored_match, second=points, mirrored=True)
        if verified(back, pairs[index]) >= max(MIN_REFLECTED, CLEARLY_MORE * counts[index]):
            believed[index] = back
    return believed


def verified(matches: Matches, views: Views) -> int:
    """Count the matches that fit the best epipolar geometry (MAGSAC++)."""
    import cv2

    if len(matches) < MIN_MATCHES:
        return 0
    first_points, second_points = (
        to_frame(points, _original_size(view))
        for points, view in zip((matches.first, matches.second), views, strict=True)
    )
    _, mask = fit_model(cv2.findFundamentalMat, first_points, second_points, cv2.USAC_MAGSAC, INLIER, 0.999, 2000)
    return 0 if mask is None else int((np.asarray(mask) > 0).sum())


def mirrored(view: MatchView) -> MatchView:
    """Mirror a view horizontally, with its marks."""
    width = view.pixels.shape[1]
    points = []
    for mark in view.marks.points:
        box = mark.label_box_px
        label_box = None if box is None else Box(width - box.x1, box.y0, width - box.x0, box.y1)
        points.append(replace(mark, x=width - 1 - mark.x, label_box_px=label_box))
    return replace(view, pixels=np.ascontiguousarray(view.pixels[:, ::-1]), marks=Marks(tuple(points)))


def _original_size(view: MatchView) -> tuple[int, int]:
    height, width = view.pixels.shape[:2]
    return round(height * view.scale_y), round(width * view.scale_x)
