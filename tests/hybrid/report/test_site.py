"""A report as files: the content of its data files, the images that it includes, and no half-written file."""

import json
import re
import shutil
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.errors import DataError, UsageError
from hybrid.report.columns import Coded
from hybrid.report.data_files import as_json, script
from hybrid.report.payload import Fact, Pages
from hybrid.report.site import MARKER, write_site
from tests.hybrid.report import synthetic_pages as synthetic

ASSETS = Path(str(files("hybrid.report"))) / "assets"


def one_benchmark(tmp_path: Path, **changes: Any) -> Pages:
    pages = synthetic.five_benchmarks(tmp_path / "store", 12)
    return replace(pages, benchmarks=[replace(pages.benchmarks[0], **changes)])


def test_an_image_that_the_store_lost_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    pages = synthetic.five_benchmarks(tmp_path / "store", 250)
    two = replace(pages, benchmarks=pages.benchmarks[:2])
    shutil.rmtree(tmp_path / "store")
    with pytest.raises(DataError, match="is not in the store"):
        write_site(two, tmp_path / "site")
    assert list(tmp_path.glob("*site*")) == []


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "images/ab/" + "c" * 64 + ".png", "images/cc/" + "c" * 64 + ".svg"]
)
def test_no_other_file_becomes_an_image(name: str, tmp_path: Path) -> None:
    row = synthetic.rows_of(1, synthetic.SOLVERS)[0]
    page = synthetic.question_page(row, synthetic.SOLVERS, synthetic.stored_pictures(tmp_path / "store"), 0)
    page = replace(page, pictures=(replace(page.pictures[0], file=name),))
    with pytest.raises(ValueError, match="is not the path of an image"):
        write_site(one_benchmark(tmp_path, questions=iter([page])), tmp_path / "site")


@pytest.mark.parametrize("marker", [None, "[]", '{"report": "other"}', "\xff"])
def test_a_folder_of_something_else_is_refused(marker: str | None, tmp_path: Path) -> None:
    out = tmp_path / "site"
    out.mkdir()
    (out / "thesis.txt").write_text("three years of work")
    if marker is not None:
        (out / MARKER).write_text(marker, "latin-1")
    with pytest.raises(UsageError, match="contains something other than a report"):
        write_site(one_benchmark(tmp_path), out)
    assert (out / "thesis.txt").read_text() == "three years of work"
    with pytest.raises(UsageError, match="is a file"):
        write_site(one_benchmark(tmp_path), out / "thesis.txt")


@pytest.mark.parametrize("key", ["", "../blink", "a/b", ".hidden", "a b"])
def test_a_key_that_is_no_name_of_a_folder_is_refused(key: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be the key"):
        write_site(one_benchmark(tmp_path, key=key), tmp_path / "site")
    twice = one_benchmark(tmp_path)
    with pytest.raises(ValueError, match="appears twice"):
        write_site(replace(twice, benchmarks=[*twice.benchmarks] * 2), tmp_path / "site")


@pytest.mark.system
def test_the_title_is_no_markup(tmp_path: Path) -> None:
    page = write_site(synthetic.hostile_pages(tmp_path / "store"), tmp_path / "site").read_text()
    assert "<title>&lt;script&gt;" in page
    # Every script is a file of the report.
    assert re.findall(r"<script(?! defer src=\"(?:assets|data)/[\w./-]+\"></script>)[^>]*>", page) == []


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_a_data_file_gives_back_what_was_put_in(value: Any) -> None:
    line = script("a/b", "0f", value)
    assert line.isascii()
    match = re.fullmatch(rb'report\.take\("a/b", "0f", (".*")\);\n', line)
    assert match
    assert json.loads(json.loads(match[1])) == value


def test_numbers_that_json_lacks_are_words() -> None:
    assert json.loads(as_json({"a": [float("nan"), 1.5, Fact("x", "y")], "b": float("-inf")})) == {
        "a": ["nan", 1.5, {"name": "x", "value": "y"}],
        "b": "-inf",
    }
    with pytest.raises(TypeError, match="object cannot be written"):
        as_json([object()])


@given(st.lists(st.none() | st.booleans() | st.text(max_size=2) | st.tuples(st.text(max_size=1))))
def test_a_coded_column_gives_back_its_values(values: list[Any]) -> None:
    column = Coded()
    for value in values:
        column.add(value)
    assert [column.values[code] for code in column.codes] == values
    assert len(column.values) == len(set(values))


def test_a_question_with_another_number_of_solvers_is_refused(tmp_path: Path) -> None:
    (row,) = synthetic.rows_of(1, synthetic.SOLVERS[:2])
    page = synthetic.question_page(row, synthetic.SOLVERS[:2], None, 0)
    with pytest.raises(ValueError, match="2 entries for 3 solvers"):
        write_site(one_benchmark(tmp_path, questions=iter([page])), tmp_path / "site")


def test_no_text_is_ever_parsed_as_markup() -> None:
    """None of the site's scripts contains a call that could turn text into markup or code."""
    sinks = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser|srcdoc|\.html\("
    for path in ASSETS.glob("*.js"):
        assert re.findall(sinks, path.read_text()) == [], path.name
