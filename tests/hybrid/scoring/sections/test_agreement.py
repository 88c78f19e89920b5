"""The number of choices of a question is read once for all pairs of a run's solvers."""

from collections import defaultdict
from itertools import combinations
from pathlib import Path
from typing import Any

from hybrid.scoring.compare import compare
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.sections import agreement


def test_solvers_of_a_run_share_what_is_read_of_their_questions(tmp_path: Path, synthetic_runs: Any) -> None:
    letters = {name: {"Jigsaw": "rwr"} for name in ("controller", "mllm", "specialist")}
    synthetic_runs.from_letters(tmp_path / "run", letters)
    comparison = compare(compare_paths([tmp_path / "run"]).solvers)
    ids = [score.id for score in comparison.solvers[0].scores]
    cache: dict[int, dict[str, int]] = defaultdict(dict)
    for pair in combinations(comparison.solvers, 2):
        counts = [agreement._count_choices(of.questions, [*ids, "no such"], cache[id(of.questions)]) for of in pair]
        assert counts == [[2, 2, 2, 0]] * 2
    assert len(cache) == 1
    assert agreement._count_choices({}, ids, cache.popitem()[1]) == [2, 2, 2]
