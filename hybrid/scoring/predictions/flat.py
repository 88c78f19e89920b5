"""A JSON object of ids and answers, as benchmark servers take it: `{"val_Jigsaw_1": "(A)", ...}`.

It contains neither questions nor right answers, so `--data` is required.
"""

from __future__ import annotations

import json
from pathlib import Path

from hybrid.benchmarks.base import PredictedRow
from hybrid.display.terminal import how_many
from hybrid.scoring.predictions.base import Recognised

# Maximum bytes of a file, enough for a letter for each of a million questions.
MAX_BYTES = 100_000_000


def read(path: Path) -> Recognised | None:
    """Return the answers of a .json file whose values are texts, numbers or null; None for any other file.

    A number is not a letter and counts as that question's answer only; a file of numbers alone is another format.
    """
    if path.suffix.lower() != ".json" or not path.is_file() or path.stat().st_size > MAX_BYTES:
        return None
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or not content:
        return None
    kinds = {type(answer) for answer in content.values()}
    if kinds - {str, int, float, type(None)} or not kinds & {str, type(None)}:
        return None
    answers = {name: "" if answer is None else str(answer) for name, answer in content.items()}
    rows = tuple(
        PredictedRow(f"{path}, {name}", answer, id=name, stored=_letter(answer)) for name, answer in answers.items()
    )
    return Recognised(f"answers by id ({how_many(len(rows), 'row')})", rows)


def _letter(answer: str) -> str:
    """Return the answer; empty for `(Z)`, which a submission holds for unanswered questions."""
    return "" if answer.strip().strip("()").upper() == "Z" else answer
