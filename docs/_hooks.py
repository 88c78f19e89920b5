"""Hooks of mkdocs: add the generated reference and the measurements, and point links at pages instead of files.

`uv run --group docs mkdocs build --strict`
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from _reference import pages
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
MEASUREMENTS = ROOT / "bench" / "results"
ELSEWHERE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    **{f"bench/results/{path.name}": f"measurements/{path.name}" for path in sorted(MEASUREMENTS.iterdir())},
}
"""Files outside docs/ that are also in the site: maps the path in the repository to the path in the site."""
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<path>[\w./-]+)(?P<anchor>#[\w-]+)?\)")
NAMED_PAGE = re.compile(r"(?<![\[`])`docs/(?P<path>[\w/-]+\.md)`(?!`)")
FENCE = re.compile(r"^(?P<fence> *```)(?P<language>\w+) +[\w ]+$", re.MULTILINE)
CODE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the reference and the tables of measurements into the navigation."""
    for section in config.nav or []:
        if "Reference" in section:
            section["Reference"] = pages.navigation()
        if "Measurements" in section:
            section["Measurements"] = [
                path for path in ELSEWHERE.values() if path.startswith("measurements/") and path.endswith(".md")
            ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, which are not on disk, and the files from outside of docs/."""
    for page in pages.generated():
        files.append(File.generated(config, page.path, content=page.text))
    for source, path in ELSEWHERE.items():
        files.append(File.generated(config, path, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links for the site, and blocks whose first line only other kinds of Markdown understand."""
    text = FENCE.sub(r"\g<fence>\g<language>", markdown)
    parts = CODE.split(text)
    return "".join(part if place % 2 else _linked(part, page, files) for place, part in enumerate(parts))


def _linked(text: str, page: Page, files: Files) -> str:
    """Rewrite links for the site; the name of a page in code font becomes a link to the page.

    If a file at the root of the repository has no page on the site, only the text of its link remains.
    """
    here = page.file.src_uri
    sources = {path: source for source, path in ELSEWHERE.items()}
    base = (ROOT / sources.get(here, f"docs/{here}")).parent

    def led(found: re.Match[str]) -> str:
        target = Path(os.path.normpath(base / found["path"]))
        name = target.relative_to(ROOT).as_posix() if target.is_relative_to(ROOT) else ""
        path = name.removeprefix("docs/") if name.startswith("docs/") else ELSEWHERE.get(name)
        if path is not None:
            return f"[{found['text']}]({_relative(path, here)}{found['anchor'] or ''})"
        return found["text"] if name and target.exists() else found[0]

    def named(found: re.Match[str]) -> str:
        path = found["path"]
        if path == here or files.get_file_from_path(path) is None:
            return found[0]
        return f"[`docs/{path}`]({_relative(path, here)})"

    return NAMED_PAGE.sub(named, LINK.sub(led, text))


def _relative(path: str, here: str) -> str:
    return "../" * here.count("/") + path
