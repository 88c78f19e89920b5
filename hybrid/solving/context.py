"""Supplied text shown next to a question's images: `--setting context=FILE.jsonl`.

    texts = read_supplied(Path("captions.jsonl"))
    texts.of("q7#s2")            # the text of that variant, else of q7; None if neither has a text

The file has one JSON object per line, `{"id": "q7", "text": "..."}`. An MLLM gets the text after the prompt and before
the line with the reply format. The text has the same introduction for every question and solver. Tools and rules never
get it.

Source: Lin et al., 2024 (HVSBench), section 4.3 and Table 5: captions by people (COCO) and detailed descriptions
(LLaVA-Instruct-150K) beside the image. The paper does not state the words around these texts or their place in the
prompt.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hybrid.core.errors import DataError, UsageError
from hybrid.core.files import read_small
from hybrid.core.types import base_id
from hybrid.log.lines import json_lines

BESIDE = "This text about what is shown was supplied with the question:\n{text}"
# Maximum number of ids named in an error.
NAMED = 5


@dataclass(frozen=True)
class SuppliedTexts:
    """The texts of a file by id, and the hash of the file."""

    by_id: Mapping[str, str] = field(default_factory=dict, repr=False)
    sha256: str = ""

    def of(self, question_id: str) -> str | None:
        """Return a question's text, or else its base question's, with the fixed introduction; None without a text."""
        text = self.by_id.get(question_id, self.by_id.get(base_id(question_id)))
        return None if text is None else BESIDE.format(text=text)

    def lacking(self, ids: Iterable[str]) -> tuple[str, ...]:
        """Return the questions that have no text."""
        return tuple(identity for identity in ids if self.of(identity) is None)


NOTHING = SuppliedTexts()
# Maximum size of a file of texts, enough for pages of text per question of a benchmark.
MAX_BYTES = 2**30


def read_supplied(path: Path) -> SuppliedTexts:
    """Read the texts of a file.

    Raises:
        UsageError: the file cannot be read, a line is not `{"id": ..., "text": ...}`, or an id appears twice; the
            message names the file and the line.
    """
    try:
        data = read_small(path, MAX_BYTES)
    except OSError as error:
        raise UsageError(f"--setting context={path}: cannot be read ({error.strerror or error})") from error
    texts: dict[str, str] = {}
    try:
        for row, location in json_lines(path, data):
            identity, text = _row(row, location, texts)
            texts[identity] = text
    except DataError as error:
        raise UsageError(f"--setting context: {error}") from error
    if not texts:
        raise UsageError(f"--setting context: {path} contains no text")
    return SuppliedTexts(texts, hashlib.sha256(data).hexdigest())


def _row(row: Mapping[str, object], location: str, known_texts: Mapping[str, str]) -> tuple[str, str]:
    if odd := row.keys() ^ {"id", "text"}:
        raise DataError(f"{location}: expected exactly the fields id and text; {', '.join(sorted(odd))!r:.80}")
    identity, text = row["id"], row["text"]
    if not isinstance(identity, str) or not identity:
        raise DataError(f"{location}, field id: expected a text, found {identity!r:.80}")
    if identity in known_texts:
        raise DataError(f"{location}, field id: {identity!r:.80} appears for the second time")
    if not isinstance(text, str) or not text.strip():
        raise DataError(f"{location}, field text: expected a text, found {text!r:.80}")
    return identity, text.strip()


def refuse_missing(lacking: tuple[str, ...], count: int, path: Path) -> None:
    """Raise `UsageError` if some of the `count` questions have no text."""
    if lacking:
        more = ", ..." if len(lacking) > NAMED else ""
        raise UsageError(
            f"--setting context={path}: no text for {len(lacking)} of {count} questions ({', '.join(lacking[:NAMED])}"
            f"{more}); add them, or ask these questions without text: --setting context-missing=without"
        )
