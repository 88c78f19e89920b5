"""Effects of tools as differences over shared questions, recomputed from letters."""

from collections.abc import Mapping
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import pytest

from hybrid.scoring.compare import Comparison, ComparisonOptions, compare
from hybrid.scoring.conclusion_rows import _is_of_more_answers
from hybrid.scoring.parts import GAIN, OFFERING, OUTPUT, tool_effects
from hybrid.scoring.result import FRACTION, UNTESTED
from tests.hybrid.scoring.solvers import solver

# Blank tools failed the last question, which therefore counts only in the gain.
WORDS = {"alone": "rrrwwwwawwr", "blank": "rrwwrwwwwwf", "hybrid": "rrrrrwrwaww"}
# The second task of each solver.
COUNTING = {"alone": "wwa", "blank": "wrw", "hybrid": "rrw"}
SIDES = {GAIN: ("alone", "hybrid"), OFFERING: ("alone", "blank"), OUTPUT: ("blank", "hybrid")}


def compared(words: Mapping[str, str] = WORDS, *, allow_failed: bool = True) -> Comparison:
    solvers = [solver(name, {"Jigsaw": word, "Counting": COUNTING[name]}) for name, word in words.items()]
    return compare(solvers, ComparisonOptions(allow_failed=allow_failed))


def group_of(comparison: Comparison, *without: str) -> Any:
    return SimpleNamespace(**{name: None if name in without else comparison.named(name) for name in WORDS})


@pytest.mark.parametrize(
    ("without", "quantities"),
    [((), [GAIN, OFFERING, OUTPUT]), (("blank",), [GAIN]), (("alone",), [OUTPUT]), (("alone", "blank"), [])],
)
def test_each_effect_is_between_its_two_solvers(without: tuple[str, ...], quantities: list[str]) -> None:
    comparison = compared()
    effects = list(tool_effects(comparison, group_of(comparison, *without)))
    assert [effect.quantity for effect in effects] == quantities
    for effect in effects:
        assert (effect.a.solver, effect.b.solver) == SIDES[effect.quantity]
        n = 11 if effect.quantity == GAIN else 10
        words = [(WORDS[name][:n], COUNTING[name]) for name in SIDES[effect.quantity]]
        values: dict[Any, dict[str, float]] = {
            rule: {"r": 1, "w": 0, "a": a} for rule, a in (("guess", 0.5), ("wrong", 0))
        }
        means = {
            rule: tuple(fmean(fmean(map(of.__getitem__, word)) for word in of_tasks) for of_tasks in words)
            for rule, of in values.items()
        }
        assert tuple(metric.value for metric in effect.metrics) == pytest.approx(means["guess"])
        for rule, pair in means.items():
            assert tuple(metric.value for metric in effect.by_rule(rule)) == pytest.approx(pair)
        row = effect.row("section")
        assert (row.section, row.quantity, row.unit, row.value) == ("section", effect.quantity, FRACTION, None)
        assert (row.a, row.b, row.metric, row.n, row.none) == (
            *SIDES[effect.quantity],
            "accuracy_macro",
            n + 3,
            "guess",
        )
        assert effect.row("section", "another").quantity == "another"
        assert effect.is_share


def test_an_effect_is_untested_if_its_own_solvers_failed() -> None:
    comparison = compared(allow_failed=False)
    reasons = {effect.quantity: effect.why_untested for effect in tool_effects(comparison, group_of(comparison))}
    assert reasons == {GAIN: "", OFFERING: UNTESTED["failed"], OUTPUT: UNTESTED["failed"]}


def test_a_solver_without_answers_withholds_its_own_effects_alone() -> None:
    solvers = [solver(name, {"Jigsaw": word}) for name, word in {**WORDS, "alone": "a" * 11}.items()]
    comparison = compare(solvers, ComparisonOptions(allow_failed=True))
    reasons = {effect.quantity: effect.why_untested for effect in tool_effects(comparison, group_of(comparison))}
    assert reasons == {GAIN: UNTESTED["unanswered"], OFFERING: UNTESTED["unanswered"], OUTPUT: ""}


def test_solvers_without_a_common_question_have_no_effect() -> None:
    words = {"alone": {"Jigsaw": "r."}, "blank": {"Jigsaw": "rw"}, "hybrid": {"Jigsaw": ".r"}}
    comparison = compare([solver(name, word) for name, word in words.items()])
    assert list(tool_effects(comparison, group_of(comparison))) == []


def more_answered(a: Mapping[str, str], b: Mapping[str, str], answering: float) -> bool:
    """Return whether the part from answering is due to the number of answers; unanswered questions count as wrong."""
    comparison = compare([solver("a", a).under("wrong"), solver("b", b).under("wrong")])
    return _is_of_more_answers(comparison.overlap(*comparison.solvers), answering)


def test_a_task_of_one_question_weighs_as_much_as_another_task() -> None:
    # a answers 20 of 40 questions that b leaves, and b the only question of the other task, all rightly: b answers more
    # by the weights of a mean over tasks.
    a, b = {"Jigsaw": "r" * 40, "Counting": "a"}, {"Jigsaw": "r" * 20 + "a" * 20, "Counting": "r"}
    assert more_answered(a, b, 0.25)
    assert not more_answered(a, b, -0.25)


def test_a_task_that_failed_has_no_weight() -> None:
    a = {"Jigsaw": "r" * 20 + "a" * 20, "Counting": "f" * 4}
    b = {"Jigsaw": "r" * 40, "Counting": "f" * 4, "Relative_Depth": "w" * 4}
    assert more_answered({**a, "Relative_Depth": "w" * 4}, b, 0.25)
