"""Scanpaths: limits on number and time, seeds, search with and without weights."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from safetensors.torch import load_file, save_file

from hybrid.errors import ToolError, WeightsError
from hybrid.samples.pop_out import pop_out
from hybrid.tool import Evidence, Pixels, Request
from tools.scanpath import FreeViewing, ScanpathArgs, TargetSearch
from tools.scanpath.fixations import MOST_MS, fixate
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


def test_peaks_are_visited_in_order_and_not_at_once_again():
    values = np.full((60, 90), 0.02, np.float32)
    for x, y, height in ((20, 15, 1.0), (70, 45, 0.7), (70, 12, 0.5)):
        values[y - 2 : y + 3, x - 2 : x + 3] = height
    path = fixate(values, 4, 0)
    assert abs(path[0].x - 0.5) < 0.02
    assert abs(path[0].y - 0.5) < 0.02
    visited = [(round(fix.x * 90 - 0.5), round(fix.y * 60 - 0.5)) for fix in path[1:]]
    wanted = ((20, 15), (70, 45), (70, 12))
    assert [min(wanted, key=lambda spot: abs(spot[0] - x) + abs(spot[1] - y)) for x, y in visited] == list(wanted)
    assert path[1].ms > path[3].ms


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
    assert len(found.text.splitlines()) <= 6
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


def test_most_things_that_stand_out_are_visited():
    hits = total = 0
    for seed in range(8):
        made = pop_out(np.random.default_rng([3, seed]), 3)
        found = ask(made.draw(), ScanpathArgs(fixations=6))
        spots = [(entry["x_px"], entry["y_px"]) for entry in found.data["fixations"]]
        for thing in made.things:
            x0, y0, x1, y1 = thing.box
            total += 1
            hits += any(x0 - 8 <= x <= x1 + 8 and y0 - 8 <= y <= y1 + 8 for x, y in spots)
    assert hits / total > 0.6


def test_a_seed_is_a_viewer():
    pixels = np.random.default_rng(0).integers(0, 256, (80, 90, 3)).astype(np.uint8)
    assert ask(pixels, seed=3).data == ask(pixels, seed=3).data
    assert len({str(ask(pixels, seed=seed).data["x_0_1"]) for seed in range(4)}) > 1


@pytest.mark.parametrize("shape", [(1, 1), (1, 900), (2400, 3200)])
def test_any_shape_survives(shape: tuple[int, int]):
    found = ask(np.full((*shape, 3), 77, np.uint8), ScanpathArgs(fixations=12))
    assert len(found.data["fixations"]) == 12
    assert found.confidence <= 0.2
    assert found.pictures[0].pixels.shape == (*shape, 3)


def test_without_weights_a_target_is_not_known():
    pixels = pop_out(np.random.default_rng(5), 4).draw()
    found = ask(pixels, ScanpathArgs(target="red square"))
    assert "not known where 'red square' is" in found.text
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
    folder = tmp_path / "cut"
    shutil.copytree(things_checkpoint("clipseg"), folder)
    tensors = load_file(folder / "model.safetensors")
    tensors.pop(next(name for name in sorted(tensors) if "decoder" in name))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(WeightsError, match="missing"):
        TargetSearch().setup("cpu", str(folder))
    with pytest.raises(ToolError, match="before its weights"):
        TargetSearch().run([Request((np.zeros((9, 9, 3), np.uint8),), ScanpathArgs(target="a"))])
