"""The ray caster: its depth, ids and light compared with geometry computed by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.samples.layouts import random_camera, random_scene
from hybrid.samples.scenes import Camera, render

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
