"""A judge reads only unparsed replies; its verdicts are saved, resumed, and shown next to the numbers without them."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from hybrid.benchmarks.base import ScoreOptions
from hybrid.benchmarks.blink import BENCHMARK
from hybrid.cli import cli
from hybrid.config import RunConfig, ServiceOptions
from hybrid.core.errors import DataError, Outage, UsageError
from hybrid.core.types import LETTERS, Exchange, Kind, Prompt, Reply
from hybrid.log.folder import RunFolder
from hybrid.models.base import ModelRefused
from hybrid.plugins.prompt_texts import read_texts, text_hash
from hybrid.running.resolve import prepare
from hybrid.running.run import ask_run
from hybrid.scoring.judge import TEXTS, answer_in, judge_prompt, judge_run
from hybrid.scoring.predicted import import_run
from hybrid.scoring.readings import read_readings
from hybrid.scoring.runs import score_run
from hybrid.scoring.score import Scored
from tests.servers import provider
from tests.tables import cases

OPTIONS = ScoreOptions()
UNREADABLE = {
    "val_Jigsaw_1": "Of the two pieces I would take the one whose sky goes on.",
    "val_Jigsaw_2": "Either could be it.",
    "val_Jigsaw_4": "",
    "val_Spatial_Relation_2": "The cat lies under it.",
}
ORDER = ("val_Jigsaw_1", "val_Jigsaw_2", "val_Spatial_Relation_2")


async def ran(tmp_path: Path, fakes: Any) -> RunFolder:
    """Run a model on four puzzles and two relations; four of its replies contain no answer, one of which is empty."""
    data = fakes.blink_folder(tmp_path / "blink", jigsaws=4, spatials=2)
    model = fakes.recordings(tmp_path / "model", fakes.blink_replies(4, 2) | UNREADABLE)
    config = RunConfig(
        "blink", ("mllm", "specialist"), model=f"replay:{model}", data=str(data), service=ServiceOptions("classical")
    )
    plan = prepare(replace(config, out=tmp_path / "run"))
    assert await ask_run(plan, lambda *_: None) == ()
    return plan.folder


def numbers(scored: Scored) -> dict[str, float | None]:
    return {metric.name: metric.value for metric in scored.metrics}


async def test_the_judge_sees_no_image_and_no_right_answer(tmp_path: Path, fakes: Any) -> None:
    folder = await ran(tmp_path, fakes)
    judge = fakes.QueueModel(["Answer: none"] * 3)
    await judge_run(folder, judge, ("mllm",), OPTIONS, 1)
    (message,) = judge.calls[0][0]
    text = message.text
    assert UNREADABLE["val_Jigsaw_1"] in text
    assert "(A) the second image\n(B) the third image\n" in text
    assert all(isinstance(part, str) for part in message.parts)
    changed = folder.questions()[0]
    folder.write_questions([replace(changed, target="(B)"), *folder.questions()[1:]])
    folder.write_manifest({**folder.manifest, "files": {}})
    (folder.path / "mllm" / "verdicts.jsonl").unlink()
    model = fakes.QueueModel(["Answer: none"] * 3)
    await judge_run(folder, model, ("mllm",), OPTIONS, 1)
    assert [call[0][0].text for call in model.calls] == [call[0][0].text for call in judge.calls]


async def test_it_goes_on_where_it_stopped(tmp_path: Path, fakes: Any) -> None:
    folder = await ran(tmp_path, fakes)
    first = fakes.QueueModel(["Answer: (A)", Outage("away"), "Answer: (B)"])
    (judged,) = await judge_run(folder, first, ("mllm",), OPTIONS, 1, 0)
    assert (judged.asked, judged.decided, judged.failed) == (2, 2, ("val_Jigsaw_2, ask 0: away",))
    with (folder.path / "mllm" / "verdicts.jsonl").open("ab") as file:
        file.write(b'{"id": "val_Jig')
    second = fakes.QueueModel(["Answer: (B)"])
    (judged,) = await judge_run(folder, second, ("mllm",), OPTIONS, 4, 0)
    assert (judged.asked, judged.decided, judged.none, judged.failed) == (1, 3, 0, ())
    assert len(read_readings(folder.path / "mllm" / "verdicts.jsonl")) == 3
    (judged,) = await judge_run(folder, fakes.QueueModel([]), ("mllm",), OPTIONS, 4, 0)
    assert (judged.asked, judged.decided) == (0, 3)


async def test_another_judge_does_not_mix_its_verdicts_in(tmp_path: Path, fakes: Any) -> None:
    folder = await ran(tmp_path, fakes)
    await judge_run(folder, fakes.QueueModel(["Answer: none"] * 3), ("mllm",), OPTIONS, 1, 0)
    with pytest.raises(UsageError, match=r'verdicts of another judge:\n  judge.model: "queue:model" -> "queue:other"'):
        await judge_run(folder, fakes.QueueModel([], name="queue:other"), ("mllm",), OPTIONS, 1, 0)


async def test_a_judge_that_cannot_be_asked_ends_it(tmp_path: Path, fakes: Any) -> None:
    folder = await ran(tmp_path, fakes)
    judge = fakes.QueueModel([ModelRefused("no such model")])
    with pytest.raises(ModelRefused, match="no such model"):
        await judge_run(folder, judge, ("mllm",), OPTIONS, 1, 0)
    assert len(judge.calls) == 1


async def test_the_official_parse_leaves_more_to_the_judge(tmp_path: Path, fakes: Any) -> None:
    folder = await ran(tmp_path, fakes)
    data = {"val_Jigsaw_1": "Answer: **(A)**"}
    replies = fakes.blink_replies(2, 0) | data
    model = fakes.recordings(tmp_path / "other", replies)
    config = RunConfig(
        "blink",
        ("mllm",),
        model=f"replay:{model}",
        data=str(tmp_path / "blink"),
        service=ServiceOptions("classical"),
        limit=1,
    )
    plan = prepare(replace(config, out=tmp_path / "official"))
    await ask_run(plan, lambda *_: None)
    official = ScoreOptions(parse="official")
    strict, loose = fakes.QueueModel([]), fakes.QueueModel(["Answer: (A)"])
    (nothing,) = await judge_run(plan.folder, strict, (), OPTIONS, 1, 0)
    (item,) = await judge_run(plan.folder, loose, (), official, 1, 0)
    assert (nothing.unparsed, item.unparsed, item.decided) == (0, 1, 1)
    scored = score_run(plan.folder, official, (), "judge")[0]
    assert (numbers(scored)["accuracy_micro"], numbers(scored)["judged.accuracy_micro"]) == (0.0, 1.0)
    assert folder.path != plan.folder.path


async def test_verdicts_must_belong_to_the_run(tmp_path: Path, fakes: Any) -> None:
    folder = await ran(tmp_path, fakes)
    with pytest.raises(UsageError, match="none yet; make them with `hybrid judge"):
        score_run(folder, OPTIONS, (), "judge")
    path = tmp_path / "verdicts.jsonl"
    with pytest.raises(UsageError, match="file not found"):
        score_run(folder, OPTIONS, ("mllm",), path)
    line = {"id": "val_Jigsaw_1", "ask": 0, "letter": "A", "model": "m", "text": ""}
    path.write_text(json.dumps(line) + "\n")
    assert numbers(score_run(folder, OPTIONS, ("mllm",), path)[0])["judged.accuracy_micro"] == pytest.approx(3 / 6)
    with pytest.raises(UsageError, match="belongs to one solver: give RUN/SOLVER, one of mllm, specialist"):
        score_run(folder, OPTIONS, (), path)
    for changes, message in (
        ({"letter": "C"}, "'C' is not one of the possible answers"),
        ({"reply_sha256": "0"}, "val_Jigsaw_1, ask 0, was made for a reply that is not in this run"),
        ({"ask": "first"}, "line 1: not a ReplyReading"),
    ):
        path.write_text(json.dumps(line | changes) + "\n")
        with pytest.raises(DataError, match=message):
            score_run(folder, OPTIONS, ("mllm",), path)


async def test_extracted_answers_are_not_judged(tmp_path: Path, fakes: Any) -> None:
    row = {"idx": "val_Jigsaw_1", "answer": "(A)", "full_prediction": "Hm.", "prediction": "(Z)"}
    (tmp_path / "Jigsaw.json").write_text(json.dumps({"val": [row]}))
    stored = import_run(tmp_path / "Jigsaw.json", BENCHMARK, "stored", tmp_path / "stored")
    with pytest.raises(UsageError, match="extracted answers, not replies: import it with --field text"):
        await judge_run(stored, fakes.QueueModel([]), (), OPTIONS, 1, 0)
    text = import_run(tmp_path / "Jigsaw.json", BENCHMARK, "text", tmp_path / "text")
    (judged,) = await judge_run(text, fakes.QueueModel(["Answer: (A)"]), (), OPTIONS, 1, 0)
    assert judged.decided == 1


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(cli, arguments, standalone_mode=False, catch_exceptions=False)


async def test_the_commands(tmp_path: Path, fakes: Any) -> None:
    folder = await ran(tmp_path, fakes)
    by_line = {f"judge/{name}": text for name, text in zip(ORDER, ("Answer: (A)", "Answer: none"), strict=False)}
    by_line |= dict.fromkeys(("judge/val_Jigsaw_3", "judge/val_Spatial_Relation_1"), "Answer: (A)")
    recordings = fakes.recordings(tmp_path / "judge", by_line)
    model = f"replay:{recordings}"
    run = str(folder.path)
    result = await asyncio.to_thread(invoke, "judge", run, "--model", model, "--solver", "mllm", "--json")
    assert result.return_value == 3
    counts = json.loads(result.stdout)["solvers"]["mllm"]
    assert {key: counts[key] for key in ("unparsed", "asked", "decided", "none")} == {
        "unparsed": 3,
        "asked": 4,
        "decided": 1,
        "none": 1,
    }
    assert len(counts["failed"]) == 1
    assert "failed: val_Spatial_Relation_2, ask 0:" in result.stderr
    by_line[f"judge/{ORDER[2]}"] = "Answer: (B)"
    fakes.recordings(recordings, by_line)
    with pytest.raises(UsageError, match="another judge"):
        await asyncio.to_thread(invoke, "judge", run, "--model", model)
    words = ("score", f"{run}/mllm", "--verdicts", "judge", "--json", "--unanswered", "wrong")
    scored = await asyncio.to_thread(invoke, *words)
    report = json.loads(scored.stdout)
    assert report["metrics"]["accuracy_micro"] == pytest.approx(2 / 6)
    assert report["metrics"]["judged"]["accuracy_micro"] == pytest.approx(3 / 6)
    assert report["labels"] == [f"judged: 1 of 4 unparsed replies read by {model}"]
    table = await asyncio.to_thread(invoke, "score", f"{run}/mllm", "--verdicts", "judge", "--by", "granularity")
    assert "mllm + judge" in table.stdout
    with pytest.raises(UsageError, match="temperature 0"):
        await asyncio.to_thread(invoke, "judge", run, "--model", model, "--model-arg", "temperature=1")


async def test_a_judge_is_asked_at_the_server_of_the_environment(
    tmp_path: Path, fakes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = await ran(tmp_path, fakes)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with provider("unused", "judge") as url:
        monkeypatch.setenv("HYBRID_BASE_URL", url)
        # Without its address the server is unknown and a key is required; this server refuses the placeholder key.
        with pytest.raises(UsageError, match="Incorrect API key provided"):
            await asyncio.to_thread(invoke, "judge", str(folder.path), "--model", "openai:judge", "--solver", "mllm")


CHOICES = ("red", "green", "blue")


@given(st.text(), st.sampled_from([Kind.CHOICE, Kind.YES_NO, Kind.INTEGER, Kind.ORDER]))
def test_no_text_of_a_judge_gives_what_was_not_offered(text: str, kind: Kind) -> None:
    result = answer_in(text, kind, CHOICES)
    if result is not None and kind is Kind.CHOICE:
        assert result in tuple(LETTERS[: len(CHOICES)])
    if result is not None and kind is Kind.YES_NO:
        assert result in ("yes", "no")


@given(st.text())
def test_a_reply_with_braces_or_anything_else_is_quoted_as_it_is(reply: str) -> None:
    exchange = Exchange(Prompt(("What {colour}?",), Kind.CHOICE, CHOICES), Reply(reply))
    request = judge_prompt(exchange, read_texts(TEXTS))
    assert reply.strip() in request
    assert "What {colour}?" in request
    assert "(A) red\n(B) green\n(C) blue" in request


@pytest.mark.parametrize(*cases(__file__, "test_the_whole_prompt", kind=Kind))
def test_the_whole_prompt(kind: Kind, choices: tuple[str, ...], options: str) -> None:
    texts = {"ask": "Q: {question}\nO: {options}\nR: {reply}\nF: {form}", kind.value: "say it"}
    exchange = Exchange(Prompt((" Which? \n",), kind, choices), Reply("\n hm "))
    assert judge_prompt(exchange, texts) == f"Q: Which?\nO: {options}\nR: hm\nF: say it"


def imported(tmp_path: Path, texts: Sequence[str], benchmark: Any = BENCHMARK) -> RunFolder:
    """Return an imported run of recorded replies, which is fast because no solver runs."""
    rows = [
        {"idx": f"val_Jigsaw_{n}", "answer": "(A)", "full_prediction": text, "prediction": "(Z)"}
        for n, text in enumerate(texts, 1)
    ]
    (tmp_path / "Jigsaw.json").write_text(json.dumps({"val": rows}))
    return import_run(tmp_path / "Jigsaw.json", benchmark, "text", tmp_path / "run")


async def test_what_is_written_next_to_the_verdicts(tmp_path: Path, fakes: Any) -> None:
    folder = imported(tmp_path, ["Hm.", "(B)", "Well."])
    (judged,) = await judge_run(folder, fakes.QueueModel(["Answer: (A)", "Answer: none"]), (), OPTIONS, 2, 0)
    assert (judged.unparsed, judged.asked, judged.decided, judged.none, judged.failed) == (2, 2, 1, 1, ())
    path = folder.path / judged.solver / "verdicts.json"
    expected = {"judge": {"model": "queue:model"}, "name": "queue:model", "texts": text_hash(read_texts(TEXTS))}
    assert path.read_text() == json.dumps(expected, indent=1) + "\n"
    path.write_text("{")
    with pytest.raises(DataError, match=r"verdicts.json is not JSON \("):
        await judge_run(folder, fakes.QueueModel([]), (), OPTIONS, 2)


async def test_hidden_answers_leave_nothing_to_judge(tmp_path: Path, fakes: Any) -> None:
    folder = imported(tmp_path, ["Hm."])
    manifest = folder.manifest
    manifest["identity"]["split"] = "test"
    folder.write_manifest(manifest)
    with pytest.raises(UsageError, match=r"^the answers of the split 'test' of blink are hidden: nothing is unparsed$"):
        await judge_run(RunFolder(folder.path), fakes.QueueModel([]), (), OPTIONS, 1)
