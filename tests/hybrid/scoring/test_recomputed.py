"""Every row of `hybrid compare --json` recomputed from the files of the runs by independent code.

The recomputation (`tests/recomputed/`) reads `scores.jsonl`, `questions.jsonl` and attempts and uses neither
`hybrid.stats` nor `hybrid.scoring`: sums in plain Python, Student's t from SciPy. A section's function is in
`RECOMPUTED`; a section without one fails a test.
"""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from hybrid import compare
from hybrid.plugins.registry import names
from tests.recomputed.rows import UNTESTED, same_rows
from tests.recomputed.runs import (
    JsonObject,
    Runs,
    accuracy,
    failed,
    metrics,
    read_runs,
    solver_folders,
    tasks_of,
    with_failed,
)
from tests.recomputed.sections import RECOMPUTED
from tests.recomputed.sums import interval, value
from tests.recomputed.traces import CLASS, cases

# Sections with tests of their own: these runs are of one model and have no cells of a study.
ELSEWHERE = {"models", "effects", "pooled", "price", "places"}
Compared = tuple[Runs, JsonObject]


def near(expected: Any) -> Any:
    return pytest.approx(expected, rel=1e-7, abs=1e-9)


@pytest.fixture(
    scope="module",
    params=[
        ("blink", "guess"),
        ("blink", "wrong"),
        pytest.param(("mvp_bench", "guess"), marks=pytest.mark.system),
        pytest.param(("mvp_bench", "wrong"), marks=pytest.mark.system),
    ],
    ids="-".join,
)
def compared(request: pytest.FixtureRequest, synthetic_runs: Any, tmp_path_factory: pytest.TempPathFactory) -> Compared:
    """The synthetic runs of a benchmark, and the report of their comparison under one rule for missing answers.

    A quarter of the MLLM's replies cannot be read, and the specialist abstains.
    """
    benchmark, rule = request.param
    folder = tmp_path_factory.mktemp(benchmark)
    run = synthetic_runs.write(folder, benchmark, size=34, seed=17, failed=1, repeats=3, samples=5, unreadable=0.25)
    report = json.loads(json.dumps(compare(*run.paths, unanswered=rule).as_json()))
    return read_runs(benchmark, solver_folders(run.paths), rule), report


@pytest.mark.system
def test_every_number_follows_the_rule_that_the_head_names(compared: Compared) -> None:
    runs, report = compared
    assert report["unanswered"] == runs.rule
    assert {row.get("none", runs.rule) for row in report["results"]} == {runs.rule}
    assert {item["unanswered"] for item in report["solvers"].values()} == {runs.rule}


@pytest.mark.system
def test_the_runs_have_what_is_recomputed(compared: Compared) -> None:
    """The runs have abstentions, unread replies, failures and all controls; without these the tests below would prove
    little."""
    runs, report = compared
    outcomes = Counter(row["outcome"] for rows in runs.scores.values() for row in rows.values())
    assert set(outcomes) == {"answered", "abstained", "unparsed", "outage"}
    assert set(runs.first) == {"controller", "mllm", "specialist", "controller [blank]", "controller [shuffled]"}
    assert {case.name for case in cases(runs)} >= {"no call", "wrong tool", "no finding", *CLASS.values()}
    # One failed question is more than 1 % of the few questions in a part of section `answered`.
    values = [row for row in report["results"] if row["quantity"] == "difference" and row["section"] != "answered"]
    untested = {row.get("note") for row in values} & {*UNTESTED.values()}
    assert untested == ({UNTESTED["failed"]} if runs.benchmark == "blink" else set())


def test_no_section_is_without_its_recomputation(compared: Compared) -> None:
    assert set(names("hybrid.scoring.sections")) == set(RECOMPUTED)
    # Section `price` has rows here, but its own test checks them by brute force.
    assert {row["section"] for row in compared[1]["results"]} - {"price"} == set(RECOMPUTED) - ELSEWHERE


@pytest.mark.parametrize("name", [name for name in RECOMPUTED if name not in ELSEWHERE])
def test_section(compared: Compared, name: str) -> None:
    runs, report = compared
    if (runs.benchmark, name) == ("mvp_bench", "answered"):
        pytest.skip("so few pairs of pictures are whole in a part that the test is exact, which is not recomputed")
    # `test_headline_claims.py` and `test_rows_without_claim.py` check why a difference supports no claim.
    rows = [{**row} for row in report["results"] if row["section"] == name]
    for row in rows:
        row.pop("no_claim", None)
    if name == "selection":
        rows = [row for row in rows if not row["quantity"].startswith("effect of output") or row["n"] >= 30]
    if name == "headroom":
        # tests/hybrid/scoring/test_conclusion_review.py simulates the least detectable differences.
        rows = [row for row in rows if not row["quantity"].startswith("least detectable")]
    same_rows(runs, rows, RECOMPUTED[name](runs))


def test_models(synthetic_runs: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Section `models` is recomputed for two models that answer the same questions, alone and with tools."""
    folder = tmp_path_factory.mktemp("models")
    runs = [
        synthetic_runs.write(folder / model, size=12, seed=seed, model=model) for seed, model in enumerate(("a", "b"))
    ]
    paths = [run.real / word for run in runs for word in ("mllm", "controller")]
    report = json.loads(json.dumps(compare(*paths).as_json()))
    of_two = read_runs("blink", {f"{path.name} [{path.parts[-3]}]": path for path in paths})
    rows = [row for row in report["results"] if row["section"] == "models"]
    assert len(rows) == len(paths) * 4
    same_rows(of_two, rows, RECOMPUTED["models"](of_two))


def test_solvers(compared: Compared) -> None:
    """The objects of `hybrid score --json` are also in `compare --json`."""
    runs, report = compared
    assert set(report["solvers"]) == set(runs.scores)
    for name, text in report["solvers"].items():
        rows = list(runs.scores[name].values())
        assert (text["n"], text["failed"]) == (len(rows), sum(map(failed, rows)))
        assert text["outcomes"] == dict(Counter(row["outcome"] for row in rows))
        rule = text["unanswered"]
        by_metric = {key: value(*cells) for key, cells in metrics(runs.benchmark, rows, rule).items()}
        if any(map(failed, rows)):
            counts = metrics(runs.benchmark, with_failed(rows), rule)
            by_metric |= {f"with_failed.{key}": value(*cells) for key, cells in counts.items()}
        assert _flat(text["metrics"]) == near(by_metric)
        for task, current in tasks_of(rows).items():
            cells = accuracy(current, rule)
            missing = len(current) - len(cells)
            expected = {"n": len(current), "accuracy": near(value("ratio", cells))}
            assert text["tasks"][task] == {**expected, **({"failed": missing} if missing else {})}
        for key, (mode, cells) in metrics(runs.benchmark, rows, rule).items():
            assert text["intervals"][key][:2] == near(interval(mode, cells)), key


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    flat: dict[str, float] = {}
    for name, inner in tree.items():
        flat |= _flat(inner, f"{prefix}{name}.") if isinstance(inner, dict) else {f"{prefix}{name}": inner}
    return flat
