"""Reconstructs the exact messages about a prompt: the solver runs again, with model and tools replayed from the trace.

    enactment = Enactment.of(run, "controller")
    conversation = await enactment.conversation(question, attempt, ask=0)

A trace holds what the model and the tools returned, but not what the model was shown. The messages are recreated by the
same code as in the run: the solver, its texts and the schemas of its tools, each compared with the manifest. Every step
that the solver takes must be the next of its kind in the trace, and none may be left over.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from hybrid.config import Limits, ModelSettings
from hybrid.core.errors import BudgetSpent, HybridError, NoBackend, ToolError, UsageError
from hybrid.core.format_lines import REASONING, Wording
from hybrid.core.images import ImageStore, home
from hybrid.core.machine_paths import hide_paths_in_step
from hybrid.core.messages import AssistantMessage, End, Message, ToolCall, UnreadableCall, images_of
from hybrid.core.repetitions import word_of
from hybrid.core.types import Attempt, Fault, Finding, ImageRef, Json, Outcome, Prompt, Question, Reasoning, Step, Usage
from hybrid.exporting.base import ExportedRun
from hybrid.models.images import arrange
from hybrid.models.toolspec import all_published
from hybrid.plugins.prompt_texts import text_hash
from hybrid.plugins.registry import load, load_solver
from hybrid.plugins.weights import ABSENT
from hybrid.serving.sources import CODE_DIGITS, code_of
from hybrid.solving.ask_model import PICTURE_UNCOUNTED
from hybrid.solving.call_tool import SHOWN
from hybrid.solving.coordinates import CoordinateSystem, frame_named
from hybrid.solving.images import ImageRegistry, Parts, shown_parts
from hybrid.solving.solver import Log, Meter, Solver, SolverContext
from hybrid.solving.styles import PLAIN, Style, style_of
from hybrid.solving.trust import Trust, TrustFile, read_trust
from hybrid.tool import Tool, json_of_args

if TYPE_CHECKING:
    from hybrid.tool import Args
from hybrid.version import __version__


class LeftOut(HybridError):
    """A conversation cannot be written.

    The message is the reason, worded so that equal reasons of different conversations can be counted.
    """


UNLIKE = "the trace does not reproduce the messages"


@dataclass(frozen=True)
class Conversation:
    """The last request about a prompt, as it was sent, and the reply; pictures of tools follow the tools' results."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]  # The tools that were offered until the last turn
    sent: Mapping[str, str]  # Maps the sha256 of an image to that of the copy sent to the model, if it differs

    @property
    def turns(self) -> int:
        """Number of model messages."""
        return sum(isinstance(message, AssistantMessage) for message in self.messages)


@dataclass
class _Trace:
    """The steps about a prompt that have not been replayed yet."""

    steps: list[Step]

    def take(self, kind: str, fits: Callable[[Step], bool] = lambda step: True) -> Step:
        """Remove and return the next step of the kind that fits. Raises `LeftOut` if there is none."""
        for place, step in enumerate(self.steps):
            if step.kind == kind and fits(step):
                return self.steps.pop(place)
        raise LeftOut(UNLIKE)


@dataclass
class _MetLog(Log):
    """Receives the steps that the solver logs itself, each of which must be in the trace."""

    trace: _Trace = field(default_factory=lambda: _Trace([]))

    def note(self, step: Step) -> None:
        """Match one step with the trace."""

        def facts(candidate: Step) -> str:
            return _json([candidate.name, candidate.text, candidate.fault, candidate.data])

        self.trace.take(step.kind, lambda candidate: facts(candidate) == facts(hide_paths_in_step(step)))


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)


@dataclass
class _TracedModel:
    """Replays the model's replies, and records its requests."""

    trace: _Trace
    settings: ModelSettings
    style: Style
    call_count: int = 0
    messages: tuple[Message, ...] = ()
    tools: tuple[Tool, ...] = ()
    sent: dict[str, str] = field(default_factory=dict)

    async def __call__(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> AssistantMessage:
        step = self.trace.take("model")
        if step.fault is not None:
            raise BudgetSpent(step.text)
        going, tool_specs = self.style.outgoing(messages, tools)
        arranged = arrange(going, self.settings.pictures_kept, can_recall=bool(self.settings.keep_pictures))
        if arranged != arrange(going, len(images_of(going)), can_recall=bool(self.settings.keep_pictures)):
            raise LeftOut("requests left out older pictures (--keep-pictures)")
        sent: Any = step.data.get("images_sent")
        if sent is not None:
            image_hashes = [(ref.name, ref.image.sha256) for ref in images_of(arranged)]
            if image_hashes != [(image["name"], image["sha256"]) for image in sent]:
                raise LeftOut(UNLIKE)
            self.sent |= {image["sha256"]: image["sent_sha256"] for image in sent}
        data: Mapping[str, Any] = step.data
        calls = []
        for call in data.get("tool_calls", ()):
            self.call_count += 1
            fields = {"name" if key == "tool" else key: value for key, value in call.items()}
            calls.append(ToolCall(f"call_{self.call_count}", **fields))
        unreadable = data.get("unreadable")
        reply = AssistantMessage(
            step.text,
            tuple(calls),
            finish_reason=data.get("finish_reason"),
            # Older runs recorded a finish reason only if the reply was cut.
            end=End(data.get("end", End.CUT if "finish_reason" in data else End.ENDED)),
            reasoning=str(data.get("reasoning", "")),
            unreadable=None if unreadable is None else UnreadableCall(**unreadable),
        )
        self.messages, self.tools = (*arranged, reply), self.tools or tuple(tool_specs)
        return reply


@dataclass
class _TracedTools:
    """Replays the outputs and the errors of the tools."""

    trace: _Trace
    meter: Meter
    images: ImageRegistry

    async def __call__(self, name: str, images: Sequence[str], args: Mapping[str, Json] | Args) -> Finding:
        self.meter.take_tool_call()
        call = _json([name, list(images), json_of_args(args)])
        step = self.trace.take(
            "tool", lambda candidate: _json([candidate.name, *map(candidate.data.get, ("images", "args"))]) == call
        )
        message = str(step.data.get(SHOWN, step.text))
        if step.fault is not None:
            raise NoBackend(message) if step.fault is Fault.ABSENT else ToolError(message, step.fault)
        of = images[0] if images else f"img:{name}"
        if any(self.images.add(ref, ref.parent or of) != ref for ref in step.images):
            raise LeftOut(UNLIKE)
        return Finding(message, {}, 0.0, backend="", version="", images=step.images)


@dataclass(frozen=True)
class Enactment:
    """Everything that, in addition to the traces, determines what a solver sends to its model."""

    run: ExportedRun
    solver: Solver
    tools: tuple[Tool, ...]
    frame: CoordinateSystem
    wording: Wording
    trust: TrustFile | None
    style: Style

    @classmethod
    def of(cls, run: ExportedRun, name: str) -> Enactment:
        """Return the enactment of a solver that offers its model tools.

        Raises:
            UsageError: the code, the texts, a tool or the trust file has changed since the run, or the run asked
                in a way that gives no single conversation.
        """
        identity, manifest = run.identity, run.folder.manifest
        facts = manifest["solvers"][name]
        solver = load_solver(word_of(name))
        levels: tuple[Reasoning, ...] = get_args(Reasoning)
        reasoning = next((word for word in levels if REASONING[word] == identity["prompts"].get("reasoning")), None)
        wording = Wording(bool(identity["prompts"]["format_line"]), reasoning)
        if int(identity.get("samples", 1)) > 1:
            raise UsageError(f"{run.folder.path}: with --setting samples a vote answered, not a single conversation")
        same = (
            identity.get("hybrid") == __version__
            and facts["texts"] == text_hash(solver.texts)
            and identity["prompts"]["format_lines"] == wording.sha256
        )
        if not same:
            raise UsageError(f"{run.folder.path}: the texts of {name} have changed since the run; {_again(run)}")
        style = _style(run)
        # The coordinate frame of the model, as declared or probed.
        frame = style.frame_name(identity["frame"], identity["model"].get("model"))
        frame = manifest.get("probed_frame", "pixels") if frame == "probe" else frame
        system = replace(frame_named(frame), sent_pixels=identity["model"].get("max_pixels"))
        return cls(run, solver, _load_offered_tools(run, name), system, wording, _trust(run), style)

    async def conversation(self, question: Question, attempt: Attempt, ask: int) -> Conversation:
        """Reconstruct the conversation about one prompt of an attempt. Raises `LeftOut`."""
        exchange = attempt.exchanges[ask]
        if exchange.reply.outcome is not Outcome.ANSWERED:
            raise LeftOut(f"ended without an answer ({exchange.reply.outcome.value})")
        steps = exchange.reply.steps
        if any(step.kind == "tool" and isinstance(step.data.get("args"), str) for step in steps):
            raise LeftOut("a tool call that is not a JSON object")
        # A note about a server's token count is not part of the conversation.
        trace = _Trace([hide_paths_in_step(step) for step in steps if step.name != PICTURE_UNCOUNTED])
        try:
            # The budget of tool calls includes the calls about earlier prompts of the question.
            spent = sum((exchange.reply.usage for exchange in attempt.exchanges[:ask]), Usage())
            model = await self._enacted(exchange.prompt, question, spent, trace)
        except (BudgetSpent, ToolError, KeyError, TypeError) as error:
            raise LeftOut(UNLIKE) from error
        last = model.messages[-1] if model.messages else None
        if trace.steps or not isinstance(last, AssistantMessage) or last.text.strip() != exchange.reply.text:
            raise LeftOut(UNLIKE)
        sent = {original: copy for original, copy in model.sent.items() if original != copy}
        return Conversation(model.messages, model.tools, sent)

    async def _enacted(self, prompt: Prompt, question: Question, used: Usage, trace: _Trace) -> _TracedModel:
        identity = self.run.identity
        dressed = self.style.dressed(self.tools)
        names = bool(identity["image_labels"] or self.solver.names_images) and not all_published(dressed)
        images = ImageRegistry((*prompt.images, *prompt.derived))
        # Lift the limits of cost, tokens and seconds: a conversation that they ended has no answer and is not exported.
        limits = replace(Limits(**identity["limits"]), seconds=None, tokens=None, cost_usd=None)
        meter = Meter(limits, used)
        settings = {key: identity["model"][key] for key in ("keep_images", "keep_pictures") if key in identity["model"]}
        model = _TracedModel(trace, ModelSettings(**settings), self.style)
        ctx = SolverContext(
            model=model,
            tool=_TracedTools(trace, meter, images),
            tools_offered=dressed,
            wording=self.wording,
            shown=await self._render_prompt(prompt, trace, labelled=names),
            image_registry=images,
            meter=meter,
            log=_MetLog(trace=trace),
            trust=self.trust.for_question(question.unit, question.images) if self.trust else Trust(),
            frame=self.frame,
            show=identity["show"],
            seed=0,
            labels=names,
            style=self.style,
        )
        await self.solver.ask(prompt, ctx)
        return model

    async def _render_prompt(self, prompt: Prompt, trace: _Trace, *, labelled: bool) -> Parts:
        """Return the prompt in the form that the model got; captions and supplied texts come from the trace."""

        async def describe(image: ImageRef) -> str:
            return trace.take("rule", lambda step: step.name == "caption" and step.data.get("image") == image.name).text

        def supplied(step: Step) -> bool:
            return step.kind == "rule" and step.name == "supplied text"

        form, joint = self.solver.images or self.run.identity["images"], self.run.benchmark.card.joint
        store = ImageStore(home() / "images")
        parts = await shown_parts(prompt, form, describe, store, labelled=labelled, joint=joint)
        return (*parts, trace.take("rule", supplied).text) if any(map(supplied, trace.steps)) else parts


def _again(run: ExportedRun) -> str:
    """Describe how to get the code of a run."""
    commits = [command.get("commit") for command in run.folder.manifest.get("commands", ())]
    commit = next((commit for commit in reversed(commits) if commit), None)
    return (
        "export it with the code that made it "
        f"({f'commit {commit}' if commit else 'its manifest does not name a commit'})"
    )


def _load_offered_tools(run: ExportedRun, name: str) -> tuple[Tool, ...]:
    """Return the tools that the solver offered, in order. Raises `UsageError` for a tool that has changed."""
    facts: Mapping[str, Any] = run.folder.manifest["solvers"][name]["tools"]
    named_tools = run.folder.manifest.get("options", {}).get("tools") or ()
    tool_list = []
    for tool_name in run.identity["tools_offered"] or ():
        fact = facts.get(tool_name)
        # A tool that could not answer was offered only if the user had named it.
        if fact is None or (fact["backend"] == ABSENT and tool_name not in named_tools):
            continue
        try:
            tool: Tool = load("tools", tool_name)
        except UsageError as error:
            raise UsageError(f"{run.folder.path}: the schema of {tool_name} cannot be loaded: {error}") from error
        if code_of(tool)[:CODE_DIGITS] != fact["code"]:
            raise UsageError(
                f"{run.folder.path}: the tool {tool_name}, and so its schema, may be another than in the run; "
                f"{_again(run)}"
            )
        tool_list.append(tool)
    return tuple(tool_list)


def _style(run: ExportedRun) -> Style:
    """Return the style of the tools. Raises `UsageError` if its file is missing or has changed."""
    fact = run.identity.get("tool_style")
    if fact is None or fact["name"] == PLAIN.name:
        return PLAIN
    style_option = run.folder.manifest.get("options", {}).get("tool-style")
    style = style_of(style_option if style_option and style_option.endswith(".toml") else fact["name"], None)
    if style.sha256 != fact["sha256"]:
        raise UsageError(
            f"{run.folder.path}: the file of --tool-style {style.name} has changed since the run; {_again(run)}"
        )
    return style


def _trust(run: ExportedRun) -> TrustFile | None:
    """Return the trust file, which the system message quotes. Raises `UsageError` if it is missing or has changed."""
    recorded = run.identity.get("trust")
    if recorded is None:
        return None
    path = run.folder.manifest.get("options", {}).get("trust")
    trust = read_trust(Path(path)) if path else None
    if trust is None or trust.sha256 != recorded:
        raise UsageError(
            f"{run.folder.path}: its trust file, which the system message quotes, is missing or has changed"
        )
    return trust
