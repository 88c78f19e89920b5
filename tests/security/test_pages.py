"""Pages that the project writes show foreign text as text and let a browser run nothing.

Every field of the gallery with foreign content holds a hostile text; the parser of the standard library shows what a
browser makes of the page.
"""

import base64
import hashlib
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hybrid.cli import cli
from hybrid.cli._tool_gallery import Figure, GallerySection, page

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "closing tags": "</p></figure></section></style></title><script>alert(1)</script>",
    "event handler": '<img src=x onerror="alert(1)">',
    "attribute": '" onload="alert(1)" x="',
    "attribute in single quotes": "' onclick='alert(1)' x='",
    "svg": "<svg><script>alert(1)</script><a xlink:href='javascript:alert(1)'>x</a></svg>",
    "template": "{{ 7 * 7 }}{% for x in y %}{{ ''.__class__ }}",
    "comment": "<!--><script>alert(1)</script-->",
    "entities": "&lt;script&gt;alert(1)&lt;/script&gt;&#60;script&#62;",
    "refresh": '<meta http-equiv="refresh" content="0;url=http://127.0.0.1/">',
    "base": '<base href="http://127.0.0.1/">',
    "form": "<form action=http://127.0.0.1/><input name=q autofocus onfocus=alert(1)>",
    "right to left": "\u202egnp.evil\u2066 \u200f",
    "nul": "a\x00<scr\x00ipt>b\x1b[2J",
    "half a surrogate": "a\ud800b",
    "a megabyte": "<b>" + "x" * 1_000_000,
}
KNOWN = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "h1",
    "ul",
    "li",
    "bdi",
    "section",
    "h2",
    "small",
    "div",
    "figure",
    "a",
    "img",
    "figcaption",
    "b",
    "p",
}
ATTRIBUTES = {*{"lang", "charset", "http-equiv", "content", "name", "class", "href", "src", "alt", "loading", "dir"}}


class Seen(HTMLParser):
    """The elements and attributes of a page, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.elements.append("comment")


def plain(text: str) -> str:
    return re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", "\ufffd", text)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_text_on_the_page(text: str) -> None:
    rendered = Figure(text, text, text, ("001.jpg", "001-b.png"))
    output = page([text], [GallerySection(text, text, (rendered, Figure("t", text, failed=True)))])
    harmless = page(
        ["x"],
        [GallerySection("x", "x", (Figure("x", "x", "x", ("001.jpg", "001-b.png")), Figure("t", "x", failed=True)))],
    )
    seen = Seen(output.encode().decode())
    assert seen.elements == Seen(harmless).elements
    assert set(seen.elements) <= KNOWN
    assert {name for name, _ in seen.attributes} <= ATTRIBUTES
    assert {value for name, value in seen.attributes if name in ("href", "src")} == {"001.jpg", "001-b.png"}
    assert seen.text.count(plain(text)) >= 6


def test_the_policy_lets_nothing_run_and_nothing_load_from_elsewhere() -> None:
    text = page([], [])
    seen = Seen(text)
    (policy,) = [value for name, value in seen.attributes if name == "content" and "default-src" in value]
    parts = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    style = text.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert parts == {
        "default-src": "'none'",
        "img-src": "'self' file:",
        "style-src": f"'sha256-{digest}'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    # A content security policy applies only to what comes after it.
    assert text.index("Content-Security-Policy") < text.index("<style>")
    assert "style=" not in text


@pytest.mark.system
def test_names_of_files_are_text_and_never_names_of_files_of_ours(tmp_path: Path, fakes: Any) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    names = ["<script>alert(1)<script>.png", "\u202egnp.png", "a\nb.png", "-o.png", "' onerror='x.png", "bad\udcff.png"]
    for name in names:
        (folder / name).write_bytes(b"no image")
    # The file whose name sorts first is an image, so that a picture of it is written.
    (folder / min(names)).write_bytes(fakes.encoded(fakes.pixels(1, (80, 60))))
    outside = tmp_path / "outside"
    outside.write_bytes(b"precious")
    out = tmp_path / "page"
    out.mkdir()
    (out / "index.html").symlink_to(outside)
    (out / "001.jpg").symlink_to(outside)
    finished = CliRunner().invoke(
        cli, ["tools", "gallery", str(folder), "-o", str(out), "--backend", "classical", "--limit", "6"]
    )
    assert finished.exit_code == 0, finished.output
    assert outside.read_bytes() == b"precious"
    seen = Seen((out / "index.html").read_text())
    assert "script" not in seen.elements
    assert all(plain(name) in seen.text for name in names)
    assert all(re.fullmatch(r"[\w-]+\.(html|jpg|png)", path.name) for path in out.iterdir())


def test_a_pipe_in_the_folder_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    finished = CliRunner().invoke(cli, ["tools", "gallery", str(tmp_path), "-o", str(tmp_path / "page")])
    assert "contains no image" in str(finished.exception)
