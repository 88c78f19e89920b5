"""Model calls for one prompt: each call checks the budgets, counts its usage and logs a step.

    calls = ModelCalls(model=model, key=key, price=price, options=(), meter=meter, run_meter=run_meter, log=log)
    message = await calls([user_message(["Which one?", image])])

Between a solver and its provider there are only these calls, the retries inside a model (`hybrid/models`) and the
tracing around them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Final

from hybrid import tracing
from hybrid.config import Price
from hybrid.core.errors import BudgetSpent, NotRecorded
from hybrid.core.messages import (
    AssistantMessage,
    End,
    Message,
    Part,
    TokenUsage,
    ToolMessage,
    UserMessage,
    images_of,
    readable,
)
from hybrid.core.timing import CallTime, Clock, count_call
from hybrid.core.types import Fault, ImageRef, Json, Step, Usage
from hybrid.models.base import CallKey, ChatModel, Likelihoods, PicturesRefused
from hybrid.models.images import UNCONFIRMED
from hybrid.solving.budgets import RunMeter, cost_usd, timed
from hybrid.solving.solver import Log, Meter
from hybrid.solving.styles import PLAIN, Style
from hybrid.tool import Tool

# Characters of a reply's thoughts kept in its step; the model gets all of them back.
MAX_THOUGHTS = 8_000
# Names of two steps: for a picture that the server rejected, and for a picture that added no tokens.
PICTURE_REFUSED: Final = "picture refused"
PICTURE_UNCOUNTED: Final = "picture not counted"
# Maximum characters of a server's message about a picture, for the model and the trace.
MAX_REFUSAL: Final = 240
# Sides in pixels, and a side ratio, beyond which processors are known to refuse pictures; they determine the suggested
# remedy.
SMALL_SIDE, LARGE_SIDE, NARROW_RATIO = 64, 1500, 20
# Tolerance in seconds, larger than the rounding error of a sum of durations.
TIMER_S = 1e-6


def _ending(message: AssistantMessage) -> dict[str, Json]:
    """Return how a reply ended if it ended abnormally, and why earlier replies were broken off."""
    facts: dict[str, Json] = {"broken_off": [*message.broken_off]} if message.broken_off else {}
    if message.end not in (End.ENDED, End.TOOL_CALLS):
        facts |= {"end": message.end.value, "finish_reason": message.finish_reason}
    return facts


@dataclass(kw_only=True)
class ModelCalls:
    """An `AskModel` over a `ChatModel`. Calls are numbered starting at `key`."""

    model: ChatModel | None
    # Key of the next call.
    key: CallKey
    price: Price | None
    # Options to score by likelihood instead of generating text; empty if the model generates text.
    options: tuple[str, ...]
    meter: Meter
    run_meter: RunMeter
    log: Log
    clock: Clock = time.monotonic
    # Called before a call that offers tools, to load them while the model generates.
    load_tools: Callable[[], None] = lambda: None
    style: Style = PLAIN
    # The texts that replace tool pictures which the server rejected, by name of the picture.
    _refused: dict[str, str] = field(default_factory=dict)
    # Names of tool pictures in requests that got a reply.
    _taken: set[str] = field(default_factory=set)
    # The last request for this prompt: number of pictures, input tokens, number of messages.
    _last: tuple[int, int, int] = (0, 0, 0)

    async def __call__(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> AssistantMessage:
        """Return the model's message.

        Raises:
            BudgetSpent: a budget of the question was spent before or during the call.
            RunBudgetSpent: the budget of the run allows no further call.
            NotRecorded: there is no model, or the recorded model has no such call.
            Outage, ServerDown, ModelRefused: as in `ChatModel.chat`.
        """
        model = self.model
        if model is None:
            raise NotRecorded("this run has no model")
        self.meter.check()
        await self.run_meter.begin()
        if tools:
            self.load_tools()
        key, self.key = self.key, self.key.following()
        with tracing.span(lambda: tracing.model_call(model.name, model.provider, messages)) as finish_span:
            message, used = await self._chat_and_count(model, messages, tools, key)
            if used.uncounted_calls:
                self.run_meter.refuse_uncounted(model.name, self.meter.limits)
            finish_span(lambda: tracing.model_reply(message, used.cost_usd))
        self._check_growth(model.name, messages, message)
        sent, thoughts = message.images_sent, message.reasoning
        if (left_out := len(thoughts) - MAX_THOUGHTS) > 0:
            # Keep both ends of long thoughts in the trace, because the answer is decided at the end.
            half = MAX_THOUGHTS // 2
            thoughts = f"{thoughts[:half]}\n[{left_out:,} characters are left out]\n{thoughts[-half:]}"
        calls: list[Json] = []
        for call in message.calls:
            read: dict[str, Json] = {"read_from": call.read_from} if call.read_from else {}
            read |= {"repairs": call.repairs} if call.repairs else {}
            calls.append({"tool": call.name, "args": call.args, **read})
        facts: dict[str, Json] = {
            "tool_calls": calls or None,
            "unreadable": None if message.unreadable is None else asdict(message.unreadable),
            "reasoning": thoughts or None,
            # Log every abnormal ending, so that such replies can be found in a run.
            **_ending(message),
            "model": message.model,
            "likelihood": message.likelihood,
            "images_sent": None if sent is None else [image.json() for image in sent],
            "retries": (message.attempts or 1) - 1 or None,
            "reused": message.reused or None,
        }
        data = {name: fact for name, fact in facts.items() if fact is not None}
        self.log.note(Step("model", model.name, message.text, used.seconds, data=data))
        return message

    async def _chat_and_count(
        self, model: ChatModel, messages: Sequence[Message], tools: Sequence[Tool], key: CallKey
    ) -> tuple[AssistantMessage, Usage]:
        """Return the message and its usage, which is counted however the call ends."""
        remaining_s, at_least = self.meter.seconds_left(), 0.0
        spent, used, started = CallTime(remaining_s), Usage(), self.clock()
        try:
            async with count_call(spent, self.clock) as limit:
                if self.options and not tools:
                    assert isinstance(model, Likelihoods)  # noqa: S101 - `prepare` has rejected every other model
                    message = readable(await model.likelihood(messages, self.options))
                else:
                    message = readable(await self._chat(model, messages, tools, key))
            tokens = TokenUsage(0, 0) if message.reused else message.usage or TokenUsage(0, 0)
            used = Usage(
                model_calls=1,
                reused_calls=int(message.reused),
                input_tokens=tokens.input_tokens,
                output_tokens=tokens.output_tokens,
                reasoning_tokens=tokens.reasoning_tokens,
                cost_usd=cost_usd(tokens if message.reused else message.usage, self.price, batched=message.batched),
                cached_tokens=tokens.cached_tokens or 0,
                # Recordings and models in this process have no server that counts tokens.
                uncounted_calls=int(message.usage is None and bool(model.connection()) and not message.reused),
            )
        except TimeoutError:
            # A timeout of the model's own connection is not the end of the question's budget.
            if not limit.expired():
                raise
            # The call was made and may be charged, but the provider's token counts are lost.
            used = Usage(model_calls=1, uncounted_calls=int(bool(model.connection())))
            # The timer may fire slightly before the budget ends, which still counts as spent.
            at_least = (remaining_s or 0.0) + TIMER_S
            self.log.note(Step("model", model.name, "", spent.busy, Fault.TIMEOUT))
            raise BudgetSpent("the question's budget of seconds ended during a model call") from None
        finally:
            used = timed(used, spent, self.clock() - started, at_least)
            self.run_meter.end(used)
            self.meter.used = self.meter.used + used
        return message, used

    async def _chat(
        self, model: ChatModel, messages: Sequence[Message], tools: Sequence[Tool], key: CallKey
    ) -> AssistantMessage:
        """Return the model's reply; retry without new tool pictures if the server rejects them.

        The model then reads the server's message in their place. Raises what `ChatModel.chat` raises.
        """
        tool_of_image = {
            image.name: step.name for step in self.log.steps if step.kind == "tool" for image in step.images
        }
        sendable = self._without_refused(messages)
        new = {
            ref.name: ref for ref in images_of(sendable) if ref.name in tool_of_image and ref.name not in self._taken
        }
        unconfirmed = UNCONFIRMED.set(frozenset(new))
        try:
            reply = await self.style.chat(model, sendable, tools, key)
        except PicturesRefused as error:
            UNCONFIRMED.set(frozenset())
            words = str(error).partition(": ")[2][:MAX_REFUSAL]
            self._refused |= {name: _refused_text(new[name], words) for name in error.pictures}
            reply = await self.style.chat(model, self._without_refused(messages), tools, key)
            for name in sorted(error.pictures):
                self._note_refusal(new[name], tool_of_image[name], words)
        else:
            self._taken |= new.keys() & {image.name for image in reply.images_sent or ()}
        finally:
            UNCONFIRMED.reset(unconfirmed)
        return reply

    def _note_refusal(self, ref: ImageRef, tool: str, error_text: str) -> None:
        """Count a picture that the server rejected as a fault of its tool."""
        image = ref.image
        size = f"{image.width} x {image.height} px"
        text = f"{ref.name} ({size}): the model's server did not take this picture: {error_text}"
        facts: dict[str, Json] = {"tool": tool, "picture": ref.name, "width": image.width, "height": image.height}
        self.log.note(Step("rule", PICTURE_REFUSED, text, fault=Fault.PICTURE_REFUSED, data=facts))
        self.meter.used = self.meter.used + Usage(tool_faults=1)

    def _without_refused(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages with text in place of rejected pictures."""
        if not self._refused:
            return messages

        def part_of(part: Part) -> Part:
            return part if isinstance(part, str) else self._refused.get(part.ref.name, part)

        return [
            replace(message, parts=tuple(map(part_of, message.parts)))
            if isinstance(message, UserMessage | ToolMessage)
            else message
            for message in messages
        ]

    def _check_growth(self, name: str, messages: Sequence[Message], reply: AssistantMessage) -> None:
        """Warn if an additional picture in the same conversation did not increase the prompt tokens."""
        previous = self._last
        tokens = reply.usage.input_tokens if reply.usage else 0
        now = self._last = (len(reply.images_sent or ()), tokens, len(messages))
        if not (previous[1] and tokens and now[0] > previous[0] and now[2] > previous[2] and tokens <= previous[1]):
            return
        text = f"{now[0] - previous[0]} more picture(s) took no more tokens ({previous[1]:,} before, {tokens:,} now)"
        self.log.note(Step("rule", PICTURE_UNCOUNTED, text))
        self.run_meter.warn_once(
            f"warning: {name}: a request with one more picture took no more prompt tokens than the one before it: its "
            "server drops pictures of tools or does not count them; `hybrid models check` shows which is the case"
        )


def _refused_text(ref: ImageRef, reason: str) -> str:
    """Return the text that replaces a picture for the model, with the remedy."""
    width, height = ref.image.width, ref.image.height
    shorter, longer = min(width, height), max(width, height)
    if shorter < SMALL_SIDE:
        remedy = "ask for a larger region"
    elif longer > NARROW_RATIO * shorter:
        remedy = "ask for a region that is less narrow"
    elif longer > LARGE_SIDE:
        remedy = "ask for a smaller region, or a smaller scale"
    else:
        remedy = "go on without it"
    return f"[{ref.name}: the picture of {width} x {height} px was not taken ({reason}); {remedy}]"
