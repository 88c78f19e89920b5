"""What `hybrid tools new NAME --learned` writes: a tool around a network, and a test on a tiny checkpoint."""

TEMPLATE = '''"""Which image is most like the first, by the features of a network: an example to be changed.

`hybrid tools run {name} first.jpg second.jpg third.jpg --weights {name}_tiny{path}`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hybrid.errors import ToolError
from hybrid.tool import Args, BackendCard, Card, CheckCase, Evidence, KnownAnswer, Pixels, Provenance, Request, Tool
from hybrid.tool.backends import Learned
from hybrid.tool.checkpoint import load_verified
from hybrid.tool.rules import OneCall, later_image

WEIGHTS = "facebook/dinov2-small"
"""Loaded where `--weights {name}=DIR_OR_ID` names no others."""
MOST_ELONGATED = 8.0
"""Processors scale by the short side, so that a strip would become millions of pixels."""


class {title}Args(Args):
    """No arguments."""


class Features:
    """A verified network with its processor on a device: one vector an image."""

    def __init__(self, weights: str, device: str) -> None:
        """Load. Raises `WeightsError` where weights are absent, or a tensor is not in them."""
        self._loaded = load_verified("AutoModel", weights, device=device)
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

        with torch.inference_mode():
            found = self._loaded.model(pixel_values=torch.cat(list(tensors)).to(self._loaded.device))
        vectors = found.pooler_output.float().cpu().numpy()
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


def _stripes(first_is_same: bool) -> CheckCase:
    """Stripes, a paler copy of them, and plain grey, which is less like them."""
    rows = np.where(np.arange(64) // 8 % 2, 230, 30).astype(np.uint8)
    stripes = np.broadcast_to(rows[:, None, None], (64, 64, 3)).copy()
    others = (np.clip(stripes, 40, 220), np.full((64, 64, 3), 128, np.uint8))
    images = (stripes, *(others if first_is_same else reversed(others)))
    wanted = 0 if first_is_same else 1
    return CheckCase(images, {{}}, lambda it: None if it.data["best"] == wanted else "the paler copy is more alike")


RULES = dict.fromkeys(("Visual_Similarity", "Jigsaw"), OneCall("{name}", later_image))
"""By route of a question what it answers without an MLLM (`--solver specialist`). The second is here because its
questions can be generated, so that the tool can be tried without data: pieces of a picture are like it."""

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
                summary="Cosine of the features of a vision transformer.",
                weights=WEIGHTS,
                provenances=(Provenance(WEIGHTS, "Apache-2.0", ()),),
                batch=8,
                learned_tolerance=1e-3,
            ),
        ),
        images=(2, 6),
    ),
    args={title}Args,
    checks=(
        KnownAnswer("the second image", lambda: _stripes(True)),
        KnownAnswer("the third image", lambda: _stripes(False)),
    ),
    rules=RULES,
)
'''

TEST = '''"""`{name}` on a tiny checkpoint with random weights, in the real format: `pytest {file}`.

`python {file} FOLDER` writes that checkpoint, for trying the commands without weights.
"""

{head}

def save_tiny(folder: Path) -> None:
    """A network of the family that the tool loads, as small as it can be, and its processor."""
    import torch
    import transformers

    torch.manual_seed(0)
    sizes = {{"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 56, "patch_size": 14}}
    transformers.Dinov2Model(transformers.Dinov2Config(**sizes)).save_pretrained(folder)
    side = {{"height": 56, "width": 56}}
    transformers.BitImageProcessor(size={{"shortest_edge": 56}}, crop_size=side).save_pretrained(folder)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("{name}")
    save_tiny(folder)
    return folder


def test_it_keeps_the_contract(weights: Path) -> None:
    options = ServiceOptions("learned", {{"{name}": str(weights)}}, unchecked=True)
    assert breaches("{name}", load("tools", "{name}"), options) == ()


def test_weights_answer_what_is_known_and_see_the_pictures_that_their_processor_makes(weights: Path) -> None:
    loader = Loader(BackendChoice("learned", {{"{name}": str(weights)}}))
    assert loader.load(load("tools", "{name}")).weights == weights


def test_a_tensor_that_no_file_holds_is_refused(weights: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(weights, damaged)
    tensors = load_file(damaged / "model.safetensors")
    tensors.pop("layernorm.bias")
    save_file(tensors, damaged / "model.safetensors", {{"format": "pt"}})
    with pytest.raises(WeightsError, match="missing"):
        Loader(BackendChoice("learned", {{"{name}": str(damaged)}})).load(load("tools", "{name}"))


if __name__ == "__main__":
    save_tiny(Path(sys.argv[1]))
    print(f"wrote {{sys.argv[1]}}")
'''
HEAD = """import shutil
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from hybrid.config import BackendChoice, ServiceOptions
from hybrid.errors import WeightsError
"""
TAIL = """from hybrid.serving.contract import breaches
from hybrid.serving.loader import Loader
"""
INSIDE = f"{HEAD}from hybrid.registry import load\n{TAIL}"
BESIDE = f"""{HEAD}from hybrid.registry import load, look_also_in
{TAIL}
look_also_in([Path(__file__).parent], __file__)
"""
