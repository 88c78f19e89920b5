"""The sections on pairs of solvers once more: gain, ceiling, agreement and non-inferiority."""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import pytest
from scipy.stats import hypergeom
from scipy.stats import t as student

from tests.recomputed.runs import (
    HEADLINE,
    RULES,
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
    unit,
    withheld,
)
from tests.recomputed.sums import check_holm, contrast, holm, linear, loss_of, near, same, skewed, value


def check_test(told: JsonObject, expected: JsonObject, reason: str | None) -> None:
    assert told["difference"] == near(expected["difference"])
    assert told["withheld"] == reason
    if reason:
        assert (told["interval"], told["p"]) == (None, None)
    else:
        assert (told["interval"], told["p"]) == (near(expected["interval"]), near(expected["p"]))


class Met(NamedTuple):
    """A pair by one metric over all or within one task; no interval and no p where nothing is tested."""

    a: str
    b: str
    family: str
    group: str
    n: int
    difference: float
    interval: list[float] | None
    p: float | None
    p_holm: float | None
    counts: tuple[int, ...]
    """Both answered, helped, harmed, a none, b none."""


def every_contest(runs: Runs, pairs: Iterable[tuple[str, str]]) -> list[Met]:
    """Every pair by every metric and within every task."""
    found = [met for pair in pairs for met in _contests(runs, pair)]
    for family in ("headline", "metrics", "tasks"):
        places = [place for place, met in enumerate(found) if met.family == family and met.p is not None]
        adjusted = holm([met.p for place in places if (met := found[place]).p is not None])
        for place, p in zip(places, adjusted, strict=True):
            found[place] = found[place]._replace(p_holm=p)
    return found


def _contests(runs: Runs, pair: tuple[str, str]) -> Iterator[Met]:
    whole = aligned(runs, pair)
    a, b = (metrics(runs.benchmark, column(whole, place), "chance") for place in (0, 1))
    for name in a:
        family = "headline" if name == HEADLINE[runs.benchmark] else "metrics"
        yield _met(pair, family, name, (a[name], b[name]), (whole, whole))
    for task, part in by_task(whole).items():
        sides = [("ratio", accuracy(column(part, place), "chance")) for place in (0, 1)]
        yield _met(pair, "tasks", task, (sides[0], sides[1]), (whole, part))


Side = tuple[str, list[Cell]]
Rows = Sequence[tuple[JsonObject, ...]]


def _met(pair: tuple[str, str], family: str, group: str, sides: tuple[Side, Side], rows: tuple[Rows, Rows]) -> Met:
    (how, a), (_, b) = sides
    reason = withheld(*rows)
    tested = contrast(how, a, b)
    kept = [row for row in rows[1] if not failed(row[0])]
    answered = [(right(x), right(y)) for x, y in kept if x["answer"] is not None and y["answer"] is not None]
    none = [sum(row[place]["answer"] is None for row in kept) for place in (0, 1)]
    counts = (len(answered), answered.count((False, True)), answered.count((True, False)), *none)
    ends, p = (None, None) if reason else (tested["interval"], tested["p"])
    return Met(*pair, family, group, len(a), tested["difference"], ends, p, None, counts)


def noninferior(runs: Runs, records: Sequence[JsonObject]) -> None:
    """The headline metric of the hybrid against each part, by the ends of the interval and a margin of 0.05."""
    margin, expected = 0.05, []
    for part, against in (("alone", "mllm"), ("specialist", "specialist")):
        rows = aligned(runs, (against, "controller"))
        a, b = (_side(runs, column(rows, place), "chance", "all tasks") for place in (0, 1))
        tested = contrast(a[0], a[1], b[1])
        reason = withheld(rows, rows)
        low, high = (None, None) if reason else tested["interval"]
        verdict = "undecided"
        if low is not None and low > -margin:
            verdict = "superior" if low > 0 else "not inferior"
        elif high is not None and high < -margin:
            verdict = "inferior"
        expected.append(
            {
                "hybrid": "controller",
                "against": against,
                "part": part,
                "metric": HEADLINE[runs.benchmark],
                "n": len(a[1]),
                "margin": margin,
                "difference": tested["difference"],
                "interval": None if low is None else [low, high],
                "p": None if reason else loss_of(margin, a[0], a[1], b[1]),
                "verdict": verdict,
                "withheld": reason,
            }
        )
    same(records, expected)


def gain(runs: Runs, records: Sequence[JsonObject]) -> None:
    """Parts on the questions of alone, blank and hybrid; the shuffled control on those of both controls."""
    three, two = ("mllm", "controller [blank]", "controller"), ("controller [blank]", "controller [shuffled]")
    tasks = list(by_task(aligned(runs, three)))
    wanted = [(names, group) for names in (three, two) for group in ("all tasks", *tasks)]
    told = {(tuple(dict.fromkeys(p["part"] for p in r["parts"])), r["group"]): r for r in records}
    assert len(told) == len(records) == len(wanted)
    for names, group in wanted:
        parts = {"gain": (0, 2), "presence": (0, 1), "content": (1, 2)} if names == three else {"shuffled": (0, 1)}
        record = told[tuple(parts), group]
        whole = aligned(runs, names)
        rows = whole if group == "all tasks" else by_task(whole)[group]
        lost = sorted(row[0]["id"] for row in rows if failed(row[0]))
        assert (record["questions"], record["failed"], record["missing"]) == (len(rows) - len(lost), lost, [])
        assert record["metric"] == (HEADLINE[runs.benchmark] if group == "all tasks" else "accuracy")
        assert [(p["none"], p["part"]) for p in record["parts"]] == [(r, name) for r in RULES for name in parts]
        for part in record["parts"]:
            places = parts[part["part"]]
            assert (part["a"], part["b"]) == (names[places[0]], names[places[1]])
            a, b = (_side(runs, column(rows, place), part["none"], group) for place in places)
            assert (record["n"], record["clusters"]) == (len(a[1]), len({c.cluster for c in a[1]}))
            assert (part["value_a"], part["value_b"]) == near((value(*a), value(*b)))
            check_test(part, contrast(a[0], a[1], b[1]), withheld(whole, rows))
        for rule in RULES:
            by_name = {p["part"]: p["difference"] for p in record["parts"] if p["none"] == rule}
            if len(by_name) > 1:
                assert by_name["presence"] + by_name["content"] == pytest.approx(by_name["gain"], abs=1e-15)
    for rule, whole_table in itertools.product(RULES, (True, False)):
        family = [p for r in records if (r["group"] == "all tasks") is whole_table for p in r["parts"]]
        check_holm([part for part in family if part["none"] == rule])


def _side(runs: Runs, rows: Sequence[JsonObject], rule: str, group: str) -> tuple[str, list[Cell]]:
    if group == "all tasks":
        return metrics(runs.benchmark, rows, rule)[HEADLINE[runs.benchmark]]
    return ("ratio", accuracy(rows, rule))


def ceiling(runs: Runs, records: Sequence[JsonObject]) -> None:
    """Right answers of the hybrid, its MLLM alone and its specialist."""
    names = ("controller", "mllm", "specialist")
    whole = aligned(runs, names)
    groups = {"all tasks": whole, **by_task(whole)}
    assert [record["group"] for record in records] == list(groups)
    for record in records:
        rows = groups[record["group"]]
        kept = [(row[0]["id"], unit(row[0]), *map(right, row)) for row in rows if not failed(row[0])]
        counts = [sum(row[place] for row in kept) for place in (2, 3, 4)]
        either = sum(a or s for _, _, _, a, s in kept)
        better = 3 if counts[1] >= counts[2] else 4
        assert tuple(record[name] for name in ("hybrid", "alone", "specialist")) == names
        assert record["n"] == len(kept)
        assert [record[f"right_{name}"] for name in ("hybrid", "alone", "specialist", "either")] == [*counts, either]
        assert record["better"] == ("alone" if better == 3 else "specialist")
        best = max(counts[1:])
        cells = [
            Cell("", cluster, float(h - row[better]), float((a or s) - row[better]))
            for row in kept
            for _, cluster, h, a, s in [row]
        ]
        assert record["clusters"] == len({c.cluster for c in cells})
        assert record["reached"] == near((counts[0] - best) / (either - best))
        reason = "failed" if withheld(whole, rows) == "failed" else None
        assert record["withheld"] == reason
        if reason:
            assert record["interval"] is None
        else:
            # A share of a way may be behind its start or beyond its end, also where nothing here is.
            found = linear("ratio", cells)
            variance = sum(s**2 for s in found.shares.values())
            around = skewed(found.shares.values(), variance * found.unit, found.unit, found.freedom)
            low, high = around.ends(record["reached"])
            assert record["interval"] == near((max(0.0, low) if all(c.above >= 0 for c in cells) else low, high))
        ids = {key: [] for key in ("only_hybrid", "missed", "neither")}  # type: dict[str, list[str]]
        for identity, _, h, a, s in kept:
            if h and not (a or s):
                ids["only_hybrid"].append(identity)
            elif not h:
                ids["missed" if a or s else "neither"].append(identity)
        assert {key: sorted(record[key]) for key in ids} == {key: sorted(own) for key, own in ids.items()}
        assert record["failed"] == sorted(row[0]["id"] for row in rows if failed(row[0]))


def agreement(runs: Runs, records: Sequence[JsonObject]) -> None:
    """Right and wrong of both solvers of every pair."""
    assert [(r["a"], r["b"]) for r in records] == [(q["a"], q["b"]) for q in runs.report["questions"]]
    for record in records:
        rows = [row for row in aligned(runs, (record["a"], record["b"])) if not failed(row[0])]
        pairs = [(right(a), right(b)) for a, b in rows]
        table = Counter(pairs)
        n, wrong_a, wrong_b = len(rows), sum(not a for a, _ in pairs), sum(not b for _, b in pairs)
        both = table[False, False]
        assert (record["n"], record["wrong_a"], record["wrong_b"], record["both_wrong"]) == (n, wrong_a, wrong_b, both)
        assert record["expected"] == near(wrong_a * wrong_b / n)
        strata = [f"{row[0]['task']}/{len(runs.questions[row[0]['id']]['choices'])}" for row in rows]
        by_stratum = {
            name: [pair for pair, own in zip(pairs, strata, strict=True) if own == name] for name in sorted(set(strata))
        }
        sizes = {s: (sum(not a for a, _ in own), sum(not b for _, b in own), len(own)) for s, own in by_stratum.items()}
        within = sum(a * b / size for a, b, size in sizes.values())
        assert (record["expected_within"], record["ratio"]) == near((within, both / within))
        clusters = [unit(row[0]) for row in rows]
        if len(set(clusters)) == n:
            assert record["p"] == near(_exact(list(sizes.values()), both))
        else:
            assert record["p"] == near(_by_clusters(pairs, strata, sizes, clusters, both - within))
        point, ends = _kappa(pairs, clusters)
        assert record["kappa"] == near(point)
        assert record["kappa_interval"] == pytest.approx(ends, abs=1e-6)
        _check_ids(record, rows)
        assert record["failed"] == sorted(
            row[0]["id"] for row in aligned(runs, (record["a"], record["b"])) if failed(row[0])
        )
    check_holm(records)


def _check_ids(record: JsonObject, rows: Sequence[tuple[JsonObject, ...]]) -> None:
    expected: dict[str, set[str]] = defaultdict(set)
    for a, b in rows:
        answered = a["answer"] is not None and b["answer"] is not None
        if not right(a) and not right(b):
            expected["both_wrong_ids"].add(a["id"])
            if answered and a["answer"] == b["answer"]:
                expected["same_answer_ids"].add(a["id"])
        elif answered and right(a) != right(b):
            expected["helped_ids" if right(b) else "harmed_ids"].add(a["id"])
    for key in ("both_wrong_ids", "same_answer_ids", "helped_ids", "harmed_ids"):
        assert len(record[key]) == len(set(record[key]))
        assert set(record[key]) == expected[key]


def _exact(strata: Sequence[tuple[int, int, int]], both: int) -> float:
    """The chance of all sums of shared mistakes that are no likelier than the one found, margins as they are."""
    chances = {0: 1.0}
    for a, b, n in strata:
        added: dict[int, float] = defaultdict(float)
        for total, chance in chances.items():
            for shared in range(max(0, a + b - n), min(a, b) + 1):
                added[total + shared] += chance * float(hypergeom.pmf(shared, n, a, b))
        chances = added
    return min(1.0, sum(chance for chance in chances.values() if chance <= chances[both] * (1 + 1e-7)))


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
    return 2 * float(student.sf(abs(excess) / error, m - 1))


def _kappa(pairs: Sequence[tuple[bool, bool]], clusters: Sequence[str]) -> tuple[float, list[float]]:
    """Cohen's kappa, and its interval: half a question more in each cell, and how kappa moves with the cells."""
    every = Counter(pairs)
    cells = [(a, b) for a in (True, False) for b in (True, False)]

    def of(table: Mapping[tuple[bool, bool], float]) -> float:
        total = sum(table.values())
        agreed = sum(w for (a, b), w in table.items() if a == b) / total
        a, b = (sum(w for pair, w in table.items() if pair[place]) / total for place in (0, 1))
        chance = a * b + (1 - a) * (1 - b)
        return (agreed - chance) / (1 - chance)

    def slopes(table: Mapping[tuple[bool, bool], float]) -> dict[tuple[bool, bool], float]:
        step = 1e-4 * min(1.0, sum(table.values()))
        moved = [({**table, cell: table[cell] + step}, {**table, cell: table[cell] - step}) for cell in cells]
        return {cell: (of(up) - of(down)) / (2 * step) for cell, (up, down) in zip(cells, moved, strict=True)}

    seen = {cell: float(every[cell]) for cell in cells}
    point, moves = of(seen), slopes(seen)
    sums: dict[str, float] = defaultdict(float)
    for pair, cluster in zip(pairs, clusters, strict=True):
        sums[cluster] += moves[pair]
    m, effect = len(sums), 1.0
    if m < len(pairs):
        sizes = Counter(clusters)
        alike = sum(size**2 for size in sizes.values()) / len(pairs)
        squares = sum(s**2 for s in sums.values())
        trusted = squares**2 / sum(s**4 for s in sums.values())
        ratio = squares / sum(every[cell] * moves[cell] ** 2 for cell in cells)
        effect = (trusted * ratio + 0.25 * alike) / (trusted + 0.25)
    more = {cell: count / effect + 0.5 for cell, count in seen.items()}
    error = math.sqrt(sum(more[cell] * move**2 for cell, move in slopes(more).items()) * m / (m - 1))
    half, centre = float(student.ppf(0.975, m - 1)) * error, of(more)
    return point, [max(-1.0, min(point, centre - half)), min(1.0, max(point, centre + half))]
