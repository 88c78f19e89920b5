"""The contents of a report as frozen values, without HTML.

    Pages(title, made_by, benchmarks)               # the whole site
        BenchmarkPages(key, overview, n, questions) # a tab: one benchmark

`collect.py` creates them from scored runs, `site.py` writes them as files for a browser. Any text in them may come from
a model or a data set, so it is shown as text, never as markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hybrid.core.types import Json
from hybrid.display.tables import Table
from hybrid.scoring.reference import ReferenceLine
from hybrid.scoring.result import ChartKind, Result
from hybrid.solving.solver import Role


@dataclass(frozen=True)
class Fact:
    """A fact about a run, such as `model` with the value `openai:gpt-4o`."""

    name: str
    value: str


@dataclass(frozen=True)
class SolverCard:
    """What the pages show about a solver."""

    name: str  # The name in tables: `controller [blank]`
    role: Role
    model: str | None
    control: str | None
    n: int
    failed: int
    open: int


@dataclass(frozen=True)
class Chart:
    """Rows of the result table that one chart shows, and its reference values."""

    kind: ChartKind
    title: str
    rows: tuple[Result, ...]
    marks: tuple[ReferenceLine, ...] = ()
    # For a waterfall, the role of each row: 0 the start, 1 a step up, -1 a step down (`Section.signs`).
    signs: tuple[int, ...] = ()


@dataclass(frozen=True)
class OverviewSection:
    """A reader's question and its answer: charts, then tables, and the command that prints the same numbers."""

    id: str  # The section's anchor in a link: letters, digits and hyphens
    title: str
    lead: str  # The conclusion in one or two sentences, shown while the section is folded; may be empty
    charts: tuple[Chart, ...]
    tables: tuple[Table, ...]
    command: str  # `hybrid compare RUN --json`: recomputes every number of the section
    pictures: tuple[PicturePayload, ...] = ()  # Shown above everything else


@dataclass(frozen=True)
class Overview:
    """The first page of a benchmark."""

    benchmark: str
    title: str
    facts: tuple[Fact, ...]
    warnings: tuple[str, ...] = ()  # Labels, damage and failures, which limit every number
    solvers: tuple[SolverCard, ...] = ()
    # The pairs a, b of solvers for which helped and harmed questions can be shown
    pairs: tuple[tuple[str, str], ...] = ()
    sections: tuple[OverviewSection, ...] = ()
    conclusion: tuple[str, ...] = ()  # At most ten sentences
    # The charts of the first screen: parts of the gain, each solver's value, differences (or values) by task.
    front: tuple[Chart, ...] = ()
    # The numbers of these charts, also for readers without scripts: a line per solver, a line per task.
    headline: tuple[Table, ...] = ()
    # The column of the list of questions by which rows are grouped: `task`, or the group of `--by`.
    by: str = "task"
    # The first line: models, benchmark with split or `generated questions`, number of questions, date
    head: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mark:
    """A box (x0, y0, x1, y1) or point (x, y) drawn over a picture, in its pixels."""

    kind: Literal[
        "annotated", "covering", "elsewhere"
    ]  # An annotated place; a call's region that covers an annotated place; or a call's region that covers none
    label: str
    place: tuple[float, ...]


@dataclass(frozen=True)
class PicturePayload:
    """An image on a page.

    `file` is its path in the site (`images/ab/abcd....jpg`), None if the store does not have it; `width` and `height`
    are those of the original in pixels.
    """

    name: str  # `img:1`, as in the model's prompt
    file: str | None
    width: int
    height: int
    # Alternative text with kind and origin: `crop of img:1, box (10, 20, 200, 300)`.
    caption: str
    # The name of the equally large image that this one is drawn over, for a slider between the two.
    over: str | None = None
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True)
class StepEntry:
    """One step of a conversation: a model's message, a tool output, or a decision of a rule."""

    kind: Literal["model", "tool", "rule"]
    name: str
    text: str
    seconds: float
    fault: str | None
    data: Json  # Arguments, numbers, confidence: the data in the trace
    pictures: tuple[PicturePayload, ...]


@dataclass(frozen=True)
class AskEntry:
    """One prompt, with the steps that answered it and the reply."""

    # Text and images in order; empty if it is the question as shown above.
    prompt: tuple[str | PicturePayload, ...]
    steps: tuple[StepEntry, ...]
    reply: str
    outcome: str
    model_calls: int
    tool_calls: int
    # The next four fields are null if a reply of an earlier run was reused.
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    seconds: float | None
    reused_calls: int = 0


@dataclass(frozen=True)
class SolverEntry:
    """The steps by which one solver came to its answer."""

    solver: str
    correct: float | None  # 0..1; None if the solver was not asked, or if the question has no right or wrong answer
    outcome: str  # A value of `Outcome`; `open` if not finished yet; empty if the solver does not have the question
    answer: str
    rule: str  # The parser's rule that read the answer
    why: str  # The reason why it failed or has no score; otherwise empty
    wall_s: float | None
    asks: tuple[AskEntry, ...]
    looked: str = ""  # How many of its calls with a region cover an annotated place; empty if nothing is annotated

    @property
    def tools(self) -> tuple[str, ...]:
        """The called tools, without duplicates, in the order of their first call."""
        steps = (step for ask in self.asks for step in ask.steps)
        return tuple(dict.fromkeys(step.name for step in steps if step.kind == "tool"))


@dataclass(frozen=True)
class QuestionPage:
    """A question with all results."""

    id: str
    task: str
    groups: tuple[Fact, ...]
    text: str
    choices: tuple[str, ...]
    target: str  # The right answer in words; empty if unknown
    pictures: tuple[PicturePayload, ...]
    solvers: tuple[SolverEntry, ...]  # One for each solver of the overview, in its order
    error: str = ""  # Reason why the question could not be asked at all
    sampled: bool = False  # Whether the question is on the error sheet
    own_words: str = ""  # `text` without the benchmark's standard opening, such as a disclaimer; empty if unknown
    again: str = ""  # The command that asks this question again, logging every request and reply
    again_where: str = ""  # Where to run that command; empty for the working directory
    evidence: str = ""  # The annotated places in words; empty if there are none


@dataclass(frozen=True)
class BenchmarkPages:
    """The pages of one benchmark."""

    key: str  # Key of the benchmark's files and links: its name, with a number if it appears twice
    overview: Overview
    n: int  # Number of questions
    # In the order of the data; generated one at a time, because there may be many long questions.
    questions: Iterator[QuestionPage]


@dataclass(frozen=True)
class Tag:
    """A person's note about a question on the error sheet. `note` is free text."""

    benchmark: str
    question: str
    solver: str
    tag: str
    note: str = ""


@dataclass(frozen=True)
class Pages:
    """A full report."""

    title: str
    made_by: str  # The command that wrote it, and when
    benchmarks: Sequence[BenchmarkPages]
    images: Path  # The image store that `PicturePayload.file` is copied from (`hybrid.core.images`)
    tags: tuple[Tag, ...] = ()
    live: bool = False  # Whether the pages poll their server for news (`hybrid view`)
