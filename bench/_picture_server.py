"""A chat completions server with a chat template, which treats the images of a conversation as `Treatment` defines.

with serving(Treatment(inside="refused", thinks=True)) as server:
    ...                        # POST {server.url}/chat/completions
    server.prompts             # the prompt that the template made from each request, as the model would read it

The model reads the numbers in probe images, and calls `crop` once in every question.
"""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal

from bench._chat_server import framed, on_thread
from hybrid.running.probes import (
    ORDER_NUMBERS,
    ORDER_TEXT,
    PROBE_NUMBER,
    PROBE_TEXT,
    SECOND_NUMBER,
    numbered,
)

THOUGHT: Final = "I look closer at the upper left corner first."
PICTURE_TOKENS: Final = 100
CROP: Final[Mapping[str, Any]] = {"images": ["img:1"], "box": {"x0": 10, "y0": 10, "x1": 90, "y1": 80}}
_DATA = re.compile(r"data:image/\w+;base64,(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Treatment:
    """How the server treats images and thinking."""

    # Treatment of an image in a tool message, and of an image in a user message after a tool message.
    inside: Literal["taken", "refused", "ignored"] = "refused"
    beside: Literal["taken", "refused", "ignored"] = "taken"
    # Treatment of images in the first message.
    opening: Literal["taken", "ignored"] = "taken"
    # Images that count as tokens: those that the model sees, all, or none; or a constant count for every request.
    counts: Literal["seen", "all", "none", "constant"] = "seen"
    uncounted: bool = False
    order: Literal["kept", "reversed", "first", "rest"] = "kept"
    thinks: bool = False
    # The message field that holds the thinking.
    thinks_in: Literal["reasoning_content", "reasoning"] = "reasoning_content"
    # Whether the template keeps thinking before the last user message, and the key and value of `chat_template_kwargs`
    # that make it do so.
    keeps: bool = False
    switch: tuple[str, bool] | None = None
    # Whether earlier reasoning, and text next to a call, are dropped before the template.
    drops_history: bool = False
    # A tool image with a shorter side, or a larger ratio of its sides, is rejected with `status` and `words`.
    least_side: int = 0
    most_ratio: float = 0
    # The smallest accepted side of an image in the first message.
    least_opening: int = 0
    ratio_opening: float = 0
    most_pictures: int = 99
    status: int = 400
    words: str = "image dimensions are not accepted"
    # Arguments of the call in each question.
    call: Mapping[str, Any] = field(default_factory=lambda: CROP)


@dataclass
class PictureServer:
    """A running server, with the requests and the prompts that it made from them, in order."""

    treatment: Treatment
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)

    def answer(self, _: bytes, body: bytes) -> bytes:
        """Return the reply to one request."""
        data = json.loads(body)
        self.requests.append(data)
        if (refusal := self._refusal(data["messages"])) is not None:
            status, words = refusal
            return framed(json.dumps({"error": {"message": words}}).encode(), f"{status} Refused")
        prompt, pictures = self._render(data)
        self.prompts.append(prompt)
        message = self._speak(data, pictures)
        total = sum(len(_pictures(item)) for item in data["messages"])
        value = {"seen": len(pictures), "all": total}.get(self.treatment.counts, 0)
        tokens = 90 if self.treatment.counts == "constant" else len(prompt.split()) + PICTURE_TOKENS * value
        usage = {"prompt_tokens": tokens, "completion_tokens": 9}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}
        reply = {"model": data["model"], "choices": [choice], **({} if self.treatment.uncounted else {"usage": usage})}
        return framed(json.dumps(reply).encode())

    def _refusal(self, messages: Sequence[Mapping[str, Any]]) -> tuple[int, str] | None:
        treatment = self.treatment
        if treatment.inside == "refused" and any(
            message["role"] == "tool" and _pictures(message) for message in messages
        ):
            return 400, "image_url is only accepted in messages of the user"
        matches_any = any(
            item["role"] == "user" and messages[at - 1]["role"] == "tool" for at, item in enumerate(messages) if at
        )
        if treatment.beside == "refused" and matches_any:
            return 400, "Expected last role User or Tool to follow an assistant message, but got user after tool"
        if sum(len(_pictures(entry)) for entry in messages) > treatment.most_pictures:
            return treatment.status, treatment.words
        for place, value in enumerate(messages):
            is_made = place > 0 and value is not messages[0] and messages[place - 1]["role"] != "system"
            least, most = (
                (treatment.least_side, treatment.most_ratio)
                if is_made
                else (treatment.least_opening, treatment.ratio_opening)
            )
            for url in _pictures(value):
                short, long = sorted(_size(url))
                if url not in _probe_numbers() and (short < least or (most and long > most * short)):
                    return treatment.status, treatment.words
        return None

    def _render(self, request: Mapping[str, Any]) -> tuple[str, list[str]]:
        """Return the prompt that the model reads, and the images that it sees."""
        treatment, messages = self.treatment, request["messages"]
        kwargs = request.get("chat_template_kwargs") or {}
        keeps = treatment.keeps or (
            treatment.switch is not None and kwargs.get(treatment.switch[0]) == treatment.switch[1]
        )
        last_user = max((at for at, message in enumerate(messages) if message["role"] == "user"), default=-1)
        lines, seen = list[str](), list[str]()
        for at, item in enumerate(messages):
            lines.append(f"<|{item['role']}|>")
            thought = item.get(treatment.thinks_in)
            if thought and not treatment.drops_history and (keeps or at > last_user):
                lines.append(f"<think> {thought} </think>")
            content = item.get("content") or ""
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            if not (treatment.drops_history and item.get("tool_calls")):
                lines += [part["text"] for part in parts if part["type"] == "text"]
            lines += [json.dumps(call["function"]) for call in item.get("tool_calls") or ()]
            place = "inside" if item["role"] == "tool" else "beside" if at > 1 else "opening"
            if getattr(treatment, place) == "taken":
                lines += ["<|picture|>" for _ in _pictures(item)]
                seen += _pictures(item)
        return "\n".join(lines), seen

    def _speak(self, request: Mapping[str, Any], pictures: Sequence[str]) -> dict[str, Any]:
        messages: dict[str, Any] = {"role": "assistant", "content": "Answer: (A)"}
        messages |= {self.treatment.thinks_in: THOUGHT} if self.treatment.thinks else {}
        texts = json.dumps(request["messages"])
        read = [_probe_numbers().get(url, "") for url in pictures]
        if ORDER_TEXT in texts:
            orders = {"kept": read, "reversed": read[::-1], "first": read[:1], "rest": read[1:]}
            text = orders[self.treatment.order]
            return {**messages, "content": " ".join(text) or "none"}
        if PROBE_TEXT in texts or "shows a number" in texts:
            return {**messages, "content": read[-1] if read and read[-1] else "I see no number"}
        match = re.search(r"Call the tool (\w+)", texts)
        if request.get("tools") and not any(item["role"] == "tool" for item in request["messages"]):
            name = match[1] if match else "crop"
            arguments = json.dumps({"images": ["img:1"]} if match else self.treatment.call)
            function = {"name": name, "arguments": arguments}
            call = {"id": "call00001", "type": "function", "function": function}
            return {**messages, "content": None, "tool_calls": [call]}
        return messages


def _pictures(message: Mapping[str, Any]) -> list[str]:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return [part["image_url"]["url"] for part in parts if part.get("type") == "image_url"]


@cache
def _probe_numbers() -> dict[str, str]:
    """Return the numbers in the probe images, by the URL used in requests."""
    numbers = (PROBE_NUMBER, SECOND_NUMBER, "1306", "2306", *ORDER_NUMBERS)
    files = ((form, numbered(item, form=form), item) for item in numbers for form in ("PNG", "JPEG", "WEBP"))
    return {
        f"data:image/{form.lower()};base64,{base64.b64encode(data).decode()}": number for form, data, number in files
    }


def _size(url: str) -> tuple[int, int]:
    from PIL import Image

    match = _DATA.match(url)
    assert match is not None  # noqa: S101 - every picture of a request is one
    return Image.open(io.BytesIO(base64.b64decode(match[1]))).size


@contextmanager
def serving(treatment: Treatment) -> Iterator[PictureServer]:
    """Run the server on a thread; `url` is the value for `--base-url`."""
    server = PictureServer(treatment)
    with on_thread(server.answer) as url:
        server.url = f"{url}/v1"
        yield server
