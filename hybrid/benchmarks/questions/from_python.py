"""Writes questions made in Python to a file for the benchmark, so that all questions are read in the same way.

folder = write([Question("How many?", images="photo.jpg", answer=3)], home() / "questions")
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hybrid.core.errors import HybridError, UsageError
from hybrid.core.files import write_atomic
from hybrid.core.images import encode, read_image_file
from hybrid.core.types import LETTERS

if TYPE_CHECKING:
    from PIL import Image

    from hybrid.tool import Pixels

    Picture = str | Path | bytes | Image.Image | Pixels

FILE: Final = "questions.jsonl"


@dataclass(frozen=True)
class Question:
    """A question for `hybrid.run(questions=[...])`; corresponds to a row of a file of questions.

    The answer is the text or letter of a choice, True or False or "yes" or "no", a number, a text or a list of accepted
    spellings, letters in order, or a box or point in pixels. `kind` is needed if the answer does not determine the kind
    of question.
    """

    question: str
    # Paths, bytes of image files, Pillow images or RGB arrays (H, W, 3) of 8 bits; one or several.
    images: Picture | Sequence[Picture]
    answer: object
    choices: Sequence[str] = ()
    # Id of the question; by default its number.
    id: str = ""
    kind: str = ""
    task: str = ""
    # Route whose rules are used first; if empty, the task is the route.
    route: str = ""
    hint: str = ""
    tolerance: float | str | None = None
    group: Mapping[str, str] = field(default_factory=dict)
    cluster: str = ""
    # Boxes (left, top, right, bottom) and points (x, y) in pixels that must be seen to answer; see own-questions.md.
    evidence: Sequence[object] = ()

    def _repr_html_(self) -> str:
        """Return text, choices and pictures, for a notebook; the answer is left out."""
        from hybrid.display.html import joined, paragraph

        several = isinstance(self.images, list | tuple)
        pictures: Sequence[Any] = self.images if several else [self.images]  # type: ignore[assignment]
        choices = [paragraph(f"({letter}) {choice}") for letter, choice in zip(LETTERS, self.choices, strict=False)]
        figures = (_picture_html(picture, f"img:{place}") for place, picture in enumerate(pictures, 1))
        return joined([paragraph(self.question), *choices, *figures])


def _picture_html(picture: Any, name: str) -> str:
    """Return a picture with its name, or the reason why it cannot be read."""
    from hybrid.core.images import inspect
    from hybrid.display.html import paragraph
    from hybrid.display.html import picture as picture_html

    try:
        data = _bytes(picture, name)
        return picture_html(data, inspect(data, name).media_type, name)
    except HybridError as error:
        return paragraph(str(error))


def write(questions: Sequence[Question], root: Path) -> Path:
    """Write the questions and their images into a folder below `root`, named by its content; returns the folder.

    Raises:
        UsageError: no question, an object that is not a `Question`, or an unavailable image.
    """
    if not questions:
        raise UsageError("questions=[]: give at least one hybrid.Question")
    files: dict[str, bytes] = {}
    lines = [json.dumps(_row(number, question, files)) for number, question in enumerate(questions, 1)]
    text = "\n".join([*lines, ""]).encode()
    folder = root / hashlib.sha256(text).hexdigest()[:16]
    for name, data in files.items():
        if not (folder / name).exists():
            write_atomic(folder / name, data)
    write_atomic(folder / FILE, text)
    return folder


def _row(number: int, question: object, files: dict[str, bytes]) -> dict[str, object]:
    """Make a row of the file; its images are added to `files` by name."""
    if not isinstance(question, Question):
        raise UsageError(f"questions: item {number} is a {type(question).__name__}, not a hybrid.Question")
    several = isinstance(question.images, list | tuple)
    pictures: Sequence[Any] = question.images if several else [question.images]  # type: ignore[assignment]
    names = []
    for picture in pictures:
        data = _bytes(picture, f"questions: item {number}")
        name = f"images/{hashlib.sha256(data).hexdigest()}.png"
        files[name] = data
        names.append(name)
    row: dict[str, object] = {"id": question.id or str(number), "image": names, "question": question.question}
    further = {name: getattr(question, name) for name in ("kind", "task", "route", "hint", "tolerance", "cluster")}
    return {
        **row,
        **({"choices": list(question.choices)} if question.choices else {}),
        "answer": list(question.answer) if isinstance(question.answer, tuple) else question.answer,
        **({"group": dict(question.group)} if question.group else {}),
        **({"evidence": list(question.evidence)} if question.evidence else {}),
        **{name: value for name, value in further.items() if value not in ("", None)},
    }


def _bytes(picture: Any, location: str) -> bytes:
    """Return the file of an image. Its format is determined from its bytes, not from its name."""
    from PIL import Image

    if isinstance(picture, bytes):
        return picture
    if isinstance(picture, str | Path):
        try:
            return read_image_file(Path(picture).expanduser(), f"{location}: {picture}")
        except OSError as error:
            raise UsageError(f"{location}: {picture}: cannot be read: {error.strerror or error}") from error
    if isinstance(picture, Image.Image):
        buffer = io.BytesIO()
        picture.save(buffer, "PNG")
        return buffer.getvalue()
    if hasattr(picture, "dtype"):
        return encode(picture)
    raise UsageError(
        f"{location}: {type(picture).__name__} is not an image: give a path, bytes, a Pillow image or an array"
    )
