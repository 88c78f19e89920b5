"""Semantic correspondence: reading points, interpolation, the order of cosines, DINO through its processor."""

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.benchmarks.blink.sample import item
from hybrid.core.errors import ToolError
from hybrid.tool import Evidence, Pixels, Request
from tests.tools.pictures import markers, picture, scene
from tests.tools.tiny_checkpoints import Checkpoints, started
from tools._shared.args import Spot
from tools.semantic_correspondence import TOOL, DenseMatch, SemanticArgs, decide, read_spots

REF, SPOTS = Spot("REF", 5, 5), [Spot("A", 1, 1), Spot("B", 2, 2), Spot("C", 3, 3)]


def given_points(*points: tuple[float, float]) -> SemanticArgs:
    return SemanticArgs(
        point={"x": 30, "y": 40}, candidates=[{"x": x, "y": y, "label": "ABCD"[n]} for n, (x, y) in enumerate(points)]
    )


def ask(backend: DenseMatch, images: tuple[Pixels, Pixels], args: SemanticArgs) -> Evidence:
    return backend.run([Request(images, args)])[0]


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=3))
def test_the_largest_cosine_wins(cosines: list[float]):
    match = decide(cosines, REF, SPOTS)
    assert 1 / 3 - 1e-9 <= match.confidence <= 0.85
    if match.best is not None:
        assert cosines[match.best] == max(cosines)


@pytest.mark.parametrize("family", ["dinov2", "dinov3"])
def test_a_picture_corresponds_with_itself(things_checkpoint: Checkpoints, family: str):
    backend, pixels = started("semantic_correspondence", things_checkpoint(family)), scene()
    args = given_points((90, 20), (30, 40), (100, 80), (10, 80))
    first, second = (ask(backend, (pixels, pixels), args) for _ in range(2))
    assert first.data == second.data
    assert first.data["best"] == "B"
    assert first.data["candidates"][1]["cosine"] == pytest.approx(1, abs=1e-4)
    assert [entry.of for entry in first.pictures] == [0, 1]
    assert backend.version.startswith(f"{TOOL.backend('learned').version}+dinov")


def test_sizes_of_the_images_may_differ(things_checkpoint: Checkpoints):
    backend = started("semantic_correspondence", things_checkpoint("dinov2"))
    # At this size, noise with a dark quarter counts as showing nothing; a disc on a plain ground shows something.
    small = np.full((60, 90, 3), 200, np.uint8)
    cv2.circle(small, (30, 40), 12, (200, 40, 30), -1)
    output = ask(backend, (small, scene(1500, 1100, 1)), given_points((500, 700), (1000, 1400)))
    assert [entry.pixels.shape for entry in output.pictures] == [(60, 90, 3), (1500, 1100, 3)]
    assert 0 <= output.data["peak_px"][0] < 1100
    tiny = SemanticArgs(point={"x": 0, "y": 0}, candidates=[{"x": 0, "y": 0}, {"x": 0, "y": 0}])
    assert ask(backend, (picture(1, 1), picture(1, 1)), tiny).data["best_index"] is None
    with pytest.raises(ToolError, match="too elongated"):
        ask(backend, (picture(1, 20), picture(1, 20)), tiny)


@pytest.mark.system
def test_points_are_read_from_the_marks():
    drawn_item = item("Visual_Correspondence", 0, 1)
    (need,) = TOOL.card.needs
    needs = tuple(markers(pixels, **need.args(SemanticArgs())) for pixels in drawn_item.images)
    reference, candidates = read_spots(Request(drawn_item.images, SemanticArgs(), {"markers": needs}))
    assert (reference.x, reference.y) == pytest.approx(drawn_item.facts.ref, abs=3)
    assert [spot.label for spot in candidates] == ["A", "B", "C", "D"]


def test_points_that_are_not_drawn_are_undecided_and_a_single_candidate_is_a_fault(things_checkpoint: Checkpoints):
    backend = started("semantic_correspondence", things_checkpoint("dinov2"))
    for args in (SemanticArgs(), SemanticArgs(point={"x": 1, "y": 1})):
        (evidence,) = backend.run([Request((picture(), picture()), args)])
        assert evidence.data["best"] is None
        assert evidence.data["candidates"] == []
        assert "0 candidates in image 2" in evidence.text
        assert evidence.confidence < 0.25
    with pytest.raises(ToolError, match="1 candidate;"):
        read_spots(Request((picture(), picture()), given_points((5, 5))))
