"""`my_tool` on a tiny checkpoint in the real format, whose filters are set by hand: `pytest test_my_tool.py`.

`python test_my_tool.py FOLDER` writes that checkpoint, for trying the commands without weights. With a number
behind FOLDER its weights are random, and refused.
"""

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from hybrid.config import BackendChoice, ServiceOptions
from hybrid.core.errors import HybridError, WeightsError
from hybrid.plugins.discovery import add_search_path
from hybrid.plugins.registry import load
from hybrid.serving.contract import breaches
from hybrid.serving.input_check import chart, run_probes
from hybrid.serving.loader import LoadedBackend, Loader
from hybrid.tool import Request

add_search_path([Path(__file__).parent], __file__)


def filters() -> torch.Tensor:
    """Return filters for eight edge directions and their negatives, enough to recognise a pattern in any light."""
    side = torch.arange(7) - 3.0
    down, across = torch.meshgrid(side, side, indexing="ij")
    waves = []
    for angle in np.arange(8) * np.pi / 8:
        wave = torch.sin((across * np.cos(angle) + down * np.sin(angle)) * 2 * np.pi / 7)
        wave *= torch.exp(-(across**2 + down**2) / 8)
        waves += [wave, -wave]
    return torch.stack(waves)[:, None].repeat(1, 3, 1, 1)


# Side of the pictures that the network takes.
SIDE_PX = 56
# What another network needs here.
TO_EDIT = "SIDE_PX, or the processor in save_tiny(),"


def tiny_network() -> Any:
    """Return the tool's network with random weights; if it is large, return a small variant."""
    from tools.my_tool import network

    return network()


def is_example(network: Any) -> bool:
    """Return whether a network is the example's, whose filters can be set by hand."""
    shapes = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    return shapes == {"filters.weight": (16, 3, 7, 7)}


def save_tiny(folder: Path, seed: int | None = None) -> None:
    """Save a network and its processor as the tool loads them, with the filters above or seeded random weights.

    Another network than the example's has random weights in any case.
    """
    torch.manual_seed(seed or 0)
    network = tiny_network()
    if seed is None and is_example(network):
        network.load_state_dict({"filters.weight": filters()})
    folder.mkdir(parents=True, exist_ok=True)
    save_file(network.state_dict(), folder / "model.safetensors")
    side = {"height": SIDE_PX, "width": SIDE_PX}
    processor = transformers.BitImageProcessor(size={"shortest_edge": SIDE_PX}, crop_size=side)
    processor.save_pretrained(folder)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("my_tool")
    save_tiny(folder)
    try_network(folder)
    return folder


def try_network(weights: Path) -> None:
    """Fail with what to edit, if the tool cannot load or use the tiny network."""
    case = load("tools", "my_tool").checks[0].pose()
    try:
        backend: Any = loaded(weights, unchecked=True).backend
        backend.run([Request(case.images, load("tools", "my_tool").parse(case.args), case.needs)])
    except (HybridError, RuntimeError, ValueError, TypeError, LookupError, AttributeError) as error:
        pytest.fail(
            f"my_tool cannot use the tiny network of this test: {error}\n"
            f"The tool loads another network than the test saves: edit {TO_EDIT} in {Path(__file__).name}.\n"
            "Its output has another shape: edit Features.compute and Network.finish in my_tool.py.",
            pytrace=False,
        )


def loaded(weights: Path, *, unchecked: bool = False) -> LoadedBackend:
    choice = BackendChoice("learned", {"my_tool": str(weights)}, unchecked=unchecked)
    return Loader(choice).load(load("tools", "my_tool"))


def test_it_keeps_the_contract(weights: Path) -> None:
    options = ServiceOptions("learned", {"my_tool": str(weights)}, unchecked=True)
    assert breaches("my_tool", load("tools", "my_tool"), options) == ()


def test_the_known_answers_accept_weights_that_know_them(weights: Path) -> None:
    if not is_example(tiny_network()):
        pytest.skip(
            "another network knows its answers by trained weights alone: hybrid tools check my_tool --weights DIR"
        )
    assert loaded(weights).weights == weights


@pytest.mark.parametrize("seed", range(3))
def test_the_known_answers_refuse_random_weights(seed: int, tmp_path: Path) -> None:
    save_tiny(tmp_path, seed)
    try_network(tmp_path)
    refusal = ""
    try:
        loaded(tmp_path)
    except WeightsError as error:
        refusal = str(error)
    assert "known answers" in refusal, "random weights pass the known answers: draw harder ones (checks in my_tool.py)"


def test_the_network_is_given_what_the_processor_of_its_weights_makes(weights: Path) -> None:
    backend: Any = loaded(weights, unchecked=True).backend
    assert [probe.wrong for probe in run_probes(load("tools", "my_tool"), backend)] == [None]
    processor = transformers.AutoImageProcessor.from_pretrained(weights, local_files_only=True)
    picture = chart(300, 400)
    expected = processor(images=[picture], return_tensors="pt")["pixel_values"]
    (pixels,) = backend.prepare(Request((picture,), load("tools", "my_tool").parse({})))
    assert pixels.shape == expected.shape
    assert torch.allclose(pixels, expected)


def test_a_tensor_that_no_file_holds_is_refused(weights: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(weights, damaged)
    tensors = load_file(damaged / "model.safetensors")
    tensors.pop(min(tensors))
    save_file(tensors, damaged / "model.safetensors", {"format": "pt"})
    with pytest.raises(WeightsError, match="missing"):
        loaded(damaged)


if __name__ == "__main__":
    save_tiny(Path(sys.argv[1]), *map(int, sys.argv[2:]))
    print(f"wrote {sys.argv[1]}")
