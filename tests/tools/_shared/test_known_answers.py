"""Known-answer images: correct weight-free backends pass; a flipped sign or a constant answer does not."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from hybrid.cli import cli
from hybrid.config import BackendChoice, ServiceOptions
from hybrid.core.errors import WeightsError
from hybrid.plugins.registry import load, names
from hybrid.samples.item import Item
from hybrid.serving.known_answers import Checked, failures, run_checks
from hybrid.serving.loader import Loader
from hybrid.tool import CheckCase, Evidence, Pixels, Tool
from tests.tables import stored
from tests.tools.tiny_checkpoints import Checkpoints
from tests.tools.true_depth import Rendered
from tools._shared.known_answers import DEPTH_ANSWERS, depth_item
from tools._shared.target_heat import SearchInput
from tools.depth import TOOL
from tools.scanpath import TargetSearch


@cache
def cases_of(name: str) -> tuple[CheckCase, ...]:
    """Return the questions of a tool, drawn once for several tests."""
    return tuple(check.pose() for check in load("tools", name).checks)


def tool_with_checks(name: str) -> Tool:
    """Return the tool with the questions of `cases_of`."""

    def fixed_case(place: int) -> Callable[[], CheckCase]:
        return lambda: cases_of(name)[place]

    tool = load("tools", name)
    return replace(
        tool, checks=tuple(replace(check, pose=fixed_case(place)) for place, check in enumerate(tool.checks))
    )


@cache
def depth_scenes() -> tuple[Item, ...]:
    """Return the scenes for depth, drawn once for several tests."""
    return tuple(map(depth_item, DEPTH_ANSWERS))


CHECKED = [name for name in names("tools") if load("tools", name).checks]
# Tools whose questions take half a second or more to draw.
DRAWN_LONG = {"correspondence", "depth", "jigsaw", "motion", "similarity"}
# Number of values from which a picture takes long to draw.
LARGE = 1_200_000


def depth_tool(sign: int) -> Tool:
    learned = replace(TOOL.card.backends[0], make=lambda: Rendered(depth_scenes(), lambda values: sign * values))
    return replace(tool_with_checks("depth"), card=replace(TOOL.card, backends=(learned,)))


def folder(tmp_path: Path) -> str:
    (tmp_path / "model.safetensors").write_bytes(b"1")
    return str(tmp_path)


@pytest.mark.system
def test_true_depth_is_taken_and_its_negative_is_not(tmp_path: Path) -> None:
    choice = BackendChoice("learned", {"depth": folder(tmp_path)})
    assert Loader(choice).load(depth_tool(1)).card.name == "learned"
    with pytest.raises(WeightsError, match=r"fail 8 of 8 known answers .*nearer point, scene 1: "):
        Loader(BackendChoice("learned", {"depth": folder(tmp_path)}, device="other")).load(depth_tool(-1))


def test_random_weights_of_the_real_format_are_refused(depth_checkpoint: Checkpoints) -> None:
    payload = {"depth": str(depth_checkpoint("depth_anything"))}
    with pytest.raises(WeightsError, match="known answers"):
        Loader(BackendChoice("learned", payload)).load(TOOL)
    assert Loader(BackendChoice("learned", payload, unchecked=True)).load(TOOL).weights == Path(payload["depth"])


@pytest.fixture
def run_arguments(depth_checkpoint: Checkpoints, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A command that runs depth in this process: other tests cover a worker's messages."""

    def here(*other_names: Any, isolated: bool, **more: Any) -> ServiceOptions:
        assert isolated
        return ServiceOptions(*other_names, isolated=False, **more)

    monkeypatch.setattr("hybrid.config.ServiceOptions", here)
    Image.fromarray(np.full((60, 80, 3), 90, np.uint8)).save(tmp_path / "a.png")
    words = ["tools", "run", "depth", str(tmp_path / "a.png"), "--args", '{"points": [{"x": 9, "y": 9}]}']
    return [*words, "--weights", str(depth_checkpoint("depth_anything"))]


def test_on_the_command_line_random_weights_are_refused(run_arguments: list[str]) -> None:
    assert isinstance(CliRunner().invoke(cli, run_arguments).exception, WeightsError)


def test_on_the_command_line_they_are_taken_when_asked_for_and_with_a_note(run_arguments: list[str]) -> None:
    selected = CliRunner().invoke(cli, [*run_arguments, "--unchecked-weights"])
    assert selected.exit_code == 0, selected.output
    assert "learned backend" in selected.stdout
    assert selected.stderr.endswith(
        "note: depth: the known answers of its weights were not checked (--unchecked-weights)\n"
    )


@pytest.mark.system
def test_the_two_points_of_every_depth_scene_are_far_apart_and_both_are_nearer_somewhere() -> None:
    assert min([max(scene.facts.depths_m) / min(scene.facts.depths_m) for scene in depth_scenes()]) > 2.2
    assert {item.answer for item in depth_scenes()} == {0, 1}


@pytest.mark.system
@pytest.mark.parametrize("name", ["correspondence", "motion", "saliency", "segmentation"])
def test_the_weight_free_backend_passes(name: str) -> None:
    tool = tool_with_checks(name)
    backend = tool.backend("classical").make()
    backend.setup("cpu", None)
    result = run_checks(tool, backend)
    assert len(result) == len(tool.checks)
    assert failures(result) == []


@pytest.mark.system
def test_colours_alone_do_not_pass_for_likeness() -> None:
    """Equal colours alone are not similarity: the different picture has the colours of the first, and the weight-free
    backend compares only colours and edges."""
    tool = tool_with_checks("similarity")
    backend = tool.backend("classical").make()
    assert sum(check.wrong is None for check in run_checks(tool, backend)) <= 2


@pytest.mark.system
@pytest.mark.parametrize("name", CHECKED)
def test_poses_are_valid_arguments_and_the_same_every_time(name: str) -> None:
    tool = load("tools", name)
    drawers, redrawn = set(), set()
    for check, first in zip(tool.checks, cases_of(name), strict=True):
        request, drawer = tool.args.model_validate(first.args), getattr(check.pose, "func", check.pose)
        assert tool.card.images[0] <= len(first.images) <= tool.card.images[1]
        drawers.add(drawer)
        # The drawing code of a large picture also draws small ones.
        if first.images[0].size < LARGE and drawer not in redrawn:
            redrawn.add(drawer)
            second = check.pose()
            assert tool.args.model_validate(second.args) == request
            assert all(np.array_equal(image, two) for image, two in zip(first.images, second.images, strict=True))
    assert redrawn == drawers


CONSTANT: dict[str, list[dict[str, Any]]] = stored(__file__, "CONSTANT")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.system if name in DRAWN_LONG else ()) for name in CHECKED]
)
def test_a_constant_answer_fails(name: str) -> None:
    checks = load("tools", name).checks
    check_case = cases_of(name)
    for data in CONSTANT[name]:
        verdicts = [item.wrong(Evidence("", data, 0.5)) for item in check_case]
        checkeds = [
            Checked(check.name, wrong, 0, series=check.series) for check, wrong in zip(checks, verdicts, strict=True)
        ]
        assert failures(checkeds), f"{name}: {data} passes"


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("semantic_correspondence", 12),
        pytest.param("similarity", 8, marks=pytest.mark.system),
        pytest.param("jigsaw", 8, marks=pytest.mark.system),
    ],
)
def test_what_is_asked_of_features_is_more_than_their_mean_colours(name: str, count: int) -> None:
    """The mean colour around a place, compared like features, does not solve the series."""
    tool = load("tools", name)
    rows = [(check, check_case) for check, check_case in zip(tool.checks, cases_of(name), strict=True) if check.series]
    assert len(rows) == count
    if name == "semantic_correspondence":
        assert sum(_by_colour(check_case) for _, check_case in rows) < rows[0][0].series.least
    elif name == "jigsaw":
        # Pieces have equal colours, so their mean does not distinguish them.
        for _, check_case in rows:
            means = [piece[8:, 8:].mean(axis=(0, 1)) for piece in check_case.images[1:]]
            assert np.abs(np.subtract(means, means[0])).max() < 14
    else:
        for _, check_case in rows:
            first, *others = (picture.mean(axis=(0, 1)) for picture in check_case.images)
            distances = [float(np.abs(other - first).max()) for other in others]
            assert sorted(distances)[1] < 2
            assert max(distances) > 40


def _by_colour(check_case: CheckCase) -> bool:
    def mean(pixels: Pixels, place: dict[str, float]) -> np.ndarray:
        x, y, side = round(place["x"]), round(place["y"]), pixels.shape[1] // 16
        colour = pixels[max(0, y - side) : y + side, max(0, x - side) : x + side].mean(axis=(0, 1))
        return colour / np.linalg.norm(colour)

    expected = mean(check_case.images[0], check_case.args["point"])
    cosines = [float(mean(check_case.images[1], place) @ expected) for place in check_case.args["candidates"]]
    return check_case.wrong(Evidence("", {"best_index": int(np.argmax(cosines))}, 0.5)) is None


def test_words_must_be_found_where_the_thing_is() -> None:
    by_name = {check.name: check.pose() for check in load("tools", "segmentation").checks if "named" in check.name}
    ball: dict[str, Any] = {"outline_px": [[50, 150], [170, 150], [170, 270], [50, 270]]}
    assert by_name["a red ball, named"].wrong(Evidence("", ball, 0.5)) is None
    assert "(110, 210) px" in str(by_name["a blue cube, named"].wrong(Evidence("", ball, 0.5)))
    assert by_name["a red ball, named"].wrong(Evidence("", {"outline_px": []}, 0.5)) == "nothing was found"


class Heat:
    """A replacement for CLIPSeg that finds things by the colour in their name."""

    version = "colour"

    def __init__(self, channels: dict[str, int]) -> None:
        self._channels = channels

    def prepare(self, pixels: Pixels, words: str) -> SearchInput:
        return SearchInput(pixels, words)

    def predict(self, sought: Sequence[SearchInput]) -> list[np.ndarray]:
        return [self._logits(item.values, item.words) for item in sought]

    def _logits(self, pixels: Pixels, words: str) -> np.ndarray:
        channel = next(place for colour, place in self._channels.items() if colour in words)
        others = [place for place in (0, 1, 2) if place != channel]
        lead = pixels[..., channel].astype(np.float32) - pixels[..., others].max(axis=2)
        likely = np.clip(lead / 128, 1e-6, 1 - 1e-6)
        return np.log(likely / (1 - likely)).astype(np.float32)


@pytest.mark.system
def test_a_search_that_sees_colours_passes_and_one_with_channels_swapped_does_not() -> None:
    tool = tool_with_checks("scanpath")
    for channels, missed in (({"red": 0, "blue": 2}, 0), ({"red": 2, "blue": 0}, 2)):
        backend = TargetSearch()
        backend._model = Heat(channels)
        assert sum(check.wrong is not None for check in run_checks(tool, backend)) == missed
