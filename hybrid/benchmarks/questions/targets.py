"""The answer of a row: it determines the kind of question, and the right answer.

A target is JSON, as stored in a run. It is a letter (choice), "yes" or "no", a whole number, or letters in order
("BCA"). For the other kinds it is a mapping: `{"number", "tolerance", "relative"}`, `{"accepted"}`, `{"box"}` or
`{"point", "within"}`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Final

from hybrid.answers.words import comparable
from hybrid.benchmarks._shared.rows import DataRow
from hybrid.benchmarks.questions.cells import numbers, parse_list, scalar_text, texts
from hybrid.benchmarks.questions.columns import Columns
from hybrid.benchmarks.questions.schema import KINDS, Answer, Layout
from hybrid.core.errors import DataError, did_you_mean
from hybrid.core.types import LETTERS, Json, Kind

YES: Final = frozenset({"yes", "true"})
NO: Final = frozenset({"no", "false"})
# Additional words for yes and no, which are accepted if the kind is given.
YES_IF_KIND: Final = YES | {"1", "y", "t"}
NO_IF_KIND: Final = NO | {"0", "n", "f"}
_LETTER: Final = re.compile(r"\(?([A-Za-z])[).:]?")
WHOLE: Final = re.compile(r"[0-9]{1,9}")
# Commas only between groups of three digits: "12,5" might be 12.5 or a list.
_NUMBER: Final = re.compile(
    r"[-+\u2212]?(?:(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,300})(?:\.[0-9]{0,300})?|\.[0-9]{1,300})(?:[eE][-+]?[0-9]{1,3})?"
)
MAX_ACCEPTED: Final = 1000


def number_in(text: str) -> float | None:
    """Return the finite number that fills a cell: `-2.5`, `1,204.75`, `1e3`; None for anything else."""
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text.replace(",", "").replace("\u2212", "-"))
    return value if math.isfinite(value) else None


def kind_of(row: DataRow, columns: Columns, layout: Layout, choices: Sequence[str], *, has_answer: bool = True) -> Kind:
    """Return the kind that the row or the mapping gives, else choice for a row with choices.

    Otherwise it is the kind that the answer implies, or text without an answer.

    Raises:
        DataError: a word that is not a kind, or an answer that implies none.
    """
    kind_text = scalar_text(row, columns.kind) if columns.kind else None
    if kind_text is not None:
        words = [str(kind) for kind in KINDS]
        word = kind_text.casefold().replace("/", "_").replace("-", "_").replace(" ", "_")
        if word not in words:
            hint = did_you_mean(word, words)
            raise DataError(
                f"{row.where}, column {columns.kind}: {kind_text!r:.40} is not a kind{hint}: {', '.join(words)}"
            )
        return Kind(word)
    if layout.kind is not None:
        return layout.kind
    if choices:
        return Kind.CHOICE
    if not has_answer:
        return Kind.TEXT
    value, location = row.cell(columns.answer), f"{row.where}, column {columns.answer}"
    if parse_list(value) is not None:
        if numbers(value) is not None:
            raise DataError(f"{location}: {value!r:.60} may be a point, a box or a number: give its kind")
        return Kind.TEXT
    text = answer_in(row, columns.answer).casefold()
    if text in YES | NO:
        return Kind.YES_NO
    if WHOLE.fullmatch(text):
        return Kind.INTEGER
    return Kind.TEXT if number_in(text) is None else Kind.NUMBER


def answer_in(row: DataRow, column: str) -> str:
    """Return the answer of a row as text; `["B"]` is one answer in a list. Raises `DataError` for none or several."""
    items = texts(row, column)
    text = items[0] if items is not None and len(items) == 1 else scalar_text(row, column)
    if text is None:
        raise DataError(f"{row.where}, column {column}: no answer")
    return text


def target_of(
    kind: Kind, row: DataRow, *, columns: Columns, layout: Layout, choices: Sequence[str], labels: Sequence[str] = ()
) -> Json:
    """Return the right answer; `labels` are the table's own names of the choices, if it has any.

    Raises `DataError` for an answer that does not fit the kind, or is not one of the choices.
    """
    column = columns.answer
    location = f"{row.where}, column {column}"
    match kind:
        case Kind.CHOICE:
            return _letter(answer_in(row, column), choices, labels, layout.answer, location)
        case Kind.ORDER:
            return _order(row, column, choices, labels, layout.answer)
        case Kind.TEXT:
            return {"accepted": list(_accepted(row, column))}
        case Kind.POINT | Kind.BOX:
            return _place(kind, row, columns)
    text = answer_in(row, column)
    if kind is Kind.YES_NO:
        if (word := text.casefold()) not in YES_IF_KIND | NO_IF_KIND:
            raise DataError(f"{location}: {text!r:.60} is neither yes nor no")
        return "yes" if word in YES_IF_KIND else "no"
    if kind is Kind.INTEGER:
        if not WHOLE.fullmatch(text):
            raise DataError(
                f"{location}: {text!r:.60} is not a whole number of at least 0; for other numbers write `kind: number`"
            )
        return int(text)
    value = number_in(text)
    if value is None:
        raise DataError(f"{location}: {text!r:.60} is not a number; write 1204.75 or 1,204.75")
    return {"number": value, **_tolerance(row, columns.tolerance)}


def _letter(answer: str, choices: Sequence[str], labels: Sequence[str], form: Answer | None, location: str) -> str:
    if not choices:
        raise DataError(f"{location}: the question has no choices")
    options_text = ", ".join(f"({letter}) {choice}" for letter, choice in zip(LETTERS, choices, strict=False))
    if form in ("index0", "index1"):
        place = int(answer) - (form == "index1") if WHOLE.fullmatch(answer) else -1
        if not 0 <= place < len(choices):
            raise DataError(
                f"{location}: {answer!r:.60} is not one of the {len(choices)} choices by number: {options_text:.200}"
            )
        return LETTERS[place]
    by_letter = None if form == "text" else _by_label(answer, labels) if labels else _by_letter(answer, choices)
    by_text = None if form == "letter" else _by_text(answer, choices)
    if by_letter is not None and by_text is not None and by_letter != by_text:
        raise DataError(
            f"{location}: {answer!r:.60} is the letter of one choice and the text of another ({options_text:.200}): "
            "say which in a mapping (`answer: letter` or `answer: text`)"
        )
    index = by_letter if by_letter is not None else by_text
    if index is None:
        by_number = form is None and WHOLE.fullmatch(answer)
        more = " (a mapping may say `answer: index0` or `index1`)" if by_number else ""
        raise DataError(f"{location}: {answer!r:.60} is not one of the choices: {options_text:.200}{more}")
    return LETTERS[index]


def _by_label(answer: str, labels: Sequence[str]) -> int | None:
    """Return the index of the choice with this label in the table: `B`, `(b)`, `2`."""
    for same in (str.strip, _bare):
        places = [place for place, label in enumerate(labels) if same(label) == same(answer)]
        if len(places) == 1:
            return places[0]
    return None


def _bare(label: str) -> str:
    return label.strip().strip("().:").casefold()


def _by_letter(answer: str, choices: Sequence[str]) -> int | None:
    """Return the index of the choice that the answer names by its letter alone, or by letter and text."""
    match = _LETTER.match(answer)
    if match is None:
        return None
    place, rest = LETTERS.index(match[1].upper()), answer[match.end() :].strip()
    if place >= len(choices) or (rest and (match[0] == match[1] or rest != choices[place])):
        return None
    return place


def _by_text(answer: str, choices: Sequence[str]) -> int | None:
    """Return the index of the only choice with this text; if none matches exactly, compare letters and digits."""
    for same in (str.strip, comparable):
        places = [place for place, choice in enumerate(choices) if same(choice) == same(answer)]
        if len(places) == 1:
            return places[0]
    return None


def _order(row: DataRow, column: str, choices: Sequence[str], labels: Sequence[str], form: Answer | None) -> str:
    location = f"{row.where}, column {column}"
    answer = texts(row, column)
    if answer is None:
        text = answer_in(row, column)
        answer = tuple(part.strip() for part in text.split(",")) if "," in text else tuple(text.replace(" ", ""))
    letters = "".join(_letter(part, choices, labels, form, location) for part in answer)
    if sorted(letters) != list(LETTERS[: len(choices)]):
        raise DataError(f"{location}: {letters} does not contain each of the {len(choices)} choices exactly once")
    return letters


def _accepted(row: DataRow, column: str) -> tuple[str, ...]:
    """Return the accepted spellings: a list, or one text separated by `|`."""
    spellings = texts(row, column)
    if spellings is None:
        spellings = tuple(part.strip() for part in answer_in(row, column).split("|"))
    location = f"{row.where}, column {column}"
    if not spellings or any(not comparable(spelling) for spelling in spellings):
        raise DataError(f"{location}: an accepted spelling is empty")
    if len(spellings) > MAX_ACCEPTED:
        raise DataError(f"{location}: {len(spellings):,} accepted spellings; at most {MAX_ACCEPTED:,}")
    return tuple(dict.fromkeys(spellings))


def _tolerance(row: DataRow, column: str) -> dict[str, Json]:
    """Return the tolerance: absolute (`0.5`), or relative to the answer (`5%`); 0 if the cell is empty."""
    text = scalar_text(row, column) if column else None
    if text is None:
        return {"tolerance": 0.0, "relative": False}
    relative = text.endswith("%")
    value = number_in(text.removesuffix("%").strip())
    if value is None or value < 0:
        raise DataError(f"{row.where}, column {column}: {text!r:.40} is not a tolerance: write 0.5, or 5%")
    return {"tolerance": value / 100 if relative else value, "relative": relative}


def _place(kind: Kind, row: DataRow, columns: Columns) -> dict[str, Json]:
    """Return a box or, only for kind point, a point with the distance (`tolerance`, px) within which a reply counts."""
    location = f"{row.where}, column {columns.answer}"
    value: Any = row.cell(columns.answer)
    values = numbers(value)
    if values is not None and len(values) == 4:
        x0, y0, x1, y1 = values
        if not (x0 < x1 and y0 < y1):
            raise DataError(
                f"{location}: {value!r:.60} is not a box: write left, top, right, bottom (and no width and height)"
            )
        return {"box": [x0, y0, x1, y1]}
    if kind is Kind.BOX or values is None or len(values) != 2:
        expected = "a box: four numbers" if kind is Kind.BOX else "a point or a box: two or four numbers"
        raise DataError(f"{location}: {value!r:.60} is not {expected}")
    within = number_in(scalar_text(row, columns.tolerance) or "") if columns.tolerance else None
    if within is None or within < 0 or not math.isfinite(within):
        raise DataError(f"{location}: a point counts within a distance: give a tolerance in pixels, or a box")
    return {"point": list(values), "within": within}
