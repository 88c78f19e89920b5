"""`hybrid ask`: one question with its pictures, every step on the terminal, without a known right answer."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hybrid
from bench._chat_server import CROP_BOX, answer_body, framed, offers_tools, on_thread, sight, tool_call, tool_results
from hybrid.core.errors import DataError, UsageError
from tests.finished_runs import Command


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A separate cache folder for the test."""
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def photo(tmp_path: Path, fakes: Any) -> Path:
    path = tmp_path / "photo.png"
    path.write_bytes(fakes.encoded(fakes.pixels(1, (120, 100))))
    return path


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Address of a model on a thread that calls `crop` if it is offered, and answers "(A)"."""

    def reply(_head: bytes, body: bytes) -> bytes:
        if (probed := sight(body)) is not None:
            return probed
        if offers_tools(body) and not tool_results(body):
            return framed(answer_body(tool_call(json.dumps({"images": ["img:1"], "box": CROP_BOX})), "tool_calls"))
        return framed(answer_body({"content": "Answer: (A)"}, "stop"))

    with on_thread(reply) as url:
        yield f"{url}/v1"


@pytest.fixture
def model(server: str) -> tuple[str, ...]:
    """A served model that calls `crop` once and then answers "(A)"."""
    return ("--model", "openai:mock", "--base-url", server)


@pytest.mark.system
def test_every_step_is_printed_with_its_tool_output_picture_and_cost(
    command: Command, photo: Path, model: tuple[str, ...], home: Path
) -> None:
    words = ("ask", photo, "Is it a cup?", "--choice", "yes", "--choice", "no", "--model-arg", "price=1000/1000")
    result = command(*words, *model, code=0)
    lines = result.out.splitlines()
    assert lines[0] == "Is it a cup?"
    assert [line.split(":")[0] for line in lines if " px, /" in line] == ["img", "     img"]
    assert any("calls crop {" in line for line in lines)
    assert any("tool crop on img:1" in line and "backend" in line for line in lines)
    assert "  answer: A" in lines
    # Each of the two calls has 100 input and 10 output tokens.
    assert any("2 model calls, 1 tool call, 200 tokens in and 20 out, $0.2200" in line for line in lines)
    run = Path(lines[-1].removeprefix("run folder "))
    assert run.parent == home / "asked"
    assert json.loads((run / "questions.jsonl").read_text())["target"] is None


@pytest.mark.system
def test_json_names_the_files_of_pictures(command: Command, photo: Path, model: tuple[str, ...]) -> None:
    words = ("ask", photo, "Which?", "--choice", "x", "--choice", "y", "--solver", "controller,mllm", "--json")
    (question,) = json.loads(command(*words, *model, code=0).out)["questions"]
    with_tools, alone = question["answers"]
    assert (with_tools["solver"], alone["solver"]) == ("controller", "mllm")
    assert with_tools["answer"] == alone["answer"] == "A"
    (picture,) = (image for step in with_tools["steps"] for image in step["images"])
    assert picture["name"] == "img:1.1"
    assert Path(picture["path"]).is_file()
    assert [step["kind"] for step in alone["steps"]] == ["model"]


def test_the_page_is_written_and_opened(
    command: Command, photo: Path, model: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    addresses: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: addresses.append(url) is None)
    out = tmp_path / "asked"
    command("ask", photo, "<b>Is</b> it?", *model, "--solver", "mllm", "--out", out, "--open", code=0)
    page = (out / "answer.html").read_text()
    assert addresses == [(out / "answer.html").as_uri()]
    assert "&lt;b&gt;Is&lt;/b&gt; it?" in page
    assert "<b>Is" not in page
    assert 'src="data:image/png;base64,' in page


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["photo.png"], "photo.png is a file; the question is missing"),
        (["Is it a cup?"], "no picture before the question"),
        (["away.png", "Is it?"], "away.png: picture not found"),
        (["photo.png", "Is", "it?"], "Is: picture not found; put the question into quotation marks"),
        ([".", "Is it?"], ".: is a folder"),
        (["photo.png", " "], "the question is empty"),
        (["notes.txt", "Is it?"], "notes.txt"),
        (["photo.png", "Is it?", "--choice", "a", "--choice", "a"], "a choice appears twice"),
        (["photo.png", "Is it?", "--choice", "a"], "--choice: a multiple-choice question needs at least two options"),
        (["photo.png", "Is it?", "--kind", "poem"], "'poem' is not one of"),
        (["photo.png", "Is it?", "--limit", "3"], "No such option '--limit'"),
    ],
)
def test_a_wrong_call_is_one_line_that_says_what_to_write(
    command: Command, photo: Path, model: tuple[str, ...], words: list[str], message: str
) -> None:
    Path("notes.txt").write_text("no picture")
    assert os.getcwd() == str(photo.parent)
    result = command("ask", *words, *model, code=2)
    assert message in result.err
    assert len([line for line in result.err.splitlines() if line.startswith("hybrid: ")]) == 1


def test_a_question_that_fails_says_why(command: Command, photo: Path) -> None:
    result = command(
        "ask", photo, "Is it?", "--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1", "--model-arg", "retries=0"
    )
    assert result.code in (2, 3)
    assert "127.0.0.1:9" in result.err


def test_python_returns_the_same_answer(photo: Path, server: str) -> None:
    options: Any = {"model": "openai:mock", "base_url": server, "solvers": "mllm", "quiet": True}
    answers = hybrid.ask(photo, "Which?", choices=["x", "y"], **options)
    assert answers[0].answer == "A"
    assert answers[0].usage.model_calls == 1
    assert str(answers).startswith("Which?\n")
    assert "data:image/png;base64," in answers._repr_html_()
    with pytest.raises(UsageError, match=r"^hybrid.ask has no option 'chioces' \(did you mean 'choices'\?\)"):
        hybrid.ask(photo, "Which?", chioces=["x"])  # type: ignore[call-arg]
    with pytest.raises(DataError):
        hybrid.ask(b"no picture", "Which?", model="openai:mock", base_url=server)


def test_rows_without_answers_are_asked_and_not_scored(command: Command, photo: Path, model: tuple[str, ...]) -> None:
    rows = [
        {"id": "q1", "image": "photo.png", "question": "Which?", "choices": ["x", "y"]},
        {"id": "q2", "image": "photo.png", "question": "Where?", "kind": "text"},
    ]
    Path("mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "--split hidden" in command("run", "mine.jsonl", *model, code=2).err
    command("data", "check", "mine.jsonl", "--split", "hidden", code=0)
    result = command("run", "mine.jsonl", "--split", "hidden", *model, "--solver", "mllm", "--out", "run", code=0)
    assert "the answers of the split 'hidden' are hidden" in result.err
    assert "submission" in command("score", "run", code=0).err
    assert json.loads(Path("run/mllm/submission.json").read_text()) == {"q1": "A", "q2": "(A)"}
