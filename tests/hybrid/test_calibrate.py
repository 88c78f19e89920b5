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
from hybrid.run import execute
from hybrid.trust import MODEL, Trust, fold_of, read_trust
from hybrid.types import Attempt, Exchange, Kind, Prompt, Question, Reply, Step

FOLDS = 5
KEY = ("jigsaw", "classical", "Jigsaw")


def said_by_tool(letter: str, confidence: float, backend: str = "classical") -> Step:
    said = {"letter": letter, "answer": f"Answer: ({letter})", "tool": "jigsaw", "backend": backend}
    return Step("rule", "testify", "", data={"testimony": {**said, "confidence": confidence}})


def attempt(identity: str, text: str, *steps: Step) -> Attempt:
    prompt = Prompt(("?",), Kind.CHOICE, ("x", "y"), route="Jigsaw")
    return Attempt(identity, (Exchange(prompt, Reply(text, steps=steps)),), 0.1)


def made(path: Path, questions: list[Question], solvers: dict[str, list[Attempt]], split: str = "val") -> RunFolder:
    folder = RunFolder(path)
    identity = {"benchmark": "blink", "split": split}
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
    pair = [fakes.question(name, task="Jigsaw", cluster="pair-1") for name in ("val_Jigsaw_1", "val_Jigsaw_2#s1")]
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
