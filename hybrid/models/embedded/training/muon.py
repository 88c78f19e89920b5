"""Muon in single precision: torch's and timm's work in bfloat16, which processors without it are slow at."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from timm.optim.muon import zeropower_via_newtonschulz

QUINTIC = [(3.4445, -4.775, 2.0315)] * 5
"""The coefficients of the five steps of Newton and Schulz (Jordan et al. 2024, Muon)."""


class Muon(torch.optim.Optimizer):
    """For matrices: momentum, made orthogonal, scaled so that rates are those of AdamW (Liu et al. 2025, Moonlight)."""

    def __init__(self, matrices: Iterable[torch.Tensor], rate: float, momentum: float = 0.95) -> None:
        super().__init__(matrices, {"lr": rate, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One step; `closure` is not taken."""
        del closure
        for group in self.param_groups:
            for matrix in group["params"]:
                if matrix.grad is None:
                    continue
                state = self.state[matrix]
                kept = state.setdefault("momentum", torch.zeros_like(matrix))
                kept.lerp_(matrix.grad, 1 - group["momentum"])
                update = matrix.grad.lerp(kept, group["momentum"])
                update = zeropower_via_newtonschulz(update, 5, QUINTIC, dtype=torch.float32)
                matrix.add_(update, alpha=-group["lr"] * 0.2 * math.sqrt(max(matrix.shape)))
