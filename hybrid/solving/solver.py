"""The context of a solver: all that it may use for one ask. No solver sees a Question.

Replay, controls, the view guard, trust folds and budgets are wrappers behind the context's callables, so no solver
knows of them. The identity of the question (id with variant, number of the ask) is kept apart from the context: no
attribute or closure of what a solver holds leads to it, and none to a target (`session.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, Protocol

from hybrid.answers.prior_accuracy import PriorAccuracy
from hybrid.config import ImageForm, Limits, Show
from hybrid.core.errors import BudgetSpent
from hybrid.core.format_lines import Wording
from hybrid.core.messages import AssistantMessage, Message, UserMessage, user_message
from hybrid.core.types import Fault, ImageRef, Json, Prompt, Reply, Step, Usage
from hybrid.solving.call_estimate import CallEstimate, CallPath, certain
from hybrid.solving.coordinates import CoordinateSystem
from hybrid.solving.image_registry import ImageRegistry
from hybrid.solving.styles import PLAIN, Style
from hybrid.solving.trust import Trust
from hybrid.tool import Tool
from hybrid.tool.rules import CallTool

# The kind of a solver: an MLLM with specialists, the MLLM alone, the specialists alone, or neither.
Role = Literal["hybrid", "mllm", "specialist", "chance"]


class AskModel(Protocol):
    """Send a conversation to the MLLM."""

    async def __call__(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> AssistantMessage:
        """The model's message. Raises `Outage`, `NotRecorded` or `BudgetSpent`."""


@dataclass
class Meter:
    """The usage of a question so far, over all of its asks, against its limits."""

    limits: Limits
    used: Usage = field(default_factory=Usage)

    def seconds_left(self) -> float | None:
        """Seconds that the question's calls may still run; None without a limit. A call counts when it has ended."""
        return None if self.limits.seconds is None else self.limits.seconds - self.used.seconds

    def spent(self) -> str | None:
        """The name of the first budget that is used up, or None."""
        limits, used = self.limits, self.used
        budgets = (
            (limits.seconds, used.seconds, "seconds"),
            (limits.tokens, used.input_tokens + used.output_tokens, "tokens"),
            (limits.cost_usd, used.cost_usd or 0.0, "cost"),
        )
        return next((name for most, spent, name in budgets if most is not None and spent >= most), None)

    def check(self) -> None:
        """Raise `BudgetSpent` when a model call is no longer allowed."""
        if name := self.spent():
            raise BudgetSpent(f"the question's budget of {name} is spent")

    def take_tool_call(self) -> None:
        """Count one tool call. Raises `BudgetSpent` when none is left."""
        if self.used.tool_calls >= self.limits.tool_calls:
            raise BudgetSpent(f"the question's budget of {self.limits.tool_calls} tool calls is spent")
        self.used = replace(self.used, tool_calls=self.used.tool_calls + 1)

    @property
    def tool_calls_left(self) -> int:
        """How many tool calls the question may still make."""
        return max(0, self.limits.tool_calls - self.used.tool_calls)


@dataclass
class Log:
    """The steps of one ask, in order, as they go to the trace."""

    steps: list[Step] = field(default_factory=list)

    def note(self, step: Step) -> None:
        """Append one step."""
        self.steps.append(step)


@dataclass(frozen=True)
class SolverContext:
    """All that a solver may use for one ask."""

    model: AskModel
    tool: CallTool
    # The tools offered to the model: fixed per benchmark, never per task.
    tools_offered: tuple[Tool, ...]
    wording: Wording
    # The prompt's parts in the form in which the model gets them (`--images`).
    shown: tuple[str | ImageRef, ...]
    image_registry: ImageRegistry
    meter: Meter
    log: Log
    trust: Trust
    # How the model writes coordinates.
    frame: CoordinateSystem
    # The parts of a finding that the model is shown.
    show: Show
    # Of the run and the prompt: a solver can tell nothing from it that the prompt does not say.
    seed: int
    # Whether each image of the prompt is shown under its name (`--image-labels`).
    labels: bool = True
    # How often a solver that samples itself asks the MLLM (`--setting samples`).
    samples: int = 1
    # Published accuracy of MLLMs, and that of a guess, on this benchmark.
    prior_accuracy: PriorAccuracy = field(default_factory=PriorAccuracy)
    # The form in which the model meets `tools_offered`.
    style: Style = PLAIN

    def message(self, prompt: Prompt, *between: str | ImageRef) -> UserMessage:
        """The user message about the prompt: what is shown, what comes between, the format line of its kind."""
        return user_message((*self.shown, *between, *self.wording.closing(prompt)), labelled=self.labels)

    def rule(self, name: str, text: str, data: Mapping[str, Json] | None = None, *, fault: Fault | None = None) -> None:
        """Write a decision and its reason into the trace."""
        self.log.note(Step("rule", name, text, fault=fault, data=data or {}))


class Solver(ABC):
    """Everything that answers: controller, verify, arbiter, pure MLLM, specialist, chance.

    A file of graphs/ or baselines/ exports one as `SOLVER` and says of itself what differs from the defaults here.
    """

    # Its name where Python code hands it in, by default that of its class; of a file it is the file's name.
    name: str = ""
    # Its role in a comparison.
    role: Role = "hybrid"
    # Whether it is of no use without an MLLM.
    needs_model: bool = False
    # Whether it lets the model call tools or asks it again, which a recording of one reply cannot serve.
    needs_live: bool = False
    # The form in which it wants images whatever `--images` says.
    images: ImageForm | None = None
    # Whether what it says to a model calls images by name: they are shown under it whatever `--image-labels` says.
    names_images: bool = False
    # Whether it asks the MLLM `SolverContext.samples` times of its own accord; any other that needs one is asked so
    # often as a whole, and its replies vote.
    samples_itself: bool = False
    # Whether it draws by `SolverContext.seed` without a model, so that it can answer otherwise when asked again.
    seeded: bool = False
    # Whether it believes tools by the reliability on their cards, which then stands in the manifest.
    believes_cards: bool = False
    # Whether it offers a model tools, to call as it likes.
    offers_tools: bool = False
    # Whether it calls a model and tools that are not the run's: no control (`--tool-output`) reaches them, and what it
    # counts in `SolverContext.meter` goes to the budgets of the run when the ask has ended.
    runs_own_tools: bool = False
    # Its texts for a model besides the prompt; hashed into the manifest.
    texts: Mapping[str, str] = MappingProxyType({})

    @property
    def written_as(self) -> tuple[Callable[..., Any], ...]:
        """The classes and functions whose source is its code, where Python code hands it in."""
        return (type(self),)

    def warm(self) -> None:  # noqa: B027 - most have nothing to load
        """Begin to load, in a thread, what the first ask would have to wait for. Returns at once."""

    def call_estimate(self, prompt: Prompt, limits: Limits) -> CallEstimate:
        """How an ask of this prompt can go: one call, or none without a model. Calls no model and no tool."""
        return certain(CallPath(1 if self.needs_model else 0))

    def required_tools(self, benchmark: str, routes: Collection[str] | None = None) -> frozenset[str]:
        """The tools that it may ask of its own accord about a benchmark's questions, or those of some routes, by name.

        `routes` is None where they are not known before the questions are read.
        """
        del benchmark, routes
        return frozenset()

    @abstractmethod
    async def ask(self, prompt: Prompt, ctx: SolverContext) -> Reply:
        """The reply to one prompt, made with the context alone.

        Raises:
            Outage, NotRecorded, BudgetSpent, ToolError: a model or tool call raised it.
        """
