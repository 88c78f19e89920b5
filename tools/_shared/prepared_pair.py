"""Two views as a matching network takes them, and what every such network offers.

`match_models.py` opens the networks: those of transformers, kornia's LoFTR (`loftr.py`), and ALIKED or DISK with
LightGlue (`local_features.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from hybrid.tool import Pixels
from tools._shared.view_matches import Matches, View

Views = tuple[View, View]


class PreparedPair(NamedTuple):
    """Two views and the network's input for them, in host memory; its `prepare` documents the shape."""

    views: Views
    values: Any

    @property
    def sizes(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Height and width of both views in pixels."""
        first, second = (view.pixels.shape for view in self.views)
        return (first[0], first[1]), (second[0], second[1])


class PairNetwork(Protocol):
    """A verified matching network on a device."""

    # Its family and the content of its weights: `efficientloftr@0123456789ab`.
    version: str

    def prepare(self, pictures: tuple[Pixels, Pixels]) -> Any:
        """The network's input for two pictures (H, W, 3)."""
        ...

    def match(self, pairs: Sequence[PreparedPair]) -> list[Matches]:
        """The matches of each pair, in pixels of its views: the centre of the first pixel is at 0."""
        ...
