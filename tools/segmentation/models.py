"""Segmentation networks: from points and boxes, from words, or from both.

SAM 2 (Ravi et al. 2024) accepts points and boxes, CLIPSeg (Lüddecke and Ecker 2022) words, SAM 3 (Carion et al. 2025)
all of these. `model = segmenter(dir_or_id, "cpu")` loads any of them; the checkpoint's family determines the prompts.
Then `model.mask(pixels, model.predict([model.prepare(pixels, prompt)])[0])`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hybrid.core.errors import ToolError
from hybrid.core.types import Box, Fault
from hybrid.tool import Pixels
from hybrid.tool.backends import check_finite
from hybrid.tool.checkpoint import INDICES, find_checkpoint, load_verified, model_type_of
from tools._shared.args import Spot
from tools._shared.batches import by_form, by_members, in_batches, on_host, shape, together
from tools._shared.reading import check_size, shrink
from tools._shared.target_heat import FAMILY, SearchInput, TargetHeat, probability

Mask = npt.NDArray[np.bool_]
Logits = npt.NDArray[np.float32]

# The published SAM 2 files contain the video model; the image model reads its part of them.
BY_PLACE = ("sam2", "sam2_video")
BY_WORDS = (FAMILY,)
# The published SAM 3 file contains a detector, which accepts words, and a tracker, which accepts points and boxes.
BOTH = ("sam3_video",)
MIN_SIDE_PX = 4
MAX_SIDE_PX = 2048
# Images per pass: SAM 2 resizes each to 1024 px.
MAX_AT_ONCE = 8
# Minimum probability at which a pixel matches the words and, with SAM 3, an object.
PRESENT = 0.5
ABSENT_LOGIT = -20.0


class SegmentationPrompt(NamedTuple):
    """The object to segment, given by words or, in pixels, by points on it, points off it, and a box around it."""

    on: tuple[Spot, ...] = ()
    off: tuple[Spot, ...] = ()
    box: Box | None = None
    words: str | None = None


class PlacedInput(NamedTuple):
    """SAM 2's input for one image and its prompt.

    `values` (1, 3, h, w) is the image for the network, and `size` (H, W) its original size. `prompt` has the parts of
    the prompt by the network's names, (1, ...) each. `several` says whether the network proposes several masks.
    """

    values: Any
    prompt: Mapping[str, Any]
    several: bool
    size: tuple[int, int]


class MaskOutput(NamedTuple):
    """Logits (h, w) of a mask on the network's grid, and the network's estimate of its IoU, 0..1, if it gives one.

    The mask is enlarged to `size` (H, W), by default the size of the image, before thresholding at 0.
    """

    logits: Logits
    estimate: float | None = None
    size: tuple[int, int] | None = None


class ByPlace:
    """SAM 2, or SAM 3's tracker; the score of a mask is the network's estimate of its intersection over union."""

    def __init__(self, weights: str, device: str, network: str = "Sam2", families: Sequence[str] = BY_PLACE) -> None:
        """Load the checkpoint. Raises `WeightsError` if it is missing, unsuitable or of another family."""
        self._checkpoint = load_verified(
            f"{network}Model",
            weights,
            device=device,
            processor_class=f"{network}Processor",
            model_types=families,
            harmless=INDICES,
        )
        self.version = self._checkpoint.version

    def see_through(self, encoder: Any) -> None:
        """Replace the network's image encoder by an equal module, to share its memory."""
        self._checkpoint.model.vision_encoder.backbone = encoder

    def prepare(self, pixels: Pixels, prompt: SegmentationPrompt) -> PlacedInput:
        """Prepare an image (H, W, 3) and points or a box. Raises `ToolError` for words, or an image below 4 px."""
        from PIL import Image

        if prompt.words is not None:
            raise ToolError("segmentation: this checkpoint takes points or a box, not words", Fault.BAD_ARGUMENTS)
        picture, scale = _reduced(pixels)
        processor_prompt: dict[str, Any] = {}
        spots = (*prompt.on, *prompt.off)
        if spots:
            processor_prompt["input_points"] = [[[[s.x * scale[0], s.y * scale[1]] for s in spots]]]
            processor_prompt["input_labels"] = [[[1] * len(prompt.on) + [0] * len(prompt.off)]]
        if (box := prompt.box) is not None:
            edges = (box.x0 * scale[0], box.y0 * scale[1], box.x1 * scale[0], box.y1 * scale[1])
            processor_prompt["input_boxes"] = [[list(edges)]]
        inputs = self._checkpoint.process(images=Image.fromarray(picture), **processor_prompt)
        # A single point fits a part, an object and a group: the network returns all three with estimates.
        several = box is None and len(spots) == 1
        placed = {name: inputs[name] for name in processor_prompt}
        return PlacedInput(inputs["pixel_values"], placed, several, (picture.shape[0], picture.shape[1]))

    def predict(self, prepared: Sequence[PlacedInput]) -> list[MaskOutput]:
        """Run the encoder once for all images, and the small decoder once for each form of prompt."""

        def run(values: Any, members: Sequence[int]) -> list[MaskOutput]:
            group = [prepared[place] for place in members]
            encoded = self._checkpoint.model.get_image_embeddings(values)
            # Prompts of one form have equal numbers of points and masks, and either all or none of them have a box.
            forms = [
                (item.several, *sorted((name, shape(part)) for name, part in item.prompt.items())) for item in group
            ]
            return by_members(
                by_form(forms, len(group)),
                lambda rows: self._decoded([level[rows] for level in encoded], [group[row] for row in rows]),
            )

        return in_batches([item.values for item in prepared], self._checkpoint.device, run, MAX_AT_ONCE)

    def _decoded(self, encoded: Sequence[Any], group: Sequence[PlacedInput]) -> list[MaskOutput]:
        """Return the best mask of each image; all prompts have one form, because padding would change the masks."""
        import torch

        device = self._checkpoint.device
        prompts = {name: together([item.prompt[name] for item in group], device) for name in group[0].prompt}
        outputs = self._checkpoint.model(image_embeddings=list(encoded), multimask_output=group[0].several, **prompts)
        estimates = on_host(outputs.iou_scores[:, 0])
        best = estimates.argmax(axis=1)
        masks = on_host(outputs.pred_masks[:, 0][torch.arange(len(group)), torch.from_numpy(best)])
        return [
            MaskOutput(masks[row], float(np.clip(estimates[row, best[row]], 0.0, 1.0)), item.size)
            for row, item in enumerate(group)
        ]

    def mask(self, pixels: Pixels, output: MaskOutput) -> tuple[Mask, float]:
        """Return mask (H, W) and score 0..1 for an image (H, W, 3). Raises `ToolError` for values not finite."""
        import cv2
        import torch

        estimate = np.nan if output.estimate is None else output.estimate
        check_finite("segmentation", output.logits, estimate)
        logits = torch.from_numpy(output.logits)[None, None]
        (masks,) = self._checkpoint.processor.post_process_masks([logits], [output.size])
        size = (pixels.shape[1], pixels.shape[0])
        mask = np.asarray(masks[0, 0].numpy(), bool).astype(np.uint8)
        return np.asarray(cv2.resize(mask, size, interpolation=cv2.INTER_NEAREST_EXACT), np.uint8) > 0, estimate


class ByWords:
    """CLIPSeg; the score of a mask is the mean probability inside it, 0 for an empty one."""

    def __init__(self, weights: str, device: str) -> None:
        """Load the checkpoint. Raises `WeightsError` if it is missing, unsuitable or of another family."""
        self._model = TargetHeat(weights, device)
        self.version = self._model.version

    def prepare(self, pixels: Pixels, prompt: SegmentationPrompt) -> SearchInput:
        """Prepare an image (H, W, 3) and words. Raises `ToolError` for points or a box, or an image below 4 px."""
        if prompt.words is None:
            raise ToolError("segmentation: this checkpoint takes words, not points or boxes", Fault.BAD_ARGUMENTS)
        return self._model.prepare(_reduced(pixels)[0], prompt.words)

    def predict(self, prepared: Sequence[SearchInput]) -> list[MaskOutput]:
        """Run all images in one pass."""
        return [MaskOutput(logits) for logits in self._model.predict(prepared)]

    def mask(self, pixels: Pixels, output: MaskOutput) -> tuple[Mask, float]:
        """Return mask (H, W) and score 0..1 for an image (H, W, 3). Raises `ToolError` for values not finite."""
        full = _likely(pixels, output)
        mask = full >= PRESENT
        return mask, float(full[mask].mean()) if mask.any() else 0.0


class ByConcept:
    """SAM 3's detector: all objects that the words name, in one mask; the score is that of the best one, 0 if none.

    The mask is thresholded as by `post_process_instance_segmentation` of transformers' `Sam3Processor`.
    """

    def __init__(self, weights: str, device: str) -> None:
        """Load the checkpoint. Raises `WeightsError` if it is missing, unsuitable or of another family."""
        self._checkpoint = load_verified(
            "Sam3Model", weights, device=device, processor_class="Sam3Processor", model_types=BOTH, harmless=INDICES
        )
        self.version = self._checkpoint.version

    @property
    def encoder(self) -> Any:
        """The module that encodes the image."""
        return self._checkpoint.model.vision_encoder.backbone

    def prepare(self, pixels: Pixels, words: str) -> SearchInput:
        """Prepare an image (H, W, 3) and words. Raises `ToolError` for an image below 4 px."""
        from PIL import Image

        inputs = self._checkpoint.process(images=Image.fromarray(_reduced(pixels)[0]))
        return SearchInput(inputs["pixel_values"], words)

    def predict(self, prepared: Sequence[SearchInput]) -> list[MaskOutput]:
        """Run up to 8 images per pass."""
        loaded = self._checkpoint
        length = int(loaded.model.config.text_config.max_position_embeddings)
        as_read = {"padding": "max_length", "truncation": True, "max_length": length, "return_tensors": "pt"}

        def run(values: Any, members: Sequence[int]) -> list[MaskOutput]:
            words = [prepared[place].words for place in members]
            read = loaded.processor.tokenizer(words, **as_read).to(loaded.device)
            seen = loaded.model(pixel_values=values, input_ids=read["input_ids"], attention_mask=read["attention_mask"])
            scores = seen.pred_logits.sigmoid() * seen.presence_logits.sigmoid()
            outputs = []
            for query_scores, masks in zip(scores, seen.pred_masks, strict=True):
                # From scores (Q) and masks (Q, h, w), take the logits (h, w) of all objects that match the words.
                present = query_scores >= PRESENT
                some = bool(present.any())
                logits = masks[present].amax(dim=0) if some else masks[0].new_full(masks.shape[1:], ABSENT_LOGIT)
                # NaN values are below every threshold, so check them separately.
                best = float(query_scores.max()) if some or not bool(query_scores.isfinite().all()) else 0.0
                outputs.append(MaskOutput(on_host(logits), best))
            return outputs

        return in_batches([item.values for item in prepared], loaded.device, run, MAX_AT_ONCE)

    def mask(self, pixels: Pixels, output: MaskOutput) -> tuple[Mask, float]:
        """Return mask (H, W) and score 0..1 for an image (H, W, 3). Raises `ToolError` for values not finite."""
        estimate = np.nan if output.estimate is None else output.estimate
        check_finite("segmentation", estimate)
        return _likely(pixels, output) >= PRESENT, estimate


class Sam3:
    """SAM 3 as published: words go to its detector, points and boxes to its tracker."""

    def __init__(self, weights: str, device: str) -> None:
        """Load both networks. Raises `WeightsError` if the weights are missing, unsuitable or of another family."""
        self._words = ByConcept(weights, device)
        self._places = ByPlace(weights, device, "Sam3Tracker", BOTH)
        # The file has one image encoder for the detector and the tracker.
        self._places.see_through(self._words.encoder)
        self.version = self._words.version

    def prepare(self, pixels: Pixels, prompt: SegmentationPrompt) -> PlacedInput | SearchInput:
        """Prepare an image (H, W, 3) and points, a box, or words. Raises `ToolError` for an image below 4 px."""
        if prompt.words is not None:
            return self._words.prepare(pixels, prompt.words)
        return self._places.prepare(pixels, prompt)

    def predict(self, prepared: Sequence[PlacedInput | SearchInput]) -> list[MaskOutput]:
        """Run the detector and the tracker on their parts of the requests."""
        worded = {place: item for place, item in enumerate(prepared) if isinstance(item, SearchInput)}
        placed = {place: item for place, item in enumerate(prepared) if isinstance(item, PlacedInput)}
        outputs = dict(zip(worded, self._words.predict(list(worded.values())), strict=True))
        outputs.update(zip(placed, self._places.predict(list(placed.values())), strict=True))
        return [outputs[place] for place in range(len(prepared))]

    def mask(self, pixels: Pixels, output: MaskOutput) -> tuple[Mask, float]:
        """Return mask (H, W) and score 0..1 for an image (H, W, 3). Raises `ToolError` for values not finite."""
        return (self._words if output.size is None else self._places).mask(pixels, output)


# A verified checkpoint on a device. The result of `prepare` fits only the same object's `predict`.
Segmenter = ByPlace | ByWords | Sam3


def segmenter(weights: str, device: str) -> Segmenter:
    """Load the checkpoint. Raises `WeightsError` if it is missing, unsuitable or of another family."""
    family = model_type_of(find_checkpoint(weights), weights, (*BY_PLACE, *BY_WORDS, *BOTH))
    if family in BOTH:
        return Sam3(weights, device)
    return ByWords(weights, device) if family in BY_WORDS else ByPlace(weights, device)


def _reduced(pixels: Pixels) -> tuple[Pixels, tuple[float, float]]:
    """Shrink an image to at most 2048 px, and return the scale in x and y. Raises `ToolError` if it is too small."""
    height, width = pixels.shape[:2]
    check_size("segmentation", pixels, MIN_SIDE_PX)
    small = shrink(pixels, MAX_SIDE_PX)
    return small, (small.shape[1] / width, small.shape[0] / height)


def _likely(pixels: Pixels, output: MaskOutput) -> npt.NDArray[np.float32]:
    """Return the probability (H, W) of each pixel of an image. Raises `ToolError` for values that are not finite."""
    import cv2

    likely = probability("segmentation", output.logits)
    size = (pixels.shape[1], pixels.shape[0])
    return np.asarray(cv2.resize(likely, size, interpolation=cv2.INTER_LINEAR), np.float32)
