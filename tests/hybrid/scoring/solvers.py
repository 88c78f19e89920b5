"""Scored solvers from letters, without a file, and run folders with given attempts."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hybrid.core.types import Attempt, Cell, Kind, Metric, Outcome, Question, Score, StoredImage
from hybrid.log.attempts import attempt_line
from hybrid.log.folder import RunFolder
from hybrid.plugins.registry import load
from hybrid.scoring.conclusion_cases import Sentence
from hybrid.scoring.pairing import Data
from hybrid.scoring.score import Counted, Scored, metrics_of

VAL = Data("blink", "val", {"kind": "folder", "sha256": "a" * 64}, {})
GENERATED = Data("blink", "val", {"kind": "sample", "seed": 0, "generator": 7}, {})
OUTCOMES = {
    "r": Outcome.ANSWERED,
    "w": Outcome.ANSWERED,
    "n": Outcome.ANSWERED,
    "f": Outcome.OUTAGE,
    "a": Outcome.ABSTAINED,
    "u": Outcome.UNPARSED,
    "b": Outcome.BUDGET,
    "t": Outcome.TOOL_FAULT,
}
RULES: tuple[Any, ...] = (("guess", 0.5), ("wrong", 0.0))


def letters(message: str) -> str:
    """Expand `36r 4w` to 36 letters r and 4 letters w."""
    return "".join(int(count) * match for count, match in re.findall(r"(\d+)([a-z]+)", message))


def question(identity: str, task: str, **changes: Any) -> Question:
    image = StoredImage(identity.encode().hex().zfill(64), 4, 4, "image/png")
    return replace(Question(identity, task, (image,), "Which?", Kind.CHOICE, ("x", "y"), "(A)"), **changes)


def solver(name: str, messages: Mapping[str, str], data: Data = VAL, prefix: str = "", **changes: Any) -> Scored:
    """Return a solver of BLINK from a word of letters per task: question `Jigsaw_2` is the second of Jigsaw's.

    `r` is right, `w` wrong, `n` an answer that is neither, `f` failed; `a`, `u`, `b` and `t` are without an answer and
    get the rule's credit; `.` was not asked.
    """
    rows = [(f"{prefix}{task}_{n}", task, word) for task, value in messages.items() for n, word in enumerate(value, 1)]
    rows = [row for row in rows if row[2] != "."]
    questions = {identity: question(identity, task) for identity, task, _ in rows}
    results = {}
    for rule, chance in RULES:
        payload = {"r": 1.0, "w": 0.0, "n": None, "f": 0.0}
        scores = tuple(
            Score(identity, task, payload.get(word, chance), OUTCOMES[word], {"r": "A", "w": "B", "n": "C"}.get(word))
            for identity, task, word in rows
        )
        results[rule] = Counted(scores, metrics_of(load("hybrid.benchmarks", "blink"), questions, scores))
    return replace(Scored("blink", name, results, "guess", questions, data, recorded=name), **changes)


def on_mvp(name: str, word: str, *, rotations: bool = False) -> Scored:
    """Return a solver of MVP-Bench from letters, as in `solver`; with `rotations`, four letters are one question."""
    data = Data("mvp_bench", "val", {"kind": "folder", "sha256": "a" * 64}, {})
    places = [(f"q{n // 4}#s{n % 4}" if rotations else f"q{n}", n, letter) for n, letter in enumerate(word)]
    questions = {identity: question(identity, "single") for identity, _, _ in places}
    results = {}
    for rule, chance in RULES:
        payload = {"r": 1.0, "w": 0.0, "f": 0.0}
        scores = tuple(
            Score(
                identity,
                "single",
                payload.get(letter, chance),
                OUTCOMES[letter],
                {"r": "A", "w": "B"}.get(letter),
                groups={"rotation": f"{n % 4 + 1}/4"} if rotations else {},
                cluster=f"q{n // 4}" if rotations else "",
            )
            for identity, n, letter in places
        )
        results[rule] = Counted(scores, metrics_of(load("hybrid.benchmarks", "mvp_bench"), questions, scores))
    return Scored("mvp_bench", name, results, "wrong", questions, data, recorded=name)


def folder_of(
    path: Path,
    questions: Iterable[Question],
    attempts: Mapping[str, Sequence[Attempt]],
    facts: Mapping[str, Any] | None = None,
    **identity: Any,
) -> RunFolder:
    """Return a run of these attempts by solver; `facts` are each solver's facts in its manifest."""
    folder = RunFolder(path)
    identity = {"benchmark": "blink", "split": "val", **identity}
    folder.write_manifest({"identity": identity, "solvers": {name: {**(facts or {})} for name in attempts}})
    folder.write_questions(questions)
    for name, attempt in attempts.items():
        journal = folder.journal(name)
        journal.append(*map(attempt_line, attempt))
        journal.close()
    return folder


def run_of(*specialists: str) -> Any:
    """Return a run folder in which these solvers are specialists."""
    manifest = {"identity": {}, "solvers": {name: {"role": "specialist"} for name in specialists}}
    return SimpleNamespace(path=Path("run"), manifest=manifest)


def share_not_wrong(benchmark: Any, questions: Any, scores: Sequence[Score]) -> tuple[Metric, ...]:
    """Return a metric of all questions that did not fail: the share of answers that are right, or neither."""
    counted = [score for score in scores if not score.outcome.failed]
    cells = tuple(Cell("", score.unit, float(score.answer in ("A", "C")), 1.0) for score in counted)
    return (Metric("accuracy_macro", None, len(cells), "ratio", cells),)


def by_task(words: str | Mapping[str, str]) -> dict[str, str]:
    """Return the letters of each task; a single word is for Jigsaw."""
    word_by_task = {"Jigsaw": words} if isinstance(words, str) else words
    return {task: letters(word) for task, word in word_by_task.items()}


def ids(sentences: tuple[Sentence, ...]) -> set[str]:
    """Return the ids of sentences."""
    return {sentence.id for sentence in sentences}
