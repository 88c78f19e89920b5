"""The section on non-inferiority: which solvers it sets against which, and that it says what `compare` finds."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from hybrid.benchmarks.base import Abstain, Benchmark
from hybrid.errors import UsageError
from hybrid.registry import load
from hybrid.run_folder import RunFolder
from hybrid.scoring.compare import Choice, Pair, compare
from hybrid.scoring.noninferior import section
from hybrid.scoring.pairing import Data
from hybrid.scoring.score import Counted, Scored, metrics_of
from hybrid.scoring.told import Told
from hybrid.types import Json, Kind, Outcome, Question, Score, StoredImage

VAL = Data("blink", "val", {"kind": "folder", "sha256": "a" * 64}, {})
RULES: Mapping[Abstain, float] = {"chance": 0.5, "wrong": 0.0}


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path)
    folder.write_manifest({"identity": {"benchmark": "blink", "split": "val"}, "solvers": {}})
    return folder


def solver(run: RunFolder, name: str, said: str, **changes: object) -> Scored:
    """A solver of that word: `r` right, `w` wrong, `u` unreadable, `f` failed; a third of the questions each task."""
    tasks = ("Jigsaw", "Relative_Depth", "Counting")
    outcomes = {"u": Outcome.UNPARSED, "f": Outcome.OUTAGE}
    questions, counted = {}, {}
    for rule, chance in RULES.items():
        scores = []
        for place, letter in enumerate(said):
            identity, task = f"q{place}", tasks[place % 3]
            image = StoredImage(f"{place:064x}", 4, 4, "image/png")
            questions[identity] = Question(identity, task, (image,), "Which?", Kind.CHOICE, ("x", "y"), "(A)")
            worth = {"r": 1.0, "u": chance}.get(letter, 0.0)
            answer = "A" if letter in "rw" else None
            scores.append(Score(identity, task, worth, outcomes.get(letter, Outcome.ANSWERED), answer))
        benchmark: Benchmark = load("hybrid.benchmarks", "blink")
        counted[rule] = Counted(tuple(scores), metrics_of(benchmark, questions, scores))
    made = Scored("blink", name, counted, "wrong", questions, VAL, recorded=name, folder=run, model="openai:m")
    return replace(made, **changes)  # type: ignore[arg-type]  # fields by name


def told(*solvers: Scored, choice: Choice | None = None) -> Told:
    found = section(compare(solvers, choice))
    assert found is not None
    return found


def verdicts(found: Told) -> list[tuple[Json, Json, Json]]:
    return [(row["hybrid"], row["against"], row["verdict"]) for row in found.data]


def test_each_hybrid_solver_is_set_against_its_parts(run: RunFolder) -> None:
    found = told(
        solver(run, "controller", "r" * 85 + "w" * 15),
        solver(run, "mllm", "r" * 50 + "w" * 50),
        solver(run, "arbiter", "r" * 30 + "w" * 70),
        solver(run, "specialist", "w" * 15 + "r" * 85),
        solver(run, "chance", "r" * 50 + "w" * 50),
    )
    assert verdicts(found) == [
        ("controller", "mllm", "superior"),
        ("controller", "specialist", "undecided"),
        ("arbiter", "mllm", "inferior"),
        ("arbiter", "specialist", "inferior"),
    ]
    assert [row["part"] for row in found.data] == ["alone", "specialist"] * 2
    assert [row[-1] for row in found.tables[0].rows] == [row["verdict"] for row in found.data]
    assert found.name == "noninferior"


def test_the_numbers_are_those_of_the_headline_that_compare_prints(run: RunFolder) -> None:
    one, two = solver(run, "mllm", "rwrrwwrwrr" * 6), solver(run, "controller", "rrrwrwrwrr" * 6)
    compared = compare([one, two])
    contest = next(one for one in compared.family("headline") if one.pair == Pair("mllm", "controller"))
    (row,) = told(one, two).data
    assert contest.contrast.interval is not None
    assert (row["metric"], row["n"], row["margin"]) == (contest.metric, contest.n, 0.05)
    assert row["difference"] == contest.contrast.difference
    assert row["interval"] == [contest.contrast.interval.low, contest.contrast.interval.high]
    assert (row["withheld"], isinstance(row["p"], float)) == (None, True)


def test_it_does_not_need_the_pair_to_be_chosen(run: RunFolder) -> None:
    solvers = [solver(run, name, "rwrrwwrwrr" * 6) for name in ("controller", "mllm", "specialist")]
    chosen = Choice(pairs=(Pair("mllm", "specialist"),))
    assert len(told(*solvers, choice=chosen).data) == 2


def test_the_margin_decides_and_is_named(run: RunFolder) -> None:
    solvers = (solver(run, "mllm", "rrrrrrrw" * 30), solver(run, "controller", "rrrrrrrw" * 29 + "wwwrrrrw"))
    narrow, wide = (told(*solvers, choice=Choice(margin=margin)) for margin in (0.01, 0.1))
    assert [row["verdict"] for found in (narrow, wide) for row in found.data] == ["undecided", "not inferior"]
    assert "0.1" in wide.title
    assert "-0.1" in wide.tables[0].notes[0]
    assert [row["margin"] for row in wide.data] == [0.1]
    with pytest.raises(UsageError, match="--margin 0"):
        section(compare(solvers, Choice(margin=0.0)))


def test_only_questions_that_both_have_and_neither_failed(run: RunFolder) -> None:
    one, two = solver(run, "mllm", "rw" * 60), solver(run, "controller", "rw" * 60 + "f")
    assert [row["n"] for row in told(one, two, choice=Choice(allow_failed=True)).data] == [120]
    failing = solver(run, "controller", "f" * 20 + "rw" * 50)
    (row,) = told(one, failing).data
    assert (row["withheld"], row["verdict"], row["interval"], row["p"], row["n"]) == (
        "failed",
        "undecided",
        None,
        None,
        100,
    )
    (row,) = told(one, failing, choice=Choice(allow_failed=True)).data
    assert row["withheld"] is None
    assert row["interval"] is not None


def test_a_part_that_answers_nothing_is_nothing_to_be_measured_against(run: RunFolder) -> None:
    found = told(solver(run, "controller", "rw" * 30), solver(run, "specialist", "u" * 60))
    assert verdicts(found) == [("controller", "specialist", "undecided")]
    assert found.data[0]["withheld"] == "unanswered"
    assert any("nothing is tested" in note for note in found.tables[0].notes)


def test_a_program_reads_the_difference_the_margin_and_p(run: RunFolder) -> None:
    found = told(solver(run, "controller", "rrw" * 30), solver(run, "mllm", "rwr" * 30))
    difference, margin, p = found.numbers
    (row,) = found.data
    assert (difference.quantity, difference.value, difference.low, difference.high) == (
        "difference",
        row["difference"],
        *row["interval"],
    )
    assert (margin.quantity, margin.value) == ("margin", 0.05)
    assert (p.unit, p.value) == ("probability", row["p"])
    assert {(one.section, one.a, one.b, one.n) for one in found.numbers} == {("noninferior", "mllm", "controller", 90)}


def test_nothing_is_told_without_a_hybrid_solver_next_to_a_part(run: RunFolder) -> None:
    assert section(compare([solver(run, "mllm", "rw"), solver(run, "specialist", "rr")])) is None
    assert section(compare([solver(run, "controller", "rw"), solver(run, "arbiter", "rr")])) is None
    other = solver(run, "mllm", "rr", model="openai:other")
    assert section(compare([solver(run, "controller", "rw"), other])) is None
