"""The ray caster: its depth, ids and light against geometry worked out by hand."""

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.samples.layouts import random_camera, random_scene
from hybrid.samples.scenes import (
    FIRST_SOLID,
    GROUND,
    SKY,
    WALL,
    Ball,
    Block,
    Camera,
    Scene,
    Solid,
    View,
    Wall,
    orbit,
    render,
)
from hybrid.samples.textures import plain

GREY = plain(np.random.default_rng(0), (0.4, 0.4, 0.4), grain=0.02)
LEVEL = Camera((0.0, 0.0, 1.0), 0.0, 0.0, 100.0, 121, 91)
"""One metre up, looking north along the horizon; the principal point is pixel (60, 45)."""


def scene(*solids: Solid, wall: Wall | None = None, sun: tuple[float, float, float] = (0.0, 0.0, 1.0)) -> Scene:
    return Scene(GREY, wall, solids, sun, 1.0, 0.4, GREY)


def shoot(what: Scene, camera: Camera = LEVEL, seed: int = 0) -> View:
    return render(what, camera, np.random.default_rng(seed))


cameras = st.builds(
    Camera,
    position=st.tuples(st.floats(-5, 5), st.floats(-5, 5), st.floats(0.3, 3)),
    yaw_rad=st.floats(-3, 3),
    pitch_rad=st.floats(-1, 1),
    focal_px=st.floats(50, 900),
    width=st.integers(2, 700),
    height=st.integers(2, 700),
)


@given(camera=cameras, x=st.floats(-50, 700), y=st.floats(-50, 700), depth=st.floats(0.1, 100))
def test_projection_undoes_unprojection(camera: Camera, x: float, y: float, depth: float) -> None:
    back = camera.project(camera.unproject(x, y, depth)[None])[0]
    assert back == pytest.approx([x, y, depth], rel=1e-6, abs=1e-5)


@given(camera=cameras)
def test_a_camera_is_a_right_handed_frame(camera: Camera) -> None:
    rotation = camera.rotation()
    assert rotation @ rotation.T == pytest.approx(np.eye(3), abs=1e-9)
    assert np.linalg.det(rotation) == pytest.approx(1)


def test_frame_and_axes_agree_with_the_documentation() -> None:
    ahead_right_up = LEVEL.project(np.array([[1.0, 5.0, 2.0]]))[0]
    assert ahead_right_up == pytest.approx([60 + 100 / 5, 45 - 100 / 5, 5.0])
    turned = replace(LEVEL, yaw_rad=np.pi / 2)
    assert turned.project(np.array([[5.0, 0.0, 1.0]]))[0] == pytest.approx([60, 45, 5], abs=1e-9)
    down = replace(LEVEL, pitch_rad=0.3)
    assert down.project(np.array([[0.0, 5.0, 1.0]]))[0][1] < 45


def test_orbit_looks_at_its_target_and_turns_to_the_right() -> None:
    lens = (400.0, 480, 360)
    first, second = (orbit((0.0, 0.0, 0.5), 4.0, azimuth, 1.5, lens) for azimuth in (0.0, 0.4))
    for camera in (first, second):
        assert camera.project(np.array([[0.0, 0.0, 0.5]]))[0][:2] == pytest.approx(camera.centre_px, abs=1e-6)
    assert first.project(np.array([second.position]))[0][0] > first.centre_px[0]
    # Counter-clockwise seen from above: from the south towards the east.
    assert second.position[0] > 0 > second.position[1]


def test_ground_depth_is_height_over_slope() -> None:
    view = shoot(scene())
    assert view.ids[44, 60] == SKY
    assert np.isinf(view.depth_m[44, 60])
    assert (view.ids[46:] == GROUND).all()
    assert view.depth_m[65, 7] == pytest.approx(1.0 * 100 / 20, rel=1e-5)
    assert view.depth_m[85, 100] == pytest.approx(1.0 * 100 / 40, rel=1e-5)


def test_wall_ball_and_block_are_where_they_were_put() -> None:
    ball, block = Ball((-1.0, 4.0, 1.0), 0.5, GREY), Block((1.0, 5.0, 1.0), (0.5, 1.0, 1.0), 0.0, GREY)
    view = shoot(scene(ball, block, wall=Wall(8.0, 0.0, GREY)))
    assert view.ids[30, 60] == WALL
    assert view.depth_m[30, 60] == pytest.approx(8.0, rel=1e-5)
    column = 60 + 100 * 1.0 / 4.0
    assert view.ids[45, int(column)] == FIRST_SOLID + 1
    assert view.depth_m[45, int(column)] == pytest.approx(4.0, rel=1e-5)
    assert view.ids[45, 60 - 25] == FIRST_SOLID
    along = np.hypot(1.0, 4.0)
    assert view.depth_m[45, 60 - 25] == pytest.approx(4.0 * (along - 0.5) / along, rel=1e-4)


def test_every_pixel_lies_on_the_surface_that_its_id_names() -> None:
    rng = np.random.default_rng(5)
    what, camera = random_scene(rng, 8, wall_m=9.0), random_camera(rng, 160, 120)
    view = render(what, camera, rng)
    checked = 0
    for y, x in rng.integers((0, 0), (120, 160), (600, 2)):
        point = camera.unproject(x, y, float(view.depth_m[y, x]))
        number = int(view.ids[y, x])
        if number == GROUND:
            assert abs(point[2]) < 1e-3
        elif number >= FIRST_SOLID:
            solid = what.solids[number - FIRST_SOLID]
            offset = point - solid.centre
            if isinstance(solid, Ball):
                assert np.linalg.norm(offset) == pytest.approx(solid.radius, abs=1e-3)
            else:
                assert np.max(np.abs(solid.axes() @ offset) / solid.half) == pytest.approx(1, abs=1e-3)
            checked += 1
    assert checked > 30


def test_visible_tells_hidden_half_hidden_and_free() -> None:
    near = Block((0.0, 3.0, 0.5), (0.5, 0.2, 0.5), 0.0, GREY)
    hidden = Ball((0.0, 6.0, 0.5), 0.3, GREY)
    half = Ball((1.0, 6.0, 0.5), 0.3, GREY)
    outside = Ball((40.0, 6.0, 0.5), 0.3, GREY)
    view = shoot(scene(near, hidden, half, outside))
    assert view.visible[0] == 1
    assert view.visible[1] == 0
    assert 0.2 < view.visible[2] < 0.8
    assert view.visible[3] == 0


def test_a_ball_shades_the_ground_under_it() -> None:
    view = shoot(scene(Ball((0.0, 4.0, 3.0), 1.2, GREY)))
    row = 45 + 100 * 1.0 / 4.0
    assert view.ids[int(row), 60] == GROUND
    assert view.light[int(row), 60] == pytest.approx(0.4, abs=0.02)
    assert view.light[int(row), 110] == pytest.approx(1.4, abs=0.02)


def test_a_block_shades_the_side_away_from_the_sun() -> None:
    block = Block((0.0, 4.0, 0.5), (0.5, 0.5, 0.5), 0.0, GREY)
    front, back = (shoot(scene(block, sun=(0.0, y, 0.6))).light[58, 60] for y in (-0.8, 0.8))
    assert front > back + 0.5


def test_a_light_surface_is_brighter_in_the_picture() -> None:
    dark, light = (plain(np.random.default_rng(0), (a, a, a)) for a in (0.1, 0.7))
    view = shoot(scene(Block((-1.0, 4.0, 0.7), (0.4,) * 3, 0.0, dark), Block((1.0, 4.0, 0.7), (0.4,) * 3, 0.0, light)))
    assert view.rgb[view.ids == FIRST_SOLID].mean() < view.rgb[view.ids == FIRST_SOLID + 1].mean() - 40
    assert view.albedo[view.ids == FIRST_SOLID].mean() == pytest.approx(0.1, rel=0.1)


@settings(max_examples=6)
@given(seed=st.integers(0, 2**32 - 1))
def test_one_seed_one_picture(seed: int) -> None:
    views = []
    for number in (seed, seed, seed + 1):
        rng = np.random.default_rng(number)
        views.append(render(random_scene(rng, 4), random_camera(rng, 64, 48), rng))
    assert np.array_equal(views[0].rgb, views[1].rgb)
    assert np.array_equal(views[0].depth_m, views[1].depth_m)
    assert not np.array_equal(views[0].rgb, views[2].rgb)
    assert views[0].rgb.shape == (48, 64, 3)
    assert views[0].rgb.dtype == np.uint8
    assert (views[0].depth_m > 0).all()


def test_a_picture_takes_a_fraction_of_a_second() -> None:
    rng = np.random.default_rng(0)
    what, camera = random_scene(rng), random_camera(rng, 480, 360)
    started = time.process_time()
    render(what, camera, rng)
    # About 50 ms alone; the limit allows for a busy machine.
    assert time.process_time() - started < 1.0
