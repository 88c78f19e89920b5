"""The files of runs on disk, and the content of their rows, without `hybrid.stats` or `hybrid.scoring`.

runs = read_runs("blink", solver_folders(made.paths))
runs.scores["mllm"]["val_Jigsaw_1"]["correct"]
"""

import itertools
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

JsonObject = dict[str, Any]

FAILED = {"not_recorded", "outage", "broken"}
RULES = ("guess", "wrong")
HEADLINE = {"blink": "accuracy_macro", "mvp_bench": "mAcc"}
# Suffixes that distinguish the solver names of the three synthetic runs.
SUFFIXES = ("", " [blank]", " [shuffled]")


class Cell(NamedTuple):
    """The cell of a question, or of a unit of several: stratum, cluster, numerator, denominator."""

    stratum: str
    cluster: str
    above: float
    below: float = 1.0


class Runs(NamedTuple):
    """The files of the runs on disk: scores by solver and id, questions by id."""

    benchmark: str
    scores: Mapping[str, Mapping[str, JsonObject]]
    questions: Mapping[str, JsonObject]
    # By solver, the folder of its attempts and scores.
    folders: Mapping[str, Path]
    # Value of a missing answer: a guess, or nothing.
    rule: str = "wrong"

    @property
    def first(self) -> tuple[str, ...]:
        """Return the solvers without their repetitions."""
        return tuple(name for name in self.scores if "@" not in name)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Return all pairs of solvers: baselines before others, a control before its run."""
        ordered = sorted(self.first, key=lambda name: (name.startswith("controller"), "[" not in name))
        return list(itertools.combinations(ordered, 2))

    def model(self, solver: str) -> str | None:
        """Return the model that a solver asked."""
        if solver.startswith("specialist"):
            return None
        manifest = json.loads((self.folders[solver].parent / "manifest.json").read_text())
        return str(manifest["identity"]["model"]["model"])

    def attempts(self, solver: str) -> list[JsonObject]:
        """Return a solver's finished questions, with the steps of each prompt in its reply."""
        finished = [row for row in lines(self.folders[solver] / "attempts.jsonl") if "exchanges" in row]
        for row in finished:
            for exchange, steps in zip(row["exchanges"], row["steps"], strict=True):
                exchange["reply"]["steps"] = steps
        return finished


def solver_folders(paths: Sequence[Path]) -> dict[str, Path]:
    """Return the folders of the solvers of three synthetic runs, by the names that a comparison gives them."""
    return {
        f"{file.parent.name}{suffix}": file.parent
        for path, suffix in zip(paths, SUFFIXES, strict=True)
        for file in sorted(path.glob("*/attempts.jsonl"))
    }


def read_runs(benchmark: str, folders: Mapping[str, Path], rule: str = "wrong") -> Runs:
    """Read the files of solvers whose runs were scored."""
    scores = {name: {row["id"]: row for row in lines(folder / "scores.jsonl")} for name, folder in folders.items()}
    first = next(iter(folders.values())).parent
    return Runs(benchmark, scores, {row["id"]: row for row in lines(first / "questions.jsonl")}, folders, rule)


def lines(path: Path) -> list[JsonObject]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# The content of a row.


def failed(row: JsonObject) -> bool:
    return row["outcome"] in FAILED


def credit(row: JsonObject, rule: str) -> float:
    """Return the value of an answer, or the mean over repetitions.

    By the rule, a missing answer is worth its score, which is that of a guess, or nothing.
    """
    if "again" in row:
        return statistics.fmean(credit(item, rule) for item in row["again"])
    return float(row["correct"]) if row["answer"] is not None or rule == "guess" else 0.0


def right(row: JsonObject) -> bool:
    return row["answer"] is not None and row["correct"] == 1


def unanswered(row: JsonObject) -> bool:
    """Return whether the answer, or one of its repetitions, is not readable."""
    return any(item["answer"] is None for item in row.get("again", [row]))


def rightness(row: JsonObject, rule: str) -> float:
    """Return the correctness of an answer, or the mean over repetitions; a missing answer has the rule's value."""
    return statistics.fmean(
        float(right(item)) if item["answer"] is not None else credit(item, rule) for item in row.get("again", [row])
    )


def unit(row: JsonObject) -> str:
    return row["cluster"] or str(row["id"]).split("#", maxsplit=1)[0]


# The benchmarks' metrics.


def metrics(benchmark: str, rows: Sequence[JsonObject], rule: str) -> dict[str, tuple[str, list[Cell]]]:
    """Return cells and way of combining for every metric of some rows; a unit with a failed row is missing.

    Each cell of repetitions is the mean.
    """
    if count := max((len(row["again"]) for row in rows if "again" in row), default=0):
        values = [
            metrics(benchmark, [{**row["again"][k], "outcome": row["outcome"]} for row in rows], rule)
            for k in range(count)
        ]
        return {
            name: (
                mode,
                [
                    current[0]._replace(above=statistics.fmean(cell.above for cell in current))
                    for current in zip(*(item[name][1] for item in values), strict=True)
                ],
            )
            for name, (mode, _) in values[0].items()
        }
    if benchmark == "blink":
        items = [row for row in rows if not failed(row)]
        macro = [Cell(row["task"], unit(row), credit(row, rule)) for row in items]
        return {
            "accuracy_macro": ("macro", macro),
            "accuracy_micro": ("ratio", [cell._replace(stratum="") for cell in macro]),
        }
    results: dict[str, list[list[JsonObject]]] = {}
    for name, value in {"low": {"level": "low"}, "high": {"level": "high"}, "multi": {}}.items():
        results[f"qAcc.{name}"] = _units(rows, value, ("question",), 2)
    levels_and_images = [("low", "level"), ("high", "level"), ("natural", "image"), ("manipulated", "image")]
    for name, group in levels_and_images:
        results[f"aAcc.{name}"] = _units(rows, {group: name}, ("id",), 1)
    results["aAcc.all"] = _units(rows, {}, ("id",), 1)
    for name in ("natural", "manipulated"):
        results[f"iAcc.{name}"] = _units(rows, {"image": name}, ("pair", "image"), 2)
    results["iAcc.all"] = _units(rows, {}, ("pair", "image"), 2)
    results["mAcc"] = _units(rows, {}, ("pair",), 4)
    return {
        name: ("ratio", [Cell("", unit(entry[0]), math.prod(credit(row, rule) for row in entry)) for entry in units])
        for name, units in results.items()
    }


def _units(
    rows: Iterable[JsonObject], mapping: Mapping[str, str], keys: Sequence[str], size: int
) -> list[list[JsonObject]]:
    grouped: dict[tuple[str, ...], list[JsonObject]] = defaultdict(list)
    for row in rows:
        payload = {**row["groups"], "id": row["id"]}
        if all(payload[name] == value for name, value in mapping.items()):
            grouped[tuple(payload[key] for key in keys)].append(row)
    return [item for item in grouped.values() if len(item) == size and not any(map(failed, item))]


def accuracy(rows: Iterable[JsonObject], rule: str) -> list[Cell]:
    return [Cell("", unit(row), credit(row, rule)) for row in rows if not failed(row)]


# The cells of the same questions.


def aligned(runs: Runs, names: Sequence[str], *, repeated: bool = True) -> list[tuple[JsonObject, ...]]:
    """Return the rows of these solvers by question; a row that one of them failed or lacks is failed for all.

    If its repetitions are not among the names, a solver stands for all of them.
    """
    ids = dict.fromkeys(itertools.chain.from_iterable(runs.scores[name] for name in names))
    rows = []
    for identity in ids:
        values = [_row(runs, name, identity, repeated and not any("@" in item for item in names)) for name in names]
        some = next(row for row in values if row is not None)
        matches_any = any(row is None or failed(row) for row in values)
        rows.append(tuple({**(row or some), **({"outcome": "outage"} if matches_any else {})} for row in values))
    return rows


def _row(runs: Runs, name: str, identity: str, repeated: bool) -> JsonObject | None:
    row = runs.scores[name].get(identity)
    values = [scores[identity] for other, scores in runs.scores.items() if other.partition("@")[0] == name]
    if row is None or not repeated or len(values) == 1:
        return row
    answer = next((item["answer"] for item in values if item["answer"] is not None), None)
    return {**row, "again": values, "answer": answer, "correct": statistics.fmean(entry["correct"] for entry in values)}


def column(rows: Iterable[tuple[JsonObject, ...]], place: int) -> list[JsonObject]:
    return [row[place] for row in rows]


def with_failed(rows: Iterable[JsonObject]) -> list[JsonObject]:
    """Count failed questions as questions without a readable answer."""
    return [{**row, "outcome": "unparsed"} if failed(row) else row for row in rows]


def tasks_of(rows: Iterable[JsonObject]) -> dict[str, list[JsonObject]]:
    return {task: column(value, 0) for task, value in by_task([(row,) for row in rows]).items()}


def by_task(rows: Iterable[tuple[JsonObject, ...]]) -> dict[str, list[tuple[JsonObject, ...]]]:
    results: dict[str, list[tuple[JsonObject, ...]]] = defaultdict(list)
    for row in rows:
        results[row[0]["task"]].append(row)
    return dict(sorted(results.items()))
