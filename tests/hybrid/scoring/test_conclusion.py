"""Every case of the conclusion, edges included, of answers by letter: r right, w wrong, a abstained, f failed."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hybrid.scoring.compare import Comparison, ComparisonOptions, compare
from hybrid.scoring.conclusion import Sentence, conclusion
from hybrid.scoring.conclusion_cases import CASES
from hybrid.scoring.conclusion_rows import ConclusionRows
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.result import UNTESTED
from hybrid.scoring.sections import computed, results
from hybrid.types import Usage
from tests.made_up_runs import answering

R, W, A, F = ("r" * 40, "w" * 40, "a" * 40, "f" * 40)
HALF = "rw" * 20
MOST = "r" * 36 + "w" * 4


@dataclass(frozen=True)
class Said:
    """Answers of solvers in a real run and with blank tools, and the cases that follow, by a part of their words."""

    cases: Mapping[str, str]
    real: Mapping[str, str]
    blank: str = ""
    options: ComparisonOptions = field(default_factory=ComparisonOptions)


def hybrid(tools: str, alone: str, specialists: str = "") -> dict[str, str]:
    """The answers of the three solvers, those of the specialists where there are some."""
    return {"controller": tools, "mllm": alone, **({"specialist": specialists} if specialists else {})}


ONE_FAILED = "f" + "r" * 119
TABLE: dict[str, Said] = {
    "a gain that what the tools say explains": Said(
        {
            "gain.more": "answers 36 of 40 right where it alone answers 20: a gain of 40 points",
            "specialists.more": "answer 20: with tools the model is ahead by 40 points",
            "content.source": "With blank tools it answers 20: the gain comes from what the tools say (40 points",
            "limits.size": "40 questions show a difference of about 28 points or more",
        },
        hybrid(MOST, HALF, HALF),
        HALF,
    ),
    "a gain that blank tools have too": Said(
        {"gain.more": "a gain of 40 points", "content.unshown": "it is not shown that the gain comes from what"},
        hybrid(MOST, HALF, HALF),
        MOST,
    ),
    "a loss": Said(
        {
            "gain.less": "a loss of 40 points",
            "specialists.less": "the model is behind by 40 points",
            "content.less": "what the tools say brings a loss of 40 points",
        },
        hybrid(HALF, MOST, MOST),
        MOST,
    ),
    "no gain, and better than blank tools": Said({"content.more": "brings a gain of"}, hybrid(MOST, MOST), HALF),
    "ties": Said(
        {
            "gain.open": "no difference that 40 questions can show (95 % interval",
            "specialists.open": "no difference that 40 questions can show",
            "content.open": "no difference that 40 questions can show",
        },
        hybrid(HALF, HALF, HALF),
        HALF,
    ),
    "all right": Said({"gain.open": "answers 40 of 40 right where it alone answers 40"}, hybrid(R, R, R), R),
    "one question": Said(
        {
            "gain.few": "too few questions to tell a difference",
            "specialists.few": "too few questions",
            "content.few": "too few questions",
        },
        hybrid("r", "w", "w"),
        "w",
    ),
    "all abstained": Said(
        {
            "gain.silent": "nothing to compare, as controller answers nothing",
            "specialists.silent": "The specialists alone give no answer",
            "content.silent": "answers nothing",
            "limits.none": "120 of 120 answers are unreadable or none (counted as a guess)",
        },
        hybrid(A, A, A),
        A,
    ),
    "only the specialists abstain": Said({"specialists.silent": "give no answer"}, hybrid(MOST, HALF, A), HALF),
    "an outage": Said({"nothing.answered": "nothing is concluded"}, hybrid(F, F, F)),
    "a part failed": Said(
        {
            "gain.failed": "4 of 40 questions failed, more than 1 % (--allow-failed",
            "specialists.failed": "4 of 40 questions failed",
            "content.failed": "4 of 40 questions failed",
            "limits.failed": "4 of 120 answers failed and are left out",
        },
        hybrid("ffff" + "r" * 36, HALF, HALF),
        HALF,
    ),
    "less than 1 % failed": Said(
        {"gain.more": "answers 119 of 119", "limits.failed": "1 of 240 answers failed"},
        hybrid(ONE_FAILED, "rw" * 60),
    ),
    "only the hybrid solver": Said(
        {
            "gain.absent": "the model alone was not asked: add --solver mllm",
            "specialists.absent": "The specialists alone were not asked",
            "content.absent": "no blank control was run: hybrid run --config",
        },
        {"controller": HALF},
    ),
    "pairs that leave the model alone out": Said(
        {"gain.apart": "controller and mllm are not compared", "specialists.apart": "controller and specialist"},
        hybrid(MOST, HALF, HALF),
        options=ComparisonOptions(pairs=()),
    ),
    "two solvers with tools": Said(
        {
            "gain.several": "over 40 questions and adjusted (Holm) for 2 tests: a gain for controller (+40 points",
            "specialists.several": "ahead controller (+40 points",
            "content.several": "a gain for controller",
            "tasks.several": "below 0: none",
        },
        {**hybrid(MOST, HALF, HALF), "verify": HALF},
        HALF,
    ),
    "one solver without tools": Said(
        {"solvers.one": "mllm has accuracy_macro 0.500 over 40 questions"}, {"mllm": HALF}
    ),
    "several without tools": Said(
        {
            "solvers.best": "Of 2 solvers, none of them a model with tools, mllm has the highest accuracy_macro, 0.900",
            "ahead.some": "It is ahead of specialist by 40 points (20 to 59), adjusted (Holm) for 1 test.",
        },
        {"mllm": MOST, "specialist": HALF},
    ),
    "several that tie": Said(
        {"solvers.ties": "mllm, specialist share the highest", "ahead.none": "no difference to the others is shown"},
        {"mllm": HALF, "specialist": HALF},
    ),
    "without tools, a part failed": Said(
        {"ahead.untested": "compared with none of the others: not tested: more than 1 %"},
        {"mllm": MOST[4:] + "ffff", "specialist": HALF},
    ),
    "without tools, all abstained": Said({"solvers.silent": "No solver gives a readable answer"}, {"mllm": A}),
}


def written(made_up_runs: Any, folder: Path, said: Said) -> Comparison:
    """The comparison of the runs of one row of the table."""
    paths = [
        made_up_runs.from_letters(folder / "real", {name: {"Jigsaw": own} for name, own in said.real.items()}).path
    ]
    if said.blank:
        blank = {"controller": {"Jigsaw": said.blank}}
        paths.append(made_up_runs.from_letters(folder / "blank", blank, tool_output="blank").path)
    solvers = compare_paths(paths).solvers
    return compare(solvers, said.options)


def ids(sentences: tuple[Sentence, ...]) -> set[str]:
    return {one.id for one in sentences}


@pytest.mark.parametrize("name", TABLE)
def test_the_sentences_of_a_case(name: str, made_up_runs: Any, tmp_path: Path) -> None:
    said = TABLE[name]
    told = conclusion(written(made_up_runs, tmp_path, said))
    assert 1 <= len(told) <= 5
    text = {one.id: one.text for one in told}
    for case, words in said.cases.items():
        assert words in text["limits" if case.startswith("limits.") else case], (case, text)


BY_HAND = {
    "gain.units",
    "specialists.units",
    "content.units",
    "content.apart",
    "tasks.lost",
    "tasks.none",
    "limits.open",
    "limits.generated",
    "limits.recorded",
    "limits.unreadable",
}
"""Cases with a test of their own below."""


def test_every_case_is_walked() -> None:
    assert {case for said in TABLE.values() for case in said.cases} | BY_HAND == {case.id for case in CASES}


@pytest.fixture
def full(made_up_runs: Any, tmp_path: Path) -> Comparison:
    """A gain with all parts and a blank control."""
    return written(made_up_runs, tmp_path, TABLE["a gain that what the tools say explains"])


def noted(found: Comparison, section: str, **changes: Any) -> None:
    """Change every tested row of a section, as if it had been computed so."""
    (made,) = results(found, [section])
    rows = tuple(replace(row, **changes) if row.low is not None else row for row in made.rows)
    computed(found)[section] = replace(made, rows=rows)


def test_a_metric_over_other_units_is_not_tested(full: Comparison) -> None:
    for section in ("differences", "gain"):
        noted(full, section, low=None, high=None, p=None, note=UNTESTED["units"])
    assert {"gain.units", "specialists.units", "content.units"} <= ids(conclusion(full))


def test_a_blank_run_of_other_questions_is_not_compared(full: Comparison) -> None:
    computed(full)["gain"] = replace(results(full, ["gain"])[0], rows=())
    (told,) = [one.text for one in conclusion(full) if one.id == "content.apart"]
    assert told == "controller and controller [blank] are not compared: they share no question."


@pytest.mark.parametrize(
    ("low", "high", "case"), [(0.0, 0.3, "gain.open"), (-0.3, 0.0, "gain.open"), (0.001, 0.3, "gain.more")]
)
def test_an_interval_that_touches_0_shows_nothing(full: Comparison, low: float, high: float, case: str) -> None:
    noted(full, "differences", low=low, high=high)
    (first, *_) = conclusion(full)
    assert first.id == case
    # What is not 0 is not printed as 0.
    assert (" 0.1 to 30" in first.text) == (case == "gain.more")


def test_a_gain_under_one_rule_alone_is_none(made_up_runs: Any, tmp_path: Path) -> None:
    """A model that abstains on half is worse where no answer is wrong, and as good where it counts as a guess."""
    said = Said({}, hybrid("rw" * 60, "ar" * 12 + "aw" * 48))
    found = written(made_up_runs, tmp_path, said)
    pair = ConclusionRows(found).pair(found.named("mllm"), found.named("controller"))
    assert len(pair.rows) == 2
    weakest = min(pair.rows, key=lambda row: max(row.low or 0.0, -(row.high or 0.0)))
    assert pair.weakest == weakest


def test_tasks_whose_interval_is_below_0(made_up_runs: Any, tmp_path: Path) -> None:
    run = made_up_runs.from_letters(
        tmp_path / "run",
        {"controller": {"Jigsaw": MOST, "Counting": HALF}, "mllm": {"Jigsaw": HALF, "Counting": MOST}},
    )
    (lost,) = [one.text for one in conclusion(compare_paths([run.path]).comparison) if one.id == "tasks.lost"]
    pattern = r"on 1 of 2 tasks: Counting \(-40 points, -\d+ to -\d+\); 1 of them holds after adjustment \(Holm\)\."
    assert re.search(pattern, lost)
    other = made_up_runs.from_letters(
        tmp_path / "other", {name: {"Jigsaw": HALF, "Counting": HALF} for name in ("controller", "mllm")}
    )
    assert "tasks.none" in ids(conclusion(compare_paths([other.path]).comparison))


def test_what_limits_the_claim(full: Comparison) -> None:
    solvers = tuple(
        replace(one, open=2, model="replay:GPT4o", data=replace(one.data, facts={"kind": "sample"}))
        for one in full.solvers
    )
    limits = conclusion(compare(solvers))[-1]
    assert limits.id == "limits"
    for words in ("6 are not asked yet", "generated questions say nothing", "the model's answers are recordings"):
        assert words in limits.text


@pytest.mark.parametrize(("unreadable", "said"), [(0, False), (2, False), (3, True)])
def test_calls_that_could_not_be_read_limit_the_claim_above_one_in_twenty(
    full: Comparison, unreadable: int, said: bool
) -> None:
    (hybrid,) = [one for one in full.solvers if one.solver == "controller"]
    assert len(hybrid.scores) == 40
    solvers = [replace(one, usage=Usage(unreadable=unreadable)) if one is hybrid else one for one in full.solvers]
    words = f"controller wrote calls that could not be read about {unreadable} of 40 questions"
    assert (words in conclusion(compare(solvers))[-1].text) is said


def test_the_command_of_the_blank_control_names_the_run(made_up_runs: Any, tmp_path: Path) -> None:
    found = written(made_up_runs, tmp_path / "a b", TABLE["only the hybrid solver"])
    (told,) = [one.text for one in conclusion(found) if one.id == "content.absent"]
    words = shlex.split(told.partition("was run: ")[2])
    run = (tmp_path / "a b" / "real").as_posix()
    assert words == [
        *("hybrid", "run", "--config", run, "--solver", "controller", "--tool-output", "blank", "--out", f"{run}-blank")
    ]


def test_names_from_elsewhere_are_short_and_on_one_line(full: Comparison) -> None:
    hostile = "\x1b[31m\n" + "x" * 200
    solvers = tuple(replace(one, solver=f"{one.solver}{hostile}") for one in full.solvers)
    solvers = tuple(replace(one, recorded=one.recorded) for one in solvers)
    for sentence in conclusion(compare([replace(one, questions=one.questions) for one in solvers])):
        assert len(sentence.text) < 400
        assert sentence.text.isprintable()


LETTERS = st.text("rwauf", min_size=8, max_size=8)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(tools=LETTERS, alone=LETTERS, specialists=LETTERS)
def test_no_sentence_says_more_than_its_interval(full: Comparison, tools: str, alone: str, specialists: str) -> None:
    said = {"controller": tools, "mllm": alone, "specialist": specialists}
    solvers = [answering(one, said[one.solver] * 5) for one in full.solvers if one.solver in said]
    found = compare(solvers)
    told = conclusion(found)
    assert 1 <= len(told) <= 5
    rows = [row for row in ConclusionRows(found).of("differences") if row.quantity == "difference" and not row.group]
    for sentence, other in (("gain", "mllm"), ("specialists", "specialist")):
        own = [row for row in rows if {row.a, row.b} == {"controller", other}]
        shown = {f"{sentence}.more", f"{sentence}.less"} & ids(told)
        assert bool(shown) == (
            bool(own) and all(row.excludes_zero for row in own) and len({(row.low or 0) > 0 for row in own}) == 1
        )
