"""Writes one question and its pictures as the data of a run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from hybrid.benchmarks.questions.from_python import Question, write
from hybrid.core.errors import DataError, UsageError
from hybrid.core.images import ImageStore, home

if TYPE_CHECKING:
    from hybrid.interface.findings import ImageInput
    from hybrid.running.resolve import ResolvedRun


def write_question(images: ImageInput | Sequence[ImageInput], question: str, choices: Sequence[str], kind: str) -> Path:
    """Write a folder with the question, without an answer; returns the folder.

    Raises:
        UsageError: no question, no picture, or a picture that cannot be read.
        DataError: a picture that does not decode.
    """
    from hybrid.interface.findings import stored_image

    pictures: list[Any] = [*images] if isinstance(images, list | tuple) else [images]
    if not question.strip():
        raise UsageError("the question is empty: write it after the pictures, in quotation marks")
    if not pictures:
        raise UsageError("no picture: give one or more before the question")
    store = ImageStore(home() / "images")
    for picture in pictures:
        stored_image(store, picture)
    row = Question(question, pictures, None, choices=tuple(choices), kind=kind, task="ask")
    return write([row], home() / "questions")


def refuse_broken(run: ResolvedRun) -> None:
    """Raise `DataError` if the question cannot be asked, for example because two choices are equal."""
    for broken in run.questions.broken:
        raise DataError(f"the question cannot be asked: {broken.error}")


def new_run_folder() -> Path:
    """Return a path for a new run, in the cache folder: each question is a new run, even if it was asked before."""
    return home() / "asked" / f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{uuid4().hex[:6]}"
