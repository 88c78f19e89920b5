"""What every tool owes, over every file of `tools/`: weight-free backends, and learned ones on tiny checkpoints.

Numbers in `data` have their unit in a key on the way to them (`UNITS`); numbers without a unit are counts and indices
(`COUNTS`, integers only) or pure numbers (`PURE`: ratios, cosines, scores, logarithms). Text and booleans need none.
"""

import functools
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from hybrid.benchmarks.blink.sample import item
from hybrid.errors import NoBackend, ToolError
from hybrid.images import ImageStore
from hybrid.registry import load, names
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import ServiceOptions, ToolService
from hybrid.tool import Tool
from hybrid.types import Finding, ImageRef, Json, StoredImage

UNITS = ("_px", "_0_1", "_deg", "_ms", "_m", "_unit", "_grey", "_lab")
"""Pixels of the input, a share or relative value in 0..1, degrees, milliseconds, metres, a unit vector, grey levels,
L*a*b* units."""
COUNTS = frozenset(
    {"inliers", "matches", "rank", "count", "counts", "parts", "image", "best", "synthetic", "votes"}
    | {"photograph", "best_index", "nearer_index", "darker_index", "returns"}
)
PURE = frozenset({"cosine", "ncc", "confidence", "scale", "cues", "descriptor_distance", "log_reflectance"})
PURE_ENDS = ("_ratio", "_score", "_slope", "_kurtosis")

LONGEST_TEXT = 450
"""Characters of a finding's text: what a model reads several of before it answers."""

PLACES: tuple[dict[str, Json], ...] = ({"x": 30, "y": 40, "label": "A"}, {"x": 90, "y": 70, "label": "B"})
BOXES: tuple[dict[str, Json], ...] = (
    {"x0": 10, "y0": 12, "x1": 60, "y1": 70, "label": "A"},
    {"x0": 70, "y0": 20, "x1": 120, "y1": 90, "label": "B"},
)
ASKED: Mapping[str, dict[str, Json]] = {
    "attributes": {"texts": ["a red ball", "a blue ball"]},
    "correspondence": {"point": PLACES[0], "candidates": PLACES},
    "depth": {"points": PLACES},
    "detection": {"names": ["dog", "cat"]},
    "localization": {"name": "dog", "boxes": BOXES},
    "reflectance": {"points": PLACES},
    "relation": {"subject": "dog", "relation": "left of", "reference": "cat"},
    "saliency": {"boxes": BOXES},
    "segmentation": {"points": PLACES[:1]},
    "semantic_correspondence": {"point": PLACES[0], "candidates": PLACES},
}
"""Arguments of a plain call; a tool that is not named is called without any."""
TASKS: Mapping[str, str] = {
    "correspondence": "Visual_Correspondence",
    "jigsaw": "Jigsaw",
    "motion": "Multi-view_Reasoning",
    "reflectance": "Relative_Reflectance",
}
"""BLINK tasks whose images suit a tool that cannot take any others."""
TINY: Mapping[str, str] = {
    "attributes": "siglip",
    "correspondence": "superglue",
    "detection": "rt_detr_v2",
    "forensics": "timm_detector",
    "jigsaw": "dinov2",
    "motion": "superglue",
    "ocr": "ocr",
    "reflectance": "marigold_iid",
    "saliency": "dinov2",
    "scanpath": "clipseg",
    "segmentation": "sam2",
    "semantic_correspondence": "dinov2",
    "similarity": "dinov2",
}
BACKENDS = [(name, backend.name) for name in names("tools") for backend in load("tools", name).card.backends]
every_backend = pytest.mark.parametrize(("name", "kind"), BACKENDS)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> ImageStore:
    return ImageStore(tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="module")
def weights(
    depth_checkpoint: Callable[[str], Path], things_checkpoint: Callable[[str], Path]
) -> Callable[[str], dict[str, str]]:
    """The tiny checkpoints of one tool, with that of the detector where it needs one."""

    def get(name: str) -> dict[str, str]:
        if name == "depth":
            return {name: str(depth_checkpoint("depth_anything"))}
        found = {name: str(things_checkpoint(TINY[name]))} if name in TINY else {}
        learned = load("tools", name).backend("learned")
        needed = [need.tool for need in learned.needs if need.tool in TINY]
        return found | {need: str(things_checkpoint(TINY[need])) for need in needed}

    return get


@pytest.fixture(scope="module")
def services(
    stored: ImageStore, weights: Callable[[str], dict[str, str]]
) -> Iterator[Callable[[str, str], ToolService]]:
    """One service a backend; no cache, so that every call computes."""
    made: dict[tuple[str, str], ToolService] = {}

    def get(name: str, kind: str) -> ToolService:
        if (name, kind) not in made:
            options = ServiceOptions("classical", threads=1)
            if kind == "learned":
                options = ServiceOptions("auto", weights(name), threads=1, unchecked=True)
            made[name, kind] = ToolService(stored, FindingCache(None, stored), options)
        return made[name, kind]

    yield get
    for service in made.values():
        service.close()


def png(picture: Image.Image, **options: Any) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", **options)
    return buffer.getvalue()


def scene(width: int, height: int) -> np.ndarray:
    """Coloured patches: something to see at every size, cheap to make and to decode."""
    rng = np.random.default_rng(7)
    small = rng.integers(0, 255, (max(1, height // 25), max(1, width // 25), 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC))


def rotated() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    return png(Image.fromarray(scene(160, 120)), exif=exif)


def transparent() -> bytes:
    alpha = np.tile(np.linspace(0, 255, 160).astype(np.uint8), (120, 1))
    return png(Image.fromarray(np.dstack([scene(160, 120), alpha])))


@functools.cache
def large() -> bytes:
    """Encoded once: compressing it takes longer than most tools."""
    return png(Image.fromarray(scene(3000, 2000)), compress_level=1)


ODD: Mapping[str, Callable[[], bytes]] = {
    "grey": lambda: png(Image.fromarray(scene(160, 120)).convert("L")),
    "rgba": transparent,
    "16-bit": lambda: png(Image.fromarray(scene(160, 120)[..., 0].astype(np.uint16) * 257)),
    "one pixel": lambda: png(Image.new("RGB", (1, 1), (9, 8, 7))),
    "two pixels": lambda: png(Image.fromarray(scene(2, 1))),
    "black": lambda: png(Image.new("RGB", (160, 120))),
    "wide": lambda: png(Image.fromarray(scene(8000, 24))),
    "high": lambda: png(Image.fromarray(scene(24, 8000))),
    "large": large,
    "rotated": rotated,
}


def plain(stored: ImageStore, name: str) -> list[ImageRef]:
    """Images that suit the tool."""
    count = max(1, load("tools", name).card.images[0])
    pictures = item(TASKS.get(name, "Relative_Depth"), 1, 5).images
    chosen = [pictures[place % len(pictures)] for place in range(count)]
    return [ImageRef(f"img:{n}", stored.put_pixels(pixels)) for n, pixels in enumerate(chosen, 1)]


def numbers(value: Json, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    """Every number of some JSON with the keys on the way to it."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from numbers(inner, (*path, key))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from numbers(inner, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value


def has_unit(path: tuple[str, ...], value: float) -> bool:
    """Whether a number says what it counts or measures."""
    if any(key.endswith(UNITS) or key in PURE or key.endswith(PURE_ENDS) for key in path):
        return True
    return isinstance(value, int) and not COUNTS.isdisjoint(path)


def complaints(found: Finding, refs: list[ImageRef]) -> list[str]:
    """What a finding about these images owes and does not give."""
    wrong = []
    lines = found.text.splitlines()
    if not lines or len(lines) > 6 or max(map(len, lines)) > 160:
        wrong.append(f"text of {len(lines)} lines, the longest of {max(map(len, lines), default=0)} characters")
    if len(found.text) > LONGEST_TEXT:
        wrong.append(f"text of {len(found.text)} characters")
    if not 0 <= found.confidence <= 1:
        wrong.append(f"confidence {found.confidence}")
    wrong += [f"{'.'.join(path)} is {value}" for path, value in numbers(found.data) if not math.isfinite(value)]
    wrong += [f"{'.'.join(path)} has no unit" for path, value in numbers(found.data) if not has_unit(path, value)]
    if not wrong:
        json.dumps(found.data, allow_nan=False)
    sizes = {ref.name: (ref.image.width, ref.image.height) for ref in refs}
    for picture in found.images:
        if picture.parent not in sizes:
            wrong.append(f"picture of {picture.parent!r}")
        elif picture.box is None and (picture.image.width, picture.image.height) != sizes[picture.parent]:
            wrong.append(f"overlay of {picture.image.width} x {picture.image.height} px on {sizes[picture.parent]}")
    return wrong


async def ask(service: ToolService, name: str, args: Mapping[str, Json], refs: list[ImageRef]) -> Finding | ToolError:
    """A finding or a clear refusal; anything that the service had to wrap fails the test."""
    tool: Tool = load("tools", name)
    found: Finding | ToolError
    try:
        found = await service.call(tool, tool.parse(args), refs)
    except ToolError as error:
        found = error
    if isinstance(found, ToolError):
        wrapped = [words for words in ("the tool failed", "the tool could not be run") if words in str(found)]
        assert wrapped == [], f"{name}: {found}"
        assert len(str(found)) > 15
        return found
    assert complaints(found, refs) == [], f"{name} with {args}"
    return found


def test_the_contract_sees_what_breaks_it() -> None:
    image = StoredImage("0" * 64, 40, 30, "image/png")
    refs = [ImageRef("img:1", image)]
    good = Finding("one line", {"x_px": 1.5, "count": 2, "points": [{"depth_0_1": 0.5}]}, 0.5, "learned", "1")
    assert complaints(good, refs) == []
    small = ImageRef("", StoredImage("1" * 64, 20, 15, "image/png"), "img:1")
    broken = {
        "text of 7 lines": replace(good, text="a\n" * 7),
        "text of 1 lines": replace(good, text="a" * 161),
        "text of 0 lines": replace(good, text=""),
        "text of 451 characters": replace(good, text="\n".join(["a" * 150, "a" * 150, "a" * 149])),
        "confidence": replace(good, confidence=1.5),
        "x_px is nan": replace(good, data={"x_px": math.nan}),
        "width has no unit": replace(good, data={"width": 3.5}),
        "count has no unit": replace(good, data={"count": 3.5}),
        "overlay of 20 x 15 px": replace(good, images=(small,)),
    }
    for start, finding in broken.items():
        (said,) = complaints(finding, refs)
        assert said.startswith(start)


@every_backend
async def test_the_same_question_has_the_same_finding_to_the_byte(
    name: str, kind: str, services: Callable[[str, str], ToolService], stored: ImageStore
) -> None:
    refs = plain(stored, name)
    service = services(name, kind)
    first, second = [await ask(service, name, ASKED.get(name, {}), refs) for _ in range(2)]
    assert isinstance(first, Finding), first
    assert isinstance(second, Finding)
    assert first.backend == kind
    assert first == second
    assert json.dumps(first.data).encode() == json.dumps(second.data).encode()
    assert service.computed >= 2


@every_backend
async def test_findings_and_refusals_are_words_for_a_model(
    name: str, kind: str, services: Callable[[str, str], ToolService], stored: ImageStore, model_words: Any
) -> None:
    """No benchmark, no weights, no version of a checkpoint; how to get a tool going is for people (`NoBackend`)."""
    service, refs = services(name, kind), plain(stored, name)
    asked = ASKED.get(name, {})
    far = [moved(asked, 50_000)] if '"x' in json.dumps(asked) else []
    answers = [await ask(service, name, args, refs) for args in (asked, {}, *far)]
    said = [
        answer.text if isinstance(answer, Finding) else str(answer)
        for answer in answers
        if not isinstance(answer, NoBackend)
    ]
    assert said
    assert [found for text in said for found in model_words.unfit(text, finding=True)] == []


@pytest.mark.parametrize("odd", ODD)
@every_backend
async def test_odd_images_give_a_finding_or_a_clear_refusal(
    name: str, kind: str, odd: str, services: Callable[[str, str], ToolService], stored: ImageStore
) -> None:
    image = stored.put(ODD[odd](), odd)
    count = max(1, load("tools", name).card.images[0])
    refs = [ImageRef(f"img:{place}", image) for place in range(1, count + 1)]
    if odd == "rotated":
        assert (image.width, image.height) == (120, 160)
    near = {"x": 0, "y": 0, "label": "A"}, {"x": 0.4, "y": 0.4, "label": "B"}
    args = dict(ASKED.get(name, {}))
    for field, value in {"point": near[0], "points": near, "candidates": near}.items():
        if field in args:
            args[field] = value
    await ask(services(name, kind), name, args, refs)


def moved(args: Mapping[str, Json], to: float) -> dict[str, Json]:
    """The arguments with every coordinate far outside of the image."""

    def shifted(value: Json) -> Json:
        if isinstance(value, Mapping):
            return {key: at + to if isinstance(at, int | float) else at for key, at in value.items()}
        return [shifted(inner) for inner in value] if isinstance(value, list | tuple) else value

    return {key: shifted(value) for key, value in args.items()}


@pytest.mark.parametrize(("name", "kind"), [pair for pair in BACKENDS if '"x' in json.dumps(ASKED.get(pair[0], {}))])
async def test_places_outside_of_the_image_are_refused(
    name: str, kind: str, services: Callable[[str, str], ToolService], stored: ImageStore
) -> None:
    refused = await ask(services(name, kind), name, moved(ASKED[name], 50_000), plain(stored, name))
    assert isinstance(refused, ToolError)
    assert "outside" in str(refused), refused


@every_backend
async def test_empty_and_duplicate_arguments_give_a_finding_or_a_clear_refusal(
    name: str, kind: str, services: Callable[[str, str], ToolService], stored: ImageStore
) -> None:
    asked = ASKED.get(name, {})
    refs, service = plain(stored, name), services(name, kind)
    empty: dict[str, Json] = {key: [] if isinstance(value, list | tuple) else "" for key, value in asked.items()}
    twice = {key: [*value, *value] if isinstance(value, list | tuple) else value for key, value in asked.items()}
    same = {key: [value[0]] * 2 if isinstance(value, list | tuple) else value for key, value in asked.items()}
    answers = [await ask(service, name, args, refs) for args in ({}, empty, twice, same)]
    assert all(isinstance(answer, Finding | ToolError) for answer in answers)


@pytest.mark.parametrize("name", names("tools"))
def test_the_card_is_complete(name: str) -> None:
    tool: Tool = load("tools", name)
    card = tool.card
    assert card.name == name
    assert len(card.summary) >= 30
    assert len(card.limits) >= 30
    assert card.backends
    assert len({backend.name for backend in card.backends}) == len(card.backends)
    assert 0 <= card.images[0] <= card.images[1]
    for backend in card.backends:
        assert backend.version
        assert len(backend.summary) >= 20
        starts = [bin_.confidence for bin_ in backend.reliability]
        assert starts == sorted(set(starts))
        if backend.weights:
            assert backend.name == "learned"
            assert backend.weights in {known.weights for known in backend.provenances}, f"{name}: unknown default"
    for field, schema in tool.args.model_json_schema().get("properties", {}).items():
        assert schema.get("description"), f"{name}: {field} says nothing to the model"
    assert len({known.name for known in tool.checks}) == len(tool.checks)
