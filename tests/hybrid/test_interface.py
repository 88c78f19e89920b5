"""The Python functions of `hybrid` import fast, give the same numbers as the commands, and work in a notebook."""

import asyncio
import base64
import importlib.util
import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

import hybrid
from hybrid.benchmarks.blink import BENCHMARK
from hybrid.cli import cli
from hybrid.config import RunConfig, ServiceOptions
from hybrid.core.errors import DataError, ToolError, UsageError
from hybrid.core.images import ImageStore, encode
from hybrid.core.types import BrokenQuestion
from hybrid.interface.findings import ShownFinding
from hybrid.running.data import mount, questions
from hybrid.tool import Tool
from tests.runnable import Page, commands
from tests.tables import cases

PAGE = Page.read("docs/python.md")


@pytest.fixture
def photo(tmp_path: Path) -> bytes:
    """A generated picture of BLINK's relative depth: a scene with the points A and B."""
    store = ImageStore(tmp_path / "store")
    mounted = mount(BENCHMARK, "sample", split=None, tasks=("Relative_Depth",), settings={}, store=store, limit=1)
    (question,) = questions(BENCHMARK, mounted.source, 1)
    assert not isinstance(question, BrokenQuestion)
    return store.read(question.images[0])


@pytest.fixture
def picture_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, photo: bytes) -> Path:
    """A working directory that contains only the picture `photo`."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "photo.jpg").write_bytes(photo)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.system
@pytest.mark.skipif(importlib.util.find_spec("pandas") is None, reason="pandas is not installed")
def test_the_page_runs_as_it_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for line in commands(PAGE.of("bash")[0].text):
        assert CliRunner().invoke(cli, line.split()[1:]).exit_code == 0
    for block in PAGE.of("python"):
        exec(compile(block.text, PAGE.name, "exec"), names)  # noqa: S102 - the page is ours
    finding, name, report = names["finding"], names["again"], names["report"]
    with Image.open("depth.png") as saved:
        assert np.array_equal(np.asarray(saved), np.asarray(finding.images[0]))
    assert (name.text, name.data) == (finding.text, finding.data)
    assert set(report.as_json()["solvers"]) == {"mllm", "specialist"}
    out = capsys.readouterr().out
    assert out.startswith(f"{finding}\n")
    assert "\nfailed: " in out
    assert f"\n{report}\n" in out
    # The commands print what the functions return for the same run.
    for words, text in (
        (["score", "runs/blink"], str(hybrid.score("runs/blink")) + "\n"),
        (["score", "runs/blink", "--json"], json.dumps(hybrid.score("runs/blink").as_json()) + "\n"),
        (["compare", "runs/blink", "--baseline", "mllm", "--markdown"], names["compared"].render("markdown")),
        (["compare", "runs/blink", "--json"], json.dumps(hybrid.compare("runs/blink").as_json()) + "\n"),
        (["score", "runs/blink", "--unanswered", "guess"], str(names["scores"]) + "\n"),
    ):
        assert CliRunner().invoke(cli, words).stdout == text
    frame = names["table"]
    specialist = report.as_json()["solvers"]["specialist"]
    rows = frame[(frame.solver == "specialist") & (frame.unanswered == "guess") & (frame.metric == "accuracy_macro")]
    assert set(frame.unanswered) == {"guess"}
    assert len(rows) == 1
    # By default an unanswered question is wrong, so counting it as a guess scores at least as much.
    assert specialist["metrics"]["accuracy_macro"] <= rows.value.item()
    rows = names["compared"].as_json()["results"]
    frame = names["compared"].to_pandas()
    assert frame.quantity.tolist() == [row["quantity"] for row in rows]
    expected_values = frame[frame.section == "differences"].value.tolist()
    assert expected_values == [row["value"] for row in rows if row["section"] == "differences"]


@pytest.mark.system
def test_the_import_is_instant() -> None:
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import hybrid"], capture_output=True, text=True, check=True
    )
    loaded = set(re.findall(r"^import time:.*\|\s*(\S+)$", result.stderr, re.MULTILINE))
    assert "hybrid" in loaded
    heavy = ("numpy", "pydantic", "click", "torch", "PIL", "pandas", "scipy", "langchain", "asyncio")
    assert not {name for name in loaded if name.split(".")[0].startswith(heavy)}
    assert {name for name in loaded if name.startswith("hybrid")} == {"hybrid", "hybrid.version"}


@pytest.mark.system
@pytest.mark.parametrize(
    "first", ["import hybrid.tool", "from hybrid.tool import Tool", "import hybrid.plugins.registry"]
)
def test_tool_stays_a_function_when_its_module_is_imported(first: str) -> None:
    code = f"import hybrid\n{first}\nfrom hybrid.tool import Tool\nassert callable(hybrid.tool), hybrid.tool"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert isinstance(hybrid.tool("crop").tool, Tool)


def test_what_cannot_be_read_or_is_no_argument_is_an_error(picture_folder: Path) -> None:
    Path("empty.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"empty\.png"):
        hybrid.tool("crop").run("empty.png")
    with pytest.raises(ToolError, match="wrong arguments for depth: lables"):
        hybrid.tool("depth").run("photo.jpg", lables=["A"])


async def test_a_tool_runs_where_a_loop_is_running(picture_folder: Path) -> None:
    assert asyncio.get_running_loop()
    assert hybrid.tool("depth").run("photo.jpg", backend="classical").backend == "classical"


def test_a_configuration_may_be_handed_in_whole(picture_folder: Path) -> None:
    config = RunConfig(
        "blink", ("specialist",), data="sample", tasks=("Jigsaw",), limit=2, out=picture_folder / "runs" / "whole"
    )
    report = hybrid.run(replace(config, service=ServiceOptions("classical")))
    assert {row["solver"] for row in report.rows()} == {"specialist"}
    with pytest.raises(UsageError, match="put it into the RunConfig"):
        hybrid.run(config, limit=3)


def test_a_finding_shows_its_text_and_its_pictures(fakes: Any) -> None:
    png = encode(fakes.pixels(1))
    finding = ShownFinding("A < B & C", {"depth_0_1": 0.5}, 0.875, "classical", "v1", (png, png), ("a note",))
    text = finding._repr_html_()
    assert "<p>A &lt; B &amp; C</p>" in text
    assert "<p>note: a note</p>" in text
    encoded = re.findall(r'src="data:image/png;base64,([^"]+)"', text)
    assert [base64.b64decode(item) for item in encoded] == [png, png]
    assert str(finding) == "A < B & C\nconfidence 0.88, classical backend, version v1\nnote: a note"
    assert np.array_equal(np.asarray(finding.images[0]), np.asarray(Image.open(io.BytesIO(png))))


@pytest.mark.parametrize(*cases(__file__, "test_an_option_is_checked_as_the_command_does", list))
def test_an_option_is_checked_as_the_command_does(picture_folder: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        hybrid.run("blink", **options)


def test_options_are_values_of_the_fields() -> None:
    from hybrid.cli._sources import read_keywords
    from hybrid.cli.from_python import KEYWORDS

    options: dict[str, Any] = {
        "solvers": ["mllm", "arbiter"],
        "task": "Jigsaw",
        "tools": ["depth", "crop"],
        "model": None,
        "rotate": True,
        "no_cache": False,
        "format_line": False,
        "seed": -1,
        "max_cost": 0.5,
        "setting": {"hints": "on"},
        "out": Path("runs/a"),
    }
    assert read_keywords(options, KEYWORDS) == {
        "solver": ("mllm", "arbiter"),
        "task": ("Jigsaw",),
        "tools": ("depth", "crop"),
        "rotate": True,
        # `no_cache=False` sets the field `cache` to True; the result has the field's value under the option's name.
        "no_cache": True,
        "format_line": False,
        "seed": -1,
        "max_cost": 0.5,
        "setting": {"hints": "on"},
        "out": Path("runs/a"),
    }


def test_an_unknown_option_of_scores_is_refused(picture_folder: Path) -> None:
    with pytest.raises(TypeError, match="abstian"):
        hybrid.score(picture_folder, abstian="wrong")  # type: ignore[call-arg]


def test_without_pandas_the_package_is_named(picture_folder: Path, fakes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = {"idx": "val_Jigsaw_1", "answer": "(A)", "full_prediction": "(A)", "prediction": "(A)"}
    Path("Jigsaw.json").write_text(json.dumps({"val": [saved], "test": []}))
    report = hybrid.score(picture_folder, benchmark="blink")
    assert [(row["solver"], row["value"]) for row in report.rows() if row["unanswered"] == "wrong"] == [
        ("here", 1.0)
    ] * 2
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="pip install pandas"):
        report.to_pandas()
