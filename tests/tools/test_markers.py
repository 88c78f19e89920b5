import io
import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bench.marked_scenes import FONTS, RING_COLORS, background, boxed_scene, marked_scene, overlapping_scene
from bench.picture_changes import grey, scaled
from hybrid.core.errors import ToolError
from hybrid.core.images import decode
from hybrid.core.types import Box, Point
from hybrid.marks.drawing import LABELS, Font, LabelledBox, MarkStyle, draw_marks
from hybrid.marks.finding import ALIKE_PX, COMPANION, MIN_TOGETHER, find_marks
from hybrid.marks.marks import BoxMark, Marks, PointMark, remove_marks
from hybrid.marks.marks_json import marks_data, marks_from
from hybrid.samples.seeds import generator
from hybrid.tool import Request
from tools._shared.picture_content import shows_something
from tools.markers import UNSURE, DrawnMarks, MarkersArgs, all_marks, confidence, describe, find_all, locate, views

PLAIN = background(np.random.default_rng(901), "blobs", 200, 260)


def near(mark: PointMark, x: float, y: float, px: float = 3) -> bool:
    return bool(np.hypot(mark.x - x, mark.y - y) <= px)


@pytest.mark.system
def test_generated_scenes_are_right_in_99_of_100_marks() -> None:
    result = total = 0
    for seed in range(70_000, 70_025):
        scene = marked_scene(np.random.default_rng(seed))
        labels = [str(point.label) for point in scene.points]
        by_label = {mark.label: mark for mark in find_marks(scene.pixels, labels).points}
        total += len(labels)
        result += sum(p.label in by_label and near(by_label[p.label], p.x, p.y) for p in scene.points)
    assert result / total >= 0.99, f"{result}/{total}"


def test_generated_boxes_are_found_with_their_letters() -> None:
    scenes = [boxed_scene(np.random.default_rng(seed)) for seed in range(80_000, 80_005)]
    errors = [error for scene in scenes for error in box_errors(scene.boxes, find_marks(scene.pixels, ("A", "B")))]
    assert max(errors) <= 3, errors


def box_errors(sample: Sequence[LabelledBox], marks: Marks) -> list[float]:
    """Return, for each drawn box, the largest distance of one of its sides in pixels; infinite if its colour was not
    found."""
    mapping = {(mark.label, mark.color): mark.box_px for mark in marks.boxes}
    rows = [(mapping.get((item.label, item.color)), item.box) for item in sample]
    return [
        np.inf if a is None else max(abs(a.x0 - b.x0), abs(a.y0 - b.y0), abs(a.x1 - b.x1), abs(a.y1 - b.y1))
        for a, b in rows
    ]


def test_both_of_two_overlapping_boxes_are_found() -> None:
    scenes = [overlapping_scene(generator("evaluate", 90, seed)) for seed in range(3)]
    values = [max(box_errors(scene.boxes, find_marks(scene.pixels, ("A", "B"), "box"))) <= 3 for scene in scenes]
    assert all(values), values


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param((64, 120, 133, 178), (64, 99, 127, 162), id="a side on one line"),
        pytest.param((143, 88, 205, 150), (127, 67, 225, 150), id="a side under the other box"),
        pytest.param((100, 60, 220, 150), (97, 40, 223, 180), id="sides side by side"),
        pytest.param((60, 50, 200, 170), (75, 66, 210, 165), id="crossing near the corners"),
        pytest.param((60, 40, 240, 180), (80, 60, 220, 170), id="one inside the other"),
    ],
)
@pytest.mark.parametrize(
    "colors",
    [("red", "green"), *(pytest.param(pair, marks=pytest.mark.system) for pair in (("green", "red"), ("red", "red")))],
)
def test_sides_that_meet_another_box_are_told_apart(first, second, colors) -> None:  # type: ignore[no-untyped-def]
    for sample in ((first, second), (second, first)):
        boxes = [
            LabelledBox(Box(*corners), label, color) for corners, label, color in zip(sample, "AB", colors, strict=True)
        ]
        marks = find_marks(draw_marks(PLAIN, (), boxes), ("A", "B"), "box")
        assert max(box_errors(boxes, marks)) <= 3, (boxes, marks.boxes)


@pytest.mark.system
@pytest.mark.parametrize("font", FONTS)
@pytest.mark.parametrize(("sample", "text"), [("B", "D"), ("D", "B"), ("A", "C"), ("REF", "B"), ("B", "REF")])
def test_a_letter_that_is_not_drawn_is_not_found_sure(sample: str, text: str, font) -> None:  # type: ignore[no-untyped-def]
    points = [Point(70, 100, sample), Point(190, 120, sample if sample == "REF" else "A")]
    evidence = locate(
        draw_marks(PLAIN, points[: 1 + (sample != "REF")], (), MarkStyle(font=font)),
        MarkersArgs.model_validate({"labels": (text,)}),
    )
    assert evidence.confidence < 0.5
    assert all(mark.label in (text, None) for mark in marks_from(evidence.data).points)


def test_a_box_letter_that_is_not_drawn_is_not_found() -> None:
    assert locate(boxed_scene(np.random.default_rng(80_100)).pixels, MarkersArgs(labels=("D",))).confidence < 0.5


@pytest.mark.parametrize(("x", "y"), [(3, 100), (130, 9), (130, 196), (257, 24)])
def test_marks_cut_by_the_border_keep_place_and_letter(x: int, y: int) -> None:
    pixels = draw_marks(PLAIN, [Point(x, y, "B"), Point(130, 130, "A")])
    by_label = {mark.label: mark for mark in find_marks(pixels, ("A", "B")).points}
    assert near(by_label["A"], 130, 130)
    assert near(by_label["B"], x, y)


def test_both_letters_cut_at_the_top_are_told_apart() -> None:
    pixels = draw_marks(PLAIN, [Point(60, 21, "B"), Point(190, 21, "A")])
    by_label = {mark.label: mark for mark in find_marks(pixels, ("A", "B")).points}
    assert near(by_label["B"], 60, 21)
    assert near(by_label["A"], 190, 21)


def test_other_views_are_searched_beside_a_lone_a_but_not_beside_a_lone_ref(monkeypatch: pytest.MonkeyPatch) -> None:
    searched = []
    monkeypatch.setattr(views, "find_marks", lambda pixels, *rest: searched.append(1) or find_marks(pixels, *rest))
    read_small = []
    monkeypatch.setattr(views, "SMALL", views.SMALL._replace(read=lambda grey: read_small.append(1) or []))
    for label, small_letters_read in (("REF", 0), ("A", 1)):
        searched.clear()
        marked = draw_marks(PLAIN, [Point(130, 120, label)], [], MarkStyle())
        (mark,) = find_all(marked, MarkersArgs(kind="point")).points
        assert mark.label == label
        assert len(read_small) == small_letters_read
        assert (len(searched) > 1) == bool(small_letters_read)


def test_the_evidence_is_for_a_model_and_for_rules() -> None:
    pixels = draw_marks(PLAIN, [Point(60, 80, "A"), Point(180, 150, "B")])
    request = Request((pixels,), MarkersArgs(labels=("A", "B")))
    (evidence,) = DrawnMarks().run([request])
    assert evidence.text.splitlines()[0] == "Point A: red circle at x=60, y=80 px of image 1."
    assert evidence.confidence > 0.9
    assert evidence.pictures[0].pixels.shape == pixels.shape
    assert (evidence.pictures[0].pixels != pixels).any()
    assert marks_from(json.loads(json.dumps(evidence.data))) == find_marks(pixels, ("A", "B"))
    result = DrawnMarks().run([request, request])
    assert [a.data for a in result] == [evidence.data, evidence.data]
    assert (result[0].pictures[0].pixels == evidence.pictures[0].pixels).all()


def test_text_stays_within_six_short_lines() -> None:
    point = PointMark("A", 1, 2, 7, 3, "red", None, 0.1, 0.1, 0.2)
    box = BoxMark(None, "red", Box(0, 0, 5, 5), None, 0.5, 0.0, 0.3)
    text = describe(Marks((point,) * 9, (box,)), MarkersArgs(labels=("B",)))
    assert len(text.splitlines()) == 6
    assert max(map(len, text.splitlines())) <= 160
    assert text.splitlines()[0].startswith("Point A (unsure)")
    boxes = describe(Marks((), (replace(box, box_px=Box(1000, 1000, 2000, 2000)),) * 9), MarkersArgs(labels=("B",)))
    assert 300 < len(boxes) <= 450
    assert boxes.splitlines()[-1] == "Not found in image 1: B."
    assert text.splitlines()[-1] == "Not found in image 1: B."
    assert confidence(Marks((point,)), ("A", "B")) == 0.0


@settings(max_examples=8)
@given(arrays(np.uint8, st.tuples(st.integers(1, 40), st.integers(1, 40), st.just(3))))
def test_any_image_gives_finite_evidence(pixels) -> None:  # type: ignore[no-untyped-def]
    evidence = locate(pixels, MarkersArgs())
    assert 0 <= evidence.confidence <= 1
    assert json.loads(json.dumps(evidence.data, allow_nan=False)) == evidence.data


numbers = st.floats(0, 1000)
boxes = st.builds(Box, numbers, numbers, numbers, numbers)
point_marks = st.builds(
    PointMark,
    st.none() | st.sampled_from(LABELS),
    *[numbers] * 4,
    st.sampled_from(RING_COLORS),
    st.none() | boxes,
    *[st.floats(0, 1)] * 3,
)
box_marks = st.builds(
    BoxMark, st.none() | st.sampled_from("AB"), st.just("red"), boxes, st.none() | boxes, *[st.floats(0, 1)] * 3
)


@given(st.builds(Marks, st.tuples(point_marks, point_marks), st.tuples(box_marks)))
def test_data_round_trips(marks: Marks) -> None:
    assert marks_from(json.loads(json.dumps(marks_data(marks)))) == marks


def test_rings_are_painted_over_up_to_their_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    masks = []
    monkeypatch.setattr("cv2.inpaint", lambda pixels, mask, *rest: masks.append(mask) or pixels)
    places = ((40.3, 50.6), (-3.0, 90.0), (259.5, 199.2), (130.0, -40.0))
    rings = [PointMark(None, x, y, 8.5, 5.0, "red", None, 0.9, 0.0, 0.9) for x, y in places]
    remove_marks(PLAIN, Marks(tuple(rings)))
    rows, columns = np.ogrid[: PLAIN.shape[0], : PLAIN.shape[1]]
    distances = [np.hypot(rows - y, columns - x) for x, y in places]
    painted = np.any([(distance <= 10.5) & (distance >= 4.0) for distance in distances], axis=0)
    assert np.array_equal(masks[0] == 255, painted)


def test_malformed_data_is_named() -> None:
    with pytest.raises(ToolError, match="points_px"):
        marks_from({"boxes_px": []})
    good = json.loads(json.dumps(marks_data(Marks((PointMark("A", 1, 2, 7, 3, "red", None, 1, 1, 1),)))))
    good["points_px"][0]["x"] = "left"
    with pytest.raises(ToolError, match=r"points_px\.0\.x"):
        marks_from(good)


@pytest.mark.system
@pytest.mark.shared_data
def test_both_marks_of_real_depth_items(shared_data: Path) -> None:
    rows = [
        row
        for path in sorted((shared_data / "blink" / "Relative_Depth").glob("val-*.parquet"))
        for row in pq.read_table(path, columns=["idx", "image_1"]).to_pylist()
    ]
    assert len(rows) == 62
    remaining, rows = 0, rows[::3]
    for row in rows:
        pixels = decode(io.BytesIO(row["image_1"]["bytes"]).getvalue(), row["idx"])
        marks = find_marks(pixels, ("A", "B"))
        assert marks.boxes == ()
        assert [mark.label for mark in marks.points] == ["A", "B"], row["idx"]
        a, b = marks.points
        assert np.hypot(a.x - b.x, a.y - b.y) >= 15, row["idx"]
        assert {a.color, b.color} == {"red"}, row["idx"]
        assert all(5 <= mark.radius_px <= 8 or mark.ring_score < 0.6 for mark in (a, b)), row["idx"]
        assert all(mark.confidence >= 0.75 for mark in (a, b)), row["idx"]
        remaining += a.x < b.x
        assert all(red_share(pixels, mark) >= 0.75 for mark in (a, b)), row["idx"]
    # DIW's pairs on one row always have A on the left; the other pairs have it there half of the time.
    assert remaining >= len(rows) / 2


@pytest.mark.system
@pytest.mark.shared_data
def test_photographs_without_marks_hold_none_that_is_sure(shared_data: Path) -> None:
    rows = [
        row
        for path in sorted((shared_data / "blink" / "Spatial_Relation").glob("val-*.parquet"))
        for row in pq.read_table(path, columns=["idx", "image_1"]).to_pylist()[::12]
    ]
    assert len(rows) >= 5
    for row in rows:
        pixels, args = decode(row["image_1"]["bytes"], row["idx"]), MarkersArgs(labels=("A", "B"))
        assert all(mark.confidence < UNSURE for mark in all_marks(find_all(pixels, args))), row["idx"]
        result = locate(pixels, args)
        assert marks_from(result.data) == Marks(), row["idx"]
        assert result.text == "Not found in image 1: A, B.", row["idx"]


def red_share(pixels: np.ndarray, mark: PointMark) -> float:
    """Return the share of pixels, on the visible part of a circle of radius 5 px around a mark, that are clearly
    red."""
    angles = np.arange(24) * (2 * np.pi / 24)
    columns = np.rint(mark.x + 5 * np.cos(angles)).astype(int)
    rows = np.rint(mark.y + 5 * np.sin(angles)).astype(int)
    inside = (columns >= 0) & (columns < pixels.shape[1]) & (rows >= 0) & (rows < pixels.shape[0])
    ring = pixels[rows[inside], columns[inside]].astype(int)
    return float((ring[:, 0] - ring[:, 1:].max(axis=1) > 40).mean())


def test_a_grey_ring_that_does_not_show_lies_from_its_letter_as_the_other_one_does() -> None:
    plain = np.full((200, 260, 3), 200, np.uint8)
    # 76 is the luma of pure red.
    plain[130:170, 160:200] = 76
    pixels = grey(draw_marks(plain, [Point(60, 80, "A"), Point(180, 150, "B")]))
    by_label = {mark.label: mark for mark in marks_from(locate(pixels, MarkersArgs(labels=("A", "B"))).data).points}
    assert (by_label["B"].x, by_label["B"].y) == pytest.approx((180, 150), abs=1)
    assert UNSURE <= by_label["B"].confidence <= COMPANION < by_label["A"].confidence
    # The letter of B is below its ring, because there is no room above; the other letter is above its ring.
    plain[0:60] = 76
    pixels = grey(draw_marks(plain, [Point(60, 80, "A"), Point(180, 16, "B")]))
    marks = marks_from(locate(pixels, MarkersArgs(labels=("A", "B"))).data).points
    assert all(mark.y < 50 for mark in marks if mark.label == "B")


def test_a_ring_on_the_other_side_of_its_letter_than_the_other_one_is_none() -> None:
    plain = np.full((220, 260, 3), 200, np.uint8)
    plain[110:150, 160:200] = 76
    # The letter of B is as far below this ring as it is above the one that is not visible.
    decoy = Point(180, 83)
    pixels = grey(draw_marks(plain, [Point(60, 130, "A"), Point(180, 130, "B"), decoy]))
    by_label = {mark.label: mark for mark in marks_from(locate(pixels, MarkersArgs(labels=("A", "B"))).data).points}
    assert near(by_label["A"], 60, 130)
    assert near(by_label["B"], 180, 130)


def test_a_ring_whose_letter_would_show_gets_no_label_by_elimination() -> None:
    plain = np.full((220, 260, 3), 200, np.uint8)
    args = MarkersArgs(labels=("A", "B"))
    for ring, by_label in ((Point(180, 130), {"B"}), (Point(180, 20), {"A", "B"})):
        marks = marks_from(locate(grey(draw_marks(plain, [Point(60, 130, "B"), ring])), args).data).points
        # At the upper border, too much of the letter may be cut off to read it.
        assert {mark.label for mark in marks} == by_label


@pytest.mark.parametrize(("letter_px", "gap_px", "drawn_alike"), [(11, 8, True), (15, 5, False)])
def test_a_faint_ring_of_another_size_is_believed_where_its_letter_is_drawn_alike(
    letter_px: int, gap_px: int, drawn_alike: bool
) -> None:
    plain = np.full((200, 260, 3), 110, np.uint8)
    # 86 is ten grey levels above the luma of pure red.
    plain[:, 125:] = 86
    thin = MarkStyle(radius_px=6, stroke_px=2, gap_px=10, font="opencv")
    bold = MarkStyle(radius_px=8, stroke_px=5, gap_px=gap_px, font="opencv", letter_px=letter_px)
    pixels = grey(draw_marks(draw_marks(plain, [Point(60, 80, "A")], (), thin), [Point(180, 150, "B")], (), bold))
    by_label = {mark.label: mark for mark in find_marks(pixels, ("A", "B"), "point").points}
    assert near(by_label["B"], 180, 150)
    assert abs(by_label["A"].radius_px - by_label["B"].radius_px) > ALIKE_PX
    assert by_label["B"].confidence == MIN_TOGETHER if drawn_alike else by_label["B"].confidence < UNSURE


@pytest.mark.parametrize("font", FONTS)
@pytest.mark.parametrize(("x", "y"), [(60, 80), (61, 80), (60, 81), (61, 81), (5, 80)])
def test_letters_of_half_the_size_are_read_wherever_they_lie_on_its_grid(x: int, y: int, font: Font) -> None:
    plain = np.full((200, 260, 3), 170, np.uint8)
    # Windows with light bars look like letters of this size.
    for top, index in product(range(120, 190, 14), range(4, 250, 14)):
        plain[top : top + 10, index : index + 9] = 20
        plain[top + 4, index : index + 9] = plain[top : top + 10, index + 3] = 190
    pixels = scaled(0.5)(draw_marks(plain, [Point(x, y, "B"), Point(180, 60, "A")], (), MarkStyle(font=font)))
    by_label = {mark.label: mark for mark in marks_from(locate(pixels, MarkersArgs(labels=("A", "B"))).data).points}
    assert near(by_label["B"], (x - 0.5) / 2, (y - 0.5) / 2, px=1.5)
    assert near(by_label["A"], 89.75, 29.75, px=1.5)


def test_a_small_letter_whose_ring_does_not_show_is_not_believed_beside_a_doubtful_one() -> None:
    plain = np.full((200, 260, 3), 200, np.uint8)
    # The marks have a font and a height that no template has.
    pixels = draw_marks(plain, [Point(61, 81, "A"), Point(180, 150, "B")], (), MarkStyle(font="opencv", letter_px=10))
    pixels[140:, 165:195] = 200
    points = marks_from(locate(scaled(0.5)(pixels), MarkersArgs(labels=("A", "B"))).data).points
    assert "B" not in {mark.label for mark in points}


@pytest.mark.parametrize("kind", ["noise", "stripes"])
def test_drawn_marks_on_noise_and_stripes_are_found(kind: Literal["noise", "stripes"]):
    plain = background(np.random.default_rng(0), kind, 400, 500)
    spots = [Point(150, 120, "A"), Point(360, 280, "B")]
    assert not shows_something(draw_marks(plain, spots))
    by_label = {mark.label: mark for mark in find_all(draw_marks(plain, spots), MarkersArgs(labels=("A", "B"))).points}
    assert all(near(by_label[str(spot.label)], spot.x, spot.y) for spot in spots)
