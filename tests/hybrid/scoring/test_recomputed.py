"""Every number of `hybrid compare --json` once more, from the files of the runs, by code of its own.

What recomputes reads `scores.jsonl` and `questions.jsonl` and knows neither `hybrid.stats` nor `hybrid.scoring`: sums
in plain Python, Student's t from SciPy, derivatives by finite differences. A section gets its function in `RECOMPUTED`;
what is not in it must be in `WITHOUT_YET`, so that a new section is noticed.
"""

import itertools
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from scipy.optimize import brentq
from scipy.stats import hypergeom
from scipy.stats import t as student

from hybrid import compare

JsonObject = dict[str, Any]

WITHOUT_YET = {"noninferior", "evidence", "tool_use", "floor", "spread", "sampling"}
FAILED = {"not_recorded", "outage", "broken"}
RULES = ("chance", "wrong")
HEADLINE = {"blink": "accuracy_macro", "mvp_bench": "mAcc"}


class Cell(NamedTuple):
    """What a question, or a unit of several, adds: to which stratum, in which cluster, so much of so much."""

    stratum: str
    cluster: str
    above: float
    below: float = 1.0


class Runs(NamedTuple):
    """The files of the runs as they lie on disk: scores by solver and id, questions by id."""

    benchmark: str
    scores: Mapping[str, Mapping[str, JsonObject]]
    questions: Mapping[str, JsonObject]
    report: JsonObject


@pytest.fixture(scope="module", params=["blink", "mvp_bench"])
def runs(request: pytest.FixtureRequest, made_up_runs: Any, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """One comparison of the made-up runs of a benchmark."""
    folder = tmp_path_factory.mktemp(request.param)
    made = made_up_runs.write(folder, request.param, size=34, seed=5, failed=1)
    report = json.loads(json.dumps(compare(*made.paths).as_json()))
    scores = {}
    for path, suffix in zip(made.paths, ("", " [blank]", " [shuffled]"), strict=True):
        for file in sorted(path.glob("*/scores.jsonl")):
            scores[f"{file.parent.name}{suffix}"] = {row["id"]: row for row in _lines(file)}
    return Runs(request.param, scores, {row["id"]: row for row in _lines(made.real / "questions.jsonl")}, report)


def _lines(path: Path) -> list[JsonObject]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# What a row says.


def failed(row: JsonObject) -> bool:
    return row["outcome"] in FAILED


def credit(row: JsonObject, rule: str) -> float:
    """What the answer is worth; no answer is worth a guess, as the run was scored, or nothing."""
    return float(row["correct"]) if row["answer"] is not None or rule == "chance" else 0.0


def right(row: JsonObject) -> bool:
    return row["answer"] is not None and row["correct"] == 1


def unit(row: JsonObject) -> str:
    return row["cluster"] or str(row["id"]).split("#", maxsplit=1)[0]


# The benchmarks' metrics.


def metrics(benchmark: str, rows: Sequence[JsonObject], rule: str) -> dict[str, tuple[str, list[Cell]]]:
    """Cells and way of combining of every metric of some rows; a unit with a failed row is missing."""
    if benchmark == "blink":
        here = [row for row in rows if not failed(row)]
        macro = [Cell(row["task"], unit(row), credit(row, rule)) for row in here]
        return {
            "accuracy_macro": ("macro", macro),
            "accuracy_micro": ("ratio", [cell._replace(stratum="") for cell in macro]),
        }
    found: dict[str, list[list[JsonObject]]] = {}
    for name, wanted in {"low": {"level": "low"}, "high": {"level": "high"}, "multi": {}}.items():
        found[f"qAcc.{name}"] = _units(rows, wanted, ("question",), 2)
    levels_and_images = [("low", "level"), ("high", "level"), ("natural", "image"), ("manipulated", "image")]
    for name, group in levels_and_images:
        found[f"aAcc.{name}"] = _units(rows, {group: name}, ("id",), 1)
    found["aAcc.all"] = _units(rows, {}, ("id",), 1)
    for name in ("natural", "manipulated"):
        found[f"iAcc.{name}"] = _units(rows, {"image": name}, ("pair", "image"), 2)
    found["iAcc.all"] = _units(rows, {}, ("pair", "image"), 2)
    found["mAcc"] = _units(rows, {}, ("pair",), 4)
    return {
        name: ("ratio", [Cell("", unit(one[0]), math.prod(credit(row, rule) for row in one)) for one in units])
        for name, units in found.items()
    }


def _units(
    rows: Iterable[JsonObject], wanted: Mapping[str, str], keys: Sequence[str], size: int
) -> list[list[JsonObject]]:
    grouped: dict[tuple[str, ...], list[JsonObject]] = defaultdict(list)
    for row in rows:
        known = {**row["groups"], "id": row["id"]}
        if all(known[name] == value for name, value in wanted.items()):
            grouped[tuple(known[key] for key in keys)].append(row)
    return [one for one in grouped.values() if len(one) == size and not any(map(failed, one))]


def accuracy(rows: Iterable[JsonObject], rule: str) -> list[Cell]:
    return [Cell("", unit(row), credit(row, rule)) for row in rows if not failed(row)]


# Values, intervals and tests.


def value(how: str, cells: Sequence[Cell]) -> float:
    strata = _strata(cells)
    if how == "ratio":
        return sum(c.above for c in cells) / sum(c.below for c in cells)
    return sum(sum(c.above for c in own) / sum(c.below for c in own) for own in strata.values()) / len(strata)


def _strata(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    found: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        found[cell.stratum].append(cell)
    return found


class Linear(NamedTuple):
    """Shares of the clusters in the error, the weight of an effective cluster, degrees of freedom, and the strata."""

    shares: dict[str, float]
    unit: float
    freedom: float
    strata: list[tuple[float, float, float]]
    """Ratio, weight and effective number of clusters of each."""


def linear(how: str, cells: Sequence[Cell]) -> Linear:
    shares: dict[str, float] = defaultdict(float)
    strata, parts, sizes = _strata(cells), [], []
    told = []
    for own in strata.values():
        below = sum(c.below for c in own)
        weight = 1 / len(strata) if how == "macro" else below / sum(c.below for c in cells)
        ratio = sum(c.above for c in own) / below
        sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for c in own:
            sums[c.cluster][0] += c.above
            sums[c.cluster][1] += c.below
        assert len(sums) > 1
        for cluster, (above, of) in sums.items():
            shares[cluster] += weight / below * (above - ratio * of) / math.sqrt(1 - of / below)
        size = below**2 / sum(of**2 for _, of in sums.values())
        sizes.append(size)
        parts.append(weight**2 / size)
        told.append((ratio, weight, size))
    counted = len({c.cluster for c in cells if c.below > 0})
    satterthwaite = sum(parts) ** 2 / sum(p**2 / max(s - 1, 1) for p, s in zip(parts, sizes, strict=True))
    return Linear(shares, sum(parts), max(1.0, min(satterthwaite, counted - 1)), told)


def skewed(
    found: float, shares: Iterable[float], whole: float, share: float, freedom: float
) -> tuple[list[float], float]:
    """Ends and p value of a value by its clusters' shares, two differing clusters added."""
    shares = list(shares)
    variance = sum(s**2 for s in shares)
    total = variance + 2 * (sum(s**4 for s in shares) + 0.1 * whole**2) / (variance + 0.1 * whole)
    freedom = freedom * (total / variance) ** 2 if variance else 1e300
    kept = total / (1 + 2 * share) ** 2
    skew = sum(s**3 for s in shares) / kept
    q = float(student.ppf(0.975, freedom))
    down, up = max(0.0, -skew) * q * q / 2, max(0.0, skew) * q * q / 2
    reach = [math.sqrt(shift**2 + q * q * kept) + shift for shift in (down, up)]
    p = 2 * float(student.sf(abs(found) / math.sqrt(kept + max(0.0, -skew * found)), freedom))
    return [found - reach[0], found + reach[1]], p


def contrast(how: str, a: Sequence[Cell], b: Sequence[Cell]) -> JsonObject:
    of_a, of_b = linear(how, a), linear(how, b)
    shares = [of_b.shares[name] - of_a.shares[name] for name in of_a.shares]
    difference = value(how, b) - value(how, a)
    share = max(of_a.unit, of_b.unit)
    (low, high), p = skewed(difference, shares, share**2, share, min(of_a.freedom, of_b.freedom))
    return {"difference": difference, "interval": [max(-1.0, low), min(1.0, high)], "p": p}


def interval(how: str, cells: Sequence[Cell]) -> list[float]:
    """Wilson's for single rows of 0 and 1, else the score interval of the weighted mean of the strata's shares."""
    alone = len({c.cluster for c in cells}) == len(cells)
    if alone and len(_strata(cells)) == 1 and all(c.above in (0, 1) for c in cells):
        n, p, z = len(cells), value(how, cells), 1.959963984540054
        centre, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return [(centre - half) / (1 + z * z / n), (centre + half) / (1 + z * z / n)]
    found = linear(how, cells)
    squares = [s**2 for s in found.shares.values()]
    binomial = sum(w**2 * r * (1 - r) / size for r, w, size in found.strata)
    informative = sum(squares) ** 2 / sum(s**2 for s in squares) if any(squares) else 0.0
    effect = sum(squares) / binomial if binomial else 1.0
    effect = (informative * effect + 0.25) / (informative + 0.25)
    q = float(student.ppf(0.975, found.freedom))
    strata = [(r, w, size / effect) for r, w, size in found.strata]
    return [_lower(strata, q), 1 - _lower([(1 - r, w, size) for r, w, size in strata], q)]


def _lower(strata: Sequence[tuple[float, float, float]], q: float) -> float:
    """The lowest mean that a score test of the stratified shares does not reject, along the likeliest proportions."""
    if not any(r for r, _, _ in strata):
        return 0.0

    def restricted(pull: float) -> list[float]:
        """The root in 0..1 of r - p = pull * w / size * p (1 - p), for each stratum."""
        found = []
        for r, w, size in strata:
            k = pull * w / size
            found.append(r if k < 1e-12 else ((1 + k) - math.sqrt((1 + k) ** 2 - 4 * k * r)) / (2 * k))
        return found

    def excess(pull: float) -> float:
        ps = restricted(pull)
        mean = sum(w * r for r, w, _ in strata) - sum(w * p for p, (_, w, _) in zip(ps, strata, strict=True))
        spread = math.sqrt(sum(w * w / size * p * (1 - p) for p, (_, w, size) in zip(ps, strata, strict=True)))
        return mean - q * spread

    pull = float(brentq(excess, 1e-9, 1e9, xtol=1e-12, rtol=1e-14, maxiter=1000))
    return sum(w * p for p, (_, w, _) in zip(restricted(pull), strata, strict=True))


def holm(ps: Sequence[float]) -> list[float]:
    order = sorted(range(len(ps)), key=lambda place: ps[place])
    found = dict.fromkeys(order, 0.0)
    for rank, place in enumerate(order):
        before = found[order[rank - 1]] if rank else 0.0
        found[place] = max(before, min(1.0, ps[place] * (len(ps) - rank)))
    return [found[place] for place in range(len(ps))]


def check_holm(records: Sequence[JsonObject]) -> None:
    """The adjusted p values of one family."""
    tested = [record for record in records if record["p"] is not None]
    assert [record["p_holm"] for record in tested] == near(holm([record["p"] for record in tested]))
    assert all(record["p_holm"] is None for record in records if record["p"] is None)


def near(expected: Any) -> Any:
    return pytest.approx(expected, rel=1e-7, abs=1e-9)


# The same questions.


def aligned(runs: Runs, names: Sequence[str]) -> list[tuple[JsonObject, ...]]:
    """The rows of these solvers by question; what one of them failed or lacks is failed for all."""
    ids = dict.fromkeys(itertools.chain.from_iterable(runs.scores[name] for name in names))
    rows = []
    for identity in ids:
        own = [runs.scores[name].get(identity) for name in names]
        some = next(row for row in own if row is not None)
        lost = any(row is None or failed(row) for row in own)
        rows.append(tuple({**(row or some), **({"outcome": "outage"} if lost else {})} for row in own))
    return rows


def column(rows: Iterable[tuple[JsonObject, ...]], place: int) -> list[JsonObject]:
    return [row[place] for row in rows]


def by_task(rows: Iterable[tuple[JsonObject, ...]]) -> dict[str, list[tuple[JsonObject, ...]]]:
    found: dict[str, list[tuple[JsonObject, ...]]] = defaultdict(list)
    for row in rows:
        found[row[0]["task"]].append(row)
    return dict(sorted(found.items()))


def withheld(whole: Sequence[tuple[JsonObject, ...]], part: Sequence[tuple[JsonObject, ...]]) -> str | None:
    """Why nothing is tested. In these runs everybody has every question, so that a failed row is a lost one."""
    if any(sum(failed(row[0]) for row in rows) > 0.01 * len(rows) for rows in (whole, part)):
        return "failed"
    kept = [row for row in part if not failed(row[0])]
    return (
        "unanswered" if any(all(score["answer"] is None for score in one) for one in zip(*kept, strict=True)) else None
    )


def test_the_runs_have_what_is_recomputed(runs: Runs) -> None:
    """Without abstentions, unread replies, failures and all controls the tests below would prove little."""
    outcomes = Counter(row["outcome"] for rows in runs.scores.values() for row in rows.values())
    assert set(outcomes) == {"answered", "abstained", "unparsed", "outage"}
    assert set(runs.scores) == {"controller", "mllm", "specialist", "controller [blank]", "controller [shuffled]"}
    reasons = {row["withheld"] for row in runs.report["pairs"]}
    assert reasons == ({None, "failed"} if runs.benchmark == "blink" else {None})


# The solvers.


def test_solvers(runs: Runs) -> None:
    assert set(runs.report["solvers"]) == set(runs.scores)
    for name, told in runs.report["solvers"].items():
        rows = list(runs.scores[name].values())
        assert told["n"] == len(rows)
        assert told["failed"] == sum(map(failed, rows))
        assert told["outcomes"] == dict(Counter(row["outcome"] for row in rows))
        rule = told["abstain"]
        for form, by_rule in ((told, rule), (told["equal_credit"], "chance")):
            flat = _flat(form["metrics"])
            wanted = {key: value(*cells) for key, cells in metrics(runs.benchmark, rows, by_rule).items()}
            if any(map(failed, rows)):
                wrong = [{**row, "outcome": "unparsed"} if failed(row) else row for row in rows]
                counted = metrics(runs.benchmark, wrong, by_rule)
                wanted |= {f"with_failed.{key}": value(*cells) for key, cells in counted.items()}
            assert flat == near(wanted)
            for task, own in by_task([(row,) for row in rows]).items():
                cells = accuracy(column(own, 0), by_rule)
                lost = len(own) - len(cells)
                expected = {
                    "n": len(own),
                    "accuracy": near(value("ratio", cells)),
                    **({"failed": lost} if lost else {}),
                }
                assert form["tasks"][task] == expected
        for key, (how, cells) in metrics(runs.benchmark, rows, rule).items():
            assert told["intervals"][key][:2] == near(interval(how, cells)), key


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    flat: dict[str, float] = {}
    for name, inner in tree.items():
        flat |= _flat(inner, f"{prefix}{name}.") if isinstance(inner, dict) else {f"{prefix}{name}": inner}
    return flat


# Pairs.


def test_questions_that_pairs_share(runs: Runs) -> None:
    for told in runs.report["questions"]:
        rows = aligned(runs, (told["a"], told["b"]))
        lost = sum(failed(row[0]) for row in rows)
        assert (told["shared"], told["only_a"], told["only_b"], told["failed"]) == (len(rows), 0, 0, lost)


def test_every_pair(runs: Runs) -> None:
    names = {frozenset(pair) for pair in itertools.combinations(runs.scores, 2)}
    pairs = runs.report["pairs"]
    assert {frozenset((row["a"], row["b"])) for row in pairs} == names
    assert len({(row["a"], row["b"], row["metric"], row["group"]) for row in pairs}) == len(pairs)
    for told in pairs:
        whole = aligned(runs, (told["a"], told["b"]))
        part = whole if told["family"] != "tasks" else by_task(whole)[told["group"]]
        _check_difference(runs, told, whole, part)
        kept = [row for row in part if not failed(row[0])]
        answered = [row for row in kept if all(score["answer"] is not None for score in row)]
        verdicts = Counter((right(a), right(b)) for a, b in answered)
        counts = {
            "both_answered": len(answered),
            "helped": verdicts[False, True],
            "harmed": verdicts[True, False],
            "none_a": sum(a["answer"] is None for a, _ in kept),
            "none_b": sum(b["answer"] is None for _, b in kept),
            "failed": len(part) - len(kept),
        }
        assert {key: told[key] for key in counts} == counts
    tasks = len({row["task"] for row in runs.scores["mllm"].values()})
    shown = len(metrics(runs.benchmark, list(runs.scores["mllm"].values()), "wrong"))
    assert len(pairs) == len(names) * (shown + tasks)
    for family in ("headline", "metrics", "tasks"):
        check_holm([row for row in pairs if row["family"] == family])


def _check_difference(runs: Runs, told: JsonObject, whole: Sequence[Any], part: Sequence[Any]) -> None:
    sides = []
    for place in (0, 1):
        rows = column(part, place)
        cells = ("ratio", accuracy(rows, "chance"))
        sides.append(cells if told["family"] == "tasks" else metrics(runs.benchmark, rows, "chance")[told["metric"]])
    (how, a), (_, b) = sides
    assert (told["n"], told["clusters"]) == (len(a), len({c.cluster for c in a}))
    assert (told["value_a"], told["value_b"]) == near((value(how, a), value(how, b)))
    _check_test(told, contrast(how, a, b), withheld(whole, part))


def _check_test(told: JsonObject, expected: JsonObject, reason: str | None) -> None:
    assert told["difference"] == near(expected["difference"])
    assert told["withheld"] == reason
    if reason:
        assert (told["interval"], told["p"]) == (None, None)
    else:
        assert (told["interval"], told["p"]) == (near(expected["interval"]), near(expected["p"]))


# The sections.


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
            _check_test(part, contrast(a[0], a[1], b[1]), withheld(whole, rows))
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
            found = linear("ratio", cells)
            variance = sum(s**2 for s in found.shares.values())
            ends, _ = skewed(record["reached"], found.shares.values(), variance * found.unit, found.unit, found.freedom)
            assert record["interval"] == near(ends)
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
    """Cohen's kappa, its variance from how it moves with the weight of each cluster."""
    tables: dict[str, Counter[tuple[bool, bool]]] = defaultdict(Counter)
    for pair, cluster in zip(pairs, clusters, strict=True):
        tables[cluster][pair] += 1
    every = Counter(pairs)

    def of(moved: Mapping[str, float]) -> float:
        table = {pair: every[pair] + sum(more * tables[name][pair] for name, more in moved.items()) for pair in every}
        total = sum(table.values())
        agreed = sum(w for (a, b), w in table.items() if a == b) / total
        a, b = (sum(w for pair, w in table.items() if pair[place]) / total for place in (0, 1))
        chance = a * b + (1 - a) * (1 - b)
        return (agreed - chance) / (1 - chance)

    step = 1e-4
    moves = [(of({name: step}) - of({name: -step})) / (2 * step) for name in tables]
    m, point = len(moves), of({})
    half = float(student.ppf(0.975, m - 1)) * math.sqrt(sum(move**2 for move in moves) * m / (m - 1))
    return point, [max(-1.0, point - half), min(1.0, point + half)]


RECOMPUTED: Mapping[str, Callable[[Runs, Sequence[JsonObject]], None]] = {
    "gain": gain,
    "ceiling": ceiling,
    "agreement": agreement,
}
"""By section what recomputes its records and compares every number of them."""


@pytest.mark.parametrize("name", RECOMPUTED)
def test_section(runs: Runs, name: str) -> None:
    assert runs.report[name]
    RECOMPUTED[name](runs, runs.report[name])


def test_no_section_is_without_its_recomputation(runs: Runs) -> None:
    assert set(runs.report) - {"solvers", "questions", "pairs"} - set(RECOMPUTED) <= WITHOUT_YET
    assert not set(RECOMPUTED) & WITHOUT_YET
