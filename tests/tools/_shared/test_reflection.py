"""Matches of mirrored views: which handedness is chosen, which pairs are matched again, and the resulting points."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.core.types import Box
from hybrid.marks.marks import Marks, PointMark
from hybrid.tool import Pixels
from tools._shared import view_matches
from tools._shared.reflection import believed_hands, match_either_hand, mirrored, verified
from tools._shared.view_matches import Matches, MatchView, Views, match_views, view_of

WIDTH, HEIGHT = 640, 480
LEVEL: Views = (view_of(np.full((HEIGHT, WIDTH, 3), 90, np.uint8)),) * 2


class QueuedMatcher:
    """Returns the matches of its queue, and records its requests."""

    def __init__(self, *queue: Matches) -> None:
        self.queue, self.asked = list(queue), list[Sequence[Views]]()

    def __call__(self, pairs: Sequence[Views]) -> list[Matches]:
        self.asked.append(pairs)
        return [self.queue.pop(0) for _ in pairs]


def shifted(fitting: int, stray: int = 0, seed: int = 0) -> Matches:
    """Return `fitting` matches moved to the right by 30 to 60 px, and `stray` ones between random points."""
    rng = np.random.default_rng(seed)
    first = rng.uniform((0, 0), (WIDTH - 70, HEIGHT - 1), (fitting + stray, 2))
    second = first + np.stack([rng.uniform(30, 60, len(first)), np.zeros(len(first))], axis=1)
    second[fitting:] = rng.uniform((0, 0), (WIDTH - 1, HEIGHT - 1), (stray, 2))
    return Matches(first, second, np.ones(len(first)), "exact")


def photograph(seed: int) -> Pixels:
    """Return smooth noise at three sizes: features everywhere, none of them symmetric."""
    import cv2

    rng = np.random.default_rng(seed)
    layers = [
        cv2.resize(rng.uniform(0, 255, (rows, rows * 4 // 3, 3)), (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
        for rows in (24, 60, 120)
    ]
    return np.asarray(np.clip(np.mean(layers, axis=0), 0, 255), np.uint8)


@settings(max_examples=20, deadline=None)
@given(plain=st.integers(0, 120), reflected=st.integers(0, 400), seed=st.integers(0, 9))
def test_the_hand_is_believed_of_which_clearly_more_matches_fit(plain: int, reflected: int, seed: int) -> None:
    matcher = QueuedMatcher(shifted(reflected, 5, seed + 100))
    matches = shifted(plain, 5, seed)
    (believed,) = believed_hands([LEVEL], [matches], matcher)
    counts = verified(matches, LEVEL), verified(shifted(reflected, 5, seed + 100), LEVEL)
    assert believed.mirrored == (counts[1] >= max(20, 1.5 * counts[0]))
    assert believed is matches or believed.second[:, 0] == pytest.approx(
        WIDTH - 1 - shifted(reflected, 5, seed + 100).second[:, 0]
    )


def test_a_view_mirrored_twice_is_itself() -> None:
    mark = PointMark("A", 20.5, 30.0, 6.0, 4.0, "red", Box(30, 20, 42, 34), 1.0, 1.0, 1.0)
    view = MatchView(photograph(0), 1.0, 1.0, Marks((mark,)))
    once, twice = mirrored(view), mirrored(mirrored(view))
    assert (once.marks.points[0].x, once.marks.points[0].label_box_px) == (618.5, Box(598, 20, 610, 34))
    assert np.array_equal(once.pixels[:, 0], view.pixels[:, -1])
    assert np.array_equal(twice.pixels, view.pixels)
    assert twice.marks == view.marks


@pytest.mark.system
@pytest.mark.parametrize("longest", [320, 260])
def test_points_of_a_mirror_image_lie_where_they_are_seen(longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Points of a mirror image are where they are seen, also in pictures that are reduced before matching."""
    monkeypatch.setattr(view_matches, "MAX_SIDE_PX", longest)
    pixels = photograph(1)[:240, :320]
    views = view_of(pixels), view_of(np.ascontiguousarray(pixels[:, ::-1]))
    assert views[0].pixels.shape[1] == longest
    result = match_either_hand(*views)
    assert result.mirrored
    assert len(result) > 100
    assert result.first[:, 0].max() > 290
    assert np.median(np.abs(319 - result.first[:, 0] - result.second[:, 0])) < 0.5
    assert np.median(np.abs(result.first[:, 1] - result.second[:, 1])) < 0.5


@pytest.mark.system
def test_views_of_one_hand_keep_their_matches() -> None:
    pixels, other = (photograph(seed)[:240, :320] for seed in (2, 3))
    for second in (pixels[:, 30:], pixels[20:150], other):
        views = view_of(pixels), view_of(np.ascontiguousarray(second))
        plain, result = match_views(*views), match_either_hand(*views)
        assert not result.mirrored
        assert (result.first.tobytes(), result.second.tobytes()) == (plain.first.tobytes(), plain.second.tobytes())
