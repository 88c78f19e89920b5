"""Layouts: solids do not touch, named objects are visible and hide nothing."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.samples.layouts import (
    Name,
    arrange,
    backdrop,
    high_camera,
    random_camera,
    random_names,
    random_scene,
    rectangle,
)
from hybrid.samples.scenes import Ball, render


@settings(max_examples=8)
@given(seed=st.integers(0, 10**6))
def test_footprints_of_a_random_scene_do_not_meet(seed: int) -> None:
    solids = random_scene(np.random.default_rng(seed), 6).solids
    assert 1 <= len(solids) <= 6
    for number, first in enumerate(solids):
        for second in solids[:number]:
            reach = sum(
                solid.radius if isinstance(solid, Ball) else float(np.hypot(*solid.half[:2]))
                for solid in (first, second)
            )
            assert np.hypot(first.centre[0] - second.centre[0], first.centre[1] - second.centre[1]) > 0.95 * reach


@settings(max_examples=6)
@given(seed=st.integers(0, 10**6))
def test_arranged_objects_are_seen_whole(seed: int) -> None:
    rng = np.random.default_rng(seed)
    camera = high_camera(rng, 240, 180)
    solids = None
    while solids is None:
        solids = arrange(rng, camera, random_names(rng, 4))
    view = render(backdrop(rng, solids, None, calm=True), camera, rng)
    assert view.visible == (1.0,) * 4
    for number, solid in enumerate(solids):
        x0, y0, x1, y1 = rectangle(camera, solid)
        rows, columns = np.nonzero(view.ids == 3 + number)
        assert x0 - 1 <= columns.min() <= columns.max() <= x1 + 1
        assert y0 - 1 <= rows.min() <= rows.max() <= y1 + 1


def test_no_room_is_said_and_not_hidden() -> None:
    rng = np.random.default_rng(0)
    assert arrange(rng, random_camera(rng, 60, 40), [Name("red", "ball")] * 40) is None
