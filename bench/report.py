"""Cost of a report of a large run: to write it, and to read it in a browser.

    uv run --group dev python -m bench.report [--questions 20000] [--keep DIR] [--json FILE]

Writes a run of three solvers with traces (`bench/_large_run.py`), then `hybrid report` of it once as it lies there (no
scores yet) and once more; seconds, processor seconds and largest resident memory are of the command, start included.
Then headless Chromium (`$CHROMIUM`, else /usr/bin/chromium) opens the pages from disk, at 1280 x 800 px: size of the
files that the first page reads, milliseconds from its request until its charts are drawn (median of FIRST_PAGES), the
lowest edge of conclusion and first chart in pixels; seconds until the list is shown, from the request of the page; of a
filter and of a search, from the change of the address to the list that shows it; milliseconds of the longest and the
median frame while the list is scrolled by two screens a frame from top to bottom; seconds from a click on a question to
its page.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from bench._frame import options, write_json
from bench._large_run import write_run
from bench.scale import Bench

if TYPE_CHECKING:
    from playwright.sync_api import Browser

QUESTIONS = 20_000
WINDOW = {"width": 1280, "height": 800}
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FIRST_PAGES = 5
LOWEST = """
Math.max(...[".conclusion", ".front-values .chart"].map((one) =>
  document.querySelector(one).getBoundingClientRect().bottom))
"""
SCROLL = """
async () => {
  const frames = [];
  let before = performance.now();
  const bottom = () => scrollY + innerHeight >= document.documentElement.scrollHeight - 1;
  for (let step = 0; step < 600 && !bottom(); step += 1) {
    scrollBy({ top: 2 * innerHeight, behavior: "instant" });
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    frames.push(now - before);
    before = now;
  }
  return frames;
}
"""


def written(bench: Bench, run: Path, site: Path) -> dict[str, float]:
    """Seconds and memory of the command, and what it left."""
    numbers: dict[str, float] = {}
    for name in ("first", "again"):
        row = bench.command(name, 0, "report", str(run), "-o", str(site))
        numbers |= {f"{name}: seconds": row.wall_s, f"{name}: cpu seconds": row.cpu_s, f"{name}: MB": row.memory_mb}
    files = [path for path in site.rglob("*") if path.is_file()]
    return {**numbers, "site MB": sum(path.stat().st_size for path in files) / 1e6, "files": len(files)}


def read(site: Path, questions: int) -> dict[str, float]:
    """Seconds of a reader's actions in a browser."""
    from playwright.sync_api import sync_playwright

    index = (site / "index.html").resolve().as_uri()
    numbers: dict[str, float] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport=WINDOW)  # type: ignore[arg-type]  # a plain dict of its two fields
        wrong: list[str] = []
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))

        def timed(name: str, address: str, seen: str) -> None:
            began = time.monotonic()
            page.goto(address, wait_until="commit")
            page.wait_for_selector(seen)
            numbers[name] = time.monotonic() - began

        numbers |= first_page(browser, index)
        timed("list: seconds", f"{index}#/blink/list", f'.count[data-count="{questions}"]')
        page.wait_for_selector(".list a.link")
        task = page.evaluate("document.querySelector('.list .cell.task').textContent")
        filtered = f'.count:not([data-count="{questions}"])'
        timed("filter: seconds", f"{index}#/blink/list?task={task}", filtered)
        timed("no filter: seconds", f"{index}#/blink/list", f'.count[data-count="{questions}"]')
        timed("search: seconds", f"{index}#/blink/list?text=Question+1234", filtered)
        timed("no search: seconds", f"{index}#/blink/list", f'.count[data-count="{questions}"]')
        frames = sorted(page.evaluate(SCROLL))
        numbers |= {"scroll: frames": len(frames), "scroll: worst ms": frames[-1]}
        numbers["scroll: median ms"] = frames[len(frames) // 2]
        began = time.monotonic()
        page.locator(".list a.link").last.click()
        page.wait_for_selector("main h1")
        page.wait_for_function("location.hash.includes('/q/') && document.querySelector('main img') !== null")
        numbers["question: seconds"] = time.monotonic() - began
        browser.close()
    if wrong:
        raise SystemExit(f"the browser says: {'; '.join(wrong[:5])}")
    return numbers


def first_page(browser: Browser, index: str) -> dict[str, float]:
    """Weight, time and height of the first page, each time in a new context: nothing is kept from one to the next."""
    drawn, lowest, files = [], 0.0, set[str]()
    for _ in range(FIRST_PAGES):
        context = browser.new_context(viewport=WINDOW)  # type: ignore[arg-type]  # a plain dict of its two fields
        page = context.new_page()
        page.on("request", lambda request: files.add(request.url))
        page.goto(index)
        page.wait_for_selector(".front-values svg")
        page.wait_for_function("performance.getEntriesByName('drawn').length > 0")
        drawn.append(page.evaluate("performance.getEntriesByName('drawn')[0].startTime"))
        lowest = max(lowest, page.evaluate(LOWEST))
        context.close()
    paths = {Path(unquote(urlsplit(url).path)) for url in files}
    weight = sum(path.stat().st_size for path in paths)
    return {"first page: kB": weight / 1e3, "first page: ms": median(drawn), "conclusion and chart end at px": lowest}


def main() -> None:
    """Print the numbers."""
    # Without --keep the run and its report are removed.
    given = options(__doc__, {"--questions": QUESTIONS, "--keep": Path, "--json": Path})
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        os.environ["HYBRID_HOME"] = str(folder / "home")
        began = time.monotonic()
        write_run(folder / "run", given.questions)
        found = {"questions": float(given.questions), "run: seconds": time.monotonic() - began}
        found |= written(Bench(Path().resolve(), folder), folder / "run", folder / "site")
        found |= read(folder / "site", given.questions)
    print("\n".join(f"{name:<32}{value:>12,.2f}" for name, value in found.items()))
    write_json(given.json, found)


if __name__ == "__main__":
    main()
