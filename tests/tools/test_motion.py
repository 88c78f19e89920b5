"""Motion: the side of the second camera on generated orbits and from exact points, and abstentions."""

from functools import cache

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from hybrid.benchmarks.blink.sample import item
from hybrid.samples.item import Item
from hybrid.samples.scenes import Camera, orbit
from hybrid.tool import Evidence, Pixels, Request
from tests.tables import cases
from tools._shared.view_matches import Matches
from tools.motion import FeatureMotion, MotionArgs, judge, solve, views_of
from tools.motion.two_views import best_motion

SIZE = (480, 640)


@cache
def question(index: int) -> Item:
    """Return two views of a generated scene, drawn once for all tests."""
    return item("Multi-view_Reasoning", index, 41)


def halved(index: int) -> list[Pixels]:
    """Return two views at half their size, which costs a third."""
    return [pixels[::2, ::2].copy() for pixels in question(index).images]


def ask(*images: Pixels, **args: object) -> Evidence:
    return FeatureMotion().run([Request(images, MotionArgs(**args))])[0]


def exact(first: Camera, second: Camera, seed: int, count: int = 150, noise: float = 0.0) -> Matches:
    """Return points of a cloud around the target as two cameras see them, in pixels."""
    rng = np.random.default_rng(seed)
    cloud = rng.uniform((-1.5, -1.5, 0), (1.5, 2.5, 2), (count, 3))
    seen = [camera.project(cloud)[:, :2] + rng.normal(0, noise, (count, 2)) for camera in (first, second)]
    return Matches(seen[0], seen[1], np.ones(count), "exact")


def cameras(turn_deg: float, ratio: float = 1.1) -> tuple[Camera, Camera]:
    lens = (ratio * 640, 640, 480)
    target = (0.0, 0.0, 0.45)
    return orbit(target, 4.0, 0.1, 1.2, lens), orbit(target, 4.1, 0.1 + np.deg2rad(turn_deg), 1.3, lens)


@settings(max_examples=12)
@given(st.floats(5, 50), st.sampled_from([-1, 1]), st.integers(0, 999), st.floats(0.8, 1.5))
def test_exact_points_give_side_turn_and_direction(turn: float, sign: int, seed: int, ratio: float) -> None:
    first, second = cameras(sign * turn, ratio)
    motion = best_motion(exact(first, second, seed), SIZE, SIZE, (ratio,))
    assert motion is not None
    assert judge(motion, 150).moved == ("right" if sign > 0 else "left")
    assert motion.yaw_deg * sign > 0
    moved = first.rotation() @ np.subtract(second.position, first.position)
    assert motion.centre @ moved / np.linalg.norm(moved) > 0.99
    relative = second.rotation() @ first.rotation().T
    assert motion.turn_deg == pytest.approx(np.degrees(np.arccos((np.trace(relative) - 1) / 2)), abs=1)


@pytest.mark.system
@pytest.mark.parametrize("index", range(4))
def test_rendered_orbits_are_solved(index: int) -> None:
    built, views = question(index), halved(index)
    evidence = ask(*views)
    side = built.choices[built.answer]
    assert evidence.data["moved"] == side
    assert evidence.data["seen_from_above"] == {"left": "clockwise", "right": "counter-clockwise"}[side]
    assert evidence.confidence > 0.6
    assert ask(*views[::-1]).data["moved"] == {"left": "right", "right": "left"}[side]


@settings(max_examples=15)
@given(st.floats(6, 40), st.sampled_from([-1, 1]), st.integers(0, 99), st.sampled_from([2, 4]))
def test_the_same_matches_in_larger_pictures_say_the_same(turn: float, sign: int, seed: int, times: int) -> None:
    matches = exact(*cameras(sign * turn), seed=seed, noise=0.4)
    large = Matches((matches.first + 0.5) * times - 0.5, (matches.second + 0.5) * times - 0.5, matches.scores, "exact")
    size = (SIZE[0] * times, SIZE[1] * times)
    small_motion, large_motion = best_motion(matches, SIZE, SIZE, (1.1,)), best_motion(large, size, size, (1.1,))
    assert small_motion is not None
    assert large_motion is not None
    assert (small_motion.inliers, small_motion.in_front_0_1) == (large_motion.inliers, large_motion.in_front_0_1)
    assert small_motion.parallax == pytest.approx(large_motion.parallax, rel=1e-6)
    assert judge(small_motion, 150).confidence == pytest.approx(judge(large_motion, 150).confidence, rel=1e-6)


@pytest.mark.system
def test_a_photograph_says_the_same_at_once_and_three_times_its_size() -> None:
    images = question(3).images
    results = []
    for times in (1, 3):
        width = 960 * times
        sized = [
            cv2.resize(image, (width, width * image.shape[0] // image.shape[1]), interpolation=cv2.INTER_CUBIC)
            for image in images
        ]
        results.append(ask(*sized))
    assert len({entry.data["moved"] for entry in results}) == 1
    assert results[0].data["moved"] is not None
    assert [value.data["inliers"] for value in results] == pytest.approx([results[0].data["inliers"]] * 2, rel=0.15)
    assert [first_item.confidence for first_item in results] == pytest.approx([results[0].confidence] * 2, abs=0.02)
    assert [item_value.data["parallax_px"] for item_value in results] == pytest.approx(
        [results[0].data["parallax_px"] * times for times in (1, 3)], rel=0.15
    )


@pytest.mark.parametrize(*cases(__file__, "test_a_direction_that_is_sure_is_said_though_the_side_is_not"))
def test_a_direction_that_is_sure_is_said_though_the_side_is_not(along: tuple[float, float, float], name: str) -> None:
    first = cameras(0)[0]
    position = np.add(first.position, np.array(along) @ first.rotation())
    moved = Camera((*(float(value) for value in position),), first.yaw_rad, first.pitch_rad, first.focal_px, 640, 480)
    still = np.full((*SIZE, 3), 90, np.uint8)
    request = Request((still, still), MotionArgs(focal_ratio=1.1))
    evidence = solve(request, views_of(request), exact(first, moved, 1, noise=0.1))
    assert (evidence.data["moved"], evidence.data["seen_from_above"], evidence.confidence) == (None, None, 0.5)
    (way,) = evidence.data["mainly"]
    assert way["direction"] == name
    assert way["share_0_1"] > 0.95
    assert way["confidence"] > 0.9
    assert evidence.text.startswith(f"From image 1 to image 2 the camera moved {name} (confidence 0.9")
    assert "Unsure whether left or right" in evidence.text
    assert len(evidence.text) <= 450


def cloud(depth_px: float, seed: int = 2, count: int = 200) -> np.ndarray:
    """Return points (N, 2) of the first view and of a second that moves 40 to 40 + `depth_px` px to the right."""
    rng = np.random.default_rng(seed)
    first = rng.uniform((60, 20), (620, 460), (count, 2))
    return np.stack([first, first - np.stack([40 + rng.uniform(0, depth_px, count), np.zeros(count)], axis=1)])


def solve_motion(first: np.ndarray, second: np.ndarray, noise: float = 0.4) -> Evidence:
    """Return the output for matches between two grey pictures."""
    still = np.full((*SIZE, 3), 90, np.uint8)
    request = Request((still, still), MotionArgs())
    off = np.random.default_rng(9).normal(0, noise, (2, *first.shape))
    return solve(request, views_of(request), Matches(first + off[0], second + off[1], np.ones(len(first)), "exact"))


def mapped(points: np.ndarray, *rows: tuple[float, float, float]) -> np.ndarray:
    large_motion = np.hstack([points, np.ones((len(points), 1))]) @ np.array(rows).T
    return large_motion[:, :2] / large_motion[:, 2:]


POINTS = cloud(0.0)[0]
LENS = np.array([[700, 0, 319.5], [0, 700, 239.5], [0, 0, 1.0]])
TURN = LENS @ cv2.Rodrigues(np.deg2rad([2.0, 9.0, 1.0]))[0] @ np.linalg.inv(LENS)


@pytest.mark.parametrize(
    ("second", "name", "words"),
    [
        (mapped(POINTS, (-1, 0, 639), (0, 1, 0), (0, 0, 1)), "mirror", "as in a mirror"),
        (cloud(60.0)[1] * (-1, 1) + (639, 0), "mirror", "as in a mirror"),
        (POINTS, "no motion", "no motion"),
        (POINTS - (20, 0), "shift", "a crop or a slight turn"),
        (mapped(POINTS, (1.3, 0, -96), (0, 1.3, -72), (0, 0, 1)), "zoom", "a zoom"),
        (mapped(POINTS, *TURN), "plane", "no parallax"),
        (mapped(POINTS, (1.1, 0.05, -60), (-0.04, 1.05, -20), (0.0003, -0.0001, 1)), "plane", "a flat scene"),
        (POINTS[::-1], "few matches", "too few"),
    ],
)
def test_matches_that_tell_no_direction_are_unsure_and_say_why(second: np.ndarray, name: str, words: str) -> None:
    evidence = solve_motion(POINTS, second)
    assert evidence.data["degenerate"] == name
    assert words in evidence.text
    assert (evidence.data["moved"], evidence.data["mainly"], evidence.confidence) == (None, [], 0.5)
    assert (evidence.data["turn_deg"], evidence.data["camera_direction_unit"]) == (None, None)
    assert len(evidence.text) <= 450


def test_a_motion_of_a_tenth_of_the_matches_or_of_one_half_of_them_is_not_believed() -> None:
    first, second = cloud(60.0)
    wrong = np.random.default_rng(4).uniform((0, 0), (640, 480), second.shape)
    few = np.vstack([second[:24], wrong[24:]])
    half = np.where(np.arange(len(first))[:, None] % 2, second, second + (wrong - second) * (1, 1))
    assert solve_motion(first, second).data["moved"] == "right"
    assert solve_motion(first, few).data["degenerate"] == "few matches"
    assert solve_motion(first, half).data["degenerate"] == "halves"


def test_a_wall_that_holds_most_matches_leaves_the_direction_to_the_others() -> None:
    first, second = cloud(60.0)
    wall = mapped(first, (1, 0, -40), (0, 1, 0), (0, 0, 1))
    values = [solve_motion(first, np.vstack([wall[:-off], second[-off:]])) for off in (60, 35, 1)]
    assert [entry.data["moved"] for entry in values] == ["right", "right", None]
    assert values[2].data["degenerate"] == "shift"


@pytest.mark.system
@pytest.mark.parametrize("change", ["mirror", "crop"])
def test_a_picture_beside_itself_changed_is_unsure(change: str) -> None:
    for index in range(3):
        picture = halved(index)[0]
        first, second = (picture, picture[:, ::-1]) if change == "mirror" else (picture[:, :-30], picture[:, 30:])
        evidence = ask(np.ascontiguousarray(first), np.ascontiguousarray(second))
        assert (evidence.data["moved"], evidence.data["mainly"]) == (None, []), index
        assert evidence.data["degenerate"] in (("mirror",) if change == "mirror" else ("shift", "plane", "turn"))


@pytest.mark.system
@pytest.mark.parametrize(("index", "place"), [(0, 0), (1, 1), (2, 0), (3, 1)])
def test_a_view_that_is_mirrored_is_named_and_unsure(index: int, place: int) -> None:
    views = halved(index)
    views[place] = np.ascontiguousarray(views[place][:, ::-1])
    evidence = ask(*views)
    assert (evidence.data["moved"], evidence.data["mainly"], evidence.confidence) == (None, [], 0.5)
    assert evidence.data["degenerate"] == "mirror"
    assert "as in a mirror" in evidence.text


@pytest.mark.parametrize("shape", [(1, 1, 3), (20, 30, 3), pytest.param((2000, 4200, 3), marks=pytest.mark.system)])
def test_pictures_without_texture_are_unsure(shape: tuple[int, int, int]) -> None:
    grey = np.full(shape, 128, np.uint8)
    evidence = ask(grey, grey)
    assert evidence.data["moved"] is None
    assert evidence.data["inliers"] == 0
    assert "too few" in evidence.text
    assert [picture.pixels.shape for picture in evidence.pictures] == [shape, shape]


@pytest.mark.system
def test_two_unrelated_pictures_are_unsure() -> None:
    value, other = halved(1)[0], halved(2)[1]
    evidence = ask(value, other)
    assert evidence.data["moved"] is None or evidence.confidence < 0.8


@pytest.mark.parametrize("bad", [{"focal_ratio": 0}, {"focal_ratio": "wide"}, {"focal": 1}])
def test_arguments_of_another_form_are_refused(bad: dict) -> None:
    with pytest.raises(ValidationError):
        MotionArgs.model_validate(bad)


# The rule of the specialist
