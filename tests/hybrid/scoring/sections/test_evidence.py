"""Use of evidence and of tools: every class once by hand, the partition, counts made again by other code."""

import itertools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hybrid.scoring.evidence import CLASSES, RATES, Case, class_of, rates
from hybrid.scoring.told import Told
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.base import ScoreOptions
from hybrid.run_folder import RunFolder, attempt_line
from hybrid.scoring import evidence, tool_use
from hybrid.scoring.compare import Choice, compare, unique
from hybrid.scoring.findings import VERDICTS, Called, Heard
from hybrid.scoring.score import Scored, score_run
from hybrid.stats import wilson
from hybrid.tables import RENDERERS
from hybrid.types import (
    Attempt,
    Exchange,
    Fault,
    ImageRef,
    Json,
    Kind,
    Outcome,
    Prompt,
    Question,
    Reply,
    Score,
    Step,
    StoredImage,
)

CHOICES = ("the second image", "the third image")
IMAGES = tuple(StoredImage(f"{number:064x}", 60, 60, "image/png") for number in (1, 2, 3))
NAMES = tuple(f"img:{number}" for number in (1, 2, 3))
FOUND = {"r": 0, "w": 1}
"""The right answer to every question here is (A)."""


def prompt(route: str) -> Prompt:
    shown = (ImageRef(name, image) for name, image in zip(NAMES, IMAGES, strict=True))
    return Prompt(("Which image fits?", *shown), Kind.CHOICE, CHOICES, route=route)


def called(tool: str = "jigsaw", best: int | None = None, fault: Fault | None = None, seconds: float = 0.5) -> Step:
    told: dict[str, Json] = {"data": {"best": best}, "confidence": 0.9, "backend": "classical", "version": "1"}
    call: dict[str, Json] = {"images": list(NAMES), "args": {}}
    return Step("tool", tool, "", seconds, fault, call if fault else {**call, **told})


STEPS: Mapping[str, tuple[Step, ...]] = {
    "r": (called(best=0),),
    "w": (called(best=1),),
    "u": (called(best=None),),
    "x": (called("crop", 0),),
    "-": (),
}
"""A letter for what tools say: right, wrong, undecided, another tool, nothing."""


def attempt(identity: str, reply: str, steps: tuple[Step, ...] = (), route: str = "Jigsaw") -> Attempt:
    """`r` right, `w` wrong, `?` unreadable, `f` nobody answered."""
    outcome = Outcome.NOT_RECORDED if reply == "f" else Outcome.ANSWERED
    text = {"r": "Answer: (A)", "w": "Answer: (B)", "f": ""}.get(reply, "Hm.")
    return Attempt(identity, (Exchange(prompt(route), Reply(text, outcome, steps=steps)),), 0.1)


def run(path: Path, rows: Sequence[tuple[str, Attempt | None, Attempt | None]], **identity: Any) -> tuple[Scored, ...]:
    """A run of puzzles: task, attempt of the MLLM alone and of the controller; None for a question not asked."""
    folder = RunFolder(path)
    facts = {"benchmark": "blink", "split": "val", "data": {"kind": "folder", "sha256": "ab" * 32}}
    made = {**facts, "model": {"model": "openai:one"}, "tool_output": "real", **identity}
    folder.write_manifest({"identity": made, "solvers": {"mllm": {}, "controller": {}}})
    ids = [next(one.id for one in pair if one is not None) for _, *pair in rows]
    folder.write_questions(
        Question(name, task, IMAGES, "Which image fits?", Kind.CHOICE, CHOICES, "(A)", task)
        for name, (task, _, _) in zip(ids, rows, strict=True)
    )
    for place, solver in ((1, "mllm"), (2, "controller")):
        journal = folder.journal(solver)
        for row in rows:
            one = row[place]
            if isinstance(one, Attempt):
                journal.append(attempt_line(one))
                folder.write_trace(solver, one)
        journal.close()
    return score_run(folder, ScoreOptions())


def told(path: Path, words: Sequence[str], **identity: Any) -> Told:
    """What is told of questions given as three letters: alone, tools, hybrid."""
    rows = [
        ("Jigsaw", attempt(f"q{n}{word}", word[0]), attempt(f"q{n}{word}", word[2], STEPS[word[1]]))
        for n, word in enumerate(words)
    ]
    found = evidence.section(compare(run(path, rows, **identity)))
    assert found is not None
    return found


def cells(found: Told, task: str = "") -> list[dict[str, Any]]:
    return [dict(record) for record in found.data if "class" in record and record["group"] == task]


# Every class by hand.

BY_HAND = {
    "wrr": "correct adoption",
    "rrr": "confirmed",
    "wrw": "ignored evidence",
    "rrw": "ignored evidence",
    "rww": "over-trust",
    "rwr": "resisted",
    "www": "wrong from both",
    "wwr": "right despite both",
    "ruw": "no finding",
    "wur": "no finding",
    "rxw": "wrong tool",
    "wxr": "wrong tool",
    "r-w": "no call",
    "w-w": "no call",
    "?rr": "correct adoption",
    "rr?": "ignored evidence",
}


def test_every_class_by_hand(tmp_path: Path) -> None:
    found = told(tmp_path, list(BY_HAND))
    said = {str(name)[-3:]: record["class"] for record in cells(found) for name in record["ids"]}
    assert said == BY_HAND
    for record in cells(found):
        letters = str(record["ids"][0])[-3:]
        assert record["hybrid"] == "controller"
        assert record["alone"] == "mllm"
        assert record["alone_right"] == (letters[0] == "r")
        assert record["hybrid_right"] == (letters[2] == "r")
        assert record["finding"] == {"r": "right", "w": "wrong"}.get(letters[1], "none")
        assert record["n"] == len(record["ids"])
        assert record["as_found"] == sum(str(name)[-1] == letters[1] for name in record["ids"])


def test_what_is_unread_is_counted_and_named(tmp_path: Path) -> None:
    rows = [
        ("IQ_Test", attempt("a", "r"), attempt("a", "w", STEPS["r"], "IQ_Test")),
        ("Jigsaw", attempt("b", "r"), attempt("b", "r", STEPS["r"])),
        ("Jigsaw", attempt("c", "w"), attempt("c", "r", STEPS["r"])),
        ("IQ_Test", attempt("d", "w"), attempt("d", "w", (), "IQ_Test")),
    ]
    solvers = run(tmp_path, rows)
    (tmp_path / "controller" / "traces" / "b.json").unlink()
    found = evidence.section(compare(solvers))
    assert found is not None
    assert [(record["class"], record["ids"]) for record in cells(found)] == [
        ("unread", ["b"]),
        ("unread", ["a"]),
        ("correct adoption", ["c"]),
        ("no call", ["d"]),
    ]
    assert {record["unread"]: record["ids"] for record in found.data if "unread" in record} == {
        "there is no trace": ["b"],
        "there is no rule for 'IQ_Test'": ["a"],
    }
    notes = " ".join(found.tables[0].notes)
    assert "unread, there is no trace: 1 (b)." in notes
    use = tool_use.section(compare(solvers))
    assert use is not None
    assert {"solver": "controller", "unread": 1, "ids": ["b"]} in use.data
    assert use.data[0]["asked"] == 3


def test_what_nobody_answered_or_one_was_not_asked_is_left_out(tmp_path: Path) -> None:
    rows = [
        ("Jigsaw", attempt("a", "r"), attempt("a", "r", STEPS["r"])),
        ("Jigsaw", attempt("b", "f"), attempt("b", "r", STEPS["r"])),
        ("Jigsaw", attempt("c", "r"), attempt("c", "f", STEPS["r"])),
        ("Jigsaw", None, attempt("d", "r", STEPS["r"])),
        ("Jigsaw", attempt("e", "r"), None),
    ]
    found = evidence.section(compare(run(tmp_path, rows)))
    assert found is not None
    assert {record["left_out"]: record["ids"] for record in found.data if "left_out" in record} == {
        "failed": ["b", "c"],
        "not asked of the MLLM alone": ["d"],
    }
    assert [record["ids"] for record in cells(found)] == [["a"]]


def test_there_is_nothing_to_tell_without_the_mllm_alone_real_tools_or_traces(tmp_path: Path) -> None:
    rows = [("Jigsaw", attempt("a", "r"), attempt("a", "r", STEPS["r"]))]
    mllm, controller = run(tmp_path / "one", rows)
    assert evidence.section(compare([controller])) is None
    assert evidence.section(compare([mllm])) is None
    assert tool_use.section(compare([mllm])) is None
    blank = run(tmp_path / "two", rows, tool_output="blank")
    assert evidence.section(compare(blank)) is None
    other = run(tmp_path / "three", rows, model={"model": "openai:two"})
    assert evidence.section(compare(unique([mllm, other[1]], ["x", "y"]))) is None


# The classes are a partition, and every number can be made again from the scores and the traces.

WORDS = st.lists(st.tuples(st.sampled_from("rw?f"), st.sampled_from("rwux-"), st.sampled_from("rw?f")), max_size=12)


@given(
    st.booleans(),
    st.sampled_from(VERDICTS),
    st.booleans(),
    st.lists(st.sampled_from(["jigsaw", "crop"]), max_size=2),
    st.booleans(),
)
def test_every_combination_has_one_class(
    alone: bool, finding: Any, hybrid: bool, tools: list[str], to_the_point: bool
) -> None:
    said = Heard(tuple(Called(tool, None, 0.0) for tool in tools), to_the_point, finding)
    assert class_of(alone, said, hybrid) in CLASSES


def recounted(path: Path) -> Counter[tuple[bool, str, bool]]:
    """Alone, finding and hybrid of each question, from the files alone."""
    lines: dict[str, dict[str, Any]] = {}
    for solver in ("mllm", "controller"):
        text = (path / solver / "scores.jsonl").read_text().splitlines()
        lines[solver] = {row["id"]: row for row in map(json.loads, text)}
    found: Counter[tuple[bool, str, bool]] = Counter()
    for name, own in lines["controller"].items():
        other = lines["mllm"][name]
        if "not_recorded" in (own["outcome"], other["outcome"]):
            continue
        trace = json.loads((path / "controller" / "traces" / f"{name}.json").read_text())
        best = [
            step["data"]["data"]["best"]
            for step in trace["exchanges"][0]["reply"]["steps"]
            if step["name"] == "jigsaw" and step["data"]["data"]["best"] is not None
        ]
        finding = ("right" if best[-1] == 0 else "wrong") if best else "none"
        found[other["correct"] == 1, finding, own["correct"] == 1] += 1
    return found


@given(WORDS)
@settings(max_examples=12)
def test_counts_add_up_and_are_those_of_the_files(
    tmp_path_factory: pytest.TempPathFactory, words: list[tuple[str, str, str]]
) -> None:
    path = tmp_path_factory.mktemp("run")
    rows = [
        ("Jigsaw", attempt(f"q{n}", alone), attempt(f"q{n}", hybrid, STEPS[tools]))
        for n, (alone, tools, hybrid) in enumerate(words)
    ]
    solvers = run(path, rows)
    found = evidence.section(compare(solvers))
    assert found is not None
    judged = [word for word in words if "f" not in (word[0], word[2])]
    everything = [name for record in cells(found) for name in record["ids"]]
    assert len(everything) == len(set(everything)) == len(judged)
    assert sum(record["n"] for record in cells(found, "Jigsaw")) == len(judged)
    count: Counter[tuple[bool, str, bool]] = Counter()
    for record in cells(found):
        count[record["alone_right"], record["finding"], record["hybrid_right"]] += record["n"]
    assert count == recounted(path)
    numbers = {one.quantity: one for one in found.numbers if not one.group}
    assert sum(int(numbers[name].value or 0) for name in CLASSES) == len(judged)
    harmed = sum(word[0] == "r" and word[2] != "r" for word in judged)
    helped = sum(word[0] != "r" and word[2] == "r" for word in judged)
    rows_of = found.tables[0].rows
    assert [sum(int(row[place]) for row in rows_of) for place in (2, 3, 4)] == [len(judged), helped, harmed]
    assert sum(int(cell) for row in found.tables[1].rows for cell in row[2:]) == len(judged)
    for table in found.tables:
        for form in RENDERERS.values():
            assert form(table)
    json.dumps(found.data)


# Rates.


def test_rates_and_their_intervals(tmp_path: Path) -> None:
    words = (
        ["wrr"] * 7
        + ["wrw"] * 3
        + ["rww"] * 2
        + ["rwr"] * 6
        + ["rrw"]
        + ["rrr"] * 4
        + ["r-w"] * 2
        + ["rur"] * 3
        + ["www"] * 2
        + ["wur"]
    )
    found = told(tmp_path, words)
    said = {record["rate"]: record for record in found.data if "rate" in record and not record["group"]}
    expected = {
        "adoption": (7, 10),
        "over-trust": (2, 8),
        "harmed against a right finding": (1, 5),
        "harmed without a finding": (2, 5),
        "right findings": (15, 25),
    }
    assert {name: (record["k"], record["n"]) for name, record in said.items()} == expected
    for name, (k, n) in expected.items():
        ends = wilson(k, n)
        assert ends is not None
        assert (said[name]["value"], *said[name]["interval"]) == pytest.approx((k / n, ends.low, ends.high))
    assert next(row[6:9] for row in found.tables[2].rows) == ("7/10", "0.700", "[0.40, 0.89]")


def test_rows_of_one_cluster_widen_the_interval() -> None:
    def cases(clusters: int) -> list[Case]:
        said = Heard((Called("jigsaw", None, 0.0),), True, "right", "A")
        return [
            Case(
                Score(f"q{n}", "T", 0.0, Outcome.ANSWERED, "A", cluster=f"c{n % clusters}"), "T", False, said, n % 2 > 0
            )
            for n in range(40)
        ]

    alone, paired = (next(one for one in rates(cases(number)) if one.name == "adoption") for number in (40, 8))
    assert (alone.k, alone.n, paired.k, paired.n) == (20, 40, 20, 40)
    assert alone.interval is not None
    assert paired.interval is not None
    assert paired.interval.high - paired.interval.low > 1.5 * (alone.interval.high - alone.interval.low)


def test_a_rate_over_nothing_has_no_value() -> None:
    assert [(one.name, one.n, one.value, one.interval) for one in rates([])] == [
        (name, 0, None, None) for name in RATES
    ]


def test_tasks_and_groups_are_told_apart(tmp_path: Path) -> None:
    depth = [called("depth", fault=Fault.TIMEOUT)]
    rows = [
        ("Jigsaw", attempt("a", "w"), attempt("a", "r", STEPS["r"])),
        ("Relative_Depth", attempt("b", "r"), attempt("b", "w", tuple(depth), "Relative_Depth")),
    ]
    solvers = run(tmp_path, rows)
    found = evidence.section(compare(solvers))
    assert found is not None
    assert [(record["group"], record["class"]) for record in found.data if "class" in record] == [
        ("", "no finding"),
        ("", "correct adoption"),
        ("Jigsaw", "correct adoption"),
        ("Relative_Depth", "no finding"),
    ]
    nowhere = evidence.section(compare(solvers, Choice(by="nothing")))
    assert nowhere is not None
    assert {record["group"] for record in nowhere.data if "class" in record} == {"", "-"}


# Use of tools.


def test_calls_faults_and_right_answers_by_tool(tmp_path: Path) -> None:
    wrong_call = Step("tool", "unknown", "", 0.0, Fault.BAD_ARGUMENTS, {"args": "{"})
    steps: dict[str, tuple[Step, ...]] = {
        "a": (called(best=0, seconds=1.0), called("crop", seconds=0.5)),
        "b": (called(fault=Fault.TIMEOUT, seconds=3.0), called(best=1, seconds=2.0)),
        "c": (wrong_call, called("jigsawer", fault=Fault.UNKNOWN_TOOL), called(fault=Fault.BAD_ARGUMENTS, seconds=0.0)),
        "d": (),
    }
    rows = [
        ("Jigsaw", attempt(name, "r"), attempt(name, reply, steps[name]))
        for name, reply in zip("abcd", "rwrr", strict=True)
    ]
    found = tool_use.section(compare(run(tmp_path, rows)))
    assert found is not None
    records = {record["tool"]: record for record in found.data if not record["group"]}
    assert {record["solver"] for record in records.values()} == {"controller"}
    shown = ("questions", "calls", "faults", "right", "n", "right_without", "n_without", "first", "most", "seconds")
    assert {tool: tuple(record[key] for key in shown) for tool, record in records.items()} == {
        "": (3, 7, {"unknown_tool": 1, "bad_arguments": 2, "timeout": 1}, 2, 3, 1, 1, 3, 3, pytest.approx(7 / 7)),
        "(no such tool)": (1, 2, {"unknown_tool": 1, "bad_arguments": 1}, 1, 1, 2, 3, 1, 2, pytest.approx(0.25)),
        "crop": (1, 1, {}, 1, 1, 2, 3, 0, 1, 0.5),
        "jigsaw": (3, 4, {"bad_arguments": 1, "timeout": 1}, 2, 3, 1, 1, 2, 2, 1.5),
    }
    assert records[""]["asked"] == 4
    numbers = {(one.metric, one.quantity): one.value for one in found.numbers if not one.group}
    assert numbers["jigsaw", "right when called"] == pytest.approx(2 / 3)
    assert numbers["jigsaw", "faults: timeout"] == 1
    assert numbers["", "calls"] == 7
    assert all("no claim about what the call did" in table.notes[0] for table in found.tables[:2])
    assert found.tables[0].rows[0][6] == "jigsaw 2/3"
    for table, form in itertools.product(found.tables, RENDERERS.values()):
        assert form(table)


@given(WORDS)
@settings(max_examples=6)
def test_calls_of_all_tools_are_those_of_each(
    tmp_path_factory: pytest.TempPathFactory, words: list[tuple[str, str, str]]
) -> None:
    rows = [
        (task, attempt(f"{task}{n}", alone), attempt(f"{task}{n}", hybrid, STEPS[tools], task))
        for n, (alone, tools, hybrid) in enumerate(words)
        for task in (("Jigsaw", "Art_Style")[n % 2],)
    ]
    found = tool_use.section(compare(run(tmp_path_factory.mktemp("run"), rows)))
    records = [dict(record) for record in found.data] if found else []
    kept = [word for word in words if word[2] != "f"]
    assert sum(int(row["calls"]) for row in records if row["tool"] and not row["group"]) == sum(
        len(STEPS[tools]) for _, tools, _ in kept
    )
    for key in ("calls", "questions", "right", "n"):
        total = sum(int(row[key]) for row in records if not row["tool"] and not row["group"])
        assert total == sum(int(row[key]) for row in records if not row["tool"] and row["group"])


def test_the_data_keeps_the_shape_that_pages_draw(tmp_path: Path) -> None:
    found = told(tmp_path, ["wrr", "r-w"])
    keys = {"hybrid", "alone", "group", "alone_right", "finding", "hybrid_right", "class", "n", "as_found", "ids"}
    assert all(set(record) == keys for record in found.data if "class" in record)
    rate = {"hybrid", "alone", "group", "rate", "k", "n", "value", "interval"}
    assert all(set(record) == rate for record in found.data if "rate" in record)
    assert replace(found.numbers[0], value=0).section == found.name == "evidence"
