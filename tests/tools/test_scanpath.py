"""Scanpaths: limits on number and time, seeds, search with and without weights."""

import itertools
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from hybrid.errors import ToolError, WeightsError
from hybrid.samples.pop_out import pop_out
from hybrid.tool import Evidence, Pixels, Request
from tools.scanpath import FreeViewing, ScanpathArgs, TargetSearch
from tools.scanpath.fixations import (
    FIRST_MS,
    MEAN_MS,
    MOST_MS,
    Fixation,
    Return,
    degrees_per_px,
    durations,
    fixate,
    returns,
)
from tools.scanpath.picture import LINE, with_path


def ask(pixels: Pixels, args: ScanpathArgs | None = None, seed: int = 0) -> Evidence:
    return FreeViewing().run([Request((pixels,), args or ScanpathArgs(), seed=seed)])[0]


@settings(max_examples=40)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 12), st.integers(0, 50))
def test_fixations_stay_inside_and_within_time(height: int, width: int, count: int, seed: int):
    values = np.random.default_rng(seed).random((height, width)).astype(np.float32)
    path = fixate(values, count, seed)
    assert len(path) == count
    assert all(0 <= fix.x <= 1 and 0 <= fix.y <= 1 and fix.ms >= 0 for fix in path)
    assert sum(fix.ms for fix in path) <= MOST_MS
    assert path == fixate(values, count, seed)


def peaks(*spots: tuple[int, int, float]) -> np.ndarray:
    """A map of 96 x 60 cells that is low but for small squares."""
    values = np.full((60, 96), 0.02, np.float32)
    for x, y, height in spots:
        values[y - 1 : y + 2, x - 1 : x + 2] = height
    return values


def nearest(fix: Fixation, spots: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return min(spots, key=lambda spot: abs(spot[0] + 0.5 - fix.x * 96) + abs(spot[1] + 0.5 - fix.y * 60))


def test_the_first_fixation_is_in_the_middle_and_the_next_ones_go_by_saliency_and_length():
    spots = ((40, 22), (56, 38), (88, 6))
    path = fixate(peaks((40, 22, 1.0), (56, 38, 0.6), (88, 6, 1.0)), 3, 0)
    assert (path[0].x, path[0].y) == (pytest.approx(0.5), pytest.approx(0.5))
    # The far one is as salient as the first, and a short saccade is the usual one.
    assert [nearest(fix, spots) for fix in path[1:]] == [(40, 22), (56, 38)]


def test_a_place_just_seen_is_left_and_is_seen_again_later():
    spots = ((38, 30), (58, 30))
    path = fixate(peaks((38, 30, 1.0), (58, 30, 1.0)), 6, 0)
    visited = [nearest(fix, spots) for fix in path[1:]]
    assert all(first != second for first, second in itertools.pairwise(visited[:3]))
    assert returns(path, (600, 960))
    assert not returns(path[:3], (600, 960))


def test_a_horizontal_saccade_is_taken_rather_than_a_vertical_one():
    path = fixate(peaks((48, 40, 1.0), (38, 30, 0.95)), 2, 0)
    assert nearest(path[1], ((48, 40), (38, 30))) == (38, 30)


def test_looking_long_around_one_place_makes_another_one_worth_a_long_saccade():
    values = np.full((60, 96), 0.01, np.float32)
    values[24:36, 42:54] = 0.9
    values[8:14, 80:88] = 0.9
    path = fixate(values, 12, 0)
    far = [fix.x > 0.8 for fix in path]
    # Not before much of the near place was seen, and then more than once.
    assert far.index(True) >= 5
    assert sum(far) >= 2


@pytest.mark.parametrize("size", [(600, 960), (1200, 400)])
def test_degrees_are_those_of_the_screen_that_the_image_fills(size: tuple[int, int]):
    height, width = size
    scale = degrees_per_px(size)
    assert max(scale * width / 54, scale * height / 35) == pytest.approx(1)
    assert min(54 - scale * width, 35 - scale * height) >= -1e-9


def test_only_what_lies_within_two_degrees_of_an_earlier_place_is_a_return():
    size = (350, 540)

    def path(*columns: float) -> list[Fixation]:
        return [Fixation(x / 540, 0.5, 200, 0.5) for x in columns]

    assert returns(path(100, 300, 119), size) == [Return(3, 1)]
    assert returns(path(100, 300, 121), size) == []
    # The fixation just before is no place to come back to.
    assert returns(path(100, 300, 305), size) == []
    assert returns(path(100, 300, 200, 301, 99), size) == [Return(4, 2), Return(5, 1)]


def test_durations_are_skewed_and_longest_where_most_stands_out():
    values = [0.3, 0.9, 0.1, 0.5, 0.7, 0.2]
    found = durations(values)
    assert sorted(range(1, 6), key=lambda place: found[place]) == sorted(range(1, 6), key=lambda place: values[place])
    many = np.array(durations(list(np.linspace(0, 1, 12))), float)
    assert np.mean(many) == pytest.approx(MEAN_MS, rel=0.05)
    assert np.mean(many) > np.median(many) * 1.05
    assert many.max() / many.min() > 3
    assert durations([0.5] * 3)[1] < durations([0.5] * 3)[2]
    assert {durations([first, 0.2, 0.3])[0] for first in (0.0, 1.0)} == {round(FIRST_MS)}


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_durations_keep_their_sum(values: list[float]):
    found = durations(values)
    assert len(found) == len(values)
    assert min(found) > 0
    assert sum(found) <= MOST_MS


def test_the_text_names_each_return_and_no_other():
    pixels = pop_out(np.random.default_rng(5), 4).draw()
    seen = set()
    for fixations in (2, 6, 12):
        found = ask(pixels, ScanpathArgs(fixations=fixations))
        told = next(line for line in found.text.splitlines() if "eturn" in line)
        again = found.data["returns"]
        named = "; ".join(f"{one['fixation']} to {one['to']}" for one in again)
        assert told == (f"Returns to a place: {named}." if again else "No return to a place.")
        seen.add(bool(again))
        assert found.text.startswith("Image 1 (448 x 320 px): ")
    assert seen == {True, False}


@settings(max_examples=3)
@given(st.text(min_size=1, max_size=100), st.integers(1, 12))
def test_the_text_is_short_whatever_is_searched_for(target: str, fixations: int):
    pixels = np.random.default_rng(2).integers(0, 256, (40, 60, 3)).astype(np.uint8)
    found = ask(pixels, ScanpathArgs(target=target, fixations=fixations))
    assert len(found.text) <= 450
    assert "not known" in found.text


def test_the_finding_gives_pixels_fractions_and_milliseconds():
    pixels = pop_out(np.random.default_rng(5), 4).draw()
    found = ask(pixels, ScanpathArgs(fixations=8))
    data = found.data
    height, width = pixels.shape[:2]
    assert [round(entry["x_px"] / width, 2) for entry in data["fixations"]] == pytest.approx(data["x_0_1"], abs=0.011)
    assert [round(entry["y_px"] / height, 2) for entry in data["fixations"]] == pytest.approx(data["y_0_1"], abs=0.011)
    assert data["t_ms"] == [entry["duration_ms"] for entry in data["fixations"]]
    assert data["total_ms"] == sum(data["t_ms"]) <= 5000
    assert all(round(value, 2) == value for value in (*data["x_0_1"], *data["y_0_1"]))
    assert len(data["t_ms"]) == 8
    assert len(found.text) <= 450
    assert found.pictures[0].pixels.shape == pixels.shape


def test_the_picture_shows_a_disc_at_each_fixation_and_the_way_between_them():
    pixels = pop_out(np.random.default_rng(5), 4).draw()
    found = ask(pixels, ScanpathArgs(fixations=3))
    drawn = found.pictures[0].pixels
    for fixation in found.data["fixations"]:
        x, y = round(fixation["x_px"]), round(fixation["y_px"])
        around = drawn[max(0, y - 20) : y + 21, max(0, x - 20) : x + 21].reshape(-1, 3).astype(int)
        # The ring is one pixel wide and smoothed.
        assert (np.abs(around - LINE).max(axis=1) < 70).sum() > 8
        assert (around == 0).all(axis=1).sum() > 40
    blank = np.full((100, 120, 3), 90, np.uint8)
    path = with_path(blank, [(20, 50, 200), (100, 50, 200)])
    assert (blank == 90).all()
    assert (np.abs(path[50, 45:75].astype(int) - LINE) < 70).all()


def test_most_fixations_after_the_first_lie_on_things_that_stand_out():
    hits = total = 0
    for seed in range(3):
        made = pop_out(np.random.default_rng([3, seed]), 3)
        found = ask(made.draw(), ScanpathArgs(fixations=6))
        for entry in found.data["fixations"][1:]:
            x, y = entry["x_px"], entry["y_px"]
            total += 1
            hits += any(
                x0 - 8 <= x <= x1 + 8 and y0 - 8 <= y <= y1 + 8 for x0, y0, x1, y1 in (one.box for one in made.things)
            )
    assert hits / total > 0.7


def test_a_seed_is_a_viewer():
    pixels = np.random.default_rng(0).integers(0, 256, (40, 45, 3)).astype(np.uint8)
    first, again, other = (ask(pixels, seed=seed).data for seed in (1, 1, 0))
    assert first == again
    assert first["x_0_1"] != other["x_0_1"]


@pytest.mark.parametrize("shape", [(1, 1), (1, 900), (2400, 3200)])
def test_any_shape_survives(shape: tuple[int, int]):
    found = ask(np.full((*shape, 3), 77, np.uint8), ScanpathArgs(fixations=12))
    assert len(found.data["fixations"]) == 12
    assert found.confidence <= 0.2
    assert found.pictures[0].pixels.shape == (*shape, 3)


def test_without_weights_a_target_is_not_known():
    pixels = pop_out(np.random.default_rng(5), 4).draw()
    found = ask(pixels, ScanpathArgs(target="red square"))
    assert "Where 'red square' is, is not known" in found.text
    assert found.confidence < ask(pixels).confidence
    assert found.data == ask(pixels).data


def test_arguments_are_bounded():
    for wrong in ({"fixations": 0}, {"fixations": 13}, {"target": ""}, {"steps": 3}):
        with pytest.raises(ValidationError):
            ScanpathArgs.model_validate(wrong)


def test_the_learned_backend_searches(things_checkpoint: Callable[[str], Path]):
    backend = TargetSearch()
    backend.setup("cpu", str(things_checkpoint("clipseg")))
    pixels = pop_out(np.random.default_rng(5), 4).draw()
    search = Request((pixels,), ScanpathArgs(target="cup", fixations=4))
    (found,) = backend.run([search])
    assert len(found.data["t_ms"]) == 4
    assert "'cup'" in found.text
    assert found.data == backend.run([search])[0].data
    (free,) = backend.run([Request((pixels,), ScanpathArgs(fixations=4))])
    assert free.data == ask(pixels, ScanpathArgs(fixations=4)).data
    (tiny,) = backend.run([Request((np.zeros((1, 1, 3), np.uint8),), ScanpathArgs(target="cup"))])
    assert len(tiny.data["t_ms"]) == 6


def test_a_checkpoint_without_one_tensor_is_refused(tmp_path: Path, things_checkpoint: Callable[[str], Path]):
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "cut"
    shutil.copytree(things_checkpoint("clipseg"), folder)
    tensors = load_file(folder / "model.safetensors")
    tensors.pop(next(name for name in sorted(tensors) if "decoder" in name))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(WeightsError, match="missing"):
        TargetSearch().setup("cpu", str(folder))
    with pytest.raises(ToolError, match="before its weights"):
        TargetSearch().run([Request((np.zeros((9, 9, 3), np.uint8),), ScanpathArgs(target="a"))])
