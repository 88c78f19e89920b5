"""Saved scores are read while they are valid, and recomputed if anything from which they were computed has changed."""

import json
import re
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.benchmarks.base import ScoreOptions
from hybrid.benchmarks.blink import BENCHMARK, Blink
from hybrid.core.errors import DataError, UsageError
from hybrid.core.types import Attempt, BrokenQuestion, Exchange, Kind, Outcome, Prompt, Question, Reply, Score, Usage
from hybrid.log.attempts import Unfinished, attempt_line
from hybrid.log.codec import to_json
from hybrid.log.folder import SCORES, RunFolder, attempts_of
from hybrid.scoring import tally as module
from hybrid.scoring.calibrate import cases
from hybrid.scoring.runs import score_run
from hybrid.scoring.tally import Replies, Span, Tally, refuse_our_line, tally, tally_replies, wall_seconds
from tests.hybrid.scoring.solvers import folder_of

OPTIONS = ScoreOptions(unanswered="guess")
SAID = ("Answer: (A)", "I cannot tell.", "Answer: (B)")


class Calls:
    """Count how often BLINK's replies were scored."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.number = 0
        score = Blink.score

        def count_score(blink: Blink, *args: Any) -> Score:
            self.number += 1
            return score(blink, *args)

        monkeypatch.setattr(Blink, "score", count_score)


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
    """Folder of a run with two puzzles answered, one not answered, one failed, and one not finished yet; the ids are
    unsorted."""
    facts = {"task": "Jigsaw", "route": "Jigsaw", "target": "(A)", "choices": ("x", "y")}
    questions = [fakes.question(f"val_Jigsaw_{n}", **facts) for n in (4, 2, 9, 1, 3)]
    attempts = [attempt(question, text) for question, text in zip(questions, SAID, strict=False)]
    built = folder_of(tmp_path / "run", questions, {"mllm": attempts}, protocol="strict")
    note_error(built, "val_Jigsaw_1")
    return built


def note_error(folder: RunFolder, question_id: str) -> None:
    journal = folder.journal("mllm")
    journal.append(to_json(Unfinished, Unfinished(question_id, "the server is down")))
    journal.close()


def tallied(folder: RunFolder, options: ScoreOptions = OPTIONS) -> Tally:
    return tally(folder, BENCHMARK, "mllm", folder.questions(), options)


def more_said(folder: RunFolder) -> None:
    journal = folder.journal("mllm")
    journal.append(attempt_line(attempt(folder.questions()[4], "Answer: (B)")))  # type: ignore[arg-type]
    journal.close()


def another_target(folder: RunFolder) -> None:
    folder.write_questions(
        replace(question, target="(B)") for question in folder.questions() if isinstance(question, Question)
    )


def another_identity(folder: RunFolder) -> None:
    manifest = folder.manifest
    folder.write_manifest({**manifest, "identity": {**manifest["identity"], "seed": 7}})


def another_extent(folder: RunFolder) -> None:
    """Add the hash of the unchanged file of replies to the manifest."""
    name = attempts_of("mllm")
    folder.write_manifest({**folder.manifest, "files": {name: asdict(folder.measure(name).extent)}})


def edited(name: str, change: Callable[[bytes], bytes]) -> Callable[[RunFolder], None]:
    def edit(folder: RunFolder) -> None:
        path = folder.path / "mllm" / name
        content = path.read_bytes()
        path.write_bytes(change(content))
        assert path.read_bytes() != content

    return edit


CHANGES: dict[str, Callable[[RunFolder], Any]] = {
    "more said": more_said,
    "said otherwise": edited("attempts.jsonl", lambda data: data.replace(b"Answer: (A)", b"Answer: (B)")),
    "another target": another_target,
    "another failure": lambda folder: note_error(folder, "val_Jigsaw_3"),
    "another identity": another_identity,
    "another extent": another_extent,
    "cut off": edited("scores.jsonl", lambda data: data[:-20]),
    "a line lost": edited("scores.jsonl", lambda data: data.partition(b"\n")[2]),
    "no scores": lambda folder: (folder.path / "mllm" / "scores.jsonl").unlink(),
    "no basis": lambda folder: (folder.path / "mllm" / "scores.json").unlink(),
    "half a basis": edited("scores.json", lambda data: data[:100]),
    "an older basis": edited(
        "scores.json", lambda data: json.dumps({"scores_sha256": json.loads(data)["scores_sha256"]}).encode()
    ),
    # An unanswered question now gets credit by the other rule.
    "another credit": edited("scores.json", lambda data: re.sub(rb'("correct": ?)0(\.0)?', rb"\g<1>0.875", data)),
    "another cost": edited("scores.json", lambda data: re.sub(rb'("cost_usd": ?)[0-9.]+', rb"\g<1>99.0", data)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_does_not_hold_is_scored_and_written_again(change: str, folder: RunFolder, calls: Calls) -> None:
    tallied(folder)
    number = calls.number
    CHANGES[change](folder)
    second = tallied(folder)
    assert calls.number - number >= 4
    files = [folder.path / "mllm" / name for name in ("scores.jsonl", "scores.json")]
    contents = [path.read_bytes() for path in files]
    for path in files:
        path.unlink()
    # Scores are computed as if none were saved, and then read from disk.
    assert tallied(folder) == second
    assert [path.read_bytes() for path in files] == contents
    number = calls.number
    assert tallied(folder) == second
    assert calls.number == number


def test_an_answer_that_cannot_be_scored_costs_one_question(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    score = Blink.score

    def picky(blink: Blink, question: Question, exchanges: Any, options: Any) -> Score:
        if question.id == "val_Jigsaw_9":
            raise ValueError("no\nsuch option")
        return score(blink, question, exchanges, options)

    monkeypatch.setattr(Blink, "score", picky)
    result = tallied(folder)
    assert [(item.id[-1], item.outcome) for item in result.scores if item.outcome.failed] == [
        ("9", Outcome.BROKEN),
        ("1", Outcome.OUTAGE),
    ]
    assert len(result.scores) == 4
    assert result.usage.model_calls == 3
    line = picky.__code__.co_firstlineno + 2
    text = f"cannot be scored: ValueError: no such option (scoring/test_tally.py, line {line})"
    assert result.reasons == {"val_Jigsaw_9": text}
    assert tallied(folder) == result, "the reasons are kept"
    (scored,) = score_run(folder, OPTIONS)
    assert scored.reasons == result.reasons

    def refusing(*_: Any) -> Score:
        raise UsageError("of the command")

    monkeypatch.setattr(Blink, "score", refusing)
    monkeypatch.setattr(module, "scorer_of", lambda _: "cd" * 32)
    with pytest.raises(UsageError, match="of the command"):
        tallied(folder)


def test_a_question_without_a_score_of_its_own_keeps_group_and_cluster(fakes: Any) -> None:
    facts = {"task": "Jigsaw", "route": "Jigsaw", "choices": ("x", "y"), "cluster": "pair1"}
    question, failed, waiting = (fakes.question(f"val_Jigsaw_{n}", groups={"level": "low"}, **facts) for n in (1, 2, 3))
    broken = BrokenQuestion("val_Jigsaw_4", "Jigsaw", "no image", {"level": "low"}, "pair1")
    replies = Replies([question, failed, waiting, broken], {question.id: attempt(question, "Answer: (A)")}, {failed.id})
    result = tally_replies(BENCHMARK, replies, OPTIONS)
    assert [(score.id[-1], score.correct, score.outcome) for score in result.scores] == [
        ("1", 1.0, Outcome.ANSWERED),
        ("2", 0.0, Outcome.OUTAGE),
        ("4", 0.0, Outcome.BROKEN),
    ]
    facts_of_all = {(score.task, score.groups["level"], score.cluster) for score in result.scores}
    assert facts_of_all == {("Jigsaw", "low", "pair1")}
    assert len({id(score.groups) for score in result.scores}) == 1, "equal groups share one mapping"
    assert (result.open, result.wall_s) == (1, pytest.approx(0.3))


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [
        ([], 0.0),
        # Parallel attempts count once, and a pause does not count, in any order.
        ([(30.0, 2.0), (10.0, 5.0), (12.0, 8.0), (11.0, 1.0)], 12.0),
        ([(0.5, 0.25)], 0.25),
        ([(10.0, -5.0), (10.0, 1.0)], 1.0),
        ([(10.0, 5.0), (None, 1.0)], None),
    ],
)
def test_overlapping_attempts_count_once_and_pauses_do_not(spans: list[Span], seconds: float | None) -> None:
    assert wall_seconds(spans) == seconds


def test_tally_checks_that_the_parse_can_read_the_replies(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[Any] = []
    monkeypatch.setattr(module, "refuse_our_line", lambda *facts: checked.append(facts[3]))
    tallied(folder)
    assert checked == [OPTIONS]


def test_scores_are_saved_unless_the_run_is_in_progress(folder: RunFolder) -> None:
    path = folder.path / "mllm" / SCORES
    unsaved = tally(folder, BENCHMARK, "mllm", folder.questions(), OPTIONS, keep=False)
    assert not path.exists()
    assert tallied(folder) == unsaved
    assert path.exists()


def test_if_answers_were_lost_every_question_without_one_failed(folder: RunFolder) -> None:
    def failed() -> dict[str, bool]:
        return {score.id: score.outcome.failed for score in tallied(folder).scores}

    answered = dict.fromkeys(("val_Jigsaw_4", "val_Jigsaw_2", "val_Jigsaw_9"), False)
    assert (failed(), tallied(folder).open) == (answered | {"val_Jigsaw_1": True}, 1)
    path = folder.path / attempts_of("mllm")
    path.write_bytes(b"lost\n" + path.read_bytes())
    assert (failed(), tallied(folder).open) == (answered | {"val_Jigsaw_1": True, "val_Jigsaw_3": True}, 0)


def test_answers_to_other_questions_are_refused(folder: RunFolder, fakes: Any) -> None:
    folder.write_questions([fakes.question("val_Jigsaw_2", choices=("x", "y"))])
    replies, questions = folder.path / "mllm" / "attempts.jsonl", folder.path / "questions.jsonl"
    text = f"{replies} answers 2 questions that are not in {questions} (the first is 'val_Jigsaw_4')"
    with pytest.raises(DataError, match=re.escape(text)):
        tallied(folder)


def test_a_solver_that_was_not_asked_yet_has_every_question_open(folder: RunFolder) -> None:
    result = tally(folder, BENCHMARK, "text_only", folder.questions(), OPTIONS)
    assert (result.scores, result.open, result.usage) == ((), 5, Usage())


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


def test_calibrate_reads_the_scores_of_the_model(folder: RunFolder, calls: Calls) -> None:
    score_run(folder, OPTIONS)
    number = calls.number
    assert [(case.unit, case.score) for case in cases(folder)] == [("val_Jigsaw_4", 1.0), ("val_Jigsaw_9", 0.0)]
    assert calls.number == number


@pytest.mark.parametrize(("rule", "value", "other_value"), [("guess", 0.5, 0.0), ("wrong", 0.0, 0.5)])
def test_only_what_has_no_answer_is_scored_by_the_other_rule_too(
    rule: Any, value: float, other_value: float, fakes: Any
) -> None:
    facts = {"task": "Jigsaw", "route": "Jigsaw", "target": "(A)", "choices": ("x", "y")}
    questions = [fakes.question(f"val_Jigsaw_{n}", **facts) for n in range(1, 5)]
    attempts = {question.id: attempt(question, text) for question, text in zip(questions, SAID, strict=False)}
    # The last reply counts as failed, so no rule gives it a value.
    failed = attempt(questions[3], "")
    (exchange,) = failed.exchanges
    exchange = replace(exchange, reply=replace(exchange.reply, outcome=Outcome.OUTAGE))
    attempts[questions[3].id] = replace(failed, exchanges=(exchange,))
    result = tally_replies(BENCHMARK, Replies(questions, attempts), ScoreOptions(unanswered=rule))
    assert [(score.id[-1], score.correct) for score in result.scores] == [
        ("1", 1.0),
        ("2", value),
        ("3", 0.0),
        ("4", 0.0),
    ]
    assert [(score.id[-1], score.correct, score.answer) for score in result.by_other_rule] == [("2", other_value, None)]
    assert (result.open, result.usage.model_calls) == (0, 4)


def test_a_stored_answer_is_compared_without_parsing(fakes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stored: list[str] = []

    def compare_stored(blink: Blink, question: Question, text: str, options: ScoreOptions) -> Score:
        stored.append(text)
        return Score(question.id, question.task, 1.0, Outcome.ANSWERED, text)

    monkeypatch.setattr(Blink, "score_stored", compare_stored)
    stored_question = fakes.question("val_Jigsaw_1", task="Jigsaw", route="Jigsaw", target="(A)", choices=("x", "y"))
    first = attempt(stored_question, "B")
    # In a dialogue, the last reply has the answer.
    last = replace(first.exchanges[0], reply=replace(first.exchanges[0].reply, text="(A)"))
    attempts = {stored_question.id: replace(first, exchanges=(*first.exchanges * 2, last))}
    scores = tally_replies(BENCHMARK, Replies([stored_question], attempts, stored=True), OPTIONS).scores
    assert (stored, [score.correct for score in scores]) == (["(A)"], [1.0])
    stored.clear()
    assert tally_replies(BENCHMARK, Replies([stored_question], attempts), OPTIONS).scores[0].answer == "A"
    assert stored == []
