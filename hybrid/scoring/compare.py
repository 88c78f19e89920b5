"""Solvers side by side on the same questions: `hybrid compare PATH... [--by GROUP]`.

A path is a run (all of its solvers), one solver's folder in it, or predictions that somebody else saved. Two solvers
are compared on the questions that both have and neither failed, by the benchmark's own metrics over just these:
difference, interval and p value are of the quantity in the row. `compare_tables.py` prints what is found here.

A p value is adjusted (Holm) within its family: the headline metric of every pair, all other metrics, all tasks.
"""

from __future__ import annotations

import itertools
from collections import ChainMap, Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple

from hybrid.benchmarks.base import Benchmark, accuracy
from hybrid.errors import UsageError
from hybrid.registry import load, names
from hybrid.repeats import number_of, word_of
from hybrid.scoring.menus import menu_words
from hybrid.scoring.pairing import check_same
from hybrid.scoring.roles import behind, model_of
from hybrid.scoring.score import AnyQuestions, Scored, group_of, summary
from hybrid.stats import EXACT, FEW, SWAPPED, Contrast, contrast, holm
from hybrid.types import Json, Metric, Outcome, Score

ALL = "all tasks"
CONTROL = "tool output "
"""How the label of a run with a control starts (`run.py`)."""

Family = Literal["headline", "metrics", "tasks"]
Withheld = Literal["failed", "unanswered", "units"]

FAILED_SHARE = 0.01
"""Above this share of failed questions nothing is tested, unless `--allow-failed` is given."""
TESTED_EXACTLY = (
    f"Of fewer than {FEW} single questions p is that of an exact test (Suissa and Shuster 1991; with several strata or "
    f"partial credit, of swapping the answers), and the interval, which is approximate, reaches 0 where p >= 0.05."
)
OWN_METRICS = ("rotation.",)
"""Metrics of ours, shown for every benchmark."""


class Pair(NamedTuple):
    """Names of two solvers; differences are the second minus the first."""

    a: str
    b: str


@dataclass(frozen=True)
class Choice:
    """What of a comparison is wanted: a group instead of tasks, the pairs tested (None: all), failures or not.

    `margin` is the greatest loss in the headline metric that would not matter, above 0 (section `noninferior`).
    """

    by: str | None = None
    pairs: tuple[Pair, ...] | None = None
    allow_failed: bool = False
    margin: float = 0.05


@dataclass(frozen=True)
class Counts:
    """What became of the questions of a pair, or of one task of it, that both solvers have.

    `failed` ones are missing from everything else: nobody answered one of the two sides. Of the other `n`,
    `both_answered` have a readable answer from both; only these can be `helped` (the first wrong, the second right) or
    `harmed` (the reverse). `none_a` and `none_b` have no readable answer from the first and from the second. Next to a
    metric they count the questions of the tasks that it is of, whatever units the metric has.
    """

    n: int
    failed: int
    both_answered: int
    helped: int
    harmed: int
    none_a: int
    none_b: int


@dataclass(frozen=True)
class Contest:
    """Solver `b` against solver `a` by one metric, over all questions or within one group.

    `contrast` has no interval and no p value where `withheld` says why: too much failed, one of the two answered
    nothing, or the metric is over other units for one than for the other.
    """

    pair: Pair
    family: Family
    metric: str
    group: str
    n: int
    counts: Counts
    contrast: Contrast
    withheld: Withheld | None = None
    p_holm: float | None = None

    def as_json(self) -> dict[str, Json]:
        """One entry of `pairs` in `hybrid compare --json`."""
        measured = self.contrast
        # `n` counts the metric's own units; `failed`, of the questions, is printed last.
        counts = asdict(self.counts)
        del counts["n"]
        failed = counts.pop("failed")
        return {
            **self.pair._asdict(),
            "family": self.family,
            "metric": self.metric,
            "group": self.group,
            "n": self.n,
            "clusters": measured.clusters,
            "value_a": measured.value_a,
            "value_b": measured.value_b,
            "difference": measured.difference,
            "interval": [measured.interval.low, measured.interval.high] if measured.interval else None,
            "p": measured.p_value,
            "p_holm": self.p_holm,
            "test": measured.test,
            "withheld": self.withheld,
            **counts,
            "failed": failed,
        }


@dataclass(frozen=True)
class Meeting:
    """How many questions two solvers share, how many only one has, and how many of the shared ones failed."""

    pair: Pair
    shared: int
    only_a: int
    only_b: int
    failed: int
    settings: tuple[str, ...] = ()
    """Settings by which the same data was asked in another way: `hints: off -> on`."""

    def as_json(self) -> dict[str, Json]:
        """One entry of `questions` in `hybrid compare --json`."""
        numbers = {name: getattr(self, name) for name in ("shared", "only_a", "only_b", "failed")}
        return {**self.pair._asdict(), **numbers}


@dataclass(frozen=True)
class Comparison:
    """Solvers of one benchmark, the pairs among them, and what tells each pair apart."""

    solvers: tuple[Scored, ...]
    choice: Choice
    meetings: tuple[Meeting, ...]
    contests: tuple[Contest, ...]

    def family(self, name: Family) -> tuple[Contest, ...]:
        """The contests whose p values are adjusted together."""
        return tuple(contest for contest in self.contests if contest.family == name)

    def as_json(self) -> dict[str, Json]:
        """What `hybrid compare --json` prints: solvers as `hybrid score --json` prints them, and every pair.

        Both say which model and which run they are of.
        """
        return {
            "solvers": {one.solver: {**one.as_json(self.choice.by), **behind(one)} for one in self.solvers},
            "questions": [meeting.as_json() for meeting in self.meetings],
            "pairs": [{**contest.as_json(), **self.sides(contest.pair)} for contest in self.contests],
        }

    def sides(self, pair: Pair) -> dict[str, Json]:
        """`model_a`, `run_a`, `model_b` and `run_b` of a pair (`roles.behind`)."""
        known = {solver.solver: solver for solver in self.solvers}
        return {**behind(known[pair.a], "_a"), **behind(known[pair.b], "_b")}


@dataclass(frozen=True)
class HeadToHead:
    """The headline metric of two solvers over the same questions, with its cells, and what `compare` finds of it."""

    a: Metric
    b: Metric
    contest: Contest


@dataclass(frozen=True)
class _Aligned:
    """The verdicts of two solvers on the same questions in the same order.

    A question that one of them lacks or failed is failed for both: benchmarks then leave out what it belongs to.
    """

    pair: Pair
    left: tuple[Score, ...]
    right: tuple[Score, ...]
    meeting: Meeting
    lost: frozenset[str] = field(default_factory=frozenset)
    """Shared questions that one of the two failed."""


def compare(solvers: Sequence[Scored], choice: Choice | None = None) -> Comparison:
    """Every chosen pair of solvers by every metric and within each task.

    Raises:
        UsageError: two benchmarks, different questions under the same ids, or a chosen solver that is not there.
        ValueError: two solvers of one name; `unique` tells them apart.
    """
    choice = choice or Choice()
    for a, b in itertools.combinations(solvers, 2):
        check_same(a.solver, (a.data, a.questions), b.solver, (b.data, b.questions))
    known = {solver.solver: solver for solver in solvers}
    if len(known) < len(solvers):
        raise ValueError(f"solvers of one name among {[solver.solver for solver in solvers]}")
    found: list[Contest] = []
    meetings: list[Meeting] = []
    for pair in _all_pairs(solvers) if choice.pairs is None else choice.pairs:
        for name in pair:
            if name not in known:
                raise UsageError(f"there is no solver {name!r}; there are: {', '.join(known)}")
        aligned = _aligned(pair, known[pair.a], known[pair.b])
        meetings.append(aligned.meeting)
        found += _contests(aligned, known[pair.a], known[pair.b], choice)
    return Comparison(tuple(solvers), choice, tuple(meetings), _adjusted(found))


def head_to_head(a: Scored, b: Scored, choice: Choice) -> HeadToHead | None:
    """Solver `b` against solver `a` by the headline metric, aligned as `compare` does, without Holm's adjustment.

    None where the two have no headline metric in common.
    """
    aligned = _aligned(Pair(a.solver, b.solver), a, b)
    sides = _sides(aligned, a, b)
    if sides.head is None:
        return None
    metrics = (sides.left[sides.head], sides.right[sides.head])
    places = _behind(aligned, sides.benchmark, sides.questions).get(sides.head, range(len(aligned.left)))
    return HeadToHead(*metrics, _contest(aligned, "headline", ALL, metrics, places, choice))


def _all_pairs(solvers: Sequence[Scored]) -> list[Pair]:
    """Every two solvers but later repetitions, which are no contestants of their own: `spread.py` tells of them."""
    first = {_told_apart_by(one) for one in solvers if number_of(one.recorded) == 1}
    own = [one for one in solvers if number_of(one.recorded) == 1 or _told_apart_by(one) not in first]
    ordered = sorted(own, key=_rank)
    return [Pair(a.solver, b.solver) for a, b in itertools.combinations(ordered, 2)]


def _told_apart_by(scored: Scored) -> tuple[Path | None, str]:
    """What the repetitions of a solver share."""
    return (scored.folder.path if scored.folder else None, word_of(scored.recorded))


def _rank(scored: Scored) -> tuple[bool, bool]:
    """What another is measured against comes first in its pairs: a baseline, and a control before the real run."""
    real = not any(label.startswith(CONTROL) for label in scored.labels)
    return (word_of(scored.solver.split(" ")[0]) not in names("baselines"), real)


def chosen_pairs(known: Sequence[str], baseline: str | None, words: Sequence[str]) -> tuple[Pair, ...] | None:
    """The pairs of `--baseline S` or of `--pairs A:B`, which may be given several times; None where neither is given.

    Raises:
        UsageError: a solver that is not there, a pair that is none, or both options.
    """
    if baseline is not None and words:
        raise UsageError("--baseline and --pairs: give one of the two")
    if baseline is not None:
        if baseline not in known:
            raise UsageError(f"--baseline {baseline}: there is no such solver; there are: {', '.join(known)}")
        return tuple(Pair(baseline, name) for name in known if name != baseline)
    if not words:
        return None
    found: dict[frozenset[str], Pair] = {}
    for word in words:
        pair = _pair_of(word, known)
        if found.setdefault(frozenset(pair), pair) != pair or list(words).count(word) > 1:
            raise UsageError(f"--pairs {word}: this pair is given twice")
    return tuple(found.values())


def _pair_of(word: str, known: Sequence[str]) -> Pair:
    """The two solvers of A:B; a name may hold a colon itself."""
    cuts = [place for place, sign in enumerate(word) if sign == ":"]
    pairs = [Pair(word[:cut], word[cut + 1 :]) for cut in cuts]
    fitting = [pair for pair in pairs if pair.a in known and pair.b in known and pair.a != pair.b]
    if len(fitting) != 1:
        raise UsageError(f"--pairs {word}: give two different solvers as A:B; there are: {', '.join(known)}")
    return fitting[0]


def _aligned(pair: Pair, a: Scored, b: Scored) -> _Aligned:
    of_a, of_b = ({score.id: score for score in one.scores} for one in (a, b))
    shared = [identity for identity in of_a if identity in of_b]
    lost = frozenset(i for i in shared if of_a[i].outcome.failed or of_b[i].outcome.failed)
    left, right = [], []
    for identity in (*of_a, *(i for i in of_b if i not in of_a)):
        mine, theirs = of_a.get(identity) or of_b[identity], of_b.get(identity) or of_a[identity]
        if identity in lost or not (identity in of_a and identity in of_b):
            mine, theirs = (replace(score, outcome=Outcome.OUTAGE) for score in (mine, theirs))
        left.append(mine)
        right.append(theirs)
    meeting = Meeting(pair, len(shared), len(of_a) - len(shared), len(of_b) - len(shared), len(lost), _settings(a, b))
    return _Aligned(pair, tuple(left), tuple(right), meeting, lost)


def _settings(a: Scored, b: Scored) -> tuple[str, ...]:
    """What was set differently. Predictions know no settings."""
    before, after = a.data.settings, b.data.settings
    if not (before and after):
        return ()
    changed = [key for key in sorted({*before, *after}) if before.get(key) != after.get(key)]
    return tuple(f"{key}: {before.get(key, '-')} -> {after.get(key, '-')}" for key in changed)


@dataclass(frozen=True)
class _Sides:
    """The metrics of two aligned solvers by name; `both` are those that both have, `head` the headline among them."""

    benchmark: Benchmark
    questions: AnyQuestions
    left: Mapping[str, Metric]
    right: Mapping[str, Metric]
    both: tuple[str, ...]
    head: str | None


def _sides(aligned: _Aligned, a: Scored, b: Scored) -> _Sides:
    benchmark: Benchmark = load("hybrid.benchmarks", a.benchmark)
    questions: AnyQuestions = ChainMap(b.questions, a.questions)  # type: ignore[arg-type]  # nothing is written to it
    left, right = (
        {metric.name: metric for metric in summary(benchmark, questions, scores)}
        for scores in (aligned.left, aligned.right)
    )
    both = tuple(name for name in left if name in right and left[name].cells and right[name].cells)
    head = next((name for name in benchmark.card.headline if name in both), None)
    return _Sides(benchmark, questions, left, right, both, head)


def _contests(aligned: _Aligned, a: Scored, b: Scored, choice: Choice) -> list[Contest]:
    sides = _sides(aligned, a, b)
    both, head = sides.both, sides.head
    shown = [name for name in both if is_reported(name, sides.benchmark.card.reported)]
    behind = _behind(aligned, sides.benchmark, sides.questions)
    found = []
    for name in sorted({*shown, *([head] if head else [])}, key=lambda name: (name != head, both.index(name))):
        family: Family = "headline" if name == head else "metrics"
        places = behind.get(name, range(len(aligned.left)))
        found.append(_contest(aligned, family, ALL, (sides.left[name], sides.right[name]), places, choice))
    return found + _by_task(aligned, choice)


def _behind(aligned: _Aligned, benchmark: Benchmark, questions: AnyQuestions) -> Mapping[str, Sequence[int]]:
    """Places of the questions behind each metric: those of the tasks that have the metric when they are alone.

    A metric that needs several tasks at once is not in it.
    """
    tasks: dict[str, list[int]] = {}
    for place, score in enumerate(aligned.left):
        tasks.setdefault(score.task, []).append(place)
    found: dict[str, list[int]] = {}
    for places in tasks.values():
        for metric in summary(benchmark, questions, [aligned.left[place] for place in places]):
            if metric.cells:
                found.setdefault(metric.name, []).extend(places)
    return found


def is_reported(name: str, reported: Sequence[str]) -> bool:
    """Whether tables show the metric; `reported` is the benchmark card's."""
    return not reported or name.startswith((*reported, *OWN_METRICS))


def _by_task(aligned: _Aligned, choice: Choice) -> list[Contest]:
    groups: dict[str, list[int]] = {}
    for place, both in enumerate(zip(aligned.left, aligned.right, strict=True)):
        # Predictions without their questions lack some groups that the other side knows.
        known = [name for name in (group_of(score, choice.by) for score in both) if name != "-"]
        groups.setdefault(known[0] if known else "-", []).append(place)
    found = []
    for group, places in sorted(groups.items()):
        scores = [(aligned.left[place], aligned.right[place]) for place in places]
        judged = [(x, y) for x, y in scores if x.correct is not None and y.correct is not None]
        metrics = (accuracy("accuracy", [x for x, _ in judged]), accuracy("accuracy", [y for _, y in judged]))
        if metrics[0].n:
            found.append(_contest(aligned, "tasks", group, metrics, places, choice))
    return found


def _counts(aligned: _Aligned, places: Sequence[int]) -> Counts:
    pairs = [(aligned.left[place], aligned.right[place]) for place in places]
    present = [(x, y) for x, y in pairs if not x.outcome.failed]
    answered = [(x, y) for x, y in present if x.answer is not None and y.answer is not None]
    return Counts(
        n=len(present),
        failed=sum(x.id in aligned.lost for x, _ in pairs),
        both_answered=len(answered),
        helped=sum((x.correct, y.correct) == (0, 1) for x, y in answered),
        harmed=sum((x.correct, y.correct) == (1, 0) for x, y in answered),
        none_a=sum(x.answer is None for x, _ in present),
        none_b=sum(y.answer is None for _, y in present),
    )


def _contest(
    aligned: _Aligned,
    family: Family,
    group: str,
    metrics: tuple[Metric, Metric],
    places: Sequence[int],
    choice: Choice,
) -> Contest:
    a, b = metrics
    counts = _counts(aligned, places)
    withheld = _withheld(aligned, metrics, places, choice)
    if withheld is None:
        measured = contrast(a, b)
    else:
        difference = None if a.value is None or b.value is None else b.value - a.value
        measured = Contrast(a.value, b.value, difference, None, None, "none", len({cell.cluster for cell in a.cells}))
    return Contest(aligned.pair, family, a.name, group, a.n, counts, measured, withheld)


def _withheld(
    aligned: _Aligned, metrics: tuple[Metric, Metric], places: Sequence[int], choice: Choice
) -> Withheld | None:
    """Why nothing is tested; None where it is."""
    whole, counts = aligned.meeting, _counts(aligned, places)
    shares = [whole.failed / max(1, whole.shared), counts.failed / max(1, counts.n + counts.failed)]
    if max(shares) > FAILED_SHARE and not choice.allow_failed:
        return "failed"
    # A metric may be over some questions of a task only (a level, a kind of picture): its clusters tell which.
    units = {cell.cluster for cell in metrics[0].cells}
    own = _counts(aligned, [place for place in places if aligned.left[place].unit in units])
    if own.n in (own.none_a, own.none_b):
        return "unanswered"
    left, right = ({(cell.cluster, cell.stratum) for cell in metric.cells} for metric in metrics)
    return None if left == right else "units"


def _adjusted(found: Sequence[Contest]) -> tuple[Contest, ...]:
    """The contests with p values adjusted within their families."""
    families: dict[Family, list[int]] = {}
    for place, contest in enumerate(found):
        if contest.contrast.p_value is not None:
            families.setdefault(contest.family, []).append(place)
    ready = list(found)
    for places in families.values():
        p_values = [p for place in places if (p := found[place].contrast.p_value) is not None]
        for place, p_holm in zip(places, holm(p_values), strict=True):
            ready[place] = replace(found[place], p_holm=p_holm)
    return tuple(ready)


def how_tested(found: Iterable[Contrast]) -> tuple[str, ...]:
    """The sentence that stands below differences of which one was tested exactly."""
    return (TESTED_EXACTLY,) if any(one.test in (EXACT, SWAPPED) for one in found) else ()


def unique(solvers: Sequence[Scored], origins: Sequence[str]) -> tuple[Scored, ...]:
    """The same solvers under names that differ: `controller [blank]` next to `controller`, else with their origin.

    A name carries its model where several are compared, the menu of its run where that differs (`menus.py`), a control
    that not all share, and any label that another solver of its name lacks, so that it is read next to that as what it
    is. Names that still occur twice get the origin, and a number where that does not tell them apart.
    """
    several, menus = len(set(map(model_of, solvers)) - {None}) > 1, menu_words(solvers)
    own = [
        "; ".join([*_model_words(one, several=several), *menu, *_label_words(one, solvers)])
        for one, menu in zip(solvers, menus, strict=True)
    ]
    named = [f"{one.solver} [{label}]" if label else one.solver for one, label in zip(solvers, own, strict=True)]
    count = Counter(named)
    named = [f"{name} ({origin})" if count[name] > 1 else name for name, origin in zip(named, origins, strict=True)]
    count, seen = Counter(named), Counter[str]()
    for place, name in enumerate(named):
        seen[name] += 1
        if count[name] > 1:
            named[place] = f"{name} #{seen[name]}"
    return tuple(replace(one, solver=name) for one, name in zip(solvers, named, strict=True))


def _model_words(scored: Scored, *, several: bool) -> list[str]:
    """The model of a solver among those of several models; nothing where that is its name already."""
    model = model_of(scored) if several else None
    return [] if model in (None, "", scored.solver) else [str(model)]


def _label_words(scored: Scored, solvers: Sequence[Scored]) -> list[str]:
    """The labels that tell a solver apart."""

    def lacks(other: Scored, label: str) -> bool:
        return label not in other.labels and (label.startswith(CONTROL) or other.solver == scored.solver)

    return [label.removeprefix(CONTROL) for label in scored.labels if any(lacks(other, label) for other in solvers)]


def shared_labels(solvers: Sequence[Scored]) -> tuple[str, ...]:
    """The labels that belong to every number of a comparison."""
    first = solvers[0].labels if solvers else ()
    return tuple(label for label in first if all(label in one.labels for one in solvers))
