"""Answers from tool outputs: recorded calls that fit a rule, several prompts, odd steps, a specialist's own runs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from hybrid.benchmarks.base import Benchmark, ScoreOptions
from hybrid.config import RunConfig, ServiceOptions
from hybrid.core.errors import NoBackend
from hybrid.core.types import (
    Attempt,
    Exchange,
    Fault,
    Finding,
    ImageRef,
    Json,
    Kind,
    Outcome,
    Prompt,
    Question,
    Reply,
    Step,
    StoredImage,
)
from hybrid.log.attempts import Recorded, attempt_line
from hybrid.log.folder import RunFolder
from hybrid.plugins import discovery
from hybrid.plugins.registry import load
from hybrid.running.resolve import prepare
from hybrid.running.run import ask_run
from hybrid.scoring import recorded_calls
from hybrid.scoring.attempt_facts import TracedCall
from hybrid.scoring.findings import GRADED, NO_TRACE, OutputVerdict, judge_outputs, outputs_by_question
from hybrid.scoring.recorded_calls import as_asked, recorded_tools
from hybrid.scoring.runs import score_run
from hybrid.scoring.score import Scored
from hybrid.solving.rules import table
from hybrid.tool import Args, Tool
from tests.tables import cases

BLINK: Benchmark = load("hybrid.benchmarks", "blink")


def stored(number: int) -> StoredImage:
    return StoredImage(f"{number:064x}", 100, 80, "image/png")


def image_refs(count: int) -> tuple[ImageRef, ...]:
    return tuple(ImageRef(f"img:{number}", stored(number)) for number in range(1, count + 1))


def call(
    tool: str,
    data: Mapping[str, Json] | None,
    images: Sequence[str] = ("img:1",),
    args: Mapping[str, Json] | None = None,
    fault: Fault | None = None,
) -> Step:
    """Return the step of a tool call; without data it ended in a fault."""
    options: dict[str, Json] = {} if data is None else {"data": data, "confidence": 0.7, "backend": "b", "version": "1"}
    result = fault or (Fault.TOOL_ERROR if data is None else None)
    return Step("tool", tool, "said", 0.25, result, {"images": list(images), "args": dict(args or {}), **options})


def traced(tool: str, args: Mapping[str, Json], data: Mapping[str, Json] | None = None) -> TracedCall:
    return TracedCall(tool, ("img:1",), args, 0.1, None, Finding("", data or {"nearer": "A"}, 0.5, "b", "1"))


# Recorded calls that fit a call of the rule.

BOX: dict[str, Json] = {"x0": 10.0, "y0": 10.0, "x1": 30.0, "y1": 30.0, "label": "0"}
FAR: dict[str, Json] = {"x0": 60.0, "y0": 40.0, "x1": 90.0, "y1": 70.0, "label": "1"}


@pytest.mark.parametrize(*cases(__file__, "test_the_same_boxes_count_under_any_labels", list))
def test_the_same_boxes_count_under_any_labels(
    boxes: list[Json], data: dict[str, Json], expected: dict[str, Json] | None
) -> None:
    text = as_asked(traced("saliency", {"boxes": boxes}, data), {"boxes": [BOX, FAR]})
    assert (text and text.data) == expected


@pytest.mark.parametrize("shifted", [0, 1])
@pytest.mark.parametrize("count", [2, 3])
def test_equal_boxes_are_taken_in_their_order(shifted: int, count: int) -> None:
    """If the rule passes one box several times, the boxes of a call are matched in order, even if one of them is a
    pixel off."""
    values = [{**BOX, "label": str(n)} for n in range(count)]
    items = [{**BOX, "x1": 31.0 if n == shifted else 30.0, "label": "ABC"[n]} for n in range(count)]
    text = as_asked(traced("saliency", {"boxes": items}, {"order": list("ABC"[:count])}), {"boxes": values})
    assert text is not None
    assert text.data == {"order": [str(n) for n in range(count)]}


@pytest.mark.parametrize(*cases(__file__, "test_what_a_rule_states_must_be_what_was_asked", list))
def test_what_a_rule_states_must_be_what_was_asked(
    tool: str, call_args: dict[str, Json], rule_args: dict[str, Json], is_answer: bool
) -> None:
    recorded = traced(tool, call_args)
    assert as_asked(recorded, rule_args) == (recorded.finding if is_answer else None)


def test_overlapping_boxes_are_matched_by_their_overlap() -> None:
    # Each box overlaps both boxes of the rule enough to match. The boxes that are equal are matched, although their
    # order is reversed.
    larger = {**BOX, "x1": 32.0, "label": "1"}
    boxes = [{**larger, "label": "A"}, {**BOX, "label": "B"}]
    finding = as_asked(traced("saliency", {"boxes": boxes}, {"order": ["A", "B"]}), {"boxes": [BOX, larger]})
    assert finding is not None
    assert finding.data == {"order": ["1", "0"]}


class Spot(Args):
    """A point without a letter."""

    x: float
    y: float


class LetterArgs(Args):
    """Arguments in forms that no tool of the project uses, such as letters with a default factory."""

    labels: tuple[str, ...] = Field(default_factory=lambda: ("A", "B"))
    names: str | tuple[str, ...] | None = None
    exact: bool = False
    spot: Spot | None = None
    region: dict[str, float] | None = None


@pytest.mark.parametrize(
    ("call_args", "rule_args", "is_answer"),
    [
        # Letters made by a factory are the tool's own, like those of a plain default.
        ({}, {"labels": ["A"]}, True),
        ({"labels": ["B"]}, {"labels": ["A"]}, False),
        # A text is not a set of names, so it is not compared letter by letter.
        ({"names": "tac"}, {"names": "cat"}, False),
        ({"names": "cat"}, {}, False),
        ({"names": "Cat "}, {"names": "cat"}, True),
        ({"names": ["cat"]}, {}, False),
        ({}, {"names": ["cat"]}, False),
        # A point that the rule does not set is left to the tool, with or without a letter; a region is not.
        ({"spot": {"x": 5, "y": 6}}, {}, True),
        ({"labels": ["A"], "region": {"x0": 1, "y0": 1, "x1": 9, "y1": 9}}, {"labels": ["A"]}, False),
        # A switch is not a number that makes a tool look closer.
        ({"exact": True}, {}, False),
    ],
)
def test_arguments_of_other_types(
    call_args: dict[str, Json], rule_args: dict[str, Json], is_answer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = replace(load("tools", "depth").card, name="letters")
    monkeypatch.setattr(recorded_calls, "_tool", lambda name: Tool(card, LetterArgs))
    assert (as_asked(traced("letters", call_args), rule_args) is not None) is is_answer


async def test_only_calls_of_the_tool_with_these_pictures_are_heard() -> None:
    calls = [
        traced("depth", {}, {"nearer": "B"}),
        traced("reflectance", {}),
        replace(traced("depth", {}), finding=None),
    ]
    ask = recorded_tools(calls)
    assert (await ask("depth", ("img:1",), {})).data == {"nearer": "B"}
    for name, images in (("depth", ("img:2",)), ("markers", ("img:1",))):
        with pytest.raises(NoBackend, match=f"{name} was not asked this"):
            await ask(name, images, {})


def test_a_call_without_a_finding_or_of_a_tool_that_is_gone_answers_nothing() -> None:
    assert as_asked(replace(traced("depth", {}), finding=None), {}) is None
    assert as_asked(replace(traced("saliency", {"boxes": [BOX]}), finding=None), {"boxes": [BOX], "rows": 1}) is None
    assert as_asked(traced("no_such_tool", {"a": 1}), {}) is None
    assert as_asked(traced("depth", {"points": "everywhere"}), {}) is None
    assert as_asked(traced("depth", {}), {"points": "everywhere"}) is None
    # If the arguments are equal, the tool is not needed to compare them.
    gone = traced("no_such_tool", {"a": 1})
    assert as_asked(gone, {"a": 1}) is gone.finding


# One prompt.

TWO = ("the second image", "the third image")
ROW = Prompt(("Which image fits?", *image_refs(3)), Kind.CHOICE, TWO, route="Jigsaw")
ALL = ("img:1", "img:2", "img:3")
PUZZLE = Question("q", "Jigsaw", tuple(map(stored, (1, 2, 3))), "Which image fits?", Kind.CHOICE, TWO, "(A)", "Jigsaw")


def attempt(*steps: Step, prompt: Prompt = ROW, identity: str = "q", text: str = "Answer: (A)") -> Attempt:
    return Attempt(identity, (Exchange(prompt, Reply(text, steps=steps)),), 0.1)


A = call("jigsaw", {"best": 0}, ALL)


@pytest.mark.parametrize(
    ("steps", "finding", "answer", "to_the_point"),
    [
        *cases(__file__, "judged", steps=lambda text: [call(*item) for item in text])[1],
        ((call("jigsaws", None, ALL, fault=Fault.UNKNOWN_TOOL),), "none", None, False),
        ((Step("rule", "keep", "best is 0", data={"best": 0}),), "none", None, False),
        # The solver's own tool output has priority.
        ((A, Step("rule", "evidence", "", data={"specialist_answer": {"answer": "Answer: (B)"}})), "wrong", "B", True),
    ],
)
async def test_the_finding_is_what_the_rule_answers(
    steps: Sequence[Step], finding: str, answer: str | None, to_the_point: bool
) -> None:
    result = await judge_outputs(BLINK, PUZZLE, attempt(*steps, text="Answer: (B)"))
    assert (result.finding, result.answer, result.to_the_point) == (finding, answer, to_the_point)
    assert len(result.calls) == sum(step.kind == "tool" for step in steps)


# Several prompts.

TEXTS = [f"What colour is the sign? {colour}" for colour in ("red", "blue", "green")]


async def test_in_mm_sap_the_first_ask_decides_and_the_second_is_heard_on_its_own() -> None:
    mm_sap = load("hybrid.benchmarks", "mm_sap")
    choices = ("red", "blue", "Sorry, I can't help with it.")
    first = Prompt(("Question: What colour is the sign?", *image_refs(1)), Kind.CHOICE, choices, route="choice")
    second = replace(first, choices=choices[:2])
    target, protocol = {"correct": 1, "refusal": 2}, {"refusal": 2}
    question = Question("m", "BasicVisQA", (stored(1),), "?", Kind.CHOICE, choices, target, "choice", {}, protocol)
    result = call("attributes", {"best": 1, "compares": True}, args={"texts": TEXTS[:2]})
    asks = (Exchange(first, Reply("Answer: (C)", steps=(result,))), Exchange(second, Reply("Answer: (A)")))
    text = await judge_outputs(mm_sap, question, Attempt("m", asks, 0.1))
    assert (text.finding, text.answer) == ("right", "B")
    late = (Exchange(first, Reply("Answer: (C)")), Exchange(second, Reply("Answer: (A)", steps=(result,))))
    assert (await judge_outputs(mm_sap, question, Attempt("m", late, 0.1))).finding == "none"


# From disk.


def score_attempts(path: Path, attempts: Sequence[Attempt], solver: str = "controller") -> Scored:
    """Return a run of puzzles in which the solver has these attempts."""
    folder = RunFolder(path)
    identity = {"benchmark": "blink", "split": "val", "data": {"kind": "folder", "sha256": "ab" * 32}}
    folder.write_manifest({"identity": identity, "solvers": {solver: {}}})
    folder.write_questions([replace(PUZZLE, id=item.id) for item in attempts])
    journal = folder.journal(solver)
    for entry in attempts:
        journal.append(attempt_line(entry))
    journal.close()
    (scored,) = score_run(folder, ScoreOptions())
    return scored


def lines(scored: Scored) -> Path:
    assert scored.folder is not None
    return scored.folder.path / scored.recorded / "attempts.jsonl"


def test_odd_steps_and_answers_that_are_gone_cost_their_own_question(tmp_path: Path) -> None:
    odd = call("jigsaw", None, ALL)
    odd = replace(odd, data={**odd.data, "images": 3})
    scored = score_attempts(
        tmp_path, [attempt(A, identity="whole"), attempt(odd, identity="odd"), attempt(A, identity="gone")]
    )
    path = lines(scored)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    result = outputs_by_question(scored)
    assert {name: value.unread for name, value in result.items()} == {"whole": None, "odd": None, "gone": NO_TRACE}
    assert (result["whole"].finding, result["odd"].finding) == ("right", "none")
    assert [name for name, item in result.items() if item.no_trace] == ["gone"]


def test_unchanged_attempts_are_read_once_and_changed_ones_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    line = Recorded.line

    def read_and_count(recorded: Recorded, name: str) -> bytes:
        read.append(name)
        return line(recorded, name)

    monkeypatch.setattr(Recorded, "line", read_and_count)
    scored = score_attempts(tmp_path, [attempt(A, identity="one"), attempt(A, identity="gone")])
    first = outputs_by_question(scored)
    read.clear()
    assert outputs_by_question(scored) == first
    assert not read
    path = lines(scored)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:1]))
    assert [verdict.no_trace for verdict in outputs_by_question(scored).values()] == [False, True]
    assert read == ["one"]


def test_a_rule_that_fails_costs_its_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = table().rules[ROW.route]

    async def fails_at_times(prompt: Prompt, ctx: Any) -> object:
        if "odd" in prompt.text:
            raise LookupError("a defect")
        return await rule(prompt, ctx)

    fails_at_times.tools = rule.tools  # type: ignore[attr-defined]
    failing: Any = {**table().rules, ROW.route: fails_at_times}
    monkeypatch.setattr("hybrid.scoring.findings.table", lambda: replace(table(), rules=failing))
    odd = replace(ROW, parts=("An odd one.", *ROW.parts))
    scored = score_attempts(tmp_path, [attempt(A, prompt=odd, identity="x"), attempt(A, identity="y")])
    result = outputs_by_question(scored)
    assert str(result["x"].unread).startswith("the rule cannot be run: LookupError: a defect")
    assert (result["x"].finding, result["y"].finding, len(result["x"].calls)) == ("unread", "right", 1)


def test_a_number_beyond_floating_point_decides_nothing(tmp_path: Path) -> None:
    images = ("the first image", "the second image")
    prompt = replace(ROW, route="Forensic_Detection", choices=images, parts=("Which?", *image_refs(2)))
    steps, good = (
        call("forensics", {"photograph": 0, "photograph_confidence_0_1": confident}, ("img:1", "img:2"))
        for confident in (10**400, 1)
    )
    scored = score_attempts(
        tmp_path, [attempt(steps, prompt=prompt, identity="x"), attempt(good, prompt=prompt, identity="y")]
    )
    result = outputs_by_question(scored)
    assert [(result[name].finding, result[name].unread) for name in "xy"] == [("none", None), ("right", None)]


async def test_attempts_are_read_for_a_caller_in_an_event_loop_too(tmp_path: Path) -> None:
    assert outputs_by_question(score_attempts(tmp_path, [attempt(A, identity="one")]))["one"].finding == "right"


def test_nothing_is_heard_of_predictions_and_failures(tmp_path: Path) -> None:
    failed = replace(attempt(A, identity="f").exchanges[0], reply=Reply("", Outcome.NOT_RECORDED))
    scored = score_attempts(tmp_path, [attempt(A, identity="one"), Attempt("f", (failed,), 0.1)])
    assert set(outputs_by_question(scored)) == {"one"}
    assert outputs_by_question(replace(scored, folder=None)) == {}


# In the specialist's own runs, the rule gives the same answer from the recorded outputs as during the run.

RUNS = (
    ("blink", ("Jigsaw", "Counting")),
    ("mm_sap", ()),
    pytest.param("blink", ("Relative_Depth", "Relative_Reflectance", "Multi-view_Reasoning"), marks=pytest.mark.slow),
    pytest.param("hvsbench", ("Q1", "Q2", "Q3", "Q5", "Q6", "Q8", "Q9", "Q10"), marks=pytest.mark.slow),
    pytest.param("actiview", (), marks=pytest.mark.slow),
)


def without_specialist_answer(item: Attempt) -> Attempt:
    """Return the attempt as a controller's trace records it, with tool calls only."""
    exchanges = tuple(
        replace(
            exchange,
            reply=replace(exchange.reply, steps=tuple(step for step in exchange.reply.steps if step.kind == "tool")),
        )
        for exchange in item.exchanges
    )
    return replace(item, exchanges=exchanges)


@pytest.mark.system
@pytest.mark.parametrize(("benchmark", "tasks"), RUNS)
async def test_on_a_specialists_own_trace_the_rule_gives_its_own_answer(
    benchmark: str, tasks: tuple[str, ...], tmp_path: Path
) -> None:
    options: dict[str, Any] = {"data": "sample", "tasks": tasks, "limit": 2 * len(tasks) or 4, "out": tmp_path / "run"}
    plan = prepare(RunConfig(benchmark, ("specialist",), service=ServiceOptions("classical"), **options))
    assert await ask_run(plan, lambda *_: None) == ()
    adapter: Benchmark = load("hybrid.benchmarks", benchmark)
    answered = 0
    for scored in score_run(plan.folder, ScoreOptions()):
        for score in scored.scores:
            question = scored.questions[score.id]
            assert isinstance(question, Question)
            current = plan.folder.recorded(scored.recorded).by_id[score.id]
            result: OutputVerdict = await judge_outputs(adapter, question, without_specialist_answer(current))
            assert result.answer == score.answer, score.id
            verdict = "none" if score.answer is None else "right" if score.correct == 1.0 else "wrong"
            assert result.finding == ("unread" if score.correct is None and score.answer else verdict)
            assert result.unread == (GRADED if result.finding == "unread" else None)
            answered += score.answer is not None
    # If the rule's tools are learned, nothing can be computed without weights.
    assert answered or benchmark in ("mm_sap", "actiview")


def test_plugins_are_scanned_once_for_all_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scans: list[str] = []
    scan = discovery._catalogue
    monkeypatch.setattr(discovery, "_catalogue", lambda word: scans.append(word) or scan(word))
    counts = []
    for size in (2, 12):
        scored = score_attempts(tmp_path / str(size), [attempt(A, identity=str(number)) for number in range(size)])
        scans.clear()
        assert len(outputs_by_question(scored)) == size
        counts.append(len(scans))
    assert counts[0] == counts[1]
