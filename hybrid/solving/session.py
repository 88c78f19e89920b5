"""One question and one solver: builds the kit of each ask and keeps what happened.

    session = Session(question, solver, resources)
    exchanges = await benchmark.dialogue(question.asked(), session.ask)

The identity of the question stays in here, and its target does not even come in: of a question a session keeps id, unit
and images. Every model and tool call goes through a wrapper that checks the budget, counts what was used and writes a
step; a solver cannot forget to. What a kit holds of a wrapper is a bare handle, so that nothing that can be reached
from a kit (attributes, containers, closures) leads to an id, a recording or another question.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, cast
from weakref import WeakKeyDictionary

from hybrid.errors import BudgetSpent, HybridError, NotRecorded, ToolError
from hybrid.joining import OURS, Joint
from hybrid.messages import Show
from hybrid.models.base import CallKey, ChatModel, prompt_sha256
from hybrid.models.prices import Price
from hybrid.prior_accuracy import PriorAccuracy
from hybrid.prompts import Wording
from hybrid.registry import load, loaded, names
from hybrid.repeats import seed_of_repetition
from hybrid.solving.ask_model import ModelCalls
from hybrid.solving.budgets import RunMeter, timed
from hybrid.solving.captions import CAPTION_CALL, CaptionBook, CaptionShelf, described
from hybrid.solving.context import NOTHING, SuppliedTexts
from hybrid.solving.controls import Control, Subject
from hybrid.solving.coordinates import CoordinateSystem
from hybrid.solving.image_forms import Parts, shown_parts
from hybrid.solving.image_registry import ImageRegistry
from hybrid.solving.self_consistency import voted
from hybrid.solving.solver import ImageForm, Limits, Log, Meter, Solver, SolverContext
from hybrid.solving.trust import Trust, TrustFile
from hybrid.timing import CallTime, Clock
from hybrid.tool import Tool
from hybrid.tracing import ToolAnswered, ToolCallBegun, span
from hybrid.types import LETTERS, Fault, Finding, ImageRef, Json, Kind, Outcome, Prompt, Question, Reply, Step, Usage

AnswerForm = Literal["text", "likelihood"]
"""Whether a choice is answered in words, or as the option that the model finds most likely."""


@dataclass(frozen=True)
class Resources:
    """What every ask of a run shares."""

    model: ChatModel | None
    control: Control
    tools_offered: tuple[Tool, ...]
    wording: Wording
    limits: Limits
    trust: TrustFile | None = None
    price: Price | None = None
    seed: int = 0
    show: Show = "both"
    frame: CoordinateSystem = field(default_factory=CoordinateSystem)
    images: ImageForm = "separate"
    image_labels: bool = True
    joint: Joint = OURS
    """How pictures are joined where they are shown as one."""
    captioner: ChatModel | None = None
    """Who describes images where they are shown as captions; the model itself where it is None."""
    caption_price: Price | None = None
    captions: CaptionShelf | None = None
    """Where captions are kept; for one ask alone where it is None."""
    context: SuppliedTexts = NOTHING
    """What is shown beside the images."""
    answer: AnswerForm = "text"
    samples: int = 1
    """How often an MLLM is asked, and its answers vote."""
    prior_accuracy: PriorAccuracy = field(default_factory=PriorAccuracy)
    """What the benchmark's card says of MLLMs and of a guess."""
    run_meter: RunMeter = field(default_factory=RunMeter)
    clock: Clock = time.monotonic
    """What model and tool calls are timed with."""


logger = logging.getLogger(__name__)
traces = logging.getLogger(f"{__name__}.traces")
"""Of defects of tools: `--debug` shows them."""


def seed_of(*parts: object) -> int:
    """A seed in 0..2^63-1 from anything that prints the same every time."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


ENDS: Mapping[type[HybridError], Outcome] = {
    NotRecorded: Outcome.NOT_RECORDED,
    BudgetSpent: Outcome.BUDGET,
    ToolError: Outcome.TOOL_FAULT,
}
"""What an error says of the ask that it ends."""


class Session:
    """A question as one solver meets it: budgets run over all of its asks, and asks are counted from 0.

    `name` is the solver's in the run; it tells its model calls from those of another solver.
    """

    def __init__(self, question: Question, solver: Solver, resources: Resources, name: str = "") -> None:
        self._name = name
        self._subject = Subject(question.id, question.unit, question.images)
        self._beside = resources.context.of(question.id)
        self._solver = solver
        self._shared = resources
        self._asks = 0
        self.meter = Meter(resources.limits)

    async def ask(self, prompt: Prompt) -> Reply:
        """Put one prompt to the solver. Raises `Outage`; every other end is an outcome of the reply."""
        number, self._asks = self._asks, self._asks + 1
        log, before = Log(), self.meter.used
        try:
            reply = await self._reply(prompt, number, log)
        except tuple(ENDS) as error:
            outcome = next(end for kind, end in ENDS.items() if isinstance(error, kind))
            log.note(Step("rule", outcome.value, str(error)))
            reply = Reply("", outcome)
        return replace(reply, usage=_difference(self.meter.used, before), steps=tuple(log.steps))

    async def ctx(self, prompt: Prompt) -> SolverContext:
        """The context of the next ask, for callers that take a solver's steps one by one; its `log` has the steps.

        Raises as a model call does, where images are described.
        """
        number, self._asks = self._asks, self._asks + 1
        log, key = Log(), self._key(prompt, number)
        shown = await self._shown(prompt, log) if self._solver.needs_model else prompt.parts
        return self._context(prompt, shown, key, log)

    def _key(self, prompt: Prompt, number: int) -> CallKey:
        """The key of the first call of an ask."""
        return CallKey(self._subject.id, number, 0, prompt_sha256(prompt.text), self._name)

    async def _reply(self, prompt: Prompt, number: int, log: Log) -> Reply:
        """The solver's reply, or the one elected where it is asked several times, each time with a kit of its own."""
        key = self._key(prompt, number)
        shown = await self._shown(prompt, log) if self._solver.needs_model else prompt.parts
        if self._solver.samples_itself or not self._solver.needs_model:
            return await self._solver.ask(prompt, self._context(prompt, shown, key, log))

        async def once() -> Reply:
            # Calls are counted on from sample to sample: each has an identity, and a seed, of its own.
            nonlocal key
            ctx = self._context(prompt, shown, key, log)
            try:
                return await self._solver.ask(prompt, ctx)
            finally:
                key = _following(ctx)

        return (await voted(prompt, self._shared.samples, once, log)).reply

    @property
    def _labels(self) -> bool:
        """Whether the model is shown each image under its name."""
        return self._shared.image_labels or self._solver.names_images

    async def _shown(self, prompt: Prompt, log: Log) -> Parts:
        """What the model is shown of a prompt: its images in the form chosen, and the text supplied beside them."""
        shared = self._shared
        captioner = shared.captioner or shared.model
        shelf, name = shared.captions or CaptionBook(), captioner.name if captioner is not None else ""
        price = shared.price if shared.captioner is None else shared.caption_price

        async def describe(image: ImageRef) -> str:
            calls = Log()
            ask = self._model_calls(captioner, price, calls, CallKey(CAPTION_CALL))
            try:
                return await described(image, ask, shelf, name, calls)
            finally:
                # The caption's own step says what the model said; what remains are empty replies, refusals, timeouts.
                for step in calls.steps:
                    if step.kind != "model" or step.fault is not None:
                        log.note(step)

        form, store = self._solver.images or shared.images, shared.control.service.store
        shown = await shown_parts(prompt, form, describe, store, labelled=self._labels, joint=shared.joint)
        if self._beside is None:
            return shown
        log.note(Step("rule", "supplied text", self._beside))
        return (*shown, self._beside)

    def _model_calls(
        self, model: ChatModel | None, price: Price | None, log: Log, key: CallKey, options: tuple[str, ...] = ()
    ) -> ModelCalls:
        shared = self._shared
        return ModelCalls(
            model, key, price, options, self.meter, shared.run_meter, log, shared.clock, shared.control.warm
        )

    def _context(self, prompt: Prompt, shown: Parts, key: CallKey, log: Log) -> SolverContext:
        subject, shared = self._subject, self._shared
        image_registry = ImageRegistry((*prompt.images, *prompt.derived))
        by_likelihood = shared.answer == "likelihood" and prompt.kind is Kind.CHOICE
        options = tuple(LETTERS[: len(prompt.choices)]) if by_likelihood else ()
        model = self._model_calls(shared.model, shared.price, log, key, options)
        return SolverContext(
            model=_handle(model),
            tool=_handle(_CallTool(shared, self.meter, log, image_registry, subject, prompt)),
            tools_offered=shared.tools_offered,
            wording=shared.wording,
            shown=shown,
            image_registry=image_registry,
            meter=self.meter,
            log=log,
            frame=shared.frame,
            show=shared.show,
            trust=shared.trust.for_question(subject.unit) if shared.trust else Trust(),
            seed=seed_of(
                seed_of_repetition(shared.seed, key.repetition),
                key.ask,
                prompt.text,
                *(image.image.sha256 for image in prompt.images),
            ),
            labels=self._labels,
            samples=shared.samples,
            prior_accuracy=shared.prior_accuracy,
        )


class _Handle:
    """What a solver holds of the kit's model or tools: an object without attributes."""

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return await _BEHIND[self](*args, **kwargs)


_BEHIND: WeakKeyDictionary[_Handle, ModelCalls | _CallTool] = WeakKeyDictionary()
"""The wrappers behind the handles, as long as somebody holds these."""


def _handle(call: ModelCalls | _CallTool) -> Any:
    """A new handle to a wrapper, to be called as the wrapper is."""
    handle = _Handle()
    _BEHIND[handle] = call
    return handle


def _following(ctx: SolverContext) -> CallKey:
    """The key of the next call after those that were made with a kit."""
    asked = _BEHIND[cast("_Handle", ctx.model)]
    assert isinstance(asked, ModelCalls)  # noqa: S101 - `_context` put it there
    return asked.key


@dataclass
class _CallTool:
    """The kit's tools: budget, arguments, images by name, the control in force, and the trace."""

    _shared: Resources
    _meter: Meter
    _log: Log
    _image_registry: ImageRegistry
    _subject: Subject
    _prompt: Prompt
    _last: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the last call has been written down."""

    def __post_init__(self) -> None:
        self._last.set()

    async def __call__(self, name: str, images: Sequence[str], args: Mapping[str, Json]) -> Finding:
        self._meter.take_tool_call()
        # Calls that run side by side are written down, and their pictures named, in the order of the calls.
        before, self._last = self._last, asyncio.Event()
        done, started = self._last, self._shared.clock()
        spent, faults = CallTime(self._meter.seconds_left()), 0
        call: dict[str, Json] = {"images": list(images), "args": dict(args)}
        try:
            with span(ToolCallBegun(name, images, args)) as ended:
                found = await self._find(name, images, args, spent)
                ended(ToolAnswered(found, self._refs(images), spent.cached))
            await before.wait()
            named = tuple(self._image_registry.add(image, image.parent or images[0]) for image in found.images)
            told: dict[str, Json] = {"data": found.data, "confidence": found.confidence}
            told |= {"backend": found.backend, "version": found.version}
            self._log.note(Step("tool", name, found.text, spent.busy, None, {**call, **told}, named))
            return replace(found, images=named)
        except ToolError as error:
            faults = int(error.fault in LOST)
            await before.wait()
            self._log.note(Step("tool", name, str(error), spent.busy, error.fault, call))
            logger.info("%s: tool %s: %s (%s)", self._subject.id, name, error, error.fault)
            if error.trace:
                traces.info("%s: tool %s\n%s", self._subject.id, name, error.trace.rstrip())
            raise
        finally:
            used = timed(Usage(tool_faults=faults), spent, self._shared.clock() - started)
            self._meter.used = self._meter.used + used
            done.set()

    def _refs(self, images: Sequence[str]) -> tuple[ImageRef, ...]:
        return tuple(self._image_registry.get(image) for image in images)

    async def _find(self, name: str, images: Sequence[str], args: Mapping[str, Json], spent: CallTime) -> Finding:
        refs = self._refs(images)
        # What is offered need be no file of tools/.
        tool = next((one for one in self._shared.tools_offered if one.card.name == name), None) or loaded_tool(name)
        if tool is None:
            # The first use of a tool imports it, and every other question would wait for that.
            tool = await asyncio.to_thread(find_tool, name)
        parsed = tool.parse(args)
        if spent.rest is not None and spent.rest <= 0:
            raise ToolError(f"{name}: the question's budget of seconds is spent", Fault.TIMEOUT)
        control, seed = self._shared.control, self._shared.seed
        return await control.find(tool, parsed, refs, self._subject, self._prompt, seed, spent)


LOST = (Fault.TOOL_ERROR, Fault.TIMEOUT)
"""Faults after which a question is answered without the tool; the others are wrong calls of the solver's own, or of a
tool that has no weights here."""


def loaded_tool(name: str) -> Tool | None:
    """The tool of that name where its module has been imported, without a look at the disk; else None."""
    found = loaded("tools", name)
    return found if isinstance(found, Tool) else None


def find_tool(name: str) -> Tool:
    """The tool of that name. Raises `ToolError` where there is none, with those there are, or it has no sound code."""
    known = names("tools")
    if name not in known:
        raise ToolError(f"there is no tool {name!r}; the tools are: {', '.join(known)}", Fault.UNKNOWN_TOOL)
    try:
        tool: Tool = load("tools", name)
    except Exception as error:
        # Whatever a tool's own modules do when they are imported costs what the tool would have said, and no more.
        own = error.__cause__ or error
        raise ToolError(f"{name} cannot be imported: {type(own).__name__}: {own}") from error
    return tool


COUNTS = tuple(each.name for each in fields(Usage) if each.name != "cost_usd")


def _difference(after: Usage, before: Usage) -> Usage:
    cost = None if after.cost_usd is None else after.cost_usd - (before.cost_usd or 0.0)
    return Usage(**{name: getattr(after, name) - getattr(before, name) for name in COUNTS}, cost_usd=cost)
