"""A benchmark from a recipe: `hybrid/benchmarks/recipes/NAME.yaml`, or `DIR/benchmarks/NAME.yaml` with `--path DIR`.

    benchmark_of(Path("recipes/NAME.yaml")).card.tasks

A recipe contains only values (`schema.py`). The values that determine how its questions are asked are part of the
benchmark's texts, whose hash is in a run's manifest.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from hybrid.benchmarks.base import Benchmark, Source
from hybrid.benchmarks.card import BenchmarkCard, ImageSource
from hybrid.benchmarks.questions.benchmark import TOOLS_OFFERED, TableBenchmark
from hybrid.benchmarks.questions.columns import unread
from hybrid.benchmarks.questions.reading import ROUTE, QuestionReader, folder_of, reader_of
from hybrid.benchmarks.questions.schema import Recipe, recipe_of
from hybrid.benchmarks.questions.statistics import summed
from hybrid.core.errors import DataError, UsageError
from hybrid.core.option_rotation import ALL_TASKS
from hybrid.core.types import Metric, Score
from hybrid.plugins.prompt_texts import read_texts
from hybrid.samples.seeds import Purpose

# Smallest and largest accepted ratio of the number of rows in the data to the number on the card.
MIN_SHARE, MAX_SHARE = 0.8, 1.25
# Default texts of a question's parts.
OWN_TEXTS: Final = Path(__file__).with_name("texts.toml")


class RecipeBenchmark(TableBenchmark):
    """The benchmark of a recipe."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.card = card_of(recipe)
        # Leave out annotations, which are for statistics and do not change the prompts.
        layout = {key: value for key, value in asdict(recipe.layout).items() if not key.startswith("evidence")}
        layout["columns"] = {role: names for role, names in recipe.layout.columns.items() if role != "evidence"}
        decides = {"layout": layout, "rows": recipe.cluster.rows, "cyclic": recipe.variants == "cyclic"}
        super().__init__({**read_texts(OWN_TEXTS), "recipe": json.dumps(decides, sort_keys=True)})

    def reworded(self, replacement: Path) -> Benchmark:
        """Raise `UsageError`: the recipe defines the form of its questions."""
        raise UsageError(
            f"--prompts {replacement}: {self.card.name} is a recipe, whose prompt is in its file: copy the file and "
            "change `prompt:` in the copy"
        )

    def hub_files(self, split: str, tasks: Sequence[str]) -> tuple[str, ...]:
        """Return the tables of the split, and the images they name."""
        del tasks
        return tuple(pattern.format(split=split) for pattern in (*self.recipe.hub.files, *self.recipe.hub.images))

    def tables(self, source: Source) -> tuple[Path, ...]:
        """Return the files of the split by the recipe's patterns, sorted by name."""
        folder = folder_of(source)
        patterns = [pattern.format(split=source.split) for pattern in self.recipe.hub.files]
        paths = tuple(sorted({path for pattern in patterns for path in folder.glob(pattern)}))
        if not paths:
            raise DataError(f"{source.folder} contains no {self.card.short_title} data: expected {', '.join(patterns)}")
        return paths

    def schema_mismatch(self, source: Source) -> str | None:
        """Describe a mismatch: a number of rows far from the card's, or meaningful columns that are not read."""
        readers = [self.reader(source, path) for path in self.tables(source)]
        rows = sum(len(places) for reader in readers for places in reader.index.places.values())
        counts = self.card.tasks.values() if source.split == self.card.splits[0] else ()
        expected = sum(counts) if all(counts) else 0
        more = dict.fromkeys(name for reader in readers for name in unread(reader.table.columns(), self.recipe.layout))
        other = f"{rows:,} rows instead of {expected:,}"
        parts = [other] if expected and not MIN_SHARE <= rows / expected <= MAX_SHARE else []
        parts += [f"the columns {', '.join(more)}, which {self.card.short_title} does not have"] if more else []
        return " and ".join(parts) or None

    def reader(self, source: Source, path: Path) -> QuestionReader:
        """Open the table with the recipe's layout."""
        recipe, tables = self.recipe, self.tables(source)
        reader = reader_of(
            source, path, recipe.layout, texts=self.texts, task=recipe.only_task, rows=recipe.cluster.rows
        )
        prefix = f"{tables.index(path)}." if len(tables) > 1 else ""
        return replace(reader, cyclic=recipe.variants == "cyclic", prefix=prefix)

    def generate(
        self, folder: Path, tasks: Sequence[str], per_task: int, seed: int, purpose: Purpose = "sample"
    ) -> None:
        """Generate with `hybrid.benchmarks.questions.sample.write`."""
        from hybrid.benchmarks.questions.sample import write

        write(folder, self.recipe, tasks, per_task=per_task, seed=seed, purpose=purpose)

    def summarise(self, scores: Sequence[Score]) -> tuple[Metric, ...]:
        """Compute the metrics that the recipe names."""
        return summed(self.recipe.metrics, scores)


def card_of(recipe: Recipe) -> BenchmarkCard:
    """Make the card of a recipe."""
    hub = recipe.hub
    return BenchmarkCard(
        name=recipe.name,
        title=recipe.title,
        citation=recipe.citation,
        licence=recipe.licence,
        image_sources=tuple(ImageSource(name, source_name) for name, source_name in recipe.image_sources.items()),
        hub_id=hub.id,
        splits=hub.splits,
        tasks=dict(recipe.expected),
        rotatable=() if recipe.variants == "cyclic" else (ALL_TASKS,),
        routes=(ROUTE,),
        tools_offered=TOOLS_OFFERED,
        sample_tasks=tuple(recipe.scenes),
        # Without ids rows are named by their position in the table, which changes as other tasks grow.
        sample_extends="id" in recipe.layout.columns and recipe.samples is not None,
        metrics=tuple(metric.card for metric in recipe.metrics),
        headline=(recipe.metrics[0].name,),
        unchecked=recipe.unchecked,
    )


@lru_cache(maxsize=64)
def _load_recipe(path: Path, stamp: tuple[int, int]) -> RecipeBenchmark:
    del stamp
    return RecipeBenchmark(recipe_of(path))


def benchmark_of(path: Path) -> RecipeBenchmark:
    """Return the benchmark of a recipe file's current version. Raises `UsageError` for an invalid file."""
    try:
        state = path.stat()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    return _load_recipe(path, (state.st_mtime_ns, state.st_size))
