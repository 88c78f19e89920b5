"""`bench.size`: what counts as a line of code, and when a room does not fit its ceiling."""

import tomllib
from pathlib import Path

import pytest

from bench import size
from tests.tables import cases, stored

SOURCE = stored(__file__, "SOURCE")


def test_lines_of_code_are_those_with_a_token_that_is_no_import_docstring_or_comment() -> None:
    counted = size.size_of(SOURCE)
    assert counted.code == 2 + 1 + 1 + (2 + 1 + 4) + 4
    assert counted.comments == 2
    assert (counted.functions, counted.private, counted.dataclasses) == (4, 1, 1)
    # __init__ has no body, `_one` one line (its comment stands before), `two` three, `inner` one.
    assert counted.of_bodies == 0 + 1 + 3 + 1


def test_a_room_is_a_folder_of_hybrid_or_one_at_the_top(tmp_path: Path) -> None:
    for name in ("hybrid/errors.py", "hybrid/cli/run.py", "hybrid/cli/deep/er.py", "tools/rules/one.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("A = 1\n")
    rooms = {room: found.code for room, found in size.of_checkout(tmp_path).items()}
    assert rooms == {"hybrid": 1, "hybrid/cli": 2, "tools": 1}
    assert size.sizes([tmp_path / "tools"], by_file=True, root=tmp_path).keys() == {"tools/rules/one.py"}


@pytest.mark.parametrize(*cases(__file__, "test_a_room_fits_its_ceiling_within_two_percent", list))
def test_a_room_fits_its_ceiling_within_two_percent(code: int, said: list[str]) -> None:
    found = list(size.against_ceilings({"a": code}, {"a": 100}))
    assert len(found) == len(said)
    assert all(line.startswith(start) for line, start in zip(found, said, strict=True))


def test_a_room_without_a_ceiling_and_a_ceiling_without_a_room_are_named() -> None:
    assert [line.partition(":")[0] for line in size.against_ceilings({"new": 1}, {"gone": 1})] == [
        "gone is no room",
        "new has no ceiling",
    ]


def test_the_ceilings_written_are_those_of_the_rooms() -> None:
    rooms = {"hybrid/cli": 12, "bench": 3, "hybrid": 1}
    text = size.ceilings_text(rooms)
    assert tomllib.loads(text) == {"code": rooms}
    assert "# hybrid + tools + graphs + baselines: 13, to come down to 44,000" in text
