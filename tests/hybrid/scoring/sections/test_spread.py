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
from hybrid.scoring.sections.spread import SECTION
from hybrid.types import Exchange, Kind, Outcome, Prompt, Question, Reply
from tests.hybrid.scoring.sections.rows import by_quantity

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


MEAN, DEVIATION, CHANGED = "mean over repetitions", "standard deviation over repetitions", "share of changed verdicts"


def values(found: Comparison, group: str) -> list[tuple[str, float | None]]:
    return [(row.a, row.value) for row in SECTION.rows(found) if (row.quantity, row.group) == ("value", group)]


def test_repetitions_by_hand() -> None:
    """Deviations 0, 1/4, -1/4 of 3/4; t(0.975, 2) = 4.3027."""
    found = three()
    assert values(found, "") == [("mllm", 0.5), ("mllm@2", 0.625), ("mllm@3", 0.5)]
    assert values(found, "Jigsaw") == [("mllm", 0.75), ("mllm@2", 1.0), ("mllm@3", 0.5)]
    assert values(found, "Counting") == [("mllm", 0.25), ("mllm@2", 0.25), ("mllm@3", 0.5)]
    rows = list(SECTION.rows(found))
    jigsaw, overall = by_quantity(rows, "Jigsaw"), by_quantity(rows)
    assert (jigsaw[MEAN].value, jigsaw[DEVIATION].value) == pytest.approx((0.75, 0.25))
    assert jigsaw[MEAN].high == pytest.approx(0.75 + 4.302653 * 0.25 / 3**0.5, abs=1e-6)
    assert (jigsaw[CHANGED].value, jigsaw[CHANGED].n, jigsaw[CHANGED].ids) == (0.5, 4, ("Jigsaw_2", "Jigsaw_4"))
    assert (overall[CHANGED].n, len(overall[CHANGED].ids)) == (8, 3)
    assert {row.metric for row in overall.values()} == {"accuracy_macro"}
    assert SECTION.lead(found, rows).startswith("Asked again, mllm varies by 0.072")
