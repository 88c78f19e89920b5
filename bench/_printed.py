"""Check printed cells against other printed cells of their paper: averages, totals, products and counts.

Each function takes the printed cells of one benchmark, and yields the cells that can be derived from others, with the
derived value and its derivation; a value is in the unit of its cell.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.scale import SHARES
from hybrid.benchmarks.blink import TASKS as BLINK_TASKS
from hybrid.scoring.published import Published

DATA: Final[Mapping[str, Any]] = tomllib.loads(Path(__file__).with_name("reproducing.toml").read_text())
# Tolerance in percent for a mean of rounded cells that is rounded to .01 again; some printed values are truncated.
ROUNDED = 0.0101


@dataclass(frozen=True)
class Derived:
    """The value of a cell, derived from other cells, and the largest error that rounding can cause."""

    cell: Published
    value: float
    derivation: str
    tolerance: float = ROUNDED


class Grid:
    """Printed cells by table, row and column; a name that occurs in two rows of a table is left out."""

    def __init__(self, cells: Sequence[Published]) -> None:
        self._cells: dict[tuple[str, str, str, str], Published | None] = {}
        for cell in cells:
            key = cell.source, cell.split, cell.who, cell.metric
            self._cells[key] = None if key in self._cells else cell
        self.rows = tuple(dict.fromkeys((source, split, who) for source, split, who, _ in self._cells))

    def get(self, source: str, split: str, who: str, metric: str) -> Published | None:
        """Return the cell, or None if it is not printed exactly once."""
        return self._cells.get((source, split, who, metric))

    def values(self, row: tuple[str, str, str], metrics: Sequence[str]) -> tuple[float, ...] | None:
        """Return the values of a row's cells; None if one is missing."""
        cells = [self.get(*row, metric) for metric in metrics]
        return tuple(cell.value for cell in cells if cell is not None) if None not in cells else None


def mean_of(values: Sequence[float], weights: Sequence[float] | None = None) -> float:
    """Return the mean, weighted by `weights` if given."""
    weights = weights or [1.0] * len(values)
    return sum(value * weight for value, weight in zip(values, weights, strict=True)) / sum(weights)


def means(
    grid: Grid,
    tables: Sequence[str],
    target: str,
    parts: Sequence[str],
    weights: Sequence[float] | None = None,
    tolerance: float = ROUNDED,
    derivation: str = "mean of the row's cells",
) -> Iterator[Derived]:
    """Derive the cells of the column `target`: the mean of the columns `parts`, weighted by `weights` if given.

    Yields a value for each row of `tables` that has a cell for the target and for every part. `weights` are numbers of
    questions.
    """
    for row in grid.rows:
        cell = grid.get(*row, target) if row[0] in tables else None
        values = grid.values(row, parts)
        if cell is not None and values is not None:
            yield Derived(cell, mean_of(values, weights), derivation, tolerance)


def blink(cells: Sequence[Published]) -> Iterator[Derived]:
    """Derive macro averages from the 14 cells of their split, and chance from the number of options."""
    # Values recomputed from outputs are not printed cells.
    grid = Grid([cell for cell in cells if "recomputed" not in cell.note])
    tasks = tuple(BLINK_TASKS)
    yield from means(grid, ("Table 1", "Table 4"), "accuracy_macro", tasks, derivation="mean of the row's 14 cells")
    for cell in cells:
        if cell.kind == "chance":
            chances = {task: 100 / len(facts.choices) for task, facts in BLINK_TASKS.items()}
            value = chances.get(cell.metric, mean_of(tuple(chances.values())))
            yield Derived(cell, value, "1 / number of options")
        elif cell.metric == "accuracy_macro" and (cell.source, cell.split) == ("Table 1", "val"):
            values = grid.values(("Table 4", "val", cell.who), tasks)
            if values is not None:
                yield Derived(cell, mean_of(values), "mean of 14 cells of Table 4")


def mvp_bench(cells: Sequence[Published]) -> Iterator[Derived]:
    """Derive accuracies over both levels, and over both kinds of images."""
    grid = Grid(cells)
    for row in DATA["means"]["mvp_bench"]:
        yield from means(grid, **row)


MM_SAP_SIZES = {"BasicVisQA": 400, "KnowVisQA": 350, "BeyondVisQA": 400}
MM_SAP_TABLES = ("Table 1", "Table 3", "Table 7")


def mm_sap(cells: Sequence[Published]) -> Iterator[Derived]:
    """Derive totals over the 1,150 questions, and rates and accuracies of answers and refusals."""
    grid = Grid(cells)
    names = ("score_kk.BasicVisQA", "score_kk.KnowVisQA", "score_ku.KnowVisQA", "score_ku.BeyondVisQA")
    for row in grid.rows:
        if row[0] in MM_SAP_TABLES and (values := grid.values(row, names)) is not None:
            kk = mean_of((*values[:2], 0.0), (400, 350, 400))
            ku = mean_of((0.0, *values[2:]), (400, 350, 400))
            for metric, value in (("score_kk.total", kk), ("score_ku.total", ku), ("score_sa.total", kk + ku)):
                if (cell := grid.get(*row, metric)) is not None:
                    yield Derived(cell, value, "over all 1,150 questions, from the columns of the sets")
        elif row[0] in ("Table 2", "Table 4"):
            first = "Table 1", row[1], row[2]
            yield from _sap_answers(grid, row, first) if row[0] == "Table 2" else _sap_refusals(grid, row, first)


def _sap_answers(grid: Grid, row: tuple[str, str, str], first: tuple[str, str, str]) -> Iterator[Derived]:
    for name in ("BasicVisQA", "KnowVisQA"):
        cell, rate = (grid.get(*row, f"answer_{what}.{name}") for what in ("accuracy", "rate"))
        right = grid.get(*first, f"score_kk.{name}")
        if cell is not None and rate is not None and right is not None:
            # Both parts are rounded to .01, and the accuracy is their quotient.
            yield Derived(cell, 100 * right.value / rate.value, "score_kk of Table 1 / answer rate", 0.02)
    cell, refused = grid.get(*row, "answer_rate.BeyondVisQA"), grid.get(*first, "score_ku.BeyondVisQA")
    if cell is not None and refused is not None:
        yield Derived(cell, 100 - refused.value, "100 - score_ku of Table 1")


# Table 4 of MM-SAP spells one model's name differently.
SAME_NAME = {"Yi-VL-6b": "Yi-VL-6B"}


def _sap_refusals(grid: Grid, row: tuple[str, str, str], first: tuple[str, str, str]) -> Iterator[Derived]:
    who = SAME_NAME.get(row[2], row[2])
    size = MM_SAP_SIZES["KnowVisQA"]
    refusals, rate = grid.get(*row, "refusals.KnowVisQA"), grid.get("Table 2", row[1], who, "answer_rate.KnowVisQA")
    unknown = grid.get(first[0], first[1], who, "score_ku.KnowVisQA")
    expected_values = grid.get(*row, "unknown_knowns_rate")
    if refusals is not None and rate is not None:
        yield Derived(refusals, (100 - rate.value) * size / 100, "(100 - answer rate of Table 2) of 350", 0.07)
    if expected_values is not None and refusals is not None and unknown is not None:
        value = 100 * (1 - unknown.value * size / 100 / refusals.value)
        # This compares a mean of five runs' ratios with a ratio of their means.
        yield Derived(
            expected_values, value, "1 - score_ku of Table 1 / refusals, which averages the five runs first", 1.0
        )


HVS_FIELDS: Mapping[str, Sequence[str]] = DATA["fields"]["hvsbench"]
# Numbers of questions, inferred from the printed multiples of 1 / n; some models have one question fewer in Q5 and Q10.
HVS_SIZES = {name: rows for name, rows in SHARES.items() if name not in ("Q9", "Q12")}
# Tolerance as a fraction: the papers print four decimals.
HVS_ROUNDED = 0.00015


def hvsbench(cells: Sequence[Published]) -> Iterator[Derived]:
    """Derive the accuracy over all 7,574 questions with a right answer, and the fields of Table 3 from Table 11."""
    grid = Grid(cells)
    fields = tuple(HVS_FIELDS)
    sizes = tuple(float(sum(HVS_SIZES[name] for name in names)) for names in HVS_FIELDS.values())
    types = tuple(HVS_SIZES)
    by_fields = "all questions with a right answer, by its five fields"
    yield from means(grid, ("Table 3",), "overall_accuracy", fields, sizes, HVS_ROUNDED, by_fields)
    counts = tuple(map(float, HVS_SIZES.values()))
    by_types = "all questions with a right answer, by its eleven types"
    yield from means(grid, ("Table 11",), "overall_accuracy", types, counts, HVS_ROUNDED, by_types)
    for _, split, who in (row for row in grid.rows if row[0] == "Table 3"):
        for field, names in HVS_FIELDS.items():
            cell, values = grid.get("Table 3", split, who, field), grid.values(("Table 11", split, who), names)
            if len(names) > 1 and cell is not None and values is not None:
                value = mean_of(values, [float(HVS_SIZES[name]) for name in names])
                yield Derived(cell, value, f"{', '.join(names)} of Table 11", HVS_ROUNDED)


MODES: Mapping[str, str] = DATA["modes"]["actiview"]
QUESTIONS = 325


def actiview(cells: Sequence[Published]) -> Iterator[Derived]:
    """Derive averages from printed cells; averages over types and over all questions follow from the categories."""
    grid = Grid(cells)
    pipelines = tuple(f"accuracy.{mode}" for mode in MODES.values())
    yield from means(grid, ("Table 2", "Table 7"), "model_avg", pipelines, derivation="zoom and the four shifts")
    for row in grid.rows:
        if row[0] in MODES:
            yield from _view_counts(grid, row)
    # Table 14 prints three cells per row, under one name for several numbers of parts.
    rows = [cell for cell in cells if cell.source == "Table 14"]
    for zoom, shift, pair in zip(rows[::3], rows[1::3], rows[2::3], strict=True):
        yield Derived(pair, mean_of((zoom.value, shift.value)), "mean of the row's two cells")


def _view_counts(grid: Grid, row: tuple[str, str, str]) -> Iterator[Derived]:
    total = 0
    for kind, tasks in DATA["fields"]["actiview"].items():
        cells = [grid.get(*row, f"accuracy.{task}") for task in tasks]
        right = sum(round(cell.value * int(cell.n) / 100) for cell in cells if cell is not None)
        count = sum(int(cell.n) for cell in cells if cell is not None)
        total += right
        cell = grid.get(*row, f"accuracy.type_{kind}")
        if cell is not None:
            yield Derived(cell, 100 * right / count, f"{right} right of {count}")
    for table in ("Table 2", "Table 7"):
        cell = grid.get(table, row[1], row[2], f"accuracy.{MODES[row[0]]}")
        if cell is not None:
            yield Derived(cell, 100 * total / QUESTIONS, f"{total} right of {QUESTIONS}, by the categories of {row[0]}")
