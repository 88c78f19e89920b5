"""Layouts: solids stand apart, named objects are in view and hide nothing."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.samples.layouts import (
    Name,
    arrange,
    backdrop,
    fits,
    high_camera,
    random_camera,
    random_names,
    random_scene,
    rectangle,
)
from hybrid.samples.scenes import Ball, Block, render


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
            gap = np.hypot(first.centre[0] - second.centre[0], first.centre[1] - second.centre[1])
            assert gap > 0.95 * reach


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


def test_fits_keeps_a_margin_to_borders_and_others() -> None:
    camera = random_camera(np.random.default_rng(0), 100, 80)
    assert fits(camera, (20, 20, 40, 40), [])
    assert not fits(camera, (2, 20, 40, 40), [])
    assert not fits(camera, (20, 20, 40, 78), [])
    assert not fits(camera, (20, 20, 40, 40), [(43, 20, 60, 40)])
    assert fits(camera, (20, 20, 40, 40), [(47, 20, 60, 40)])


def test_names_have_different_colours_and_say_what_is_built() -> None:
    names = random_names(np.random.default_rng(0), 6)
    assert len({name.colour for name in names}) == 6
    assert str(Name("red", "cube")) == "red cube"
    rng = np.random.default_rng(1)
    solids = arrange(rng, high_camera(rng, 480, 360), [Name("red", "cube"), Name("blue", "ball")])
    assert solids is not None
    assert isinstance(solids[0], Block)
    assert isinstance(solids[1], Ball)
    mean = [solid.texture.levels[0].mean(axis=(0, 1)) for solid in solids]
    assert int(np.argmax(mean[0])) == 0
    assert int(np.argmax(mean[1])) == 2
