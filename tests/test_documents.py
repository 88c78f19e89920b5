"""Commands, options, measurements, files and anchors that the documentation names exist."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
MEASUREMENTS = sorted((ROOT / "bench" / "results").glob("*.md"))
PAGES = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *MEASUREMENTS,
)
# Pages that are written completely by a program.
WRITTEN = frozenset(("by_task", "conformity", "conformity_pictures", "reproducing"))
# Largest number of words of a page, as `wc -w` counts them.
WORDS = {"README.md": 1_500, "CONTRIBUTING.md": 600}
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_and_options_exist(page: Path, command_lines: Any) -> None:
    wrong = {
        line: result for line in command_lines.commands(page.read_text()) if (result := command_lines.unknown(line))
    }
    assert wrong == {}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_measurements_and_their_options_exist(page: Path, command_lines: Any) -> None:
    lines = command_lines.benches(page.read_text())
    assert {line: result for line in lines if (result := command_lines.unknown_to_bench(line))} == {}


@pytest.mark.parametrize("page", MEASUREMENTS, ids=name_of)
def test_measurements_have_a_date(page: Path) -> None:
    assert page.stem in WRITTEN or re.search(r"20\d\d-\d\d-\d\d", page.read_text()), "say when it was measured"


@pytest.mark.parametrize("page", MEASUREMENTS, ids=name_of)
def test_a_table_of_measurements_has_the_command_that_made_it(page: Path, command_lines: Any) -> None:
    head, _, tables = page.read_text().partition("\n| ")
    assert tables
    assert [*command_lines.benches(head), *command_lines.commands(head), *re.findall(r"bench/\w+\.py", head)]


@pytest.mark.parametrize("page", WORDS)
def test_the_first_pages_stay_short(page: str) -> None:
    assert len((ROOT / page).read_text().split()) <= WORDS[page]


def test_no_advice_uninstalls_what_else_is_there() -> None:
    rooms = [path for room in ("hybrid", "tools", "graphs", "baselines") for path in (ROOT / room).rglob("*.py")]
    advice = re.compile(r"uv sync --extra|(?<!uv )pip install (-e )?['\"][^'\"]*\[")
    assert [name_of(path) for path in (*PAGES, *rooms) if advice.search(path.read_text())] == []


def test_commands_are_found_wherever_a_page_has_them(command_lines: Any) -> None:
    text = (
        "See `hybrid run\nblink --limit 5`.\n\n```bash run\npip install uv && uv run hybrid score A --json | head\n"
        "HYBRID_HOME=x hybrid run blink \\\n  --limit 3   # hybrid nothing\n```\n\nAnd\n\n"
        "    hybrid compare RUN\n\n`hybrid.tool` and hybrid solver are none, `python -m bench.loop --repeat 2` is.\n"
    )
    assert sorted(command_lines.commands(text)) == [
        *("compare RUN", "run blink --limit 3", "run blink --limit 5", "score A --json")
    ]
    assert command_lines.benches(text) == ["loop --repeat 2"]


def test_what_is_unknown_is_named(command_lines: Any) -> None:
    assert command_lines.unknown("run blink --limit 5 --no-cache") == []
    assert command_lines.unknown('tools run crop a.jpg --args \'{"a": "-b"}\' --jsn') == ["--jsn"]
    assert command_lines.unknown("tols list") == ["tols"]
    assert command_lines.unknown("tools lst") == ["lst"]
    assert command_lines.unknown_to_bench("loop --repeat 2 --reapet 3") == ["--reapet"]
    assert command_lines.unknown_to_bench("lop") == ["lop"]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path, command_lines: Any) -> None:
    wrong = []
    for path, anchor in LINK.findall(command_lines.prose(page.read_text())):
        target = (page.parent / path).resolve() if path else page
        # Pages below docs/reference are generated from code: tests/test_site.py checks them.
        if name_of(target).startswith("docs/reference/"):
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(f"{path}#{anchor}")
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_row_has_as_many_cells_as_its_header(page: Path) -> None:
    wrong, width = [], 0
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = line.count("|") - line.count("\\|") if line.startswith("|") else 0
        if cells and width and cells != width:
            wrong.append(line)
        width = width or cells if cells else 0
    assert wrong == []


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    heads = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def test_the_families_that_are_said_to_load_are_those_that_do() -> None:
    from tools import attributes, depth, detection, segmentation, similarity
    from tools._shared import dense_features, transformers_matchers
    from tools.saliency import models as attention

    networks, likeness = segmentation.models, similarity.models
    loads = {
        "depth": depth.models.FAMILIES,
        "segmentation": (*networks.BY_PLACE, *networks.BY_WORDS, *networks.BOTH),
        "detection": detection.models.FAMILIES,
        "semantic_correspondence": dense_features.FAMILIES,
        "saliency": attention.FAMILIES,
        "similarity": (*likeness.CLASS_TOKEN, *likeness.POOLED),
        "attributes": attributes.FAMILIES,
        "correspondence": transformers_matchers.FAMILIES,
    }
    page = (ROOT / "docs" / "specialists.md").read_text().partition("## What loads")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| `")]
    by_row = {tool: set(re.findall(r"`([^`]+)`", row[1])) for row in rows for tool in re.findall(r"`(\w+)`", row[0])}
    assert {tool: by_row[tool] for tool in loads} == {tool: set(families) for tool, families in loads.items()}
    # The last column lists families that the library lacks. If the library supports one of them, the name must move to
    # the column of those that load.
    spec = importlib.util.find_spec("transformers")
    library = {path.name for path in Path(str(spec and spec.origin)).with_name("models").iterdir()}
    absent = [name.strip() for row in rows for name in row[2].split(",") if name.strip()]
    assert "Depth Anything 3" in absent
    assert {name.lower().replace(" ", "_") for name in absent} & library == set()
    assert "depth_anything" in library
