"""`hybrid rollouts` as a process: questions, answers and rewards one by one, as `hybrid run` would have asked them."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench._chat_server import CROP_BOX, answer_body, framed, offers_tools, on_thread, sight, tool_call, tool_results
from tests.finished_runs import Command
from tests.time_limits import running_process

DATA = ("blink", "--data", "sample", "--task", "Jigsaw", "--task", "Relative_Depth", "--limit", "6", "--tools", "crop")
KEY = re.compile(rb"(?i)\r\nauthorization: *bearer (\S+)")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A separate cache folder for the test."""
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "home"))


@pytest.fixture
def requests() -> list[tuple[str, bytes]]:
    """The key and the body of each request that `server` got."""
    return []


@pytest.fixture
def server(requests: list[tuple[str, bytes]]) -> Iterator[str]:
    """Address of a model that calls crop first if it can, and then answers A to a question about two points, else B."""

    def reply(head: bytes, body: bytes) -> bytes:
        if (probed := sight(body)) is not None:
            return probed
        key = KEY.search(head)
        requests.append((key[1].decode() if key else "", body))
        if offers_tools(body) and not tool_results(body):
            return framed(answer_body(tool_call(json.dumps({"images": ["img:1"], "box": CROP_BOX})), "tool_calls"))
        return framed(answer_body({"content": f"Answer: ({'A' if b'Two points' in body else 'B'})"}, "stop"))

    with on_thread(reply) as url:
        yield f"{url}/v1"


def ask(words: tuple[str, ...], *requests: object) -> list[dict[str, Any]]:
    """Return the responses to requests, in the order of their ids; a text is sent unchanged."""
    command = [sys.executable, "-m", "hybrid", "rollouts", *words]
    responses = []
    with running_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for number, request in enumerate(requests):
            line = request if isinstance(request, str) else json.dumps({"id": number, **dict(request)})  # type: ignore[call-overload]
            process.stdin.write(f"{line}\n")
        process.stdin.flush()
        responses += [json.loads(process.stdout.readline()) for _ in requests]
        process.stdin.close()
    assert process.returncode == 0
    return sorted(responses, key=lambda response: -1 if response["id"] is None else response["id"])


@pytest.mark.system
def test_rewards_and_requests_are_those_of_a_run(
    command: Command, tmp_path: Path, server: str, requests: list[tuple[str, bytes]]
) -> None:
    solver = ("--solver", "controller", "--out", tmp_path / "run")
    command("run", *DATA, "--model", "openai:mock", "--base-url", server, *solver, code=0)
    scores = [json.loads(line) for line in (tmp_path / "run/controller/scores.jsonl").read_text().splitlines()]
    bodies = {body for _, body in requests}
    requests.clear()
    # The place of tool pictures that the run's probe found: a separate message, or inside the result.
    place = json.loads((tmp_path / "run/manifest.json").read_text())["tool_picture"]["place"]
    words = (*DATA, "--model-arg", f"tool_pictures={place}")
    endpoint = {"do": "answer", "model": "mock", "base_url": server}
    answer_requests = [{**endpoint, "question": score["id"], "key": f"key-{at}"} for at, score in enumerate(scores)]
    (listing, *answers) = ask(words, {"do": "list"}, *answer_requests)
    assert sorted(listing["questions"]) == sorted(score["id"] for score in scores)
    assert [answer["reward"] for answer in answers] == [score["correct"] for score in scores]
    assert {answer["reward"] for answer in answers} == {0.0, 1.0}
    assert [(answer["answer"], answer["tool_calls"]) for answer in answers] == [(row["answer"], 1) for row in scores]
    # The prompts, pictures, tools and tool results are the same, byte by byte, and each request has the key that was
    # given for its question.
    assert {body for _, body in requests} == bodies
    assert {key for key, _ in requests} == {f"key-{at}" for at in range(6)}


@pytest.mark.system
def test_messages_hold_the_pictures_and_no_request_is_sent(server: str, requests: list[tuple[str, bytes]]) -> None:
    name = "generated_val_Jigsaw_1"
    answer = {"do": "answer", "question": name, "model": "mock", "base_url": server, "key": "k"}
    (response,) = ask(DATA, {"do": "messages", "question": name})
    assert requests == []
    ask(DATA, answer)
    assert response["messages"] == json.loads(requests[0][1])["messages"]
    parts = next(message for message in response["messages"] if message["role"] == "user")["content"]
    assert sum(part["type"] == "image_url" for part in parts) == 3


@pytest.mark.system
def test_a_request_that_fails_costs_no_other(server: str) -> None:
    endpoint = {"do": "answer", "model": "mock", "base_url": server, "key": "k"}
    unreachable = {**endpoint, "base_url": "http://127.0.0.1:9/v1"}
    words = (*DATA, "--model-arg", "retries=0")
    name = "generated_val_Jigsaw_1"
    requests = ({"do": "sing"}, {**endpoint, "question": "x"}, {**unreachable, "question": name}, "[1]", "{")
    (*unread, sung, unknown, disconnected, fine) = ask(
        words, *requests[:3], {**endpoint, "question": name}, *requests[3:]
    )
    assert ["unknown request" in response["error"] for response in (*unread, sung)] == [True] * 3
    assert unknown["error"] == "x: not a question of this run"
    assert "Cannot connect" in disconnected["error"]
    assert fine["outcome"] == "answered"


@pytest.mark.system
def test_lines_that_are_no_requests_cost_no_other(server: str) -> None:
    """Lines that are not requests affect no other line: bytes that are not UTF-8, deep nesting, values of wrong types,
    and a request that is unfinished when stdin closes."""
    answer = {"do": "answer", "question": "generated_val_Jigsaw_1", "model": None, "base_url": server, "key": "k"}
    lines = [b"\xff\xfe", b"[" * 100_000, b"", json.dumps({"id": 1, **answer}).encode(), b'{"id": 2, "do": "messages"}']
    command = [sys.executable, "-m", "hybrid", "rollouts", *DATA]
    unread = (
        b'{"id": 3, "do": "answer", "question": "generated_val_Jigsaw_1", "model": "m", "base_url": "%s", "key": "k"}'
    )
    lines += [unread % server.encode(), b'{"id": 4, "do": "list"}']
    result = subprocess.run(command, input=b"\n".join(lines), capture_output=True, check=True)
    responses = [json.loads(line) for line in result.stdout.splitlines()]
    assert all("not a JSON object" in entry["error"] for entry in responses if entry["id"] is None)
    assert [entry["id"] for entry in responses].count(None) == 3
    errors = {entry["id"]: entry.get("error") for entry in responses}
    assert errors[1] == "model: expected a text that is not empty, found null"
    assert errors[2] == "question: expected a text that is not empty, found null"
    assert errors[3] == "stdin ended before this request was answered"
    assert errors[4] is None
    # Stdin may be closed from the start.
    closed = subprocess.run(["sh", "-c", 'exec "$@" <&-', "sh", *command], capture_output=True, check=True)
    assert closed.stdout == b""
    assert b"Traceback" not in result.stderr + closed.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*DATA, "--solver", "mllm,controller"), "rollouts have one solver, not mllm, controller"),
        ((*DATA, "--solver", "specialist"), "--solver specialist: it asks no model"),
        ((*DATA, "--tols", "crop"), "--tols"),
        (("blonk",), "blonk"),
        (("blink,mm_sap", "--data", "sample"), "the options define several runs"),
    ],
)
def test_words_that_cannot_be_used_are_one_line(command: Command, words: tuple[str, ...], message: str) -> None:
    result = command("rollouts", *words, code=2)
    assert message in result.err
    assert result.err.count("\n") == 1


def test_a_split_without_answers_is_refused(command: Command, tmp_path: Path, fakes: Any) -> None:
    folder = fakes.blink_folder(tmp_path / "blink")
    for file in folder.rglob("val*"):
        file.rename(file.with_name(file.name.replace("val", "test")))
    result = command("rollouts", "blink", "--data", folder, "--split", "test", code=2)
    assert "are hidden, so it has no reward" in result.err


@pytest.mark.system
def test_a_question_with_several_measures_is_left_out(capfd: pytest.CaptureFixture[str]) -> None:
    words = ("hvsbench", "--data", "sample", "--task", "Q9", "--task", "Q10", "--limit", "4")
    (response,) = ask(words, {"do": "list"})
    assert {name.split("_")[-2] for name in response["questions"]} == {"Q10"}
    assert "its score has several measures instead of one number" in capfd.readouterr().err
