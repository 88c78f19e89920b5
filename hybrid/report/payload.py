"""What the pages of a report are made from: frozen values, with no word of HTML in them.

    Pages(title, made_by, benchmarks)                  # the whole site
        BenchmarkPages(key, overview, rows, questions) # a tab: one benchmark

`collect.py` makes them of scored runs, `site.py` writes them as files that a browser reads. Everything that a person
reads in them may have been written by a model or a data set: it is text, and never markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hybrid.solving.solver import Role
from hybrid.tables import Table
from hybrid.types import Json


@dataclass(frozen=True)
class Fact:
    """A line of what was run: `model`, `openai:gpt-4o`."""

    name: str
    value: str


@dataclass(frozen=True)
class SolverCard:
    """A solver as the pages know it."""

    name: str
    """As tables name it: `controller [blank]`."""
    role: Role
    model: str | None
    control: str | None
    n: int
    failed: int
    open: int


@dataclass(frozen=True)
class ForestRow:
    """A paired difference b minus a, with its interval where one was tested."""

    a: str
    b: str
    group: str
    """A task, or a metric over all."""
    value: float
    low: float | None
    high: float | None
    p_holm: float | None
    n: int


@dataclass(frozen=True)
class BarRow:
    """The accuracy of a solver on a task, 0..1."""

    task: str
    solver: str
    value: float
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True)
class Mark:
    """A reference line across a task's bars: chance, a human, a published row."""

    task: str
    label: str
    kind: Literal["chance", "human", "published"]
    value: float
    note: str
    """What limits the comparison: subset, split, checkpoint; empty for nothing."""


@dataclass(frozen=True)
class MatrixCell:
    """So many questions in one cell of a matrix, and which: the list opens with them."""

    panel: str
    row: str
    column: str
    n: int
    ids: tuple[str, ...]
    name: str = ""
    """What the cell is called, where it has a name: `over-trust`, `helped`."""


@dataclass(frozen=True)
class ScatterDot:
    """A solver by what it cost and how right it was."""

    solver: str
    x: float
    y: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class StackPart:
    """One part of a solver's bar: an outcome, a tool."""

    solver: str
    part: str
    n: int


@dataclass(frozen=True)
class Forest:
    """Differences as dots with whiskers, 0 in the middle."""

    rows: tuple[ForestRow, ...]
    kind: Literal["forest"] = "forest"


@dataclass(frozen=True)
class Bars:
    """Accuracy by task, a bar a solver, with reference lines."""

    rows: tuple[BarRow, ...]
    marks: tuple[Mark, ...]
    kind: Literal["bars"] = "bars"


@dataclass(frozen=True)
class Matrix:
    """Counts in a grid, panel next to panel."""

    cells: tuple[MatrixCell, ...]
    kind: Literal["matrix"] = "matrix"


@dataclass(frozen=True)
class Scatter:
    """Dots in a plane; the y axis is an accuracy."""

    dots: tuple[ScatterDot, ...]
    x_label: str
    """With its unit: `cost in USD`, `tokens`, `seconds`."""
    y_label: str
    kind: Literal["scatter"] = "scatter"


@dataclass(frozen=True)
class Stack:
    """Bars of parts that add up."""

    parts: tuple[StackPart, ...]
    x_label: str
    kind: Literal["stack"] = "stack"


Chart = Forest | Bars | Matrix | Scatter | Stack


@dataclass(frozen=True)
class OverviewSection:
    """One question and its answer: charts first, tables below, and the command that gives the same numbers."""

    id: str
    """Its anchor in a link: letters, digits and hyphens."""
    title: str
    lead: str
    """What is to be seen, in one or two sentences; empty for nothing."""
    charts: tuple[Chart, ...]
    tables: tuple[Table, ...]
    command: str
    """`hybrid compare RUN --json`: what recomputes every number here."""


@dataclass(frozen=True)
class Overview:
    """The first page of a benchmark."""

    benchmark: str
    title: str
    facts: tuple[Fact, ...]
    warnings: tuple[str, ...]
    """Labels, damage, failures: what must be known of every number."""
    solvers: tuple[SolverCard, ...]
    pairs: tuple[tuple[str, str], ...]
    """The pairs a, b of solvers for which helped and harmed can be asked for."""
    sections: tuple[OverviewSection, ...]


@dataclass(frozen=True)
class RowVerdict:
    """What one solver made of a question, as the list shows it."""

    correct: float | None
    """0..1; None where it was not asked, or where there is no right and wrong."""
    outcome: str
    """A value of `Outcome`; `open` where it was not asked yet; empty where it has no such question."""
    answer: str
    tools: tuple[str, ...]
    """The tools that it called, each once."""


@dataclass(frozen=True)
class QuestionRow:
    """A line of the list of questions."""

    id: str
    task: str
    text: str
    """The question, shortened: what search looks through, next to id, task and answers."""
    verdicts: tuple[RowVerdict, ...]
    """One for each solver of the overview, in its order."""
    sampled: bool = False
    """Whether the question is on the error sheet."""


@dataclass(frozen=True)
class PicturePayload:
    """An image of a page.

    `file` is its path in the site (`images/ab/abcd....jpg`), None where the store does not have it; `width` and
    `height` are those of the original in pixels.
    """

    name: str
    """`img:1`, as the model knows it."""
    file: str | None
    width: int
    height: int
    caption: str
    """What it is and where it comes from, for people who do not see it: `crop of img:1, box (10, 20, 200, 300)`."""
    over: str | None = None
    """The name of the image of the same size that this one is drawn over, for a slider between the two."""


@dataclass(frozen=True)
class StepEntry:
    """One step of a conversation: a model's message, a tool's finding, a decision of a rule."""

    kind: Literal["model", "tool", "rule"]
    name: str
    text: str
    seconds: float
    fault: str | None
    data: Json
    """Arguments, numbers, confidence: what the trace holds."""
    pictures: tuple[PicturePayload, ...]


@dataclass(frozen=True)
class AskEntry:
    """One ask: what was put to the solver, what happened, what it replied."""

    prompt: tuple[str | PicturePayload, ...]
    """Text and images in order; empty where it is the question as it stands above."""
    steps: tuple[StepEntry, ...]
    reply: str
    outcome: str
    model_calls: int
    tool_calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    seconds: float


@dataclass(frozen=True)
class SolverEntry:
    """One solver's way to its answer."""

    solver: str
    correct: float | None
    outcome: str
    answer: str
    rule: str
    """Of the parser that read the answer."""
    why: str
    """Why it failed or has no score; empty else."""
    wall_s: float | None
    asks: tuple[AskEntry, ...]


@dataclass(frozen=True)
class QuestionPage:
    """A question with everything that became of it."""

    id: str
    task: str
    groups: tuple[Fact, ...]
    text: str
    choices: tuple[str, ...]
    target: str
    """The right answer in words; empty where it is not known."""
    pictures: tuple[PicturePayload, ...]
    solvers: tuple[SolverEntry, ...]
    """One for each solver of the overview, in its order; `outcome` is empty where it has no such question."""
    error: str = ""
    """Why the question could not be asked at all."""


@dataclass(frozen=True)
class BenchmarkPages:
    """The pages of one benchmark."""

    key: str
    """Of its files and links: the benchmark's name, with a number where it appears twice."""
    overview: Overview
    rows: Sequence[QuestionRow]
    """The list, in the order of the data."""
    questions: Iterator[QuestionPage]
    """In the order of the rows; made one at a time, as there may be many and each may be long."""


@dataclass(frozen=True)
class Tag:
    """What a person noted about a question on the error sheet. `note` is free text."""

    benchmark: str
    question: str
    solver: str
    tag: str
    note: str = ""


@dataclass(frozen=True)
class Pages:
    """A whole report."""

    title: str
    made_by: str
    """The command that wrote it, and when."""
    benchmarks: Sequence[BenchmarkPages]
    images: Path
    """The image store that `PicturePayload.file` is copied from (`hybrid.images`)."""
    tags: tuple[Tag, ...] = ()
    live: bool = False
    """Whether the pages ask their server for what is new (`hybrid view`)."""
