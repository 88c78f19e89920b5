"""An agent of another framework as a solver: its input, and the steps made from its messages."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

import hybrid
from hybrid.core.errors import BudgetSpent
from hybrid.core.images import ImageStore, home
from hybrid.core.types import Fault, Kind, Outcome, Prompt, Step
from hybrid.integrations.langchain import langchain_tools
from hybrid.solving.agent import Agent
from hybrid.solving.solver import Meter, SolverContext
from tests.tables import cases, stored

FINDING = {"text": "A is nearer.", "data": {"nearest": "A"}, "confidence": 0.5, "backend": "classical", "version": "1"}
ARGS = {"image": "img:1", "labels": ["A", "B"]}
USER = {"role": "user", "content": "Which one?"}
OPENAI = stored(__file__, "OPENAI")
LANGCHAIN = [
    USER,
    AIMessage(
        "I look.",
        tool_calls=[{"id": "1", "name": "depth", "args": ARGS}, {"id": "2", "name": "web", "args": {}}],
        usage_metadata={"input_tokens": 7, "output_tokens": 2, "total_tokens": 9},
    ),
    {"type": "tool", "tool_call_id": "2", "content": "a page"},
    {"type": "tool", "tool_call_id": "1", "content": "A is nearer.", "artifact": FINDING},
    AIMessage("(A)"),
]
# Messages as `ChatMessageAssistant.model_dump()` and similar methods of inspect_ai write them.
INSPECT = stored(__file__, "INSPECT")


@pytest.fixture
def prompt(fakes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prompt:
    """A question with one picture, in its own store."""
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "home"))
    (image,) = fakes.refs(ImageStore(home() / "images"), 1, size=(96, 64))
    return Prompt(("Which point is nearer?", image), Kind.CHOICE, ("A", "B"))


def ask_agent(agent: Any, prompt: Prompt, fakes: Any) -> tuple[Any, SolverContext]:
    ctx = fakes.context_of(prompt)
    return asyncio.run(Agent(agent).ask(prompt, ctx)), ctx


def steps(ctx: SolverContext, kind: str) -> list[Step]:
    return [step for step in ctx.log.steps if step.kind == kind]


@pytest.mark.parametrize("messages", [OPENAI, LANGCHAIN, INSPECT], ids=["openai", "langchain", "inspect"])
def test_messages_of_every_form_become_the_same_steps(messages: list[Any], prompt: Prompt, fakes: Any) -> None:
    reply, ctx = ask_agent(lambda _: messages, prompt, fakes)
    assert (reply.text, reply.outcome) == ("(A)", Outcome.ANSWERED)
    assert [(step.kind, step.text) for step in ctx.log.steps] == [
        ("model", "I look."),
        ("tool", "a page"),
        ("tool", "A is nearer."),
        ("model", "(A)"),
    ]
    web, depth = steps(ctx, "tool")
    assert (web.name, web.data) == ("web", {"images": [], "args": {}})
    facts = {key: FINDING[key] for key in ("data", "confidence", "backend", "version")}
    assert (depth.name, depth.data) == ("depth", {"images": ["img:1"], "args": {"labels": ["A", "B"]}, **facts})
    tool_calls = steps(ctx, "model")[0].data["tool_calls"]
    assert tool_calls == [{"tool": "depth", "args": ARGS}, {"tool": "web", "args": {}}]
    used = ctx.meter.used
    assert (used.model_calls, used.tool_calls, used.tool_faults) == (2, 2, 0)
    assert (used.input_tokens, used.output_tokens) == ((7, 2) if messages is LANGCHAIN else (0, 0))


@pytest.mark.parametrize(*cases(__file__, "test_a_result_that_is_an_error_is_a_fault"), ids=["langchain", "inspect"])
def test_a_result_that_is_an_error_is_a_fault(result: dict[str, Any], prompt: Prompt, fakes: Any) -> None:
    reply, ctx = ask_agent(lambda _: [LANGCHAIN[1], result], prompt, fakes)
    # Text before a result is not an answer.
    assert (reply.text, reply.outcome) == ("", Outcome.UNPARSED)
    first, second = steps(ctx, "tool")
    assert (first.name, first.text, first.fault) == ("depth", "no", Fault.TOOL_ERROR)
    assert "data" not in first.data
    # A call whose result is missing from the messages was still made.
    assert (second.name, second.text, second.fault) == ("web", "", None)
    assert ctx.meter.used.tool_faults == 1


def test_the_body_of_a_chat_completion_is_read(prompt: Prompt, fakes: Any) -> None:
    body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "(B)"}}]}
    assert ask_agent(lambda _: body, prompt, fakes)[0].text == "(B)"
    assert ask_agent(lambda _: {**body, "messages": OPENAI}, prompt, fakes)[0].text == "(A)"


@pytest.mark.parametrize("returned", [None, "(A)", [], {}, ["(A)"]])
def test_what_is_no_message_is_an_error(returned: Any, prompt: Prompt, fakes: Any) -> None:
    with pytest.raises(TypeError, match="an agent must return messages"):
        ask_agent(lambda _: returned, prompt, fakes)


def test_the_seconds_of_a_question_end_an_agent(prompt: Prompt, fakes: Any) -> None:
    async def ask(_: Any) -> list[Any]:
        await asyncio.Event().wait()
        raise AssertionError

    ctx = fakes.context_of(prompt)
    ctx.meter.limits = type(ctx.meter.limits)(seconds=0.001)
    with pytest.raises(BudgetSpent, match="budget of seconds"):
        asyncio.run(Agent(ask).ask(prompt, ctx))
    assert isinstance(ctx.meter, Meter)
    assert ctx.meter.used.seconds > 0


class Looks(BaseChatModel):
    """Calls the depth tool on the first image, then answers with its output."""

    @property
    def _llm_type(self) -> str:
        return "looks"

    def bind_tools(self, tools: Any, **kwargs: Any) -> "Looks":
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        last = messages[-1]
        call = {"id": "1", "name": "depth", "args": {"image": "img:1", "points": POINTS}}
        aimessage = AIMessage("", tool_calls=[call]) if last.type == "human" else AIMessage(str(last.text))
        return ChatResult(generations=[ChatGeneration(message=aimessage)])


POINTS = [{"x": 10, "y": 10, "label": "A"}, {"x": 60, "y": 40, "label": "B"}]


@pytest.mark.parametrize("way", ["graph", "function"])
def test_our_tools_in_an_agent_know_the_images_of_its_question(way: str, prompt: Prompt, fakes: Any) -> None:
    (depth,) = langchain_tools(["depth"], backend="classical", in_run=True)
    assert depth.args["image"] == {"type": "string"}
    graph = create_agent(Looks(), [depth])
    by: Callable[[Any], Any] = lambda messages: graph.invoke({"messages": messages})  # noqa: E731
    reply, ctx = ask_agent(graph if way == "graph" else by, prompt, fakes)
    (step,) = steps(ctx, "tool")
    picture = ImageStore(home() / "images").pixels(prompt.images[0].image)
    expected = hybrid.tool("depth").run(picture, points=POINTS, backend="classical")
    assert (step.text, step.data["data"]) == (expected.text, expected.as_json()["data"])
    assert step.data["images"] == ["img:1"]
    assert reply.text == expected.text


@pytest.mark.parametrize(*cases(__file__, "test_tokens_are_read_in_every_form"), ids=["langchain", "openai", "inspect"])
def test_tokens_are_read_in_every_form(
    counts: dict[str, Any], tokens_in: int, tokens_out: int, cached: int, reasoned: int, prompt: Prompt, fakes: Any
) -> None:
    # Token counts next to the messages cover all calls.
    for returned in (
        {"messages": LANGCHAIN, "usage": counts},
        [{"role": "assistant", "content": "A", "usage": counts}],
    ):
        used = ask_agent(lambda _, it=returned: it, prompt, fakes)[1].meter.used
        assert (used.input_tokens, used.output_tokens) == (tokens_in, tokens_out)
        assert (used.cached_tokens, used.reasoning_tokens, used.uncounted_calls) == (cached, reasoned, 0)
