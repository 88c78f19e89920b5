"""The progress of runs, for `hybrid view`: rate, time left, cost, failures by kind, the newest questions.

    progress = RunProgress(RunFolder(path))
    progress.as_json()          # {"state": "running", "solvers": [{"name": "mllm", "finished": 12, "n": 60, ...}], ...}

Each call reads the lines that were appended since the last one. Nothing is written, and the run's lock is only tested.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from hybrid.benchmarks.base import Benchmark, ScoreOptions
from hybrid.core.errors import HybridError
from hybrid.core.machine_paths import hide_paths
from hybrid.core.secrets import redact
from hybrid.core.types import Attempt, Json, Outcome, Question, Usage
from hybrid.display.terminal import one_line
from hybrid.log.attempts import STEPS, Unfinished, without_steps
from hybrid.log.codec import codec
from hybrid.log.folder import ATTEMPTS, QUESTIONS, RunFolder
from hybrid.log.questions import RecordedQuestions
from hybrid.plugins.registry import load
from hybrid.scoring.paths import options_for
from hybrid.scoring.recorded_plugins import find_plugins
from hybrid.scoring.runs import data_of

# Number of latest questions from whose end times the rate is computed.
RATE_OVER: Final = 30
NEWEST: Final = 30
# Maximum characters of a reply or an error on the page.
SHOWN: Final = 300
# A line of a traceback with the exception: "package.module.Name: message".
EXCEPTION: Final = re.compile(r"[A-Za-z_][\w.]*(?::\s|$)")
# Largest piece of a file read at a time, in bytes.
PIECE: Final = 1 << 24


@dataclass
class SolverCounts:
    """Counts of one solver's lines that have been read so far."""

    path: Path
    # Position after the last complete line that was read.
    position: int = 0
    finished: set[str] = field(default_factory=set)
    # The kind of failure of each question that was asked and is still open.
    open_failures: dict[str, str] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)
    used: Usage = field(default_factory=Usage)
    # End times of the latest questions, in seconds of Unix time.
    ends: deque[float] = field(default_factory=lambda: deque(maxlen=RATE_OVER))

    def new_lines(self) -> Iterator[bytes]:
        """Yield the complete lines since the last call; all lines if the file was replaced by a shorter one."""
        try:
            with self.path.open("rb") as file:
                if file.seek(0, 2) < self.position:
                    self.__init__(self.path)  # type: ignore[misc]  # count again from the start
                file.seek(self.position)
                while (piece := file.read(PIECE)) and (end := piece.rfind(b"\n") + 1):
                    self.position += end
                    file.seek(self.position)
                    yield from piece[:end].splitlines(keepends=True)
        except FileNotFoundError:
            return

    def add(self, record: Attempt | Unfinished) -> bool:
        """Count a record and return whether it is new: only the first finished line of a question counts."""
        if record.id in self.finished:
            return False
        if isinstance(record, Unfinished):
            self.open_failures[record.id] = failure_kind(record.error)
            return True
        self.finished.add(record.id)
        self.open_failures.pop(record.id, None)
        outcome = outcome_of(record)
        if outcome is not Outcome.ANSWERED:
            self.outcomes[outcome.value] += 1
        self.used = sum((exchange.reply.usage for exchange in record.exchanges), self.used)
        if record.started is not None:
            self.ends.append(record.started + record.seconds)
        return True

    def rate(self, since: float) -> float | None:
        """Return questions per second, for the latest questions that ended after `since`; None for fewer than two."""
        ends = sorted(end for end in self.ends if end >= since)
        seconds = ends[-1] - ends[0] if len(ends) > 1 else 0.0
        return (len(ends) - 1) / seconds if seconds > 0 else None

    def as_json(self, n: int, since: float) -> dict[str, Json]:
        """Return the counts; `n` is the number of questions, `since` the time at which the last command began."""
        rate, remaining = self.rate(since), n - len(self.finished) - len(self.open_failures)
        failures = self.outcomes + Counter(self.open_failures.values())
        used, is_complete = self.used, self.used.is_complete
        return {
            "name": self.path.parent.name,
            "finished": len(self.finished),
            "n": n,
            "per_minute": None if rate is None else rate * 60,
            "seconds_left": remaining / rate if rate and remaining > 0 else None,
            "cost_usd": used.cost_usd if is_complete else None,
            "tokens": used.input_tokens + used.output_tokens if is_complete else None,
            "tool_faults": used.tool_faults,
            "failures": dict(failures.most_common()),
        }


class RunProgress:
    """Reads a run that may not have started yet, in the folder where it is or will be."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self._solvers: dict[str, SolverCounts] = {}
        self._newest: deque[dict[str, Json]] = deque(maxlen=NEWEST)
        self._questions: tuple[tuple[int, int], RecordedQuestions] | None = None
        self._scorer: tuple[Benchmark, ScoreOptions] | None = None
        # The run's first command, by which a new run in the same folder is recognized.
        self._first: object = None

    def as_json(self) -> dict[str, Json]:
        """Return the state of the run; `problem` says why it cannot be read at this moment."""
        path = hide_paths(str(self.folder.path))
        if not self.folder.is_begun():
            return {"path": path, "state": "waiting", "solvers": [], "newest": []}
        try:
            return {"path": path, **self._read()}
        except (HybridError, OSError, ValueError) as error:
            # The run may be writing the file; the next call tries again.
            return {"path": path, "state": "unreadable", "solvers": [], "newest": [], "problem": _shorten(str(error))}

    def _read(self) -> dict[str, Json]:
        manifest, questions = self.folder.manifest, self._read_questions()
        n, since = len(questions.sound), _began(manifest.get("commands", ()))
        if (first := manifest.get("commands", ())[:1]) != self._first:
            self._solvers, self._scorer, self._first = {}, None, first
            self._newest.clear()
        names = [*manifest["solvers"], *(name for name in self.folder.solvers() if name not in manifest["solvers"])]
        for name in names:
            solver = self._solvers.setdefault(name, SolverCounts(self.folder.path / name / ATTEMPTS))
            for line in solver.new_lines():
                with suppress(ValueError):
                    record = without_steps(line) if STEPS in line else codec(Unfinished).validate_json(line)
                    if solver.add(record):
                        self._newest.append(self._entry(name, record, questions))
        is_over = all(len(solver.finished) >= n for solver in self._solvers.values())
        model = manifest["identity"].get("model")
        return {
            "state": "running" if self.folder.is_held() else "finished" if is_over else "stopped",
            "benchmark": manifest["identity"]["benchmark"],
            "model": hide_paths(str(model["model"])) if isinstance(model, dict) else None,
            "labels": list(manifest.get("labels", ())),
            "generated": data_of(manifest["identity"]).generated,
            "solvers": [self._solvers[name].as_json(n, since) for name in names],
            "newest": [*reversed(self._newest)],
        }

    def _read_questions(self) -> RecordedQuestions:
        """Return the questions, read again only if their file changed."""
        status = (self.folder.path / QUESTIONS).stat()
        stamp = (status.st_size, status.st_mtime_ns)
        if self._questions is None or self._questions[0] != stamp:
            self._questions = stamp, self.folder.questions()
        return self._questions[1]

    def _entry(self, solver: str, record: Attempt | Unfinished, questions: RecordedQuestions) -> dict[str, Json]:
        entry: dict[str, Json] = {"id": record.id, "solver": solver}
        if isinstance(record, Unfinished):
            error = _shorten(_exception_line(record.error))
            return {**entry, "verdict": "failed", "kind": failure_kind(record.error), "text": error}
        reply = record.exchanges[-1].reply.text if record.exchanges else ""
        verdict, answer = self._verdict(record, questions)
        return {**entry, "verdict": verdict, "answer": answer, "text": _shorten(reply), "seconds": record.seconds}

    def _verdict(self, attempt: Attempt, questions: RecordedQuestions) -> tuple[str, str | None]:
        """Return right, wrong or another word for an attempt, and the answer that was read."""
        outcome = outcome_of(attempt)
        if outcome.failed:
            return "failed", None
        question = questions.by_id.get(attempt.id)
        try:
            scorer = self._scoring()
            if scorer is None or not isinstance(question, Question):
                return outcome.value, None
            score = scorer[0].score(question, attempt.exchanges, scorer[1])
        # If the scorer fails on an answer, only its verdict is missing here; the report names the reason.
        except Exception:
            return "not scored", None
        if score.correct is None:
            return outcome.value, None
        return "right" if score.correct == 1 else "wrong" if score.correct == 0 else "partly right", score.answer

    def _scoring(self) -> tuple[Benchmark, ScoreOptions] | None:
        """Return the scorer of the run; None if its answers are hidden."""
        if self._scorer is None:
            find_plugins(self.folder)
            identity = self.folder.manifest["identity"]
            benchmark: Benchmark = load("hybrid.benchmarks", identity["benchmark"])
            if identity["split"] in benchmark.card.hidden_splits:
                return None
            self._scorer = benchmark, options_for({}, self.folder)
        return self._scorer


def outcome_of(attempt: Attempt) -> Outcome:
    """Return the outcome of the last exchange, or of the first exchange that failed."""
    outcomes = [exchange.reply.outcome for exchange in attempt.exchanges]
    return next((outcome for outcome in outcomes if outcome.failed), outcomes[-1] if outcomes else Outcome.BROKEN)


def failure_kind(error: str) -> str:
    """Return the kind of a failure from its traceback: the name of the exception."""
    name = _exception_line(error).partition(":")[0].rpartition(".")[2]
    return name if name.isidentifier() else "error"


def _exception_line(error: str) -> str:
    """Return the last line of a traceback that names an exception; notes may follow it."""
    lines = error.strip().splitlines()
    return next((line for line in reversed(lines) if EXCEPTION.match(line)), lines[-1] if lines else "")


def _began(commands: object) -> float:
    """Return when the last command began, in seconds of Unix time; 0 if not recorded."""
    try:
        return datetime.fromisoformat(commands[-1]["at"]).timestamp()  # type: ignore[index]
    except (IndexError, KeyError, TypeError, ValueError):
        return 0.0


def _shorten(text: str) -> str:
    line = hide_paths(redact(one_line(text)))
    return line if len(line) <= SHOWN else f"{line[: SHOWN - 3]}..."
