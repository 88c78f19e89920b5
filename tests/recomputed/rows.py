"""Rows of the result table as the recomputation expects them, compared with those of `hybrid compare --json`."""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

import pytest

from tests.recomputed.runs import Cell, JsonObject, Runs, failed
from tests.recomputed.sums import contrast, holm, interval, value

UNTESTED = {
    "failed": "not tested: more than 1 % of the questions failed (--allow-failed tests all the same)",
    "unanswered": "not tested: one of the solvers answered nothing",
}
# How the cells of a metric are combined, and the cells.
Side = tuple[str, Sequence[Cell]]
Rows = Sequence[tuple[JsonObject, ...]]


def result(section: str, quantity: str, unit: str, number: float | None, **fields: Any) -> JsonObject:
    """Return a row as JSON has it: without empty fields, but with every 0."""
    by_field = {name: field for name, field in fields.items() if field not in (None, "", [], ()) and field is not False}
    return {"section": section, "quantity": quantity, "unit": unit, "value": number, **by_field}


def measured(row: JsonObject, side: Side) -> JsonObject:
    """Return the row with the metric's value, number of questions and interval added."""
    mode, cells = side
    low, high = interval(mode, cells)
    return {**row, "value": value(mode, cells), "n": len(cells), "low": low, "high": high}


def compared(row: JsonObject, a: Side, b: Side, untested: str | None) -> JsonObject:
    """Return the row with the difference b minus a, its n, and if tested its interval and p value."""
    estimate = contrast(a[0], a[1], b[1])
    row = {**row, "value": estimate["difference"], "n": len(a[1])}
    if untested:
        return {**row, "note": "; ".join(filter(None, (row.get("note"), UNTESTED[untested])))}
    low, high = estimate["interval"]
    return {**row, "low": low, "high": high, "p": estimate["p"]}


def withheld(full: Rows, part: Rows, places: Collection[int] | None = None) -> str | None:
    """Return why nothing is tested. In these runs every solver has every question, so a failed row is a missing one.

    `places` are the positions in a row of the solvers that are compared (None: all): whether another one answers
    nothing is no reason.
    """
    if any(sum(failed(row[0]) for row in rows) > 0.01 * len(rows) for rows in (full, part)):
        return "failed"
    values = [row for row in part if not failed(row[0])]
    by_solver = [item for place, item in enumerate(zip(*values, strict=True)) if places is None or place in places]
    silent = any(all(score["answer"] is None for score in item) for item in by_solver)
    return "unanswered" if silent else None


def gated(row: JsonObject, untested: str | None) -> JsonObject:
    """Return the row without its interval if nothing is tested."""
    if untested is None or "low" not in row:
        return row
    note = "; ".join(filter(None, (row.get("note"), UNTESTED[untested])))
    return {**{name: item for name, item in row.items() if name not in ("low", "high")}, "note": note}


def with_holm(rows: Iterable[JsonObject], family: Callable[[JsonObject], tuple[str, Hashable]]) -> list[JsonObject]:
    """Return rows with p values adjusted within each family; `family` returns its name and whatever else distinguishes
    it.
    """
    ready = list(rows)
    for name in {family(row) for row in ready}:
        members = [row for row in ready if family(row) == name and "p" in row]
        for row, adjusted in zip(members, holm([row["p"] for row in members]), strict=True):
            row |= {"p_holm": adjusted, "family": name[0]}
    return ready


KEYS = ("quantity", "a", "b", "metric", "group", "none")


def same_rows(runs: Runs, objects: Iterable[JsonObject], expected: Iterable[JsonObject]) -> None:
    """Assert that every row occurs once, with the same fields and no others. Each side of a row has its model and
    run."""
    output, requested = _keyed(objects), _keyed(map(_sided(runs), expected))
    assert set(output) == set(requested)
    for place, row in requested.items():
        assert set(output[place]) == set(row), place
        for name, item in row.items():
            assert _sorted(output[place][name]) == _near(_sorted(item)), (*place, name)


def _keyed(rows: Iterable[JsonObject]) -> Mapping[tuple[str, ...], JsonObject]:
    rows = list(rows)
    by_items = {tuple(row.get(key, "") for key in KEYS): row for row in rows}
    assert len(by_items) == len(rows)
    return by_items


def _sided(runs: Runs) -> Callable[[JsonObject], JsonObject]:
    def with_sides(row: JsonObject) -> JsonObject:
        sides = {}
        for side in "ab":
            if (solver := row.get(side)) in runs.folders:
                sides |= {f"model_{side}": runs.model(solver), f"run_{side}": runs.folders[solver].parent.as_posix()}
        return {**row, **sides}

    return with_sides


def _sorted(field: Any) -> Any:
    return sorted(field) if isinstance(field, list | tuple) else field


def _near(field: Any) -> Any:
    return pytest.approx(field, rel=1e-7, abs=1e-9) if isinstance(field, float) else field
