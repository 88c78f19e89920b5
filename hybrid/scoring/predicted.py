"""Scores of predictions that other programs saved, and their import as runs that every later command can read.

hybrid score PREDICTIONS --benchmark blink --field stored
hybrid score PREDICTIONS --benchmark blink -o RUN
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal

from hybrid.benchmarks.base import Benchmark, Prediction, ScoreOptions
from hybrid.benchmarks.card import metric_of
from hybrid.core.errors import UsageError
from hybrid.core.files import writing
from hybrid.core.generated_mark import ID_PREFIX
from hybrid.core.types import Attempt, Cell, Exchange, Json, Prompt, Question, Reply
from hybrid.log.attempts import attempt_line
from hybrid.log.codec import codec
from hybrid.log.folder import QUESTIONS, RunFolder, attempts_of
from hybrid.scoring.pairing import Data
from hybrid.scoring.predictions.base import Joined, Origin
from hybrid.scoring.predictions.mounted import join_predictions
from hybrid.scoring.score import Scored, counted_twice
from hybrid.scoring.tally import Replies, tally_replies

# The label of runs over generated questions (`hybrid/running/state.py`).
LABEL = "generated questions"
Field = Literal["stored", "text"]


def _name_of(path: Path) -> str:
    """Return the name of predictions: the full folder name (`llava-v1.6-34b`), or a file's name without suffix."""
    return path.resolve().name if path.is_dir() else path.stem


def score_predictions(
    path: Path,
    benchmark: Benchmark,
    field: Field | None,
    options: ScoreOptions,
    data: str | None = None,
    more: Sequence[Path] = (),
) -> Scored:
    """Score predictions of another program: by default stored answers if every row has one, else the reply texts.

    `more` lists further files of the same model (`sets_of`).

    Raises:
        UsageError: the benchmark does not know the layout.
        DataError: an unusable row, or ids that the data does not have.
    """
    joined = join_predictions(path, benchmark, data, more)
    pairs, chosen_field = joined.pairs, field or _field_of(joined)
    if chosen_field == "stored" and any(prediction.stored is None for _, prediction in pairs):
        raise UsageError(f"--field stored: {path} keeps no extracted answers; use --field text")
    questions = {question.id: question for question, _ in pairs}
    replies_tally = tally_replies(benchmark, _replies(pairs, chosen_field), options)
    by_rule = counted_twice(benchmark, questions, replies_tally, options.unanswered)
    if chosen_field == "text":
        # How often the parser agrees with the authors' stored extraction, and how often it finds no answer.
        same = tuple(
            Cell("", score.unit, float(score.answer == benchmark.score_stored(question, prediction.stored).answer), 1.0)
            for (question, prediction), score in zip(pairs, replies_tally.scores, strict=True)
            if prediction.stored is not None
        )
        undecided = tuple(Cell("", score.unit, float(score.answer is None), 1.0) for score in replies_tally.scores)
        cells_by_name = (("agreement", same), ("undecided", undecided))
        agreement = [metric_of(name, cells) for name, cells in cells_by_name if cells]
        by_rule = {rule: replace(counts, metrics=(*counts.metrics, *agreement)) for rule, counts in by_rule.items()}
    return Scored(
        benchmark=benchmark.card.name,
        solver=(name := joined.solver or _name_of(path)),
        counted=by_rule,
        unanswered=options.unanswered,
        questions=questions,
        data=(origin := Data(benchmark.card.name, benchmark.card.splits[0], _facts(joined), {})),
        labels=(LABEL,) if origin.generated else (),
        reasons=replies_tally.reasons,
        origin=joined.origin,
        recorded=name,
        source=path.resolve(),
        model=joined.model or name,
    )


def _facts(joined: Joined) -> dict[str, Json]:
    """Return the manifest's facts about the data; generated questions are marked even without the data."""
    if any(question.id.startswith(ID_PREFIX) for question, _ in joined.pairs):
        return {"kind": "sample", **joined.data}
    return dict(joined.data)


def _field_of(joined: Joined) -> Field:
    """Return the default field to score: stored answers if every prediction has one."""
    return "stored" if all(prediction.stored is not None for _, prediction in joined.pairs) else "text"


def _replies(pairs: Sequence[tuple[Question, Prediction]], field: Field) -> Replies:
    """Return recorded replies as attempts."""
    attempts = {}
    for item, saved in pairs:
        prompt = Prompt((item.text,) if item.text else (), item.kind, item.choices, route=item.route)
        reply = Reply((saved.stored if field == "stored" else saved.text) or "")
        attempts[item.id] = Attempt(item.id, (Exchange(prompt, reply),), 0.0)
    return Replies(tuple(question for question, _ in pairs), attempts, stored=field == "stored")


def import_run(
    path: Path, benchmark: Benchmark, field: Field | None, out: Path, data: str | None = None, more: Sequence[Path] = ()
) -> RunFolder:
    """Create a run from predictions that another program saved; `more` lists further files of the same model.

    Raises:
        UsageError: `out` is not empty, or as in `score_predictions`.
    """
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"-o {out}: the folder is not empty")
    joined = join_predictions(path, benchmark, data, more)
    field = field or _field_of(joined)
    folder = RunFolder(out)
    # The file may come from anybody, so a name that would be another folder is not used.
    name = joined.solver if Path(joined.solver).name == joined.solver != ".." else ""
    name = name or _name_of(path)
    with folder.locked():
        identity: dict[str, Json] = {
            "benchmark": benchmark.card.name,
            "split": benchmark.card.splits[0],
            "imported": {"name": name, "field": field, **({"model": joined.model} if joined.model else {})},
            **({"data": facts} if (facts := _facts(joined)) else {}),
        }
        origin = codec(Origin).dump_python(joined.origin, mode="json")
        labels: list[Json] = [f"imported ({field})"]
        if facts:
            labels.append(LABEL)
        manifest_facts: dict[str, Json] = {"solvers": {name: {}}, "labels": labels, "predictions": origin}
        with writing(out):
            folder.write_questions(question for question, _ in joined.pairs)
            journal = folder.journal(name)
            journal.append(*map(attempt_line, _replies(joined.pairs, field).attempts.values()))
            journal.close()
            parts = (QUESTIONS, attempts_of(name))
            files = {part: asdict(folder.measure(part).extent) for part in parts}
            folder.write_manifest({"identity": identity, **manifest_facts, "files": files})
    return folder
