"""Repetitions by hand: what they come to, and how many verdicts changed."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from hybrid.benchmarks.base import AS_PAPERS, Benchmark
from hybrid.registry import load
from hybrid.scoring.compare import Comparison, compare
from hybrid.scoring.pairing import Data
from hybrid.scoring.score import Counted, Scored, metrics_of
from hybrid.scoring.spread import MEANING, SAME_TOOLS, repeated_solvers, section, varying
from hybrid.types import Exchange, Kind, Outcome, Prompt, Question, Reply

VAL = Data("blink", "val", {"kind": "folder", "sha256": "a" * 64}, {})
QUESTIONS = {
    f"{task}_{n}": Question(f"{task}_{n}", task, (), "Which?", Kind.CHOICE, ("x", "y"), "(A)")
    for task in ("Jigsaw", "Counting")
    for n in range(1, 5)
}


def solver(name: str, said: Mapping[str, str], **changes: Any) -> Scored:
    """A solver by its letters for each task, "A" right; "x" failed, "." was not asked."""
    words = {f"{task}_{n}": word for task, letters in said.items() for n, word in enumerate(letters, 1) if word != "."}
    return replace(asked(name, words, QUESTIONS), **changes)


def asked(name: str, words: Mapping[str, str], questions: Mapping[str, Question]) -> Scored:
    """A solver by its reply to each question."""
    bench: Benchmark = load("hybrid.benchmarks", "blink")
    scores = [
        bench.score(
            questions[identity],
            (Exchange(Prompt(("?",), Kind.CHOICE), Reply("", Outcome.OUTAGE) if word == "x" else Reply(word)),),
            AS_PAPERS,
        )
        for identity, word in words.items()
    ]
    counted = Counted(tuple(scores), metrics_of(bench, questions, scores))
    return Scored("blink", name, {"wrong": counted, "chance": counted}, "wrong", questions, VAL, recorded=name)


def three() -> Comparison:
    return compare(
        [
            solver("mllm", {"Jigsaw": "AAAB", "Counting": "ABBB"}),
            solver("specialist", {"Jigsaw": "AAAA", "Counting": "AAAA"}),
            solver("mllm@3", {"Jigsaw": "ABAB", "Counting": "AABB"}),
            solver("mllm@2", {"Jigsaw": "AAAA", "Counting": "ABBB"}),
        ]
    )


def test_values_are_in_the_order_of_the_repetitions() -> None:
    found = three()
    (mllm,) = repeated_solvers(found.solvers)
    assert mllm.names == ("mllm", "mllm@2", "mllm@3")
    macro, counting, jigsaw = varying(found, mllm)
    assert (macro.metric, macro.group, macro.n) == ("accuracy_macro", "", 8)
    assert macro.values == (0.5, 0.625, 0.5)
    assert (jigsaw.values, counting.values) == ((0.75, 1.0, 0.5), (0.25, 0.25, 0.5))
    # By hand: deviations 0, 1/4, -1/4 of 3/4; t(0.975, 2) = 4.3027.
    assert (jigsaw.found.mean, jigsaw.found.sd) == pytest.approx((0.75, 0.25))
    assert jigsaw.found.interval is not None
    assert jigsaw.found.interval.high == pytest.approx(0.75 + 4.302653 * 0.25 / 3**0.5, abs=1e-6)
    assert (jigsaw.changed, jigsaw.judged, jigsaw.share_changed) == (2, 4, 0.5)
    assert (counting.changed, macro.changed, macro.judged) == (1, 3, 8)


def test_a_question_that_one_repetition_lacks_or_failed_is_in_none() -> None:
    found = compare(
        [
            solver("mllm", {"Jigsaw": "AAAA"}),
            solver("mllm@2", {"Jigsaw": "BAx."}),
        ]
    )
    (mllm,) = repeated_solvers(found.solvers)
    macro, jigsaw = varying(found, mllm)
    assert (jigsaw.n, jigsaw.values, jigsaw.changed, jigsaw.judged) == (2, (1.0, 0.5), 1, 2)
    assert macro.values == (1.0, 0.5)


def test_repetitions_are_read_with_the_questions_of_their_own_run() -> None:
    turned = {name: replace(QUESTIONS["Jigsaw_1"], id=name) for name in ("Jigsaw_1", "Jigsaw_1#r1")}
    words = {"Jigsaw_1": "A", "Jigsaw_1#r1": "B"}
    found = compare(
        [solver("specialist", {"Jigsaw": "AAAA"}), asked("mllm", words, turned), asked("mllm@2", words, turned)]
    )
    (mllm,) = repeated_solvers(found.solvers)
    assert varying(found, mllm)[0].values == (0.5, 0.5)


def test_what_is_told() -> None:
    told = section(three())
    assert told is not None
    (table,) = told.tables
    assert table.title == "mllm, asked 3 times"
    assert table.names[2:5] == ("mllm", "mllm@2", "mllm@3")
    assert table.rows[2] == (
        *("Jigsaw", "4", "0.750", "1.000", "0.500", "0.750", "0.250", "0.500 to 1.000", "[0.129, 1.371]", "0.500"),
    )
    assert MEANING in table.notes
    # An MLLM alone calls no tool.
    assert SAME_TOOLS not in table.notes
    (data,) = told.data
    assert data["changed"] == {"Jigsaw_2": [1.0, 1.0, 0.0], "Jigsaw_4": [0.0, 1.0, 0.0], "Counting_2": [0.0, 0.0, 1.0]}
    (deviation,) = [n for n in told.numbers if (n.quantity[:8], n.group) == ("standard", "Jigsaw")]
    assert (deviation.value, deviation.a) == (pytest.approx(0.25), "mllm")
    assert [n.a for n in told.numbers if (n.quantity, n.group) == ("value", "Jigsaw")] == ["mllm", "mllm@2", "mllm@3"]


def test_tools_are_spoken_of_where_there_are_some() -> None:
    told = section(compare([solver("controller", {"Jigsaw": "AB"}), solver("controller@2", {"Jigsaw": "AA"})]))
    assert told is not None
    # Without the run nobody knows what a solver is, so it counts as an MLLM alone.
    assert SAME_TOOLS not in told.tables[0].notes


def test_nothing_is_told_of_solvers_that_were_asked_once() -> None:
    assert section(compare([solver("mllm", {"Jigsaw": "AB"}), solver("specialist", {"Jigsaw": "AA"})])) is None
    # Two runs of one solver are no repetitions of each other.
    assert section(compare([solver("mllm (a)", {"Jigsaw": "AB"}), solver("mllm (b)", {"Jigsaw": "AA"})])) is None
