"""Tables in every format are aligned and escaped, and are read back where that is possible."""

import csv
import io
import re
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hybrid.display.tables import RENDERERS, Column, Table, as_csv, as_latex, as_markdown, as_narrow, as_text, share
from hybrid.display.terminal import NARROW, display_width
from tests.tables import cases

CELL = st.text(max_size=12) | st.text(alphabet='|\\`*_<>&~$[](){}#%^-",\n\r\t \x1b名', max_size=12)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    row = st.tuples(*[CELL] * draw(st.integers(1, 4)))
    columns = tuple(Column(name, draw(st.sampled_from(["left", "right"]))) for name in draw(row))
    return Table(draw(CELL), columns, tuple(draw(st.lists(row, max_size=4))), tuple(draw(st.lists(CELL, max_size=2))))


@given(tables())
def test_text_is_one_line_a_row_without_control_characters(table: Table) -> None:
    text = as_text(Table("", table.columns, table.rows))
    assert len(text.split("\n")) == len(table.rows) + 3
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


def test_text_does_not_pass_on_terminal_escapes() -> None:
    assert "\x1b" not in as_text(Table("\x1b[2Jgone", (Column("a"),), (("\x1b]0;title\x07",),), ("\x1b[1m",)))


@given(tables())
def test_markdown_has_the_same_columns_in_every_row(table: Table) -> None:
    lines = as_markdown(Table("", table.columns, table.rows)).removesuffix("\n").split("\n")
    assert len(lines) == len(table.rows) + 2
    for line in lines:
        # A pipe after a backslash is text for every reader of GitHub's tables.
        assert len(re.findall(r"(?<!\\)\|", line)) == len(table.columns) + 1


@given(CELL)
@example("]|(")
def test_markdown_escapes_what_html_and_emphasis_would_read(cell: str) -> None:
    row = as_markdown(Table("", (Column("a"),), ((cell,),))).splitlines()[2]
    # An escaped backslash is text, and escapes no neighbour.
    plain = re.sub(r"\\.", "x", row)
    assert not re.search(r"[`*_<>&~$]", plain)
    assert not re.search(r"\][(\[:]", plain)


def test_markdown_defuses_links_and_html() -> None:
    row = as_markdown(Table("", (Column("a"),), (("![x](http://a/b) <script>",),))).splitlines()[2]
    assert row == r"| ![x\](http://a/b) \<script\> |"


@given(tables())
def test_csv_reads_back_exactly(table: Table) -> None:
    assert list(csv.reader(io.StringIO(as_csv(table), newline=""))) == [list(table.names), *map(list, table.rows)]


def test_credit_out_of_a_count_is_printed_whole() -> None:
    assert share(12345, 18000) == "12345/18000"
    assert share(12345.0, 18000) == "12345/18000"
    assert share(1234567.5, 2000000) == "1234567.5/2000000"
    assert share(57.5, 75) == "57.5/75"
    assert share(sum([1 / 3] * 3), 3) == "1/3"
    assert share(12 + 1 / 3, 20) == "12.3/20"
    assert share(0, 0) == "0/0"
    assert share(None, 3) == share(3, None) == "-"


COMMANDS = r"\\(?:textbackslash|textasciitilde|textasciicircum|textless|textgreater|textbar)\{\}"


@given(CELL)
def test_latex_specials_are_escaped(cell: str) -> None:
    row = as_latex(Table("", (Column("a"),), ((cell,),))).split("\n")[6]
    assert row.endswith(r" \\")
    plain = re.sub(r"\\[{}$&#%_]", "", re.sub(COMMANDS, "", row.removesuffix(r" \\")))
    plain = re.sub(r"\{[\[\]*]\}|\{\}", "", plain)
    assert not re.search(r"[\\{}$&#%_~^<>|\[\]*]", plain)
    assert "--" not in row


@given(tables())
def test_latex_has_the_same_columns_in_every_row(table: Table) -> None:
    lines = as_latex(Table("", table.columns, table.rows)).split("\n")
    rows = [line for line in lines if line.endswith(r"\\")]
    assert len(rows) == len(table.rows) + 1
    for row in rows:
        assert len(re.findall(r"(?<!\\)&", row)) == len(table.columns) - 1


@given(tables())
def test_every_form_renders_any_table(table: Table) -> None:
    for render in RENDERERS.values():
        assert render(table).endswith("\n")


def test_rows_must_fit_the_columns() -> None:
    with pytest.raises(ValueError, match="'scores', row 2: 1 cells for 2 columns"):
        Table("scores", (Column("a"), Column("b")), (("1", "2"), ("3",)))
    with pytest.raises(ValueError, match="'scores' has no columns"):
        Table("scores", (), ())


@pytest.mark.parametrize(*cases(__file__, "test_numbers"))
def test_numbers(printed: str, expected: str) -> None:
    assert printed == expected


def test_combining_marks_take_no_width_and_control_characters_one() -> None:
    lines = as_text(
        Table("t", (Column("a", "left"), Column("b", "left")), (("e\u0301", "1"), ("ee", "2")))
    ).splitlines()
    assert [line.index(digit) - line.count("\u0301") for line, digit in zip(lines[-2:], "12", strict=True)] == [4, 4]
    assert "a\ufffdb" in as_text(Table("t", (Column("a"),), (("a\x07b",),)))


NUMBER = st.from_regex(
    r"[+-]?[0-9]{1,4}(\.[0-9]{1,3})?|\[-0\.[0-9]{3}, 0\.[0-9]{3}\]|[0-9]{1,3}/[0-9]{1,3}|-", fullmatch=True
)
NAME = st.sampled_from(["controller", "controller [blank]", "accuracy_macro", "a -> b", "Visual_Correspondence"]) | CELL
HEADING = st.sampled_from(["n", "none = chance", "both answered", "b - a, none = wrong", "p (Holm)"]) | CELL


@st.composite
def compared(draw: st.DrawFn) -> Table:
    """Return a table like those of comparisons: names at the left, then numbers, sometimes a text between them."""
    sides = ["left"] * draw(st.integers(1, 4)) + draw(
        st.lists(st.sampled_from(["right", "right", "left"]), max_size=12)
    )
    columns = tuple(Column(draw(HEADING), side) for side in sides)
    rows = draw(st.lists(st.tuples(*(NAME if side == "left" else NUMBER for side in sides)), max_size=6))
    if draw(st.booleans()):
        rows = [(rows[0][0], *row[1:]) for row in rows]
    notes = tuple(draw(st.lists(st.text(max_size=200), max_size=2)))
    return Table(draw(st.text(max_size=120)), columns, tuple(rows), notes)


@settings(max_examples=40)
@given(compared())
def test_a_narrow_table_stays_within_its_columns(table: Table) -> None:
    for line in as_narrow(table).split("\n"):
        assert display_width(line) <= NARROW


@settings(max_examples=40)
@given(compared())
def test_a_narrow_table_has_every_number_in_one_piece_and_every_name(table: Table) -> None:
    text = as_narrow(Table("", table.columns, table.rows))
    pieces = Counter(re.split(r"\s{2,}|\n", text))
    numbers = [cell for row in table.rows for cell, column in zip(row, table.columns, strict=True) if cell.strip()]
    for cell, count in Counter(
        number for number in numbers if re.search(r"[0-9]", number) and len(number) < 20
    ).items():
        if re.fullmatch(r"[-+0-9./]+|\[[-0-9., ]+\]", cell):
            assert pieces[cell] + text.count(cell) >= count
    for row in table.rows:
        for cell in row:
            for word in as_text(Table("", (Column("a", "left"),), ((cell,),))).splitlines()[-1].split():
                assert display_width(word) > 10 or word in text
