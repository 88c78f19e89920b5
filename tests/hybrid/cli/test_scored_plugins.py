"""Every scoring command finds a run's tools at the location in its manifest, or reports that it cannot."""

import csv
import json
from pathlib import Path

import pytest

from hybrid.plugins.discovery import add_search_path
from tests.finished_runs import Command

pytestmark = [pytest.mark.usefixtures("tools_as_they_were"), pytest.mark.system]

ASKED = ("--data", "sample", "--task", "Relative_Depth", "--limit", 8, "--allow", "partial", "--model", "embedded")
SOLVERS = ("--solver", "arbiter", "--solver", "mllm", "--solver", "specialist")


@pytest.fixture
def run(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run with a tool outside of the project, in `own`; afterwards this process no longer knows the folder."""
    import tools

    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "nearer.py").write_text(
        '''"""Nearer: which of two marked points is nearer, by a rule of thumb."""
from __future__ import annotations
from collections.abc import Sequence
from hybrid.tool import Args, BackendCard, Card, Evidence, Request, Tool
from hybrid.tool.rules import OneCall, letter


class NearerArgs(Args):
    """No arguments."""


class Classical:
    def setup(self, device: str, weights: str | None) -> None:
        """Nothing to load."""

    def run(self, requests: Sequence[Request[NearerArgs]]) -> list[Evidence]:
        return [Evidence("A is nearer.", {"nearest": "A"}, 0.9) for _ in requests]


TOOL = Tool(
    card=Card(name="nearer", summary="Says which of two marked points is nearer to the camera: A or B.",
        limits="It always says A, because it is a rule of thumb and no measurement.",
        backends=(BackendCard("classical", "1", Classical, "The first."),)),
    args=NearerArgs,
    rules={"Relative_Depth": OneCall("nearer", letter("nearest"))},
)
'''.lstrip()
    )
    with monkeypatch.context() as patch:
        patch.setattr(tools, "__path__", [*tools.__path__])
        more = ("--tools", "default,nearer", "--path", tmp_path / "own", "--out", tmp_path / "run")
        command("run", "blink", *ASKED, *SOLVERS, *more, code=0)
    return tmp_path / "run"


def evidence(command: Command, run: Path, *more: object) -> tuple[str, dict[str, float | None]]:
    """Return the conclusions of the section `evidence`, and the section's values by quantity."""
    data = json.loads(command("compare", run, "--json", *more, code=0).out)
    rows = [row for row in data["results"] if row["section"] == "evidence" and not row.get("group")]
    return data["conclusions"]["evidence"], {row["quantity"]: row["value"] for row in rows}


def test_the_manifest_says_where_the_rules_lie(command: Command, run: Path) -> None:
    text, counts = evidence(command, run)
    assert text.startswith("arbiter took up ")
    # The tool always says A, and half of the answers are A.
    assert counts["right findings rate"] == 0.5
    assert counts["unread"] == 0
    result = command("export", run, "--to", "table", "-o", run.parent / "rows.csv", code=0)
    assert result.code == 0
    with (run.parent / "rows.csv").open() as file:
        findings = [row["finding"] for row in csv.DictReader(file) if row["solver"] == "arbiter"]
    assert sorted(findings) == ["right"] * 4 + ["wrong"] * 4
    assert command("calibrate", run, "-o", run.parent / "trust.json", code=0).out.startswith("Right: nearer (4 of 8)")


@pytest.mark.parametrize(("change", "reason"), [("edit", "has changed since the run"), ("move", "no folder")])
def test_rules_that_are_gone_are_said_and_not_counted_as_nothing(
    command: Command, run: Path, change: str, reason: str
) -> None:
    current, moved = run.parent / "own", run.parent / "own"
    if change == "edit":
        (current / "nearer.py").write_text((current / "nearer.py").read_text() + "# Another version.\n")
    else:
        moved = current.rename(run.parent / "elsewhere")
    text, counts = evidence(command, run)
    assert text.startswith("No finding of arbiter could be judged right or wrong. Not judged: 8 questions of arbiter")
    assert f"the rules of nearer are missing: {'' if change == 'edit' else 'no folder '}{current}" in text
    assert reason in text
    assert counts["unread"] == 8
    # What cannot be judged is unknown, so no other count is printed as 0.
    assert not {"correct adoption", "ignored evidence", "over-trust", "no finding", "no call"} & set(counts)
    # A folder that the user names is used without a check, and the number says so if its code is not the run's.
    text, counts = evidence(command, run, "--path", moved)
    assert text.startswith("arbiter took up ")
    other = f"judged by other code (nearer is read from {moved}, whose code is not that of the run)"
    assert (f"Uncertain: 8 questions of arbiter were {other}." in text) is (change == "edit")
    assert counts["right findings rate"] == 0.5


def test_code_inside_of_a_run_is_not_imported(command: Command, run: Path) -> None:
    (run / "own").mkdir()
    (run.parent / "own" / "nearer.py").rename(run / "own" / "nearer.py")
    from hybrid.log.folder import RunFolder

    folder = RunFolder(run)
    manifest = folder.manifest
    manifest["plugins"]["tools/nearer"]["path"] = str(run / "own")
    folder.write_manifest(manifest)
    text, _ = evidence(command, run)
    assert f"{run / 'own'} is not a folder outside the run" in text


@pytest.mark.parametrize("name", ["compare", "report", "score", "export", "view", "calibrate", "plan"])
def test_the_help_of_each_names_the_option(command: Command, name: str) -> None:
    assert "--path" in command(name, "--help", code=0).out


def test_what_is_found_already_is_not_looked_for(command: Command, run: Path) -> None:
    add_search_path([run.parent / "own"], "--path")
    result = command("score", run, code=0)
    assert "which the manifest of" not in result.err
