"""The cache as a whole: size, pruning, a round trip through an archive, and archives that must not be believed."""

import io
import os
import tarfile
import time
from pathlib import Path

import numpy as np
import pytest

from hybrid.errors import DataError
from hybrid.images import ImageStore
from hybrid.serving.archive import entries, export, import_archive, prune, size
from hybrid.serving.cache import FindingCache, key_of
from hybrid.types import Finding, ImageRef


def cache(root: Path) -> FindingCache:
    return FindingCache(root / "findings", ImageStore(root / "images"))


def filled(root: Path, count: int = 3) -> FindingCache:
    kept = cache(root)
    for number in range(count):
        picture = kept.store.put_pixels(np.full((4, 5, 3), number, dtype=np.uint8))
        finding = Finding(f"finding {number}", {"n": number}, 0.5, "classical", "1", (ImageRef("", picture, "0"),))
        kept.put(key_of("tool", number), finding)
    return kept


def test_a_round_trip_keeps_findings_and_pictures(tmp_path: Path) -> None:
    there = filled(tmp_path / "gpu")
    exported = export(there, tmp_path / "findings.tar")
    here = cache(tmp_path / "laptop")
    assert import_archive(here, tmp_path / "findings.tar") == 3
    assert size(here) == size(there) == exported
    for number in range(3):
        assert here.get(key_of("tool", number)) == there.get(key_of("tool", number)) is not None


def test_pruning_removes_the_old_and_only_their_pictures(tmp_path: Path) -> None:
    kept = filled(tmp_path)
    question = kept.store.put_pixels(np.full((9, 9, 3), 77, dtype=np.uint8))
    old = next(iter(entries(kept)))
    os.utime(old, (time.time() - 10 * 86_400,) * 2)
    assert prune(kept, older_than_days=5) == 1
    assert size(kept).findings == size(kept).pictures == 2
    assert kept.store.path(question.sha256).exists()
    assert prune(kept, older_than_days=0) == 2
    assert size(kept).findings == 0


def test_an_unreadable_entry_is_a_miss_and_is_not_exported(tmp_path: Path) -> None:
    kept = filled(tmp_path)
    next(iter(entries(kept))).write_bytes(b'{"text": "half')
    export(kept, tmp_path / "a.tar")
    assert import_archive(cache(tmp_path / "other"), tmp_path / "a.tar") == 2


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("../evil", b"x", "does not belong"),
        ("images/" + "0" * 64, b"x", "other bytes"),
        ("findings/" + "0" * 64 + ".json", b"{}", "not a finding"),
    ],
)
def test_archives_that_lie_are_refused(tmp_path: Path, name: str, data: bytes, words: str) -> None:
    with tarfile.open(tmp_path / "bad.tar", "w") as tar:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        tar.addfile(member, io.BytesIO(data))
    with pytest.raises(DataError, match=words):
        import_archive(cache(tmp_path / "here"), tmp_path / "bad.tar")
    assert not (tmp_path / "evil").exists()


def test_a_file_that_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(b"not a tar at all")
    with pytest.raises(DataError, match="not an archive"):
        import_archive(cache(tmp_path), tmp_path / "x.tar")
