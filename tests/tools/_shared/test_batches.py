"""Learned backends in stages: a batch gives the same outputs as single requests, in fewer forward passes."""

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from hybrid.config import BackendChoice
from hybrid.core.types import Json
from hybrid.plugins.registry import load, names
from hybrid.serving.loader import Loader
from hybrid.tool import Request, Stages, Tool
from tests.tables import cases, stored
from tests.tools.tiny_checkpoints import Checkpoints
from tools._shared.batches import by_form, together

SIZES = ((120, 90), (90, 120), (120, 90), (200, 60))
# Arguments that are used in turn, for a tool or for one of its families; other tools are called without any.
ASKED: Mapping[str, list[dict[str, Json]]] = stored(__file__, "ASKED")
FAMILIES = tuple(cases(__file__, "FAMILIES")[1])
# The module whose passes count, if a smaller module runs after it: for example a decoder of matches or masks.
NETWORKS = {"efficientloftr": "EfficientLoFTRModel", "sam2": "Sam2VisionModel", "sam3": "Sam3ViTModel"}


@pytest.fixture
def checkpoint(depth_checkpoint: Checkpoints, things_checkpoint: Checkpoints, tmp_path: Path) -> Checkpoints:
    def get(family: str) -> Path:
        result = (depth_checkpoint if family.startswith("depth") else things_checkpoint)(family)
        if family != "efficientloftr":
            return result
        # In the tiny network the outermost cells have no window; no match may be there.
        copy = Path(shutil.copytree(result, tmp_path / family))
        config = json.loads((copy / "config.json").read_text())
        (copy / "config.json").write_text(json.dumps({**config, "coarse_matching_border_removal": 2}))
        return copy

    return get


@pytest.fixture
def passes() -> Iterator[list[str]]:
    """Record the class of every module that has run, whatever code called it."""
    from torch.nn.modules.module import register_module_forward_hook

    seen: list[str] = []
    handle = register_module_forward_hook(lambda module, *_: seen.append(type(module).__name__))
    yield seen
    handle.remove()


def pixels(seed: int, size: tuple[int, int]) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)


def images(tool: Tool, place: int) -> tuple[np.ndarray, ...]:
    size = SIZES[place % len(SIZES)]
    items = tuple(pixels(10 * place + n, size) for n in range(max(1, tool.card.images[0])))
    if tool.card.name != "jigsaw":
        return items
    # Both pieces fit the seams equally well, so the network is used. The network is not used for noise of single
    # pixels.
    small = (size[0] // 16 + 1, size[1] // 16 + 1)
    copied, other = (cv2.resize(pixels(10 * place + n, small), size, interpolation=cv2.INTER_NEAREST) for n in range(2))
    middle, centre = size[1] // 2, size[0] // 2
    right, wrong = copied[middle:, centre:].copy(), copied[middle:, centre:].copy()
    wrong[3:, 3:] = other[middle + 3 :, centre + 3 :]
    copied[middle:, centre:] = 0
    return copied, right, wrong


def requests(tool: Tool, family: str) -> list[Request[Any]]:
    name = tool.card.name
    value = ASKED.get(f"{name} {family}", ASKED.get(name, [{}]))
    return [
        Request(images(tool, place), tool.args.model_validate(value[place % len(value)])) for place in range(len(SIZES))
    ]


def differences(item: Json, other: Json, path: str = "") -> Iterator[tuple[str, float]]:
    """Yield each difference of two outputs' numbers, with its path; everything else must be equal."""
    if isinstance(item, Mapping):
        assert isinstance(other, Mapping)
        assert item.keys() == other.keys()
        for key in item:
            yield from differences(item[key], other[key], f"{path}.{key}")
    elif isinstance(item, list | tuple):
        assert isinstance(other, list | tuple)
        assert len(item) == len(other), path
        for a, b in zip(item, other, strict=True):
            yield from differences(a, b, path)
    elif isinstance(item, float) and isinstance(other, int | float):
        yield path, abs(item - other)
    else:
        assert item == other, path


def test_every_learned_backend_that_promises_batches_keeps_to_the_stages_and_states_its_tolerance() -> None:
    learned = [card for name in names("tools") if (card := load("tools", name).backend("learned")) is not None]
    batching = [card for card in learned if card.batch > 1]
    assert len(batching) >= len({tool for tool, _ in FAMILIES})
    assert all(isinstance(card.make(), Stages) and card.learned_tolerance > 0 for card in batching)


@pytest.mark.parametrize(("name", "family"), FAMILIES)
def test_a_batch_finds_what_each_request_finds_alone(
    name: str, family: str, checkpoint: Checkpoints, passes: list[str]
) -> None:
    tool: Tool = load("tools", name)
    card = tool.backend("learned")
    backend = card.make()
    backend.setup("cpu", str(checkpoint(family)))
    question = requests(tool, family)
    passes.clear()
    together = backend.run(question)
    network = NETWORKS.get(family, passes[-1])
    in_batches = passes.count(network)
    passes.clear()
    alone = [backend.run([request])[0] for request in question]
    assert in_batches < passes.count(network)
    for batched, single in zip(together, alone, strict=True):
        items = list(differences(dict(batched.data), dict(single.data)))
        # Box coordinates in pixels are a fraction times the image size, so their tolerance is 200 times larger.
        assert all(value <= card.learned_tolerance * (200 if path.endswith("_px") else 1) for path, value in items)
        assert batched.confidence == pytest.approx(single.confidence, abs=10 * card.learned_tolerance)
    assert len({str(result.data) for result in alone}) > 1
    prepared = [backend.prepare(request) for request in question]
    for members in by_form([backend.batch_key(item) for item in prepared], most=len(question)):
        counts = []
        for some in (members[:1], members):
            passes.clear()
            backend.compute([prepared[place] for place in some])
            counts.append(passes.count(network))
        assert counts[0] == counts[1]


@pytest.mark.parametrize(("name", "family"), FAMILIES)
def test_every_family_answers_in_fewer_bits(name: str, family: str, checkpoint: Checkpoints) -> None:
    import torch

    tool: Tool = load("tools", name)
    folder = checkpoint(family)
    if family == "efficientloftr":
        # With rounding, one more row of the tiny network's cells has matches without a window.
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, "coarse_matching_border_removal": 3}))
    choice = {"weights": {name: str(folder)}, "unchecked": True}
    exact, rounded = (
        Loader(BackendChoice("learned", dtype=dtype, **choice)).load(tool).backend  # type: ignore[arg-type]
        for dtype in ("float32", "bfloat16")
    )
    seen = set()
    for network in rounded.networks:
        for part in network.module.modules():
            part.register_forward_hook(lambda _, __, output: seen.add(getattr(output, "dtype", None)))
    request = requests(tool, family)[:2]
    for item, other in zip(exact.run(request), rounded.run(request), strict=True):
        assert item.data.keys() == other.data.keys()
    assert torch.bfloat16 in seen


@pytest.mark.system
def test_to_cuda_a_batch_goes_through_pinned_memory_without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    empty, went = torch.empty, list[object]()

    def pinned(*shape: Any, pin_memory: bool, **other_names: Any) -> Any:
        went.append(pin_memory)
        return empty(*shape, **other_names)

    def there(tensor: Any, device: str, *, non_blocking: bool = False) -> Any:
        went.append((device, tuple(tensor.shape), non_blocking))
        return tensor

    monkeypatch.setattr(torch, "empty", pinned)
    monkeypatch.setattr(torch.Tensor, "to", there)
    assert together([torch.ones(1, 2), torch.zeros(2, 2)], "cuda:1").tolist() == [[1, 1], [0, 0], [0, 0]]
    assert went == [True, ("cuda:1", (3, 2), True)]


@pytest.mark.system
def test_what_lies_on_a_device_already_and_what_does_not_become_one_batch_there() -> None:
    import torch

    assert together([torch.ones(1, 2), torch.ones(1, 2, device="meta")], "meta").shape == (2, 2)
