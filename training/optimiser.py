"""Muon for the matrices between layers, AdamW for everything else, and the schedule of their learning rate.

optimiser = Optimiser(list(model.named_parameters()), steps=2000); then `optimiser.step(loss)`, step by step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

import torch
from timm.optim.muon import zeropower_via_newtonschulz

# The highest learning rate of both optimisers.
RATE: Final = 3e-3
# Number of steps until the highest rate is reached.
WARMUP: Final = 60
# Final rate as a share of the highest.
LOWEST: Final = 0.02

# Coefficients of each Newton-Schulz step (Jordan et al. 2024, Muon).
COEFFICIENTS: Final = [(3.4445, -4.775, 2.0315)]
NEWTON_STEPS: Final = 5
MOMENTUM: Final = 0.95


class Muon(torch.optim.Optimizer):
    """Muon for matrices: orthogonalised momentum, scaled so that AdamW's rates apply (Liu et al. 2025, Moonlight).

    It computes in single precision, because torch's and timm's versions use bfloat16, which is slow on processors
    without support for it.
    """

    def __init__(self, matrices: Iterable[torch.Tensor], rate: float) -> None:
        super().__init__(matrices, {"lr": rate})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Take one step; `closure` is not supported."""
        del closure
        for group in self.param_groups:
            for matrix in group["params"]:
                if matrix.grad is None:
                    continue
                state = self.state[matrix]
                selected = state.setdefault("momentum", torch.zeros_like(matrix))
                selected.lerp_(matrix.grad, 1 - MOMENTUM)
                update = matrix.grad.lerp(selected, MOMENTUM)
                update = zeropower_via_newtonschulz(update, NEWTON_STEPS, COEFFICIENTS, dtype=torch.float32)
                matrix.add_(update, alpha=-group["lr"] * 0.2 * math.sqrt(max(matrix.shape)))


class Optimiser:
    """Muon for the matrices between layers, AdamW for everything else; the rate rises, then falls as a half cosine."""

    def __init__(self, rows: Sequence[tuple[str, torch.nn.Parameter]], steps: int) -> None:
        matrices = [item for name, item in rows if item.ndim == 2 and "embed" not in name]
        values = {id(matrice) for matrice in matrices}
        others = [entry for _, entry in rows if id(entry) not in values]
        self._parameters = [value for _, value in rows]
        self._parts = (Muon(matrices, RATE), torch.optim.AdamW(others, lr=RATE, betas=(0.9, 0.98), weight_decay=0.0))
        self._done, self._steps = 0, steps

    def step(self, loss: Any) -> None:
        """Take one step to reduce the loss."""
        self._done += 1
        fallen = LOWEST + (1 - LOWEST) * 0.5 * (1 + math.cos(math.pi * self._done / self._steps))
        rate = RATE * min(1.0, self._done / WARMUP) * fallen
        for part in self._parts:
            for group in part.param_groups:
                group["lr"] = rate
            part.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._parameters, 1.0)
        for part in self._parts:
            part.step()
