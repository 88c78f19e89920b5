"""Rules of tools whose code is in the worker process: it computes a rule's next step, and this process calls the tools.

A rule is run from its start for each of its calls, with the outputs of its earlier calls. Nothing is kept between two
requests, so the worker may end between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from types import coroutine
from typing import Any

from hybrid.core.errors import NoBackend, ToolError
from hybrid.core.types import Finding, Json, Prompt
from hybrid.serving.protocol import RuleAnswer, RuleCall, RuleRequest, RuleResponse
from hybrid.tool.rules import Rule, RuleContext, SpecialistAnswer

# Maximum number of tool calls of one rule for one prompt.
MAX_CALLS = 32
# Maximum number of characters of a rule's answer, and of a remark.
MAX_ANSWER = 20_000
MAX_REMARKS = 100

NextStep = Callable[[RuleRequest], Coroutine[Any, Any, RuleResponse]]


@dataclass(frozen=True)
class DescribedRule:
    """A rule that a worker process runs, with its tool calls made in this process."""

    # The tool that defines the rule.
    tool: str
    route: str
    tools: tuple[str, ...]
    next_step: NextStep

    async def __call__(self, prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
        """Return the answer, None if the rule abstains.

        Raises `ToolError` if the rule raises, hangs, ends its process or returns a wrong type.
        """
        findings: list[Finding | None] = []
        tool_names: list[str] = []
        while True:
            try:
                response = await self.next_step(RuleRequest(0, self.tool, self.route, prompt, tuple(findings)))
            except NoBackend:
                raise
            except ToolError as error:
                raise ToolError(f"{self._name}: {error}", error.fault) from error
            if response.call is None:
                break
            if len(findings) == MAX_CALLS:
                raise ToolError(f"{self._name}: it made more than {MAX_CALLS} tool calls")
            tool_names.append(response.call.tool)
            try:
                findings.append(await ctx.tool(response.call.tool, response.call.images, response.call.args))
            except NoBackend:
                # The rule may be able to continue without this output.
                findings.append(None)
        for name, text in response.remarks:
            ctx.rule(name, text)
        if (answer := response.answer) is None:
            return None
        finding = findings[answer.call] if 0 <= answer.call < len(findings) else None
        if finding is None:
            raise ToolError(f"{self._name}: its answer is not based on the output of any of its calls")
        if answer.choice is not None and not 0 <= answer.choice < len(prompt.choices):
            raise ToolError(
                f"{self._name}: there is no choice with index {answer.choice}: the question has {len(prompt.choices)}"
            )
        return SpecialistAnswer(
            answer.answer,
            tool_names[answer.call],
            finding=finding,
            choice=answer.choice,
            sure=answer.sure,
            on_card=answer.on_card,
        )

    @property
    def _name(self) -> str:
        return f"{self.tool}: the rule for {self.route!r} failed"


@coroutine
def _awaited(call: RuleCall) -> Generator[RuleCall, Finding, Finding]:
    """Yield a rule's call to `next_step`, which runs the rule without an event loop and sends the output back."""
    return (yield call)


@dataclass
class _WorkerContext:
    """The `RuleContext` of a rule in the worker."""

    remarks: list[tuple[str, str]] = field(default_factory=list)

    async def tool(self, name: str, images: Sequence[str], args: Mapping[str, Json]) -> Finding:
        """Return the output that `next_step` sends."""
        return await _awaited(RuleCall(name, tuple(images), dict(args)))

    def rule(self, name: str, text: str) -> None:
        """Record a line for the trace."""
        if len(self.remarks) < MAX_REMARKS:
            self.remarks.append((str(name), str(text)[:MAX_ANSWER]))


def next_step(rule: Rule, request: RuleRequest) -> RuleResponse:
    """Return a rule's step after the outputs in a request: its next call, its answer, or neither.

    Raises:
        ToolError: the rule awaits something other than a tool call, or its answer is invalid.
        NoBackend: a tool that the rule requires has no backend.
    """
    ctx = _WorkerContext()
    running: Any = rule(request.prompt, ctx)
    findings = iter(request.outputs)
    try:
        waited = running.send(None)
        while True:
            if not isinstance(waited, RuleCall):
                raise ToolError("a rule may only await its tool calls, one after the other")
            try:
                finding = next(findings)
            except StopIteration:
                return RuleResponse(request.number, call=waited)
            absent = NoBackend(f"{waited.tool} has no backend that can answer")
            waited = running.throw(absent) if finding is None else running.send(finding)
    except StopIteration as end:
        answer = None if end.value is None else _checked(end.value, request.outputs)
        return RuleResponse(request.number, answer=answer, remarks=tuple(ctx.remarks))
    finally:
        running.close()


def _checked(answer: object, findings: Sequence[Finding | None]) -> RuleAnswer:
    """Validate the answer of a plug-in rule and convert it to a message. Raises `ToolError`."""
    if not isinstance(answer, SpecialistAnswer) or not isinstance(answer.answer, str):
        raise ToolError(f"a rule must return a SpecialistAnswer or None, not {type(answer).__name__}")
    if len(answer.answer) > MAX_ANSWER:
        raise ToolError(f"the answer has {len(answer.answer)} characters; the limit is {MAX_ANSWER}")
    confidence = answer.sure
    if confidence is not None and not (
        isinstance(confidence, int | float) and math.isfinite(confidence) and 0 <= confidence <= 1
    ):
        raise ToolError(f"its confidence {confidence!r} is not a probability")
    call = next((place for place, finding in enumerate(findings) if finding is answer.finding), -1)
    return RuleAnswer(answer.answer, call, answer.choice, confidence, bool(answer.on_card))
