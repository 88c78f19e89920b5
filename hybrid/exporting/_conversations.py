"""Selects the conversations of a run that are written as training data, with their scores and image files.

    written = write_conversations(run, path, options, "conversations", make)
    written.rows, written.left_out

To avoid training on a benchmark by accident, questions of a published split are rejected unless `--allow test-split`
is given.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hybrid.core.errors import DataError, UsageError
from hybrid.core.files import write_atomic
from hybrid.core.images import ImageStore, home
from hybrid.core.messages import ToolCall, images_of
from hybrid.core.repetitions import name_of, number_of, word_of
from hybrid.core.types import Attempt, Json, Question, StoredImage
from hybrid.display.progress_bar import with_progress
from hybrid.exporting._enacted import Conversation, Enactment, LeftOut
from hybrid.exporting.base import DELAY_S, TEST_SPLIT, ExportedRun, ExportOptions, Written
from hybrid.models.images import ImageEncoder, ImageRules
from hybrid.models.toolspec import IMAGE, IMAGES
from hybrid.plugins.registry import load_solver, solver_names
from hybrid.scoring.groups import ALONE, REAL
from hybrid.scoring.predictions.base import first
from hybrid.scoring.runs import score_run
from hybrid.scoring.score import Scored
from hybrid.tool import Tool

# The split of questions from the user's own files. All others count as published, even `train`, because benchmarks have
# been published under that name.
OWN_SPLITS = frozenset({"all", "own", "none"})
FILE, IMAGE_FOLDER = "conversations.jsonl", "images"
# Suffixes of media types that differ from their subtype.
SUFFIXES: Mapping[str, str] = {"image/jpeg": ".jpg", "image/tiff": ".tif"}


@dataclass(frozen=True)
class ConversationRow:
    """One conversation, with the question, solver, model and score that belong to it."""

    question: Question
    ask: int  # Number of the prompt within its question, from 0; each prompt is a separate conversation
    solver: str
    model: str
    # From 0 to 1, where a reply without a readable answer counts as wrong; None if the metric has no right and wrong
    score: float | None
    conversation: Conversation

    def facts(self, run: ExportedRun) -> dict[str, Json]:
        """Return the columns that describe the conversation."""
        return {
            "id": self.question.id,
            "ask": self.ask,
            "benchmark": run.data.name,
            "split": run.data.named_split,
            "task": self.question.task,
            "solver": self.solver,
            "model": self.model,
            "score": self.score,
        }


@dataclass
class LeftOutRows:
    """The conversations that are not written, by reason, and descriptions of damaged lines in the traces."""

    by_reason: dict[str, list[str]] = field(default_factory=dict)
    damage: list[str] = field(default_factory=list)

    def note(self, reason: str, name: str) -> None:
        """Record a conversation that is left out, by the id of its question."""
        self.by_reason.setdefault(reason, []).append(name)

    def sentences(self) -> tuple[str, ...]:
        """Return a sentence for each damaged line and for each reason."""
        left_out_lines = (
            f"left out, {reason}: {len(names)} ({first(names)})" for reason, names in self.by_reason.items()
        )
        return (*self.damage, *left_out_lines)


@dataclass
class ImageFiles:
    """Writes the images of conversations to `folder`, each image once, as it was sent to the model."""

    folder: Path
    max_pixels: int | None
    store: ImageStore = field(default_factory=lambda: ImageStore(home() / "images"))
    file_names: dict[str, str] = field(default_factory=dict)

    def paths(self, conversation: Conversation) -> list[str]:
        """Write the images; return each image's path, in order, relative to the folder's parent.

        Raises `LeftOut` if the store lacks an image.
        """
        for ref in images_of(conversation.messages):
            image = ref.image
            if image.sha256 in self.file_names:
                continue
            try:
                data, media_type = self._sent(image, conversation.sent.get(image.sha256))
            except (DataError, OSError) as error:
                raise LeftOut("an image is not in the store as it was sent") from error
            suffix = SUFFIXES.get(media_type, f".{media_type.partition('/')[2]}")
            name = f"{hashlib.sha256(data).hexdigest()}{suffix}"
            write_atomic(self.folder / name, data)
            self.file_names[image.sha256] = f"{self.folder.name}/{name}"
        return [self.file_names[ref.image.sha256] for ref in images_of(conversation.messages)]

    def _sent(self, image: StoredImage, copy: str | None) -> tuple[bytes, str]:
        """Return the bytes of the image as it was sent, and their type; `copy` is the sent copy, if any."""
        if copy is None:
            # A model in this process gets pixels, scaled down if the image has too many.
            rules = ImageRules(frozenset({image.media_type}), self.max_pixels)
            scaled, data = ImageEncoder(self.store, rules).load(image)
            return data, scaled.media_type
        data = self.store.path(copy).read_bytes()
        if hashlib.sha256(data).hexdigest() != copy:
            raise DataError(f"image {copy[:12]} is damaged in the store")
        return data, "image/jpeg" if image.media_type == "image/jpeg" else "image/png"


# Maps a conversation and the paths of its images to its columns in a format. Raises `LeftOut`.
MakeLine = Callable[[ConversationRow, list[str]], Mapping[str, Json]]


def write_conversations(run: ExportedRun, path: Path, options: ExportOptions, form: str, make: MakeLine) -> Written:
    """Write `conversations.jsonl` and the folder of images below `path`.

    Raises:
        UsageError: the questions must not be trained on, no solver of the run calls tools, the messages cannot be
            reconstructed, or no conversation is left; then nothing is left at `path`.
    """
    solvers = _solvers(run, form)
    refuse_published(run, options, form)
    out = LeftOutRows()
    files = ImageFiles(path / IMAGE_FOLDER, run.identity["model"].get("max_pixels"))
    count = 0

    def lines() -> Iterator[bytes]:
        nonlocal count
        for row in _rows(run, solvers, options, out):
            try:
                line = row.facts(run) | dict(make(row, files.paths(row.conversation)))
            except LeftOut as reason:
                out.note(str(reason), row.question.id)
                continue
            count += 1
            yield json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n"

    try:
        write_atomic(path / FILE, lines())
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise
    if not count:
        shutil.rmtree(path, ignore_errors=True)
        raise UsageError(f"{run.folder.path} has no conversation to write; " + "; ".join(out.sentences()))
    # Without this file, `datasets.load_dataset` of the folder would read only the pictures.
    (path / "README.md").write_text(f"---\nconfigs:\n- config_name: default\n  data_files: {FILE}\n---\n")
    counts = {reason: len(names) for reason, names in out.by_reason.items()}
    return Written((path / FILE,), out.sentences(), count, counts)


def refuse_published(run: ExportedRun, options: ExportOptions, form: str) -> None:
    """Raise `UsageError` for questions of a published benchmark, unless explicitly allowed."""
    name, hub_id = run.benchmark.card.name, run.benchmark.card.hub_id
    if run.generated or (hub_id is None and run.split in OWN_SPLITS) or TEST_SPLIT in options.allow:
        return
    raise UsageError(
        f"{form}: {run.folder.path} asked the split {run.split} of {name}, which can no longer measure a model that is "
        f"trained on it: export a run over your own or generated questions (--data sample), or confirm the export with "
        f"--allow {TEST_SPLIT}"
    )


def _solvers(run: ExportedRun, form: str) -> tuple[str, ...]:
    """Return the chosen solvers whose model called tools of the run. Raises `UsageError` if there is none."""
    if "imported" in run.identity:
        raise UsageError(f"{form}: {run.folder.path} was imported, and contains no tool calls")
    all_names = solver_names()
    calling = tuple(
        name for name in run.solvers if word_of(name) in all_names and load_solver(word_of(name)).offers_tools
    )
    if not calling:
        raise UsageError(
            f"{form} needs a solver to which this program offers tools; {run.folder.path} has "
            f"{', '.join(run.solvers) or 'none'}"
        )
    if (output := run.identity.get("tool_output", REAL)) != REAL:
        raise UsageError(
            f"{form}: the tools of {run.folder.path} returned a control ({output}) instead of their output"
        )
    return calling


def _rows(
    run: ExportedRun, solvers: Sequence[str], options: ExportOptions, out: LeftOutRows
) -> Iterator[ConversationRow]:
    """Yield the rows of the solvers in order, each in the order of the questions."""
    model = str(run.shown_identity["model"]["model"])
    with asyncio.Runner() as runner:
        for name in solvers:
            enactment = Enactment.of(run, name)
            (scored,) = (solver for solver in run.scored if solver.recorded == name)
            scores = _scores(scored)
            alone = _scores(_alone(run, name)) if options.only == "helped" else {}
            for question, attempt in _attempts(run, scored, out):
                score = scores.get(question.id)
                if reason := _unwanted(options, score, alone.get(question.id)):
                    out.note(reason, question.id)
                    continue
                for ask in range(len(attempt.exchanges)):
                    try:
                        conversation = runner.run(enactment.conversation(question, attempt, ask))
                    except LeftOut as error:
                        out.note(str(error), question.id)
                        continue
                    if options.max_turns is not None and conversation.turns > options.max_turns:
                        out.note(f"more than {options.max_turns} turns", question.id)
                    else:
                        yield ConversationRow(
                            question, ask, solver=name, model=model, score=score, conversation=conversation
                        )


def _attempts(run: ExportedRun, scored: Scored, out: LeftOutRows) -> Iterator[tuple[Question, Attempt]]:
    """Yield the finished questions in order; note those that failed or cannot be read."""
    recorded = run.folder.recorded(scored.recorded)
    out.damage += recorded.damage
    failed = {score.id for score in scored.scores if score.outcome.failed}
    sound = [question for question in scored.questions.values() if isinstance(question, Question)]
    for question in with_progress(sound, scored.recorded, len(sound), delay_s=DELAY_S):
        try:
            attempt = recorded.by_id.get(question.id)
        except DataError as error:
            out.damage.append(str(error))
            out.note("no answer", question.id)
            continue
        if attempt is not None:
            yield question, attempt
        elif question.id in failed:
            out.note("no answer", question.id)


def _scores(scored: Scored) -> dict[str, float | None]:
    # For training, a missing answer counts as wrong; scoring it as a guess would teach nothing.
    return {score.id: score.correct for score in scored.under("wrong").scores if not score.outcome.failed}


def _unwanted(options: ExportOptions, correct: float | None, alone: float | None) -> str | None:
    """Return why `--only` excludes a question, by its scores with and without tools; None if it does not."""
    if options.only == "all":
        return None
    if correct != 1:
        return "not right"
    if options.only == "right" or alone == 0:
        return None
    return "no score without tools to compare with" if alone is None else "not wrong without tools"


def _alone(run: ExportedRun, solver: str) -> Scored:
    """Return the scores of the MLLM without tools in this run.

    Raises `UsageError` if the run did not ask the MLLM alone.
    """
    available = run.folder.solvers()
    names = (name_of(ALONE, number_of(solver)), ALONE)
    solver_name = next((name for name in names if name in available), None)
    if solver_name is None:
        raise UsageError(
            f"--only helped compares with the MLLM alone, but {run.folder.path} has no answers of {ALONE}: continue "
            f"the run with --solver {ALONE}"
        )
    (scored,) = score_run(run.folder, run.options, (solver_name,), keep=False)
    return scored


def function_of(call: ToolCall, tools: Iterable[Tool]) -> dict[str, Json]:
    """Return name and arguments of a call according to its tool's schema.

    A model that calls tools in text gives every tool a list of images; the schema of a single-image tool expects one
    name instead.
    """
    args = dict(call.args)
    tool = next((tool for tool in tools if tool.card.name == call.name), None)
    if tool is not None and tool.card.images == (1, 1) and IMAGES in args:
        names: Any = args[IMAGES]
        if isinstance(names, list) and len(names) == 1:
            args = {IMAGE: names[0], **{key: value for key, value in args.items() if key != IMAGES}}
    return {"name": call.name, "arguments": args}
