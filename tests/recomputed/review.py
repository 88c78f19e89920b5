"""The sections that answer a reviewer, recomputed by sums in plain Python."""

from collections.abc import Collection, Iterator, Sequence

from tests.recomputed.pairs import ALONE, BLANK, HYBRID, SPECIALIST, family
from tests.recomputed.rows import compared, gated, measured, result, with_holm, withheld
from tests.recomputed.runs import (
    HEADLINE,
    Cell,
    JsonObject,
    Runs,
    accuracy,
    aligned,
    by_task,
    column,
    credit,
    failed,
    metrics,
    unit,
)
from tests.recomputed.sums import linear, loss_of, scatter, skewed, value
from tests.recomputed.traces import calls, cases

MARGIN = 0.05
# By effect, the solvers whose questions it covers, and the positions of the two that differ.
EFFECTS = {
    "gain": ((ALONE, HYBRID), (0, 1)),
    "effect of offering": ((ALONE, BLANK, HYBRID), (0, 1)),
    "effect of output": ((ALONE, BLANK, HYBRID), (1, 2)),
}


def ninety(mode: str, a: Sequence[Cell], b: Sequence[Cell]) -> tuple[float, float]:
    """Return the 90 % interval of a difference of shares."""
    from scipy.special import stdtrit

    around, output = scatter(mode, a, b), value(mode, b) - value(mode, a)
    q = float(stdtrit(around.freedom, 0.95))
    down, up = max(0.0, -around.skew) * q * q / 2, max(0.0, around.skew) * q * q / 2
    low, high = ((shift**2 + q * q * around.variance) ** 0.5 + shift for shift in (down, up))
    return max(-1.0, output - low), min(1.0, output + high)


def tost(mode: str, a: Sequence[Cell], b: Sequence[Cell], margin: float = MARGIN) -> float:
    """Return the greater of both one-sided p values: that b is worse by the margin, and that a is worse by it."""
    return max(loss_of(margin, mode, a, b), loss_of(margin, mode, b, a))


def effects_of(runs: Runs) -> Iterator[tuple[str, JsonObject, str | None, str, list[Cell], list[Cell]]]:
    """Yield for each effect its name, the names of a row, why it is not tested, and the cells of both sides."""
    head = HEADLINE[runs.benchmark]
    for quantity, (names, places) in EFFECTS.items():
        rows = aligned(runs, names)
        (mode, a), (_, b) = (metrics(runs.benchmark, column(rows, place), runs.rule)[head] for place in places)
        sides = dict(zip("ab", (names[place] for place in places), strict=True))
        yield (
            quantity,
            {**sides, "metric": head, "n": len(a), "none": runs.rule},
            withheld(rows, rows, places),
            mode,
            a,
            b,
        )


def equivalence(runs: Runs) -> list[JsonObject]:
    """Compute the equivalence of the gain and the two effects, by the 90 % interval and a margin of 0.05."""
    results = []
    other = list(effects_of(runs._replace(rule="wrong" if runs.rule == "guess" else "guess")))
    for (quantity, of, reason, mode, a, b), (*_, other_a, other_b) in zip(effects_of(runs), other, strict=True):
        difference = value(mode, b) - value(mode, a)
        if reason:
            reasons = {"failed": "more than 1 % of the questions failed (--allow-failed tests all the same)"}
            note = f"not shown to be equal within 0.05; not tested: {reasons[reason]}"
            results.append(result("equivalence", quantity, "fraction", difference, **of, note=note))
            continue
        (low, high), (other_low, other_high) = ninety(mode, a, b), ninety(mode, other_a, other_b)
        note = "not shown to be equal within 0.05"
        if low > MARGIN or high < -MARGIN:
            note = "different by more than 0.05"
        equal, other_equal = (max(-ends[0], ends[1]) < MARGIN for ends in ((low, high), (other_low, other_high)))
        note = "equal within 0.05" if equal else note
        note += "; depends on how unanswered questions count" if equal is not other_equal else ""
        row = {**of, "low": low, "high": high, "level": 0.9, "note": note, "p": tost(mode, a, b)}
        results.append(result("equivalence", quantity, "fraction", difference, **row))
    results = with_holm(results, lambda row: family(row, HEADLINE[runs.benchmark]))
    for row in results:
        if row["note"].startswith("equal") and row["p_holm"] >= 0.05:
            row["note"] += "; not after adjustment (Holm)"
    return results


def selection(runs: Runs) -> list[JsonObject]:
    """Compute how calls depend on whether the MLLM alone is right; compare outputs with blank tools by calls, also by
    task."""
    values = [*_calls_by_right(runs), *_by_calls(runs)]
    return with_holm(values, lambda row: (row["quantity"], "group" in row))


def _tasks(rows: Sequence[tuple[JsonObject, ...]]) -> dict[str, Sequence[tuple[JsonObject, ...]]]:
    return {"": rows, **by_task(rows)}


def _answered_call_shares(runs: Runs) -> dict[str, float]:
    """Return 1 by question if a tool answered a call of the hybrid, else 0."""
    return {
        name: float(any(call["fault"] is None for call in current)) for name, current in calls(runs, HYBRID).items()
    }


def _lost(rows: Sequence[tuple[JsonObject, ...]], task: str) -> dict[str, str]:
    total = sum(failed(row[0]) for row in rows)
    return {"note": f"left out: {total} that one of them failed"} if total and not task else {}


def _calls_by_right(runs: Runs) -> Iterator[JsonObject]:
    aligned_rows, with_call = aligned(runs, (ALONE, HYBRID)), _answered_call_shares(runs)
    for task, rows in _tasks(aligned_rows).items():
        pairs = [
            (unit(row[0]), with_call[row[0]["id"]], credit(row[0], runs.rule)) for row in rows if not failed(row[0])
        ]
        of = {"a": ALONE, "b": HYBRID, "group": task, "none": runs.rule, **_lost(aligned_rows, task)}
        sides = [
            [
                Cell("", cluster, call * (alone if is_right else 1 - alone), alone if is_right else 1 - alone)
                for cluster, call, alone in pairs
            ]
            for is_right in (True, False)
        ]
        right, wrong = ([cell for cell in side if cell.below > 0] for side in sides)
        if right and wrong:
            around = scatter("ratio", *sides)
            difference = value("ratio", sides[1]) - value("ratio", sides[0])
            low, high = around.ends(difference)
            row = {**of, "low": max(-1.0, low), "high": min(1.0, high), "p": 2 * around.beyond(difference)}
            yield _gated(
                result("selection", "selection", "fraction", difference, **row, n=len(pairs)), aligned_rows, rows
            )
        for quantity, side in (("called where wrong alone", wrong), ("called where right alone", right)):
            if side:
                row = measured(result("selection", quantity, "fraction", None, **of), ("ratio", side))
                yield _gated(row, aligned_rows, rows)


def _by_calls(runs: Runs) -> Iterator[JsonObject]:
    aligned_rows, with_call = aligned(runs, (BLANK, HYBRID)), _answered_call_shares(runs)
    for quantity, number in (("effect of output where called", 1.0), ("effect of output where not called", 0.0)):
        rows = [row for row in aligned_rows if not failed(row[0]) and with_call[row[0]["id"]] == number]
        # The exact test of fewer than 30 questions is not recomputed.
        if len(rows) >= 30:
            sides = [("ratio", accuracy(column(rows, place), runs.rule)) for place in (0, 1)]
            ids = [row[0]["id"] for row in rows]
            row = {"a": BLANK, "b": HYBRID, "none": runs.rule, "ids": ids, **_lost(aligned_rows, "")}
            row = result("selection", quantity, "fraction", None, **row)
            yield compared(row, sides[0], sides[1], withheld(aligned_rows, aligned_rows))


def _gated(
    row: JsonObject,
    pairs: Sequence[tuple[JsonObject, ...]],
    rows: Sequence[tuple[JsonObject, ...]],
    places: Collection[int] | None = None,
) -> JsonObject:
    output = gated(row, reason := withheld(pairs, rows, places))
    return {name: field for name, field in output.items() if reason is None or name != "p"}


def used(runs: Runs) -> list[JsonObject]:
    """Compute how often right outputs lead to right answers with tools, and with blank tools, where the MLLM alone is
    wrong. There is no oracle run."""
    results = []
    verdicts = {case.row["id"]: case for case in cases(runs)}
    for names in ((HYBRID, ALONE), (HYBRID, ALONE, BLANK)):
        aligned_rows = aligned(runs, names, repeated=False)
        needed = [
            row
            for row in aligned_rows
            if not failed(row[0]) and not verdicts[row[0]["id"]].alone and verdicts[row[0]["id"]].finding == "right"
        ]
        right = [[Cell("", unit(row[0]), float(item["correct"] == 1)) for item in row] for row in needed]
        if not needed:
            continue
        columns = [list(column) for column in zip(*right, strict=True)]
        of = {"a": ALONE, "b": HYBRID}
        if len(names) == 2:
            ids = [row[0]["id"] for row, current in zip(needed, columns[0], strict=True) if current.above]
            row = measured(result("used", "right outputs used", "fraction", None, **of, ids=ids), ("ratio", columns[0]))
            results.append(_gated(row, aligned_rows, aligned_rows))
            continue
        row = measured(result("used", "right outputs, blank tools", "fraction", None, **of), ("ratio", columns[2]))
        results.append(_gated(row, aligned_rows, aligned_rows, (0, 2)))
        row = result("used", "use of right outputs", "fraction", None, a=BLANK, b=HYBRID)
        results.append(
            compared(row, ("ratio", columns[2]), ("ratio", columns[0]), withheld(aligned_rows, aligned_rows, (0, 2)))
        )
    return with_holm(results, lambda row: (row["quantity"], ()))


def headroom(runs: Runs) -> Iterator[JsonObject]:
    """Yield the headroom above the MLLM alone; the least detectable sizes are simulated in
    test_conclusion_review.py."""
    for quantity, of, effect, mode, a, _ in effects_of(runs):
        if quantity == "gain":
            row = result("headroom", "room above the model alone", "fraction", None, **of)
            measurement = measured(row, (mode, a))
            low, high = (None, None) if effect else (1 - measurement["high"], 1 - measurement["low"])
            row = {**row, "value": 1 - measurement["value"], "n": measurement["n"]}
            yield row if effect else {**row, "low": low, "high": high}


def called(runs: Runs) -> list[JsonObject]:
    """Compare the specialist with and without a tool call of the hybrid, on the questions that it answers."""
    aligned_rows, with_call = aligned(runs, (SPECIALIST, HYBRID), repeated=False), _answered_call_shares(runs)
    claimed = {
        row["id"]: step["data"]["specialist_answer"]["confidence"]
        for row in runs.attempts(SPECIALIST)
        for item in row["exchanges"]
        for step in item["reply"]["steps"]
        if (step.get("data") or {}).get("specialist_answer")
    }
    results = []
    for task, rows in _tasks(aligned_rows).items():
        values = [row for row in rows if not failed(row[0]) and row[0]["answer"] is not None]
        facts = [(unit(row[0]), float(row[0]["correct"] == 1), with_call[row[0]["id"]], row[0]["id"]) for row in values]
        of = {"a": SPECIALIST, "b": HYBRID, "group": task, **_lost(aligned_rows, task)}
        sides = [
            [Cell("", cluster, right * (call == side), float(call == side)) for cluster, right, call, _ in facts]
            for side in (0.0, 1.0)
        ]
        others, target_points = ([cell for cell in side if cell.below] for side in sides)
        for words, side in (("called", target_points), ("not called", others)):
            if side:
                row = result("called", f"specialists right where {words}", "fraction", None, **of)
                results.append(_gated(measured(row, ("ratio", side)), aligned_rows, rows))
        if target_points and others:
            difference, around = value("ratio", sides[1]) - value("ratio", sides[0]), scatter("ratio", *sides)
            low, high = around.ends(difference)
            more = {"low": max(-1.0, low), "high": min(1.0, high), "p": 2 * around.beyond(difference), "n": len(facts)}
            row = result("called", "difference where called", "fraction", difference, **of, **more)
            results.append(_gated(row, aligned_rows, rows))
        if not task:
            for words, expected in (("called", 1.0), ("not called", 0.0)):
                excess = [(cluster, claimed[i] - right) for cluster, right, call, i in facts if call == expected]
                for name, power in (("overconfidence", 1), ("Brier score", 2)):
                    cells = [Cell("", cluster, number**power) for cluster, number in excess]
                    low, high = _around(cells)
                    row = {**of, "low": low, "high": high, "n": len(cells)}
                    row = result("called", f"{name} where {words}", "fraction", value("ratio", cells), **row)
                    results.append(_gated(row, aligned_rows, rows))
    return with_holm(results, lambda row: (row["quantity"], "group" in row))


def _around(cells: Sequence[Cell]) -> tuple[float, float]:
    """Return the interval of a mean; if no number is negative, its lower end is not negative either."""
    output = linear("ratio", cells)
    full = sum(share**2 for share in output.shares.values()) * output.unit
    low, high = skewed(output.shares.values(), full, output.unit, output.freedom).ends(value("ratio", cells))
    return (max(0.0, low) if all(cell.above >= 0 for cell in cells) else low), high


def pooled(runs: Runs) -> Iterator[JsonObject]:
    """Yield nothing: the synthetic runs have one model. See test_conclusion_review.py and
    tests/hybrid/stats/test_pooling.py."""
    del runs
    return iter(())


def price(runs: Runs) -> Iterator[JsonObject]:
    """Yield nothing: the synthetic runs took no time, and their tokens have no price. See test_conclusion_review.py."""
    del runs
    return iter(())


def places(runs: Runs) -> Iterator[JsonObject]:
    """Yield nothing: no question of the synthetic runs has an annotated place. See
    tests/hybrid/scoring/sections/test_places.py."""
    del runs
    return iter(())
