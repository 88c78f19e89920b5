"""Comparisons by hand: what pairs, what is counted, what is tested, and what is refused."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.base import Benchmark, accuracy
from hybrid.errors import UsageError
from hybrid.registry import load
from hybrid.scoring.compare import CONTROL, Comparison, ComparisonOptions, SolverPair, chosen_pairs, compare, unique
from hybrid.scoring.pairing import Data
from hybrid.scoring.result import UNTESTED
from hybrid.scoring.score import Counted, Scored, metrics_of
from hybrid.scoring.sections import questions
from hybrid.scoring.sections.differences import SECTION
from hybrid.stats import contrast, holm
from hybrid.types import Kind, Metric, Outcome, Question, Score, StoredImage

VAL = Data("blink", "val", {"kind": "folder", "sha256": "a" * 64}, {})
OTHER = Data("blink", "val", {"kind": "hub", "id": "X/Y", "sha256": "b" * 64}, {})
GENERATED = Data("blink", "val", {"kind": "sample", "seed": 0, "generator": 7}, {})

WORDS = {"r": (1.0, Outcome.ANSWERED), "w": (0.0, Outcome.ANSWERED), "f": (0.0, Outcome.OUTAGE)}
NONE = {"a": Outcome.ABSTAINED, "u": Outcome.UNPARSED, "b": Outcome.BUDGET, "t": Outcome.TOOL_FAULT}


def question(identity: str, task: str, **changes: Any) -> Question:
    image = StoredImage(identity.encode().hex().zfill(64), 4, 4, "image/png")
    return replace(Question(identity, task, (image,), "Which?", Kind.CHOICE, ("x", "y"), "(A)"), **changes)


def score(identity: str, task: str, word: str, chance: float, **changes: Any) -> Score:
    """`r` right, `w` wrong, `f` failed; `a`, `u`, `b`, `t` no answer, worth `chance`."""
    worth, outcome = WORDS.get(word) or (chance, NONE[word])
    answer = None if word not in "rw" else "A" if word == "r" else "B"
    return replace(Score(identity, task, worth, outcome, answer), **changes)


def solver(name: str, said: Mapping[str, str], data: Data = VAL, **changes: Any) -> Scored:
    """A solver of BLINK from a word of letters for each task: question `Jigsaw_2` is the second of Jigsaw's."""
    rows = [(f"{task}_{n}", task, word) for task, letters in said.items() for n, word in enumerate(letters, 1)]
    rows = [row for row in rows if row[2] != "."]
    questions = {identity: question(identity, task) for identity, task, _ in rows}
    return scored_by("blink", name, {r: [score(*row, c) for row in rows] for r, c in RULES}, questions, data, **changes)


RULES: tuple[Any, ...] = (("chance", 0.5), ("wrong", 0.0))


def scored_by(
    benchmark: str, name: str, scores: Mapping[Any, Sequence[Score]], questions: Any, data: Data, **changes: Any
) -> Scored:
    found: Benchmark = load("hybrid.benchmarks", benchmark)
    counted = {rule: Counted(tuple(s), metrics_of(found, questions, s)) for rule, s in scores.items()}
    return replace(Scored(benchmark, name, counted, "chance", questions, data), **changes)


@dataclass(frozen=True)
class Counts:
    """How many questions of a pair became what."""

    n: int
    failed: int
    both_answered: int
    helped: int
    harmed: int
    none_a: int
    none_b: int


@dataclass(frozen=True)
class Paired:
    """The rows of one pair by one metric, over all questions or within one group."""

    pair: SolverPair
    family: str
    metric: str
    group: str
    n: int | None
    value_a: float | None
    value_b: float | None
    difference: float | None
    interval: tuple[float, float] | None
    p: float | None
    p_holm: float | None
    withheld: str | None
    counts: Counts | None


def all_paired(found: Comparison) -> list[Paired]:
    """Every paired difference, in the order of the rows."""
    parts: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in SECTION.rows(found):
        # The other rule of what no answer counts has rows that no table shows.
        if row.detail:
            continue
        parts.setdefault((row.a, row.b, row.metric, row.group), {})[row.quantity] = row
    names = ("failed", "both answered", "helped", "harmed", "none a", "none b")
    made = []
    for (a, b, metric, group), rows in parts.items():
        main = rows["difference"]
        counts = Counts(rows["helped"].n, *(int(rows[name].value) for name in names)) if "helped" in rows else None
        family = "tasks" if group else "headline" if counts else "metrics"
        interval = None if main.low is None else (main.low, main.high)
        withheld = next((why for why, note in UNTESTED.items() if note == main.note), None)
        values = (rows["value a"].value, rows["value b"].value, main.value)
        made.append(
            Paired(
                SolverPair(a, b),
                family,
                metric,
                group,
                main.n,
                *values,
                interval,
                main.p,
                main.p_holm,
                withheld,
                counts,
            )
        )
    return made


def in_family(found: Comparison, name: str) -> list[Paired]:
    return [one for one in all_paired(found) if one.family == name]


def shared(found: Comparison) -> dict[str, float | None]:
    """How many questions the pair shares; there is one pair."""
    return {row.quantity: row.value for row in questions.SECTION.rows(found)}


def only(rows: Sequence[Paired]) -> Paired:
    (row,) = rows
    return row


def micro(scores: Sequence[Score]) -> Metric:
    return accuracy("", scores)


# What is counted.

FIRST = {"Jigsaw": "wwrarrw", "Relative_Depth": "rwu"}
SECOND = {"Jigsaw": "rrwrbrw", "Relative_Depth": "rru"}


def test_helped_and_harmed_are_of_questions_that_both_answered() -> None:
    found = compare([solver("one", FIRST), solver("two", SECOND)])
    assert only(in_family(found, "headline")).counts == Counts(
        n=10, failed=0, both_answered=7, helped=3, harmed=1, none_a=2, none_b=2
    )
    jigsaw, depth = in_family(found, "tasks")
    assert (jigsaw.group, depth.group) == ("Jigsaw", "Relative_Depth")
    assert jigsaw.counts == Counts(n=7, failed=0, both_answered=5, helped=2, harmed=1, none_a=1, none_b=1)
    assert depth.counts == Counts(n=3, failed=0, both_answered=2, helped=1, harmed=0, none_a=1, none_b=1)


def test_the_difference_is_of_the_metric_in_the_row_second_minus_first() -> None:
    found = compare([solver("one", FIRST), solver("two", SECOND)])
    headline = only(in_family(found, "headline"))
    jigsaw, depth = (2.0 + 1 + 0.5, 1.5), (3.0 + 1 + 0.5, 2.5)
    macro = ((depth[0] - jigsaw[0]) / 7 + (depth[1] - jigsaw[1]) / 3) / 2
    assert headline.metric == "accuracy_macro"
    assert headline.difference == pytest.approx(macro)
    (other,) = in_family(found, "metrics")
    assert other.metric == "accuracy_micro"
    assert other.difference == pytest.approx((4.5 + 2.5 - 3.5 - 1.5) / 10)
    assert [row.difference for row in in_family(found, "tasks")] == pytest.approx([1 / 7, 1 / 3])
    assert (other.value_a, other.value_b) == pytest.approx((0.5, 0.7))


def test_no_answer_counts_by_the_rule_that_was_chosen() -> None:
    wrong = [solver(name, said, abstain="wrong") for name, said in (("one", FIRST), ("two", SECOND))]
    (other,) = in_family(compare(wrong), "metrics")
    assert (other.value_a, other.value_b) == pytest.approx((0.4, 0.6))


def test_interval_and_p_are_those_of_the_row() -> None:
    one, two = solver("one", FIRST), solver("two", SECOND)
    found = compare([one, two])
    for row in all_paired(found):
        pairs = [(x, y) for x, y in zip(one.scores, two.scores, strict=True) if row.group in (x.task, "")]
        macro = row.metric == "accuracy_macro"
        left, right = (accuracy("", [pair[side] for pair in pairs], macro=macro) for side in (0, 1))
        expected = contrast(left, right)
        assert expected.interval is not None
        assert row.interval == (expected.interval.low, expected.interval.high)
        assert (row.difference, row.p) == (expected.difference, expected.p_value)


def test_p_values_are_adjusted_within_their_family() -> None:
    said = {"one": "w" * 12 + "r" * 8, "two": "r" * 6 + "w" * 6 + "r" * 8, "three": "r" * 12 + "w" * 2 + "r" * 6}
    found = compare([solver(name, {"Jigsaw": word}) for name, word in said.items()])
    for family in ("headline", "metrics", "tasks"):
        rows = in_family(found, family)
        assert len(rows) == 3
        p_values = [row.p for row in rows]
        assert None not in p_values
        assert [row.p_holm for row in rows] == list(holm([p for p in p_values if p is not None]))
        smallest = min(rows, key=lambda row: row.p or 0.0)
        assert smallest.p_holm == pytest.approx(3 * (smallest.p or 0.0))


def test_a_family_counts_only_what_is_tested() -> None:
    solvers = [
        solver("one", {"Jigsaw": "wwwwwwrr"}),
        solver("two", {"Jigsaw": "rrrrrrrr"}),
        solver("three", {"Jigsaw": "aaaaaaaa"}),
    ]
    found = compare(solvers)
    tested = [row for row in in_family(found, "headline") if row.withheld is None]
    assert [row.pair for row in tested] == [SolverPair("one", "two")]
    assert tested[0].p_holm == tested[0].p


TALLY = st.lists(st.tuples(st.sampled_from("rwauf"), st.sampled_from("rwauf")), min_size=2, max_size=12)


@settings(max_examples=20)
@given(TALLY, TALLY)
def test_the_other_way_round_everything_is_mirrored(jigsaw: Any, depth: Any) -> None:
    one, two = (
        solver(name, {"Jigsaw": "".join(p[side] for p in jigsaw), "Relative_Depth": "".join(p[side] for p in depth)})
        for side, name in ((0, "one"), (1, "two"))
    )
    forth = compare([one, two], ComparisonOptions(pairs=(SolverPair("one", "two"),), allow_failed=True))
    back = compare([one, two], ComparisonOptions(pairs=(SolverPair("two", "one"),), allow_failed=True))
    assert len(all_paired(forth)) == len(all_paired(back))
    for there, here in zip(all_paired(forth), all_paired(back), strict=True):
        mine, other = there.counts, here.counts
        assert (mine is None) == (other is None) == (there.family == "metrics")
        if mine is None or other is None:
            continue
        assert (mine.helped, mine.harmed, mine.none_a, mine.none_b) == (
            other.harmed,
            other.helped,
            other.none_b,
            other.none_a,
        )
        assert mine.helped + mine.harmed <= mine.both_answered <= mine.n
        assert mine.both_answered >= mine.n - mine.none_a - mine.none_b
        assert (there.value_a, there.value_b) == (here.value_b, here.value_a)
        if there.difference is not None:
            assert there.difference == pytest.approx(-(here.difference or 0.0), abs=1e-12)
        if there.interval is None or here.interval is None:
            assert there.interval is here.interval is None
            continue
        assert there.interval[0] == pytest.approx(-here.interval[1], abs=1e-9)
        assert there.p == pytest.approx(here.p)
        assert there.p_holm == pytest.approx(here.p_holm)


# What is missing.


def test_a_failed_question_is_in_no_number() -> None:
    whole = [solver("one", {"Jigsaw": "rrwwr"}), solver("two", {"Jigsaw": "rwrrr"})]
    holed = [solver("one", {"Jigsaw": "rrfwwr"}), solver("two", {"Jigsaw": "rwrrrr"})]
    before, after = (all_paired(compare(found, ComparisonOptions(allow_failed=True))) for found in (whole, holed))
    for old, new in zip(before, after, strict=True):
        assert (new.n, new.difference, new.p) == (
            old.n,
            old.difference,
            old.p,
        )
        if old.counts is not None:
            assert new.counts == replace(old.counts, failed=1)


def test_above_one_in_a_hundred_failed_nothing_is_tested() -> None:
    pairs = [("r" * 100 + "w", "f" + "r" * 99 + "r"), ("r" * 98 + "w", "f" + "r" * 98)]
    for (one, two), withheld in zip(pairs, (None, "failed"), strict=True):
        found = compare([solver("one", {"Jigsaw": one}), solver("two", {"Jigsaw": two})])
        assert {row.withheld for row in all_paired(found)} == {withheld}
        assert {row.p is None for row in all_paired(found)} == {withheld is not None}
        assert {row.interval is None for row in all_paired(found)} == {withheld is not None}
        assert {row.p_holm is None for row in all_paired(found)} == {withheld is not None}
        assert all(row.difference is not None for row in all_paired(found))
    asked_for = compare(
        [solver("one", {"Jigsaw": pairs[1][0]}), solver("two", {"Jigsaw": pairs[1][1]})],
        ComparisonOptions(allow_failed=True),
    )
    assert all(row.p is not None for row in all_paired(asked_for))


def test_failures_count_in_the_whole_and_in_the_row() -> None:
    few = compare(
        [
            solver("one", {"Jigsaw": "f" + "r" * 49, "Relative_Depth": "rw" * 75}),
            solver("two", {"Jigsaw": "r" * 49 + "w", "Relative_Depth": "rr" * 75}),
        ]
    )
    assert only(in_family(few, "headline")).withheld is None
    assert [row.withheld for row in in_family(few, "tasks")] == ["failed", None]
    many = compare(
        [
            solver("one", {"Jigsaw": "f" + "r" * 49, "Relative_Depth": "rrww"}),
            solver("two", {"Jigsaw": "r" * 49 + "w", "Relative_Depth": "wrwr"}),
        ]
    )
    assert only(in_family(many, "headline")).withheld == "failed"
    assert [row.withheld for row in in_family(many, "tasks")] == ["failed", "failed"]


def test_a_server_that_was_down_is_no_result() -> None:
    found = compare(
        [solver("down", {"Jigsaw": "f" * 20}), solver("up", {"Jigsaw": "r" * 20})], ComparisonOptions(allow_failed=True)
    )
    assert all(row.p is None for row in all_paired(found))
    assert {(row.counts.helped, row.counts.n) for row in all_paired(found)} <= {(0, 0)}


def test_who_answers_nothing_is_not_tested() -> None:
    silent = {"Jigsaw": "aaaaaa", "Relative_Depth": "rrwrrr"}
    found = compare([solver("one", silent), solver("two", {"Jigsaw": "rrrrrr", "Relative_Depth": "wrwrrr"})])
    jigsaw, depth = in_family(found, "tasks")
    assert (jigsaw.withheld, depth.withheld) == ("unanswered", None)
    assert (jigsaw.difference, jigsaw.interval, jigsaw.p) == (0.5, None, None)
    assert (jigsaw.counts.helped, jigsaw.counts.none_a, jigsaw.counts.none_b) == (0, 6, 0)
    assert depth.p_holm == depth.p
    assert only(in_family(found, "headline")).withheld is None


def test_questions_that_only_one_has_are_left_out_and_counted() -> None:
    one, two = solver("one", {"Jigsaw": "rrw..."}), solver("two", {"Jigsaw": ".rwrww"})
    found = compare([one, two])
    assert shared(found) == {"shared": 2, "only a": 1, "only b": 3, "failed": 0}
    headline = only(in_family(found, "headline"))
    assert (headline.n, headline.value_a, headline.value_b) == (2, 0.5, 0.5)


def test_a_unit_that_is_not_whole_for_both_is_missing() -> None:
    """MVP-Bench's mAcc asks for all questions of a pair of pictures: with one of them failed, it says nothing."""

    def pair(number: int, wrong: str = "") -> list[Score]:
        rows = []
        for q in (1, 2):
            for image in ("natural", "manipulated"):
                name = f"{number}{q}{image[0]}"
                groups = {"level": "low", "image": image, "pair": str(number), "question": f"{number}/{q}"}
                groups["category"] = "B1"
                word = "w" if name == wrong else "r"
                rows.append(score(name, "yes_no", word, 0.5, groups=groups, cluster=f"pair{number}"))
        return rows

    data = replace(VAL, benchmark="mvp_bench")
    left = [*pair(1), *pair(2, "21n"), *pair(3)]
    right = [*pair(1), *pair(2), *pair(3)]
    right[-1] = replace(right[-1], correct=0.0, outcome=Outcome.OUTAGE, answer=None)
    choice = {"level": "low", "image": "both", "pair": "1"}
    left.append(score("9", "cross", "w", 0.25, groups=choice, cluster="pair1"))
    right.append(score("9", "cross", "r", 0.25, groups=choice, cluster="pair1"))
    solvers = [
        scored_by("mvp_bench", name, dict.fromkeys(("chance", "wrong"), scores), {}, data)
        for name, scores in (("one", left), ("two", right))
    ]
    found = compare(solvers, ComparisonOptions(allow_failed=True))
    whole = only(in_family(found, "headline"))
    assert (whole.metric, whole.n) == ("mAcc", 2)
    assert (whole.value_a, whole.value_b, whole.difference) == (0.5, 1.0, 0.5)
    assert all_paired(found)[0] == whole
    # The question of multiple choice has no part in mAcc, and none in what is counted next to it.
    assert (whole.counts.n, whole.counts.failed, whole.counts.helped) == (11, 1, 1)
    shown = {row.metric for row in in_family(found, "metrics")}
    assert {"qAcc.low", "qAcc.multi", "aAcc.all", "iAcc.natural", "iAcc.all"} <= shown
    assert not any(name.startswith("pAcc") for name in shown)


def test_a_scanpath_is_tested_by_its_similarity() -> None:
    others = dict.fromkeys(("m_shape", "m_len", "m_pos"), 0.5)

    def paths(first: float) -> list[Score]:
        return [
            Score(f"Q9_{n}", "Q9", None, Outcome.ANSWERED, "6 fixations", values={**others, "m_dir": first + n / 10})
            for n in range(4)
        ]

    data = replace(VAL, benchmark="hvsbench")
    solvers = [
        scored_by("hvsbench", name, dict.fromkeys(("chance", "wrong"), paths(first)), {}, data)
        for name, first in (("one", 0.1), ("two", 0.3))
    ]
    found = compare(solvers)
    head = only(in_family(found, "headline"))
    assert (head.metric, head.n) == ("m_dir.q9", 4)
    assert head.difference == pytest.approx(0.2)
    assert not in_family(found, "tasks")


def test_who_answers_nothing_behind_a_metric_is_not_tested_by_it() -> None:
    def rows(low: str, high: str) -> list[Score]:
        return [
            score(
                f"{pair}{level}{image}",
                "yes_no",
                letter,
                0.5,
                groups={"level": level, "image": image, "pair": f"{pair}", "question": f"{pair}{level}"},
                cluster=f"{level}{pair}",
            )
            for level, letters in (("low", low), ("high", high))
            for pair, letter in enumerate(letters)
            for image in ("natural", "manipulated")
        ]

    data = replace(VAL, benchmark="mvp_bench")
    solvers = [
        scored_by("mvp_bench", name, dict.fromkeys(("chance", "wrong"), said), {}, data)
        for name, said in (("one", rows("uuuu", "rwrr")), ("two", rows("rrwr", "rrwr")))
    ]
    found = {row.metric: row.withheld for row in all_paired(compare(solvers))}
    assert (found["qAcc.low"], found["qAcc.high"], found["qAcc.multi"]) == ("unanswered", None, None)


def test_a_metric_over_other_units_is_not_tested() -> None:
    """A dialogue that cannot be retraced has no views: its recall is over fewer questions than the other's."""

    def zoomed(retraced: int) -> list[Score]:
        views = {"clues": 2.0, "hits": 1.0}
        return [
            score(f"v{n}", "counting", "r", 0.25, groups={"mode": "zoom"}, values=views if n < retraced else {})
            for n in range(4)
        ]

    data = replace(VAL, benchmark="actiview")
    solvers = [
        scored_by("actiview", name, dict.fromkeys(("chance", "wrong"), zoomed(retraced)), {}, data)
        for name, retraced in (("one", 4), ("two", 3))
    ]
    found = {row.metric: row for row in all_paired(compare(solvers))}
    assert found["accuracy.all"].withheld is None
    recall = found["recall_zoom"]
    assert (recall.withheld, recall.difference, recall.p) == ("units", 0.0, None)


# What may be compared.


def test_two_benchmarks_are_refused() -> None:
    mm_sap = replace(VAL, benchmark="mm_sap")
    with pytest.raises(UsageError, match=r"two benchmarks cannot be compared:\n  one: blink val.*\n  two: mm_sap val"):
        compare([solver("one", FIRST), replace(solver("two", FIRST), benchmark="mm_sap", data=mm_sap)])


def with_images(one: Scored, named: str) -> Scored:
    images = (StoredImage(named.encode().hex().zfill(64), 4, 4, "image/png"),)
    return replace(one, questions={name: replace(q, images=images) for name, q in one.questions.items()})  # type: ignore[arg-type]


def test_other_questions_under_the_same_ids_are_refused() -> None:
    real, generated = solver("one", FIRST), with_images(solver("two", SECOND, GENERATED), "drawn")
    with pytest.raises(UsageError, match="different questions under the same ids") as refused:
        compare([real, generated])
    told = str(refused.value)
    assert "one: blink val, folder, sha256 aaaaaaaaaaaa\n" in told
    assert "two: blink val, sample, seed 0, generator 7" in told
    assert "10 of the 10 ids that both have differ; Jigsaw_1 differs in images" in told


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"target": "(B)"}, "target"),
        ({"text": "What else?"}, "text"),
        ({"choices": ("x", "z")}, "choices"),
        ({"choices": ("x", "y", "z")}, "number of choices"),
        ({"images": (StoredImage("0" * 64, 4, 4, "image/png"),)}, "images"),
    ],
)
def test_one_question_that_differs_is_enough(changes: dict[str, Any], part: str) -> None:
    one, two = solver("one", FIRST), solver("two", SECOND, OTHER)
    odd = {**two.questions, "Jigsaw_3": question("Jigsaw_3", "Jigsaw", **changes)}
    with pytest.raises(UsageError, match=f"1 of the 10 ids that both have differ; Jigsaw_3 differs in {part}"):
        compare([one, replace(two, questions=odd)])


def test_the_same_questions_of_another_copy_are_compared() -> None:
    part = solver("two", {"Jigsaw": "r.w.r.w"}, OTHER)
    assert shared(compare([solver("one", FIRST), part])) == {"shared": 4, "only a": 6, "only b": 0, "failed": 0}


def test_the_same_data_asked_in_another_way_is_compared_and_told() -> None:
    one = solver("one", FIRST, replace(VAL, settings={"marks": "drawn"}))
    two = with_images(solver("two", SECOND, replace(VAL, settings={"marks": "radius:5,color:red"})), "redrawn")
    row = next(iter(questions.SECTION.rows(compare([one, two]))))
    assert (row.value, row.note) == (10, "asked with other settings (marks: drawn -> radius:5,color:red)")


def test_predictions_pair_by_what_both_sides_know() -> None:
    unknown = Data.of_predictions("blink", "val")
    bare = solver("saved", SECOND, unknown)
    bare = replace(
        bare, questions={n: replace(q, images=(), text="", choices=("", "")) for n, q in bare.questions.items()}
    )  # type: ignore[arg-type]
    assert shared(compare([solver("one", FIRST), bare]))["shared"] == 10
    other = {n: replace(q, target="(B)") for n, q in bare.questions.items()}  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="saved: blink val, predictions without their questions"):
        compare([solver("one", FIRST), replace(bare, questions=other)])
    # A harness keeps a part of the text.
    parts = {n: replace(q, text="Which of them?") for n, q in solver("one", FIRST).questions.items()}  # type: ignore[arg-type]
    kept = {n: replace(q, text=" which\nof") for n, q in bare.questions.items()}  # type: ignore[arg-type]
    both = [replace(solver("one", FIRST), questions=parts), replace(bare, questions=kept)]
    assert shared(compare(both))["shared"] == 10
    assert shared(compare(both[::-1]))["shared"] == 10
    # It is not known where two sets of predictions are from: the questions decide there too.
    with pytest.raises(UsageError, match="differs in target"):
        compare([bare, replace(bare, solver="another", questions=other)])
    # A target agrees by chance: generated questions match no predictions unless the images prove it.
    with pytest.raises(UsageError, match="images, which one side does not tell"):
        compare([solver("one", FIRST, GENERATED), bare])


# What is chosen.

NAMES = ("mllm", "specialist", "arbiter", "openai:gpt-4o")
THERE = "there are: mllm, specialist, arbiter, openai:gpt-4o"


def test_a_baseline_meets_every_other() -> None:
    assert chosen_pairs(NAMES, "arbiter", ()) == (
        SolverPair("arbiter", "mllm"),
        SolverPair("arbiter", "specialist"),
        SolverPair("arbiter", "openai:gpt-4o"),
    )


def test_pairs_are_taken_as_given() -> None:
    words = ("specialist:mllm", "openai:gpt-4o:mllm")
    assert chosen_pairs(NAMES, None, words) == (SolverPair("specialist", "mllm"), SolverPair("openai:gpt-4o", "mllm"))
    assert chosen_pairs(NAMES, None, ()) is None


@pytest.mark.parametrize(
    ("baseline", "words", "message"),
    [
        ("nobody", (), f"--baseline nobody: there is no such solver; {THERE}"),
        ("mllm", ("mllm:arbiter",), "--baseline and --pairs: give one of the two"),
        (None, ("mllm",), f"--pairs mllm: give two different solvers as A:B; {THERE}"),
        (None, ("mllm:mllm",), f"--pairs mllm:mllm: give two different solvers as A:B; {THERE}"),
        (None, ("mllm:nobody",), f"--pairs mllm:nobody: give two different solvers as A:B; {THERE}"),
        (None, ("mllm:arbiter", "arbiter:mllm"), "--pairs arbiter:mllm: this pair is given twice"),
        (None, ("mllm:arbiter", "mllm:arbiter"), "--pairs mllm:arbiter: this pair is given twice"),
    ],
)
def test_a_wrong_choice_is_refused(baseline: str | None, words: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        chosen_pairs(NAMES, baseline, words)
    assert str(refused.value) == message


def test_only_chosen_pairs_are_tested_and_counted_in_their_family() -> None:
    solvers = [solver(name, {"Jigsaw": word}) for name, word in (("a", "wwrr"), ("b", "rrrr"), ("c", "wrwr"))]
    found = compare(solvers, ComparisonOptions(pairs=(SolverPair("b", "a"),)))
    row = only(in_family(found, "headline"))
    assert (row.pair, row.difference) == (SolverPair("b", "a"), -0.5)
    assert row.p_holm == row.p
    with pytest.raises(UsageError, match="there is no solver 'd'; there are: a, b, c"):
        compare(solvers, ComparisonOptions(pairs=(SolverPair("a", "d"),)))


def test_a_baseline_comes_first_without_being_asked_for() -> None:
    solvers = [solver(name, FIRST) for name in ("arbiter", "mllm", "specialist")]
    assert [tuple(pair) for pair in compare(solvers).pairs] == [
        ("mllm", "specialist"),
        ("mllm", "arbiter"),
        ("specialist", "arbiter"),
    ]


def test_by_a_group_only_the_rows_change() -> None:
    def grouped(one: Scored) -> Scored:
        kinds = {"Jigsaw": "crop", "Relative_Depth": "pixel"}
        counted = {
            rule: replace(c, scores=tuple(replace(s, groups={"granularity": kinds[s.task]}) for s in c.scores))
            for rule, c in one.counted.items()
        }
        return replace(one, counted=counted)

    solvers = [grouped(solver("one", FIRST)), grouped(solver("two", SECOND))]
    plain, by = compare(solvers), compare(solvers, ComparisonOptions(by="granularity"))
    assert in_family(by, "headline") == in_family(plain, "headline")
    assert [(c.group, c.n) for c in in_family(by, "tasks")] == [("crop", 7), ("pixel", 3)]
    assert solvers[0].as_json("granularity")["metrics"] == solvers[0].as_json()["metrics"]


def test_a_group_that_only_one_side_knows_is_that_of_the_question() -> None:
    one, two = solver("one", FIRST), solver("two", SECOND)
    counted = {
        rule: replace(c, scores=tuple(replace(s, groups={"images": "3"}) for s in c.scores))
        for rule, c in two.counted.items()
    }
    for order in ([one, replace(two, counted=counted)], [replace(two, counted=counted), one]):
        assert [(c.group, c.n) for c in in_family(compare(order, ComparisonOptions(by="images")), "tasks")] == [
            ("3", 10)
        ]


def test_two_solvers_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="solvers of one name"):
        compare([solver("one", FIRST), solver("one", SECOND)])
    assert [one.solver for one in unique([solver("one", FIRST)] * 2, ["a", "b"])] == ["one (a)", "one (b)"]


def test_what_others_are_measured_against_comes_first() -> None:
    blank = solver("controller [blank]", SECOND, labels=(f"{CONTROL}blank",))
    found = compare([solver("controller", SECOND), blank, solver("mllm [x]", FIRST)])
    assert [(row.pair.a, row.pair.b) for row in in_family(found, "headline")] == [
        ("mllm [x]", "controller [blank]"),
        ("mllm [x]", "controller"),
        ("controller [blank]", "controller"),
    ]


def test_what_is_not_tested_still_has_both_values() -> None:
    silent = {"Jigsaw": "aaaaaaa", "Relative_Depth": "aaa"}
    row = only(in_family(compare([solver("one", FIRST), solver("two", silent)]), "headline"))
    assert row.withheld is not None
    assert (row.interval, row.p) == (None, None)
    assert None not in (row.value_a, row.value_b, row.difference)
