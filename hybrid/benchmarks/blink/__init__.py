"""BLINK (Fu et al., ECCV 2024): 14 visual perception tasks as multiple choice, 1,901 val questions.

    hybrid run blink --data DIR            DIR/TASK/val-*.parquet, the layout of the hub data set
    hybrid score OUTPUTS --benchmark blink --field stored

Protocol (official `eval/test_benchmark.py`): one call, the text first, then the images in order. Metrics: exact letter,
as the unweighted mean over the 14 tasks (macro) and as the share of all questions (micro). The answers of the test
split are hidden; it can be run but not scored, and `hybrid score` writes the file for the challenge server.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from hybrid.answers.letters import parse_letter
from hybrid.benchmarks._shared.paths import inside
from hybrid.benchmarks._shared.rows import DataRow, check_one, opened, read_questions, rows, stored_ahead
from hybrid.benchmarks._shared.scores import score_kept, score_reply
from hybrid.benchmarks.base import AS_PAPERS, Benchmark, PredictedRow, Prediction, ScoreOptions, Source
from hybrid.benchmarks.blink.outputs import read_outputs, rows_of, splits_of
from hybrid.core.errors import DataError, UsageError
from hybrid.core.types import LETTERS, BrokenQuestion, Exchange, Kind, Question, Score

HIDDEN = "hidden"
# Letters that the authors' extraction accepts, whatever a question offers.
OFFERABLE = ("(A)", "(B)", "(C)", "(D)", "(E)")


class TaskFacts(NamedTuple):
    """The scale of a task's questions, the kind of their marks, and the wording of their choices."""

    granularity: str
    marks: str
    choices: Sequence[str]


_ROWS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
TASKS: Mapping[str, TaskFacts] = {task: TaskFacts(**row) for task, row in _ROWS.items()}

DISCLAIMED = ("Forensic_Detection", "Jigsaw", "Art_Style")
MARKED_POINTS = tuple(task for task, facts in TASKS.items() if facts.marks == "circle")

IMAGE_COLUMNS = ("image_1", "image_2", "image_3", "image_4")
COLUMNS = ("idx", "prompt", "choices", "answer", IMAGE_COLUMNS[0])


class Blink(Benchmark):
    """The benchmark BLINK; its protocol is described in the module's docstring."""

    def tasks(self, source: Source) -> tuple[str, ...]:
        """Return the tasks for which the folder contains a parquet file of the split."""
        files = {task: paths for task in TASKS if (paths := _files(source, task))}
        if not files:
            raise DataError(f"{source.folder} contains no BLINK data: expected TASK/{source.split}-*.parquet")

        def check(path: Path) -> None:
            with opened(source.folder, path, COLUMNS):
                pass

        check_one((path for paths in files.values() for path in paths), check)
        return tuple(files)

    def files(self, source: Source) -> tuple[Path, ...]:
        """Return the parquet files of the chosen tasks."""
        paths = (path for task in source.tasks for path in _files(source, task))
        return tuple(path for path in paths if inside(source.folder, path))

    def hub_files(self, split: str, tasks: Sequence[str]) -> tuple[str, ...]:
        """Return the parquet files of the split in each task's folder."""
        return tuple(f"{task}/{split}-*.parquet" for task in tasks or TASKS)

    def questions(self, source: Source) -> Iterator[Question | BrokenQuestion]:
        """Yield the rows of the chosen tasks' files; a file that cannot be opened becomes one broken question."""
        settings = self.card.resolve_settings(source.settings)
        seen: set[str] = set()

        def read(path: Path) -> Iterator[DataRow]:
            return stored_ahead(rows(source.folder, path, COLUMNS), source.store, IMAGE_COLUMNS)

        for task in source.tasks:
            disclaimed = settings["disclaimer"] == "on" and task in DISCLAIMED
            disclaimer = f"{self.texts['disclaimer'].strip()}\n" if disclaimed else ""
            identify = partial(_identity, task=task, split=source.split, seen=seen)
            make = partial(_question, task=task, source=source, marks=settings["marks"], prefix=disclaimer)
            paths = _files(source, task)
            yield from read_questions(paths, task, source.folder, read=read, identify=identify, make=make)

    def score(self, question: Question, exchanges: Sequence[Exchange], options: ScoreOptions) -> Score:
        """Score the exact letter. Raises `UsageError` if the answer is hidden."""
        if question.target == HIDDEN:
            raise UsageError(
                f"the answers of this split are hidden ({question.id}): it can be submitted but not scored"
            )
        choices = question.choices
        return score_reply(
            question,
            exchanges[-1].reply,
            options,
            right=str(question.target).strip("()"),
            chance=1 / len(choices),
            strict=lambda text: parse_letter(text, choices),
            official=lambda text: analyze_answer(text, len(choices)),
        )

    def score_stored(self, question: Question, stored: str, options: ScoreOptions = AS_PAPERS) -> Score:
        """Compare the stored string with the right answer: "(C) Point C" is not "(C)", and "(Z)" is not an answer."""
        is_valid = stored[:3] in OFFERABLE or stored[:3] in _offered_letters(len(question.choices))
        letter = stored[1:2] if is_valid else None
        right = stored == question.target
        return score_kept(question, letter, right=right, chance=1 / len(question.choices), options=options)

    def predictions(self, path: Path) -> tuple[tuple[Question, Prediction], ...] | None:
        """Read the folder `saved_outputs/MODEL` of BLINK's repository, or one of its files."""
        recorded = read_outputs(path)
        if recorded is None:
            return None
        return tuple((_foreign_question(row, str(row.task)), Prediction(row.reply, row.stored)) for row in recorded)

    def recordings(self, path: Path) -> tuple[PredictedRow, ...] | None:
        """Read a file of the folder `saved_outputs/MODEL` of BLINK's repository, including its test rows."""
        return tuple(rows_of(path, splits)) if (splits := splits_of(path)) else None

    def question_from_row(self, row: PredictedRow) -> Question:
        """Return the question; if the row has no choices, it gets the fixed choices of its task.

        A row without one of BLINK's ids gets a unique name (`Jigsaw_index_17`): its position in the data is unknown, so
        it is never paired with another run's question.
        """
        task = self.card.task_in(row.task or "")
        if task is None:
            raise DataError(f"{row.where}: {row.task or 'the row'!r} is not a BLINK task")
        number = f"index_{row.index}" if row.index is not None else f"doc_{(row.place or 0) - 1}"
        answer = None if row.answer is None else f"({row.answer})"
        return _foreign_question(replace(row, id=row.id or f"{task}_{number}", answer=answer), task)

    def submission(self, answers: Mapping[str, str | None]) -> str:
        """Return the challenge server's JSON: it maps an id to "(A)", or to "(Z)" if there is no answer."""
        return json.dumps({identity: f"({letter or 'Z'})" for identity, letter in sorted(answers.items())}, indent=1)


BENCHMARK = Blink()


def analyze_answer(text: str, choices: int) -> str | None:
    """Extract a letter by the official rule (`eval/test_benchmark.py`), without its call to GPT-3.5; else None.

    A bare letter or "(X)" is accepted. Otherwise the rule takes the "(X)" among the tokens of the full reply, or of its
    last paragraph, if exactly one such token occurs there. Tokens are split at white space, so "(A)." and "**(A)**" do
    not count.
    """
    if text in ("A", "B", "C", "D", "E"):
        return text
    if text in OFFERABLE:
        return text[1]
    letters = _offered_letters(choices)
    letters_named = letters & set(text.split())
    last = letters & set(text.rsplit("\n\n", maxsplit=1)[-1].split())
    if len(last) == 1:
        return next(iter(last))[1]
    if len(letters_named) == 1:
        return next(iter(letters_named))[1]
    return None


def _offered_letters(choices: int) -> set[str]:
    return {f"({letter})" for letter in LETTERS[:choices]}


def _files(source: Source, task: str) -> tuple[Path, ...]:
    return tuple(sorted((source.folder / task).glob(f"{source.split}-*.parquet")))


def _identity(row: DataRow, task: str, split: str, seen: set[str]) -> str:
    """Return the row's own id, adding it to `seen`. Raises `DataError` for another task's id, or a duplicate."""
    identity = row.text("idx")
    id_task = identity.removeprefix(f"{split}_").rsplit("_", 1)[0]
    if id_task not in TASKS:
        raise DataError(f"{row.where}: the id {identity!r:.80} does not name a BLINK task of the split {split}")
    if id_task != task:
        raise DataError(f"{row.where}: the id {identity!r:.80} does not belong in the folder {task}")
    if identity in seen:
        raise DataError(f"{row.where}: the id {identity!r:.80} appears for the second time")
    seen.add(identity)
    return identity


def _groups(task: str, images: int | None) -> Mapping[str, str]:
    tags = {"granularity": TASKS[task].granularity, "visual_prompt": TASKS[task].marks}
    return tags if images is None else tags | {"images": str(images)}


def _foreign_question(row: PredictedRow, task: str) -> Question:
    """Make the question of a row, with id and answer in BLINK's form.

    Raises `DataError` for an answer of another form.
    """
    choices = row.choices or tuple(TASKS[task].choices)
    if row.answer != HIDDEN and row.answer not in _offered_letters(len(choices)):
        raise DataError(f"{row.where}: the answer {row.answer!r} is not one of the {len(choices)} choices")
    return Question(
        str(row.id),
        task,
        images=(),
        text=row.text or "",
        kind=Kind.CHOICE,
        choices=choices,
        target=row.answer,
        route=task,
        groups=_groups(task, None),
    )


def _question(row: DataRow, identity: str, task: str, *, source: Source, marks: str, prefix: str) -> Question:
    choices = row.texts("choices")
    if len(set(choices)) < len(choices):
        raise DataError(f"{row.where}, column choices: a choice appears twice: {choices!r:.80}")
    answer = row.text("answer")
    if answer != HIDDEN and answer not in _offered_letters(len(choices)):
        raise DataError(f"{row.where}, column answer: {answer!r} is not one of the {len(choices)} choices")
    stored = (row.stored_image(column, source.store, identity) for column in IMAGE_COLUMNS)
    images = tuple(image for image in stored if image is not None)
    if not images:
        raise DataError(f"{row.where}, column image_1: the question {identity} has no image")
    if marks != "drawn" and task in MARKED_POINTS:
        # Imported only here: finding marks needs image code that the rest of the benchmark does not.
        from hybrid.benchmarks.blink.marks import redrawn

        images = redrawn(marks, images, choices, source.store)
    text = prefix + row.text("prompt")
    return Question(
        identity,
        task,
        images=images,
        text=text,
        kind=Kind.CHOICE,
        choices=choices,
        target=answer,
        route=task,
        groups=_groups(task, len(images)),
    )
