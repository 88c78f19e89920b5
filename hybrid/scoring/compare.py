"""Solvers side by side on the same questions: `hybrid compare PATH... [--by GROUP]`.

A path is a run (all of its solvers), one solver's folder in it, or predictions that another program saved. `compare`
selects solvers and questions; the modules in `sections/` compute the numbers, and `rendering.py` makes the tables.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
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
    named_model,
    repeated_as,
    repetition,
    role,
)
from hybrid.scoring.overlap import Overlap
from hybrid.scoring.pairing import check_same
from hybrid.scoring.score import Scored, ScoredAnswers
from hybrid.scoring.tools_offered import tools_words

# Prefix of the label of a run with a control (`hybrid/running/state.py`).
CONTROL = "tool output "
# This project's own metrics, shown for every benchmark.
OWN_METRICS = ("rotation.",)
# Names for the form in which a model was shown tool output, unless it was text and pictures.
FORMS = {"text": "findings as text", "image": "findings as pictures"}


class SolverPair(NamedTuple):
    """The names of two solvers. Differences between them are `b` minus `a`."""

    a: str
    b: str


@dataclass(frozen=True)
class ComparisonOptions:
    """The options of a comparison.

    `by` is the grouping (None: by task), and `pairs` are the tested pairs (None: all). `allow_failed` tests solvers
    even if too many questions failed. `margin`, above 0, is the largest loss in the headline metric that would not
    matter (section `noninferior`).
    """

    by: str | None = None
    pairs: tuple[SolverPair, ...] | None = None
    allow_failed: bool = False
    margin: float = 0.05
    # How to treat a task whose labels were corrected, if solvers are scored by different labels.
    other_labels: Literal["refuse", "leave-out", "compare"] = "refuse"


@dataclass(frozen=True, eq=False)
class Comparison:
    """Solvers of one benchmark under unique names, and the pairs that are tested."""

    solvers: tuple[Scored, ...]
    options: ComparisonOptions
    # Results of the sections computed so far, by name (each a `SectionResult`, which cannot be named here because its
    # module imports this one).
    computed: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    # Headline differences of pairs that the options leave out, by the names of a and b (each a `HeadlinePair`, whose
    # module imports this one, too).
    tested: dict[tuple[str, str], Any] = field(default_factory=dict, init=False, repr=False)
    _overlaps: dict[tuple[tuple[str, ...], ...], Overlap] = field(default_factory=dict, repr=False)
    _answers: dict[str, ScoredAnswers] = field(default_factory=dict, repr=False)

    @cached_property
    def benchmark(self) -> Benchmark:
        """The benchmark that all solvers answered."""
        benchmark: Benchmark = load("hybrid.benchmarks", self.solvers[0].benchmark)
        return benchmark

    @property
    def rule(self) -> UnansweredRule:
        """The rule by which every number counts questions without a readable answer."""
        return self.solvers[0].unanswered

    @property
    def grouping(self) -> str:
        """Name of the grouping of questions: the value of `--by`, else `task`."""
        return self.options.by or "task"

    @cached_property
    def headline(self) -> str | None:
        """Metric by which solvers are tested: the first of the card's headline metrics that any solver has."""
        metric_names = {metric.name for solver in self.solvers for metric in solver.metrics if metric.value is not None}
        return next((name for name in self.benchmark.card.headline if name in metric_names), None)

    @cached_property
    def groups(self) -> tuple[ComparisonGroup, ...]:
        """Each hybrid solver with its parts and controls."""
        return comparison_groups(self.solvers)

    @cached_property
    def pairs(self) -> tuple[SolverPair, ...]:
        """The pairs that the options name, else all pairs of contestants; the reference comes first in each pair."""
        every_pair = itertools.combinations(
            (contestant.solver for contestant in sorted(self.contestants, key=_rank)), 2
        )
        return tuple(itertools.starmap(SolverPair, every_pair)) if self.options.pairs is None else self.options.pairs

    @cached_property
    def main_pairs(self) -> tuple[SolverPair, ...]:
        """The pairs that matter most: each hybrid solver against its parts and controls; all pairs if there is none."""
        name_sets = {
            frozenset((group.hybrid.solver, other.solver))
            for group in self.groups
            for other in (*group.parts, group.blank, group.shuffled)
            if other is not None
        }
        return tuple(pair for pair in self.pairs if frozenset(pair) in name_sets) or self.pairs

    def named(self, name: str) -> Scored:
        """Return the solver of that name."""
        return next(solver for solver in self.solvers if solver.solver == name)

    def overlap(self, *solvers: Scored, repeated: bool = True) -> Overlap:
        """Return the questions that these solvers share, computed once.

        A solver stands for all of its repetitions, unless another given solver is one of them or `repeated` is False.
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
        """The solvers without judged variants and later repetitions; the first plain repetition stands for them."""
        first = {repeated_as(solver) for solver in self.solvers if repetition(solver) == 1}
        candidates = (solver for solver in self.solvers if repetition(solver) == 1 or repeated_as(solver) not in first)
        return tuple(solver for solver in candidates if not solver.read_by_judge)

    def answers(self, scored: Scored) -> ScoredAnswers:
        """Return a solver's answers as columns; they are computed once."""
        return self._answers.setdefault(scored.solver, ScoredAnswers(scored))

    def repetitions(self, scored: Scored) -> tuple[Scored, ...]:
        """Return all repetitions in order if the solver is the first repetition; otherwise return the solver alone."""
        repeats = [solver for solver in self.solvers if repeated_as(solver) == repeated_as(scored)]
        is_head = repetition(scored) == 1 and len(set(map(repetition, repeats))) == len(repeats)
        return tuple(sorted(repeats, key=repetition)) if is_head else (scored,)

    def finished_repetitions(self, scored: Scored) -> tuple[Scored, ...]:
        """Return the repetitions that finished a question; the solver's values are means over these."""
        return tuple(solver for solver in self.repetitions(scored) if solver.failed < len(solver.scores))

    def is_shown(self, metric: str) -> bool:
        """Return whether tables show a metric: the card reports it, or it is this project's own."""
        reported = self.benchmark.card.reported
        return not reported or metric.startswith((*reported, *OWN_METRICS))


def compare(solvers: Sequence[Scored], options: ComparisonOptions | None = None) -> Comparison:
    """Put solvers side by side; their numbers are computed on demand (`sections.results`).

    Raises:
        UsageError: two benchmarks, different questions under the same ids, or an unknown solver was chosen.
        ValueError: two solvers have the same name; `unique` tells them apart.
    """
    options = options or ComparisonOptions()
    corrected = load("hybrid.benchmarks", solvers[0].benchmark).card.corrections if solvers else ()
    relabelled = {correction.task for correction in corrected} if options.other_labels == "compare" else set()
    for a, b in itertools.combinations(solvers, 2):
        check_same(a.solver, (a.data, a.questions), b.solver, (b.data, b.questions), relabelled)
    solver_names = [solver.solver for solver in solvers]
    if len(set(solver_names)) < len(solver_names):
        raise ValueError(f"two solvers have the same name, among {solver_names}")
    comparison = Comparison(tuple(solvers), options)
    for name in itertools.chain(*comparison.pairs):
        if name not in solver_names:
            raise UsageError(f"unknown solver {name!r}; available: {', '.join(solver_names)}")
    return comparison


def _rank(scored: Scored) -> tuple[bool, bool]:
    """Sort key that puts the reference of a pair first: baselines before others, and controls before real runs."""
    real = not any(label.startswith(CONTROL) for label in scored.labels)
    return (word_of(scored.solver.split(" ")[0]) not in names("baselines"), real)


def chosen_pairs(
    solver_names: Sequence[str], baseline: str | None, words: Sequence[str]
) -> tuple[SolverPair, ...] | None:
    """Return the pairs of `--baseline S` or of one or more `--pairs A:B`; None if neither is given.

    Raises:
        UsageError: an unknown solver, an invalid pair, or both options.
    """
    if baseline is not None and words:
        raise UsageError("--baseline and --pairs: give only one of the two")
    if baseline is not None:
        if baseline not in solver_names:
            hint = did_you_mean(baseline, solver_names)
            raise UsageError(f"--baseline {baseline}: unknown solver{hint}; available: {', '.join(solver_names)}")
        return tuple(SolverPair(baseline, name) for name in solver_names if name != baseline)
    if not words:
        return None
    pairs: dict[frozenset[str], SolverPair] = {}
    for word in words:
        # A solver's name may contain a colon, so every colon is a candidate for the separator.
        cuts = [place for place, sign in enumerate(word) if sign == ":"]
        candidates = [SolverPair(word[:cut], word[cut + 1 :]) for cut in cuts]
        fitting = [
            pair for pair in candidates if pair.a in solver_names and pair.b in solver_names and pair.a != pair.b
        ]
        if len(fitting) != 1:
            raise UsageError(f"--pairs {word}: give two different solvers as A:B; available: {', '.join(solver_names)}")
        (pair,) = fitting
        if pairs.setdefault(frozenset(pair), pair) != pair or list(words).count(word) > 1:
            raise UsageError(f"--pairs {word}: this pair is given twice")
    return tuple(pairs.values())


def unique(solvers: Sequence[Scored], origins: Sequence[str]) -> tuple[Scored, ...]:
    """Return the solvers under distinct names, such as `controller [blank]` next to `controller`.

    A name gets its model if several models are compared, the tools offered in its run if they differ
    (`tools_offered.py`), a control that not all solvers share, and any label that another solver of its name lacks.
    Names that are still not unique get the origin, and then a number.
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
        # Add the form of tool output that a hybrid solver was shown, if a solver of the same name was shown another
        # form.
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
    return tuple(
        replace(solver, solver=name, source=source)
        for solver, name, source in zip(solvers, unique_names, _sources_of_namesakes(solvers), strict=True)
    )


def _sources_of_namesakes(solvers: Sequence[Scored]) -> Iterator[Path | None]:
    """Yield the source of predictions if other predictions of their name and model are compared too.

    Otherwise `logs/NAME` and `more/NAME@2` are repetitions of one solver, although their folders differ.
    """
    predicted = [solver for solver in solvers if solver.source is not None]
    count = Counter((solver.recorded, named_model(solver)) for solver in predicted)
    namesakes = {(word_of(name), model) for (name, model), number in count.items() if number > 1}
    for solver in solvers:
        yield solver.source if (word_of(solver.recorded), named_model(solver)) in namesakes else None
