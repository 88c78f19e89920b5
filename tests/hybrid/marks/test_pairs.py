"""Pairs of letters and rings: rings that can form no mark are left out, which changes no mark."""

import numpy as np
import pytest

import hybrid.marks.pairs
from bench.marked_scenes import marked_scene
from hybrid.core.types import Box
from hybrid.marks.finding import find_marks
from hybrid.marks.letters import LetterReading
from hybrid.marks.pairs import ACCEPT, RingStyle, _of_style, ring_pairs
from hybrid.marks.ring_field import RingField


@pytest.mark.parametrize("seed", range(4))
def test_skipping_rings_does_not_change_the_marks(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = marked_scene(np.random.default_rng(7100 + seed))
    asked = tuple(str(point.label) for point in scene.points)
    found = [find_marks(scene.pixels, labels) for labels in (asked, ())]
    assert any(marks.points for marks in found)
    monkeypatch.setattr(hybrid.marks.pairs, "_min_ring_score", lambda letter_score: 0.0)
    assert found == [find_marks(scene.pixels, labels) for labels in (asked, ())]


@pytest.mark.system
def test_skipping_rings_does_not_change_the_accepted_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    import cv2

    rng = np.random.default_rng(5)
    rough = cv2.GaussianBlur(rng.normal(size=(140, 160, 3)), (0, 0), 2)
    pixels = np.clip(120 + rough * (20 / rough.std()), 0, 255).astype(np.uint8)
    for level, (x, y) in zip((140, 170, 210, 250), ((30, 60), (60, 60), (90, 60), (120, 60)), strict=True):
        cv2.circle(pixels, (x, y), 8, (level, 60, 60), 2)
    field = RingField(np.asarray(pixels, np.uint8))
    readings = [
        LetterReading(Box(x - 4, 25, x + 5, 36), Box(x - 7, 22, x + 8, 39), (("A", score),), False)
        for x in (30, 60, 90, 120)
        for score in np.linspace(0.46, 0.96, 11).tolist()
    ]
    style = RingStyle(120.0, 8.0, 29.5, 11.0)

    def find_accepted_pairs() -> list[object]:
        each = [ring_pairs(field, [reading], ("A",)) for reading in readings]
        return [
            [[pair for pair in pairs if pair.score >= ACCEPT] for pairs in each],
            _of_style(field, style, readings, ("A",)),
        ]

    found = find_accepted_pairs()
    assert all(found)
    monkeypatch.setattr(hybrid.marks.pairs, "_min_ring_score", lambda letter_score: 0.0)
    assert found == find_accepted_pairs()
