"""HTML for notebooks: any text is shown as text; nothing is loaded and nothing runs."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.core.images import encode
from hybrid.core.secrets import keep_secret
from hybrid.display.html import Bar, as_html, interval_chart, paragraph, picture
from hybrid.display.tables import Column, Table
from hybrid.interface.answers import answers_of
from hybrid.log.folder import RunFolder

HOSTILE = (
    "<script>document.title='ran'</script>",
    '"><img src=x onerror="document.title=\'ran\'">',
    "' onload='document.title=1",
    "</td></table></p></svg></figure><iframe src=http://127.0.0.1:9/>",
    "&lt;b&gt;",
    "<!-- --><plaintext><textarea>",
)
TAGS = {
    *("div", "p", "table", "caption", "thead", "tbody", "tr", "th", "td", "figure", "figcaption", "img"),
    *("svg", "text", "line", "circle", "h2", "h3", "ol", "li", "b"),
}


class Seen(HTMLParser):
    """Collects the tags, attributes and text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def find_defects(page: str, *texts: str) -> list[str]:
    """Return the tags and attributes of the page that hybrid never writes, and the texts that it lacks."""
    seen = Seen(page)
    scripts = [name for name, _ in seen.attributes if name.startswith("on") or name in ("href", "srcdoc")]
    sources = [value or "" for name, value in seen.attributes if name == "src"]
    values = seen.text + "".join(value or "" for name, value in seen.attributes if name == "alt")
    return [
        *sorted(seen.tags - TAGS),
        *scripts,
        *(source for source in sources if not source.startswith("data:image/")),
        *(text for text in texts if text not in values),
    ]


@pytest.mark.parametrize("text", HOSTILE)
def test_every_part_is_text(text: str) -> None:
    table = Table(text, (Column(text), Column("b", "left")), ((text, text),), (text,))
    assert find_defects(as_html(table), text) == []
    assert find_defects(paragraph(text), text) == []
    assert find_defects(picture(b"x", "image/png", text), text) == []
    assert find_defects(interval_chart(text, [Bar(text, 0.5, 0.4, 0.6)]), text[:30]) == []


def test_secrets_are_left_out() -> None:
    keep_secret("sk-in-a-notebook-123456")
    assert "sk-in-a-notebook-123456" not in paragraph("the key sk-in-a-notebook-123456")


def test_a_chart_clips_values_and_leaves_out_what_is_no_number() -> None:
    chart = interval_chart("accuracy", [Bar("a", 0.5, 0.25, 0.75), Bar("b", float("nan")), Bar("c", 1.5)])
    seen = Seen(chart)
    assert ("cx", "380.0") in seen.attributes
    assert ("cx", "540.0") in seen.attributes
    assert {("x1", "300.0"), ("x2", "460.0")} <= set(seen.attributes)
    assert "nan" not in chart
    assert interval_chart("none", []) == ""


@pytest.mark.parametrize("text", HOSTILE)
def test_a_question_of_python_is_shown_with_its_pictures(text: str, fakes: Any) -> None:
    question = hybrid.Question(text, [encode(fakes.pixels(1)), "away.png"], "A", choices=[text, "b"])
    page = question._repr_html_()
    assert find_defects(page, text, f"(A) {text}", "away.png") == []
    assert page.count("<img ") == 1


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, synthetic_runs: Any) -> Path:
    """A finished run whose questions contain hostile texts."""
    folder: Path = tmp_path_factory.mktemp("hostile")
    synthetic_runs.write(folder, size=4, failed=1)
    return folder / "blink"


def test_scores_comparisons_and_questions_say_what_limits_them(run: Path) -> None:
    scores, compared, table = hybrid.score(run), hybrid.compare(run), hybrid.table(run)
    for page in (scores._repr_html_(), compared._repr_html_()):
        assert find_defects(page, "accuracy_macro", "warning: ") == []
        assert "<svg " in page
    sentences = [sentence.text for sentence in compared.conclusion]
    assert find_defects(compared._repr_html_(), *sentences) == []
    assert find_defects(table._repr_html_(), table[0]["id"]) == []
    assert find_defects(answers_of(RunFolder.existing(run))._repr_html_()) == []
