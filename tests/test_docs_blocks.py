"""Every block of the documentation that is marked as runnable is run: README.md, CONTRIBUTING.md and docs/.

    uv run pytest tests/test_docs_blocks.py              # properties of every block
    uv run pytest -m "" tests/test_docs_blocks.py        # all pages followed, too

`tests/runnable.py` says which blocks are run and how. What a page needs besides an empty folder is in
test_docs_blocks.toml.
"""

import importlib.util
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hybrid.plugins.registry import names
from tests.runnable import (
    LANGUAGES,
    NOT_RUN,
    PAGES,
    ROOT,
    RUN,
    SHOWN,
    Page,
    Setting,
    commands,
    copy_of_the_checkout,
    follow,
    missing,
    run_python,
    write,
)
from tests.tables import cases

NAMES = [str(path.relative_to(ROOT)) for path in PAGES]
# The address of a model's server on the pages.
WRITTEN_AT = "http://127.0.0.1:8000/v1"
CHECKPOINT = ROOT / "hybrid" / "models" / "embedded" / "checkpoint"


@dataclass
class Place:
    """Environment in which a page is followed, and what the tests can add."""

    folder: Path
    servers: Any
    fakes: Any
    stack: ExitStack


def nothing(place: Place) -> Setting:
    """Return the setting of an empty folder."""
    del place
    return Setting()


def a_local_server(place: Place) -> Setting:
    """Return a setting with the demonstration model behind `transformers serve`, under the name ./model."""
    folder = place.folder.parent / "served"
    shutil.copytree(CHECKPOINT, folder / "model")
    return Setting(replace={WRITTEN_AT: place.stack.enter_context(place.servers.serving("./model", folder))})


def a_provider(place: Place) -> Setting:
    """Return a setting with a server that requires a key and has gpt-4o, in place of OpenAI's."""
    return Setting({"OPENAI_BASE_URL": place.stack.enter_context(place.servers.provider("YOUR_KEY", "gpt-4o"))})


def a_checkout(*prefix: str) -> Callable[[Place], Setting]:
    """Return the setting of a page that is followed in a copy of the checkout, with the files of other pages and the
    results of their Python."""

    def page_setting(place: Place) -> Setting:
        copy_of_the_checkout(place.folder)
        for name in prefix:
            for block in Page.read(name).blocks:
                if block.file:
                    write(block, place.folder, new=not block.table)
                elif block.language == "python":
                    run_python(block, {}, place.folder, name)
        return Setting(checkout=True)

    return page_setting


@dataclass(frozen=True)
class Given:
    """The setting of a page, and the texts that its commands must print."""

    place: Callable[[Place], Setting] = nothing
    # Beginning of each command of the page, in order, and a word of its output; empty if the page shows it.
    outputs: tuple[tuple[str, str], ...] = ()
    # Modules without which the page is not followed.
    needs: tuple[str, ...] = ()
    # A final check of the folder.
    after: tuple[Callable[[Path], None], ...] = field(default=())


def formatted(folder: Path) -> None:
    """Check that the files written by the page are formatted and linted like the rest."""
    page = Page.read(next(name for name in NAMES if (folder / ".page").read_text() == name))
    files = [block.file for block in page.blocks if block.file and block.file.endswith(".py")]
    assert files
    if shutil.which("ruff"):
        for words in (["check"], ["format", "--check"]):
            subprocess.run([sys.executable, "-m", "ruff", *words, *files], cwd=folder, check=True)


def said_in(copy: Path, *command: str) -> str:
    """Return the output of a command in a copy of the checkout."""
    environment = {**os.environ, "PYTHONPATH": str(copy), "HYBRID_HOME": str(copy / "home")}
    result = subprocess.run(
        [sys.executable, "-m", *command], cwd=copy, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, f"{command}: {result.stdout}\n{result.stderr}"
    return result.stdout


def the_one_line_is_a_rule(copy: Path) -> None:
    """Check docs/in-the-tree.md: the rule of the page's tool belongs to the copy of the checkout."""
    (copy / "asked_rule.py").write_text(
        "import tools.rules as r; from hybrid.solving.rules import table; "
        "print(r.__file__, table().rules['IQ_Test'].tools[0])",
        encoding="utf-8",
    )
    assert said_in(copy, "asked_rule").split() == [str(copy / "tools" / "rules" / "__init__.py"), "quarters"]


def a_new_tool_lies_where_the_page_says(copy: Path) -> None:
    """Check docs/in-the-tree.md: `hybrid tools new` writes the two files that the page names, and the test passes."""
    message = said_in(copy, "hybrid", "tools", "new", "blank")
    text = Page.read("docs/in-the-tree.md").text.replace("\n", " ")
    (match,) = re.findall(r"writes `(tools/NAME\.py)` and `(tests/tools/test_NAME\.py)`", text)
    for place in match:
        target = copy / place.replace("NAME", "blank")
        assert f"wrote {target}" in message
        assert target.is_file()
    assert "2 passed" in said_in(copy, "pytest", "-n", "0", str(target))


def only_these_are_touched(copy: Path) -> None:
    """Check docs/in-the-tree.md: the page writes nothing outside of the folders below."""
    del copy
    blocks = [block for block in Page.read("docs/in-the-tree.md").blocks if block.file]
    touched = {block.file if block.table else str(Path(str(block.file)).parent) for block in blocks}
    assert touched == {"tools/quarters", "hybrid/benchmarks/shades", "shades"}


def every_export_is_there(folder: Path) -> None:
    """Check docs/exchange.md: each `hybrid export` wrote the file of its -o."""
    blocks = [block for block in Page.read("docs/exchange.md").of(RUN) if not block.needs or SERVED_BY[block.needs]]
    lines = [shlex.split(line) for block in blocks for line in commands(block.text)]
    exports = [words for words in lines if words[1] == "export"]
    assert len(exports) >= 3
    for words in exports:
        assert (folder / words[words.index("-o") + 1]).exists(), words


SERVED_BY = {"inspect_ai": importlib.util.find_spec("inspect_ai") is not None}

PLACES: Mapping[str, Callable[..., Callable[[Place], Setting]]] = {
    "a_checkout": a_checkout,
    **{entry.__name__: lambda item=entry: item for entry in (nothing, a_local_server, a_provider)},
}
CHECKS = {
    check.__name__: check
    for check in (
        *(formatted, only_these_are_touched, the_one_line_is_a_rule),
        *(a_new_tool_lies_where_the_page_says, every_export_is_there),
    )
}


def _read_setting(row: Mapping[str, Any]) -> Given:
    return Given(
        PLACES[row.get("place", "nothing")](*row.get("before", ())),
        tuple((start, word) for start, word in row.get("said", ())),
        tuple(row.get("needs", ())),
        tuple(CHECKS[name] for name in row.get("after", ())),
    )


GIVEN: Mapping[str, Given] = {
    name: _read_setting(row) for name, row in tomllib.loads(Path(__file__).with_suffix(".toml").read_text()).items()
}
# Pages whose Python is run by a separate test, which also checks the results.
ELSEWHERE = {
    "docs/agents.md": "tests/hybrid/integrations/test_agents_page.py",
    "docs/python.md": "tests/hybrid/test_interface.py",
    "docs/tools-elsewhere.md": "tests/hybrid/integrations/test_page.py",
    "README.md": "tests/test_readme.py",
}


def page_setting(name: str) -> Given:
    """Return the setting of a page; an empty folder by default."""
    return GIVEN.get(name, Given())


def is_followed(name: str) -> bool:
    """Return whether a page has something to run here."""
    return name not in ELSEWHERE and any(Page.read(name).of(language) for language in (RUN, "python"))


@pytest.mark.system
@pytest.mark.parametrize("name", [name for name in NAMES if is_followed(name)])
def test_every_runnable_block_of_a_page_runs(
    name: str, tmp_path: Path, servers: Any, fakes: Any, drawings: Path
) -> None:
    page, expected = Page.read(name), page_setting(name)
    for module in expected.needs:
        pytest.importorskip(module)
    (tmp_path / "here" / ".home").mkdir(parents=True)
    drawings.mkdir(exist_ok=True)
    (tmp_path / "here" / ".home" / "samples").symlink_to(drawings)
    with ExitStack() as stack:
        place = Place(tmp_path / "here", servers, fakes, stack)
        setting = expected.place(place)
        (place.folder / ".page").write_text(name)
        text = follow(page, place.folder, setting)
        if expected.outputs:
            assert len(text) == len(expected.outputs)
            for item, (start, word) in zip(text, expected.outputs, strict=True):
                assert item.command.startswith(start)
                assert word
                assert word in item.output, item
        for check in expected.after:
            check(place.folder)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(("docs/how-to/", "docs/tutorials/"))])
def test_a_page_writes_the_data_and_recordings_that_it_uses(name: str) -> None:
    # Blocks that end in an error show mistakes.
    blocks = [block for block in Page.read(name).of(RUN) if block.exit_code != 2]
    lines = [shlex.split(line, comments=True) for block in blocks for line in commands(block.text)]
    ready: set[str] = set()
    for words in lines:
        if words[:3] == ["hybrid", "data", "sample"]:
            ready |= {words[words.index("-o") + 1]}
            ready |= set(words[words.index("--replies") + 1].split(",")) if "--replies" in words else set()
            continue
        used = [after for word, after in itertools.pairwise(words) if word == "--data"]
        used += [word.removeprefix("replay:") for word in words if word.startswith("replay:")]
        assert set(used) - {"hub", "sample"} <= ready, f"{name}: {shlex.join(words)}"


def test_what_is_given_is_given_to_a_page() -> None:
    assert set(GIVEN) | set(ELSEWHERE) <= set(NAMES)
    assert all((ROOT / test).is_file() for test in ELSEWHERE.values())


@pytest.mark.parametrize("name", NAMES)
def test_every_block_says_what_it_is(name: str) -> None:
    blocks = Page.read(name).blocks
    for previous, block in zip((None, *blocks), blocks, strict=False):
        text = f"{name}:{block.line}"
        assert block.language in LANGUAGES, text
        assert block.language != SHOWN or (previous is not None and previous.expected_output == block.text), (
            f"{text}: of no command"
        )
        assert block.language != "" or not re.search(r"^(?:uv |\$ )?\s*hybrid [a-z]", block.text, re.MULTILINE), text


@pytest.mark.parametrize("name", [name for name in NAMES if Page.read(name).of(NOT_RUN) or Page.read(name).of(RUN)])
def test_every_test_that_a_command_names_exists(name: str) -> None:
    """Every test that a command names exists. tests/test_documents.py checks the commands and options."""
    page = Page.read(name)
    texts = {str(block.file) for page in map(Page.read, NAMES) for block in page.blocks}
    for block in (*page.of(NOT_RUN), *page.of(RUN)):
        for line in commands(block.text):
            for path in re.findall(r"\btests/[\w/]+\.py\b", line):
                assert (ROOT / path).is_file() or path in texts, line


@pytest.mark.parametrize(*cases(__file__, "test_what_a_page_shows_is_looked_for_line_by_line"))
def test_what_a_page_shows_is_looked_for_line_by_line(expected: str, output: str, unlike: str | None) -> None:
    assert missing(expected, output) == unlike


@pytest.mark.system
def test_a_command_that_ends_otherwise_fails_the_page(tmp_path: Path) -> None:
    broken = Page("made.md", "", (type(Page.read("docs/data.md").blocks[0])(RUN, "hybrid run nothing\n", 1),))
    with pytest.raises(AssertionError, match="ended with 2"):
        follow(broken, tmp_path, Setting())


def test_every_format_of_an_export_is_on_its_page() -> None:
    text = Page.read("docs/exchange.md").text
    formats = set(re.findall(r"^\| `(\w+)` \| [^|]+ \| (?:one|all) \|", text, re.MULTILINE))
    assert formats == set(names("hybrid.exporting"))
