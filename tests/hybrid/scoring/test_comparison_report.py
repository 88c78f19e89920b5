"""What `hybrid compare` prints beyond differences: sections under headings, chosen ones, one that cannot be made."""

from pathlib import Path
from typing import Any

import pytest
from hybrid.scoring.told import Told

from hybrid import compare
from hybrid.errors import DataError, UsageError
from hybrid.scoring import compare_sections
from hybrid.scoring.compare import Comparison
from hybrid.scoring.reports import ComparisonReport, compare_paths

OWN = ["metrics", "tasks", "differences", "outcomes"]
GAIN = "Does the gain come from what the tools say?"


@pytest.fixture
def paths(tmp_path: Path, made_up_runs: Any) -> tuple[Path, ...]:
    """A real run and its controls."""
    found: tuple[Path, ...] = made_up_runs.write(tmp_path, "blink", size=5).paths
    return found


def test_sections_follow_the_tables_each_under_its_heading(paths: tuple[Path, ...]) -> None:
    report = compare_paths(paths)
    names = [block.name for block in report.blocks()]
    assert names[:4] == OWN
    assert {"gain", "ceiling", "agreement"} < set(names)
    text = report.render()
    assert text.index("Outcomes and cost") < text.index(GAIN) < text.index("Shared mistakes")
    assert f"\n{GAIN}\n{'=' * len(GAIN)}\n\nThe gain of tools" in text
    assert f"\n## {GAIN}\n\n**The gain of tools" in report.render("markdown")
    assert f"\n% {GAIN}\n\n\\begin{{table}}" in report.render("latex")
    assert all(text.count(f"{told.title}\n") == 1 for told in report.sections)
    assert str(report) == text
    assert len(report.tables()) == text.count("\n---")


def test_json_has_each_section_under_its_name(paths: tuple[Path, ...]) -> None:
    report = compare_paths(paths)
    found = report.as_json()
    for told in report.sections:
        assert found[told.name] == list(told.data)
    assert "faults" not in found


def test_the_comparison_is_made_once_and_when_it_is_asked_for(paths: tuple[Path, ...]) -> None:
    report = compare_paths(paths)
    assert not {"comparison", "sections"} & set(vars(report))
    found, told = report.comparison, report.sections
    report.render()
    report.as_json()
    assert report.comparison is found
    assert report.sections is told


def test_only_what_was_asked_for(paths: tuple[Path, ...]) -> None:
    report = compare(*paths, only=["gain", "metrics"])
    assert [block.name for block in report.blocks()] == ["metrics", "gain"]
    assert "Outcomes" not in report.render()
    for name, why in (("gains", "there is no such section"), ("published", "there is no such section")):
        with pytest.raises(UsageError, match=f"--only {name}: {why}; it has: metrics, tasks, differences, outcomes,"):
            compare(*paths, only=[name]).render()
    with pytest.raises(UsageError, match="--only gain: this comparison has no such section"):
        compare(paths[0], only=["gain"]).render()


def test_brief_is_without_tasks(paths: tuple[Path, ...]) -> None:
    text = compare(*paths, brief=True).render()
    assert "by task" not in text
    assert "other metrics" not in text
    assert all(title in text for title in ("blink: metrics", "Outcomes and cost", GAIN, "The either-right ceiling"))


@pytest.mark.parametrize("margin", [0, 1, -0.1, float("nan")])
def test_a_margin_is_a_difference_in_accuracy(paths: tuple[Path, ...], margin: float) -> None:
    assert compare(*paths).choice.margin == 0.05
    assert compare(*paths, margin=0.1).choice.margin == 0.1
    with pytest.raises(UsageError, match=r"--margin .*: a difference in accuracy"):
        compare(*paths, margin=margin)


@pytest.mark.parametrize(
    "error",
    [
        DataError("controller/traces/val_Jigsaw_1.json: cut off"),
        OSError(5, "Input/output error"),
        ValueError("Expecting value:\n line 1"),
    ],
)
def test_a_section_that_cannot_be_made_costs_no_other(
    paths: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def section(found: Comparison) -> Told | None:
        raise error

    section.__module__ = "hybrid.scoring.evidence"
    places = [compare_sections.name_of(one) for one in compare_sections.SECTIONS]
    changed = [
        section if name == "evidence" else one for name, one in zip(places, compare_sections.SECTIONS, strict=True)
    ]
    monkeypatch.setattr(compare_sections, "SECTIONS", tuple(changed))
    report = compare_paths(paths)
    why = " ".join(str(error).split())
    found = report.as_json()
    assert found["faults"] == {"evidence": why}
    assert "evidence" not in found
    assert found["gain"]
    assert found["agreement"]
    text = report.render()
    assert "evidence: nothing is told" in text
    assert why in text
    assert GAIN in text
    assert report.failed == (f"evidence: {why}",)
    assert "evidence" not in report.render("csv")


def test_a_bug_is_not_taken_for_a_damaged_trace(paths: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    def section(found: Comparison) -> Told | None:
        raise KeyError("a")

    monkeypatch.setattr(compare_sections, "SECTIONS", (section,))
    with pytest.raises(KeyError):
        compare_paths(paths).render()


def test_without_solvers_there_is_nothing() -> None:
    report = ComparisonReport(())
    assert (report.tables(), report.sections, report.render(), report.failed) == ((), (), "", ())


def test_published_rows_come_last_under_a_heading_of_their_own(paths: tuple[Path, ...]) -> None:
    text = compare(*paths, published=True).render()
    heading = text.index("What did papers print of the same metrics?")
    assert heading > text.index("Shared mistakes")
    assert text.index("published, Table") > heading
    assert "published" not in compare(*paths).render()
