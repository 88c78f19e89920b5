"""The answer of a row: which kind of question it makes, and what is right.

A target is JSON, as a run keeps it: a letter (choice), "yes" or "no", a whole number, letters in order ("BCA"), or for
the other kinds a mapping: `{"number", "tolerance", "relative"}`, `{"accepted"}`, `{"box"}` or `{"point", "within"}`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Final

from hybrid.answers.words import comparable
from hybrid.benchmarks._shared.rows import DataRow
from hybrid.benchmarks.questions.cells import listed, numbers, scalar_text, texts
from hybrid.benchmarks.questions.columns import Columns
from hybrid.benchmarks.questions.schema import KINDS, Answer, Layout
from hybrid.errors import DataError, did_you_mean
from hybrid.types import LETTERS, Json, Kind

YES: Final = frozenset({"yes", "true"})
NO: Final = frozenset({"no", "false"})
# Further words for yes and no, which an answer may be where the kind is said.
YES_IF_KIND: Final = YES | {"1", "y", "t"}
NO_IF_KIND: Final = NO | {"0", "n", "f"}
_LETTER: Final = re.compile(r"\(?([A-Za-z])[).:]?")
WHOLE: Final = re.compile(r"[0-9]{1,9}")
# Commas only between groups of three digits: of "12,5" nobody can say whether it is 12.5 or a list.
_NUMBER: Final = re.compile(
    r"[-+\u2212]?(?:(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,300})(?:\.[0-9]{0,300})?|\.[0-9]{1,300})(?:[eE][-+]?[0-9]{1,3})?"
)
MAX_ACCEPTED: Final = 1000


def number_in(text: str) -> float | None:
    """The finite number that a whole cell writes: `-2.5`, `1,204.75`, `1e3`; None for anything else."""
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text.replace(",", "").replace("\u2212", "-"))
    return value if math.isfinite(value) else None


def kind_of(row: DataRow, columns: Columns, layout: Layout, choices: Sequence[str]) -> Kind:
    """The kind that the row or the mapping says, else the one that its answer shows.

    Raises:
        DataError: a word that is no kind, or an answer that shows none.
    """
    said = scalar_text(row, columns.kind) if columns.kind else None
    if said is not None:
        words = [str(kind) for kind in KINDS]
        word = said.casefold().replace("/", "_").replace("-", "_").replace(" ", "_")
        if word not in words:
            hint = did_you_mean(word, words)
            raise DataError(f"{row.where}, column {columns.kind}: {said!r:.40} is no kind{hint}: {', '.join(words)}")
        return Kind(word)
    if layout.kind is not None:
        return layout.kind
    if choices:
        return Kind.CHOICE
    value, where = row.cell(columns.answer), f"{row.where}, column {columns.answer}"
    if listed(value) is not None:
        if numbers(value) is not None:
            raise DataError(f"{where}: {value!r:.60} may be a point, a box or a number: say its kind")
        return Kind.TEXT
    text = answer_in(row, columns.answer).casefold()
    if text in YES | NO:
        return Kind.YES_NO
    if WHOLE.fullmatch(text):
        return Kind.INTEGER
    return Kind.TEXT if number_in(text) is None else Kind.NUMBER


def answer_in(row: DataRow, column: str) -> str:
    """The answer of a row as text; `["B"]` is one answer in a list. Raises `DataError` for none, and for a list."""
    one = texts(row, column)
    text = one[0] if one is not None and len(one) == 1 else scalar_text(row, column)
    if text is None:
        raise DataError(f"{row.where}, column {column}: there is no answer")
    return text


def target_of(
    kind: Kind, row: DataRow, columns: Columns, layout: Layout, choices: Sequence[str], labels: Sequence[str] = ()
) -> Json:
    """The right answer; `labels` are the table's own names of the choices, where it has such.

    Raises `DataError` for an answer that is none of the kind, or none of the choices.
    """
    column = columns.answer
    where = f"{row.where}, column {column}"
    match kind:
        case Kind.CHOICE:
            return _letter(answer_in(row, column), choices, labels, layout.answer, where)
        case Kind.ORDER:
            return _order(row, column, choices, labels, layout.answer)
        case Kind.TEXT:
            return {"accepted": list(_accepted(row, column))}
        case Kind.POINT | Kind.BOX:
            return _place(kind, row, columns)
    text = answer_in(row, column)
    if kind is Kind.YES_NO:
        if (word := text.casefold()) not in YES_IF_KIND | NO_IF_KIND:
            raise DataError(f"{where}: {text!r:.60} is neither yes nor no")
        return "yes" if word in YES_IF_KIND else "no"
    if kind is Kind.INTEGER:
        if not WHOLE.fullmatch(text):
            raise DataError(f"{where}: {text!r:.60} is no whole number from 0; `kind: number` takes others")
        return int(text)
    value = number_in(text)
    if value is None:
        raise DataError(f"{where}: {text!r:.60} is no number; write 1204.75 or 1,204.75")
    return {"number": value, **_tolerance(row, columns.tolerance)}


def _letter(answer: str, choices: Sequence[str], labels: Sequence[str], form: Answer | None, where: str) -> str:
    if not choices:
        raise DataError(f"{where}: the question has no choices")
    offered = ", ".join(f"({letter}) {choice}" for letter, choice in zip(LETTERS, choices, strict=False))
    if form in ("index0", "index1"):
        place = int(answer) - (form == "index1") if WHOLE.fullmatch(answer) else -1
        if not 0 <= place < len(choices):
            raise DataError(f"{where}: {answer!r:.60} is none of the {len(choices)} choices by number: {offered:.200}")
        return LETTERS[place]
    by_letter = None if form == "text" else _by_label(answer, labels) if labels else _by_letter(answer, choices)
    by_text = None if form == "letter" else _by_text(answer, choices)
    if by_letter is not None and by_text is not None and by_letter != by_text:
        raise DataError(
            f"{where}: {answer!r:.60} is the letter of one choice and the text of another ({offered:.200}): "
            "a mapping says which (`answer: letter` or `answer: text`)"
        )
    found = by_letter if by_letter is not None else by_text
    if found is None:
        by_number = form is None and WHOLE.fullmatch(answer)
        more = " (a mapping may say `answer: index0` or `index1`)" if by_number else ""
        raise DataError(f"{where}: {answer!r:.60} is none of the choices: {offered:.200}{more}")
    return LETTERS[found]


def _by_label(answer: str, labels: Sequence[str]) -> int | None:
    """The place of the choice that the table calls so: `B`, `(b)`, `2`."""
    for same in (str.strip, _bare):
        places = [place for place, label in enumerate(labels) if same(label) == same(answer)]
        if len(places) == 1:
            return places[0]
    return None


def _bare(label: str) -> str:
    return label.strip().strip("().:").casefold()


def _by_letter(answer: str, choices: Sequence[str]) -> int | None:
    """The place of a letter alone, or of a letter with the text of its choice."""
    match = _LETTER.match(answer)
    if match is None:
        return None
    place, rest = LETTERS.index(match[1].upper()), answer[match.end() :].strip()
    if place >= len(choices) or (rest and (match[0] == match[1] or rest != choices[place])):
        return None
    return place


def _by_text(answer: str, choices: Sequence[str]) -> int | None:
    """The place of the only choice with this text, by its letters and digits where none has it as it is."""
    for same in (str.strip, comparable):
        places = [place for place, choice in enumerate(choices) if same(choice) == same(answer)]
        if len(places) == 1:
            return places[0]
    return None


def _order(row: DataRow, column: str, choices: Sequence[str], labels: Sequence[str], form: Answer | None) -> str:
    where = f"{row.where}, column {column}"
    answer = texts(row, column)
    if answer is None:
        said = answer_in(row, column)
        answer = tuple(part.strip() for part in said.split(",")) if "," in said else tuple(said.replace(" ", ""))
    letters = "".join(_letter(part, choices, labels, form, where) for part in answer)
    if sorted(letters) != list(LETTERS[: len(choices)]):
        raise DataError(f"{where}: {letters} does not have each of the {len(choices)} choices once")
    return letters


def _accepted(row: DataRow, column: str) -> tuple[str, ...]:
    """The accepted spellings: a list, or one text with `|` between them."""
    found = texts(row, column)
    if found is None:
        found = tuple(part.strip() for part in answer_in(row, column).split("|"))
    where = f"{row.where}, column {column}"
    if not found or any(not comparable(each) for each in found):
        raise DataError(f"{where}: an accepted spelling is empty")
    if len(found) > MAX_ACCEPTED:
        raise DataError(f"{where}: {len(found):,} accepted spellings; at most {MAX_ACCEPTED:,}")
    return tuple(dict.fromkeys(found))


def _tolerance(row: DataRow, column: str) -> dict[str, Json]:
    """The tolerance: absolute (`0.5`), or relative to the answer (`5%`); exact where there is none."""
    said = scalar_text(row, column) if column else None
    if said is None:
        return {"tolerance": 0.0, "relative": False}
    relative = said.endswith("%")
    value = number_in(said.removesuffix("%").strip())
    if value is None or value < 0:
        raise DataError(f"{row.where}, column {column}: {said!r:.40} is no tolerance: write 0.5, or 5%")
    return {"tolerance": value / 100 if relative else value, "relative": relative}


def _place(kind: Kind, row: DataRow, columns: Columns) -> dict[str, Json]:
    """A box, or for a point also a point with the distance (`tolerance`, in pixels) within which it counts."""
    where = f"{row.where}, column {columns.answer}"
    value: Any = row.cell(columns.answer)
    found = numbers(value)
    if found is not None and len(found) == 4:
        x0, y0, x1, y1 = found
        if not (x0 < x1 and y0 < y1):
            raise DataError(
                f"{where}: {value!r:.60} is no box: write left, top, right, bottom (and no width and height)"
            )
        return {"box": [x0, y0, x1, y1]}
    if kind is Kind.BOX or found is None or len(found) != 2:
        wanted = "a box: four numbers" if kind is Kind.BOX else "a point or a box: two numbers or four"
        raise DataError(f"{where}: {value!r:.60} is not {wanted}")
    within = number_in(scalar_text(row, columns.tolerance) or "") if columns.tolerance else None
    if within is None or within < 0 or not math.isfinite(within):
        raise DataError(f"{where}: a point counts within a distance: give a tolerance in pixels, or a box")
    return {"point": list(found), "within": within}
