"""Sheets of VLMEvalKit: `MODEL_DATASET.tsv`, `.xlsx` or `.csv`, one row per question.

Columns: `index` (unique; an integer or a name), `question`, the options `A`, `B`, ... (empty if there are fewer),
`answer` (a letter), `category`, `task` or `split`, and `prediction` (the model's full text). A column `idx` or `id`
is used as the benchmark's own id, a column `cluster` as the cluster. Sheets of results (`..._result.xlsx`, with `hit`
and `log`) are read the same way; `hit` is ignored, because every solver is scored by hybrid's own parser.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from zipfile import ZipFile

from hybrid.benchmarks.base import PredictedRow
from hybrid.benchmarks.questions.tables import Separated
from hybrid.core.errors import DataError, UsageError
from hybrid.display.terminal import how_many
from hybrid.scoring.predictions.base import UNREADABLE, Recognised, first, letter_of

NEEDED = ("index", "question", "prediction")
OURS = "idx"
IDS = (OURS, "id", "question_id")
TASKS = ("category", "task", "sub_task", "split")
# Maximum number of characters in a workbook cell; programs that write workbooks cut a longer text, or leave the cell
# empty.
MAX_CELL = 32_767

# Maximum number of parts of a workbook, and of its bytes after decompression; the largest published sheets have about
# ten million bytes.
MAX_ENTRIES, MAX_UNPACKED = 10_000, 256 * 2**20
# Number of bytes to search for a document type, which must come before the first element.
MAX_PROLOGUE = 64 * 2**10

# The text that VLMEvalKit writes if the provider did not reply.
FAILED = "Failed to obtain answer via API."
_CONTROL = re.compile(r"_x(00[01][0-9A-Fa-f])_")

Cells = Mapping[str, str]


def read(path: Path) -> Recognised | None:
    """Return the rows of a sheet, or of the only sheet in a folder; None if there is no sheet.

    Raises:
        DataError: a sheet that cannot be read, lacks a column, or has an index that is invalid or appears twice.
        UsageError: the folder holds several sheets.
    """
    files = [path] if not path.is_dir() else sorted(file for file in path.iterdir() if not file.name.startswith("~$"))
    sheets = [file for file in files if file.suffix.lower() in (".tsv", ".xlsx") or _is_csv_sheet(file)]
    if not sheets:
        return None
    if len(sheets) > 1:
        raise UsageError(f"{path} holds {len(sheets)} sheets ({', '.join(s.name for s in sheets)}): give one of them")
    (sheet,) = sheets
    suffix = sheet.suffix.lower()
    lines = _xlsx(sheet) if suffix == ".xlsx" else _separated(sheet, "," if suffix == ".csv" else "\t")
    rows = tuple(_row(cells, location) for cells, location in _records(sheet, lines))
    seen: dict[int | str | None, str] = {}
    for row in rows:
        key = row.id if row.index is None else row.index
        if key in seen:
            raise DataError(f"{row.where}, column index: {key} also appears in {seen[key]}; keep one of the two rows")
        seen[key] = row.where
    notes = tuple(_notes(rows, is_workbook=suffix == ".xlsx"))
    return Recognised(f"VLMEvalKit sheet ({suffix[1:]}, {how_many(len(rows), 'row')})", rows, notes)


def _is_csv_sheet(path: Path) -> bool:
    """Return whether a .csv file, which may contain anything, has the columns of a sheet."""
    if path.suffix.lower() != ".csv" or not path.is_file():
        return False
    try:
        names = Separated(path, ",").columns()
    except DataError:
        return False
    return {name.lower() for name in names}.issuperset(NEEDED)


def _notes(rows: Sequence[PredictedRow], *, is_workbook: bool) -> Iterator[str]:
    """Yield sentences about missing and truncated replies."""
    failed = [row.name for row in rows if row.reply.strip() == FAILED]
    if failed:
        yield f'{len(failed)} of {len(rows)} replies read "{FAILED}": the provider did not answer; counted as wrong'
    empty = [row.name for row in rows if not row.reply.strip()]
    if empty:
        yield f"{len(empty)} of {len(rows)} cells of prediction are empty, and count as no answer: {first(empty)}"
    cut = [row.name for row in rows if is_workbook and len(row.reply) >= MAX_CELL]
    if cut:
        yield (
            f"{len(cut)} of {len(rows)} replies have {MAX_CELL:,} characters, the length at which a workbook cuts a "
            f"text: the end with the answer may be lost; take the .tsv or .json of this run: {first(cut)}"
        )


def _separated(path: Path, delimiter: str) -> Iterator[Sequence[str]]:
    from hybrid.scoring.rendering import unescape  # rendering imports modules that import this module

    sheet = Separated(path, delimiter)
    yield (names := sheet.columns())
    # Sheets from `hybrid export` have this column, and escape cells that would be formulas; undo the escaping.
    plain = unescape if OURS in names else str
    for _, row in sheet.scan(names):
        if isinstance(row, DataError):
            raise row
        yield [plain(str(row.values.get(name, ""))) for name in names]


def _xlsx(path: Path) -> Iterator[Sequence[str]]:
    from openpyxl import load_workbook

    _refuse_archive(path)
    try:
        # Some writers turn a reply that begins with "=" into a formula. The reply is the text of the formula, not its
        # value (0).
        with closing(load_workbook(path, read_only=True, data_only=False)) as book:
            sheets = book.worksheets[:1]
            for sheet in sheets:
                for values in sheet.iter_rows(values_only=True):
                    yield [_cell_text(value) for value in values]
    # The library parses any XML, so it may raise any exception.
    except Exception as error:
        raise DataError(f"{path} is not a workbook that can be read ({str(error) or type(error).__name__})") from error
    if not sheets:
        raise DataError(f"{path} has no sheet")


def _refuse_archive(path: Path) -> None:
    """Raise `DataError` for a workbook that unpacks to too many bytes, or whose XML could define entities."""
    try:
        with ZipFile(path) as archive:
            entries = archive.infolist()
            size = sum(entry.file_size for entry in entries)
            if len(entries) > MAX_ENTRIES or size > MAX_UNPACKED:
                raise DataError(
                    f"{path}: {len(entries):,} parts of {size:,} bytes; at most {MAX_ENTRIES:,} of {MAX_UNPACKED:,} "
                    "bytes are read; write the sheet as .tsv"
                )
            for entry in entries:
                with archive.open(entry) as part:
                    prologue = part.read(MAX_PROLOGUE)
                    if any("<!DOCTYPE".encode(name) in prologue for name in ("utf-8", "utf-16-le", "utf-16-be")):
                        raise DataError(f"{path}, {entry.filename}: a document type, which no spreadsheet writes")
    except UNREADABLE as error:
        raise DataError(f"{path} is not a workbook ({error})") from error


def _cell_text(value: object) -> str:
    """Return the text of a cell; the number that a spreadsheet made of "3" becomes "3" again."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    # A reply in braces, `{=B}`, became an array formula: an object whose text lacks the braces.
    text = f"{{{value.text}}}" if hasattr(value, "text") else str(value)
    # Workbooks encode control characters, such as the carriage return of a line break; openpyxl does not decode them.
    return _CONTROL.sub(lambda match: chr(int(match[1], 16)), text)


def _records(path: Path, lines: Iterator[Sequence[str]]) -> Iterator[tuple[Cells, str]]:
    # Result sheets have lower-case headings; only the option letters keep their capital.
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


def _row(cells: Cells, location: str) -> PredictedRow:
    answer, value = cells.get("answer", "").strip(), cells["index"].strip()
    index = _index(value, location)
    texts = [cells.get(letter, "").strip() for letter in string.ascii_uppercase]
    texts = ["" if text == "nan" else text for text in texts]
    count = next((place for place, text in enumerate(texts) if not text), len(texts))
    if any(texts[count:]):
        letter = string.ascii_uppercase[count]
        raise DataError(f"{location}, column {letter}: empty, but a later option is not")
    return PredictedRow(
        where=location,
        reply=cells.get("prediction", ""),
        id=_first(cells, IDS) or (value if index is None else None),
        task=_first(cells, TASKS),
        index=index,
        text=cells.get("question", "").strip() or None,
        choices=tuple(texts[:count]),
        answer=letter_of(answer) if answer else None,
        cluster=cells.get("cluster", "").strip(),
    )


def _index(value: str, location: str) -> int | None:
    """Return the number of a row; None for a name, which VLMEvalKit also allows as an index."""
    try:
        number = float(value)
    except ValueError:
        if value and not value.startswith("="):
            return None
        raise DataError(f"{location}, column index: {value!r} is neither a number nor a name") from None
    if not number.is_integer():
        raise DataError(f"{location}, column index: {value!r} is not a whole number")
    return int(number)


def _first(cells: Cells, names: Sequence[str]) -> str | None:
    return next((cells[name].strip() for name in names if cells.get(name, "").strip()), None)
