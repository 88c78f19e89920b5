"""`--data hub`, with a server of the hub's protocol: the files that are downloaded, and errors about missing data."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from hybrid.benchmarks.base import Benchmark
from hybrid.core.errors import DataError, UsageError
from hybrid.core.images import ImageStore
from hybrid.plugins.registry import load
from hybrid.running.data import Mounted, fingerprint, mount, questions
from hybrid.running.hub import HubCopy, fetch, listing
from tests.tables import cases

BLINK = "BLINK-Benchmark/BLINK"
# Every benchmark with a data set on the hub, and tasks of it that can be generated.
TASKS = {
    "blink": ("Spatial_Relation",),
    "hvsbench": ("Q1", "Q2", "Q9"),
    "mm_sap": ("BasicVisQA", "KnowVisQA", "BeyondVisQA"),
    "mvp_bench": ("yes_no", "cross", "single"),
}


def bench(name: str) -> Benchmark:
    benchmark: Benchmark = load("hybrid.benchmarks", name)
    return benchmark


def copy_data(tmp_path: Path, name: str) -> Path:
    folder = tmp_path / f"made-{name}"
    bench(name).generate(folder, TASKS[name], 3, 0)
    return folder


def mounted(name: str, data: str, tmp_path: Path, tasks: tuple[str, ...] = ()) -> Mounted:
    store = ImageStore(tmp_path / "images")
    return mount(bench(name), data, split=None, tasks=tasks, settings={}, store=store)


def read_questions(name: str, result: Mounted) -> list[Any]:
    return list(questions(bench(name), result.source, None))


def fetched(copy: HubCopy) -> list[str]:
    return sorted(path.relative_to(copy.folder).as_posix() for path in copy.folder.rglob("*") if path.is_file())


@pytest.mark.system
@pytest.mark.parametrize("name", TASKS)
def test_the_hub_gives_the_same_questions_as_the_folder(name: str, hub: Any, tmp_path: Path) -> None:
    folder = copy_data(tmp_path, name)
    sha = hub.commit(bench(name).card.hub_id, folder)
    local, remote = mounted(name, str(folder), tmp_path, TASKS[name]), mounted(name, "hub", tmp_path, TASKS[name])
    assert remote.origin == {"kind": "hub", "id": bench(name).card.hub_id, "revision": sha}
    assert read_questions(name, remote) == read_questions(name, local)
    assert len(read_questions(name, remote)) >= 3 * len(TASKS[name])
    sources = (local.source, remote.source)
    assert len({fingerprint(bench(name).files(source), source.folder) for source in sources}) == 1


def test_a_second_time_needs_no_network(hub: Any, tmp_path: Path, blink: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sha = hub.commit(BLINK, blink)
    first = read_questions("blink", mounted("blink", "hub", tmp_path, ("Jigsaw",)))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    count = len(hub.requests)
    second = mounted("blink", "hub", tmp_path, ("Jigsaw",))
    assert second.origin["revision"] == sha
    assert read_questions("blink", second) == first
    assert len(hub.requests) == count
    with pytest.raises(UsageError, match=r"HF_HUB_OFFLINE is set, and not every needed file of BLINK-Benchmark/BLINK"):
        fetch(bench("blink"), "val", ("Jigsaw", "Spatial_Relation"))


def test_a_revision_can_be_named_and_the_newest_is_the_default(
    hub: Any, tmp_path: Path, blink: Path, fakes: Any
) -> None:
    old = hub.commit(BLINK, blink)
    fakes.blink_folder(blink, jigsaws=4)
    new = hub.commit(BLINK, blink)
    assert mounted("blink", "hub", tmp_path, ("Jigsaw",)).origin["revision"] == new
    pinned = mounted("blink", f"hub@{old}", tmp_path, ("Jigsaw",))
    assert pinned.origin["revision"] == old
    assert len(read_questions("blink", pinned)) == 3
    with pytest.raises(UsageError, match=r"--data hub@v9: .*/datasets/BLINK-Benchmark/BLINK has no such revision"):
        mounted("blink", "hub@v9", tmp_path, ("Jigsaw",))


def test_a_server_that_fails_every_time_is_one_line(hub: Any, tmp_path: Path, blink: Path) -> None:
    hub.commit(BLINK, blink)
    hub.faults.extend(["503"] * 9)
    with pytest.raises(UsageError, match=r"neither on disk nor reachable at .* \(the server answered 503\); try again"):
        fetch(bench("blink"), "val", ("Jigsaw",), pause_s=0)
    assert len(hub.contents) == 4


@pytest.mark.parametrize(*cases(__file__, "test_a_gated_data_set_says_what_to_accept_and_which_token_to_set"))
def test_a_gated_data_set_says_what_to_accept_and_which_token_to_set(
    hub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str | None, message: str
) -> None:
    hub.commit("GZClarence/MVP-Bench", copy_data(tmp_path, "mvp_bench"), frozenset({"reader"}))
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(UsageError, match=message):
        fetch(bench("mvp_bench"), "test", (), pause_s=0)
    monkeypatch.setenv("HF_TOKEN", "reader")
    assert "all_questions.json" in fetched(fetch(bench("mvp_bench"), "test", ()))


def test_a_data_set_that_is_not_there(hub: Any) -> None:
    with pytest.raises(UsageError, match=r"data set http.*/BLINK-Benchmark/BLINK does not exist, or is private"):
        fetch(bench("blink"), "val", ())
    with pytest.raises(UsageError, match=r"actiview is not on the hub\. .*https://github\.com/THUNLP-MT/ActiView"):
        fetch(bench("actiview"), "test", ())


def test_a_file_or_column_that_is_missing_is_named_with_the_data_set(
    hub: Any, tmp_path: Path, blink: Path, fakes: Any
) -> None:
    sha = hub.commit(BLINK, blink)
    text = rf"{BLINK} at {sha[:12]} has no file IQ_Test/val-\*\.parquet"
    with pytest.raises(DataError, match=text):
        fetch(bench("blink"), "val", ("Jigsaw", "IQ_Test"))
    with pytest.raises(DataError, match=text):
        listing(bench("blink"), "val", ("IQ_Test",))
    row = fakes.jigsaw_row(1)
    shutil.rmtree(blink / "Spatial_Relation")
    fakes.write_task(blink, "Jigsaw", [{key: row[key] for key in row if key != "choices"}])
    sha = hub.commit(BLINK, blink)
    with pytest.raises(DataError, match=rf"{BLINK} at {sha[:12]}: .*Jigsaw/val-\S*parquet lacks the column choices"):
        mounted("blink", "hub", tmp_path, ("Jigsaw",))


def test_a_listing_has_sizes_and_what_is_on_disk_and_fetches_nothing(hub: Any, tmp_path: Path, blink: Path) -> None:
    sha = hub.commit(BLINK, blink, frozenset({"reader"}))
    result = listing(bench("blink"), "val", ("Jigsaw", "Spatial_Relation"))
    assert (result.id, result.revision, result.gated) == (BLINK, sha, True)
    assert {file.path: file.size for file in result.files} == {
        f"{task}/val-00000-of-00001.parquet": os.path.getsize(blink / task / "val-00000-of-00001.parquet")
        for task in ("Jigsaw", "Spatial_Relation")
    }
    assert not any(file.on_disk for file in result.files)
    assert hub.contents == []
    hub.sets[BLINK].readers = None
    fetch(bench("blink"), "val", ("Jigsaw",))
    second = listing(bench("blink"), "val", ("Jigsaw", "Spatial_Relation"))
    assert [file.on_disk for file in second.files] == [True, False]
