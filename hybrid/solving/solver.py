"""The context of a solver: everything that it may use for one prompt. No solver sees a `Question`.

Replay, controls, the view guard, trust folds and budgets are wrappers behind the context's callables, so no solver
knows about them. The identity of the question (id with variant, number of the prompt) is kept outside the context: no
attribute or closure that a solver holds leads to this identity or to a target (`session.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from hybrid.answers.prior_accuracy import PriorAccuracy
from hybrid.config import ImageForm, Limits, Show
from hybrid.core.errors import BudgetSpent
from hybrid.core.format_lines import Wording
from hybrid.core.messages import AssistantMessage, Message, UserMessage, user_message
from hybrid.core.types import Fault, Finding, ImageRef, Json, Prompt, Reply, Step, Usage
from hybrid.solving.call_estimate import CallEstimate, CallPath, certain
from hybrid.solving.coordinates import CoordinateSystem
from hybrid.solving.images import ImageRegistry
from hybrid.solving.styles import PLAIN, Style
from hybrid.solving.trust import Trust
from hybrid.tool import Tool
from hybrid.tool.rules import CallTool

if TYPE_CHECKING:
    from hybrid.tool import Args

# The kind of a solver: an MLLM with specialists, the MLLM alone, the specialists alone, or neither.
Role = Literal["hybrid", "mllm", "specialist", "chance"]


class AskModel(Protocol):
    """Sends a conversation to the MLLM."""

    async def __call__(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> AssistantMessage:
        """Return the model's message. Raises `Outage`, `NotRecorded` or `BudgetSpent`."""


class AskTool(CallTool, Protocol):
    """Calls a tool for a solver. Unlike in a rule's calls, the arguments may already be validated."""

    async def __call__(self, name: str, images: Sequence[str], args: Mapping[str, Json] | Args) -> Finding:
        """Return the tool output, as `CallTool`. An object of the tool's argument type is not validated again."""


@dataclass
class Meter:
    """The usage of a question so far, over all of its prompts, and the question's limits."""

    limits: Limits
    used: Usage = field(default_factory=Usage)

    def seconds_left(self) -> float | None:
        """Return the seconds that the question's calls may still run; None without a limit.

        Running calls do not count.
        """
        return None if self.limits.seconds is None else self.limits.seconds - self.used.seconds

    def spent(self) -> str | None:
        """Return the name of the first spent budget, or None."""
        limits, used = self.limits, self.used
        budgets = (
            (limits.seconds, used.seconds, "seconds"),
            (limits.tokens, used.input_tokens + used.output_tokens, "tokens"),
            (limits.cost_usd, used.cost_usd or 0.0, "cost"),
        )
        return next((name for most, spent, name in budgets if most is not None and spent >= most), None)

    def check(self) -> None:
        """Raise `BudgetSpent` if a model call is no longer allowed."""
        if name := self.spent():
            raise BudgetSpent(f"the question's budget of {name} is spent")

    def take_tool_call(self) -> None:
        """Count one tool call. Raises `BudgetSpent` if none is left."""
        if self.used.tool_calls >= self.limits.tool_calls:
            raise BudgetSpent(f"the question's budget of {self.limits.tool_calls} tool calls is spent")
        self.used = replace(self.used, tool_calls=self.used.tool_calls + 1)

    @property
    def tool_calls_left(self) -> int:
        """Number of tool calls that the question may still make."""
        return max(0, self.limits.tool_calls - self.used.tool_calls)


@dataclass
class Log:
    """The steps of answering one prompt, in the order of the trace."""

    steps: list[Step] = field(default_factory=list)

    def note(self, step: Step) -> None:
        """Append one step."""
        self.steps.append(step)


@dataclass(frozen=True)
class SolverContext:
    """Everything that a solver may use for one prompt."""

    model: AskModel
    tool: AskTool
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
    # The parts of tool output that the model is shown.
    show: Show
    # Seed from the run and the prompt; it tells a solver nothing beyond the prompt.
    seed: int
    # Whether each image of the prompt is shown under its name (`--image-labels`).
    labels: bool = True
    # How often a solver that does its own sampling asks the MLLM (`--setting samples`).
    samples: int = 1
    # Published accuracy of MLLMs and accuracy of a guess, on this benchmark.
    prior_accuracy: PriorAccuracy = field(default_factory=PriorAccuracy)
    # The style in which the model gets `tools_offered`.
    style: Style = PLAIN

    def message(self, prompt: Prompt, *between: str | ImageRef) -> UserMessage:
        """Return the user message for the prompt: shown parts, then `between`, then the format line of its kind."""
        return user_message((*self.shown, *between, *self.wording.closing(prompt)), labelled=self.labels)

    def rule(self, name: str, text: str, data: Mapping[str, Json] | None = None, *, fault: Fault | None = None) -> None:
        """Log a decision and its reason."""
        self.log.note(Step("rule", name, text, fault=fault, data=data or {}))


class Solver(ABC):
    """Anything that answers prompts: controller, verify, arbiter, the MLLM alone, specialist, chance.

    A module in graphs/ or baselines/ exports a solver as `SOLVER` and overrides the defaults here as needed.
    """

    # The solver's name if Python code passes it in, by default the name of its class. A solver in a file has the file's
    # name instead.
    name: str = ""
    # Its role in a comparison.
    role: Role = "hybrid"
    # Whether the solver is useless without an MLLM.
    needs_model: bool = False
    # Whether it lets the model call tools or asks the model again, so that a recording of one reply does not suffice.
    needs_live: bool = False
    # The form of images that it requires, regardless of `--images`.
    images: ImageForm | None = None
    # Whether its texts refer to images by name, so that names are shown regardless of `--image-labels`.
    names_images: bool = False
    # Whether it asks the MLLM `SolverContext.samples` times itself. Any other solver that needs an MLLM is run as a
    # whole that many times, and its replies vote.
    samples_itself: bool = False
    # Whether it draws random numbers by `SolverContext.seed`, without a model, so that it may answer differently when
    # asked again.
    seeded: bool = False
    # Whether it relies on the reliability on tool cards, which is then recorded in the manifest.
    believes_cards: bool = False
    # Whether it offers a model tools to call freely.
    offers_tools: bool = False
    # Whether it calls its own model and tools instead of the run's: controls (`--tool-output`) do not affect them, and
    # its usage in `SolverContext.meter` is charged to the run's budgets when the prompt is answered.
    runs_own_tools: bool = False
    # Its texts for a model in addition to the prompt; hashed into the manifest.
    texts: Mapping[str, str] = MappingProxyType({})

    @property
    def written_as(self) -> tuple[Callable[..., Any], ...]:
        """The classes and functions whose source identifies a solver that Python code passed as an object."""
        return (type(self),)

    def warm(self) -> None:  # noqa: B027 - most solvers have nothing to load
        """Start loading, in a thread, whatever the first prompt would wait for; return immediately."""

    def call_estimate(self, prompt: Prompt, limits: Limits) -> CallEstimate:
        """Estimate the calls for this prompt: one call, or none without a model.

        Calls no model and no tool.
        """
        return certain(CallPath(1 if self.needs_model else 0))

    def required_tools(self, benchmark: str, routes: Collection[str] | None = None) -> frozenset[str]:
        """Return the names of the tools that the solver itself may call for questions of a benchmark or of some routes.

        `routes` is None if the routes are unknown before the questions are read.
        """
        del benchmark, routes
        return frozenset()

    @abstractmethod
    async def ask(self, prompt: Prompt, ctx: SolverContext) -> Reply:
        """Return the reply to one prompt, using only the context.

        Raises:
            Outage, NotRecorded, BudgetSpent, ToolError: a model or tool call raised it.
        """
