"""Every solver that asks the MLLM treats an empty reply alike: asked once more with the same words, and noted."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hybrid.config import Limits
from hybrid.errors import NotRecorded
from hybrid.messages import AssistantMessage
from hybrid.models.replay import ReplayModel
from hybrid.registry import load_solver, solver_names
from hybrid.serving.service import ToolService
from hybrid.solving.controls import Control
from hybrid.solving.empty_replies import EMPTY, is_empty, words_of
from hybrid.solving.session import Session
from hybrid.solving.solver import Log
from hybrid.types import Fault, ImageRef, Kind, Outcome, Prompt, Reply

ASKING = tuple(name for name in solver_names() if load_solver(name).needs_model)


@pytest.fixture
def ask(service: ToolService, fakes: Any) -> Any:
    """Put one prompt to a solver whose model says what is queued, and give the reply and the model."""
    image = fakes.stored(service.store, 1)

    def run(name: str, replies: Sequence[Any], limits: Limits | None = None) -> tuple[Reply, Any]:
        model = fakes.QueueModel(list(replies))
        shared = fakes.resources(model, Control(service), limits=limits or Limits())
        question = fakes.question("q1", images=(image,))
        prompt = Prompt((question.text, ImageRef("img:1", image)), Kind.CHOICE, question.choices)
        return asyncio.run(Session(question, load_solver(name), shared).ask(prompt)), model

    return run


def faults(reply: Reply) -> int:
    return [step.fault for step in reply.steps].count(Fault.EMPTY_REPLY)


def test_who_asks_the_model() -> None:
    assert set(ASKING) >= {"controller", "verify", "arbiter", "mllm", "caption", "text_only"}


@pytest.mark.parametrize("name", ASKING)
@pytest.mark.parametrize("nothing", ["", " \n"])
def test_an_empty_reply_is_asked_for_once_more(ask: Any, name: str, nothing: str) -> None:
    first = ["a grey picture"] if name == "caption" else []
    reply, model = ask(name, [*first, nothing, "Answer: (A)"])
    assert (reply.text, reply.outcome, faults(reply)) == ("Answer: (A)", Outcome.ANSWERED, 1)
    before, after = (call[0] for call in model.calls[-2:])
    assert after[-1].text == EMPTY
    # The empty message itself is not sent back: some providers refuse a conversation that holds one.
    assert [message.role for message in after] == [*(message.role for message in before), "user"]


@pytest.mark.parametrize("name", ASKING)
def test_a_second_empty_reply_is_what_it_is(ask: Any, name: str) -> None:
    first = ["a grey picture"] if name == "caption" else []
    reply, model = ask(name, [*first, "", "", "never asked for"])
    assert (reply.text, faults(reply)) == ("", 2)
    assert model.replies == ["never asked for"]


def test_an_empty_description_is_asked_for_once_more(ask: Any) -> None:
    reply, model = ask("caption", ["", "a grey picture", "Answer: (B)"])
    assert (reply.text, faults(reply), len(model.calls)) == ("Answer: (B)", 1, 3)
    assert "a grey picture" in model.calls[-1][0][-1].text


@pytest.mark.parametrize("name", ASKING)
def test_a_refusal_of_the_provider_is_not_asked_for_again(ask: Any, name: str) -> None:
    first = ["a grey picture"] if name == "caption" else []
    refusal = AssistantMessage(refusal="content_filter")
    reply, model = ask(name, [*first, refusal, "never asked for"])
    assert (reply.text, faults(reply)) == ("", 0)
    assert Fault.REFUSAL in [step.fault for step in reply.steps]
    assert model.replies == ["never asked for"]


@pytest.mark.parametrize("name", ["controller", "mllm", "verify", "arbiter"])
def test_a_spent_budget_ends_the_question_before_the_second_time(ask: Any, fakes: Any, name: str) -> None:
    reply, model = ask(name, [fakes.counted("", 90, 10), "never asked for"], Limits(tokens=100))
    assert (reply.text, reply.outcome) == ("", Outcome.BUDGET)
    assert model.replies == ["never asked for"]


def test_a_recorded_empty_reply_stands_where_there_is_no_second(ask: Any, fakes: Any) -> None:
    reply, _ = ask("mllm", ["", NotRecorded("there is no second reply")])
    assert (reply.text, reply.outcome, faults(reply)) == ("", Outcome.ANSWERED, 1)


@pytest.mark.parametrize(("second", "said"), [(None, ""), ("Answer: (B)", "Answer: (B)")])
async def test_a_recording_with_two_calls_repeats_both(tmp_path: Path, second: str | None, said: str) -> None:
    lines = ['{"id": "q", "ask": 0, "call": 0, "text": ""}']
    lines += [] if second is None else [f'{{"id": "q", "ask": 0, "call": 1, "text": "{second}"}}']
    (tmp_path / "calls.jsonl").write_text("\n".join(lines) + "\n")
    model, log, calls = ReplayModel("replay:x", tmp_path), Log(), iter(range(9))

    async def call(messages: Any, tools: Any = ()) -> AssistantMessage:
        from hybrid.models.base import CallKey

        return await model.chat(messages, tools, CallKey("q", 0, next(calls)))

    assert await words_of(call, [], log) == said
    assert [step.fault for step in log.steps] == [Fault.EMPTY_REPLY]


@pytest.mark.parametrize(
    ("reply", "empty", "why", "remedy"),
    [
        (AssistantMessage(""), True, "the model said nothing", ""),
        (AssistantMessage("", finish_reason="length"), True, "says nothing: it ended by the limit", "--max-tokens"),
        (AssistantMessage("", reasoning="Hm", finish_reason="length"), True, "all reasoning: it ended", "--max-tokens"),
        (AssistantMessage("", finish_reason="MAX_TOKENS"), True, "says nothing: it ended by", "--max-tokens"),
        (AssistantMessage(" ", reasoning="So (A).", finish_reason="stop"), True, "never saw the end", "parser"),
        (AssistantMessage("<think>So", finish_reason="length"), False, "all reasoning: it ended", "--max-tokens"),
        (AssistantMessage("<think>So</think>", finish_reason="stop"), False, "is all reasoning", ""),
        (AssistantMessage("<think>So</think>(A)", finish_reason="length"), False, "", ""),
        (AssistantMessage("(A)", reasoning="So", finish_reason="stop"), False, "", ""),
    ],
)
def test_an_empty_reply_says_why_it_is_empty(reply: AssistantMessage, empty: bool, why: str, remedy: str) -> None:
    log = Log()
    assert is_empty(reply, log) is empty
    assert [step.fault for step in log.steps] == [Fault.EMPTY_REPLY] * bool(why)
    for step in log.steps:
        assert why in step.text
        assert remedy in str(step.data.get("remedy", "" if not remedy else None))
