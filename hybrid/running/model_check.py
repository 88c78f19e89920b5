"""Abilities of a model and its server, tested with 20 to 32 small requests for `hybrid models check`.

checked = await check_model("openai:k", ModelSettings(base_url=url), store)
checked.found, checked.options       # rows with request, reply and meaning; the options to run with
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from hybrid.config import ModelSettings
from hybrid.config.run_config import own_frame
from hybrid.core.errors import HybridError, UsageError
from hybrid.core.images import ImageStore
from hybrid.core.messages import (
    AssistantMessage,
    End,
    Message,
    ToolCall,
    ToolMessage,
    UserMessage,
    user_message,
)
from hybrid.core.types import ImageRef
from hybrid.models import open_model
from hybrid.models.base import CallKey, ChatModel, ModelRefused, other_models
from hybrid.models.caller import Caller
from hybrid.models.circuit import UNMET, Circuit, CircuitLimits
from hybrid.models.failures import CHECK, Failure, read_failure
from hybrid.models.thoughts import has_thoughts
from hybrid.plugins.registry import load
from hybrid.running.before_asking import uncalled
from hybrid.running.picture_place import PlaceProbe, find_place
from hybrid.running.probes import (
    CALL_PROBE,
    ORDER_FROM,
    PICTURE,
    PLAIN_TEXT,
    PROBE_NUMBER,
    PROBE_TEXT,
    call_tool,
    frame_of,
    look,
    numbered,
    reads,
    resizing_of,
    see_order,
)
from hybrid.tool import Tool

# Timeout of one request; a model that is slower for one word is not usable.
TIMEOUT_S: Final = 25.0
# Limit for all requests together.
MAX_S: Final = 55.0
AT_ONCE: Final = 4
# Failures are final, because a check does not wait for a server to recover.
UNFORGIVING: Final = CircuitLimits(
    failures=1000, refusals=1000, wrong_keys=1000, pause_s=0.05, probes=1, away_s=0.0, unmet_s=0.0, busy_s=0.0
)
MAX_PICTURES: Final = 8
# Numbers of pictures per message to try.
COUNTS: Final = (MAX_PICTURES, 4, 2, 1)
# Sides of a square picture to try, in pixels.
SIDES: Final = (4096, 2048, 1024)
# File formats that clients send unchanged, except that some clients convert the last one to PNG.
FORMS: Final = ("PNG", "JPEG", "WEBP")
UNKNOWN: Final = "not known"
IMAGE_LIMITS: Final = "image_limits="
# Picture sides in pixels and side ratios, in the order tried.
SMALL_SIDES: Final = (8, 28, 32, 56)
LONG_SIDES: Final = (2048, 1024)
RATIOS: Final = (199, 100, 50)
# Ratio of sides that every processor accepts.
USUAL_RATIO: Final = 8
RESULT_NUMBERS: Final = ("4915", "8264")
THOUGHT: Final = "The two pictures may differ in the corner, so that I look there first and then compare both."
# Token limit for replies whose text is not read.
SHORT_REPLY: Final = 16

Probe = Callable[[], Awaitable["list[CheckRow]"]]


@dataclass(frozen=True, slots=True)
class CheckRow:
    """One line of the check: what was tested, the result, its meaning for a run, and the options that it requires."""

    asked: str
    came: str
    means: str
    options: tuple[str, ...] = ()
    # Whether a run without `options` would be rejected.
    refused: bool = False


@dataclass(frozen=True, slots=True)
class CheckedModel:
    """All results, with the number of requests and the seconds they took."""

    found: tuple[CheckRow, ...]
    requests: int
    seconds: float

    @property
    def options(self) -> tuple[str, ...]:
        """The options to run with, without duplicates."""
        pairs = dict.fromkeys(
            pair for row in self.found for pair in zip(row.options[::2], row.options[1::2], strict=True)
        )
        if ("--images", "none") in pairs:
            pairs.pop(("--images", "concat"), None)
        limits = [value for name, value in pairs if name == "--model-arg" and value.startswith(IMAGE_LIMITS)]
        if len(limits) > 1:
            # All limits are given in a single option.
            pairs = {pair: None for pair in pairs if pair[1] not in limits}
            joined = ",".join(value.removeprefix(IMAGE_LIMITS) for value in limits)
            pairs["--model-arg", f"{IMAGE_LIMITS}{joined}"] = None
        return tuple(word for pair in pairs for word in pair)

    @property
    def calls(self) -> bool:
        """Whether solvers that offer tools can be used."""
        return not any(row.refused and not row.options for row in self.found)


async def check_model(name: str, settings: ModelSettings, store: ImageStore) -> CheckedModel:
    """Run all tests, `AT_ONCE` at a time.

    Raises:
        UsageError: the model cannot be opened with these options.
        DataError: unusable recordings.
        HybridError: the first question got no reply; one line says why.
    """
    # A timeout that the user set applies. The default timeout is not used here: it is meant for runs, which wait for a
    # busy server.
    limit = TIMEOUT_S if settings.timeout_s == ModelSettings().timeout_s else settings.timeout_s
    check = _Check(name, replace(settings, retries=0, timeout_s=limit), store)
    start = time.monotonic()
    try:
        if check.model().provider == "replay":
            return CheckedModel(
                (CheckRow("answers", "a recording", "a recorded model can only be asked what was recorded"),), 0, 0.0
            )
        rows = await check.first()
        rows += await check.all_others(MAX_S - (time.monotonic() - start))
    finally:
        await check.close()
    return CheckedModel(tuple(rows), check.requests, time.monotonic() - start)


# Remedies for a first reply that ended abnormally.
_ENDS: Mapping[End, str] = {
    End.CUT: "give --max-tokens",
    End.CONTEXT_FULL: "the model's context is full after one line: start the server with a longer context",
    End.FILTERED: "a filter of the provider stopped it: such replies are counted and not scored",
    End.REFUSED: "the provider refused: such replies are counted and not scored",
    End.UNFINISHED: "its provider did not let it finish: such replies are counted and not scored",
    End.UNKNOWN: "an unknown reason: the reply counts as complete, and the reason is listed",
}


def _answering(requested_model: str, answered: str | None) -> list[CheckRow]:
    """Return a row with the model that the server names, if it differs from the requested one."""
    if answered is None or not other_models(requested_model, {answered: 1}):
        return []
    return [
        CheckRow("answers as", answered, f"another model than {requested_model}: runs count its replies and say so")
    ]


@dataclass
class _Check:
    name: str
    settings: ModelSettings
    store: ImageStore
    requests: int = 0
    opened: dict[str, ChatModel] = field(default_factory=dict)
    # Whether the model has read the number in a picture of a user message.
    reads_pictures: bool = False
    line: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    def model(self, **changes: Any) -> ChatModel:
        """Return the model with other settings; by default its requests contain neither seed nor temperature."""
        key = str(changes)
        if key not in self.opened:
            settings = replace(self.settings, **{"temperature": None, **changes})
            model = open_model(self.name, settings, self.store)
            if isinstance(model, Caller):
                circuit = Circuit(self.name, UNFORGIVING)
                model = Caller(model.client, settings, circuit)
            self.opened[key] = model
        return self.opened[key]

    async def chat(
        self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey, model: ChatModel | None = None
    ) -> AssistantMessage:
        async with self.line:
            self.requests += 1
            return await (model or self.model()).chat(messages, tools, call)

    async def say(self, text: str, **changes: Any) -> AssistantMessage:
        """Send a text to the model with other settings, and return the reply."""
        return await self.chat([user_message((text,))], (), CallKey("check"), self.model(**changes))

    async def close(self) -> None:
        for model in self.opened.values():
            await model.close()

    async def first(self) -> list[CheckRow]:
        """Return the rows from the first reply. Raises the error if there is no reply."""
        try:
            reply = await self.say(PLAIN_TEXT)
        except HybridError as error:
            # Add advice that the error itself does not contain.
            advice, cause = "", error.__cause__
            if isinstance(cause, TimeoutError):
                slow = f"silence for {self.settings.timeout_s:g} s"
                advice = f": {slow}; a slower server needs --model-arg timeout_s=SECONDS"
            elif cause and (failed := read_failure(cause)) is not None and failed.kind is Failure.RETRY:
                unmet = "" if failed.reached else f". {UNMET}"
                advice = f"; {CHECK[Failure.ADDRESS]}" if failed.is_page else unmet
            raise type(error)(f"{error}{advice}") from error
        usage, finish_reason = reply.usage, reply.finish_reason
        thought = len(reply.reasoning) or (usage.reasoning_tokens if usage else 0)
        means_of_end = _ENDS.get(reply.end, "yes") if finish_reason else "give --max-tokens"
        rows = [
            CheckRow(
                "answers",
                _quoted(reply.text),
                "the server is reached" if reply.text else "the server is reached, but the reply is empty",
            ),
            CheckRow("ends by itself", finish_reason or "no reason", means_of_end),
            *_answering(self.name, reply.model),
            CheckRow("counts tokens", f"{usage.input_tokens} read, {usage.output_tokens} written", "budgets work")
            if usage
            else CheckRow("counts tokens", "none", "limits on tokens or dollars do not work"),
            CheckRow("thinks", f"{thought:,} characters or tokens besides the text", "the thinking is kept")
            if thought
            else CheckRow("thinks", "no thinking besides the text", ""),
        ]
        price = self.settings.price
        means = "costs are counted" if price else "give --model-arg price=IN/OUT, in USD per million tokens"
        # hybrid has no price table (`hybrid.solving.budgets.cost_usd`), so a price is known only if the user gave one.
        price_text = "/".join(f"{amount:g}" for amount in (price.input_usd, price.output_usd)) if price else "not known"
        return [*rows, CheckRow("price", price_text, means)]

    async def all_others(self, seconds: float) -> list[CheckRow]:
        until = time.monotonic() + seconds
        of_model: Mapping[str, Probe] = {
            "pictures in one message": self.pictures,
            "calls tools": self.tools,
            "frame of coordinates": self.frame,
        }
        of_server: Mapping[str, Probe] = {
            "takes temperature and seed": self.sampling,
            "accepts a token limit": self.limit,
            "streams": self.stream,
            "takes logprobs": self.logprobs,
            "history that the model reads": self.history,
        }
        # The picture of a tool is judged by comparison with this result.
        sees = await _try("sees", self.sight)
        # Models in this process have known abilities, and each server probe would load the weights again.
        probes = {**of_model, **(of_server if self.model().connection() else {})}
        tasks = {name: asyncio.create_task(_try(name, probe)) for name, probe in probes.items()}
        await asyncio.wait(tasks.values(), timeout=seconds)
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        late = {name for name, task in tasks.items() if task.cancelled()}
        rows = sees + [row for name, task in tasks.items() if name not in late for row in task.result()]
        rows += [CheckRow(name, f"no reply within {seconds:.0f} s", UNKNOWN) for name in late]
        # These probes run last and alone, because a server may not recover from them.
        try:
            async with asyncio.timeout(max(0.0, until - time.monotonic())):
                rows += await _try("smallest picture", self.smallest)
                return [*rows, *await _try("largest picture", self.largest)]
        except TimeoutError:
            return [*rows, CheckRow("size of pictures", f"no reply within {seconds:.0f} s", UNKNOWN)]

    async def sight(self) -> list[CheckRow]:
        sight = await look(self.chat, self.store)
        self.reads_pictures = PROBE_NUMBER in sight.said
        if sight.verdict == "blind":
            return [CheckRow("sees", _quoted(sight.said), "the model is blind", ("--images", "none"), refused=True)]
        return [CheckRow("sees", _quoted(sight.said), "yes" if sight.verdict == "sees" else UNKNOWN)]

    async def pictures(self) -> list[CheckRow]:
        """Test how many pictures a message may have: first in all file formats, then as PNG."""
        title, refusals = "pictures in one message", []
        for forms, count in ((FORMS, MAX_PICTURES), *((FORMS[:1], count) for count in COUNTS)):
            numbers = [f"{place}{place * 3 % 10}" for place in range(1, count + 1)]
            files = [numbered(number, form=forms[at % len(forms)]) for at, number in enumerate(numbers)]
            try:
                reply = await self.show("Each picture shows a number. Write the numbers in order.", *files)
            except HybridError as error:
                refusals.append(_line(error))
                continue
            only = f" as PNG alone ({refusals[0]})" if refusals and count == MAX_PICTURES else ""
            in_order = reads(reply, *numbers)
            if not in_order and count >= ORDER_FROM and self.reads_pictures:
                order = await see_order(self.chat, self.store, count)
                if order.verdict in ("out of order", "missing"):
                    outcome = f"{count} accepted, {order.verdict}: {_quoted(order.said)}"
                    return [
                        CheckRow(title, outcome, "right if joined into one image", ("--images", "concat"), refused=True)
                    ]
            seen = "read in order" if in_order else f"not read in order: {_quoted(reply.text)}"
            fewer = ("--show", "text") if count == 1 else ("--model-arg", f"keep_images={count - 1}")
            options = ("--images", "concat", *fewer) if count < MAX_PICTURES else ()
            return [CheckRow(title, f"{count}{only}, {seen}", "BLINK shows up to 4, and tools add more", options)]
        return [CheckRow(title, refusals[-1], "no picture is accepted", ("--images", "none"), refused=True)]

    async def largest(self) -> list[CheckRow]:
        refusals = [""]
        for side in SIDES:
            try:
                reply = await self.show(PROBE_TEXT, numbered("58", (side, side)))
            except HybridError as error:
                refusals.append(_line(error))
                continue
            seen = "read" if reads(reply, "58") else "accepted, but not read"
            options = ("--max-pixels", str(side * side)) if side < SIDES[0] else ()
            return [CheckRow("largest picture", f"{side} x {side} px, {seen}", refusals[-1] or "enough", options)]
        return [CheckRow("largest picture", refusals[-1], UNKNOWN)]

    async def smallest(self) -> list[CheckRow]:
        """Find the shortest accepted side and the largest accepted side ratio; processors refuse other pictures."""
        least, refusals = await self.first_taken([(side, (side, side)) for side in SMALL_SIDES])
        if least is None:
            return [CheckRow("smallest picture", refusals[-1], UNKNOWN)]
        limits, outcome = [f"least_side:{least}"] if refusals else [], f"{least} px a side accepted"
        for long in LONG_SIDES:
            narrow, words = await self.first_taken([(long // least, (long, least))])
            if narrow is not None:
                outcome += f", and {long} x {least} px"
                break
            wide, _ = await self.first_taken([(long, (long, long // USUAL_RATIO))])
            if wide is None:
                # The server refused the length, not the ratio.
                continue
            refusals += words
            ratio, _ = await self.first_taken([(ratio, (long, math.ceil(long / ratio))) for ratio in RATIOS])
            limits.append(f"most_ratio:{ratio or USUAL_RATIO}")
            outcome += f", and a ratio of {ratio or USUAL_RATIO}"
            break
        options = ("--model-arg", f"{IMAGE_LIMITS}{','.join(limits)}") if limits else ()
        return [CheckRow("smallest picture", outcome, (refusals or ["enough"])[-1], options)]

    async def first_taken(self, sizes: Sequence[tuple[int, tuple[int, int]]]) -> tuple[int | None, list[str]]:
        """Return the name of the first accepted size (width, height), and the refusals of earlier sizes."""
        refusals: list[str] = []
        for name, size in sizes:
            try:
                await self.show(PROBE_TEXT, numbered("5", size))
            except HybridError as error:
                refusals.append(_line(error))
            else:
                return name, refusals
        return None, refusals

    async def history(self) -> list[CheckRow]:
        """Test by prompt tokens whether the model gets the thinking of earlier turns, and the text next to their calls.

        The conversation is made up, because a real reply may lack thinking or text.
        """
        title, model = "history that the model reads", self.model(max_tokens=SHORT_REPLY)
        crop: Tool = load("tools", "crop")

        async def tokens(reply: AssistantMessage) -> int:
            results = ToolMessage("call00001", "crop", ("The corner is red.",))
            conversation: list[Message] = [user_message(("Compare the corners.",)), reply, results]
            answer = await self.chat(conversation, [crop], CallKey(CALL_PROBE, call=3), model)
            return answer.usage.input_tokens if answer.usage else 0

        call = AssistantMessage("", (ToolCall("call00001", "crop", {"images": ["img:1"]}),), said_by=self.name)
        thoughts = {"reasoning_content": THOUGHT, "reasoning": THOUGHT}
        plain = await tokens(call)
        if not plain:
            return [CheckRow(title, "tokens are not counted", UNKNOWN)]
        read, unread = list[str](), list[str]()
        for part, changed in {
            "thinking": replace(call, native={"message": thoughts, "content": [], "calls": []}),
            "text beside a call": replace(call, text=THOUGHT),
        }.items():
            try:
                (read if await tokens(changed) > plain else unread).append(part)
            except HybridError as error:
                unread.append(f"{part} ({_line(error)})")
        means = (
            "the server drops this part from every request, so the model forgets it" if unread else "nothing is lost"
        )
        outcome = "; ".join(
            filter(None, [f"{' and '.join(read)} kept" if read else "", *(f"no {name}" for name in unread)])
        )
        return [CheckRow(title, outcome, means)]

    async def show(self, text: str, *files: bytes) -> AssistantMessage:
        """Return the reply to a text and pictures."""
        images = [ImageRef(f"img:{at}", self.store.put(file, PICTURE)) for at, file in enumerate(files, 1)]
        return await self.chat([user_message((text, *images), labelled=False)], (), CallKey("check-pictures"))

    async def tools(self) -> list[CheckRow]:
        """Test how tools are called, natively or in text, and what happens to a picture in a result."""
        crop: Tool = load("tools", "crop")
        replies: list[AssistantMessage] = []
        history: list[Message] = []

        async def record_chat(messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> AssistantMessage:
            history[:] = messages
            replies.append(await self.chat(messages, tools, call))
            return replies[-1]

        try:
            calling = await call_tool(record_chat, self.store, [crop], images=2)
        except HybridError:
            # Retry without pictures, which may be too many.
            calling = await call_tool(record_chat, self.store, [crop], images=2, with_pictures=False)
        if calling.verdict == "calls":
            way = f"read from text ({calling.read_from})" if calling.read_from else "by the provider's interface"
            grouping = "several per message" if calling.calls > 1 else "one per message"
            finding = CheckRow("calls tools", f"{calling.calls}, {way}", f"yes, {grouping}")
            return [finding, *await _try("a picture in a result", lambda: self.result([*history, replies[-1]], crop))]
        reason = (
            f"called no tool: {_quoted(calling.said)}"
            if calling.verdict == "none"
            else f"{calling.verdict}: {calling.said}"
        )
        text = self.model(tool_calling="text")
        in_text = await call_tool(partial(self.chat, model=text), self.store, [crop])
        if in_text.verdict == "calls":
            return [CheckRow("calls tools", reason, "only in text", ("--tool-calling", "text"), refused=True)]
        refused, means = calling.verdict != "none", "the model may call no tool"
        if refused:
            means = uncalled(self.name, calling.verdict, calling.said, calling.read_from)
        return [CheckRow("calls tools", reason, means, (), refused)]

    async def result(self, conversation: Sequence[Message], tool: Tool) -> list[CheckRow]:
        """Test whether a picture in a result is seen, and whether the thinking before it is kept."""
        title, model = "a picture in a result", self.model(results_inside=False)
        chat = partial(self.chat, model=model)
        native = self.settings.tool_calling != "text"
        probe = PlaceProbe(model, chat, self.settings, self.store, self.reads_pictures, native, RESULT_NUMBERS)
        try:
            placement = await find_place(probe, conversation, [tool])
            if placement.verdict == "refused":
                # Perhaps the question's own pictures were too many.
                bare = [
                    user_message((message.text,)) if isinstance(message, UserMessage) else message
                    for message in conversation
                ]
                placement = await find_place(probe, bare, [tool])
        except HybridError as error:
            options = ("--reasoning", "drop") if "--reasoning drop" in str(error) else ()
            return [CheckRow(title, _line(error), "results are not accepted", options)]
        if placement.verdict in ("blind", "refused"):
            outcome = (
                f"not seen: {_quoted(placement.said)}"
                if placement.verdict == "blind"
                else f"not accepted: {placement.said[:120]}"
            )
            return [CheckRow(title, outcome, "a run sends only the text of tools", ("--show", "text"), refused=True)]
        thoughts = "; the server accepts its reasoning back" if has_thoughts_in(conversation) else ""
        seen = "seen" if placement.verdict == "sees" else f"not read: {_quoted(placement.said)}"
        place = "inside the tool message" if placement.place == "inside" else "in a user message after it"
        rows = [CheckRow(title, f"{seen}{thoughts}", f"works, with the picture {place}")]
        if placement.thinking == "none":
            return rows
        inside = placement.place == "inside"
        means = {
            "kept": "nothing is lost",
            "switched": f"runs send {json.dumps(placement.switch)}",
            "lost": (
                "the server, or its template, drops the thinking from every request"
                if inside
                else "the template drops the thinking before a user message, and no switch is known"
            ),
            "unknown": "token counts do not show it, and no switch is known",
        }[placement.thinking]
        return [*rows, CheckRow("thinking before a picture of a tool", placement.thinking, means)]

    async def frame(self) -> list[CheckRow]:
        try:
            frame = await frame_of(self.chat, self.store, self.settings.max_pixels)
        except UsageError as error:
            error_text = str(error).partition("probe: ")[2].partition(" names no point")[0]
            outcome = f"the reply names no point near the disc: {error_text}"
            return [CheckRow("frame of coordinates", outcome, "pixels are assumed")]
        if frame.name == "pixels":
            summary, resizing = await resizing_of(self.chat, self.store)
            option = f"if its coordinates are pixels of these sizes: --model-arg frame={resizing}"
            seen = CheckRow("pictures at the size at which they are seen", summary, option if resizing else UNKNOWN)
            return [CheckRow("frame of coordinates", "pixels", "the default"), seen]
        declared = frame.name != own_frame(self.name)
        options = ("--model-arg", f"frame={frame.name}") if declared else ()
        return [
            CheckRow(
                "frame of coordinates", frame.name, "the option declares it" if declared else "the default", options
            )
        ]

    async def sampling(self) -> list[CheckRow]:
        title = "takes temperature and seed"
        try:
            await self.say(PLAIN_TEXT, temperature=0.0, seed=0)
        except HybridError as error:
            return [
                CheckRow(title, _line(error), "the server uses its own settings", ("--model-arg", "temperature=null"))
            ]
        terms = self.model(temperature=0.0, seed=0).connection().get("terms")
        summary = "; ".join(map(str, terms)) if isinstance(terms, list) else ""
        return [
            CheckRow(
                title, summary or "both are accepted", "runs do this automatically" if summary else "runs send both"
            )
        ]

    async def limit(self) -> list[CheckRow]:
        reply = await self.say("Count from 1 to 200, one number a line.", max_tokens=16)
        is_limited = reply.is_cut or len(reply.text) < 100
        means = "--max-tokens works" if is_limited else "--max-tokens does nothing"
        return [CheckRow("accepts a token limit", f"the reply ended with {reply.finish_reason}", means)]

    async def stream(self) -> list[CheckRow]:
        reply = await self.say(PLAIN_TEXT, stream="on")
        if getattr(getattr(self.model(stream="on"), "client", None), "streamed", False):
            return [CheckRow("streams", f"in pieces: {_quoted(reply.text)}", "--stream on works")]
        return [CheckRow("streams", f"in one piece: {_quoted(reply.text)}", "--stream on changes nothing")]

    async def logprobs(self) -> list[CheckRow]:
        body = self.settings.extra.get("extra_body")
        extra = {**self.settings.extra, "extra_body": {**(body if isinstance(body, dict) else {}), "logprobs": True}}
        try:
            await self.say(PLAIN_TEXT, extra=extra)
        except ModelRefused:
            return [
                CheckRow("takes logprobs", "the server refuses them", "no loss, because likelihoods need hf: anyway")
            ]
        return [
            CheckRow(
                "takes logprobs", "the server does not refuse them", "not usable in a run, because likelihoods need hf:"
            )
        ]


async def _try(title: str, probe: Probe) -> list[CheckRow]:
    """Return the rows of a probe; a refusal is one row."""
    try:
        return await probe()
    except HybridError as error:
        return [CheckRow(title, _line(error), UNKNOWN)]


def has_thoughts_in(conversation: Sequence[Message]) -> bool:
    """Return whether the last reply of a conversation contains thinking."""
    return isinstance(reply := conversation[-1], AssistantMessage) and has_thoughts(reply)


def _line(error: HybridError) -> str:
    return " ".join(str(error).split())[:160]


def _quoted(text: str) -> str:
    return repr(text.strip()[:60])
