"""`my_plugin_first` answers generated questions, offline."""

from pathlib import Path

import hybrid


def test_it_answers_every_question(tmp_path: Path) -> None:
    report = hybrid.run(
        "blink", data="sample", task="Jigsaw", limit=2, solvers="my_plugin_first", out=tmp_path / "run", quiet=True
    )
    (solver,) = report.solvers
    assert (len(solver.scores), report.failures) == (2, {})
