"""A benchmark that is a table: the common part of a file of questions and a recipe."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from hybrid.benchmarks._shared.paths import inside
from hybrid.benchmarks._shared.rows import check_one, lost
from hybrid.benchmarks._shared.scores import score_of
from hybrid.benchmarks.base import AS_PAPERS, Benchmark, ScoreOptions, Source, show, unanswered
from hybrid.benchmarks.questions import scoring
from hybrid.benchmarks.questions.reading import ROUTE, QuestionReader, folder_of
from hybrid.core.errors import DataError
from hybrid.core.types import Ask, BrokenQuestion, Exchange, Kind, Outcome, Prompt, Question, Score

# Tools for questions about objects in one picture: position, number, distance, attributes, text.
TOOLS_OFFERED: Final = ("attributes", "crop", "depth", "detection", "markers", "ocr", "relation", "segmentation")


class TableBenchmark(Benchmark):
    """Questions from tables. Each is asked in one prompt, with the images before the text, and scored by its kind."""

    takes_images_root = True

    @abstractmethod
    def tables(self, source: Source) -> tuple[Path, ...]:
        """Return the files of rows. Raises `DataError` if there are none."""

    @abstractmethod
    def reader(self, source: Source, path: Path) -> QuestionReader:
        """Open one of the tables. Raises `DataError` if it cannot be read."""

    def tasks(self, source: Source) -> tuple[str, ...]:
        """Return the tasks named in the rows; tasks that are on the card come first."""
        present: dict[str, None] = {}
        paths = self.tables(source)
        for path in paths:
            try:
                present |= dict.fromkeys(self.reader(source, path).index.tasks)
            except DataError:
                continue
        if not present:
            # Creating a reader scans its table, and raises if the table is unusable.
            check_one(paths, lambda path: self.reader(source, path))
            raise DataError(f"{', '.join(map(str, paths))}: the file contains no row")
        card_tasks = tuple(self.card.tasks)
        return (
            *(task for task in card_tasks if task in present),
            *(task for task in present if task not in card_tasks),
        )

    def routes(self, source: Source) -> tuple[str, ...]:
        """Return `by_text`, and the values of the column `route` in the chosen tasks."""
        return (ROUTE, *(route for route in self._row_routes(source) if route != ROUTE))

    def task_routes(self, source: Source) -> tuple[str, ...]:
        """Return the chosen tasks."""
        return source.tasks

    def _row_routes(self, source: Source) -> dict[str, None]:
        routes: dict[str, None] = {}
        for path in self.tables(source):
            # If a table cannot be read, this is reported when its questions are read.
            with suppress(DataError):
                by_task = self.reader(source, path).index.routes
                routes |= dict.fromkeys(route for task in source.tasks for route in by_task.get(task, ()))
        return routes

    def files(self, source: Source) -> tuple[Path, ...]:
        """Return the tables."""
        return tuple(path for path in self.tables(source) if inside(folder_of(source), path))

    def questions(self, source: Source) -> Iterator[Question | BrokenQuestion]:
        """Yield the rows of the chosen tasks.

        If one of several tables is unreadable, each task has one broken question for it.
        """
        for task in source.tasks:
            for path in self.tables(source):
                try:
                    yield from self.reader(source, path).questions(
                        task, source.store, needs_images=not source.for_predictions
                    )
                except DataError as error:
                    yield lost(task, folder_of(source), str(path), error)

    async def dialogue(self, question: Question, ask: Ask) -> tuple[Exchange, ...]:
        """Send one prompt: the images, then the text, as VLMEvalKit puts them (image_base.py, build_prompt)."""
        prompt = Prompt(
            (*show(question.images), question.text),
            question.kind,
            question.choices,
            route=question.route,
            task_route=question.task_route,
            fallback_route=question.fallback_route,
        )
        return (Exchange(prompt, await ask(prompt)),)

    def score(self, question: Question, exchanges: Sequence[Exchange], options: ScoreOptions) -> Score:
        """Score the last reply with hybrid's parser, whichever parse was requested: there is no official parser."""
        reply = exchanges[-1].reply
        if reply.outcome is Outcome.ANSWERED or reply.text.strip():
            return scoring.score_text(question, reply.text, reply.outcome, options)
        credit = unanswered(reply.outcome, scoring.chance(question), options)
        return score_of(question, credit, reply.outcome, values=scoring.yes_values(question, None))

    def score_stored(self, question: Question, stored: str, options: ScoreOptions = AS_PAPERS) -> Score:
        """Score an answer that another program stored; it is parsed like a reply."""
        return scoring.score_text(question, stored, Outcome.ANSWERED, options)

    def expected(self, question: Question) -> str | None:
        """Return the right answer in words (`scoring.describe_target`); None if the answer is hidden."""
        return None if question.target is None else scoring.describe_target(question)

    def doubts(self, source: Source) -> Iterator[str]:
        """Yield questionable rows of the chosen tasks, as `QuestionReader.doubts` describes them."""
        for path in self.files(source):
            if path in self.tables(source):
                yield from self.reader(source, path).doubts(source.tasks)

    def oracle(self, question: Question, prompt: Prompt) -> str:
        """Return the right answer as a sentence."""
        if question.kind is Kind.CHOICE:
            return super().oracle(question, prompt)
        return f"The evidence favours {scoring.right_answer(question).removeprefix('Answer: ')}."

    def oracle_answer(self, question: Question, prompt: Prompt) -> str | None:
        """Return the right reply."""
        del prompt
        return scoring.right_answer(question)
