"""Comparisons by hand: what pairs, what is counted, what is tested, and what is refused."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.base import Benchmark, accuracy
from hybrid.errors import UsageError
from hybrid.registry import load
from hybrid.scoring.compare import CONTROL, Choice, Contest, Counts, Pair, chosen_pairs, compare, unique
from hybrid.scoring.pairing import Data
from hybrid.scoring.score import Counted, Scored, metrics_of
from hybrid.stats import contrast, holm
from hybrid.types import Kind, Metric, Outcome, Question, Score, StoredImage, Usage

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


def only(contests: Sequence[Contest]) -> Contest:
    (contest,) = contests
    return contest


def micro(scores: Sequence[Score]) -> Metric:
    return accuracy("", scores)


# What is counted.

FIRST = {"Jigsaw": "wwrarrw", "Relative_Depth": "rwu"}
SECOND = {"Jigsaw": "rrwrbrw", "Relative_Depth": "rru"}


def test_helped_and_harmed_are_of_questions_that_both_answered() -> None:
    found = compare([solver("one", FIRST), solver("two", SECOND)])
    assert only(found.family("headline")).counts == Counts(
        n=10, failed=0, both_answered=7, helped=3, harmed=1, none_a=2, none_b=2
    )
    jigsaw, depth = found.family("tasks")
    assert (jigsaw.group, depth.group) == ("Jigsaw", "Relative_Depth")
    assert jigsaw.counts == Counts(n=7, failed=0, both_answered=5, helped=2, harmed=1, none_a=1, none_b=1)
    assert depth.counts == Counts(n=3, failed=0, both_answered=2, helped=1, harmed=0, none_a=1, none_b=1)


def test_the_difference_is_of_the_metric_in_the_row_second_minus_first() -> None:
    found = compare([solver("one", FIRST), solver("two", SECOND)])
    headline = only(found.family("headline"))
    jigsaw, depth = (2.0 + 1 + 0.5, 1.5), (3.0 + 1 + 0.5, 2.5)
    macro = ((depth[0] - jigsaw[0]) / 7 + (depth[1] - jigsaw[1]) / 3) / 2
    assert headline.metric == "accuracy_macro"
    assert headline.contrast.difference == pytest.approx(macro)
    (other,) = found.family("metrics")
    assert other.metric == "accuracy_micro"
    assert other.contrast.difference == pytest.approx((4.5 + 2.5 - 3.5 - 1.5) / 10)
    assert [contest.contrast.difference for contest in found.family("tasks")] == pytest.approx([1 / 7, 1 / 3])
    assert (other.contrast.value_a, other.contrast.value_b) == pytest.approx((0.5, 0.7))


def test_no_answer_counts_by_the_rule_that_was_chosen() -> None:
    wrong = [solver(name, said, abstain="wrong") for name, said in (("one", FIRST), ("two", SECOND))]
    (other,) = compare(wrong).family("metrics")
    assert (other.contrast.value_a, other.contrast.value_b) == pytest.approx((0.4, 0.6))


def test_interval_and_p_are_those_of_the_row() -> None:
    one, two = solver("one", FIRST), solver("two", SECOND)
    found = compare([one, two])
    for contest in found.contests:
        pairs = [(x, y) for x, y in zip(one.scores, two.scores, strict=True) if contest.group in (x.task, "all tasks")]
        macro = contest.metric == "accuracy_macro"
        left, right = (accuracy("", [pair[side] for pair in pairs], macro=macro) for side in (0, 1))
        assert contest.contrast == contrast(left, right)
        assert contest.contrast.interval is not None
        assert contest.contrast.difference is not None
        assert contest.contrast.interval.low <= contest.contrast.difference <= contest.contrast.interval.high


def test_p_values_are_adjusted_within_their_family() -> None:
    said = {"one": "w" * 12 + "r" * 8, "two": "r" * 6 + "w" * 6 + "r" * 8, "three": "r" * 12 + "w" * 2 + "r" * 6}
    found = compare([solver(name, {"Jigsaw": word}) for name, word in said.items()])
    for family in ("headline", "metrics", "tasks"):
        contests = found.family(family)  # type: ignore[arg-type]
        assert len(contests) == 3
        p_values = [contest.contrast.p_value for contest in contests]
        assert None not in p_values
        assert [contest.p_holm for contest in contests] == list(holm([p for p in p_values if p is not None]))
        smallest = min(contests, key=lambda contest: contest.contrast.p_value or 0.0)
        assert smallest.p_holm == pytest.approx(3 * (smallest.contrast.p_value or 0.0))


def test_a_family_counts_only_what_is_tested() -> None:
    solvers = [
        solver("one", {"Jigsaw": "wwwwwwrr"}),
        solver("two", {"Jigsaw": "rrrrrrrr"}),
        solver("three", {"Jigsaw": "aaaaaaaa"}),
    ]
    found = compare(solvers)
    tested = [contest for contest in found.family("headline") if contest.withheld is None]
    assert [contest.pair for contest in tested] == [Pair("one", "two")]
    assert tested[0].p_holm == tested[0].contrast.p_value


TALLY = st.lists(st.tuples(st.sampled_from("rwauf"), st.sampled_from("rwauf")), min_size=2, max_size=12)


@settings(max_examples=60, deadline=None)
@given(TALLY, TALLY)
def test_the_other_way_round_everything_is_mirrored(jigsaw: Any, depth: Any) -> None:
    one, two = (
        solver(name, {"Jigsaw": "".join(p[side] for p in jigsaw), "Relative_Depth": "".join(p[side] for p in depth)})
        for side, name in ((0, "one"), (1, "two"))
    )
    forth = compare([one, two], Choice(pairs=(Pair("one", "two"),), allow_failed=True))
    back = compare([one, two], Choice(pairs=(Pair("two", "one"),), allow_failed=True))
    assert len(forth.contests) == len(back.contests)
    for there, here in zip(forth.contests, back.contests, strict=True):
        mine, other = there.counts, here.counts
        assert (mine.helped, mine.harmed, mine.none_a, mine.none_b) == (
            other.harmed,
            other.helped,
            other.none_b,
            other.none_a,
        )
        assert mine.helped + mine.harmed <= mine.both_answered <= mine.n
        assert mine.both_answered >= mine.n - mine.none_a - mine.none_b
        assert (there.contrast.value_a, there.contrast.value_b) == (here.contrast.value_b, here.contrast.value_a)
        if there.contrast.difference is not None:
            assert there.contrast.difference == pytest.approx(-(here.contrast.difference or 0.0), abs=1e-12)
        if there.contrast.interval is None or here.contrast.interval is None:
            assert there.contrast.interval is here.contrast.interval is None
            continue
        assert there.contrast.interval.low == pytest.approx(-here.contrast.interval.high, abs=1e-9)
        assert there.contrast.p_value == pytest.approx(here.contrast.p_value)
        assert there.p_holm == pytest.approx(here.p_holm)


# What is missing.


def test_a_failed_question_is_in_no_number() -> None:
    whole = [solver("one", {"Jigsaw": "rrwwr"}), solver("two", {"Jigsaw": "rwrrr"})]
    holed = [solver("one", {"Jigsaw": "rrfwwr"}), solver("two", {"Jigsaw": "rwrrrr"})]
    before, after = (compare(found, Choice(allow_failed=True)).contests for found in (whole, holed))
    for old, new in zip(before, after, strict=True):
        assert (new.n, new.contrast.difference, new.contrast.p_value) == (
            old.n,
            old.contrast.difference,
            old.contrast.p_value,
        )
        assert replace(new.counts, failed=0) == old.counts
        assert new.counts.failed == 1


def test_above_one_in_a_hundred_failed_nothing_is_tested() -> None:
    pairs = [("r" * 100 + "w", "f" + "r" * 99 + "r"), ("r" * 98 + "w", "f" + "r" * 98)]
    for (one, two), withheld in zip(pairs, (None, "failed"), strict=True):
        found = compare([solver("one", {"Jigsaw": one}), solver("two", {"Jigsaw": two})])
        assert {contest.withheld for contest in found.contests} == {withheld}
        assert {contest.contrast.p_value is None for contest in found.contests} == {withheld is not None}
        assert {contest.contrast.interval is None for contest in found.contests} == {withheld is not None}
        assert {contest.p_holm is None for contest in found.contests} == {withheld is not None}
        assert all(contest.contrast.difference is not None for contest in found.contests)
    asked_for = compare(
        [solver("one", {"Jigsaw": pairs[1][0]}), solver("two", {"Jigsaw": pairs[1][1]})], Choice(allow_failed=True)
    )
    assert all(contest.contrast.p_value is not None for contest in asked_for.contests)


def test_failures_count_in_the_whole_and_in_the_row() -> None:
    few = compare(
        [
            solver("one", {"Jigsaw": "f" + "r" * 49, "Relative_Depth": "rw" * 75}),
            solver("two", {"Jigsaw": "r" * 49 + "w", "Relative_Depth": "rr" * 75}),
        ]
    )
    assert only(few.family("headline")).withheld is None
    assert [contest.withheld for contest in few.family("tasks")] == ["failed", None]
    many = compare(
        [
            solver("one", {"Jigsaw": "f" + "r" * 49, "Relative_Depth": "rrww"}),
            solver("two", {"Jigsaw": "r" * 49 + "w", "Relative_Depth": "wrwr"}),
        ]
    )
    assert only(many.family("headline")).withheld == "failed"
    assert [contest.withheld for contest in many.family("tasks")] == ["failed", "failed"]


def test_a_server_that_was_down_is_no_result() -> None:
    found = compare(
        [solver("down", {"Jigsaw": "f" * 20}), solver("up", {"Jigsaw": "r" * 20})], Choice(allow_failed=True)
    )
    assert all(contest.contrast.p_value is None for contest in found.contests)
    assert {(contest.counts.helped, contest.counts.n) for contest in found.contests} <= {(0, 0)}


def test_who_answers_nothing_is_not_tested() -> None:
    silent = {"Jigsaw": "aaaaaa", "Relative_Depth": "rrwrrr"}
    found = compare([solver("one", silent), solver("two", {"Jigsaw": "rrrrrr", "Relative_Depth": "wrwrrr"})])
    jigsaw, depth = found.family("tasks")
    assert (jigsaw.withheld, depth.withheld) == ("unanswered", None)
    assert (jigsaw.contrast.difference, jigsaw.contrast.interval, jigsaw.contrast.p_value) == (0.5, None, None)
    assert (jigsaw.counts.helped, jigsaw.counts.none_a, jigsaw.counts.none_b) == (0, 6, 0)
    assert depth.p_holm == depth.contrast.p_value
    assert only(found.family("headline")).withheld is None


def test_questions_that_only_one_has_are_left_out_and_counted() -> None:
    one, two = solver("one", {"Jigsaw": "rrw..."}), solver("two", {"Jigsaw": ".rwrww"})
    found = compare([one, two])
    (meeting,) = found.meetings
    assert (meeting.shared, meeting.only_a, meeting.only_b, meeting.failed) == (2, 1, 3, 0)
    headline = only(found.family("headline"))
    assert (headline.n, headline.contrast.value_a, headline.contrast.value_b) == (2, 0.5, 0.5)


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
    found = compare(solvers, Choice(allow_failed=True))
    whole = only(found.family("headline"))
    assert (whole.metric, whole.n) == ("mAcc", 2)
    assert (whole.contrast.value_a, whole.contrast.value_b, whole.contrast.difference) == (0.5, 1.0, 0.5)
    assert found.contests[0] == whole
    # The question of multiple choice has no part in mAcc, and none in what is counted next to it.
    assert (whole.counts.n, whole.counts.failed, whole.counts.helped) == (11, 1, 1)
    shown = {contest.metric for contest in found.family("metrics")}
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
    head = only(found.family("headline"))
    assert (head.metric, head.n) == ("m_dir.q9", 4)
    assert head.contrast.difference == pytest.approx(0.2)
    assert not found.family("tasks")


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
    found = {contest.metric: contest.withheld for contest in compare(solvers).contests}
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
    found = {contest.metric: contest for contest in compare(solvers).contests}
    assert found["accuracy.all"].withheld is None
    recall = found["recall_zoom"]
    assert (recall.withheld, recall.contrast.difference, recall.contrast.p_value) == ("units", 0.0, None)


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
    (meeting,) = compare([solver("one", FIRST), part]).meetings
    assert (meeting.shared, meeting.only_a, meeting.only_b) == (4, 6, 0)


def test_the_same_data_asked_in_another_way_is_compared_and_told() -> None:
    one = solver("one", FIRST, replace(VAL, settings={"marks": "drawn"}))
    two = with_images(solver("two", SECOND, replace(VAL, settings={"marks": "radius:5,color:red"})), "redrawn")
    (meeting,) = compare([one, two]).meetings
    assert (meeting.shared, meeting.settings) == (10, ("marks: drawn -> radius:5,color:red",))


def test_predictions_pair_by_what_both_sides_know() -> None:
    unknown = Data.of_predictions("blink", "val")
    bare = solver("saved", SECOND, unknown)
    bare = replace(
        bare, questions={n: replace(q, images=(), text="", choices=("", "")) for n, q in bare.questions.items()}
    )  # type: ignore[arg-type]
    assert compare([solver("one", FIRST), bare]).meetings[0].shared == 10
    other = {n: replace(q, target="(B)") for n, q in bare.questions.items()}  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="saved: blink val, predictions without their questions"):
        compare([solver("one", FIRST), replace(bare, questions=other)])
    # A harness keeps a part of the text.
    parts = {n: replace(q, text="Which of them?") for n, q in solver("one", FIRST).questions.items()}  # type: ignore[arg-type]
    kept = {n: replace(q, text=" which\nof") for n, q in bare.questions.items()}  # type: ignore[arg-type]
    both = [replace(solver("one", FIRST), questions=parts), replace(bare, questions=kept)]
    assert compare(both).meetings[0].shared == 10
    assert compare(both[::-1]).meetings[0].shared == 10
    # Nobody knows where two sets of predictions are from: the questions decide there too.
    with pytest.raises(UsageError, match="differs in target"):
        compare([bare, replace(bare, solver="another", questions=other)])
    # A target agrees by chance: generated questions are nobody's predictions unless the images prove it.
    with pytest.raises(UsageError, match="images, which one side does not tell"):
        compare([solver("one", FIRST, GENERATED), bare])


# What is chosen.

NAMES = ("mllm", "specialist", "arbiter", "openai:gpt-4o")


def test_a_baseline_meets_every_other() -> None:
    assert chosen_pairs(NAMES, "arbiter", ()) == (
        Pair("arbiter", "mllm"),
        Pair("arbiter", "specialist"),
        Pair("arbiter", "openai:gpt-4o"),
    )


def test_pairs_are_taken_as_given() -> None:
    words = ("specialist:mllm", "openai:gpt-4o:mllm")
    assert chosen_pairs(NAMES, None, words) == (Pair("specialist", "mllm"), Pair("openai:gpt-4o", "mllm"))
    assert chosen_pairs(NAMES, None, ()) is None


@pytest.mark.parametrize(
    ("baseline", "words", "message"),
    [
        ("nobody", (), "there is no such solver; there are: mllm, specialist"),
        ("mllm", ("mllm:arbiter",), "give one of the two"),
        (None, ("mllm",), "give two different solvers as A:B"),
        (None, ("mllm:mllm",), "give two different solvers as A:B"),
        (None, ("mllm:nobody",), "give two different solvers as A:B"),
        (None, ("mllm:arbiter", "arbiter:mllm"), "this pair is given twice"),
        (None, ("mllm:arbiter", "mllm:arbiter"), "this pair is given twice"),
    ],
)
def test_a_wrong_choice_is_refused(baseline: str | None, words: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        chosen_pairs(NAMES, baseline, words)


def test_only_chosen_pairs_are_tested_and_counted_in_their_family() -> None:
    solvers = [solver(name, {"Jigsaw": word}) for name, word in (("a", "wwrr"), ("b", "rrrr"), ("c", "wrwr"))]
    found = compare(solvers, Choice(pairs=(Pair("b", "a"),)))
    contest = only(found.family("headline"))
    assert (contest.pair, contest.contrast.difference) == (Pair("b", "a"), -0.5)
    assert contest.p_holm == contest.contrast.p_value
    with pytest.raises(UsageError, match="there is no solver 'd'; there are: a, b, c"):
        compare(solvers, Choice(pairs=(Pair("a", "d"),)))


def test_a_baseline_comes_first_without_being_asked_for() -> None:
    solvers = [solver(name, FIRST) for name in ("arbiter", "mllm", "specialist")]
    assert [tuple(meeting.pair) for meeting in compare(solvers).meetings] == [
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
    plain, by = compare(solvers), compare(solvers, Choice(by="granularity"))
    assert by.family("headline") == plain.family("headline")
    assert [(c.group, c.n) for c in by.family("tasks")] == [("crop", 7), ("pixel", 3)]
    assert solvers[0].as_json("granularity")["metrics"] == solvers[0].as_json()["metrics"]


def test_a_group_that_only_one_side_knows_is_that_of_the_question() -> None:
    one, two = solver("one", FIRST), solver("two", SECOND)
    counted = {
        rule: replace(c, scores=tuple(replace(s, groups={"images": "3"}) for s in c.scores))
        for rule, c in two.counted.items()
    }
    for order in ([one, replace(two, counted=counted)], [replace(two, counted=counted), one]):
        assert [(c.group, c.n) for c in compare(order, Choice(by="images")).family("tasks")] == [("3", 10)]


def test_two_solvers_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="solvers of one name"):
        compare([solver("one", FIRST), solver("one", SECOND)])
    assert [one.solver for one in unique([solver("one", FIRST)] * 2, ["a", "b"])] == ["one (a)", "one (b)"]


def test_the_json_has_both_sides_of_every_number() -> None:
    one, two = solver("one", FIRST, usage=Usage()), solver("two", SECOND)
    found: Any = compare([one, two]).as_json()
    assert set(found) == {"solvers", "questions", "pairs"}
    assert found["questions"] == [{"a": "one", "b": "two", "shared": 10, "only_a": 0, "only_b": 0, "failed": 0}]
    families = [(row["family"], row["metric"], row["group"]) for row in found["pairs"]]
    assert families == [
        ("headline", "accuracy_macro", "all tasks"),
        ("metrics", "accuracy_micro", "all tasks"),
        ("tasks", "accuracy", "Jigsaw"),
        ("tasks", "accuracy", "Relative_Depth"),
    ]
    micro_row = found["pairs"][1]
    counts = ("n", "both_answered", "helped", "harmed", "none_a", "none_b", "failed", "clusters")
    numbers = ("value_a", "value_b", "difference", "interval", "p", "p_holm", "test", "withheld")
    whose = ("model_a", "run_a", "model_b", "run_b")
    assert set(micro_row) == {"a", "b", *whose, "family", "metric", "group", *counts, *numbers}
    assert (micro_row["a"], micro_row["b"]) == ("one", "two")
    assert (micro_row["clusters"], micro_row["withheld"], micro_row["failed"]) == (10, None, 0)
    expected = contrast(micro(one.scores), micro(two.scores))
    assert expected.interval is not None
    assert micro_row["interval"] == [expected.interval.low, expected.interval.high]
    assert (micro_row["p"], micro_row["p_holm"], micro_row["test"]) == (expected.p_value,) * 2 + (expected.test,)
    assert (micro_row["value_a"], micro_row["value_b"], micro_row["difference"]) == pytest.approx((0.5, 0.7, 0.2))
    assert (micro_row["helped"], micro_row["harmed"], micro_row["both_answered"]) == (3, 1, 7)
    assert (micro_row["none_a"], micro_row["none_b"], micro_row["n"]) == (2, 2, 10)
    assert found["solvers"]["one"]["n"] == 10
    three = compare([one, two, solver("three", {"Jigsaw": "rrrrrrr", "Relative_Depth": "rrr"})])
    told: Any = three.as_json()["pairs"]
    assert [row["p_holm"] for row in told] == [contest.p_holm for contest in three.contests]
    assert any(row["p_holm"] > row["p"] for row in told)


def test_what_others_are_measured_against_comes_first() -> None:
    blank = solver("controller [blank]", SECOND, labels=(f"{CONTROL}blank",))
    found = compare([solver("controller", SECOND), blank, solver("mllm [x]", FIRST)])
    assert [(contest.pair.a, contest.pair.b) for contest in found.family("headline")] == [
        ("mllm [x]", "controller [blank]"),
        ("mllm [x]", "controller"),
        ("controller [blank]", "controller"),
    ]


def test_what_is_not_tested_still_has_both_values() -> None:
    silent = {"Jigsaw": "aaaaaaa", "Relative_Depth": "aaa"}
    contest = only(compare([solver("one", FIRST), solver("two", silent)]).family("headline"))
    assert contest.withheld is not None
    assert (contest.contrast.test, contest.contrast.clusters, contest.contrast.p_value) == ("none", 10, None)
    told: Any = compare([solver("one", FIRST), solver("two", silent)]).as_json()
    assert (told["pairs"][0]["interval"], told["pairs"][0]["withheld"]) == (None, contest.withheld)
