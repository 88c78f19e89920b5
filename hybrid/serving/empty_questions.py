"""Questions whose pictures contain no answer: a tool should abstain, and a tool that claims something is faulty.

    ask_empty(load("tools", "depth"), DepthCues())     # `hybrid tools check depth` prints them

The pictures of the tool's first known answer are replaced: by one colour, by a gradient (even or radial, in bands,
compressed, or with grain), by noise (fine, blurred, of squares, compressed, or of a falling spectrum), by a chessboard
or rows of dots, by pictures of few pixels, or all by the same picture. In a further question, all points and boxes of
the known answer are moved to one place. `Tool.claims` defines what counts as a claim.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from typing import Any, Final

import numpy as np
from PIL import Image

from hybrid.core.errors import ToolError
from hybrid.core.types import Json
from hybrid.serving.contract import scene
from hybrid.tool import Backend, CheckCase, Claims, Evidence, Pixels, Request, Tool

# Makes a picture of the given (height, width) in px.
Draw = Callable[[int, int], Pixels]
# For a tool without `claims`, an output claims nothing if its confidence is at most this value, the confidence of a
# coin flip.
UNDECIDED: Final = 0.5
GREYS: Final[Mapping[str, int]] = {"grey": 128, "black": 0, "white": 255}
SEEDS: Final = (1, 2, 3)
# Sides of the squares of noise in pixels: coarse noise may look like regions to a tool that searches for them.
SQUARES_PX: Final = (2, 8, 20, 32, 48)
# Radius of a blur, as a share of the short side: the noise then has soft blobs, and no edge.
BLUR: Final = 0.08
CHESS_PX: Final = 24
DOTS_PX: Final = 20
JPEG_QUALITY: Final = 10
# Exponents of noise whose spectrum falls with the frequency: it has light and dark areas like a photograph, but no
# edges.
EXPONENTS: Final = (1.0, 2.0)
TINY: Final = ((1, 1), (2, 2), (8, 8))
# Side of small pictures of compressed noise. A JPEG with fewer blocks cannot be distinguished from a small photograph.
FEW_BLOCKS_PX: Final = 120
# Width of a gradient's bands, and standard deviation of film grain, both in grey levels.
BAND_LEVELS: Final = 16
GRAIN: Final = 8.0
PLAIN_PX: Final = (240, 320)
# Coordinate keys in arguments, mapped to the picture axis along which they are measured.
ALONG: Final[Mapping[str, int]] = {"x": 1, "x0": 1, "x1": 1, "y": 0, "y0": 0, "y1": 0}


@dataclass(frozen=True)
class EmptyAnswer:
    """A tool's answer to a question that the images do not answer.

    `name` is the question's name. `claim` is what the tool claimed; None if it claimed nothing. `refusal` is the reason
    if it refused.
    """

    name: str
    claim: str | None
    seconds: float
    refusal: str | None = None


def ask_empty(tool: Tool, backend: Backend[Any]) -> list[EmptyAnswer]:
    """Ask a backend that is set up every empty question.

    Skip tools that make no claims about their pictures, and tools with neither claims nor known answers.
    """
    if not tool.claims.fields if tool.claims is not None else not tool.checks:
        return []
    return [_ask(tool, backend, name, case) for name, case in empty_questions(tool)]


def _ask(tool: Tool, backend: Backend[Any], name: str, case: CheckCase) -> EmptyAnswer:
    started, claim, refusal = time.perf_counter(), None, None
    try:
        (evidence,) = backend.run([Request(case.images, tool.parse(case.args), case.needs)])
        claim = claim_of(tool.claims, evidence)
    except ToolError as error:
        refusal = str(error)
    return EmptyAnswer(name, claim, time.perf_counter() - started, refusal)


def claim_of(claims: Claims | None, evidence: Evidence) -> str | None:
    """Return what the evidence of a request claims, in words; None if it claims nothing."""
    certainty = f"with confidence {evidence.confidence:.2f}"
    if claims is None:
        return f"an answer {certainty}" if evidence.confidence > UNDECIDED else None
    # Test for False by identity, because an index of 0 is a claim but equals False.
    stated = [f"{key} = {value}" for key in claims.fields if (value := evidence.data.get(key)) or _is_zero(value)]
    return f"{', '.join(stated)} {certainty}" if stated else None


def _is_zero(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def empty_questions(tool: Tool) -> Iterator[tuple[str, CheckCase]]:
    """Yield by name the questions whose pictures contain no answer for this tool."""
    pose = _pose_of(tool)
    for name, level in GREYS.items():
        yield f"flat {name}", pose(partial(_flat, level))
    for seed in SEEDS:
        yield f"noise {seed}", pose(_noise(seed))
    for side in SQUARES_PX:
        for colour, seed in (("coloured", SEEDS[0]), ("grey", SEEDS[1])):
            yield f"{colour} noise of {side} px squares", pose(_noise(seed, side))
    yield "blurred noise", pose(_blurred(SEEDS[0]))
    yield "a chessboard", pose(_chessboard)
    yield "a pattern of dots", pose(_dots)
    yield "compressed noise", pose(_compress(_noise(SEEDS[0])))
    for exponent in EXPONENTS:
        for colour, seed in (("coloured", SEEDS[0]), ("grey", SEEDS[1])):
            yield f"{colour} 1/f^{exponent:g} noise", pose(_fractal(seed, exponent))
    yield "a gradient", pose(_gradient)
    yield "a radial gradient", pose(_radial)
    yield "a gradient in bands", pose(lambda height, width: _gradient(height, width) // BAND_LEVELS * BAND_LEVELS)
    yield "a compressed gradient", pose(_compress(_gradient))
    yield "a compressed vignette with grain", pose(_compress(_grainy(SEEDS[0])))
    few = FEW_BLOCKS_PX
    yield f"{few} x {few} px of compressed noise", _shrink(pose(_compress(_noise(SEEDS[0]))), few, few)
    for height, width in TINY:
        yield f"{width} x {height} px", _shrink(pose(partial(_flat, GREYS["grey"])), height, width)
    claims = tool.claims or Claims(())
    if claims.same_pictures:
        yield "the same picture", pose(lambda height, width: scene(width, height))
    if claims.compares is not None:
        case = tool.checks[0].pose() if tool.checks else pose(lambda height, width: scene(width, height))
        yield f"all {claims.compares} at one place", replace(case, args=_at_one_place(case.args, claims.compares))
    schema = tool.args.model_json_schema()
    if tool.checks and schema.get("properties") and not schema.get("required"):
        plain = _plain(tool)
        yield "noise, no arguments", plain(_noise(SEEDS[0]))
        yield "flat grey, no arguments", plain(partial(_flat, GREYS["grey"]))


def _pose_of(tool: Tool) -> Callable[[Draw], CheckCase]:
    if tool.claims is not None and tool.claims.pose is not None:
        return tool.claims.pose
    if not tool.checks:
        return _plain(tool)
    case = tool.checks[0].pose()

    def replaced(draw: Draw) -> CheckCase:
        return replace(case, images=tuple(draw(*image.shape[:2]) for image in case.images))

    return replaced


def _plain(tool: Tool) -> Callable[[Draw], CheckCase]:
    count = max(1, tool.card.images[0])
    needs = tool.checks[0].pose().needs if tool.checks else {}
    return lambda draw: CheckCase(tuple(draw(*PLAIN_PX) for _ in range(count)), {}, lambda _: None, needs=needs)


def _flat(level: int, height: int, width: int) -> Pixels:
    return np.full((height, width, 3), level, np.uint8)


def _gradient(height: int, width: int) -> Pixels:
    """Return a picture that brightens evenly from left to right."""
    return np.broadcast_to(np.linspace(0, 255, width).astype(np.uint8)[None, :, None], (height, width, 3)).copy()


def _radial(height: int, width: int) -> Pixels:
    """Return a picture that darkens evenly from the middle to the corners."""
    down, across = (np.abs(np.arange(side) - (side - 1) / 2) for side in (height, width))
    distance = np.hypot(down[:, None], across[None])
    level = 255 * (1 - distance / max(float(distance.max()), 1.0))
    return np.broadcast_to(level.astype(np.uint8)[..., None], (height, width, 3)).copy()


def _chessboard(height: int, width: int) -> Pixels:
    """Return black and white squares."""
    dark = (np.arange(height)[:, None] // CHESS_PX + np.arange(width)[None] // CHESS_PX) % 2
    return np.broadcast_to((dark * 255).astype(np.uint8)[..., None], (height, width, 3)).copy()


def _dots(height: int, width: int) -> Pixels:
    """Return dark dots in rows on a light ground: every place looks like the one a period away."""
    down, across = np.mgrid[:height, :width] % DOTS_PX - DOTS_PX / 2
    level = np.where(np.hypot(down, across) < DOTS_PX / 3, 60, 220)
    return np.broadcast_to(level.astype(np.uint8)[..., None], (height, width, 3)).copy()


def _blurred(seed: int) -> Draw:
    """Return a generator of coloured noise that is blurred by `BLUR` of the short side."""
    rng = np.random.default_rng(seed)

    def draw(height: int, width: int) -> Pixels:
        import cv2

        radius = max(0.5, BLUR * min(height, width))
        soft = np.asarray(cv2.GaussianBlur(rng.normal(size=(height, width, 3)), (0, 0), radius), np.float64)
        scaled = 128 + 40 * (soft - soft.mean()) / max(float(soft.std()), 1e-9)
        return np.asarray(np.clip(scaled, 0, 255), np.uint8)

    return draw


def _noise(seed: int, side: int = 1) -> Draw:
    """Return a function that draws new noise at each call: squares of random colours, or of greys for an even seed."""
    rng = np.random.default_rng(seed)
    channels = 3 if seed % 2 else 1

    def draw(height: int, width: int) -> Pixels:
        values = rng.integers(0, 256, (-(-height // side), -(-width // side), channels), dtype=np.uint8)
        squares = values.repeat(side, axis=0).repeat(side, axis=1)[:height, :width]
        return np.broadcast_to(squares, (height, width, 3)).copy()

    return draw


def _grainy(seed: int) -> Draw:
    """Return a generator of pictures that darken towards the corners, under grey film grain."""
    rng = np.random.default_rng(seed)

    def draw(height: int, width: int) -> Pixels:
        grain = GRAIN * rng.normal(size=(height, width, 1))
        return np.asarray(np.clip(_radial(height, width) / 2 + 60 + grain, 0, 255), np.uint8)

    return draw


def _compress(plain: Draw) -> Draw:
    """Return a function that draws the same pictures as low-quality JPEGs: blocks of 8 px with few frequencies."""

    def draw(height: int, width: int) -> Pixels:
        with BytesIO() as file:
            Image.fromarray(plain(height, width)).save(file, "JPEG", quality=JPEG_QUALITY)
            return np.asarray(Image.open(file), np.uint8).copy()

    return draw


def _fractal(seed: int, exponent: float) -> Draw:
    """Return a generator of noise whose spectrum falls with a power of the frequency, in grey for an even seed."""
    rng = np.random.default_rng(seed)
    channels = 3 if seed % 2 else 1

    def draw(height: int, width: int) -> Pixels:
        frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)[None])
        frequency[0, 0] = 1.0
        spectrum = np.fft.fft2(rng.normal(size=(height, width, channels)), axes=(0, 1))
        plane = np.fft.ifft2(spectrum / frequency[..., None] ** exponent, axes=(0, 1)).real
        plane -= plane.mean()
        values = np.clip(128 + 40 * plane / max(float(plane.std()), 1e-9), 0, 255)
        return np.broadcast_to(values.astype(np.uint8), (height, width, 3)).copy()

    return draw


def _shrink(case: CheckCase, height: int, width: int) -> CheckCase:
    """Return the question with pictures of (height, width) px and its coordinates scaled from the largest picture."""

    def scaled(value: Json) -> Json:
        if isinstance(value, Mapping):
            return {
                key: at * (height, width)[ALONG[key]] / max(image.shape[ALONG[key]] for image in case.images)
                if key in ALONG and isinstance(at, int | float)
                else scaled(at)
                for key, at in value.items()
            }
        return [scaled(inner) for inner in value] if isinstance(value, list | tuple) else value

    args = {key: scaled(value) for key, value in case.args.items()}
    return replace(case, images=tuple(image[:height, :width].copy() for image in case.images), args=args)


def _at_one_place(args: Mapping[str, Json], key: str) -> dict[str, Json]:
    """Return the arguments with all items of a list at the coordinates of its first item."""
    rows = args[key]
    if not isinstance(rows, list | tuple) or not rows or not isinstance(rows[0], Mapping):
        raise ToolError(f"the known answer of the tool has no list of points or boxes named {key}")
    place = {name: at for name, at in rows[0].items() if name in ALONG}
    return {**args, key: [{**row, **place} for row in rows if isinstance(row, Mapping)]}
