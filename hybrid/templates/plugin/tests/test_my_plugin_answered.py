"""`my_plugin_answered` counts the answers of a run, offline."""

from pathlib import Path

import hybrid


def test_a_guess_is_an_answer(tmp_path: Path) -> None:
    run = tmp_path / "run"
    hybrid.run("blink", data="sample", task="Jigsaw", limit=2, solvers="chance", out=run, quiet=True)
    (row,) = (row for row in hybrid.compare(run).results if row.section == "my_plugin_answered")
    assert (row.a, row.quantity, row.value) == ("chance", "answered", 1.0)
