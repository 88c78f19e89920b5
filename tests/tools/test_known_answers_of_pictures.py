"""Known answers detect defects around a sound network: colours, statistics, positions, scale, pairing.

Trained weights are not available here, so a sound network is one that returns the truth about the drawn picture.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import pytest

from hybrid.core.types import Box
from hybrid.plugins.registry import load
from hybrid.serving import input_check
from hybrid.serving.input_check import run_probes
from hybrid.tool import CheckCase, Evidence, Pixels, Request
from tests.tables import cases, stored
from tests.tools.tiny_checkpoints import Checkpoints, started
from tests.tools.true_depth import Rendered
from tools._shared.known_answers import depth_item
from tools.detection import CHECKS as SIGNS
from tools.detection import SCENES, street
from tools.ocr import LearnedOcr
from tools.ocr.models import TextLine
from tools.reflectance import LearnedAlbedo
from tools.segmentation import GrabCut

Warp = Callable[[Pixels], Pixels]


def moved(across: float = 0.0, down: float = 0.0, scale: float = 1.0) -> Warp:
    """Return a picture or a map whose contents are moved or scaled."""
    matrix = np.array([[scale, 0, across], [0, scale, down]])

    def warp(values: Pixels) -> Pixels:
        size = (values.shape[1], values.shape[0])
        return np.asarray(cv2.warpAffine(values, matrix, size, borderMode=cv2.BORDER_REPLICATE))

    return warp


MISPLACED = {
    "8 px to the right": moved(across=8),
    "8 px to the left": moved(across=-8),
    "8 px down": moved(down=8),
    "8 px up": moved(down=-8),
    "5 % too large": moved(scale=1.05),
    "5 % too small": moved(scale=1 / 1.05),
}
misplaced = pytest.mark.parametrize(
    "warp",
    [
        pytest.param(warp, id=name, marks=() if name in ("8 px up", "5 % too large") else pytest.mark.system)
        for name, warp in MISPLACED.items()
    ],
)


@lru_cache
def check_case(tool: str, place: int) -> CheckCase:
    """Return a question of a tool, made once."""
    return load("tools", tool).checks[place].pose()


def missed(tool: str, backend: Any, only: str = "") -> list[str]:
    """Return errors in the answers to the questions whose names contain some words."""
    args = load("tools", tool).args
    values = [check_case(tool, place) for place, check in enumerate(load("tools", tool).checks) if only in check.name]
    answers = [item.wrong(backend.run([Request(item.images, args.model_validate(item.args))])[0]) for item in values]
    return [wrong for wrong in answers if wrong is not None]


def depth(warp: Warp) -> Rendered:
    """Return the true depth of the scenes with edges, as a map that may be shifted."""
    backend = Rendered([depth_item(index) for index in (1, 8, 10)], warp)
    backend.setup("cpu", None)
    return backend


@pytest.mark.system
def test_a_sound_depth_map_passes_even_where_its_edges_are_soft():
    assert missed("depth", depth(moved()), "where things end") == []
    assert missed("depth", depth(lambda values: cv2.GaussianBlur(values, (0, 0), 3)), "where things end") == []


@pytest.mark.system
@misplaced
def test_a_depth_map_that_lies_elsewhere_fails(warp: Warp):
    assert missed("depth", depth(warp), "where things end")


@pytest.mark.system
def test_inverse_depth_read_as_metres_fails():
    assert len(missed("depth", depth(lambda values: values.max() - values), "where things end")) == 3


class Misplacing(GrabCut):
    """The weight-free backend on pictures whose contents are moved."""

    def __init__(self, warp: Warp) -> None:
        self._warp = warp

    def answer(self, request: Request[Any]) -> Evidence:
        return super().answer(replace(request, images=tuple(map(self._warp, request.images))))


@misplaced
def test_a_mask_that_lies_elsewhere_fails(warp: Warp):
    assert missed("segmentation", Misplacing(moved()), "box, scene 3") == []
    assert missed("segmentation", Misplacing(warp), "box, scene 3")


def signs(number: int, across: float = 0.0, larger: float = 1.0, about_itself: float = 1.0) -> str | None:
    """Return the errors in the boxes of a scene's signs, which are moved by pixels, scaled with the picture, or
    enlarged.
    """
    _, scale, sample = SCENES[number]
    rows = []
    for box in street(scale, sample)[1]:
        middle, half = ((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2), (box.x1 - box.x0) / 2 * about_itself
        edges = (middle[0] - half, middle[1] - half, middle[0] + half, middle[1] + half)
        rows.append({"name": "stop sign", "box_px": [larger * edge + across for edge in edges]})
    return SIGNS[number].pose().wrong(Evidence("", {"boxes": rows}, 0.5))


@pytest.mark.parametrize("number", [0, pytest.param(1, marks=pytest.mark.system)])
def test_signs_are_found_where_they_are_and_in_their_size(number: int):
    assert signs(number) is None
    assert signs(number, across=2.0, about_itself=1.015) is None
    for larger in (1.05, 1 / 1.05):
        assert "their signs" in str(signs(number, larger=larger))
        assert "er than their signs" in str(signs(number, about_itself=larger))
    assert "0 of 4 signs" in str(SIGNS[number].pose().wrong(Evidence("", {"boxes": []}, 0.5)))


class TrueAlbedo:
    """Replaces the albedo network: returns the flat colours of the drawn pictures, changed by `warp`."""

    version = "true"

    def __init__(self, warp: Warp) -> None:
        self._warp = warp

    def albedo(self, pixels: Pixels, seed: int) -> np.ndarray:
        del seed
        return (self._warp(pixels).astype(np.float32) / 255) ** 2.2


def albedo(warp: Warp) -> LearnedAlbedo:
    backend = LearnedAlbedo()
    backend._model = TrueAlbedo(warp)
    return backend


def test_an_inverted_albedo_fails():
    assert len(missed("reflectance", albedo(lambda pixels: 255 - pixels))) == 5


@pytest.fixture(scope="module")
def rapid() -> LearnedOcr:
    pytest.importorskip("rapidocr")
    backend = LearnedOcr()
    backend.setup("cpu", None)
    return backend


class Misreading:
    """The package's reader with a changed input or output."""

    version = "changed"

    def __init__(
        self,
        reader: Any,
        lines: Callable[[list[TextLine]], list[TextLine]] = lambda lines: lines,
        picture: Warp = lambda pixels: pixels,
    ) -> None:
        self._reader, self._lines, self._picture = reader, lines, picture

    def read(self, pixels: Pixels) -> list[TextLine]:
        return self._lines(self._reader.read(self._picture(pixels)))


def boxed(change: Callable[[float], float]) -> Callable[[list[TextLine]], list[TextLine]]:
    def changed(lines: list[TextLine]) -> list[TextLine]:
        return [
            line._replace(box=Box(*map(change, (line.box.x0, line.box.y0, line.box.x1, line.box.y1)))) for line in lines
        ]

    return changed


def shuffled(lines: list[TextLine]) -> list[TextLine]:
    return [line._replace(text=other.text) for line, other in zip(lines, lines[1:] + lines[:1], strict=True)]


@pytest.fixture(scope="module")
def three_lines(rapid: LearnedOcr) -> list[TextLine]:
    """Return the lines that the package reads, correctly, on the page of three lines."""
    backend = LearnedOcr()
    read: list[list[TextLine]] = []
    backend._model = Misreading(rapid.model, lambda lines: read.append(lines) or lines)
    assert missed("ocr", backend, "three lines") == []
    return read[0]


class Remembering:
    """A replacement for a reader: returns the same lines for every picture."""

    version = "remembered"

    def __init__(self, lines: list[TextLine]) -> None:
        self._lines = lines

    def read(self, pixels: Pixels) -> list[TextLine]:
        del pixels
        return self._lines


@pytest.mark.system
@pytest.mark.parametrize(
    "lines",
    [boxed(lambda edge: edge + 8), boxed(lambda edge: edge - 8), boxed(lambda edge: edge * 1.05), shuffled],
    ids=["8 px off", "8 px off, back", "5 % too large", "texts of other lines"],
)
def test_lines_that_lie_elsewhere_fail(three_lines: list[TextLine], lines: Callable[[list[TextLine]], list[TextLine]]):
    backend = LearnedOcr()
    backend._model = Remembering(lines(three_lines))
    assert missed("ocr", backend, "three lines")


@pytest.mark.system
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_finder_of_lines_without_training_finds_no_word(rapid: LearnedOcr, seed: int):
    """With a finder whose map is noise for every picture, no word is found, although the recogniser after it is
    sound."""
    finder = rapid.model._engine.text_det
    sound = finder.session
    rng = np.random.default_rng(seed)
    finder.session = lambda values: rng.random((1, 1, *values.shape[-2:])).astype(np.float32)
    try:
        assert missed("ocr", rapid, "STREET")
    finally:
        finder.session = sound


def seen(tool: str, backend: Any) -> list[str]:
    """Return errors in the pictures that reach the networks of a backend; at least one is checked."""
    probe = run_probes(load("tools", tool), backend)
    assert probe
    return [str(item.wrong) for item in probe if item.wrong is not None]


@pytest.mark.system
def test_rapidocr_gets_its_pictures_as_it_was_trained(rapid: LearnedOcr, monkeypatch: pytest.MonkeyPatch):
    assert seen("ocr", rapid) == []
    # Use only the small chart, which suffices to reveal the mistake.
    monkeypatch.setattr(input_check, "SIZES", input_check.SIZES[:1])
    backend = LearnedOcr()
    backend._networks = rapid.networks
    backend._model = Misreading(rapid.model, picture=lambda pixels: pixels[..., ::-1])
    assert "red and blue exchanged" in seen("ocr", backend)[0]
    backend._model = Misreading(rapid.model, picture=lambda pixels: 255 - pixels)
    assert "inverted" in seen("ocr", backend)[0]
    finder = rapid.model._engine.text_det
    mean, finder.mean = finder.mean, [0.0, 0.0, 0.0]
    deviation, finder.std = finder.std, [1.0, 1.0, 1.0]
    try:
        assert "no mean and standard deviation" in seen("ocr", rapid)[0]
    finally:
        finder.mean, finder.std = mean, deviation


LOADED = stored(__file__, "LOADED")


@pytest.mark.parametrize(("tool", "checkpoint"), [(tool, name) for tool, names in LOADED.items() for name in names])
def test_every_network_is_given_its_pictures_as_it_wants_them(
    things_checkpoint: Checkpoints, tool: str, checkpoint: str
):
    assert seen(tool, started(tool, things_checkpoint(checkpoint))) == []


@pytest.mark.parametrize(*cases(__file__, "test_pictures_that_are_changed_on_their_way_are_told"))
@pytest.mark.parametrize(
    ("change", "message"), [(lambda p: p[..., ::-1].copy(), "red and blue exchanged"), (lambda p: 255 - p, "inverted")]
)
def test_pictures_that_are_changed_on_their_way_are_told(
    things_checkpoint: Checkpoints, tool: str, checkpoint: str, change: Warp, message: str
):
    backend = started(tool, things_checkpoint(checkpoint))
    prepare = backend.prepare
    backend.prepare = lambda request: prepare(replace(request, images=tuple(map(change, request.images))))
    assert message in seen(tool, backend)[0]
