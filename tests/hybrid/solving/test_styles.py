"""Styles: models that call tools in the form of their training get correct results for every picture size."""

import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from hybrid.config import ModelSettings, RunConfig
from hybrid.core.errors import ToolError, UsageError
from hybrid.core.types import Exchange, Fault
from hybrid.models.images import Resizing
from hybrid.running.before_asking import before_notes
from hybrid.running.resolve import prepare
from hybrid.running.run import ask_run
from hybrid.solving.styles import AS_TRAINED, FOLDER, fitting, read_style, style_of
from hybrid.tool import Args, Card, Tool
from tests.servers import JsonHandler, LocalServer, listening
from tests.tables import cases, stored
from tools._shared.args import RegionArg

SIZES = ((4032, 3024), (300, 4000), (64, 64))
# The boxes that a model draws in turn, as shares of the picture that each refers to.
MEANT = ((0.25, 0.5, 0.75, 0.875), (0.125, 0.25, 0.5, 0.625), (0.25, 0.5, 0.75, 0.75))
DRESSED = ("deepeyes", "mini-o3", "pixel-reasoner", "qwen3-vl")
MODELS = stored(__file__, "MODELS")


def tagged(value: Any) -> str:
    return f"<think>Smaller.</think>\n<tool_call>\n{json.dumps(value)}\n</tool_call>"


def qwen3(turn: int, size: tuple[int, int]) -> str:
    """Write boxes in thousandths of the user's picture, also for the second call, which omits the index."""
    del size
    box = [round(1000 * share) for share in MEANT[turn]]
    args = {"bbox_2d": box, "label": "sign", **({} if turn else {"img_idx": 0})}
    return tagged({"name": "image_zoom_in_tool", "arguments": args})


def deepeyes(turn: int, size: tuple[int, int]) -> str:
    """Write boxes in pixels of the picture as resized by the processor."""
    width, height = Resizing(28, 3136, 12845056).size(*size)
    box = [share * side for share, side in zip(MEANT[turn], (width, height, width, height), strict=True)]
    return tagged({"name": "image_zoom_in_tool", "arguments": {"bbox_2d": box, "label": "sign"}})


def mini_o3(turn: int, size: tuple[int, int]) -> str:
    """Write boxes in fractions; the third call refers to the first observation."""
    del size
    source = [{"source": "original_image"}, {}, {"source": "observation_1"}][turn]
    return f"<think>Smaller.</think><grounding>{json.dumps({'bbox_2d': MEANT[turn], **source})}</grounding>"


def pixel_reasoner(turn: int, size: tuple[int, int]) -> str:
    """Write boxes in fractions; the third call refers to the first returned picture."""
    del size
    index = [{"target_image": 1}, {}, {"target_image": 2}][turn]
    return tagged({"name": "crop_image_normalized", "arguments": {"bbox_2d": MEANT[turn], **index}})


CALLS: dict[str, Callable[[int, tuple[int, int]], str]] = {
    "qwen3-vl": qwen3,
    "deepeyes": deepeyes,
    "mini-o3": mini_o3,
    "pixel-reasoner": pixel_reasoner,
}
TURNS = {"qwen3-vl": 2, "deepeyes": 2, "mini-o3": 3, "pixel-reasoner": 3}


class Trained:
    """A model that zooms in a given number of times, in its own format, and then answers; it records its requests.

    If its server has a parser, calls are separate from the text.
    """

    def __init__(self, style: str, size: tuple[int, int], *, parser: bool = False) -> None:
        self.style, self.size, self.asked, self.parser = style, size, list[dict[str, Any]](), parser

    def message(self, request: dict[str, Any]) -> dict[str, Any]:
        text = self.reply(request)
        call = re.search("<tool_call>(.*)</tool_call>", text, re.DOTALL) if self.parser else None
        if call is None:
            return {"role": "assistant", "content": text}
        record = json.loads(call[1])
        function = {"name": record["name"], "arguments": json.dumps(record["arguments"])}
        calls = [{"id": f"c{len(self.asked)}", "type": "function", "function": function}]
        return {"role": "assistant", "content": text[: call.start()].strip(), "tool_calls": calls}

    def reply(self, request: dict[str, Any]) -> str:
        self.asked.append(request)
        total = sum(message["role"] == "assistant" for message in request["messages"])
        probe = "Call the tool" in json.dumps(request) or "Which number" in json.dumps(request)
        if not probe and total == TURNS[self.style]:
            return "<think>Seen.</think><answer>Answer: (A)</answer>"
        return CALLS[self.style](total, self.size)


@pytest.fixture
def serve() -> Iterator[Callable[[Trained], str]]:
    """Function that serves a model and returns the server's address."""
    stack: list[Any] = []

    def start(model: Trained) -> str:
        class Handler(JsonHandler):
            def posted(self, body: bytes) -> None:
                choices = [{"index": 0, "finish_reason": "stop", "message": model.message(json.loads(body))}]
                usage = {"prompt_tokens": 900, "completion_tokens": 9, "total_tokens": 909}
                self.answer({"id": "1", "model": "m", "choices": choices, "usage": usage})

        context = listening(LocalServer(Handler))
        stack.append(context)
        return context.__enter__().url

    yield start
    for context in stack:
        context.__exit__(None, None, None)


def data(folder: Path, size: tuple[int, int], count: int) -> Path:
    """Write a table of questions about a picture of the given size; return its path."""
    from PIL import Image

    folder.mkdir()
    Image.new("RGB", size, (90, 120, 150)).save(folder / "one.png")
    rows = ["id,question,choices,answer,image"]
    rows += [f'q{number},Which one? ({number}),"[""red"", ""blue""]",A,one.png' for number in range(count)]
    (folder / "questions.csv").write_text("\n".join(rows))
    return folder / "questions.csv"


def configured(
    folder: Path, url: str, model: str, size: tuple[int, int] = (64, 64), count: int = 1, **options: Any
) -> RunConfig:
    """Return the configuration of a run of the controller with crop on questions about a picture of the given size."""
    values = {"tool_style": "auto", "tools": ("crop",), "allow": ("blind",), "out": folder / "run", **options}
    table, server = str(data(folder / "data", size, count)), ModelSettings(base_url=url)
    return RunConfig("questions", ("controller",), model=f"openai:{model}", model_settings=server, data=table, **values)


async def exchanges(
    tmp_path: Path, url: str, style: str, size: tuple[int, int], count: int = 1, **options: Any
) -> list[Exchange]:
    run = prepare(configured(tmp_path, url, MODELS[style], size, count, **options))
    assert await ask_run(run, lambda *_: None) == ()
    assert run.identity["tool_style"]["name"] == style
    attempts = run.folder.recorded("controller").by_id
    return [attempts[question.id].exchanges[0] for question in run.sound]


def crops_run(exchange: Exchange) -> list[tuple[str, list[float]]]:
    """Return the image and the box of every crop that ran."""
    steps: list[Any] = [step for step in exchange.reply.steps if step.kind == "tool"]
    assert {step.name for step in steps} == {"crop"}
    return [
        (step.data["images"][0], [step.data["args"]["box"][side] for side in ("x0", "y0", "x1", "y1")])
        for step in steps
    ]


def sizes_of(exchange: Exchange, size: tuple[int, int]) -> dict[str, tuple[int, int]]:
    by_name = {ref.name: (ref.image.width, ref.image.height) for step in exchange.reply.steps for ref in step.images}
    return {"img:1": size, **by_name}


@pytest.mark.system
@pytest.mark.parametrize("style", DRESSED)
@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_a_box_lands_where_the_model_meant_it(
    style: str, size: tuple[int, int], tmp_path: Path, serve: Callable[[Trained], str]
) -> None:
    (exchange,) = await exchanges(tmp_path, serve(Trained(style, size)), style, size)
    boxes, expected_values = crops_run(exchange), sizes_of(exchange, size)
    assert [image for image, _ in boxes] == ["img:1", "img:1", "img:1.1"][: TURNS[style]]
    for (image, box), shares in zip(boxes, MEANT, strict=False):
        values = [share * side for share, side in zip(shares, expected_values[image] * 2, strict=True)]
        assert all(abs(is_ - was) <= 1 for is_, was in zip(box, values, strict=True)), (image, box, values)


@pytest.mark.system
@pytest.mark.parametrize("style", DRESSED)
async def test_twenty_of_twenty_are_right_and_tell_what_was_written_and_what_ran(
    style: str, tmp_path: Path, serve: Callable[[Trained], str]
) -> None:
    model = Trained(style, (640, 480))
    result = await exchanges(tmp_path, serve(model), style, (640, 480), 20)
    assert [item.reply.text.count("Answer: (A)") for item in result] == [1] * 20
    for entry in result:
        assert not [step for step in entry.reply.steps if step.fault]
        datas: list[Any] = [step.data for step in entry.reply.steps if step.name == AS_TRAINED]
        wrote: list[Any] = [call for step in entry.reply.steps for call in step.data.get("tool_calls", ())]
        assert [value["wrote"] for value in datas] == [{"tool": call["tool"], "args": call["args"]} for call in wrote]
        assert [other_item["ran"]["tool"] for other_item in datas] == ["crop"] * TURNS[style]
    built = read_style(FOLDER / f"{style}.toml")
    last = model.asked[-1]
    text = json.dumps(last["messages"])
    if built.begin:
        # The whole conversation is in the model's own format.
        assert "tools" not in last
        assert last["messages"][0]["content"] == built.system
        assert {message["role"] for message in last["messages"]} == {"system", "user", "assistant"}
        assert all(
            CALLS[style](turn, (640, 480)) in [m["content"] for m in last["messages"]] for turn in range(TURNS[style])
        )
    else:
        (function,) = [tool["function"] for tool in last["tools"]]
        assert function == json.loads(built.function)
    assert "img:1:" not in text or not built.begin
    assert "You may call tools that look at the images" not in text


async def test_other_tools_keep_our_form_beside_it(tmp_path: Path, serve: Callable[[Trained], str]) -> None:
    model = Trained("deepeyes", (64, 64))
    style, url = read_style(FOLDER / "deepeyes.toml"), serve(model)
    payload = {"tools": ("crop", "markers"), "tool_style": "deepeyes"}
    assert await ask_run(prepare(configured(tmp_path, url, MODELS["deepeyes"], **payload)), lambda *_: None) == ()
    system = model.asked[-1]["messages"][0]["content"]
    assert system.startswith(style.system)
    assert "- markers:" in system
    assert "- crop:" not in system


@pytest.mark.parametrize("factor", [14, 28, 32])
def test_sides_are_multiples_of_the_factor_within_the_bounds(factor: int) -> None:
    resizing = Resizing(factor, 64 * factor**2, 1280 * factor**2)
    for width, height in SIZES:
        across, down = resizing.size(width, height)
        assert across % factor == down % factor == 0
        assert (64 - 16) * factor**2 <= across * down <= 1280 * factor**2
        assert math.isclose(across / down, width / height, rel_tol=0.5)
    # The resizing of Qwen-VL's processors, computed by hand: 4032 x 3024 at 28, at most 1,003,520 pixels.
    assert Resizing(28, 3136, 1003520).size(4032, 3024) == (1148, 840)


def test_the_style_is_found_by_the_name_of_the_model() -> None:
    for name, model in MODELS.items():
        assert fitting(f"openai:{model}").name == name
    for model, name in (("gpt-4o", "openai"), ("claude-opus-4-5", "anthropic"), ("gemini-3-pro", "gemini")):
        result = fitting(f"openai:{model}")
        assert (result.name, result.is_plain) == (name, True)
    assert fitting("openai:llava").name == fitting(None).name == style_of("plain", "openai:x").name == "plain"


class _Zoom(Args):
    box: RegionArg
    scale: float = Field(default=1.0, le=2)
    note: str | None = "none"


class _Unscaled(Args):
    box: RegionArg


class _OtherBox(Args):
    box: str | dict[str, float]


def enlarged(args: type[Args], **written: Any) -> Args:
    tool = Tool(Card("zoom", "Zooms.", "No limits.", ()), args)
    return style_of("qwen3-vl", None).enlarged(tool, tool.parse(written))


def test_a_region_is_enlarged_within_the_bounds_of_the_tool() -> None:
    large, small = ({"x0": 0, "y0": 0, "x1": side, "y1": side} for side in (320, 32))
    larger: Any = enlarged(_Zoom, box=large, note=None)
    assert (larger.box.x1, larger.scale, larger.note) == (320, 1.6, None)
    with pytest.raises(ToolError, match="zoom: scale: Input should be less than or equal to 2") as caught:
        enlarged(_Zoom, box=small)
    assert caught.value.fault is Fault.BAD_ARGUMENTS
    with pytest.raises(ToolError, match="zoom: scale: Extra inputs are not permitted"):
        enlarged(_Unscaled, box=large)


@pytest.mark.parametrize("box", ["left", {"x": 1.0, "y": 2.0}], ids=str)
def test_a_box_in_another_form_is_left_for_the_tool(box: Any) -> None:
    assert enlarged(_OtherBox, box=box).model_dump() == {"box": box}


@pytest.mark.parametrize(*cases(__file__, "test_a_file_that_cannot_be_one_is_refused_with_its_name_and_key"))
def test_a_file_that_cannot_be_one_is_refused_with_its_name_and_key(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(UsageError, match=rf"mine\.toml.*{re.escape(message)}"):
        style_of(str(tmp_path / "mine.toml"), None)
    with pytest.raises(UsageError, match="did you mean 'qwen3-vl'"):
        style_of("qwen3vl", None)


@pytest.mark.parametrize("style", ["deepeyes", "pixel-reasoner", "qwen3-vl"])
async def test_a_server_with_a_parser_is_the_same_to_it(
    style: str, tmp_path: Path, serve: Callable[[Trained], str]
) -> None:
    model = Trained(style, (300, 4000), parser=True)
    (exchange,) = await exchanges(tmp_path, serve(model), style, (300, 4000))
    assert "Answer: (A)" in exchange.reply.text
    assert len(crops_run(exchange)) == TURNS[style]
    if style != "qwen3-vl":
        contents = [message["content"] for message in model.asked[-1]["messages"] if message["role"] == "assistant"]
        assert contents == [CALLS[style](turn, (300, 4000)) for turn in range(TURNS[style])]


async def test_a_call_that_means_nothing_is_told_so_in_its_own_words(
    tmp_path: Path, serve: Callable[[Trained], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = [
        {"bbox_2d": [1, 2, 3, 4], "label": "x", "img_idx": 7},
        {"label": "x", "img_idx": 0},
        {"bbox_2d": [9, 9, 3, 4], "label": "x", "img_idx": 0},
    ]
    calls = [tagged({"name": "image_zoom_in_tool", "arguments": args}) for args in wrong]
    monkeypatch.setitem(CALLS, "qwen3-vl", lambda turn, size: calls[turn])
    monkeypatch.setitem(TURNS, "qwen3-vl", 3)
    (exchange,) = await exchanges(tmp_path, serve(Trained("qwen3-vl", (64, 64))), "qwen3-vl", (64, 64))
    rows = [(step.name, step.fault, step.text) for step in exchange.reply.steps if step.kind == "tool"]
    example = 'write "bbox_2d": [x1, y1, x2, y2]'
    assert rows == [
        ("crop", Fault.UNKNOWN_IMAGE, "img_idx: there is no image 7; there are 0 to 0"),
        ("crop", Fault.BAD_ARGUMENTS, f"bbox_2d is missing; {example}"),
        ("crop", Fault.BAD_ARGUMENTS, f"bbox_2d: the second corner must be right of and below the first; {example}"),
    ]


@pytest.mark.parametrize(*cases(__file__, "test_one_line_before_the_first_question_says_whether_the_form_fits"))
def test_one_line_before_the_first_question_says_whether_the_form_fits(
    model: str, style: str, message: str, tmp_path: Path
) -> None:
    run = prepare(configured(tmp_path, "http://127.0.0.1:9", model, tool_style=style, allow=()))
    notes = [note for note in before_notes(run) if "form" in note]
    assert len(notes) == bool(message)
    assert all(message in note for note in notes)
