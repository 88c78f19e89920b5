"""The answer that the tool output in a conversation leads to: right, wrong, none, or unknown.

    outputs_by_question(scored)["val_Jigsaw_1"].finding          # "right"

For every question that a solver answered, the rule of the specialist alone runs again on the tool output in the
recorded steps. No tool runs: a call of the rule gets the output of the last recorded call with the same request
(`recorded_calls.py`), and no output if there is no such call. The rule's answer is scored like any reply. If the
solver ran the rule itself and its steps hold the specialists' answer, that answer is used.
`docs/evidence.md` explains what this can and cannot show.

Results are kept in memory as long as their line is unchanged, so several sections and refreshed pages read each line
once.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

from hybrid.benchmarks.base import AS_PAPERS, Benchmark
from hybrid.config import Limits
from hybrid.core.error_text import in_one_line
from hybrid.core.errors import DataError, NotRecorded, ToolError
from hybrid.core.format_lines import Wording
from hybrid.core.messages import AssistantMessage, Message
from hybrid.core.secrets import redact
from hybrid.core.types import Attempt, Exchange, Fault, Outcome, Prompt, Question, Reply, Score, Step
from hybrid.log.attempts import Recorded
from hybrid.plugins.discovery import scanned_once
from hybrid.plugins.registry import load
from hybrid.scoring.attempt_facts import TracedCall, calls_of, known_facts, read_attempt
from hybrid.scoring.groups import is_imported
from hybrid.scoring.recorded_calls import recorded_tools
from hybrid.scoring.recorded_plugins import ROUTE, find_changed_rules, find_lost_rules
from hybrid.scoring.score import Scored
from hybrid.solving.call_arguments import AS_READ
from hybrid.solving.coordinates import CoordinateSystem
from hybrid.solving.images import ImageRegistry
from hybrid.solving.rules import RuleTable, rules_in_order, table
from hybrid.solving.solver import Log, Meter, SolverContext
from hybrid.solving.trust import Trust
from hybrid.tool import Tool
from hybrid.tool.rules import Rule

# Verdict on the answer that the tool output leads to. `none`: it leads to no answer. `unread`: it cannot be determined.
Verdict = Literal["right", "wrong", "none", "unread"]

VERDICTS: tuple[Verdict, ...] = ("right", "wrong", "none", "unread")

NO_TRACE = "there is no trace"
DAMAGED = "the trace cannot be read"
GRADED = "such answers are graded and are neither right nor wrong"


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call of a question, without its output."""

    tool: str
    fault: Fault | None
    seconds: float
    as_read: tuple[str, ...] = ()  # Notes on how the call was parsed, if it was written as text or needed repairs


@dataclass(frozen=True, slots=True)
class OutputVerdict:
    """The tool calls of a question's conversation and the verdict on their output."""

    calls: tuple[Called, ...]  # Calls of all exchanges, in order
    to_the_point: bool  # Whether any call, even a failed one, was to a tool that the prompt's rule may call
    finding: Verdict
    answer: str | None = None  # The answer as scored, if the tool output leads to one
    unread: str | None = None  # Reason why the verdict is `unread`
    other_code: str | None = None  # How the code that judged the output differs from the run's, if it does

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that answered a call; calls that ended in a fault do not count."""
        return tuple(sorted({call.tool for call in self.calls if call.fault is None}))

    @property
    def no_trace(self) -> bool:
        """Whether even the calls are unknown."""
        return self.unread in (NO_TRACE, DAMAGED)


def outputs_by_question(scored: Scored) -> Mapping[str, OutputVerdict]:
    """Return the calls and the verdict of every answered question that did not fail, by id.

    The verdict is `unread` for imported predictions, which have no steps. Empty for a solver without a run.
    """
    if scored.folder is None:
        return {}
    benchmark: Benchmark = load("hybrid.benchmarks", scored.benchmark)
    recorded = None if is_imported(scored) else scored.folder.recorded(scored.recorded)
    lost_rules, changed_rules = find_lost_rules(scored.folder), find_changed_rules(scored.folder)
    cache = _cache_of(str(scored.folder.path.resolve()), scored.recorded)
    # Many sections of a comparison request the same verdicts; lines that cannot have changed are not read again.
    is_unchanged = cache.of is not None and all(map(operator.is_, cache.of, (recorded, scored.scores)))
    if is_unchanged and (cache.lost_rules, cache.changed_rules) == (lost_rules, changed_rules):
        return cache.verdicts
    order = scored.folder.manifest.get("solvers", {}).get(scored.recorded, {}).get("rule_order", ())

    async def all_of() -> dict[str, OutputVerdict]:
        # Build the table of rules only once, because each question uses it several times.
        with rules_in_order(order), scanned_once():
            rules = table()
            return {score.id: await verdict_on(score, rules) for score in scored.scores if not score.outcome.failed}

    async def verdict_on(score: Score, rules: RuleTable) -> OutputVerdict:
        if recorded is None or score.id not in recorded.by_id:
            return OutputVerdict((), False, "unread", unread=NO_TRACE)
        stamp, entry = hash((recorded.line(score.id), *lost_rules, "", *changed_rules)), cache.by_line.get(score.id)
        facts = known_facts(recorded, score.id)
        if (entry is None or entry[0] != stamp) and facts is not None and not facts.has_calls:
            entry = cache.by_line[score.id] = (stamp, OutputVerdict((), False, "none"))
        if entry is None or entry[0] != stamp:
            question = scored.questions[score.id]
            # Questions that were never asked count as failed and were skipped above.
            assert isinstance(question, Question)  # noqa: S101
            verdict = await _judge_recorded(recorded, benchmark, question, lost_rules, changed_rules, rules)
            entry = cache.by_line[score.id] = (stamp, verdict)
        return entry[1]

    # The caller may already run in this thread's event loop.
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        verdicts = asyncio.run(all_of())
    else:
        with ThreadPoolExecutor(1) as pool:
            verdicts = pool.submit(asyncio.run, all_of()).result()
    cache.verdicts, cache.of = verdicts, (recorded, scored.scores)
    cache.lost_rules, cache.changed_rules = lost_rules, changed_rules
    return verdicts


@dataclass
class _VerdictCache:
    """The verdicts on a solver in a run, each with the hash of its line, and the verdicts of the latest request."""

    by_line: dict[str, tuple[int, OutputVerdict]] = field(default_factory=dict)
    verdicts: Mapping[str, OutputVerdict] = field(default_factory=dict)
    # The latest request's attempts and scores, followed by its missing rules. A changed file is opened as another
    # object.
    of: tuple[Recorded | None, tuple[Score, ...]] | None = None
    lost_rules: Mapping[str, str] = field(default_factory=dict)
    changed_rules: Mapping[str, str] = field(default_factory=dict)


@lru_cache(maxsize=64)
def _cache_of(run: str, solver: str) -> _VerdictCache:
    """Return the cache of a solver in a run."""
    del run, solver
    return _VerdictCache()


async def _judge_recorded(
    recorded: Recorded,
    benchmark: Benchmark,
    question: Question,
    lost_rules: Mapping[str, str],
    changed_rules: Mapping[str, str],
    rules: RuleTable,
) -> OutputVerdict:
    """Return the verdict on a recorded attempt.

    `lost_rules` says why a tool's or a route's rule is missing, `changed_rules` why it is not the rule of the run.
    """
    try:
        attempt = read_attempt(recorded, question.id)
    except DataError:
        return OutputVerdict((), False, "unread", unread=DAMAGED)
    # If a tool's own rule is missing, the built-in rule for this kind of question would not understand the tool's
    # output.
    calls = _list_calls(attempt)
    prompts = [exchange.prompt for exchange in attempt.exchanges]
    routes = {route for prompt in prompts for route in (prompt.task_route, prompt.route, prompt.fallback_route)}
    needed = [*(call.tool for call in calls), *(f"{ROUTE}{route}" for route in sorted(routes))]
    if calls and (missing := next((name for name in needed if name in lost_rules), None)):
        return OutputVerdict(calls, False, "unread", unread=lost_rules[missing])
    try:
        verdict = await judge_outputs(benchmark, question, attempt, rules)
        changed = next((changed_rules[name] for name in needed if name in changed_rules), None)
        return replace(verdict, other_code=changed if calls else None)
    # A rule or a scorer that fails on one trace must affect only this question.
    except Exception as error:
        return OutputVerdict(
            _list_calls(attempt), False, "unread", unread=f"the rule cannot be run: {redact(in_one_line(error))}"
        )


async def judge_outputs(
    benchmark: Benchmark, question: Question, attempt: Attempt, rules: RuleTable | None = None
) -> OutputVerdict:
    """Return the calls of one attempt and the verdict on the tool output in its steps.

    Prompts of another kind than the question (ActiView's for parts of a picture) keep the reply with which the
    conversation continued; the rule answers every prompt of the question's kind from that exchange's tool output,
    because the model saw no other output. `rules` are the available rules, if the caller has loaded them already.
    """
    calls, rules = _list_calls(attempt), rules or table()
    if not calls:
        return OutputVerdict((), False, "none")
    to_the_point = any(
        step.kind == "tool" and step.name in tool_names
        for exchange in attempt.exchanges
        if (tool_names := rules.tools_for(exchange.prompt))
        for step in exchange.reply.steps
    )
    of_its_kind = [exchange for exchange in attempt.exchanges if exchange.prompt.kind is question.kind]
    if all(not rules.rules_for(exchange.prompt) and _specialist_answer(exchange) is None for exchange in of_its_kind):
        routes = ", ".join(dict.fromkeys(repr(exchange.prompt.route) for exchange in of_its_kind))
        return OutputVerdict(calls, False, "unread", unread=f"there is no rule for {routes or 'its prompts'}")
    answered = list(attempt.exchanges)
    for place, exchange in enumerate(attempt.exchanges):
        if exchange.prompt.kind is question.kind:
            answer = _specialist_answer(exchange) or await recorded_answer(exchange.prompt, calls_of(exchange), rules)
            reply = Reply("", Outcome.ABSTAINED) if answer is None else Reply(answer)
            answered[place] = replace(exchange, reply=reply)
    score = benchmark.score(question, answered, AS_PAPERS)
    if score.answer is None:
        return OutputVerdict(calls, to_the_point, "none")
    if score.correct is None:
        return OutputVerdict(calls, to_the_point, "unread", score.answer, GRADED)
    return OutputVerdict(calls, to_the_point, "right" if score.correct == 1.0 else "wrong", score.answer)


def _list_calls(attempt: Attempt) -> tuple[Called, ...]:
    calls: list[Called] = []
    for exchange in attempt.exchanges:
        read: list[Step] = []
        for step in exchange.reply.steps:
            if step.kind == "rule" and step.name == AS_READ:
                read.append(step)
            elif step.kind == "tool":
                # Parallel calls are parsed in order before the first of them ends. A parsed call that no tool accepts
                # has no images.
                matching = [
                    read_step for read_step in read if read_step.data.get("tool") == step.name and "images" in step.data
                ][:1]
                notes: list[str] = []
                for read_step in matching:
                    read.remove(read_step)
                    dialect, repairs = read_step.data.get("read_from"), read_step.data.get("repairs")
                    notes += [f"read from text ({dialect})"] if dialect else []
                    notes += [f"repaired: {kind}" for kind in (repairs if isinstance(repairs, list | tuple) else ())]
                calls.append(Called(step.name, step.fault, step.seconds, tuple(notes)))
    return tuple(calls)


def _specialist_answer(exchange: Exchange) -> str | None:
    """Return the specialists' answer from the solver's own steps of an exchange; None if they contain none."""
    for step in reversed(exchange.reply.steps):
        answer = step.data.get("specialist_answer")
        if isinstance(answer, Mapping) and isinstance(answer.get("answer"), str):
            return str(answer["answer"])
    return None


async def recorded_answer(prompt: Prompt, calls: Sequence[TracedCall], rules: RuleTable | None = None) -> str | None:
    """Return the rules' answer to a prompt from recorded calls; None if all abstain or there is no rule."""
    for entry in (rules or table()).rules_for(prompt):
        try:
            answer = await entry.rule(prompt, _recorded_context(prompt, entry.rule, calls))
        except ToolError:
            return None
        if answer is not None:
            return answer.answer
    return None


def _recorded_context(prompt: Prompt, rule: Rule, calls: Sequence[TracedCall]) -> SolverContext:
    return SolverContext(
        model=_no_model,
        tool=recorded_tools(calls),
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


async def _no_model(messages: Sequence[Message], tools: Sequence[Tool] = ()) -> AssistantMessage:
    raise NotRecorded("a rule asks no model")
