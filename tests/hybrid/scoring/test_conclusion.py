"""Every case of the conclusion, edges included, of answers by letter: r right, w wrong, a abstained, f failed."""

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


def of(n: int, right: int) -> str:
    """The letters of so many questions, the first of them right."""
    return "r" * right + "w" * (n - right)


ONE_FAILED = "f" + "r" * 119
TABLE: dict[str, Said] = {
    "a gain that what the tools say explains": Said(
        {
            "gain.more": "Accuracy is 0.900 with tools (controller), 0.500 alone (mllm): +40 points (95 % CI 20 to 59)"
            "; 36 and 20 of 40 questions right; controller called a tool on 0 of 40 questions.",
            "called.few": "controller called a tool on 0 of 40",
            "specialists.more": "The specialists alone get 20 of 40 right: with tools +40 points (95 % CI 20 to 59).",
            "content.source": "The gain comes from what the tools say (+40 points, 95 % CI 20 to 59); that blank tools "
            "bring any is not shown (+0 points, 95 % CI -7 to 7).",
            "limits.power": "80 % power from about 29 points on (40 questions, the spread of this run)",
        },
        hybrid(MOST, HALF, HALF),
        HALF,
    ),
    "a gain that blank tools have too": Said(
        {
            "presence.more": "Blank tools already bring 40 points (95 % CI 20 to 59); that what the tools say makes a "
            "difference is not shown (+0 points, 95 % CI -7 to 7).",
        },
        hybrid(MOST, HALF, HALF),
        MOST,
    ),
    "a loss": Said(
        {
            "gain.less": "alone (mllm): -40 points (95 % CI -59 to -20)",
            "specialists.less": "with tools -40 points (95 % CI -59 to -20)",
            "presence.open": "That blank tools alone make a difference is not shown (+0 points, 95 % CI -7 to 7)",
            "content.less": "what the tools say costs 40 points (95 % CI 20 to 59)",
        },
        hybrid(HALF, MOST, MOST),
        MOST,
    ),
    "a gain of which blank tools have the most": Said(
        {
            "gain.more": "(mllm): +24 points (95 % CI 21 to 27); 740 and 500 of 1000 questions right",
            "content.shared": "Of the 24 points, 20 (95 % CI 18 to 23) come with blank tools already; what the tools "
            "say adds 4 (95 % CI 3 to 5).",
        },
        hybrid(of(1000, 740), of(1000, 500)),
        of(1000, 700),
    ),
    "a gain in spite of what the tools say": Said(
        {
            "content.parts": "Blank tools already bring 20 points (95 % CI 18 to 23); what the tools say costs 10 "
            "points (95 % CI 8 to 12)."
        },
        hybrid(of(1000, 600), of(1000, 500)),
        of(1000, 700),
    ),
    "harm by presence": Said(
        {
            "gain.less": "-20 points (95 % CI -23 to -18)",
            "presence.less": "Blank tools alone cost 20 points (95 % CI 18 to",
        },
        hybrid(of(1000, 400), of(1000, 600)),
        of(1000, 400),
    ),
    "no gain, and better than blank tools": Said(
        {"content.more": "Blank tools alone cost 40 points (95 % CI 20 to 59); what the tools say adds 40 points"},
        hybrid(MOST, MOST),
        HALF,
    ),
    "blank tools, and no model alone": Said(
        {"content.alone": "Next to blank tools what the tools say adds 40 points (95 % CI 20 to 59)."},
        {"controller": MOST},
        HALF,
    ),
    "ties": Said(
        {
            "gain.open": "0.500 alone (mllm); no difference shown: the 95 % CI, -7 to 7 points, holds 0; 20 and 20 of",
            "specialists.open": "get 20 of 40 right; no difference shown: the 95 % CI, -7 to 7 points, holds 0",
            "content.open": "that what the tools say makes a difference is not shown (+0 points, 95 % CI -7 to 7)",
        },
        hybrid(HALF, HALF, HALF),
        HALF,
    ),
    "all right": Said({"gain.open": "40 and 40 of 40 questions right"}, hybrid(R, R, R), R),
    "one question": Said(
        {
            "gain.few": "too few questions to tell a difference",
            "specialists.few": "too few questions",
            "content.few": "too few questions",
            "limits.powerless": "1 question cannot show any difference",
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
    "a lead only where no specialist answers is none": Said(
        {
            "specialists.open": "The specialists alone answer 20 of 40 questions and get 20 of these right, with tools "
            "20; no difference shown: the 95 % CI, -13 to 13 points, holds 0; to the other 20 they give no answer, "
            "with tools 20 right.",
        },
        hybrid(R, HALF, "r" * 20 + "a" * 20),
    ),
    "behind where the specialists answer": Said(
        {"specialists.less": "20 of these right, with tools 0: with tools -100 points (95 % CI -100 to -"},
        hybrid("w" * 20 + "r" * 20, HALF, "r" * 20 + "a" * 20),
    ),
    "no comparison of one question": Said(
        {"specialists.few": "The specialists alone answer 1 of 40 questions and get 1 of these right"},
        hybrid(R, HALF, "r" + "a" * 39),
    ),
    "a model that is offered no tool": Said(
        {
            "gain.more": "Accuracy is 0.900 joined (arbiter), 0.500 alone (mllm): +40 points",
            "specialists.more": "get 20 of 40 right: arbiter +40 points",
        },
        {"arbiter": MOST, "mllm": HALF, "specialist": HALF},
    ),
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
        {"gain.more": "119 and 59 of 119 questions right", "limits.failed": "1 of 240 answers failed"},
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
            "tasks.several": "Tasks worse than alone after adjustment (Holm): none",
        },
        {**hybrid(MOST, HALF, HALF), "verify": HALF},
        HALF,
    ),
    "one solver without tools": Said({"solvers.one": "mllm has accuracy 0.500 over 40 questions"}, {"mllm": HALF}),
    "several without tools": Said(
        {
            "solvers.best": "Of 2 solvers, none of them a model with tools, mllm has the highest accuracy, 0.900",
            "ahead.some": "It is ahead of specialist by 40 points (20 to 59), adjusted (Holm) for 1 test.",
        },
        {"mllm": MOST, "specialist": HALF},
    ),
    "several without tools, and specialists that abstain": Said(
        {"ahead.some": "; it gives no answer to 20 of 40)"},
        {"mllm": MOST, "specialist": "rw" * 10 + "a" * 20},
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
        whole = [case] if case in text else [name for name in text if name.partition(".")[0] in PART_OF.get(case, case)]
        assert any(words in text[name] for name in whole), (case, text)


PART_OF = {
    **dict.fromkeys(("called.few",), "gain"),
    **{f"{part}.{state}": "content" for part in ("presence", "content") for state in ("more", "less", "open")},
}
"""The sentence that a case is a part of; those of `limits` are of the sentence of that name."""

BY_HAND = {
    "gain.units",
    "specialists.units",
    "content.units",
    "content.apart",
    "tasks.shown",
    "tasks.none",
    "tasks.rest",
    "limits.weight",
    "limits.partial",  # tests/hybrid/benchmarks
    "gain.waiting",
    "specialists.waiting",
    "content.waiting",
    "solvers.waiting",
    "limits.rule",
    "limits.faults",
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


@pytest.mark.parametrize(("unreadable", "said"), [(0, False), (2, False), (3, True)])
def test_calls_that_could_not_be_read_limit_the_claim_above_one_in_twenty(
    full: Comparison, unreadable: int, said: bool
) -> None:
    (hybrid,) = [one for one in full.solvers if one.solver == "controller"]
    assert len(hybrid.scores) == 40
    solvers = [replace(one, usage=Usage(unreadable=unreadable)) if one is hybrid else one for one in full.solvers]
    words = f"controller wrote calls that could not be read about {unreadable} of 40 questions"
    assert (words in conclusion(compare(solvers))[-1].text) is said


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
