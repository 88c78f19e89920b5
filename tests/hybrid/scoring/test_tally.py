"""Scores on disk: read while they hold, made anew and written again where anything they were made from is another."""

import hashlib
import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.benchmarks.base import ScoreOptions
from hybrid.benchmarks.blink import BENCHMARK, Blink
from hybrid.errors import DataError, UsageError
from hybrid.log.attempts import Unfinished, attempt_line
from hybrid.log.codec import to_json
from hybrid.log.folder import RunFolder, attempts_of
from hybrid.registry import load
from hybrid.rotation import rotated
from hybrid.scoring import tally as module
from hybrid.scoring.calibrate import cases
from hybrid.scoring.runs import score_run
from hybrid.scoring.score import Scored
from hybrid.scoring.tally import Replies, Tally, refuse_our_line, scorer_of, tally, tally_replies, where_raised
from hybrid.serving.sources import Sources
from hybrid.types import Attempt, Exchange, Kind, Outcome, Prompt, Question, Reply, Score, Usage

OPTIONS = ScoreOptions(abstain="chance")
SAID = ("Answer: (A)", "I cannot tell.", "Answer: (B)")


class Calls:
    """How often BLINK's replies were scored."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.number = 0
        score = Blink.score

        def counted(blink: Blink, *args: Any) -> Score:
            self.number += 1
            return score(blink, *args)

        monkeypatch.setattr(Blink, "score", counted)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    return Calls(monkeypatch)


def attempt(question: Question, text: str) -> Attempt:
    prompt = Prompt((question.text,), Kind.CHOICE, question.choices, route=question.route)
    return Attempt(
        question.id, (Exchange(prompt, Reply(text, usage=Usage(model_calls=1, cost_usd=0.1))),), 0.3, None, 5.0
    )


@pytest.fixture
def folder(tmp_path: Path, fakes: Any) -> RunFolder:
    """Two puzzles answered, one not answered, one that failed, and one that was not asked yet; ids unsorted."""
    made = RunFolder(tmp_path / "run")
    facts = {"task": "Jigsaw", "route": "Jigsaw", "target": "(A)", "choices": ("x", "y")}
    questions = [fakes.question(f"val_Jigsaw_{n}", **facts) for n in (4, 2, 9, 1, 3)]
    identity = {"benchmark": "blink", "split": "val", "protocol": "strict"}
    made.write_manifest({"identity": identity, "solvers": {"mllm": {}}})
    made.write_questions(questions)
    journal = made.journal("mllm")
    for question, text in zip(questions, SAID, strict=False):
        journal.append(attempt_line(attempt(question, text)))
    journal.close()
    note_error(made, "val_Jigsaw_1")
    return made


def note_error(folder: RunFolder, question_id: str) -> None:
    journal = folder.journal("mllm")
    journal.append(to_json(Unfinished, Unfinished(question_id, "the server is down")))
    journal.close()


def tallied(folder: RunFolder, options: ScoreOptions = OPTIONS) -> Tally:
    return tally(folder, BENCHMARK, "mllm", folder.questions(), options)


def scores_of(folder: RunFolder) -> Path:
    return folder.path / "mllm" / "scores.jsonl"


def test_what_is_read_is_what_was_made(folder: RunFolder, calls: Calls) -> None:
    made = tallied(folder)
    assert [score.id[-1] for score in made.scores] == ["4", "2", "9", "1"]
    assert [(score.id[-1], score.correct) for score in made.unanswered] == [("2", 0.0)]
    assert (made.open, made.usage.model_calls, made.wall_s) == (1, 3, pytest.approx(0.3))
    assert len({id(score.groups) for score in made.scores}) == 1, "scores share the groups of their questions"
    # Three replies, and the one without an answer under the other rule as well.
    assert calls.number == 4
    assert tallied(folder) == made
    assert calls.number == 4


def test_what_scores_were_made_from_is_named_next_to_them(folder: RunFolder) -> None:
    tallied(folder)
    basis = json.loads(scores_of(folder).with_name("scores.json").read_text())["basis"]
    identity = json.dumps(folder.manifest["identity"], sort_keys=True).encode()
    files = {name: (folder.path / name).read_bytes() for name in ("questions.jsonl", attempts_of("mllm"))}
    assert basis["inputs"] == {
        "identity": hashlib.sha256(identity).hexdigest(),
        "questions.jsonl": hashlib.sha256(files["questions.jsonl"]).hexdigest(),
        "attempts.jsonl": hashlib.sha256(files[attempts_of("mllm")]).hexdigest(),
        "attempts.jsonl as the manifest has it": "",
    }
    assert (basis["protocol"], basis["abstain"]) == (OPTIONS.parse, OPTIONS.abstain)


def test_nothing_but_the_scores_is_read_while_they_hold(
    folder: RunFolder, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    def summed() -> tuple[Scored, ...]:
        return score_run(folder, OPTIONS)

    before = summed()
    monkeypatch.setattr(RunFolder, "recorded", lambda *_: pytest.fail("the replies were read"))
    assert summed() == before
    assert [one.as_json() for one in summed()] == [one.as_json() for one in before]
    assert calls.number == 4


def more_said(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = folder.journal("mllm")
    journal.append(attempt_line(attempt(folder.questions()[4], "Answer: (B)")))  # type: ignore[arg-type]
    journal.close()


def said_otherwise(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder.path / "mllm" / "attempts.jsonl"
    path.write_bytes(path.read_bytes().replace(b"Answer: (A)", b"Answer: (B)"))


def another_target(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write_questions(replace(one, target="(B)") for one in folder.questions() if isinstance(one, Question))


def another_failure(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    note_error(folder, "val_Jigsaw_3")


def another_identity(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = folder.manifest
    folder.write_manifest({**manifest, "identity": {**manifest["identity"], "seed": 7}})


def another_extent(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of the replies is as it was, and the manifest now says that it has to be so."""
    name = attempts_of("mllm")
    folder.write_manifest({**folder.manifest, "files": {name: asdict(folder.measure(name).extent)}})


def another_scorer(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "scorer_of", lambda _: "ab" * 32)


def cut_off(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    path = scores_of(folder)
    path.write_bytes(path.read_bytes()[:-20])


def a_line_lost(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    path = scores_of(folder)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))


def no_scores(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    scores_of(folder).unlink()


def no_basis(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    scores_of(folder).with_name("scores.json").unlink()


def half_a_basis(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    path = scores_of(folder).with_name("scores.json")
    path.write_bytes(path.read_bytes()[:100])


def an_older_basis(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    path = scores_of(folder).with_name("scores.json")
    path.write_text(json.dumps({"scores_sha256": json.loads(path.read_text())["scores_sha256"]}))


def another_credit(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a question without an answer, by the other rule."""
    path = scores_of(folder).with_name("scores.json")
    kept = json.loads(path.read_text())
    kept["unanswered"][0]["correct"] = 0.875
    path.write_text(json.dumps(kept))


def another_cost(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    path = scores_of(folder).with_name("scores.json")
    kept = json.loads(path.read_text())
    kept["usage"]["cost_usd"] = 99.0
    path.write_text(json.dumps(kept))


CHANGES = (
    *(more_said, said_otherwise, another_target, another_failure, another_identity, another_extent, another_scorer),
    *(cut_off, a_line_lost, no_scores, no_basis, half_a_basis, an_older_basis),
    *(another_credit, another_cost),
)


@pytest.mark.parametrize("change", CHANGES)
def test_what_does_not_hold_is_scored_and_written_again(
    change: Any, folder: RunFolder, calls: Calls, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tallied(folder)
    before = calls.number
    change(folder, monkeypatch)
    again = tallied(folder)
    scored = calls.number - before
    assert scored >= 4
    files = [scores_of(folder), scores_of(folder).with_name("scores.json")]
    written = [path.read_bytes() for path in files]
    for path in files:
        path.unlink()
    # As if nothing had been on disk; and what was written is read from then on.
    assert tallied(folder) == again
    assert [path.read_bytes() for path in files] == written
    before = calls.number
    assert tallied(folder) == again
    assert calls.number == before


def test_an_answer_that_cannot_be_scored_costs_one_question(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    score = Blink.score

    def picky(blink: Blink, question: Question, exchanges: Any, options: Any) -> Score:
        if question.id == "val_Jigsaw_9":
            raise ValueError("no\nsuch option")
        return score(blink, question, exchanges, options)

    monkeypatch.setattr(Blink, "score", picky)
    found = tallied(folder)
    assert [(one.id[-1], one.outcome) for one in found.scores if one.outcome.failed] == [
        ("9", Outcome.BROKEN),
        ("1", Outcome.OUTAGE),
    ]
    assert len(found.scores) == 4
    assert found.usage.model_calls == 3
    line = picky.__code__.co_firstlineno + 2
    said = f"cannot be scored: ValueError: no such option (test_tally.py, line {line})"
    assert found.reasons == {"val_Jigsaw_9": said}
    assert tallied(folder) == found, "the reasons are kept"
    (scored,) = score_run(folder, OPTIONS)
    assert scored.reasons == found.reasons

    def refusing(*_: Any) -> Score:
        raise UsageError("of the command")

    monkeypatch.setattr(Blink, "score", refusing)
    monkeypatch.setattr(module, "scorer_of", lambda _: "cd" * 32)
    with pytest.raises(UsageError, match="of the command"):
        tallied(folder)


def test_an_error_in_one_line_says_where_it_was_raised() -> None:
    assert where_raised(ValueError("never  raised\n")) == "ValueError: never raised"
    try:
        int("x")
    except ValueError as error:
        said = where_raised(error)
    assert re.fullmatch(r"ValueError: invalid literal .* \(test_tally\.py, line \d+\)", said)


def test_answers_to_other_questions_are_refused(folder: RunFolder, fakes: Any) -> None:
    folder.write_questions([fakes.question("val_Jigsaw_2", choices=("x", "y"))])
    said = r"mllm/attempts.jsonl answers 2 questions that are not in .*\(the first is 'val_Jigsaw_4'\)"
    with pytest.raises(DataError, match=said):
        tallied(folder)


def test_questions_that_failed_keep_their_groups_and_clusters(fakes: Any) -> None:
    facts = (("val_Jigsaw_1", {"images": "3"}, "one scene"), ("val_Jigsaw_2", {"images": "2"}, "another"))
    questions = [fakes.question(name, groups=groups, cluster=cluster) for name, groups, cluster in facts]
    made = tally_replies(BENCHMARK, Replies(questions, {}, {one.id for one in questions}), OPTIONS)
    assert made.scores == tuple(
        Score(one.id, one.task, 0.0, Outcome.OUTAGE, groups=one.groups, cluster=one.cluster) for one in questions
    )


def test_where_replies_are_lost_what_was_not_answered_failed(folder: RunFolder) -> None:
    path = folder.path / "mllm" / "attempts.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:1], b"{ no attempt\n", *lines[2:]]))
    found = tallied(folder)
    assert found.damage
    assert [(score.id[-1], score.outcome) for score in found.scores if score.outcome.failed] == [
        (number, Outcome.OUTAGE) for number in "213"
    ]
    assert found.open == 0
    (scored,) = score_run(folder, OPTIONS)
    assert scored.damage == found.damage


def test_without_keeping_nothing_is_written(folder: RunFolder) -> None:
    made = tally(folder, BENCHMARK, "mllm", folder.questions(), OPTIONS, keep=False)
    assert not scores_of(folder).exists()
    assert made == tallied(folder)
    assert scores_of(folder).exists()
    for path in (scores_of(folder), scores_of(folder).with_name("scores.json")):
        path.unlink()
    score_run(folder, OPTIONS, keep=False)
    assert not scores_of(folder).exists()


def test_scores_that_cannot_be_written_are_made_all_the_same(folder: RunFolder) -> None:
    scores_of(folder).mkdir()
    found = tallied(folder)
    assert len(found.scores) == 4
    assert found.not_kept is not None
    assert re.fullmatch(rf"the scores of {re.escape(str(folder.path))} are not kept there \(.+\)", found.not_kept)
    (scored,) = score_run(folder, OPTIONS)
    assert scored.not_kept == found.not_kept


@pytest.mark.parametrize(
    ("prompts", "parse", "refused"),
    [
        ({}, "official", True),
        ({"format_line": True}, "official", True),
        ({"format_line": False}, "official", False),
        (None, "official", False),
        ({}, "strict", False),
    ],
)
def test_our_line_is_refused_where_the_official_parse_cannot_read_it(
    folder: RunFolder, prompts: dict[str, bool] | None, parse: Any, refused: bool
) -> None:
    manifest = folder.manifest
    identity = {**manifest["identity"], **({} if prompts is None else {"prompts": prompts})}
    folder.write_manifest({**manifest, "identity": identity})
    card = replace(BENCHMARK.card, official_reads=frozenset({Kind.YES_NO}))
    unable = Blink()
    unable.card = card  # type: ignore[misc]
    options = ScoreOptions(parse)
    if refused:
        with pytest.raises(UsageError, match=r'parse of blink does not read replies .*\("Answer: \.\.\."; choice\)'):
            refuse_our_line(folder, unable, folder.questions(), options)
    else:
        refuse_our_line(folder, unable, folder.questions(), options)
    refuse_our_line(folder, BENCHMARK, folder.questions(), options)


def test_a_solver_has_what_the_manifest_says_of_it(folder: RunFolder) -> None:
    manifest = folder.manifest
    for solver in ("controller", "specialist"):
        journal = folder.journal(solver)
        journal.append(attempt_line(attempt(folder.questions()[0], "Answer: (A)")))  # type: ignore[arg-type]
        journal.close()
    tools = {"controller": {"tools": {"depth": {}, "ocr": {}}}, "specialist": {"tools": {"depth": {}}}, "mllm": {}}
    identity = {**manifest["identity"], "model": {"model": "openai:gpt-4o"}, "tool_output": "blank"}
    labels = ["weights unchecked: depth, ocr", "control: blank", "unsure: ocr", "quick"]
    folder.write_manifest({**manifest, "identity": identity, "solvers": tools, "labels": labels})
    found = {one.solver: one for one in score_run(folder, OPTIONS)}
    assert {name: one.labels for name, one in found.items()} == {
        "controller": ("weights unchecked: depth, ocr", "control: blank", "unsure: ocr", "quick"),
        "specialist": ("weights unchecked: depth", "control: blank", "quick"),
        "mllm": ("control: blank", "quick"),
    }
    for name, one in found.items():
        assert (one.recorded, one.model, one.tool_output) == (name, "openai:gpt-4o", "blank")
        assert one.folder is folder
        assert (one.damage, one.not_kept) == ((), None)
    assert found["mllm"].usage == Usage(model_calls=3, cost_usd=pytest.approx(0.3))
    assert found["mllm"].wall_s == pytest.approx(0.3)
    folder.write_manifest(manifest)
    (plain,) = score_run(folder, OPTIONS, ("mllm",))
    assert (plain.model, plain.tool_output, plain.labels) == (None, "real", ())
    folder.write_manifest({**manifest, "identity": {**manifest["identity"], "imported": {"field": "text"}}})
    (imported,) = score_run(folder, OPTIONS, ("mllm",))
    assert (imported.model, imported.usage, imported.wall_s) == ("", None, None)


def test_rotations_of_a_question_have_metrics_of_their_own(tmp_path: Path, fakes: Any) -> None:
    plain = fakes.question("val_Spatial_Relation_1", task="Spatial_Relation", route="Spatial_Relation")
    turned = rotated(plain, 1, in_text=False)
    assert turned is not None
    made = RunFolder(tmp_path / "run")
    solvers: dict[str, Any] = {"letters": {}, "options": {}, "silent": {}}
    made.write_manifest({"identity": {"benchmark": "blink", "split": "val"}, "solvers": solvers})
    made.write_questions([plain, turned])
    # The same letter is another option where the options are turned.
    replies = {"letters": "Answer: (A)", "options": "Answer: (B)", "silent": "I cannot tell."}
    for solver, second in replies.items():
        journal = made.journal(solver)
        journal.append(attempt_line(attempt(plain, "Answer: (A)")), attempt_line(attempt(turned, second)))
        journal.close()
    values = {
        one.solver: {metric.name: metric.value for metric in one.metrics if metric.name.startswith("rotation.")}
        for one in score_run(made, OPTIONS)
    }
    consistent = {name: each["rotation.consistency"] for name, each in values.items()}
    assert consistent == {"letters": 0.0, "options": 1.0, "silent": 0.0}
    right = {name: each["rotation.accuracy"] for name, each in values.items()}
    assert right == {"letters": 0.5, "options": 1.0, "silent": 0.75}


def test_a_run_without_attempts_has_no_solver(tmp_path: Path) -> None:
    empty = RunFolder(tmp_path / "empty")
    empty.write_manifest({"identity": {"benchmark": "blink", "split": "val"}, "solvers": {}})
    empty.write_questions([])
    with pytest.raises(UsageError, match=r"has no attempts of 'mllm'; it has: none$"):
        score_run(empty, OPTIONS, ("mllm",))


@pytest.mark.parametrize("options", [ScoreOptions("official", "chance"), ScoreOptions("strict", "wrong")])
def test_another_protocol_or_rule_is_scored(options: ScoreOptions, folder: RunFolder, calls: Calls) -> None:
    tallied(folder)
    before = calls.number
    found = tallied(folder, options)
    assert calls.number > before
    values = [json.loads(line)["correct"] for line in scores_of(folder).read_text().splitlines()]
    assert values == [score.correct for score in sorted(found.scores, key=lambda score: score.id)]
    before = calls.number
    tallied(folder)
    assert calls.number > before


def test_calibrate_reads_the_scores_of_the_model(folder: RunFolder, calls: Calls) -> None:
    score_run(folder, OPTIONS)
    before = calls.number
    assert [(case.unit, case.score) for case in cases(folder)] == [("val_Jigsaw_4", 1.0), ("val_Jigsaw_9", 0.0)]
    assert calls.number == before


def test_the_scorer_is_its_code_and_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    other = load("hybrid.benchmarks", "mm_sap")
    assert scorer_of(BENCHMARK) == scorer_of(Blink()) != scorer_of(other)
    assert scorer_of(Blink({"other": "words"})) != scorer_of(BENCHMARK)
    reached: list[tuple[str, ...]] = []

    def reads(sources: Any, modules: tuple[str, ...]) -> str:
        reached.append(tuple(sorted(sources.reached(modules))))
        return "0"

    monkeypatch.setattr(Sources, "sha256", reads)
    module._code.__wrapped__("blink")
    assert {"hybrid.scoring.tally", "hybrid.answers.letters", "hybrid.benchmarks.blink"} <= set(reached[0])
    assert "hybrid.benchmarks.mm_sap" not in reached[0]
