"""The numeric precision of a backend's networks: float32, TF32, or bfloat16 and float16 by torch's autocast.

    precision = precision_of(choice, card, "cuda:0")      # "tf32", or "bfloat16" where the card allows it
    backend = computing(backend, precision, "cuda:0")     # only its `compute` runs in that precision

Autocast keeps weights, norms and sums in float32 and rounds only the operands of products and convolutions. A part that
must not be rounded opts out (`hybrid.tool.networks.in_float32`). A backend without a torch network, such as an ONNX
one, computes in float32. On the CPU, float32 does not import torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from hybrid.config import AUTO, FLOAT32
from hybrid.core.errors import ToolError, WeightsError, is_out_of_memory
from hybrid.tool import BackendCard, Request, Stages, Tool
from hybrid.tool.checkpoint import first_line
from hybrid.tool.networks import Network

if TYPE_CHECKING:
    from pathlib import Path

    from hybrid.config import BackendChoice

# float32 whose products and convolutions round their operands to 10 bits of mantissa, on CUDA.
TF32 = "tf32"
COMPILED = " compiled"
REDUCED = ("bfloat16", "float16")


def precision_of(choice: BackendChoice, card: BackendCard, device: str, weights: Path | None = None) -> str:
    """Return the precision of a backend's networks on a device: float32, tf32, bfloat16 or float16.

    `auto` is float32 on the CPU and on MPS. On CUDA it is bfloat16 if the card reports a measurement in which bfloat16
    changed no decision with exactly the loaded weights, else TF32. `weights` is the folder of the loaded weights; None
    if they come with a package.
    """
    if choice.dtype != AUTO:
        return choice.dtype
    if not device.startswith("cuda"):
        return FLOAT32
    loaded = card.package if weights is None else str(weights)
    harmless = any(
        reduction.dtype == "bfloat16" and reduction.harmless and reduction.weights == loaded
        for reduction in card.reduced
    )
    return "bfloat16" if harmless else TF32


def computing(backend: Stages[Any, Any, Any], precision: str, device: str) -> Stages[Any, Any, Any]:
    """Return the backend with `compute` in that precision. On CUDA this also sets torch's float32 mode."""
    on_cuda = device.startswith("cuda")
    if not on_cuda and precision not in REDUCED:
        return backend
    import torch

    exact, kind = backend.compute, device.partition(":")[0]
    if on_cuda:
        # Pictures are prepared by one thread per core; torch's own threads would only compete with them.
        torch.set_num_threads(1)

    def compute(prepared: Sequence[Any]) -> list[Any]:
        if on_cuda:
            # Allow or forbid TF32 in float32 products and convolutions (torch's default allows it only in
            # convolutions). The mode is set for each batch, because another tool of this process may need another.
            torch.set_float32_matmul_precision("highest" if precision == FLOAT32 else "high")
            torch.backends.cudnn.allow_tf32 = precision != FLOAT32
        with torch.autocast(kind, getattr(torch, precision)) if precision in REDUCED else nullcontext():
            return exact(prepared)

    backend.compute = compute  # type: ignore[method-assign]
    return backend


def compile_networks(networks: Sequence[Network]) -> None:
    """Let torch compile the networks, and their directly called parts, on first use."""
    for network in networks:
        for part in (network.module, *network.module.children()):
            # Dynamic shapes avoid recompiling for every batch and picture size.
            part.compile(dynamic=True)


def warm_up(tool: Tool, backend: Stages[Any, Any, Any], batch: int) -> None:
    """Run compiled networks on a picture, alone and in a batch, so that compiling does not delay a question.

    Raises:
        WeightsError: torch cannot compile, or the network fails.
    """
    from hybrid.serving.input_check import SIZES, chart, probes

    for case in probes(tool, chart(*SIZES[0])):
        request = Request(case.images, tool.args.model_validate(case.args))
        try:
            prepared = backend.prepare(request)
        except ToolError:
            # Some checkpoints accept only words, or only coordinates.
            continue
        try:
            for size in sorted({1, batch}):
                backend.compute([prepared] * size)
        except Exception as error:
            if is_out_of_memory(error):
                raise
            message = f"{type(error).__name__}: {first_line(error)}"
            raise WeightsError(
                f"{tool.card.name}: --tool-compile: its networks cannot be compiled ({message})"
            ) from error
        return
