"""One question and one solver: creates the context for each prompt and collects its steps.

    session = Session(question, solver, resources)
    exchanges = await benchmark.dialogue(question.without_target(), session.ask)

The identity of the question stays inside the session, and its target never enters: a session only keeps the id, the
unit and the images. Every model and tool call goes through a wrapper that checks the budget, counts the usage and logs
a step; a solver cannot bypass it. A context holds opaque handles of the wrappers, so that nothing reachable from it
(attributes, containers, closures) leads to an id, a recording or another question.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, cast
from weakref import WeakKeyDictionary

from hybrid.answers.prior_accuracy import PriorAccuracy
from hybrid.config import Price, RunConfig
from hybrid.core.errors import BudgetSpent, HybridError, NotRecorded, ToolError
from hybrid.core.format_lines import Wording
from hybrid.core.images import OUR_JOINT, Joint
from hybrid.core.repetitions import seed_of_repetition
from hybrid.core.timing import Clock
from hybrid.core.types import LETTERS, Fault, ImageRef, Kind, Outcome, Prompt, Question, Reply, Step, Usage
from hybrid.models.base import CallKey, ChatModel, prompt_sha256
from hybrid.models.picture_limits import NO_LIMITS, PictureLimits, limits_of
from hybrid.models.toolspec import all_published
from hybrid.solving.ask_model import ModelCalls
from hybrid.solving.budgets import RunMeter
from hybrid.solving.call_tool import ToolCalls
from hybrid.solving.captions import CAPTION_CALL, CaptionCache, RunCaptions, described
from hybrid.solving.context import NOTHING, SuppliedTexts
from hybrid.solving.controls import AskedQuestion, ToolCondition
from hybrid.solving.coordinates import CoordinateSystem
from hybrid.solving.images import ImageRegistry, Parts, shown_parts
from hybrid.solving.rules import rules_in_order
from hybrid.solving.self_consistency import voted
from hybrid.solving.solver import Log, Meter, Solver, SolverContext
from hybrid.solving.styles import PLAIN, Style
from hybrid.solving.trust import Trust, TrustFile
from hybrid.tool import Tool


@dataclass(frozen=True)
class AskSetup:
    """The configuration and the values resolved from it, shared by all questions and solvers of a run."""

    config: RunConfig
    model: ChatModel | None
    control: ToolCondition
    tools_offered: tuple[Tool, ...] = ()
    trust: TrustFile | None = None
    frame: CoordinateSystem = field(default_factory=CoordinateSystem)
    # How pictures are joined if they are shown as one.
    joint: Joint = OUR_JOINT
    # The model that describes images for captions; None if `model` describes them.
    captioner: ChatModel | None = None
    # The cache of captions; None for a separate cache per prompt.
    captions: CaptionCache | None = None
    # Texts that are shown next to the images.
    context: SuppliedTexts = NOTHING
    # Accuracy of MLLMs and of a guess, from the benchmark's card.
    prior_accuracy: PriorAccuracy = field(default_factory=PriorAccuracy)
    run_meter: RunMeter = field(default_factory=RunMeter)
    # Clock that times model and tool calls.
    clock: Clock = time.monotonic
    style: Style = PLAIN

    @cached_property
    def dressed(self) -> tuple[Tool, ...]:
        """The offered tools in the style for the model, created once because their schemas are cached by object."""
        return self.style.dressed(self.tools_offered)

    @cached_property
    def picture_limits(self) -> PictureLimits:
        """Picture limits of the model's server, from its name, its address, the style and the frame."""
        resizing = self.frame.resizing
        factor = resizing.factor if resizing is not None else self.style.factor
        return limits_of(self.config.model, self.config.model_settings, factor)

    @property
    def wording(self) -> Wording:
        """The lines at the end of a prompt."""
        return Wording(self.config.sends_format_line, self.config.reasoning)


def seed_of(*parts: object) -> int:
    """Return a seed in 0..2^63-1 from anything with a stable string form."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


# Maps the type of an error that ends a solver's work on a prompt to the outcome.
OUTCOME_OF_ERROR: Mapping[type[HybridError], Outcome] = {
    NotRecorded: Outcome.NOT_RECORDED,
    BudgetSpent: Outcome.BUDGET,
    ToolError: Outcome.TOOL_FAULT,
}


class Session:
    """A question for one solver: the budgets cover all of its prompts, which are numbered from 0.

    `name` is the solver's name in the run; it distinguishes its model calls from those of other solvers.
    """

    def __init__(self, question: Question, solver: Solver, resources: AskSetup, name: str = "") -> None:
        self._name = name
        self._subject = AskedQuestion(question.id, question.unit, question.images)
        self._beside = resources.context.of(question.id)
        self._solver = solver
        self._shared = resources
        self._asks = 0
        self.meter = Meter(resources.config.limits)

    async def ask(self, prompt: Prompt) -> Reply:
        """Have the solver answer one prompt. Raises `Outage`; errors of `OUTCOME_OF_ERROR` become an outcome."""
        log, usage_before, config = Log(), self.meter.used, self._shared.config
        try:
            with rules_in_order(config.tools, config.objects.tools.values()):
                reply = await self._reply(prompt, log)
        except tuple(OUTCOME_OF_ERROR) as error:
            outcome = next(end for kind, end in OUTCOME_OF_ERROR.items() if isinstance(error, kind))
            log.note(Step("rule", outcome.value, str(error)))
            reply = Reply("", outcome)
        unreadable = int(any(step.fault is Fault.UNREADABLE_CALL for step in log.steps))
        usage = replace(_difference(self.meter.used, usage_before), unreadable=unreadable)
        return replace(reply, usage=usage, steps=tuple(log.steps))

    async def ctx(self, prompt: Prompt) -> SolverContext:
        """Return the next prompt's context, for callers that run a solver's steps themselves; its `log` has the steps.

        If images are described, raises what a model call raises.
        """
        log = Log()
        return self._context(prompt, *await self._opened(prompt, log), log)

    async def _opened(self, prompt: Prompt, log: Log) -> tuple[Parts, CallKey]:
        """Return the next prompt as shown to the model, and the key of its first call."""
        key = CallKey(self._subject.id, self._asks, 0, prompt_sha256(prompt.text), self._name)
        self._asks += 1
        if not self._solver.needs_model:
            return prompt.parts, key
        # Convert the images to the chosen form, and add the supplied text.
        shared = self._shared
        captioner = shared.captioner or shared.model
        cache, name = shared.captions or RunCaptions(), captioner.name if captioner is not None else ""
        settings = shared.config.model_settings if shared.captioner is None else shared.config.captioner_settings

        async def describe(image: ImageRef) -> str:
            calls = Log()
            ask = self._model_calls(captioner, settings.price, calls, CallKey(CAPTION_CALL))
            try:
                return await described(image, ask, cache, name, calls)
            finally:
                # The caption's own step contains the model's text, so keep only the steps of empty replies, of refusals
                # and of timeouts.
                for step in calls.steps:
                    if step.kind != "model" or step.fault is not None:
                        log.note(step)

        form, store = self._solver.images or shared.config.images, shared.control.service.store
        parts = await shown_parts(prompt, form, describe, store, labelled=self._labels, joint=shared.joint)
        if self._beside is None:
            return parts, key
        log.note(Step("rule", "supplied text", self._beside))
        return (*parts, self._beside), key

    async def _reply(self, prompt: Prompt, log: Log) -> Reply:
        """Return the solver's reply; if the solver is sampled, the elected reply. Each sample has its own context."""
        parts, key = await self._opened(prompt, log)
        if self._solver.runs_own_tools:
            ctx = self._context(prompt, parts, key, log)
            # The agent calls its own model, whose tokens cost the same as those of the run's model. The same budgets
            # apply as in `ModelCalls`, but all calls for a prompt count as one call, because their usage is known only
            # at the end.
            self.meter.check()
            await self._shared.run_meter.begin()
            usage_before = self.meter.used
            try:
                reply = await self._solver.ask(prompt, ctx)
            finally:
                used, price = _difference(self.meter.used, usage_before), self._shared.config.model_settings.price
                if price is not None and used.model_calls > used.uncounted_calls:
                    cost = price.of(used.input_tokens, used.output_tokens, used.cached_tokens)
                    used = replace(used, cost_usd=cost)
                    self.meter.used += Usage(cost_usd=cost)
                self._shared.run_meter.end(used)
            if used.uncounted_calls:
                self._shared.run_meter.refuse_uncounted(self._name, self.meter.limits)
            return reply
        if self._solver.samples_itself or not self._solver.needs_model:
            return await self._solver.ask(prompt, self._context(prompt, parts, key, log))

        async def once() -> Reply:
            # Calls are numbered across samples, so that each has its own identity and seed.
            nonlocal key
            ctx = self._context(prompt, parts, key, log)
            try:
                return await self._solver.ask(prompt, ctx)
            finally:
                # Continue numbering after the calls that were made in this context.
                calls = _WRAPPED[cast("_Opaque", ctx.model)]
                assert isinstance(calls, ModelCalls)  # noqa: S101 - `_context` has set it
                key = calls.key

        return (await voted(prompt, self._shared.config.samples, once, log)).reply

    @property
    def _labels(self) -> bool:
        """Whether the model is shown each image under its name."""
        shared = self._shared
        if shared.style.runs and self._solver.offers_tools and all_published(shared.dressed):
            # The style numbers the images itself, so hybrid's names would be a second numbering.
            return False
        return shared.config.image_labels or self._solver.names_images

    def _model_calls(
        self, model: ChatModel | None, price: Price | None, log: Log, key: CallKey, options: tuple[str, ...] = ()
    ) -> ModelCalls:
        shared = self._shared
        return ModelCalls(
            model=model,
            key=key,
            price=price,
            options=options,
            meter=self.meter,
            run_meter=shared.run_meter,
            log=log,
            clock=shared.clock,
            load_tools=shared.control.warm,
            style=shared.style,
        )

    def _tool_calls(self, prompt: Prompt, image_registry: ImageRegistry, log: Log) -> ToolCalls:
        shared, config = self._shared, self._shared.config
        shows = self._solver.runs_own_tools or (self._solver.needs_model and config.show != "text")
        return ToolCalls(
            control=shared.control,
            tools_offered=shared.tools_offered,
            seed=config.seed,
            meter=self.meter,
            log=log,
            image_registry=image_registry,
            subject=self._subject,
            prompt=prompt,
            clock=shared.clock,
            overlays=shows or config.overlays,
            frame=shared.frame if self._solver.needs_model else CoordinateSystem(),
            limits=shared.picture_limits if shows else NO_LIMITS,
            max_pixels=config.model_settings.max_pixels,
        )

    def _context(self, prompt: Prompt, parts: Parts, key: CallKey, log: Log) -> SolverContext:
        subject, shared = self._subject, self._shared
        pictures = (ref.image.sha256 for ref in prompt.images)
        image_registry = ImageRegistry((*prompt.images, *prompt.derived))
        by_likelihood = shared.config.answer == "likelihood" and prompt.kind is Kind.CHOICE
        options = tuple(LETTERS[: len(prompt.choices)]) if by_likelihood else ()
        model = self._model_calls(shared.model, shared.config.model_settings.price, log, key, options)
        tools = self._tool_calls(prompt, image_registry, log)
        return SolverContext(
            model=_Opaque(model),
            tool=_Opaque(tools),
            tools_offered=shared.dressed,
            wording=shared.wording,
            shown=parts,
            image_registry=image_registry,
            meter=self.meter,
            log=log,
            frame=shared.frame,
            show=shared.config.show,
            trust=shared.trust.for_question(subject.unit, subject.images) if shared.trust else Trust(),
            seed=seed_of(seed_of_repetition(shared.config.seed, key.repetition), key.ask, prompt.text, *pictures),
            labels=self._labels,
            samples=shared.config.samples,
            prior_accuracy=shared.prior_accuracy,
            style=shared.style,
        )


class _Opaque:
    """A solver's handle on its model or tools: an object without attributes."""

    def __init__(self, wrapped: ModelCalls | ToolCalls) -> None:
        _WRAPPED[self] = wrapped

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return await _WRAPPED[self](*args, **kwargs)


# The wrappers behind the handles, as long as the handles are referenced.
_WRAPPED: WeakKeyDictionary[_Opaque, ModelCalls | ToolCalls] = WeakKeyDictionary()


COUNTS = tuple(field.name for field in fields(Usage) if field.name != "cost_usd")


def _difference(later: Usage, earlier: Usage) -> Usage:
    cost = None if later.cost_usd is None else later.cost_usd - (earlier.cost_usd or 0.0)
    return Usage(**{name: getattr(later, name) - getattr(earlier, name) for name in COUNTS}, cost_usd=cost)
