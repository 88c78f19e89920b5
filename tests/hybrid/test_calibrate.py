"""Reliability out of fold: what is counted, and that no question is judged by its own answer."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.calibrate import EDGES, Case, cases, write_trust
from hybrid.config import RunConfig
from hybrid.errors import UsageError
from hybrid.plan import prepare
from hybrid.records import RunFolder, attempt_line
from hybrid.registry import load
from hybrid.run import execute
from hybrid.trust import MODEL, Trust, fold_of, read_trust
from hybrid.types import Attempt, Exchange, Kind, Prompt, Question, Reply, Step, StoredImage

FOLDS = 5
KEY = ("jigsaw", "classical", "Jigsaw")


def said_by_tool(letter: str, confidence: float, backend: str = "classical") -> Step:
    said = {"letter": letter, "answer": f"Answer: ({letter})", "tool": "jigsaw", "backend": backend}
    return Step("rule", "testify", "", data={"testimony": {**said, "confidence": confidence}})


def attempt(identity: str, text: str, *steps: Step) -> Attempt:
    prompt = Prompt(("?",), Kind.CHOICE, ("x", "y"), route="Jigsaw")
    return Attempt(identity, (Exchange(prompt, Reply(text, steps=steps)),), 0.1)


def made(
    path: Path,
    questions: list[Question],
    solvers: dict[str, list[Attempt]],
    split: str = "val",
    benchmark: str = "blink",
) -> RunFolder:
    folder = RunFolder(path)
    identity = {"benchmark": benchmark, "split": split}
    folder.write_manifest({"identity": identity, "solvers": {name: {} for name in solvers}})
    folder.write_questions(questions)
    for name, attempts in solvers.items():
        journal = folder.journal(name)
        for one in attempts:
            journal.append(attempt_line(one))
        journal.close()
    return folder


def questions(fakes: Any, count: int) -> list[Question]:
    return [
        fakes.question(f"val_Jigsaw_{n}", task="Jigsaw", route="Jigsaw", target="(A)", choices=("x", "y"))
        for n in range(count)
    ]


def test_a_testimony_is_right_or_wrong_whatever_the_solver_made_of_it(tmp_path: Path, fakes: Any) -> None:
    asked = questions(fakes, 2)
    attempts = [
        attempt(asked[0].id, "(B)", said_by_tool("A", 0.9)),
        attempt(asked[1].id, "(A)", said_by_tool("B", 0.6)),
    ]
    found = cases(made(tmp_path / "run", asked, {"arbiter": attempts}))
    assert found == (Case(asked[0].id, KEY, 0.9, True), Case(asked[1].id, KEY, 0.6, False))


async def answered(benchmark: str, question: Question, replies: list[Reply]) -> Attempt:
    """The benchmark's own dialogue with these replies in order."""
    waiting = list(replies)

    async def ask(prompt: Prompt) -> Reply:
        return waiting.pop(0)

    exchanges = await load("hybrid.benchmarks", benchmark).dialogue(question.asked(), ask)
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
    """MM-SAP: (A) is red in the first pass, and (C), without the refusal, is blue in the second."""
    question = perception(correct)
    replies = [Reply(f"(C) {REFUSAL}", steps=(said_by_tool("A", 0.9),)), Reply("(A)", steps=(said_by_tool("C", 0.6),))]
    attempt = await answered("mm_sap", question, replies)
    assert [len(each.prompt.choices) for each in attempt.exchanges] == [5, 4]
    folder = made(tmp_path / "run", [question], {"arbiter": [attempt], "specialist": [attempt]}, benchmark="mm_sap")
    key = ("jigsaw", "classical", "choice")
    assert cases(folder) == (Case("know_0001", key, 0.9, first), Case("know_0001", key, 0.6, second))


async def test_a_refusal_is_judged_with_the_second_pass(tmp_path: Path) -> None:
    for name, letter, right in (("unknown", "(A)", True), ("known", "(C)", False)):
        replies = [Reply("(C)", steps=(said_by_tool("C", 0.9),)), Reply(letter)]
        attempt = await answered("mm_sap", perception(3), replies)
        (case,) = cases(made(tmp_path / name, [perception(3)], {"arbiter": [attempt]}, benchmark="mm_sap"))
        assert case.right == right


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
    parts = Step("rule", "testify", "", data={"testimony": {**said_by_tool("", 0.9).data["testimony"], "letter": None}})
    replies = [
        Reply("1, 2", steps=(parts,)),
        Reply("(B)", steps=(said_by_tool("A", 0.8),)),
        Reply("(C)", steps=(said_by_tool("B", 0.7),)),
    ]
    attempt = await answered("actiview", question, replies)
    found = cases(made(tmp_path / "run", [question], {"arbiter": [attempt]}, benchmark="actiview"))
    assert [(case.confidence, case.right) for case in found] == [(0.8, False), (0.7, True)]
    swapped = [replies[0], replies[1], Reply("(B)", steps=(said_by_tool("C", 0.7),))]
    attempt = await answered("actiview", question, swapped)
    found = cases(made(tmp_path / "two", [question], {"arbiter": [attempt]}, benchmark="actiview"))
    assert [(case.confidence, case.right) for case in found] == [(0.8, False), (0.7, False)]


def test_a_testimony_that_two_solvers_report_counts_once(tmp_path: Path, fakes: Any) -> None:
    asked = questions(fakes, 1)
    both = [attempt(asked[0].id, "(A)", said_by_tool("A", 0.9))]
    assert len(cases(made(tmp_path / "run", asked, {"arbiter": both, "specialist": both}))) == 1


def test_the_model_alone_is_counted_where_it_answered(tmp_path: Path, fakes: Any) -> None:
    asked = questions(fakes, 3)
    texts = ["(A)", "(B)", "I cannot tell."]
    attempts = [attempt(question.id, text) for question, text in zip(asked, texts, strict=True)]
    found = cases(made(tmp_path / "run", asked, {"mllm": attempts}))
    assert [(case.key, case.right) for case in found] == [((*MODEL, "Jigsaw"), True), ((*MODEL, "Jigsaw"), False)]


def test_confidences_fall_into_bins(tmp_path: Path, fakes: Any) -> None:
    asked = questions(fakes, 40)
    attempts = [attempt(q.id, "", said_by_tool("A" if n % 4 else "B", (n % 11) / 10)) for n, q in enumerate(asked)]
    write_trust(made(tmp_path / "run", asked, {"specialist": attempts}), tmp_path / "trust.json", FOLDS)
    content = json.loads((tmp_path / "trust.json").read_text())
    assert content["run"] == {"benchmark": "blink", "split": "val"}
    held_out = 0
    for fold in content["folds"]:
        ((entry),) = fold
        assert [edge for edge, _, _ in entry["bins"]] == sorted(edge for edge, _, _ in entry["bins"])
        assert all(edge in EDGES and 0 <= right <= n for edge, right, n in entry["bins"])
        held_out += 40 - sum(n for _, _, n in entry["bins"])
    assert held_out == 40


def judged_by(path: Path, question: Question) -> Trust:
    return read_trust(path).for_question(question.unit)


@pytest.mark.parametrize("changed", [0, 7, 23])
def test_a_questions_own_answer_never_changes_what_it_is_judged_by(tmp_path: Path, fakes: Any, changed: int) -> None:
    asked = questions(fakes, 30)
    attempts = [attempt(q.id, "(A)", said_by_tool("A" if n % 3 else "B", 0.75)) for n, q in enumerate(asked)]
    write_trust(made(tmp_path / "one", asked, {"mllm": attempts}), tmp_path / "before.json", FOLDS)
    attempts[changed] = attempt(asked[changed].id, "(B)", said_by_tool("A" if changed % 3 == 0 else "B", 0.2))
    asked[changed] = replace(asked[changed], target="(B)")
    write_trust(made(tmp_path / "two", asked, {"mllm": attempts}), tmp_path / "after.json", FOLDS)
    own = fold_of(asked[changed].unit, FOLDS)
    for question in asked:
        before, after = (judged_by(tmp_path / name, question).curves for name in ("before.json", "after.json"))
        assert (before == after) == (fold_of(question.unit, FOLDS) == own)


def test_variants_and_pairs_share_a_fold(tmp_path: Path, fakes: Any) -> None:
    pair = [
        fakes.question(name, task="Jigsaw", cluster="pair-1", choices=("x", "y"))
        for name in ("val_Jigsaw_1", "val_Jigsaw_2#s1")
    ]
    others = questions(fakes, 20)[3:]
    asked = [*pair, *others]
    attempts = [attempt(question.id, "", said_by_tool("A", 0.75)) for question in asked]
    write_trust(made(tmp_path / "run", asked, {"specialist": attempts}), tmp_path / "trust.json", FOLDS)
    own = sum(fold_of(question.unit, FOLDS) == fold_of("pair-1", FOLDS) for question in asked)
    assert own >= 2
    for question in pair:
        curve = judged_by(tmp_path / "trust.json", question).curves[KEY]
        assert sum(bin_.n for bin_ in curve.bins) == len(asked) - own


def test_a_run_without_testimony_or_with_one_fold_is_refused(tmp_path: Path, fakes: Any) -> None:
    asked = questions(fakes, 1)
    folder = made(tmp_path / "run", asked, {"chance": [attempt(asked[0].id, "(A)")]})
    with pytest.raises(UsageError, match="holds no testimony: run the specialist or the arbiter"):
        write_trust(folder, tmp_path / "trust.json", FOLDS)
    with pytest.raises(UsageError, match="--folds 1: out-of-fold needs at least 2"):
        write_trust(folder, tmp_path / "trust.json", 1)
    assert not (tmp_path / "trust.json").exists()


def test_hidden_answers_cannot_be_counted(tmp_path: Path, fakes: Any) -> None:
    folder = made(tmp_path / "run", questions(fakes, 1), {}, split="test")
    with pytest.raises(UsageError, match="the answers of blink test are hidden"):
        cases(folder)


async def test_from_a_run_to_a_run_that_trusts_it(tmp_path: Path, fakes: Any) -> None:
    data = fakes.blink_folder(tmp_path / "blink", jigsaws=6, spatials=0)
    model = fakes.recordings(tmp_path / "model", fakes.blink_replies(6, 0, "(A)"))
    config = RunConfig("blink", ("mllm", "specialist"), f"replay:{model}", data=str(data), backend="classical")
    plan = prepare(replace(config, out=tmp_path / "run"))
    await execute(plan, lambda *_: None)
    found = write_trust(plan.folder, tmp_path / "trust.json", FOLDS)
    assert {(case.key[0], case.right) for case in found} == {("jigsaw", True), ("mllm", True), ("mllm", False)}
    trusting = replace(config, solvers=("arbiter",), trust=tmp_path / "trust.json", out=tmp_path / "second")
    plan = prepare(trusting)
    assert plan.identity["trust"] == read_trust(tmp_path / "trust.json").sha256
    assert await execute(plan, lambda *_: None) == ()
    for one in plan.folder.attempts("arbiter"):
        question = next(question for question in plan.sound if question.id == one.id)
        (step,) = one.exchanges[0].reply.steps
        trust = judged_by(tmp_path / "trust.json", question)
        assert step.data["model"] == pytest.approx(trust.model("Jigsaw", 0.5))
