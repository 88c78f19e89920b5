"""The rules about things, through the run's own path: their answers, and that a tool without weights abstains."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid.config import ServiceOptions
from hybrid.core.errors import NoBackend, WeightsError
from hybrid.core.images import ImageStore, encode
from hybrid.core.types import ImageRef, Outcome
from hybrid.plugins.registry import load
from hybrid.plugins.weights import backends_in_use
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import CachedTools
from hybrid.tool import Tool
from tests.tables import stored
from tests.tools.pictures import scene
from tests.tools.specialist_run import specialist_run
from tests.tools.tiny_checkpoints import Checkpoints

# Arguments of a call of each tool without a weight-free backend.
LEARNED_ONLY: dict[str, dict[str, Any]] = stored(__file__, "LEARNED_ONLY")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Callable[..., CachedTools]]:
    """`service(**options)` makes a `CachedTools` with an empty store and cache."""
    tools: list[CachedTools] = []

    def make(**options: Any) -> CachedTools:
        store = ImageStore(tmp_path / "images")
        tools.append(CachedTools(store, FindingCache(tmp_path / "findings", store), ServiceOptions(**options)))
        return tools[-1]

    yield make
    for item in tools:
        item.close()


def outcomes(tmp_path: Path, tasks: tuple[str, ...], **more: Any) -> list[tuple[Outcome, str]]:
    """Return outcome and reply of each question of a run of the specialist on generated items."""
    plan = specialist_run("blink", tmp_path, tasks=tasks, limit=2 * len(tasks), service=ServiceOptions(**more))
    replies = [exchange.reply for attempt in plan.folder.attempts("specialist") for exchange in attempt.exchanges]
    return [(reply.outcome, reply.text) for reply in replies]


@pytest.mark.system
def test_tools_without_weights_abstain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "home"))
    result = outcomes(tmp_path, ("Counting", "Spatial_Relation"), backend="classical")
    assert result == [(Outcome.ABSTAINED, "")] * 4


@pytest.mark.parametrize("name", LEARNED_ONLY)
async def test_a_tool_with_no_backend_names_the_remedy(service: Callable[..., CachedTools], name: str):
    tool: Tool = load("tools", name)
    text = "detection" if name == "relation" else name
    request = service(backend="classical")
    image = encode(np.zeros((64, 64, 3), np.uint8))
    refs = [ImageRef(f"img:{place}", request.store.put(image, "made")) for place in (1, 2)][: tool.card.images[1]]
    with pytest.raises(NoBackend, match=f"no weight-free backend; give weights with --weights {text}=DIR_OR_ID"):
        await request.call(tool, tool.parse(LEARNED_ONLY[name]), refs)


async def test_what_rests_on_another_tools_weights_is_learned_with_them(
    service: Callable[..., CachedTools], things_checkpoint: Checkpoints, tmp_path: Path
):
    folder, nowhere = str(things_checkpoint("rt_detr_v2")), {"detection": str(tmp_path / "nowhere")}
    pixels = np.random.default_rng(0).integers(0, 256, (90, 120, 3)).astype(np.uint8)
    boxes = [{"x0": x, "y0": 10, "x1": x + 40, "y1": 60} for x in (10, 60)]
    args: dict[str, dict[str, Any]] = {
        "relation": {"subject": "person", "relation": "next to", "reference": "person"},
        "localization": {"name": "person", "boxes": boxes},
    }
    tools = [load("tools", name) for name in args]

    async def backend(built: CachedTools, tool: Tool) -> str:
        refs = [ImageRef("img:1", built.store.put_pixels(pixels))]
        return (await built.call(tool, tool.parse(args[tool.card.name]), refs)).backend

    with_weights = service(weights={"detection": folder}, unchecked=True)
    for tool in tools:
        assert await backend(with_weights, tool) == "learned"
    without = service(weights=nowhere)
    assert await backend(without, tools[1]) == "classical"
    assert "weights absent" in without.notices[0]
    with pytest.raises(NoBackend, match="weights absent"):
        await backend(without, tools[0])
    with pytest.raises(WeightsError, match="weights absent"):
        await backend(service(backend="learned", weights=nowhere), tools[0])
    in_use = backends_in_use(tools, "auto", {"detection": folder})
    assert in_use["relation"].startswith("learned:relation-2:detection=learned:detection-3:")
    assert backends_in_use(tools, "classical", {}) == {"relation": "absent", "localization": "classical:box-cut-5"}


async def test_depth_is_asked_at_what_was_detected(service: Callable[..., CachedTools], things_checkpoint: Checkpoints):
    """The full chain: the detection tool finds boxes, the depth tool measures their middles, and the relation
    follows."""
    shared = service(weights={"detection": str(things_checkpoint("rf_detr"))}, unchecked=True)
    pixels = scene()
    refs = [ImageRef("img:1", shared.store.put_pixels(pixels))]
    tool: Tool = load("tools", "relation")
    args = {"subject": "person", "reference": "person"}
    behind_finding = await shared.call(tool, tool.args.model_validate({**args, "relation": "behind"}), refs)
    assert behind_finding.data["degree_0_1"] is not None
    # Four outputs were computed: relation, detection, depth and the marks that depth removes.
    assert shared.computed == 4
    beside_finding = await shared.call(tool, tool.args.model_validate({**args, "relation": "next to"}), refs)
    assert shared.computed == 5
    assert behind_finding.data["subject"] == beside_finding.data["subject"]
    assert behind_finding.images[0].parent == "img:1"
