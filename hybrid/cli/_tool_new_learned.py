"""The files of `hybrid tools new NAME --learned`: a tool around a network, and a test on a tiny checkpoint.

`parts` gives what differs between a checkpoint of transformers and a torch module that the file defines.
"""

from __future__ import annotations

from collections.abc import Mapping

TEMPLATE = '''"""Which image is most like the first, by the features of a network: an example to be changed.

`hybrid tools run {name} first.jpg second.jpg third.jpg --weights {name}_tiny{path}`
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hybrid.errors import ToolError
from hybrid.tool import (
    Args,
    BackendCard,
    Card,
    CheckCase,
    CheckSeries,
    Evidence,
    KnownAnswer,
    Pixels,
    Provenance,
    Request,
    Tool,
)
from hybrid.tool.backends import Learned
from hybrid.tool.checkpoint import {loader}
from hybrid.tool.rules import OneCall, later_image

WEIGHTS = "{weights}"
"""Loaded where `--weights {name}=DIR_OR_ID` names no others."""
MOST_ELONGATED = 8.0
"""Processors scale by the short side, so that a strip would become millions of pixels."""


class {title}Args(Args):
    """No arguments."""


{network}class Features:
    """A verified network with its processor on a device: one vector an image."""

    def __init__(self, weights: str, device: str) -> None:
        """Load. Raises `WeightsError` where weights are absent, or a tensor is not in them."""
        self._loaded = {load}
        self.version = self._loaded.version

    def prepare(self, pixels: Pixels) -> Any:
        """An image (H, W, 3) as its processor makes it: a tensor (1, 3, h, w)."""
        if max(pixels.shape[:2]) > MOST_ELONGATED * min(pixels.shape[:2]):
            raise ToolError(f"{name}: an image is more elongated than {{MOST_ELONGATED:g}} : 1")
        # Said explicitly: an image of 3 rows would be taken for one of 3 channels.
        made = self._loaded.processor(images=[pixels], return_tensors="pt", input_data_format="channels_last")
        return made["pixel_values"]

    def compute(self, tensors: Sequence[Any]) -> npt.NDArray[np.float32]:
        """One unit vector a tensor, in one batch."""
        import torch

        batch = torch.cat(list(tensors)).to(self._loaded.device)
        with torch.inference_mode():
            found = self._loaded.{call}
        vectors = found.float().cpu().numpy()
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class Network(Learned[{title}Args, list[Any], npt.NDArray[np.float32], Features]):
    """The learned backend: the stages of a request; only `compute` needs the device."""

    def __init__(self) -> None:
        super().__init__("{name}", "1", Features, WEIGHTS)

    def prepare(self, request: Request[{title}Args]) -> list[Any]:
        """The inputs of the network."""
        return [self.model.prepare(pixels) for pixels in request.images]

    def compute(self, prepared: Sequence[list[Any]]) -> list[npt.NDArray[np.float32]]:
        """The vectors of each request, all in one batch."""
        vectors = self.model.compute([tensor for tensors in prepared for tensor in tensors])
        ends = np.cumsum([len(tensors) for tensors in prepared])
        return np.split(vectors, ends[:-1])

    def finish(self, request: Request[{title}Args], prepared: list[Any], output: npt.NDArray[np.float32]) -> Evidence:
        """The evidence: numbers in `data` for rules, a few words for a model."""
        cosines = [round(float(one @ output[0]), 4) for one in output[1:]]
        best = int(np.argmax(cosines))
        said = f"Image {{best + 2}} is most like image 1 (cosine {{cosines[best]:.2f}})."
        return Evidence(said, {{"best": best, "cosine": cosines}}, confidence=0.6)


PERIOD_PX, SIDE_PX = 28, 224
DARK, BRIGHT, DIM_LIGHT = (80, 60, 40), (230, 210, 180), (0.6, 0.5, 0.35)
ENOUGH = CheckSeries("the same pattern in another light, which random weights miss", 5)


def _waves() -> list[npt.NDArray[np.float64]]:
    """Six patterns: upright, lying and slanted stripes, plaid, checks, rings."""
    side = np.arange(-SIDE_PX / 2, SIDE_PX / 2) * 2 * np.pi / PERIOD_PX
    x, y = np.meshgrid(side, side)
    slanted = np.cos((x + y) / np.sqrt(2))
    return [np.cos(x), np.cos(y), slanted, np.cos(x) + np.cos(y), np.sin(x) * np.sin(y), np.cos(np.hypot(x, y))]


def _drawn(wave: npt.NDArray[np.float64], light: Sequence[float] = (1, 1, 1)) -> Pixels:
    """A pattern, half of it dark and half bright, in a light."""
    colours = np.where((wave > np.median(wave))[..., None], BRIGHT, DARK)
    return np.asarray(colours * np.asarray(light), np.uint8)


def _same_pattern(number: int) -> CheckCase:
    """A pattern, and among two others in exactly its colours the same one, turned upside down in a dim light.

    A trained network knows the pattern; the features of random weights follow the colours, which are always wrong.
    """
    waves, place = _waves(), number % 3
    candidates = [_drawn(waves[(number + step) % len(waves)]) for step in (1, 2)]
    candidates.insert(place, _drawn(waves[number][::-1, ::-1], DIM_LIGHT))
    wrong = f"image {{place + 2}} has the pattern of image 1"
    return CheckCase((_drawn(waves[number]), *candidates), {{}}, lambda it: None if it.data["best"] == place else wrong)


RULES = {{"Jigsaw": OneCall("{name}", later_image)}}
"""By route of a question what it answers without an MLLM (`--solver specialist`): the piece that is most like the
picture. An example whose questions can be generated; name the route of your own questions instead."""

TOOL = Tool(
    card=Card(
        name="{name}",
        summary="Says which of the other images is most like image 1, with the likeness of each.",
        limits="Says nothing about why; images of one palette look alike to it.",
        backends=(
            BackendCard(
                name="learned",
                version="1",
                make=Network,
                summary="Cosine of the features of {kind}.",
                weights=WEIGHTS,
                provenances=(Provenance(WEIGHTS, "{licence}", ()),),
                batch=8,
                learned_tolerance=1e-3,
            ),
        ),
        images=(2, 6),
    ),
    args={title}Args,
    checks=tuple(KnownAnswer(f"pattern {{n + 1}}", partial(_same_pattern, n), ENOUGH) for n in range(6)),
    rules=RULES,
)
'''

TEST = '''"""`{name}` on a tiny checkpoint in the real format, whose filters are set by hand: `pytest {file}`.

`python {file} FOLDER` writes that checkpoint, for trying the commands without weights. With a number
behind FOLDER its weights are random, and refused.
"""

{head}

def filters() -> torch.Tensor:
    """Eight directions of edges, each with its negative: enough to know a pattern in any light."""
    side = torch.arange(7) - 3.0
    down, across = torch.meshgrid(side, side, indexing="ij")
    waves = []
    for angle in np.arange(8) * np.pi / 8:
        wave = torch.sin((across * np.cos(angle) + down * np.sin(angle)) * 2 * np.pi / 7)
        wave *= torch.exp(-(across**2 + down**2) / 8)
        waves += [wave, -wave]
    return torch.stack(waves)[:, None].repeat(1, 3, 1, 1)


def save_tiny(folder: Path, seed: int | None = None) -> None:
    """A network as the tool loads it and its processor: with the filters above, or random weights of a seed."""
    torch.manual_seed(seed or 0)
{made}
    side = {{"height": 56, "width": 56}}
    processor = transformers.BitImageProcessor(size={{"shortest_edge": 56}}, crop_size=side)
    processor.save_pretrained(folder)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("{name}")
    save_tiny(folder)
    return folder


def loaded(weights: Path) -> LoadedBackend:
    return Loader(BackendChoice("learned", {{"{name}": str(weights)}})).load(load("tools", "{name}"))


def test_it_keeps_the_contract(weights: Path) -> None:
    options = ServiceOptions("learned", {{"{name}": str(weights)}}, unchecked=True)
    assert breaches("{name}", load("tools", "{name}"), options) == ()


def test_the_known_answers_accept_weights_that_know_them(weights: Path) -> None:
    assert loaded(weights).weights == weights


@pytest.mark.parametrize("seed", range(3))
def test_the_known_answers_refuse_random_weights(seed: int, tmp_path: Path) -> None:
    save_tiny(tmp_path, seed)
    with pytest.raises(WeightsError, match="known answers"):
        loaded(tmp_path)


def test_the_network_is_given_what_the_processor_of_its_weights_makes(weights: Path) -> None:
    backend: Any = loaded(weights).backend
    assert [one.wrong for one in run_probes(load("tools", "{name}"), backend)] == [None]
    processor = transformers.AutoImageProcessor.from_pretrained(weights, local_files_only=True)
    picture = chart(300, 400)
    wanted = processor(images=[picture], return_tensors="pt")["pixel_values"]
    (given,) = backend.prepare(Request((picture,), load("tools", "{name}").parse({{}})))
    assert given.shape == wanted.shape
    assert torch.allclose(given, wanted)


def test_a_tensor_that_no_file_holds_is_refused(weights: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(weights, damaged)
    tensors = load_file(damaged / "model.safetensors")
    tensors.pop(min(name for name in tensors if name.endswith("weight")))
    save_file(tensors, damaged / "model.safetensors", {{"format": "pt"}})
    with pytest.raises(WeightsError, match="missing"):
        loaded(damaged)


if __name__ == "__main__":
    save_tiny(Path(sys.argv[1]), *map(int, sys.argv[2:]))
    print(f"wrote {{sys.argv[1]}}")
'''
HEAD = """import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from hybrid.config import BackendChoice, ServiceOptions
from hybrid.errors import WeightsError
"""
TAIL = """from hybrid.serving.contract import breaches
from hybrid.serving.loader import LoadedBackend, Loader
from hybrid.serving.input_check import chart, run_probes
from hybrid.tool import Request
"""
INSIDE = f"{HEAD}from hybrid.registry import load\n{TAIL}"
BESIDE = f"""{HEAD}from hybrid.registry import load, look_also_in
{TAIL}
look_also_in([Path(__file__).parent], __file__)
"""

HUB: Mapping[str, str] = {
    "loader": "load_verified",
    "weights": "facebook/dinov2-small",
    "network": "",
    "load": 'load_verified("AutoModel", weights, device=device)',
    "call": "model(pixel_values=batch).pooler_output.flatten(1)",
    "kind": "a vision transformer",
    "licence": "Apache-2.0",
    "made": """    sizes: Any = {"embedding_size": 16, "hidden_sizes": [16], "depths": [1], "layer_type": "basic"}
    network = transformers.ResNetModel(transformers.ResNetConfig(**sizes))
    if seed is None:
        for name, tensor in network.state_dict().items():
            if name.endswith("convolution.weight"):
                tensor.copy_(filters() if name.startswith("embedder") else torch.zeros_like(tensor))
    network.save_pretrained(folder)""",
}
MODULE: Mapping[str, str] = {
    "loader": "load_module",
    "weights": "OWNER/NAME",
    "network": '''def network() -> Any:
    """The torch module, with any weights: build yours here."""
    import torch

    class Filters(torch.nn.Module):
        """One layer of filters, and the mean of what each of them finds: (n, 3, h, w) to (n, 16)."""

        def __init__(self) -> None:
            super().__init__()
            self.filters = torch.nn.Conv2d(3, 16, 7, bias=False)

        def forward(self, pictures: torch.Tensor) -> torch.Tensor:
            """One vector a picture."""
            return self.filters(pictures).relu().mean(dim=(2, 3))

    return Filters()


''',
    "load": "load_module(network(), weights, device=device)",
    "call": "model(batch)",
    "kind": "a layer of filters",
    "licence": "not stated",
    "made": """    from tools.{name} import network

    module = network()
    if seed is None:
        module.load_state_dict({{"filters.weight": filters()}})
    folder.mkdir(parents=True, exist_ok=True)
    save_file(module.state_dict(), folder / "model.safetensors")""",
}


def parts(name: str, *, module: bool) -> Mapping[str, str]:
    """The parts of TEMPLATE and TEST around a torch module of one's own, or a checkpoint of transformers."""
    return {**MODULE, "made": MODULE["made"].format(name=name)} if module else HUB
