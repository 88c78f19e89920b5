"""The contents of a report as frozen values, without HTML.

    Pages(title, made_by, benchmarks)               # the whole site
        BenchmarkPages(key, overview, n, questions) # a tab: one benchmark

`collect.py` makes them of scored runs, `site.py` writes them as files that a browser reads. Everything that a person
reads in them may have been written by a model or a data set: it is text, and never markup.
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
    """A line of what was run: `model`, `openai:gpt-4o`."""

    name: str
    value: str


@dataclass(frozen=True)
class SolverCard:
    """A solver as the pages know it."""

    name: str  # As tables name it: `controller [blank]`
    role: Role
    model: str | None
    control: str | None
    n: int
    failed: int
    open: int


@dataclass(frozen=True)
class Chart:
    """Rows of the result table that one picture shows, and the values that they are read against."""

    kind: ChartKind
    title: str
    rows: tuple[Result, ...]
    marks: tuple[ReferenceLine, ...] = ()
    # Of a waterfall, for each row: 0 where it starts, 1 a step up, -1 a step down (`Section.signs`).
    signs: tuple[int, ...] = ()


@dataclass(frozen=True)
class OverviewSection:
    """One question and its answer: charts first, tables below, and the command that gives the same numbers."""

    id: str  # Its anchor in a link: letters, digits and hyphens
    title: str
    lead: str  # The conclusion in one or two sentences, shown while the section is folded; empty for none
    charts: tuple[Chart, ...]
    tables: tuple[Table, ...]
    command: str  # `hybrid compare RUN --json`: recomputes every number of the section
    pictures: tuple[PicturePayload, ...] = ()  # Shown above all else


@dataclass(frozen=True)
class Overview:
    """The first page of a benchmark."""

    benchmark: str
    title: str
    facts: tuple[Fact, ...]
    warnings: tuple[str, ...] = ()  # Labels, damage, failures: they limit every number
    solvers: tuple[SolverCard, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()  # The pairs a, b of solvers for which helped and harmed can be asked for
    sections: tuple[OverviewSection, ...] = ()
    conclusion: tuple[str, ...] = ()  # At most ten sentences
    # The charts of the first screen: the parts of the gain, each solver's value, differences (or values) by task.
    front: tuple[Chart, ...] = ()
    # The numbers of these charts, also for readers without scripts: a line a solver, a line a task.
    headline: tuple[Table, ...] = ()
    # The column of the list of questions that holds the groups of rows: `task`, or the group of `--by`.
    by: str = "task"
    head: tuple[str, ...] = ()  # The first line: models, benchmark and split or generated questions, number, date


@dataclass(frozen=True)
class PicturePayload:
    """An image of a page.

    `file` is its path in the site (`images/ab/abcd....jpg`), None where the store does not have it; `width` and
    `height` are those of the original in pixels.
    """

    name: str  # `img:1`, as the model knows it
    file: str | None
    width: int
    height: int
    # Kind and origin of the picture, for people who do not see it: `crop of img:1, box (10, 20, 200, 300)`.
    caption: str
    # The name of the image of the same size that this one is drawn over, for a slider between the two.
    over: str | None = None


@dataclass(frozen=True)
class StepEntry:
    """One step of a conversation: a model's message, a tool's finding, a decision of a rule."""

    kind: Literal["model", "tool", "rule"]
    name: str
    text: str
    seconds: float
    fault: str | None
    data: Json  # Arguments, numbers, confidence: what the trace holds
    pictures: tuple[PicturePayload, ...]


@dataclass(frozen=True)
class AskEntry:
    """One ask: what was put to the solver, what happened, what it replied."""

    # Text and images in order; empty where it is the question as it stands above.
    prompt: tuple[str | PicturePayload, ...]
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
    correct: float | None  # 0..1; None where it was not asked, or where there is no right and wrong
    outcome: str  # A value of `Outcome`; `open` where it was not finished yet; empty where it has no such question
    answer: str
    rule: str  # Of the parser that read the answer
    why: str  # Why it failed or has no score; empty else
    wall_s: float | None
    asks: tuple[AskEntry, ...]

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that were called, each once, in the order of their first call."""
        steps = (step for ask in self.asks for step in ask.steps)
        return tuple(dict.fromkeys(step.name for step in steps if step.kind == "tool"))


@dataclass(frozen=True)
class QuestionPage:
    """A question with everything that became of it."""

    id: str
    task: str
    groups: tuple[Fact, ...]
    text: str
    choices: tuple[str, ...]
    target: str  # The right answer in words; empty where it is not known
    pictures: tuple[PicturePayload, ...]
    solvers: tuple[SolverEntry, ...]  # One for each solver of the overview, in its order
    error: str = ""  # Why the question could not be asked at all
    sampled: bool = False  # Whether the question is on the error sheet
    own_words: str = ""  # `text` without what the benchmark puts before it, such as a disclaimer; empty if unknown
    again: str = ""  # The command that asks this question again, with every request and reply in the log
    again_where: str = ""  # Where that command runs; empty if it runs in the working directory


@dataclass(frozen=True)
class BenchmarkPages:
    """The pages of one benchmark."""

    key: str  # Of its files and links: the benchmark's name, with a number where it appears twice
    overview: Overview
    n: int  # Questions
    # In the order of the data; made one at a time, as there may be many and each may be long.
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
    """A whole report."""

    title: str
    made_by: str  # The command that wrote it, and when
    benchmarks: Sequence[BenchmarkPages]
    images: Path  # The image store that `PicturePayload.file` is copied from (`hybrid.core.images`)
    tags: tuple[Tag, ...] = ()
    live: bool = False  # Whether the pages ask their server for what is new (`hybrid view`)
