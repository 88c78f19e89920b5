"""Generated pairs: the answers match the rendering, and the files have MVP-Bench's own layout."""

import json
from pathlib import Path
from typing import Any

import pytest

from hybrid.benchmarks.mvp_bench.sample import TASKS, write
from hybrid.benchmarks.mvp_bench.sample_pairs import EDITS, pair


@pytest.mark.system
def test_a_pair_differs_in_one_attribute() -> None:
    for index, built in enumerate(pair(index, 5) for index in range(12)):
        first, second = built.names
        assert built.edit == EDITS[index % 4]
        if built.edit == "count":
            shorter, longer = sorted(built.names, key=len)
            assert len(longer) == len(shorter) + 1
            assert set(shorter) < set(longer)
            continue
        changed = [(a, b) for a, b in zip(first, second, strict=True) if a != b]
        if built.edit == "order":
            assert changed == [changed[0], changed[0][::-1]]
        else:
            ((a, b),) = changed
            assert (a.colour == b.colour, a.shape == b.shape) == (built.edit == "shape", built.edit == "colour")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_files_have_the_official_form(tmp_path: Path) -> None:
    write(tmp_path, tuple(TASKS), 4, 1)
    plain, rotated = lines(tmp_path / "all_questions.json"), lines(tmp_path / "mcq_questions.json")
    assert [row["question_id"] for row in plain] == list(range(len(plain)))
    choice = {row["question_id"]: row for row in plain if row["type"].startswith("mcq")}
    assert len(rotated) == 5 * len(choice)
    assert {row["type"] for row in rotated} == {"mcq-e"}
    for row in rotated:
        number, mcq_id, shift = map(int, row["question_id"].split("__"))
        assert (row["mcq_id"], row["index"]) == (mcq_id, f"{shift + 1}/5")
        options = choice[number]["question"].split("\n")[1:-1]
        assert row["question"].split("\n")[1][3:] == options[shift][3:]
    for row in plain:
        assert (tmp_path / "Images" / row["image"]).is_file()


def test_the_first_pairs_do_not_depend_on_the_number(tmp_path: Path) -> None:
    for count in (3, 4):
        write(tmp_path / str(count), ("single",), count, 2)
    short, longer = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*")}
        for folder in (tmp_path / "3", tmp_path / "4")
    )
    pictures = {path for path in short if path.suffix == ".jpg"}
    assert pictures < longer.keys()
    assert all(longer[path] == short[path] for path in pictures)
    assert longer[Path("all_questions.json")].startswith(short[Path("all_questions.json")])
