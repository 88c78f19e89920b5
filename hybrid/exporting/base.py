"""The interface of exporters: a run with its chosen solvers, an exporter, and the result of an export.

The module `hybrid/exporting/NAME.py` has `EXPORTER = Name()`. No model is called and the run is not modified.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

from hybrid.answers.letters import parse_letter
from hybrid.benchmarks.base import Benchmark, ScoreOptions
from hybrid.core.errors import UsageError
from hybrid.core.machine_paths import hide_paths, hide_paths_in
from hybrid.core.types import Attempt, Kind, Prompt, Question, Score
from hybrid.display.progress_bar import with_progress
from hybrid.display.terminal import how_many
from hybrid.log.folder import RunFolder
from hybrid.log.manifest import MANIFEST
from hybrid.plugins.registry import load
from hybrid.scoring.compare import compare
from hybrid.scoring.conclusion import conclusion
from hybrid.scoring.conclusion_cases import Sentence
from hybrid.scoring.groups import control, role
from hybrid.scoring.headline import head_of, head_of_run
from hybrid.scoring.pairing import Data
from hybrid.scoring.paths import DEFAULT_RULE, protocol_of
from hybrid.scoring.predictions.base import first, letter_of
from hybrid.scoring.recorded_plugins import find_plugins
from hybrid.scoring.runs import data_of, score_run, select_solvers
from hybrid.scoring.score import Scored

# Maximum number of characters in a folder's name: a character has at most four bytes, and file systems allow 255 bytes.
MAX_FOLDER_NAME = 60


def folder_part(name: str, joint: str = "-") -> str:
    """Return a name of a model or a benchmark as a path component valid on any system; never `..`, hidden or empty.

    Letters, digits and `._+=@-` are kept; each run of other characters becomes `joint`.
    """
    part = re.sub(r"[^\w.+=@-]+", joint, name)[:MAX_FOLDER_NAME].strip("._- " + joint)
    return part or "unnamed"


Images = Literal["attached", "none"]
Only = Literal["right", "helped", "all"]
TEST_SPLIT = "test-split"  # Permits training data from a published split
ALLOW_GENERATED = "generated"  # Permits generated questions in files that publish results
DELAY_S: Final = 3.0  # A shorter export shows no progress


@dataclass(frozen=True)
class ExportOptions:
    """The options of an export; each format names those that it supports (`Exporter.takes`)."""

    images: Images = "attached"  # Whether to include pictures if the format supports them
    only: Only = "right"  # Which questions: answered right, answered right only with tools (`helped`), or all
    max_turns: int | None = None  # Maximum model turns of a conversation; None for no limit
    allow: tuple[str, ...] = ()  # Explicitly permitted exceptions: `TEST_SPLIT`, `ALLOW_GENERATED`
    # Whether question texts are included in a format meant for sharing.
    questions: Literal["hashed", "shown"] = "hashed"


@dataclass(frozen=True)
class Written:
    """The written files; `notes` are full sentences about omitted content."""

    paths: tuple[Path, ...]
    notes: tuple[str, ...] = ()
    rows: int | None = None  # Number of conversations in the files; None for a format of another kind
    left_out: Mapping[str, int] = field(default_factory=dict)  # Number of omitted conversations by reason


@dataclass(frozen=True)
class ExportedRun:
    """A run, and its solvers to export, in the order of the manifest."""

    folder: RunFolder
    solvers: tuple[str, ...]

    @classmethod
    def at(cls, path: Path) -> ExportedRun:
        """Return the run at `path`, which may also be the folder of one of the run's solvers.

        Raises:
            UsageError: `path` is neither a run nor a solver's folder, or the run has no attempts of the solver.
        """
        inside = not (path / MANIFEST).is_file() and (path.parent / MANIFEST).is_file()
        folder = RunFolder.existing(path.parent if inside else path)
        find_plugins(folder)
        return cls(folder, select_solvers(folder, (path.name,) if inside else ()))

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """The configuration in the run's manifest."""
        identity: Mapping[str, Any] = self.folder.manifest["identity"]
        return identity

    @cached_property
    def shown_identity(self) -> dict[str, Any]:
        """The configuration for files that leave the machine, with paths hidden."""
        return {name: hide_paths_in(value) for name, value in self.identity.items()}

    @cached_property
    def benchmark(self) -> Benchmark:
        """The benchmark of the questions."""
        benchmark: Benchmark = load("hybrid.benchmarks", self.identity["benchmark"])
        return benchmark

    @property
    def split(self) -> str:
        """The split that was asked."""
        return str(self.identity["split"])

    @cached_property
    def data(self) -> Data:
        """The source of the questions."""
        return data_of(self.identity)

    @property
    def generated(self) -> bool:
        """Whether the questions were generated and are not published data."""
        return self.data.generated

    def refuse_generated(self, form: str, options: ExportOptions) -> None:
        """Raise `UsageError` for generated questions in a format that publishes results, unless allowed."""
        if self.generated and ALLOW_GENERATED not in options.allow:
            raise UsageError(
                f"{form}: {self.folder.path} asked generated questions, and a score on them is not a result of "
                f"{self.benchmark.card.short_title}: run the benchmark's own data, or confirm the export with "
                f"--allow {ALLOW_GENERATED}"
            )

    @cached_property
    def options(self) -> ScoreOptions:
        """The run's own protocol, and the default rule for unanswered questions."""
        return ScoreOptions(protocol_of(self.folder), DEFAULT_RULE)

    @cached_property
    def scored(self) -> tuple[Scored, ...]:
        """The solvers with their scores. Raises `UsageError` for a split with hidden answers."""
        return score_run(self.folder, self.options, self.solvers, keep=False)

    @cached_property
    def conclusion(self) -> tuple[Sentence, ...]:
        """The sentences of `hybrid compare` on these solvers; empty for a split with hidden answers."""
        if self.split in self.benchmark.card.hidden_splits or not self.solvers:
            return ()
        return conclusion(compare(self.scored))

    @cached_property
    def head(self) -> tuple[str, ...]:
        """Models, benchmark with its split or "generated questions", number of questions, and dates; paths hidden."""
        if self.split in self.benchmark.card.hidden_splits or not self.solvers:
            return tuple(map(hide_paths, head_of_run(self.folder, len(self.folder.questions().by_id))))
        return tuple(map(hide_paths, head_of(self.scored)))

    @cached_property
    def sha256(self) -> str:
        """The hash of the configuration and of the extents of questions and attempts in the manifest."""
        manifest = self.folder.manifest
        hashed = {"identity": manifest["identity"], "files": manifest.get("files", {})}
        return hashlib.sha256(json.dumps(hashed, sort_keys=True).encode()).hexdigest()

    @property
    def facts(self) -> dict[str, Any]:
        """Facts about the full run for an exported file."""
        concluded = [hide_paths(sentence.text) for sentence in self.conclusion]
        facts = {"run_sha256": self.sha256, "unanswered": self.options.unanswered, "head": list(self.head)}
        return {**facts, "conclusion": concluded, "dataset": self.data.name, "split": self.data.named_split}

    def only(self, form: str) -> str:
        """Return the only solver, for a format that holds one solver. Raises `UsageError` if there are several."""
        if len(self.solvers) != 1:
            raise UsageError(
                f"{form} contains a single solver: give RUN/SOLVER, one of {', '.join(self.solvers) or 'none'}"
            )
        return self.solvers[0]

    def answers(self, scored: Scored, *, steps: bool = True) -> Iterator[tuple[Question, Attempt, Score]]:
        """Yield every finished question of a solver in the order of the data, with or without its steps.

        Shows the progress after `DELAY_S` seconds. Raises `DataError` for an attempt that cannot be read.
        """
        recorded = self.folder.recorded(scored.recorded)
        attempts = recorded.by_id if steps else recorded.without_steps
        scores = {score.id: score for score in scored.scores}
        finished = [name for name in scored.questions if name in attempts]
        for name in with_progress(finished, scored.recorded, len(finished), delay_s=DELAY_S):
            if isinstance(question := scored.questions[name], Question):
                yield question, attempts[name], scores[name]

    def began(self, scored: Scored) -> float:
        """Return when a solver was first asked, in seconds of Unix time; 0 if not recorded."""
        attempts = self.folder.recorded(scored.recorded).without_steps.values()
        return min((attempt.started for attempt in attempts if attempt.started is not None), default=0.0)

    def mllm_of(self, scored: Scored) -> str | None:
        """Return the MLLM that gave, or contributed to, a solver's answers; None for specialists alone and chance."""
        model = self.identity.get("model")
        return hide_paths(str(model["model"])) if model is not None and role(scored) in ("hybrid", "mllm") else None

    def model_of(self, scored: Scored) -> str:
        """Return the name of a solver for other tools, with its MLLM and its control, if any.

        For example `openai:gpt-4o/controller`, `openai:gpt-4o/controller-blank`, `specialist`.
        """
        return "/".join(
            filter(None, (self.mllm_of(scored), "-".join(filter(None, (scored.recorded, control(scored))))))
        )


class Exporter(ABC):
    """Writes a run in the format of another tool."""

    form: str  # The name of the format in messages
    about: str  # A short description of the written files
    # The fields of `ExportOptions` that the format supports.
    takes: tuple[str, ...] = ("images",)

    @abstractmethod
    def export(self, run: ExportedRun, path: Path, options: ExportOptions) -> Written:
        """Write the run at `path`, which must be missing or an empty folder.

        Raises:
            UsageError: the format cannot hold the run; nothing is left at `path`.
            DataError: the run cannot be read.
        """


def lost(scored: Scored) -> tuple[str, ...]:
    """Return a note on the omitted questions that have no answer; empty if all were answered."""
    names = [score.id for score in scored.scores if score.outcome.failed]
    return (f"left out: {how_many(len(names))} without an answer: {first(names)}",) if names else ()


def gold(benchmark: Benchmark, question: Question, prompt: Prompt) -> str:
    """Return the right answer in the form of other tools: a letter, a word or a number; JSON for anything else."""
    if isinstance(question.target, str | int):
        return letter_of(str(question.target))
    answer = benchmark.oracle_answer(question, prompt)
    if question.kind is Kind.CHOICE and answer is not None:
        letter = parse_letter(answer, prompt.choices or question.choices).value
        if letter is not None:
            return letter
    return json.dumps(question.target, ensure_ascii=False)
