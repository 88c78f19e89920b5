"""Learned matchers behind one call: EfficientLoFTR, LightGlue and SuperGlue (transformers), LoFTR (kornia).

`model = MatchModel(dir_or_id, "cpu")`, then `model.predict([model.prepare((first, second))])[0]`.
kornia's LoFTR (Sun et al. 2021) has no transformers layout: a directory without `config.json` that holds one
`.safetensors` file with its state dict is read as LoFTR (of the outdoor kind); `{"model_type": "kornia_loftr",
"temp_bug_fix": true}` in `config.json` says that the weights are the newer indoor ones. A published `.ckpt` becomes
such a file by `save_file(torch.load(path, weights_only=True)["state_dict"], "loftr.safetensors")`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import cv2
import numpy as np

from hybrid.errors import ToolError, WeightsError
from hybrid.tool import Args, Evidence, Pixels, Request
from hybrid.weights import find_weights, weights_sha256
from tools._shared.backends import Learned
from tools._shared.batches import in_batches
from tools._shared.checkpoint import Checkpoint, fill, first_line, load_verified
from tools._shared.efficient_loftr import match_pairs
from tools._shared.view_matches import Matches, View

FAMILIES = ("efficientloftr", "lightglue", "superglue")
KORNIA = "kornia_loftr"
LOFTR_LONGEST_PX = 640
"""Long side of LoFTR's input: attention grows with the fourth power of it."""
LEAST_PX = 32
MOST_AT_ONCE = 8
"""Pairs in one pass."""
DEFAULT_WEIGHTS = "zju-community/efficientloftr"
A_pair = TypeVar("A_pair", bound=Args)


Views = tuple[View, View]


class LearnedPairs(Learned[A_pair, "Pair", Matches, "MatchModel"]):
    """The learned backend of a tool that solves pairs of views: the network matches, the rest is the tool's own.

    `views` makes the views of a request, `solve` the evidence from them and their matches.
    """

    def __init__(
        self,
        tool: str,
        code: str,
        views: Callable[[Request[A_pair]], Views],
        solve: Callable[[Request[A_pair], Views, Matches], Evidence],
    ) -> None:
        super().__init__(tool, code, MatchModel, DEFAULT_WEIGHTS)
        self._views, self._solve = views, solve

    def prepare(self, request: Request[A_pair]) -> Pair:
        """The views of a request. Raises `ToolError` as the tool's `views`, or for an image that is too small."""
        return self.model.prepare(self._views(request))

    def compute(self, prepared: Sequence[Pair]) -> list[Matches]:
        """The matches of each pair. Raises `ToolError` for values that are not finite."""
        return self.model.predict(prepared)

    def finish(self, request: Request[A_pair], prepared: Pair, output: Matches) -> Evidence:
        """The tool's evidence. Raises `ToolError` as its `solve`."""
        return self._solve(request, prepared.views, output)


@dataclass(frozen=True, eq=False)
class Pair:
    """Two views, and what the processor makes of them, a tensor (1, 2, C, h, w); None for kornia's LoFTR."""

    views: Views
    values: Any


class MatchModel:
    """A verified matcher on a device."""

    def __init__(self, weights: str, device: str) -> None:
        """Load. Raises `WeightsError` when weights are absent, do not fit, or are of another family."""
        self.device = device
        self._checkpoint: Checkpoint | None = None
        self._loftr: Any = None
        folder = find_weights(weights, download=False)
        settings = _settings(folder, weights)
        if settings is not None:
            self._loftr = _load_loftr(folder, weights, device, fixed=settings)
            self.version = f"{KORNIA}@{weights_sha256(folder)[:12]}"
        else:
            self._checkpoint = load_verified(
                "AutoModelForKeypointMatching", weights, device=device, model_types=FAMILIES
            )
            self.version = self._checkpoint.version

    def prepare(self, views: Views) -> Pair:
        """Two views as the network takes them.

        Raises:
            ToolError: a side is shorter than 32 px.
        """
        for number, view in enumerate(views, 1):
            if min(view.pixels.shape[:2]) < LEAST_PX:
                raise ToolError(f"image {number} is smaller than {LEAST_PX} px on a side: too small for the matcher")
        if self._checkpoint is None:
            return Pair(views, None)
        pictures = [view.pixels for view in views]
        processed = self._checkpoint.processor(images=pictures, return_tensors="pt", input_data_format="channels_last")
        return Pair(views, processed["pixel_values"])

    def predict(self, pairs: Sequence[Pair]) -> list[Matches]:
        """Matches of each pair of views, in pixels of the original pictures; EfficientLoFTR sees several at once.

        Raises:
            ToolError: the network returned no finite number.
        """
        import torch

        with torch.inference_mode():
            if self._checkpoint is None:
                found = [self._kornia(*(view.pixels for view in pair.views)) for pair in pairs]
            elif self._checkpoint.model_type == "efficientloftr":
                found = in_batches([pair.values for pair in pairs], partial(self._efficient, pairs), MOST_AT_ONCE)
            else:
                found = [self._sparse(self._checkpoint, pair) for pair in pairs]
        return [_on_originals(pair, matches) for pair, matches in zip(pairs, found, strict=True)]

    def _efficient(self, pairs: Sequence[Pair], batch: Any, members: Sequence[int]) -> list[Matches]:
        height, width = batch.shape[-2:]
        model = None if self._checkpoint is None else self._checkpoint.model
        rows = []
        for place, found in zip(members, match_pairs(model, batch.to(self.device)), strict=True):
            scales = [
                np.array([view.pixels.shape[1] / width, view.pixels.shape[0] / height]) for view in pairs[place].views
            ]
            first, second = _array(found.first) * scales[0], _array(found.second) * scales[1]
            rows.append(Matches(first, second, _array(found.scores), "efficientloftr"))
        return rows

    def _sparse(self, checkpoint: Checkpoint, pair: Pair) -> Matches:
        """LightGlue and SuperGlue; one pair a call, because transformers' batches return in another order."""
        outputs = checkpoint.model(pixel_values=pair.values.to(checkpoint.device))
        masks = [outputs.mask[0, side] > 0 for side in (0, 1)]
        here, there = (_array(outputs.keypoints[0, side][masks[side]]) for side in (0, 1))
        partners = _array(outputs.matches[0, 0][masks[0]]).astype(int)
        scores = _array(outputs.matching_scores[0, 0][masks[0]])
        kept = (partners >= 0) & (partners < len(there)) & (scores > 0)
        # Keypoints are fractions of the input: whole pixels would lose what the networks resolve.
        sizes = [np.array([view.pixels.shape[1], view.pixels.shape[0]]) for view in pair.views]
        return Matches(here[kept] * sizes[0], there[partners[kept]] * sizes[1], scores[kept], checkpoint.model_type)

    def _kornia(self, first: Pixels, second: Pixels) -> Matches:
        tensors, scales = zip(*(_grey_tensor(pixels, self.device) for pixels in (first, second)), strict=True)
        found = self._loftr({"image0": tensors[0], "image1": tensors[1]})
        # LoFTR puts the centre of the first pixel at 0.5.
        points = [
            (_array(found[name]) * scale) - 0.5
            for name, scale in zip(("keypoints0", "keypoints1"), scales, strict=True)
        ]
        return Matches(points[0], points[1], np.clip(_array(found["confidence"]), 0, 1), KORNIA)


def _on_originals(pair: Pair, found: Matches) -> Matches:
    """Matches in pixels of the views as matches in pixels of the original pictures."""
    if not all(np.isfinite(values).all() for values in (found.first, found.second, found.scores)):
        raise ToolError("the matcher returned values that are not finite")
    first, second = pair.views
    return Matches(first.to_original(found.first), second.to_original(found.second), found.scores, found.matcher)


def _array(values: Any) -> Any:
    return np.asarray(values.detach().float().cpu().numpy(), np.float64)


def _grey_tensor(pixels: Pixels, device: str) -> tuple[Any, Any]:
    """Grey (1, 1, h, w) in 0..1 with sides that are multiples of 8, and pixels of the view per pixel of it (2,)."""
    import torch

    height, width = pixels.shape[:2]
    factor = min(1.0, LOFTR_LONGEST_PX / max(height, width))
    size = tuple(max(LEAST_PX, round(side * factor / 8) * 8) for side in (width, height))
    grey = cv2.resize(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), size, interpolation=cv2.INTER_AREA)
    tensor = torch.from_numpy(np.asarray(grey, np.float32) / 255)[None, None].to(device)
    return tensor, np.array([width / size[0], height / size[1]])


def _settings(folder: Path, weights: str) -> bool | None:
    """Whether LoFTR's corrected position encoding is wanted; None where the folder is no LoFTR of kornia's."""
    path = folder / "config.json"
    if not path.is_file():
        return False if any(folder.glob("*.safetensors")) else None
    try:
        config = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise WeightsError(f"{weights}: config.json is not JSON ({error})") from error
    if not isinstance(config, dict) or config.get("model_type") != KORNIA:
        return None
    return bool(config.get("temp_bug_fix", False))


def _load_loftr(folder: Path, weights: str, device: str, *, fixed: bool) -> Any:
    import copy

    from kornia.feature import LoFTR
    from kornia.feature.loftr.loftr import default_cfg
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    files = sorted(folder.glob("*.safetensors"))
    if len(files) != 1:
        raise WeightsError(f"{weights}: one .safetensors file with LoFTR's state dict was expected, found {len(files)}")
    config = copy.deepcopy(default_cfg)
    config["coarse"]["temp_bug_fix"] = fixed
    model = LoFTR(pretrained=None, config=config)
    try:
        tensors = load_file(files[0])
    except SafetensorError as error:
        raise WeightsError(f"{weights} cannot be loaded as LoFTR: {first_line(error)}") from error
    fill(model, tensors, weights)
    return model.to(device).eval()
