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
from hybrid.core.errors import WeightsError
from hybrid.plugins.registry import add_search_path, load
from hybrid.serving.contract import breaches
from hybrid.serving.input_check import chart, run_probes
from hybrid.serving.loader import LoadedBackend, Loader
from hybrid.tool import Request

add_search_path([Path(__file__).parent], __file__)


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


def is_example() -> bool:
    """Whether `network()` is still that of the example, whose filters can be set by hand."""
    from tools.my_tool import network

    shapes = {name: tuple(tensor.shape) for name, tensor in network().state_dict().items()}
    return shapes == {"filters.weight": (16, 3, 7, 7)}


def save_tiny(folder: Path, seed: int | None = None) -> None:
    """A network as the tool loads it and its processor: with the filters above, or random weights of a seed.

    Another network than the example's has random weights in any case.
    """
    torch.manual_seed(seed or 0)
    from tools.my_tool import network

    module = network()
    if seed is None and is_example():
        module.load_state_dict({"filters.weight": filters()})
    folder.mkdir(parents=True, exist_ok=True)
    save_file(module.state_dict(), folder / "model.safetensors")
    side = {"height": 56, "width": 56}
    processor = transformers.BitImageProcessor(size={"shortest_edge": 56}, crop_size=side)
    processor.save_pretrained(folder)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("my_tool")
    save_tiny(folder)
    return folder


def loaded(weights: Path, *, unchecked: bool = False) -> LoadedBackend:
    choice = BackendChoice("learned", {"my_tool": str(weights)}, unchecked=unchecked)
    return Loader(choice).load(load("tools", "my_tool"))


def test_it_keeps_the_contract(weights: Path) -> None:
    options = ServiceOptions("learned", {"my_tool": str(weights)}, unchecked=True)
    assert breaches("my_tool", load("tools", "my_tool"), options) == ()


def test_the_known_answers_accept_weights_that_know_them(weights: Path) -> None:
    if not is_example():
        pytest.skip(
            "another network knows its answers by trained weights alone: hybrid tools check my_tool --weights DIR"
        )
    assert loaded(weights).weights == weights


@pytest.mark.parametrize("seed", range(3))
def test_the_known_answers_refuse_random_weights(seed: int, tmp_path: Path) -> None:
    save_tiny(tmp_path, seed)
    with pytest.raises(WeightsError, match="known answers"):
        loaded(tmp_path)


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
