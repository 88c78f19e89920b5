"""The complete report and its first page in a real browser."""

import csv
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.report.overview import GAIN
from hybrid.report.site import write_site
from tests.hybrid.report import synthetic_pages as synthetic
from tests.hybrid.report.synthetic_pages import DESK, PHONE, rows_of, says, unfold

pytest.importorskip("playwright", reason="playwright is in the dependency group dev")

from PIL import Image
from playwright.sync_api import Browser, Page, expect


def test_every_page_of_five_benchmarks_opens_from_disk(open_page: Any, five: str) -> None:
    watched = open_page()
    for number, (key, title) in enumerate(synthetic.TITLES.items()):
        page = watched.open(f"{five}#/{key}")
        expect(page.locator("h1")).to_have_text(title)
        expect(page.locator(".chart svg")).to_have_count(3)
        if number not in (0, len(synthetic.TITLES) - 1):
            continue
        unfold(page)
        expect(page.locator(".section .chart")).to_have_count(6)
        page.locator(".views a", has_text="Questions").click()
        expect(page.locator(".count")).to_have_text("60 questions")
        page.locator(".rows a").first.click()
        expect(page.locator("h1")).to_have_text(rows_of(seed=number)[0].id)
        expect(page.locator(".column")).to_have_count(3)
        page.locator(".views a", has_text="Error sheet").click()
        expect(page.locator(".entry")).to_have_count(sum(row.sampled for row in rows_of(seed=number)))


def test_charts_tell_their_numbers_without_being_seen(open_page: Any, five: str) -> None:
    page = open_page().open(f"{five}#/blink/s/accuracy")
    page.wait_for_selector("#s-accuracy svg")
    labels = page.eval_on_selector_all("#s-accuracy svg", "all => all.map((one) => one.getAttribute('aria-label'))")
    rows = [row for row in rows_of() if row.task == "Counting" and row.verdicts[0].correct is not None]
    mean = sum(row.verdicts[0].correct or 0 for row in rows) / len(rows)
    assert any(f"controller: {mean:.3f}" in label for label in labels)


def test_the_same_solver_has_one_colour_in_every_chart(open_page: Any, five: str) -> None:
    page = open_page().open(f"{five}#/blink/s/cost")
    page.wait_for_selector("#s-cost svg")
    fills = page.evaluate(
        """() => ['.front-values', '#s-cost'].map((place) => [...document.querySelectorAll(`${place} svg [fill]`)]
             .map((one) => one.getAttribute('fill')).filter((one) => /--(hybrid|mllm|specialist)-[0-9]/.test(one)))"""
    )
    values = {"var(--hybrid-0)", "var(--mllm-0)", "var(--specialist-0)"}
    assert [set(fill) for fill in fills] == [values, values]


def test_differences_have_a_line_each_however_few_they_are(open_page: Any, tmp_path: Path) -> None:
    """Each difference has a line, even if there are only one or two, which the chart library treats as a special
    scale."""
    watched = open_page()
    for lines in (1, 2, 3, 30):
        address = write_site(synthetic.differences(tmp_path / "store", lines), tmp_path / str(lines)).as_uri()
        page = watched.open(f"{address}#/blink")
        expect(page.locator(".front-tasks svg circle")).to_have_count(lines)
        names = page.eval_on_selector_all(".front-tasks svg text", "all => all.map((one) => one.textContent)")
        assert [name for name in names if name.startswith("task ")] == [f"task {place}" for place in range(lines)]


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_the_first_screen_holds_conclusion_and_charts(size: dict[str, int], open_page: Any, tmp_path: Path) -> None:
    """A desktop shows five sentences, four solvers and 14 tasks on one screen, and a phone's first screen shows the
    first values."""
    solvers = (*synthetic.SOLVERS, replace(synthetic.SOLVERS[0], name="controller [blank]", control="blank"))
    built = synthetic.benchmark_pages("blink", rows_of(84, solvers), None, solvers)
    steps, values, tasks = built.overview.front
    rows = [item for item in tasks.rows if item.a == "mllm"]
    more = tuple(replace(row, group=f"{row.group}_{place}") for place in range(3) for row in rows)[:14]
    built = replace(built, overview=replace(built.overview, front=(steps, values, replace(tasks, rows=more))))
    pages = replace(synthetic.five_benchmarks(tmp_path / "store", 1), title="BLINK", benchmarks=[built])
    page = open_page(size).open(write_site(pages, tmp_path / "site").as_uri())
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
    # In half the page width, the table of solvers would become a list.
    numbers = page.locator("details.fold", has_text="The numbers").bounding_box()
    assert numbers is not None
    assert numbers["width"] > 0.8 * size["width"]


def labels_outside(page: Page) -> list[str]:
    """Return labels of charts that reach outside of their chart."""
    names: list[str] = page.evaluate(
        """() => [...document.querySelectorAll('.plot svg')].flatMap((svg) => {
             const out = svg.getBoundingClientRect();
             return [...svg.querySelectorAll('text')].filter((text) => {
               const box = text.getBoundingClientRect();
               return box.left < out.left - 1 || box.right > out.right + 1 || box.bottom > out.bottom + 1;
             }).map((text) => text.textContent);
           })"""
    )
    return names


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_nine_solvers_fit_every_page(width: int, open_page: Any, tmp_path: Path) -> None:
    """With nine solvers, no page scrolls sideways and no name is cut."""
    first = synthetic.SOLVERS[0]
    names = [f"controller [anthropic:claude-opus-{n}; blank]" for n in range(6)]
    solvers = (*synthetic.SOLVERS, *(replace(first, name=name) for name in names))
    built = synthetic.benchmark_pages("blink", rows_of(12, solvers), None, solvers)
    pages = replace(synthetic.five_benchmarks(tmp_path / "store", 1), benchmarks=[built])
    site = write_site(pages, tmp_path / "site").as_uri()
    watched = open_page({"width": width, "height": 800})
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


def test_of_nine_solvers_a_phone_shows_the_first_chart_whole(open_page: Any, tmp_path: Path) -> None:
    """A phone shows the first chart of nine solvers completely, although two names are as long as a conclusion prints
    them and the conclusion has several sentences."""
    first, alone, *_ = synthetic.SOLVERS
    long = {first.name: "controller [anthropic:claude-opus-4; demonstration model; shown]"}
    long |= {alone.name: "mllm [anthropic:claude-opus-4; demonstration model; shown]"}
    text = "controller [anthropi…; blank], verify [anthropic:cla…l; blank], controller [openai:gp…; blank]"
    sentences = (
        f"Compared with its model alone, over 6 to 1200 questions and adjusted (Holm) for 3 tests: none for {text}.",
        f"Compared with the specialists alone: no difference shown for {text}.",
        f"With tools, compared with blank tools: no difference shown for {text}.",
        f"Tasks where the interval of the difference to the model alone is below 0: {text}.",
        "Limits: 29 are not finished yet; generated questions say nothing of real pictures; 6 questions show 87 points",
    )
    names = [*long.values(), *(f"controller [anthropic:claude-opus-{n}; blank]" for n in range(6))]
    solvers = (*synthetic.SOLVERS, *(replace(first, name=name) for name in names))
    built = synthetic.benchmark_pages("blink", rows_of(12, solvers), None, solvers)
    steps, *others = built.overview.front
    rows = tuple(replace(row, a=long.get(row.a, row.a), b=long.get(row.b or "", row.b)) for row in steps.rows)
    front = (*(replace(steps, title=f"{GAIN} (no answer counts as wrong)", rows=rows) for _ in range(2)), *others)
    built = replace(built, overview=replace(built.overview, front=front, conclusion=sentences))
    pages = replace(synthetic.five_benchmarks(tmp_path / "store", 1), title="BLINK", benchmarks=[built])
    page = open_page(PHONE).open(write_site(pages, tmp_path / "site").as_uri())
    page.wait_for_selector(".front-steps svg")
    box = page.locator(".front-steps").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= PHONE["height"]
    assert labels_outside(page) == []
    labels = page.locator(".front-steps svg tspan").all_text_contents()
    assert any(label.endswith("shown]") for label in labels)
    assert not [label for label in labels if label.endswith("…")]


def test_the_values_of_nine_solvers_end_on_a_phones_first_screen(open_page: Any, tmp_path: Path) -> None:
    first = synthetic.SOLVERS[0]
    names = ("controller [blank]", "controller [shuffled]", "controller [oracle]", "result_only", "verify", "text_only")
    solvers = (*synthetic.SOLVERS, *(replace(first, name=name) for name in names))
    built = synthetic.benchmark_pages("blink", rows_of(84, solvers), None, solvers)
    pages = replace(synthetic.five_benchmarks(tmp_path / "store", 1), title="BLINK", benchmarks=[built])
    page = open_page(PHONE).open(write_site(pages, tmp_path / "site").as_uri())
    page.wait_for_selector(".front-values svg")
    box = page.locator(".front-values > .chart").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= PHONE["height"]


def test_a_task_and_its_dot_open_its_questions(open_page: Any, five: str) -> None:
    page = open_page().open(f"{five}#/blink")
    page.get_by_role("combobox", name="Which solvers").select_option(label="controller − specialist")
    page.locator('.front-tasks svg a[aria-label^="Jigsaw"]').click()
    expect(page.locator(".count")).to_have_attribute("data-count", str(sum(r.task == "Jigsaw" for r in rows_of())))
    page.go_back()
    page.locator('.front-values svg a[aria-label^="mllm"]').last.click()
    wrong = sum(says(row.verdicts[1]) == "wrong" for row in rows_of())
    expect(page.locator(".count")).to_have_attribute("data-count", str(wrong))


def test_a_step_stands_where_the_one_before_ends_and_opens_its_questions(open_page: Any, five: str) -> None:
    page = open_page().open(f"{five}#/blink")
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
    (steps, *_) = synthetic.benchmark_pages("blink", rows_of(), None).overview.front
    for row in (row for row in steps.rows if row.ids):
        page.locator(f'.front-steps svg a[aria-label*="{row.quantity}"]').click()
        expect(page.locator(".count")).to_have_attribute("data-count", str(len(row.ids)))
        expect(page.locator(".chip").first).to_contain_text(row.quantity)
        page.go_back()


def test_every_chart_is_saved_as_svg_png_and_csv(open_page: Any, five: str, tmp_path: Path) -> None:
    def page() -> Page:
        stream = open_page(scheme="dark").open(f"{five}#/blink")
        unfold(stream)
        stream.evaluate(
            """(text) => {
                const head = Object.assign(document.createElement("p"), { className: "head", textContent: text });
                document.querySelector(".page").prepend(head);
            }""",
            head,
        )
        return stream

    head = "openai:gpt-4o | BLINK | generated questions | 60 questions"
    figures = page().locator("figure.chart")
    for number in range(figures.count()):
        if number == 4:
            # Chromium drops downloads of one page beyond ten files per second.
            figures = page().locator("figure.chart")
        saved: dict[str, Path] = {}
        # The PNG is made from the SVG.
        for form in ("SVG", "csv", "PNG") if number < 2 else ("SVG", "csv"):
            with figures.page.expect_download() as waiting:
                figures.nth(number).get_by_role("button", name=f"Save the chart as {form}").click()
            saved[form] = tmp_path / waiting.value.suggested_filename
            waiting.value.save_as(saved[form])
        svg = saved["SVG"].read_text()
        # The SVG is self-contained, in the light theme, without addresses of the report.
        assert ET.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314 - written by our own page
        assert "var(--" not in svg
        assert "href" not in svg
        assert "#1b1f23" in svg
        assert f">{head}</text>" in svg
        if "PNG" in saved:
            with Image.open(saved["PNG"]) as picture:
                assert picture.width >= 900
                assert len(picture.convert("RGB").getcolors(1 << 24) or ()) > 3
        with saved["csv"].open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert rows
        assert all(float(row["value"]) == float(row["value"]) for row in rows)
    lines = csv.DictReader((tmp_path / "blink-values.csv").read_text().splitlines())
    assert {row["a"]: float(row["value"]) for row in lines}["mllm"] == synthetic.share_of(rows_of(), 1)[0]


def test_without_scripts_the_headline_is_read(browser: Browser, five: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(five)
    expect(page.locator("h1")).to_have_text(list(synthetic.TITLES.values()))
    expect(page.locator(".sentence")).to_have_text([*synthetic.SENTENCES] * 5)
    cells = page.locator("table").first.locator("tbody tr").nth(1).locator("td").all_inner_texts()
    share, n = synthetic.share_of(rows_of(), 1)
    assert cells == ["mllm", f"{share:.3f}", str(n)]
    context.close()


def test_settings_and_versions_stand_in_a_drawer(open_page: Any, five: str) -> None:
    page = open_page().open(f"{five}#/blink")
    expect(page.get_by_text("fingerprint 4b825dc6")).to_have_count(0)
    page.get_by_role("button", name="What was run").click()
    expect(page.get_by_role("dialog")).to_contain_text("fingerprint 4b825dc6")
    expect(page.get_by_role("dialog")).to_contain_text("hybrid report runs/* -o site")
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)


def test_a_link_to_a_section_shows_it(open_page: Any, five: str) -> None:
    page = open_page().open(f"{five}#/blink/s/cost")
    expect(page.locator("#s-cost h2")).to_be_in_viewport()
    expect(page.locator("#s-cost svg")).to_be_visible()


def test_a_benchmark_and_a_question_that_are_not_there(open_page: Any, five: str) -> None:
    watched = open_page()
    expect(watched.open(f"{five}#/blink/q/nobody").locator("h1")).to_have_text("No such question")
    # An address that differs only after the hash would not reload the page.
    watched.page.goto("about:blank")
    expect(watched.open(f"{five}#/other/list").locator("h1")).to_have_text("BLINK")


def test_an_interval_of_a_step_ends_where_the_axis_of_accuracies_ends(open_page: Any, tmp_path: Path) -> None:
    built = synthetic.benchmark_pages("blink", rows_of(12), None)
    steps, *others = built.overview.front
    rows = (steps.rows[0], *(replace(row, low=-2.0, high=2.0) for row in steps.rows[1:]))
    built = replace(built, overview=replace(built.overview, front=(replace(steps, rows=rows), *others)))
    pages = replace(synthetic.five_benchmarks(tmp_path / "store", 1), benchmarks=[built])
    page = open_page().open(write_site(pages, tmp_path / "site").as_uri())
    page.wait_for_selector(".front-steps svg")
    grid, intervals = (
        page.eval_on_selector_all(
            f".front-steps svg line[{lines}]",
            "all => all.flatMap((one) => ['x1', 'x2'].map((end) => Number(one.getAttribute(end))))",
        )
        for lines in ("stroke='var(--line)'", "stroke-width='2'")
    )
    assert (min(intervals), max(intervals)) == pytest.approx((min(grid), max(grid)))
