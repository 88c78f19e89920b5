"""No path that a data set names leaves its folder, in any benchmark; reading does not wait for a pipe or a device."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from hybrid.benchmarks._shared.paths import located, read_located
from hybrid.core.errors import DataError
from hybrid.core.images import MAX_BYTES, ImageStore
from hybrid.core.types import BrokenQuestion, Question
from hybrid.plugins.registry import load
from hybrid.running.data import fingerprint, mount, questions

BAD_NAMES = (
    "../secret.png", "a/../../secret.png", "/etc/passwd", "//server/share/a.png", "\\\\server\\share\\a.png",
    "C:\\a.png", "c:a.png", "\\a.png", "file:///etc/passwd", "http://127.0.0.1/a.png", "https://example.org/a.png",
    "data:image/png;base64,AAAA", "a\0.png", "a\n.png", "x" * 5000, "x" * 400, "a/" * 400 + "a.png", "/dev/zero",
    "/proc/self/environ", "pipe.png", "link.png", "folder", "out/secret.png", "loop.png", "", ".", "~", "\ud800.png",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data set's folder with a pipe and with links that lead outside, to themselves, or to one of the folder's own
    files."""
    (tmp_path / "secret.png").write_bytes(b"secret")
    root = tmp_path / "data"
    (root / "folder").mkdir(parents=True)
    (root / "own.png").write_bytes(b"own")
    os.mkfifo(root / "pipe.png")
    (root / "link.png").symlink_to(tmp_path / "secret.png")
    (root / "out").symlink_to(tmp_path)
    (root / "loop.png").symlink_to(root / "loop.png")
    (root / "same.png").symlink_to(root / "own.png")
    return root


@pytest.mark.parametrize("name", BAD_NAMES, ids=range(len(BAD_NAMES)))
def test_a_name_that_leads_out_is_refused_with_its_place(folder: Path, name: str) -> None:
    assert located(folder, name) is None
    with pytest.raises(DataError, match=r"a.json, row 3: ") as caught:
        read_located(folder, name, "a.json, row 3")
    assert len(str(caught.value)) < 600
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["link.png", "out/secret.png"])
def test_a_link_that_leads_out_is_named_as_one(folder: Path, name: str) -> None:
    with pytest.raises(DataError, match="it is a link to a file outside the folder, which is not followed"):
        read_located(folder, name, "here")
    with pytest.raises(DataError) as caught:
        read_located(folder, "../secret.png", "here")
    assert "which is not followed" not in str(caught.value)


def test_a_file_that_is_too_large_for_a_picture_is_not_read(folder: Path) -> None:
    with (folder / "large.png").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(DataError, match=r"'large.png' has 536,870,913 bytes; at most"):
        read_located(folder, "large.png", "here")


@dataclass(frozen=True)
class Sample:
    """Generated questions of a benchmark: `tables` is a pattern for its files, and `pictures` is a pattern for the
    files that its rows name."""

    name: str
    tables: str
    pictures: str = ""


SAMPLES = (
    Sample("blink", "*/val-*.parquet"),
    Sample("hvsbench", "data/test-*.parquet"),
    Sample("mm_sap", "**/*.parquet"),
    Sample("mvp_bench", "all_questions.json", "Images/*/*"),
    Sample("actiview", "asset/data.json", "images_split/*"),
)
TASKS = {"blink": ("Counting", "Spatial_Relation"), "hvsbench": ("Q2", "Q5"), "actiview": ("counting",)}


@pytest.fixture(scope="module")
def generated_folder(tmp_path_factory: pytest.TempPathFactory, shrunk: Callable[[Path], Path]) -> Callable[[str], Path]:
    """A folder of generated questions, made once for each benchmark."""
    mapping: dict[str, Path] = {}

    def make(name: str) -> Path:
        if name not in mapping:
            mapping[name] = tmp_path_factory.mktemp(name)
            benchmark = load("hybrid.benchmarks", name)
            benchmark.generate(mapping[name], TASKS.get(name, benchmark.card.sample_tasks[:2]), 2, 1)
            shrunk(mapping[name])
        return mapping[name]

    return make


def copied(folder: Path, to: Path) -> Path:
    return Path(shutil.copytree(folder, to / "copy"))


def replaced(path: Path, mode: str, outside: Path) -> None:
    """Move the file out of the data and put a link, a pipe or nothing in its place."""
    outside.write_bytes(path.read_bytes())
    path.unlink()
    if mode == "link":
        path.symlink_to(outside)
    elif mode == "pipe":
        os.mkfifo(path)


def read(name: str, folder: Path, to: Path) -> tuple[Question | BrokenQuestion, ...]:
    """Return every question, after computing the fingerprint of the files that define them."""
    benchmark = load("hybrid.benchmarks", name)
    source = mount(benchmark, str(folder), split=None, tasks=(), settings={}, store=ImageStore(to / "store")).source
    assert len(fingerprint(benchmark.files(source), source.folder)) == 64
    return questions(benchmark, source, None)


@cache
def ids_of(name: str, folder: Path) -> list[str]:
    """Return the ids of all questions in an unchanged folder."""
    return [question.id for question in read(name, folder, folder.with_name(f"{name}-read"))]


@pytest.mark.parametrize("mode", ["link", "pipe", "nothing"])
@pytest.mark.parametrize("sample", [sample for sample in SAMPLES if sample.pictures], ids=lambda sample: sample.name)
def test_a_picture_that_lies_outside_costs_its_own_questions(
    generated_folder: Callable[[str], Path], tmp_path: Path, sample: Sample, mode: str
) -> None:
    folder = copied(generated_folder(sample.name), tmp_path)
    full = ids_of(sample.name, generated_folder(sample.name))
    picture = sorted(path for path in folder.glob(sample.pictures) if path.is_file())[-1]
    replaced(picture, mode, tmp_path / "outside")
    parsed = read(sample.name, folder, tmp_path)
    assert [question.id for question in parsed] == full
    broken = [question for question in parsed if isinstance(question, BrokenQuestion)]
    assert 0 < len(broken) < len(parsed)
    assert all(picture.name in question.error for question in broken)


@pytest.mark.parametrize("mode", ["link", "pipe"])
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_table_that_lies_outside_is_not_read(
    generated_folder: Callable[[str], Path], tmp_path: Path, sample: Sample, mode: str
) -> None:
    folder = copied(generated_folder(sample.name), tmp_path)
    for number, table in enumerate(sorted(folder.glob(sample.tables))):
        replaced(table, mode, tmp_path / f"outside{number}")
    with pytest.raises(DataError) as caught:
        read(sample.name, folder, tmp_path)
    assert "not a regular file inside" in str(caught.value) or "contains no" in str(caught.value)
