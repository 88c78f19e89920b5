"""Sentences of a conclusion about pairs that were chosen, left out, or share no question."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hybrid.scoring.compare import ComparisonOptions, SolverPair, chosen_pairs, compare
from hybrid.scoring.conclusion import conclusion
from hybrid.scoring.conclusion_rows import ConclusionRows
from hybrid.scoring.conclusion_words import short_name
from hybrid.scoring.overlap import Overlap
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.score import Scored
from hybrid.scoring.sections import noninferior
from tests.hybrid.scoring.solvers import by_task, ids, letters


def hybrid(tools: str, alone: str, specialists: str = "") -> dict[str, str]:
    """Return the answers by solver; the specialist is left out if it has no letters."""
    return {"controller": tools, "mllm": alone, **({"specialist": specialists} if specialists else {})}


def test_a_blank_run_of_other_questions_is_not_compared(synthetic_runs: Any, tmp_path: Path) -> None:
    answers = {name: {"Jigsaw": letters("20r 20w")} for name in ("controller", "mllm")}
    run = synthetic_runs.from_letters(tmp_path / "real", answers, costing=synthetic_runs.calling)
    other = {"controller": {"Counting": letters("20r 20w")}}
    blank = synthetic_runs.from_letters(tmp_path / "blank", other, tool_output="blank")
    sentences = {
        sentence.id: sentence.text for sentence in conclusion(compare_paths([run.path, blank.path]).comparison)
    }
    assert sentences["content.apart"].endswith("are not compared: they share no question.")


def test_a_pair_without_a_question_in_common_and_one_that_was_not_chosen_say_why(
    synthetic_runs: Any, tmp_path: Path
) -> None:
    """`--baseline specialist` leaves out the model alone, although it answered the same questions."""
    answers = {"mllm": "20r 20w", "controller": "30r 10w", "specialist": "20r 20w"}
    run = synthetic_runs.from_letters(tmp_path / "run", {name: by_task(text) for name, text in answers.items()})
    solvers = compare_paths([run.path]).solvers
    options = ComparisonOptions(pairs=chosen_pairs([*answers], "specialist", ()))
    by_id = {sentence.id: sentence.text for sentence in conclusion(compare(solvers, options), limits=False)}
    left_out = "controller and mllm are not compared: --pairs or --baseline leaves them out; controller called"
    assert by_id["gain.apart"].startswith(left_out)
    assert "specialists.more" in by_id
    # The same pair, chosen in either order, of different questions.
    other = synthetic_runs.from_letters(tmp_path / "other", {"mllm": {"Counting": letters("20r 20w")}})
    tools = synthetic_runs.from_letters(tmp_path / "tools", {"controller": {"Jigsaw": letters("20r 20w")}})
    apart = compare_paths([other.path, tools.path]).solvers
    for pairs in (None, (SolverPair("mllm", "controller"),), (SolverPair("controller", "mllm"),)):
        (text, *_) = conclusion(compare(apart, ComparisonOptions(pairs=pairs)), limits=False)
        assert text.text.startswith("controller and mllm are not compared: they share no question; controller called")


def test_of_the_specialists_of_two_runs_the_compared_ones_are_named(synthetic_runs: Any, tmp_path: Path) -> None:
    answers = {"specialist": "30r 10a", "controller": "25r 15w", "mllm": "15r 25w"}
    own = synthetic_runs.from_letters(tmp_path / "own", {name: by_task(text) for name, text in answers.items()})
    other = synthetic_runs.from_letters(tmp_path / "other", {"specialist": by_task("10r 30a")})
    for runs in ((own,), (own, other), (other, own)):
        comparison = compare_paths([run.path for run in runs]).comparison
        (text,) = (each.text for each in conclusion(comparison, limits=False) if each.id.startswith("specialists"))
        specialist = comparison.groups[0].specialist
        assert specialist is not None
        name = "" if len(runs) == 1 else f" ({short_name(specialist)})"
        assert text.startswith(f"The specialists alone{name} answer 30 of 40 questions; on these, they get 30 right")
        assert "own" in name or len(runs) == 1


def test_a_part_of_the_gain_has_the_same_claim_whatever_pairs_are_chosen(synthetic_runs: Any, tmp_path: Path) -> None:
    """Blank tools leave a task unanswered that the model alone mostly answers, and are as right elsewhere."""
    answers = {
        "mllm": {"Counting": letters("30r 10w 20a"), "Jigsaw": letters("30r 30w")},
        "controller": {"Counting": letters("30r 20w 10a"), "Jigsaw": letters("42r 18w")},
        "specialist": {"Counting": letters("60a"), "Jigsaw": letters("30a 30r")},
    }
    blank = {"controller": {"Counting": letters("60a"), "Jigsaw": letters("30r 30w")}}
    runs = [
        synthetic_runs.from_letters(tmp_path / "real", answers, costing=synthetic_runs.calling),
        synthetic_runs.from_letters(tmp_path / "blank", blank, "blank", costing=synthetic_runs.calling),
    ]
    solvers = compare_paths([run.path for run in runs]).solvers
    texts, verdicts = set(), set()
    for pairs in (None, (SolverPair("specialist", "mllm"),)):
        comparison = compare(solvers, ComparisonOptions(pairs=pairs))
        by_id = {sentence.id: sentence.text for sentence in conclusion(comparison, limits=False)}
        (text,) = (text for name, text in by_id.items() if name.startswith("content"))
        assert text.startswith("Offering tools that return nothing changes the score by -25 points")
        assert "answering at all contributes +25 points" in text
        texts.add(text)
        verdicts.add(noninferior.SECTION.lead(comparison, list(noninferior.SECTION.rows(comparison))))
    assert len(texts) == 1
    assert len(verdicts) == 1


def test_a_pair_that_is_left_out_is_computed_once(
    synthetic_runs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {name: {"Jigsaw": letters(word)} for name, word in hybrid("36r 4w", "20rw", "20r 20a").items()}
    runs = [synthetic_runs.from_letters(tmp_path / "real", answers, costing=synthetic_runs.calling)]
    blank = {"controller": {"Jigsaw": letters("20rw")}}
    runs.append(synthetic_runs.from_letters(tmp_path / "blank", blank, "blank"))
    solvers = compare_paths([run.path for run in runs]).solvers
    comparison = compare(solvers, ComparisonOptions(pairs=(SolverPair("specialist", "controller"),)))
    aligned: list[tuple[str, ...]] = []
    original = Overlap.of

    def count(solvers: Sequence[Scored], *arguments: Any, **options: Any) -> Overlap:
        aligned.append(tuple(solver.solver for solver in solvers))
        return original(solvers, *arguments, **options)

    monkeypatch.setattr(Overlap, "of", count)
    assert "content.source" in ids(conclusion(comparison))
    assert ("mllm", "controller") in aligned
    assert len(aligned) == len(set(aligned))
    rows, (alone, with_tools) = ConclusionRows(comparison), map(comparison.named, ("mllm", "controller"))
    pair = rows.tested_pair(alone, with_tools)
    assert pair.state == "more"
    assert pair.rows[0].value == pytest.approx(0.4)
    assert rows.tested_pair(alone, with_tools) is ConclusionRows(comparison).tested_pair(alone, with_tools) is pair
    turned = rows.tested_pair(with_tools, alone)
    assert turned.state == "less"
    assert turned.rows[0].value == pytest.approx(-0.4)
