"""Arguments of tool calls that a model writes: whatever they hold, a call is answered in words and the ask goes on.

The model can reach only images by name, and only those that the ask has shown.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.config import Limits
from hybrid.log.attempts import attempt_line, read_attempt
from hybrid.messages import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    SHOWN_CHARACTERS,
    AssistantMessage,
    InvalidCall,
    ToolCall,
    readable,
)
from hybrid.models.text_protocol import as_text, with_calls
from hybrid.registry import load, load_solver
from hybrid.serving.service import ToolService
from hybrid.solving.controls import Control
from hybrid.solving.evidence import finding_parts
from hybrid.solving.session import Session
from hybrid.types import Attempt, Exchange, Fault, ImageRef, Kind, Outcome, Prompt, Reply


class ToldInText:
    """A `ChatModel` around another that is shown tools as text."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def chat(self, messages: Any, tools: Any, call: Any) -> Any:
        reply = await self._inner.chat(as_text(messages, tools), (), call)
        return with_calls(reply, tools, messages, call.call)


BOX = {"x0": 0, "y0": 0, "x1": 10, "y1": 10}
LONE = "\ud800"


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.fixture
def ask(service: ToolService, fakes: Any) -> Callable[..., tuple[Reply, Any]]:
    """Put a question about one image to a controller with the tool `crop`; its reply, and the model asked."""
    image = fakes.stored(service.store, 1)

    def run(*replies: Any, wrap: Any = None, limits: Limits | None = None) -> tuple[Reply, Any]:
        model = fakes.QueueModel([*replies, "Answer: (A)"])
        tools_offered = (load("tools", "crop"),)
        chosen = wrap(model) if wrap else model
        shared = fakes.resources(chosen, Control(service), tools_offered, limits=limits or Limits())
        question = fakes.question("q1", images=(image,))
        prompt = Prompt((question.text, ImageRef("img:1", image)), Kind.CHOICE, question.choices)
        return asyncio.run(Session(question, load_solver("controller"), shared).ask(prompt)), model

    return run


def crops(*arguments: Any, name: str = "crop") -> AssistantMessage:
    return AssistantMessage("", tuple(ToolCall(f"c{n}", name, args) for n, args in enumerate(arguments)))


def told(model: Any) -> list[str]:
    """The results of the calls, in the last request."""
    return [message.text for message in model.calls[-1][0] if message.role == "tool"]


BAD = {
    "huge": {"images": ["img:1"], "box": "7" * 1_000_000},
    "nested": {"images": ["img:1"], "box": nested(900)},
    "nested a little": {"images": ["img:1"], "box": nested(MAX_DEPTH + 1)},
    "many values": {"images": ["img:1"], "box": [1] * 100_000},
    "NaN": {"images": ["img:1"], "box": {**BOX, "x1": float("nan")}},
    "infinite": {"images": ["img:1"], "box": {**BOX, "x1": float("inf")}},
    "a number without end": {"images": ["img:1"], "box": {**BOX, "x1": 10**400}},
    "a surrogate": {"images": ["img:1"], "box": LONE},
    "a surrogate as a name": {"images": ["img:1"], LONE: 1},
    "a NUL": {"images": ["img:1"], "box": "\0"},
    "images that are no list": {"images": {"img:1": 1}, "box": BOX},
    "images that are no names": {"images": [1, None], "box": BOX},
}


@pytest.mark.parametrize("case", BAD)
def test_arguments_that_no_tool_can_take_are_answered_in_words(ask: Any, case: str) -> None:
    reply, model = ask(crops(BAD[case]))
    assert (reply.text, reply.outcome, reply.usage.tool_calls) == ("Answer: (A)", Outcome.ANSWERED, 1)
    assert [step.fault for step in reply.steps if step.kind == "tool"] == [Fault.BAD_ARGUMENTS]
    (answer,) = told(model)
    assert answer.startswith("bad_arguments: ")
    assert len(answer) < 1000


@pytest.mark.parametrize("written", ["[1, 2]", "null", "7", '"crop"', "{", "", "x" * 1_000_000, f'{{"{LONE}": 1}}'])
def test_arguments_that_are_no_json_object(ask: Any, written: str) -> None:
    reply, model = ask(AssistantMessage(invalid=(InvalidCall("c0", "crop", written, "not an object"),)))
    assert (reply.text, reply.usage.tool_calls, len(model.calls)) == ("Answer: (A)", 1, 2)
    assert [step.fault for step in reply.steps if step.kind == "tool"] == [Fault.BAD_ARGUMENTS]
    assert told(model) == ["bad_arguments: the arguments must be one valid JSON object (not an object)"]
    assert len(attempt_line(Attempt("q1", (Exchange(Prompt(("?",), Kind.FREE), reply),), 0.0))) < 2 * SHOWN_CHARACTERS


@pytest.mark.parametrize(
    "block",
    [
        '{"tool": "crop", "images": ["img:1"], "args": [1]}',
        '{"tool": "crop", "images": ["img:1"], "args": {"images": ["img:1"]}}',
        '{"tool": "", "args": {}}',
        '{"tool": "crop", "images": ["img:1"], "args": {"box": NaN}}',
        '{"tool": "crop", "images": ["img:1"], "args": {"box": ' + "[" * 900 + "]" * 900 + "}}",
        '{"tool": "crop", "images": ["img:1"], "args": {"box": ' + "[" * 9000 + "]" * 9000 + "}}",
        '{"tool": "crop", "images": ["img:1"], "args": {"box": "' + "7" * 1_000_000 + '"}}',
        '{"tool": "crop", "images": ["\\ud800"], "args": {}}',
        '{"tool": "crop", "x": 1}',
        '{"tool": "crop"',
    ],
)
def test_a_bad_call_in_text_is_answered_in_words(ask: Any, block: str) -> None:
    reply, model = ask(f"```json\n{block}\n```", wrap=ToldInText)
    assert (reply.text, reply.usage.tool_calls, len(model.calls)) == ("Answer: (A)", 1, 2)
    (fault,) = [step.fault for step in reply.steps if step.kind == "tool"]
    assert fault in (Fault.UNREADABLE_CALL, Fault.BAD_ARGUMENTS, Fault.UNKNOWN_IMAGE)
    assert model.calls[-1][0][-1].text.removeprefix("Error of crop:\n").startswith(fault.value)


NAMES = (
    "img:0", "img:2", "img:-1", "img:1.1", "img:01", "img:1\0", "img:1/../img:2", "img:*", "image 2", "2",
    "/etc/passwd", "../../etc/passwd", "./img:1", "~/.ssh/id_rsa", "C:\\Windows\\win.ini", "\\\\server\\share\\a.png",
    "file:///etc/passwd", "http://127.0.0.1/a.png", "https://example.org/a.png", "ftp://example.org/a.png",
    "data:image/png;base64,iVBORw0KGgo=", "/dev/zero", "/proc/self/environ", "$HOME", "%2e%2e%2fpasswd",
    "img:1; cat /etc/passwd", "__class__", "q1", "", "0" * 64, "a" * 90_000, "\u202egmi:1", LONE,
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_only_an_image_of_the_ask_can_be_reached(ask: Any, name: str) -> None:
    reply, model = ask(crops({"images": [name], "box": BOX}))
    assert (reply.text, reply.usage.tool_calls) == ("Answer: (A)", 1)
    assert [step.fault for step in reply.steps if step.kind == "tool"] == [Fault.UNKNOWN_IMAGE]
    (answer,) = told(model)
    assert answer.startswith("unknown_image: there is no image ")
    assert answer.endswith("the images are: img:1")
    assert len(answer) < 300


@pytest.mark.parametrize("sha256", [True, False])
def test_an_image_in_the_store_is_not_reached_by_its_hash(
    ask: Any, service: ToolService, fakes: Any, sha256: bool
) -> None:
    other = fakes.stored(service.store, 99)
    name = other.sha256 if sha256 else str(service.store.path(other.sha256))
    reply, _ = ask(crops({"images": [name], "box": BOX}))
    assert [step.fault for step in reply.steps if step.kind == "tool"] == [Fault.UNKNOWN_IMAGE]


@pytest.mark.parametrize(
    "name", ["../crop", "crop.py", "os.system", "_shared", "rules", "jigsaw", "", "x" * 1_000_000, LONE]
)
def test_only_an_offered_tool_can_be_called(ask: Any, name: str) -> None:
    reply, model = ask(crops({"images": ["img:1"]}, name=name))
    assert (reply.text, reply.usage.tool_calls) == ("Answer: (A)", 1)
    assert [step.fault for step in reply.steps if step.kind == "tool"] == [Fault.UNKNOWN_TOOL]
    assert len(told(model)[0]) < 300


def test_calls_under_one_id_are_each_answered(ask: Any) -> None:
    calls = [ToolCall("same", "crop", {"images": ["img:1"], "box": {**BOX, "x1": 10 + n}}) for n in range(3)]
    reply, model = ask(AssistantMessage("", tuple(calls)))
    assert (reply.usage.tool_calls, len(told(model))) == (3, 3)


def test_200_calls_in_one_message_are_bounded_by_the_budget(ask: Any) -> None:
    many = crops(*({"images": ["img:1"], "box": {**BOX, "x1": 2 + n % 20, "y1": 2 + n // 20}} for n in range(200)))
    reply, model = ask(many, limits=Limits(tool_calls=5))
    assert (reply.text, reply.outcome, reply.usage.tool_calls) == ("Answer: (A)", Outcome.ANSWERED, 5)
    answers = told(model)
    assert len(answers) == 200
    assert sum(answer.startswith("not run: ") for answer in answers) == 195


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8) | st.just(LONE),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=150)
@given(st.dictionaries(st.sampled_from(["images", "box", LONE, "x"]), json_values, max_size=4))
def test_any_arguments_make_a_message_that_can_be_kept_and_sent(args: dict[str, Any]) -> None:
    message = readable(crops(args))
    assert len(message.calls) + len(message.invalid) == 1
    for call in (*message.calls, *message.invalid):
        json.dumps(asdict(call), allow_nan=False, ensure_ascii=False).encode()


def test_a_sound_message_is_left_as_it_is() -> None:
    message = crops({"images": ["img:1"], "box": BOX})
    assert readable(message) is message


@pytest.mark.parametrize("said", [f"Answer: (A) {LONE}", "Answer: (A) \0", "\udfff\ud800 Answer: (A)"])
def test_halves_of_characters_and_nuls_survive_in_a_reply(ask: Any, said: str) -> None:
    reply, _ = ask(said)
    attempt = Attempt("q1", (Exchange(Prompt(("?",), Kind.FREE), reply),), 0.0)
    assert read_attempt(attempt_line(attempt)) == attempt
    assert "Answer: (A)" in reply.text
    reply.text.encode()


def test_a_long_text_of_a_tool_is_shortened_for_the_model(fakes: Any) -> None:
    from hybrid.types import Finding

    text = "x" * 20_000_000
    (part,) = finding_parts(Finding(text, {}, 1.0, "classical", "1"), ["img:1"], "both")
    assert isinstance(part, str)
    assert len(part) < SHOWN_CHARACTERS + 200
    assert part.endswith(f"[{len(text) - SHOWN_CHARACTERS:,} more characters are left out]")
    assert MAX_CHARACTERS >= SHOWN_CHARACTERS
