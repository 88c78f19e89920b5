"""A lead over the specialists is one where they answer: r right, w wrong, a abstained, f failed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hybrid.scoring.reports import compare_paths
from hybrid.scoring.sections import results
from hybrid.scoring.sections.answered import SILENT, SPOKEN

Letters = Mapping[str, Mapping[str, str]]


Parts = Mapping[str, tuple[int, dict[str, float | None]]]


CASES: Mapping[str, tuple[Letters, Parts]] = {
    "equal where they answer, ahead where they do not": (
        {
            "arbiter": {"Jigsaw": "r" * 9 + "w", "Counting": "r" * 8 + "w" * 2},
            "specialist": {"Jigsaw": "r" * 9 + "w", "Counting": "a" * 10},
        },
        {
            SPOKEN: (10, {"difference": 0.0, "value a": 0.9, "value b": 0.9, "right a": 9, "right b": 9}),
            SILENT: (10, {"value b": 0.8, "right b": 8, "right a": 0}),
        },
    ),
    "within one task, and what failed is in neither part": (
        {"mllm": {"Jigsaw": "rrwwrf"}, "specialist": {"Jigsaw": "rwraau"}},
        {
            SPOKEN: (3, {"difference": 0.0, "value a": 2 / 3, "value b": 2 / 3, "right a": 2, "right b": 2}),
            SILENT: (2, {"value b": 0.5, "right b": 1, "right a": 0}),
        },
    ),
    "they answer all": ({"mllm": {"Jigsaw": "rrww"}, "specialist": {"Jigsaw": "rwrw"}}, {}),
    "they answer nothing": ({"mllm": {"Jigsaw": "rrww"}, "specialist": {"Jigsaw": "aaaa"}}, {}),
    "two without specialists": ({"mllm": {"Jigsaw": "rraa"}, "controller": {"Jigsaw": "rrrw"}}, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_two_parts(name: str, made_up_runs: Any, tmp_path: Path) -> None:
    said, expected = CASES[name]
    run = made_up_runs.from_letters(tmp_path / "run", said)
    found = compare_paths([run.path], allow_failed=True).comparison
    made = [row for one in results(found, ["answered"]) for row in one.rows]
    parts = {
        part: (made_of[0].n, {row.quantity: row.value for row in made_of})
        for part in (SPOKEN, SILENT)
        if (made_of := [row for row in made if row.group == part])
    }
    assert parts.keys() == expected.keys()
    for part, (n, values) in expected.items():
        assert parts[part] == (n, pytest.approx(values))
