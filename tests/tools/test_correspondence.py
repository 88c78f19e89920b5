"""Correspondence: transfer of a point under known mappings, the choice among candidates, and abstentions."""

from functools import cache

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from bench.warped_pairs import PLANAR_CHANGES, points_of, random_homography, warped_pair
from hybrid.benchmarks.blink.sample import item
from hybrid.core.errors import ToolError
from hybrid.core.images import decode
from hybrid.samples.item import ringed
from hybrid.samples.layouts import random_camera, random_scene
from hybrid.samples.scenes import render
from hybrid.tool import Evidence, Pixels, Request
from tests.tools.pictures import markers
from tools._shared.args import PointArg, Spot
from tools._shared.reading import shrink
from tools._shared.view_matches import Matches, match_views, view_of
from tools.correspondence import CandidateArg, CorrespondenceArgs, FeatureMatches, solve, views_of
from tools.correspondence.point_transfer import SIZES_PX, Transfer, add_quarter_turns, choose, transfers

SCENE = render(
    random_scene(np.random.default_rng(21)),
    random_camera(np.random.default_rng(21), 400, 300),
    np.random.default_rng(21),
).rgb


def ask(images: tuple[Pixels, Pixels], args: CorrespondenceArgs | None = None, *, marked: bool = False) -> Evidence:
    needs = {"markers": tuple(markers(pixels, kind="point") for pixels in images)} if marked else {}
    return FeatureMatches().run([Request(images, args or CorrespondenceArgs(), needs)])[0]


def at(*points: tuple[float, float]) -> tuple[CandidateArg, ...]:
    return tuple(CandidateArg(x=x, y=y, label=label) for (x, y), label in zip(points, "ABCD", strict=False))


Place = tuple[float, float]


@cache
def flat_pair(difficulty, answer: int, seed: int = 7) -> tuple[tuple[Pixels, Pixels], Place, Place]:
    """Return two views with the marks REF and A to D, and the position of REF in each view."""
    rng = np.random.default_rng(seed)
    pair = warped_pair(rng, SCENE, "planar", difficulty)
    ref, (target_point, *others) = points_of(rng, pair)
    others.insert(answer, target_point)
    marked = ringed(pair.images[1], list(zip(others, "ABCD", strict=True)))
    return (ringed(pair.images[0], [(ref, "REF")]), marked), ref, target_point


@pytest.mark.system
def test_orbit_items_of_the_sample_task_are_solved() -> None:
    cases = [item("Visual_Correspondence", index, 31) for index in range(2)]
    right = [ask(case.images, marked=True).data["best"] == "ABCD"[case.answer] for case in cases]
    assert any(built.facts.cameras is not None for built in cases)
    assert right == [True, True]


def test_wrong_arguments_are_faults() -> None:
    grey = np.full((300, 400, 3), 128, np.uint8)
    with pytest.raises(ToolError, match=r"point 1 \(900, 5\) is outside the image of 400 x 300 px"):
        ask((grey, grey), CorrespondenceArgs(point=PointArg(x=900, y=5)))
    with pytest.raises(ToolError, match=r"point 2 \(900, 5\) is outside"):
        ask((grey, grey), CorrespondenceArgs(point=PointArg(x=9, y=5), candidates=at((3, 3), (900, 5))))
    with pytest.raises(ValidationError):
        CorrespondenceArgs.model_validate({"candidates": [{"x": 1}]})


@pytest.mark.parametrize("shape", [(1, 1, 3), (14, 20, 3), (40, 1100, 3)])
def test_pictures_without_texture_are_undecided(shape: tuple[int, int, int]) -> None:
    grey = np.full(shape, 128, np.uint8)
    spot = (0.0, 0.0) if shape[0] == 1 else (5.0, 5.0)
    other = (0.5, 0.5) if shape[0] == 1 else (12.0, 9.0)
    args = CorrespondenceArgs(point=PointArg(x=spot[0], y=spot[1]), candidates=at(spot, other))
    evidence = ask((grey, grey), args)
    assert evidence.data["best"] is None
    assert evidence.data["method"] == "none"
    assert evidence.confidence <= 0.5
    assert [picture.pixels.shape for picture in evidence.pictures] == [shape, shape]


@pytest.mark.parametrize("size", [(64, 64), (160, 200)])
def test_places_of_a_repeated_pattern_are_undecided(size: tuple[int, int]) -> None:
    down, across = np.mgrid[: size[0], : size[1]]
    dot = (np.hypot(down % 20 - 10, across % 20 - 10) < 6)[..., None]
    images = tuple(np.where(dot, ink, 60).repeat(3, axis=2).astype(np.uint8) for ink in (200, 230))
    place, other = (size[1] * 0.4, size[0] * 0.6), (size[1] * 0.8, size[0] * 0.2)
    point = PointArg(x=place[0], y=place[1])
    evidence = ask((images[0], images[1]), CorrespondenceArgs(point=point, candidates=at(place, other)))
    assert evidence.data["best"] is None
    assert evidence.data["best_index"] is None
    assert evidence.data["method"] == "none"
    assert evidence.confidence <= 0.5
    assert ask((images[0], images[1]), CorrespondenceArgs(point=point)).data["transferred_px"] is None


# Parts

spots = st.lists(st.builds(Spot, st.none(), st.floats(0, 400), st.floats(0, 300)), min_size=1, max_size=5)
maps = st.lists(
    st.builds(
        Transfer,
        st.floats(-100, 500),
        st.floats(-100, 400),
        st.sampled_from(["homography", "local_affine"]),
        st.integers(4, 99).map(np.arange),
        st.floats(0, 1),
    ),
    max_size=2,
)


@given(maps, spots, st.data())
def test_a_choice_is_a_probability_and_a_hit_decides(matches, candidates, data) -> None:
    likeness = data.draw(st.lists(st.floats(0, 1.5), min_size=len(candidates), max_size=len(candidates)))
    choice = choose(matches, lambda: likeness, candidates, 500.0)
    assert 0 < choice.confidence <= 1
    assert choice.best is None or 0 <= choice.best < len(candidates)
    if choice.method in ("homography", "local_affine") and choice.best is not None:
        spot = candidates[choice.best]
        error_px = np.hypot(spot.x - choice.transfer.x, spot.y - choice.transfer.y)
        assert error_px <= (10 if choice.confidence > 0.6 else 30)


def test_descriptors_are_compared_only_where_the_matches_decide_nothing() -> None:
    candidates = [Spot(None, 100.0, 100.0), Spot(None, 300.0, 200.0)]

    def compare() -> list[float]:
        raise AssertionError("descriptors were compared")

    def transfer(x: float, y: float, method, support: float = 0.9) -> Transfer:  # type: ignore[no-untyped-def]
        return Transfer(x, y, method, np.arange(30), support, 5.0)

    near = [transfer(101, 100, "homography"), transfer(99, 101, "local_affine")]
    assert choose(near, compare, candidates, 500.0)[::3] == (0, 0.98)
    values = [near[0], transfer(299, 201, "local_affine")]
    assert choose(values, compare, candidates, 500.0)[::3] == (0, 0.95)
    assert choose([transfer(120, 100, "homography")], compare, candidates, 500.0).best == 0
    assert choose([transfer(200, 20, "homography")], compare, candidates, 500.0).best is None
    weak = [transfer(200, 20, "homography", 0.3)]
    choice = choose(weak, lambda: [0.9, 0.4], candidates, 500.0)
    assert (choice.best, choice.method, choice.likeness) == (1, "descriptor", (0.9, 0.4))


def test_turned_descriptors_are_those_of_turned_key_points() -> None:
    grey = cv2.cvtColor(SCENE, cv2.COLOR_RGB2GRAY)

    def describe(turn: int) -> np.ndarray:
        keypoints = [cv2.KeyPoint(150.3, 120.6, size, float(turn)) for size in SIZES_PX]
        return cv2.SIFT.create().compute(grey, keypoints)[1]

    for turn in (0, 15, 75):
        turned = add_quarter_turns(describe(turn)).reshape(4, len(SIZES_PX), 128)
        for quarter in range(4):
            # SIFT rounds the cosine of an angle, which may change a whole number of the descriptor by one.
            difference = np.abs(turned[quarter] - describe(turn + 90 * quarter))
            assert difference.max() <= 1
            assert np.count_nonzero(difference) <= 1


def test_a_sure_transfer_that_hits_no_candidate_says_so() -> None:
    args = CorrespondenceArgs(point=PointArg(x=200, y=180), candidates=at((40, 40), (350, 260)))
    evidence = ask((SCENE, np.ascontiguousarray(np.roll(SCENE, 6, axis=1))), args)
    assert evidence.data["best"] is None
    assert evidence.text.startswith("None of the points of image 2 lies where")
    assert evidence.data["transferred_px"]["x"] == pytest.approx(206, abs=1.5)


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.floats(0, 300), st.floats(0, 200))
def test_exact_matches_of_a_homography_transfer_any_point(seed: int, x: float, y: float) -> None:
    rng = np.random.default_rng(seed)
    homography = random_homography(rng, (300, 200), PLANAR_CHANGES["medium"])
    first = rng.uniform((0, 0), (300, 200), (80, 2))
    second = cv2.perspectiveTransform(first[None], homography)[0]
    best = transfers((x, y), Matches(first, second, np.ones(80), "exact"), ((200, 300), (200, 300)))[0]
    target_point = cv2.perspectiveTransform(np.array([[[x, y]]]), homography)[0, 0]
    assert np.hypot(best.x - target_point[0], best.y - target_point[1]) < 1
    assert best.method == "homography"


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.sampled_from([2, 4]), st.floats(0, 1.2))
def test_the_same_matches_in_larger_pictures_transfer_alike(seed: int, times: int, noise: float) -> None:
    rng = np.random.default_rng(seed)
    homography = random_homography(rng, (300, 200), PLANAR_CHANGES["easy"])
    first = rng.uniform((0, 0), (300, 200), (80, 2))
    second = cv2.perspectiveTransform(first[None], homography)[0] + rng.normal(0, noise, (80, 2))
    small = transfers((140.0, 90.0), Matches(first, second, np.ones(80), "exact"), ((200, 300), (200, 300)))
    far = Matches((first + 0.5) * times - 0.5, (second + 0.5) * times - 0.5, np.ones(80), "exact")
    size = (200 * times, 300 * times)
    large = transfers((140.5 * times - 0.5, 90.5 * times - 0.5), far, (size, size))
    assert [(entry.method, entry.inliers, entry.support) for entry in small] == [
        (value.method, value.inliers, value.support) for value in large
    ]
    for first_item, other in zip(small, large, strict=True):
        assert ((first_item.x + 0.5) * times - 0.5, (first_item.y + 0.5) * times - 0.5) == pytest.approx(
            (other.x, other.y), abs=1e-3
        )


@pytest.mark.system
def test_a_photograph_says_the_same_at_once_and_three_times_its_size() -> None:
    homography = random_homography(np.random.default_rng(2), (400, 300), PLANAR_CHANGES["medium"])
    images = (SCENE, cv2.warpPerspective(SCENE, homography, (400, 300)))
    target_point = cv2.perspectiveTransform(np.array([[[200.0, 180.0]]]), homography)[0, 0]
    results = []
    for scale in (2.4, 7.2):
        sized = [cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC) for image in images]
        spots = at(*((x * scale, y * scale) for x, y in (target_point, (40, 40), (350, 260))))
        args = CorrespondenceArgs(point=PointArg(x=200 * scale, y=180 * scale), candidates=spots)
        results.append(ask((sized[0], sized[1]), args))
    assert [entry.data["best"] for entry in results] == ["A"] * 2
    assert len({value.data["method"] for value in results}) == 1
    assert [first_item.data["inliers"] for first_item in results] == pytest.approx(
        [results[0].data["inliers"]] * 2, rel=0.15
    )
    assert [item_value.confidence for item_value in results] == pytest.approx([results[0].confidence] * 2, abs=0.02)


def test_matches_that_do_not_agree_are_neither_drawn_nor_a_place() -> None:
    grey = np.full((300, 400, 3), 128, np.uint8)
    request = Request(
        (grey, grey), CorrespondenceArgs(point=PointArg(x=200, y=180), candidates=at((40, 40), (350, 60)))
    )
    points = np.random.default_rng(3).uniform((0, 0), (400, 300), (2, 60, 2))
    evidence = solve(request, views_of(request), Matches(points[0], points[1], np.ones(60), "random"))
    assert (evidence.data["transferred_px"], evidence.data["inliers"]) == (None, 0)
    assert "(40, 40)" not in evidence.text
    assert " lies at " not in evidence.text
    for picture, spots in zip(evidence.pictures, [((200, 180),), ((40, 40), (350, 60))], strict=True):
        pixels = np.full((300, 400), 255, np.uint8)
        for x, y in spots:
            cv2.rectangle(pixels, (x - 15, y - 15), (x + 60, y + 20), (0,), -1)
        pixels[270:] = 0
        # Only the requested points, their names, and the legend below are drawn.
        assert (picture.pixels[pixels > 0] == 128).all()


@pytest.mark.system
def test_marks_that_are_not_there_never_become_points() -> None:
    images, _, _ = flat_pair("easy", 1)
    evidence = ask((SCENE, SCENE), marked=True)
    assert "no point marked REF was found" in evidence.text
    assert (evidence.data["point_px"], evidence.data["candidates"], evidence.pictures) == (None, [], ())
    with pytest.raises(ToolError, match=r"no drawn point 'E' was found \(found: A, B, C, D\)"):
        ask(
            images,
            CorrespondenceArgs(point=PointArg(label="REF"), candidates=(CandidateArg(label="E"),)),
            marked=True,
        )
    evidence = ask((images[0], SCENE), marked=True)
    assert "No points to choose from were found in image 2." in evidence.text
    assert (evidence.data["best"], evidence.data["candidates"]) == (None, [])


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.system) for seed in (1, 2))])
def test_a_point_is_found_in_the_mirrored_picture_which_is_named(seed: int) -> None:
    (value, other), ref, (x, y) = flat_pair("medium", 0, seed)
    images = value, np.ascontiguousarray(other[:, ::-1])
    evidence = ask(images, CorrespondenceArgs(point=PointArg(x=ref[0], y=ref[1])))
    transferred_px = evidence.data["transferred_px"]
    assert np.hypot(transferred_px["x"] - (images[1].shape[1] - 1 - x), transferred_px["y"] - y) < 4
    assert "Image 2 shows the scene as in a mirror." in evidence.text


# The rule of the specialist


@pytest.mark.shared_data
def test_a_real_pair_has_many_matches_in_the_right_place(shared_data) -> None:
    images = [
        shrink(decode((shared_data / "pairs" / name).read_bytes(), name), 480)
        for name in ("sacre_coeur1.jpg", "sacre_coeur2.jpg")
    ]
    assert len(match_views(view_of(images[0]), view_of(images[1]))) > 40
