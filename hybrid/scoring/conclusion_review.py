"""The sentences of a conclusion that answer a reviewer's questions: equality, use of outputs, possible gain, price.

    for case, text in review_sentences(ConclusionRows(comparison), group):
        case, text      # "equal.shown", "Equal within 5 points: with tools and alone (+0 points, 90% CI -2 to +2)."

Each sentence reads the rows of one section, and is omitted if that section decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hybrid.core.errors import DataError
from hybrid.display.terminal import how_many
from hybrid.scoring.attempt_facts import unchanged_outputs
from hybrid.scoring.conclusion_cases import DECLARED, case
from hybrid.scoring.conclusion_rows import ConclusionRows
from hybrid.scoring.conclusion_words import CI, ends_of, number, signed, size_of, unit_of
from hybrid.scoring.groups import ComparisonGroup
from hybrid.scoring.headline_pair import NO_CLAIM, shown
from hybrid.scoring.parts import GAIN, OFFERING, OUTPUT
from hybrid.scoring.result import Result
from hybrid.scoring.score import Scored
from hybrid.scoring.sections import places
from hybrid.scoring.sections.called import DIFFERENCE, WHERE_CALLED, WHERE_NOT
from hybrid.scoring.sections.effects import WORDS
from hybrid.scoring.sections.equivalence import is_equal
from hybrid.scoring.sections.headroom import LEAST, ROOM
from hybrid.scoring.sections.places import ABOVE, AT_PLACE, BY_CHANCE
from hybrid.scoring.sections.pooled import I2, TAU
from hybrid.scoring.sections.price import MAJORITY, RATES, SAMPLES, TOO_FEW
from hybrid.scoring.sections.selection import CALLED, NOT_CALLED, SELECTION, WHERE_RIGHT, WHERE_WRONG
from hybrid.scoring.sections.used import ADOPTED, PERFECT, changes_nothing

# A sentence: the id of its case, and its text.
Said = tuple[str, str]
# A conclusion says that tool output is ignored if the model uses less than this share of the outputs that it needs.
IGNORED = 0.5
# With fewer models than this, their spread is hardly known: with two, the interval extends 13 standard errors each way.
LEAST_MODELS = 3
# With fewer needed outputs than this, the sentence on their use is omitted.
LEAST_NEEDED = 10
# If fewer questions than this share have a call, the effect on those questions is stated as well.
SELDOM = 0.5
# Names of the two compared sides, by quantity of the section `equivalence`.
EQUAL_PAIRS = {
    GAIN: "with tools and alone",
    OFFERING: "with blank tools and alone",
    OUTPUT: "with tools and with blank tools",
}

# The cases, grouped by sentence; the functions below choose among them.
case(
    "equal.shown",
    (
        "the 90 % interval of a difference is inside the margin, after adjustment (Holm) and by either "
        "rule for unanswered questions"
    ),
    "Equal within {margin} points: {parts}.",
)
case(
    "used.shown",
    "one of the next three holds",
    "{parts}.",
)
case(
    "used.perfect",
    (
        "part of used.shown: with oracle output the score is that with blank tools (or alone) within the "
        "margin, after adjustment (Holm)"
    ),
    "even perfect tool output changes nothing ({size}, {ends})",
)
case(
    "used.ignored",
    (
        "part of used.shown: of 10 or more right outputs where the model is wrong alone fewer than half "
        "are used (95 % interval)"
    ),
    "of {n} right tool outputs that the model needed, it used {count} ({ends})",
)
case(
    "used.misplaced",
    ("part of used.shown: the model calls tools less often where it is wrong alone, after adjustment (Holm)"),
    ("it calls tools on {wrong} of what it gets wrong alone and on {right} of what it gets right ({size}, {ends})"),
)
case(
    "selection.more",
    ("a tool was called on fewer than half of the questions, and there output adds, after adjustment (Holm)"),
    "On the {n} questions with a call, tool output adds {size} ({ends}).",
)
case(
    "selection.less",
    ("a tool was called on fewer than half of the questions, and there output costs, after adjustment (Holm)"),
    "On the {n} questions with a call, tool output costs {size} ({ends}).",
)
case(
    "room.none",
    "the model alone is right on every question",
    "The model alone is right on all of {n}: no gain is possible.",
)
case(
    "room.small",
    "no significant gain, and the model alone leaves less to gain than this run can detect",
    (
        "The model alone leaves {room} to gain, and this run can detect {least} (80% power): a gain is unlikely to be "
        "detected."
    ),
)
case(
    "calls.weak",
    ("where the model calls a tool the specialists are right less often than elsewhere, after adjustment (Holm)"),
    (
        "It calls tools where they are weak: the specialists are right on {called} of the questions with "
        "a call and on {elsewhere} of the others ({size}, {ends})."
    ),
)
case(
    "calls.strong",
    ("where the model calls a tool the specialists are right more often than elsewhere, after adjustment (Holm)"),
    (
        "It calls tools where they are strong: the specialists are right on {called} of the questions "
        "with a call and on {elsewhere} of the others ({size}, {ends})."
    ),
)
case(
    "words.open",
    "a run with paraphrased tool output; no difference holds after adjustment (Holm)",
    "The same data in other words: {size} ({ends}), no significant difference{unchanged}.",
)
case(
    "words.matter",
    "a run with paraphrased tool output; the difference holds after adjustment (Holm)",
    "The wording of tool output matters: the same data in other words change the score by {size} ({ends}){unchanged}.",
)
case(
    "words.unclaimed",
    (
        "a run with paraphrased tool output, whose difference supports no claim, for one of the reasons `rule`, "
        "`uneven`, `answering`, `others` and `split`"
    ),
    "No claim for {difference}{unchanged}.",
)
case(
    "words.none",
    "a run with paraphrased tool output that changed no output",
    "The second wording changed none of {n} tool outputs: this run says nothing about their wording.",
)
case(
    "words.unchanged",
    "a run with paraphrased tool output, of which some kept their words; a part of the sentence about words",
    "; {unchanged} of {n} tool outputs kept their words",
)
case(
    "places.found",
    "on annotated questions calls cover the place more often than calls about other pictures would, adjusted (Holm)",
    "{share} of its {n} tool calls with a region look at the annotated place, and {chance} would by chance{right}.",
)
case(
    "places.missed",
    "on annotated questions calls are not shown to cover the place more often than calls about other pictures would",
    (
        "Its tool calls do not look at the annotated place significantly more often than by chance ({share} against "
        "{chance}, {size}, {ends}){right}."
    ),
)
case(
    "places.right",
    "part of the sentences above: accuracy differs between questions at the place and others, adjusted (Holm)",
    "; it is right on {there} of the questions where they cover it and on {elsewhere} of the others ({size}, {ends})",
)
case(
    "pooled.more",
    "several models: the random-effects mean of their gains is above 0, after adjustment (Holm)",
    "Over {n} models, tools add {size} ({ends}; between models {spread}).",
)
case(
    "pooled.less",
    "several models: the random-effects mean of their gains is below 0, after adjustment (Holm)",
    "Over {n} models, tools cost {size} ({ends}; between models {spread}).",
)
case(
    "pooled.open",
    "several models: the interval of the random-effects mean holds 0",
    "Over {n} models, tools have no significant effect ({size}, {ends}; between models {spread}).",
)
case(
    "pooled.few",
    "two models, and the interval of the random-effects mean, of one degree of freedom, holds 0",
    (
        "Over {n} models, tools change the score by {size} (random-effects mean); two are too few for an interval"
        " over models."
    ),
)
case(
    "pooled.unclaimed",
    (
        "several models: their mean supports no claim, for one of the reasons `rule`, `uneven`, `answering`, `others` "
        "and `split`, which are those of one model's difference"
    ),
    "Over {n} models, tools change the score by {size} ({ends}; between models {spread}), {why}.",
)
case(
    "price.more",
    (
        "the model alone was asked as often as tools cost, and the majority of its answers is right less "
        "often, after adjustment (Holm)"
    ),
    (
        "At the same price, the majority of {samples} samples of the model alone falls short of tools by "
        "{size} ({ends})."
    ),
)
case(
    "price.less",
    (
        "the model alone was asked as often as tools cost, and the majority of its answers is right more "
        "often, after adjustment (Holm)"
    ),
    ("At the same price, the majority of {samples} samples of the model alone is ahead of tools by {size} ({ends})."),
)
case(
    "price.open",
    ("the model alone was asked as often as tools cost, and no difference to the majority of its answers holds"),
    (
        "At the same price, tools are not significantly different from the majority of {samples} samples "
        "of the model alone ({size}, {ends})."
    ),
)
case(
    "price.rate",
    "a gain, and what tools cost more is known; no samples at the same price",
    "The gain comes to {rate} ({ends}).",
)


def review_sentences(rows: ConclusionRows, group: ComparisonGroup) -> Iterator[Said]:
    """Yield the sentences about one solver with tools, in the order printed."""
    yield from _room(rows, group)
    yield from _equal(rows, group)
    yield from _used(rows, group)
    yield from _where_called(rows, group)
    yield from _words_of_tools(rows, group)
    yield from _calls(rows, group)
    yield from _looks(rows, group)
    yield from _price(rows, group)


def pooled_sentences(rows: ConclusionRows) -> Iterator[Said]:
    """Yield the gain over all models, which is the first sentence if there are several."""
    row = next((row for row in rows.of("pooled") if row.quantity == GAIN), None)
    if row is None or row.low is None:
        return
    more = {each.quantity: each.value or 0.0 for each in rows.of("pooled")}
    tau, i2 = more[f"{GAIN}: {TAU}"], more[f"{GAIN}: {I2}"]
    state = shown(row) if row.holds else "open"
    which = "unclaimed" if row.no_claim else state
    if which == "open" and (row.n or 0) < LEAST_MODELS:
        yield _said("pooled.few", n=row.n, size=signed(row))
        return
    spread = f"tau {number(tau, row.unit)}{unit_of(row)}, I2 {100 * i2:.0f}%"
    size = size_of(row) if which in ("more", "less") else signed(row)
    fields = {"n": row.n, "size": size, "ends": f"{CI} {ends_of(row, cost=which == 'less')}", "spread": spread}
    yield _said(f"pooled.{which}", **fields, **({"why": row.no_claim} if row.no_claim else {}))


def rows_about(rows: ConclusionRows, section: str, hybrid: Scored) -> dict[str, Result]:
    """Return the rows of a section about one solver with tools, over all questions, by quantity."""
    return {row.quantity: row for row in rows.of(section) if row.b == hybrid.solver and not row.group}


def _equal(rows: ConclusionRows, group: ComparisonGroup) -> Iterator[Said]:
    """Yield the pairs that are equal within the margin, if their difference supports a claim (not in `NO_CLAIM`)."""
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
        if row is not None and is_equal(row) and rows.tested_pair(a, b).claim not in NO_CLAIM:
            parts.append(f"{EQUAL_PAIRS[quantity]} ({signed(row)}, 90% CI {ends_of(row)})")
    if parts:
        yield _said("equal.shown", margin=f"{100 * rows.found.options.margin:g}", parts="; ".join(parts))


def _room(rows: ConclusionRows, group: ComparisonGroup) -> Iterator[Said]:
    """Say that no gain is detectable, because the model alone can improve by less than these questions can detect."""
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
    """Say that the specialists are right less often, or more often, on questions where the model calls a tool."""
    of = rows_about(rows, "called", group.hybrid)
    difference = of.get(DIFFERENCE)
    if difference is None or not difference.holds or not difference.excludes_zero:
        return
    shares = {
        name: f"{100 * (of[key].value or 0.0):.0f}%"
        for name, key in (("called", WHERE_CALLED), ("elsewhere", WHERE_NOT))
    }
    which = "weak" if (difference.high or 0.0) < 0 else "strong"
    yield _said(f"calls.{which}", size=signed(difference), ends=f"{CI} {ends_of(difference)}", **shares)


def _looks(rows: ConclusionRows, group: ComparisonGroup) -> Iterator[Said]:
    """Yield how often calls look at the annotated place, compared with chance, and the accuracy where they do."""
    of = rows_about(rows, "places", group.hybrid)
    above, difference = of.get(ABOVE), of.get(places.DIFFERENCE)
    if above is None or above.low is None:
        return
    share, chance = (_share(of[name]) for name in (AT_PLACE, BY_CHANCE))
    right = ""
    if difference is not None and difference.holds and difference.excludes_zero:
        there, elsewhere = _share(of[places.RIGHT_AT]), _share(of[places.RIGHT_ELSEWHERE])
        ends = f"{CI} {ends_of(difference)}"
        right = _words("places.right", there=there, elsewhere=elsewhere, size=signed(difference), ends=ends)
    if above.holds and above.low > 0:
        yield _said("places.found", share=share, chance=chance, n=f"{of[places.CALLS].value or 0:.0f}", right=right)
    else:
        ends = f"{CI} {ends_of(above)}"
        yield _said("places.missed", share=share, chance=chance, size=signed(above), ends=ends, right=right)


def _words_of_tools(rows: ConclusionRows, group: ComparisonGroup) -> Iterator[Said]:
    """Yield the effect of the second wording of tool output."""
    if (other := group.paraphrased) is None:
        return
    about = (WORDS, group.hybrid.solver, other.solver, "")
    found = (row for row in rows.of("effects") if (row.quantity, row.a, row.b, row.group) == about)
    row = next(found, None)
    if row is None or row.low is None:
        return
    unchanged, n = _unchanged_outputs(other)
    if n and unchanged == n:
        yield _said("words.none", n=n)
        return
    kept = _words("words.unchanged", unchanged=unchanged, n=n) if unchanged else ""
    pair = rows.tested_pair(group.hybrid, other)
    if pair.claim in NO_CLAIM:
        yield _said("words.unclaimed", difference=pair.without_claim("the same data in other words"), unchanged=kept)
        return
    which = "matter" if row.holds and row.excludes_zero else "open"
    yield _said(f"words.{which}", size=signed(row), ends=f"{CI} {ends_of(row)}", unchanged=kept)


def _unchanged_outputs(scored: Scored) -> tuple[int, int]:
    """Return how many outputs kept their wording, and how many there are; (0, 0) if unknown."""
    try:
        return (0, 0) if scored.folder is None else unchanged_outputs(scored.folder, scored.recorded)
    except DataError:
        return 0, 0


def _share(row: Result) -> str:
    return f"{100 * (row.value or 0.0):.0f}%"


def _price(rows: ConclusionRows, group: ComparisonGroup) -> Iterator[Said]:
    """Yield the gain over samples of the model alone that cost as much; without samples, the price of the gain."""
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
    """Format a number with two significant digits, or as a whole number if its size is 10 or more."""
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.2g}"


def _used(rows: ConclusionRows, group: ComparisonGroup) -> Iterator[Said]:
    """Yield why tools help little: perfect output has no effect, output is ignored, or calls are misplaced.

    Calls are misplaced if the model calls tools less often on questions that it gets wrong alone than on questions that
    it gets right alone.
    """
    used, calls = (rows_about(rows, section, group.hybrid) for section in ("used", "selection"))
    parts = []
    if (perfect := used.get(PERFECT)) is not None and changes_nothing(perfect):
        parts.append(_words("used.perfect", size=signed(perfect), ends=f"90% CI {ends_of(perfect)}"))
    adopted = used.get(ADOPTED)
    if adopted is not None and (adopted.n or 0) >= LEAST_NEEDED and adopted.high is not None and adopted.high < IGNORED:
        parts.append(_words("used.ignored", n=adopted.n, count=len(adopted.ids), ends=_percent(adopted)))
    selection = calls.get(SELECTION)
    if selection is not None and selection.holds and (selection.high or 0.0) < 0:
        shares = (f"{100 * (calls[name].value or 0.0):.0f}%" for name in (WHERE_WRONG, WHERE_RIGHT))
        fields = dict(zip(("wrong", "right"), shares, strict=True))
        parts.append(_words("used.misplaced", size=signed(selection), ends=f"{CI} {ends_of(selection)}", **fields))
    if parts:
        text = "; ".join(parts)
        yield _said("used.shown", parts=f"{text[0].upper()}{text[1:]}")


def _where_called(rows: ConclusionRows, group: ComparisonGroup) -> Iterator[Said]:
    """Yield the effect of tool output on the questions with a call, if these are fewer than half."""
    calls = rows_about(rows, "selection", group.hybrid)
    called = calls.get(CALLED)
    if called is None or not called.holds or not called.excludes_zero:
        return
    if (called.n or 0) < SELDOM * _asked(calls):
        which = "more" if (called.low or 0.0) > 0 else "less"
        ends = f"{CI} {ends_of(called, cost=which == 'less')}"
        yield _said(f"selection.{which}", n=called.n, size=size_of(called), ends=ends)


def _asked(calls: Mapping[str, Result]) -> int:
    """Return the total number of questions with and without a call."""
    return sum(row.n or 0 for name in (CALLED, NOT_CALLED) if (row := calls.get(name)) is not None)


def _percent(row: Result) -> str:
    """Return the interval of a share in percent: `95% CI 0 to 5%`."""
    return f"{CI} {100 * (row.low or 0.0):.0f} to {100 * (row.high or 0.0):.0f}%"


def _said(identity: str, **fields: object) -> Said:
    return identity, _words(identity, **fields)


def _words(identity: str, **fields: object) -> str:
    return DECLARED[identity].fill(**fields)
