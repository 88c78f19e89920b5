"""Inspect AI: logs, read by its own `read_eval_log` and shown by its own viewer, and its agents as solvers."""

import asyncio
import hashlib
import json
import os
import shutil
import sys
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.benchmarks.base import ScoreOptions
from hybrid.core.errors import UsageError
from hybrid.core.types import Fault, Kind, Prompt
from hybrid.exporting import inspect
from hybrid.exporting.base import ExportedRun, ExportOptions
from hybrid.exporting.inspect import ATTACHMENT, EXPORTER
from hybrid.integrations.langchain import langchain_tools
from hybrid.log.folder import RunFolder
from hybrid.plugins.registry import load
from hybrid.scoring.attempt_facts import calls_of
from hybrid.scoring.predicted import score_predictions
from hybrid.solving.agent import Agent
from tests.hybrid.exporting.conversation_runs import THOUGHT, write
from tests.hybrid.integrations.test_agents_page import AsksDepth, nearest
from tests.hybrid.solving.test_styles import TURNS, Trained, exchanges, serve
from tests.runnable import Page

pytest.importorskip("inspect_ai", reason="inspect-ai is of the extra inspect")

from inspect_ai.agent import react
from inspect_ai.log import list_eval_logs, read_eval_log
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    ContentReasoning,
    ContentText,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.solver import generate, system_message, use_tools
from inspect_ai.tool import ToolCall, ToolCallError, tool

pytestmark = pytest.mark.system
__all__ = ["serve"]  # a fixture

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")


@pytest.fixture(autouse=True)
def the_home_of_the_run(traced: Path, monkeypatch: pytest.MonkeyPatch, hybrid_home: Path) -> None:
    del hybrid_home  # requested so that the empty home of the test is set first
    monkeypatch.setenv("HYBRID_HOME", str(traced.parent / "home"))


def exported(traced: Path, path: Path, images: Any = "attached") -> Any:
    assert EXPORTER.export(ExportedRun.at(traced / "specialist"), path, ExportOptions(images)).paths == (path,)
    return read_eval_log(str(path))


def test_a_run_is_a_folder_of_logs_that_the_viewer_lists(traced: Path, tmp_path: Path) -> None:
    export = EXPORTER.export(ExportedRun.at(traced), tmp_path / "logs", ExportOptions("none"))
    assert len(list_eval_logs(str(tmp_path / "logs"), formats=["eval", "json"])) == len(export.paths) == 2
    logs = [read_eval_log(str(path)) for path in export.paths]
    assert {log.eval.solver for log in logs} == {"specialist", "chance"}
    # The logs belong to one run, and each is a separate task, even if the run is exported again.
    assert len({log.eval.run_id for log in logs} - {""}) == 1
    assert len({log.eval.task_id for log in logs} - {""}) == 2
    files = EXPORTER.export(ExportedRun.at(traced), tmp_path / "again", ExportOptions("none"))
    assert [path.name for path in files.paths] == [path.name for path in export.paths]
    for path, log in zip(export.paths, logs, strict=True):
        # Inspect's own pattern of a log's name: {timestamp}_{task}_{id}.
        assert path.name.split("_")[1:] == ["blink-generated", f"{log.eval.task_id}.eval"]


@pytest.mark.parametrize("name", ["a.eval", "2026-01-01T00-00-00_a.json"])
def test_a_log_is_read_back_with_the_scores_and_the_mark_of_the_run(traced: Path, tmp_path: Path, name: str) -> None:
    exported(traced, tmp_path / name)
    (scored,) = ExportedRun.at(traced / "specialist").scored
    back = score_predictions(tmp_path / name, load("hybrid.benchmarks", "blink"), None, ScoreOptions(), "sample")
    assert {score.id: score.correct for score in back.scores} == {score.id: score.correct for score in scored.scores}
    assert back.data.generated
    alone = score_predictions(tmp_path / name, load("hybrid.benchmarks", "blink"), None, ScoreOptions())
    assert alone.data.generated, "the ids say it where no data are given"


def test_a_json_that_the_viewer_does_not_list_is_said(traced: Path, tmp_path: Path) -> None:
    run = ExportedRun.at(traced / "specialist")
    for name, number in (("a.json", 0), ("2026-11-24T07-00-00+00-00_blink_a.json", 1)):
        folder = tmp_path / name[:1]
        export = EXPORTER.export(run, folder / name, ExportOptions("none"))
        assert len(list_eval_logs(str(folder))) == number
        assert any("`inspect view` lists a .json only" in note for note in export.notes) == (not number)


def test_the_time_of_a_long_export_is_printed_first(
    traced: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ExportedRun.at(traced / "specialist")
    number = len(run.folder.recorded("specialist").by_id)
    monkeypatch.setattr(inspect, "MIN_SAMPLES_TO_ESTIMATE", number)
    monkeypatch.setattr(inspect, "TRIAL_SAMPLES", 2)
    for limit, expected in ((1e9, False), (-1.0, True)):
        monkeypatch.setattr(inspect, "DELAY_S", limit)
        EXPORTER.export(run, tmp_path / f"{limit}".replace(".", "_") / "a.eval", ExportOptions("none"))
        said = capsys.readouterr().err
        assert (f"writing {number} samples of specialist takes about " in said) == expected
    assert len(read_eval_log(str(tmp_path / "-1_0" / "a.eval")).samples) == number


@pytest.mark.parametrize("suffix", ["eval", "json"])
def test_a_log_reads_back_with_scores_calls_and_usage(traced: Path, tmp_path: Path, suffix: str) -> None:
    run = ExportedRun.at(traced / "specialist")
    (scored,) = run.scored
    log = exported(traced, tmp_path / f"a.{suffix}")
    assert (log.status, log.eval.task, log.eval.solver) == ("success", "blink_generated", "specialist")
    assert log.eval.dataset.location is None  # generated questions are not the published ones
    assert log.eval.metadata["run_sha256"] == run.sha256
    assert log.eval.metadata["conclusion"] == [sentence.text for sentence in run.conclusion] != []
    metrics = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
    assert metrics == {metric.name: metric.value for metric in scored.metrics}
    questions = run.folder.questions().by_id
    assert [sample.id for sample in log.samples] == list(questions)
    for sample, score in zip(log.samples, scored.scores, strict=True):
        attempt = run.folder.recorded("specialist").by_id[sample.id]
        calls = [call for exchange in attempt.exchanges for call in calls_of(exchange)]
        assert calls
        messages = [call for message in sample.messages for call in getattr(message, "tool_calls", None) or ()]
        answered = [message for message in sample.messages if message.role == "tool"]
        assert [(call.function, call.arguments) for call in messages] == [(call.tool, call.args) for call in calls]
        assert [call.id for call in messages] == [message.tool_call_id for message in answered]
        assert [message.text for message in answered] == [call.finding.text for call in calls if call.finding]
        assert sample.messages[0].text == attempt.exchanges[0].prompt.text
        assert sample.output.completion == attempt.exchanges[-1].reply.text
        assert sample.scores["hybrid"].value == score.correct
        assert sample.scores["hybrid"].answer == score.answer
        assert f"({sample.target})" == questions[sample.id].target  # type: ignore[union-attr]
        assert sample.total_time == attempt.seconds


# Inspect's own call of pandas causes this warning.
@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_frames_hold_every_message(traced: Path, tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="pandas is of the group frames")
    from inspect_ai.analysis import messages_df

    log = exported(traced, tmp_path / "a.eval", "none")
    frame = messages_df(str(tmp_path / "a.eval"))
    messages = [message for sample in log.samples for message in sample.messages]
    assert frame["message_id"].tolist() == [message.id for message in messages]
    assert frame["content"].tolist() == [message.text for message in messages]
    calls = [call for message in messages for call in getattr(message, "tool_calls", None) or ()]
    assert frame["tool_call_id"].dropna().tolist() == [call.id for call in calls] != []


@pytest.mark.parametrize("style", ["qwen3-vl", "mini-o3"])
def test_calls_in_the_form_of_a_training_are_answered(
    style: str, tmp_path: Path, serve: Callable[[Trained], str]
) -> None:
    size = (640, 480)
    asyncio.run(exchanges(tmp_path, serve(Trained(style, size)), style, size))
    EXPORTER.export(ExportedRun.at(tmp_path / "run" / "controller"), tmp_path / "a.eval", ExportOptions("none"))
    (sample,) = read_eval_log(str(tmp_path / "a.eval")).samples or ()
    calls = [
        call
        for message in sample.messages
        if isinstance(message, ChatMessageAssistant)
        for call in message.tool_calls or ()
    ]
    messages = [item for item in sample.messages if isinstance(item, ChatMessageTool)]
    # Each call has the name that the model was trained on, and occurs only once.
    assert len(calls) == TURNS[style]
    assert [(entry.tool_call_id, entry.function) for entry in messages] == [(call.id, call.function) for call in calls]
    assert "crop" not in {call.function for call in calls}


def test_thoughts_are_parts_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "home"))
    run = write(tmp_path, solvers=("controller",))
    EXPORTER.export(ExportedRun.at(run.path / "controller"), tmp_path / "a.eval", ExportOptions("none"))
    samples = read_eval_log(str(tmp_path / "a.eval")).samples
    assert samples is not None
    for sample in samples:
        contents = [message.content for message in sample.messages if isinstance(message, ChatMessageAssistant)]
        assert any(not isinstance(content, str) and content[0].reasoning == THOUGHT for content in contents)
        assert THOUGHT not in sample.output.completion


def test_images_are_attached_once_and_whole(traced: Path, tmp_path: Path) -> None:
    run = ExportedRun.at(traced / "specialist")
    for sample in exported(traced, tmp_path / "a.eval").samples:
        contents = [
            part for message in sample.messages if isinstance(message.content, list) for part in message.content
        ]
        used = [part.image.removeprefix(ATTACHMENT) for part in contents if part.type == "image"]
        # Inspect also stores long texts as attachments.
        assert set(used) == {name for name, data in sample.attachments.items() if data.startswith("data:")}
        exchanges = run.folder.recorded("specialist").by_id[sample.id].exchanges
        values = [ref for exchange in exchanges for ref in exchange.prompt.images]
        values += [ref for item in exchanges for step in item.reply.steps if step.kind == "tool" for ref in step.images]
        uris = [sample.attachments[name].partition(",") for name in used]
        assert all(head.startswith("data:image/") for head, _, _ in uris)
        assert [hashlib.sha256(b64decode(data)).hexdigest() for _, _, data in uris] == [
            ref.image.sha256 for ref in values
        ]
    resolved = read_eval_log(str(tmp_path / "a.eval"), resolve_attachments=True)
    assert any(
        part.image.startswith("data:") for part in resolved.samples[0].messages[0].content if part.type == "image"
    )


def test_images_may_be_left_out(traced: Path, tmp_path: Path) -> None:
    run = ExportedRun.at(traced / "specialist")
    export = EXPORTER.export(run, tmp_path / "a.eval", ExportOptions("none"))
    assert export.notes == ("images are left out; each is replaced by a line with its sha256",)
    log = read_eval_log(str(tmp_path / "a.eval"))
    assert not any(data.startswith("data:") for sample in log.samples for data in sample.attachments.values())
    first = run.folder.questions()[0]
    assert first.images[0].sha256 in log.samples[0].messages[0].text  # type: ignore[union-attr]


def test_what_cannot_be_written_is_one_line(traced: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ExportedRun.at(traced / "specialist")
    with pytest.raises(UsageError, match=r"ends in \.eval or \.json"):
        EXPORTER.export(run, tmp_path / "a.log", ExportOptions())
    with pytest.raises(UsageError, match="inspect contains a single solver: give RUN/SOLVER, one of"):
        EXPORTER.export(ExportedRun.at(traced), tmp_path / "a.eval", ExportOptions())
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "empty"))
    with pytest.raises(UsageError, match=r"specialist/generated_val_.* is not in the store .* --images none"):
        EXPORTER.export(run, tmp_path / "a.eval", ExportOptions())
    assert not list(tmp_path.glob("a.*"))


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt install chromium, or set CHROMIUM to the path of one")
def test_the_viewer_shows_a_sample(traced: Path, tmp_path: Path, servers: Any) -> None:
    pytest.importorskip("playwright", reason="playwright is in the dependency group dev")
    from playwright.sync_api import expect, sync_playwright

    # On a busy machine this may take minutes; a failure still ends the test.
    expect.set_options(timeout=300_000)
    log = exported(traced, tmp_path / "logs" / "specialist.eval")
    port = servers.free_port()
    address = f"http://127.0.0.1:{port}/"
    viewer = [str(Path(sys.executable).with_name("inspect")), "view", "start", "--log-dir", str(tmp_path / "logs")]
    (tmp_path / "viewer").mkdir()
    viewer += ["--host", "127.0.0.1", "--port", str(port)]
    wrong: list[str] = []
    with servers.running(viewer, address, tmp_path / "viewer", {}), sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        page = browser.new_page()
        page.on("console", lambda text: wrong.append(text.text) if text.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(f"{address}#/logs/specialist.eval/samples/sample/{log.samples[0].id}/1/messages")
        request = log.samples[0].messages[0].text.splitlines()[0]
        expect(page.get_by_text(request[:60]).first).to_be_visible()
        expect(page.get_by_text(log.samples[0].messages[-1].text.splitlines()[-1]).first).to_be_visible()
        expect(page.locator("img[src^='data:image/']").first).to_be_visible()
        page.screenshot(path=tmp_path / "sample.png")
        browser.close()
    assert wrong == []


async def test_the_messages_of_an_agent_of_inspect_become_steps(fakes: Any) -> None:
    """Messages that an agent of Inspect returns become steps, as docs/agents.md states."""
    calls = [ToolCall("1", "depth", {"image": "img:1"}), ToolCall("2", "web", {})]
    messages = [
        ChatMessageUser(content="Which one?"),
        ChatMessageAssistant(content=[ContentReasoning(reasoning="hm"), ContentText(text="I look.")], tool_calls=calls),
        ChatMessageTool(content="A is nearer", tool_call_id="1", function="depth"),
        ChatMessageTool(content="", tool_call_id="2", function="web", error=ToolCallError("timeout", "too slow")),
        ChatMessageAssistant(content="(A)"),
    ]
    prompt = Prompt(("Which one?",), Kind.CHOICE, ("A", "B"))
    ctx = fakes.context_of(prompt)
    assert (await Agent(lambda _: messages).ask(prompt, ctx)).text == "(A)"
    assert [(step.kind, step.name, step.text, step.fault) for step in ctx.log.steps[1:3]] == [
        ("tool", "depth", "A is nearer", None),
        ("tool", "web", "too slow", Fault.TOOL_ERROR),
    ]
    assert ctx.log.steps[1].data == {"images": ["img:1"], "args": {}}


@tool
def depth() -> Any:
    (actual,) = langchain_tools(["depth"], backend="classical", in_run=True)

    async def execute(image: str, labels: list[str]) -> str:
        """Which of the marked points is nearer?

        Args:
            image: The name of an image.
            labels: The letters of the points.
        """
        args = {"image": image, "labels": labels}
        message = await actual.ainvoke({"type": "tool_call", "id": "1", "name": "depth", "args": args})
        return json.dumps(message.artifact)

    return execute


def looks(messages: list[Any], *_: Any) -> ModelOutput:
    """Calls depth on the first image, and answers with its output."""
    last, picture = messages[-1], next(message for message in messages if message.role == "user").content[-2]
    assert picture.image.startswith("data:image/")
    if last.role == "tool":
        text = ModelOutput.from_content("mockllm/model", f"Answer: ({nearest(json.loads(last.text)['data'])})")
    else:
        text = ModelOutput.for_tool_call("mockllm/model", "depth", {"image": "img:1", "labels": ["A", "B"]})
    text.usage = ModelUsage(input_tokens=10, output_tokens=2, total_tokens=15, input_tokens_cache_read=3)
    return text


# Inspect leaves the streams of its own tasks open.
@pytest.mark.filterwarnings("ignore:.*MemoryObject(Receive|Send)Stream:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("way", ["agent", "chain"])
def test_the_page_asks_an_agent_of_inspect(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the example in docs/agents.md on Inspect's mock model: `react` or a chain of solvers, with a tool of
    Inspect."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INSPECT_DISPLAY", "none")
    model = get_model("mockllm/model", custom_outputs=looks)
    chain = [system_message("Look."), use_tools(depth()), generate()]
    (block,) = (item for item in Page.read("docs/agents.md").of("python") if item.needs == "inspect_ai")
    names: dict[str, Any] = {
        "hybrid": hybrid,
        "Agent": Agent,
        "asked": {
            "data": "sample",
            "task": "Relative_Depth",
            "limit": 8,
            "model_arg": {"price": "1/2/0.5"},
            "max_seconds": 3600,
        },
        "chat_model": AsksDepth(),
        "model": model,
        "solver": react(model=model, tools=[depth()], submit=False) if way == "agent" else chain,
    }
    exec(compile(block.text, "docs/agents.md", "exec"), names)  # noqa: S102 - the page is ours
    rows = hybrid.compare("runs/inspect").results
    mapping = {(row.section, row.quantity): row for row in rows if not row.group and not row.metric}
    judged = [mapping["evidence", name].value for name in ("correct adoption", "confirmed", "over-trust")]
    judged.append(mapping["evidence", "wrong from both"].value)
    assert sum(value or 0 for value in judged) == 8
    assert judged[0]
    assert mapping["decomposition", "gain"].value == pytest.approx(
        (mapping["decomposition", "gain with a call"].value or 0)
        - (mapping["decomposition", "harm with a call"].value or 0)
    )
    (first, *_) = RunFolder(Path("runs/inspect")).recorded("inspected").by_id.values()
    ((call,), usage) = calls_of(first.exchanges[0]), first.exchanges[0].reply.usage
    assert (call.tool, call.images, call.args) == ("depth", ("img:1",), {"labels": ["A", "B"]})
    assert (usage.model_calls, usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (2, 26, 4, 6)
    assert usage.uncounted_calls == 0
    assert usage.cost_usd == pytest.approx((20 * 1 + 6 * 0.5 + 4 * 2) / 1e6)
