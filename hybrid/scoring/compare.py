"""Solvers side by side on the same questions: `hybrid compare PATH... [--by GROUP]`.

A path is a run (all of its solvers), one solver's folder in it, or predictions that somebody else saved. `compare` says
which solvers are compared on what; the files of `sections/` make the numbers, `rendering.py` the tables.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

from hybrid.benchmarks.base import Benchmark, UnansweredRule
from hybrid.core.errors import UsageError, did_you_mean
from hybrid.core.repetitions import word_of
from hybrid.plugins.registry import load, names
from hybrid.scoring.groups import (
    ComparisonGroup,
    comparison_groups,
    form_of,
    model_of,
    repeated_as,
    repetition,
    role,
)
from hybrid.scoring.overlap import Overlap
from hybrid.scoring.pairing import check_same
from hybrid.scoring.score import Scored
from hybrid.scoring.table import Answers
from hybrid.scoring.tools_offered import tools_words

# How the label of a run with a control starts (`run.py`).
CONTROL = "tool output "
# Metrics of ours, shown for every benchmark.
OWN_METRICS = ("rotation.",)
# Words for the form in which a model was shown findings, where it was not text and picture.
FORMS = {"text": "findings as text", "image": "findings as pictures"}


class SolverPair(NamedTuple):
    """Names of two solvers; differences are the second minus the first."""

    a: str
    b: str


@dataclass(frozen=True)
class ComparisonOptions:
    """The options of a comparison: a group instead of tasks, the pairs tested (None: all), failures allowed or not.

    `margin` is the greatest loss in the headline metric that would not matter, above 0 (section `noninferior`).
    """

    by: str | None = None
    pairs: tuple[SolverPair, ...] | None = None
    allow_failed: bool = False
    margin: float = 0.05
    # Whether a task whose labels were corrected is compared where solvers are scored by different ones.
    other_labels: Literal["refuse", "leave-out", "compare"] = "refuse"


@dataclass(frozen=True, eq=False)
class Comparison:
    """Solvers of one benchmark under names that differ, and the pairs among them that are tested."""

    solvers: tuple[Scored, ...]
    options: ComparisonOptions
    # By name the sections that were computed so far (`SectionResult`, whose file names this one).
    computed: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    _overlaps: dict[tuple[tuple[str, ...], ...], Overlap] = field(default_factory=dict, repr=False)
    _answers: dict[str, Answers] = field(default_factory=dict, repr=False)

    @cached_property
    def benchmark(self) -> Benchmark:
        """Of all solvers."""
        benchmark: Benchmark = load("hybrid.benchmarks", self.solvers[0].benchmark)
        return benchmark

    @property
    def rule(self) -> UnansweredRule:
        """The worth of a question without a readable answer, in every number."""
        return self.solvers[0].unanswered

    @property
    def grouping(self) -> str:
        """The word for a group of questions: that of `--by`, else `task`."""
        return self.options.by or "task"

    @cached_property
    def headline(self) -> str | None:
        """The metric that the solvers are tested by: the first of the card's that one of them has."""
        metric_names = {metric.name for solver in self.solvers for metric in solver.metrics if metric.value is not None}
        return next((name for name in self.benchmark.card.headline if name in metric_names), None)

    @cached_property
    def groups(self) -> tuple[ComparisonGroup, ...]:
        """Each hybrid solver next to its parts and controls."""
        return comparison_groups(self.solvers)

    @cached_property
    def pairs(self) -> tuple[SolverPair, ...]:
        """Those of the options, else every two contestants, the one that the other is measured against first."""
        every_pair = itertools.combinations(
            (contestant.solver for contestant in sorted(self.contestants, key=_rank)), 2
        )
        return tuple(itertools.starmap(SolverPair, every_pair)) if self.options.pairs is None else self.options.pairs

    @cached_property
    def main_pairs(self) -> tuple[SolverPair, ...]:
        """The pairs that are read first: each hybrid solver against its parts and controls; all where there is none."""
        name_sets = {
            frozenset((group.hybrid.solver, other.solver))
            for group in self.groups
            for other in (*group.parts, group.blank, group.shuffled)
            if other is not None
        }
        return tuple(pair for pair in self.pairs if frozenset(pair) in name_sets) or self.pairs

    def named(self, name: str) -> Scored:
        """The solver of that name."""
        return next(solver for solver in self.solvers if solver.solver == name)

    def overlap(self, *solvers: Scored, repeated: bool = True) -> Overlap:
        """The questions that these solvers share, computed once.

        A solver stands for all of its repetitions, unless another of the solvers is one of them, or not `repeated`.
        """
        by_solver = tuple(self.repetitions(solver) if repeated else (solver,) for solver in solvers)
        by_solver = tuple(
            repetitions if sum(solver in repetitions for solver in solvers) == 1 else (of,)
            for repetitions, of in zip(by_solver, solvers, strict=True)
        )
        key = tuple(tuple(scored.solver for scored in repetitions) for repetitions in by_solver)
        if key not in self._overlaps:
            answers = [list(map(self.answers, repetitions)) for repetitions in by_solver]
            self._overlaps[key] = Overlap.of(solvers, answers, allow_failed=self.options.allow_failed)
        return self._overlaps[key]

    @cached_property
    def contestants(self) -> tuple[Scored, ...]:
        """The solvers without later repetitions and a judge's readings, which the first and plain one stands for."""
        first = {repeated_as(solver) for solver in self.solvers if repetition(solver) == 1}
        candidates = (solver for solver in self.solvers if repetition(solver) == 1 or repeated_as(solver) not in first)
        return tuple(solver for solver in candidates if not solver.read_by_judge)

    def answers(self, scored: Scored) -> Answers:
        """The columns of a solver, made once."""
        return self._answers.setdefault(scored.solver, Answers(scored))

    def repetitions(self, scored: Scored) -> tuple[Scored, ...]:
        """A solver's first repetition with all others in their order; a later one, or one asked once, is alone."""
        repeats = [solver for solver in self.solvers if repeated_as(solver) == repeated_as(scored)]
        is_head = repetition(scored) == 1 and len(set(map(repetition, repeats))) == len(repeats)
        return tuple(sorted(repeats, key=repetition)) if is_head else (scored,)

    def is_shown(self, metric: str) -> bool:
        """Whether tables show a metric: what the card reports, and metrics of ours."""
        reported = self.benchmark.card.reported
        return not reported or metric.startswith((*reported, *OWN_METRICS))


def compare(solvers: Sequence[Scored], options: ComparisonOptions | None = None) -> Comparison:
    """Put solvers side by side. What they come to is computed where it is asked for (`sections.results`).

    Raises:
        UsageError: two benchmarks, different questions under the same ids, or a chosen solver that is not there.
        ValueError: two solvers of one name; `unique` tells them apart.
    """
    options = options or ComparisonOptions()
    corrected = load("hybrid.benchmarks", solvers[0].benchmark).card.corrections if solvers else ()
    relabelled = {correction.task for correction in corrected} if options.other_labels == "compare" else set()
    for a, b in itertools.combinations(solvers, 2):
        check_same(a.solver, (a.data, a.questions), b.solver, (b.data, b.questions), relabelled)
    solver_names = [solver.solver for solver in solvers]
    if len(set(solver_names)) < len(solver_names):
        raise ValueError(f"solvers of one name among {solver_names}")
    comparison = Comparison(tuple(solvers), options)
    for name in itertools.chain(*comparison.pairs):
        if name not in solver_names:
            raise UsageError(f"there is no solver {name!r}; there are: {', '.join(solver_names)}")
    return comparison


def _rank(scored: Scored) -> tuple[bool, bool]:
    """Sorts first in a pair the solver that the other is measured against: baselines, and controls before real runs."""
    real = not any(label.startswith(CONTROL) for label in scored.labels)
    return (word_of(scored.solver.split(" ")[0]) not in names("baselines"), real)


def chosen_pairs(
    solver_names: Sequence[str], baseline: str | None, words: Sequence[str]
) -> tuple[SolverPair, ...] | None:
    """The pairs of `--baseline S` or of `--pairs A:B`, which may be given several times; None where neither is given.

    Raises:
        UsageError: a solver that is not there, a pair that is none, or both options.
    """
    if baseline is not None and words:
        raise UsageError("--baseline and --pairs: give one of the two")
    if baseline is not None:
        if baseline not in solver_names:
            hint = did_you_mean(baseline, solver_names)
            raise UsageError(
                f"--baseline {baseline}: there is no such solver{hint}; there are: {', '.join(solver_names)}"
            )
        return tuple(SolverPair(baseline, name) for name in solver_names if name != baseline)
    if not words:
        return None
    pairs: dict[frozenset[str], SolverPair] = {}
    for word in words:
        # A name may hold a colon itself.
        cuts = [place for place, sign in enumerate(word) if sign == ":"]
        candidates = [SolverPair(word[:cut], word[cut + 1 :]) for cut in cuts]
        fitting = [
            pair for pair in candidates if pair.a in solver_names and pair.b in solver_names and pair.a != pair.b
        ]
        if len(fitting) != 1:
            raise UsageError(f"--pairs {word}: give two different solvers as A:B; there are: {', '.join(solver_names)}")
        (pair,) = fitting
        if pairs.setdefault(frozenset(pair), pair) != pair or list(words).count(word) > 1:
            raise UsageError(f"--pairs {word}: this pair is given twice")
    return tuple(pairs.values())


def unique(solvers: Sequence[Scored], origins: Sequence[str]) -> tuple[Scored, ...]:
    """The solvers under distinct names: `controller [blank]` next to `controller`, else with their origin.

    A name carries its model where several are compared, the tools offered in its run where they differ
    (`tools_offered.py`), a control that not all share, and any label that another solver of its name lacks, so that it
    is read next to that as what it is. Names that still occur twice get the origin, and a number where that does not
    tell them apart.
    """
    several = len(set(map(model_of, solvers)) - {None}) > 1
    unique_names = []
    for solver, tools_offered in zip(solvers, tools_words(solvers), strict=True):
        model = model_of(solver) if several and model_of(solver) != solver.solver else None
        namesakes = [other for other in solvers if other.solver == solver.solver]
        words = [*filter(None, [model]), *tools_offered]
        words += [
            label.removeprefix(CONTROL)
            for label in solver.labels
            if any(label not in other.labels for other in (solvers if label.startswith(CONTROL) else namesakes))
        ]
        # Of a hybrid solver the form in which it was shown findings, where another of its name was shown another.
        if role(solver) == "hybrid" and len(set(map(form_of, namesakes))) > 1:
            words += filter(None, [FORMS.get(form_of(solver) or "")])
        unique_names.append(f"{solver.solver} [{'; '.join(words)}]" if words else solver.solver)
    count = Counter(unique_names)
    unique_names = [
        f"{name} ({origin})" if count[name] > 1 else name for name, origin in zip(unique_names, origins, strict=True)
    ]
    count, seen = Counter(unique_names), Counter[str]()
    for place, name in enumerate(unique_names):
        seen[name] += 1
        if count[name] > 1:
            unique_names[place] = f"{name} #{seen[name]}"
    return tuple(replace(solver, solver=name) for solver, name in zip(solvers, unique_names, strict=True))
