"""The interface of a benchmark: questions from data, a dialogue, a scorer.

Each benchmark is a folder next to this file.

The package `hybrid/benchmarks/NAME` contains `BENCHMARK = Name()`, an object of a subclass of `Benchmark` below.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal, Self

from hybrid.benchmarks.card import BenchmarkCard, metric_of, ratios
from hybrid.config import Parse
from hybrid.core.errors import UsageError
from hybrid.core.images import ImageStore
from hybrid.core.toml_records import read_card
from hybrid.core.types import (
    LETTERS,
    Ask,
    BrokenQuestion,
    Cell,
    Exchange,
    ImageRef,
    Metric,
    Outcome,
    Prompt,
    Question,
    Score,
    StoredImage,
)
from hybrid.plugins.prompt_texts import read_texts
from hybrid.plugins.registry import import_submodule
from hybrid.samples.seeds import Purpose

UnansweredRule = Literal["wrong", "guess"]


@dataclass(frozen=True)
class Source:
    """The source of questions, and the store for their images."""

    # The folder with the data in the official layout; for a benchmark with `accepts_file` it may be a file.
    folder: Path
    store: ImageStore
    split: str
    tasks: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    # Whether saved predictions are joined to the questions and no model is asked. Then each variant that may have been
    # predicted is streamed, whatever the settings. Images may be missing: a benchmark that does not name its clusters
    # reads the images that exist, because questions with the same picture form one cluster.
    for_predictions: bool = False
    # The root of the image paths in a table, if it is not the table's folder.
    images_root: Path | None = None
    # Whether the questions were generated; if so, their ids say this.
    generated: bool = False


@dataclass(frozen=True)
class ScoreOptions:
    """How replies are scored. The options are saved with the scores, never in a run's configuration.

    `unanswered` is the rule for a question without a readable answer: after an abstention, an unreadable reply, a spent
    budget or a tool's fault. It is the same for every solver. The question scores as a guess would on average
    (`guess`), or 0 as in the papers (`wrong`). A failed question is not scored: it is missing.
    """

    parse: Parse = "strict"
    unanswered: UnansweredRule = "wrong"


# Options of the papers: a reply without a readable answer is wrong.
AS_PAPERS = ScoreOptions()


@dataclass(frozen=True)
class Prediction:
    """A reply that another program recorded.

    `stored` is the answer that the program extracted, and `text` is the model's full text, if available.
    """

    text: str | None
    stored: str | None


@dataclass(frozen=True)
class PredictedRow:
    """One recorded reply, with the facts that its file states about the question.

    `id` is one of the benchmark's own ids. `task` is a text that contains the name of the task. `place` counts from 1
    within the task in the order of the benchmark's data; `index` only gives the order. `answer` is the gold answer; a
    foreign format has a letter without parentheses. `stored` is the extracted answer: None if the file has none, empty
    if the extraction failed. `cluster` is the unit that statistics resample, in a file that hybrid exported.
    """

    where: str
    reply: str
    id: str | None = None
    task: str | None = None
    place: int | None = None
    index: int | None = None
    text: str | None = None
    choices: tuple[str, ...] = ()
    answer: str | None = None
    stored: str | None = None
    cluster: str = ""

    @property
    def name(self) -> str:
        """Name of the row in messages."""
        if self.id is not None:
            return self.id
        number = self.place if self.place is not None else self.index
        return f"{self.task or 'row'} {number}" if number is not None else self.where


class Benchmark(ABC):
    """The interface of a benchmark. Every method is pure except that `questions` fills the image store.

    The defaults are what most benchmarks share: one prompt per question, public answers, no layout of saved
    predictions, an oracle that names the letter of the target.
    """

    # Whether the data may be in any folder below the given one; there may be many such folders.
    searches_subfolders: ClassVar[bool] = False

    # Whether the data may be a single file.
    accepts_file: ClassVar[bool] = False

    # Whether images may be in another folder than the table that names them.
    takes_images_root: ClassVar[bool] = False

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self._texts = texts

    @cached_property
    def card(self) -> BenchmarkCard:
        """The facts in `card.toml` next to the module; a benchmark may define them in code instead, or derive them."""
        return read_card(self._sibling_file("card.toml")[1], BenchmarkCard)

    def _sibling_file(self, file: str) -> tuple[str, Path]:
        """Return a file next to the class, else next to the nearest base class that has it, with the class's module."""
        modules = [
            class_.__module__
            for class_ in type(self).__mro__
            if issubclass(class_, Benchmark) and class_ is not Benchmark
        ]
        places = [(module, Path(str(sys.modules[module].__file__)).with_name(file)) for module in modules]
        return next((place for place in places if place[1].is_file()), places[0])

    def schema_mismatch(self, source: Source) -> str | None:
        """Describe how the data deviate from the card, or None if they match.

        Column names alone are not sufficient if many data sets have them. Raises what `tasks` raises.
        """
        del source
        return None

    @property
    def texts_file(self) -> Path:
        """The file of the texts that are not part of the data."""
        return Path(__file__).parent / self.card.name / "texts.toml"

    @property
    def texts(self) -> Mapping[str, str]:
        """The texts that are not part of the data, by name: from `texts_file`, or replaced by those of `--prompts`."""
        return read_texts(self.texts_file) if self._texts is None else self._texts

    def with_texts_read(self) -> Self:
        """Return a copy that has read its texts from disk once, instead of at every prompt."""
        same = copy(self)
        same._texts = self.texts  # noqa: SLF001
        return same

    def reworded(self, replacement: Path) -> Benchmark:
        """Return the benchmark with its texts replaced by a file (`--prompts`). Raises what `read_texts` does."""
        return type(self)(read_texts(self.texts_file, replacement))

    @abstractmethod
    def tasks(self, source: Source) -> tuple[str, ...]:
        """Return the tasks in the data, in the order of the card. Raises `DataError` if the data have no task."""

    def routes(self, source: Source) -> tuple[str, ...] | None:
        """Return the routes of prompts about the chosen tasks; None if unknown.

        A route determines which rules apply.
        """
        return source.tasks if self.card.routes_are_tasks else self.card.routes or None

    def task_routes(self, source: Source) -> tuple[str, ...]:
        """Return further routes, which only the rules of external tools can serve."""
        del source
        return ()

    @abstractmethod
    def files(self, source: Source) -> tuple[Path, ...]:
        """Return the files that determine the questions of `source.tasks`; their hash is the data's fingerprint."""

    def hub_files(self, split: str, tasks: Sequence[str]) -> tuple[str, ...]:
        """Return the files of the hub's data set that these tasks need (empty: all tasks), as patterns of their paths.

        The data set must have a file for each pattern. The default is every file, for layouts that only the data
        reveal.
        """
        return ("*",)

    @abstractmethod
    def questions(self, source: Source) -> Iterator[Question | BrokenQuestion]:
        """Stream the questions of the chosen tasks; a row that cannot be used becomes a `BrokenQuestion`.

        Raises:
            DataError: an unusable file: missing, without a required column or field, or with a duplicate id.
            UsageError: an invalid value of a setting.
        """

    async def dialogue(self, question: Question, ask: Ask) -> tuple[Exchange, ...]:
        """Run the protocol of one or several prompts; by default one prompt, with the text before the images.

        Gets `question.without_target()`, never the target.
        """
        prompt = Prompt(
            parts=(question.text, *show(question.images)),
            kind=question.kind,
            choices=question.choices,
            given=question.given,
            route=question.route,
        )
        return (Exchange(prompt, await ask(prompt)),)

    @abstractmethod
    def score(self, question: Question, exchanges: Sequence[Exchange], options: ScoreOptions) -> Score:
        """Score one question. Calls no model."""

    @abstractmethod
    def score_stored(self, question: Question, stored: str, options: ScoreOptions = AS_PAPERS) -> Score:
        """Score an answer that the authors' extraction stored, by their rule of equality."""

    def summarise(self, scores: Sequence[Score]) -> tuple[Metric, ...]:
        """Compute the metrics whose card has a formula; names with a dot (`qAcc.low`) are nested when printed.

        A failed question is missing: it is left out, with every unit (a pair, a set of rotations) that contains it.
        """
        return tuple(ratios(self.card.metrics, scores, {"task": self.card.tasks}))

    def predictions(self, path: Path) -> tuple[tuple[Question, Prediction], ...] | None:
        """Return the predictions at `path`, each with as much of its question as the files contain.

        Return None if this benchmark does not recognise the layout. Raises `DataError` for a broken file.
        """
        del path
        return None

    def recordings(self, path: Path) -> tuple[PredictedRow, ...] | None:
        """Return the recorded replies, with question ids, in a file; None if it is not in the benchmark's layout.

        The replies may be of any split. Raises `DataError` for a broken file.
        """
        del path
        return None

    def question_from_row(self, row: PredictedRow) -> Question:
        """Return the question of a row in another format, made from the row's fields, to score without the data.

        Raises:
            UsageError: scoring needs more of a question than a row contains.
            DataError: the row has too little information.
        """
        raise UsageError(f"{row.where}: give the questions of {self.card.name} with --data DIR")

    def submission(self, answers: Mapping[str, str | None]) -> str:
        """Return the file that the benchmark's server accepts for a split with hidden answers, given answers by id.

        Raises `UsageError` if all answers are public.
        """
        del answers
        raise UsageError(f"the answers of {self.card.name} are public, so there is no submission server")

    def generate(
        self, folder: Path, tasks: Sequence[str], per_task: int, seed: int, purpose: Purpose = "sample"
    ) -> None:
        """Write generated questions in the official layout, as `write` of `sample.py` in the benchmark's package does.

        The same call gives the same bytes on one machine. Raises `UsageError` for tasks, a number or a seed that cannot
        be generated.
        """
        if not self.card.sample_tasks:
            raise UsageError(f"--data sample: {self.card.name} has no generated questions")
        # Imported here because drawing needs numpy, which other commands do not load.
        import_submodule(self._sibling_file("sample.py")[0], "sample").write(folder, tasks, per_task, seed, purpose)

    def expected(self, question: Question) -> str | None:
        """Return the right answer in words, for a person who checks data; None if the benchmark does not say."""
        del question
        return None

    def doubts(self, source: Source) -> Iterator[str]:
        """Yield questionable rows of the chosen tasks that can still be asked, each with its location and reason."""
        del source
        return iter(())

    def oracle(self, question: Question, prompt: Prompt) -> str:
        """Return a perfect tool's sentence about this prompt: the letter and the text of the right choice."""
        letter = str(question.target).strip("()")
        return f"The evidence favours ({letter}) {prompt.choices[LETTERS.index(letter)]}."

    def oracle_answer(self, question: Question, prompt: Prompt) -> str | None:
        """Return the right reply to this prompt in the form of its kind's format line; None if no reply is right."""
        del prompt
        return f"Answer: ({str(question.target).strip('()')})"


def show(images: Sequence[StoredImage], first: int = 1) -> tuple[ImageRef, ...]:
    """Name images `img:1`, `img:2`, ..., because file names can leak the answer."""
    return tuple(ImageRef(f"img:{first + offset}", image) for offset, image in enumerate(images))


def unanswered(outcome: Outcome, chance: float, options: ScoreOptions) -> float:
    """Return the score of a question without a readable answer: `chance` if it counts as a guess, else 0.

    A failed question has 0 under either rule.
    """
    return chance if options.unanswered == "guess" and not outcome.failed else 0.0


def present(scores: Sequence[Score]) -> list[Score]:
    """Return the scores of questions that did not fail."""
    return [score for score in scores if not score.outcome.failed]


def accuracy(name: str, scores: Sequence[Score], *, macro: bool = False) -> Metric:
    """Average `correct` over the questions that did not fail; `macro` averages the tasks' means.

    A score without `correct` (a scanpath) is left out.
    """
    cells = (
        Cell(score.task if macro else "", score.unit, score.correct, 1.0)
        for score in present(scores)
        if score.correct is not None
    )
    return metric_of(name, cells, "mean_of_ratios" if macro else "ratio")
