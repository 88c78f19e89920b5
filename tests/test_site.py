"""The documentation as a site: it builds without a warning, every link is valid, and it contacts no other host.

Skipped without the group `docs`; what a browser shows needs playwright and chromium as well.
"""

import functools
import http.server
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote, urlsplit

import click
import pytest

from hybrid.cli import COMMANDS, cli, main
from hybrid.cli._exit_codes import EXIT_CODES
from hybrid.config.environment import VARIABLES
from hybrid.models.toolspec import spec
from hybrid.plugins.registry import load, names, solver_names
from hybrid.scoring.records import PARQUET as COLUMNS
from tests.servers import LocalServer, listening

ROOT = Path(__file__).resolve().parents[1]
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
# By tag, the attribute whose address a browser loads by itself; for <link> all relations except `canonical`.
LOADED = dict.fromkeys(("script", "img", "iframe", "source", "video", "audio", "embed"), "src")
# Only a hanging page should fail: next to busy processes a page may take longer than the default of 30 s.
HANGS_MS = 300_000
SIZES = ({"width": 1280, "height": 900}, {"width": 390, "height": 844})


class Parsed(HTMLParser):
    """Collects the anchors of a page, the links of its text, and what a browser loads for it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.ids, self.links, self.loads = path, set[str](), list[str](), list[str]()
        self.codes, self.styles, self.text = set[str](), "", ""
        self._tags: list[str] = []
        self._code = ""
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        by_attr = {name: value or "" for name, value in attrs}
        if tag in ("code", "style"):
            self._tags.append(tag)
        self.styles += by_attr.get("style", "")
        self.ids |= {by_attr[name] for name in ("id", "name") if name in by_attr}
        if tag == "a" and "href" in by_attr:
            self.links.append(by_attr["href"])
        if tag == "link" and by_attr.get("rel") != "canonical":
            self.loads.append(by_attr["href"])
        if tag in LOADED and LOADED[tag] in by_attr:
            self.loads.append(by_attr[LOADED[tag]])
        self.loads += [part.split()[0] for part in by_attr.get("srcset", "").split(",") if part.strip()]

    def handle_endtag(self, tag: str) -> None:
        if self._tags and tag == self._tags[-1]:
            self._tags.pop()
            if tag == "code":
                self.codes.add(self._code)
                self._code = ""

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._tags and self._tags[-1] == "code":
            self._code += data
        elif self._tags:
            self.styles += data


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    pytest.importorskip("mkdocs", reason="mkdocs is of the group docs")
    pytest.importorskip("material", reason="mkdocs-material is of the group docs")
    folder = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    # Every line begins with its level; `--quiet` would hide warnings from `--strict` too.
    lines = [line for line in (result.stdout + result.stderr).splitlines() if not line.startswith("INFO ")]
    assert (result.returncode, lines) == (0, [])
    return folder


def test_links_of_the_repository_lead_to_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("material", reason="mkdocs-material is of the group docs")
    from mkdocs.config import load_config
    from mkdocs.structure.files import File, get_files
    from mkdocs.structure.pages import Page

    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    config = load_config(str(ROOT / "mkdocs.yml"))
    hooks: Any = config.plugins["docs/_hooks.py"]
    files = get_files(config)
    files.append(File("contributing.md", None, config.site_dir, use_directory_urls=False))

    def render_markdown(path: str, text: str) -> str:
        file = files.get_file_from_path(path)
        assert file is not None
        return str(hooks.on_page_markdown(text, Page(None, file, config), config, files))

    below = "tutorials/offline.md"
    assert render_markdown("data.md", "[a](../CONTRIBUTING.md#a-tool)") == "[a](contributing.md#a-tool)"
    assert (
        render_markdown(below, "[a](../limits.md) [b](../../CHANGELOG.md)") == "[a](../limits.md) [b](../changelog.md)"
    )
    assert render_markdown("data.md", "[the card](../hybrid/models/embedded/CARD.md)") == "the card"
    assert render_markdown("contributing.md", "[a](docs/data.md)") == "[a](data.md)"
    assert render_markdown("data.md", "[a](nowhere.md) [b](https://x.org) ![c](d.png)") == (
        "[a](nowhere.md) [b](https://x.org) ![c](d.png)"
    )
    assert render_markdown(below, "`docs/data.md`, `docs/tutorials/offline.md`") == (
        "[`docs/data.md`](../data.md), `docs/tutorials/offline.md`"
    )
    block = "```bash inspect\n`docs/data.md` [a](../CHANGELOG.md)\n```"
    assert render_markdown("data.md", block) == block.replace(" inspect", "")


@pytest.fixture(scope="module")
def pages(built: Path) -> dict[Path, Parsed]:
    return {path: Parsed(path) for path in sorted(built.rglob("*.html"))}


@pytest.mark.system
def test_every_page_of_the_folder_is_built(pages: dict[Path, Parsed], built: Path) -> None:
    values = {path.relative_to(ROOT / "docs").with_suffix("") for path in (ROOT / "docs").rglob("*.md")}
    assert values <= {path.relative_to(built).with_suffix("") for path in pages}
    assert not list(built.rglob("*.py"))


@pytest.mark.system
def test_everything_that_has_a_name_has_a_page(pages: dict[Path, Parsed], built: Path) -> None:
    texts = {
        path.relative_to(built / "reference").with_suffix("").as_posix() for path in built.rglob("reference/**/*.html")
    }
    assert {f"commands/{name}" for name in COMMANDS} <= texts
    assert {f"tools/{name}" for name in names("tools")} <= texts
    assert {f"benchmarks/{name}" for name in names("hybrid.benchmarks")} <= texts
    assert set(solver_names()) <= pages[built / "reference" / "solvers.html"].codes


def options(context: click.Context) -> Iterator[str]:
    for param in context.command.params:
        yield from (*param.opts, *param.secondary_opts) if isinstance(param, click.Option) else ()
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            assert command is not None
            yield from options(click.Context(command, info_name=name, parent=context))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_on_its_page(name: str, pages: dict[Path, Parsed], built: Path) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert (
        set(options(click.Context(command, info_name=name))) <= pages[built / f"reference/commands/{name}.html"].codes
    )


@pytest.mark.parametrize("name", names("tools"))
def test_every_argument_and_weight_of_a_tool_is_on_its_page(name: str, pages: dict[Path, Parsed], built: Path) -> None:
    tool, page = load("tools", name), pages[built / f"reference/tools/{name}.html"]
    assert set(tool.args.model_fields) <= page.codes
    assert {provenance.weights for card in tool.card.backends for provenance in card.provenances} <= page.codes
    assert spec(tool)["function"]["description"] in page.text


@pytest.mark.parametrize("name", names("hybrid.benchmarks"))
def test_every_metric_setting_and_baseline_of_a_benchmark_is_there(
    name: str, pages: dict[Path, Parsed], built: Path
) -> None:
    card = load("hybrid.benchmarks", name).card
    metrics, page = pages[built / "reference/metrics.html"], pages[built / f"reference/benchmarks/{name}.html"]
    assert {metric.name for metric in card.metrics} <= metrics.codes
    assert [item.formula for item in card.metrics if item.formula not in metrics.text] == []
    assert {setting.name for setting in card.settings} <= page.codes
    assert {baseline.command for baseline in card.baselines} <= {text.strip() for text in page.codes}


def test_every_column_of_parquet_is_on_the_page_of_exports(pages: dict[Path, Parsed], built: Path) -> None:
    page = pages[built / "reference" / "exports.html"]
    assert {column.name for column in COLUMNS} <= page.codes
    assert [item.name for item in COLUMNS if item.about.replace("`", "") not in page.text] == []


def test_every_table_of_measurements_is_in_the_site(pages: dict[Path, Parsed], built: Path) -> None:
    files = sorted((ROOT / "bench" / "results").iterdir())
    assert [
        path.name for path in files if path.suffix == ".md" and built / f"measurements/{path.stem}.html" not in pages
    ] == []
    assert [
        path.name for path in files if path.suffix != ".md" and not (built / "measurements" / path.name).exists()
    ] == []


def test_what_a_user_looks_for_is_two_clicks_from_the_first_page(pages: dict[Path, Parsed], built: Path) -> None:
    def linked(path: Path) -> set[Path]:
        return {(path.parent / urlsplit(link).path).resolve() for link in pages[path].links if link} & set(pages)

    first = linked(built / "index.html")
    second = first.union(*(linked(path) for path in first))
    arguments = (
        "data",
        "add-a-tool",
        "how-to/read-the-report",
        "how-to/controls",
        "how-to/plan",
        "reference/commands/run",
    )
    assert {built / f"{name}.html" for name in ("tutorials/api-key", "tutorials/local-server", *arguments)} <= second


def test_every_link_and_anchor_leads_somewhere(pages: dict[Path, Parsed]) -> None:
    wrong = []
    for page in pages.values():
        for link in (*page.links, *page.loads):
            parts = urlsplit(link)
            if parts.scheme in ("https", "http", "mailto", "data") or page.path.name == "404.html":
                continue
            target = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
            target = target / "index.html" if target.is_dir() else target
            exists = target.exists() and (
                not parts.fragment or target not in pages or parts.fragment in pages[target].ids
            )
            if not exists and parts.fragment != "__skip":
                wrong.append(f"{page.path.name}: {link}")
    assert wrong == []


def test_nothing_is_asked_of_another_host(pages: dict[Path, Parsed], built: Path) -> None:
    addresses = [address for page in pages.values() for address in page.loads]
    assert addresses
    assert [address for address in addresses if urlsplit(address).netloc] == []
    styles = [page.styles for page in pages.values()] + [path.read_text() for path in built.rglob("*.css")]
    fetched = [
        match for text in styles for match in re.findall(r"(?:url\(|@import )\s*['\"]?((?:https?:)?//[^)'\"]+)", text)
    ]
    assert fetched == []
    # If a page has such a diagram, the theme loads the program that draws it.
    assert [path.name for path, page in pages.items() if 'class="mermaid"' in path.read_text()] == []


@pytest.fixture(scope="module")
def address(built: Path) -> Iterator[str]:
    """The site behind a server: the search needs a worker, which pages from disk may not start."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            """Log nothing."""

    with listening(LocalServer(functools.partial(Quiet, directory=str(built)))) as server:
        yield f"{server.url}/"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    pytest.importorskip("playwright", reason="playwright is in the dependency group dev")
    if CHROMIUM is None:
        pytest.skip("no Chromium: apt install chromium, or set CHROMIUM to the path of one")
    from playwright.sync_api import sync_playwright

    # Closed after this file; otherwise its event loop would remain the running loop for later asyncio tests.
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield started
        started.close()


@pytest.mark.system
@pytest.mark.parametrize(("size", "scheme"), [(SIZES[0], "light"), (SIZES[1], "dark")], ids=["desk", "phone"])
def test_pages_are_shown_whole_and_without_an_error(browser: Any, address: str, size: Any, scheme: str) -> None:
    from playwright.sync_api import expect

    wrong: list[str] = []
    with browser.new_context(viewport=size, color_scheme=scheme) as context, context.new_page() as page:
        page.set_default_timeout(HANGS_MS)
        page.on("console", lambda text: wrong.append(text.text) if text.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request", lambda item: None if item.url.startswith((address, "data:", "blob:")) else wrong.append(item.url)
        )
        for name in ("index", "reference/commands/run", "reference/tools/depth", "reference/metrics", "statistics"):
            page.goto(f"{address}{name}.html")
            # The theme sets this text in its last action after loading.
            expect(page.locator(".md-search-result__meta")).to_have_text("Type to start searching", timeout=HANGS_MS)
            root = "document.documentElement"
            assert page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth"), name
            background = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (background == "rgb(255, 255, 255)") == (scheme == "light")
    assert wrong == []


@pytest.mark.system
def test_search_finds_mcnemar(browser: Any, address: str) -> None:
    from playwright.sync_api import expect

    with browser.new_context(viewport=SIZES[0]) as context, context.new_page() as page:
        page.set_default_timeout(HANGS_MS)
        page.goto(f"{address}index.html")
        # Text typed before the search is ready is not searched for.
        expect(page.locator(".md-search-result__meta")).to_have_text("Type to start searching", timeout=HANGS_MS)
        page.get_by_role("textbox", name="Search").press_sequentially("McNemar")
        result = page.locator(".md-search-result__link")
        expect(result.first).to_be_visible(timeout=HANGS_MS)
        assert any("statistics.html" in (link.get_attribute("href") or "") for link in result.all())


# Tables in the reference agree with the code.


def test_every_variable_of_the_environment_is_listed() -> None:
    read: set[str] = set()
    for room in ("hybrid", "tools", "graphs", "baselines"):
        for path in (ROOT / room).rglob("*.py"):
            if path != ROOT / "hybrid" / "config" / "environment.py":
                read |= set(re.findall(r"(?<![A-Z_])HYBRID_[A-Z_]*[A-Z]", path.read_text()))
    values = {variable.name for variable in VARIABLES}
    # Of the variables that contain the name of a benchmark, the code has only the prefix and one example.
    assert read - {"HYBRID_DATA", "HYBRID_DATA_BLINK"} == values


def test_every_exit_code_is_listed() -> None:
    texts = [path.read_text() for path in (ROOT / "hybrid" / "cli").glob("*.py")]
    numbers = {int(code) for text in texts for code in re.findall(r"^ +return (\d+)(?: if .*)?$", text, re.MULTILINE)}
    numbers |= {int(code) for text in texts for code in re.findall(r"\breturn .* else (\d+)$", text, re.MULTILINE)}
    # Exit codes of signals are computed, and 141 is set by the output stream whose reader has left.
    assert numbers == set(EXIT_CODES) - {129, 141, 143}
    assert "141" in (main.__doc__ or "")


@pytest.fixture(scope="module")
def markdown() -> ModuleType:
    """The module `docs/_reference/markdown.py`."""
    spec = importlib.util.spec_from_file_location("reference_markdown", ROOT / "docs" / "_reference" / "markdown.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_words_of_the_code_are_shown_as_they_are(markdown: ModuleType) -> None:
    assert markdown.escaped("a_b * <c> | [d](e) `f_g`") == "a&#95;b &#42; &#60;c&#62; &#124; &#91;d&#93;(e) `f_g`"
    assert markdown.escaped("with --no-cache=X, a-b and --") == "with `--no-cache=X`, a-b and --"
    assert markdown.escaped("an odd ` stays") == "an odd &#96; stays"
    assert markdown.code("a|<b>`&") == "<code>a&#124;&#60;b&#62;&#96;&amp;</code>"


def test_help_texts_become_paragraphs_and_blocks(markdown: ModuleType) -> None:
    text = "First\nline.\n\n\b\nExamples:\n  hybrid a\n    --b\n\n\b\nk: 1\n  l: 2\n\nhybrid run x\n\fhidden"
    assert markdown.prose(text).split("\n\n") == [
        "First line.",
        "Examples:",
        "```bash\nhybrid a\n  --b\n```",
        "```text\nk: 1\n  l: 2\n```",
        "```bash\nhybrid run x\n```",
    ]
