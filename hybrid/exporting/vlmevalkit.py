"""A sheet of VLMEvalKit with predictions, as its inference writes it: `MODEL_DATASET.xlsx`, or `.tsv`.

    hybrid export RUN/mllm --to vlmevalkit -o gpt4o_BLINK.xlsx
    hybrid score gpt4o_BLINK.xlsx --benchmark blink --data DIR

Columns: `index` (from 0), `question`, the options `A`, `B`, ..., `answer` (a letter if there is one), `category` (the
task), `idx` (the benchmark's id), `cluster` (the unit that statistics resample) and `prediction` (the unchanged reply).
"""

from __future__ import annotations

import csv
import io
import string
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hybrid.core.errors import DataError, UsageError
from hybrid.core.files import write_atomic
from hybrid.exporting._single_replies import SingleReply, single_replies
from hybrid.exporting.base import ExportedRun, Exporter, ExportOptions, Written
from hybrid.scoring.pairing import Data
from hybrid.scoring.predictions import vlmevalkit
from hybrid.scoring.rendering import neutral

Row = Sequence[str | int]


class VlmEvalKit(Exporter):
    """Writes a run's replies as a single sheet."""

    form = "VLMEvalKit"
    about = "a sheet with predictions (.xlsx or .tsv); one solver, one reply per question"

    def export(self, run: ExportedRun, path: Path, options: ExportOptions) -> Written:
        """See `Exporter.export`. Such sheets contain no images."""
        del options
        if path.suffix.lower() not in WRITERS:
            raise UsageError(f"-o {path}: a sheet of {self.form} ends in .xlsx or .tsv")
        replies, notes = single_replies(run, run.only(self.form), self.form)
        write_sheet(path, replies, run.data)
        return Written((path,), notes)


def write_sheet(path: Path, rows: Sequence[SingleReply], data: Data) -> None:
    """Write the sheet in the format given by the suffix of `path`, and read it back as a check.

    Rows of generated questions have two additional columns, `dataset` and `split`.

    Raises:
        UsageError: a reply would change when read back; no file is left.
    """
    options = string.ascii_uppercase[: max(len(row.question.choices) for row in rows)]
    more = {"dataset": data.name, "split": data.named_split} if data.generated else {}
    sheet: list[Row] = [("index", "question", *options, "answer", "category", "idx", "cluster", *more, "prediction")]
    for index, row in enumerate(rows):
        question = row.question
        choices = (*question.choices, *[""] * (len(options) - len(question.choices)))
        facts = (row.gold, question.task, question.id, question.unit, *more.values())
        sheet.append((index, question.text, *choices, *facts, row.text))
    try:
        WRITERS[path.suffix.lower()](path, sheet)
        _refuse_loss(path, rows)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _write_tsv(path: Path, rows: Sequence[Row]) -> None:
    text = io.StringIO()
    # Escape replies that a spreadsheet would evaluate, such as "=..."; reading the sheet removes the apostrophe.
    safe = ([neutral(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    csv.writer(text, delimiter="\t").writerows(safe)
    write_atomic(path, text.getvalue().encode("utf-8"))


def _write_xlsx(path: Path, rows: Sequence[Row]) -> None:
    from openpyxl import Workbook
    from openpyxl.utils.exceptions import IllegalCharacterError

    book = Workbook()
    sheet = book.worksheets[0]
    for number, row in enumerate(rows, 1):
        for column, value in enumerate(row, 1):
            try:
                cell = sheet.cell(number, column, value)
            except IllegalCharacterError:
                raise UsageError(
                    f"{path}, line {number}: a workbook cannot hold this text's control characters; name a .tsv instead"
                ) from None
            if isinstance(value, str):
                # Mark the cell as a string: a text that begins with "=" would become a formula, and reading it back
                # would fail.
                cell.data_type = "s"
    # Save to memory first, because the library prints its own traceback for a file that it cannot finish.
    data = io.BytesIO()
    book.save(data)
    write_atomic(path, data.getvalue())


# The writer for each suffix.
WRITERS: Mapping[str, Callable[[Path, Sequence[Row]], None]] = {".xlsx": _write_xlsx, ".tsv": _write_tsv}


def _refuse_loss(path: Path, rows: Sequence[SingleReply]) -> None:
    """Raise `UsageError` if a reply cannot be read back unchanged under its id."""
    try:
        table = vlmevalkit.read(path)
    except DataError as error:
        raise UsageError(f"the sheet could not be read back: {error}") from error
    back = {row.id: row.reply for row in table.rows} if table else {}
    for row in rows:
        if back.get(row.question.id) != row.text:
            raise UsageError(
                f"{path}: the reply to {row.question.id} cannot be read back unchanged (a workbook cell holds at most "
                "32,767 characters, and some characters not at all); name a .tsv instead, or use another format"
            )


EXPORTER = VlmEvalKit()
