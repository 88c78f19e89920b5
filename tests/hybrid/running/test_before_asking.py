"""A model that does not see, or whose calls cannot be read, is detected before it is measured, once per run."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config import Price, RunConfig, ServiceOptions
from hybrid.core.errors import HybridError, Outage, UsageError
from hybrid.core.messages import AssistantMessage, ImagePart, TokenUsage, UnreadableCall, images_of
from hybrid.core.types import Json
from hybrid.models.failures import StatusError
from hybrid.running.estimate import estimate
from hybrid.running.probes import PROBE_NUMBER, PROBE_TEXT
from hybrid.running.resolve import ResolvedRun, prepare
from hybrid.running.run import RunEnd, run_until_complete
from hybrid.solving.budgets import RunMeter

READS = AssistantMessage(f"{PROBE_NUMBER}.", usage=TokenUsage(140, 5))
GUESSES = AssistantMessage("42", usage=TokenUsage(140, 5))
ONE_WORD_LONGER = AssistantMessage("", usage=TokenUsage(156, 5))
UNCOUNTED = AssistantMessage("I see a cat.")
ANSWER = AssistantMessage("Answer: (A)", usage=TokenUsage(140, 5))
UNREADABLE = AssistantMessage("<|tool_call_begin|>crop", unreadable=UnreadableCall("Kimi", "<|tool_call_begin|>", "?"))


def without(tokens: int) -> AssistantMessage:
    """Return the reply to the text without the picture, for which the server counts this many input tokens."""
    return AssistantMessage("?", usage=TokenUsage(tokens, 5))


@dataclass
class Served:
    """A queued model that claims to have a server."""

    inner: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def connection(self) -> Mapping[str, Json]:
        return {"base_url": "http://127.0.0.1:9"}


@pytest.fixture
def config(tmp_path: Path, fakes: Any) -> RunConfig:
    """Configuration of a run on one question with a picture."""
    fakes.blink_folder(tmp_path / "blink", 0, 1)
    common: dict[str, Any] = {
        "service": ServiceOptions("classical"),
        "out": tmp_path / "run",
        "data": str(tmp_path / "blink"),
    }
    return RunConfig("blink", ("mllm",), model="embedded", tasks=("Spatial_Relation",), **common)


def prepare_run(config: RunConfig, fakes: Any, *replies: Any, served: bool = True) -> tuple[ResolvedRun, Any]:
    """Return a run with a model that returns these replies in order."""
    run, queue = prepare(config), fakes.QueueModel(list(replies))
    config = replace(run.config, model_settings=replace(run.config.model_settings, price=Price(1.0, 1.0)))
    facts = replace(run.resources, config=config, model=Served(queue) if served else queue)
    return replace(run, resources=replace(facts, run_meter=RunMeter())), queue


async def ends(run: ResolvedRun) -> RunEnd:
    return await run_until_complete(run, lambda *_: None, lambda _: None)


def manifest(run: ResolvedRun) -> dict[str, Any]:
    return json.loads((run.folder.path / "manifest.json").read_text())  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("replies", "verdict"),
    [
        ((READS,), "sees"),
        ((GUESSES, without(123)), "sees"),
        ((UNCOUNTED,), "unknown"),
        ((GUESSES, UNCOUNTED), "unknown"),
    ],
)
async def test_who_sees_or_cannot_be_known_not_to_is_measured(
    config: RunConfig, fakes: Any, replies: tuple[Any, ...], verdict: str
) -> None:
    run, model = prepare_run(config, fakes, *replies, ANSWER)
    end = await ends(run)
    assert (end.answered, end.stopped) == (1, None)
    assert manifest(run)["sight"]["verdict"] == verdict
    assert "blind model" not in manifest(run)["labels"]
    assert len(model.calls) == len(replies) + 1
    values = [[part for part in messages[0].parts if isinstance(part, ImagePart)] for messages, _, _ in model.calls]
    assert [len(images) for images in values[: len(replies)]] == [1, 0][: len(replies)]
    assert PROBE_NUMBER not in PROBE_TEXT
    # A resumed run, and one more solver, do not check again.
    more, model = prepare_run(replace(config, solvers=("mllm", "caption")), fakes, "A cat.", ANSWER)
    assert (await ends(more)).answered == 1
    assert len(model.calls) == 2


@pytest.mark.parametrize("first", [GUESSES, ONE_WORD_LONGER])
async def test_who_does_not_see_is_refused_unless_allowed_and_then_labelled(
    config: RunConfig, fakes: Any, first: AssistantMessage
) -> None:
    run, model = prepare_run(config, fakes, first, without(140))
    with pytest.raises(UsageError, match=r"--model queue:model does not see.*140 without.*--allow blind"):
        await ends(run)
    assert len(model.calls) == 2
    second, model = prepare_run(config, fakes)
    with pytest.raises(UsageError, match="does not see"):
        await ends(second)
    assert model.calls == []
    let_in, model = prepare_run(replace(config, allow=("blind",)), fakes, ANSWER)
    assert (await ends(let_in)).answered == 1
    assert "blind model" in manifest(let_in)["labels"]


@pytest.mark.parametrize("changes", [{"images": "none"}, {"solvers": ("text_only", "specialist")}])
async def test_who_is_shown_no_image_is_not_asked(config: RunConfig, fakes: Any, changes: dict[str, Any]) -> None:
    run, model = prepare_run(replace(config, **changes), fakes, ANSWER, ANSWER)
    await ends(run)
    assert [images_of(messages) for messages, _, _ in model.calls] == [()]
    assert "sight" not in manifest(run)
    assert not any("whether it sees" in note for note in (await estimate(run)).notes)


# The reply of vLLM with its parser `qwen3_xml` if the model writes a call in Hermes' form.
DROPPED = AssistantMessage("<think>\nI call crop.\n</think>\n\n", finish_reason="stop")


def refused(words: str, kind: type[HybridError] = Outage) -> HybridError:
    """Return the error for a request that a server rejects."""
    error = kind("does not accept this request")
    error.__cause__ = StatusError(400, {"error": {"message": words}})
    return error


@pytest.mark.parametrize(
    ("replies", "message"),
    [
        (
            (refused("m does not support tools"),),
            "does not accept tools: use --tool-calling text.*does not support tools",
        ),
        ((refused("tools[0].function: unexpected"), "ready"), "does not accept tools: .*unexpected"),
        ((UNREADABLE,), r"cannot be read \(Kimi: .*--tool-call-parser kimi_k2.*--tool-calling text"),
        ((DROPPED,), r"cannot be read \(dropped by its server: .*--tool-call-parser .*--tool-calling text"),
    ],
)
async def test_calls_that_nothing_reads_are_refused_unless_allowed(
    config: RunConfig, fakes: Any, replies: tuple[Any, ...], message: str
) -> None:
    calling = replace(config, solvers=("controller",), tools=("crop",))
    run, model = prepare_run(calling, fakes, READS, *replies)
    with pytest.raises(
        UsageError, match=rf"--model queue:model.*{message}.*with --allow toolless, it is measured anyway"
    ):
        await ends(run)
    assert len(model.calls) == 1 + len(replies)
    # The MLLM alone is not affected.
    alone, _ = prepare_run(replace(calling, solvers=("mllm",)), fakes, ANSWER)
    assert (await ends(alone)).answered == 1
    let_in, model = prepare_run(replace(calling, allow=("toolless",)), fakes, ANSWER)
    assert (await ends(let_in)).answered == 1
    assert "calls that cannot be read" in manifest(let_in)["labels"]
    assert len(model.calls) == 1
