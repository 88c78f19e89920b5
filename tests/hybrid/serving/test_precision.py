"""The precision of networks: who decides, what runs under autocast, and its record in outputs and runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from hybrid.config import BackendChoice
from hybrid.core.errors import WeightsError
from hybrid.serving.described import description_of, tool_of
from hybrid.serving.loader import Loader
from hybrid.serving.precision import computing, precision_of
from hybrid.tool import BackendCard, Card, CheckCase, Evidence, KnownAnswer, ReducedPrecision, Request, Stages, Tool
from hybrid.tool.networks import Network, in_float32
from tests.tables import cases

if TYPE_CHECKING:
    import torch

MEASURED = ReducedPrecision("bfloat16", 0, 16, 0.01, "score", "package", trained=True, tolerated=0.02)


class Scaling(Stages[Any, Any, Any]):
    """Computes a product in the requested precision, and records the precision of each stage in its data."""

    version = "1"

    def __init__(self) -> None:
        import torch

        self.module = torch.nn.Sequential(torch.nn.Linear(3, 2))
        self.sizes = list[int]()

    def setup(self, device: str, weights: str | None) -> None:
        self.device = device

    @property
    def networks(self) -> Sequence[Network]:
        return (Network("scaling", self.module),)

    def prepare(self, request: Request[Any]) -> torch.Tensor:
        import torch

        assert not torch.is_autocast_enabled("cpu")
        return torch.from_numpy(request.images[0].reshape(-1, 3)[:1].astype(np.float32))

    def compute(self, prepared: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        import torch

        self.sizes.append(len(prepared))
        with torch.inference_mode():
            return list(self.module(torch.cat(list(prepared))))

    def finish(self, request: Request[Any], prepared: torch.Tensor, output: torch.Tensor) -> Evidence:
        import torch

        assert not torch.is_autocast_enabled("cpu")
        return Evidence("scaled", {"dtype": str(output.dtype)}, 0.5)


@pytest.fixture
def weights(tmp_path: Path) -> dict[str, str]:
    import torch
    from safetensors.torch import save_file

    (tmp_path / "weights").mkdir()
    save_file({"any": torch.zeros(1)}, tmp_path / "weights" / "model.safetensors")
    return {"scaling": str(tmp_path / "weights")}


def tool(fakes: Any, backend: Scaling, **card: Any) -> Tool:
    case = CheckCase((np.zeros((40, 40, 3), np.uint8),), {"number": 1}, lambda _: None)
    learned = BackendCard("learned", "1", lambda: backend, "scales", batch=4, **card)
    described = Card("scaling", "Scales.", "None.", (learned,))
    return Tool(described, fakes.NumberArgs, checks=(KnownAnswer("any", lambda: case),))


@pytest.mark.parametrize(*cases(__file__, "test_auto_takes_fewer_bits_on_cuda_where_trained_weights_decide_the_same"))
def test_auto_takes_fewer_bits_on_cuda_where_trained_weights_decide_the_same(
    dtype: Any, device: str, measured: tuple[dict[str, Any], ...], expected: str
) -> None:
    """On CUDA, `auto` takes fewer bits if trained weights decide the same with them. `measured` lists changes to
    `MEASURED`."""
    reduced = tuple(replace(MEASURED, **changes) for changes in measured)
    card = BackendCard("learned", "1", Scaling, "", package="package", reduced=reduced)
    assert precision_of(BackendChoice(dtype=dtype), card, device) == expected
    of_others = precision_of(BackendChoice(dtype=dtype), card, device, Path("other/weights"))
    assert of_others == ("tf32" if (dtype, expected) == ("auto", "bfloat16") else expected)


@pytest.fixture
def cuda_switches() -> Iterator[None]:
    """Restore torch's settings for CUDA afterwards."""
    import torch

    values = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32, torch.get_num_threads()
    yield
    torch.set_float32_matmul_precision(values[0])
    torch.backends.cudnn.allow_tf32 = values[1]
    torch.set_num_threads(values[2])


@pytest.mark.usefixtures("cuda_switches")
def test_float32_on_cuda_is_exact_also_in_convolutions_beside_a_tool_in_another_precision() -> None:
    import torch

    class Switches(Scaling):
        def compute(self, prepared: Sequence[Any]) -> list[Any]:
            return [torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32, torch.get_num_threads()]

    exact, other = (computing(Switches(), name, "cuda:0") for name in ("float32", "tf32"))
    for _ in range(2):
        assert exact.compute([]) == ["highest", False, 1]
        assert other.compute([]) == ["high", True, 1]
    assert computing(Switches(), "bfloat16", "cpu").compute([])[:2] == ["high", True]


def test_networks_that_are_not_announced_are_found(fakes: Any, weights: dict[str, str]) -> None:
    import torch
    from safetensors.torch import save_file

    backend = fakes.CountingBackend()
    backend.module = torch.nn.Linear(3, 2)
    save_file(backend.module.state_dict(), Path(weights["scaling"]) / "model.safetensors")
    built = fakes.counter(backend, name="scaling", kind="learned", weights="w")
    ready = Loader(BackendChoice("learned", weights, dtype="bfloat16")).load(built)
    assert ready.answering.precision == "bfloat16"


def test_known_answers_are_asked_in_the_precision_and_anew_in_another(fakes: Any, weights: dict[str, str]) -> None:
    sizes = []
    for dtype in ("float32", "bfloat16", "bfloat16"):
        backend = Scaling()
        Loader(BackendChoice("learned", weights, dtype=dtype)).load(tool(fakes, backend))  # type: ignore[arg-type]
        sizes.append(backend.sizes)
    assert sizes == [[1], [1], []]


def test_compiled_networks_are_compiled_with_their_parts_and_run_before_any_question(
    fakes: Any, weights: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    compiled: list[tuple[str, object]] = []
    monkeypatch.setattr(
        torch.nn.Module, "compile", lambda self, dynamic: compiled.append((type(self).__name__, dynamic))
    )
    backend = Scaling()
    choice = BackendChoice("learned", weights, unchecked=True, compiled=True, dtype="bfloat16")
    ready = Loader(choice).load(tool(fakes, backend))
    assert compiled == [("Sequential", True), ("Linear", True)]
    # The network is warmed up with one input and with a full batch.
    assert backend.sizes == [1, 4]
    assert ready.answering.precision == "bfloat16 compiled"


def test_what_cannot_be_compiled_says_so_when_it_loads(
    fakes: Any, weights: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    def broken(self: torch.nn.Module, dynamic: bool) -> None:
        self.register_forward_pre_hook(lambda *_: (_ for _ in ()).throw(RuntimeError("no C++ compiler")))

    monkeypatch.setattr(torch.nn.Module, "compile", broken)
    loader = Loader(BackendChoice("learned", weights, unchecked=True, compiled=True))
    with pytest.raises(WeightsError, match=r"^scaling: --tool-compile: .*\(RuntimeError: no C\+\+ compiler\)$"):
        loader.load(tool(fakes, Scaling()))


def test_a_part_in_float32_is_given_float32_and_gives_it() -> None:
    import torch

    part, options = torch.nn.Linear(3, 2), list[torch.dtype]()
    part.register_forward_pre_hook(lambda _, args: options.extend(arg.dtype for arg in args))
    in_float32(part)
    rounded = torch.ones(1, 3, dtype=torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        assert part(rounded).dtype == torch.float32
        assert torch.is_autocast_enabled("cpu")
    assert part(torch.ones(1, 3)).dtype == torch.float32


def test_a_described_card_keeps_what_was_measured(fakes: Any) -> None:
    built = tool(fakes, Scaling(), reduced=(MEASURED,))
    second = tool_of(description_of(1, built, "code"), lambda _: None)  # type: ignore[arg-type, return-value]
    assert second is not None
    (card,) = second.card.backends
    assert card.reduced == (MEASURED,)
