"""Pages of synthetic runs in a real browser: the system's chromium, driven by playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from hybrid.report.site import write_site
from tests.hybrid.report import synthetic_pages as synthetic

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HANGS_MS = 300_000
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is in the dependency group dev")
    if CHROMIUM is None:
        pytest.skip("no Chromium: apt install chromium, or set CHROMIUM to the path of one")
    playwright.expect.set_options(timeout=HANGS_MS)
    # Playwright is closed after each test file; otherwise its event loop would remain the running loop for later
    # asyncio tests.
    with playwright.sync_playwright() as driver:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        started = driver.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield started
        started.close()


@pytest.fixture(scope="session")
def five(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of a report over five benchmarks."""
    folder = tmp_path_factory.mktemp("five")
    return write_site(synthetic.five_benchmarks(folder / "store", tags=synthetic.TAGS), folder / "site").as_uri()


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of a report in which every text would do harm if it were interpreted as HTML."""
    folder = tmp_path_factory.mktemp("hostile")
    return write_site(synthetic.hostile_pages(folder / "store"), folder / "site").as_uri()


class Watched:
    """A page, and all errors that occurred on it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.wrong: list[str] = []
        # Only a hanging page should fail: beside twenty busy processes a page may take longer than the default of 30 s.
        page.set_default_timeout(HANGS_MS)
        page.on("console", lambda text: self.wrong.append(text.text) if text.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("requestfailed", lambda request: self.wrong.append(request.url))
        page.on("dialog", lambda dialog: (self.wrong.append(dialog.message), dialog.dismiss()))

    def afresh(self, size: dict[str, int], scheme: Any) -> Watched:
        """Reset the page after the previous test, including everything it stored."""
        if self.page.url != "about:blank":
            self.page.evaluate("localStorage.clear()")
            self.page.goto("about:blank")
        self.page.mouse.move(0, 0)
        self.page.set_viewport_size(size)  # type: ignore[arg-type]
        self.page.emulate_media(color_scheme=scheme)
        self.wrong.clear()
        return self

    def open(self, address: str) -> Page:
        self.page.goto(address)
        # After `goto` returns, `main` still has the previous view until the new one is drawn.
        self.page.wait_for_function("() => document.getElementById('main')?.dataset.hash === location.hash")
        return self.page


@pytest.fixture(scope="module")
def reused(browser: Browser) -> Watched:
    """A page for all tests of a file, because a context with its own page takes longer than most tests."""
    return Watched(browser.new_context().new_page())


@pytest.fixture
def open_page(browser: Browser, reused: Watched) -> Iterator[Callable[..., Watched]]:
    """Function that opens a page without stored state; any error on the page fails the test.

    A test's second page, or one that must be `alone`, has a separate context.
    """
    watcheds: list[Watched] = []

    def new(size: dict[str, int] = synthetic.DESK, scheme: Any = "light", *, alone: bool = False) -> Watched:
        if alone or watcheds:
            context = browser.new_context(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
            watcheds.append(Watched(context.new_page()))
        else:
            watcheds.append(reused.afresh(size, scheme))
        return watcheds[-1]

    yield new
    for item in watcheds:
        if item is not reused:
            item.page.context.close()
    assert [result for entry in watcheds for result in entry.wrong] == []
