"""Commands that write to a full disk: one line with the file and the remedy, no partial file, and a rerun works.

Tests use their own file system of a few kilobytes; they are skipped if the system does not allow mounting one.
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.finished_runs import Command
from tests.hybrid.exporting.conversation_runs import write

pytestmark = pytest.mark.system
PAGE_KB = 4
ADVICE = "No space left on device; free some space and repeat the command"
# By format, the name of the file that is written. If the format allows only one solver, the run is reduced to one.
EXPORTS = {
    "conversations": "out",
    "every_eval_ever": "out",
    "lmms_eval": "out",
    "parquet": "out.parquet",
    "sharegpt": "out",
    "table": "out.csv",
    "vlmevalkit": "out.xlsx",
    "vlmevalkit.tsv": "out.tsv",
    "table.parquet": "out.parquet",
}
# Leave out scores, because another test may have scored the run.
SCORES = shutil.ignore_patterns("scores.json*")
SINGLE = ("lmms_eval", "vlmevalkit")
MORE = {
    "every_eval_ever": ("--allow", "generated"),
    "conversations": ("--only", "all"),
    "sharegpt": ("--only", "all"),
}


class SmallDisk:
    """A mounted file system of a few memory pages, which can be enlarged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def resize(self, kilobytes: int) -> None:
        """Resize the disk, at least to the size of its contents."""
        words = ["mount", "-o", f"remount,size={kilobytes}k", str(self.folder)]
        subprocess.run(words, check=True, capture_output=True)

    def make_read_only(self) -> None:
        """Make the disk read-only, for root as well."""
        subprocess.run(["mount", "-o", "remount,ro", str(self.folder)], check=True, capture_output=True)

    def files(self) -> list[Path]:
        """Return all paths on the disk that are not folders."""
        return [path for path in self.folder.rglob("*") if not path.is_dir()]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={PAGE_KB}k", "tmpfs", str(folder)]
    if subprocess.run(words, check=False, capture_output=True).returncode:
        pytest.skip("this system lets no test mount a file system")
    yield SmallDisk(folder)
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture(scope="module")
def runs(large_runs: Callable[[int], Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A synthetic run, and one whose conversations can be reconstructed; each has its home next to it."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HYBRID_HOME", str(folder / "home"))
        # Copy the shared run, because exports write scores next to its answers.
        made_up = Path(shutil.copytree(large_runs(28), folder / "made_up")) / "run"
        return {"made_up": made_up, "scripted": write(folder / "scripted", "native").path}


@pytest.fixture
def named_run(runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch, hybrid_home: Path) -> Callable[[str], Path]:
    del hybrid_home  # requested so that the empty home of the test is set first

    def run_named(name: str) -> Path:
        path = runs[name]
        home = next(parent / "home" for parent in path.parents if (parent / "home").is_dir())
        monkeypatch.setenv("HYBRID_HOME", str(home))
        return path

    return run_named


def refused_until_larger(command: Command, disk: SmallDisk, *words: object) -> int:
    """Run a command until it succeeds, each time with a disk four times as large; return how often the command was
    refused."""
    size, refusals = PAGE_KB, 0
    while (result := command(*words)).code == 2:
        (line,) = result.err.strip().splitlines()
        assert line.startswith(f"hybrid: {disk.folder / 'new' / 'out'}")
        assert line.endswith(ADVICE)
        assert not disk.files()
        size, refusals = size * 4, refusals + 1
        assert size < 2**20
        disk.resize(size)
    assert result.code == 0
    assert disk.files()
    return refusals


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export(command: Command, disk: SmallDisk, named_run: Callable[[str], Path], name: str) -> None:
    form = name.partition(".")[0]
    run = named_run("scripted" if form in ("conversations", "sharegpt") else "made_up")
    source = run / "mllm" if form in SINGLE else run
    words = ("export", source, "--to", form, "-o", disk.folder / "new" / EXPORTS[name], *MORE.get(form, ()))
    assert refused_until_larger(command, disk, *words) > 0


def test_a_report(command: Command, disk: SmallDisk, named_run: Callable[[str], Path]) -> None:
    words = ("report", named_run("made_up"), "-o", disk.folder / "new" / "out", "--quiet")
    assert refused_until_larger(command, disk, *words) > 2


def test_generated_data(command: Command, disk: SmallDisk) -> None:
    words = ("data", "sample", "--task", "Jigsaw", "--each", 2, "-o", disk.folder / "new" / "out")
    assert refused_until_larger(command, disk, *words) > 1


def test_scores_are_printed_though_the_run_cannot_keep_them(
    command: Command, disk: SmallDisk, named_run: Callable[[str], Path]
) -> None:
    disk.resize(2**14)
    run = Path(shutil.copytree(named_run("made_up"), disk.folder / "run", ignore=SCORES))
    disk.resize(sum(path.stat().st_blocks for path in disk.files()) // 2)
    for words in (("score", run, "--json"), ("compare", run, "--json")):
        result = command(*words, code=0)
        assert json.loads(result.out)
        assert "cannot be saved there (No space left on device)" in result.err
    assert not list(run.rglob("scores.jsonl*"))
    disk.resize(2**14)
    command("score", run, code=0)
    assert list(run.glob("*/scores.jsonl"))


def test_a_run_goes_on_where_it_stopped(command: Command, disk: SmallDisk, fakes: Any, tmp_path: Path) -> None:
    data = fakes.blink_folder(tmp_path / "blink")
    model = fakes.recordings(tmp_path / "model", fakes.blink_replies())
    out = disk.folder / "new" / "out"
    words = ("run", "blink", "--data", data, "--model", f"replay:{model}", "--solver", "mllm", "--out", out, "--quiet")
    size = PAGE_KB
    while (result := command(*words)).code != 0:
        last = result.err.strip().splitlines()[-1]
        assert (result.code, last[:8], last.endswith(ADVICE)) == (2, "hybrid: ", True), result.err
        size *= 2
        assert size < 2**20
        disk.resize(size)
    ids = [json.loads(line)["id"] for line in (out / "mllm" / "attempts.jsonl").read_text().splitlines()]
    assert len(ids) == len(set(ids)) > 0


def test_a_cache_that_is_read_only_is_one_line_before_anything_is_asked(
    command: Command, disk: SmallDisk, tmp_path: Path, fakes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = fakes.blink_folder(tmp_path / "blink")
    model = fakes.recordings(tmp_path / "model", fakes.blink_replies())
    disk.make_read_only()
    monkeypatch.setenv("HYBRID_HOME", str(disk.folder / "home"))
    words = ("run", "blink", "--data", data, "--model", f"replay:{model}", "--solver", "mllm", "--quiet")
    (line,) = command(*words, "--out", tmp_path / "run", code=2).err.strip().splitlines()
    assert line.startswith(f"hybrid: {disk.folder / 'home'}")
    assert "Read-only file system" in line
    assert "HYBRID_HOME" in line


def test_a_run_that_became_read_only_is_compared_and_not_continued(
    command: Command, disk: SmallDisk, named_run: Callable[[str], Path]
) -> None:
    disk.resize(2**14)
    run = Path(shutil.copytree(named_run("made_up"), disk.folder / "run", ignore=SCORES))
    disk.make_read_only()
    result = command("compare", run, "--json", code=0)
    assert json.loads(result.out)
    assert "cannot be saved there (Read-only file system)" in result.err
