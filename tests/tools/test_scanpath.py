"""Scanpaths: limits on number and time, seeds, search with and without weights."""

import shutil
from collections.abc import Callable
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
    MOST_MS,
    durations,
    fixate,
)


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


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_durations_keep_their_sum(values: list[float]):
    found = durations(values)
    assert len(found) == len(values)
    assert min(found) > 0
    assert sum(found) <= MOST_MS


@settings(max_examples=3)
@given(st.text(min_size=1, max_size=100), st.integers(1, 12))
def test_the_text_is_short_whatever_is_searched_for(target: str, fixations: int):
    pixels = np.random.default_rng(2).integers(0, 256, (40, 60, 3)).astype(np.uint8)
    found = ask(pixels, ScanpathArgs(target=target, fixations=fixations))
    assert len(found.text) <= 450
    assert "not known" in found.text


@pytest.mark.parametrize("shape", [(1, 1), (1, 900), (2400, 3200)])
def test_any_shape_survives(shape: tuple[int, int]):
    found = ask(np.full((*shape, 3), 77, np.uint8), ScanpathArgs(fixations=12))
    assert len(found.data["fixations"]) == 12
    assert found.confidence <= 0.2
    assert found.pictures[0].pixels.shape == (*shape, 3)


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
