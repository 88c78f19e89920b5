"""Small probe questions that show a model's abilities, with generated pictures.

    sight, called = await look(chat, store), await call_tool(chat, store, tools)

A run asks the probes that it needs before its first question (`before_asking.py`), `hybrid models check` all of them
(`model_check.py`). Each raises the model's exceptions.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

from hybrid.core.errors import Outage, UsageError
from hybrid.core.images import MEDIA_TYPES, PNG, ImageStore
from hybrid.core.messages import (
    AssistantMessage,
    ImagePart,
    InvalidCall,
    Message,
    Part,
    ToolCall,
    ToolMessage,
    user_message,
)
from hybrid.core.thinking import without_thoughts
from hybrid.core.types import ImageRef, Json
from hybrid.models.base import CallKey
from hybrid.models.failures import Failure, read_failure
from hybrid.models.images import Resizing
from hybrid.models.toolspec import PublishedTool
from hybrid.solving.coordinates import FRAMES, RESIZED, CoordinateSystem
from hybrid.tool import Tool

if TYPE_CHECKING:
    from PIL import Image

# Asks a model, like `ChatModel.chat`.
Chat = Callable[[Sequence[Message], Sequence[Tool], CallKey], Awaitable[AssistantMessage]]

# These replace the question id in the key of a probe's calls.
SIGHT_PROBE: Final = "sight-probe"
CALL_PROBE: Final = "call-probe"
FRAME_PROBE: Final = "frame-probe"
RESULT_PROBE: Final = "result-probe"
ORDER_PROBE: Final = "order-probe"

PROBE_TEXT: Final = "Which number is written in the picture? Write its digits and nothing else."
PROBE_NUMBER: Final = "7306"
# Number that is shown if the model did not read the first one.
SECOND_NUMBER: Final = "4915"
PROBE_SIZE: Final = (448, 224)
ORDER_TEXT: Final = "Each picture shows a number. Write the numbers in the order of the pictures and nothing else."
# The numbers are neither ascending nor descending, so that a model that sorts them does not appear to see their order.
ORDER_NUMBERS: Final = ("47", "13", "85", "26", "91", "38", "72", "54")
# Smallest number of pictures per prompt at which their order is tested.
ORDER_FROM: Final = 3
# Maximum number of tokens that a picture adds for a blind model; some servers replace an image by a word.
MAX_WORDS: Final = 16

PLAIN_TEXT: Final = "Write the word ready and nothing else."
PICTURE: Final = "a picture of a probe"

FRAME_SIZE: Final = (900, 500)
FRAME_POINT: Final = (630.0, 110.0)
FRAME_TEXT: Final = (
    "The picture shows one red disc on grey. Write the coordinates of its centre the way you write coordinates of "
    "image points, as two numbers in parentheses and nothing else, for example (12, 34)."
)
# Fraction of the image's diagonal within which a reply counts as the target.
FRAME_TOLERANCE: Final = 0.05

COUNTED_SIDES: Final = (448, 2048)
# Candidate sides, in pixels, of the square that one picture token represents.
FACTORS: Final = (28, 32, 14)
# Maximum tokens per picture, as published by makers of Qwen-VL-like models.
PUBLISHED: Final = (16_384, 1_280, 5_120, 2_560, 1_024, 768, 512, 256)
# Tokens before and after a picture.
MARKS: Final = 6


@dataclass(frozen=True, slots=True)
class Sight:
    """Whether a model sees a picture, and its reply.

    `input_tokens` counts the tokens of the request with the picture, `without_image` those of the same request without
    it; None if the server reports no number or was not asked.
    """

    verdict: Literal["sees", "blind", "unknown"]
    said: str
    input_tokens: int | None = None
    without_image: int | None = None


@dataclass(frozen=True, slots=True)
class ToolPicture:
    """Whether a picture in a tool's result is seen, its place in the request, and whether thinking is kept.

    The verdict is "refused" if the server accepts the request only without the picture; `said` is then its message.
    `place` is inside the tool message or in a user message after it. `thinking` is "none" for a model without thinking,
    "switched" if the keys `switch` of the body keep it, and "unknown" if token counts do not show it.
    """

    verdict: Literal["sees", "blind", "refused", "unknown"]
    said: str
    input_tokens: int | None = None
    without_image: int | None = None
    place: Literal["inside", "beside"] = "beside"
    thinking: Literal["none", "kept", "switched", "lost", "unknown"] = "none"
    switch: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PictureOrder:
    """The order in which the model reads the numbers in `count` pictures of one message, and its reply.

    The verdict is "refused" if the server does not accept so many pictures; `said` is then its message.
    """

    verdict: Literal["in order", "out of order", "missing", "refused", "unknown"]
    said: str
    count: int


@dataclass(frozen=True, slots=True)
class Calling:
    """How a model called the requested tool, and the model's text if it did not call the tool."""

    verdict: Literal["calls", "unreadable", "refused", "none"]
    said: str
    calls: int = 0
    # The dialect of calls written as text; empty for native calls.
    read_from: str = ""


async def look(chat: Chat, store: ImageStore, media_type: str = PNG) -> Sight:
    """Test whether the model sees a number in a picture of this type, with one call or two.

    A model that reads the number sees. A model whose input grows with the picture also sees, even if it reads badly.
    The model is blind only if neither is true.
    """
    form = next(name for name, kind in MEDIA_TYPES.items() if kind == media_type)
    picture = ImageRef("img:1", store.put(numbered(PROBE_NUMBER, form=form), PICTURE))
    key = CallKey(SIGHT_PROBE)
    with_image = await chat([user_message((PROBE_TEXT, picture), labelled=False)], (), key)
    text = with_image.text.strip()[:80]
    tokens = with_image.usage.input_tokens if with_image.usage else None
    if reads(with_image, PROBE_NUMBER) or not tokens:
        return Sight("sees" if reads(with_image, PROBE_NUMBER) else "unknown", text, tokens)
    without = await chat([user_message((PROBE_TEXT,), labelled=False)], (), key.following())
    fewer = without.usage.input_tokens if without.usage else None
    if not fewer:
        return Sight("unknown", text, tokens)
    return Sight("sees" if tokens - fewer > MAX_WORDS else "blind", text, tokens, fewer)


def result_messages(reply: AssistantMessage, store: ImageStore, number: str | None) -> list[ToolMessage]:
    """Return the results for the calls of a reply; the first has a picture of `number` unless that is None."""
    calls: list[ToolCall | InvalidCall] = [*reply.calls, *reply.invalid]
    picture: tuple[Part, ...] = ()
    if number is not None:
        picture = (ImagePart(ImageRef("img:1.1", store.put(numbered(number), PICTURE))),)
    parts = [(PROBE_TEXT, *picture), *[("This result has no picture.",)] * (len(calls) - 1)]
    return [ToolMessage(call.id, call.name, part) for call, part in zip(calls, parts, strict=True)]


async def look_at_result(
    chat: Chat,
    store: ImageStore,
    conversation: Sequence[Message],
    tools: Sequence[Tool],
    *,
    reads_pictures: bool = False,
    numbers: tuple[str, str] = (PROBE_NUMBER, SECOND_NUMBER),
) -> Sight:
    """Test whether the model sees a picture in the result of a tool, with one to three calls.

    Args:
        chat: asks the model.
        store: stores the pictures.
        conversation: ends with a reply that calls a tool.
        tools: the offered tools.
        reads_pictures: whether the model has read a number in a picture of a user message. If so, the model counts as
            blind here if it answers twice without the number, whatever its server's token counts.
        numbers: the numbers in the pictures.
    """
    key, reply = CallKey(RESULT_PROBE), conversation[-1]
    assert isinstance(reply, AssistantMessage)  # noqa: S101 - the model has called
    first = await chat([*conversation, *result_messages(reply, store, numbers[0])], tools, key)
    text, tokens = first.text.strip()[:80], first.usage.input_tokens if first.usage else None
    if reads(first, numbers[0]):
        return Sight("sees", text, tokens)
    without = await chat([*conversation, *result_messages(reply, store, None)], tools, key.following())
    fewer = without.usage.input_tokens if without.usage else None
    if tokens and fewer and tokens - fewer <= MAX_WORDS:
        return Sight("blind", text, tokens, fewer)
    second = await chat([*conversation, *result_messages(reply, store, numbers[1])], tools, key.following())
    if reads(second, numbers[1]):
        return Sight("sees", second.text.strip()[:80], tokens, fewer)
    answers = all(without_thoughts(reply.text).strip() and not reply.calls for reply in (first, second))
    return Sight("blind" if reads_pictures and answers else "unknown", text, tokens, fewer)


async def see_order(chat: Chat, store: ImageStore, count: int) -> PictureOrder:
    """Test in which order the model reads the numbers in `count` pictures of one message, with one to three calls."""
    text, tokens, orders, presented = "", 0, list[list[str]](), list[Sequence[str]]()
    for turn in range(2):
        numbers = ORDER_NUMBERS[:count] if turn == 0 else ORDER_NUMBERS[:count][::-1]
        try:
            reply = await _shown_numbers(chat, store, numbers, turn)
        except Outage as error:
            failed = read_failure(error.__cause__) if error.__cause__ else None
            if failed is None or failed.kind is not Failure.REQUEST:
                raise
            return PictureOrder("refused", failed.text[:200], count)
        text, tokens = reply.text.strip()[:80], reply.usage.input_tokens if reply.usage else 0
        order = read_order(reply, numbers)
        if order == [*numbers]:
            return PictureOrder("in order", text, count)
        orders.append(order)
        presented.append(numbers)
    if len(orders[-1]) == count:
        return PictureOrder("out of order", text, count)
    if _same_place_is_missing(presented, orders):
        return PictureOrder("missing", text, count)
    if orders[-1] and tokens:
        alone = await _shown_numbers(chat, store, ORDER_NUMBERS[:1], 2)
        if alone.usage and tokens - alone.usage.input_tokens <= MAX_WORDS:
            return PictureOrder("missing", text, count)
    return PictureOrder("unknown", text, count)


def _same_place_is_missing(presented: Sequence[Sequence[str]], orders: Sequence[Sequence[str]]) -> bool:
    """Return whether two replies lack the same positions but different numbers: the server dropped these pictures.

    A model that cannot read a number misses that number instead.
    """
    missing = [
        [place for place, number in enumerate(numbers) if number not in order]
        for numbers, order in zip(presented, orders, strict=True)
    ]
    first, second = presented
    return bool(orders[0]) and missing[0] == missing[1] and all(first[place] != second[place] for place in missing[0])


async def _shown_numbers(chat: Chat, store: ImageStore, numbers: Sequence[str], call: int) -> AssistantMessage:
    images = [ImageRef(f"img:{at}", store.put(numbered(number), PICTURE)) for at, number in enumerate(numbers, 1)]
    return await chat([user_message((ORDER_TEXT, *images), labelled=False)], (), CallKey(ORDER_PROBE, call=call))


def read_order(reply: AssistantMessage, numbers: Sequence[str]) -> list[str]:
    """Return the given numbers that a reply contains, in the reply's order, without duplicates."""
    text = without_thoughts(reply.text)
    if "".join(numbers) in re.sub(r"\D", "", text):
        return [*numbers]
    return list(dict.fromkeys(word for word in re.findall(r"\d+", text) if word in numbers))


def reads(reply: AssistantMessage, *numbers: str) -> bool:
    """Return whether a reply contains the numbers in this order, with anything between their digits."""
    return "".join(numbers) in re.sub(r"\D", "", reply.text)


def call_message(tool: str, images: Sequence[ImageRef], *, with_pictures: bool) -> Message:
    """Return a message that asks for one call of a tool on each image, with the pictures if `with_pictures`."""
    on = " and once on the image ".join(image.name for image in images)
    often = "once" if len(images) == 1 else f"{len(images)} times, all in one message: once"
    text = f"Call the tool {tool} {often} on the image {on}. Write nothing else."
    return user_message((text, *(images if with_pictures else ())))


async def call_tool(
    chat: Chat, store: ImageStore, tools: Sequence[Tool], *, images: int = 1, with_pictures: bool = True
) -> Calling:
    """Test with one model call whether calls of one of the offered tools can be parsed.

    If the request is rejected, a second request without tools shows whether the tools are the reason.
    """
    names = [ImageRef(f"img:{place}", store.put(numbered(f"{place}306"), PICTURE)) for place in range(1, images + 1)]
    # Prefer `crop`, which every model can call on any image.
    fitting = (tool.card.name for tool in tools if isinstance(tool, PublishedTool) or tool.card.name == "crop")
    message = call_message(next(fitting, tools[0].card.name), names, with_pictures=with_pictures)
    key = CallKey(CALL_PROBE)
    try:
        return calling(await chat([message], tools, key))
    except Outage as error:
        failed = read_failure(error.__cause__) if error.__cause__ else None
        if failed is None or failed.kind not in (Failure.TOOLS, Failure.REQUEST):
            raise
        if failed.kind is Failure.REQUEST:
            await chat([message], (), key.following())
        return Calling("refused", failed.text[:200])


def calling(reply: AssistantMessage) -> Calling:
    """Return the calls in a reply to `call_message`."""
    count, text = len(reply.calls) + len(reply.invalid), reply.text.strip()[:80]
    if not count and reply.unreadable is not None:
        return Calling("unreadable", text or reply.unreadable.written[:80], read_from=reply.unreadable.dialect)
    # vLLM drops a call that starts in its parser's format and continues in another; nothing of the call arrives.
    if not count and reply.finish_reason in ("stop", "tool_calls") and not without_thoughts(reply.text).strip():
        return Calling("unreadable", "an empty reply", read_from="dropped by its server")
    return Calling("calls" if count else "none", text, count, next((call.read_from for call in reply.calls), ""))


async def frame_of(chat: Chat, store: ImageStore, sent_pixels: int | None = None) -> CoordinateSystem:
    """Return the frame in which the model names the place of a disc; images are sent with at most `sent_pixels` pixels.

    Raises:
        UsageError: the reply names no place near the disc in any frame.
    """
    picture = ImageRef("img:1", store.put(disc(), PICTURE))
    reply = await chat([user_message([FRAME_TEXT, picture])], (), CallKey(FRAME_PROBE))
    return read_frame(reply.text, sent_pixels)


def read_frame(text: str, sent_pixels: int | None = None) -> CoordinateSystem:
    """Return the frame in which a reply to `FRAME_TEXT` names the target; the picture had at most `sent_pixels` pixels.

    Raises:
        UsageError: the reply has no two numbers, or a point that no frame puts near the target.
    """
    numbers = re.findall(r"-?\d+(?:\.\d+)?", text)
    if len(numbers) >= 2:
        x, y = (float(number) for number in numbers[:2])
        frames = [CoordinateSystem(name, sent_pixels) for name in FRAMES]
        misses = [math.dist(frame.point(x, y, FRAME_SIZE), FRAME_POINT) for frame in frames]
        if min(misses) <= math.hypot(*FRAME_SIZE) * FRAME_TOLERANCE:
            return frames[misses.index(min(misses))]
    raise UsageError(
        f"--model-arg frame=probe: {text.strip()[:80]!r} names no point near the target in any frame; "
        f"declare one of: {', '.join(FRAMES)}"
    )


async def resizing_of(chat: Chat, store: ImageStore) -> tuple[str, str]:
    """Return the token counts of two pictures, and the frame in pixels of the resized picture, or "" if unknown."""
    tokens = []
    for side in (0, *COUNTED_SIDES):
        pictures = [ImageRef("img:1", store.put(numbered("58", (side, side)), PICTURE))] if side else []
        reply = await chat([user_message([PROBE_TEXT, *pictures], labelled=False)], (), CallKey(SIGHT_PROBE))
        tokens.append(reply.usage.input_tokens if reply.usage else 0)
    small, large = (count - tokens[0] for count in tokens[1:])
    summary = f"{small} and {large} tokens for {' and '.join(f'{side} x {side}' for side in COUNTED_SIDES)} px"
    factor = next(
        (candidate for candidate in FACTORS if abs((COUNTED_SIDES[0] // candidate) ** 2 - small) <= MARKS), None
    )
    if not all(tokens) or factor is None:
        return summary, ""
    square, side = factor**2, COUNTED_SIDES[1]
    seen = {most: Resizing(factor, 4 * square, most * square).size(side, side) for most in PUBLISHED}
    # No count gives the server's exact bound: use a published bound if one matches, else the observed count.
    fitting = (most for most, (across, down) in seen.items() if abs(across * down // square - large) <= MARKS)
    return summary, f"{RESIZED}:{factor}:{4 * square}:{next(fitting, large) * square}"


# A check of a model sends the same pictures in many messages.
@lru_cache(maxsize=64)
def numbered(number: str, size: tuple[int, int] = PROBE_SIZE, form: str = "PNG") -> bytes:
    """Return a file with a number in black on white; `form` is a Pillow format (`JPEG`, `WEBP`).

    Drawn with Pillow, because a run without tools does not load numpy.
    """
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("RGB", size, "white")
    font = ImageFont.load_default(min(size) * 0.67)
    ImageDraw.Draw(picture).text((size[0] / 2, size[1] / 2), number, "black", font, anchor="mm")
    return _file(picture, form)


def disc() -> bytes:
    """Return a red disc on grey with its centre at `FRAME_POINT`, as PNG of `FRAME_SIZE`."""
    from PIL import Image, ImageDraw

    picture = Image.new("RGB", FRAME_SIZE, (200, 200, 200))
    ImageDraw.Draw(picture).circle(FRAME_POINT, 18, (220, 30, 30))
    return _file(picture, "PNG")


def _file(picture: Image.Image, form: str) -> bytes:
    data = io.BytesIO()
    picture.save(data, form, **({"compress_level": 1} if form == "PNG" else {}))
    return data.getvalue()
