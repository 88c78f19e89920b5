"""Tool outputs in a notebook, in a real browser: any text of a tool is shown as text, and runs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hybrid.core.images import encode
from hybrid.interface.findings import ShownFinding

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.system

TEXTS = (
    "<script>document.title='ran'</script>",
    "<img src=x onerror=\"document.title='ran'\">",
    "<svg onload=\"document.title='ran'\"></svg>",
    "</p><iframe srcdoc=\"<script>top.document.title='ran'</script>\"></iframe>",
    "<a href=\"javascript:document.title='ran'\" autofocus onfocus=\"document.title='ran'\">x</a>",
    "<details open ontoggle=\"document.title='ran'\">x</details>",
    "<style>@import 'http://127.0.0.1:9/x'; p { display: none }</style>",
    "<link rel=stylesheet href=http://127.0.0.1:9/x><base href=http://127.0.0.1:9/>",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>",
    "<form action=http://127.0.0.1:9/><input autofocus onfocus=\"document.title='ran'\"></form>",
    "&lt;script&gt;document.title='ran'&lt;/script&gt;",
    "<!-- --><plaintext><textarea>",
    "' onerror='document.title=1' \" onerror=\"document.title=1\" `",
    "\u202e<b>turned</b>\u0000\x1b[31m",
    "$$\\href{javascript:document.title='ran'}{x}$$ ![x](http://127.0.0.1:9/x)",
)


@pytest.fixture
def rendered_outputs() -> str:
    """Return an output for each text, in every field that a tool or a backend's card writes."""
    png = encode(_square())
    outputs = [ShownFinding(text, {text: text}, 0.5, text, text, (png,), (text, f"{text}\n{text}")) for text in TEXTS]
    return "".join(f"<div class=output>{output._repr_html_()}</div>" for output in outputs)


def _square() -> Any:
    import numpy as np

    return np.zeros((4, 4, 3), np.uint8)


@pytest.mark.parametrize("mode", ["document", "innerHTML", "fragment"])
def test_what_a_tool_says_is_text_in_a_notebook(browser: Browser, rendered_outputs: str, mode: str) -> None:
    """A notebook inserts an output as HTML. The scripts in it run (in a fragment of a range) or not (in
    `innerHTML`)."""
    page, requests, wrong = browser.new_page(), list[str](), list[str]()
    page.on("request", lambda request: requests.append(request.url) if not request.url.startswith("data:") else None)
    page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.set_content(f"<title>notebook</title><main>{rendered_outputs if mode == 'document' else ''}</main>")
    insert = {
        "document": "html => 0",
        "innerHTML": "html => document.querySelector('main').innerHTML = html",
        "fragment": "html => document.querySelector('main').append("
        "document.createRange().createContextualFragment(html))",
    }
    page.evaluate(insert[mode], rendered_outputs)
    page.wait_for_function("[...document.images].every(image => image.complete)")
    tags = "[...new Set([...document.querySelectorAll('main *')].map(element => element.localName))].sort()"
    assert page.evaluate(tags) == ["div", "img", "p"]
    assert page.evaluate("document.images.length") == len(TEXTS)
    attributes = "[...new Set([...document.querySelectorAll('main *')].flatMap(e => e.getAttributeNames()))].sort()"
    assert page.evaluate(attributes) == ["class", "src", "style"]
    lines = page.evaluate("[...document.querySelectorAll('main p')].map(line => line.textContent)")
    # An HTML parser cannot represent a null character.
    for text in TEXTS:
        assert any(text.replace("\0", "") in line.replace("\ufffd", "").replace("\0", "") for line in lines)
    assert (page.title(), requests, wrong) == ("notebook", [], [])
    page.close()
