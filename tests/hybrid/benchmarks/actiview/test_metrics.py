"""ActiView's metrics: recalls and accuracies of the paper from their definitions, and the released rule for answers."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.actiview import BENCHMARK
from hybrid.benchmarks.actiview.data import TASKS
from hybrid.benchmarks.actiview.metrics import hits, hits_as_printed, official_answer
from hybrid.benchmarks.base import ScoreOptions
from hybrid.core.images import ImageStore
from hybrid.core.types import Exchange, Kind, Metric, Outcome, Prompt, Question, Reply, Score, StoredImage
from hybrid.running.data import mount, questions
from hybrid.scoring.published import published
from tests.hybrid.benchmarks.mounted import hold_dialogue

CLUE_VIEWS = 859
RECALLS = [row for row in published("actiview") if row.source == "Table 13" and row.metric.startswith("recall")]
NO_FRACTION = {("MiniCPM-V 2.6", 57.03), ("LLaVA-OneVision", 46.67)}


def question_of(
    number: int,
    views: Sequence[int] = (1,),
    mode: str = "zoom",
    *,
    start: str = "",
    choices: int = 4,
    task: str = "counting",
    gold: str = "A",
) -> Question:
    images = tuple(StoredImage(f"{number}{place}".rjust(64, "0"), 8, 8, "image/png") for place in range(6))
    column = f"{mode}_{start}" if start else mode
    return Question(
        f"q{number}#{column}",
        task,
        images,
        "What?",
        Kind.CHOICE,
        tuple(f"thing {letter}" for letter in "abcdefg"[:choices]),
        {"answer": gold, "views": list(views)},
        groups={"mode": column, "type": TASKS[task]["type"]},
        protocol={
            "mode": mode,
            "start": 1 if start else None,
            "choose": False,
            "splits": 4,
            "images": "separate",
            "decisions": "strict",
        },
        cluster=f"q{number}",
    )


def scored(question: Question, replies: Sequence[str], parse: str = "strict") -> Score:
    exchanges = hold_dialogue(BENCHMARK, question, replies)
    return BENCHMARK.score(question, exchanges, ScoreOptions(parse="official" if parse == "official" else "strict"))


def metrics_by_name(scores: Sequence[Score]) -> dict[str, Metric]:
    return {metric.name: metric for metric in BENCHMARK.summarise(scores)}


def test_28_of_the_30_printed_recalls_are_so_many_of_859_views() -> None:
    assert len(RECALLS) == 30
    possible = {round(100 * count / CLUE_VIEWS, 2) for count in range(CLUE_VIEWS + 1)}
    assert {(row.who, row.value) for row in RECALLS if row.value not in possible} == NO_FRACTION
    assert round(100 * 490 / CLUE_VIEWS, 2) == 57.04
    assert round(100 * 401 / CLUE_VIEWS, 2) == 46.68


@pytest.mark.shared_data
def test_the_printed_ceiling_of_shifting_comes_from_counting_views_from_0(shared_data: Path) -> None:
    clues = json.loads((shared_data / "actiview" / "groundtruth_views.json").read_text())
    scores = [scored(question_of(n, views, "shift", start="R"), ["yes"]) for n, views in enumerate(clues)]
    result = metrics_by_name(scores)
    assert result["views.mean"].value == 4.0
    assert result["recall_shift"].value == 1.0
    assert sum(score.values["hits_as_printed"] for score in scores) == 641
    assert result["recall_shift_paper"].value == pytest.approx(641 / CLUE_VIEWS)
    assert round(100 * 641 / CLUE_VIEWS, 2) == 74.62
    # The paper's recall of a model that looks at all four views is the largest possible one.
    rows = {row.who: row for row in published("actiview") if row.metric == "recall_shift_paper"}
    seen = {row.who: row.value for row in published("actiview") if row.metric == "views_shift.mean"}
    assert {rows[who].value for who, views in seen.items() if views == 4.0} == {74.62}
    assert max(row.value for row in rows.values()) == 74.62


@pytest.mark.shared_data
def test_zoom_recall_is_micro(shared_data: Path) -> None:
    clues = json.loads((shared_data / "actiview" / "groundtruth_views.json").read_text())
    replies = ["Answer: 1, 2", "Answer: 4"]
    scores = [scored(question_of(n, views), [replies[n % 2], "A"]) for n, views in enumerate(clues)]
    expected = sum(len(set(views) & ({1, 2} if n % 2 == 0 else {4})) for n, views in enumerate(clues))
    metric = metrics_by_name(scores)["recall_zoom"]
    assert metric.value == pytest.approx(expected / CLUE_VIEWS)
    assert sum(cell.denominator for cell in metric.cells) == CLUE_VIEWS


@pytest.mark.system
@settings(max_examples=40)
@given(st.lists(st.tuples(st.sets(st.integers(1, 4)), st.sets(st.integers(1, 4), min_size=1)), min_size=1, max_size=12))
def test_recall_counts_views(seen: list[tuple[set[int], set[int]]]) -> None:
    scores = []
    for number, (text, clues) in enumerate(seen):
        reply = ", ".join(map(str, sorted(text))) or "none"
        scores.append(scored(question_of(number, sorted(clues)), [reply, "A"]))
    result = metrics_by_name(scores)
    hit = sum(len(rendered & clues) for rendered, clues in seen)
    assert result["recall_zoom"].value == pytest.approx(hit / sum(len(clues) for _, clues in seen))
    assert result["zooms.mean"].value == result["views.mean"].value
    assert result["views.mean"].value == pytest.approx(sum(len(other_text) for other_text, _ in seen) / len(seen))


@given(st.sets(st.integers(1, 4)), st.sets(st.integers(1, 4)))
def test_hits(views: set[int], clues: set[int]) -> None:
    assert hits(views, clues) == len(views & clues) <= len(clues)
    assert hits_as_printed(views, clues) == sum(number - 1 in clues for number in views)


@pytest.mark.shared_data
def test_chance_of_the_official_file(shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "actiview"
    if not (folder / "data.json").exists():
        pytest.skip("data.json of ActiView is not there")
    store = ImageStore(tmp_path)
    mounted = mount(BENCHMARK, str(folder), split=None, tasks=(), settings={"mode": "full"}, store=store)
    values = [question for question in questions(BENCHMARK, mounted.source, None) if isinstance(question, Question)]
    assert round(100 * sum(1 / len(question.choices) for question in values) / len(values), 2) == 33.95


def released_verdict(reply: str, options: list[str], gold: int) -> bool:
    """Return whether `cal_acc` of the released `toolkit/evaluator.py` counts a reply as right, step by step."""
    text = reply
    if "Answer:" in text:
        text = text.split("Answer:")[1].strip()
    letters = ["A", "B", "C", "D", "E", "F", "G", "H", "Z"]
    try:
        return letters.index(text.split(".")[0]) == gold
    except ValueError:
        return text.lower().strip() == options[gold].lower()


PIECES = (
    *("A", "B", "C", "D", "H", "Z", "a", "AB", "BC", "(A)", "[B]", "Answer:", "answer:", "Answer", ".", ",", ":", ";"),
    *(
        " ",
        "  ",
        "\n",
        "\t",
        "red",
        "Red",
        "two cars",
        "Two Cars.",
        "The answer is",
        "No",
        "1",
        "",
        "A.B",
        "\xa0",
        "A.\n",
    ),
)


def test_the_released_rule_says_the_same_of_52_000_replies() -> None:
    rng = random.Random(13)
    options = ["red", "two cars ", "No", "A"]
    right = 0
    for number in range(52_000):
        reply = "".join(rng.choices(PIECES, k=rng.randint(0, 5)))
        option, gold = options[: 3 + number % 2], rng.randrange(3)
        result = official_answer(reply, option, "ABCD"[gold])
        assert (result == "ABCD"[gold]) == released_verdict(reply, option, gold), (reply, option, gold)
        right += result == "ABCD"[gold]
    assert right > 1000


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        *(("A", "A"), ("A. No;", "A"), ("Answer: B", "B"), ("Answer:C Answer: A", "C"), ("RED ", "A"), ("D", None)),
        *((" B", None), ("AB", None), ("(A)", None), ("A;", None), ("A: red", None), ("answer: B", None), ("", None)),
    ],
)
def test_the_released_rule_looks_a_piece_up_in_a_list(reply: str, letter: str | None) -> None:
    assert official_answer(reply, ("red", "two cars", "No"), "A") == letter


def test_the_released_rule_does_not_strip_options() -> None:
    assert official_answer(" two cars", ("red", "two cars"), "B") == "B"
    assert official_answer("two cars ", ("red", "two cars "), "B") is None


@given(st.text(max_size=40), st.sampled_from("ABC"))
def test_the_released_rule_never_gives_what_was_not_offered(text: str, gold: str) -> None:
    result = official_answer(text, ("x", "y", "z"), gold)
    assert result in (None, "A", "B", "C")
    if not text.strip():
        assert result is None


def test_verdicts() -> None:
    question = question_of(1, gold="B")
    assert scored(question, ["1", "The answer is (B)."]).correct == 1.0
    assert scored(question, ["1", "The answer is (B)."], "official").outcome is Outcome.UNPARSED
    assert scored(question, ["1", "B. thing b"], "official").correct == 1.0
    empty = scored(question, ["1", ""])
    assert (empty.correct, empty.outcome, empty.answer) == (0.0, Outcome.UNPARSED, None)
    stored = BENCHMARK.score_stored(question, "(B)")
    assert (stored.correct, stored.answer) == (1.0, "B")
    assert BENCHMARK.score_stored(question, "B. thing b").outcome is Outcome.UNPARSED
    prompt = Prompt(("What?",), Kind.CHOICE, question.choices)
    abstained = [Exchange(prompt, Reply("1")), Exchange(prompt, Reply("", Outcome.ABSTAINED))]
    for without in (abstained, [Exchange(prompt, Reply("1")), Exchange(prompt, Reply("I cannot say."))]):
        assert BENCHMARK.score(question, without, ScoreOptions(unanswered="guess")).correct == 0.25
        assert BENCHMARK.score(question, without, ScoreOptions()).correct == 0.0
    assert BENCHMARK.score_stored(question, "B. thing b", ScoreOptions(unanswered="guess")).correct == 0.25


def test_no_scores_have_no_numbers() -> None:
    assert all(metric.value is None for metric in BENCHMARK.summarise([]))


def test_published_rows() -> None:
    rows = published("actiview")
    tables = {row.source for row in rows}
    assert tables == {f"Table {number}" for number in (2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15)} | {"section 5"}
    human = [row for row in rows if row.kind == "human"]
    assert {(row.value, row.n) for row in human} == {(77.53, "60"), (84.67, "60")}
    doubtful = {row.source for row in rows if row.who == "LLaVA-1.6 13B" and "45.85" in row.note}
    assert doubtful == {"Table 7", "Table 14"}
