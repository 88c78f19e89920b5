"""The page about formats of other programs: it contains the committed results, and the project's rows are
reproducible."""

import json
from typing import Any

import pytest

from bench import scorers

FOUND: dict[str, Any] = json.loads(scorers.RESULTS.read_text(encoding="utf-8"))


def test_the_page_holds_the_committed_results() -> None:
    assert scorers.PAGE.read_text(encoding="utf-8") == scorers.page(FOUND)
    assert "<!-- table:" not in scorers.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["official", "ours"])
def test_what_is_read_here_is_what_was_committed(name: str) -> None:
    rows = [(row.choices, row.reply) for row in scorers.rows()]
    assert scorers.read_here(name, rows) == FOUND["letters"][name]


def test_every_reader_read_every_reply() -> None:
    table = scorers.rows()
    assert len(table) >= 60
    assert set(FOUND["letters"]) == set(scorers.READERS)
    assert all(len(letters) == len(table) for letters in FOUND["letters"].values())
    assert all(row.means is None or row.means in "ABCD"[: len(row.choices)] for row in table)


def test_accuracy_is_the_mean_over_tasks_and_no_letter_is_wrong() -> None:
    keys = [("one", "A"), ("one", "B"), ("one", "C"), ("one", "D"), ("other", "A")]
    assert scorers.accuracy(["A", None, None, "B", "A"], keys) == 62.5


def test_a_page_without_results_on_saved_replies_is_refused(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scorers, "RESULTS", tmp_path / "scorers.json")
    monkeypatch.setattr("sys.argv", ["scorers", "--page"])
    with pytest.raises(SystemExit, match="give --data, a folder that holds blink_outputs"):
        scorers.main()
