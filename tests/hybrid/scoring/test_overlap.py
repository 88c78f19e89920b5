"""Solvers on exactly the questions that all of them have and none failed."""

from pathlib import Path
from typing import Any

import pytest

from hybrid.scoring.overlap import RULES, Overlap
from hybrid.scoring.reports import compare_paths


@pytest.fixture
def write(tmp_path: Path, made_up_runs: Any) -> Any:
    """Writes a run of letters and gives its scored solvers."""

    def written(name: str, **said: dict[str, str]) -> Any:
        folder = made_up_runs.from_letters(tmp_path / name, said)
        return compare_paths([folder.path]).solvers

    return written


def test_what_one_failed_is_failed_for_all(write: Any) -> None:
    solvers = write("run", mllm={"Jigsaw": "rwfr"}, specialist={"Jigsaw": "fara"}, controller={"Jigsaw": "rrrr"})
    shared = Overlap.of(solvers)
    assert shared.ids[shared.lost].tolist() == ["val_Jigsaw_1", "val_Jigsaw_3"]
    assert (shared.n, shared.missing.sum(), shared.failed_share) == (2, 0, 0.5)
    assert shared.ids[shared.kept].tolist() == ["val_Jigsaw_2", "val_Jigsaw_4"]
    assert [one[shared.kept].tolist() for one in shared.right] == [[0.0, 1.0], [0.5, 0.5], [1.0, 1.0]]
    assert shared.left_out == "left out: 2 that one of them failed"
    assert [metric.value for metric in shared.headline("chance") or ()] == [0.5, 0.5, 1.0]
    assert [metric.value for metric in shared.headline("wrong") or ()] == [0.5, 0.0, 1.0]


def test_what_one_was_not_asked_is_missing_and_no_failure(write: Any) -> None:
    (whole,) = write("whole", mllm={"Jigsaw": "rrww", "Counting": "rr"})
    (part,) = write("part", mllm={"Jigsaw": "rw"})
    for order in ((whole, part), (part, whole)):
        shared = Overlap.of(order)
        assert (shared.n, shared.missing.sum(), shared.lost.sum(), shared.failed_share) == (2, 4, 0, 0.0)
        assert shared.left_out == "left out: 4 that one of them was not asked"
        assert sorted(metric.value or 0.0 for metric in shared.accuracy("wrong")) == [0.5, 1.0]
        assert list(shared.by_group(None)) == ["Jigsaw"]
        for rule in RULES:
            assert [len(metric.cells) for metric in shared.headline(rule) or ()] == [2, 2]


def test_a_pair_of_pictures_that_one_lost_a_half_of_is_out_as_a_whole(tmp_path: Path, made_up_runs: Any) -> None:
    made = made_up_runs.write(tmp_path, "mvp_bench", size=5, failed=1)
    named = {one.solver: one for one in compare_paths(made.paths).solvers}
    shared = Overlap.of([named["mllm"], named["controller [blank]"], named["controller"]])
    assert shared.n == 19
    metrics = shared.headline("wrong") or ()
    assert [(metric.name, metric.n) for metric in metrics] == [("mAcc", 4)] * 3


@pytest.mark.parametrize(
    ("letters", "allowed", "reason"),
    [("rw", False, None), ("rf", False, "failed"), ("rfr", True, None), ("aa", False, "unanswered")],
)
def test_nothing_is_tested_where_a_pair_would_not_be(
    write: Any, letters: str, allowed: bool, reason: str | None
) -> None:
    shared = Overlap.of(write("run", mllm={"Jigsaw": letters}, specialist={"Jigsaw": "r" * len(letters)}))
    metrics = shared.accuracy("chance")
    assert shared.untested(metrics, allow_failed=allowed, whole=shared) == reason


def test_too_much_failed_over_all_withholds_every_task(write: Any) -> None:
    shared = Overlap.of(
        write("run", mllm={"Jigsaw": "f", "Counting": "rw"}, specialist={"Jigsaw": "r", "Counting": "ww"})
    )
    (counting,) = shared.by_group(None).values()
    assert counting.untested(counting.accuracy("wrong"), allow_failed=False, whole=counting) is None
    assert counting.untested(counting.accuracy("wrong"), allow_failed=False, whole=shared) == "failed"
