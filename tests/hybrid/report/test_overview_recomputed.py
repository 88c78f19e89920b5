"""Every number of a report's overview once more, from the files of the runs, by code of its own (`tests/recomputed/`).

Charts are held against the rows of `scores.jsonl`, attempts and traces; the tables of the sections against the records
of the command that each section shows, once these were recomputed from the same files.
"""

import csv
import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from hybrid.cli import cli
from hybrid.report.collect import collect_paths
from hybrid.report.payload import Bars, Chart, Forest, Matrix, Overview, OverviewSection, Scatter, Stack
from hybrid.scoring.evidence import CLASSES
from hybrid.tables import Table, as_text
from tests.recomputed.pairs import Met, every_contest
from tests.recomputed.runs import (
    HEADLINE,
    JsonObject,
    Runs,
    accuracy,
    aligned,
    by_task,
    column,
    failed,
    lines,
    lose_traces,
    metrics,
    read_runs,
)
from tests.recomputed.sections import RECOMPUTED
from tests.recomputed.solvers import answers, guess, key
from tests.recomputed.sums import interval, near, value
from tests.recomputed.traces import CALLERS, calls, cases

PUBLISHED = Path(__file__).parents[3] / "hybrid" / "benchmarks"
BENCHMARKS = ("blink", "mvp_bench")
Rows = list[tuple[str, ...]]


@pytest.fixture(scope="module")
def made(made_up_runs: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Overview, Runs]]:
    """One report of two benchmarks with controls, repetitions, samples, a failed question and two lost traces."""
    folder, paths = tmp_path_factory.mktemp("report"), {}
    for benchmark in BENCHMARKS:
        runs = made_up_runs.write(folder, benchmark, size=34, seed=17, failed=1, repeats=3, samples=5)
        lose_traces(runs.real / "controller")
        paths[benchmark] = runs.paths
    pages = collect_paths([path for own in paths.values() for path in own])
    assert [one.key for one in pages.benchmarks] == list(BENCHMARKS)
    return {one.key: (one.overview, read_runs(one.key, paths[one.key], {})) for one in pages.benchmarks}


@pytest.fixture(scope="module", params=BENCHMARKS)
def both(request: pytest.FixtureRequest, made: Mapping[str, tuple[Overview, Runs]]) -> tuple[Overview, Runs]:
    """The overview of a benchmark next to its files."""
    return made[request.param]


@pytest.fixture(scope="module")
def numbers(both: tuple[Overview, Runs]) -> JsonObject:
    """What the command prints that the sections show."""
    (command,) = {one.command for one in both[0].sections if one.id.replace("-", "_") in RECOMPUTED}
    return json.loads(run(command))


@pytest.fixture(scope="module")
def contests(both: tuple[Overview, Runs]) -> list[Met]:
    """Every pair by every metric and within every task."""
    overview, runs = both
    return every_contest(runs, overview.pairs)


def run(command: str) -> str:
    """What a shown command prints; a trace that is lost costs no exit code."""
    program, *words = shlex.split(command)
    assert program == "hybrid"
    done = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def section(overview: Overview, identity: str) -> OverviewSection:
    (found,) = [one for one in overview.sections if one.id == identity]
    return found


def chart(overview: Overview, identity: str, kind: type[Chart]) -> Any:
    (found,) = [one for one in section(overview, identity).charts if isinstance(one, kind)]
    return found


# How numbers are printed.


def three(number: float | None) -> str:
    return "-" if number is None else f"{number:z.3f}"


def signed(number: float | None) -> str:
    return "-" if number is None else f"{number:+z.3f}"


def limits(found: Sequence[float] | None, decimals: int = 2) -> str:
    return "-" if found is None else f"[{found[0]:z.{decimals}f}, {found[1]:z.{decimals}f}]"


def p_value(p: float | None) -> str:
    return "-" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def out_of(k: float, n: int) -> str:
    return f"{k:.0f}/{n}" if abs(k - round(k)) < 1e-6 else f"{k:.1f}/{n}"


def texts(*cells: object) -> tuple[str, ...]:
    return tuple(map(str, cells))


def same_rows(table: Table, expected: Sequence[tuple[str, ...]]) -> None:
    assert sorted(table.rows) == sorted(expected), table.title


# The head of the page.


def test_cards(both: tuple[Overview, Runs]) -> None:
    overview, runs = both
    told = {card.name: (card.n, card.failed, card.open) for card in overview.solvers}
    expected = {name: (len(rows), sum(map(failed, rows.values())), 0) for name, rows in runs.scores.items()}
    assert told == expected
    (lost,) = [name for name, (_, some, _) in expected.items() if some]
    assert any(line.startswith(f"{lost}: 1 of {expected[lost][0]} questions failed") for line in overview.warnings)


def test_every_section_is_looked_at(both: tuple[Overview, Runs]) -> None:
    known = {"results", "differences", "tasks", "helped", "cost", "outcomes"}
    known |= {"published"} if both[1].benchmark == "blink" else set()
    known |= {name.replace("_", "-") for name in RECOMPUTED}
    assert {one.id for one in both[0].sections} == known


# How right.


def test_results(both: tuple[Overview, Runs]) -> None:
    overview, runs = both
    by_metric, by_each_task = section(overview, "results").tables
    same_rows(by_metric, list(_metric_rows(runs)))
    rows = []
    for solver, scores in runs.scores.items():
        for task, own in by_task([(row,) for row in scores.values()]).items():
            inside = [row for row in column(own, 0) if not failed(row)]
            cells, wrong = (accuracy(inside, rule) for rule in ("chance", "wrong"))
            k, none = sum(cell.above for cell in cells), sum(row["answer"] is None for row in inside)
            ends, second = limits(interval("ratio", cells)), three(value("ratio", wrong))
            first = three(value("ratio", cells))
            rows.append(texts(task, solver, out_of(k, len(cells)), first, ends, none, second))
    same_rows(by_each_task, rows)


def _metric_rows(runs: Runs) -> Iterator[tuple[str, ...]]:
    for solver, scores in runs.scores.items():
        rows = list(scores.values())
        told = {"": rows}
        if any(map(failed, rows)):
            told["with_failed."] = [{**row, "outcome": "unparsed"} if failed(row) else row for row in rows]
        for prefix, counted in told.items():
            chance, wrong = (metrics(runs.benchmark, counted, rule) for rule in ("chance", "wrong"))
            for name, cells in chance.items():
                if not prefix or name == HEADLINE[runs.benchmark]:
                    ends, second = limits(interval(*cells)), three(value(*wrong[name]))
                    yield texts(f"{prefix}{name}", solver, len(cells[1]), three(value(*cells)), ends, second)


def test_differences(both: tuple[Overview, Runs], contests: list[Met]) -> None:
    overview = both[0]
    found = section(overview, "differences")
    main = {frozenset(("controller", other)) for other in ("mllm", "specialist", *CALLERS[1:3])}
    headline, tasks = (one for one in found.charts if isinstance(one, Forest))
    for forest, family, pairs in ((headline, "headline", None), (tasks, "tasks", main)):
        shown = [met for met in contests if met.family == family and (not pairs or {frozenset(met[:2])} <= pairs)]
        told = {(row.a, row.b, row.group): row for row in forest.rows}
        assert len(told) == len(forest.rows)
        assert set(told) == {(met.a, met.b, met.group) for met in shown}
        for met in shown:
            row = told[met.a, met.b, met.group]
            low, high = met.interval or (None, None)
            assert (row.value, row.n) == (near(met.difference), met.n)
            told_of_it = (row.low, row.high, row.p_holm)
            for one, other in zip(told_of_it, (low, high, met.p_holm), strict=True):
                assert one == (None if other is None else near(other))
    for table, family in zip(found.tables, ("headline", "metrics", "tasks"), strict=True):
        same_rows(table, [_paired_row(met) for met in contests if met.family == family])


def _paired_row(met: Met) -> tuple[str, ...]:
    tested = (limits(met.interval, 3), p_value(met.p), p_value(met.p_holm))
    row = texts(f"{met.a} -> {met.b}", met.group, met.n, signed(met.difference), *tested)
    return row if met.family == "metrics" else (*row, *texts(*met.counts))


def test_bars(both: tuple[Overview, Runs]) -> None:
    overview, runs = both
    bars = chart(overview, "tasks", Bars)
    expected = {}
    for solver, scores in runs.scores.items():
        rows, head = list(scores.values()), HEADLINE[runs.benchmark]
        expected[head, solver] = metrics(runs.benchmark, rows, "chance")[head]
        for task, own in by_task([(row,) for row in rows]).items():
            expected[task, solver] = ("ratio", accuracy(column(own, 0), "chance"))
    told = {(row.task, row.solver): row for row in bars.rows}
    assert len(told) == len(bars.rows)
    assert set(told) == set(expected)
    for place, (how, cells) in expected.items():
        row = told[place]
        assert (row.n, row.value) == (len(cells), near(value(how, cells)))
        assert [row.low, row.high] == near(interval(how, cells))


def test_marks(both: tuple[Overview, Runs]) -> None:
    """Chance from the questions; people and models from the printed cells."""
    overview, runs = both
    every, head = list(runs.scores["mllm"].values()), HEADLINE[runs.benchmark]
    shown = [head, *by_task([(row,) for row in every])]
    guessed = [{**row, "correct": guess(runs, [row["id"]]), "answer": "?"} for row in every]
    expected = [(head, "uniform guess", "chance", value(*metrics(runs.benchmark, guessed, "chance")[head]))]
    for task in shown[1:]:
        asked = [runs.questions[row["id"]] for row in every if row["task"] == task]
        most = max(Counter(map(key, asked)).values())
        expected.append((task, "uniform guess", "chance", sum(1 / len(answers(q)) for q in asked) / len(asked)))
        expected.append((task, "most frequent answer", "chance", most / len(asked)))
    for cell in printed(runs.benchmark):
        task = next((n for n in (cell["metric"].removeprefix("accuracy."), cell["metric"]) if n in shown), None)
        if task is not None:
            kind = "human" if cell["kind"] == "human" else "published"
            expected.append((task, cell["who"], kind, float(cell["value"]) / _unit_of(cell)))
    told = sorted((mark.task, mark.label, mark.kind, mark.value) for mark in bars_of(overview).marks)
    wanted = sorted(set(expected))
    assert [mark[:3] for mark in told] == [mark[:3] for mark in wanted]
    assert [mark[3] for mark in told] == near([mark[3] for mark in wanted])


def bars_of(overview: Overview) -> Bars:
    found = chart(overview, "tasks", Bars)
    assert isinstance(found, Bars)
    return found


def printed(benchmark: str) -> list[dict[str, str]]:
    with (PUBLISHED / benchmark / "published.csv").open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["split"] == "val"]


def _unit_of(cell: Mapping[str, str]) -> float:
    return 1.0 if cell["note"].startswith("fraction") else 100.0


def test_published(both: tuple[Overview, Runs]) -> None:
    overview, runs = both
    if runs.benchmark != "blink":
        pytest.skip("nothing is printed of this split")
    measured = {name for rows in runs.scores.values() for name in metrics(runs.benchmark, list(rows.values()), "wrong")}
    measured |= {row["task"] for row in runs.scores["mllm"].values()}
    cells = [float(cell["value"]) for cell in printed(runs.benchmark) if cell["metric"] in measured]
    shown = [
        float(re.sub(r" \[\d+\]$", "", cell))
        for table in section(overview, "published").tables
        for row in table.rows
        for cell in row[1:]
        if row[0] != "questions" and cell != "-"
    ]
    assert sorted(shown) == near(sorted(cells))


# Counts with ids.


def verdict(row: JsonObject) -> str:
    return "no answer" if row["answer"] is None else "right" if row["correct"] == 1 else "wrong"


def test_help_and_harm(both: tuple[Overview, Runs]) -> None:
    overview, runs = both
    named = {("wrong", "right"): "helped", ("right", "wrong"): "harmed"}
    expected = {}
    for a, b in overview.pairs:
        rows = [row for row in aligned(runs, (a, b)) if not failed(row[0])]
        for x in ("right", "wrong", "no answer"):
            for y in ("right", "wrong", "no answer"):
                ids = sorted(of_a["id"] for of_a, of_b in rows if (verdict(of_a), verdict(of_b)) == (x, y))
                expected[f"{a} -> {b}", f"{a}: {x}", f"{b}: {y}"] = (len(ids), ids, named.get((x, y), ""))
    same_cells(chart(overview, "helped", Matrix), expected)


def same_cells(matrix: Matrix, expected: Mapping[tuple[str, str, str], tuple[int, list[str], str]]) -> None:
    told = {(cell.panel, cell.row, cell.column): (cell.n, sorted(cell.ids), cell.name) for cell in matrix.cells}
    assert len(told) == len(matrix.cells)
    assert told == expected


def test_evidence_matrix(both: tuple[Overview, Runs]) -> None:
    overview, runs = both
    word = {True: "right", False: "wrong"}
    matrix, grouped = chart(overview, "evidence", Matrix), {}
    for case in cases(runs):
        where = f"controller, where mllm is {word[case.alone]}", f"finding {case.finding}"
        grouped.setdefault((*where, f"controller {word[case.hybrid]}", case.name), []).append(case.row["id"])
    told = {(c.panel, c.row, c.column, c.name): sorted(c.ids) for c in matrix.cells}
    assert told == {place: sorted(ids) for place, ids in grouped.items()}
    assert all(cell.n == len(cell.ids) for cell in matrix.cells)


def test_stacks(both: tuple[Overview, Runs]) -> None:
    overview, runs = both
    expected = Counter(
        (solver, "(no such tool)" if call["fault"] == "unknown_tool" else call["name"])
        for solver in CALLERS
        for identity, row in runs.scores[solver].items()
        if not failed(row) and not isinstance(made := calls(runs, solver, identity), str)
        for call in made
    )
    assert {(p.solver, p.part): p.n for p in chart(overview, "tool-use", Stack).parts} == expected
    outcomes = Counter((solver, row["outcome"]) for solver, rows in runs.scores.items() for row in rows.values())
    assert {(p.solver, p.part): p.n for p in chart(overview, "outcomes", Stack).parts} == outcomes


# What it cost.


def test_cost(both: tuple[Overview, Runs]) -> None:
    overview, runs = both
    scatter = chart(overview, "cost", Scatter)
    assert (scatter.x_label, scatter.y_label) == ("tokens per question", HEADLINE[runs.benchmark])
    assert sorted(dot.solver for dot in scatter.dots) == sorted(runs.scores)
    for dot in scatter.dots:
        usage = [each["reply"]["usage"] for line in attempts(runs, dot.solver) for each in line["exchanges"]]
        spent = sum(one["input_tokens"] + one["output_tokens"] for one in usage)
        how, cells = metrics(runs.benchmark, list(runs.scores[dot.solver].values()), "chance")[scatter.y_label]
        assert (dot.x, dot.y) == near((spent / len(usage), value(how, cells)))
        assert [dot.low, dot.high] == near(interval(how, cells))
    (table,) = section(overview, "outcomes").tables
    kinds = ["answered", "abstained", "unparsed", "outage"]
    assert list(table.names[1:5]) == kinds
    same_rows(table, [_spent_row(runs, solver, kinds) for solver in runs.scores])


def attempts(runs: Runs, solver: str) -> list[JsonObject]:
    return lines(runs.folders[solver] / "attempts.jsonl")


def _spent_row(runs: Runs, solver: str, kinds: Sequence[str]) -> tuple[str, ...]:
    made = attempts(runs, solver)
    usage = [each["reply"]["usage"] for line in made for each in line["exchanges"]]
    names = ("model_calls", "tool_calls", "tool_faults", "input_tokens", "output_tokens")
    sums = [f"{sum(one[name] for one in usage):,}" for name in names]
    busy, end, wall = sum(one["seconds"] for one in usage), float("-inf"), 0.0
    for line in sorted(made, key=lambda line: float(line["started"])):
        wall += max(0.0, line["started"] + line["seconds"] - max(end, line["started"]))
        end = max(end, line["started"] + line["seconds"])
    counts = Counter(row["outcome"] for row in runs.scores[solver].values())
    cost = "-" if any(one["cost_usd"] is None for one in usage) else f"{sum(one['cost_usd'] for one in usage):.4f}"
    return texts(solver, *(counts[kind] for kind in kinds), *sums, f"{busy:,.1f} s", f"{wall:,.1f} s", cost)


# The sections: the shown command gives records, which are those of the files, and the tables print them.


@pytest.mark.parametrize("name", RECOMPUTED)
def test_section(both: tuple[Overview, Runs], numbers: JsonObject, name: str) -> None:
    overview, runs = both
    told = section(overview, name.replace("_", "-"))
    own = runs._replace(report=numbers)
    RECOMPUTED[name](own, numbers[name])
    expected = PRINTED[name](runs, numbers[name])
    assert len(told.tables) == len(expected)
    for table, rows in zip(told.tables, expected, strict=True):
        same_rows(table, rows)


def _noninferior(runs: Runs, records: Sequence[JsonObject]) -> list[Rows]:
    rows = []
    for one in records:
        shared, ends = aligned(runs, (one["against"], one["hybrid"])), None
        values = [value(*metrics(runs.benchmark, column(shared, n), "chance")[one["metric"]]) for n in (0, 1)]
        if one["interval"] is not None:
            ends = tuple(one["interval"])
        tested = (signed(one["difference"]), limits(ends, 3), p_value(one["p"]), one["verdict"])
        names = (one["hybrid"], one["against"], one["metric"])
        rows.append(texts(*names, one["n"], *map(three, values), *tested))
    return [rows]


def _gain(runs: Runs, records: Sequence[JsonObject]) -> list[Rows]:
    overall: Rows = []
    by_group: Rows = []
    for one in records:
        by_rule = {(part["part"], part["none"]): part for part in one["parts"]}
        names = list(dict.fromkeys(part["part"] for part in one["parts"]))
        if one["group"] == "all tasks":
            for name in names:
                first, second = by_rule[name, "chance"], by_rule[name, "wrong"]
                tested = (limits(first["interval"], 3), p_value(first["p"]), p_value(first["p_holm"]))
                other = (signed(second["difference"]), limits(second["interval"], 3))
                overall.append(texts(one["hybrid"], name, one["n"], signed(first["difference"]), *tested, *other))
        elif "gain" in names:
            parts = [by_rule[name, "chance"] for name in ("gain", "presence", "content")]
            cells = [
                signed(part["difference"]) + (f" {limits(part['interval'])}" if part["interval"] else "")
                for part in parts
            ]
            by_group.append(texts(one["hybrid"], one["group"], one["n"], *cells))
    return [overall, by_group]


def _ceiling(runs: Runs, records: Sequence[JsonObject]) -> list[Rows]:
    def row(one: JsonObject) -> tuple[str, ...]:
        n = one["n"]
        parts = [
            three(one[f"right_{name}"] / n) + ("*" if one["better"] == name else " ")
            for name in ("alone", "specialist")
        ]
        ways = (three(one["right_either"] / n), f"{one['reached']:z.2f}", limits(one["interval"]))
        ids = (len(one["only_hybrid"]), len(one["missed"]))
        return texts(one["hybrid"], one["group"], n, three(one["right_hybrid"] / n), *parts, *ways, *ids)

    whole = [row(one) for one in records if one["group"] == "all tasks"]
    return [whole, [row(one) for one in records if one["group"] != "all tasks"]]


def _evidence(runs: Runs, records: Sequence[JsonObject]) -> list[Rows]:
    cells = [one for one in records if "class" in one]
    whole = [one for one in cells if not one["group"]]
    classes = []
    for name, words in CLASSES.items():
        own = [one for one in whole if one["class"] == name]
        helped = sum(one["n"] for one in own if one["hybrid_right"] and not one["alone_right"])
        harmed = sum(one["n"] for one in own if one["alone_right"] and not one["hybrid_right"])
        classes.append(
            texts(name, words, sum(one["n"] for one in own), helped, harmed, sum(one["as_found"] for one in own))
        )
    findings = ("right", "wrong", "none", "unread")
    crossed: Counter[tuple[bool, str, bool]] = Counter()
    for one in whole:
        crossed[one["alone_right"], one["finding"], one["hybrid_right"]] += one["n"]
    grid = [
        texts("right" if alone else "wrong", finding, crossed[alone, finding, True], crossed[alone, finding, False])
        for alone in (True, False)
        for finding in findings
    ]
    rated = []
    for task in dict.fromkeys(one["group"] for one in cells):
        inside = [one for one in cells if one["group"] == task]
        counts = [sum(one["n"] for one in inside if one["finding"] == finding) for finding in findings]
        shown = []
        for name in ("adoption", "over-trust"):
            one = next((r for r in records if r["group"] == task and r.get("rate") == name), None)
            ends = one["interval"] if one and one["n"] else None
            shown += [out_of(one["k"], one["n"]) if one else "0/0", three(one and one["value"]), limits(ends)]
        rated.append(texts(task or "all", sum(counts), *counts, *shown))
    return [classes, grid, rated]


def _tool_use(runs: Runs, records: Sequence[JsonObject]) -> list[Rows]:
    used = [one for one in records if "tool" in one]
    faults = ("unknown_tool", "unknown_image", "bad_arguments", "tool_error", "timeout", "absent")

    def judged(one: JsonObject) -> tuple[str, str]:
        return out_of(one["right"], one["n"]), out_of(one["right_without"], one["n_without"])

    solvers, tools, tasks = [], [], []
    for one in used:
        if not one["tool"] and not one["group"]:
            own = [x for x in used if x["solver"] == one["solver"] and x["tool"] and not x["group"]]
            first = max(own, key=lambda x: int(x["first"]))
            mostly = f"{first['tool']} {first['first']}/{one['questions']}"
            counts = (one["asked"], one["questions"], one["calls"], f"{one['calls'] / one['asked']:.2f}", one["most"])
            solvers.append(texts(one["solver"], *counts, mostly, *judged(one)))
        elif one["tool"] and not one["group"]:
            by_fault = [one["faults"].get(fault, 0) for fault in faults]
            spent = f"{one['seconds']:.3f}"
            tools.append(
                texts(one["solver"], one["tool"], one["questions"], one["calls"], *by_fault, spent, *judged(one))
            )
        elif one["tool"]:
            counts = (
                one["asked"],
                one["questions"],
                one["calls"],
                sum(one["faults"].values()) - one["faults"].get("absent", 0),
            )
            tasks.append(texts(one["solver"], one["group"], one["tool"], *counts, *judged(one)))
    return [solvers, tools, tasks] if runs.benchmark == "blink" else [solvers, tools]


def _agreement(runs: Runs, records: Sequence[JsonObject]) -> list[Rows]:
    rows = []
    for one in records:
        counts = (one["n"], one["wrong_a"], one["wrong_b"], one["both_wrong"])
        expected = (f"{one['expected']:.1f}", f"{one['expected_within']:.1f}", f"{one['ratio']:.2f}")
        tested = (p_value(one["p"]), p_value(one["p_holm"]), f"{one['kappa']:z.2f}", limits(one["kappa_interval"]))
        rows.append(texts(f"{one['a']}, {one['b']}", *counts, *expected, *tested))
    return [rows]


def _floor(runs: Runs, records: Sequence[JsonObject]) -> list[Rows]:
    rows: dict[str, Rows] = {"task": [], "metric": []}
    for one in records:
        kind, often = ("task" if "task" in one else "metric"), one["most_frequent"]
        above = [one["solvers"][name] for name in runs.first]
        shown = [signed(each["difference"]) + ("*" if each["excludes_guess"] else "") for each in above]
        constant = [often["answer"], three(often["share"])] if often else []
        rows[kind].append(texts(one[kind], one["n"], three(one["guess"]), *constant, *shown))
    return [rows["metric"], rows["task"]]


def _named(one: JsonObject) -> str:
    return one["group"] or f"all, {one['metric']}"


def _spread(runs: Runs, records: Sequence[JsonObject]) -> list[Rows]:
    return [
        [
            texts(
                _named(one),
                one["n"],
                *map(three, one["values"]),
                three(one["mean"]),
                three(one["sd"]),
                f"{one['least']:z.3f} to {one['greatest']:z.3f}",
                limits(one["interval"], 3),
                three(one["changed"] / one["judged"]),
            )
            for one in record["quantities"]
        ]
        for record in records
    ]


def _sampling(runs: Runs, records: Sequence[JsonObject]) -> list[Rows]:
    names = {0.0: "above 0% to 50%", 0.5: "above 50% to 75%", 0.75: "above 75%, not all", 0.999: "all agree"}
    found = []
    for record in records:
        votes = [
            texts(
                *(_named(one), one["n"], three(one["vote"]), three(one["single_sample"])),
                *(signed(one["vote"] - one["single_sample"]), three(one["best"])),
            )
            for one in record["quantities"]
        ]
        shares = [
            texts(
                *(names[one["above"]], one["n"], three(one["share"]), three(one["claimed"])),
                *(three(one["accuracy"]), limits(one["interval"])),
            )
            for one in record["by_share"]
        ]
        found += [votes, shares]
    return found


PRINTED: Mapping[str, Callable[[Runs, Sequence[JsonObject]], list[Rows]]] = {
    "noninferior": _noninferior,
    "gain": _gain,
    "ceiling": _ceiling,
    "evidence": _evidence,
    "tool_use": _tool_use,
    "agreement": _agreement,
    "floor": _floor,
    "spread": _spread,
    "sampling": _sampling,
}
"""By section the rows of its tables, from its records."""


# The commands of the other sections.


def test_every_command_parses(both: tuple[Overview, Runs]) -> None:
    for one in both[0].sections:
        program, name, *words = shlex.split(one.command)
        known = cli.get_command(click.Context(cli), name)
        assert program == "hybrid"
        assert known is not None
        known.make_context(name, words)


def test_the_command_of_the_charts_gives_their_numbers(made: Mapping[str, tuple[Overview, Runs]]) -> None:
    overview, _ = made["mvp_bench"]
    (command,) = {section(overview, name).command for name in ("tasks", "helped", "cost")}
    told = {one["id"]: one for one in json.loads(run(command))["mvp_bench"]["sections"]}
    for one in overview.sections:
        assert told[one.id]["charts"] == json.loads(json.dumps([asdict(chart) for chart in one.charts])), one.id
        assert [table["rows"] for table in told[one.id]["tables"]] == [
            [list(row) for row in table.rows] for table in one.tables
        ]


def test_the_command_of_tables_prints_them(made: Mapping[str, tuple[Overview, Runs]]) -> None:
    overview, _ = made["blink"]
    printed_by = run(section(overview, "published").command)
    for name in ("results", "outcomes", "published"):
        for table in section(overview, name).tables:
            assert as_text(table) in printed_by
    assert section(overview, "published").command == f"{section(overview, 'results').command} --published"
    assert section(overview, "outcomes").command == section(overview, "results").command


def test_the_numbers_of_differences_are_those_of_their_command(
    both: tuple[Overview, Runs], numbers: JsonObject, contests: list[Met]
) -> None:
    assert section(both[0], "differences").command == section(both[0], "gain").command
    told = {}
    for row in numbers["pairs"]:
        place = row["group"] if row["family"] == "tasks" else row["metric"]
        told[row["a"], row["b"], row["family"], place] = row
    assert len(told) == len(numbers["pairs"]) == len(contests)
    for met in contests:
        row = told[met.a, met.b, met.family, met.group]
        assert (row["n"], row["difference"]) == (met.n, near(met.difference))
        assert row["p_holm"] == (None if met.p_holm is None else near(met.p_holm))
