"""The pages in a real browser: the chromium of the system, driven by playwright."""

import csv
import json
import os
import shutil
import threading
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from hybrid.report.overview import GAIN
from hybrid.report.payload import Tag
from hybrid.report.site import write_site
from tests.hybrid.report import made_up_pages as made_up
from tests.hybrid.report.made_up_pages import QuestionRow, RowVerdict

pytest.importorskip("playwright", reason="playwright is of the group dev")
pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is of the group dev")

from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt install chromium, or name one in CHROMIUM")

DESK = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
TAGS = (Tag("blink", "val_Counting_0", "mllm", "counts wrongly", "one too few"),)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # Closed with this file: its loop would be the running one of every asyncio test after it.
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield started
        started.close()


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a report over five benchmarks."""
    folder = tmp_path_factory.mktemp("five")
    return write_site(made_up.five_benchmarks(folder / "store", tags=TAGS), folder / "site").as_uri()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a report in which every text would do harm if it were more than a text."""
    folder = tmp_path_factory.mktemp("hostile")
    return write_site(made_up.hostile_pages(folder / "store"), folder / "site").as_uri()


class Watched:
    """A page and everything that went wrong on it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.wrong: list[str] = []
        page.on("console", lambda said: self.wrong.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("requestfailed", lambda request: self.wrong.append(request.url))
        page.on("dialog", lambda dialog: (self.wrong.append(dialog.message), dialog.dismiss()))

    def open(self, address: str) -> Page:
        self.page.goto(address)
        self.page.wait_for_selector("main[data-view]")
        return self.page


@pytest.fixture
def opened(browser: Browser) -> Iterator[Callable[..., Watched]]:
    """Makes pages in contexts of their own; what went wrong on any of them fails the test."""
    made: list[Watched] = []

    def new(size: dict[str, int] = DESK, scheme: Any = "light", **more: Any) -> Watched:
        context = browser.new_context(viewport=size, color_scheme=scheme, **more)  # type: ignore[arg-type]
        made.append(Watched(context.new_page()))
        return made[-1]

    yield new
    for one in made:
        one.page.context.close()
    assert [found for one in made for found in one.wrong] == []


def shown_count(page: Page) -> int:
    return int(page.locator(".count").get_attribute("data-count") or -1)


def rows_of(seed: int = 0) -> list[QuestionRow]:
    return made_up.rows_of(60, made_up.SOLVERS, seed)


# --- the report as a whole -----------------------------------------------------------------------------------------


def test_every_page_of_five_benchmarks_opens_from_disk(opened: Any, five: str) -> None:
    watched = opened()
    for number, (key, title) in enumerate(made_up.TITLES.items()):
        page = watched.open(f"{five}#/{key}")
        expect(page.locator("h1")).to_have_text(title)
        expect(page.locator(".chart svg")).to_have_count(3)
        unfold(page)
        expect(page.locator(".section .chart")).to_have_count(6)
        page.locator(".views a", has_text="Questions").click()
        expect(page.locator(".count")).to_have_text("60 questions")
        page.locator(".rows a").first.click()
        expect(page.locator("h1")).to_have_text(rows_of(number)[0].id)
        expect(page.locator(".column")).to_have_count(3)
        page.locator(".views a", has_text="Error sheet").click()
        expect(page.locator(".entry")).to_have_count(sum(row.sampled for row in rows_of(number)))


def test_charts_tell_their_numbers_without_being_seen(opened: Any, five: str) -> None:
    page = opened().open(f"{five}#/blink/s/accuracy")
    page.wait_for_selector("#s-accuracy svg")
    labels = page.eval_on_selector_all("#s-accuracy svg", "all => all.map((one) => one.getAttribute('aria-label'))")
    rows = [row for row in rows_of() if row.task == "Counting" and row.verdicts[0].correct is not None]
    mean = sum(row.verdicts[0].correct or 0 for row in rows) / len(rows)
    assert any(f"controller: {mean:.3f}" in label for label in labels)


def test_the_same_solver_has_one_colour_in_every_chart(opened: Any, five: str) -> None:
    page = opened().open(f"{five}#/blink/s/cost")
    page.wait_for_selector("#s-cost svg")
    fills = page.evaluate(
        """() => ['.front-values', '#s-cost'].map((place) => [...document.querySelectorAll(`${place} svg [fill]`)]
             .map((one) => one.getAttribute('fill')).filter((one) => /--(hybrid|mllm|specialist)-[0-9]/.test(one)))"""
    )
    own = {"var(--hybrid-0)", "var(--mllm-0)", "var(--specialist-0)"}
    assert [set(found) for found in fills] == [own, own]


def test_differences_have_a_line_each_however_few_they_are(opened: Any, tmp_path: Path) -> None:
    """One or two lines are a kind of scale of their own to the library that draws them."""
    for lines in (1, 2, 3, 30):
        address = write_site(made_up.differences(tmp_path / "store", lines), tmp_path / str(lines)).as_uri()
        page = opened().open(f"{address}#/blink")
        expect(page.locator(".front-tasks svg circle")).to_have_count(lines)
        names = page.eval_on_selector_all(".front-tasks svg text", "all => all.map((one) => one.textContent)")
        assert [name for name in names if name.startswith("task ")] == [f"task {place}" for place in range(lines)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_the_first_screen_holds_conclusion_and_charts(
    size: dict[str, int], scheme: str, opened: Any, tmp_path: Path
) -> None:
    """Five sentences, four solvers, 14 tasks: on a desk all of it, on a phone the values begin on the first screen."""
    solvers = (*made_up.SOLVERS, replace(made_up.SOLVERS[0], name="controller [blank]", control="blank"))
    made = made_up.benchmark_pages("blink", made_up.rows_of(84, solvers), None, solvers)
    steps, values, tasks = made.overview.front
    rows = [one for one in tasks.rows if one.a == "mllm"]
    more = tuple(replace(row, group=f"{row.group}_{place}") for place in range(3) for row in rows)[:14]
    made = replace(made, overview=replace(made.overview, front=(steps, values, replace(tasks, rows=more))))
    pages = replace(made_up.five_benchmarks(tmp_path / "store", 1), title="BLINK", benchmarks=[made])
    page = opened(size, scheme).open(write_site(pages, tmp_path / "site").as_uri())
    page.wait_for_selector(".front-tasks svg")
    boxes = {
        name: page.locator(name).bounding_box()
        for name in (".conclusion", ".front-steps", ".front-values", ".front-tasks svg")
    }
    lowest = {name: box["y"] + box["height"] for name, box in boxes.items() if box}
    assert page.locator(".sentence").count() == 5
    assert max(lowest[".conclusion"], lowest[".front-steps"]) <= 800
    if size == DESK:
        assert max(lowest.values()) <= size["height"]
    else:
        assert (boxes[".front-values"] or {})["y"] + 60 <= size["height"]
    assert page.locator(".front-tasks svg a").count() == 14


def labels_outside(page: Page) -> list[str]:
    """Labels of charts that are cut: that reach out of their chart."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll('.plot svg')].flatMap((svg) => {
             const out = svg.getBoundingClientRect();
             return [...svg.querySelectorAll('text')].filter((text) => {
               const box = text.getBoundingClientRect();
               return box.left < out.left - 1 || box.right > out.right + 1 || box.bottom > out.bottom + 1;
             }).map((text) => text.textContent);
           })"""
    )
    return found


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_nine_solvers_fit_every_page(width: int, opened: Any, tmp_path: Path) -> None:
    """Nothing scrolls sideways, and no name is cut."""
    first = made_up.SOLVERS[0]
    names = [f"controller [anthropic:claude-opus-{n}; blank]" for n in range(6)]
    solvers = (*made_up.SOLVERS, *(replace(first, name=name) for name in names))
    made = made_up.benchmark_pages("blink", made_up.rows_of(12, solvers), None, solvers)
    pages = replace(made_up.five_benchmarks(tmp_path / "store", 1), benchmarks=[made])
    site = write_site(pages, tmp_path / "site").as_uri()
    watched = opened({"width": width, "height": 800})
    for view in ("#/blink", "#/blink/list", "#/blink/q/val_Counting_0", "#/blink/errors"):
        page = watched.open(site + view)
        unfold(page)
        wider = page.evaluate(
            """() => [document.documentElement, ...document.querySelectorAll('main *')].filter((one) =>
                 one.scrollWidth > one.clientWidth + 1 &&
                 (one === document.documentElement || /auto|scroll/.test(getComputedStyle(one).overflowX)))
                 .map((one) => one.className || one.tagName)"""
        )
        assert wider == [], view
        assert labels_outside(page) == [], view
        for head in page.locator(".head .solver").all():
            assert head.evaluate("one => one.scrollWidth <= one.clientWidth + 1"), view


def test_of_nine_solvers_a_phone_shows_the_first_chart_whole(opened: Any, tmp_path: Path) -> None:
    """Two solvers with tools, all names as long as a conclusion prints them, and the sentences of several."""
    first, alone, *_ = made_up.SOLVERS
    long = {first.name: "controller [anthropic:claude-opus-4; demonstration model; shown]"}
    long |= {alone.name: "mllm [anthropic:claude-opus-4; demonstration model; shown]"}
    named = "controller [anthropi…; blank], verify [anthropic:cla…l; blank], controller [openai:gp…; blank]"
    sentences = (
        f"Next to its model alone, over 6 to 1200 questions and adjusted (Holm) for 3 tests: none for {named}.",
        f"Next to the specialists alone: no difference shown for {named}.",
        f"With tools next to blank tools: no difference shown for {named}.",
        f"Tasks where the interval of the difference to the model alone is below 0: {named}.",
        "Limits: 29 are not asked yet; generated questions say nothing of real pictures; 6 questions show 87 points",
    )
    names = [*long.values(), *(f"controller [anthropic:claude-opus-{n}; blank]" for n in range(6))]
    solvers = (*made_up.SOLVERS, *(replace(first, name=name) for name in names))
    made = made_up.benchmark_pages("blink", made_up.rows_of(12, solvers), None, solvers)
    steps, *others = made.overview.front
    rows = tuple(replace(row, a=long.get(row.a, row.a), b=long.get(row.b or "", row.b)) for row in steps.rows)
    front = (*(replace(steps, title=f"{GAIN} (no answer counts as wrong)", rows=rows) for _ in range(2)), *others)
    made = replace(made, overview=replace(made.overview, front=front, conclusion=sentences))
    pages = replace(made_up.five_benchmarks(tmp_path / "store", 1), title="BLINK", benchmarks=[made])
    page = opened(PHONE).open(write_site(pages, tmp_path / "site").as_uri())
    page.wait_for_selector(".front-steps svg")
    box = page.locator(".front-steps").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= PHONE["height"]
    assert labels_outside(page) == []
    labels = page.locator(".front-steps svg tspan").all_text_contents()
    assert any(label.endswith("shown]") for label in labels)
    assert not [label for label in labels if label.endswith("…")]


def test_the_values_of_nine_solvers_end_on_a_phones_first_screen(opened: Any, tmp_path: Path) -> None:
    first = made_up.SOLVERS[0]
    names = ("controller [blank]", "controller [shuffled]", "controller [oracle]", "result_only", "verify", "text_only")
    solvers = (*made_up.SOLVERS, *(replace(first, name=name) for name in names))
    made = made_up.benchmark_pages("blink", made_up.rows_of(84, solvers), None, solvers)
    pages = replace(made_up.five_benchmarks(tmp_path / "store", 1), title="BLINK", benchmarks=[made])
    page = opened(PHONE).open(write_site(pages, tmp_path / "site").as_uri())
    page.wait_for_selector(".front-values svg")
    box = page.locator(".front-values > .chart").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= PHONE["height"]


def test_a_task_and_its_dot_open_its_questions(opened: Any, five: str) -> None:
    page = opened().open(f"{five}#/blink")
    page.get_by_role("combobox", name="Which solvers").select_option(label="controller − specialist")
    page.locator('.front-tasks svg a[aria-label^="Jigsaw"]').click()
    expect(page.locator(".count")).to_have_attribute("data-count", str(sum(r.task == "Jigsaw" for r in rows_of())))
    page.go_back()
    page.locator('.front-values svg a[aria-label^="mllm"]').last.click()
    wrong = sum(says(row.verdicts[1]) == "wrong" for row in rows_of())
    expect(page.locator(".count")).to_have_attribute("data-count", str(wrong))


def test_a_step_stands_where_the_one_before_ends_and_opens_its_questions(opened: Any, five: str) -> None:
    page = opened().open(f"{five}#/blink")
    page.wait_for_selector(".front-steps svg")
    expect(page.locator(".front > :first-child > :first-child")).to_have_class("front-steps")
    bars = page.eval_on_selector_all(
        ".front-steps svg rect:not(.hit)",
        "all => all.map((one) => [one.x.baseVal.value, one.x.baseVal.value + one.width.baseVal.value])",
    )
    (zero, alone), gain, schema, harm, (begin, with_tools) = bars
    assert begin == zero
    assert (gain[0], schema[0], harm[1]) == pytest.approx((alone, gain[1], schema[1]), abs=1.5)
    assert with_tools == pytest.approx(harm[0], abs=1.5)
    (steps, *_) = made_up.benchmark_pages("blink", rows_of(), None).overview.front
    for row in (row for row in steps.rows if row.ids):
        page.locator(f'.front-steps svg a[aria-label*="{row.quantity}"]').click()
        expect(page.locator(".count")).to_have_attribute("data-count", str(len(row.ids)))
        expect(page.locator(".chip").first).to_contain_text(row.quantity)
        page.go_back()


def test_every_chart_is_saved_as_svg_png_and_csv(opened: Any, five: str, tmp_path: Path) -> None:
    def page() -> Page:
        shown = opened(accept_downloads=True, scheme="dark").open(f"{five}#/blink")
        unfold(shown)
        return shown

    figures = page().locator("figure.chart")
    for number in range(figures.count()):
        if number % 3 == 2:
            # Chromium drops what one page saves beyond ten files in a second.
            figures = page().locator("figure.chart")
        saved: dict[str, Path] = {}
        for form in ("SVG", "PNG", "csv"):
            with figures.page.expect_download() as waiting:
                figures.nth(number).get_by_role("button", name=f"Save the chart as {form}").click()
            saved[form] = tmp_path / waiting.value.suggested_filename
            waiting.value.save_as(saved[form])
        svg = saved["SVG"].read_text()
        # Alone, in the light theme, without the addresses of the report.
        assert ET.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314 - written by our own page
        assert "var(--" not in svg
        assert "href" not in svg
        assert "#1b1f23" in svg
        with Image.open(saved["PNG"]) as picture:
            assert picture.width >= 900
            assert len(picture.convert("RGB").getcolors(1 << 24) or ()) > 3
        with saved["csv"].open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert rows
        assert all(float(row["value"]) == float(row["value"]) for row in rows)
    lines = csv.DictReader((tmp_path / "blink-values.csv").read_text().splitlines())
    first = {row["a"]: float(row["value"]) for row in lines}
    assert first["mllm"] == made_up.share_of(rows_of(), 1)[0]


def test_without_scripts_the_headline_is_read(browser: Browser, five: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(five)
    expect(page.locator("h1")).to_have_text(list(made_up.TITLES.values()))
    expect(page.locator(".sentence")).to_have_text([*made_up.SENTENCES] * 5)
    cells = page.locator("table").first.locator("tbody tr").nth(1).locator("td").all_inner_texts()
    share, n = made_up.share_of(rows_of(), 1)
    assert cells == ["mllm", f"{share:.3f}", str(n)]
    context.close()


def test_settings_and_versions_stand_in_a_drawer(opened: Any, five: str) -> None:
    page = opened().open(f"{five}#/blink")
    expect(page.get_by_text("fingerprint 4b825dc6")).to_have_count(0)
    page.get_by_role("button", name="What was run").click()
    expect(page.get_by_role("dialog")).to_contain_text("fingerprint 4b825dc6")
    expect(page.get_by_role("dialog")).to_contain_text("hybrid report runs/* -o site")
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)


def test_a_link_to_a_section_shows_it(opened: Any, five: str) -> None:
    page = opened().open(f"{five}#/blink/s/cost")
    expect(page.locator("#s-cost h2")).to_be_in_viewport()
    expect(page.locator("#s-cost svg")).to_be_visible()


def test_a_benchmark_and_a_question_that_are_not_there(opened: Any, five: str) -> None:
    page = opened().open(f"{five}#/blink/q/nobody")
    expect(page.locator("h1")).to_have_text("No such question")
    expect(opened().open(f"{five}#/other/list").locator("h1")).to_have_text("BLINK")


# --- the list ------------------------------------------------------------------------------------------------------


def says(verdict: RowVerdict) -> str:
    if verdict.outcome != "answered":
        return "failed" if verdict.outcome == "outage" else "none"
    return {0.0: "wrong", 1.0: "right"}.get(verdict.correct or 0.0, "partly")


FILTERS: Sequence[tuple[str, Callable[[QuestionRow], bool]]] = (
    ("task=Jigsaw", lambda row: row.task == "Jigsaw"),
    ("verdict=mllm%2Fright", lambda row: says(row.verdicts[1]) == "right"),
    ("verdict=mllm%2Fnone", lambda row: says(row.verdicts[1]) == "none"),
    (
        "verdict=mllm%2Fwrong&verdict=controller%2Fright&task=Counting",
        lambda row: (says(row.verdicts[1]), says(row.verdicts[0]), row.task) == ("wrong", "right", "Counting"),
    ),
    ("pair=0.helped", lambda row: (says(row.verdicts[1]), says(row.verdicts[0])) == ("wrong", "right")),
    ("pair=1.harmed", lambda row: (says(row.verdicts[2]), says(row.verdicts[0])) == ("right", "wrong")),
    ("tool=*%2Fdepth", lambda row: any("depth" in one.tools for one in row.verdicts)),
    ("tool=controller%2Fdepth", lambda row: "depth" in row.verdicts[0].tools),
    ("outcome=*%2Fabstained", lambda row: any(one.outcome == "abstained" for one in row.verdicts)),
    ("outcome=mllm%2Fanswered", lambda row: row.verdicts[1].outcome == "answered"),
    ("sampled=1", lambda row: row.sampled),
    ("text=COUNTING+picture", lambda row: "counting" in row.id.lower() and "picture" in row.text),
    ("text=%28C%29", lambda row: any("(C)" in one.answer for one in row.verdicts)),
    (
        "cell=harm.0.2",
        lambda row: (
            (row.verdicts[1].correct, row.verdicts[0].correct) == (0.0, 1.0)
            and {row.verdicts[0].outcome, row.verdicts[1].outcome} == {"answered"}
        ),
    ),
    ("task=No_such_task", lambda row: False),
)


def test_filters_keep_what_they_say(opened: Any, five: str) -> None:
    rows = rows_of()
    page = opened().open(f"{five}#/blink/list")
    for query, keeps in FILTERS:
        expected = [row.id for row in rows if keeps(row)]
        page.evaluate("hash => { location.hash = hash; }", f"#/blink/list?{query}")
        expect(page.locator(".count")).to_have_attribute("data-count", str(len(expected)))
        page.wait_for_function("() => report.route(location.hash).query.toString() !== ''")
        ids = page.eval_on_selector_all(".rows a", "all => all.map((one) => one.textContent)")
        assert ids == expected[: len(ids)], query
        assert len(ids) >= min(len(expected), 10), query


def test_the_form_writes_the_address_and_the_back_button_reads_it(opened: Any, five: str) -> None:
    rows = rows_of()
    page = opened().open(f"{five}#/blink/list")
    task = page.get_by_role("combobox", name="Task", exact=True)
    task.select_option("Jigsaw")
    expect(page.locator(".count")).to_have_attribute("data-count", str(sum(row.task == "Jigsaw" for row in rows)))
    page.locator("#search").fill("val_jigsaw_2")
    found = sum("val_jigsaw_2" in row.id.lower() for row in rows)
    expect(page.locator(".count")).to_have_attribute("data-count", str(found))
    assert page.evaluate("location.hash") == "#/blink/list?task=Jigsaw&text=val_jigsaw_2"
    expect(page.locator("#search")).to_be_focused()
    page.go_back()
    expect(page.locator(".count")).to_have_text("60 questions")
    expect(task).to_have_value("")
    page.go_forward()
    expect(page.locator(".count")).to_have_attribute("data-count", str(found))
    expect(task).to_have_value("Jigsaw")
    page.get_by_role("button", name="Clear all filters").click()
    expect(page.locator(".count")).to_have_text("60 questions")


def test_a_count_opens_its_questions(opened: Any, five: str) -> None:
    page = opened().open(f"{five}#/blink/s/harm")
    count = page.locator(".counts a", has_text="right -> wrong")
    n = count.inner_text().split()[-1]
    count.click()
    expect(page.locator(".count")).to_have_attribute("data-count", n)
    expect(page.locator(".chip").first).to_contain_text("right -> wrong")


def test_a_long_list_has_few_elements_and_shows_its_end(browser: Browser, opened: Any, tmp_path: Path) -> None:
    pages = replace(made_up.five_benchmarks(tmp_path / "store", 1), benchmarks=[made_up.many_questions(5000)])
    page = opened().open(write_site(pages, tmp_path / "site").as_uri() + "#/blink/list")
    expect(page.locator(".count")).to_have_text("5,000 questions")
    assert page.locator(".rows .row").count() < 60
    page.evaluate("scrollTo({ top: document.body.scrollHeight, behavior: 'instant' })")
    last = page.locator(".rows a[data-place='4999']")
    expect(last).to_be_in_viewport()
    assert page.locator(".rows .row").count() < 60
    last.click()
    expect(page.locator(".where")).to_have_text("5,000 of 5,000")
    page.go_back()
    expect(last).to_be_in_viewport()


# --- a question ----------------------------------------------------------------------------------------------------


def test_a_deep_link_opens_its_question_among_those_of_its_filters(opened: Any, five: str) -> None:
    rows = [row for row in rows_of() if row.task == "Jigsaw"]
    page = opened().open(f"{five}#/blink/q/{quote(rows[1].id)}?task=Jigsaw")
    expect(page.locator("h1")).to_have_text(rows[1].id)
    expect(page.locator(".where")).to_have_text(f"2 of {len(rows)} in the filtered list")
    page.get_by_role("link", name="Next").click()
    expect(page.locator("h1")).to_have_text(rows[2].id)
    page.get_by_role("link", name="Previous").click()
    page.get_by_role("link", name="Previous").click()
    expect(page.locator("h1")).to_have_text(rows[0].id)
    page.get_by_role("link", name="List").click()
    expect(page.locator(".count")).to_have_attribute("data-count", str(len(rows)))


def test_a_question_shows_each_solvers_way(opened: Any, five: str) -> None:
    row = next(one for one in rows_of() if len(one.verdicts[0].tools) == 2 and says(one.verdicts[0]) == "right")
    page = opened().open(f"{five}#/blink/q/{quote(row.id)}")
    column = page.locator(".column").first
    expect(column.locator(".said-verdict")).to_contain_text("right")
    expect(column.locator(".answer-said")).to_have_text(row.verdicts[0].answer)
    expect(column.locator(".outcome")).to_contain_text("letter in brackets")
    expect(column.locator(".step.is-tool .call").first).to_have_text(
        f'{row.verdicts[0].tools[0]}(image: "img:1", labels: ["A","B"])'
    )
    expect(column.locator(".fault")).to_have_text("fault: tool_error")
    expect(column.locator(".usage")).to_contain_text("1,234 tokens in, 87 out")
    column.locator(".step.is-tool details summary").first.click()
    expect(column.locator(".step.is-tool details").first).to_contain_text("depth_0_1")


def test_an_overlay_slides_over_its_image_and_images_are_enlarged(opened: Any, five: str) -> None:
    row = next(one for one in rows_of() if one.verdicts[0].tools)
    page = opened().open(f"{five}#/blink/q/{quote(row.id)}")
    figure = page.locator(".picture.over").first
    expect(figure.locator("img")).to_have_count(2)
    figure.locator("input[type=range]").fill("30")
    clip = figure.locator("img").nth(1).evaluate("one => one.style.clipPath")
    assert clip == "inset(0px 70% 0px 0px)"
    boxes = figure.locator("img").evaluate_all("all => all.map((one) => JSON.stringify(one.getBoundingClientRect()))")
    assert boxes[0] == boxes[1]
    page.locator(".asked .enlarge").click()
    expect(page.locator("dialog.enlarged img")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    expect(page.locator("h1")).to_have_text(row.id)


# --- the keyboard --------------------------------------------------------------------------------------------------


def test_the_keyboard_goes_everywhere(opened: Any, five: str) -> None:
    rows = rows_of()
    page = opened().open(f"{five}#/blink")
    keys = page.keyboard
    keys.press("/")
    expect(page.locator("#search")).to_be_focused()
    keys.type("jk[]?")  # are letters there
    expect(page.locator(".count")).to_have_attribute("data-count", "0")
    page.locator("#search").fill("")
    keys.press("Escape")
    expect(page.locator(".count")).to_have_text("60 questions")
    for _ in range(3):
        keys.press("j")
    keys.press("ArrowDown")
    keys.press("k")
    expect(page.locator(".rows a[data-place='2']")).to_be_focused()
    keys.press("Enter")
    expect(page.locator("h1")).to_have_text(rows[2].id)
    keys.press("ArrowRight")
    expect(page.locator("h1")).to_have_text(rows[3].id)
    keys.press("j")
    expect(page.locator("h1")).to_have_text(rows[4].id)
    keys.press("k")
    expect(page.locator("h1")).to_have_text(rows[3].id)
    keys.press("Escape")
    expect(page.locator(".rows .row.active a")).to_have_text(rows[3].id)
    keys.press("]")
    expect(page.locator(".tabs [aria-current]")).to_have_text("ActiView")
    keys.press("[")
    keys.press("[")
    expect(page.locator(".tabs [aria-current]")).to_have_text("HVSBench")
    keys.press("Escape")
    expect(page.locator("main")).to_have_attribute("data-view", "overview")
    keys.press("?")
    expect(page.locator("dialog.keys")).to_be_visible()
    keys.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    expect(page.locator("main")).to_have_attribute("data-view", "overview")


def test_tab_reaches_a_question_and_the_focus_is_seen(opened: Any, five: str) -> None:
    page = opened().open(f"{five}#/blink/list")
    link = page.locator(".rows a").first
    for _ in range(40):
        page.keyboard.press("Tab")
        if link.evaluate("one => one === document.activeElement"):
            break
    expect(link).to_be_focused()
    assert link.evaluate("one => getComputedStyle(one, '::after').outlineStyle") == "solid"


# --- the error sheet -----------------------------------------------------------------------------------------------


def test_tags_are_kept_saved_read_and_tabulated(opened: Any, five: str, tmp_path: Path) -> None:
    watched = opened(accept_downloads=True)
    page = watched.open(f"{five}#/blink/errors")
    expect(page.locator(".tabulated tbody tr").first).to_have_text("counts wrongly11")
    expect(page.get_by_label("Note: mllm, val_Counting_0")).to_have_value("one too few")
    row = next(one for one in rows_of() if one.sampled and one.task == "Jigsaw")
    solver = next(name.name for name, one in zip(made_up.SOLVERS, row.verdicts, strict=True) if says(one) == "wrong")
    page.get_by_label(f"Tag: {solver}, {row.id}").fill("<b>seam</b>")
    page.get_by_label(f"Note: {solver}, {row.id}").fill("looks alike")
    page.keyboard.press("Tab")
    expect(page.locator(".tabulated tbody tr")).to_have_count(3)
    page.reload()
    expect(page.get_by_label(f"Tag: {solver}, {row.id}")).to_have_value("<b>seam</b>")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save tags.json").click()
    saved = json.loads(Path(waiting.value.path()).read_text())
    assert saved == {
        "format": 1,
        "tags": [
            {"benchmark": "blink", "question": "val_Counting_0", "solver": "mllm", "tag": "counts wrongly",
             "note": "one too few"},
            {"benchmark": "blink", "question": row.id, "solver": solver, "tag": "<b>seam</b>", "note": "looks alike"},
        ],
    }  # fmt: skip
    # Somebody else reads the file.
    other = opened().open(f"{five}#/blink/errors")
    expect(other.get_by_label(f"Tag: {solver}, {row.id}")).to_have_value("")
    file = tmp_path / "tags.json"
    file.write_text(json.dumps(saved))
    other.locator("#tags-file").set_input_files(file)
    expect(other.get_by_label(f"Tag: {solver}, {row.id}")).to_have_value("<b>seam</b>")
    expect(other.locator("p[role=status]")).to_contain_text("2 tags read from tags.json")


def test_a_sheet_without_questions_says_first_how_to_get_some(opened: Any, tmp_path: Path) -> None:
    pages = made_up.five_benchmarks(tmp_path / "store", 6)
    bench = made_up.benchmark_pages("blink", [replace(row, sampled=False) for row in rows_of()[:6]], None)
    site = write_site(replace(pages, benchmarks=[bench]), tmp_path / "site").as_uri()
    page = opened().open(f"{site}#/blink/errors")
    expect(page.locator("h1 + *")).to_contain_text("No questions were sampled.")
    expect(page.locator(".lead")).to_have_count(0)
    # Tags of another report can still be looked at.
    expect(page.get_by_role("button", name="Save tags.json")).to_be_visible()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "this is not JSON"),
        ("null", 'expected {"format": 1, "tags": [...]}'),
        ('{"format": 2, "tags": []}', 'expected {"format": 1'),
        ('{"format": 1, "tags": [{"benchmark": "b", "question": "q", "tag": "t"}]}', "tag 1 has no solver"),
        ('{"format": 1, "tags": [null]}', "tag 1 has no benchmark"),
    ],
)
def test_a_file_that_is_none_of_tags_is_told(text: str, told: str, opened: Any, five: str, tmp_path: Path) -> None:
    page = opened().open(f"{five}#/blink/errors")
    (tmp_path / "some.json").write_text(text)
    page.locator("#tags-file").set_input_files(tmp_path / "some.json")
    expect(page.locator("p[role=status]")).to_contain_text(f"some.json: {told}")
    expect(page.locator(".tabulated tbody tr")).to_have_count(2)


def test_a_browser_that_keeps_nothing_is_told_of(opened: Any, five: str) -> None:
    watched = opened()
    watched.page.add_init_script("Object.defineProperty(window, 'localStorage', { get() { throw new Error('no'); } })")
    page = watched.open(f"{five}#/blink/errors")
    expect(page.locator("p[role=status]")).to_contain_text("keeps nothing for pages such as this one")


def unfold(page: Page) -> None:
    """Open everything that is folded, and wait until it is filled."""
    page.evaluate("document.querySelectorAll('details.fold').forEach((one) => { one.open = true; })")
    page.wait_for_function(
        """() => [...document.querySelectorAll('details.fold')].every((one) =>
             one.classList.contains('section') ? one.dataset.filled : one.children.length > 1) &&
             [...document.querySelectorAll('.plot')].every((one) => one.firstChild)"""
    )


# --- everybody -----------------------------------------------------------------------------------------------------

VIEWS = ("#/blink", "#/blink/list", "#/blink/list?task=Jigsaw", "#/blink/q/val_Counting_0", "#/blink/errors")


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(scheme: str, size: dict[str, int], opened: Any, five: str) -> None:
    watched = opened(size, scheme)
    for view in VIEWS:
        page = watched.open(five + view)
        unfold(page)
        if size == PHONE:
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], view
        # Without `resultTypes` the thousands of elements that pass are described and sent here too.
        options = {"preload": False, "resultTypes": ["violations"]}
        found = Axe().run(page, options=options).response["violations"]
        serious = [
            (one["id"], one["nodes"][0]["html"][:200], one["nodes"][0]["failureSummary"])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
        assert serious == [], view


def test_colours_follow_the_switch_and_are_remembered(opened: Any, five: str) -> None:
    page = opened(scheme="light").open(f"{five}#/blink")
    ground = "() => getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    page.get_by_label("Colours").select_option("dark")
    assert page.evaluate(ground) == "rgb(20, 23, 26)"
    page.reload()
    page.wait_for_selector("main[data-view]")
    assert page.evaluate(ground) == "rgb(20, 23, 26)"


# --- harm ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_texts_run_nothing_and_break_nothing(size: dict[str, int], opened: Any, hostile: str) -> None:
    watched = opened(size)
    page = watched.open(f"{hostile}#/bad/list")
    expect(page.locator(".count")).to_have_text(f"{len(made_up.HOSTILE)} questions")
    links = page.eval_on_selector_all(".rows a", "all => all.map((one) => one.getAttribute('href'))")
    assert len(links) == len(made_up.HOSTILE)
    for link in ("#/bad", "#/bad/list?sampled=1", "#/bad/errors", *links):
        page.goto(hostile + link)
        page.wait_for_function("hash => document.getElementById('main').dataset.hash === hash", arg=link)
        unfold(page)
        for more in page.locator("button.more[aria-expanded=false]").all()[:3]:
            more.click()
        assert page.evaluate("window.pwned") is None, link
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], link
        live = page.eval_on_selector_all(
            "a[href], iframe, object, embed, main script, [onerror], [onload]",
            "all => all.map((one) => one.getAttribute('href')).filter((one) => one === null || !one.startsWith('#'))",
        )
        assert live == [], link


def test_hostile_texts_are_shown_as_they_are(opened: Any, hostile: str) -> None:
    page = opened().open(f"{hostile}#/bad/list")
    links = page.eval_on_selector_all(".rows a", "all => all.map((one) => one.getAttribute('href'))")
    page.goto(hostile + links[0])
    expect(page.locator(".asked .words .prose").first).to_have_text(made_up.HOSTILE[0])
    page.goto(hostile + links[7])
    text = page.locator(".asked .words .prose").first
    expect(text).to_contain_text("null \u2400 byte, bell \u2407, escape \u241b[31m red")
    isolated = page.eval_on_selector_all(
        ".said", "all => all.every((one) => getComputedStyle(one).unicodeBidi === 'isolate' && one.dir === 'auto')"
    )
    assert isolated


def test_a_reply_of_a_million_characters_is_folded_and_tells_its_length(opened: Any, hostile: str) -> None:
    page = opened().open(f"{hostile}#/bad/list")
    page.locator(".rows a").first.click()
    box = page.locator(".step.is-reply .long").first
    assert len(box.locator(".prose").inner_text()) < 1000
    box.get_by_role("button", name="Show all 1,000,000 characters").click()
    assert box.locator(".prose").evaluate("one => one.textContent.length") == 1_000_000
    assert box.locator(".prose").evaluate("one => one.getBoundingClientRect().height") <= 0.61 * DESK["height"]
    box.get_by_role("button", name="Show the beginning").click()
    assert len(box.locator(".prose").inner_text()) < 1000


def test_the_policy_lets_no_script_and_no_markup_in(browser: Browser, five: str) -> None:
    context = browser.new_context()
    page = Watched(context.new_page()).open(f"{five}#/blink")
    # As a flaw of ours would do it: the browser itself refuses.
    refused = page.evaluate(
        """() => { try { document.getElementById('main').innerHTML = '<b>x</b>'; return null; }
                   catch (error) { return error.name; } }"""
    )
    assert refused == "TypeError"
    page.evaluate(
        """() => new Promise((done) => {
             document.addEventListener('securitypolicyviolation', (event) => done(event.violatedDirective));
             const a = document.createElement('a'); a.href = 'javascript:window.pwned = true';
             document.body.append(a); a.click(); })"""
    )
    assert page.evaluate("window.pwned") is None
    context.close()


# --- a run that goes on --------------------------------------------------------------------------------------------


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder, tells nobody, and lets nothing be kept."""

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        super().end_headers()


def test_new_answers_are_shown_without_losing_ones_place(browser: Browser, opened: Any, tmp_path: Path) -> None:
    site = tmp_path / "site"
    store = tmp_path / "store"
    rows = rows_of()
    waiting = [
        replace(row, verdicts=(RowVerdict(None, "open", "", ()), *row.verdicts[1:])) if number < 7 else row
        for number, row in enumerate(rows)
    ]

    def write(now: list[QuestionRow]) -> None:
        pages = made_up.five_benchmarks(store, 12, live=True)
        first = made_up.benchmark_pages("blink", now, made_up.stored_pictures(store))
        write_site(replace(pages, benchmarks=[first, *pages.benchmarks[1:]]), site)

    write(waiting)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        page = opened().open(f"http://127.0.0.1:{server.server_port}/#/blink/list?verdict=controller%2Fopen")
        expect(page.locator(".count")).to_have_attribute("data-count", "7")
        page.evaluate("window.kept = true")
        other = opened().open(f"http://127.0.0.1:{server.server_port}/#/blink/q/{waiting[0].id}")
        expect(other.locator(".column").first).to_contain_text("not asked yet")
        write(rows)
        expect(page.locator("#live-news")).to_have_text("7 new answers")
        expect(page.locator(".count")).to_have_attribute("data-count", "0")
        assert page.evaluate("[location.hash, window.kept]") == ["#/blink/list?verdict=controller%2Fopen", True]
        # Who reads a question is asked first.
        expect(other.locator("#live-news")).to_have_text("7 new answers")
        expect(other.locator(".column").first).to_contain_text("not asked yet")
        other.get_by_role("button", name="Show").click()
        expect(other.locator(".column").first).not_to_contain_text("not asked yet")
    finally:
        # Or they would go on asking a server that is gone.
        for context in browser.contexts:
            context.close()
        server.shutdown()
        server.server_close()
        thread.join()
