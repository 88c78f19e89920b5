"""The other pages in a real browser: the list, questions, the error sheet, hostile texts, a run in progress."""

import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from hybrid.report.site import write_site
from tests.hybrid.report import synthetic_pages as synthetic
from tests.hybrid.report.synthetic_pages import DESK, PHONE, QuestionRow, RowVerdict, rows_of, says, unfold
from tests.servers import LocalServer, listening

pytest.importorskip("playwright", reason="playwright is in the dependency group dev")
pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is in the dependency group dev")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from tests.tables import cases

# --- the list ------------------------------------------------------------------------------------------------------


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
    ("tool=*%2Fdepth", lambda row: any("depth" in verdict.tools for verdict in row.verdicts)),
    ("tool=controller%2Fdepth", lambda row: "depth" in row.verdicts[0].tools),
    ("outcome=*%2Fabstained", lambda row: any(item.outcome == "abstained" for item in row.verdicts)),
    ("outcome=mllm%2Fanswered", lambda row: row.verdicts[1].outcome == "answered"),
    ("sampled=1", lambda row: row.sampled),
    ("text=COUNTING+picture", lambda row: "counting" in row.id.lower() and "picture" in row.text),
    ("text=%28C%29", lambda row: any("(C)" in entry.answer for entry in row.verdicts)),
    (
        "cell=harm.0.2",
        lambda row: (
            (row.verdicts[1].correct, row.verdicts[0].correct) == (0.0, 1.0)
            and {row.verdicts[0].outcome, row.verdicts[1].outcome} == {"answered"}
        ),
    ),
    ("task=No_such_task", lambda row: False),
)


def test_filters_keep_what_they_say(open_page: Any, five: str) -> None:
    rows = rows_of()
    page = open_page().open(f"{five}#/blink/list")
    for query, keeps in FILTERS:
        expected = [row.id for row in rows if keeps(row)]
        page.evaluate("hash => { location.hash = hash; }", f"#/blink/list?{query}")
        expect(page.locator(".count")).to_have_attribute("data-count", str(len(expected)))
        page.wait_for_function("() => report.route(location.hash).query.toString() !== ''")
        ids = page.eval_on_selector_all(".rows a", "all => all.map((one) => one.textContent)")
        assert ids == expected[: len(ids)], query
        assert len(ids) >= min(len(expected), 10), query


def test_the_form_writes_the_address_and_the_back_button_reads_it(open_page: Any, five: str) -> None:
    rows = rows_of()
    page = open_page().open(f"{five}#/blink/list")
    task = page.get_by_role("combobox", name="Task", exact=True)
    task.select_option("Jigsaw")
    expect(page.locator(".count")).to_have_attribute("data-count", str(sum(row.task == "Jigsaw" for row in rows)))
    page.locator("#search").fill("val_jigsaw_2")
    total = sum("val_jigsaw_2" in row.id.lower() for row in rows)
    expect(page.locator(".count")).to_have_attribute("data-count", str(total))
    assert page.evaluate("location.hash") == "#/blink/list?task=Jigsaw&text=val_jigsaw_2"
    expect(page.locator("#search")).to_be_focused()
    page.go_back()
    expect(page.locator(".count")).to_have_text("60 questions")
    expect(task).to_have_value("")
    page.go_forward()
    expect(page.locator(".count")).to_have_attribute("data-count", str(total))
    expect(task).to_have_value("Jigsaw")
    page.get_by_role("button", name="Clear all filters").click()
    expect(page.locator(".count")).to_have_text("60 questions")


BADNESS = {"failed": 6, "none": 5, "wrong": 4, "partly": 3, "right": 0}
ORDERS: Sequence[tuple[str, Callable[[QuestionRow], float]]] = (
    ("worst first", lambda row: sum(BADNESS[says(verdict)] for verdict in row.verdicts)),
    ("slowest first", lambda row: sum(len(verdict.tools) for verdict in row.verdicts)),
    ("dearest first", lambda row: sum(verdict.outcome != "outage" for verdict in row.verdicts)),
    ("specialist: worst first", lambda row: BADNESS[says(row.verdicts[2])]),
)


@pytest.mark.parametrize(("order", "rank"), ORDERS, ids=[order for order, _ in ORDERS])
def test_the_list_has_an_order(open_page: Any, five: str, order: str, rank: Callable[[QuestionRow], float]) -> None:
    page = open_page().open(f"{five}#/blink/list")
    page.get_by_role("combobox", name="Order").select_option(order)
    expected = [row.id for row in sorted(rows_of(), key=rank, reverse=True)]
    assert expected != [row.id for row in rows_of()]
    expect(page.locator(".rows a").first).to_have_text(expected[0])
    ids = page.eval_on_selector_all(".rows a", "all => all.map((one) => one.textContent)")
    assert ids == expected[: len(ids)]
    assert len(ids) >= 10


def test_the_head_sorts_from_the_keyboard(open_page: Any, five: str) -> None:
    page = open_page().open(f"{five}#/blink/list?task=Jigsaw")
    heading = page.get_by_role("columnheader", name="mllm")
    expect(heading).to_have_attribute("aria-sort", "none")
    heading.get_by_role("button").press("Enter")
    expect(heading).to_have_attribute("aria-sort", "descending")
    expect(page.get_by_role("columnheader", name="controller")).to_have_attribute("aria-sort", "none")
    of_task = [row for row in rows_of() if row.task == "Jigsaw"]
    expected = [row.id for row in sorted(of_task, key=lambda row: -BADNESS[says(row.verdicts[1])])]
    assert page.eval_on_selector_all(".rows a", "all => all.map((one) => one.textContent)") == expected
    assert page.evaluate("location.hash") == "#/blink/list?sort=worst%2Fmllm&task=Jigsaw"
    # Without its filters, the list keeps its order.
    page.get_by_role("button", name="Clear all filters").click()
    expect(page.locator(".count")).to_have_text("60 questions")
    expect(heading).to_have_attribute("aria-sort", "descending")
    expect(page.get_by_role("button", name="Clear all filters")).to_have_count(0)
    heading.get_by_role("button").press("Enter")
    expect(heading).to_have_attribute("aria-sort", "none")
    assert page.evaluate("location.hash") == "#/blink/list"


def test_a_count_opens_its_questions(open_page: Any, five: str) -> None:
    page = open_page().open(f"{five}#/blink/s/harm")
    count = page.locator(".counts a", has_text="right -> wrong")
    n = count.inner_text().split()[-1]
    count.click()
    expect(page.locator(".count")).to_have_attribute("data-count", n)
    expect(page.locator(".chip").first).to_contain_text("right -> wrong")


def test_a_long_list_has_few_elements_and_shows_its_end(browser: Browser, open_page: Any, tmp_path: Path) -> None:
    pages = replace(synthetic.five_benchmarks(tmp_path / "store", 1), benchmarks=[synthetic.many_questions(5000)])
    page = open_page().open(write_site(pages, tmp_path / "site").as_uri() + "#/blink/list")
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


def test_a_deep_link_opens_its_question_among_those_of_its_filters(open_page: Any, five: str) -> None:
    rows = [row for row in rows_of() if row.task == "Jigsaw"]
    page = open_page().open(f"{five}#/blink/q/{quote(rows[1].id)}?task=Jigsaw")
    expect(page.locator("h1")).to_have_text(rows[1].id)
    expect(page.locator(".where")).to_have_text(f"2 of {len(rows)} in the filtered list")
    page.get_by_role("link", name="Next").click()
    expect(page.locator("h1")).to_have_text(rows[2].id)
    page.get_by_role("link", name="Previous").click()
    page.get_by_role("link", name="Previous").click()
    expect(page.locator("h1")).to_have_text(rows[0].id)
    page.get_by_role("link", name="List").click()
    expect(page.locator(".count")).to_have_attribute("data-count", str(len(rows)))


def test_a_question_shows_each_solvers_way(open_page: Any, five: str) -> None:
    row = next(item for item in rows_of() if len(item.verdicts[0].tools) == 2 and says(item.verdicts[0]) == "right")
    column = open_page().open(f"{five}#/blink/q/{quote(row.id)}").locator(".column").first
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


def test_an_overlay_slides_over_its_image_and_images_are_enlarged(open_page: Any, five: str) -> None:
    row = next(item for item in rows_of() if item.verdicts[0].tools)
    page = open_page().open(f"{five}#/blink/q/{quote(row.id)}")
    figure = page.locator(".picture.over").first
    expect(figure.locator("img")).to_have_count(2)
    figure.locator("input[type=range]").fill("30")
    assert figure.locator("img").nth(1).evaluate("one => one.style.clipPath") == "inset(0px 70% 0px 0px)"
    boxes = figure.locator("img").evaluate_all("all => all.map((one) => JSON.stringify(one.getBoundingClientRect()))")
    assert boxes[0] == boxes[1]
    page.locator(".asked .enlarge").click()
    expect(page.locator("dialog.enlarged img")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    expect(page.locator("h1")).to_have_text(row.id)


# --- the keyboard --------------------------------------------------------------------------------------------------


def test_the_keyboard_goes_everywhere(open_page: Any, five: str) -> None:
    rows = rows_of()
    page = open_page().open(f"{five}#/blink")
    keys = page.keyboard
    keys.press("/")
    expect(page.locator("#search")).to_be_focused()
    keys.type("jk[]?")  # in the search field, these keys are letters
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


def test_tab_reaches_a_question_and_the_focus_is_seen(open_page: Any, five: str) -> None:
    page = open_page().open(f"{five}#/blink/list")
    link = page.locator(".rows a").first
    for _ in range(40):
        page.keyboard.press("Tab")
        if link.evaluate("one => one === document.activeElement"):
            break
    expect(link).to_be_focused()
    assert link.evaluate("one => getComputedStyle(one, '::after').outlineStyle") == "solid"


# --- the error sheet -----------------------------------------------------------------------------------------------


def test_tags_are_kept_saved_read_and_tabulated(open_page: Any, five: str, tmp_path: Path) -> None:
    page = open_page().open(f"{five}#/blink/errors")
    expect(page.locator(".tabulated tbody tr").first).to_have_text("counts wrongly11")
    expect(page.get_by_label("Note: mllm, val_Counting_0")).to_have_value("one too few")
    row = next(item for item in rows_of() if item.sampled and item.task == "Jigsaw")
    solver = next(
        name.name for name, verdict in zip(synthetic.SOLVERS, row.verdicts, strict=True) if says(verdict) == "wrong"
    )
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
    # Another person reads the file.
    other = open_page().open(f"{five}#/blink/errors")
    expect(other.get_by_label(f"Tag: {solver}, {row.id}")).to_have_value("")
    file = tmp_path / "tags.json"
    file.write_text(json.dumps(saved))
    other.locator("#tags-file").set_input_files(file)
    expect(other.get_by_label(f"Tag: {solver}, {row.id}")).to_have_value("<b>seam</b>")
    expect(other.locator("p[role=status]")).to_contain_text("2 tags read from tags.json")


def test_a_sheet_without_questions_says_first_how_to_get_some(open_page: Any, tmp_path: Path) -> None:
    pages = synthetic.five_benchmarks(tmp_path / "store", 6)
    bench = synthetic.benchmark_pages("blink", [replace(row, sampled=False) for row in rows_of()[:6]], None)
    site = write_site(replace(pages, benchmarks=[bench]), tmp_path / "site").as_uri()
    page = open_page().open(f"{site}#/blink/errors")
    expect(page.locator("h1 + *")).to_contain_text("No questions were sampled.")
    expect(page.locator(".lead")).to_have_count(0)
    # Tags of another report can still be viewed.
    expect(page.get_by_role("button", name="Save tags.json")).to_be_visible()


@pytest.mark.parametrize(*cases(__file__, "test_a_file_that_is_none_of_tags_is_told"))
def test_a_file_that_is_none_of_tags_is_told(
    text: str, message: str, open_page: Any, five: str, tmp_path: Path
) -> None:
    page = open_page().open(f"{five}#/blink/errors")
    (tmp_path / "some.json").write_text(text)
    page.locator("#tags-file").set_input_files(tmp_path / "some.json")
    expect(page.locator("p[role=status]")).to_contain_text(f"some.json: {message}")
    expect(page.locator(".tabulated tbody tr")).to_have_count(2)


def test_a_browser_that_keeps_nothing_is_told_of(open_page: Any, five: str) -> None:
    watched = open_page(alone=True)
    watched.page.add_init_script("Object.defineProperty(window, 'localStorage', { get() { throw new Error('no'); } })")
    page = watched.open(f"{five}#/blink/errors")
    expect(page.locator("p[role=status]")).to_contain_text("keeps nothing for pages such as this one")


# --- everybody -----------------------------------------------------------------------------------------------------

VIEWS = ("#/blink", "#/blink/list", "#/blink/list?task=Jigsaw", "#/blink/q/val_Counting_0", "#/blink/errors")


@pytest.mark.parametrize(("size", "scheme"), [(DESK, "light"), (PHONE, "dark")], ids=["desk", "phone"])
def test_axe_finds_nothing_serious(scheme: str, size: dict[str, int], open_page: Any, five: str) -> None:
    watched = open_page(size, scheme)
    for view in VIEWS:
        page = watched.open(five + view)
        unfold(page)
        if size == PHONE:
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], view
        # Without `resultTypes` the thousands of elements that pass are described and sent here too.
        options = {"preload": False, "resultTypes": ["violations"]}
        violations = Axe().run(page, options=options).response["violations"]
        serious = [
            (item["id"], item["nodes"][0]["html"][:200], item["nodes"][0]["failureSummary"])
            for item in violations
            if item["impact"] in ("serious", "critical")
        ]
        assert serious == [], view


def test_colours_follow_the_switch_and_are_remembered(open_page: Any, five: str) -> None:
    page = open_page(scheme="light").open(f"{five}#/blink")
    ground = "() => getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    page.get_by_label("Colours").select_option("dark")
    assert page.evaluate(ground) == "rgb(20, 23, 26)"
    page.reload()
    page.wait_for_selector("main[data-view]")
    assert page.evaluate(ground) == "rgb(20, 23, 26)"


# --- harm ----------------------------------------------------------------------------------------------------------


def test_texts_run_nothing_and_break_nothing(open_page: Any, hostile: str) -> None:
    page = open_page().open(f"{hostile}#/bad/list")
    expect(page.locator(".count")).to_have_text(f"{len(synthetic.HOSTILE)} questions")
    links = page.eval_on_selector_all(".rows a", "all => all.map((one) => one.getAttribute('href'))")
    assert len(links) == len(synthetic.HOSTILE)
    for place, link in enumerate((*links, "#/bad", "#/bad/list?sampled=1", "#/bad/errors")):
        page.goto(hostile + link)
        page.wait_for_function("hash => document.getElementById('main').dataset.hash === hash", arg=link)
        unfold(page)
        # The first three questions have a long text of each form.
        for more in page.locator("button.more[aria-expanded=false]").all()[: 3 if place < 3 else 1]:
            more.click()
        # Every second page is opened at phone size, and each is checked at both sizes.
        for size in (DESK, PHONE) if page.viewport_size == DESK else (PHONE, DESK):
            page.set_viewport_size(size)
            page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=size["width"])
        assert page.evaluate("window.pwned") is None, link
        live = page.eval_on_selector_all(
            "a[href], iframe, object, embed, main script, [onerror], [onload]",
            "all => all.map((one) => one.getAttribute('href')).filter((one) => one === null || !one.startsWith('#'))",
        )
        assert live == [], link


def test_hostile_texts_are_shown_as_they_are(open_page: Any, hostile: str) -> None:
    page = open_page().open(f"{hostile}#/bad/list")
    links = page.eval_on_selector_all(".rows a", "all => all.map((one) => one.getAttribute('href'))")
    page.goto(hostile + links[0])
    expect(page.locator(".asked .words .prose").first).to_have_text(synthetic.HOSTILE[0])
    page.goto(hostile + links[7])
    text = page.locator(".asked .words .prose").first
    expect(text).to_contain_text("null \u2400 byte, bell \u2407, escape \u241b[31m red")
    isolated = page.eval_on_selector_all(
        ".said", "all => all.every((one) => getComputedStyle(one).unicodeBidi === 'isolate' && one.dir === 'auto')"
    )
    assert isolated


def test_a_reply_of_a_million_characters_is_folded_and_tells_its_length(open_page: Any, hostile: str) -> None:
    page = open_page().open(f"{hostile}#/bad/list")
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
    page = context.new_page()
    page.goto(f"{five}#/blink")
    page.wait_for_selector("main[data-view]")
    # If a bug in the report inserted a script, the browser would refuse to run it.
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


# --- a run in progress --------------------------------------------------------------------------------------------


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder without a log, and forbids browsers to cache."""

    def log_message(self, *_: Any) -> None:
        """Log nothing."""

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        super().end_headers()


def test_new_answers_are_shown_without_losing_ones_place(open_page: Any, tmp_path: Path) -> None:
    site = tmp_path / "site"
    store = tmp_path / "store"
    rows = rows_of()
    waiting = [
        replace(row, verdicts=(RowVerdict(None, "open", "", ()), *row.verdicts[1:])) if number < 7 else row
        for number, row in enumerate(rows)
    ]

    def write(now: list[QuestionRow]) -> None:
        pages = synthetic.five_benchmarks(store, 12, live=True)
        first = synthetic.benchmark_pages("blink", now, synthetic.stored_pictures(store))
        write_site(replace(pages, benchmarks=[first, *pages.benchmarks[1:]]), site)

    write(waiting)
    item, another = open_page(alone=True), open_page(alone=True)
    with listening(LocalServer(partial(Quiet, directory=str(site)))) as server, contextlib.ExitStack() as stack:
        # Otherwise the pages would continue to contact a server that is gone.
        for watched in (item, another):
            stack.callback(watched.page.context.close)
        page = item.open(f"{server.url}/#/blink/list?verdict=controller%2Fopen")
        expect(page.locator(".count")).to_have_attribute("data-count", "7")
        page.evaluate("window.kept = true")
        other = another.open(f"{server.url}/#/blink/q/{waiting[0].id}")
        expect(other.locator(".column").first).to_contain_text("not finished yet")
        write(rows)
        expect(page.locator("#live-news")).to_have_text("7 new answers")
        expect(page.locator(".count")).to_have_attribute("data-count", "0")
        assert page.evaluate("[location.hash, window.kept]") == ["#/blink/list?verdict=controller%2Fopen", True]
        # A user who reads a question is asked before the page updates.
        expect(other.locator("#live-news")).to_have_text("7 new answers")
        expect(other.locator(".column").first).to_contain_text("not finished yet")
        other.get_by_role("button", name="Show").click()
        expect(other.locator(".column").first).not_to_contain_text("not finished yet")
