"""The contract of every tool, for every file of `tools/`: weight-free backends, and learned ones on tiny checkpoints.

`hybrid/serving/contract.py` defines it; `hybrid tools check NAME --contract` applies it to external tools.
"""

import json
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pytest

from hybrid.benchmarks.blink.sample import item
from hybrid.config import ServiceOptions
from hybrid.core.errors import ToolError
from hybrid.core.images import ImageStore
from hybrid.core.types import Box, Fault, Finding, ImageRef, Json, StoredImage
from hybrid.plugins.registry import load, names
from hybrid.serving.cache import FindingCache
from hybrid.serving.contract import ODD, WRAPPED, card_complaints, complaints, empty_or_repeated, moved, text_complaints
from hybrid.serving.service import CachedTools
from hybrid.serving.sources import code_of
from hybrid.tool import Args, Claims, Evidence, Pixels, Request, Tool
from hybrid.tool.output_schema import data_mismatch
from tests.tables import stored
from tests.tools.tiny_checkpoints import Checkpoints, started
from tools import detection, forensics, ocr, relation, semantic_correspondence
from tools._shared.args import Spot
from tools.detection.models import Detection

PLACES: tuple[dict[str, Json], ...] = stored(__file__, "PLACES")
BOXES: tuple[dict[str, Json], ...] = stored(__file__, "BOXES")
# Arguments of a simple call; other tools are called without any.
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
# Further arguments that change which values an output has.
VARIANTS: Mapping[str, Sequence[dict[str, Json]]] = {
    "crop": ({"grid": {"rows": 2, "columns": 3}}, {"point": PLACES[0]}, {"box": BOXES[0]}),
    "depth": ({}, {"points": PLACES[:1]}),
    "markers": ({"kind": "box"},),
    "saliency": ({}, {"columns": 2}),
    "scanpath": ({"target": "cup"},),
    "similarity": ({"aspect": "style"},),
}
# BLINK tasks whose images suit a tool that cannot take any others.
TASKS: Mapping[str, str] = stored(__file__, "TASKS")
TINY: Mapping[str, str] = stored(__file__, "TINY")
BACKENDS = [(name, backend.name) for name in names("tools") for backend in load("tools", name).card.backends]
# The default selection tests two backends, one of which needs another tool; `-m system` tests the other backends, with
# their networks.
QUICK = {("crop", "classical"), ("depth", "classical")}
Answers = Callable[[str, str, Mapping[str, Json]], Awaitable[Finding | ToolError]]
every_backend = pytest.mark.parametrize(
    ("name", "kind"), [pytest.param(*entry, marks=() if entry in QUICK else pytest.mark.system) for entry in BACKENDS]
)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> ImageStore:
    return ImageStore(tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="module")
def odd_images(stored: ImageStore) -> Mapping[str, StoredImage]:
    """The odd images, encoded and stored once for all backends."""
    return {odd: stored.put(make(), odd) for odd, make in ODD.items()}


@pytest.fixture(scope="module")
def weights(depth_checkpoint: Checkpoints, things_checkpoint: Checkpoints) -> Callable[[str], dict[str, str]]:
    """The tiny checkpoints of one tool, with the detector's if it needs one."""

    def get(name: str) -> dict[str, str]:
        if name == "depth":
            return {name: str(depth_checkpoint("depth_anything"))}
        payload = {name: str(things_checkpoint(TINY[name]))} if name in TINY else {}
        learned = load("tools", name).backend("learned")
        needed = [need.tool for need in learned.needs if need.tool in TINY]
        return payload | {need: str(things_checkpoint(TINY[need])) for need in needed}

    return get


class OneLook(CachedTools):
    """Computes the marks of a picture once for all tools that need them; every other call computes."""

    findings: ClassVar[dict[tuple[str, str], Finding]] = {}

    async def call(
        self, tool: Tool, args: Args, images: Sequence[ImageRef], *more: Any, overlays: bool = True
    ) -> Finding:
        if overlays or tool.card.name != "markers":
            return await super().call(tool, args, images, *more, overlays=overlays)
        key = args.model_dump_json(), images[0].image.sha256
        if key not in self.findings:
            self.findings[key] = await super().call(tool, args, images, *more, overlays=False)
        return self.findings[key]


@pytest.fixture(scope="module")
def services(
    stored: ImageStore, weights: Callable[[str], dict[str, str]]
) -> Iterator[Callable[[str, str], CachedTools]]:
    """Yield a function that returns the service of a backend; services have no cache, so that every call computes."""
    mapping: dict[tuple[str, str], CachedTools] = {}

    def get(name: str, kind: str) -> CachedTools:
        if (name, kind) not in mapping:
            options = ServiceOptions("classical", threads=1)
            if kind == "learned":
                options = ServiceOptions("auto", weights(name), threads=1, unchecked=True)
            mapping[name, kind] = OneLook(stored, FindingCache(None, stored), options)
        return mapping[name, kind]

    yield get
    for service in mapping.values():
        service.close()


@pytest.fixture(scope="module")
def answers(services: Callable[[str, str], CachedTools], stored: ImageStore) -> Answers:
    """Return the answer of a backend about images that suit the tool, computed once."""
    options: dict[str, Finding | ToolError] = {}

    async def get(name: str, kind: str, args: Mapping[str, Json]) -> Finding | ToolError:
        key = json.dumps([name, kind, args], sort_keys=True)
        if key not in options:
            options[key] = await ask(services(name, kind), name, args, plain(stored, name))
        return options[key]

    return get


@cache
def draw_images(task: str) -> tuple[Pixels, ...]:
    """Return the images of a generated question, drawn once for all tests at half their size, which takes a quarter of
    the time."""
    images = item(task, 1, 5).images
    # A puzzle is not reduced, because its pieces would no longer have exactly half its sides.
    return images if task == "Jigsaw" else tuple(image[::2, ::2].copy() for image in images)


def plain(stored: ImageStore, name: str) -> list[ImageRef]:
    """Return images that suit the tool."""
    count = max(1, load("tools", name).card.images[0])
    pictures = draw_images(TASKS.get(name, "Relative_Depth"))
    values = [pictures[place % len(pictures)] for place in range(count)]
    return [ImageRef(f"img:{n}", stored.put_pixels(pixels)) for n, pixels in enumerate(values, 1)]


async def ask(
    service: CachedTools, name: str, args: Mapping[str, Json], refs: list[ImageRef], about: str = "a plain image"
) -> Finding | ToolError:
    """Return an output or a clear refusal; an error that the service had to wrap fails the test."""
    tool: Tool = load("tools", name)
    result: Finding | ToolError
    try:
        result = await service.call(tool, tool.parse(args), refs)
    except ToolError as error:
        result = error
    if isinstance(result, ToolError):
        assert [words for words in WRAPPED if words in str(result)] == [], f"{name}, {about}: {result}"
        assert len(str(result)) > 15
        return result
    assert complaints(result, refs) == [], f"{name}, {about}, with {args}"
    assert data_mismatch(tool.output or {}, result.data) is None, f"{name}, {about}, with {args}"
    return result


def test_the_contract_sees_what_breaks_it() -> None:
    refs = [ImageRef("img:1", StoredImage("0" * 64, 40, 30, "image/png"))]
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
        "width has no unit: end its name in one of _px, _0_1": replace(good, data={"width": 3.5}),
        "count has no unit: a count or an index must be a whole number": replace(good, data={"count": 3.5}),
        "overlay of 20 x 15 px": replace(good, images=(small,)),
    }
    for start, finding in broken.items():
        (text,) = complaints(finding, refs)
        assert text.startswith(start)


@pytest.mark.system
@every_backend
async def test_odd_images_give_a_finding_or_a_clear_refusal(
    name: str, kind: str, services: Callable[[str, str], CachedTools], odd_images: Mapping[str, StoredImage]
) -> None:
    near = {"x": 0, "y": 0, "label": "A"}, {"x": 0.4, "y": 0.4, "label": "B"}
    args = dict(ASKED.get(name, {}))
    for field, value in {"point": near[0], "points": near, "candidates": near}.items():
        if field in args:
            args[field] = value
    count = max(1, load("tools", name).card.images[0])
    for odd, image in odd_images.items():
        refs = [ImageRef(f"img:{place}", image) for place in range(1, count + 1)]
        await ask(services(name, kind), name, args, refs, odd)


@every_backend
async def test_the_same_question_has_the_same_finding(
    name: str, kind: str, services: Callable[[str, str], CachedTools], answers: Answers, stored: ImageStore
) -> None:
    args = ASKED.get(name, {})
    first = await answers(name, kind, args)
    output = await ask(services(name, kind), name, args, plain(stored, name))
    assert output == first if isinstance(first, Finding) else str(output) == str(first)


def test_a_picture_is_turned_as_its_file_says(odd_images: Mapping[str, StoredImage]) -> None:
    assert (odd_images["rotated"].width, odd_images["rotated"].height) == (120, 160)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(name, kind, marks=() if kind == "classical" and name != "correspondence" else pytest.mark.system)
        for name, kind in BACKENDS
        if '"x' in json.dumps(ASKED.get(name, {}))
    ],
)
async def test_places_outside_of_the_image_are_refused(name: str, kind: str, answers: Answers) -> None:
    refused = await answers(name, kind, moved(ASKED[name], 50_000))
    assert isinstance(refused, ToolError)
    assert "outside" in str(refused), refused


@every_backend
async def test_empty_and_duplicate_arguments_give_a_finding_or_a_clear_refusal(
    name: str, kind: str, answers: Answers
) -> None:
    values = [await answers(name, kind, args) for args in empty_or_repeated(ASKED.get(name, {}))]
    assert all(isinstance(answer, Finding | ToolError) for answer in values)


@pytest.mark.parametrize("name", names("tools"))
def test_the_card_is_complete(name: str) -> None:
    tool: Tool = load("tools", name)
    assert card_complaints(name, tool) == []


def test_a_claim_that_the_output_does_not_have_is_named() -> None:
    tool = replace(load("tools", "depth"), claims=Claims(("nearer_indx",)))
    (complaint,) = card_complaints("depth", tool)
    assert complaint == "the claim 'nearer_indx' is not in the output's schema (did you mean 'nearer_index'?)"


def test_a_schema_changes_no_version_of_a_tool() -> None:
    tool = load("tools", "depth")
    assert code_of(replace(tool, output=None)) == code_of(tool)


@pytest.mark.parametrize("name", names("tools"))
def test_every_tool_declares_the_values_of_its_output(name: str) -> None:
    output = load("tools", name).output
    assert output is not None
    assert output["additionalProperties"] is False
    assert output["properties"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [pytest.param(*entry, marks=() if entry[1] == "classical" else pytest.mark.system) for entry in BACKENDS],
)
async def test_the_output_of_a_backend_fits_its_schema(
    name: str, kind: str, answers: Answers, services: Callable[[str, str], CachedTools], stored: ImageStore
) -> None:
    finding = await answers(name, kind, ASKED.get(name, {}))
    assert isinstance(finding, Finding), finding
    schema = load("tools", name).output
    assert data_mismatch(schema, finding.data) is None
    for args in VARIANTS.get(name, ()):
        assert isinstance(await ask(services(name, kind), name, args, plain(stored, name)), Finding)
    for key in finding.data:
        assert "is not in the output's schema" in str(data_mismatch(schema, {**finding.data, f"{key}_": 1}))


@pytest.mark.system
@pytest.mark.parametrize(("name", "kind"), BACKENDS)
async def test_outputs_about_known_images_fit_their_schema(
    name: str, kind: str, services: Callable[[str, str], CachedTools]
) -> None:
    tool: Tool = load("tools", name)
    service = services(name, kind)
    for check in tool.checks:
        case = check.pose()
        if not case.needs:
            refs = [ImageRef(f"img:{n}", service.store.put_pixels(pixels)) for n, pixels in enumerate(case.images, 1)]
            try:
                finding = await service.call(tool, tool.parse(case.args), refs)
            except ToolError as error:
                # A checkpoint may not support such a request: one for words takes no points.
                if error.fault is not Fault.BAD_ARGUMENTS:
                    raise
                continue
            assert data_mismatch(tool.output or {}, finding.data) is None, check.name


def _relation() -> Evidence:
    """Return a relation between two detected things."""
    pixels = draw_images("Relative_Depth")[0]
    detections = [Detection(name, 0.9, Box(10 * n, 5, 10 * n + 8, 20)) for n, name in enumerate(("dog", "cat"))]
    seen = detection.report(pixels, ("dog", "cat"), detections, 0.3)
    needs = {"detection": (Finding(seen.text, seen.data, seen.confidence, "learned", "1"),)}
    request = Request((pixels,), relation.RelationArgs.model_validate(ASKED["relation"]), needs)
    return relation.BoxRelation().answer(request)


def _semantic(match: semantic_correspondence.FeatureMatch | None) -> Evidence:
    """Return a choice between two candidates, or none without a reference."""
    pixels = draw_images("Relative_Depth")[0]
    candidates = (Spot("A", 1.0, 2.0), Spot(None, 9.0, 2.0))
    pair = semantic_correspondence.SpottedPair(None if match is None else Spot("REF", 3.0, 4.0), candidates, ())
    request = Request((pixels, pixels), semantic_correspondence.SemanticArgs())
    grid = None if match is None else np.zeros((3, 4), np.float32)
    return semantic_correspondence.report(request, pair, match, grid)


# Functions of tools for the outputs of networks, without a network.
LEARNED: Mapping[str, Callable[[], Sequence[Evidence]]] = {
    "detection": lambda: [detection.report(draw_images("Relative_Depth")[0], ("dog",), [], 0.3, ("cat",))],
    "forensics": lambda: [forensics.judge(scores, "") for scores in ((0.5, 0.5), (0.9,), (0.1,), (0.2, 0.7))],
    "ocr": lambda: [
        ocr.report(draw_images("Relative_Depth")[0], lines, "")
        for lines in ([], [ocr.TextLine("word", 0.9, Box(1, 2, 30, 9))])
    ],
    "relation": lambda: [_relation()],
    "semantic_correspondence": lambda: [
        _semantic(semantic_correspondence.FeatureMatch((0.4, 0.1), 0, 0.6)),
        _semantic(semantic_correspondence.FeatureMatch((0.4, 0.4), None, 0.5)),
        _semantic(None),
    ],
}


@pytest.mark.parametrize("name", LEARNED)
def test_what_is_made_of_the_output_of_a_network_fits_the_schema(name: str) -> None:
    schema = load("tools", name).output
    assert [data_mismatch(schema, evidence.data) for evidence in LEARNED[name]()] == [None] * len(LEARNED[name]())


# Tools whose known answers take the weight-free backend less than a second.
QUICK_ANSWERS = {"reflectance"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(name, kind, marks=() if name in QUICK_ANSWERS and kind == "classical" else pytest.mark.system)
        for name, kind in BACKENDS
        if load("tools", name).checks and (kind == "classical" or name in TINY)
    ],
)
def test_texts_about_known_answers_are_short(name: str, kind: str, things_checkpoint: Checkpoints) -> None:
    tool = load("tools", name)
    backend = tool.backend("classical").make() if kind == "classical" else started(name, things_checkpoint(TINY[name]))
    if kind == "classical":
        backend.setup("cpu", None)
    count = 0
    for check in tool.checks:
        case = check.pose()
        try:
            (evidence,) = backend.run([Request(case.images, tool.args.model_validate(case.args), case.needs)])
        except ToolError:
            # The question is in words, which this backend does not support.
            continue
        count += 1
        assert text_complaints(evidence.text) == [], check.name
    assert count or kind == "learned", "a checkpoint of one kind may take none of the questions"
