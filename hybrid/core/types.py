"""The shared values: Question, Prompt, Reply, Exchange, Attempt, Score, Metric, Finding.

All are frozen and without behaviour; `hybrid/solving/solver.py` and `hybrid/tool` define the protocols that use them.
Coordinates are pixels of the original image, origin top-left, x right, y down; boxes are (x0, y0, x1, y1) with
x1, y1 exclusive.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from typing_extensions import TypeAliasType

from hybrid.core.coordinates import Place
from hybrid.core.errors import Fault as Fault  # noqa: PLC0414 - one of the values here, which errors also contain

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

if TYPE_CHECKING:
    Pixels: TypeAlias = npt.NDArray[np.uint8]
else:

    class Pixels:
        """The type of an RGB image, an array of shape (H, W, 3) with values 0..255; NumPy is not imported for it."""


# This is a `TypeAliasType`, because pydantic resolves only named recursive aliases.
Json = TypeAliasType("Json", "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None")

Reasoning = Literal["first", "none"]

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

# The only accepted form of a sha256: it is used as a file name.
SHA256 = re.compile(r"[0-9a-f]{64}")
# Pixels of the largest image: a 12,000 x 10,000 photograph passes, a decompression bomb does not.
MAX_PIXELS = 120_000_000
IMAGE_MEDIA_TYPES = frozenset({"image/jpeg", "image/png", "image/webp", "image/gif", "image/bmp", "image/tiff"})


def base_id(question_id: str) -> str:
    """Return the id of a question without its variant: `q7#s2` is a variant of `q7`."""
    return question_id.split("#", 1)[0]


class Kind(StrEnum):
    """The form of reply that a prompt asks for; each form has a parser and a format line."""

    CHOICE = "choice"
    YES_NO = "yes_no"
    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"
    ORDER = "order"
    POINT = "point"
    BOX = "box"
    SCANPATH = "scanpath"
    VIEWS = "views"
    CONTINUE = "continue"
    VIEW_PLAN = "view_plan"
    FREE = "free"


class Outcome(StrEnum):
    """How a question ended. Only `not_recorded`, `outage` and `broken` are failures: there is no answer."""

    ANSWERED = "answered"
    ABSTAINED = "abstained"
    UNPARSED = "unparsed"
    BUDGET = "budget"
    TOOL_FAULT = "tool_fault"
    NOT_RECORDED = "not_recorded"
    OUTAGE = "outage"
    # The question's own data cannot be used (an image that does not decode), so the question was never asked.
    BROKEN = "broken"

    @property
    def failed(self) -> bool:
        """Return whether there was no answer, so that this outcome says nothing about the solver."""
        return self in _FAILED


_FAILED = frozenset((Outcome.NOT_RECORDED, Outcome.OUTAGE, Outcome.BROKEN))


@dataclass(frozen=True, slots=True)
class Box:
    """An axis-aligned box in pixels; `x1`, `y1` are exclusive."""

    x0: float
    y0: float
    x1: float
    y1: float


# A box in JSON: x0, y0, x1, y1.
Corners = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Point:
    """A point in pixels of the original image, with the letter drawn next to it, if any."""

    x: float
    y: float
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Scanpath:
    """Fixations in order: x and y normalised to 0..1 of width and height, durations in milliseconds."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    t_ms: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class StoredImage:
    """An image in the store: the hash of its original bytes, and its size in pixels after EXIF orientation.

    Raises:
        ValueError: the hash is not 64 lower-case hex digits, the size is not 1 to `MAX_PIXELS` pixels, or the
            media type is not in `IMAGE_MEDIA_TYPES`. This check also validates records that are read from files.
    """

    sha256: str
    width: int
    height: int
    media_type: str

    def __post_init__(self) -> None:
        if not (isinstance(self.sha256, str) and SHA256.fullmatch(self.sha256)):
            raise ValueError(f"{str(self.sha256)[:80]!r} is not the sha256 of an image")
        width, height = self.width, self.height
        # Avoid a loop for speed: this runs for each image of every attempt that is read.
        is_valid = isinstance(width, int) and isinstance(height, int) and width >= 1 and height >= 1
        if not (is_valid and width * height <= MAX_PIXELS):
            raise ValueError(f"no image has {str(width)[:20]} x {str(height)[:20]} pixels")
        if self.media_type not in IMAGE_MEDIA_TYPES:
            raise ValueError(f"{str(self.media_type)[:80]!r} is not a supported image media type")


@dataclass(frozen=True, slots=True)
class ImageRef:
    """An image with the name that models and tools use for it (`img:1`); a crop also has its origin.

    `box` is in pixels of `parent`; `scale` is pixels of this image per pixel of the parent.
    """

    name: str
    image: StoredImage
    parent: str | None = None
    box: Box | None = None
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class PromptFacts:
    """Facts that are part of a prompt's text, parsed once by the benchmark."""

    boxes: tuple[Box, ...] = ()
    scanpaths: tuple[Scanpath, ...] = ()
    target: str | None = None
    fixations: int | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request to a solver. Rules may read its routes; models never see them."""

    parts: tuple[str | ImageRef, ...]
    kind: Kind
    choices: tuple[str, ...] = ()
    given: PromptFacts = PromptFacts()
    route: str = ""
    # Images for tools in addition to those shown, such as the halves of a double picture.
    derived: tuple[ImageRef, ...] = ()
    # See `Question`.
    task_route: str = ""
    fallback_route: str = ""

    @property
    def text(self) -> str:
        """The text parts, in order, without the images."""
        return "\n".join(part for part in self.parts if isinstance(part, str))

    @property
    def images(self) -> tuple[ImageRef, ...]:
        """The images, in the order shown."""
        return tuple(part for part in self.parts if isinstance(part, ImageRef))


@dataclass(frozen=True, slots=True)
class AnnotatedPlace:
    """A box or point that shows the answer to a question, in pixels of the question's picture `image` (from 1)."""

    place: Box | Point
    image: int = 1


@dataclass(frozen=True, slots=True)
class Question:
    """One row of a benchmark. Variants of one base question are `ID#s2`, `ID#r1`, `ID#circ3`.

    `task` is the reporting group; `groups` has further groups for `--by`. `target` is for the scorer, and `protocol`
    only for the benchmark's own dialogue. `cluster` names questions that belong together (a pair of images): `--limit`
    never splits a cluster, and statistics resample it as one unit. If `cluster` is empty, the base id is the cluster.

    Rules are looked up in three steps: by `task_route` among the rules of tools from outside of the project, then by
    `route` among all rules, and last by `fallback_route` among all rules.

    `evidence` is what has to be seen to answer, for statistics only: no solver gets it.
    """

    id: str
    task: str
    images: tuple[StoredImage, ...]
    text: str
    kind: Kind
    choices: tuple[str, ...] = ()
    target: Json = None
    route: str = ""
    groups: Mapping[str, str] = field(default_factory=dict)
    protocol: Mapping[str, Json] = field(default_factory=dict)
    given: PromptFacts = PromptFacts()
    cluster: str = ""
    task_route: str = ""
    fallback_route: str = ""
    evidence: tuple[AnnotatedPlace, ...] = ()

    @property
    def base(self) -> str:
        """The id without its variant."""
        return base_id(self.id)

    @property
    def unit(self) -> str:
        """The id that statistics, folds and limits group by."""
        return self.cluster or self.base

    def without_target(self) -> Question:
        """Return the question as a dialogue gets it: no target, no annotation, no reporting groups."""
        return replace(self, task="", target=None, groups={}, evidence=())


@dataclass(frozen=True, slots=True)
class BrokenQuestion:
    """A row with unusable data; only this question is lost."""

    id: str
    task: str
    error: str
    groups: Mapping[str, str] = field(default_factory=dict)
    cluster: str = ""

    @property
    def unit(self) -> str:
        """The id that statistics, folds and limits group by."""
        return self.cluster or base_id(self.id)


# Fields of a `Usage` that leave out replies which another run has paid for.
COST_FIELDS = (
    "input_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cached_tokens",
    "cost_usd",
    "seconds",
    "queued_seconds",
)


@dataclass(frozen=True, slots=True)
class Usage:
    """The cost of an answer. Tokens are the provider's own counts; `cost_usd` is None if no price is known.

    `cached_tokens` are the part of `input_tokens` that the provider read from its cache, if it reports that.
    `uncounted_calls` are model calls of an agent whose messages do not report tokens; no token count includes them.

    `seconds` is the running time of model and tool calls; `queued_seconds` is their waiting time: in queues, for
    weights to load, for others in a batch. `tool_faults` counts tool calls that ended in a timeout or a tool error, so
    the answer was given without them. `unreadable` counts prompts for which the model wrote an unreadable call.

    `reused_calls` are model calls whose reply another run has paid for (`--cache-replies`): they count as calls, but
    their tokens, seconds and cost are not counted again.
    """

    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0
    queued_seconds: float = 0.0
    tool_faults: int = 0
    cached_tokens: int = 0
    uncounted_calls: int = 0
    unreadable: int = 0
    reused_calls: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether tokens, seconds and cost cover all calls: False if replies of another run were reused."""
        return not self.reused_calls

    def __add__(self, other: Usage) -> Usage:
        """Return the sum of two usages; an unknown cost counts as zero unless both are unknown."""
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        names = (name for name in Usage.__dataclass_fields__ if name != "cost_usd")
        counts = {name: getattr(self, name) + getattr(other, name) for name in names}
        return Usage(**counts, cost_usd=sum(costs) if costs else None)


@dataclass(frozen=True, slots=True)
class Step:
    """One step towards an answer, as recorded in the attempt."""

    kind: Literal["model", "tool", "rule"]
    name: str
    text: str
    seconds: float = 0.0
    fault: Fault | None = None
    data: Mapping[str, Json] = field(default_factory=dict)
    images: tuple[ImageRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """A solver's answer to one prompt. The run fills in `usage` and `steps` from the log of the solver's context."""

    text: str
    outcome: Outcome = Outcome.ANSWERED
    usage: Usage = Usage()
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Exchange:
    """A prompt and the reply to it."""

    prompt: Prompt
    reply: Reply


Ask = Callable[[Prompt], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Attempt:
    """A finished question of one solver: one line of `attempts.jsonl`.

    `seconds` is the wall time from the first prompt to the last reply, including waiting; `started` is the start time,
    in seconds since 1970.
    """

    id: str
    exchanges: tuple[Exchange, ...]
    seconds: float
    error: str | None = None
    started: float | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """The verdict on one attempt. `correct` is in 0..1 (a fraction for an abstention scored at chance)."""

    id: str
    task: str
    correct: float | None
    outcome: Outcome
    answer: str | None = None
    rule: str = "none"
    values: Mapping[str, float] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    cluster: str = ""

    @property
    def unit(self) -> str:
        """The unit that statistics resample."""
        return self.cluster or base_id(self.id)


class Cell(NamedTuple):
    """The contribution of one cluster (a base question, a pair) to a metric within one stratum (a task).

    A named tuple, because a comparison creates about a hundred cells per question: creating one takes a third of the
    time of a dataclass.
    """

    stratum: str
    cluster: str
    numerator: float
    denominator: float


Combine = Literal["ratio", "mean_of_ratios", "root_of_ratio"]


class Cells(tuple[Cell, ...]):
    """The cells of a metric; `sums` caches the totals that `hybrid.stats` computes from them."""

    def __init__(self, cells: Iterable[Cell] = ()) -> None:
        del cells
        self.sums: dict[Combine, Any] = {}


@dataclass(frozen=True, slots=True)
class Metric:
    """A number with the sums behind it, so that statistics can resample clusters without the benchmark.

    `ratio` is sum(numerator) / sum(denominator) over all cells; `mean_of_ratios` the unweighted mean of the
    strata's ratios (a macro average); `root_of_ratio` the square root of the ratio (RMSE).
    """

    name: str
    value: float | None
    n: int
    combine: Combine
    cells: tuple[Cell, ...] = ()
    # Whether each numerator is between 0 and its denominator; False for errors and counts.
    share: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.cells, Cells):
            object.__setattr__(self, "cells", Cells(self.cells))


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a tool call. Rules read `data`, models read `text` and see `images`.

    `data` is JSON with units in its keys (`depth_0_1`, `points_px`); `confidence` is in 0..1; `backend` and
    `version` say which code and weights answered; `places` are the numbers of `text` that belong to a picture.
    """

    text: str
    data: Mapping[str, Json]
    confidence: float
    backend: str
    version: str
    images: tuple[ImageRef, ...] = ()
    places: tuple[Place, ...] = ()
