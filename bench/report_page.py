"""Measure a report's pages in a headless browser: first paint, list, filters, search and orders.

    hybrid report RUN -o report
    uv run python -m bench.report_page report [--json FILE]

Each row is a step on one page: CPU time of the page's main thread, wall time until the step is drawn, and questions
then listed. The first row starts from an empty page; each further step changes the address, as a click does. The last
row is the largest file of the report in MB.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench._frame import options, table, write_json

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession, Page

BROWSERS = ("chromium-headless-shell", "chromium")
# Shows the page of an address, and resolves in the frame after the page is drawn.
GO = """async (hash) => {
  const start = performance.now();
  if (location.hash !== hash) location.hash = hash;
  while (document.getElementById("main")?.dataset.hash !== location.hash) await new Promise(requestAnimationFrame);
  await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
  return performance.now() - start;
}"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
LISTED = "() => Number(document.querySelector('.count')?.dataset.count ?? 0)"


@dataclass(frozen=True)
class PageRow:
    """One step on a page."""

    step: str
    cpu_ms: float
    wall_ms: float
    entries: int


class Watch:
    """A page, and the CPU time of its main thread."""

    def __init__(self, page: Page, session: CDPSession) -> None:
        self.page = page
        self._session = session
        session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def cpu_ms(self) -> float:
        """Return the CPU time that the page's main thread has spent on tasks."""
        metrics = self._session.send("Performance.getMetrics")["metrics"]
        return 1000 * float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))

    def step(self, name: str, address: str) -> PageRow:
        """Show another address of the same page."""
        start_ms = self.cpu_ms()
        wall = float(self.page.evaluate(GO, address))
        return PageRow(name, self.cpu_ms() - start_ms, wall, int(self.page.evaluate(LISTED)))


def steps(site: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield names and addresses of the steps on the list of the first benchmark."""
    benchmark = site["benchmarks"][0]
    start, solver = f"#/{benchmark['key']}/list", benchmark["solvers"][0]["name"]
    yield "list", start
    yield "filter: wrong", f"{start}?verdict={solver}%2Fwrong"
    yield "search", f"{start}?text=window"
    yield "search again", f"{start}?text=mug"
    for order in (f"worst/{solver}", "seconds", "cost"):
        yield f"order: {order}", f"{start}?sort={order.replace('/', '%2F')}"


def measure(report: Path, browser: str) -> Iterator[PageRow]:
    """Yield the rows of a report."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        started = driver.chromium.launch(executable_path=browser, args=arguments)
        page = started.new_page()
        page.set_default_timeout(300_000)
        watch = Watch(page, page.context.new_cdp_session(page))
        page.goto((report / "index.html").resolve().as_uri())
        page.wait_for_function("() => document.getElementById('main')?.dataset.hash === location.hash")
        yield PageRow("first paint", watch.cpu_ms(), float(page.wait_for_function(PAINT).json_value()), 0)
        for name, address in steps(json.loads(page.evaluate("() => JSON.stringify(report.site)"))):
            yield watch.step(name, address)
        started.close()


def main() -> None:
    """Print a row for each step."""
    flags = options(__doc__, {"report": Path, "--json": Path})
    browser = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit("no Chromium: apt install chromium, or set CHROMIUM to the path of one")
    rows = list(measure(flags.report, browser))
    largest = max((path for path in flags.report.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    print(table(rows))
    print(f"largest file: {largest.relative_to(flags.report)}, {largest.stat().st_size / 1e6:.1f} MB")
    write_json(flags.json, rows)


if __name__ == "__main__":
    main()
