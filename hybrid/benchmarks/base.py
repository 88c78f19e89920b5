"""The seam of a benchmark: questions out of data, a dialogue, a scorer. One folder each next to this file.

The package `hybrid/benchmarks/NAME` holds `BENCHMARK = Name()`, an object of a subclass of `Benchmark` below.
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

from hybrid.benchmarks._shared.ratios import ratios
from hybrid.benchmarks.card import BenchmarkCard, metric_of
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
    """Where questions come from, and the store that takes the images."""

    # The folder of the official layout; of a benchmark that `accepts_file` also one file.
    folder: Path
    store: ImageStore
    split: str
    tasks: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    # Saved predictions are joined to the questions and no model is asked: each variant that may have been predicted is
    # streamed, whatever the settings. Images need not be there: a benchmark that does not name its clusters reads those
    # that it finds, because questions that show the same picture are one cluster.
    for_predictions: bool = False
    # The folder that the paths of a table's images begin in, where it is not the table's own.
    images_root: Path | None = None
    # Whether the questions were generated: their ids say so.
    generated: bool = False


@dataclass(frozen=True)
class ScoreOptions:
    """How replies are turned into verdicts; part of a scores file, never of a run.

    `unanswered` gives the worth of a question without a readable answer, for every solver: an abstention, an
    unreadable reply, a spent budget or a tool's fault counts as a guess would on average (`guess`), or as the papers
    count it (`wrong`). A failed question is neither: it is missing.
    """

    parse: Parse = "strict"
    unanswered: UnansweredRule = "wrong"


# A reply without a readable answer is wrong.
AS_PAPERS = ScoreOptions()


@dataclass(frozen=True)
class Prediction:
    """A reply recorded by others.

    `stored` is the answer that their extraction kept, `text` the model's full text where it was kept.
    """

    text: str | None
    stored: str | None


@dataclass(frozen=True)
class PredictedRow:
    """One recorded reply, with what its own file says about the question.

    `id` is one of the benchmark's own ids. `task` is a name that contains the task's. `place` counts from 1 within the
    task in the order of the benchmark's data; `index` only gives the order. `answer` is the gold answer, of a foreign
    format a letter without parentheses where it is one. `stored` is what was extracted: None where no extraction is
    kept, empty where it found nothing. `cluster` is the unit that statistics resample, in a file of our own exports.
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
        """The row's name in messages."""
        if self.id is not None:
            return self.id
        number = self.place if self.place is not None else self.index
        return f"{self.task or 'row'} {number}" if number is not None else self.where


class Benchmark(ABC):
    """The interface of a benchmark. Every method is pure except that `questions` fills the image store.

    What most benchmarks share is the default here: one ask a question, answers that are public, no predictions in a
    layout of its own, an oracle that names the letter of the target.
    """

    # Whether the data are looked for in every folder below the given one; these may be many.
    searches_subfolders: ClassVar[bool] = False

    # Whether the data may be one file.
    accepts_file: ClassVar[bool] = False

    # Whether images may lie elsewhere than the table that names them.
    takes_images_root: ClassVar[bool] = False

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self._texts = texts

    @cached_property
    def card(self) -> BenchmarkCard:
        """The facts of `card.toml` beside the module; a benchmark may say them in code instead, or derive them."""
        return read_card(self._sibling_file("card.toml")[1], BenchmarkCard)

    def _sibling_file(self, file: str) -> tuple[str, Path]:
        """A file beside the class, or else beside the nearest that it derives from, and the module of that class."""
        modules = [
            class_.__module__
            for class_ in type(self).__mro__
            if issubclass(class_, Benchmark) and class_ is not Benchmark
        ]
        places = [(module, Path(str(sys.modules[module].__file__)).with_name(file)) for module in modules]
        return next((place for place in places if place[1].is_file()), places[0])

    def schema_mismatch(self, source: Source) -> str | None:
        """How data that can be read differ from those that the card tells of; None where they may be these.

        Names of columns alone are no proof where many data sets have them. Raises `DataError` as `tasks`.
        """
        del source
        return None

    @property
    def texts_file(self) -> Path:
        """The file of the texts that no data carries."""
        return Path(__file__).parent / self.card.name / "texts.toml"

    @property
    def texts(self) -> Mapping[str, str]:
        """The texts that no data carries, by name: those of `texts_file`, or what `--prompts` replaced them by."""
        return read_texts(self.texts_file) if self._texts is None else self._texts

    def with_texts_read(self) -> Self:
        """The benchmark that reads its texts from disk once, and not at every prompt."""
        same = copy(self)
        same._texts = self.texts  # noqa: SLF001
        return same

    def reworded(self, replacement: Path) -> Benchmark:
        """The benchmark with texts of a file in place of its own (`--prompts`). Raises `UsageError` as `read_texts`."""
        return type(self)(read_texts(self.texts_file, replacement))

    @abstractmethod
    def tasks(self, source: Source) -> tuple[str, ...]:
        """The tasks the data holds, in the order of the card. Raises `DataError` when it holds none."""

    def routes(self, source: Source) -> tuple[str, ...] | None:
        """The routes that prompts about the chosen tasks can have, by which rules are found; None if unknown."""
        return source.tasks if self.card.routes_are_tasks else self.card.routes or None

    def task_routes(self, source: Source) -> tuple[str, ...]:
        """Further routes, for rules of tools from outside of the project alone."""
        del source
        return ()

    @abstractmethod
    def files(self, source: Source) -> tuple[Path, ...]:
        """The files that decide the questions of `source.tasks`: their hash is the data's fingerprint."""

    def hub_files(self, split: str, tasks: Sequence[str]) -> tuple[str, ...]:
        """Which files of the data set on the hub these tasks need (empty: all tasks), as patterns of their paths.

        The data set must have a file for each pattern. The default is every file, for a layout that only the data
        itself tells.
        """
        return ("*",)

    @abstractmethod
    def questions(self, source: Source) -> Iterator[Question | BrokenQuestion]:
        """Stream the questions of the chosen tasks; a row that cannot be used becomes a `BrokenQuestion`.

        Raises:
            DataError: a file that cannot be used as a whole: missing, without a column or field, or with an id twice.
            UsageError: a setting has a value that it does not take.
        """

    async def dialogue(self, question: Question, ask: Ask) -> tuple[Exchange, ...]:
        """The protocol: ask once or several times; by default once, the text and then the images in order.

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
        """The verdict on one question. Calls no model."""

    @abstractmethod
    def score_stored(self, question: Question, stored: str, options: ScoreOptions = AS_PAPERS) -> Score:
        """The verdict on an answer that the authors' own extraction kept, by their rule of equality."""

    def summarise(self, scores: Sequence[Score]) -> tuple[Metric, ...]:
        """The benchmark's metrics, those whose card says how; names with a dot (`qAcc.low`) are nested when printed.

        A failed question is missing: it is left out, and so is every unit (a pair, a set of rotations) it belongs to.
        """
        return tuple(ratios(self.card.metrics, scores, {"task": self.card.tasks}))

    def predictions(self, path: Path) -> tuple[tuple[Question, Prediction], ...] | None:
        """Predictions saved by others at `path`, with the questions as far as the files give them.

        None where this benchmark does not recognise the layout. Raises `DataError` for a broken file.
        """
        del path
        return None

    def recordings(self, path: Path) -> tuple[PredictedRow, ...] | None:
        """Every reply with its id in a file of the benchmark's own layout, of all splits; None for another layout.

        Raises `DataError` for a broken file.
        """
        del path
        return None

    def question_from_row(self, row: PredictedRow) -> Question:
        """The question of a foreign row as far as the row gives it, for scoring without the data.

        Raises:
            UsageError: the scores need more of a question than a row holds.
            DataError: the row does not give enough.
        """
        raise UsageError(f"{row.where}: give the questions of {self.card.name} with --data DIR")

    def submission(self, answers: Mapping[str, str | None]) -> str:
        """The file that the benchmark's own server accepts for a split with hidden answers, from id to our letter.

        Raises `UsageError` where all answers are public.
        """
        del answers
        raise UsageError(f"{self.card.name}'s answers are public: there is no server to submit to")

    def generate(
        self, folder: Path, tasks: Sequence[str], per_task: int, seed: int, purpose: Purpose = "sample"
    ) -> None:
        """Write generated questions in the official layout, as `write` of `sample.py` in the benchmark's package does.

        The same call gives the same bytes on one machine. Raises `UsageError` for tasks, a number or a seed that cannot
        be generated.
        """
        if not self.card.sample_tasks:
            raise UsageError(f"--data sample: {self.card.name} has no generated questions")
        # Drawing takes numpy, which asking does without.
        import_submodule(self._sibling_file("sample.py")[0], "sample").write(folder, tasks, per_task, seed, purpose)

    def expected(self, question: Question) -> str | None:
        """The right answer in words, for a person who checks data; None where the benchmark does not say."""
        del question
        return None

    def doubts(self, source: Source) -> Iterator[str]:
        """Rows of the chosen tasks that can be asked and may not be meant so, each with its place and why."""
        del source
        return iter(())

    def oracle(self, question: Question, prompt: Prompt) -> str:
        """A perfect tool's sentence about this prompt: the letter and the text of the right choice."""
        letter = str(question.target).strip("()")
        return f"The evidence favours ({letter}) {prompt.choices[LETTERS.index(letter)]}."

    def oracle_answer(self, question: Question, prompt: Prompt) -> str | None:
        """The right reply to this prompt in the form of its kind's format line; None if there is none."""
        del prompt
        return f"Answer: ({str(question.target).strip('()')})"


def show(images: Sequence[StoredImage], first: int = 1) -> tuple[ImageRef, ...]:
    """Name images `img:1`, `img:2`, ...: file names can leak the answer."""
    return tuple(ImageRef(f"img:{first + offset}", image) for offset, image in enumerate(images))


def unanswered(outcome: Outcome, chance: float, options: ScoreOptions) -> float:
    """The score of a question without a readable answer: chance when so chosen, else nothing; a failed one nothing."""
    return chance if options.unanswered == "guess" and not outcome.failed else 0.0


def present(scores: Sequence[Score]) -> list[Score]:
    """The scores of questions that did not fail."""
    return [score for score in scores if not score.outcome.failed]


def accuracy(name: str, scores: Sequence[Score], *, macro: bool = False) -> Metric:
    """Mean of `correct` over the questions that did not fail; `macro` averages the tasks' means.

    A score without `correct` (a scanpath) is left out.
    """
    cells = (
        Cell(score.task if macro else "", score.unit, score.correct, 1.0)
        for score in present(scores)
        if score.correct is not None
    )
    return metric_of(name, cells, "mean_of_ratios" if macro else "ratio")
