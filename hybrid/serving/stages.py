"""A learned backend in three stages, so that a device computes one batch while others are prepared and drawn.

    class LearnedDepth(Stages[DepthArgs, Prepared, Map]):
        def prepare(self, request): ...      # decode-side work of one request: any thread, several at once
        def compute(self, prepared): ...     # the network over a batch: the thread of the device, nothing else
        def finish(self, request, prepared, output): ...    # text and pictures of one: any thread, several at once

`hybrid/serving/service.py` runs the stages apart; `run` does them in order for everybody else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from hybrid.tool import Args, Evidence, Request

A = TypeVar("A", bound=Args)
P = TypeVar("P")
R = TypeVar("R")


class Stages(ABC, Generic[A, P, R]):
    """A backend whose `prepare` and `finish` need no device and change nothing in it."""

    @abstractmethod
    def setup(self, device: str, weights: str | None) -> None:
        """As `hybrid.tool.Backend.setup`."""

    @abstractmethod
    def prepare(self, request: Request[A]) -> P:
        """What the network takes, in host memory. Raises `ToolError` for a request that cannot be answered."""

    @abstractmethod
    def compute(self, prepared: Sequence[P]) -> list[R]:
        """One output a request, in order, in host memory; as few forward passes as their shapes allow."""

    @abstractmethod
    def finish(self, request: Request[A], prepared: P, output: R) -> Evidence:
        """The evidence of one request. Raises `ToolError` where the output is none."""

    def run(self, requests: Sequence[Request[A]]) -> list[Evidence]:
        """One evidence a request, in order. Raises `ToolError` as the stages do."""
        prepared = [self.prepare(request) for request in requests]
        outputs = self.compute(prepared) if prepared else []
        return [self.finish(*one) for one in zip(requests, prepared, outputs, strict=True)]
