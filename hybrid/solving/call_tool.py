"""Tool calls for one prompt: each call checks the budget and its arguments, and logs a step.

    calls = ToolCalls(control=control, tools_offered=(), seed=0, meter=meter, ...)
    finding = await calls("depth", ["img:1"], {"labels": ["A", "B"]})

The arguments of a call are validated once: here, or where a model's call was read. From here on they are typed
(`hybrid.tool.Args`).
"""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hybrid import tracing
from hybrid.core.coordinates import unmarked
from hybrid.core.error_text import in_one_line, raised_at
from hybrid.core.errors import ToolError
from hybrid.core.timing import CallTime, Clock
from hybrid.core.types import Box, Fault, Finding, ImageRef, Json, Prompt, Step, Usage
from hybrid.models.picture_limits import NO_LIMITS, FittedSize, PictureLimits, fit_picture, fit_stored
from hybrid.plugins.discovery import own_names
from hybrid.plugins.registry import load, loaded, names
from hybrid.solving.budgets import timed
from hybrid.solving.controls import AskedQuestion, ToolCondition
from hybrid.solving.coordinates import CoordinateSystem
from hybrid.solving.images import ImageRegistry
from hybrid.solving.rules import handed_in_tool
from hybrid.solving.solver import Log, Meter
from hybrid.tool import Tool, json_of_args

if TYPE_CHECKING:
    from hybrid.tool import Args

logger = logging.getLogger("hybrid.solving.session")
# Key in a step's data: the text that the model read if it differs from the step's text.
SHOWN = "shown"
# Logger for tracebacks of tool defects, shown by `--debug`.
traces = logging.getLogger("hybrid.solving.session.traces")

# Faults after which a question is answered without the tool. All other faults are wrong calls by the solver, or calls
# of a tool whose weights are missing on this machine.
LOST = (Fault.TOOL_ERROR, Fault.TIMEOUT)


@dataclass(kw_only=True)
class ToolCalls:
    """An `AskTool` over a `ToolCondition`: checks budget and arguments, names images, and logs the calls' steps."""

    control: ToolCondition
    # The offered tools, which need not be modules of `tools/`.
    tools_offered: tuple[Tool, ...]
    seed: int
    meter: Meter
    log: Log
    image_registry: ImageRegistry
    subject: AskedQuestion
    prompt: Prompt
    clock: Clock = time.monotonic
    # Whether overlays are drawn for the model.
    overlays: bool = True
    # The frame of coordinates in text for the model; the step also keeps the text in pixels.
    frame: CoordinateSystem = field(default_factory=CoordinateSystem)
    # Picture limits of the model's server; tool pictures are scaled to fit.
    limits: PictureLimits = NO_LIMITS
    max_pixels: int | None = None
    # Event that is set when the previous call has been logged.
    _last: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._last.set()

    async def __call__(self, name: str, images: Sequence[str], args: Mapping[str, Json] | Args) -> Finding:
        """Return the tool output: its pictures have names, and the coordinates in its text are in the model's frame.

        Validates `args` as `AskTool`. Raises `BudgetSpent`, and what `CachedTools.call` raises.
        """
        self.meter.take_tool_call()
        started, spent, faults = self.clock(), CallTime(self.meter.seconds_left()), 0
        json_args = json_of_args(args)
        call: dict[str, Json] = {"images": list(images), "args": json_args}
        # Concurrent calls are logged, and their pictures named, in the order of the calls. The next call waits for
        # `finished`, so whatever can fail is above, or within `try`.
        previous, finished = self._last, asyncio.Event()
        self._last = finished
        try:
            with tracing.span(lambda: tracing.tool_call(name, images, json_args)) as finish_span:
                finding = await self._find(name, images, args, spent)
                finish_span(lambda: tracing.tool_finding(finding, self._refs(images), cached=spent.cached))
            await previous.wait()
            of = images[0] if images else f"img:{name}"
            fitted = [await self._fit(image) for image in finding.images]
            refs = tuple(self.image_registry.add(image, image.parent or of) for image, _ in fitted)
            facts: dict[str, Json] = {"data": finding.data, "confidence": finding.confidence}
            facts |= {"backend": finding.backend, "version": finding.version}
            text = self._text_in_frame(name, finding, images, refs)
            notes = [f"({ref.name} {note})" for ref, (_, note) in zip(refs, fitted, strict=True) if note]
            text = "\n".join(filter(None, [text, *notes]))
            facts |= {SHOWN: text} if text != finding.text else {}
            self.log.note(Step("tool", name, finding.text, spent.busy, data={**call, **facts}, images=refs))
            return replace(finding, text=text, images=refs, places=())
        except ToolError as error:
            faults = int(error.fault in LOST)
            await previous.wait()
            text = self.frame.say(
                *unmarked(error.marked), [ref for ref in map(self.image_registry.find, images) if ref is not None]
            )
            call |= {SHOWN: text} if text != str(error) else {}
            if place := raised_at(error.trace):
                call["raised_at"] = place
            self.log.note(Step("tool", name, str(error), spent.busy, error.fault, data=call))
            logger.info("%s: tool %s: %s (%s)", self.subject.id, name, error, error.fault)
            if error.trace:
                traces.info("%s: tool %s\n%s", self.subject.id, name, error.trace.rstrip())
            if text == str(error):
                raise
            # Raise a new error, because other calls with images of other sizes may await the same error.
            raise type(error)(text, error.fault) from error
        finally:
            used = timed(Usage(tool_faults=faults), spent, self.clock() - started)
            self.meter.used = self.meter.used + used
            finished.set()

    async def _fit(self, ref: ImageRef) -> tuple[ImageRef, str]:
        """Return a tool picture that the model's server accepts, and a note on the change; "" if unchanged.

        Its box and scale stay valid: scaling is recorded, and padding is added on the right and below.
        """
        image = ref.image
        limits, most = self.limits, self.max_pixels
        fits_as_it_is = not limits.most_bytes and fit_picture(image.width, image.height, limits, most) is None
        if fits_as_it_is or not self.overlays:
            return ref, ""
        fitted, size = await asyncio.to_thread(fit_stored, self.control.service.store, image, limits, most)
        if size is None:
            return ref, ""
        parent = self.image_registry.find(ref.parent or "")
        box, scale = ref.box, ref.scale * size.scale
        if (
            box is None
            and parent is not None
            and (parent.image.width, parent.image.height)
            == (
                image.width,
                image.height,
            )
        ):
            # The overlay was drawn on a copy of its parent, and is now a scaled copy.
            box = Box(0.0, 0.0, float(image.width), float(image.height))
        return replace(ref, image=fitted, box=box, scale=scale if box is not None else ref.scale), _fit_words(size)

    def _text_in_frame(self, name: str, finding: Finding, images: Sequence[str], derived: Sequence[ImageRef]) -> str:
        """Return the text of the tool output in the frame."""
        # A plug-in tool may write numbers that are not marked as coordinates.
        refs = self._refs(images)
        text = self.frame.say(finding.text, finding.places, refs, derived)
        unmarked_numbers = not finding.places and name not in own_names("tools") and any(map(str.isdigit, text))
        if not (unmarked_numbers and self.frame.changes(refs)):
            return text
        sizes = ", ".join(f"{ref.name} at {ref.image.width} x {ref.image.height} px" for ref in refs)
        return f"{text}\n(Coordinates in this text are in pixels of {sizes}.)"

    def _refs(self, images: Sequence[str]) -> tuple[ImageRef, ...]:
        return tuple(self.image_registry.get(image) for image in images)

    async def _find(
        self, name: str, images: Sequence[str], args: Mapping[str, Json] | Args, spent: CallTime
    ) -> Finding:
        refs = self._refs(images)
        default = handed_in_tool(name) or loaded("tools", name)
        tool = next((tool for tool in self.tools_offered if tool.card.name == name), default)
        if not isinstance(tool, Tool):
            # The first use of a tool imports it; a thread lets other questions continue meanwhile.
            tool = await asyncio.to_thread(find_tool, name)
        parsed = args if isinstance(args, tool.args) else tool.parse(dict(args))
        if spent.rest is not None and spent.rest <= 0:
            raise ToolError(f"{name}: the question's budget of seconds is spent", Fault.TIMEOUT)
        return await self.control.find(
            tool,
            parsed,
            refs,
            subject=self.subject,
            prompt=self.prompt,
            seed=self.seed,
            spent=spent,
            overlays=self.overlays,
        )


def _fit_words(size: FittedSize) -> str:
    """Describe the change to a picture, for the model."""
    did = []
    if size.scale != 1.0:
        did.append(f"was {'enlarged' if size.scale > 1 else 'shrunk'} {size.scale:.3g} times")
    if size.picture != size.content:
        padded_right, padded_below = (
            padded > content for padded, content in zip(size.picture, size.content, strict=True)
        )
        position = " and ".join(
            word for word, padded in (("right of it", padded_right), ("below it", padded_below)) if padded
        )
        did.append(f"has grey {position}, the picture itself is {size.content[0]} x {size.content[1]} px")
    return f"{'; it '.join(did)}, as your server takes no other"


def find_tool(name: str) -> Tool:
    """Return the tool of that name. Raises `ToolError` if it is unknown (listing the tools) or cannot be imported."""
    tool_names = names("tools")
    if name not in tool_names:
        raise ToolError(f"there is no tool {name!r}; the tools are: {', '.join(tool_names)}", Fault.UNKNOWN_TOOL)
    try:
        tool: Tool = load("tools", name)
    except Exception as error:
        # If the import of a tool fails, only its own answer is missing.
        cause = error.__cause__ or error
        failed = ToolError(f"{name} cannot be imported: {in_one_line(cause)}")
        failed.trace = "".join(traceback.format_exception(cause))
        raise failed from error
    return tool
