"""Reflectance: which of two points is on the darker surface, independent of the light, or whether both are equal.

    hybrid tools run reflectance photo.jpg --args '{"points": [{"x": 40, "y": 300}, {"x": 200, "y": 90}]}'

Without points it compares the rings drawn on the image. The weight-free backend weights the cues of `cues.py`; the
learned one reads the albedo that a Marigold model predicts. `bench/reflectance.py` prints the scores of the weight-free
backend and fits its weights.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field, with_config
from typing_extensions import TypedDict

from hybrid.core.coordinates import spot_px
from hybrid.core.errors import ToolError, WeightsError
from hybrid.core.types import Finding, Json, Prompt
from hybrid.marks.marks_json import Label
from hybrid.tool import Args, CheckCase, Claims, Evidence, KnownAnswer, Pixels, Request, Tool
from hybrid.tool.args import UNTOLD
from hybrid.tool.backends import Learned, WeightFree
from hybrid.tool.card_file import tool_card
from hybrid.tool.outputs import schema_of
from hybrid.tool.rules import OneCall, drawn_labels
from tools._shared.args import PointArg, Spot, point_markers, read_points
from tools._shared.batches import on_host
from tools._shared.diffusers_parts import load_parts
from tools._shared.finding_text import Lines
from tools._shared.known_answers import expects, point_args
from tools._shared.overlay import PALETTE, overlay
from tools._shared.picture_content import is_patchwork, shows_something, support_by_edges, support_by_size
from tools._shared.reading import check_size, shrink, unmarked, window_median
from tools._shared.wording import wording_of
from tools.reflectance.cues import (
    COLOURFUL,
    WORK_PX,
    PairCues,
    colour_spread,
    compare,
    log_reflectance,
    reflectance_map,
    segment,
    weigh,
)

# One value per pixel, or one per channel.
Albedo = npt.NDArray[np.float32]
# Denoising steps if the checkpoint names no number: version 1.1 is made for one to four.
STEPS = 4
MAX_SIDE_PX = 768
MIN_SIDE_PX = 16
GAMMA = 2.2
PIPELINES = ("MarigoldIntrinsicsPipeline",)
SCHEDULERS = ("DDIMScheduler", "LCMScheduler")
SPACES = ("srgb", "linear")
TARGET = "albedo"


class IntrinsicModel:
    """A verified Marigold intrinsic decomposition pipeline on a device."""

    def __init__(self, weights: str, device: str) -> None:
        """Load the pipeline.

        Raises `WeightsError` if diffusers or weights are missing, or if the weights predict no albedo.
        """
        parts = load_parts(weights, device, pipelines=PIPELINES, schedulers=SCHEDULERS)
        properties = parts.index.get("target_properties") or {}
        names = properties.get("target_names") or []
        if TARGET not in names:
            raise WeightsError(f"{weights}: model_index.json names the targets {names}; {TARGET} is wanted")
        albedo = {"prediction_space": "srgb", **(properties.get(TARGET) or {})}
        if (space := albedo["prediction_space"]) not in SPACES:
            spaces = ", ".join(SPACES)
            raise WeightsError(f"{weights}: model_index.json gives albedo in {space!r}; expected one of {spaces}")
        targets = len(names)
        latents = int(parts.vae.config.latent_channels)
        if int(parts.unet.config.out_channels) != targets * latents:
            raise WeightsError(
                f"{weights}: the network predicts {parts.unet.config.out_channels} channels, "
                f"model_index.json names {targets} targets of {latents}"
            )
        self._place = names.index(TARGET)
        self._exponent = GAMMA if space == "srgb" else 1.0
        self._device = device
        self.version = f"marigold-iid@{parts.sha256[:12]}"
        # If the package were missing, `load_parts` would have raised an error.
        diffusers: Any = importlib.import_module("diffusers")
        self._pipeline = diffusers.MarigoldIntrinsicsPipeline(
            unet=parts.unet,
            vae=parts.vae,
            scheduler=parts.scheduler,
            text_encoder=parts.text_encoder,
            tokenizer=parts.tokenizer,
            prediction_type="intrinsics",
            target_properties={**properties, TARGET: albedo},
            default_denoising_steps=parts.index.get("default_denoising_steps") or STEPS,
            default_processing_resolution=parts.index.get("default_processing_resolution") or MAX_SIDE_PX,
        )
        self._pipeline.set_progress_bar_config(disable=True)

    def albedo(self, pixels: Pixels, seed: int) -> Albedo:
        """Predict albedo 0..1 in linear light, (h, w, 3), long side at most 768 px, for an RGB image (H, W, 3).

        Raises:
            ToolError: the image is smaller than 16 px, or the network returned values that are not finite.
        """
        import torch
        from PIL import Image

        check_size("reflectance", pixels, MIN_SIDE_PX)
        small = shrink(pixels, MAX_SIDE_PX)
        result = self._pipeline(
            Image.fromarray(small),
            ensemble_size=1,
            output_type="pt",
            generator=torch.Generator(device=self._device).manual_seed(seed),
        )
        # One prediction per target, (targets, 3, h, w).
        values = on_host(result.prediction[self._place].permute(1, 2, 0))
        if not np.isfinite(values).all():
            raise ToolError("reflectance: the network returned values that are not finite")
        return np.asarray(np.clip(values, 0, 1) ** self._exponent, np.float32)


# Weights of `PairCues.signed` for the log odds that the first point is darker, from `bench/reflectance.py --fit --items
# 120`.
DARKER_WEIGHTS = (-1.225, 1.808, 1.195, 0.887, 1.028, 0.058, 0.312, -0.039, 0.898)
# Weights of `PairCues.unsigned`, then a constant, for the log odds that the paints differ; fitted with the above.
DIFFERENT_WEIGHTS = (1.652, -0.653, 4.148)
# Learned albedos whose logarithms differ by less count as equal: WHDR's threshold of 10 % (Bell et al. 2014) would be
# finer than the networks' resolution. The value is an assumption, not measured.
SAME_LOG_RATIO = 0.25
SURE_LOG_RATIO = 0.5
# Range of the log albedos of an image below which the network does not tell surfaces apart.
NO_RELIEF = 0.01
LEGEND = "estimated reflectance, relative: violet dark 0, yellow light 1"


class ReflectanceArgs(Args):
    """Arguments of the reflectance tool."""

    points: tuple[PointArg, ...] = Field(default=(), max_length=2, description="two, else those drawn")
    labels: tuple[Label, ...] = Field(
        json_schema_extra=UNTOLD, default=(), max_length=5, description="drawn letters, if known"
    )


class SurfacePoint(TypedDict):
    """A compared point."""

    label: str | None
    x_px: float
    y_px: float
    log_reflectance: Annotated[
        float | None, Field(description="natural logarithm, relative to the image; null if nothing was compared")
    ]


class DarkerChances(TypedDict):
    """Probabilities of the three verdicts."""

    first_darker: float
    second_darker: float
    same: float


@with_config(extra="forbid")
class ReflectanceData(TypedDict):
    """Data of reflectance."""

    darker: Annotated[str | None, Field(description="label of the darker point")]
    darker_index: Annotated[int | None, Field(description="index of the darker point, null if equal or not compared")]
    same: Annotated[bool, Field(description="whether both are about equally dark")]
    points: list[SurfacePoint]
    probability_0_1: Annotated[DarkerChances | None, Field(description="null if nothing was compared")]


class ReflectanceVerdict(NamedTuple):
    """The probabilities that the first point is darker, that the second is, and that neither is.

    `levels` are the log reflectances of the two points.
    """

    first: float
    second: float
    same: float
    levels: tuple[float, float]

    @property
    def choice(self) -> str:
        """The most probable verdict: "first", "second" or "same"."""
        chances = {"first": self.first, "second": self.second, "same": self.same}
        return max(chances, key=lambda name: chances[name])

    @property
    def confidence(self) -> float:
        """Probability of the most probable verdict."""
        return max(self.first, self.second, self.same)


def judge(cues: PairCues, levels: tuple[float, float]) -> ReflectanceVerdict:
    """Weigh the cues of two points. `levels` are the log reflectances of their paints."""
    different = weigh(cues.unsigned, DIFFERENT_WEIGHTS)
    first = weigh(cues.signed, DARKER_WEIGHTS)
    return ReflectanceVerdict(different * first, different * (1 - first), 1 - different, levels)


def judge_albedo(levels: tuple[float, float]) -> ReflectanceVerdict:
    """Compare two log albedos of a learned map."""
    gap = levels[1] - levels[0]
    same = float(1 / (1 + np.exp((abs(gap) - SAME_LOG_RATIO) * 6 / SURE_LOG_RATIO)))
    first = float(1 / (1 + np.exp(-gap * 6 / SURE_LOG_RATIO)))
    return ReflectanceVerdict((1 - same) * first, (1 - same) * (1 - first), same, levels)


def spots_of(request: Request[ReflectanceArgs]) -> list[Spot]:
    """Return the two points to compare, in px of the image; fewer if fewer are marked.

    Raises:
        ToolError: a given point is outside the image, or no drawn point has the given letter.
    """
    size = (request.images[0].shape[0], request.images[0].shape[1])
    return read_points("reflectance", request.args.points, request.needs.get("markers", ()), size)[:2]


def clean_image(request: Request[ReflectanceArgs]) -> Pixels:
    """Return the image without drawn marks, its long side at most 480 px, for which the constants were set."""
    return unmarked(request.images[0], request.needs.get("markers", ()), WORK_PX)


def can_compare(spots: Sequence[Spot], cleaned: Pixels) -> bool:
    """Return whether there are two spots at different positions in an image that shows more than noise."""
    are_apart = len({(round(spot.x), round(spot.y)) for spot in spots}) == 2
    return are_apart and shows_something(cleaned)


def evidence_of(
    request: Request[ReflectanceArgs],
    spots: Sequence[Spot],
    verdict: ReflectanceVerdict | None,
    values: Albedo,
    basis: str,
    support: float = 1.0,
) -> Evidence:
    """Build the tool output for a verdict on two spots, with a map (h, w) in 0..1; without a verdict, say why.

    `support`, 0..1, is the share of the confidence above chance that the image's edges support.

    Returns:
        Evidence with `ReflectanceData` and an overlay. The confidence is the probability that the verdict is right.
    """
    # The confidence approaches that of a guess among three if a point may be misplaced, or if the image is small.
    levels: Sequence[float | None] = (None,) * len(spots)
    certainty, index, chances = 0.3, None, None
    if verdict is not None:
        share = min(spot.confidence for spot in spots) * support_by_size(request.images[0]) * support
        certainty = 1 / 3 + max(0.0, verdict.confidence - 1 / 3) * share
        index, levels = {"first": 0, "second": 1}.get(verdict.choice), verdict.levels
        chances = {"first_darker": verdict.first, "second_darker": verdict.second, "same": verdict.same}
    data: dict[str, Json] = {
        "darker": None if index is None else spots[index].label,
        "darker_index": index,
        "same": bool(verdict and verdict.choice == "same"),
        "points": [
            {"label": spot.label, "x_px": spot.x, "y_px": spot.y, "log_reflectance": level}
            for spot, level in zip(spots, levels, strict=False)
        ],
        "probability_0_1": chances,
    }
    points = [(spot.x, spot.y, spot.label or str(n), PALETTE[n % len(PALETTE)]) for n, spot in enumerate(spots, 1)]
    picture = overlay(request.images[0], LEGEND, points=points, values=values)
    return Evidence(describe(spots, verdict, certainty, basis), data, certainty, (picture,))


def describe(spots: Sequence[Spot], verdict: ReflectanceVerdict | None, certainty: float, basis: str) -> str:
    """Describe the verdict in at most six lines for the model."""
    names = [spot.label or f"point {number}" for number, spot in enumerate(spots, 1)]
    if verdict is None and len(spots) < 2:
        return f"Image 1: {len(spots)} point(s) given or marked; two are needed, so nothing is compared."
    if verdict is None:
        shown = "one hue, flat patches, soft blobs or noise"
        return f"Image 1: undecided: the points lie at one place, or the picture shows {shown}."
    if verdict.choice == "same":
        head = f"Image 1: the surfaces at {names[0]} and {names[1]} are about equally dark, confidence {certainty:.2f}."
    else:
        index = 0 if verdict.choice == "first" else 1
        head = (
            f"Image 1: the surface at {names[index]} is darker than at {names[1 - index]}, confidence {certainty:.2f}."
        )
    chances = (
        f"Probability: {names[0]} darker {verdict.first:.2f}, {names[1]} darker {verdict.second:.2f}, "
        f"about the same {verdict.same:.2f}."
    )
    places = "; ".join(f"{name} at {spot_px(s.x, s.y)}" for name, s in zip(names, spots, strict=True))
    return Lines().cut(head, chances, f"Points: {places}.", f"Basis: {basis}.")


class PaintCues(WeightFree[ReflectanceArgs]):
    """The weight-free backend."""

    def answer(self, request: Request[ReflectanceArgs]) -> Evidence:
        """Compare the points of a request. Raises `ToolError` for a point outside the image."""
        spots, cleaned = spots_of(request), clean_image(request)
        parts = segment(cleaned)
        verdict, edges = None, support_by_edges(cleaned)
        # If everything has one hue, any two places seem to have the same paint. Flat patches show no light, so a
        # difference in brightness may come from the paint or from the light; so may one without an edge.
        is_lit = edges > 0 and not is_patchwork(cleaned)
        if is_lit and can_compare(spots, cleaned) and colour_spread(parts) >= COLOURFUL:
            scale = cleaned.shape[1] / request.images[0].shape[1], cleaned.shape[0] / request.images[0].shape[0]
            first, second = (parts.at(spot.x * scale[0], spot.y * scale[1]) for spot in spots)
            levels = log_reflectance(parts, np.array([first, second]), DARKER_WEIGHTS)
            verdict = judge(compare(parts, first, second), (float(levels[0]), float(levels[1])))
        basis = "hue without brightness shows which places share a paint; how bright they get shows how dark it is"
        return evidence_of(request, spots, verdict, reflectance_map(parts, DARKER_WEIGHTS), basis, edges)


# The spots to compare, the image without marks, and the seed of the network's initial noise.
AlbedoInput = tuple[list[Spot], Pixels, int]


class LearnedAlbedo(Learned[ReflectanceArgs, AlbedoInput, Albedo, IntrinsicModel]):
    """The learned backend: the albedo of a Marigold intrinsic decomposition model."""

    load = IntrinsicModel

    def prepare(self, request: Request[ReflectanceArgs]) -> AlbedoInput:
        """Return the spots and the image without marks. Raises `ToolError` like `spots_of`."""
        return spots_of(request), clean_image(request), request.seed

    def compute(self, prepared: Sequence[AlbedoInput]) -> list[Albedo]:
        """Predict the albedo (h, w) of each image, one at a time. Raises `ToolError` for an image that is too small."""
        return [self.model.albedo(pixels, seed).mean(axis=2) for _, pixels, seed in prepared]

    def finish(self, request: Request[ReflectanceArgs], prepared: AlbedoInput, output: Albedo) -> Evidence:
        """Decide which spot is darker by its albedo."""
        (spots, cleaned, _), logs = prepared, np.log(np.maximum(output, 1e-3))
        size = (request.images[0].shape[0], request.images[0].shape[1])
        verdict = None
        if can_compare(spots, cleaned) and float(np.ptp(logs)) > NO_RELIEF:
            first, second = (window_median(logs, spot.x, spot.y, size) for spot in spots)
            verdict = judge_albedo((first, second))
        values = np.asarray(output / max(float(output.max()), 1e-6), np.float32)
        return evidence_of(request, spots, verdict, values, "albedo predicted by a network")


def darker_surface(finding: Finding, prompt: Prompt) -> str | None:
    """Return a pattern for the letter of the darker surface, or for both being equal."""
    if finding.data.get("same") is True:
        return r"(?i)\b(?:same|equal(?:ly)?)\b"
    darker = finding.data.get("darker")
    return rf"\b{re.escape(darker)}\b.*\bdarker\b" if isinstance(darker, str) else None


HEIGHT, WIDTH, STRIPE = 320, 440, 14
# Numbers of the drawn stripes, counted from the border; each queried stripe has neighbours on both sides.
BAND = range(18, 26)
WALL, DARK, LIGHT = (150, 145, 138), (60, 38, 34), (232, 214, 150)


def _paints(place: int) -> CheckCase:
    import cv2

    canvas = np.full((HEIGHT, WIDTH, 3), WALL, np.float32)
    centres = ((120, 160), (320, 160))
    for centre, colour in zip(centres, (DARK, LIGHT), strict=True):
        cv2.circle(canvas, centre, 80, colour, -1, cv2.LINE_AA)
    light = np.linspace(1.05, 0.85, canvas.shape[0], dtype=np.float32)[:, None, None]
    picture = np.clip(canvas * light, 0, 255).astype(np.uint8)
    return CheckCase((picture,), {"points": point_args(centres[:: -1 if place else 1])}, expects("darker_index", place))


def _stripes(place: int, scale: int, *, transposed: bool) -> CheckCase:
    """Draw stripes of two paints, and ask about the centres of a dark and a light stripe, far from the origin."""
    canvas = np.full((HEIGHT, WIDTH, 3), WALL, np.uint8)
    for number in BAND:
        canvas[:, number * STRIPE : (number + 1) * STRIPE] = LIGHT if number % 2 else DARK
    picture = np.repeat(np.repeat(canvas, scale, axis=0), scale, axis=1)
    # At scale 1 the points are about 320 px from the origin, so a coordinate that is off by 5 % lands about one stripe
    # away.
    centres = [((number + 0.5) * STRIPE * scale - 0.5, HEIGHT / 2 * scale) for number in (22, 21)]
    if transposed:
        picture, centres = np.ascontiguousarray(picture.swapaxes(0, 1)), [(y, x) for x, y in centres]
    return CheckCase((picture,), {"points": point_args(centres[:: -1 if place else 1])}, expects("darker_index", place))


CHECKS = (
    *(KnownAnswer(f"dark paint at point {'AB'[place]}", partial(_paints, place)) for place in (0, 1)),
    KnownAnswer("dark stripe at point A", partial(_stripes, 0, 1, transposed=False)),
    KnownAnswer("dark stripe at point B, across", partial(_stripes, 1, 1, transposed=True)),
    KnownAnswer("dark stripe of a large picture", partial(_stripes, 1, 3, transposed=False)),
)


TOOL = Tool(
    card=tool_card(__file__, LearnedAlbedo, PaintCues, point_markers),
    args=ReflectanceArgs,
    checks=CHECKS,
    claims=Claims(("darker_index", "same"), compares="points"),
    # Without a model, the rule answers which drawn point is on the darker surface, or that both are equal.
    rules={"Relative_Reflectance": OneCall("reflectance", darker_surface, drawn_labels)},
    wording=wording_of(__file__),
    output=schema_of(ReflectanceData),
)
