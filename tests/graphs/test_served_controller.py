"""The controller with the embedded demonstration model: a real conversation, over HTTP and in this process alike.

`transformers serve` has the checkpoint that ships with the project; the question is a generated puzzle of BLINK's kind.
"""

import asyncio
import importlib.util
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.config import ModelSettings, RunConfig, ServiceOptions
from hybrid.messages import user_message
from hybrid.models import CallKey, ModelRefused, open_model
from hybrid.running.resolve import prepare
from hybrid.running.run import ask_run
from hybrid.serving.service import ToolService
from hybrid.types import Outcome, Reply, Usage

CHECKPOINT = Path(hybrid.__file__).parent / "models" / "embedded" / "checkpoint"

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("fastapi", "uvicorn", "accelerate")),
    reason="needs transformers[serving]",
)


@pytest.fixture(scope="module")
def served(servers: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of `transformers serve`, once it answers."""
    with servers.serving(CHECKPOINT, tmp_path_factory.mktemp("hf")) as address:
        yield address


async def asked(model: str, settings: ModelSettings, out: Path) -> Reply:
    """The controller's reply to a generated puzzle, with the jigsaw tool."""
    config = RunConfig(
        "blink",
        ("controller",),
        model,
        model_settings=settings,
        data="sample",
        tasks=("Jigsaw",),
        limit=1,
        tools=("jigsaw",),
        service=ServiceOptions("classical"),
        out=out,
    )
    run = prepare(config)
    async with asyncio.timeout(300):
        assert await ask_run(run, lambda *_: None) == ()
    (question,) = run.sound
    (exchange,) = run.folder.recorded("controller").by_id[question.id].exchanges
    return exchange.reply


def told(reply: Reply) -> list[tuple[Any, ...]]:
    return [(step.kind, step.text, step.fault, step.data.get("tool_calls")) for step in reply.steps]


def timeless(reply: Reply) -> Usage:
    return replace(reply.usage, seconds=0.0, queued_seconds=0.0)


@pytest.mark.system
async def test_the_controller_works_alike_over_http_and_in_this_process(served: str, tmp_path: Path) -> None:
    settings = ModelSettings(base_url=served, seed=0, timeout_s=120, max_tokens=256)
    over_http = await asked(f"openai:{CHECKPOINT}", settings, tmp_path / "http")
    here = await asked(f"hf:{CHECKPOINT}", ModelSettings(seed=0, device="cpu", max_tokens=256), tmp_path / "here")
    assert told(over_http) == told(here)
    assert (over_http.text, over_http.outcome) == (here.text, here.outcome)
    assert timeless(over_http) == timeless(here)
    assert here.usage.input_tokens
    assert here.usage.output_tokens
    assert here.outcome is Outcome.ANSWERED
    assert [(step.kind, step.fault) for step in here.steps] == [("model", None), ("tool", None), ("model", None)]
    assert here.steps[1].name == "jigsaw"
    # The second request held the picture that the tool made, besides the three of the question.
    assert here.steps[1].images
    for reply in (over_http, here):
        sent: Any = reply.steps[2].data["images_sent"]
        assert [image["name"] for image in sent] == [
            "img:1",
            "img:2",
            "img:3",
            *(ref.name for ref in reply.steps[1].images),
        ]


@pytest.mark.system
async def test_a_model_that_is_not_served_is_refused_with_what_the_server_said(
    served: str, service: ToolService
) -> None:
    model = open_model("openai:nobody/nothing", ModelSettings(base_url=served, retries=0), service.store)
    try:
        with pytest.raises(ModelRefused, match="nobody/nothing"):
            await model.chat([user_message(["Which?"])], (), CallKey("q"))
    finally:
        await model.close()
