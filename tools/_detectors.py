"""Object detectors behind one convention: boxes of named things in pixels of the image, scores 0..1.

A library of `tools/detection.py`. OWLv2 (Minderer et al. 2023), OWL-ViT and Grounding DINO (Liu et al. 2024) take any
name; RT-DETR, RT-DETRv2 (Lv et al. 2024) and D-FINE know the classes of their own configuration.
`Detector(dir_or_id, "cpu").find(pixels, ["cat"], 0.1)` runs one image.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import cv2
import numpy as np
import numpy.typing as npt

from hybrid.errors import ToolError, WeightsError
from hybrid.tool import Pixels
from hybrid.types import Box
from tools._checkpoint import find_checkpoint, load_verified, model_type_of
from tools._wording import singular

Scores = npt.NDArray[np.float64]
"""One row a query, one column a name, 0..1."""


@dataclass(frozen=True)
class Family:
    """How a model is asked. `pads`: boxes are relative to the square that the image was padded to."""

    kind: Literal["queries", "sentence", "closed"]
    threshold: float
    """Score from which a box counts, as the authors' own demonstrations use it."""
    pads: bool = False


FAMILIES: Mapping[str, Family] = {
    "owlv2": Family("queries", 0.2, pads=True),
    "owlvit": Family("queries", 0.1),
    "grounding-dino": Family("sentence", 0.3),
    "mm-grounding-dino": Family("sentence", 0.3),
    "rt_detr": Family("closed", 0.5),
    "rt_detr_v2": Family("closed", 0.5),
    "d_fine": Family("closed", 0.5),
}
"""By transformers' `model_type`."""
LONGEST_PX = 1600
LEAST_PX = 4
MOST_ELONGATED = 20.0
SAME_OBJECT = 0.6
"""Intersection over union from which two boxes of one name are one thing."""


@dataclass(frozen=True)
class Detection:
    """A thing that was found: its name as it was asked for, score 0..1, box in pixels of the image."""

    name: str
    score: float
    box: Box


class Detector:
    """A verified checkpoint of one of `FAMILIES` on a device."""

    def __init__(self, weights: str, device: str) -> None:
        """Load. Raises `WeightsError` when weights are absent, do not fit, or are of another family."""
        closed = FAMILIES[model_type_of(find_checkpoint(weights), weights, tuple(FAMILIES))].kind == "closed"
        self._checkpoint = load_verified(
            "AutoModelForObjectDetection" if closed else "AutoModelForZeroShotObjectDetection",
            weights,
            device=device,
            processor_class="AutoImageProcessor" if closed else "AutoProcessor",
            model_types=tuple(FAMILIES),
            # Positions that older files of CLIP-like text models carry and newer code computes.
            harmless=("position_ids",),
        )
        self.family = FAMILIES[self._checkpoint.model_type]
        self._classes = _classes(self._checkpoint.model.config, weights) if closed else {}

    @property
    def version(self) -> str:
        """Family and content of the weights."""
        return self._checkpoint.version

    def knows(self, name: str) -> bool:
        """Whether the detector can be asked for a name: always, unless its set of classes is closed."""
        return not self._classes or singular(name).lower() in self._classes

    def find(self, pixels: Pixels, names: Sequence[str], floor: float) -> list[Detection]:
        """Everything of these names with a score of at least `floor`, best first; each thing once.

        Raises:
            ToolError: the image is smaller than 4 px or more elongated than 20 : 1, or a box is not finite.
        """
        import torch

        picture = _reduced(pixels)
        with torch.inference_mode():
            scores, boxes = self._ask(picture, names)
        if not (np.isfinite(scores).all() and np.isfinite(boxes).all()):
            raise ToolError("detection: the network returned values that are not finite")
        return gather(names, scores, boxes, floor, self._frame(pixels))

    def _frame(self, pixels: Pixels) -> tuple[float, float, int, int]:
        """What a box of 0..1 is multiplied with (x, y), and the width and height it is cut at."""
        height, width = pixels.shape[:2]
        side = max(height, width)
        return (side, side, width, height) if self.family.pads else (width, height, width, height)

    def _ask(self, picture: Any, names: Sequence[str]) -> tuple[Scores, npt.NDArray[np.float64]]:
        import torch

        loaded = self._checkpoint
        if self.family.kind == "closed":
            inputs = loaded.processor(images=picture, return_tensors="pt").to(loaded.device)
            outputs = loaded.model(**inputs)
            columns = [self._classes[singular(name).lower()] for name in names]
            every = torch.sigmoid(outputs.logits[0])
            # A query that fits another class better is not one of these.
            found = torch.where(every == every.amax(dim=1, keepdim=True), every, 0.0)[:, columns]
        elif self.family.kind == "queries":
            prompts = [f"a photo of a {singular(name)}" for name in names]
            inputs = loaded.processor(
                text=[prompts],
                images=picture,
                padding="max_length",
                truncation=True,
                max_length=int(loaded.model.config.text_config.max_position_embeddings),
                return_tensors="pt",
            ).to(loaded.device)
            outputs = loaded.model(**inputs)
            found = torch.sigmoid(outputs.logits[0])
        else:
            sentence = " ".join(f"{singular(name).lower().replace('.', ' ')}." for name in names)
            inputs = loaded.processor(images=picture, text=sentence, return_tensors="pt").to(loaded.device)
            outputs = loaded.model(**inputs)
            stop = loaded.processor.tokenizer.convert_tokens_to_ids(".")
            found = by_phrase(torch.sigmoid(outputs.logits[0]), inputs["input_ids"][0].tolist(), stop, len(names))
        return _floats(found), _floats(outputs.pred_boxes[0])


def by_phrase(tokens: Any, ids: Sequence[int], stop: int, names: int) -> Any:
    """Scores of phrases (Q, names) from scores of tokens (Q, T): the best token between two full stops.

    `ids` starts with the mark of the sentence's beginning, which no name holds.

    Raises:
        ToolError: the tokenizer cut the sentence.
    """
    import torch

    ends = [place for place, token in enumerate(ids) if token == stop][:names]
    if len(ends) < names or ends[-1] > tokens.shape[1]:
        raise ToolError("detection: the names are too long for this checkpoint; ask for fewer at once")
    starts = [1, *(end + 1 for end in ends[:-1])]
    empty = [number for number, (start, end) in enumerate(zip(starts, ends, strict=True), 1) if start >= end]
    if empty:
        raise ToolError(f"detection: name {empty[0]} holds no letter that this checkpoint reads")
    return torch.stack([tokens[:, start:end].amax(dim=1) for start, end in zip(starts, ends, strict=True)], dim=1)


def gather(
    names: Sequence[str],
    scores: Scores,
    boxes: npt.NDArray[np.float64],
    floor: float,
    frame: tuple[float, float, int, int],
) -> list[Detection]:
    """Detections from scores (Q, N) and boxes (Q, 4) as centre x, y, width, height in 0..1; each query its best name.

    `frame`: pixels that 1 stands for in x and in y, and the width and height at which boxes are cut.
    """
    across, down, width, height = frame
    found = []
    for row, (x, y, w, h) in zip(scores, boxes, strict=True):
        best = int(np.argmax(row))
        if row[best] < floor:
            continue
        x0, x1 = (float(np.clip(edge * across, 0, width)) for edge in (x - w / 2, x + w / 2))
        y0, y1 = (float(np.clip(edge * down, 0, height)) for edge in (y - h / 2, y + h / 2))
        if x1 - x0 >= 1 and y1 - y0 >= 1:
            found.append(Detection(names[best], float(row[best]), Box(x0, y0, x1, y1)))
    return distinct(sorted(found, key=lambda detection: -detection.score))


def distinct(detections: Sequence[Detection]) -> list[Detection]:
    """Non-maximum suppression name by name, best first."""
    kept: list[Detection] = []
    for one in detections:
        if all(one.name != other.name or overlap(one.box, other.box) < SAME_OBJECT for other in kept):
            kept.append(one)
    return kept


def overlap(first: Box, second: Box) -> float:
    """Intersection over union of two boxes, 0..1."""
    shared = shared_area(first, second)
    return shared / (area(first) + area(second) - shared) if shared else 0.0


def shared_area(first: Box, second: Box) -> float:
    """Area of the intersection, square pixels."""
    width = min(first.x1, second.x1) - max(first.x0, second.x0)
    height = min(first.y1, second.y1) - max(first.y0, second.y0)
    return max(0.0, width) * max(0.0, height)


def area(box: Box) -> float:
    """Area of a box, square pixels."""
    return (box.x1 - box.x0) * (box.y1 - box.y0)


def _classes(config: Any, weights: str) -> dict[str, int]:
    named = {singular(str(name)).lower(): int(number) for number, name in config.id2label.items()}
    if not named or all(name.startswith("label_") for name in named):
        raise WeightsError(f"{weights}: config.json names no classes (id2label)")
    return named


def _reduced(pixels: Pixels) -> Any:
    from PIL import Image

    height, width = pixels.shape[:2]
    if min(height, width) < LEAST_PX or max(height, width) > MOST_ELONGATED * min(height, width):
        raise ToolError(
            f"detection: an image of {width} x {height} px is too small or too elongated "
            f"(at least {LEAST_PX} px, at most {MOST_ELONGATED:g} : 1)"
        )
    scale = LONGEST_PX / max(height, width)
    if scale < 1:
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        pixels = np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)
    return Image.fromarray(pixels)


def _floats(tensor: Any) -> npt.NDArray[np.float64]:
    return np.asarray(tensor.float().cpu().numpy(), np.float64)
