"""Checks of inputs: every mistake with a picture's colours is detected and named; scaling and padding are allowed."""

from collections.abc import Callable, Sequence
from typing import Any

import cv2
import numpy as np
import pytest

from hybrid.core.errors import WeightsError
from hybrid.serving.input_check import IMAGENET, SIZES, chart, run_probes, wrong_colours
from hybrid.tool import Args, BackendCard, Card, CheckCase, Evidence, KnownAnswer, Pixels, Request, Tool
from hybrid.tool.networks import Network, PictureInput, announce, collecting, grey, normalised

WANTS = normalised(*IMAGENET)
Change = Callable[[np.ndarray], np.ndarray]


def tensor(pixels: Pixels, wants: PictureInput = WANTS) -> np.ndarray:
    """Return a picture (H, W, 3) as a network's input (C, H, W)."""
    values = pixels.astype(np.float64) / 255 @ np.asarray(wants.weights).T + np.asarray(wants.offsets)
    return values.transpose(2, 0, 1)


def seen(values: np.ndarray, wants: PictureInput = WANTS) -> str | None:
    return wrong_colours(values.reshape(values.shape[0], -1).T, wants)


@pytest.mark.parametrize(
    ("wants", "change", "message"),
    [
        (WANTS, lambda p: tensor(p[..., ::-1]), "with red and blue exchanged (BGR); expected"),
        (WANTS, lambda p: tensor(p)[::-1], "with red and blue exchanged (BGR) after normalisation; expected"),
        (WANTS, lambda p: tensor(255 - p), "network inverted; expected"),
        (WANTS, lambda p: tensor(255 - p[..., ::-1]), "inverted, with red and blue exchanged (BGR); expected"),
        (WANTS, lambda p: tensor(p, normalised()), "with no mean and standard deviation (0..1); expected"),
        (WANTS, lambda p: tensor(p, normalised((0.5,) * 3, (0.5,) * 3)), "standard deviation of 0.5 (-1..1); expected"),
        (WANTS, lambda p: tensor(p, normalised()) * 255, "with values 0..255 that are not scaled; expected"),
        (normalised(), lambda p: tensor(p, WANTS), "with ImageNet's mean and standard deviation; expected"),
        (normalised(), lambda p: tensor(p[..., ::-1], WANTS), "(BGR) and with ImageNet's mean and"),
        (normalised(*IMAGENET, order="BGR"), tensor, "with red and blue exchanged (BGR)"),
        (grey(), lambda p: tensor(p[..., ::-1], grey()), "with red and blue exchanged (BGR); expected"),
        (grey(), lambda p: tensor(255 - p, grey()), "network inverted; expected"),
        (grey(), lambda p: tensor(p, grey(0.5, 0.5)), "standard deviation of 0.5 (-1..1); expected"),
        (WANTS, lambda p: tensor(p) / 255, "the picture reaches the network changed: channels of mean"),
        (WANTS, lambda p: tensor(p[..., [1, 0, 2]]), "the picture reaches the network changed"),
        (WANTS, lambda p: tensor(p, grey()), "the picture reaches the network changed"),
        (WANTS, lambda p: tensor(p).transpose(2, 1, 0)[:3], "the picture reaches the network changed"),
    ],
)
def test_every_mistake_is_named(wants: PictureInput, change: Change, message: str) -> None:
    picture = cv2.resize(chart(*SIZES[0]), (320, 240), interpolation=cv2.INTER_AREA)
    assert seen(tensor(picture, wants), wants) is None
    wrong = seen(change(picture), wants)
    assert message in str(wrong)
    assert "expected is channels of mean" in str(wrong)


def mean() -> Any:
    """Return a network whose picture may enter at a lower module, in a dictionary, or as patches in a row."""
    from torch import nn

    class Mean(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Identity()

        def forward(self, values: Any) -> Any:
            return self.inner(values["image"] if isinstance(values, dict) else values)

    return Mean()


class Backend:
    """A backend around one network: `change` is applied to the picture, and `way` passes the picture to the network."""

    def __init__(self, change: Change, way: Callable[[Any, Any], Any], wants: Any = lambda: WANTS) -> None:
        self.module, self.change, self.way = mean(), change, way
        self.networks = (Network("net", self.module, wants),)
        self.sizes: list[tuple[int, ...]] = []

    def setup(self, device: str, weights: str | None) -> None:
        """Do nothing, because nothing is loaded."""

    def run(self, requests: Sequence[Request[Args]]) -> list[Evidence]:
        import torch

        for request in requests:
            for pixels in request.images:
                self.sizes.append(pixels.shape[:2])
                self.way(self.module, torch.from_numpy(np.ascontiguousarray(self.change(pixels)))[None])
        return [Evidence("", {}, 1.0) for _ in requests]


def tool(*checks: KnownAnswer, probe: Callable[[Pixels], CheckCase] | None = None, images: int = 1) -> Tool:
    card = BackendCard("learned", "1", mean, "", weights="a/b")
    return Tool(Card("seer", "", "", (card,), images=(images, 2)), Args, checks, probe)


def patches(values: Any) -> Any:
    """Return (1, 3, h, w) as 16 px patches in a row, channels last."""
    cut = values[..., : values.shape[-2] // 16 * 16, : values.shape[-1] // 16 * 16]
    folded = cut.unfold(2, 16, 16).unfold(3, 16, 16)
    return folded.permute(0, 2, 3, 4, 5, 1).reshape(1, -1, 768)


def series(values: Any) -> Any:
    import torch

    return torch.stack([values, values], dim=1)


WAYS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda net, values: net(values),
    lambda net, values: net(values=values),
    lambda net, values: net({"image": values}),
    lambda net, values: net(series(values)),
    lambda net, values: net.inner(values),
    lambda net, values: net(patches(values)),
)


@pytest.mark.system
@pytest.mark.parametrize("way", WAYS)
def test_pictures_are_seen_wherever_and_however_they_enter(way: Callable[[Any, Any], Any]) -> None:
    assert [probe.wrong for probe in run_probes(tool(), Backend(tensor, way))] == [None]
    (result,) = run_probes(tool(), Backend(lambda pixels: tensor(pixels[..., ::-1]), way))
    assert "(BGR)" in str(result.wrong)


def test_what_does_not_reach_a_network_is_said_with_its_reason() -> None:

    def fail(net: Any, values: Any) -> None:
        raise ValueError("no such shape")

    (probe,) = run_probes(tool(), Backend(tensor, fail))
    assert probe.wrong == "no picture reached the network (ValueError: no such shape)"
    with pytest.raises(RuntimeError, match="out of memory"):
        run_probes(tool(), Backend(tensor, lambda net, values: torch_is_full()))


def torch_is_full() -> None:
    raise OutOfMemoryError("CUDA out of memory")


class OutOfMemoryError(RuntimeError):
    """The error that torch raises when a GPU is full, recognised by this name."""


def test_the_tools_own_probe_is_asked_and_else_its_known_answers_in_turn() -> None:
    def never(_: Evidence) -> str | None:
        return None

    names: list[str] = []

    def known_answer(name: str, count: int) -> KnownAnswer:
        def pose() -> CheckCase:
            names.append(name)
            return CheckCase((np.zeros((9, 9, 3), np.uint8),) * count, {}, never)

        return KnownAnswer(name, pose)

    checks = (known_answer("none", 0), known_answer("one", 1), known_answer("two", 1))
    assert [probe.wrong for probe in run_probes(tool(*checks), Backend(tensor, WAYS[0]))] == [None]
    assert names == ["none", "one"] * len(SIZES)
    current = tool(*checks, probe=lambda picture: CheckCase((255 - picture,), {}, never))
    assert "inverted" in str(run_probes(current, Backend(tensor, WAYS[0]))[0].wrong)


def test_networks_without_pictures_are_not_compared_and_unreadable_wishes_are_said() -> None:
    assert run_probes(tool(), Backend(tensor, WAYS[0], None)) == []

    def wishes() -> PictureInput:
        raise WeightsError("its image processor does not accept an RGB picture")

    (probe,) = run_probes(tool(), Backend(tensor, WAYS[0], wishes))
    assert probe.wrong == "its image processor does not accept an RGB picture"


def test_what_is_loaded_is_collected_where_somebody_collects() -> None:
    from torch import nn

    item, two = (Network(name, nn.Identity()) for name in ("one", "two"))
    announce(item)
    with collecting() as result:
        announce(item)
        with collecting() as inner:
            announce(two)
    announce(two)
    assert (result, inner) == ([item], [two])
