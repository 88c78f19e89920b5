"""The tables of a study, within 80 columns: gain, effects, and results on tools, calls and specialists.

    for table in study_tables(sections):
        print(as_text(table))

They show the result table over all questions; the sections have every number, by task and by tool.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from hybrid.display.tables import NONE, Column, Table, accuracy, p_value, signed
from hybrid.display.terminal import how_many
from hybrid.scoring.rendering import note_of, printed
from hybrid.scoring.result import Result, Section, SectionResult
from hybrid.scoring.sections import (
    called,
    decomposition,
    effects,
    equivalence,
    gain,
    headroom,
    knowledge,
    places,
    pooled,
    price,
    selection,
    tool_only,
    unchanged,
    used,
)

PART_COLUMNS = (
    Column("part", "left"),
    *map(Column, ("value", "95 %", "questions", "of these called", "of these changed")),
)
# Names of the effects by quantity, in the order of a study.
WORDS = {
    gain.PRESENCE: "presence: blank tools - alone",
    gain.CONTENT: "content: with tools - blank tools",
    effects.RESULT: "result: result only - alone",
    effects.LOOP: "loop: with tools - result only",
    gain.SHUFFLED: "other questions' findings - blank tools",
    effects.ORACLE: "oracle - with tools",
    effects.WORDS: "the same data in other words - with tools",
    effects.TEXT: "findings as text - both",
    effects.PICTURES: "findings as pictures - both",
    effects.TRAINED: "tools as trained - in our form",
    effects.LATEST: "the latest picture alone - all kept",
}


def study_tables(sections: Iterable[SectionResult]) -> tuple[Table, ...]:
    """Return the tables for which these sections have rows."""
    rows = {section.name: [row for row in section.rows if not row.group] for section in sections}
    by_solver = defaultdict[str, list[Result]](list)
    for row in rows.get(decomposition.NAME, ()):
        # Rows with a metric cover a single set of tools; keep the rows over all tools.
        if not row.metric:
            by_solver[row.b].append(row)
    return (
        *_count_table("over all models", pooled.SECTION, rows.get(pooled.NAME, ())),
        *map(decomposition_table, by_solver.values()),
        *_effects([*rows.get(gain.NAME, ()), *rows.get(effects.NAME, ())]),
        *_equal(rows.get(equivalence.NAME, ())),
        *_count_table("only with tools, only without", tool_only.SECTION, rows.get(tool_only.NAME, ())),
        *_count_table("calls that changed nothing", unchanged.SECTION, rows.get(unchanged.NAME, ())),
        *_count_table("room, and what can be detected", headroom.SECTION, rows.get(headroom.NAME, ())),
        *_count_table("calls by need", selection.SECTION, rows.get(selection.NAME, ())),
        *_count_table("tool output where it is needed", used.SECTION, rows.get(used.NAME, ())),
        *_count_table("the specialists where tools are called", called.SECTION, rows.get(called.NAME, ())),
        *_count_table("where tool calls look", places.SECTION, rows.get(places.NAME, ())),
        *_count_table("the price of a gain", price.SECTION, rows.get(price.NAME, ())),
        *_count_table("what one part alone knows", knowledge.SECTION, rows.get(knowledge.NAME, ())),
    )


def decomposition_table(rows: Sequence[Result]) -> Table:
    """Return a line per part of one solver's gain: value and interval, then its three factors."""
    numbers = {row.quantity: row.value for row in rows}
    factors = {term.part: term.factors for term in decomposition.TERMS}
    lines = []
    for row in rows:
        if not row.detail:
            value = signed(row.value) if row.quantity == decomposition.GAIN else accuracy(row.value)
            factor_cells = [accuracy(numbers.get(name)) for name in factors.get(row.quantity, ())]
            lines.append((row.quantity, value, _ends(row), *(factor_cells or ["-"] * 3)))
    first = rows[0]
    silent = any(row.quantity in decomposition.ANSWERING for row in rows)
    equation = decomposition.WITH_ANSWERING if silent else decomposition.EQUATION
    unsplit = "gain = gains - harms" + " + gain by answering - harm by no answer" * silent
    # Without calls there are only gains and harms, which have no shares.
    is_split = any(row.quantity in factors for row in rows)
    notes = [f"{equation}; a part is the product of its three shares" if is_split else unsplit]
    title = f"gain of {first.b} over {first.a}, {how_many(first.n or 0)}"
    return Table(title, PART_COLUMNS, tuple(lines), (*notes, *filter(None, [first.note])))


def _effects(rows: Sequence[Result]) -> Iterator[Table]:
    """Yield a table with a line per effect."""
    selected = [row for row in rows if row.quantity in WORDS]
    selected.sort(key=lambda row: [*WORDS].index(row.quantity))
    if selected:
        names = ("n", "difference", "95 %", "p", "p (Holm in family)")
        columns = (Column("effect", "left"), *map(Column, names), Column("family", "left"))
        lines = [
            (
                *(WORDS[row.quantity], str(row.n), signed(row.value), _ends(row, "+.3f")),
                *(p_value(row.p), p_value(row.p_holm), row.family or NONE),
            )
            for row in selected
        ]
        yield Table(
            f"effects on {selected[0].metric}",
            columns,
            tuple(lines),
            tuple(dict.fromkeys(filter(None, map(note_of, selected)))),
        )


def _equal(rows: Sequence[Result]) -> Iterator[Table]:
    """Yield a line per effect: its 90 % interval, and whether it is equal within the margin."""
    if rows:
        names = ("n", "difference", "90 %", "p", "p (Holm, claim)")
        columns = (Column("effect", "left"), *map(Column, names), Column("verdict", "left"))
        lines = [
            (
                *(row.quantity, str(row.n), signed(row.value), _ends(row, "+.3f")),
                *(p_value(row.p), p_value(row.p_holm), equivalence.verdict_of(row)),
            )
            for row in rows
        ]
        notes = tuple(f"no claim for {row.quantity}: {row.no_claim}" for row in rows if row.no_claim)
        yield Table("equal within the margin?", columns, tuple(lines), notes)


def _count_table(title: str, section: Section, rows: Iterable[Result]) -> Iterator[Table]:
    """Yield a table with a line per quantity: value, interval, and number of questions."""
    selected = [row for row in rows if not row.detail]
    if selected:
        levels = sorted({row.level for row in selected if row.low is not None})
        interval = " or ".join(f"{100 * level:.0f} %" for level in levels) or "95 %"
        columns = (Column("quantity", "left"), Column("value"), Column(interval), Column("of"))
        lines = [(row.quantity, printed(section, row), _ends(row), str(row.n)) for row in selected]
        yield Table(title, columns, tuple(lines), tuple(dict.fromkeys(filter(None, map(note_of, selected)))))


def _ends(row: Result, form: str = ".3f") -> str:
    return "-" if row.low is None or row.high is None else f"[{row.low:{form}}, {row.high:{form}}]"
