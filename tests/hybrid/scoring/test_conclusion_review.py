"""Each sentence that answers a reviewer is stated if and only if its section decides something."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench._review_worlds import DrawnSolver, comparison_of, puzzles
from hybrid.core.types import Cell, Metric, Question, Reply, Step, Usage
from hybrid.scoring.compare import Comparison, ComparisonOptions, compare
from hybrid.scoring.conclusion import conclusion
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.result import UNTESTED
from hybrid.scoring.sections.called import SECTION as CALLED
from hybrid.scoring.sections.differences import SECTION as DIFFERENCES
from hybrid.scoring.sections.equivalence import SECTION as EQUIVALENCE
from hybrid.scoring.sections.headroom import SECTION as HEADROOM
from hybrid.scoring.sections.pooled import SECTION as POOLED
from hybrid.scoring.sections.price import SECTION as PRICE
from hybrid.scoring.sections.price import majority
from hybrid.scoring.sections.selection import SECTION as SELECTION
from hybrid.scoring.sections.used import SECTION as USED
from hybrid.solving.paraphrase import UNCHANGED
from hybrid.stats import contrast, difference_apart, pooled_effect
from tests.hybrid.scoring.sections.rows import by_quantity


def letters(counts: str) -> str:
    """Expand `36r 4w` to 36 letters r and 4 letters w."""
    return "".join(int(part[:-1]) * part[-1] for part in counts.split())


@pytest.fixture
def compared(synthetic_runs: Any, tmp_path: Path) -> Any:
    """Compare runs by their tool output: `compared(real={"controller": "36r 4w"}, blank=...)`."""

    def make(
        options: ComparisonOptions | None = None, costing: Any = synthetic_runs.calling, **runs: Mapping[str, str]
    ) -> Comparison:
        paths = []
        for output, answers in runs.items():
            by_solver = {solver: {"Jigsaw": letters(answer)} for solver, answer in answers.items()}
            folder = tmp_path / str(len(list(tmp_path.iterdir())))
            run = synthetic_runs.from_letters(folder, by_solver, output, costing=costing, puzzles=True)
            paths.append(run.path)
        return compare(compare_paths(paths).solvers, options)

    return make


def sentences(comparison: Comparison) -> dict[str, str]:
    return {sentence.id: sentence.text for sentence in conclusion(comparison, limits=False)}


@pytest.mark.system
def test_what_is_equal_within_the_margin(compared: Any) -> None:
    same = "500r 500w"
    result = compared(real={"controller": same, "mllm": same}, blank={"controller": "495r 505w"})
    assert sentences(result)["equal.shown"] == (
        "Equal within 5 points: with tools and alone (+0 points, 90% CI -0.2 to +0.2); with blank tools and alone "
        "(-1 points, 90% CI -1 to -0.07); with tools and with blank tools (+1 points, 90% CI 0.07 to 1)."
    )


@pytest.mark.system
def test_a_narrower_margin_and_fewer_questions_show_less(compared: Any) -> None:
    answers = {"controller": "505r 495w", "mllm": "500r 500w"}
    assert "equal.shown" in sentences(compared(real=answers))
    assert "equal.shown" not in sentences(compared(ComparisonOptions(margin=0.005), real=answers))
    assert "equal.shown" not in sentences(compared(real={"controller": "20r 20w", "mllm": "20r 20w"}))


@pytest.mark.system
def test_equality_that_hangs_on_the_rule_is_not_asserted(compared: Any) -> None:
    # With tools a fifth of the questions is unanswered, which counts as 0 or as a half: equality holds under only one
    # of these rules.
    result = compared(real={"controller": "490r 200a 310w", "mllm": "500r 500w"})
    (row,) = EQUIVALENCE.rows(result)
    assert row.note.endswith("depends on how unanswered questions count")
    assert "equal.shown" not in sentences(result)


@pytest.mark.system
def test_an_equality_that_two_opposite_parts_make_is_not_asserted(compared: Any) -> None:
    # With tools, 60 more answers are right and 120 questions are unanswered, so equality is not claimed.
    alone, tools = "500r 500w", "440r 120a 60r 380w"
    result = compared(real={"controller": tools, "mllm": alone})
    assert "equal.shown" not in sentences(result)


def test_failures_and_other_units_are_no_equality(compared: Any) -> None:
    result = compared(real={"controller": "30f 470r 500w", "mllm": "500r 500w"})
    (row,) = EQUIVALENCE.rows(result)
    assert (row.low, row.p) == (None, None)
    assert row.note.startswith("not shown to be equal within 0.05; left out") or "not tested" in row.note
    allowed = replace(result.options, allow_failed=True)
    assert [row.low is not None for row in EQUIVALENCE.rows(compare(result.solvers, allowed))] == [True]


def calling(calls: str, text: str) -> Any:
    """Return a `costing`. In `calls`, `c` is a call; in `text`, `r` is an output that leads to the right answer."""

    def call(solver: str, question: Question, reply: Reply) -> Reply:
        place = int(question.id.rsplit("_", 1)[1]) - 1
        if not solver.startswith("controller") or calls[place] != "c":
            return reply
        images = [f"img:{n + 1}" for n in range(len(question.images))]
        data: dict[str, Any] = {"images": images, "args": {}, "data": {"best": 0 if text[place] == "r" else 1}}
        step = Step(
            "tool",
            "jigsaw",
            "a finding",
            0.1,
            data={**data, "confidence": 0.9, "backend": "classical", "version": "drawn"},
        )
        return replace(reply, usage=Usage(tool_calls=1), steps=(step,))

    return call


def test_right_outputs_that_are_ignored(compared: Any) -> None:
    calls = calling("c" * 100, "r" * 100)
    answers = {"controller": "30r 70w", "mllm": "30r 70w"}
    result = compared(costing=calls, real=answers, blank={"controller": "30r 70w"}, oracle={"controller": "30r 70w"})
    assert sentences(result)["used.shown"] == (
        "Even perfect tool output changes nothing (+0 points, 90% CI -2 to +2); of 70 right tool outputs that the "
        "model needed, it used 0 (95% CI 0 to 5%)."
    )
    rows = by_quantity(tuple(USED.rows(result)))
    assert {name: row.value for name, row in rows.items()} == {
        "right outputs used": 0.0,
        "right outputs, blank tools": 0.0,
        "use of right outputs": 0.0,
        "perfect outputs used": 0.0,
        "effect of perfect output": 0.0,
    }


def test_right_outputs_that_are_used(compared: Any) -> None:
    calls = calling("c" * 100, "r" * 100)
    answers = {"controller": "95r 5w", "mllm": "30r 70w"}
    result = compared(costing=calls, real=answers, blank={"controller": "40r 60w"}, oracle={"controller": "100r"})
    assert "used.shown" not in sentences(result)
    rows = by_quantity(tuple(USED.rows(result)))
    assert {name: (round(70 * (row.value or 0)), row.n) for name, row in rows.items() if "perfect" not in name} == {
        "right outputs used": (65, 70),
        "right outputs, blank tools": (10, 70),
        "use of right outputs": (55, 70),
    }
    assert rows["effect of perfect output"].value == pytest.approx(0.6)


@pytest.mark.parametrize("silent", ["mllm", "blank"])
def test_the_use_of_outputs_is_tested_if_the_two_compared_solvers_answer(compared: Any, silent: str) -> None:
    """Outputs are needed on all questions if the model alone answers nothing; the test compares two other solvers."""
    calls = calling("c" * 100, "r" * 100)
    answers = {"controller": "95r 5w", "mllm": "100a" if silent == "mllm" else "100w"}
    blank = {"controller": "100a" if silent == "blank" else "40r 60w"}
    rows = by_quantity(tuple(USED.rows(compared(costing=calls, real=answers, blank=blank))))
    for name in ("right outputs, blank tools", "use of right outputs"):
        assert rows[name].n == 100
        assert (rows[name].low is None) is (silent == "blank")
        assert (rows[name].note == UNTESTED["unanswered"]) is (silent == "blank")


@pytest.mark.system
def test_perfect_output_cannot_change_what_is_right_already(compared: Any) -> None:
    calls = calling("c" * 400, "r" * 400)
    answers = {"controller": "395r 5w", "mllm": "395r 5w"}
    result = compared(costing=calls, real=answers, blank=answers | {}, oracle={"controller": "395r 5w"})
    assert "used.shown" not in sentences(result)


def test_calls_where_none_is_needed(compared: Any) -> None:
    # Alone, the model is right on 48 questions and wrong on 52; it calls a tool on 42 of the former and 2 of the
    # latter.
    calls = "c" * 42 + "-" * 6 + "c" * 2 + "-" * 50
    answers = {"controller": "48r 52w", "mllm": "48r 52w"}
    result = compared(costing=calling(calls, "w" * 100), real=answers)
    assert sentences(result)["used.shown"] == (
        "It calls tools on 4% of what it gets wrong alone and on 88% of what it gets right (-84 points, "
        "95% CI -95 to -69)."
    )


def test_calls_that_are_independent_of_need_are_not_blamed(compared: Any) -> None:
    answers = {"controller": "50r 50w", "mllm": "50r 50w"}
    assert "used.shown" not in sentences(compared(costing=calling("c-" * 50, "w" * 100), real=answers))


def test_the_effect_of_output_where_a_tool_was_called(compared: Any) -> None:
    # 40 of 100 questions have a call; 30 of these are gained, and the other answers do not change.
    calls = calling("c" * 40 + "-" * 60, "r" * 100)
    real, blank = {"controller": "35r 5w 30r 30w", "mllm": "5r 35w 30r 30w"}, {"controller": "5r 35w 30r 30w"}
    result = compared(costing=calls, real=real, blank=blank)
    assert sentences(result)["selection.more"].startswith(
        "On the 40 questions with a call, tool output adds 75 points ("
    )
    rows = by_quantity(tuple(SELECTION.rows(result)))
    effect_of_output_where_called, others = (
        rows["effect of output where called"],
        rows["effect of output where not called"],
    )
    assert (effect_of_output_where_called.value, effect_of_output_where_called.n, others.value, others.n) == (
        0.75,
        40,
        0.0,
        60,
    )
    assert len(effect_of_output_where_called.ids) == 40


def test_selection_is_the_difference_of_two_shares_on_random_tables() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(10, 200))
        alone, calls = rng.random(n) < rng.uniform(0.1, 0.9), rng.random(n) < rng.uniform(0, 1)
        if alone.all() or not alone.any():
            continue
        shares = [calls[alone == side].mean() for side in (True, False)]
        test = difference_apart(calls.astype(float), alone.astype(float), 1.0 - alone, range(n))
        assert test.difference == pytest.approx(shares[1] - shares[0])
        # Equals Welch's interval, except for the width that two added clusters and small groups add.
        spread = sum(
            share * (1 - share) / max(1, (alone == side).sum() - 1)
            for share, side in zip(shares, (True, False), strict=True)
        )
        if (
            min(alone.sum(), n - alone.sum()) > 25
            and test.interval is not None
            and min(spread > 0.002, *(0.15 < share < 0.85 for share in shares))
        ):
            assert (test.interval.high - test.interval.low) / (2 * 1.98 * spread**0.5) == pytest.approx(1.05, abs=0.2)


@pytest.mark.system
@pytest.mark.parametrize(("n", "rows", "right", "wrong"), [(60, 1, 0.5, 0.5), (200, 4, 0.5, 0.6), (400, 1, 0.87, 0.04)])
def test_the_interval_of_selection_holds_the_truth(n: int, rows: int, right: float, wrong: float) -> None:
    stored = 0
    for seed in range(400):
        rng = np.random.default_rng([seed, n])
        alone = rng.random(n) < 0.6
        draws = np.repeat(rng.random(n // rows), rows)
        values = (draws < np.where(alone, right, wrong)).astype(float)
        test = difference_apart(values, alone.astype(float), 1.0 - alone, np.arange(n) // rows)
        assert test.interval is not None
        stored += test.interval.low <= wrong - right <= test.interval.high
    assert stored >= 0.92 * 400


def test_a_model_that_is_right_on_all_leaves_no_room(compared: Any) -> None:
    result = compared(real={"controller": "38r 2w", "mllm": "40r"})
    assert sentences(result)["room.none"] == "The model alone is right on all of 40 questions: no gain is possible."


def test_less_room_than_can_be_detected(compared: Any) -> None:
    text = sentences(compared(real={"controller": "39r 1w", "mllm": "38r 2w"}))
    assert text["room.small"].startswith("The model alone leaves 5 points to gain, and this run can detect ")
    assert not [case for case in sentences(compared(real={"controller": "40r", "mllm": "20r 20w"})) if "room" in case]


@pytest.mark.system
def test_the_least_detectable_sizes_are_found_in_four_of_five_draws(compared: Any) -> None:
    real, blank = {"controller": "110r 90w", "mllm": "90r 20w 10r 80w"}, {"controller": "100r 100w"}
    rows = by_quantity(tuple(HEADROOM.rows(compared(real=real, blank=blank))))
    assert set(rows) == {"room above the model alone"} | {
        f"least detectable {name}" for name in ("gain", "effect of offering", "effect of output")
    }
    gain = rows["least detectable gain"].value or 0.0
    rng, result, discordant = np.random.default_rng(0), 0, 0.15
    for _ in range(400):
        draws, pair = rng.random(200), rng.random(200) < 0.5
        up = (discordant + gain) / 2
        better, worse = draws < up, (draws >= up) & (draws < discordant)
        sides = [
            tuple(Cell("", str(n), float(item), 1.0) for n, item in enumerate(side | (pair & ~other)))
            for side, other in ((worse, better), (better, worse))
        ]
        a, b = (Metric("accuracy", None, 200, "ratio", cells) for cells in sides)
        result += (contrast(a, b).p_value or 1.0) < 0.05
    assert 0.7 < result / 400 < 0.92


def test_calls_where_the_specialists_are_weak(synthetic_runs: Any, tmp_path: Path) -> None:
    # The specialists are right on 10 of 50 questions with a call, and on 45 of 50 without.
    calls = calling("c" * 50 + "-" * 50, "r" * 100)

    def cost(solver: str, question: Question, reply: Reply) -> Reply:
        if solver != "specialist":
            return calls(solver, question, reply)
        step = Step("rule", "answer", "", 0.0, data={"specialist_answer": {"answer": reply.text, "confidence": 0.5}})
        return replace(reply, steps=(step,))

    answers = {"controller": "50r 50w", "mllm": "50r 50w", "specialist": "10r 40w 45r 5w"}
    by_solver = {solver: {"Jigsaw": letters(answer)} for solver, answer in answers.items()}
    run = synthetic_runs.from_letters(tmp_path / "run", by_solver, costing=cost, puzzles=True)
    comparison = compare(compare_paths([run.path]).solvers)
    assert sentences(comparison)["calls.weak"].startswith(
        "It calls tools where they are weak: the specialists are right on 20% of the questions with a call and on 90% "
        "of the others (-70 points, "
    )
    rows = by_quantity(tuple(CALLED.rows(comparison)))
    assert rows["overconfidence where called"].value == pytest.approx(0.3)
    assert rows["overconfidence where not called"].value == pytest.approx(-0.4)
    assert rows["Brier score where called"].value == pytest.approx(0.25)


def models(synthetic_runs: Any, folder: Path, *gains: int) -> Comparison:
    """Compare models on the same 100 questions: for each gain, one model that gets that many more right with tools."""
    worlds = [({"Jigsaw": f"{40 + gain}r {60 - gain}w"}, {"Jigsaw": "40r 60w"}) for gain in gains]
    return models_of(synthetic_runs, folder, *worlds)


def models_of(synthetic_runs: Any, folder: Path, *worlds: tuple[Mapping[str, str], Mapping[str, str]]) -> Comparison:
    """Compare models by the letters of their answers in each task: for each model with tools, and alone."""
    paths = []
    for place, solvers in enumerate(worlds):
        answers = {
            name: {task: letters(counts) for task, counts in tasks.items()}
            for name, tasks in zip(("controller", "mllm"), solvers, strict=True)
        }
        run = synthetic_runs.from_letters(folder / str(place), answers, costing=synthetic_runs.calling)
        identity = {**run.manifest["identity"], "model": {"model": f"made:{place}"}}
        run.write_manifest({**run.manifest, "identity": identity})
        paths.append(run.path)
    return compare(compare_paths(paths).solvers)


def test_the_gain_over_several_models_comes_first(synthetic_runs: Any, tmp_path: Path) -> None:
    result = models(synthetic_runs, tmp_path, 20, 22, 18)
    first = conclusion(result, limits=False)[0]
    assert (first.id, first.text[:43]) == ("pooled.more", "Over 3 models, tools add 20 points (95% CI ")
    (row,) = (row for row in POOLED.rows(result) if row.quantity == "gain")
    differences = [row for row in DIFFERENCES.rows(result) if row.quantity == "difference" and not row.group]
    values = [row for row in differences if row.metric == result.headline and row.a[4:] == row.b[10:]]
    assert len({row.b for row in values}) == len(values) == 3
    errors = [((row.high or 0) - (row.low or 0)) / 2 / 1.959963984540054 for row in values]
    expected = pooled_effect([row.value or 0.0 for row in values], errors)
    assert expected.interval is not None
    assert (row.value, row.low) == pytest.approx((expected.value, expected.interval.low))


@pytest.mark.system
def test_models_that_differ_have_no_common_effect(synthetic_runs: Any, tmp_path: Path) -> None:
    text = sentences(models(synthetic_runs, tmp_path, 40, -30, 35, -35))
    assert "Over 4 models, tools have no significant effect" in text["pooled.open"]
    assert "I2 9" in text["pooled.open"]


def test_two_models_are_too_few_for_an_interval(synthetic_runs: Any, tmp_path: Path) -> None:
    """Two models are too few for an interval. Both gain with certainty, so "tools have no significant effect" would be
    read as the opposite."""
    result = models(synthetic_runs, tmp_path, 24, 48)
    text = sentences(result)
    assert text["pooled.few"] == (
        "Over 2 models, tools change the score by +36 points (random-effects mean); two are too few for an interval "
        "over models."
    )
    assert "pooled.open" not in text
    (row,) = (row for row in POOLED.rows(result) if row.quantity == "gain")
    assert (row.low, row.high) == (-1.0, 1.0)


def pooled_gain(comparison: Comparison) -> tuple[str, str, str]:
    """Return case and text of the sentence over all models, and why the pooled gain supports no claim."""
    (first,) = (each for each in conclusion(comparison, limits=False) if each.id.startswith("pooled"))
    return first.id, first.text, next(row.no_claim for row in POOLED.rows(comparison) if row.quantity == "gain")


def test_a_pooled_gain_of_one_small_task_is_not_claimed(synthetic_runs: Any, tmp_path: Path) -> None:
    """In each model, tools win a task of 20 questions and lose one of 300: of 320, fewer are right with tools."""
    worlds = [
        (
            {"Jigsaw": "150r 150w", "Counting": f"{18 + more}r {2 - more}w"},
            {"Jigsaw": "180r 120w", "Counting": f"{4 + more}r {16 - more}w"},
        )
        for more in (0, 1, 2)
    ]
    comparison = models_of(synthetic_runs, tmp_path, *worlds)
    case, text, note = pooled_gain(comparison)
    assert case == "pooled.unclaimed"
    words = "with another result over all questions than over tasks: -5 points, "
    assert text.startswith("Over 3 models, tools change the score by +30 points (95% CI ")
    assert words in text
    assert words in note
    section = next(iter(comparison.computed["pooled"].lead.splitlines()))
    assert f"no claim: {words}" in section


def test_a_pooled_gain_of_answering_is_not_claimed(synthetic_runs: Any, tmp_path: Path) -> None:
    """Alone, each model leaves questions unanswered, also under `guess`; on those that both answered, nothing moves."""
    worlds = [
        ({"Jigsaw": f"100r {30 - more}w {70 + more}r"}, {"Jigsaw": f"100r {30 - more}w {70 + more}a"})
        for more in (0, 3, 6)
    ]
    case, text, note = pooled_gain(models_of(synthetic_runs, tmp_path, *worlds))
    assert case == "pooled.unclaimed"
    for words in (text, note):
        assert "from answering more or fewer questions" in words
        assert "on the questions that both answered +0 points (95% CI " in words


@pytest.mark.parametrize(
    ("with_tools", "alone", "reason"),
    [
        # By the rule `guess`, alone and with tools are equal.
        ("100r 30r 30w 40w", "100r 60a 40w", "depending on how unanswered questions count: +0 points, "),
        # Both leave 40 questions unanswered, alone those that are right with tools.
        (
            "60r 60w 40r 40a",
            "60r 60w 40a 40w",
            "from questions that one of them left unanswered: on the questions that both answered +0 points (95% CI ",
        ),
        # No difference, but neither answers what the other does.
        ("40a 22r 18w", "20r 20w 40a", "not confirmed by questions that both answered"),
    ],
)
def test_a_pooled_gain_is_not_claimed_for_the_reasons_of_one_model(
    synthetic_runs: Any, tmp_path: Path, with_tools: str, alone: str, reason: str
) -> None:
    worlds = [({"Jigsaw": with_tools}, {"Jigsaw": alone})] * 3
    case, text, note = pooled_gain(models_of(synthetic_runs, tmp_path, *worlds))
    assert (case, note[: len(reason)]) == ("pooled.unclaimed", reason)
    assert note in text
    # If no question was answered by both, there is no number.
    assert (note == reason) is reason.startswith("not confirmed")


def test_a_pooled_gain_that_no_model_supports_is_not_claimed(synthetic_runs: Any, tmp_path: Path) -> None:
    """Over all questions, the wide interval of three models contains the mean over tasks; that of one does not."""
    with_tools = {"Jigsaw": "63r 58w 40r 39w", "Counting": "13r 14r 13w"}
    alone = {"Jigsaw": "63w 58r 40r 39w", "Counting": "13w 14r 13w"}
    case, text, note = pooled_gain(models_of(synthetic_runs, tmp_path, *[(with_tools, alone)] * 3))
    assert case == "pooled.unclaimed"
    words = "with another result over all questions than over tasks in each model whose own difference is significant"
    assert text.endswith(f", {words}.")
    assert note == words


@pytest.mark.parametrize("alone", ["90r 100w 10a", "100r 90w 10a"])
def test_a_pooled_gain_that_other_questions_confirm_is_claimed(synthetic_runs: Any, tmp_path: Path, alone: str) -> None:
    """A model leaves some questions unanswered, and two answer all; they gain on the questions that both answered."""
    worlds = [({"Jigsaw": "150r 50w"}, {"Jigsaw": alone}) for alone in (alone, "100r 100w", "98r 102w")]
    case, _, note = pooled_gain(models_of(synthetic_runs, tmp_path, *worlds))
    assert case == "pooled.more"
    assert not note


def test_one_model_is_not_pooled(synthetic_runs: Any, tmp_path: Path) -> None:
    assert not [case for case in sentences(models(synthetic_runs, tmp_path, 20)) if case.startswith("pooled")]


def costing(solver: str, question: Question, reply: Reply) -> Reply:
    """Return a reply with its cost: 100 tokens without tools and 300 to 302 with tools."""
    tokens = 300 + int(question.id.rsplit("_", 1)[1]) % 3 if solver.startswith("controller") else 100
    return replace(reply, usage=Usage(1, input_tokens=tokens - 10, output_tokens=10, seconds=tokens / 100))


def test_the_price_of_a_point(compared: Any) -> None:
    result = compared(costing=costing, real={"controller": "70r 30w", "mllm": "40r 60w"})
    rows = by_quantity(tuple(PRICE.rows(result)))
    # 30 more right answers for 200.99 more tokens in each of 100 questions.
    assert rows["points per 1,000 tokens"].value == pytest.approx(100 * 1000 * 30 / 20100)
    assert rows["points per second"].value == pytest.approx(100 * 30 / 201)
    assert (rows["samples at the same price"].value, len(rows)) == (3.0, 3)
    assert sentences(result)["price.rate"].startswith("The gain comes to 149 points per 1,000 tokens")


def nearly_free(solver: str, question: Question, reply: Reply) -> Reply:
    """Return a reply that costs almost nothing.

    Its seconds are near zero, as for recorded replies, and the solver with tools uses fewer tokens than the MLLM alone.
    """
    reply = costing(solver, question, reply)
    return replace(
        reply,
        usage=replace(reply.usage, input_tokens=400 - reply.usage.input_tokens, seconds=reply.usage.seconds / 1e4),
    )


def test_what_costs_nothing_has_no_price(compared: Any) -> None:
    result = compared(costing=nearly_free, real={"controller": "70r 30w", "mllm": "40r 60w"})
    rows = by_quantity(tuple(PRICE.rows(result)))
    for quantity, least in (("points per 1,000 tokens", "a token"), ("points per second", "0.01 s")):
        assert rows[quantity].value is None
        assert rows[quantity].note == f"not given: tools cost less than {least} a question more than the model alone"


def test_a_majority_of_samples_at_the_same_price(synthetic_runs: Any, tmp_path: Path) -> None:
    # Each sample is right on 60 of 90, and wrong on a different third each time: the majority is right on all.
    thirds = {"mllm": "30w 60r", "mllm@2": "30r 30w 30r", "mllm@3": "60r 30w", "controller": "70r 20w"}
    answers = {solver: {"Jigsaw": letters(third)} for solver, third in thirds.items()}
    run = synthetic_runs.from_letters(tmp_path / "run", answers, costing=costing)
    comparison = compare(compare_paths([run.path]).solvers)
    row = by_quantity(tuple(PRICE.rows(comparison)))["gain over samples at the same price"]
    assert row.value == pytest.approx(-20 / 90)
    assert sentences(comparison)["price.less"].startswith(
        "At the same price, the majority of 3 samples of the model alone is ahead of tools by 22 points ("
    )


def test_a_majority_by_brute_force() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        samples, n = int(rng.integers(2, 6)), int(rng.integers(1, 20))
        answers = [[(None, "A", "B", "C")[k] for k in rng.integers(0, 4, n)] for _ in range(samples)]
        right = [np.array([float(answer == "A") for answer in current]) for current in answers]
        expected = []
        for place in range(n):
            values = [own_rows[place] for own_rows in answers]
            counts = [(-values.count(answer), values.index(answer)) for answer in set(values) - {None}]
            first = min(counts)[1] if counts else 0
            expected.append(float(values[first] == "A"))
        assert majority(answers, right).tolist() == expected


@pytest.mark.parametrize(
    ("unchanged", "endings"),
    [
        (0, {"words.open": "no significant difference."}),
        (12, {"words.open": "no significant difference; 12 of 40 tool outputs kept their words."}),
        (
            40,
            {
                "words.none": "The second wording changed none of 40 tool outputs: this run says nothing about their "
                "wording."
            },
        ),
    ],
)
def test_outputs_that_kept_their_words_are_counted(tmp_path: Path, unchanged: int, endings: dict[str, str]) -> None:
    right, has_call = np.arange(40) % 3 > 0, np.ones(40, bool)
    versions = [f"{UNCHANGED}1"] * unchanged + ["1"] * (40 - unchanged)
    other = {"controller": DrawnSolver(np.roll(right, 1), has_call, versions=versions)}
    real = {"controller": DrawnSolver(right, has_call), "mllm": DrawnSolver(right)}
    comparison = comparison_of(tmp_path, puzzles(40), real=real, paraphrased=other)
    texts = {name: text for name, text in sentences(comparison).items() if name.startswith("words.")}
    assert texts.keys() == endings.keys()
    assert all(texts[name].endswith(text) for name, text in endings.items()), texts
