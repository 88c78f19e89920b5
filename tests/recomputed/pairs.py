"""The sections on pairs of solvers, and on a hybrid solver next to its parts, recomputed."""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from tests.recomputed.rows import UNTESTED, Rows, Side, compared, result, with_holm, withheld
from tests.recomputed.runs import (
    HEADLINE,
    Cell,
    JsonObject,
    Runs,
    accuracy,
    aligned,
    by_task,
    column,
    failed,
    metrics,
    right,
    rightness,
    unanswered,
    unit,
)
from tests.recomputed.sums import contrast, fieller, loss_of, t_beyond, t_quantile, value

HYBRID, ALONE, SPECIALIST = "controller", "mllm", "specialist"
BLANK, SHUFFLED = "controller [blank]", "controller [shuffled]"


def questions(runs: Runs) -> Iterator[JsonObject]:
    """Yield the numbers of shared questions of each pair; every solver was asked every question."""
    for a, b in runs.pairs:
        rows = aligned(runs, (a, b))
        total = sum(failed(row[0]) for row in rows)
        for quantity, count in {"shared": len(rows), "only a": 0, "only b": 0, "failed": total}.items():
            yield result("questions", quantity, "questions", count, a=a, b=b)


def differences(runs: Runs) -> list[JsonObject]:
    """Return every pair by every metric and within every task; headline, other metrics and tasks are one family
    each."""
    rows = [row for pair in runs.pairs for row in _differences(runs, pair)]
    head = HEADLINE[runs.benchmark]
    return with_holm(rows, lambda row: family(row, head))


CLAIMS = {
    frozenset((ALONE, HYBRID)): "gain over the model alone",
    frozenset((SPECIALIST, HYBRID)): "difference to the specialists",
    frozenset((ALONE, BLANK)): "parts of the gain",
    frozenset((BLANK, HYBRID)): "parts of the gain",
    frozenset((BLANK, SHUFFLED)): "other questions' findings",
}


def family(row: JsonObject, head: str) -> tuple[str, Hashable]:
    """Return the claim that a difference belongs to; the tasks of a pair are a separate family."""
    if "group" in row:
        return "tasks of the pair", (row["a"], row["b"], row["quantity"], row.get("none"))
    if row["metric"] != head:
        return "other metrics", ()
    return CLAIMS.get(frozenset((row["a"], row["b"])), "other pairs"), ()


def _differences(runs: Runs, pair: tuple[str, str]) -> Iterator[JsonObject]:
    aligned_rows = aligned(runs, pair)
    a, b = (metrics(runs.benchmark, column(aligned_rows, place), runs.rule) for place in (0, 1))
    for name in a:
        yield from _difference(runs, pair, (a[name], b[name]), aligned_rows, aligned_rows, name)
        if name == HEADLINE[runs.benchmark]:
            yield from _counts(pair, aligned_rows, name)
    for task, part in by_task(aligned_rows).items():
        sides = [("ratio", accuracy(column(part, place), runs.rule)) for place in (0, 1)]
        yield from _difference(runs, pair, (sides[0], sides[1]), aligned_rows, part, "accuracy", task)
        yield from _counts(pair, part, "accuracy", task)


def _difference(
    runs: Runs, pair: tuple[str, str], sides: tuple[Side, Side], rows: Rows, part: Rows, metric: str, task: str = ""
) -> Iterator[JsonObject]:
    of = {"a": pair[0], "b": pair[1], "metric": metric, "group": task, "none": runs.rule}
    bare = result("differences", "difference", "fraction", None, **of)
    yield compared(bare, *sides, withheld(rows, part))
    for quantity, side in zip(("value a", "value b"), sides, strict=True):
        yield {**bare, "quantity": quantity, "value": value(*side), "n": len(side[1])}


def _counts(pair: tuple[str, str], part: Rows, metric: str, task: str = "") -> Iterator[JsonObject]:
    rows = [row for row in part if not failed(row[0])]
    pairs = [(a, b) for a, b in rows if a["answer"] is not None and b["answer"] is not None]
    mapping = {
        expected: [a["id"] for a, b in pairs if (a["correct"], b["correct"]) == expected] for expected in HELPED_HARMED
    }
    values = [row[0]["id"] for row in part if failed(row[0])]
    payload = {"helped": mapping[False, True], "harmed": mapping[True, False], "failed": values}
    counts = {"both answered": len(pairs), **{name: len(ids) for name, ids in payload.items()}}
    counts |= {f"none {'ab'[place]}": sum(row[place]["answer"] is None for row in rows) for place in (0, 1)}
    for quantity, count in counts.items():
        of = {"a": pair[0], "b": pair[1], "metric": metric, "group": task, "ids": payload.get(quantity)}
        yield result("differences", quantity, "questions", count, n=len(rows), **of)


HELPED_HARMED = ((False, True), (True, False))


def answered(runs: Runs) -> list[JsonObject]:
    """Return a specialist's pairs on the questions that it answers and on the rest, and each pair's parts."""
    head, rows = HEADLINE[runs.benchmark], list[JsonObject]()
    for pair in runs.pairs:
        if SPECIALIST in pair:
            a, b = sorted(pair, key=lambda name: name != SPECIALIST)
            aligned_rows = aligned(runs, (a, b))
            for part in ("the specialists answer", "they give no answer"):
                text = part == "the specialists answer"
                values = [row for row in aligned_rows if failed(row[0]) or (row[0]["answer"] is not None) == text]
                rows += _some(runs, (a, b), aligned_rows, values, part, tested=text)
                # The other solver may leave some of these unanswered, too.
                rows += _answering_parts(runs, (a, b), aligned_rows, values, {"group": part}) if text else ()
        rows += _split(runs, pair)

    def claim(row: JsonObject) -> tuple[str, Hashable]:
        name = CLAIMS.get(frozenset((row["a"], row["b"])), "other pairs")
        return name, (row["quantity"], row.get("group"))

    assert all(row["metric"] == head for row in rows)
    return with_holm(rows, claim)


def _some(
    runs: Runs, names: Sequence[str], rows: Rows, rows_here: Rows, part: str, *, tested: bool
) -> Iterator[JsonObject]:
    head, values = HEADLINE[runs.benchmark], [row for row in rows_here if not failed(row[0])]
    sides = [metrics(runs.benchmark, column(rows_here, place), runs.rule)[head] for place in (0, 1)]
    of = {"a": names[0], "b": names[1], "metric": head, "group": part}
    bare = result("answered", "difference", "fraction", None, **of, none=runs.rule)
    if tested:
        yield compared(bare, sides[0], sides[1], withheld(rows, rows_here))
    for place, current in enumerate(sides):
        side = "ab"[place]
        if tested or side == "b":
            yield {**bare, "quantity": f"value {side}", "value": value(*current), "n": len(current[1])}
        ids = [row[place]["id"] for row in values if right(row[place])]
        yield result("answered", f"right {side}", "questions", len(ids), **of, n=len(values), ids=ids)


def _split(runs: Runs, pair: tuple[str, str]) -> Iterator[JsonObject]:
    """Yield rows on the questions that both answered, if they did not answer all; then the parts of the difference."""
    aligned_rows = aligned(runs, pair)
    rows = [row for row in aligned_rows if failed(row[0]) or not any(map(unanswered, row))]
    if len(aligned_rows) > len(rows) > sum(failed(row[0]) for row in rows):
        yield from _some(runs, pair, aligned_rows, rows, "both answer", tested=True)
    yield from _answering_parts(runs, pair, aligned_rows, aligned_rows, {})


def _answering_parts(
    runs: Runs, pair: tuple[str, str], rows: Rows, rows_here: Rows, group: Mapping[str, str]
) -> Iterator[JsonObject]:
    """Yield the two parts of a difference: with the questions that one left unanswered counted as unanswered for both,
    and the rest.
    """
    head = HEADLINE[runs.benchmark]
    present = [row for row in rows_here if not failed(row[0])]
    if not any(unanswered(side) for row in present for side in row):
        return
    of = {"a": pair[0], "b": pair[1], "metric": head, **group}
    silent = [tuple(_silenced(row, item) for item in row) for row in rows_here]
    sides = [metrics(runs.benchmark, column(rows_here, place), runs.rule)[head] for place in (0, 1)]
    better = [metrics(runs.benchmark, column(silent, place), runs.rule)[head] for place in (0, 1)]
    rest = [_less(side, part) for side, part in zip(sides, better, strict=True)]
    for quantity, (a, b) in {"answering": rest, "better answers": better}.items():
        bare = result("answered", f"difference from {quantity}", "fraction", None, **of, none=runs.rule)
        yield compared(bare, a, b, withheld(rows, rows_here))
    for place, side in enumerate("ab"):
        ids = [row[place]["id"] for row in present if unanswered(row[place])]
        yield result("answered", f"unanswered {side}", "questions", len(ids), **of, n=len(present), ids=ids)


def _silenced(row: Sequence[JsonObject], own_part: JsonObject) -> JsonObject:
    """Return a score like that of a solver that leaves the question unanswered, if one of the two does."""
    silent = [entry for item in row for entry in item.get("again", [item]) if entry["answer"] is None]
    if failed(own_part) or not silent:
        return own_part
    payload = {"again": [silent[0]] * len(own_part["again"])} if "again" in own_part else {}
    return {**silent[0], "outcome": own_part["outcome"], **payload}


def _less(side: Side, part: Side) -> Side:
    cells = [cell._replace(above=cell.above - item.above) for cell, item in zip(side[1], part[1], strict=True)]
    return side[0], cells


def helped(runs: Runs) -> Iterator[JsonObject]:
    """Yield the count of each pair of verdicts that occurs."""
    for a, b in runs.pairs:
        rows = [row for row in aligned(runs, (a, b)) if not failed(row[0])]
        ids: dict[str, list[str]] = defaultdict(list)
        for row in rows:
            ids[" -> ".join(map(_verdict, row))].append(row[0]["id"])
        for quantity, current in ids.items():
            yield result("helped", quantity, "questions", len(current), a=a, b=b, n=len(rows), ids=current)


def _verdict(row: JsonObject) -> str:
    if row["answer"] is None:
        return "no answer"
    return {1: "right", 0: "wrong"}.get(row["correct"], "partly right")


def noninferior(runs: Runs) -> Iterator[JsonObject]:
    """Compare the headline metric of the hybrid with each part, by the interval's ends and a margin of 0.05."""
    margin, head = 0.05, HEADLINE[runs.benchmark]
    for against in (ALONE, SPECIALIST):
        rows = aligned(runs, (against, HYBRID))
        a, b = (metrics(runs.benchmark, column(rows, place), runs.rule)[head] for place in (0, 1))
        assert withheld(rows, rows) is None
        estimate, of = contrast(a[0], a[1], b[1]), {"a": against, "b": HYBRID, "metric": head, "n": len(a[1])}
        low, high = estimate["interval"]
        verdict = "superior" if low > 0 else "not inferior" if low > -margin else "undecided"
        verdict = "inferior" if high < -margin else verdict
        row = {**of, "low": low, "high": high, "note": verdict}
        yield result("noninferior", "difference", "fraction", estimate["difference"], **row)
        yield result("noninferior", "margin", "fraction", margin, **of)
        p = loss_of(margin, a[0], a[1], b[1])
        yield result("noninferior", "one-sided p of a loss of the margin or more", "probability", p, **of)


def gain(runs: Runs) -> list[JsonObject]:
    """Compute the parts on the questions that alone, blank and hybrid share, and the shuffled control on those that
    both controls share."""
    parts = {"gain": (0, 2), "presence": (0, 1), "content": (1, 2)}
    rows = [
        *_parts(runs, (ALONE, BLANK, HYBRID), parts),
        *_parts(runs, (BLANK, SHUFFLED), {"other questions' findings": (0, 1)}),
    ]
    return with_holm(rows, lambda row: family(row, HEADLINE[runs.benchmark]))


def _parts(runs: Runs, names: Sequence[str], parts: Mapping[str, tuple[int, int]]) -> Iterator[JsonObject]:
    aligned_rows, head = aligned(runs, names), HEADLINE[runs.benchmark]
    total = sum(failed(row[0]) for row in aligned_rows)
    for task, rows in {"": aligned_rows, **by_task(aligned_rows)}.items():
        columns = [column(rows, place) for place in range(len(names))]
        sides: list[Side] = [
            ("ratio", accuracy(current, runs.rule)) if task else metrics(runs.benchmark, current, runs.rule)[head]
            for current in columns
        ]
        for quantity, (a, b) in parts.items():
            of = {"a": names[a], "b": names[b], "metric": "accuracy" if task else head, "group": task}
            note = f"left out: {total} that one of them failed" if total and not task else ""
            row = result("gain", quantity, "fraction", None, **of, none=runs.rule, note=note)
            yield compared(row, sides[a], sides[b], withheld(aligned_rows, rows, (a, b)))


def ceiling(runs: Runs) -> Iterator[JsonObject]:
    """Yield the rows of `ceiling`, from right answers of the hybrid, its MLLM alone and its specialist."""
    aligned_rows = aligned(runs, (HYBRID, ALONE, SPECIALIST))
    for task, rows in {"": aligned_rows, **by_task(aligned_rows)}.items():
        pairs = [
            (row[0]["id"], unit(row[0]), *(rightness(item, runs.rule) for item in row))
            for row in rows
            if not failed(row[0])
        ]
        counts = [sum(row[place] for row in pairs) for place in (2, 3, 4)]
        either = sum(1 - (1 - a) * (1 - s) for _, _, _, a, s in pairs)
        better = 3 if counts[1] >= counts[2] else 4
        shares: dict[str, dict[str, float]] = {"only hybrid": {}, "missed": {}, "neither": {}}
        for identity, _, h, a, s in pairs:
            nowhere = (1 - a) * (1 - s)
            for quantity, count in zip(shares, (h * nowhere, (1 - h) * (1 - nowhere), (1 - h) * nowhere), strict=True):
                if count:
                    shares[quantity][identity] = count
        of = {"group": task, "n": len(pairs), "none": runs.rule}
        part = {3: ALONE, 4: SPECIALIST}[better]
        either_part = {**of, "a": f"{ALONE} | {SPECIALIST}"}
        yield result("ceiling", "right in either part", "questions", either, **either_part)
        yield result("ceiling", "right in the better part", "questions", counts[better - 2], **of, a=part)
        yield result("ceiling", "right", "questions", counts[0], **of, a=HYBRID)
        for quantity, share in shares.items():
            detail, ids = quantity == "neither", list(share)
            yield result("ceiling", quantity, "questions", sum(share.values()), **of, a=HYBRID, ids=ids, detail=detail)
        cells = [
            Cell("", cluster, float(row[0] - row[better - 2]), 1 - (1 - row[1]) * (1 - row[2]) - row[better - 2])
            for _, cluster, *row in pairs
        ]
        expected_values = fieller(cells)
        reached = None if expected_values is None else (counts[0] - max(counts[1:])) / (either - max(counts[1:]))
        row = result("ceiling", "reached", "fraction", reached, **of, a=HYBRID)
        near = (
            ""
            if expected_values
            else "not given: the way from the better part to the ceiling does not differ from 0 (95 %)"
        )
        if expected_values is None:
            yield {**row, "note": near}
        elif withheld(aligned_rows, rows) == "failed":
            yield {**row, "note": UNTESTED["failed"]}
        else:
            yield {**row, "low": expected_values[0], "high": expected_values[1]}


def agreement(runs: Runs) -> list[JsonObject]:
    """Count the right and wrong answers of both solvers of every pair."""
    return with_holm([row for pair in runs.pairs for row in _agreement(runs, pair)], lambda row: ("all pairs", ()))


def _agreement(runs: Runs, pair: tuple[str, str]) -> Iterator[JsonObject]:
    rows = [row for row in aligned(runs, pair, repeated=False) if not failed(row[0])]
    pairs = [(right(a), right(b)) for a, b in rows]
    n, wrong_a, wrong_b = len(rows), sum(not a for a, _ in pairs), sum(not b for _, b in pairs)
    values = [a["id"] for a, b in rows if not right(a) and not right(b)]
    same = [a["id"] for a, b in rows if not right(a) and a["answer"] is not None and a["answer"] == b["answer"]]
    strata = [f"{row[0]['task']}/{len(runs.questions[row[0]['id']]['choices'])}" for row in rows]
    by_stratum = {
        s: [current for current, name in zip(pairs, strata, strict=True) if name == s] for s in sorted(set(strata))
    }
    sizes = {
        s: (sum(not a for a, _ in own_rows), sum(not b for _, b in own_rows), len(own_rows))
        for s, own_rows in by_stratum.items()
    }
    within = sum(a * b / size for a, b, size in sizes.values())
    of = {"a": pair[0], "b": pair[1], "n": n}
    counts: dict[str, tuple[float, Sequence[str]]] = {
        "wrong a": (wrong_a, ()),
        "wrong b": (wrong_b, ()),
        "both wrong": (len(values), values),
        "expected": (wrong_a * wrong_b / n, ()),
        "expected within tasks": (within, ()),
        "same wrong answer": (len(same), same),
    }
    for quantity, (count, ids) in counts.items():
        yield result("agreement", quantity, "questions", count, **of, ids=ids)
    clusters = [unit(row[0]) for row in rows]
    if len(set(clusters)) == n:
        p = _exact(list(sizes.values()), len(values))
    else:
        p = _by_clusters(pairs, strata, sizes, clusters, len(values) - within)
    ratio = "both wrong / expected within tasks"
    yield result("agreement", ratio, "ratio", len(values) / within, **of, p=p)
    point, (low, high) = _kappa(pairs, clusters)
    yield result("agreement", "kappa", "kappa", point, **of, low=low, high=high)


def _exact(strata: Sequence[tuple[int, int, int]], count: int) -> float:
    """Return the total probability of all sums of shared mistakes that are at most as likely as the observed one, with
    fixed margins."""
    chances = {0: 1.0}
    for a, b, n in strata:
        added: dict[int, float] = defaultdict(float)
        for total, chance in chances.items():
            for shared in range(max(0, a + b - n), min(a, b) + 1):
                ways = math.comb(a, shared) * math.comb(n - a, b - shared)
                added[total + shared] += chance * (ways / math.comb(n, b))
        chances = added
    return min(1.0, sum(chance for chance in chances.values() if chance <= chances[count] * (1 + 1e-7)))


def _by_clusters(
    pairs: Sequence[tuple[bool, bool]],
    strata: Sequence[str],
    sizes: Mapping[str, tuple[int, int, int]],
    clusters: Sequence[str],
    excess: float,
) -> float:
    sums: dict[str, float] = defaultdict(float)
    for (a, b), stratum, cluster in zip(pairs, strata, clusters, strict=True):
        of_a, of_b, n = sizes[stratum]
        sums[cluster] += ((not a) - of_a / n) * ((not b) - of_b / n) * math.sqrt(n / (n - 1))
    m = len(sums)
    error = math.sqrt(sum(s**2 for s in sums.values()) * m / (m - 1))
    return 2 * t_beyond(abs(excess) / error, m - 1)


def _kappa(pairs: Sequence[tuple[bool, bool]], clusters: Sequence[str]) -> tuple[float, list[float]]:
    """Return Cohen's kappa and its interval, with half a question more in each cell, by the derivatives of kappa."""
    counts = Counter(pairs)
    cells = [(a, b) for a in (True, False) for b in (True, False)]

    def of(table: Mapping[tuple[bool, bool], Any]) -> Any:
        total = sum(table.values())
        agreed = sum(w for (a, b), w in table.items() if a == b) / total
        a, b = (sum(w for pair, w in table.items() if pair[place]) / total for place in (0, 1))
        chance = a * b + (1 - a) * (1 - b)
        return (agreed - chance) / (1 - chance)

    def slopes(table: Mapping[tuple[bool, bool], float]) -> dict[tuple[bool, bool], float]:
        step = 1e-20
        moved = {cell: of({**table, cell: complex(table[cell], step)}) for cell in cells}
        return {cell: item.imag / step for cell, item in moved.items()}

    seen = {cell: float(counts[cell]) for cell in cells}
    point, moves = of(seen), slopes(seen)
    sums: dict[str, float] = defaultdict(float)
    for pair, cluster in zip(pairs, clusters, strict=True):
        sums[cluster] += moves[pair]
    m, effect = len(sums), 1.0
    if m < len(pairs):
        sizes = Counter(clusters)
        similar = sum(size**2 for size in sizes.values()) / len(pairs)
        squares = sum(s**2 for s in sums.values())
        trusted = squares**2 / sum(s**4 for s in sums.values())
        ratio = squares / sum(counts[cell] * moves[cell] ** 2 for cell in cells)
        effect = (trusted * ratio + 0.25 * similar) / (trusted + 0.25)
    more = {cell: count / effect + 0.5 for cell, count in seen.items()}
    error = math.sqrt(sum(more[cell] * move**2 for cell, move in slopes(more).items()) * m / (m - 1))
    half, centre = t_quantile(m - 1) * error, of(more)
    return point, [max(-1.0, min(point, centre - half)), min(1.0, max(point, centre + half))]
