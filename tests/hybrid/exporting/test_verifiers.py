"""The export for verifiers: the content of its package, and the result of verifiers' own evaluation."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench._chat_server import CROP_BOX, answer_body, framed, offers_tools, on_thread, sight, tool_call, tool_results
from hybrid.cli import cli
from hybrid.core.errors import UsageError
from hybrid.exporting.base import ExportedRun, ExportOptions
from hybrid.exporting.verifiers import EXPORTER
from hybrid.log.folder import RunFolder

ROOT = Path(__file__).parents[3]
# verifiers needs openai below 3, so it is installed in a separate environment (.ci/run makes it).
PROGRAM = ROOT / ".venv-verifiers" / "bin" / "vf-eval"
COUNT = 20

pytestmark = pytest.mark.system


def with_options(traced: Path, tmp_path: Path, **options: object) -> ExportedRun:
    """Return a copy of the run's specialist as it would be recorded with these options."""
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    for file in ("manifest.json", "questions.jsonl", "specialist"):
        (folder.path / file).symlink_to(traced / file)
    manifest = {**folder.manifest, "options": {"benchmark": "blink", "data": "sample", **options}}
    (folder.path / "manifest.json").unlink()
    folder.write_manifest(manifest)
    return ExportedRun.at(folder.path / "specialist")


# The note on a run of generated questions.
GENERATED_NOTE = "generated questions: rewards in this environment are not results of BLINK"


def exported_options(run: ExportedRun, path: Path) -> tuple[dict[str, object], tuple[str, ...]]:
    export = EXPORTER.export(run, path, ExportOptions())
    assert {file.relative_to(path).as_posix() for file in export.paths} == {
        "pyproject.toml",
        f"{path.name}/__init__.py",
        f"{path.name}/run.json",
    }
    return json.loads((path / path.name / "run.json").read_text()), export.notes


def test_the_package_bears_its_name_and_holds_the_options_without_the_model(traced: Path, tmp_path: Path) -> None:
    changes = {"tools": "depth", "model": "openai:gpt-4o", "base-url": "http://10.0.0.1/v1", "run-max-cost": 3}
    options, notes = exported_options(with_options(traced, tmp_path, **changes), tmp_path / "vf_depth")
    assert options == {"benchmark": "blink", "data": "sample", "tools": "depth", "solver": ["specialist"]}
    assert notes == (GENERATED_NOTE,)
    module = (tmp_path / "vf_depth/vf_depth/__init__.py").read_text()
    compile(module, "vf_depth", "exec")
    assert "class VfDepthTaskset(" in module
    assert "my_environment" not in module + (tmp_path / "vf_depth/pyproject.toml").read_text()


def test_what_the_run_found_out_about_its_model_is_kept(traced: Path, tmp_path: Path) -> None:
    run = with_options(traced, tmp_path, **{"model-arg": {"frame": "probe", "price": "1/2"}})
    manifest = {
        **run.folder.manifest,
        "probed_frame": "thousandths",
        "tool_picture": {"verdict": "sees", "said": "7", "place": "inside"},
    }
    run.folder.write_manifest(manifest)
    options, _ = exported_options(run, tmp_path / "kept")
    assert options["model-arg"] == {"frame": "thousandths", "price": "1/2", "tool_pictures": "inside"}


def test_no_path_of_the_machine_leaves_it(traced: Path, tmp_path: Path) -> None:
    run = with_options(traced, tmp_path, data="/home/somebody/blink")
    options, notes = exported_options(run, tmp_path / "private")
    assert options["data"] == "blink"
    assert notes[0] == "run.json: data contained a path of this machine, which was removed: write it there again"
    assert notes[1:] == (GENERATED_NOTE,)
    identity = {**run.folder.manifest["identity"], "data": {"kind": "folder", "sha256": "0"}}
    run.folder.write_manifest({**run.folder.manifest, "identity": identity})
    assert len(exported_options(ExportedRun.at(run.folder.path / "specialist"), tmp_path / "real")[1]) == 1


def test_what_cannot_be_an_environment_is_one_line(traced: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="verifiers contains a single solver: give RUN/SOLVER"):
        EXPORTER.export(ExportedRun.at(traced), tmp_path / "a", ExportOptions())
    run = with_options(traced, tmp_path)
    for name in ("my-environment", "1a", "A"):
        with pytest.raises(UsageError, match="the name of a package may only have lower-case letters"):
            EXPORTER.export(run, tmp_path / name, ExportOptions())
    run.folder.write_manifest({key: value for key, value in run.folder.manifest.items() if key != "options"})
    with pytest.raises(UsageError, match="has no recorded options"):
        EXPORTER.export(run, tmp_path / "a", ExportOptions())
    assert not (tmp_path / "a").exists()


@pytest.fixture
def server() -> Iterator[str]:
    """Address of a model that calls crop first if it can, and answers A if it sees the crop."""

    def reply(_head: bytes, body: bytes) -> bytes:
        if (probed := sight(body)) is not None:
            return probed
        if offers_tools(body) and not tool_results(body):
            return framed(answer_body(tool_call(json.dumps({"images": ["img:1"], "box": CROP_BOX})), "tool_calls"))
        pictures = body.count(b"data:image")
        return framed(answer_body({"content": f"Answer: ({'A' if pictures % 2 == 0 else 'B'})"}, "stop"))

    with on_thread(reply) as url:
        yield f"{url}/v1"


@pytest.mark.skipif(
    not PROGRAM.exists(), reason="verifiers is not in .venv-verifiers: `bash .ci/run` installs it there"
)
def test_the_evaluation_of_verifiers_gives_the_number_of_the_run(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    data = f"blink --data sample --task Jigsaw --task Relative_Depth --limit {COUNT} --tools crop --backend classical"
    cli.main(
        f"run {data} --model openai:mock --base-url {server} --solver controller --out run".split(),
        standalone_mode=False,
    )
    assert EXPORTER.export(ExportedRun.at(Path("run/controller")), tmp_path / "crops", ExportOptions()).notes == (
        GENERATED_NOTE,
    )
    hybrid = str(Path(sys.executable).with_name("hybrid"))
    words = ["--env.taskset.hybrid", hybrid, "-m", "mock", "--client.base-url", server, "--no-push", "--no-rich"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "crops")}
    command = [str(PROGRAM), "crops", *words, "-c", "4", "-o", "out"]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    (file,) = Path("out").rglob("traces.jsonl")
    traces = [trace for line in file.read_text().splitlines() for trace in json.loads(line)["traces"]]
    rewards = {trace["task"]["data"]["question"]: trace["rewards"]["correct"]["score"] for trace in traces}
    scores = [json.loads(line) for line in Path("run/controller/scores.jsonl").read_text().splitlines()]
    assert rewards == {score["id"]: score["correct"] for score in scores}
    assert 0 < sum(rewards.values()) < len(rewards) == COUNT
    for trace in traces:
        parts = [
            part for node in trace["nodes"] for part in node["message"].get("content") or () if isinstance(part, dict)
        ]
        first = next(m["content"] for m in trace["task"]["data"]["prompt"] if m["role"] == "user")
        # The question's pictures are parts of the prompt; the tool's picture is in the conversation.
        first_images, sent_images = (sum(part["type"] == "image_url" for part in group) for group in (first, parts))
        assert sent_images == first_images + 1 >= 2
        assert any(node["message"].get("tool_calls") for node in trace["nodes"])
