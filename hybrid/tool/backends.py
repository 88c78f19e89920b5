"""Base classes of the tools' backends: one loads nothing, the other loads a network once.

`class Cues(WeightFree[DepthArgs])` writes `answer`; `class Network(Learned[DepthArgs, Prepared, Output, DepthModel])`
writes the three stages and names what loads it: `load = DepthModel`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from hybrid.core.errors import ToolError
from hybrid.tool import A, Evidence, P, R, Request, Stages
from hybrid.tool.networks import Network, collecting


class Versioned(Protocol):
    """A network that was loaded: `version` names its family and the content of its weights."""

    @property
    def version(self) -> str:
        """Return a name such as `depth_anything@0123456789ab`."""


M = TypeVar("M", bound=Versioned)


class WeightFree(ABC, Generic[A]):
    """A backend that loads nothing and answers one request at a time."""

    def setup(self, device: str, weights: str | None) -> None:
        """Do nothing, because nothing has to be loaded."""
        del device, weights

    def run(self, requests: Sequence[Request[A]]) -> list[Evidence]:
        """Return one evidence per request, in order. Raises the errors of `answer`."""
        return [self.answer(request) for request in requests]

    @abstractmethod
    def answer(self, request: Request[A]) -> Evidence:
        """Return the evidence of one request. Raises `ToolError` when it cannot be answered."""


class Learned(Stages[A, P, R], Generic[A, P, R, M]):
    """A backend in stages around a network that `setup` loads.

    For a tool with a card file, the class defines `load`, and the card sets `identity`. Other classes pass all four to
    `__init__`.

    Args:
        tool: its name, for errors.
        code: version of the tool's own code.
        load: builds the network from weights (a directory or hub id) on a device.
        weights: the default weights; None if a package provides them.
    """

    load: Callable[[str, str], M]
    # The tool, the version of its code and its default weights; `tool_card` sets them.
    identity: tuple[str, str, str | None]

    def __init__(
        self, tool: str = "", code: str = "", load: Callable[[str, str], M] | None = None, weights: str | None = None
    ) -> None:
        self._tool, self._code, self._weights = (tool, code, weights) if tool else self.identity
        self.load = load or self.load
        self._model: M | None = None
        self._networks: tuple[Network, ...] = ()

    @property
    def version(self) -> str:
        """Version of the tool's code, family and content hash of the checkpoint. Raises `ToolError` before `setup`."""
        return f"{self._code}+{self.model.version}"

    @property
    def model(self) -> M:
        """Return the network. Raises `ToolError` before `setup`."""
        if self._model is None:
            raise ToolError(f"{self._tool}: the learned backend was called before its weights were loaded")
        return self._model

    def setup(self, device: str, weights: str | None) -> None:
        """Load and verify the checkpoint. Raises `WeightsError`."""
        with collecting() as networks:
            self._model = self.load(weights or self._weights or "", device)
        self._networks = tuple(networks)

    @property
    def networks(self) -> Sequence[Network]:
        """The networks that `setup` has loaded, for checks of weights."""
        return self._networks


def check_finite(tool: str, *values: npt.NDArray[np.floating] | float) -> None:
    """Raise `ToolError`, naming `tool`, if the output of a network is not finite."""
    if not all(np.isfinite(value).all() for value in values):
        raise ToolError(f"{tool}: the network returned values that are not finite")
