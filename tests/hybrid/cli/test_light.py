"""Installations without extras: models on servers work, and a command that needs an extra names it."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from hybrid.cli import COMMANDS as WORDS
from hybrid.core.errors import EXTRA_OF, LOCAL
from hybrid.core.types import Fault
from hybrid.log.folder import RunFolder
from hybrid.plugins.registry import load, names
from hybrid.serving.sources import Sources

pytestmark = pytest.mark.system

# A `sitecustomize.py`, which runs first in each Python process that finds it, including workers. It hides packages as
# if they were not installed.
WITHOUT = """
import sys
from importlib.machinery import PathFinder

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in ABSENT else PathFinder.find_spec(name, path, target)

    @staticmethod
    def find_distributions(context):
        return () if context.name in ABSENT else PathFinder.find_distributions(context)

sys.meta_path[sys.meta_path.index(PathFinder)] = Without
"""
COMMANDS = """
import contextlib, io, json, sys
from hybrid.cli import main
ended = []
for words in json.loads(sys.argv[1]):
    sys.argv = ["hybrid", *words]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    ended.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(ended))
"""
# The extra `diffusers` includes `local`.
ABSENT = sorted({*LOCAL, "diffusers"})
# Packages that `pip install -e .` alone does not install.
BARE = sorted({*ABSENT, *EXTRA_OF, "opencv-python-headless"})
ROOT = Path(__file__).resolve().parents[3]


def installs(extra: str) -> str:
    """Return the install command of an extra, as printed when the working directory is outside the checkout."""
    return f"uv pip install -e '{ROOT}[{extra}]'"


INSTALL = f"which the extra `local` installs: {installs('local')}"

Words = Sequence[object]


def light(folder: Path, *commands: Words, absent: Sequence[str] = ABSENT) -> list[tuple[int, str, str]]:
    """Return exit code, stdout and stderr of each command, run in turn in `folder` without the `absent` packages."""
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(f"ABSENT = {absent}\n{WITHOUT}")
    environment = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    environment |= {
        "HYBRID_HOME": str(folder / "home"),
        "HF_HUB_CACHE": str(folder / "hub"),
        "OPENAI_API_KEY": "not-a-key",
        "PYTHONPATH": str(folder / "site"),
    }
    values = [sys.executable, "-c", COMMANDS, json.dumps([list(map(str, words)) for words in commands])]
    result = subprocess.run(values, capture_output=True, text=True, check=False, env=environment, cwd=folder)
    assert result.returncode == 0, result.stderr
    return [(code, out, err) for code, out, err in json.loads(result.stdout)]


@pytest.fixture(scope="module")
def blink(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A question about depth and a puzzle, in BLINK's layout."""
    folder = tmp_path_factory.mktemp("blink")
    load("hybrid.benchmarks", "blink").generate(folder, ("Relative_Depth", "Jigsaw"), 1, 0)
    return folder


def asking(server: str, benchmark: str, data: object) -> Words:
    return ("run", benchmark, "--data", data, "--model", "openai:mock", "--base-url", server)


def test_servers_are_asked_and_runs_are_read(server: str, blink: Path, tmp_path: Path) -> None:
    solvers = ("--solver", "mllm", "--solver", "controller", "--solver", "specialist")
    commands: list[Words] = [
        (*asking(server, "blink", blink), *solvers, "--out", "run"),
        (*asking(server, "mm_sap", "sample"), "--solver", "mllm", "--limit", 1),
        ("export", "run", "--to", "parquet", "-o", "table.parquet"),
        # Other tests run further `tools` commands, and run these two with fewer packages installed.
        ("tools", "list"),
        ("tools", "show", "depth"),
    ]
    for words, (code, out, err) in zip(commands, light(tmp_path, *commands), strict=True):
        assert code == 0, (words, out, err)
        assert "Traceback" not in err
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert (manifest["environment"]["torch"], manifest["environment"]["transformers"]) == (None, None)
    assert manifest["environment"]["numpy"]
    assert manifest["solvers"]["specialist"]["tools"]["depth"]["backend"].startswith("classical:")
    # Weights are also absent, and each run reports that.
    assert any(line.startswith("depth: weights absent: ") for line in manifest["notices"])


def test_what_loads_weights_names_the_command_that_installs_its_packages(
    server: str, blink: Path, tmp_path: Path
) -> None:
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "model.safetensors").write_bytes(b"\0")
    (weights / "config.json").write_text('{"model_type": "depth_anything"}')
    arguments = ("--solver", "specialist", "--weights", f"depth={weights}", "--out", "given")
    *previous, run = light(
        tmp_path,
        ("run", "blink", "--data", blink, "--model", "embedded"),
        ("run", "blink", "--data", blink, "--model", f"hf:{weights}"),
        ("quickstart",),
        (*asking(server, "blink", blink), "--device", "cuda"),
        ("tools", "check", "depth", "--weights", weights),
        (*asking(server, "blink", blink), *arguments),
    )
    other = ", or take --backend classical"
    assert [(code, err.splitlines()[-1]) for code, _, err in previous] == [
        (2, f"hybrid: --model embedded needs torch, {INSTALL}"),
        (2, f"hybrid: --model hf:{weights} needs torch, {INSTALL}"),
        (2, f"hybrid: --model embedded needs torch, {INSTALL}"),
        (2, f"hybrid: --device cuda needs torch, {INSTALL}"),
        (2, f"hybrid: the learned backend of depth needs transformers, {INSTALL}{other}"),
    ]
    code, _, err = run
    assert code == 3
    waiting = "1 question open: the learned backend of depth needs transformers,"
    assert f"{waiting} {INSTALL}{other}; finished answers are saved" in err
    assert "Traceback" not in err


def test_without_any_extra_servers_are_asked_and_runs_are_read(server: str, photographs: Path, tmp_path: Path) -> None:
    ask = asking(server, "mvp_bench", photographs)
    solvers = ("--solver", "mllm", "--solver", "controller", "--solver", "specialist")
    commands: list[Words] = [
        ("--help",),
        *((word, "--help") for word in WORDS),
        ("tools", "list"),
        ("tools", "show", "depth"),
        (*ask, *solvers, "--out", "run"),
        (*ask, "--solver", "controller", "--tools", "crop", "--out", "named"),
        (*ask, "--solver", "controller", "--tools", "crop", "--tool-output", "blank", "--out", "blank"),
        ("score", "run", "--json"),
        ("compare", "run"),
        ("report", "run", "-o", "pages"),
        ("runs", "list", "."),
        ("plan", "--difference", "0.1"),
        ("benchmarks", "show", "blink"),
        ("export", "run/mllm", "--to", "vlmevalkit", "-o", "sheet.tsv"),
    ]
    text = light(tmp_path, *commands, absent=BARE)
    for words, (code, out, err) in zip(commands, text, strict=True):
        never_ran = 3 if words[-1] in ("named", "blank") else 0
        assert (code, "Traceback" in err) == (never_ran, False), (words, out, err)
    values = dict(zip(commands, text, strict=True))
    weight_free = [name for name in names("tools") if load("tools", name).backend("classical")]
    lacks = f"needs cv2, which the extra `vision` installs: {installs('vision')}"
    assert values["tools", "list"][2] == f"note: the weight-free backend of {', '.join(weight_free)} {lacks}\n"
    rendered = " ".join(values["tools", "show", "depth"][1].split())
    assert f"here no (the weight-free backend of depth {lacks})" in rendered
    assert "without them the tool does not answer" in rendered
    for words in commands:
        if words[0] == "run" and words[-1] != "--help":
            notes = [line for line in values[words][2].splitlines() if line.startswith("note: the weight-free")]
            assert len(notes) == 1
            assert notes[0].endswith(lacks)
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert {tool["backend"] for tool in manifest["solvers"]["specialist"]["tools"].values()} == {"absent"}
    assert manifest["environment"]["opencv-python-headless"] is None
    # A tool without a backend is not offered. If the user named it, its calls fail and other questions continue, but
    # the run counts as failed, because the tool never ran.
    assert tool_faults(tmp_path / "run", "controller") == []
    for run in ("named", "blank"):
        assert set(tool_faults(tmp_path / run, "controller")) == {Fault.ABSENT}
        result = next(err for words, (_, _, err) in values.items() if words[-1] == run).splitlines()[-1]
        assert result.startswith("failed: controller: 6 of 6 calls of crop failed: ")
        assert result.endswith(lacks)


def tool_faults(run: Path, solver: str) -> list[Fault | None]:
    attempts = RunFolder.existing(run).recorded(solver).by_id.values()
    steps = (step for attempt in attempts for exchange in attempt.exchanges for step in exchange.reply.steps)
    return [step.fault for step in steps if step.kind == "tool"]


OUTSIDE = """
import numpy as np
from hybrid.tool import Args, BackendCard, Card, Evidence, Picture, Tool

class Backend:
    def setup(self, device, weights): ...
    def run(self, requests):
        {body}
        return [Evidence("Seen.", {{}}, 1.0, {pictures}) for one in requests]

BACKEND = BackendCard("classical", "1", Backend, "Looks.")
TOOL = Tool(Card({name!r}, "Looks.", "None.", (BACKEND,)), Args)
"""


def test_without_any_extra_what_needs_one_is_said_in_a_line(
    server: str, photographs: Path, blink: Path, tmp_path: Path
) -> None:
    tools = tmp_path / "mine"
    tools.mkdir()
    payload = {
        "numbers": ("pass", "()"),
        "library": ("import cv2", "()"),
        "drawing": ("pass", "(Picture(one.images[0]),)"),
    }
    for name, (body, pictures) in payload.items():
        (tools / f"{name}.py").write_text(OUTSIDE.format(name=name, body=body, pictures=pictures))
    picture = next(photographs.rglob("*.jpg"))
    ask = (*asking(server, "mvp_bench", photographs), "--solver", "mllm")
    parquet, vision = (f"which the extra `{extra}` installs: {installs(extra)}" for extra in ("parquet", "vision"))
    joined = f"cropping, joining or drawing a picture needs cv2, {vision}"
    expected: dict[Words, str] = {
        ("data", "check", blink): f"{blink}/Jigsaw/val-00000-of-00001.parquet needs pyarrow, {parquet}",
        (*asking(server, "blink", blink), "--solver", "mllm"): (
            f"{blink}/Jigsaw/val-00000-of-00001.parquet needs pyarrow, {parquet}"
        ),
        (*asking(server, "blink", "sample"), "--solver", "mllm"): f"the generator of blink needs cv2, {vision}",
        ("tools", "check", "depth"): f"the weight-free backend of depth needs cv2, {vision}",
        ("tools", "run", "library", picture, "--path", tools): f"the tool needs cv2, {vision}",
        ("tools", "run", "drawing", picture, "--path", tools): f"drawing: {joined}",
    }
    run, exported, seen, *text = light(
        tmp_path,
        (*ask, "--out", "run"),
        ("export", "run", "--to", "parquet", "-o", "table.parquet"),
        ("tools", "run", "numbers", picture, "--path", tools),
        *expected,
        absent=BARE,
    )
    assert (run[0], seen[0]) == (0, 0), (run, seen)
    assert (exported[0], exported[2]) == (2, f"hybrid: --to parquet needs pyarrow, {parquet}\n")
    last = [(code, err.splitlines()[-1]) for code, _, err in text]
    assert last == [(2, f"hybrid: {line}") for line in expected.values()]


def test_each_weight_free_backend_that_imports_opencv_says_so() -> None:
    sources = Sources({"tools": [ROOT / "tools"], "hybrid.marks": [ROOT / "hybrid" / "marks"]})
    for name in names("tools"):
        classical = load("tools", name).backend("classical")
        if classical is None:
            continue
        files = (find_spec(module) for module in sources.reached((classical.make.__module__,)))
        uses = any("import cv2" in Path(str(file.origin)).read_text() for file in files if file is not None)
        assert (classical.library == "cv2") == uses, name
