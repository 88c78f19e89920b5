"""Probe questions that a run asks its model once, before the first question; the results go into the manifest.

    run = await ask_before(run, state, tell)

The probes test whether the model behind a server sees images (a server may accept images and not pass them on); whether
several pictures arrive in order; whether the model's calls can be parsed (a server may leave them in the text); and
whether the model sees a picture in a tool's result, and then keeps its thinking. They also find the model's coordinate
frame, if configured. Models in this process and recordings are only asked for the frame, because what they receive is
known.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from hybrid.config import ModelSettings
from hybrid.config.words import Gate
from hybrid.core.errors import NotRecorded, Outage, UsageError
from hybrid.core.images import PNG
from hybrid.core.messages import AssistantMessage, Message
from hybrid.core.types import Usage
from hybrid.log.manifest import MANIFEST
from hybrid.models.base import AdoptsSettings, CallKey, ChatModel
from hybrid.models.dialects import remedy
from hybrid.models.failures import CHECK, Failure
from hybrid.running.engine import Tell
from hybrid.running.picture_place import PlaceProbe, find_place, with_place
from hybrid.running.probes import (
    ORDER_FROM,
    ORDER_NUMBERS,
    PROBE_NUMBER,
    Calling,
    Chat,
    PictureOrder,
    Sight,
    ToolPicture,
    call_tool,
    frame_of,
    look,
    see_order,
)
from hybrid.running.resolve import ResolvedRun
from hybrid.running.state import CALLING, FRAME, ORDER, SIGHT, TOOL_PICTURE, RunState
from hybrid.solving.budgets import cost_usd
from hybrid.solving.coordinates import frame_named
from hybrid.solving.solver import Solver
from hybrid.solving.styles import BY_MODEL, PLAIN, fitting
from hybrid.tool import Tool

log = logging.getLogger(__name__)

BLIND: Final = "blind model"
# Labels of runs whose model was allowed despite a failed probe.
TOOLLESS: Final = "calls that cannot be read"
BLIND_TOOLS: Final = "pictures of tools not seen"
UNORDERED: Final = "pictures out of order"
# For each result of the probe, the reason why thinking is lost even with the picture inside the tool message.
LOST_BY_SERVER: Final = {
    "lost": "its server, or its template, drops the thinking from every request",
    "unknown": "the server's token counts do not show whether it is kept",
}


async def ask_before(run: ResolvedRun, state: RunState, tell: Tell) -> ResolvedRun:
    """Run the probes that solvers with open questions need; label the run if `--allow` admits a failed probe.

    Returns the run with its coordinate frame. A probe without a reply is skipped, and the questions will show the
    problem.

    Raises:
        UsageError: the model does not see images or pictures of tools, gets them out of order, or its calls cannot be
            parsed, and `--allow` does not admit this; or its coordinate frame cannot be determined.
        ModelRefused: the configuration cannot work.
    """
    model, store = run.resources.model, run.service.store
    if model is None:
        return run
    waiting = [run.solvers[name] for name in run.solvers if run.questions.without(state.solvers[name].finished)]
    showing = [solver for solver in waiting if shows_images(run, solver)]
    offering = [solver for solver in waiting if offers_tools(run, solver)]
    for note in style_notes(run, waiting):
        tell(f"note: {note}")
    sight: Mapping[str, Any] = {}
    if showing:
        # Some servers accept one type of image file and drop another, so use the type of the questions' images.
        kind = next((image.media_type for question in run.sound for image in question.images), PNG)
        sight = await _check(run, model, SIGHT, lambda chat: look(chat, store, kind))
        _refuse_blind(run, model.name, sight)
    if sight.get("verdict") != "blind" and (count := most_separate_pictures(run, showing)) >= ORDER_FROM:
        order = await _check(run, model, ORDER, lambda chat: see_order(chat, store, count))
        _refuse_unordered(run, model.name, order)
        if order.get("verdict") == "refused":
            tell(
                f"note: {model.name}: its server refuses {count} pictures in one message ({order['said']}): "
                "--images concat joins them into one"
            )
    if offering:
        run = await _ask_about_tools(run, model, offering, showing, sight, tell)
    # Probe the model's coordinate frame once per run, then read it from the manifest.
    if run.config.frame != "probe":
        return run
    manifest, sent_pixels = run.folder.manifest, run.config.model_settings.max_pixels
    if FRAME in manifest:
        frame = replace(frame_named(manifest[FRAME]), sent_pixels=sent_pixels)
    else:
        frame = await frame_of(_Metered(run, model), run.service.store, sent_pixels)
        run.folder.write_manifest({**manifest, FRAME: frame.name})
    return replace(run, resources=replace(run.resources, frame=frame))


async def _ask_about_tools(
    run: ResolvedRun,
    model: ChatModel,
    offering: Sequence[Solver],
    showing: Sequence[Solver],
    sight: Mapping[str, Any],
    tell: Tell,
) -> ResolvedRun:
    """Probe whether the model's calls can be read and whether it sees pictures of tools.

    Returns the run with the setting that says where a request contains these pictures.
    """
    tools, store = run.resources.dressed, run.service.store
    shows_pictures = any(solver in showing for solver in offering)
    conversation: list[Message] = []

    async def call(chat: Chat) -> Calling:
        async def record_chat(messages: Sequence[Message], tools: Sequence[Tool], key: CallKey) -> AssistantMessage:
            reply = await chat(messages, tools, key)
            conversation[:] = [*messages, reply]
            return reply

        return await call_tool(record_chat, store, tools, with_pictures=shows_pictures)

    check = await _check(run, model, CALLING, call)
    _report_calling(run, model.name, check, tell)
    if check.get("verdict") != "calls" or not shows_tool_pictures(run) or sight.get("verdict") == "blind":
        return run

    async def see(chat: Chat) -> ToolPicture | Sight:
        if not conversation:
            # The calling probe was made by an earlier command, so its call must be made again.
            await call(chat)
        if not has_calls(conversation[-1]):
            return Sight("unknown", "it called no tool this time")
        settings, style = run.config.model_settings, run.resources.style
        native = settings.tool_calling != "text" and not style.begin
        reads_pictures = PROBE_NUMBER in str(sight.get("said"))
        probe = PlaceProbe(model, chat, settings, store, reads_pictures, native)
        return await find_place(probe, conversation, tools)

    check = await _check(run, model, TOOL_PICTURE, see)
    if check.get("verdict") in ("blind", "refused"):
        _let_in(run, "blind-tools", BLIND_TOOLS, unseen(model.name, check))
    if check.get("verdict") == "unknown":
        tell(f"note: it is unknown whether {model.name} sees pictures of tools: it answered {check['said']!r}")
    for note in _thinking_notes(model.name, check):
        tell(note)
    return _with_settings(run, model, with_place(run.config.model_settings, check))


def _report_calling(run: ResolvedRun, name: str, check: Mapping[str, Any], tell: Tell) -> None:
    """Print a note if the model called no tool. Raises `UsageError` if its calls cannot be read, unless allowed."""
    if check.get("verdict") in ("unreadable", "refused"):
        _let_in(run, "toolless", TOOLLESS, uncalled(name, check["verdict"], check["said"], check["read_from"]))
    if check.get("verdict") == "none":
        tell(f"note: {name} did not call a tool when told to: the tools may have no effect")


def has_calls(message: Message) -> bool:
    """Return whether a message calls a tool."""
    return isinstance(message, AssistantMessage) and bool(message.calls or message.invalid)


def _with_settings(run: ResolvedRun, model: ChatModel, settings: ModelSettings) -> ResolvedRun:
    """Return the run with these model settings, which also apply in other processes."""
    if settings == run.config.model_settings:
        return run
    if isinstance(model, AdoptsSettings):
        model.adopt(settings)
    config = replace(run.config, model_settings=settings)
    return replace(run, resources=replace(run.resources, config=config))


def _refuse_blind(run: ResolvedRun, name: str, sight: Mapping[str, Any]) -> None:
    if sight.get("verdict") == "blind":
        token_counts = f"{sight['input_tokens']} tokens with the picture and {sight['without_image']} without"
        unseeing = f"its reply to a picture of a number was {sight['said']!r}, and its input is {token_counts}"
        more = "Choose a model that takes images, or use --images none"
        _let_in(run, "blind", BLIND, f"--model {name} does not see: {unseeing}. {more}")


def _refuse_unordered(run: ResolvedRun, name: str, order: Mapping[str, Any]) -> None:
    wrong = {"out of order": "reads them in another order", "missing": "does not get all of them"}
    if (mistake := wrong.get(str(order.get("verdict")))) is not None:
        reason = f"--model {name}: of {order['count']} pictures in one message it {mistake} (it said {order['said']!r})"
        _let_in(run, "unordered", UNORDERED, f"{reason}. Use --images concat, which joins them into one picture")


def unseen(name: str, check: Mapping[str, Any]) -> str:
    """Return the reason why pictures of tools are not seen, and the remedy."""
    tokens, without = check.get("input_tokens"), check.get("without_image")
    if check.get("verdict") == "refused":
        reason = f"its server does not accept them ({check['said']})"
        return f"--model {name} gets no pictures of tools: {reason}. Use --show text, which sends only their text"
    counts = f", and its input is {tokens} tokens with the picture and {without} without"
    token_counts = counts if tokens and without else ""
    problem = f"its reply to a picture of a number in a tool's result was {check['said']!r}{token_counts}"
    return f"--model {name} does not see pictures of tools: {problem}. Use --show text, which sends only their text"


def _thinking_notes(name: str, check: Mapping[str, Any]) -> Iterator[str]:
    """Yield notes on the model's thinking before a picture of a tool, unless it is kept without any switch."""
    if check.get("thinking") == "switched":
        yield f"note: {name}: its template keeps the thinking only with {json.dumps(check['switch'])}, which is sent"
    elif check.get("thinking") in ("lost", "unknown"):
        is_lost = "is" if check["thinking"] == "lost" else "may be"
        if check.get("place") == "inside":
            reason = LOST_BY_SERVER[check["thinking"]]
            yield f"note: {name}: its thinking {is_lost} lost at each call of a tool: {reason}"
            return
        yield (
            f"note: {name}: its thinking {is_lost} lost at each picture of a tool: its template drops the thinking "
            "before a user message, and its server does not accept the picture in the tool message"
        )


def before_notes(run: ResolvedRun) -> list[str]:
    """Return notes for a dry run on the probes that the model will be asked first."""
    manifest = run.folder.manifest if (run.folder.path / MANIFEST).is_file() else {}
    waiting = [solver for name, solver in run.solvers.items() if run.open_questions(name)]
    conditions = {
        SIGHT: (shows_images, "the model is first asked whether it sees a small picture: one or two calls"),
        CALLING: (offers_tools, "the model is first told to call a tool, to test if its calls can be parsed: one call"),
        TOOL_PICTURE: (
            lambda run, solver: offers_tools(run, solver) and shows_tool_pictures(run),
            (
                "the model is first asked if it sees a small picture of a tool: one to three calls, or up to eight if "
                "it thinks"
            ),
        ),
        ORDER: (
            lambda run, solver: most_separate_pictures(run, [solver]) >= ORDER_FROM,
            "the model is first asked for the order of small pictures in one message: one to three calls",
        ),
    }
    notes = [
        note
        for key, (when, note) in conditions.items()
        if key not in manifest and any(when(run, solver) for solver in waiting)
    ]
    return [*notes, *style_notes(run, waiting)]


def style_notes(run: ResolvedRun, solvers: Sequence[Solver]) -> Iterator[str]:
    """Yield notes on whether the model gets its tools in the style in which it was trained, if that is known."""
    style, model, tools = run.resources.style, run.config.model, run.resources.tools_offered
    if not tools or not any(solver.offers_tools for solver in solvers):
        return
    fit = fitting(model)
    if run.config.tool_style == BY_MODEL:
        yield f"--tool-style auto: {model} gets its tools in the form {style.name}"
    elif style.is_plain and not fit.is_plain:
        yield (
            f"{model} was trained with tools in the form {fit.name} but gets them in hybrid's form: --tool-style "
            f"{fit.name} uses the form of its training"
        )
    elif not style.is_plain and not style.fits(model):
        hint = f"; its form is {fit.name}" if fit != PLAIN else ""
        yield f"--tool-style {style.name} may not be the form in which {model} was trained{hint}"
    if style.runs and all(tool.card.name != style.runs for tool in tools):
        yield f"--tool-style {style.name} is a form of the tool {style.runs}, which is not offered"


def shows_images(run: ResolvedRun, solver: Solver) -> bool:
    """Return whether a solver shows images to a model behind a server."""
    form = solver.images or run.config.images
    shows = form in ("separate", "concat") or (form == "caption" and run.resources.captioner is None)
    return shows and _asks_server(run, solver)


def offers_tools(run: ResolvedRun, solver: Solver) -> bool:
    """Return whether a solver offers tools to a model behind a server."""
    return solver.offers_tools and bool(run.resources.tools_offered) and _asks_server(run, solver)


def shows_tool_pictures(run: ResolvedRun) -> bool:
    """Return whether a model that calls tools is sent the pictures that they return."""
    # Blank tools also return pictures. For comparison with real tools, these must go to the same place in a request.
    return run.config.show != "text" and run.config.tool_output != "oracle"


def most_separate_pictures(run: ResolvedRun, solvers: Sequence[Solver]) -> int:
    """Return the largest number of pictures in one prompt to a model behind a server; at most `len(ORDER_NUMBERS)`."""
    if not any((solver.images or run.config.images) == "separate" and shows_images(run, solver) for solver in solvers):
        return 0
    return min(len(ORDER_NUMBERS), max((len(question.images) for question in run.sound), default=0))


def _asks_server(run: ResolvedRun, solver: Solver) -> bool:
    model = run.resources.model
    return solver.needs_model and model is not None and bool(model.connection())


class _Metered:
    """The run's model; its usage is counted in the run's meter and in `used`."""

    def __init__(self, run: ResolvedRun, model: ChatModel) -> None:
        self.used = Usage()
        self._run, self._model = run, model

    async def __call__(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> AssistantMessage:
        meter, used = self._run.resources.run_meter, Usage()
        await meter.begin()
        try:
            reply = await self._run.resources.style.chat(self._model, messages, tools, call)
            usage = reply.usage
            used = Usage(
                model_calls=1,
                input_tokens=usage.input_tokens if usage else 0,
                output_tokens=usage.output_tokens if usage else 0,
                cost_usd=cost_usd(usage, self._run.config.model_settings.price),
                uncounted_calls=int(usage is None),
            )
            if usage is None:
                meter.refuse_uncounted(self._model.name, self._run.config.limits)
        finally:
            meter.end(used)
            self.used += used
        return reply


async def _check(
    run: ResolvedRun,
    model: ChatModel,
    key: str,
    probe: Callable[[Chat], Awaitable[Sight | Calling | ToolPicture | PictureOrder]],
) -> Mapping[str, Any]:
    """Return the result of a probe, new or from the manifest; empty if no reply came."""
    manifest = run.folder.manifest
    if key not in manifest:
        chat = _Metered(run, model)
        try:
            result = await probe(chat)
        except (NotRecorded, Outage) as error:
            log.info("the %s of %s is not known: %s", key, model.name, error)
            return {}
        run.folder.write_manifest(manifest | {key: {**asdict(result), "usage": asdict(chat.used)}})
    facts: Mapping[str, Any] = run.folder.manifest[key]
    return facts


def _let_in(run: ResolvedRun, gate: Gate, label: str, wrong: str) -> None:
    """Label the run if `--allow` admits the failed probe. Raises `UsageError` otherwise."""
    if gate not in run.config.allow:
        raise UsageError(f"{wrong}; with --allow {gate}, it is measured anyway, and labelled")
    manifest = run.folder.manifest
    if label not in manifest["labels"]:
        run.folder.write_manifest({**manifest, "labels": [*manifest["labels"], label]})


def uncalled(name: str, verdict: str, reply: str, dialect: str) -> str:
    """Return the reason why a model's calls cannot be used, and the remedy."""
    if verdict == "refused":
        return f"--model {name}: {CHECK[Failure.TOOLS]} ({reply})"
    return f"--model {name} writes tool calls that cannot be read ({dialect}: {reply!r}): {remedy(dialect)}"
