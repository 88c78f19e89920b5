"""A report as files: what its data files hold, which images come along, and that nothing half-written is left."""

import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.errors import DataError, UsageError
from hybrid.report.columns import Coded
from hybrid.report.data_files import as_json, script
from hybrid.report.payload import BenchmarkPages, Fact, Overview, Pages, QuestionPage
from hybrid.report.site import MARKER, write_site
from tests.hybrid.report import made_up_pages as made_up

ASSETS = Path(str(files("hybrid.report"))) / "assets"


def read(path: Path) -> Any:
    """The argument of a data file's one call, taken apart without running it."""
    line = path.read_bytes().decode("ascii")
    found = re.fullmatch(r'report\.take\(("(?:[^"\\]|\\.)*"), ("[0-9a-f]+"), ("(?:[^"\\]|\\.)*")\);\n', line)
    assert found, line[:200]
    return json.loads(json.loads(found[3]))


@pytest.fixture
def two(tmp_path: Path) -> Pages:
    pages = made_up.five_benchmarks(tmp_path / "store", 250)
    return replace(pages, benchmarks=pages.benchmarks[:2])


def one_benchmark(tmp_path: Path, **changes: Any) -> Pages:
    pages = made_up.five_benchmarks(tmp_path / "store", 12)
    return replace(pages, benchmarks=[replace(pages.benchmarks[0], **changes)])


def test_every_question_lies_in_its_place_in_the_chunks(two: Pages, tmp_path: Path) -> None:
    expected = [made_up.question_page(row, made_up.SOLVERS, None, 0) for row in made_up.rows_of(250, made_up.SOLVERS)]
    index = write_site(two, tmp_path / "site")
    assert index == tmp_path / "site" / "index.html"
    data = tmp_path / "site" / "data" / "blink"
    listed = read(data / "list.js")
    assert listed["starts"] == [0, 100, 200]
    chunks = [read(data / "questions" / f"{number}.js") for number in range(3)]
    assert [len(chunk) for chunk in chunks] == [100, 100, 50]
    questions = [question for chunk in chunks for question in chunk]
    assert [question["id"] for question in questions] == listed["ids"] == [page.id for page in expected]
    assert [q["solvers"][0]["asks"] for q in questions if q["solvers"][0]["outcome"] == "answered"]
    assert [q["solvers"][1]["answer"] for q in questions] == [page.solvers[1].answer for page in expected]


def test_the_columns_of_the_list_give_back_its_rows(two: Pages, tmp_path: Path) -> None:
    rows = made_up.rows_of(250, made_up.SOLVERS, 1)
    write_site(two, tmp_path / "site")
    listed = read(tmp_path / "site" / "data" / "actiview" / "list.js")

    def column(found: Any) -> list[Any]:
        return [found["values"][code] for code in found["codes"]]

    assert listed["ids"] == [row.id for row in rows]
    assert column(listed["cells"]["task"]) == [row.task for row in rows]
    assert all(text.startswith(row.text) for text, row in zip(column(listed["cells"]["words"]), rows, strict=True))
    assert column(listed["cells"]["sampled"]) == [row.sampled for row in rows]
    for place, solver in enumerate(listed["solvers"]):
        verdicts = [row.verdicts[place] for row in rows]
        assert column(solver["outcome"]) == [one.outcome for one in verdicts]
        assert column(solver["answer"]) == [one.answer for one in verdicts]
        assert column(solver["tool"]) == [list(one.tools) for one in verdicts]


def test_counts_open_the_rows_of_their_ids(two: Pages, tmp_path: Path) -> None:
    ids = {row.id: place for place, row in enumerate(made_up.rows_of(250, made_up.SOLVERS))}
    chart = two.benchmarks[0].overview.sections[2].charts[0]
    assert chart.kind == "counts"
    write_site(two, tmp_path / "site")
    shown = read(tmp_path / "site" / "data" / "blink" / "sections" / "harm.js")["charts"][0]["rows"]
    assert [(row["questions"], row["absent"]) for row in shown] == [
        ([ids[i] for i in row.ids], 0) for row in chart.rows
    ]
    assert [row["value"] for row in shown] == [row.value for row in chart.rows]
    heads = read(tmp_path / "site" / "data" / "blink" / "overview.js")["sections"]
    assert [set(head) for head in heads] == [{"id", "title", "lead"}] * 6


def test_the_first_page_is_light(two: Pages, tmp_path: Path) -> None:
    """Frame, scripts, style and the data of the first page: below 400 kB."""
    site = write_site(two, tmp_path / "site").parent
    data = [site / "data" / name for name in ("site.js", "blink/overview.js")]
    first = [site / "index.html", *(path for path in (site / "assets").rglob("*") if path.is_file()), *data]
    assert sum(path.stat().st_size for path in first) < 400_000


def test_images_come_along_once_and_as_they_are(two: Pages, tmp_path: Path) -> None:
    write_site(two, tmp_path / "site")
    found = sorted((tmp_path / "site" / "images").glob("*/*"))
    assert len(found) == 12
    for path in found:
        assert hashlib.sha256(path.read_bytes()).hexdigest() == path.stem
        assert path.parent.name == path.stem[:2]
        assert path.samefile(tmp_path / "store" / path.parent.name / path.stem)


def test_images_are_copied_where_they_cannot_be_linked(two: Pages, tmp_path: Path, monkeypatch: Any) -> None:
    def no_links(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr("os.link", no_links)
    write_site(two, tmp_path / "site")
    for path in (tmp_path / "site" / "images").glob("*/*"):
        assert hashlib.sha256(path.read_bytes()).hexdigest() == path.stem
        assert not path.samefile(tmp_path / "store" / path.parent.name / path.stem)


def test_an_image_that_the_store_lost_is_an_error_and_leaves_nothing(two: Pages, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "store")
    with pytest.raises(DataError, match="is not in the store"):
        write_site(two, tmp_path / "site")
    assert list(tmp_path.glob("*site*")) == []


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "images/ab/" + "c" * 64 + ".png", "images/cc/" + "c" * 64 + ".svg"]
)
def test_no_other_file_becomes_an_image(name: str, tmp_path: Path) -> None:
    row = made_up.rows_of(1, made_up.SOLVERS)[0]
    page = made_up.question_page(row, made_up.SOLVERS, made_up.stored_pictures(tmp_path / "store"), 0)
    page = replace(page, pictures=(replace(page.pictures[0], file=name),))
    with pytest.raises(ValueError, match="is not the place of an image"):
        write_site(one_benchmark(tmp_path, questions=iter([page])), tmp_path / "site")


def test_an_older_report_is_replaced_and_nothing_else_is(two: Pages, tmp_path: Path) -> None:
    out = tmp_path / "site"
    out.mkdir()
    write_site(one_benchmark(tmp_path), out)
    assert (out / "data" / "blink").is_dir()
    write_site(replace(one_benchmark(tmp_path, key="other"), title="newer"), out)
    assert not (out / "data" / "blink").exists()
    assert "<title>newer</title>" in (out / "index.html").read_text()
    assert [path.name for path in tmp_path.glob("*site*")] == ["site"]


@pytest.mark.parametrize("marker", [None, "[]", '{"report": "other"}', "\xff"])
def test_a_folder_of_something_else_is_refused(marker: str | None, tmp_path: Path) -> None:
    out = tmp_path / "site"
    out.mkdir()
    (out / "thesis.txt").write_text("three years of work")
    if marker is not None:
        (out / MARKER).write_text(marker, "latin-1")
    with pytest.raises(UsageError, match="holds something else than a report"):
        write_site(one_benchmark(tmp_path), out)
    assert (out / "thesis.txt").read_text() == "three years of work"
    with pytest.raises(UsageError, match="is a file"):
        write_site(one_benchmark(tmp_path), out / "thesis.txt")


class KeyPressed(Exception):
    """Somebody pressed a key."""


def test_an_interruption_leaves_the_older_report(tmp_path: Path) -> None:
    out = tmp_path / "site"
    write_site(one_benchmark(tmp_path), out)
    before = {path: path.read_bytes() for path in sorted(out.rglob("*.js"))}
    rows = made_up.rows_of(12, made_up.SOLVERS)

    def some() -> Iterator[QuestionPage]:
        yield made_up.question_page(rows[0], made_up.SOLVERS, None, 0)
        raise KeyPressed

    with pytest.raises(KeyPressed):
        write_site(one_benchmark(tmp_path, questions=some()), out)
    assert {path: path.read_bytes() for path in sorted(out.rglob("*.js"))} == before
    assert [path.name for path in tmp_path.glob("*site*")] == ["site"]


@pytest.mark.parametrize("key", ["", "../blink", "a/b", ".hidden", "a b"])
def test_a_key_that_is_no_name_of_a_folder_is_refused(key: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be the key"):
        write_site(one_benchmark(tmp_path, key=key), tmp_path / "site")


def test_a_key_that_is_there_twice_is_refused(two: Pages, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is there twice"):
        write_site(replace(two, benchmarks=[two.benchmarks[0]] * 2), tmp_path / "site")


def test_only_live_pages_may_ask_their_server(tmp_path: Path) -> None:
    still = write_site(one_benchmark(tmp_path), tmp_path / "still").read_text()
    assert "connect-src &#39;none&#39;" in still or "connect-src 'none'" in still
    assert not (tmp_path / "still" / "live.json").exists()
    live = write_site(replace(one_benchmark(tmp_path), live=True), tmp_path / "live").read_text()
    assert "connect-src 'self'" in live.replace("&#39;", "'")
    rows = made_up.rows_of(12, made_up.SOLVERS)
    told = json.loads((tmp_path / "live" / "live.json").read_text())
    assert told["answers"] == sum(one.outcome not in ("", "open") for row in rows for one in row.verdicts)
    assert told["version"] == json.loads((tmp_path / "live" / MARKER).read_text())["version"]


def test_the_title_is_no_markup(tmp_path: Path) -> None:
    page = write_site(made_up.hostile_pages(tmp_path / "store"), tmp_path / "site").read_text()
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
    found = re.fullmatch(rb'report\.take\("a/b", "0f", (".*")\);\n', line)
    assert found
    assert json.loads(json.loads(found[1])) == value


def test_numbers_that_json_lacks_are_words() -> None:
    assert json.loads(as_json({"a": [float("nan"), 1.5, Fact("x", "y")], "b": float("-inf")})) == {
        "a": ["nan", 1.5, {"name": "x", "value": "y"}],
        "b": "-inf",
    }
    with pytest.raises(TypeError, match="object has no form"):
        as_json([object()])


@given(st.lists(st.none() | st.booleans() | st.text(max_size=2) | st.tuples(st.text(max_size=1))))
def test_a_coded_column_gives_back_its_values(values: list[Any]) -> None:
    column = Coded()
    for value in values:
        column.add(value)
    assert [column.values[code] for code in column.codes] == values
    assert len(column.values) == len(set(values))


def test_a_question_with_another_number_of_solvers_is_refused(tmp_path: Path) -> None:
    (row,) = made_up.rows_of(1, made_up.SOLVERS[:2])
    page = made_up.question_page(row, made_up.SOLVERS[:2], None, 0)
    with pytest.raises(ValueError, match="2 entries for 3 solvers"):
        write_site(one_benchmark(tmp_path, questions=iter([page])), tmp_path / "site")


def test_a_report_of_nothing_is_a_report(tmp_path: Path) -> None:
    empty = Pages("nothing", "", [BenchmarkPages("blink", Overview("blink", "BLINK", ()), 0, iter(()))], tmp_path)
    write_site(empty, tmp_path / "site")
    assert read(tmp_path / "site" / "data" / "blink" / "list.js")["ids"] == []


def test_no_text_is_ever_parsed_as_markup() -> None:
    """No file of ours holds a call that could make an element or code of a text."""
    sinks = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser|srcdoc|\.html\("
    for path in ASSETS.glob("*.js"):
        assert re.findall(sinks, path.read_text()) == [], path.name


@pytest.mark.system
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_scripts_are_well_formed() -> None:
    for path in sorted(ASSETS.glob("*.js")):
        done = subprocess.run(["node", "--check", str(path)], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
