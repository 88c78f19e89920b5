"""The either-right ceiling by hand, its bounds, and how often its interval holds the truth."""

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.scoring.ceiling import section
from hybrid.scoring.compare import Choice, compare
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.told import Told
from hybrid.stats import interval
from hybrid.types import Cell, Metric


@pytest.fixture
def told(tmp_path: Path, made_up_runs: Any) -> Any:
    """The section of a run of three solvers."""
    count = iter(range(1000))

    def found(hybrid: str, alone: str, specialist: str, **choice: Any) -> Told | None:
        said = {"controller": hybrid, "mllm": alone, "specialist": specialist}
        folder = made_up_runs.from_letters(
            tmp_path / str(next(count)), {name: {"Jigsaw": word} for name, word in said.items()}
        )
        return section(compare(compare_paths([folder.path]).solvers, Choice(**choice)))

    return found


def test_the_ceiling_by_hand(told: Any) -> None:
    """Alone 4 right, specialist 3, either 6, the hybrid 5: half of the way from 4 to 6."""
    found = told("rrrwrwrw", "rrrrwwww", "rwwwrraw")
    record = found.data[0]
    assert [record[f"right_{name}"] for name in ("hybrid", "alone", "specialist", "either")] == [5, 4, 3, 6]
    assert (record["better"], record["reached"], record["n"]) == ("alone", 0.5, 8)
    assert record["only_hybrid"] == ["val_Jigsaw_7"]
    assert record["missed"] == ["val_Jigsaw_4", "val_Jigsaw_6"]
    assert record["neither"] == ["val_Jigsaw_8"]
    assert found.tables[0].rows[0][:7] == ("controller", "all tasks", "8", "0.625", "0.500*", "0.375 ", "0.750")
    assert found.tables[0].rows[0][7] == "0.50"
    assert found.tables[0].rows[0][9:] == ("1", "2")


def test_behind_the_better_part_it_is_negative_and_above_the_ceiling_more_than_one(told: Any) -> None:
    assert told("wwwr", "rrww", "rwrw").data[0]["reached"] == -1.0
    assert told("rrrr", "rrww", "rwrw").data[0]["reached"] == 2.0


def test_where_the_better_part_is_the_ceiling_there_is_no_share(told: Any) -> None:
    found = told("rrww", "rrrw", "rrww")
    assert (found.data[0]["reached"], found.data[0]["interval"]) == (None, None)
    assert found.tables[0].rows[0][7:9] == ("-", "-")
    assert next(line for line in found.numbers if line.quantity == "reached").value is None


def test_no_answer_is_not_right_and_a_failed_question_is_out(told: Any) -> None:
    found = told("rfrr", "uwrw", "arrw", allow_failed=True)
    record = found.data[0]
    assert (record["n"], record["failed"]) == (3, ["val_Jigsaw_2"])
    assert [record[f"right_{name}"] for name in ("hybrid", "alone", "specialist", "either")] == [3, 1, 1, 1]
    assert record["better"] == "alone"
    held = told("rf" + "rw" * 20, "wr" + "rr" * 20, "rr" * 21)
    assert (held.data[0]["withheld"], held.data[0]["interval"]) == ("failed", None)
    assert "--allow-failed" in " ".join(held.tables[0].notes)


def test_without_both_parts_there_is_no_ceiling(tmp_path: Path, made_up_runs: Any) -> None:
    folder = made_up_runs.from_letters(tmp_path / "run", {"controller": {"Jigsaw": "rw"}, "mllm": {"Jigsaw": "rr"}})
    assert section(compare(compare_paths([folder.path]).solvers)) is None


WORD = st.text("rwa", min_size=5, max_size=5)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory, made_up_runs: Any) -> Any:
    """Hybrid, alone and specialist over five puzzles, answering as they are told."""
    names = ("controller", "mllm", "specialist")
    path = tmp_path_factory.mktemp("sides") / "run"
    made_up_runs.from_letters(path, {name: {"Jigsaw": "rrrrr"} for name in names})
    solvers = compare_paths([path]).solvers
    return lambda *words: [made_up_runs.answering(*pair) for pair in zip(solvers, words, strict=True)]


@settings(max_examples=60)
@given(WORD, WORD, WORD)
def test_the_ceiling_is_above_both_parts_and_ids_are_behind_every_count(sides: Any, a: str, b: str, c: str) -> None:
    found = section(compare(sides(a, b, c)))
    assert found is not None
    record: dict[str, Any] = dict(found.data[0])
    assert record["right_either"] >= max(record["right_alone"], record["right_specialist"])
    assert len(record["missed"]) + record["right_hybrid"] - len(record["only_hybrid"]) == record["right_either"]
    assert len(record["neither"]) + len(record["missed"]) == 5 - record["right_hybrid"]
    if record["reached"] is not None:
        better = max(record["right_alone"], record["right_specialist"])
        assert record["reached"] * (record["right_either"] - better) == pytest.approx(record["right_hybrid"] - better)
    if record["interval"]:
        assert record["interval"][0] <= record["reached"] <= record["interval"][1]


@pytest.mark.parametrize(("questions", "clusters"), [(60, 60), (300, 300), (300, 100)])
def test_the_interval_holds_the_truth_as_often_as_it_says(questions: int, clusters: int) -> None:
    """Which of the two parts is right and what the hybrid does with it is drawn; three rows of a cluster are alike.

    The specialist is right where the MLLM is wrong in 30 %, and the hybrid then in 60 %; where the MLLM is right the
    hybrid loses 10 %, and it is right where neither is in 5 %: (0.18 - 0.05 + 0.01) / 0.3 in the long run.
    """
    rng = random.Random(questions + clusters)
    held, simulations = 0, 300
    truth = (0.3 * 0.6 - 0.5 * 0.1 + 0.2 * 0.05) / 0.3
    for _ in range(simulations):
        cells = []
        for cluster in range(clusters):
            kind, luck = rng.random(), rng.random()
            if kind < 0.5:
                above, below = -float(luck < 0.1), 0.0
            elif kind < 0.8:
                above, below = float(luck < 0.6), 1.0
            else:
                above, below = float(luck < 0.05), 0.0
            cells += [Cell("", str(cluster), above, below)] * (questions // clusters)
        value = sum(cell.numerator for cell in cells) / sum(cell.denominator for cell in cells)
        ends = interval(Metric("reached", value, len(cells), "ratio", tuple(cells)))
        assert ends is not None
        held += ends.low <= truth <= ends.high
    assert held / simulations == pytest.approx(0.95, abs=0.03)
