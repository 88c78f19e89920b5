"""The progress of runs in `hybrid view`: counts of a run that starts, continues, is resumed or is damaged."""

import http.client
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hybrid.log.attempts import Unfinished, attempt_line, read_attempt
from hybrid.log.codec import to_json
from hybrid.log.folder import RunFolder
from hybrid.report.live import PageServer, ViewedRun
from hybrid.report.progress import NEWEST, RunProgress, failure_kind
from hybrid.scoring.paths import options_for
from hybrid.scoring.runs import score_run
from tests.hybrid.report.synthetic_pages import DESK, HOSTILE, PHONE
from tests.servers import listening

COUNT = 14


@pytest.fixture
def run(large_run: Callable[[int], Path]) -> RunFolder:
    """A run of three solvers; the controller has not been asked yet."""
    folder = RunFolder(large_run(COUNT))
    manifest = folder.manifest
    del manifest["files"]["controller/attempts.jsonl"]
    folder.write_manifest(manifest)
    path = folder.path / "controller/attempts.jsonl"
    path.rename(folder.path / "kept.jsonl")
    return folder


def lines_of(run: RunFolder) -> list[bytes]:
    return (run.path / "kept.jsonl").read_bytes().splitlines(keepends=True)


def append(run: RunFolder, *lines: bytes) -> None:
    with (run.path / "controller/attempts.jsonl").open("ab") as file:
        file.writelines(lines)


def solver(progress: RunProgress, name: str = "controller") -> Any:
    state: Any = progress.as_json()
    (solver_state,) = (entry for entry in state["solvers"] if entry["name"] == name)
    return solver_state


def unfinished(name: str, error: str) -> bytes:
    return to_json(Unfinished, Unfinished(name, error)) + b"\n"


def test_a_run_is_waited_for_and_then_counted(run: RunFolder, tmp_path: Path) -> None:
    later = tmp_path / "later"
    progress = RunProgress(RunFolder(later))
    assert progress.as_json()["state"] == "waiting"
    later.mkdir()
    assert progress.as_json()["state"] == "waiting"
    shutil.copytree(run.path, later, dirs_exist_ok=True)
    assert (solver(progress)["finished"], solver(progress, "mllm")["finished"]) == (0, COUNT)
    assert progress.as_json()["state"] == "stopped"


def test_only_complete_lines_are_counted_as_they_come(run: RunFolder) -> None:
    progress, lines = RunProgress(run), lines_of(run)
    append(run, *lines[:3], lines[3][:50])
    assert solver(progress)["finished"] == 3
    append(run, lines[3][50:], lines[4])
    first, reread = solver(progress), solver(RunProgress(run))
    assert first == reread
    assert (first["finished"], first["n"]) == (5, COUNT)
    # A repeated line counts once.
    append(run, lines[0])
    assert solver(progress) == first
    assert len(progress.as_json()["newest"]) == min(NEWEST, 2 * COUNT + 5)


def test_a_run_that_was_started_over_is_counted_again(run: RunFolder) -> None:
    progress, lines = RunProgress(run), lines_of(run)
    append(run, *lines[:6])
    assert solver(progress)["finished"] == 6
    (run.path / "controller/attempts.jsonl").unlink()
    append(run, *lines[:2])
    assert solver(progress)["finished"] == 2


def test_another_run_in_the_same_folder_is_counted_alone(run: RunFolder) -> None:
    progress, lines = RunProgress(run), lines_of(run)
    manifest = run.manifest
    append(run, *lines[:6])
    assert solver(progress)["finished"] == 6
    # The second run in the folder is longer than the first one, and its split has hidden answers.
    (run.path / "controller/attempts.jsonl").unlink()
    append(run, *lines[:9])
    command = {"at": "2031-01-01T00:00:00Z", "command": "hybrid run", "commit": None}
    run.write_manifest({**manifest, "commands": [command], "identity": {**manifest["identity"], "split": "test"}})
    state: Any = progress.as_json()
    assert state == RunProgress(run).as_json()
    assert {item["verdict"] for item in state["newest"]} == {"answered"}
    # A command that resumes the run continues the count.
    run.write_manifest({**run.manifest, "commands": [command, {**command, "at": "2031-01-02T00:00:00Z"}]})
    append(run, lines[9])
    assert solver(progress)["finished"] == 10


def test_failures_are_counted_by_kind_until_the_question_is_finished(run: RunFolder) -> None:
    progress, lines = RunProgress(run), lines_of(run)
    names = [read_attempt(line).id for line in lines]
    last = "hybrid.core.errors.Outage: no reply"
    traceback = f"Traceback (most recent call last):\n  File x\n{last}\nDuring task with name 'a'"
    append(run, *(unfinished(name, traceback) for name in names[:2]), unfinished(names[2], "ValueError"))
    assert solver(progress)["failures"] == {"Outage": 2, "ValueError": 1}
    newest: Any = progress.as_json()["newest"]
    entry = next(item for item in newest if item["id"] == names[1] and item["solver"] == "controller")
    assert (entry["verdict"], entry["kind"], entry["text"]) == ("failed", "Outage", last)
    # The next command asks the first and the third question again and finishes them.
    append(run, lines[0], lines[2])
    assert solver(progress)["failures"] == {"Outage": 1}
    assert failure_kind("") == failure_kind("something else went wrong: so") == "error"


def test_the_rate_is_of_the_last_questions_since_the_command_began(run: RunFolder) -> None:
    manifest, start_s = run.manifest, 1_800_000_000.0
    at = datetime.fromtimestamp(start_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    run.write_manifest({**manifest, "commands": [{"at": at, "command": "hybrid run", "commit": None}]})
    attempts = [read_attempt(line) for line in lines_of(run)]
    # An earlier command asked four questions days before; three others start ten seconds apart.
    starts = [1.0, 2.0, 3.0, 4.0, start_s + 5, start_s + 15, start_s + 25]
    timed = [replace(attempt, started=start, seconds=1.0) for attempt, start in zip(attempts, starts, strict=False)]
    progress = RunProgress(run)
    append(run, *(attempt_line(attempt) + b"\n" for attempt in timed[:5]))
    assert (solver(progress)["per_minute"], solver(progress)["seconds_left"]) == (None, None)
    append(run, *(attempt_line(attempt) + b"\n" for attempt in timed[5:]))
    assert solver(progress)["per_minute"] == pytest.approx(6)
    assert solver(progress)["seconds_left"] == pytest.approx(10 * (COUNT - 7))
    # This command does not ask a failed question again.
    append(run, unfinished(attempts[10].id, "Outage: x"))
    assert solver(progress)["seconds_left"] == pytest.approx(10 * (COUNT - 8))


def test_tokens_cost_and_verdicts_are_those_of_the_run(run: RunFolder) -> None:
    append(run, *lines_of(run))
    progress = RunProgress(run)
    scored = {entry.solver: entry for entry in score_run(run, options_for({}, run), keep=False)}
    for name, entry in scored.items():
        assert entry.usage is not None
        assert solver(progress, name)["tokens"] == entry.usage.input_tokens + entry.usage.output_tokens
        assert solver(progress, name)["cost_usd"] == entry.usage.cost_usd
    state: Any = progress.as_json()
    verdicts = {(item["solver"], item["id"]): item["verdict"] for item in state["newest"]}
    expected = {
        (name, score.id): "right" if score.correct == 1 else "wrong"
        for name, entry in scored.items()
        for score in entry.scores
    }
    assert verdicts.items() <= expected.items()
    assert state["state"] == "finished"


def test_answers_of_a_hidden_split_are_not_judged(run: RunFolder) -> None:
    manifest = run.manifest
    manifest["identity"]["split"] = "test"
    run.write_manifest(manifest)
    state: Any = RunProgress(run).as_json()
    assert {item["verdict"] for item in state["newest"]} == {"answered"}
    assert {item["answer"] for item in state["newest"]} == {None}


def test_a_run_that_cannot_be_read_says_why(run: RunFolder) -> None:
    content = (run.path / "manifest.json").read_text()
    (run.path / "manifest.json").write_text(content[:100])
    progress = RunProgress(run)
    assert progress.as_json()["state"] == "unreadable"
    assert "manifest.json is not JSON" in str(progress.as_json()["problem"])
    (run.path / "manifest.json").write_text(content)
    assert progress.as_json()["state"] == "stopped"


def test_numbers_that_are_not_finite_hide_no_other_run(run: RunFolder) -> None:
    line = attempt_line(replace(read_attempt(lines_of(run)[0]), seconds=4321.5))
    assert b'"seconds":4321.5,' in line
    append(run, line.replace(b'"seconds":4321.5,', b'"seconds":NaN,') + b"\n")
    with ViewedRun(run) as viewed, listening(PageServer([viewed])) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        connection.request("GET", "/progress.json")
        (run_state,) = json.loads(connection.getresponse().read(), parse_constant=pytest.fail)["runs"]
        connection.close()
    assert None in [item["seconds"] for item in run_state["newest"]]


def test_generated_questions_are_flagged(run: RunFolder) -> None:
    manifest = run.manifest
    for kind, generated in (("sample", True), ("folder", False)):
        run.write_manifest({**manifest, "identity": {**manifest["identity"], "data": {"kind": kind}}})
        assert RunProgress(run).as_json()["generated"] is generated


def test_a_run_that_is_being_written_is_running(run: RunFolder) -> None:
    with run.locked():
        assert RunProgress(run).as_json()["state"] == "running"
    assert RunProgress(run).as_json()["state"] == "stopped"


@pytest.mark.system
def test_the_page_shows_runs_as_they_go_on(run: RunFolder, tmp_path: Path, browser: Any) -> None:
    from playwright.sync_api import expect

    lines, later = lines_of(run), RunFolder(tmp_path / "later")
    name = read_attempt(lines[0]).id
    runs = [ViewedRun(run), ViewedRun(later)]
    problems = list[str]()
    with runs[0], runs[1], listening(PageServer(runs)) as server:
        page = browser.new_page(viewport=DESK)
        page.on(
            "console", lambda message: problems.append(message.text) if message.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: problems.append(str(error)))
        try:
            page.goto(server.url)
            expect(page.locator("#state")).to_have_text("0 of 2 running, 1 not begun")
            expect(page.locator("section").nth(1)).to_contain_text("waiting for the run to begin")
            row = page.locator("section").first.locator("tr", has_text="controller")
            expect(row).to_contain_text(f"0 of {COUNT}")
            with run.locked():
                append(run, *lines[1:5], unfinished(name, f"Outage: {HOSTILE[0]} {HOSTILE[1]}"))
                expect(page.locator("#state")).to_have_text("1 of 2 running, 1 not begun")
                expect(row).to_contain_text(f"4 of {COUNT}")
                expect(row).to_contain_text("Outage 1")
            newest = page.locator("section").first.locator("li").first
            expect(newest).to_contain_text(HOSTILE[0])
            shutil.copytree(run.path, later.path)
            expect(page.locator("section").nth(1)).to_contain_text(f"4 of {COUNT}")
            page.set_viewport_size(PHONE)
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
            assert page.evaluate("window.pwned") is None
            page.get_by_role("link", name="Scores, charts and conversations").nth(1).click()
            expect(page.locator("h1").first).to_be_visible()
            assert page.url.startswith(f"{server.url}2/")
        finally:
            page.close()
    assert problems == []
