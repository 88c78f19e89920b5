"""The sentences of a conclusion that answer a reviewer: what is equal, used, possible, and at what price.

    for case, text in review_sentences(ConclusionRows(comparison), group):
        case, text      # "equal.shown", "Equal within 5 points: with tools and alone (+0 points, 90% CI -2 to +2)."

Each reads the rows of one section and is left out where that section decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hybrid.display.terminal import how_many
from hybrid.scoring.conclusion_cases import worded
from hybrid.scoring.conclusion_rows import (
    CI,
    NO_CLAIM,
    ConclusionRows,
    ends_of,
    number,
    shown,
    signed,
    size_of,
    unit_of,
)
from hybrid.scoring.groups import ComparisonGroup
from hybrid.scoring.result import Result
from hybrid.scoring.score import Scored
from hybrid.scoring.sections.called import DIFFERENCE, WHERE_CALLED, WHERE_NOT
from hybrid.scoring.sections.equivalence import HANGS, is_equal
from hybrid.scoring.sections.headroom import LEAST, ROOM
from hybrid.scoring.sections.pooled import I2, TAU
from hybrid.scoring.sections.price import MAJORITY, RATES, SAMPLES, TOO_FEW
from hybrid.scoring.sections.selection import CALLED, NOT_CALLED, SELECTION, WHERE_RIGHT, WHERE_WRONG
from hybrid.scoring.sections.used import ADOPTED, PERFECT, changes_nothing
from hybrid.scoring.tool_effects import GAIN, OFFERING, OUTPUT

# A sentence: its case in `conclusion_cases.toml`, and its text.
Said = tuple[str, str]
# Outputs are called ignored where the model uses fewer than this share of those that it needs.
IGNORED = 0.5
# Of fewer outputs that were needed nothing is said.
LEAST_NEEDED = 10
# Below this share of questions with a call their own effect is said beside that over all questions.
SELDOM = 0.5
# What is equal, by quantity of the section.
EQUAL_PAIRS = {
    GAIN: "with tools and alone",
    OFFERING: "with blank tools and alone",
    OUTPUT: "with tools and with blank tools",
}


def review_sentences(rows: ConclusionRows, group: ComparisonGroup) -> Iterator[Said]:
    """The sentences about one solver with tools, in the order printed."""
    yield from _room(rows, group)
    yield from _equal(rows, group)
    yield from _used(rows, group)
    yield from _calls(rows, group)
    yield from _price(rows, group)


def pooled_sentences(rows: ConclusionRows) -> Iterator[Said]:
    """The gain over all models, the first sentence where there are several."""
    row = next((row for row in rows.of("pooled") if row.quantity == GAIN), None)
    if row is None or row.low is None:
        return
    more = {each.quantity: each.value or 0.0 for each in rows.of("pooled")}
    tau, i2 = more[f"{GAIN}: {TAU}"], more[f"{GAIN}: {I2}"]
    state = shown(row) if row.holds else "open"
    case = "rule" if HANGS in row.note else state
    spread = f"tau {number(tau, row.unit)}{unit_of(row)}, I2 {100 * i2:.0f}%"
    size = size_of(row) if case in ("more", "less") else signed(row)
    yield _said(f"pooled.{case}", n=row.n, size=size, ends=f"{CI} {ends_of(row, cost=case == 'less')}", spread=spread)


def rows_about(rows: ConclusionRows, section: str, hybrid: Scored) -> dict[str, Result]:
    """The rows of a section about one solver with tools, over all questions, by quantity."""
    return {row.quantity: row for row in rows.of(section) if row.b == hybrid.solver and not row.group}


def _equal(rows: ConclusionRows, group: ComparisonGroup) -> Iterator[Said]:
    """What is equal within the margin, unless its parts or the rule for unanswered questions tell another story."""
    sides = {
        GAIN: (group.alone, group.hybrid),
        OFFERING: (group.alone, group.blank),
        OUTPUT: (group.blank, group.hybrid),
    }
    tested = {(row.quantity, row.a, row.b): row for row in rows.of("equivalence")}
    parts = []
    for quantity, (a, b) in sides.items():
        if a is None or b is None:
            continue
        row = tested.get((quantity, a.solver, b.solver))
        if row is not None and is_equal(row) and rows.pair(a, b).claim not in NO_CLAIM:
            parts.append(f"{EQUAL_PAIRS[quantity]} ({signed(row)}, 90% CI {ends_of(row)})")
    if parts:
        yield _said("equal.shown", margin=f"{100 * rows.found.options.margin:g}", parts="; ".join(parts))


def _room(rows: ConclusionRows, group: ComparisonGroup) -> Iterator[Said]:
    """That no gain could show, as the model alone leaves less to gain than these questions can show."""
    of = rows_about(rows, "headroom", group.hybrid)
    room, least = of.get(ROOM), of.get(f"{LEAST}{GAIN}")
    if group.alone is None or room is None or room.value is None or room.low is None:
        return
    pair = rows.pair(group.alone, group.hybrid)
    if abs(room.value) < 1e-9:
        yield _said("room.none", n=how_many(pair.n))
    elif least is not None and least.value is not None and room.value < least.value and pair.state == "open":
        yield _said("room.small", room=size_of(room), least=size_of(least))


def _calls(rows: ConclusionRows, group: ComparisonGroup) -> Iterator[Said]:
    """That the model calls tools where they are weaker, or stronger, than elsewhere."""
    of = rows_about(rows, "called", group.hybrid)
    difference = of.get(DIFFERENCE)
    if difference is None or not difference.holds or not difference.excludes_zero:
        return
    shares = {
        name: f"{100 * (of[key].value or 0.0):.0f}%"
        for name, key in (("called", WHERE_CALLED), ("elsewhere", WHERE_NOT))
    }
    case = "weak" if (difference.high or 0.0) < 0 else "strong"
    yield _said(f"calls.{case}", size=signed(difference), ends=f"{CI} {ends_of(difference)}", **shares)


def _price(rows: ConclusionRows, group: ComparisonGroup) -> Iterator[Said]:
    """What tools bring beyond samples of the model alone at the same price, or without samples what a gain costs."""
    of = rows_about(rows, "price", group.hybrid)
    over = of.get(MAJORITY)
    if over is not None and over.low is not None and TOO_FEW not in over.note:
        state = shown(over) if over.holds else "open"
        size = signed(over) if state == "open" else size_of(over)
        ends = f"{CI} {ends_of(over, cost=state == 'less')}"
        yield _said(f"price.{state}", samples=f"{of[SAMPLES].value:.0f}", size=size, ends=ends)
        return
    rate = next((row for name in RATES if (row := of.get(name)) is not None and row.excludes_zero), None)
    gained = group.alone is not None and rows.pair(group.alone, group.hybrid).claim == "more"
    if rate is not None and gained and (rate.low or 0.0) > 0:
        value, low, high = (_rounded(end or 0.0) for end in (rate.value, rate.low, rate.high))
        yield _said("price.rate", rate=f"{value} {rate.quantity}", ends=f"{CI} {low} to {high}")


def _rounded(value: float) -> str:
    """Two digits, or a whole number from 10 on."""
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.2g}"


def _used(rows: ConclusionRows, group: ComparisonGroup) -> Iterator[Said]:
    """What keeps tools from helping: output that is ignored, or calls where none is needed."""
    used, calls = (rows_about(rows, section, group.hybrid) for section in ("used", "selection"))
    parts = []
    if (perfect := used.get(PERFECT)) is not None and changes_nothing(perfect):
        parts.append(worded("used.perfect", size=signed(perfect), ends=f"90% CI {ends_of(perfect)}"))
    adopted = used.get(ADOPTED)
    many = adopted is not None and (adopted.n or 0) >= LEAST_NEEDED
    if adopted is not None and many and adopted.high is not None and adopted.high < IGNORED:
        parts.append(worded("used.ignored", n=adopted.n, count=len(adopted.ids), ends=_percent(adopted)))
    selection = calls.get(SELECTION)
    if selection is not None and selection.holds and (selection.high or 0.0) < 0:
        shares = (f"{100 * (calls[name].value or 0.0):.0f}%" for name in (WHERE_WRONG, WHERE_RIGHT))
        fields = dict(zip(("wrong", "right"), shares, strict=True))
        parts.append(worded("used.misplaced", size=signed(selection), ends=f"{CI} {ends_of(selection)}", **fields))
    if parts:
        text = "; ".join(parts)
        yield _said("used.shown", parts=f"{text[0].upper()}{text[1:]}")
    called = calls.get(CALLED)
    if called is not None and called.holds and called.low is not None and (called.n or 0) < SELDOM * _asked(calls):
        case = "more" if called.low > 0 else "less"
        ends = f"{CI} {ends_of(called, cost=case == 'less')}"
        yield _said(f"selection.{case}", n=called.n, size=size_of(called), ends=ends)


def _asked(calls: Mapping[str, Result]) -> int:
    """How many questions there are with a call and without."""
    return sum(row.n or 0 for name in (CALLED, NOT_CALLED) if (row := calls.get(name)) is not None)


def _percent(row: Result) -> str:
    """The interval of a share in percent: `95% CI 0 to 5%`."""
    return f"{CI} {100 * (row.low or 0.0):.0f} to {100 * (row.high or 0.0):.0f}%"


def _said(case: str, **fields: object) -> Said:
    return case, worded(case, **fields)
