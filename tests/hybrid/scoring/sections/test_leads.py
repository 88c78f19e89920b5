"""The conclusions of sections in words, of solvers by their letters: A right, B wrong, - abstained, x failed."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.registry import load
from hybrid.scoring.compare import Comparison, compare
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.sections import sections
from hybrid.scoring.sections.metrics import NOT_ALIKE
from hybrid.scoring.sections.metrics import SECTION as METRICS
from hybrid.types import Usage

LETTERS = str.maketrans({"A": "r", "B": "w", "-": "a", "x": "f"})
GUESS = "A question without a readable answer counts as a guess would on average."


def read(found: Comparison, name: str) -> str:
    section = load("hybrid.scoring.sections", name)
    rows = tuple(section.rows(found))
    return str(section.lead(found, rows)) if rows else ""


@pytest.fixture
def solvers(tmp_path: Path, made_up_runs: Any) -> Any:
    """A comparison of solvers of Jigsaw."""

    def made(**said: str) -> Comparison:
        paths = []
        for name, letters in said.items():
            words = letters.translate(LETTERS)
            run = made_up_runs.from_letters(tmp_path / str(len(list(tmp_path.iterdir()))), {name: {"Jigsaw": words}})
            paths.append(run.path)
        return compare_paths(paths).comparison

    return made


LEADS: list[tuple[str, Mapping[str, str], str]] = [
    (
        "metrics",
        {"mllm": "AAAAAABBBB", "specialist": "AAAAAAAB--"},
        "specialist has the highest accuracy_macro, 0.800 (95 % CI [0.48, 0.94]), over n = 10. A question",
    ),
    (
        "metrics",
        {"mllm": "AAAAAABBBB", "specialist": "AAAAAAAB--"},
        GUESS,
    ),
    (
        "metrics",
        {"mllm": "AAAAAABBBB", "specialist": "AAAAA----B"},
        GUESS,
    ),
    (
        "metrics",
        {"mllm": "AAAAABBBBB", "specialist": "AAAAA----B"},
        GUESS,
    ),
    ("metrics", {"mllm": "AAAAAAAxxx", "specialist": "AAAAAAAAAA"}, NOT_ALIKE),
    ("metrics", {"mllm": "AAB"}, "mllm has accuracy_macro, 0.667 (95 % CI [0.21, 0.94]), over n = 3. "),
    ("metrics", {"mllm": "xxx", "specialist": "xxx"}, ""),
    ("differences", {"mllm": "AABB"}, ""),
    (
        "differences",
        {"mllm": "A" * 40, "specialist": "B" * 40},
        "One pair was tested by accuracy_macro, adjusted after Holm at 0.05. Established: mllm over specialist by 1.0",
    ),
    ("differences", {"mllm": "AABB", "specialist": "ABAB"}, "No difference is established, which does not say"),
    ("differences", {"mllm": "AABB", "specialist": "AxAB"}, "No pair was tested; the notes of the table say why."),
    ("tasks", {"mllm": "AABB", "specialist": "ABAB"}, ""),
    (
        "tasks",
        {"controller": "AAAB", "mllm": "AABB", "specialist": "AAAB"},
        "controller is above mllm on 1 of 1 tasks and below on 0; controller is above specialist on 0 of 1 tasks",
    ),
    (
        "helped",
        {"mllm": "AAB-", "specialist": "ABAA"},
        "Of the questions that both answered, mllm -> specialist: 1 helped, 1 harmed.",
    ),
    (
        "chance",
        {"mllm": "A" * 20, "specialist": "AB" * 10},
        "A guess comes to 0.500 by accuracy_macro; above it: mllm; not shown to be above it: specialist.",
    ),
    (
        "outcomes",
        {"mllm": "AB-x", "specialist": "AAAA"},
        "Of 8 answers asked for, 1 could not be read or were none, and 1 failed.",
    ),
    (
        "decomposition",
        {"controller": "AAAB", "mllm": "BABB"},
        "controller: gain +0.500 = 0.000 (gain with a call) + 0.500 (gain without a call) - 0.000 (harm with a call)",
    ),
]


@pytest.mark.parametrize(("name", "said", "expected"), LEADS)
def test_a_conclusion(solvers: Any, name: str, said: Mapping[str, str], expected: str) -> None:
    lead = read(solvers(**said), name)
    assert expected in lead
    assert bool(lead) == bool(expected)


def test_solvers_that_were_asked_other_questions_are_said_to_be_so(solvers: Any) -> None:
    whole = solvers(mllm="AAAAA", specialist="AAAAA").solvers
    short = {rule: replace(each, scores=each.scores[:3]) for rule, each in whole[0].counted.items()}
    assert NOT_ALIKE not in read(compare(whole), "metrics")
    assert NOT_ALIKE in read(compare([replace(whole[0], counted=short), whole[1]]), "metrics")


def test_nothing_was_measured_where_nothing_was_answered(solvers: Any) -> None:
    found = solvers(specialist="-" * 10, mllm="B" * 10)
    assert read(found, "metrics").startswith("specialist has the highest accuracy_macro, 0.500, over n = 10.")
    ends = {(row.a, row.low is None) for row in METRICS.rows(found)}
    assert ends == {("specialist", True), ("mllm", False)}


def test_what_is_still_to_be_asked_and_what_it_cost(solvers: Any) -> None:
    first, second = solvers(mllm="AB", specialist="AA").solvers
    assert read(compare([replace(first, open=3), second]), "outcomes").endswith("; 3 are still to be asked for.")
    priced = [replace(first, usage=Usage(2, cost_usd=0.5)), replace(second, usage=Usage(tool_calls=2))]
    assert read(compare(priced), "cost") == (
        "The least and the most expensive: specialist: 0 USD per question, 1.000; mllm: 0.25 USD per question, 0.500."
    )
    assert read(compare(priced[:1]), "cost") == ""


def test_conclusions_on_tools_repetitions_and_votes(tmp_path: Path, made_up_runs: Any) -> None:
    made = made_up_runs.write(tmp_path, "blink", size=10, repeats=2, samples=3)
    found = compare_paths(made.paths).comparison
    rows = {name: tuple(load("hybrid.scoring.sections", name).rows(found)) for name in ("evidence", "tool_use")}
    count = {(row.a, row.quantity, row.metric): row for row in rows["tool_use"] if not row.group}
    called = count["controller", "questions with a call", ""]
    opening = f"controller called a tool about {called.value:.0f} of {called.n} questions, "
    assert read(found, "tool_use").startswith(opening)
    rate = {row.quantity: row for row in rows["evidence"] if not row.group}
    (adopted, trusted) = (
        f"{round((row.value or 0) * (row.n or 0))} of {row.n}"
        for row in (rate["adoption rate"], rate["over-trust rate"])
    )
    assert read(found, "evidence") == (
        f"controller took up {adopted} right findings that mllm needed, and followed {trusted} wrong ones against its "
        "own right answer."
    )
    assert read(found, "sampling").startswith("mllm: the vote comes to 0.")
    assert read(found, "spread").startswith("Asked again, mllm varies by 0.")


def test_every_section_with_a_conclusion_is_here_or_in_a_test_of_its_own() -> None:
    here = {name for name, _, _ in LEADS} | {"cost", "evidence", "tool_use", "sampling", "spread"}
    own = {"gain", "tool_only", "unchanged", "knowledge"}
    assert {section.name for section in sections() if section.lead.__name__ == "lead"} == here | own
