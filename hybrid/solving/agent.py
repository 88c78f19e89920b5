"""An external agent as a solver: it gets the question as messages, and its messages become the steps.

    SOLVER = Agent(graph)       # a LangGraph graph of messages, or an agent of `langchain.agents.create_agent`
    SOLVER = Agent(ask)         # a function from messages to messages, or to the body of a chat completion

The agent runs its own tools, which its messages show as calls of the assistant and tool messages with results. The
section `evidence` can judge a result if it has everything that hybrid's tools return besides pictures: text, data,
confidence, backend, version. Hybrid's tools in an agent (`hybrid/integrations`) take an image by the name that the
question showed (`img:1`).
"""

from __future__ import annotations

import asyncio
import inspect
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Protocol

from hybrid.core.errors import BudgetSpent
from hybrid.core.images import SHOWN_IMAGES, ImageStore, home
from hybrid.core.messages import (
    AssistantMessage,
    ToolCall,
    readable,
    replace_surrogates,
    replace_surrogates_in,
    shortened,
)
from hybrid.core.types import Fault, ImageRef, Json, Outcome, Prompt, Reply, Step, Usage
from hybrid.models.chat_completions.codec import wire_messages
from hybrid.models.images import ImageEncoder, ImageRules, arrange, image_block
from hybrid.models.literals import read_object
from hybrid.models.toolspec import IMAGE, IMAGES
from hybrid.solving.solver import Solver, SolverContext

# Messages in the form of OpenAI's chat completions, which LangChain accepts too; images are data URLs.
Wire = list[dict[str, Any]]
Ask = Callable[[Wire], Any | Awaitable[Any]]

# A result with these keys counts as tool output.
FINDING: Final = ("data", "confidence", "backend", "version")
# Maps LangChain's names of roles to the common ones.
ROLES: Final = MappingProxyType({"ai": "assistant", "human": "user"})
# Names of input and output tokens: LangChain and Inspect use the first word of each pair, OpenAI the second.
SIDES: Final = (("input", "prompt"), ("output", "completion"))


class Graph(Protocol):
    """A LangGraph graph whose state has `messages`."""

    async def ainvoke(self, state: dict[str, Wire], /) -> Mapping[str, Any]:
        """Return the last state."""


class Agent(Solver):
    """An external agent with its own model and tools.

    Args:
        agent: a graph whose state has `messages`, or a function, `async` or not, that takes messages (`Wire`) and
            returns messages, an object with `messages`, or the body of a chat completion. Messages are those of
            LangChain, OpenAI or Inspect, as objects or as JSON. If the returned object has `usage`, it counts the
            tokens of all calls; otherwise each message's own counts are summed.
        name: the agent's name in a run from Python; for an agent in a file, the file's name is used.
        about: describes everything that affects the agent's answers (model, prompt, tools); an agent with a changed
            description counts as another solver.
    """

    names_images = True
    runs_own_tools = True

    def __init__(self, agent: Graph | Ask, name: str = "agent", about: str = "") -> None:
        self.agent = agent
        self.name = name
        self.texts = MappingProxyType({"about": about})

    @property
    def written_as(self) -> tuple[Callable[..., Any], ...]:
        """Return the class of the agent and, unless it is a graph without source code, the wrapped function."""
        return (type(self),) if hasattr(self.agent, "ainvoke") else (type(self), self.agent)

    @cached_property
    def _images(self) -> ImageEncoder:
        return ImageEncoder(ImageStore(home() / "images"), ImageRules())

    async def ask(self, prompt: Prompt, ctx: SolverContext) -> Reply:
        """Return the agent's final text.

        Raises:
            BudgetSpent: the question's seconds ran out.
            TypeError: the agent returned no messages.
        """
        urls: dict[str, str] = {}

        def block(ref: ImageRef) -> dict[str, Any]:
            sent, data = self._images.encoded(ref.image)
            image_part = image_block(sent.media_type, data.decode("ascii"))
            urls[image_part["image_url"]["url"]] = ref.name
            return image_part

        arranged = arrange([ctx.message(prompt)], keep=0)
        wired = await asyncio.to_thread(wire_messages, arranged, block, "")
        token = SHOWN_IMAGES.set({ref.name: ref.image for ref in prompt.images})
        started = time.monotonic()
        try:
            async with asyncio.timeout(ctx.meter.seconds_left()) as limit:
                returned = await self._answered(wired)
        except TimeoutError:
            if not limit.expired():
                raise
            raise BudgetSpent("the question's budget of seconds ended while the agent was running") from None
        finally:
            SHOWN_IMAGES.reset(token)
            ctx.meter.used += Usage(seconds=time.monotonic() - started)
        # Extract the messages from the agent's result.
        messages = _field(returned, "messages")
        if messages is None and (choices := _field(returned, "choices")):
            messages = [_field(choices[0], "message")]
        if messages is None and isinstance(returned, Sequence) and not isinstance(returned, str):
            messages = returned
        if not messages or any(_role(message) is None for message in messages):
            raise TypeError(f"an agent must return messages, or an object that has them, not {type(returned).__name__}")
        conversation = _Conversation(list(messages), urls, _token_usage(_field(returned, "usage")))
        text = conversation.noted(ctx)
        return Reply(text, Outcome.ANSWERED if text else Outcome.UNPARSED)

    async def _answered(self, messages: Wire) -> Any:
        if hasattr(self.agent, "ainvoke"):
            return await self.agent.ainvoke({"messages": messages})
        if inspect.iscoroutinefunction(self.agent):
            return await self.agent(messages)
        returned = await asyncio.to_thread(self.agent, messages)
        return await returned if inspect.isawaitable(returned) else returned


@dataclass(frozen=True)
class _Conversation:
    """The messages of one answer.

    `urls` maps the data URL of each of the question's images to the image's name. `tokens` are the total tokens; None
    if they are not reported.
    """

    messages: Sequence[Any]
    urls: Mapping[str, str]
    tokens: Usage | None = None

    def noted(self, ctx: SolverContext) -> str:
        """Return the agent's final text, after logging and counting every call and result."""
        open_calls: dict[str, ToolCall] = {}
        used, text = self.tokens or Usage(), ""
        for message in self.messages:
            if _role(message) == "assistant":
                tool_calls = tuple(self._call(call) for call in _field(message, "tool_calls") or ())
                reply = readable(AssistantMessage(_text(message), tool_calls))
                text = reply.text.strip()
                calls: list[Json] = [{"tool": call.name, "args": call.args} for call in reply.calls]
                model_name = _field(_field(message, "response_metadata"), "model_name") or _field(message, "model")
                model = model_name if isinstance(model_name, str) else "agent"
                ctx.log.note(Step("model", model, reply.text, data={"tool_calls": calls} if calls else {}))
                open_calls |= {call.id: call for call in reply.calls}
                # Count the tokens of each call unless a total was reported.
                usage = _token_usage(_field(message, "usage_metadata")) or _token_usage(_field(message, "usage"))
                spent = Usage() if self.tokens is not None else usage or Usage(uncounted_calls=1)
                used += replace(spent, model_calls=1, tool_calls=len(reply.calls))
            elif _role(message) == "tool":
                call = open_calls.pop(_field(message, "tool_call_id") or "", None)
                step = _result(message, call)
                used += Usage(tool_faults=int(step.fault is not None))
                ctx.log.note(step)
                # Text before a tool result is not an answer.
                text = ""
        for call in open_calls.values():
            ctx.log.note(Step("tool", call.name, "", data=_call_data(call)))
        ctx.meter.used += used
        return text

    def _call(self, call: Any) -> ToolCall:
        """Parse a call in the form of OpenAI (`function` with JSON), Inspect (`function` is the name) or LangChain."""
        function = _field(call, "function")
        name, arguments = _field(call, "name"), _field(call, "args")
        if isinstance(function, str):
            name, arguments = function, _field(call, "arguments")
        elif function is not None:
            name, arguments = _field(function, "name"), _field(function, "arguments")
        args = read_object(arguments)[0]
        call_args = {"written": str(arguments)} if args is None else args
        return ToolCall(str(_field(call, "id") or ""), str(name), self._with_image_names(call_args))

    def _with_image_names(self, value: Any) -> Any:
        """Return the value with the bytes of each question image replaced by its name."""
        if isinstance(value, str):
            return self.urls.get(value, value)
        if isinstance(value, list):
            return [self._with_image_names(item) for item in value]
        return {key: self._with_image_names(item) for key, item in value.items()} if isinstance(value, dict) else value


def _result(message: Any, call: ToolCall | None) -> Step:
    """Return the step for a tool message."""
    text = shortened(replace_surrogates(_text(message)))
    name = call.name if call else str(_field(message, "name") or _field(message, "function") or "unknown")
    failed = _field(message, "status") == "error" or bool(_field(message, "error"))
    error = _field(_field(message, "error"), "message")
    data = _call_data(call) if call else {}
    if failed:
        return Step("tool", name, text or str(error or ""), fault=Fault.TOOL_ERROR, data=data)
    # The structured tool output, from the artifact or from text that is a JSON object; empty otherwise.
    artifact = _field(message, "artifact")
    content = _field(artifact, "structured_content") or artifact
    if content is None:
        content = read_object(_text(message))[0]
    is_complete = (
        isinstance(content, Mapping)
        and isinstance(content.get("data"), Mapping)
        and all(key in content for key in FINDING)
    )
    finding = replace_surrogates_in(json.loads(json.dumps(content, default=str))) if is_complete else {}
    finding_text = finding.get("text")
    facts = {key: finding[key] for key in FINDING} if finding else {}
    return Step("tool", name, finding_text if isinstance(finding_text, str) else text, data={**data, **facts})


def _call_data(call: ToolCall) -> dict[str, Json]:
    """Return the images and the other arguments of a call, in the form of a step."""
    images = call.args.get(IMAGES, call.args.get(IMAGE, ()))
    names = [images] if isinstance(images, str) else images
    image_names = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    return {
        "images": image_names,
        "args": {key: value for key, value in call.args.items() if key not in (IMAGE, IMAGES)},
    }


def _token_usage(counts: Any) -> Usage | None:
    """Return token counts of LangChain, OpenAI or Inspect; None unless both input and output are reported."""
    counts_by_form = ([_field(counts, f"{word}_tokens") for word in words] for words in SIDES)
    input_count, output_count = (first if first is not None else second for first, second in counts_by_form)
    if not (isinstance(input_count, int) and isinstance(output_count, int)):
        return None
    # Only Inspect excludes cache reads and writes from the input tokens.
    cache_counts = [_field(counts, f"input_tokens_cache_{way}") or 0 for way in ("read", "write")]
    cached = _field(_field(counts, "input_token_details"), "cache_read")
    cached = cached or _field(_field(counts, "prompt_tokens_details"), "cached_tokens")
    thought = _field(_field(counts, "output_token_details"), "reasoning")
    thought = thought or _field(_field(counts, "completion_tokens_details"), "reasoning_tokens")
    return Usage(
        input_tokens=input_count + sum(cache_counts),
        output_tokens=output_count,
        reasoning_tokens=thought or _field(counts, "reasoning_tokens") or 0,
        cached_tokens=cached or cache_counts[0],
    )


def _role(message: Any) -> str | None:
    role = _field(message, "role") or _field(message, "type")
    return ROLES.get(role, role) if isinstance(role, str) else None


def _text(message: Any) -> str:
    """Return the text of a message, whose content is text or a list of parts."""
    content = _field(message, "content")
    if isinstance(content, str):
        return content
    texts = [part if isinstance(part, str) else _field(part, "text") for part in content or ()]
    return "\n".join(text for text in texts if isinstance(text, str))


def _field(value: Any, name: str) -> Any:
    """Return a field of a JSON object or an attribute of another object; None if missing."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
