"""What the findings of a conversation say about the question: right, wrong, nothing, or nobody can tell.

    heard(scored)["val_Jigsaw_1"].finding          # "right"

For every question that a solver answered its steps are read, and the rule that the specialist alone follows
(`tools/rules/`) is run once more on what the tools said there. No tool runs: a call of the rule is answered with the
finding of a recorded call that asked the same (`as_asked`), the last one where there are several, and a call that
nobody made has nothing to say. What the rule then answers is scored like any reply. Where a solver ran the rule itself
and its steps hold the testimony, that is taken. `docs/evidence.md` says what this can and cannot tell.

What was made of a line is kept in memory as long as the line is the same, so that several sections, and pages that
are refreshed, read it once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Literal, TypeVar

from hybrid.benchmarks.base import AS_PAPERS, Benchmark
from hybrid.config import Limits
from hybrid.errors import DataError, NoBackend, NotRecorded, ToolError, UsageError
from hybrid.log.attempts import Recorded
from hybrid.messages import AssistantMessage, Message
from hybrid.prompts import Wording
from hybrid.registry import load, names
from hybrid.scoring.groups import is_imported
from hybrid.scoring.score import Scored
from hybrid.scoring.tally import where_raised
from hybrid.scoring.traces import TracedCall, calls_of
from hybrid.solving.coordinates import CoordinateSystem
from hybrid.solving.image_registry import ImageRegistry
from hybrid.solving.solver import CallTool, Log, Meter, SolverContext
from hybrid.solving.trust import Trust
from hybrid.tool import Tool
from hybrid.types import Attempt, Box, Exchange, Fault, Finding, Json, Outcome, Prompt, Question, Reply

Verdict = Literal["right", "wrong", "none", "unread"]
"""Of the answer that the findings come to. `none`: they come to no answer. `unread`: nobody can tell what they say."""

T = TypeVar("T")

VERDICTS: tuple[Verdict, ...] = ("right", "wrong", "none", "unread")

NO_TRACE = "there is no trace"
DAMAGED = "the trace cannot be read"
GRADED = "such answers are graded, and neither right nor wrong"

SAME_BOX = 0.75
"""Overlap over union from which two boxes are one: a model writes coordinates with few digits."""
LABELS = "labels"
"""The argument of a tool that looks for drawn letters, by their letters."""
NAMES = "names"
"""The argument of a tool that looks for things, by their names: what it finds is told by name."""


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call of a question, without what was said."""

    tool: str
    fault: Fault | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Heard:
    """What was heard from the tools in a question's conversation."""

    calls: tuple[Called, ...]
    """Over all asks, in order."""
    to_the_point: bool
    """Whether one of the calls, however it ended, was of a tool that the rule for its ask may ask."""
    finding: Verdict
    answer: str | None = None
    """As scored, where the findings come to one."""
    unread: str | None = None
    """Why nobody can tell what they say."""

    @property
    def no_trace(self) -> bool:
        """Whether not even the calls are known."""
        return self.unread in (NO_TRACE, DAMAGED)


def heard(scored: Scored) -> Mapping[str, Heard]:
    """What was heard in every question that a solver answered and that did not fail, by id.

    Without steps (predictions that were imported) it is `unread`. Empty for a solver without a run.
    """
    if scored.folder is None:
        return {}
    benchmark: Benchmark = load("hybrid.benchmarks", scored.benchmark)
    recorded = None if is_imported(scored) else scored.folder.recorded(scored.recorded)
    kept = _kept(str(scored.folder.path.resolve()), scored.recorded)

    async def all_of() -> dict[str, Heard]:
        found = {}
        for score in scored.scores:
            if score.outcome.failed:
                continue
            if recorded is None or score.id not in recorded.by_id:
                found[score.id] = Heard((), False, "unread", unread=NO_TRACE)
                continue
            stamp, before = hash(recorded.line(score.id)), kept.get(score.id)
            if before is None or before[0] != stamp:
                question = scored.questions[score.id]
                # What was never asked has failed.
                assert isinstance(question, Question)  # noqa: S101
                before = kept[score.id] = (stamp, await _heard(recorded, benchmark, question))
            found[score.id] = before[1]
        return found

    return _finished(all_of())


def _finished(work: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns, also for a caller that is itself run by an event loop of this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


@lru_cache(maxsize=64)
def _kept(run: str, solver: str) -> dict[str, tuple[int, Heard]]:
    """What was made of the lines of a solver of a run, by id, with the hash of the line."""
    del run, solver
    return {}


async def _heard(recorded: Recorded, benchmark: Benchmark, question: Question) -> Heard:
    try:
        attempt = recorded.by_id[question.id]
    except DataError:
        return Heard((), False, "unread", unread=DAMAGED)
    try:
        return await hear(benchmark, question, attempt)
    # A rule or a scorer that cannot live with one trace costs this question, and no other.
    except Exception as error:
        return Heard(_called(attempt), False, "unread", unread=f"the rule cannot be run: {where_raised(error)}")


async def hear(benchmark: Benchmark, question: Question, attempt: Attempt) -> Heard:
    """What the findings of one attempt, as its steps have them, say about its question.

    Asks of another kind than the question (ActiView's for parts of a picture) keep the reply that the conversation
    went on with; every ask of its own kind is answered by the rule, each from what was found in that ask: the model
    did not see any other.
    """
    calls, to_the_point = _called(attempt), any(map(_to_the_point, attempt.exchanges))
    if not calls:
        return Heard((), False, "none")
    own = [exchange for exchange in attempt.exchanges if exchange.prompt.kind is question.kind]
    if all(exchange.prompt.route not in rules() and _specialist_answer(exchange) is None for exchange in own):
        routes = ", ".join(dict.fromkeys(repr(exchange.prompt.route) for exchange in own))
        return Heard(calls, False, "unread", unread=f"there is no rule for {routes or 'its asks'}")
    said = [
        replace(exchange, reply=await _said_by_rule(exchange)) if exchange.prompt.kind is question.kind else exchange
        for exchange in attempt.exchanges
    ]
    score = benchmark.score(question, said, AS_PAPERS)
    if score.answer is None:
        return Heard(calls, to_the_point, "none")
    if score.correct is None:
        return Heard(calls, to_the_point, "unread", score.answer, GRADED)
    return Heard(calls, to_the_point, "right" if score.correct == 1.0 else "wrong", score.answer)


def _called(attempt: Attempt) -> tuple[Called, ...]:
    return tuple(
        Called(step.name, step.fault, step.seconds)
        for exchange in attempt.exchanges
        for step in exchange.reply.steps
        if step.kind == "tool"
    )


def _to_the_point(exchange: Exchange) -> bool:
    rule = rules().get(exchange.prompt.route)
    return rule is not None and any(step.kind == "tool" and step.name in rule.tools for step in exchange.reply.steps)


async def _said_by_rule(exchange: Exchange) -> Reply:
    """What the specialist would have replied to an ask from the findings in it."""
    answer = _specialist_answer(exchange) or await recorded_answer(exchange.prompt, calls_of(exchange))
    return Reply("", Outcome.ABSTAINED) if answer is None else Reply(answer)


def _specialist_answer(exchange: Exchange) -> str | None:
    """The answer of the testimony that the solver itself heard in an ask; None where it wrote none down."""
    for step in reversed(exchange.reply.steps):
        said = step.data.get("specialist_answer")
        if isinstance(said, Mapping) and isinstance(said.get("answer"), str):
            return str(said["answer"])
    return None


# A rule takes a prompt and a context and returns a `SpecialistAnswer` of `tools/rules`, whose answer is read.
Rule = Any


@cache
def rules() -> Mapping[str, Rule]:
    """The specialists' rules by route."""
    return {route: rule for name in names("tools.rules") for route, rule in load("tools.rules", name).items()}


async def recorded_answer(prompt: Prompt, calls: Sequence[TracedCall]) -> str | None:
    """What the rule for a prompt answers from recorded calls; None where it abstains, or where there is no rule."""
    rule = rules().get(prompt.route)
    if rule is None:
        return None
    try:
        specialist_answer = await rule(prompt, _context(prompt, _recorded(rule.tools, calls)))
    except ToolError:
        return None
    return None if specialist_answer is None else str(specialist_answer.answer)


def _recorded(tools: Iterable[str], calls: Sequence[TracedCall]) -> CallTool:
    """Tools that say again what they said in recorded calls, and are not there for anything else."""
    useful = [call for call in reversed(calls) if call.finding is not None and call.tool in tools]

    async def call(name: str, images: Sequence[str], args: Mapping[str, Json]) -> Finding:
        for one in useful:
            if one.tool == name and one.images == tuple(images) and (found := as_asked(one, args)) is not None:
                return found
        raise NoBackend(f"{name} was not asked this")

    return call


async def _no_model(messages: Sequence[Message], tools: Sequence[Tool] = ()) -> AssistantMessage:
    raise NotRecorded("a rule asks no model")


def _context(prompt: Prompt, tool: CallTool) -> SolverContext:
    return SolverContext(
        model=_no_model,
        tool=tool,
        tools_offered=(),
        wording=Wording(),
        shown=prompt.parts,
        image_registry=ImageRegistry((*prompt.images, *prompt.derived)),
        meter=Meter(Limits()),
        log=Log(),
        trust=Trust(),
        frame=CoordinateSystem(),
        show="both",
        seed=0,
    )


def as_asked(call: TracedCall, args: Mapping[str, Json]) -> Finding | None:
    """The finding of a call as one about these arguments; None where the call asked something else.

    What the rule states must be the same, apart from case and spaces of words. What it leaves to the tool may have been
    chosen by the model, where that only says how to look: numbers, and where the things with these letters are.

    - `labels`: the same letters, wherever the call gives them (a list, or the labels of points and boxes), or none.
    - points that the rule does not give: any.
    - boxes: as many, each overlapping its own by `SAME_BOX`; the finding is told with the rule's labels.
    - `names`: the rule's are among the call's.
    - words, a region, and boxes without letters that the rule does not give: none.
    """
    if call.finding is None:
        return None
    if dict(call.args) == dict(args):
        return call.finding
    asked, said = _parsed(call.tool, args), _parsed(call.tool, call.args)
    if asked is None or said is None:
        return None
    boxes = _boxes(asked)
    renamed = _renamed(boxes, _boxes(said)) if boxes else {}
    if renamed is None or not (boxes or _same_letters(call.tool, asked, said)):
        return None
    if any(not _same(key, asked[key], said.get(key), stated=key in args) for key in asked):
        return None
    finding = call.finding
    return replace(finding, data=_with_labels(finding.data, renamed)) if renamed else finding


def _parsed(name: str, args: Mapping[str, Json]) -> Mapping[str, Any] | None:
    """Arguments with every default filled in; None where the tool does not take them, or is not there any more."""
    try:
        dumped: dict[str, Any] = _tool(name).parse(args).model_dump(mode="json")
    except (ToolError, UsageError):
        return None
    return dumped


@cache
def _tool(name: str) -> Tool:
    found: Tool = load("tools", name)
    return found


@cache
def _default_labels(name: str) -> tuple[str, ...]:
    field = _tool(name).args.model_fields.get(LABELS)
    default = None if field is None else field.get_default(call_default_factory=True)
    return tuple(default) if isinstance(default, Sequence) else ()


def _same(key: str, asked: Any, said: Any, *, stated: bool) -> bool:
    """Whether one argument of two calls says the same; letters, points and boxes are compared elsewhere."""
    if key == LABELS or _are(_is_region, asked) or _are(_is_region, said):
        return True
    if any(_is_point(value) or _are(_is_point, value) for value in (asked, said)):
        return not stated or bool(asked == said)
    if key == NAMES and isinstance(asked, Sequence) and isinstance(said, Sequence):
        return {_plain(name) for name in asked} <= {_plain(name) for name in said}
    if isinstance(said, int | float) and not stated and not isinstance(said, bool):
        return True
    return bool(_plain(asked) == _plain(said))


def _plain(value: Any) -> Any:
    """Words without case and outer or double spaces, also in a list."""
    if isinstance(value, str):
        return " ".join(value.split()).casefold()
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _is_point(value: Any) -> bool:
    return isinstance(value, Mapping) and "x" in value and "y" in value


def _is_region(value: Any) -> bool:
    """One box of its own, which a list of boxes is not: the part of the picture to look at."""
    return isinstance(value, Mapping) and "x0" in value


def _are(kind: Callable[[Any], bool], value: Any) -> bool:
    """Whether a value is a list of such things, at least one."""
    return isinstance(value, list | tuple) and bool(value) and all(map(kind, value))


def _listed(args: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The points and boxes of a call, in order."""
    return [
        one
        for value in args.values()
        for one in (value if isinstance(value, list | tuple) else [value])
        if _is_point(one) or (_is_region(one) and isinstance(value, list | tuple))
    ]


def _boxes(args: Mapping[str, Any]) -> list[tuple[str, Box]]:
    """The listed boxes of a call, each with the name that a tool gives it: its label, else its number."""
    boxes = [one for one in _listed(args) if _is_region(one)]
    return [
        (str(one.get("label") or number), Box(one["x0"], one["y0"], one["x1"], one["y1"]))
        for number, one in enumerate(boxes, 1)
    ]


def _same_letters(tool: str, asked: Mapping[str, Any], said: Mapping[str, Any]) -> bool:
    """Whether a call without boxes of the rule's own is about the same letters, or leaves them to the tool."""
    wanted, given = _letters(asked), _letters({**said, LABELS: ()})
    labels = tuple(said.get(LABELS) or ())
    given |= set() if labels == _default_labels(tool) else set(labels)
    if not wanted:
        return not _boxes(said)
    return not given or given == wanted


def _letters(args: Mapping[str, Any]) -> set[str]:
    return {*(args.get(LABELS) or ()), *(str(one["label"]) for one in _listed(args) if one.get("label"))}


def _renamed(asked: Sequence[tuple[str, Box]], said: Sequence[tuple[str, Box]]) -> dict[str, str] | None:
    """By the name of each box of a call the name that the rule has for it; None where the boxes are others.

    Boxes are paired in order of how much they overlap, so that of two that lie on each other each finds its own.
    """
    if len(asked) != len(said):
        return None
    pairs = sorted(
        ((overlap(a, b), -abs(i - j), i, j) for i, (_, a) in enumerate(asked) for j, (_, b) in enumerate(said)),
        reverse=True,
    )
    found: dict[int, int] = {}
    for share, _, i, j in pairs:
        if share >= SAME_BOX and i not in found.values() and j not in found:
            found[j] = i
    if len(found) < len(asked) or len({name for name, _ in said}) < len(said):
        return None
    return {said[j][0]: asked[i][0] for j, i in found.items()}


def overlap(first: Box, second: Box) -> float:
    """Intersection over union of two boxes, 0..1."""
    width = min(first.x1, second.x1) - max(first.x0, second.x0)
    height = min(first.y1, second.y1) - max(first.y0, second.y0)
    shared = max(0.0, width) * max(0.0, height)
    both = sum((box.x1 - box.x0) * (box.y1 - box.y0) for box in (first, second)) - shared
    return shared / both if both > 0 else 0.0


def _with_labels(data: Any, renamed: Mapping[str, str]) -> Any:
    """The same data in which every text that is just one of the names is the new one."""
    if isinstance(data, Mapping):
        return {key: _with_labels(value, renamed) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_with_labels(value, renamed) for value in data]
    return renamed.get(data, data) if isinstance(data, str) else data
