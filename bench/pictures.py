"""Make every image that README.md and docs/ show, with the program itself.

    uv run --group dev python -m bench.pictures [--data ../shared/data] [-o docs/pictures]

Runs `hybrid` on generated questions with the demonstration model (with tools, and with blank and shuffled ones), writes
the report, and takes screenshots of it in headless Chromium (`$CHROMIUM`, else /usr/bin/chromium), in its light theme.
report.png shows recorded answers of GPT-4o on published BLINK questions. It is made only with --data, the folder that
`bench/readme_table.py` reads, and contains charts but none of BLINK's images.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PIL import Image

from bench._frame import options

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
PICTURES: Mapping[str, str] = {
    "quickstart.png": "`hybrid quickstart`: the first screen of its report",
    "report.png": "recorded GPT-4o on 209 BLINK questions: the first screen of the report",
    "tasks.png": "generated questions: accuracy by task, with tools, alone, the tools alone, and the controls",
    "question.webp": "a generated question: the conversations of three solvers, and what the tool drew",
    "depth.webp": "the tool depth on a generated scene",
    "markers.webp": "the tool markers on the same",
}
# Pictures that need --data.
RECORDED = ("report.png",)
RUN = (
    *("run", "blink", "--data", "sample", "--task", "Relative_Depth", "--task", "Jigsaw"),
    *("--limit", "40", "--concurrency", "4"),
)
RUNS: Mapping[str, tuple[str, ...]] = {
    "real": (),
    "blank": ("--solver", "controller", "--tool-output", "blank"),
    "shuffled": ("--solver", "controller", "--tool-output", "shuffled"),
}
# Width of a page's column on GitHub and on the site.
WIDTH_PX = 900
QUESTION = {"width": 1144, "height": 1400}
FIRST_SCREEN = {"width": 1280, "height": 800}
SCALE = 1.6
# The palette is chosen for coverage, so that a small dot with a unique colour keeps it.
COLOURS = 256
MAX_EDGE_PX = 420


def make_pictures(out: Path, data: Path | None) -> list[str]:
    """Write the images that can be made; return their names. Raises `CalledProcessError` if a command fails."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for name, words in RUNS.items():
            hybrid(work, *RUN, "--model", "embedded", "--backend", "classical", *words, "--out", f"runs/{name}")
        hybrid(work, "report", *(f"runs/{name}" for name in RUNS), "-o", "site")
        hybrid(work, "report", "runs/real", "-o", "one")
        with _Browser() as browser:
            charts(browser.open(work / "site", "#/blink/s/tasks"), "tasks", out / "tasks.png")
            question = question_to_show(work / "runs" / "real")
            conversations(browser.open(work / "one", f"#/blink/q/{question}", QUESTION), out / "question.webp")
            of_quickstart(browser, work, out)
        scene(work, out)
        if data is not None:
            of_recorded(out, work, data)
    return [name for name in PICTURES if data is not None or name not in RECORDED]


def of_quickstart(browser: _Browser, work: Path, out: Path) -> None:
    """Take a screenshot of the report that README's first command writes."""
    hybrid(work, "quickstart", "--out", "quickstart")
    page = browser.open(work / "quickstart" / "site", "", FIRST_SCREEN)
    page.wait_for_selector(".front-tasks svg")
    _save(page.screenshot(), out / "quickstart.png")


def of_recorded(out: Path, work: Path, data: Path) -> None:
    """Take a screenshot of the report on GPT-4o's recorded answers."""
    outputs = f"replay:{(data / 'blink_outputs' / 'GPT4o').resolve()}"
    blink = str((data / "blink").resolve())
    hybrid(work, "run", "blink", "--data", blink, "--model", outputs, "--backend", "classical", "--out", "gpt-4o")
    hybrid(work, "report", "gpt-4o", "-o", "recorded")
    with _Browser() as browser:
        page = browser.open(work / "recorded", "", FIRST_SCREEN)
        page.wait_for_selector(".front-tasks svg")
        _save(page.screenshot(), out / "report.png")


def hybrid(work: Path, *words: str) -> str:
    """Run one of our commands in `work` and return its output."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    command = [sys.executable, "-m", "hybrid", *words]
    result = subprocess.run(command, cwd=work, env=environment, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own command
    return result.stdout


def question_to_show(run: Path) -> str:
    """Return the first question about depth that the model gets wrong alone and right with tools."""
    right: dict[str, dict[str, bool]] = {}
    for solver in ("controller", "mllm"):
        lines = (run / solver / "scores.jsonl").read_text().splitlines()
        right[solver] = {row["id"]: row["correct"] == 1.0 for row in map(json.loads, lines) if "Depth" in row["task"]}
    return next(key for key in sorted(right["mllm"]) if right["controller"][key] and not right["mllm"][key])


def charts(page: Any, part: str, out: Path) -> None:
    """Take a screenshot of a part of the overview, from its heading to the end of its last chart."""
    section = page.locator(f"#s-{part}")
    page.wait_for_selector(f"#s-{part} svg")
    page.evaluate("scrollTo(0, 0)")
    box, end = section.bounding_box(), section.locator("figure").last.bounding_box()
    height = end["y"] + end["height"] + 16 - box["y"]
    clip = {"x": box["x"] - 12, "y": box["y"] - 8, "width": box["width"] + 24, "height": height}
    _save(page.screenshot(full_page=True, clip=clip), out)


def conversations(page: Any, out: Path) -> None:
    """Take a screenshot of the page of a question, down to the first image of a tool."""
    top = page.locator("main").bounding_box()["y"]
    clip = {"x": 0, "y": top, "width": QUESTION["width"], "height": QUESTION["height"]}
    _save(page.screenshot(full_page=True, clip=clip), out)


def scene(work: Path, out: Path) -> None:
    """Draw the outputs of two tools on the image of a generated question."""
    from hybrid.benchmarks.blink import BENCHMARK
    from hybrid.core.images import ImageStore
    from hybrid.core.types import Question
    from hybrid.running.data import mount, questions

    store = ImageStore(work / "store")
    mounted = mount(BENCHMARK, "sample", split=None, tasks=("Relative_Depth",), settings={}, store=store, limit=1)
    (question,) = questions(BENCHMARK, mounted.source, 1)
    if not isinstance(question, Question):
        raise TypeError(f"{question.id}: {question.error}")
    (work / "photo.png").write_bytes(store.read(question.images[0]))
    points = '{"points": [{"label": "A"}, {"label": "B"}]}'
    for name, words in (("depth", ("--args", points, "--backend", "classical")), ("markers", ())):
        hybrid(work, "tools", "run", name, "photo.png", *words, "--picture", f"{name}.png")
        _save((work / f"{name}.png").read_bytes(), out / f"{name}.webp", MAX_EDGE_PX)


class _Browser:
    """Chromium, showing pages of a report."""

    def __enter__(self) -> _Browser:
        from playwright.sync_api import sync_playwright

        self._playwright = sync_playwright().start()
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        self._browser = self._playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        return self

    def __exit__(self, *_: object) -> None:
        self._browser.close()
        self._playwright.stop()

    def open(self, site: Path, location: str, size: Mapping[str, int] | None = None) -> Any:
        size = size or {"width": WIDTH_PX, "height": 900}
        page = self._browser.new_page(
            viewport={"width": size["width"], "height": size["height"]}, device_scale_factor=SCALE, color_scheme="light"
        )
        page.goto((site / "index.html").as_uri() + location)
        page.wait_for_selector("main[data-view]")
        page.wait_for_load_state("networkidle")
        page.evaluate("Promise.all([...document.images].map(one => one.decode().catch(() => null)))")
        return page


def _save(encoded: bytes, path: Path, longest_px: int | None = None) -> None:
    """Save a small image in the format of its suffix: PNG with few colours, or lossy WebP."""
    with Image.open(io.BytesIO(encoded)) as image:
        picture = image.convert("RGB")
    if longest_px is not None:
        picture.thumbnail((longest_px, longest_px), Image.Resampling.LANCZOS)
    if path.suffix == ".png":
        picture.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(path, optimize=True)
    else:
        picture.save(path, quality=84, method=6)


def main() -> None:
    """Make the images and print their names and sizes."""
    flags = options(__doc__, {"--data": Path, "-o --out": Path("docs/pictures")})
    for name in make_pictures(flags.out, flags.data):
        print(f"{flags.out / name}  {(flags.out / name).stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
