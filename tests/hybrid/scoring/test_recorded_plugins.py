"""Two runs that used different code under one name: neither is judged by the rules of the other."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hybrid.log.folder import RunFolder
from hybrid.plugins import discovery
from hybrid.plugins.discovery import add_search_path, folder_hash
from hybrid.scoring import recorded_plugins
from hybrid.scoring.recorded_plugins import find_lost_rules, find_plugins


@pytest.fixture(autouse=True)
def tools_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the folders that a test searches from other tests."""
    import tools

    monkeypatch.setattr(tools, "__path__", list(tools.__path__))
    for table in ("_NAMED", "_OPTIONS"):
        monkeypatch.setattr(discovery, table, dict(getattr(discovery, table)))
    monkeypatch.setattr(recorded_plugins, "_NOTED", set[str]())


@pytest.fixture
def runs(tmp_path: Path) -> Mapping[str, RunFolder]:
    """Return three runs by name; `a` and `b` used different code, `c` used a copy of the code of `a`."""
    return {name: run_with_tool(tmp_path, name, code) for name, code in {"a": "1", "b": "2", "c": "1"}.items()}


def run_with_tool(folder: Path, name: str, code: str) -> RunFolder:
    plugin_folder = folder / f"own_{name}"
    plugin_folder.mkdir()
    (plugin_folder / "nearest.py").write_text(f"TOOL = {code}\n")
    facts: dict[str, Any] = {"path": str(plugin_folder), "sha256": folder_hash(plugin_folder), "routes": ["Jigsaw"]}
    run = RunFolder(folder / name)
    run.write_manifest(
        {"identity": {"benchmark": "blink", "split": "val"}, "solvers": {}, "plugins": {"tools/nearest": facts}}
    )
    return run


@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("b", "a")])
def test_the_first_run_s_code_judges_no_other_run(
    runs: Mapping[str, RunFolder], tmp_path: Path, first: str, second: str
) -> None:
    assert find_plugins(runs[first]) == {}
    missing = find_plugins(runs[second])["tools/nearest"]
    assert missing.startswith(f"{tmp_path / f'own_{first}'}, which another run names, offers it with other code; ")
    assert set(find_lost_rules(runs[second])) == {"nearest", "route Jigsaw"}
    assert find_lost_rules(runs[first]) == {}
    # The advice of the message works in the same process.
    add_search_path([tmp_path / f"own_{first}"], "--path")
    assert find_plugins(runs[second]) == {}


def test_a_copy_of_the_code_is_the_same_code(runs: Mapping[str, RunFolder]) -> None:
    assert (find_plugins(runs["a"]), find_plugins(runs["c"])) == ({}, {})


def test_code_that_changes_while_this_program_runs_is_missing(runs: Mapping[str, RunFolder], tmp_path: Path) -> None:
    assert find_plugins(runs["a"]) == {}
    (tmp_path / "own_a" / "nearest.py").write_text("TOOL = 3\n")
    assert find_plugins(runs["a"]) == {
        "tools/nearest": f"{tmp_path / 'own_a'} has changed since the run; --path DIR uses it as it is now"
    }


def test_code_that_the_user_names_is_used_with_one_note(
    runs: Mapping[str, RunFolder], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_search_path([tmp_path / "own_b"], "--path")
    assert [find_plugins(runs[name]) for name in ("a", "a", "b")] == [{}, {}, {}]
    note = f"note: tools/nearest is read from {tmp_path / 'own_b'}, whose code is not that of {tmp_path / 'a'}\n"
    assert capsys.readouterr().err == note
