"""Scores of a run: from attempts on disk to verdicts and metrics. No model is called, so scoring can be repeated.

    hybrid score RUN [--verdicts judge] [--json]

`tally.py` computes the scores, or reads saved ones; a judge's readings (`readings.py`) only add numbers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

from hybrid.answers import parse
from hybrid.answers.comparing import as_json
from hybrid.benchmarks.base import Benchmark, ScoreOptions, UnansweredRule
from hybrid.core.errors import UsageError
from hybrid.core.files import write_redacted, writing
from hybrid.core.types import Outcome, Question, Score
from hybrid.log.folder import RunFolder
from hybrid.plugins.registry import load
from hybrid.scoring.pairing import Data
from hybrid.scoring.readings import VERDICTS, Readings, read_readings, refuse_disagreement, with_readings
from hybrid.scoring.recorded_plugins import find_plugins
from hybrid.scoring.score import JUDGED, AnyQuestions, Counted, Scored, counted_twice, metrics_of
from hybrid.scoring.tally import Tally, recorded_of, tally


def score_run(
    folder: RunFolder,
    options: ScoreOptions,
    solvers: Sequence[str] = (),
    verdicts: Path | Literal["judge"] | None = None,
    *,
    keep: bool = True,
) -> tuple[Scored, ...]:
    """Score the solvers of a run (default: all) and save their scores; valid saved scores are reused.

    With `keep` False nothing is written; use it for a run that is still in progress.

    With `verdicts`, a file or "judge" for each solver's own readings, metrics `judged.*` are added, in which replies
    that the parser could not read count as the judge read them. The saved scores do not include them.

    Raises:
        UsageError: the answers are hidden, a solver has no attempts, or there are no verdicts.
        DataError: a verdict that does not belong to the run.
    """
    identity = folder.manifest["identity"]
    find_plugins(folder)
    benchmark: Benchmark = load("hybrid.benchmarks", identity["benchmark"])
    refuse_hidden(benchmark, identity["split"])
    names, questions = select_solvers(folder, solvers), folder.questions()
    if len(names) > 1:
        questions = questions.cached()
    readings = _readings(folder, names, verdicts)
    results = []
    for name in names:
        solver_tally = tally(folder, benchmark, name, questions, options, keep=keep)
        scored = _scored(folder, benchmark, name, questions.by_id, solver_tally, options.unanswered)
        results.append(_judged(scored, folder, benchmark, options, readings[name]) if name in readings else scored)
    return tuple(results)


def _scored(
    folder: RunFolder,
    benchmark: Benchmark,
    solver: str,
    questions: AnyQuestions,
    solver_tally: Tally,
    rule: UnansweredRule,
) -> Scored:
    """Return the tally of one solver with the manifest's facts about it."""
    identity = folder.manifest["identity"]
    imported, model = "imported" in identity, identity.get("model")
    tools = {name: facts.get("tools", {}) for name, facts in folder.manifest["solvers"].items()}
    all_tools = {tool for of_solver in tools.values() for tool in of_solver}
    labels = []
    for label in folder.manifest.get("labels", ()):
        # A label "KIND: TOOL, TOOL" applies only to solvers that may call these tools.
        kind, _, words = label.partition(": ")
        label_tools = words.split(", ")
        own_tools = ", ".join(tool for tool in label_tools if tool in tools.get(solver, {}))
        labels.append((f"{kind}: {own_tools}" if own_tools else "") if all_tools.issuperset(label_tools) else label)
    return Scored(
        benchmark=benchmark.card.name,
        solver=solver,
        counted=counted_twice(benchmark, questions, solver_tally, rule),
        unanswered=rule,
        questions=questions,
        data=data_of(identity),
        open=solver_tally.open,
        usage=None if imported else solver_tally.usage,
        wall_s=None if imported else solver_tally.wall_s,
        labels=tuple(filter(None, labels)),
        damage=solver_tally.damage,
        reasons=solver_tally.reasons,
        not_kept=solver_tally.not_kept,
        recorded=solver,
        folder=folder,
        model=_model_of_import(identity["imported"]) if imported else model and str(model["model"]),
        tool_output=identity.get("tool_output", "real"),
    )


def _model_of_import(imported: Mapping[str, Any]) -> str:
    """Return the model of predictions of another program; without one, their name."""
    return str(imported.get("model") or imported.get("name") or "")


def select_solvers(folder: RunFolder, solvers: Sequence[str]) -> tuple[str, ...]:
    """Return the named solvers of a run, by default all. Raises `UsageError` for a solver without attempts."""
    available = folder.solvers()
    for name in solvers:
        if name not in available:
            raise UsageError(f"{folder.path} has no attempts of {name!r}; it has: {', '.join(available) or 'none'}")
    return tuple(solvers) or available


def _readings(
    folder: RunFolder, solvers: Sequence[str], source: Path | Literal["judge"] | None
) -> Mapping[str, Readings]:
    if source is None:
        return {}
    if source != "judge":
        if len(solvers) != 1:
            raise UsageError(f"--verdicts {source} belongs to one solver: give RUN/SOLVER, one of {', '.join(solvers)}")
        if not source.is_file():
            raise UsageError(f"--verdicts {source}: file not found")
        paths = {solvers[0]: source}
    else:
        paths = {name: path for name in solvers if (path := folder.path / name / VERDICTS).is_file()}
    readings = {name: read_readings(path) for name, path in paths.items()}
    for name, path in paths.items():
        refuse_disagreement(path, readings[name])
    if not readings:
        raise UsageError(f"--verdicts judge: {folder.path} has none yet; make them with `hybrid judge RUN --model M`")
    return readings


def refuse_hidden(benchmark: Benchmark, split: str) -> None:
    """Raise `UsageError` for a split whose answers are not public."""
    if split in benchmark.card.hidden_splits:
        raise UsageError(
            f"the answers of the split {split!r} of {benchmark.card.name} are hidden: it can be submitted, not scored "
            "(`hybrid score RUN` writes the submission file)"
        )


def _judged(
    scored: Scored, folder: RunFolder, benchmark: Benchmark, options: ScoreOptions, readings: Readings
) -> Scored:
    """Return the solver with metrics `judged.*`, in which unreadable replies count as the judge read them."""
    questions = scored.questions
    unparsed = {score.id for score in scored.scores if score.outcome is Outcome.UNPARSED}
    attempts = folder.recorded(scored.solver).without_steps
    reread = {name: with_readings(attempts[name], readings) for name in attempts if name in unparsed}
    reread_questions = {name: question for name in reread if isinstance(question := questions[name], Question)}
    judged, named_apart, decided = dict[UnansweredRule, Counted](), dict[UnansweredRule, Counted](), dict[str, Score]()
    for rule, plain in scored.counted.items():
        counting = replace(options, unanswered=rule)
        new_scores = [
            benchmark.score(reread_questions[name], asks, counting) for name, asks in reread.items() if asks is not None
        ]
        decided = {
            score.id: replace(score, rule="judge") for score in new_scores if score.outcome is not Outcome.UNPARSED
        }
        scores = tuple(decided.get(score.id, score) for score in plain.scores)
        metrics = metrics_of(benchmark, questions, scores)
        judged[rule] = Counted(scores, metrics)
        judged_metrics = tuple(replace(metric, name=f"{JUDGED}{metric.name}") for metric in metrics)
        named_apart[rule] = Counted(plain.scores, (*plain.metrics, *judged_metrics))
    by = ", ".join(sorted({reading.model for reading in readings.values()})) or "no model"
    label = f"judged: {len(decided)} of {len(unparsed)} unparsed replies read by {by}"
    return replace(scored, counted=named_apart, labels=(*scored.labels, label), judged=judged)


def write_submission(folder: RunFolder, solver: str) -> Path:
    """Write the answers in the format that the benchmark's submission server accepts; return the path of the file."""
    benchmark: Benchmark = load("hybrid.benchmarks", folder.manifest["identity"]["benchmark"])
    questions = folder.questions()
    answers: dict[str, str | None] = {question.id: None for question in questions.sound}
    for attempt in recorded_of(folder, solver, questions).without_steps.values():
        question = questions.by_id[attempt.id]
        assert isinstance(question, Question)  # noqa: S101 - a broken row is never asked
        value = as_json(cast(Any, parse(attempt.exchanges[-1].reply.text, question.kind, question.choices).value))
        answers[attempt.id] = value if value is None or isinstance(value, str) else json.dumps(value)
    path = folder.path / solver / "submission.json"
    with writing(path.parent):
        write_redacted(path, benchmark.submission(answers).encode() + b"\n")
    return path


def data_of(identity: Mapping[str, Any]) -> Data:
    """Return the source of a run's questions, from the manifest's identity."""
    return Data(identity["benchmark"], identity["split"], identity.get("data") or {}, identity.get("settings", {}))
