"""Sentences of a conclusion about hand-written pairs: of several solvers, and of the effects of tools."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hybrid.scoring.conclusion import NO_BLANK, _command, _Conclusion, _measure, _of_gains, _several
from hybrid.scoring.conclusion_cases import say
from hybrid.scoring.groups import AGAIN
from hybrid.scoring.headline_pair import AnswerSplit
from hybrid.scoring.result import UNTESTED, Result
from tests.hybrid.scoring.hand_written_pairs import ALONE, GAIN, LOSS, METRIC, OPEN, pair, row
from tests.hybrid.scoring.solvers import solver

CLAIMS = {
    "gain": pair("gain", GAIN),
    "loss": pair("loss", LOSS),
    "open": pair("open", OPEN),
    # An interval that ends at 0 shows no difference, nor does one that excludes 0 only before adjustment.
    "above": pair("above", row(0.1, (0.0, 0.2))),
    "below": pair("below", row(-0.1, (-0.2, 0.0))),
    "adjusted": pair("adjusted", row(0.2, (0.1, 0.3), 0.06)),
    "rule": pair("rule", GAIN, other_rule=row(-0.1, (-0.2, 0.0))),
    "uneven": pair("uneven", OPEN, over_all=LOSS, split=AnswerSplit(LOSS, OPEN, LOSS, (1, 0))),
    "rule first": pair("rule first", GAIN, other_rule=OPEN, over_all=LOSS),
    "answering": pair("answering", GAIN, split=AnswerSplit(GAIN, OPEN, None, (20, 0))),
    "few": pair("few", row(0.2), metrics=(METRIC, METRIC)),
    "failed": pair("failed", row(0.2).noted(UNTESTED["failed"]), metrics=(METRIC, METRIC)),
    "silent": pair("silent", row(0.2).noted(UNTESTED["unanswered"])),
    "waiting": pair("waiting", waiting=3),
    "apart": pair("apart"),
    "unchosen": pair("unchosen", is_chosen=False),
}


@pytest.mark.parametrize(
    ("names", "words", "tested"),
    [
        (["gain"], "for gain (+20 points, 10 to 30)", 1),
        (
            ["open", "loss", "gain"],
            (
                "for gain (+20 points, 10 to 30); against loss (-20 points, -30 to -10); no significant difference "
                "for open"
            ),
            3,
        ),
        (["above", "below", "adjusted"], "no significant difference for above, below, adjusted", 3),
        (
            ["rule", "open"],
            (
                "no significant difference for open; no claim for rule (+20 points, 10 to 30, depending on how "
                "unanswered questions count: -10 points, -20 to 0 if they count as wrong)"
            ),
            2,
        ),
        (
            ["uneven", "rule first", "answering"],
            (
                "no claim for uneven (+10 points, -10 to +30, with another result over all questions than over tasks:"
                " -20 points, -30 to -10 over all questions), rule first (+20 points, 10 to 30, depending on how "
                "unanswered questions count: +10 points, -10 to +30 if they count as wrong), answering (+20 points, "
                "10 to 30, from answering more or fewer questions)"
            ),
            3,
        ),
        (
            ["few", "failed", "silent", "gain"],
            (
                "for gain (+20 points, 10 to 30); not tested few (no interval), failed (more than 1 % of the "
                "questions failed), silent (at least one of the two answers nothing)"
            ),
            1,
        ),
        (
            ["waiting", "apart", "unchosen"],
            (
                "not tested waiting (questions are not finished), apart (no question in common), unchosen (--pairs or "
                "--baseline leaves the pair out)"
            ),
            0,
        ),
    ],
)
def test_differences_of_several_solvers_are_grouped_by_claim(names: list[str], words: str, tested: int) -> None:
    assert _several([CLAIMS[name] for name in names], ("for", "against")) == (words, tested)


@pytest.mark.parametrize(
    ("pairs", "opening"),
    [
        ([pair("a", GAIN, 40), pair("b", OPEN, 40)], "over 40 questions and adjusted (Holm) for 2 tests: a gain for a"),
        (
            [pair("a", OPEN, 60), pair("b", LOSS, 40)],
            "over 40 to 60 questions and adjusted (Holm) for 2 tests: a loss for b",
        ),
        (
            [pair("a", OPEN, 60), pair("b", OPEN, 9), pair("c", LOSS, 50)],
            "over 9 to 60 questions and adjusted (Holm) for 3 tests: a loss for c",
        ),
        # A pair without a question in common has no number of questions.
        ([pair("a", GAIN, 40), pair("b", n=0)], "over 40 questions and adjusted (Holm) for 1 test: a gain for a"),
        ([pair("b", n=0)], "not tested b (no question in common"),
    ],
)
def test_gains_of_several_solvers_have_the_numbers_of_their_questions(pairs: Any, opening: str) -> None:
    sentence = _of_gains(pairs, "; NOTE")
    comma, colon = ("", ": ") if opening.startswith("not") else (",", " ")
    assert sentence.text.startswith(f"Compared with its model alone{comma}{colon}{opening}")
    assert sentence.text.endswith("; NOTE.")
    assert sentence.id == ("gain.several_untested" if colon == ": " else "gain.several")


@pytest.mark.parametrize(
    ("rows", "case", "words"),
    [
        ([row(0.2, (0.1, 0.3))], "more", "does better with the same tools: 20 points (95% CI 10 to 30)."),
        ([row(-0.2, (-0.3, -0.1))], "less", "does worse with the same tools: 20 points (95% CI 10 to 30)."),
        # The interval excludes 0 only before adjustment.
        ([row(-0.2, (-0.3, -0.1), 0.06)], "open", "makes no significant difference (-20 points, 95% CI -30 to -10)."),
        ([row(0.1, (-0.1, 0.3))], "open", "makes no significant difference (+10 points, 95% CI -10 to +30)."),
        ([row(0.2)], "untested", "is not tested."),
        ([], "untested", "is not tested."),
    ],
)
def test_the_effect_of_the_trained_form_is_stated(rows: list[Result], case: str, words: str) -> None:
    """Only the effect of the trained form counts, not rows of a task, of other pairs or of another effect, even with
    intervals."""
    of_pair = [replace(each, quantity="as trained", a="tools", b="trained") for each in rows]
    other_pairs = (("tools", "trained", "Jigsaw"), ("tools", "blank", ""), ("blank", "trained", ""))
    others = [row(0.5, (0.4, 0.6), quantity="as trained", a=a, b=b, group=group) for a, b, group in other_pairs]
    others.append(row(0.5, (0.4, 0.6), quantity="another", a="tools", b="trained"))
    group: Any = SimpleNamespace(hybrid=solver("tools", {"Jigsaw": "r"}), as_trained=solver("trained", {"Jigsaw": "r"}))
    by_section = {"effects": [*others, *of_pair, *others]}
    stub: Any = SimpleNamespace(
        found=SimpleNamespace(groups=(group,)),
        of=by_section.__getitem__,
        tested_pair=lambda a, b: pair("trained", next(iter(rows), None)),
    )
    (sentence,) = _Conclusion(stub)._as_trained(group)
    assert sentence.id == f"trained.{case}"
    assert sentence.text.endswith(words)


@pytest.mark.parametrize(("count", "words"), [(1, ""), (2, ", mean of 2 repetitions"), (3, ", mean of 3 repetitions")])
def test_the_mean_of_a_solver_asked_several_times_is_named(count: int, words: str) -> None:
    stub: Any = SimpleNamespace(found=SimpleNamespace(groups=(), finished_repetitions=lambda scored: (scored,) * count))
    assert _Conclusion(stub)._again(ALONE) == words


@pytest.mark.parametrize(
    ("difference", "case", "words"),
    [
        (GAIN, "content.alone", "tool output adds 20 points (95% CI 10 to 30)."),
        (LOSS, "content.alone", "tool output costs 20 points (95% CI 10 to 30)."),
        (OPEN, "content.alone", "tool output has no significant effect (+10 points, 95% CI -10 to +30)."),
        (row(0.2), "content.few", "With blank tools: too few questions to show a difference."),
    ],
)
def test_a_tested_effect_of_tool_output_has_a_sign(
    difference: Result, case: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.scoring.conclusion.none_said", lambda found, group: False)
    result = pair("tools", difference)
    stub: Any = SimpleNamespace(found=SimpleNamespace(groups=()), part=lambda *about: result)
    stub.tested_pair = lambda *pair: result
    group: Any = SimpleNamespace(alone=None, blank=ALONE, hybrid=result.b)
    sentence = _Conclusion(stub)._parts(group, ALONE)
    assert sentence.id == case
    assert sentence.text.endswith(words)


@pytest.mark.parametrize("path", [None, "a/run"])
def test_the_command_for_blank_tools_repeats_the_run(path: str | None) -> None:
    folder: Any = path and SimpleNamespace(path=Path(path))
    group: Any = SimpleNamespace(hybrid=replace(ALONE, folder=folder))
    name = path or "RUN"
    command = f"hybrid run --config {name} --solver mllm --tool-output blank --out {name}-blank"
    assert _command(group) == command


def test_only_a_real_command_goes_with_a_sentence() -> None:
    assert say(NO_BLANK, command="hybrid run --config a").command == "hybrid run --config a"
    without = say(NO_BLANK, command=AGAIN)
    assert (without.command, without.text.endswith(f": {AGAIN}")) == ("", True)


def test_solvers_without_a_common_question_have_no_metric_to_name() -> None:
    assert _measure(pair("apart")) == ""
    assert _measure(pair("gain", GAIN, metrics=(METRIC, METRIC))) == "accuracy"
