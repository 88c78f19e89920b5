"""The seam of a benchmark: questions out of data, a dialogue, a scorer. One file each beside this one.

A file `hybrid/benchmarks/NAME.py` holds `BENCHMARK = Name()`, an object with the methods of `Benchmark` below.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from hybrid.images import ImageStore
from hybrid.stats import combine
from hybrid.texts import words
from hybrid.types import (
    Ask,
    BrokenQuestion,
    Cell,
    Combine,
    Exchange,
    ImageRef,
    Kind,
    Metric,
    Outcome,
    Prompt,
    Question,
    Score,
    StoredImage,
)

Parse = Literal["strict", "official"]
Abstain = Literal["chance", "wrong"]


@dataclass(frozen=True)
class ImageSource:
    """A collection that images of a benchmark come from."""

    name: str
    """As `hybrid.image_sets` names it."""
    where: str
    """The place in the paper that says so."""
    tasks: tuple[str, ...] = ()
    """The tasks that take images from it; empty for all."""


@dataclass(frozen=True)
class BenchmarkCard:
    """What a user must know of a benchmark before running it."""

    name: str
    title: str
    citation: str
    licence: str
    image_sources: tuple[ImageSource, ...]
    hub_id: str | None
    splits: tuple[str, ...]
    tasks: Mapping[str, int]
    """Expected number of questions of the main split, by task; 0 where it is not known."""
    settings: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """`--setting` key -> (default, what it does)."""
    hidden_splits: tuple[str, ...] = ()
    """Splits whose answers are not public: they run and are never scored."""
    rotatable: tuple[str, ...] = ()
    """Tasks whose options are text, so that `--rotate` can move them; not those with letters in the picture."""
    options_in_text: bool = True
    """Whether a question's text holds its options; else the dialogue writes them from the choices."""
    sample_tasks: tuple[str, ...] = ()
    """Tasks that `--data sample` can generate."""
    official_reads: frozenset[Kind] = frozenset(Kind)
    """Kinds of question whose reply the official parse reads when it ends as our format line asks (`Answer: (B)`).

    An answer to any other kind that was asked for with our line would count as unread, so such a run is not scored
    by the official parse."""
    official_settings: Mapping[str, str] = field(default_factory=dict)
    """Settings that `--protocol official` implies where they are not given: each reads replies on the way to the answer
    as the papers' code does, which our format line is not written for."""
    prediction_prefixes: tuple[str, ...] = ()
    """Of further files with one model's published predictions: `mcq_` where `mcq_NAME.jsonl` goes with `NAME.jsonl`."""

    headline: tuple[str, ...] = ()
    """Metrics that the paper leads with, in order: the first that the scores have is what two solvers are tested by."""
    reported: tuple[str, ...] = ()
    """What tables show: every metric whose name begins with one of these; empty for all. JSON always has all."""

    def sources_of(self, tasks: Collection[str]) -> tuple[str, ...]:
        """The collections that the images of these tasks come from."""
        return tuple(
            source.name for source in self.image_sources if not source.tasks or not set(source.tasks).isdisjoint(tasks)
        )


@dataclass(frozen=True)
class Source:
    """Where questions come from: the folder of the official layout, and the store that takes the images."""

    folder: Path
    store: ImageStore
    split: str
    tasks: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    joining: bool = False
    """Saved predictions are joined to the questions and nobody is asked: every variant that may have been predicted is
    streamed, whatever the settings, and images, which need not be there, are not read."""


@dataclass(frozen=True)
class ScoreOptions:
    """How replies are turned into verdicts; part of a scores file, never of a run.

    `abstain` says what a question without a readable answer is worth, whoever was asked: an abstention, a reply that
    nobody can read, a spent budget or a tool's fault counts as a guess would on average (`chance`), or as the papers
    count it (`wrong`). A failed question is neither: it is missing.
    """

    parse: Parse = "strict"
    abstain: Abstain = "wrong"


AS_PAPERS = ScoreOptions()
"""Who gives no readable answer is wrong."""


@dataclass(frozen=True)
class Prediction:
    """A reply that somebody else recorded.

    `stored` is the answer their own extraction kept, `text` the model's full text where it was kept.
    """

    text: str | None
    stored: str | None


class OwnWords:
    """The words of a benchmark: those of `NAME/texts.toml`, or the `texts` that replace them (`--prompts`)."""

    card: BenchmarkCard

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self._texts = texts

    @property
    def texts(self) -> Mapping[str, str]:
        """The texts that the data does not carry, by name."""
        return words(self.card.name) if self._texts is None else self._texts


class Benchmark(Protocol):
    """What a benchmark offers. Every method is pure except that `questions` fills the image store."""

    card: BenchmarkCard

    def __init__(self, texts: Mapping[str, str] | None = None) -> None: ...

    @property
    def texts(self) -> Mapping[str, str]:
        """The texts that no data carries, by name: those of `NAME/texts.toml`, or what `--prompts` put there."""
        ...

    def tasks(self, source: Source) -> tuple[str, ...]:
        """The tasks the data holds, in the order of the card. Raises `DataError` when it holds none."""
        ...

    def files(self, source: Source) -> tuple[Path, ...]:
        """The files that decide the questions of `source.tasks`: their hash is the data's fingerprint."""
        ...

    def questions(self, source: Source) -> Iterator[Question | BrokenQuestion]:
        """Stream the questions. Raises `DataError` for a file that cannot be used as a whole."""
        ...

    async def dialogue(self, question: Question, ask: Ask) -> tuple[Exchange, ...]:
        """The protocol: ask once or several times. Gets `question.asked()`, never the target."""
        ...

    def score(self, question: Question, exchanges: Sequence[Exchange], options: ScoreOptions) -> Score:
        """The verdict on one question. Calls no model."""
        ...

    def score_stored(self, question: Question, stored: str, options: ScoreOptions = AS_PAPERS) -> Score:
        """The verdict on an answer that the authors' own extraction kept, by their rule of equality."""
        ...

    def predictions(self, path: Path) -> tuple[tuple[Question, Prediction], ...] | None:
        """Predictions that somebody else saved at `path`, with the questions as far as the files tell them.

        None where this benchmark does not recognise the layout. Raises `DataError` for a broken file.
        """
        ...

    def submission(self, answers: Mapping[str, str | None]) -> str:
        """What the benchmark's own server takes for a split with hidden answers, from id to our letter."""
        ...

    def summarise(self, scores: Sequence[Score]) -> tuple[Metric, ...]:
        """The benchmark's metrics; names with a dot (`qAcc.low`) are nested when printed.

        A failed question is missing: it is left out, and so is every unit (a pair, a set of rotations) it belongs to.
        """
        ...

    def oracle(self, question: Question, prompt: Prompt) -> str:
        """One sentence that a perfect tool would say about this prompt."""
        ...

    def oracle_answer(self, question: Question, prompt: Prompt) -> str | None:
        """The right reply to this prompt in the form of its kind's format line; None where there is none to give."""
        ...


def show(images: Sequence[StoredImage], first: int = 1) -> tuple[ImageRef, ...]:
    """Name images `img:1`, `img:2`, ...: file names can leak the answer."""
    return tuple(ImageRef(f"img:{first + offset}", image) for offset, image in enumerate(images))


async def ask_once(question: Question, ask: Ask) -> tuple[Exchange, ...]:
    """The default protocol: the text, then the images in order, asked once."""
    prompt = Prompt(
        parts=(question.text, *show(question.images)),
        kind=question.kind,
        choices=question.choices,
        given=question.given,
        route=question.route,
    )
    return (Exchange(prompt, await ask(prompt)),)


def unanswered(outcome: Outcome, chance: float, options: ScoreOptions) -> float:
    """What a question without a readable answer is worth: chance when so chosen, else nothing; a failed one nothing."""
    return chance if options.abstain == "chance" and not outcome.failed else 0.0


def present(scores: Sequence[Score]) -> list[Score]:
    """The scores of questions that did not fail."""
    return [score for score in scores if not score.outcome.failed]


def accuracy(name: str, scores: Sequence[Score], *, macro: bool = False) -> Metric:
    """Mean of `correct` over the questions that did not fail; `macro` averages the tasks' means.

    A score without `correct` (a scanpath) is left out.
    """
    cells = tuple(
        Cell(score.task if macro else "", score.unit, score.correct, 1.0)
        for score in scores
        if score.correct is not None and not score.outcome.failed
    )
    how: Combine = "mean_of_ratios" if macro else "ratio"
    return Metric(name, combine(cells, how), len(cells), how, cells)
