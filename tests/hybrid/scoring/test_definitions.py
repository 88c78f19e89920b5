"""The definition of a statistic in its docstring, and a user's own statistic in a file of at most 40 lines."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hybrid.benchmarks.card import MetricCard
from hybrid.plugins.discovery import folders, look_in
from hybrid.scoring.definitions import definition
from hybrid.scoring.reports import compare_paths
from tests.tables import cases

SECTIONS = "hybrid.scoring.sections"
OWN = '''"""Where are both sure and wrong?

both wrong alike: neither is right, and both give the same answer.

n: questions that both have and neither failed
source: by hand

- both wrong alike = questions on which neither is right and the answers are the same / questions. 0 is best. [source:
  our notes; page 3]
- of one mind (0 to n, in questions) = questions with the same answer

Read beside `agreement`, which asks whether that is more than chance.
"""

from collections.abc import Iterator

from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.parts import parts
from hybrid.scoring.result import Result


def rows(found: Comparison) -> Iterator[Result]:
    for pair in found.pairs:
        for part in parts(found, "alike", *map(found.named, pair)):
            first, second = part.seen.answer
            same = (first == second).astype(float)
            wrong = (1 - part.seen.right[0]) * (1 - part.seen.right[1])
            yield from part.gated(part.share("both wrong alike", same * wrong))
            yield part.count("of one mind", same)


SECTION = statistic(rows, headings={"a": "one", "b": "other"}, order=165)
'''


def test_a_docstring_says_title_explanation_and_quantities() -> None:
    text = definition(OWN.split('"""')[1])
    assert text.title == "Where are both sure and wrong?"
    assert text.about == "both wrong alike: neither is right, and both give the same answer."
    assert text.notes == "Read beside `agreement`, which asks whether that is more than chance."
    n = "questions that both have and neither failed"
    formula = "questions on which neither is right and the answers are the same / questions"
    assert text.quantities == (
        MetricCard("both wrong alike", formula, n, "our notes; page 3", "0 is best."),
        MetricCard("of one mind", "questions with the same answer", n, "by hand", values="0 to n, in questions"),
    )


@pytest.mark.parametrize(*cases(__file__, "test_what_is_no_definition_is_refused_with_its_words"))
def test_what_is_no_definition_is_refused_with_its_words(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        definition(text)


@pytest.fixture
def custom_statistic(tmp_path: Path) -> Iterator[None]:
    folder, previous = tmp_path / "statistics", folders(SECTIONS)
    folder.mkdir()
    (folder / "alike.py").write_text(OWN)
    look_in(SECTIONS, (*previous, str(folder)))
    yield
    look_in(SECTIONS, previous)


@pytest.mark.system
def test_a_statistic_is_one_file_of_at_most_40_lines(
    custom_statistic: None, tmp_path: Path, synthetic_runs: Any
) -> None:
    del custom_statistic
    assert len(OWN.splitlines()) <= 40
    run = synthetic_runs.from_letters(tmp_path / "run", {"mllm": {"Jigsaw": "rwww"}, "specialist": {"Jigsaw": "rrwa"}})
    report = compare_paths([run.path], all=True)
    data: Any = json.loads(json.dumps(report.as_json()))
    rows = {(row["quantity"], row.get("group", "")): row for row in data["results"] if row["section"] == "alike"}
    assert set(rows) == {(name, group) for name in ("both wrong alike", "of one mind") for group in ("", "Jigsaw")}
    both_wrong_alike, of_one_mind = rows["both wrong alike", ""], rows["of one mind", ""]
    assert (both_wrong_alike["value"], both_wrong_alike["n"], of_one_mind["value"]) == (0.25, 4, 2)
    assert both_wrong_alike["low"] < 0.25 < both_wrong_alike["high"]
    assert of_one_mind["ids"] == ["val_Jigsaw_1", "val_Jigsaw_3"]
    assert "Where are both sure and wrong?" in report.render()
