"""The printed cells have the required notes, and their sums agree, which would reveal a misread cell."""

from hybrid.scoring.published import Published, published
from tests.tables import cases, stored

REPAIRED_POINTS = set(cases(__file__, "REPAIRED_POINTS")[1])
# The tasks of the lower half of BLINK's Tables 1 and 4, whose last rows cannot be read.
SECOND_HALF = stored(__file__, "SECOND_HALF")

RECOMPUTED = {
    *(("GPT-4o", task) for task in SECOND_HALF),
    *((who, "Visual_Correspondence") for who in ("Gemini Pro", "Claude 3 OPUS", "GPT-4V", "GPT-4 Turbo")),
    ("Claude 3 OPUS", "Multi-view_Reasoning"),
}


def notes(row: Published) -> list[str]:
    return row.note.split("; ")


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
