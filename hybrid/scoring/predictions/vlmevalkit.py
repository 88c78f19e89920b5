"""Sheets of VLMEvalKit: `MODEL_DATASET.tsv` or `.xlsx`, one row a question.

Columns: `index` (a whole number, unique), `question`, the options `A`, `B`, ... (empty where there are fewer), `answer`
(a letter), `category`, `task` or `split`, and `prediction` (the model's full text). A column `idx` or `id` is taken for
the benchmark's own id, a column `cluster` for what belongs together. Sheets of results (`..._result.xlsx`, with `hit`
and `log`) are read like the others; `hit` is not used, because every solver goes through our own parser.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from zipfile import BadZipFile

from hybrid.benchmarks.base import PredictedRow
from hybrid.benchmarks.questions.tables import Separated
from hybrid.errors import DataError, UsageError
from hybrid.scoring.predictions.base import Recognised, letter_of

NEEDED = ("index", "question", "prediction")
IDS = ("idx", "id", "question_id")
TASKS = ("category", "task", "sub_task", "split")
# The rotations of its circular data sets have the index of their question plus a multiple of this.
ROTATED_FROM = 1_000_000

# The text that VLMEvalKit writes where the provider did not reply.
FAILED = "Failed to obtain answer via API."

Cells = Mapping[str, str]


def read(path: Path) -> Recognised | None:
    """The rows of a sheet, or of the only sheet in a folder; None where there is none.

    Raises:
        DataError: a sheet that cannot be read, lacks a column, or has an index that is no number or appears twice.
        UsageError: the folder holds several sheets.
    """
    files = [path] if not path.is_dir() else sorted(file for file in path.iterdir() if not file.name.startswith("~$"))
    sheets = [file for file in files if file.suffix.lower() in (".tsv", ".xlsx")]
    if not sheets:
        return None
    if len(sheets) > 1:
        raise UsageError(f"{path} holds {len(sheets)} sheets ({', '.join(s.name for s in sheets)}): give one of them")
    (sheet,) = sheets
    lines = _tsv(sheet) if sheet.suffix.lower() == ".tsv" else _xlsx(sheet)
    rows = tuple(_row(cells, where) for cells, where in _records(sheet, lines))
    seen: dict[int | None, str] = {}
    for row in rows:
        if row.index in seen:
            raise DataError(f"{row.where}, column index: {row.index} also stands in {seen[row.index]}")
        seen[row.index] = row.where
    failed = sum(row.reply.strip() == FAILED for row in rows)
    notes = (
        (f'{failed} replies are "{FAILED}": the provider did not answer, and they count as wrong',) if failed else ()
    )
    return Recognised(f"VLMEvalKit sheet ({sheet.suffix.lower()[1:]}, {len(rows)} rows)", rows, notes)


def _tsv(path: Path) -> Iterator[Sequence[str]]:
    sheet = Separated(path, "\t")
    yield (names := sheet.columns())
    for _, row in sheet.scan(names):
        if isinstance(row, DataError):
            raise row
        yield [str(row.values.get(name, "")) for name in names]


def _xlsx(path: Path) -> Iterator[Sequence[str]]:
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        book = load_workbook(path, read_only=True, data_only=True)
    except (BadZipFile, InvalidFileException, KeyError, ValueError) as error:
        raise DataError(f"{path} is not a workbook ({error})") from error
    try:
        sheet = book.worksheets[0] if book.worksheets else None
        if sheet is None:
            raise DataError(f"{path} has no sheet")
        for values in sheet.iter_rows(values_only=True):
            # A number that a spreadsheet made of "3" is "3" again.
            whole = (int(one) if isinstance(one, float) and one.is_integer() else one for one in values)
            yield ["" if one is None else str(one) for one in whole]
    finally:
        book.close()


def _records(path: Path, lines: Iterator[Sequence[str]]) -> Iterator[tuple[Cells, str]]:
    # Results are written with lower-case headings; only the options keep their capital.
    heading = [name.strip() for name in next(lines, ())]
    names = [name if name in string.ascii_uppercase else name.lower() for name in heading]
    missing = [name for name in NEEDED if name not in names]
    if missing:
        raise DataError(
            f"{path}, line 1: a VLMEvalKit sheet has the columns {', '.join(NEEDED)}; "
            f"missing: {', '.join(missing)}; found: {', '.join(heading) or 'none'}"
        )
    for number, values in enumerate(lines, 2):
        if not any(values):
            continue
        if len(values) > len(names):
            raise DataError(f"{path}, line {number}: {len(values)} cells under {len(names)} columns")
        yield dict(zip(names, values, strict=False)), f"{path}, line {number}"


def _row(cells: Cells, where: str) -> PredictedRow:
    answer, value = cells.get("answer", "").strip(), cells["index"]
    try:
        number = float(value)
    except ValueError:
        raise DataError(f"{where}, column index: {value!r} is not a number") from None
    if not number.is_integer():
        raise DataError(f"{where}, column index: {value!r} is not a whole number")
    if number >= ROTATED_FROM:
        raise DataError(
            f"{where}, column index: {value} is a rotation of a circular data set; only plain sheets are read"
        )
    texts = [cells.get(letter, "").strip() for letter in string.ascii_uppercase]
    texts = ["" if text == "nan" else text for text in texts]
    count = next((place for place, text in enumerate(texts) if not text), len(texts))
    if any(texts[count:]):
        letter = string.ascii_uppercase[count]
        raise DataError(f"{where}, column {letter}: empty, but a later option is not")
    return PredictedRow(
        where=where,
        reply=cells.get("prediction", ""),
        id=_first(cells, IDS),
        task=_first(cells, TASKS),
        index=int(number),
        text=cells.get("question", "").strip() or None,
        choices=tuple(texts[:count]),
        answer=letter_of(answer) if answer else None,
        cluster=cells.get("cluster", "").strip(),
    )


def _first(cells: Cells, names: Sequence[str]) -> str | None:
    return next((cells[name].strip() for name in names if cells.get(name, "").strip()), None)
