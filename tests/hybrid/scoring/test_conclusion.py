"""Every case of the conclusion, edges included, of answers by letter: r right, w wrong, a abstained, f failed."""

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hybrid.scoring.compare import Comparison, ComparisonOptions, compare
from hybrid.scoring.conclusion import Sentence, conclusion
from hybrid.scoring.conclusion_cases import CASES
from hybrid.scoring.conclusion_rows import ConclusionRows
from hybrid.scoring.headline import warnings
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.result import UNTESTED
from hybrid.scoring.sections import computed, results
from hybrid.types import Fault, Question, Reply, Step, Usage
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
            "limits.none": "120 of 120 answers (40 questions x 3 solvers) are unreadable or none (counted as a guess)",
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
            "limits.failed": "4 of 120 answers (40 questions x 3 solvers) failed and are left out",
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
    assert ("95 % CI 0.1 to 30" in first.text) == (case == "gain.more")


@pytest.mark.parametrize(
    ("rule", "case", "otherwise"),
    [
        ("chance", "gain.open", "with no answer counted as wrong, controller is ahead of mllm"),
        ("wrong", "gain.more", "with no answer counted as a guess, controller is not shown to differ from mllm"),
    ],
)
def test_where_the_other_rule_has_another_verdict_a_limit_says_so(
    rule: Any, case: str, otherwise: str, made_up_runs: Any, tmp_path: Path
) -> None:
    """A model that abstains on half is as good where that counts as a guess, and worse where it is wrong."""
    found = written(made_up_runs, tmp_path, Said({}, hybrid("rw" * 60, "a" * 40 + "r" * 40 + "w" * 40)))
    told = conclusion(compare([one.under(rule) for one in found.solvers]))
    assert told[0].id == case
    assert otherwise in told[-1].text
    same = written(made_up_runs, tmp_path / "same", Said({}, hybrid("r" * 120, "a" * 20 + "w" * 100)))
    assert "with no answer" not in conclusion(same)[-1].text


FAULTY = {
    "a tool that raises": (("depth", Fault.TOOL_ERROR, 20), ("crop", None, 20)),
    "a name that no tool has": (("dpeth", Fault.UNKNOWN_TOOL, 20),),
    "a name that no tool has, beside a tool that runs": (("dpeth", Fault.UNKNOWN_TOOL, 5), ("crop", None, 35)),
    "arguments of the model's own": (("depth", Fault.BAD_ARGUMENTS, 20),),
    "weights that are absent": (("relation", Fault.ABSENT, 20), ("depth", Fault.ABSENT, 3)),
    "weights of one tool": (("relation", Fault.ABSENT, 20), ("crop", None, 20)),
    "few faults": (("crop", Fault.TIMEOUT, 1), ("crop", None, 39)),
}
NEVER_RAN = {
    "a tool that raises": "depth ran on none of its 20 calls: cannot (mytools/depth.py, line 7)",
    "a name that no tool has": "(no such tool) ran on none of its 20 calls",
    "weights that are absent": "relation ran on none of its 20 calls",
}
"""What makes the run one that failed; wrong arguments are the model's fault, and so is a name beside tools that run."""


@pytest.mark.parametrize("name", FAULTY)
def test_calls_that_ended_in_faults(name: str, made_up_runs: Any, tmp_path: Path) -> None:
    made = FAULTY[name]
    each = [(tool, fault) for tool, fault, count in made for _ in range(count)]

    def costing(solver: str, question: Question, reply: Reply) -> Reply:
        place = int(question.id.rsplit("_", 1)[1]) - 1
        if solver != "controller" or place >= len(each):
            return reply
        tool, fault = each[place]
        raised = {"raised_at": "mytools/depth.py, line 7"} if fault is Fault.TOOL_ERROR else {}
        step = Step("tool", tool, "cannot", 0.1, fault, {"images": ["img:1"], "args": {}, **raised})
        return replace(reply, steps=(step,), usage=Usage(tool_calls=1))

    said = {solver: {"Jigsaw": own} for solver, own in hybrid(HALF, HALF).items()}
    path = made_up_runs.from_letters(tmp_path / "run", said, costing=costing).path
    report = compare_paths([path])
    limits = conclusion(report.comparison)[-1].text
    lost = {tool: count for tool, fault, count in made if fault is not None}
    for tool, count in lost.items():
        shown = "(no such tool)" if tool == "dpeth" else tool
        calls = sum(number for other, _, number in made if other == tool)
        assert (f"{shown}: {count} of {calls} calls ended in faults" in limits) == (name != "few faults")
    counted = [row for row in results(report.comparison, ["outcomes"])[0].rows if row.quantity.startswith("calls that")]
    assert sum(row.value or 0 for row in counted) == sum(lost.values())
    wrong = NEVER_RAN.get(name)
    assert any(wrong in line for line in report.failed) if wrong else report.failed == ()
    for tool, count in lost.items():
        shown = f"{'(no such tool)' if tool == 'dpeth' else tool}: {count} of"
        assert any(shown in line and "cannot" in line for line in warnings(report.solvers)) == (name != "few faults")
    # A call that ended in a fault is no call that could have helped, harmed or been skipped.
    ran = sum(count for _, fault, count in made if fault is None)
    values = {row.quantity: row.value for row in report.results if not row.group and not row.metric}
    assert values.get("P(call | wrong alone)", 0.0) == pytest.approx(ran / 40, abs=0.05)
    assert values.get("calls that could have been skipped", 0.0) == ran


LATER = {"commands": [{"command": "hybrid study blink --data DIR", "at": "", "commit": None}]}


def test_a_mean_over_tasks_is_told_when_all_is_asked(made_up_runs: Any, tmp_path: Path) -> None:
    """The third task is open for both: nothing is concluded from the others, and the run's own command goes on."""
    said = {
        name: {"Jigsaw": own, "Counting": own, "Spatial_Relation": "r"} for name, own in hybrid(MOST, HALF, R).items()
    }
    folder = made_up_runs.from_letters(tmp_path / "run", said)
    folder.write_manifest({**folder.manifest, **LATER})
    made_up_runs.from_letters(tmp_path / "blank", {"controller": said["controller"]}, "blank")
    for path in (tmp_path / "run").glob("*/attempts.jsonl"):
        lines = [line for line in path.read_bytes().splitlines(keepends=True) if b"Spatial" not in line]
        path.write_bytes(b"".join(lines))
    files = {part: asdict(folder.measure(part).extent) for part in folder.manifest["files"]}
    folder.write_manifest({**folder.manifest, "files": files})
    found = compare_paths([folder.path, tmp_path / "blank"]).comparison
    told = {one.id: one for one in conclusion(found)}
    assert {"gain.waiting", "specialists.waiting", "content.waiting"} <= set(told)
    assert told["gain.waiting"].command == "hybrid study blink --data DIR"
    assert "2 questions are not asked yet" in told["gain.waiting"].text
    tested = [row for row in results(found) for row in row.rows if not row.group and row.low is not None and row.b]
    assert {row.metric for row in tested} & {"accuracy_macro"} == set()
    assert any("(Spatial_Relation 1 of 1)" in line for line in warnings(found.solvers))
    (alone,) = conclusion(compare_paths([folder.path / "mllm"]).comparison)[:1]
    assert (alone.id, alone.command) == ("solvers.waiting", "hybrid study blink --data DIR")
    # Every question of the blank run is asked, and accuracy within a task waits for no other.
    assert any(row.low is not None for row in results(found, ["differences"])[0].rows if row.group == "Jigsaw")


TASKS: Mapping[str, tuple[Mapping[str, str], Mapping[str, str], str]] = {
    "one holds, the other does not": (
        {"Jigsaw": MOST, "Counting": HALF},
        {"Jigsaw": HALF, "Counting": MOST},
        "over 2 tasks: worse on Counting (-40 points, -59 to -20); better on Jigsaw (+40 points, 20 to 59).",
    ),
    "a gain holds": (
        {"Jigsaw": MOST, "Counting": of(20, 9)},
        {"Jigsaw": HALF, "Counting": of(20, 10)},
        "20 to 59); no single task is shown to be worse (20 to 40 questions each; largest loss: Counting (-5 points",
    ),
    "an interval below 0 that does not hold": (
        {"Jigsaw": of(40, 22), **{f"Task_{n}": HALF for n in range(5)}},
        {"Jigsaw": of(40, 27), **{f"Task_{n}": HALF for n in range(5)}},
        "No single task is shown to be worse (40 questions each; largest loss: Jigsaw (-12 points, ",
    ),
    "no loss": (
        {"Jigsaw": HALF, "Counting": HALF},
        {"Jigsaw": HALF, "Counting": HALF},
        "No single task is shown to be worse (40 questions each).",
    ),
}


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_worse_where_that_holds_after_adjustment(name: str, made_up_runs: Any, tmp_path: Path) -> None:
    tools, alone, words = TASKS[name]
    run = made_up_runs.from_letters(tmp_path / "run", {"controller": tools, "mllm": alone})
    (told,) = [one.text for one in conclusion(compare_paths([run.path]).comparison) if one.id.startswith("tasks.")]
    assert words in told


def test_under_a_mean_over_tasks_values_are_said_and_what_a_task_weighs(made_up_runs: Any, tmp_path: Path) -> None:
    run = made_up_runs.from_letters(
        tmp_path / "run",
        {"controller": {"A": of(100, 80), "B": of(20, 8)}, "mllm": {"A": of(100, 80), "B": of(20, 2)}},
    )
    first, *_, limits = (one.text for one in conclusion(compare_paths([run.path]).comparison))
    assert first.startswith(
        "Accuracy (mean of 2 tasks) is 0.600 with tools (controller), 0.450 alone (mllm): +15 points"
    )
    assert "right" not in first
    assert "task B has 20 questions of 120 and half of the weight" in limits
    one = made_up_runs.from_letters(
        tmp_path / "one", {name: {"A": of(100, 80), "B": "r"} for name in ("controller", "mllm")}
    )
    assert (
        "task B has 1 question of 101 and half of the weight"
        in conclusion(compare_paths([one.path]).comparison)[-1].text
    )


@pytest.mark.parametrize(("calls", "said"), [(0, True), (7, True), (8, False)])
def test_a_model_that_seldom_calls_a_tool_is_said_to(calls: int, said: bool, made_up_runs: Any, tmp_path: Path) -> None:
    def costing(name: str, question: Any, reply: Any) -> Any:
        called = name == "controller" and int(question.id.rsplit("_", 1)[1]) <= calls
        return replace(reply, usage=replace(reply.usage, tool_calls=int(called)))

    solvers = {name: {"Jigsaw": HALF} for name in ("controller", "mllm")}
    run = made_up_runs.from_letters(tmp_path / "run", solvers, costing=costing)
    first, *_ = conclusion(compare_paths([run.path]).comparison)
    assert (f"controller called a tool on {calls} of 40 questions" in first.text) is said


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
