"""Resolve the columns of an MM-SAP table when the data is mounted.

The data set's schema was not available, so columns are searched under the names that such tables use. A missing column
is an error that lists the existing and the required columns. Nothing is guessed: numeric answers are accepted only if
the table itself shows whether they count from 0 or from 1.
"""

from __future__ import annotations

import json
import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hybrid.benchmarks._shared.rows import DataRow
from hybrid.core.errors import DataError

FACTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
NAMES: Mapping[str, Sequence[str]] = FACTS["names"]
LETTER_COLUMNS: Sequence[Sequence[str]] = FACTS["options"]["each"]
OPTIONS = 5
# Largest number of items, including blank lines, in a list of options.
MAX_LISTED = 50
REFUSAL = "sorry i cant help with it"

# Word for each set in the name of a file or in a column.
SETS: Mapping[str, str] = {"BasicVisQA": "basic", "KnowVisQA": "know", "BeyondVisQA": "beyond"}


@dataclass(frozen=True)
class SetColumns:
    """The columns of one table; `options` is one column, or five."""

    question: str
    options: tuple[str, ...]
    answer: str
    image: str
    # Each of the following names is empty if the table has no such column.
    type: str
    refusal: str
    set: str
    # Base of numeric answers: 0, 1, or None if answers are not numbers.
    origin: int | None

    @property
    def read(self) -> tuple[str, ...]:
        """All columns in use."""
        names = (self.question, *self.options, self.answer, self.image, self.type, self.refusal, self.set)
        return tuple(filter(None, names))


def resolve(column_names: Sequence[str], location: str) -> SetColumns:
    """Resolve the columns by name, without `origin`. Raises `DataError` listing the existing and required columns."""
    by_name = {name.casefold(): name for name in column_names}
    by_role = {role: next((by_name[name] for name in names if name in by_name), "") for role, names in NAMES.items()}
    list_column = by_role.pop("options")
    options = (
        (list_column,)
        if list_column
        else next((tuple(names) for names in LETTER_COLUMNS if {*names} <= {*column_names}), ())
    )
    missing = [role for role in ("question", "answer", "image") if not by_role[role]]
    missing += [] if options else ["options"]
    if missing:
        needed = "; ".join(f"{role}: one of {', '.join(NAMES[role])}" for role in missing)
        letters = " or the columns A to E" if "options" in missing else ""
        raise DataError(f"{location}: found the columns {', '.join(column_names)}; needed {needed}{letters}")
    return SetColumns(options=options, origin=None, **by_role)


def origin_of(answers: Sequence[object], location: str) -> int | None:
    """Return whether numeric answers count from 0 or from 1; None if no answer is numeric.

    Raises `DataError` if the numbers in a table contain neither a 0 nor a 5, or contain both.
    """
    numbers = {answer for answer in answers if isinstance(answer, int) and not isinstance(answer, bool)}
    if not numbers:
        return None
    if (0 in numbers) == (OPTIONS in numbers) or not numbers <= set(range(OPTIONS + 1)):
        raise DataError(
            f"{location}, answer column: the numbers {sorted(numbers)} do not show whether they count from 0 or "
            "from 1; write letters A to E or option texts"
        )
    return 0 if 0 in numbers else 1


def set_of(path: Path, folder: Path, row: DataRow, columns: SetColumns) -> str:
    """Return the set named by the table's column, else by the path of the file. Raises `DataError` if unknown."""
    set_name = str(row.cell(columns.set) or "") if columns.set else ""
    for text in (set_name, str(path.relative_to(folder))):
        if name := set_in(text):
            return name
    raise DataError(
        f"{row.where}: it is unknown to which set this row belongs: neither the file's name nor a column "
        "contains basic, know or beyond"
    )


def set_in(text: str) -> str | None:
    """Return the only set whose word is in a text; None for none or several."""
    fitting = [name for name, word in SETS.items() if word in text.casefold()]
    return fitting[0] if len(fitting) == 1 else None


def options_of(row: DataRow, columns: SetColumns) -> tuple[str, ...]:
    """Return the five options in stored order: a list, a dict, JSON text of either, lines "A. ...", or five columns."""
    if len(columns.options) > 1:
        options = tuple(row.text(name).strip() for name in columns.options)
    else:
        name = columns.options[0]
        options = _unpack(row.cell(name), f"{row.where}, column {name}")
    if len(options) != OPTIONS or not all(options):
        raise DataError(f"{row.where}, options: expected {OPTIONS} texts, found {options!r:.120}")
    if len({plain(option) for option in options}) != OPTIONS:
        raise DataError(f"{row.where}, options: the same option appears twice: {options!r:.120}")
    return options


def _unpack(value: object, location: str) -> tuple[str, ...]:
    if isinstance(value, str):
        try:
            loaded = json.loads(value)
        except (ValueError, RecursionError):
            loaded = value.splitlines()
        value = loaded
    if isinstance(value, Mapping):
        value = [value[key] for key in sorted(value)]
    if isinstance(value, list | tuple) and len(value) > MAX_LISTED:
        raise DataError(f"{location}: expected {OPTIONS} options, found {len(value):,}")
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise DataError(f"{location}: expected five options as a list, a dict or lines, found {value!r:.80}")
    texts = [item.strip() for item in value if item.strip()]
    marked = [re.fullmatch(rf"\(?{letter}[).:]\s*(.+)", text) for letter, text in zip("ABCDE", texts, strict=False)]
    if texts and all(marked) and len(texts) == len(marked):
        return tuple(match[1] for match in marked if match)
    return tuple(texts)


def refusal_of(row: DataRow, columns: SetColumns, options: Sequence[str]) -> int:
    """Return the index of the refusal option: from its column, else from its sentence.

    Raises `DataError` if it is not unique.
    """
    if columns.refusal:
        place = option_number(row.cell(columns.refusal), columns, options)
        if place is not None:
            return place
    places = [place for place, option in enumerate(options) if plain(option) == REFUSAL]
    if len(places) != 1:
        raise DataError(f"{row.where}, options: {len(places)} of them are the refusal sentence, found {options!r:.160}")
    return places[0]


def option_number(value: object, columns: SetColumns, options: Sequence[str]) -> int | None:
    """Return the index of the option that a letter, a number or its text names; None for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        place = value - (columns.origin or 0)
        return place if 0 <= place < len(options) else None
    if not isinstance(value, str):
        return None
    letter = value.strip().strip("().: ").upper()
    if len(letter) == 1 and letter in "ABCDE"[: len(options)]:
        return "ABCDE".index(letter)
    same = [place for place, option in enumerate(options) if plain(option) == plain(value)]
    return same[0] if len(same) == 1 else None


def plain(text: str) -> str:
    """Return letters and digits in lower case, to ignore quotes and punctuation."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "").replace("'", "")
    return " ".join(re.findall(r"[^\W_]+", folded)) or text.strip()
