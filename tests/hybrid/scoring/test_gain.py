"""The gain of tools in two parts: what adds up, what is said, and when nothing is."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.scoring.compare import Choice, compare
from hybrid.scoring.gain import section
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.told import Told
from hybrid.tables import as_text

Said = Mapping[str, str]


@pytest.fixture
def told(tmp_path: Path, made_up_runs: Any) -> Any:
    """The section of a real run with an MLLM alone, and of runs with controls."""
    count = iter(range(1000))

    def found(
        hybrid: Said, alone: Said | None = None, blank: Said | None = None, shuffled: Said | None = None, **choice: Any
    ) -> Told | None:
        folder = tmp_path / str(next(count))
        real = {"controller": hybrid} | ({"mllm": alone} if alone else {})
        paths = [made_up_runs.from_letters(folder / "real", real).path]
        for name, said in (("blank", blank), ("shuffled", shuffled)):
            if said:
                paths.append(made_up_runs.from_letters(folder / name, {"controller": said}, name).path)
        return section(compare(compare_paths(paths).solvers, Choice(**choice)))

    return found


def parts(one: Told, group: str = "all tasks", none: str = "wrong") -> dict[str, Any]:
    return {p["part"]: p for r in one.data if r["group"] == group for p in r["parts"] if p["none"] == none}  # type: ignore[union-attr,index,call-overload,misc]


def test_the_parts_by_hand(told: Any) -> None:
    found = told({"Jigsaw": "rrrr"}, {"Jigsaw": "wwru"}, {"Jigsaw": "rwra"})
    wrong = {name: part["difference"] for name, part in parts(found).items()}
    assert wrong == {"gain": 0.75, "presence": 0.25, "content": 0.5}
    chance = {name: part["difference"] for name, part in parts(found, none="chance").items()}
    assert chance == {"gain": 0.625, "presence": 0.25, "content": 0.375}
    assert [(p["a"], p["b"]) for p in parts(found).values()] == [
        ("mllm", "controller"),
        ("mllm", "controller [blank]"),
        ("controller [blank]", "controller"),
    ]


LETTERS = st.text("rwauf", min_size=6, max_size=6)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory, made_up_runs: Any) -> Any:
    """Alone, blank and hybrid over four puzzles and two counts, answering as they are told."""
    folder, said = tmp_path_factory.mktemp("sides"), {"Jigsaw": "rrrr", "Counting": "rr"}
    made_up_runs.from_letters(folder / "real", {"controller": said, "mllm": said})
    made_up_runs.from_letters(folder / "blank", {"controller": said}, "blank")
    hybrid, alone, blank = compare_paths([folder / "real", folder / "blank"]).solvers
    return lambda *words: [made_up_runs.answering(*pair) for pair in zip((hybrid, alone, blank), words, strict=True)]


@settings(max_examples=60)
@given(LETTERS, LETTERS, LETTERS)
def test_presence_and_content_add_up_to_the_gain(sides: Any, a: str, b: str, c: str) -> None:
    """Over all questions and within each task, under both rules, whatever was failed or not answered."""
    found = section(compare(sides(a, b, c)))
    kept = {place for place in range(6) if "f" not in a[place] + b[place] + c[place]}
    if not kept:
        assert found is None
        return
    assert found is not None
    assert found.data[0]["questions"] == len(kept)
    for record in found.data:
        for none in ("chance", "wrong"):
            own = parts(found, str(record["group"]), none)
            gain, presence, content = (own[name]["difference"] for name in ("gain", "presence", "content"))
            assert presence + content == pytest.approx(gain, abs=1e-15)


def test_the_shuffled_control_is_on_questions_of_its_own(told: Any) -> None:
    """A question that only the shuffled control failed stays in the gain."""
    found = told({"Jigsaw": "rrrr"}, {"Jigsaw": "wwrr"}, {"Jigsaw": "wrrw"}, {"Jigsaw": "frww"}, allow_failed=True)
    assert parts(found)["gain"]["difference"] == 0.5
    assert parts(found)["shuffled"]["difference"] == pytest.approx(-1 / 3)
    assert [(line[1], line[2]) for line in found.tables[0].rows] == [
        ("gain", "4"),
        ("presence", "4"),
        ("content", "4"),
        ("shuffled", "3"),
    ]
    assert found.tables[1].names == ("hybrid", "task", "n", "gain", "presence", "content")
    assert "Questions left out of controller [blank] / controller [shuffled]: 1 that one of them failed." in as_text(
        found.tables[0]
    )


def test_without_a_blank_control_there_is_nothing_to_tell(told: Any) -> None:
    assert told({"Jigsaw": "rr"}, {"Jigsaw": "rw"}) is None
    assert told({"Jigsaw": "rr"}, {"Jigsaw": "rw"}, None, {"Jigsaw": "rw"}) is None


def test_without_the_mllm_alone_there_is_the_content(told: Any) -> None:
    found = told({"Jigsaw": "r" * 30}, None, {"Jigsaw": "w" * 30})
    assert list(parts(found)) == ["content"]
    assert "controller: what the tools say brings a gain." in found.tables[0].notes


SAME, MANY, FEW = "rw" * 20, "r" * 38 + "ww", "r" * 2 + "w" * 38
NO_GAIN, BY_CONTENT = "no gain over the MLLM alone is shown", "next to blank tools what the tools say brings a"
READINGS = [
    (MANY, FEW, FEW, "the gain comes from what the tools say"),
    (MANY, FEW, MANY, "it is not shown that the gain comes from what the tools say"),
    (SAME, SAME, SAME, NO_GAIN),
    (SAME, SAME, FEW, f"{NO_GAIN}; {BY_CONTENT} gain"),
    (FEW, MANY, MANY, f"with tools it is behind the MLLM alone; {BY_CONTENT} loss"),
    (MANY, "r" * 30 + "u" * 10, FEW, f"{NO_GAIN}; {BY_CONTENT} gain"),
    ("r" * 30 + "u" * 10, MANY, FEW, f"{NO_GAIN}; {BY_CONTENT} gain"),
]


@pytest.mark.parametrize(("hybrid", "alone", "blank", "line"), READINGS)
def test_a_gain_is_said_where_it_holds_under_both_rules(
    told: Any, hybrid: str, alone: str, blank: str, line: str
) -> None:
    found = told({"Jigsaw": hybrid}, {"Jigsaw": alone}, {"Jigsaw": blank})
    assert found.tables[0].notes[0] == f"controller: {line}."


def test_nothing_is_tested_where_much_failed(told: Any) -> None:
    sides = ({"Jigsaw": "rrrf"}, {"Jigsaw": "wwrr"}, {"Jigsaw": "wrrr"})
    found, allowed = told(*sides), told(*sides, allow_failed=True)
    assert {(p["withheld"], p["p"]) for p in parts(found).values()} == {("failed", None)}
    assert not [note for note in found.tables[0].notes if note.startswith("controller: ")]
    assert "--allow-failed" in " ".join(found.tables[0].notes)
    assert all(p["p"] is not None for p in parts(allowed).values())


def test_a_number_for_each_part_group_and_rule(told: Any) -> None:
    found = told(
        {"Jigsaw": "rrrr", "Counting": "rw"}, {"Jigsaw": "wwru", "Counting": "ww"}, {"Jigsaw": "rwra", "Counting": "rr"}
    )
    numbers = {(n.quantity, n.group, n.none): n for n in found.numbers}
    assert len(numbers) == len(found.numbers) == 3 * 3 * 2
    line, part = numbers["content", "Jigsaw", "wrong"], parts(found, "Jigsaw")["content"]
    assert (line.value, [line.low, line.high], line.p, line.p_holm) == (
        part["difference"],
        part["interval"],
        part["p"],
        part["p_holm"],
    )
    assert (line.a, line.b, line.n, line.metric) == ("controller [blank]", "controller", 4, "accuracy")
    assert numbers["gain", "", "chance"].metric == "accuracy_macro"
