"""No graph shows its model the question's id, or data that only a rule may read."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from hybrid.benchmarks.blink import BENCHMARK
from hybrid.config import ServiceOptions
from hybrid.core.images import ImageStore
from hybrid.core.types import Outcome
from hybrid.plugins.registry import load, load_solver
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import CachedTools
from hybrid.solving.controls import ToolCondition
from hybrid.solving.session import Session

SENTINEL = "SENTINEL-7c1e"


@pytest.mark.parametrize("route", [SENTINEL, "Jigsaw"])
@pytest.mark.parametrize("solver", ["mllm", "arbiter", "verify", "controller"])
async def test_no_model_is_told_the_route_or_who_asks(tmp_path: Path, fakes: Any, solver: str, route: str) -> None:
    store = ImageStore(tmp_path / "images")
    service = CachedTools(store, FindingCache(None, store), ServiceOptions("classical", threads=1))
    images = tuple(store.put_pixels(piece) for piece in fakes.puzzle(3))
    question = fakes.question(
        "IDENTITY-99",
        text="Which one?",
        task=SENTINEL,
        route=route,
        images=images,
        groups={"g": SENTINEL},
        cluster=SENTINEL,
        protocol={"secret": SENTINEL},
        target=SENTINEL,
        choices=("the second image", "the third image"),
    )
    model = fakes.QueueModel(["(B)", "(B)", "(B)"])
    tools_offered = (load("tools", "markers"),)
    resources = fakes.resources(model, ToolCondition(service), tools_offered)
    try:
        session = Session(question, load_solver(solver), resources)
        exchanges = await BENCHMARK.dialogue(question.without_target(), session.ask)
    finally:
        service.close()
    assert exchanges[0].reply.outcome is Outcome.ANSWERED
    assert model.calls
    sent = requests(model.calls)
    assert question.text in sent
    for secret in (SENTINEL, "IDENTITY", *([route] if solver in ("mllm", "arbiter") else [])):
        assert secret not in sent


def requests(calls: Sequence[Any]) -> str:
    """Return everything that a model received, including the schemas of the offered tools."""
    fields = [asdict(message) for messages, _, _ in calls for message in messages]
    rows = [
        (tool.card.name, tool.card.summary, tool.card.limits, tool.args.model_json_schema())
        for _, tools, _ in calls
        for tool in tools
    ]
    return json.dumps([fields, rows], default=str)
