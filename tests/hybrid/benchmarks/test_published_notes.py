"""The printed cells: what their notes must say, and the arithmetic that a misread cell breaks."""

import pytest

from hybrid.benchmarks.blink import BENCHMARK as BLINK
from hybrid.scoring.published import Published, published

ONE_IMAGE = "takes one image"
ANY_VIEW = "zoom by the any-view rule, which uses the gold answer"

# ActiView, Table 7: the models under "open-source models for single image as input"; Table 15 spells one differently.
SINGLE = {
    "MiniCPM-Llama3-V-2.5",
    "GLM-4V-9B",
    "InternVL-Vicuna-13B",
    "LLaVA-1.6 7B",
    "InternVL-Vicuna-7B",
    "LLaVA-1.6 13B",
    "InternVL-Vicuna-13B-448px",
    "mPLUG-Owl2-7B",
    "mPLUG-Owl2 7B",
    "Mini-Gemini-7B-HD",
    "SEAL",
    "Mini-Gemini-7B",
}
SEVERAL = {
    "Gemini-1.5-pro",
    "GPT-4o",
    "Claude 3.5 Sonnet",
    "Qwen2-VL",
    "Idefics3-8B-Llama3",
    "MiniCPM-V 2.6",
    "mPLUG-Owl3",
    "LLaVA-OneVision",
    "InternVL2-8B",
    "Mantis",
    "Idefics2-8B",
    "Brote-IM-XL-3B",
    "Idefics2-8B-base",
    "Brote-IM-XXL-11B",
    "MMICL-XXL-11B",
    "MMICL-XL-3B",
}
PIPELINES = {f"Table {number}" for number in (2, 7, 8, 9, 10, 11, 12, 13, 14, 15)}

REPAIRED_POINTS = {
    ("Table 1", "test", "Claude 3 OPUS", "accuracy_macro"),
    ("Table 1", "test", "Claude 3 OPUS", "Relative_Depth"),
    ("Table 1", "test", "GPT-4V", "Relative_Depth"),
    ("Table 1", "val", "GPT-4 Turbo", "accuracy_macro"),
    ("Table 1", "test", "GPT-4 Turbo", "Art_Style"),
    ("Table 4", "val", "GPT-4 Turbo", "accuracy_macro"),
    ("Table 4", "val", "GPT-4 Turbo", "Visual_Similarity"),
    ("Table 4", "val", "GPT-4 Turbo", "Relative_Depth"),
    ("Table 4", "val", "GPT-4 Turbo", "Art_Style"),
}
SECOND_HALF = (
    "Semantic_Correspondence",
    "Spatial_Relation",
    "Object_Localization",
    "Visual_Correspondence",
    "Multi-view_Reasoning",
    "Relative_Reflectance",
    "Forensic_Detection",
    "IQ_Test",
)
"""The tasks of the lower half of BLINK's Tables 1 and 4, whose last rows cannot be read."""

RECOMPUTED = {
    *(("GPT-4o", task) for task in SECOND_HALF),
    *((who, "Visual_Correspondence") for who in ("Gemini Pro", "Claude 3 OPUS", "GPT-4V", "GPT-4 Turbo")),
    ("Claude 3 OPUS", "Multi-view_Reasoning"),
}


def pipelines() -> list[Published]:
    return [row for row in published("actiview") if row.source in PIPELINES]


def notes(row: Published) -> list[str]:
    return row.note.split("; ")


def test_the_models_of_one_image_and_no_others_are_noted_as_such() -> None:
    rows = pipelines()
    assert {row.who for row in rows} == SINGLE | SEVERAL
    assert [row for row in rows if (ONE_IMAGE in notes(row)) != (row.who in SINGLE)] == []


def test_only_zooming_with_one_image_is_by_the_any_view_rule() -> None:
    for row in pipelines():
        told = "textual descriptions" in row.note
        by_any_view = row.metric == "accuracy.zoom" or row.source == "Table 8"
        expected = row.who in SINGLE and by_any_view and not told
        assert any(part.startswith(ANY_VIEW) for part in notes(row)) == expected, row
        averaged = row.metric == "model_avg" and row.who in SINGLE
        assert ("its zoom is by the any-view rule" in notes(row)) == averaged, row


@pytest.mark.parametrize("table", ["Table 2", "Table 7"])
def test_every_average_is_that_of_its_row(table: str) -> None:
    rows = {(row.who, row.metric): row.value for row in published("actiview") if row.source == table}
    averages = {who: value for (who, metric), value in rows.items() if metric == "model_avg"}
    assert len(averages) == {"Table 2": 19, "Table 7": 27}[table]
    for who, average in averages.items():
        five = [rows[who, f"accuracy.{name}"] for name in ("zoom", "shift_R", "shift_E", "shift_M", "shift_H")]
        assert sum(five) / 5 == pytest.approx(average, abs=0.006), who


def test_the_row_of_fewer_questions_says_so() -> None:
    rows = [row for row in published("actiview") if row.source == "Table 8" and row.who == "Mantis"]
    assert {row.metric: row.n for row in rows if "type" in row.metric} == {
        "accuracy.type_I": "106",
        "accuracy.type_II": "143",
        "accuracy.type_III": "72",
    }
    for row in rows:
        count = round(row.value * int(row.n) / 100)
        assert abs(100 * count / int(row.n) - row.value) <= 0.0051, row
        assert row.note.endswith("four questions fewer than in the other rows")


def blink(*tables: str) -> list[Published]:
    return [row for row in published("blink") if row.source in tables]


def test_repaired_and_recomputed_cells_are_named() -> None:
    rows = blink("Table 1", "Table 4")
    points = {(row.source, row.split, row.who, row.metric) for row in rows if "decimal point is lost" in row.note}
    assert points == REPAIRED_POINTS
    recomputed = {(row.who, row.metric) for row in rows if "recomputed from the published outputs" in row.note}
    assert recomputed == RECOMPUTED
    assert {row.source for row in rows if "recomputed" in row.note} == {"Table 4"}
    cut = [row for row in rows if "lost its second decimal" in row.note]
    assert {row.metric for row in cut} == {"Forensic_Detection"}
    assert len(cut) == 17 + 17
    (elsewhere,) = [row for row in rows if "repaired from Table 5" in row.note]
    same = [row.value for row in blink("Table 5") if (row.who, row.metric) == (elsewhere.who, elsewhere.metric)]
    assert same == [elsewhere.value]


def test_every_cell_of_a_model_is_so_many_of_its_questions() -> None:
    rows = [row for row in blink("Table 1", "Table 2", "Table 4", "Table 5") if row.kind in ("model", "specialist")]
    tasks = [row for row in rows if row.metric != "accuracy_macro"]
    assert len(tasks) > 500
    for row in tasks:
        count = round(row.value * int(row.n) / 100)
        # The paper cuts a value here and there instead of rounding it.
        assert abs(100 * count / int(row.n) - row.value) <= 0.0099, row


def test_every_macro_average_is_that_of_its_cells() -> None:
    checked = 0
    for table, split in (("Table 1", "test"), ("Table 4", "val")):
        rows = {(row.who, row.metric): row.value for row in blink(table) if row.split == split and row.kind == "model"}
        for who in {who for who, _ in rows}:
            cells = [rows[who, task] for task in BLINK.card.tasks if (who, task) in rows]
            if len(cells) == 14:
                checked += 1
                assert sum(cells) / 14 == pytest.approx(rows[who, "accuracy_macro"], abs=0.0075), (table, who)
    assert checked == 28
