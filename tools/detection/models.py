"""Object detectors with one convention: boxes of named objects in pixels of the image, scores 0..1.

OWLv2 (Minderer et al. 2023), OWL-ViT and (MM) Grounding DINO (Liu et al. 2024) take any name; RT-DETR, RT-DETRv2 (Lv et
al. 2024), D-FINE, DEIMv2 and RF-DETR (Robinson et al. 2025) know the classes of their own configuration.
`model = Detector(dir_or_id, "cpu")`, then `model.predict([model.prepare(pixels, ["cat"])])`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hybrid.core.coordinates import at, size_px
from hybrid.core.errors import ToolError, WeightsError
from hybrid.core.types import Box
from hybrid.tool import Pixels
from hybrid.tool.backends import check_finite
from hybrid.tool.checkpoint import INDICES, find_checkpoint, load_verified, model_type_of
from tools._shared.batches import by_form, by_members, doubles, shape, together
from tools._shared.question_words import singular
from tools._shared.reading import shrink

# One row per query, one column per name, 0..1.
Scores = npt.NDArray[np.float64]
# One row per query: centre x, y, width and height in 0..1.
Boxes = npt.NDArray[np.float64]


class DetectorFamily(NamedTuple):
    """Properties of a family; models.toml explains them."""

    kind: Literal["queries", "sentence", "closed"]
    # Minimum score at which a box counts.
    threshold: float
    pads: bool = False
    smooths: bool = False


# Facts of the families, by transformers' `model_type`.
FACTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
FAMILIES: Mapping[str, DetectorFamily] = {name: DetectorFamily(**facts) for name, facts in FACTS["families"].items()}
# Images per pass: OWLv2 resizes each to 960 px.
MAX_AT_ONCE = 8
MAX_SIDE_PX = 1600
MIN_SIDE_PX = 4
MAX_ELONGATION = 20.0
# Grey level of the padding: 0.5 of 255.
GREY = 128
# Minimum intersection over union at which two boxes of one name are the same object.
SAME_OBJECT = 0.6


class Detection(NamedTuple):
    """A detected object: the name that was requested, its score 0..1, and its box in pixels of the image."""

    name: str
    score: float
    box: Box


class DetectionInput(NamedTuple):
    """The names to look for, and the network's inputs for the image.

    `image` has these inputs by the network's names, (1, ...) each.
    """

    names: tuple[str, ...]
    image: Mapping[str, Any]


class DetectionOutput(NamedTuple):
    """Scores (Q, names) and boxes (Q, 4) of one image. A box is the x and y of its centre, width and height, 0..1."""

    scores: Scores
    boxes: Boxes


class Detector:
    """A verified checkpoint of one of `FAMILIES` on a device."""

    def __init__(self, weights: str, device: str) -> None:
        """Load the checkpoint. Raises `WeightsError` if it is missing, unsuitable or of another family."""
        closed = FAMILIES[model_type_of(find_checkpoint(weights), weights, tuple(FAMILIES))].kind == "closed"
        self._checkpoint = load_verified(
            "AutoModelForObjectDetection" if closed else "AutoModelForZeroShotObjectDetection",
            weights,
            device=device,
            processor_class="AutoImageProcessor" if closed else "AutoProcessor",
            model_types=tuple(FAMILIES),
            harmless=INDICES,
        )
        self.version = self._checkpoint.version
        self.family = FAMILIES[self._checkpoint.model_type]
        labels = self._checkpoint.model.config.id2label if closed else {}
        self._classes = {singular(str(name)).lower(): int(number) for number, name in labels.items()}
        if closed and all(name.startswith("label_") for name in self._classes):
            raise WeightsError(f"{weights}: config.json names no classes (id2label)")

    def knows(self, name: str) -> bool:
        """Return whether the detector knows a name: always, unless its set of classes is closed."""
        return not self._classes or singular(name).lower() in self._classes

    def prepare(self, pixels: Pixels, names: Sequence[str]) -> DetectionInput:
        """Prepare an image and the names to look for.

        Raises:
            ToolError: the image is smaller than 4 px or more elongated than 20 : 1.
        """
        from PIL import Image

        height, width = pixels.shape[:2]
        if min(height, width) < MIN_SIDE_PX or max(height, width) > MAX_ELONGATION * min(height, width):
            raise ToolError(
                f"detection: an image of {size_px(width, height)} px is too small or too elongated "
                f"(at least {at('width', MIN_SIDE_PX)} px, at most {MAX_ELONGATION:g} : 1)"
            )
        reduced = shrink(pixels, MAX_SIDE_PX)
        if self.family.pads:
            reduced = pad_square(reduced)
        picture = Image.fromarray(reduced)
        if self.family.smooths:
            size = self._checkpoint.processor.size
            picture = picture.resize((size["width"], size["height"]), Image.Resampling.BILINEAR)
        processor = getattr(self._checkpoint.processor, "image_processor", self._checkpoint.processor)
        if enlarges(processor, reduced):
            return DetectionInput(tuple(names), {"pixel_values": enlarge(processor, reduced)})
        if is_plain_grounding_dino(processor):
            return DetectionInput(tuple(names), resize_and_normalise(processor, reduced))
        inputs = self._checkpoint.process(images=picture)
        return DetectionInput(
            tuple(names), {name: inputs[name] for name in ("pixel_values", "pixel_mask") if name in inputs}
        )

    def batch_key(self, request: DetectionInput) -> Hashable:
        """Return the shape of the image, and its names if the network reads them as a sentence."""
        # Images are not padded to a common shape: Grounding DINO's mask does not reach its backbone, so padding would
        # change the scores.
        return request.names if self.family.kind == "sentence" else (), shape(request.image["pixel_values"])

    def predict(self, requests: Sequence[DetectionInput]) -> list[DetectionOutput]:
        """Compute scores and boxes of every image; one pass per shape (and per sentence, if names are read as one)."""
        groups = by_form([self.batch_key(request) for request in requests], MAX_AT_ONCE)
        return by_members(groups, lambda members: self._pass([requests[place] for place in members]))

    def detections(
        self, pixels: Pixels, names: Sequence[str], output: DetectionOutput, floor: float
    ) -> list[Detection]:
        """Return all objects of these names with a score of at least `floor`, best first, without duplicates.

        Raises:
            ToolError: a score or a box is not finite.
        """
        check_finite("detection", output.scores, output.boxes)
        height, width = pixels.shape[:2]
        # Factors (x, y) that scale a box of 0..1 to pixels, and the width and height to which it is clipped.
        across, down = (max(height, width),) * 2 if self.family.pads else (width, height)
        return gather(names, output.scores, output.boxes, floor, (across, down, width, height))

    def _pass(self, group: Sequence[DetectionInput]) -> list[DetectionOutput]:
        import torch

        loaded = self._checkpoint
        inputs = {name: together([request.image[name] for request in group], loaded.device) for name in group[0].image}
        read: Any = {}
        if self.family.kind == "sentence":
            sentence = " ".join(f"{singular(name).lower().replace('.', ' ')}." for name in group[0].names)
            read = loaded.processor(text=[sentence] * len(group), return_tensors="pt").to(loaded.device)
        elif self.family.kind == "queries":
            most = max(len(request.names) for request in group)
            # Every image needs as many queries as the longest list: the last query of a shorter list is repeated, and
            # the copies are ignored.
            names = [
                name
                for request in group
                for name in (*request.names, *[request.names[-1]] * (most - len(request.names)))
            ]
            read = loaded.processor(
                text=[f"a photo of a {singular(name)}" for name in names],
                padding="max_length",
                truncation=True,
                max_length=int(loaded.model.config.text_config.max_position_embeddings),
                return_tensors="pt",
            ).to(loaded.device)
        outputs = loaded.model(**inputs, **read)
        scores, boxes = torch.sigmoid(outputs.logits.float()), doubles(outputs.pred_boxes)
        rows = []
        for place, request in enumerate(group):
            # Scores of one image: a row per box, and a column per class, query or token.
            row_scores = scores[place]
            if self.family.kind == "closed":
                columns = [self._classes[singular(name).lower()] for name in request.names]
                # A query counts for a class only if it fits no other class better.
                name_scores = torch.where(row_scores == row_scores.amax(dim=1, keepdim=True), row_scores, 0.0)[
                    :, columns
                ]
            elif self.family.kind == "queries":
                name_scores = row_scores[:, : len(request.names)]
            else:
                stop = loaded.processor.tokenizer.convert_tokens_to_ids(".")
                name_scores = by_phrase(row_scores, read["input_ids"][0].tolist(), stop, len(request.names))
            rows.append(DetectionOutput(doubles(name_scores), boxes[place]))
        return rows


def pad_square(pixels: Pixels) -> Pixels:
    """Pad an image (H, W, 3) to a square with grey, keeping it in the upper left.

    Owlv2ImageProcessor of transformers pads with black and OwlViTImageProcessor stretches the image; the authors pad
    with 0.5 for both (`preprocess_image` in scenic/projects/owl_vit/notebooks/inference.py of google-research/scenic).
    """
    height, width = pixels.shape[:2]
    square = np.full((max(height, width),) * 2 + (3,), GREY, np.uint8)
    square[:height, :width] = pixels
    return square


def enlarges(processor: Any, square: Pixels) -> bool:
    """Return whether the processor is OWLv2's and would only enlarge an image (S, S, 3), as `enlarge` does."""
    return (
        type(processor).__name__ == "Owlv2ImageProcessor"
        and all((processor.do_resize, processor.do_rescale, processor.do_normalize))
        and len(square) <= min(processor.size["height"], processor.size["width"])
    )


def enlarge(processor: Any, square: Pixels) -> Any:
    """Enlarge a square image (S, S, 3) to (1, 3, h, w) like OWLv2's processor, to within 1e-3, in a third of its time.

    Weights of a bilinear mean sum to 1, so normalising before enlarging gives the same result on fewer pixels.
    """
    import cv2
    import torch

    mean, std = (np.asarray(values, np.float32) for values in (processor.image_mean, processor.image_std))
    # One row per grey level: a look-up gives the same numbers as the arithmetic on every pixel, in a fifth of the time.
    levels = (np.arange(256, dtype=np.uint8)[:, None] * np.float32(processor.rescale_factor) - mean) / std
    size = (processor.size["width"], processor.size["height"])
    large = np.empty((3, size[1], size[0]), np.float32)
    for channel, plane in enumerate(cv2.split(square)):
        values = cv2.LUT(plane, np.ascontiguousarray(levels[:, channel]))
        cv2.resize(values, size, dst=large[channel], interpolation=cv2.INTER_LINEAR)
    return torch.from_numpy(large)[None]


def is_plain_grounding_dino(processor: Any) -> bool:
    """Return whether `resize_and_normalise` can replace this processor.

    It can replace Grounding DINO's processor if all steps are enabled and the padding has no fixed size.
    """
    return (
        type(processor).__name__ == "GroundingDinoImageProcessor"
        and all((processor.do_resize, processor.do_rescale, processor.do_normalize, processor.do_pad))
        and processor.pad_size is None
    )


def resize_and_normalise(processor: Any, pixels: Pixels) -> dict[str, Any]:
    """Return the inputs (1, 3, h, w) and the mask (1, h, w) of an image (H, W, 3) as Grounding DINO's processor does.

    The values are identical and take half the time: a table of the 256 grey levels replaces the arithmetic per pixel.
    A single image needs no padding.
    """
    import cv2
    import torch

    planes = torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)))
    resized = processor.resize(planes[None], size=processor.size, resample=processor.resample)[0].numpy()
    values = np.empty(resized.shape, np.float32)
    for channel, (mean, std) in enumerate(zip(processor.image_mean, processor.image_std, strict=True)):
        # The processor scales mean and deviation to grey levels, instead of scaling the pixels to 0..1.
        mean_level, std_level = (np.float32(value) * np.float32(1 / processor.rescale_factor) for value in (mean, std))
        levels = (np.arange(256, dtype=np.float32) - mean_level) / std_level
        cv2.LUT(resized[channel], levels, dst=values[channel])
    mask = torch.ones((1, *resized.shape[1:]), dtype=torch.int64)
    return {"pixel_values": torch.from_numpy(values)[None], "pixel_mask": mask}


def by_phrase(tokens: Any, ids: Sequence[int], stop: int, names: int) -> Any:
    """Return scores of phrases (Q, names) from scores of tokens (Q, T): the best token between two full stops.

    `ids` starts with the token for the beginning of the sentence, which belongs to no name.

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
    names: Sequence[str], scores: Scores, boxes: Boxes, floor: float, frame: tuple[float, float, int, int]
) -> list[Detection]:
    """Make detections from scores (Q, N) and boxes (Q, 4), centre x, y, width, height in 0..1; one name per query.

    `frame`: pixels per unit in x and in y, and the width and height to which boxes are clipped.
    """
    across, down, width, height = frame
    best = scores.argmax(axis=1)
    score = scores[np.arange(len(scores)), best]
    middle, half = boxes[:, :2], boxes[:, 2:] / 2
    low, high = (np.clip(edge * (across, down), 0, (width, height)) for edge in (middle - half, middle + half))
    counts = (score >= floor) & ((high - low) >= 1).all(axis=1)
    detections = [
        Detection(names[best[row]], float(score[row]), Box(*low[row].tolist(), *high[row].tolist()))
        for row in np.flatnonzero(counts)
    ]
    return distinct(sorted(detections, key=lambda detection: -detection.score))


def distinct(detections: Sequence[Detection]) -> list[Detection]:
    """Apply non-maximum suppression name by name, best first."""
    edges = np.array(
        [(detection.box.x0, detection.box.y0, detection.box.x1, detection.box.y1) for detection in detections]
    ).reshape(-1, 4)
    lows, highs, names = edges[:, :2], edges[:, 2:], np.array([detection.name for detection in detections])
    areas = (highs - lows).prod(axis=1)
    selected, remaining = [], np.arange(len(detections))
    # An untrained network leaves thousands of boxes, so each box is compared with all remaining ones at once.
    while len(remaining):
        best, remaining = remaining[0], remaining[1:]
        selected.append(detections[best])
        sides = np.minimum(highs[best], highs[remaining]) - np.maximum(lows[best], lows[remaining])
        shared = sides.clip(min=0).prod(axis=1)
        same = (names[remaining] == names[best]) & (shared >= SAME_OBJECT * (areas[best] + areas[remaining] - shared))
        remaining = remaining[~same]
    return selected
