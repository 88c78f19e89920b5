"""Reliability out of fold: which answers are counted, and that no question is judged by its own answer."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config import RunConfig, ServiceOptions
from hybrid.core.errors import UsageError
from hybrid.core.types import Attempt, Exchange, Json, Kind, Prompt, Question, Reply, Step, StoredImage
from hybrid.log.folder import RunFolder
from hybrid.plugins.registry import load
from hybrid.running.resolve import prepare
from hybrid.running.run import ask_run
from hybrid.scoring.calibrate import CountedAnswer, cases, measured, write_trust
from hybrid.solving.answer_confidence import AnswerConfidence
from hybrid.solving.trust import MODEL, Curve, Key, Measurement, Trust, fold_of, read_trust
from tests.hybrid.scoring.solvers import folder_of

FOLDS = 5
KEY = ("jigsaw", "classical", "Jigsaw")
JIGSAW = load("tools", "jigsaw")
IDENTITY: dict[str, Any] = {
    "data": {"kind": "folder", "sha256": "ab" * 32},
    "model": {"model": "openai:one", "options": {"temperature": 0}},
    "tool_output": "real",
}
TOOLS = {
    "crop": "classical:crop-1",
    "depth": "classical:cues-1",
    "jigsaw": "classical:seams-1",
    "markers": "classical:rings-1",
}


def said_by_tool(letter: str, confidence: float, backend: str = "classical") -> Step:
    messages = {"letter": letter, "answer": f"Answer: ({letter})", "tool": "jigsaw", "backend": backend}
    return Step(
        "rule", "specialist", "", data={"specialist_answer": {**messages, "confidence": confidence, "on_card": True}}
    )


def by_tool(unit: str, confidence: float, right: bool, key: Key = KEY) -> CountedAnswer:
    """Return a counted answer of the tool, with the confidence that the tool's card claims."""
    card = next(card for card in JIGSAW.card.backends if card.name == "classical")
    curve = Curve(card.reliability)
    # The card counts answers to 199 of 200 puzzles; one right and one wrong answer are added to each rate.
    claimed = AnswerConfidence(curve.rate, curve.at(confidence), n=201, counted_on=card.counted_on)
    return CountedAnswer(unit, unit, key, confidence, float(right), claimed)


def attempt(identity: str, text: str, *steps: Step) -> Attempt:
    prompt = Prompt(("?",), Kind.CHOICE, ("x", "y"), route="Jigsaw")
    return Attempt(identity, (Exchange(prompt, Reply(text, steps=steps)),), 0.1)


def write_run(
    path: Path,
    questions: list[Question],
    solvers: dict[str, list[Attempt]],
    unchecked: tuple[str, ...] = (),
    **changes: Any,
) -> RunFolder:
    facts = {"tools": TOOLS, "unchecked_weights": list(unchecked)}
    return folder_of(path, questions, solvers, facts, **IDENTITY | changes)


def questions(fakes: Any, count: int) -> list[Question]:
    return [
        fakes.question(f"val_Jigsaw_{n}", task="Jigsaw", route="Jigsaw", target="(A)", choices=("x", "y"))
        for n in range(count)
    ]


async def answered(benchmark: str, question: Question, replies: list[Reply]) -> Attempt:
    """Run the benchmark's own dialogue with these replies in order."""
    waiting = list(replies)

    async def ask(prompt: Prompt) -> Reply:
        return waiting.pop(0)

    exchanges = await load("hybrid.benchmarks", benchmark).dialogue(question.without_target(), ask)
    assert not waiting
    return Attempt(question.id, exchanges, 0.1)


REFUSAL = "Not in the image."
OPTIONS = ("red", "green", REFUSAL, "blue", "white")


def perception(correct: int) -> Question:
    return Question(
        "know_0001",
        "KnowVisQA",
        (StoredImage("0" * 64, 40, 30, "image/png"),),
        "What colour?",
        Kind.CHOICE,
        OPTIONS,
        {"correct": correct, "refusal": 2},
        "choice",
        {"type": "colour", "shuffle": "stored"},
        {"refusal": 2, "refusal_prompt": True},
    )


@pytest.mark.parametrize(("correct", "first", "second"), [(3, False, True), (0, True, False), (1, False, False)])
async def test_both_passes_are_read_each_in_its_own_letters(
    tmp_path: Path, correct: int, first: bool, second: bool
) -> None:
    """Each pass is read in its own letters: in MM-SAP, (A) is red in the first pass, and (C) is blue in the second,
    which lacks the refusal."""
    question = perception(correct)
    replies = [Reply(f"(C) {REFUSAL}", steps=(said_by_tool("A", 0.9),)), Reply("(A)", steps=(said_by_tool("C", 0.6),))]
    attempt = await answered("mm_sap", question, replies)
    assert [len(exchange.prompt.choices) for exchange in attempt.exchanges] == [5, 4]
    folder = write_run(
        tmp_path / "run", [question], {"arbiter": [attempt], "specialist": [attempt]}, benchmark="mm_sap"
    )
    key = ("jigsaw", "classical", "choice")
    assert cases(folder) == (by_tool("know_0001", 0.9, first, key), by_tool("know_0001", 0.6, second, key))


async def test_each_view_is_judged_alone_and_the_choice_of_views_not_at_all(tmp_path: Path) -> None:
    question = Question(
        "actiview0001",
        "counting",
        tuple(StoredImage(str(place) * 64, 40, 30, "image/png") for place in range(6)),
        "How many?",
        Kind.CHOICE,
        ("1", "2", "3"),
        {"answer": "B", "views": [1]},
        "choice",
        protocol={
            "mode": "zoom",
            "start": None,
            "choose": False,
            "splits": 4,
            "images": "any_view",
            "decisions": "strict",
        },
    )
    parts = Step(
        "rule",
        "specialist",
        "",
        data={"specialist_answer": {**said_by_tool("", 0.9).data["specialist_answer"], "letter": None}},
    )
    replies = [
        Reply("1, 2", steps=(parts,)),
        Reply("(B)", steps=(said_by_tool("A", 0.8),)),
        Reply("(C)", steps=(said_by_tool("B", 0.7),)),
    ]
    attempt = await answered("actiview", question, replies)
    result = cases(write_run(tmp_path / "run", [question], {"arbiter": [attempt]}, benchmark="actiview"))
    assert [(case.confidence, case.score) for case in result] == [(0.8, False), (0.7, True)]
    swapped = [replies[0], replies[1], Reply("(B)", steps=(said_by_tool("C", 0.7),))]
    attempt = await answered("actiview", question, swapped)
    result = cases(write_run(tmp_path / "two", [question], {"arbiter": [attempt]}, benchmark="actiview"))
    assert [(case.confidence, case.score) for case in result] == [(0.8, False), (0.7, False)]


def judged_by(path: Path, question: Question) -> Trust:
    return read_trust(path).for_question(question.unit)


@pytest.mark.parametrize("changed", [0, 7, 23])
def test_a_questions_own_answer_never_changes_what_it_is_judged_by(tmp_path: Path, fakes: Any, changed: int) -> None:
    request = questions(fakes, 30)
    attempts = [attempt(q.id, "(A)", said_by_tool("A" if n % 3 else "B", 0.75)) for n, q in enumerate(request)]
    write_trust(write_run(tmp_path / "one", request, {"mllm": attempts}), tmp_path / "before.json", FOLDS)
    attempts[changed] = attempt(request[changed].id, "(B)", said_by_tool("B" if changed % 3 == 0 else "A", 0.2))
    request[changed] = replace(request[changed], target="(B)")
    write_trust(write_run(tmp_path / "two", request, {"mllm": attempts}), tmp_path / "after.json", FOLDS)
    current = fold_of(request[changed].unit, FOLDS)
    for question in request:
        previous, after = (judged_by(tmp_path / name, question).measured for name in ("before.json", "after.json"))
        assert (previous == after) == (fold_of(question.unit, FOLDS) == current)


def test_variants_and_pairs_share_a_fold(tmp_path: Path, fakes: Any) -> None:
    pair = [
        fakes.question(name, task="Jigsaw", cluster="pair-1", choices=("x", "y"))
        for name in ("val_Jigsaw_1", "val_Jigsaw_2#s1")
    ]
    others = questions(fakes, 20)[3:]
    values = [*pair, *others]
    attempts = [attempt(question.id, "", said_by_tool("A", 0.75)) for question in values]
    write_trust(write_run(tmp_path / "run", values, {"specialist": attempts}), tmp_path / "trust.json", FOLDS)
    total = sum(fold_of(question.unit, FOLDS) == fold_of("pair-1", FOLDS) for question in values)
    assert total >= 2
    for question in pair:
        assert judged_by(tmp_path / "trust.json", question).measured[KEY].n == len(values) - total


def test_a_run_without_specialist_answers_or_with_one_fold_is_refused(tmp_path: Path, fakes: Any) -> None:
    request = questions(fakes, 1)
    folder = write_run(tmp_path / "run", request, {"chance": [attempt(request[0].id, "(A)")]})
    with pytest.raises(UsageError, match="contains no specialist answers: run the specialist or the arbiter"):
        write_trust(folder, tmp_path / "trust.json", FOLDS)
    with pytest.raises(UsageError, match="--folds 1: out-of-fold needs at least 2"):
        write_trust(folder, tmp_path / "trust.json", 1)
    assert not (tmp_path / "trust.json").exists()


async def tool_outputs(tmp_path: Path, fakes: Any, output: str) -> RunFolder:
    """Run the specialist with this `--tool-output`; return the run's folder."""
    data = fakes.blink_folder(tmp_path / "blink", jigsaws=6, spatials=0)
    config = RunConfig(
        "blink",
        ("specialist",),
        data=str(data),
        service=ServiceOptions("classical"),
        tool_output=output,
        out=tmp_path / output,
    )
    plan = prepare(config)
    await ask_run(plan, lambda *_: None)
    return plan.folder


@pytest.mark.parametrize("output", ["blank", "shuffled", "oracle"])
async def test_a_control_is_never_written_under_the_name_of_the_real_tool(
    tmp_path: Path, fakes: Any, output: str
) -> None:
    folder = await tool_outputs(tmp_path, fakes, output)
    with pytest.raises(UsageError, match=rf"was run with --tool-output {output}: .* run with --tool-output real"):
        write_trust(folder, tmp_path / "trust.json", FOLDS)
    assert not (tmp_path / "trust.json").exists()
    assert write_trust(await tool_outputs(tmp_path, fakes, "real"), tmp_path / "trust.json", FOLDS)


def test_imported_predictions_name_nothing_that_could_be_trusted(tmp_path: Path, fakes: Any) -> None:
    request = questions(fakes, 2)
    folder = write_run(tmp_path / "run", request, {"mllm": [attempt(request[0].id, "(A)")]})
    folder.write_manifest({"identity": {"benchmark": "blink", "split": "val", "imported": {}}, "solvers": {"mllm": {}}})
    with pytest.raises(UsageError, match="imported predictions: its manifest names no model and no tools"):
        write_trust(folder, tmp_path / "trust.json", FOLDS)


def test_a_tool_that_two_solvers_called_in_different_versions_is_not_one_measurement() -> None:
    case = by_tool("a", 0.9, True)
    identity = {"benchmark": "blink", "split": "val", **IDENTITY}
    other = {**TOOLS, "jigsaw": "classical:seams-2", "ocr": "learned:x"}
    content = {"identity": identity, "solvers": {"arbiter": {"tools": other}, "specialist": {"tools": TOOLS}}}
    with pytest.raises(UsageError, match="called jigsaw in different versions: classical:seams-2, classical:seams-1"):
        measured(content, [case])
    content["solvers"]["arbiter"] = {"tools": {**other, "jigsaw": TOOLS["jigsaw"]}}
    assert measured(content, [case]).tools == {"jigsaw": TOOLS["jigsaw"]}


def test_counted_by_hand(tmp_path: Path, fakes: Any) -> None:
    """Counts by hand. Is the tool right? Yes, no, yes, yes, yes, no. Is the MLLM alone right? Yes, yes, no, unread,
    yes, no."""
    request = questions(fakes, 6)
    values = [("A", 0.3), ("B", 0.55), ("A", 0.59), ("A", 0.6), ("A", 0.9), ("B", 1.0)]
    by_rule = [attempt(item.id, "", said_by_tool(*what)) for item, what in zip(request, values, strict=True)]
    alone = [
        attempt(entry.id, text) for entry, text in zip(request, ["(A)", "(A)", "(B)", "?", "(A)", "(B)"], strict=True)
    ]
    folder = write_run(tmp_path / "run", request, {"specialist": by_rule, "mllm": alone})
    write_trust(folder, tmp_path / "trust.json", 40)
    trust = read_trust(tmp_path / "trust.json")
    empty = next(unit for unit in map(str, range(999)) if _alone(unit, request, 40))
    result = trust.for_question(empty)
    assert (result.measured[KEY].right, result.measured[KEY].n) == (4, 6)
    assert result.measured[*MODEL, "Jigsaw"] == Measurement(3, 5)
    # The second question is judged without its own wrong answer.
    items = [value for value in request if fold_of(value.unit, 40) == fold_of(request[1].unit, 40)]
    assert items == [request[1]]
    assert (
        trust.for_question(request[1].unit).measured[KEY].right,
        trust.for_question(request[1].unit).measured[KEY].n,
    ) == (4, 5)


PATH_TARGET = {
    "paths": [{"x": [0.2, 0.8, 0.5], "y": [0.2, 0.5, 0.9], "t_ms": [200, 200, 200]}],
    "other": None,
    "screen": [512, 320],
    "crop": 6,
    "crop_truth": False,
}


def test_a_scanpath_counts_by_the_similarity_that_the_benchmark_leads_with(tmp_path: Path) -> None:
    question = Question("Q9_1", "Q9", (StoredImage("0" * 64, 8, 8, "image/png"),), "?", Kind.SCANPATH, route="Q9")
    question = replace(question, target=PATH_TARGET)
    same = "X = [0.2, 0.8, 0.5]\nY = [0.2, 0.5, 0.9]\nT = [200, 200, 200]"
    other = "X = [0.8, 0.2, 0.5]\nY = [0.2, 0.5, 0.1]\nT = [200, 200, 200]"
    options: Json = {"letter": None, "answer": same, "tool": "scanpath", "backend": "classical", "confidence": 0.4}
    prompt = Prompt(("?",), Kind.SCANPATH, route="Q9")
    by_rule = Attempt(
        "Q9_1",
        (Exchange(prompt, Reply("", steps=(Step("rule", "specialist", "", data={"specialist_answer": options}),))),),
        0.1,
    )
    alone = Attempt("Q9_1", (Exchange(prompt, Reply(other)),), 0.1)
    folder = write_run(tmp_path / "run", [question], {"specialist": [by_rule], "mllm": [alone]}, benchmark="hvsbench")
    tool, model = sorted(cases(folder), key=lambda case: case.key, reverse=True)
    assert (tool.key, tool.score) == (("scanpath", "classical", "Q9"), pytest.approx(1.0))
    guessed = load("hybrid.benchmarks", "hvsbench").card.prior_accuracy.guessed
    # A tool whose card has no counts has the weight of two answers.
    assert tool.claimed == AnswerConfidence(guessed["Q9"], n=2)
    assert model.key == (*MODEL, "Q9")
    assert 0 <= model.score < 0.8


def _alone(unit: str, request: list[Question], folds: int) -> bool:
    """Return whether no question shares the fold of a unit."""
    return fold_of(unit, folds) not in {fold_of(item.unit, folds) for item in request}


@pytest.mark.system
async def test_a_run_with_something_else_refuses_the_file(tmp_path: Path, fakes: Any) -> None:
    data = fakes.blink_folder(tmp_path / "blink", jigsaws=6, spatials=0)
    model = fakes.recordings(tmp_path / "model", fakes.blink_replies(6, 0, "(A)"))
    other = fakes.recordings(tmp_path / "other", fakes.blink_replies(6, 0, "(B)"))
    config = RunConfig(
        "blink", ("mllm", "specialist"), model=f"replay:{model}", data=str(data), service=ServiceOptions("classical")
    )
    plan = prepare(replace(config, out=tmp_path / "run"))
    await ask_run(plan, lambda *_: None)
    path = tmp_path / "trust.json"
    write_trust(plan.folder, path, FOLDS)
    trusting = replace(config, solvers=("arbiter",), trust=path, out=tmp_path / "second")
    with pytest.raises(UsageError, match=r'model\.model: "replay:model" measured, "replay:other" here'):
        prepare(replace(trusting, model=f"replay:{other}"))
    with pytest.raises(UsageError, match=r'benchmark: "blink" measured, "hvsbench" here\n  data\.kind'):
        prepare(replace(trusting, benchmark="hvsbench", data="sample", tasks=("Q2",), limit=1))
    # The intended use of the file: fewer questions of the benchmark, with other hashes.
    fewer = fakes.blink_folder(tmp_path / "fewer", jigsaws=4, spatials=0)
    assert prepare(replace(trusting, data=str(fewer))).resources.trust == read_trust(path)
    # A dry run without access to the model still checks the rest.
    asking = replace(trusting, model="openai:gpt-4o", solvers=("arbiter",))
    assert prepare(asking, dry=True).missing
