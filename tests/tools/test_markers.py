import io
import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bench.marked_scenes import FONTS, RING_COLORS, background, boxed_scene, marked_scene, overlapping_scene
from hybrid.errors import ToolError
from hybrid.images import decode
from hybrid.marks.drawing import LABELS, LabelledBox, MarkStyle, draw_marks
from hybrid.marks.finding import find_marks
from hybrid.marks.letters import BANK_FONTS, read_labels
from hybrid.marks.marks import BoxMark, Marks, PointMark, remove_marks, scale_marks
from hybrid.marks.marks_json import marks_data, marks_from
from hybrid.marks.rings import color_name
from hybrid.registry import load
from hybrid.samples.seeds import generator
from hybrid.tool import Request
from hybrid.types import Box, Point
from tools.markers import (
    TOOL,
    UNSURE,
    DrawnMarks,
    MarkersArgs,
    all_marks,
    confidence,
    describe,
    find_all,
    locate,
    overlay,
)

PLAIN = background(np.random.default_rng(901), "blobs", 200, 260)


def some_of_all(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    """All pairs of two lists, of which the default run takes each value of the longer list once."""
    chosen = {(one, second[place % len(second)]) for place, one in enumerate(first)}
    return [pytest.param(*pair, marks=() if pair in chosen else pytest.mark.system) for pair in product(first, second)]


def near(mark: PointMark, x: float, y: float, px: float = 3) -> bool:
    return bool(np.hypot(mark.x - x, mark.y - y) <= px)


@pytest.mark.parametrize(("font", "color"), some_of_all(FONTS, RING_COLORS))
def test_every_colour_and_font_is_found_and_named(color, font) -> None:  # type: ignore[no-untyped-def]
    plain = np.full((200, 260, 3), (70, 95, 60), np.uint8)
    style = MarkStyle(color=color, font=font, radius_px=9, stroke_px=3, letter_px=12)
    points = [
        Point(40, 60, "A"),
        Point(210, 80, "B"),
        Point(50, 160, "C"),
        Point(200, 170, "D"),
        Point(125, 110, "REF"),
    ]
    marks = find_marks(draw_marks(plain, points, (), style), LABELS)
    assert [mark.label for mark in marks.points] == sorted(LABELS)
    for mark, point in zip(marks.points, sorted(points, key=lambda p: str(p.label)), strict=True):
        assert near(mark, point.x, point.y, 1)
        assert mark.color == color
        assert abs(mark.radius_px - 9) <= 1.5
        assert mark.label_box_px is not None
        assert mark.label_box_px.y1 <= point.y - 9


@pytest.mark.system
def test_generated_scenes_are_right_in_99_of_100_marks() -> None:
    found = total = 0
    for seed in range(70_000, 70_025):
        scene = marked_scene(np.random.default_rng(seed))
        labels = [str(point.label) for point in scene.points]
        named = {mark.label: mark for mark in find_marks(scene.pixels, labels).points}
        total += len(labels)
        found += sum(p.label in named and near(named[p.label], p.x, p.y) for p in scene.points)
    assert found / total >= 0.99, f"{found}/{total}"


def test_generated_boxes_are_found_with_their_letters() -> None:
    found = total = 0
    for seed in range(80_000, 80_005):
        scene = boxed_scene(np.random.default_rng(seed))
        named = {mark.label: mark for mark in find_marks(scene.pixels, ("A", "B")).boxes}
        for drawn in scene.boxes:
            total += 1
            mark = named.get(drawn.label)
            if mark is not None and mark.color == drawn.color:
                a, b = mark.box_px, drawn.box
                found += max(abs(a.x0 - b.x0), abs(a.y0 - b.y0), abs(a.x1 - b.x1), abs(a.y1 - b.y1)) <= 3
    assert found / total >= 0.99, f"{found}/{total}"


def box_errors(drawn: Sequence[LabelledBox], marks: Marks) -> list[float]:
    """Largest distance of a side for each drawn box, in pixels; infinite where it was not found in its colour."""
    named = {(mark.label, mark.color): mark.box_px for mark in marks.boxes}
    found = [(named.get((one.label, one.color)), one.box) for one in drawn]
    return [
        np.inf if a is None else max(abs(a.x0 - b.x0), abs(a.y0 - b.y0), abs(a.x1 - b.x1), abs(a.y1 - b.y1))
        for a, b in found
    ]


def test_both_of_two_overlapping_boxes_are_found() -> None:
    scenes = [overlapping_scene(generator("evaluate", 90, seed)) for seed in range(3)]
    found = [max(box_errors(scene.boxes, find_marks(scene.pixels, ("A", "B"), "box"))) <= 3 for scene in scenes]
    assert all(found), found


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
    for drawn in ((first, second), (second, first)):
        boxes = [
            LabelledBox(Box(*corners), label, color) for corners, label, color in zip(drawn, "AB", colors, strict=True)
        ]
        marks = find_marks(draw_marks(PLAIN, (), boxes), ("A", "B"), "box")
        assert max(box_errors(boxes, marks)) <= 3, (boxes, marks.boxes)


def test_boxes_whose_lines_allow_another_pair_are_unsure_and_not_passed_on() -> None:
    pair = [(40, 60, 120, 150), (80, 60, 200, 150)]
    boxes = [LabelledBox(Box(*corners), label) for corners, label in zip(pair, "AB", strict=True)]
    evidence = locate(draw_marks(PLAIN, (), boxes), MarkersArgs(labels=("A", "B"), kind="box"))
    assert "Box A (unsure)" in evidence.text
    assert evidence.confidence < UNSURE
    assert marks_from(evidence.data).boxes == ()


def test_a_ring_without_a_letter_is_neither_said_nor_passed_on() -> None:
    """Chance draws such rings on every second photograph, and a model would take them for points."""
    pixels = draw_marks(PLAIN, [Point(120, 100)])
    assert len(find_all(pixels, MarkersArgs()).points) == 1
    assert locate(pixels, MarkersArgs()).text == "No drawn point or box was found in image 1."
    evidence = locate(pixels, MarkersArgs(labels=("A", "B")))
    assert evidence.text == "Not found in image 1: A, B."
    assert marks_from(evidence.data) == Marks()
    assert (evidence.pictures[0].pixels == overlay(pixels, Marks())).all()


def test_a_ring_beside_clear_marks_is_passed_on_with_a_hidden_letter() -> None:
    marks = marks_from(
        locate(draw_marks(PLAIN, [Point(60, 80, "A"), Point(180, 100)]), MarkersArgs(labels=("A", "B"))).data
    )
    assert [(mark.label, near(mark, x, y)) for mark, x, y in zip(marks.points, (60, 180), (80, 100), strict=True)] == [
        ("A", True),
        ("B", True),
    ]


def test_boxes_that_cross_and_touch_the_border_keep_their_letters() -> None:
    boxes = [LabelledBox(Box(60, 30, 260, 120), "A", "red"), LabelledBox(Box(130, 60, 200, 200), "B", "green")]
    marks = find_marks(draw_marks(PLAIN, (), boxes, MarkStyle(stroke_px=2)), ("A", "B"))
    assert [(mark.label, mark.color) for mark in marks.boxes] == [("A", "red"), ("B", "green")]
    for mark, drawn in zip(marks.boxes, boxes, strict=True):
        a, b = mark.box_px, drawn.box
        assert max(abs(a.x0 - b.x0), abs(a.y0 - b.y0), abs(a.x1 - b.x1), abs(a.y1 - b.y1)) <= 1


def test_a_line_that_jpeg_turns_grey_on_its_complement_is_found() -> None:
    cyan = np.full((200, 260, 3), (20, 230, 230), np.uint8)
    drawn = draw_marks(cyan, (), [LabelledBox(Box(41, 61, 171, 151), "A", "red")], MarkStyle(stroke_px=2))
    coded = cv2.imencode(".jpg", cv2.cvtColor(drawn, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, 75])[1]
    pixels = np.asarray(cv2.cvtColor(cv2.imdecode(coded, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB), np.uint8)
    (mark,) = find_marks(pixels, ("A",), "box").boxes
    a = mark.box_px
    assert max(abs(a.x0 - 41), abs(a.y0 - 61), abs(a.x1 - 171), abs(a.y1 - 151)) <= 2


def test_grey_rings_on_a_colour_of_their_own_luma_are_found() -> None:
    purple = np.full((200, 260, 3), (140, 100, 230), np.uint8)
    style = MarkStyle(color="grey", radius_px=8, stroke_px=2)
    named = {m.label: m for m in find_marks(draw_marks(purple, [Point(60, 90, "REF")], (), style), ("REF",)).points}
    assert near(named["REF"], 60, 90, 1)


@pytest.mark.system
@pytest.mark.parametrize("font", FONTS)
@pytest.mark.parametrize(("drawn", "asked"), [("B", "D"), ("D", "B"), ("A", "C"), ("REF", "B"), ("B", "REF")])
def test_a_letter_that_is_not_drawn_is_not_found_sure(drawn: str, asked: str, font) -> None:  # type: ignore[no-untyped-def]
    points = [Point(70, 100, drawn), Point(190, 120, drawn if drawn == "REF" else "A")]
    evidence = locate(
        draw_marks(PLAIN, points[: 1 + (drawn != "REF")], (), MarkStyle(font=font)),
        MarkersArgs.model_validate({"labels": (asked,)}),
    )
    assert evidence.confidence < 0.5
    assert all(mark.label in (asked, None) for mark in marks_from(evidence.data).points)


def test_a_box_letter_that_is_not_drawn_is_not_found() -> None:
    scene = boxed_scene(np.random.default_rng(80_100))
    assert locate(scene.pixels, MarkersArgs(labels=("D",))).confidence < 0.5


@pytest.mark.parametrize(("font", "x"), some_of_all(FONTS, [14, 130, 246]))
def test_ref_and_b_are_told_apart_with_nothing_asked(font, x: int) -> None:  # type: ignore[no-untyped-def]
    for label in ("REF", "B"):
        pixels = draw_marks(PLAIN, [Point(x, 110, label)], (), MarkStyle(font=font, letter_px=13))
        (mark,) = find_marks(pixels).points
        assert (mark.label, near(mark, x, 110)) == (label, True)


@pytest.mark.parametrize(("x", "y"), [(3, 100), (130, 9), (130, 196), (257, 24)])
def test_marks_cut_by_the_border_keep_place_and_letter(x: int, y: int) -> None:
    pixels = draw_marks(PLAIN, [Point(x, y, "B"), Point(130, 130, "A")])
    named = {mark.label: mark for mark in find_marks(pixels, ("A", "B")).points}
    assert near(named["A"], 130, 130)
    assert near(named["B"], x, y)


def test_both_letters_cut_at_the_top_are_told_apart() -> None:
    pixels = draw_marks(PLAIN, [Point(60, 21, "B"), Point(190, 21, "A")])
    named = {mark.label: mark for mark in find_marks(pixels, ("A", "B")).points}
    assert near(named["B"], 60, 21)
    assert near(named["A"], 190, 21)


def test_without_expectations_the_marks_drawn_are_those_found() -> None:
    pixels = draw_marks(PLAIN, [Point(60, 80, "A"), Point(180, 150, "B"), Point(200, 70, "C")])
    assert [mark.label for mark in find_marks(pixels).points] == ["A", "B", "C"]


def test_a_point_and_a_box_kind_are_kept_apart() -> None:
    scene = boxed_scene(np.random.default_rng(80_100))
    assert {mark.label for mark in find_marks(scene.pixels, ("A", "B"), "box").boxes} == {"A", "B"}
    assert find_marks(scene.pixels, ("A", "B"), "point").boxes == ()


def test_letters_are_read_in_a_font_that_no_template_has() -> None:
    assert "opencv" not in BANK_FONTS
    for height in (9, 12, 16):
        for label in LABELS:
            style = MarkStyle(font="opencv", letter_px=height)
            pixels = draw_marks(np.full((90, 120, 3), 150, np.uint8), [Point(60, 60, label)], (), style)
            assert read_labels(np.ascontiguousarray(pixels[..., 1]))[0].label == label


def test_pictures_without_marks_give_no_letters_and_no_confidence() -> None:
    for seed, kind in ((1, "blobs"), (2, "noise"), (3, "stripes"), (4, "scene")):
        evidence = locate(background(np.random.default_rng(seed), kind, 200, 260), MarkersArgs(labels=("A", "B")))  # type: ignore[arg-type]
        assert evidence.confidence < 0.5


def test_the_evidence_is_for_a_model_and_for_rules() -> None:
    pixels = draw_marks(PLAIN, [Point(60, 80, "A"), Point(180, 150, "B")])
    request = Request((pixels,), MarkersArgs(labels=("A", "B")))
    (evidence,) = DrawnMarks().run([request])
    assert evidence.text.splitlines()[0] == "Point A: red circle at x=60, y=80 px of image 1."
    assert evidence.confidence > 0.9
    assert evidence.pictures[0].pixels.shape == pixels.shape
    assert (evidence.pictures[0].pixels != pixels).any()
    assert marks_from(json.loads(json.dumps(evidence.data))) == find_marks(pixels, ("A", "B"))
    again = DrawnMarks().run([request, request])
    assert [a.data for a in again] == [evidence.data, evidence.data]
    assert (again[0].pictures[0].pixels == evidence.pictures[0].pixels).all()


def test_a_later_letter_alone_is_chance() -> None:
    """A to D are drawn together, so a D without the others is what a photograph shows."""
    alone = draw_marks(PLAIN, [Point(60, 80, "D")])
    assert marks_from(locate(alone, MarkersArgs()).data) == Marks()
    beside = draw_marks(PLAIN, [Point(60, 80, "C"), Point(150, 140, "D")])
    assert {mark.label for mark in marks_from(locate(beside, MarkersArgs()).data).points} == {"C", "D"}
    assert {mark.label for mark in marks_from(locate(beside, MarkersArgs(labels=("D",))).data).points} == {"D"}


def test_missing_and_unsure_marks_are_said() -> None:
    pixels = draw_marks(PLAIN, [Point(60, 80, "A")])
    evidence = locate(pixels, MarkersArgs(labels=("A", "REF")))
    assert "Not found in image 1: REF." in evidence.text or "(unsure)" in evidence.text
    assert evidence.confidence < 0.5


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


@pytest.mark.parametrize("shape", [(1, 1), (1, 400), (11, 50)])
def test_images_too_small_for_a_mark_hold_none(shape: tuple[int, int]) -> None:
    evidence = locate(np.zeros((*shape, 3), np.uint8), MarkersArgs(labels=("A",)))
    assert marks_from(evidence.data) == Marks()
    assert (evidence.confidence, evidence.text) == (0.0, "Not found in image 1: A.")
    assert evidence.pictures[0].pixels.shape == (*shape, 3)


def test_a_very_large_image_is_searched_on_a_reduced_copy() -> None:
    wide = np.full((900, 3000, 3), 90, np.uint8)
    style = MarkStyle(radius_px=18, stroke_px=6, letter_px=30, gap_px=12, font="bold")
    named = {
        mark.label: mark
        for mark in marks_from(
            locate(draw_marks(wide, [Point(700, 800, "A"), Point(2500, 600, "B")], (), style), MarkersArgs()).data
        ).points
    }
    assert near(named["A"], 700, 800)
    assert near(named["B"], 2500, 600)


@settings(max_examples=8)
@given(arrays(np.uint8, st.tuples(st.integers(1, 40), st.integers(1, 40), st.just(3))))
def test_any_image_gives_finite_evidence(pixels) -> None:  # type: ignore[no-untyped-def]
    evidence = locate(pixels, MarkersArgs())
    assert 0 <= evidence.confidence <= 1
    assert json.loads(json.dumps(evidence.data, allow_nan=False)) == evidence.data


def test_removing_marks_brings_the_picture_back() -> None:
    plain = background(np.random.default_rng(902), "blobs", 200, 260)
    pixels = draw_marks(plain, [Point(60, 80, "A"), Point(180, 150, "B")])
    kept = pixels.copy()
    clean = remove_marks(pixels, find_marks(pixels, ("A", "B")))
    assert (pixels == kept).all()
    changed = (pixels != plain).any(axis=2)
    before = np.abs(pixels[changed].astype(int) - plain[changed]).mean()
    after = np.abs(clean[changed].astype(int) - plain[changed]).mean()
    assert after < before / 5
    assert (clean[80, 60] == plain[80, 60]).all()
    far = np.ones((200, 260), bool)
    far[40:100, 40:80] = far[110:170, 160:200] = False
    assert (clean[far] == pixels[far]).all()
    assert (remove_marks(plain, Marks()) == plain).all()


def test_removing_boxes_takes_the_outline_off() -> None:
    scene = boxed_scene(np.random.default_rng(80_100))
    clean = remove_marks(scene.pixels, find_marks(scene.pixels, ("A", "B")))
    drawn = (draw_marks(scene.plain, (), scene.boxes, scene.style) != scene.plain).any(axis=2)
    before = np.abs(scene.pixels[drawn].astype(int) - scene.plain[drawn]).mean()
    assert np.abs(clean[drawn].astype(int) - scene.plain[drawn]).mean() < before / 2


def test_marks_scale_with_pixel_centres() -> None:
    point = PointMark("A", 10, 20, 7, 3, "red", Box(1, 2, 3, 4), 0.9, 0.9, 0.9)
    scaled = scale_marks(Marks((point,), (BoxMark("B", "red", Box(1, 2, 3, 4), None, 1, 1, 1),)), 2, 2)
    assert (scaled.points[0].x, scaled.points[0].y, scaled.points[0].radius_px) == (20.5, 40.5, 14)
    assert scaled.points[0].label_box_px == scaled.boxes[0].box_px == Box(2, 4, 6, 8)


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


def test_malformed_data_is_named() -> None:
    with pytest.raises(ToolError, match="points_px"):
        marks_from({"boxes_px": []})
    good = json.loads(json.dumps(marks_data(Marks((PointMark("A", 1, 2, 7, 3, "red", None, 1, 1, 1),)))))
    good["points_px"][0]["x"] = "left"
    with pytest.raises(ToolError, match=r"points_px\.0\.x"):
        marks_from(good)


def test_colours_are_named_through_jpeg() -> None:
    assert [color_name(rgb)[0] for rgb in ((230, 20, 40), (240, 250, 245), (120, 140, 118))] == ["red", "white", "grey"]


def test_the_card_is_found_by_its_file_name() -> None:
    assert load("tools", "markers") is TOOL
    (card,) = TOOL.card.backends
    assert isinstance(card.make(), DrawnMarks)
    levels = [bin_.confidence for bin_ in card.reliability]
    assert levels == sorted(levels)
    assert all(0 <= bin_.right <= bin_.n for bin_ in card.reliability)


@pytest.mark.system
@pytest.mark.shared_data
def test_both_marks_of_real_depth_items(shared_data: Path) -> None:
    rows = [
        row
        for path in sorted((shared_data / "blink" / "Relative_Depth").glob("val-*.parquet"))
        for row in pq.read_table(path, columns=["idx", "image_1"]).to_pylist()
    ]
    assert len(rows) == 62
    left, rows = 0, rows[::3]
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
        left += a.x < b.x
        assert all(red_share(pixels, mark) >= 0.75 for mark in (a, b)), row["idx"]
    # DIW's same-row pairs always have A on the left; the other pairs have it there half the time.
    assert left >= len(rows) / 2


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
        found = locate(pixels, args)
        assert marks_from(found.data) == Marks(), row["idx"]
        assert found.text == "Not found in image 1: A, B.", row["idx"]


def red_share(pixels: np.ndarray, mark: PointMark) -> float:
    """Part of the visible circle of radius 5 px round a mark that is redder than green and blue."""
    angles = np.arange(24) * (2 * np.pi / 24)
    columns = np.rint(mark.x + 5 * np.cos(angles)).astype(int)
    rows = np.rint(mark.y + 5 * np.sin(angles)).astype(int)
    inside = (columns >= 0) & (columns < pixels.shape[1]) & (rows >= 0) & (rows < pixels.shape[0])
    ring = pixels[rows[inside], columns[inside]].astype(int)
    return float((ring[:, 0] - ring[:, 1:].max(axis=1) > 40).mean())
