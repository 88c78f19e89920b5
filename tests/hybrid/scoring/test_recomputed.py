"""Every number of `hybrid compare --json` once more, from the files of the runs, by code of its own.

What recomputes (`tests/recomputed/`) reads `scores.jsonl`, `questions.jsonl`, attempts and traces and knows neither
`hybrid.stats` nor `hybrid.scoring`: sums in plain Python, Student's t from SciPy, derivatives by finite differences. A
section gets its function in `RECOMPUTED`; one without it is noticed.
"""

import itertools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from hybrid import compare
from tests.recomputed.pairs import check_test
from tests.recomputed.runs import (
    JsonObject,
    Runs,
    accuracy,
    aligned,
    by_task,
    column,
    failed,
    lose_traces,
    metrics,
    read_runs,
    right,
    withheld,
)
from tests.recomputed.sections import RECOMPUTED
from tests.recomputed.sums import check_holm, contrast, interval, near, value
from tests.recomputed.traces import CLASS, cases


@pytest.fixture(scope="module", params=["blink", "mvp_bench"])
def runs(request: pytest.FixtureRequest, made_up_runs: Any, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """One comparison of the made-up runs of a benchmark."""
    folder = tmp_path_factory.mktemp(request.param)
    made = made_up_runs.write(folder, request.param, size=34, seed=17, failed=1, repeats=3, samples=5)
    lose_traces(made.real / "controller")
    report = json.loads(json.dumps(compare(*made.paths).as_json()))
    return read_runs(request.param, made.paths, report)


def test_the_runs_have_what_is_recomputed(runs: Runs) -> None:
    """Without abstentions, unread replies, failures and all controls the tests below would prove little."""
    outcomes = Counter(row["outcome"] for rows in runs.scores.values() for row in rows.values())
    assert set(outcomes) == {"answered", "abstained", "unparsed", "outage"}
    assert set(runs.first) == {"controller", "mllm", "specialist", "controller [blank]", "controller [shuffled]"}
    assert {case.name for case in cases(runs)} >= {"unread", "no call", "wrong tool", "no finding", *CLASS.values()}
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
    names = {frozenset(pair) for pair in itertools.combinations(runs.first, 2)}
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
    check_test(told, contrast(how, a, b), withheld(whole, part))


@pytest.mark.parametrize("name", RECOMPUTED)
def test_section(runs: Runs, name: str) -> None:
    assert runs.report[name]
    RECOMPUTED[name](runs, runs.report[name])


def test_no_section_is_without_its_recomputation(runs: Runs) -> None:
    assert set(runs.report) - {"solvers", "questions", "pairs"} == set(RECOMPUTED)
