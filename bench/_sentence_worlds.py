"""Simulated worlds with known truth for numbers and sentences that once misled: `python -m bench.sentences --worlds`.

A world is a function that makes one draw in a folder and returns whether a printed claim is false for it.
"""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench._runs import write_run as write_attempts
from hybrid.core.types import Attempt, Exchange, ImageRef, Json, Kind, Prompt, Question, Reply, Step, StoredImage, Usage
from hybrid.exporting.base import ExportedRun, ExportOptions
from hybrid.log.folder import RunFolder
from hybrid.plugins.registry import load
from hybrid.scoring.compare import compare
from hybrid.scoring.conclusion import conclusion
from hybrid.scoring.predicted import score_predictions
from hybrid.scoring.recorded_pair import decomposed, read_pair
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.sections import ceiling, differences, effects, evidence, gain, metrics, noninferior, tool_only
from hybrid.stats import ratio_interval

Right = NDArray[np.bool_]
SIZE = 60
EXPORTS = (
    ("vlmevalkit", "sheet.tsv"),
    ("vlmevalkit", "sheet.xlsx"),
    ("lmms_eval", "logs"),
    ("every_eval_ever", "evaluations"),
)


def questions(size: int, pictures: int = 0, tasks: Sequence[str] = ("Jigsaw",)) -> list[Question]:
    """Return questions that cycle through BLINK's tasks and, with `pictures`, through this number of pictures."""
    results = []
    for number in range(size):
        text = number % pictures if pictures else number
        image = StoredImage(f"{text + 1:064x}", 8, 8, "image/png")
        cluster = f"picture of val_Jigsaw_{text + 1}" if pictures else ""
        values = (f"Which is it in {number}?", Kind.CHOICE, ("one", "other"), "(A)")
        task = tasks[number % len(tasks)]
        results.append(Question(f"val_{task}_{number + 1}", task, (image,), *values, task, cluster=cluster))
    return results


def write_run(
    path: Path,
    request: Sequence[Question],
    right: Mapping[str, Right],
    *,
    pictured: bool = True,
    refused: Mapping[str, Right] | None = None,
    tool: str = "jigsaw",
    **identity: Json,
) -> RunFolder:
    """Return a run folder with these answers; the controller always calls a tool, which makes a picture if `pictured`.

    A solver gives no answer to the questions that it `refused`.
    """

    def attempt(solver: str, question: Question, is_right: bool, is_refused: bool) -> Attempt:
        prompt = Prompt((question.text, ImageRef("img:1", question.images[0])), question.kind, question.choices)
        images = (ImageRef("tool:1", question.images[0]),) if pictured else ()
        step = Step("tool", tool, "a finding", 0.1, None, {"images": ["img:1"], "args": {}}, images)
        steps, calls = ((step,), 1) if solver == "controller" else ((), 0)
        text = "I cannot tell." if is_refused else f"Answer: ({'A' if is_right else 'B'})"
        reply = Reply(text, usage=Usage(1, calls), steps=steps)
        return Attempt(question.id, (Exchange(replace(prompt, route=question.route), reply),), 0.5, started=0.0)

    none = np.zeros(len(request), bool)
    by_value = {
        name: [
            attempt(name, *row)
            for row in zip(request, value.tolist(), (refused or {}).get(name, none).tolist(), strict=True)
        ]
        for name, value in right.items()
    }
    return write_attempts(path, request, by_value, {"model": {"model": "drawn"}, "tool_output": "real", **identity})


def nothing_is_luck_at_temperature_0(folder: Path, rng: np.random.Generator) -> bool:
    """A served model at temperature 0 repeats its answers, so no gain is luck."""
    model: Json = {"model": "drawn", "options": {"temperature": 0.0}}
    answers = {"controller": rng.random(SIZE) < 0.7, "mllm": rng.random(SIZE) < 0.5}
    run = write_run(folder / "run", questions(SIZE), answers, model=model)
    rows = tool_only.SECTION.rows(compare(compare_paths([run.path]).solvers))
    return any("luck" in row.quantity for row in rows)


def recorded_tasks_weigh_the_same(folder: Path, rng: np.random.Generator) -> bool:
    """The gain of two recorded files is the mean over tasks of unequal size, counted here by hand."""
    sizes, rows = {"x": 40, "y": 5, "z": 15}, []
    for task, size in sizes.items():
        rows += [(f"{task}{n}", task, int(rng.random() < 0.4), int(rng.random() < 0.6)) for n in range(size)]
    for place, name in ((2, "without.csv"), (3, "with.csv")):
        with (folder / name).open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "task", "correct", "calls"])
            writer.writerows([row[0], row[1], row[place], 1 if row[0] != "x3" else ""] for row in rows)
    values = [row for row in rows if row[0] != "x3"]
    of_task = [[after - previous for _, current, previous, after in values if current == task] for task in sizes]
    truth = sum(sum(own_rows) / len(own_rows) for own_rows in of_task) / len(sizes)
    pair = read_pair(folder / "without.csv", folder / "with.csv")
    value = next(row.value for row in decomposed(pair, "a", "b").results if row.quantity == "gain")
    return value is None or abs(value - truth) > 1e-9 or not pair.has_calls


def no_form_is_tested_without_pictures(folder: Path, rng: np.random.Generator) -> bool:
    """If tools make no picture, the form of tool output (text or pictures) cannot explain any difference."""
    request, answers = questions(SIZE), {"controller": rng.random(SIZE) < 0.6, "mllm": rng.random(SIZE) < 0.5}
    runs = [write_run(folder / "both", request, answers, pictured=False, show="both").path]
    for show in ("text", "image"):
        payload = {"controller": rng.random(SIZE) < 0.5}
        runs.append(write_run(folder / show, request, payload, pictured=False, show=show).path)
    rows = effects.SECTION.rows(compare(compare_paths(runs).solvers))
    return any(row.quantity in effects.FORMS for row in rows)


def exports_keep_clusters(folder: Path, rng: np.random.Generator) -> bool:
    """With 24 questions on 4 pictures, and equal answers within a picture, an export has the clusters of its run."""
    of_picture = rng.random(4) < 0.5
    answers = {"mllm": np.resize(of_picture, 24)}
    run = ExportedRun.at(write_run(folder / "run", questions(24, 4), answers).path / "mllm")
    by_id = {score.id: score.unit for score in run.scored[0].scores}
    for name, file in EXPORTS:
        load("hybrid.exporting", name).export(run, folder / file, ExportOptions())
        back = score_predictions(folder / file, run.benchmark, None, run.options)
        if {score.id: score.unit for score in back.scores} != by_id:
            return True
    return False


def the_way_to_the_ceiling_is_bounded(folder: Path, rng: np.random.Generator) -> bool:
    """If model and specialists nearly always agree, few gains are possible: no share outside -2 to 2 is printed."""
    alone = rng.random(SIZE) < 0.6
    specialist = alone ^ (rng.random(SIZE) < 0.03)
    answers = {"controller": alone ^ (rng.random(SIZE) < 0.2), "mllm": alone, "specialist": specialist}
    run = write_run(folder / "run", questions(SIZE), answers)
    rows = [row for row in ceiling.SECTION.rows(compare(compare_paths([run.path]).solvers)) if not row.group]
    (reached,) = [row for row in rows if row.quantity == "reached"]
    return reached.value is not None and not -2 <= reached.value <= 2


def refusing_raises_nobody(folder: Path, rng: np.random.Generator) -> bool:
    """By default, refusals count as wrong, as in BLINK's script: a value is right answers divided by questions."""
    request, answers = questions(SIZE), {"mllm": rng.random(SIZE) < 0.6, "text_only": rng.random(SIZE) < 0.7}
    refused = {"text_only": rng.random(SIZE) < 0.4}
    run = write_run(folder / "run", request, answers, refused=refused)
    rows = metrics.SECTION.rows(compare(compare_paths([run.path]).solvers))
    values = {row.a: row.value for row in rows if row.metric.startswith("accuracy") and not row.group and row.low}
    truth = {"mllm": answers["mllm"].mean(), "text_only": (answers["text_only"] & ~refused["text_only"]).mean()}
    return any(abs((values.get(name) or 0.0) - value) > 1e-9 for name, value in truth.items())


def a_page_has_one_verdict(folder: Path, rng: np.random.Generator) -> bool:
    """For tasks with p near 0.05, all sections have the same p (Holm), and the sentence names significant tasks."""
    request = questions(3 * SIZE, tasks=("Counting", "Jigsaw", "Relative_Depth"))
    effect = np.array([0.4 if question.task == "Jigsaw" else 0.1 for question in request])
    alone = rng.random(len(request)) < 0.5
    run = write_run(folder / "run", request, {"controller": alone | (rng.random(len(request)) < effect), "mllm": alone})
    comparison = compare(compare_paths([run.path]).solvers)
    rows = [row for section in (differences, gain) for row in section.SECTION.rows(comparison)]
    of_tasks = [row for row in rows if row.group and row.quantity in ("difference", "gain") and row.p_holm is not None]
    verdicts = {(row.group, round(row.p_holm or 0.0, 9)) for row in of_tasks}
    (text,) = (sentence.text for sentence in conclusion(comparison, limits=False) if sentence.id.startswith("tasks"))
    better = text.partition("better on ")[2]
    groups = {row.group for row in of_tasks if row.holds}
    return len(verdicts) != 3 or any((task in better) != (task in groups) for task, _ in verdicts)


def lost_rules_are_no_zeros(folder: Path, rng: np.random.Generator) -> bool:
    """If the run's tool no longer exists, its outputs are not judged, and the section reports that."""
    facts: Json = {"path": str(folder / "nowhere"), "sha256": "0" * 64, "routes": ["Jigsaw"]}
    request, answers = questions(SIZE), {"controller": rng.random(SIZE) < 0.7, "mllm": rng.random(SIZE) < 0.5}
    run = write_run(folder / "run", request, answers, tool="nearer")
    run.write_manifest({**run.manifest, "plugins": {"tools/nearer": facts}})
    comparison = compare(compare_paths([run.path]).solvers)
    lead = evidence.SECTION.lead(comparison, list(evidence.SECTION.rows(comparison)))
    return "0 of 0" in lead or "are missing" not in lead


def fieller_holds_the_share(folder: Path, rng: np.random.Generator) -> bool:
    """A hybrid gains 0.6 of about 30 possible gains in 200 questions: at most about 5 % of the intervals miss 0.6."""
    del folder
    below = (rng.random(200) < 0.15).astype(float)
    expected_values = ratio_interval(below * (rng.random(200) < 0.6), below, range(200))
    return expected_values is not None and not expected_values.low <= 0.6 <= expected_values.high


def a_sign_hangs_on_the_rule_only_if_it_changes(folder: Path, rng: np.random.Generator) -> bool:
    """A sentence about both rules says that the sign depends on the rule only if the two signs are opposite."""
    answers = {"controller": rng.random(SIZE) < 0.7, "mllm": rng.random(SIZE) < 0.6}
    refused = {"mllm": rng.random(SIZE) < 0.4, "controller": rng.random(SIZE) < 0.1}
    run = write_run(folder / "run", questions(SIZE), answers, refused=refused)
    by_rule = [
        np.mean(np.where(refused["controller"], credit, answers["controller"]))
        - np.mean(np.where(refused["mllm"], credit, answers["mllm"]))
        for credit in (0.0, 0.5)
    ]
    first = next(iter(conclusion(compare(compare_paths([run.path]).solvers), limits=False)))
    if first.id != "gain.rule":
        return False
    is_opposite = bool(by_rule[0] * by_rule[1] < -1e-9)
    is_denied = any(words in first.text for words in ("Which of the two is better", "he sign and", "its sign"))
    return is_denied != is_opposite


def unclaimed_differences_are_not_established(folder: Path, rng: np.random.Generator) -> bool:
    """If one solver refuses questions and all other answers are equal, no section calls a difference established."""
    answers = {"controller": rng.random(4 * SIZE) < 0.5}
    refused = {"mllm": rng.random(4 * SIZE) < 0.4}
    run = write_run(folder / "run", questions(4 * SIZE), {**answers, "mllm": answers["controller"]}, refused=refused)
    comparison = compare(compare_paths([run.path]).solvers)
    leads = [part.SECTION.lead(comparison, list(part.SECTION.rows(comparison))) for part in (differences, noninferior)]
    unclaimed = next(iter(conclusion(comparison, limits=False))).id in ("gain.rule", "gain.answering")
    return unclaimed and ("Established" in leads[0] or "No verdict" not in leads[1])


World = Callable[[Path, np.random.Generator], bool]

WORLDS: Mapping[str, World] = {
    "refused, by default": refusing_raises_nobody,
    "one verdict of a task on a page": a_page_has_one_verdict,
    "rules of a tool from outside, lost": lost_rules_are_no_zeros,
    "a sign that hangs on the rule": a_sign_hangs_on_the_rule_only_if_it_changes,
    "differences without a claim, in leads": unclaimed_differences_are_not_established,
    "by luck at temperature 0": nothing_is_luck_at_temperature_0,
    "recorded tasks weigh the same, an empty cell": recorded_tasks_weigh_the_same,
    "a share of the way that is nearly 0": the_way_to_the_ceiling_is_bounded,
    "a share of the way, its interval (5 % expected)": fieller_holds_the_share,
    "forms of findings without pictures": no_form_is_tested_without_pictures,
    "clusters of exports read back": exports_keep_clusters,
}


def false_in(name: str, draws: int, seed: int, worlds: Mapping[str, World] = WORLDS) -> int:
    """Return the number of draws of this world for which the claim is false."""
    count = 0
    for draw in range(seed, seed + draws):
        with tempfile.TemporaryDirectory() as folder:
            count += worlds[name](Path(folder), np.random.default_rng([draw, *map(ord, name)]))
    return count
