"""The sections that answer a reviewer once more, by sums in plain Python."""

from collections.abc import Iterator, Sequence

from tests.recomputed.pairs import ALONE, BLANK, HYBRID, family
from tests.recomputed.rows import result, with_holm, withheld
from tests.recomputed.runs import HEADLINE, Cell, JsonObject, Runs, aligned, column, metrics
from tests.recomputed.sums import loss_of, scatter, value

MARGIN = 0.05
# By effect the solvers whose questions it is over, and the places of the two that differ.
EFFECTS = {
    "gain": ((ALONE, HYBRID), (0, 1)),
    "effect of offering": ((ALONE, BLANK, HYBRID), (0, 1)),
    "effect of output": ((ALONE, BLANK, HYBRID), (1, 2)),
}


def ninety(how: str, a: Sequence[Cell], b: Sequence[Cell]) -> tuple[float, float]:
    """The 90 % interval of a difference of shares."""
    from scipy.special import stdtrit

    around, found = scatter(how, a, b), value(how, b) - value(how, a)
    q = float(stdtrit(around.freedom, 0.95))
    down, up = max(0.0, -around.skew) * q * q / 2, max(0.0, around.skew) * q * q / 2
    low, high = ((shift**2 + q * q * around.kept) ** 0.5 + shift for shift in (down, up))
    return max(-1.0, found - low), min(1.0, found + high)


def tost(how: str, a: Sequence[Cell], b: Sequence[Cell], margin: float = MARGIN) -> float:
    """The greater of both one-sided p values: of b worse by the margin, and of a worse by it."""
    return max(loss_of(margin, how, a, b), loss_of(margin, how, b, a))


def effects_of(runs: Runs) -> Iterator[tuple[str, JsonObject, str | None, str, list[Cell], list[Cell]]]:
    """Of each effect its name, the names of a row, why it is not tested, and the cells of both sides."""
    head = HEADLINE[runs.benchmark]
    for quantity, (names, places) in EFFECTS.items():
        rows = aligned(runs, names)
        (how, a), (_, b) = (metrics(runs.benchmark, column(rows, place), runs.rule)[head] for place in places)
        sides = dict(zip("ab", (names[place] for place in places), strict=True))
        yield quantity, {**sides, "metric": head, "n": len(a), "none": runs.rule}, withheld(rows, rows), how, a, b


def equivalence(runs: Runs) -> list[JsonObject]:
    """The gain and the two effects, by the 90 % interval and a margin of 0.05."""
    made = []
    other = list(effects_of(runs._replace(rule="wrong" if runs.rule == "guess" else "guess")))
    for (quantity, of, why, how, a, b), (*_, other_a, other_b) in zip(effects_of(runs), other, strict=True):
        difference = value(how, b) - value(how, a)
        if why:
            reasons = {"failed": "more than 1 % of the questions failed (--allow-failed tests all the same)"}
            note = f"not shown to be equal within 0.05; not tested: {reasons[why]}"
            made.append(result("equivalence", quantity, "fraction", difference, **of, note=note))
            continue
        (low, high), (other_low, other_high) = ninety(how, a, b), ninety(how, other_a, other_b)
        note = "not shown to be equal within 0.05"
        if low > MARGIN or high < -MARGIN:
            note = "different by more than 0.05"
        equal, other_equal = (max(-ends[0], ends[1]) < MARGIN for ends in ((low, high), (other_low, other_high)))
        note = "equal within 0.05" if equal else note
        note += "; hangs on how unanswered questions count" if equal is not other_equal else ""
        row = {**of, "low": low, "high": high, "level": 0.9, "note": note, "p": tost(how, a, b)}
        made.append(result("equivalence", quantity, "fraction", difference, **row))
    return with_holm(made, lambda row: family(row, HEADLINE[runs.benchmark]))
