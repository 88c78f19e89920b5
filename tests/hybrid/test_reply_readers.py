"""Whatever a model writes, each reader of replies ends within bounds on steps, values and characters.

The texts are small: a bound that holds per step for hundreds of characters holds for more. The limits are tested
on the values themselves, with harmless aliases.
"""

import itertools
import json
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.answers import parse
from hybrid.core.errors import UsageError
from hybrid.core.messages import MAX_CHARACTERS, MAX_DEPTH, MAX_VALUES, AssistantMessage, ToolCall, readable
from hybrid.core.thinking import thoughts, without_thoughts
from hybrid.core.types import Kind
from hybrid.models import CallKey
from hybrid.models.call_forms import MAX_CALLS
from hybrid.models.chat_completions import codec
from hybrid.models.chat_completions.stream import Assembly
from hybrid.models.dialects import read
from hybrid.models.failures import StatusError, UnreadableReplyError
from hybrid.models.langchain.messages import coerce_arguments
from hybrid.models.literals import MAX_WRITTEN, read_object, read_value, without_entities
from hybrid.models.yaml_text import read_yaml
from hybrid.plugins.registry import load
from hybrid.running.probes import read_frame
from hybrid.scoring.judge import answer_in
from hybrid.solving.styles import FOLDER, read_style
from tests.steps import Steps, TooManyStepsError, assert_grows_linearly

CHOICES = ("left", "right", "the third image", "no")
KEY = CallKey("q")
# Limits are twice the steps that the worst of a thousand texts needed.
STEPS_TO_COMPILE, STEPS_AT_LEAST, STEPS_A_CHARACTER = 5_000_000, 20_000, 400


@cache
def tools() -> Any:
    return tuple(load("tools", name) for name in ("crop", "depth"))


def as_arguments(text: str) -> Any:
    calls, invalid = codec.calls_of([{"id": "a", "function": {"name": "crop", "arguments": text}}], KEY)
    return readable(AssistantMessage("", tuple(calls), tuple(invalid)))


def as_body(text: str) -> Any:
    return readable(codec.message(codec.readable(text.encode("utf-8", "replace")), KEY))


def as_stream(text: str) -> Any:
    reply = Assembly()
    for line in text.split("\n"):
        reply.feed(b"data: " + line.encode("utf-8", "replace") + b"\n\n")
    reply.feed(b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n')
    return as_body(reply.body().decode())


def as_answers(text: str) -> Any:
    return [parse(text, kind, CHOICES if kind in (Kind.CHOICE, Kind.ORDER) else ()).value for kind in Kind]


def as_judged(text: str) -> Any:
    return [answer_in(text, kind, CHOICES) for kind in (Kind.CHOICE, Kind.YES_NO, Kind.INTEGER)]


@cache
def styles_in_text() -> Any:
    return [style for path in sorted(FOLDER.glob("*.toml")) if (style := read_style(path)).begin]


def as_styled(text: str) -> Any:
    return [style._blocks(text) for style in styles_in_text()]


# Each reader, with the errors that it may raise.
READERS: dict[str, tuple[Callable[[str], Any], tuple[type[Exception], ...]]] = {
    "dialects": (lambda text: read(text, tools()), ()),
    "asked": (lambda text: read(text, tools(), is_text_protocol=True), ()),
    "object": (lambda text: read_object(text)[0], ()),
    "value": (lambda text: read_value(text)[0], (ValueError,)),
    "YAML": (read_yaml, (ValueError,)),
    "HTML": (without_entities, ()),
    "thoughts": (lambda text: (without_thoughts(text), list(thoughts(text))), ()),
    "arguments": (as_arguments, ()),
    "body": (as_body, (UnreadableReplyError, StatusError)),
    "stream": (as_stream, (UnreadableReplyError, StatusError)),
    "LangChain": (lambda text: coerce_arguments(text.encode("utf-8", "replace")), ()),
    "answers": (as_answers, ()),
    "judge": (as_judged, ()),
    "styles": (as_styled, ()),
    "frame": (read_frame, (UsageError,)),
}

WORDS = r"""
&a *a &é *é &a-b *a-b &1 *1 << : ? - [ ] { } ( ) " ' ` ``` ~ ! !!str % @ | > , = \\ \" \ud83d &quot; &amp; &lt;
&amp;amp;quot; <think> </think> <tool_call> </tool_call> Action: depth crop Input: Action_Input: str( list( dict( set(
tuple( int( float( Box( **{ 1 1e9 1e999 -0 null None true img:1 image a 答案 Answer: (A) yes X T <arg_key> <|"|> “ ” « »
<function=depth> <parameter=a> name arguments tool json choices message content delta
"""
pieces = st.sampled_from(WORDS.split()) | st.sampled_from(
    ["\n", " ", "\n- ", ": ", '{"name": "depth", "arguments": ', '{"choices": [{"message": ']
)
texts = st.lists(pieces, max_size=40).map("".join)
# Openings to repeat, with their closings: every nesting that a reader might follow.
OPENINGS = {
    "[": "]",
    "{": "}",
    '{"a":': "}",
    "(": ")",
    "a:\n- ": "",
    "- ": "",
    "? ": "",
    "str(list(": "))",
    "list(": ")",
    "dict(a=": ")",
    "**{": "}",
    '"': '"',
    "&a [*a, ": "]",
    '{"name": "depth", "answer": ': "}",
    '{"choices": [{"message": {"content": "x", "x": ': "}}]}",
    '{"error": ': "}",
    "Action: depth\nAction Input:\na: [": "]",
}
insides = st.sampled_from(["", "1", '"x"', "a"])
nestings = st.tuples(st.sampled_from(sorted(OPENINGS)), st.integers(1, 150), insides).map(
    lambda nest: nest[0] * nest[1] + nest[2] + OPENINGS[nest[0]] * nest[1]
)
INPUT = "Action: depth\nAction Input:\n"


def measure(value: Any, limit: int) -> tuple[int, int]:
    """Count the values and characters in a value, up to a limit; a repeated object counts each time."""
    values = characters = 0
    open_values = [value]
    while open_values and max(values, characters) <= limit:
        item = open_values.pop()
        values += 1
        if isinstance(item, dict):
            open_values += [*item, *item.values()]
        elif isinstance(item, list | tuple | frozenset):
            open_values += item
        elif isinstance(item, str | bytes):
            characters += len(item)
        elif hasattr(item, "__slots__") and not isinstance(item, int | float):
            open_values += [getattr(item, name) for name in item.__slots__]
        elif hasattr(item, "__dict__"):
            open_values += vars(item).values()
    return values, characters


def check(name: str, text: str) -> None:
    work, errors = READERS[name]
    # Patterns are compiled on first use, which takes more steps than a short text.
    for steps in (STEPS_TO_COMPILE, STEPS_AT_LEAST + STEPS_A_CHARACTER * len(text)):
        with Steps(steps), suppress(*errors):
            result = work(text)
            # JSON may escape a character as six, and a message may contain the reply more than once.
            limit = 1_000 + 40 * len(text)
            assert max(measure(result, limit)) <= limit


@pytest.mark.parametrize("name", READERS)
def test_a_text_of_any_pieces_is_read_within_bounds(name: str) -> None:
    # Imports, which happen once per process, are not steps of a text.
    with suppress(*READERS[name][1]):
        READERS[name][0](WORDS)

    @settings(max_examples=80)
    @given(texts | nestings | st.tuples(texts, nestings, texts).map("".join) | (texts | nestings).map(INPUT.__add__))
    def every_text(text: str) -> None:
        check(name, text)

    every_text()


ALIASES = (
    "a: &x 1\nb: *x",
    "a: &x-y [1]\nb: *x-y",
    "a: &1 {k: v}\nb: *1",
    "a: &_ v\nb: [*_, *_]",
    "a: &x v\n*x : b",
    "a: &x {k: v}\nb: {<<: *x}",
    "- &x a: 1\n- *x",
    "&x a: 1",
    "&x\na: 1",
    "a: ! &x v",
    "a: &x ! v",
    "a: &x\n  b: 1",
    "a: [&x v,*x]",
    "? &x a\n: 1",
    'a: &x "v"',
    "a: &x |\n  v",
)


@pytest.mark.parametrize("text", ALIASES)
def test_an_alias_or_anchor_of_any_form_is_refused_by_its_event(text: str) -> None:
    with pytest.raises(ValueError, match=r"an (?:alias|anchor) \([*&].+\): write the value itself"):
        read_yaml(text)
    parsed = read(f"{INPUT}{text}\n", tools())
    assert parsed.calls == ()


def test_a_reply_with_an_alias_says_so_and_signs_in_a_text_are_no_alias() -> None:
    parsed = read(f"{INPUT}image: &i img:1\nbox: *i\n", tools())
    assert parsed.calls == ()
    assert parsed.unreadable is not None
    assert "write the value itself" in parsed.unreadable.error
    (call,) = read(f"{INPUT}image: img:1\nlabel: R&D, 3*a\n", tools()).calls
    assert call.args == {"image": "img:1", "label": "R&D, 3*a"}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "nested more than"),
        ("a: " + "x" * MAX_CHARACTERS, "characters"),
        ("[" + "1," * MAX_VALUES + "]", "values"),
        ("a: 1\n---\nb: 2", "more than one YAML document"),
        ("[a]: 1", "one word"),
        ("a: [", "not YAML"),
    ],
)
def test_yaml_past_a_bound_is_refused(text: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        read_yaml(text)


def test_yaml_within_the_bounds_is_read() -> None:
    assert read_yaml("[" * MAX_DEPTH + "]" * MAX_DEPTH) is not None
    assert read_yaml("a: 1\nb: [x, {c: 'd', c: e}]\nf:\ng: {}") == {
        "a": "1",
        "b": ["x", {"c": "e"}],
        "f": "",
        "g": {},
    }
    assert read_yaml("") is None


@pytest.mark.parametrize("text", ["str([1])", "list('ab')", "tuple('ab')", "set({'a': 1})", "str({'a': 1})"])
def test_a_maker_that_would_grow_a_value_makes_none(text: str) -> None:
    (result, error, _) = read_object(f"{{'a': {text}}}")
    assert result is None
    assert error


def test_one_value_is_read_up_to_its_bound() -> None:
    blank = " " * (MAX_WRITTEN - len('{"a": 1}'))
    assert read_object(f'{{"a": 1{blank}}}')[0] == {"a": 1}
    assert "characters" in read_object(f'{{"a": 1 {blank}}}')[1]
    with pytest.raises(ValueError, match="Expecting"):
        read_value(f"[{'1,' * MAX_WRITTEN}1]")


@pytest.mark.parametrize(
    "reply",
    ['{"name": "depth", "answer": 1}\n' * 400, '{"name": "depth", "answer": ' * 400 + "1" + "}" * 400],
    ids=["beside each other", "in each other"],
)
def test_objects_that_are_answers_are_bounded(reply: str, monkeypatch: pytest.MonkeyPatch) -> None:
    readings = 0

    def count_reading(*args: Any) -> Any:
        nonlocal readings
        readings += 1
        return read_value(*args)

    monkeypatch.setattr("hybrid.models.call_forms.read_value", count_reading)
    assert read(reply, tools()).calls == ()
    assert readings <= 64


@pytest.mark.parametrize("depth", [100, 600, 900])
def test_what_a_server_nests_is_read_or_refused(depth: int) -> None:
    nested = "[" * depth + "1" + "]" * depth
    half = "\\ud83d"
    for body in (
        f'{{"choices": [{{"message": {{"content": "{half}", "x": {nested}}}, "finish_reason": "stop"}}]}}',
        f'{{"choices": [{{"message": {{"content": {nested}}}, "finish_reason": "stop"}}]}}',
        f'{{"choices": [{{"message": {{"tool_calls": {nested}}}, "finish_reason": "stop"}}]}}',
        f'{{"error": {nested}}}',
    ):
        with suppress(UnreadableReplyError):
            as_body(body)
    for piece in (f'{{"usage": {nested}}}', f'{{"choices": [{{"delta": {{"content": {nested}}}}}]}}'):
        with suppress(UnreadableReplyError):
            as_stream(piece)
    args: Any = json.loads(nested)
    assert readable(AssistantMessage("", (ToolCall("a", "crop", {"a": args}),))).calls == ()
    assert readable(AssistantMessage("A", native={"x": args})).text == "A"


def test_a_style_looks_for_the_end_of_a_call_once() -> None:
    style = styles_in_text()[0]
    assert_grows_linearly(style._blocks, lambda size: style.begin * (size // len(style.begin)), 800_000)
    blocks, rest = style._blocks(f"a{style.begin}1{style.end}b" * (MAX_CALLS + 1))
    assert len(blocks) == MAX_CALLS
    assert rest == "ab" * MAX_CALLS + f"a{style.begin}1{style.end}b"


def _count_to_a_million() -> None:
    # A loop of Python: calls that C makes (`map(len, ...)`) raise no event. It ends even if the guard does not see it.
    for word in itertools.repeat("", 1_000_000):
        len(word)


@pytest.mark.system
def test_the_guard_sees_work_that_does_not_end() -> None:
    with pytest.raises(TooManyStepsError), Steps(1_000):
        _count_to_a_million()
    with pytest.raises(AssertionError, match="characters"):
        assert_grows_linearly(lambda text: [text.count("b") for _ in text], "a".__mul__, 20_000)
