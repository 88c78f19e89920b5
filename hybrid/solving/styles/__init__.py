"""Styles in which models were trained to call tools: one TOML file each, here or the user's own (`--tool-style`).

    style = style_of("auto", "openai:Qwen/Qwen3-VL-8B-Instruct")        # qwen3-vl.toml
    style.dressed(tools)                                                # `crop` as its makers publish it

A style replaces the form of one tool; all other tools keep their own form.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hybrid.config import RunConfig, own_frame
from hybrid.core.errors import DataError, Fault, ToolError, UsageError, did_you_mean
from hybrid.core.messages import (
    AssistantMessage,
    ImagePart,
    InvalidCall,
    Message,
    Part,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from hybrid.core.off_loop import work_on_text
from hybrid.core.toml_records import read_card
from hybrid.core.types import Finding, Json
from hybrid.models.base import CallKey, ChatModel
from hybrid.models.call_forms import MAX_CALLS
from hybrid.models.images import Resizing
from hybrid.models.literals import read_object
from hybrid.models.text_protocol import as_text, with_calls
from hybrid.models.toolspec import IMAGE, IMAGES, PublishedTool
from hybrid.solving.call_arguments import COORDINATES, LEFT_OUT, read_arguments
from hybrid.solving.coordinates import CoordinateSystem, frame_named
from hybrid.solving.images import ImageRegistry
from hybrid.tool import Tool, json_of_args

if TYPE_CHECKING:
    from hybrid.tool import Args

FOLDER: Final = Path(__file__).parent
PLAIN_NAME: Final = "plain"
BY_MODEL: Final = "auto"
# Name of the step that records what the model wrote in a style and what ran.
AS_TRAINED: Final = "tool style"
# Placeholder of the picture in `Style.result`.
PLACE: Final = "<image>"
BOX: Final = ("x0", "y0", "x1", "y1")


@dataclass(frozen=True)
class Style:
    """One style. Fields are the file's keys of the same name; all are optional except `models` and `source`."""

    name: str = PLAIN_NAME
    # A regular expression that matches the names of models trained in this style.
    models: str = ""
    # Where the authors of the style publish it.
    source: str = ""
    # The frame of coordinates, as in `--model-arg frame`.
    frame: str = ""
    # The start of the system message.
    system: str = ""
    # The end of each question.
    question: str = ""
    # The tool of hybrid that is called in this style; empty if all tools keep their own form.
    runs: str = ""
    # The published function in JSON: name, description, parameters.
    function: str = ""
    # The argument with the four numbers of a region.
    box: str = ""
    # The argument that selects the picture; if omitted in a call, the first picture of the question is used.
    index: str = ""
    # The index of the question's first picture.
    first: int = 0
    # Whether indices continue over the pictures that the tool returned.
    counts_made: bool = False
    # Words used instead of an index: `original` for the first picture, `observation` before the number of a picture
    # that the tool returned.
    original: str = ""
    observation: str = ""
    # The marks around a call in the text of a reply; empty for native calls.
    begin: str = ""
    end: str = ""
    # Whether the text contains only the arguments, without the tool's name.
    arguments_alone: bool = False
    # Template of the message with the result: `<image>` stands for the picture, and {width}, {height}, {action} and
    # {observation} are filled in.
    result: str = PLACE
    # The size to which a region is enlarged, as in `Resizing`; if `factor` is 0, the tool's own size is used.
    factor: int = 0
    least_pixels: int = 0
    most_pixels: int = 0
    sha256: str = field(default="", compare=False)

    @property
    def is_plain(self) -> bool:
        """Return whether the style changes nothing in the requests to the model."""
        return not (self.runs or self.frame)

    @property
    def tool_name(self) -> str:
        """The name under which the model knows the tool; empty without a function."""
        return str(json.loads(self.function)["name"]) if self.function else ""

    def ours(self, name: str) -> str:
        """Return hybrid's name for a tool that a model calls."""
        return self.runs if self.runs and name == self.tool_name else name

    @property
    def fact(self) -> dict[str, Json]:
        """The style's part of a run's identity, which is the same for every plain style."""
        identity = {"name": self.name, "frame": self.frame, "sha256": self.sha256}
        return {"name": PLAIN_NAME} if self.is_plain else {**identity}

    def fits(self, model: str | None) -> bool:
        """Return whether a model, by its name, was trained in this style."""
        return bool(model and self.models and re.search(self.models, model.partition(":")[2], re.IGNORECASE))

    def dressed(self, tools: Sequence[Tool]) -> tuple[Tool, ...]:
        """Return the tools in the form in which the model gets them."""
        return tuple(
            PublishedTool(
                **{item.name: getattr(tool, item.name) for item in fields(Tool)}
                | {"card": replace(tool.card, name=self.tool_name), "function": self.function}
            )
            if tool.card.name == self.runs
            else tool
            for tool in tools
        )

    def frame_name(self, declared: str, model: str | None) -> str:
        """Return the frame of a run: the declared frame if it is not the model's default, else the style's."""
        return self.frame if self.frame and declared == own_frame(model) else declared

    def coordinates(self, config: RunConfig) -> CoordinateSystem:
        """Return the frame; its pixels refer to the sent copy if images are scaled down for the model."""
        if config.frame == "probe":
            return CoordinateSystem()
        frame = frame_named(self.frame_name(config.frame, config.model))
        return replace(frame, sent_pixels=config.model_settings.max_pixels)

    def picture(self, value: Json, names: Sequence[str], derived: Sequence[str], registry: ImageRegistry) -> str:
        """Return the name of the picture at an index. Raises `ToolError` for an invalid index."""
        numbered = [*names, *(derived if self.counts_made else ())]
        if value in (None, "", self.original or None) and names:
            return names[0]
        if isinstance(value, str):
            if registry.find(value) is not None:
                return value
            match = re.fullmatch(rf"({re.escape(self.observation)})?\s*(\d{{1,6}})", value.strip())
            if match and self.observation and match[1]:
                numbered, value = ["", *derived], int(match[2]) + self.first
            else:
                value = int(match[2]) if match else value
        if isinstance(value, int | float) and value == math.floor(value):
            place = int(value) - self.first
            if 0 <= place < len(numbered) and numbered[place]:
                return numbered[place]
        numbers = f"{self.first} to {self.first + len(numbered) - 1}" if numbered else "none"
        raise ToolError(f"{self.index}: there is no image {value!r:.40}; there are {numbers}", Fault.UNKNOWN_IMAGE)

    def read(
        self,
        tool: Tool,
        call: ToolCall,
        frame: CoordinateSystem,
        registry: ImageRegistry,
        names: Sequence[str],
        derived: Sequence[str],
    ) -> tuple[tuple[str, ...], dict[str, Json], tuple[str, ...]]:
        """Return the image, the tool's arguments with coordinates in the frame, and the repairs.

        Args:
            tool: the tool in this style.
            call: the model's call in this style.
            frame: the frame of the coordinates.
            registry: all images.
            names: names of the question's images.
            derived: names of the images that the tool returned.

        Raises:
            ToolError: an invalid index or box.
        """
        reference = call.args.get(self.index) if self.index else None
        image_value = call.args.get(IMAGES, call.args.get(IMAGE))
        if reference is None and image_value:
            # If other tools keep hybrid's form, some models write the image's name, as for those tools, instead of an
            # index.
            reference = image_value[0] if isinstance(image_value, list | tuple) else image_value
        image = self.picture(reference, names, derived, registry)
        rest = {key: value for key, value in call.args.items() if key not in (self.index, IMAGE, IMAGES)}
        example = f'"{self.box}": [x1, y1, x2, y2]'
        try:
            images, args, repairs = read_arguments(tool, {**rest, IMAGE: image}, frame, registry)
        except ToolError as error:
            # The error contains the tool's own argument names; replace them by those of the style.
            message = str(error).partition("; write")[0].replace("box: ", f"{self.box}: ", 1)
            raise ToolError(f"{message}; write {example}", error.fault) from error
        if "box" not in args:
            raise ToolError(f"{self.box} is missing; write {example}", Fault.BAD_ARGUMENTS)
        other_repairs = [repair for repair in repairs if repair != COORDINATES]
        return images, args, (*([LEFT_OUT] if self.index and reference in (None, "") else []), *other_repairs)

    def enlarged(self, tool: Tool, args: Args) -> Args:
        """Return the arguments, whose box is in pixels, with the scale that enlarges the region to the style's size.

        A box in another form is left for the tool. Raises `ToolError` if the tool does not accept the scale.
        """
        written = json_of_args(args)
        box: Any = written.get("box")
        if not (self.factor and isinstance(box, Mapping) and all(isinstance(box.get(key), int | float) for key in BOX)):
            return args
        sides = [max(1, math.ceil(abs(box[f"{axis}1"] - box[f"{axis}0"]))) for axis in "xy"]
        across, down = Resizing(self.factor, self.least_pixels, self.most_pixels).size(sides[0], sides[1])
        scale = math.sqrt(across * down / (sides[0] * sides[1]))
        return tool.parse({**written, "scale": round(min(8.0, max(0.1, scale)), 4)})

    def result_parts(self, finding: Finding, derived: Sequence[str]) -> tuple[Part, ...]:
        """Return the result for the model; the last of `derived` is its picture."""
        picture = ImagePart(finding.images[0], labelled=not self.begin)
        size = finding.images[0].image
        # Actions are counted from 0, observations from 1.
        facts = {"width": size.width, "height": size.height, "action": len(derived) - 1, "observation": len(derived)}
        head, _, tail = self.result.format(**facts).partition(PLACE)
        return tuple(filter(None, (head, picture, tail)))

    async def chat(
        self, model: ChatModel, messages: Sequence[Message], tools: Sequence[Tool], key: CallKey
    ) -> AssistantMessage:
        """Return a model's reply with the calls in its text parsed; the text is unchanged.

        Raises what `ChatModel.chat` raises.
        """
        sent_messages, sent_tools = self.outgoing(messages, tools)
        reply = await model.chat(sent_messages, sent_tools, key)
        if sent_messages is messages:
            return reply
        result = await work_on_text(reply.text, self.find_calls, reply, tools, messages, key.call)
        return replace(result, text=reply.text) if result.calls or result.invalid else result

    def outgoing(self, messages: Sequence[Message], tools: Sequence[Tool]) -> tuple[Sequence[Message], Sequence[Tool]]:
        """Return a conversation and its tools as they are sent.

        If calls are written in text, the model's text is restored and results become user turns.
        """
        if not self.begin or not (tools or any(isinstance(message, ToolMessage) for message in messages)):
            return messages, tools
        bare = any(isinstance(tool, PublishedTool) for tool in tools) and not isinstance(messages[0], SystemMessage)
        plain: list[Message] = [SystemMessage(self.system)] if bare and self.system else []
        for message in messages:
            if isinstance(message, AssistantMessage):
                plain.append(replace(message, text=self._words(message), calls=(), invalid=()))
            elif isinstance(message, ToolMessage) and message.name == self.tool_name:
                plain.append(UserMessage((f"Error: {message.text}",) if message.failed else message.parts))
            else:
                plain.append(message)
        out: list[Message] = []
        for message in as_text(plain, [tool for tool in tools if not isinstance(tool, PublishedTool)]):
            last = out[-1] if out else None
            if isinstance(message, UserMessage) and isinstance(last, UserMessage):
                # Some chat templates do not accept two consecutive user turns.
                out[-1] = UserMessage((*last.parts, *message.parts))
            else:
                out.append(message)
        return out, ()

    def _words(self, message: AssistantMessage) -> str:
        """Return the text of a reply, including the calls that a server extracted from it."""
        calls = [call for call in message.calls if not call.read_from]
        values = (call.args if self.arguments_alone else {"name": call.name, "arguments": call.args} for call in calls)
        blocks = (f"{self.begin}\n{json.dumps(value, ensure_ascii=False)}\n{self.end}" for value in values)
        return "\n".join(filter(None, [message.text, *blocks]))

    def find_calls(
        self, reply: AssistantMessage, tools: Sequence[Tool], messages: Sequence[Message], turn: int = 0
    ) -> AssistantMessage:
        """Return the reply with the calls extracted from its text; calls may be in this style or in any dialect."""
        dressed = any(isinstance(tool, PublishedTool) for tool in tools)
        if not (self.arguments_alone and dressed) or reply.calls:
            return with_calls(reply, tools, messages, turn)
        calls, invalid = list[ToolCall](), list[InvalidCall]()
        blocks, rest = self._blocks(reply.text)
        for number, block in enumerate(blocks):
            identity = f"text{turn % 100:02d}{number % 1000:03d}"
            args, error, repairs = read_object(block.strip())
            if args is None:
                invalid.append(InvalidCall(identity, self.tool_name, block, error))
            else:
                calls.append(ToolCall(identity, self.tool_name, args, self.name, repairs))
        others = with_calls(replace(reply, text=rest.strip()), tools, messages, turn)
        return replace(others, calls=(*calls, *others.calls), invalid=(*invalid, *others.invalid))

    def _blocks(self, text: str) -> tuple[list[str], str]:
        """Return the text between the call marks, at most `MAX_CALLS`, and the remaining text.

        The time is linear in the length of the text; a regular expression would search for the end from every mark.
        """
        blocks, rest, at = list[str](), list[str](), 0
        while len(blocks) < MAX_CALLS and (begin := text.find(self.begin, at)) >= 0:
            inside = begin + len(self.begin)
            if (end := text.find(self.end, inside)) < 0:
                break
            blocks.append(text[inside:end])
            rest.append(text[at:begin])
            at = end + len(self.end)
        return blocks, "".join((*rest, text[at:]))


PLAIN: Final = Style()


def names() -> tuple[str, ...]:
    """Return the names of the built-in styles, `plain` first."""
    return (PLAIN_NAME, *sorted(path.stem for path in FOLDER.glob("*.toml")))


def fitting(model: str | None) -> Style:
    """Return the first style, by name, that matches a model, else `plain`."""
    return next((style for name in names()[1:] if (style := read_style(FOLDER / f"{name}.toml")).fits(model)), PLAIN)


def style_of(name: str, model: str | None) -> Style:
    """Return the style of `--tool-style`. Raises `UsageError` for an unknown name or an invalid file."""
    if name == BY_MODEL:
        return fitting(model)
    if name == PLAIN_NAME:
        return PLAIN
    if name in names():
        return read_style(FOLDER / f"{name}.toml")
    if name.endswith(".toml"):
        return read_style(Path(name))
    hint, options = did_you_mean(name, names()), ", ".join((*names(), BY_MODEL))
    raise UsageError(f"--tool-style {name}: unknown style{hint}; available: {options}, or a TOML file")


def read_style(path: Path) -> Style:
    """Read the style of a file. Raises `UsageError` naming the file and the invalid key."""
    try:
        read = read_card(path, Style)
    except DataError as error:
        raise UsageError(f"--tool-style {error}") from error
    style = replace(read, name=path.stem, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    location = f"--tool-style {path}"
    try:
        re.compile(style.models)
        if style.frame:
            frame_named(style.frame)
        tool_name = style.tool_name
        style.result.format(width=0, height=0, action=0, observation=0)
    except (ValueError, KeyError, TypeError, IndexError, re.error, UsageError) as error:
        raise UsageError(f"{location}: {error}") from error
    needed = {"models": True, "source": True, "end": style.begin, "function": style.runs, "box": tool_name}
    if missing := [key for key, is_needed in needed.items() if is_needed and not getattr(style, key)]:
        raise UsageError(f"{location}: these keys are missing: {', '.join(missing)}")
    return style
