"""Custom questions: the rows of a file, or of a folder with one file and its images.

    hybrid run questions.jsonl --model openai:gpt-4o            short for: hybrid run questions --data questions.jsonl
    hybrid run DIR --model openai:gpt-4o                        DIR contains one questions.jsonl (.json, .csv, ...)

Columns are `id, image, question, choices, answer` and optionally `task, group, hint, kind, tolerance, cluster,
evidence`, or those of VLMEvalKit's TSV. For other names write a mapping, `questions.yaml` next to `questions.jsonl`, or
a file named with `--setting mapping=FILE`. With `--split hidden` the rows need no answer: they are asked and not
scored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from hybrid.benchmarks._shared.paths import inside
from hybrid.benchmarks.base import Source
from hybrid.benchmarks.questions.benchmark import TableBenchmark
from hybrid.benchmarks.questions.reading import QuestionReader, folder_of, reader_of
from hybrid.benchmarks.questions.schema import Layout, layout_of
from hybrid.benchmarks.questions.statistics import parse_metric, summed
from hybrid.benchmarks.questions.tables import ENDINGS
from hybrid.core.errors import DataError
from hybrid.core.types import Metric, Score

# Name of the file of questions in a folder, without its ending.
STEM: Final = "questions"
BESIDE: Final = "beside"
ALWAYS: Final = (parse_metric("accuracy over task"), parse_metric("accuracy"))
WHERE_YES_NO: Final = tuple(map(parse_metric, ("f1", "precision", "recall", "yes_share")))


class Questions(TableBenchmark):
    """The benchmark of custom questions; the module's docstring describes their file."""

    accepts_file = True

    def tables(self, source: Source) -> tuple[Path, ...]:
        """Return the given file, or the only file of questions in a folder."""
        if source.folder.is_file():
            return (source.folder,)
        existing = [path for ending in ENDINGS if (path := source.folder / f"{STEM}{ending}").exists()]
        if len(existing) == 1:
            return tuple(existing)
        names = ", ".join(f"{STEM}{ending}" for ending in ENDINGS)
        if not existing:
            raise DataError(f"{source.folder} contains no file of questions: expected one of {names}; or give a file")
        raise DataError(
            f"{source.folder} holds {' and '.join(path.name for path in existing)}: keep one, or give a file"
        )

    def files(self, source: Source) -> tuple[Path, ...]:
        """Return the table, and its mapping if there is one."""
        mapping = mapping_of(source, self.tables(source)[0])
        return (*super().files(source), *(() if mapping is None else (mapping,)))

    def reader(self, source: Source, path: Path) -> QuestionReader:
        """Open the table with its mapping, or with unambiguous column names."""
        mapping = mapping_of(source, path)
        layout = Layout() if mapping is None else layout_of(mapping)
        hidden = source.split in self.card.hidden_splits
        return reader_of(source, path, layout, texts=self.texts, task=path.stem, has_answers=not hidden)

    def submission(self, answers: Mapping[str, str | None]) -> str:
        """Return the answers by id as JSON, with null for an unreadable answer."""
        return json.dumps(dict(answers), indent=1, ensure_ascii=False)

    def summarise(self, scores: Sequence[Score]) -> tuple[Metric, ...]:
        """Compute accuracy; for yes/no questions also F1 and its parts, for boxes also their overlap."""
        return (*summed((*ALWAYS, *WHERE_YES_NO), scores), *super().summarise(scores))


def mapping_of(source: Source, table: Path) -> Path | None:
    """Return the file of the mapping, or None. Raises `DataError` if a named file is missing."""
    mapping = source.settings.get("mapping", BESIDE)
    if mapping == BESIDE:
        sibling = table.with_suffix(".yaml")
        return sibling if inside(folder_of(source), sibling) else None
    path = Path(mapping).expanduser()
    if not path.is_file():
        raise DataError(f"--setting mapping={mapping}: file not found")
    return path


BENCHMARK = Questions()
