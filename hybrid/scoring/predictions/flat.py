"""A JSON object of ids and answers, as benchmark servers accept it: `{"val_Jigsaw_1": "(A)", ...}`.

It contains neither questions nor right answers, so `--data` is required.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from hybrid.benchmarks.base import PredictedRow
from hybrid.core.errors import DataError
from hybrid.display.terminal import how_many
from hybrid.scoring.predictions.base import Recognised

# Maximum size of a file in bytes, enough for a letter for each of a million questions.
MAX_BYTES = 100_000_000


class _Pairs(list[tuple[str, Any]]):
    """The name and value pairs of a JSON object, in which a name may appear twice."""


def read(path: Path) -> Recognised | None:
    """Return the answers of a .json file whose values are texts, numbers or null; None for any other file.

    Some values may be numbers; a file with numbers only is another format.

    Raises:
        DataError: an id occurs twice.
    """
    if path.suffix.lower() != ".json" or not path.is_file() or path.stat().st_size > MAX_BYTES:
        return None
    try:
        content = json.loads(path.read_bytes(), object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, _Pairs) or not content:
        return None
    kinds = {type(answer) for _, answer in content}
    if kinds - {str, int, float, type(None)} or not kinds & {str, type(None)}:
        return None
    answers = {name: "" if answer is None else str(answer) for name, answer in content}
    if len(answers) < len(content):
        twice = next(name for name, count in Counter(name for name, _ in content).items() if count > 1)
        raise DataError(f"{path}: {twice} appears twice; keep one of its answers")
    rows = tuple(
        PredictedRow(f"{path}, {name}", answer, id=name, stored=_letter(answer)) for name, answer in answers.items()
    )
    return Recognised(f"answers by id ({how_many(len(rows), 'row')})", rows)


def _letter(answer: str) -> str:
    """Return the answer, with a single letter in upper case; empty for `(Z)`, which submissions use for no answer."""
    if not re.fullmatch(r"\(?[A-Za-z]\)?", bare := answer.strip()):
        return answer
    return "" if bare.strip("()").upper() == "Z" else bare.upper()
