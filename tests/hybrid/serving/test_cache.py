"""The cache as a whole: size and pruning, and files in it that must not be believed."""

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid.errors import DataError
from hybrid.images import ImageStore
from hybrid.serving.cache import FindingCache, entries, finding_of, key_of, prune, size
from hybrid.types import Finding, ImageRef, StoredImage

KEY = "ab" * 32
ELSEWHERE = ("../../../etc/passwd", "/etc/passwd", "C:\\boot.ini", "", "AB" * 32, "ab" * 31, "ab" * 32 + "\n", "é" * 64)


def cache(root: Path) -> FindingCache:
    return FindingCache(root / "findings", ImageStore(root / "images"))


def filled(root: Path, count: int = 3) -> FindingCache:
    kept = cache(root)
    for number in range(count):
        picture = kept.store.put_pixels(np.full((4, 5, 3), number, dtype=np.uint8))
        finding = Finding(f"finding {number}", {"n": number}, 0.5, "classical", "1", (ImageRef("", picture, "0"),))
        kept.put(key_of("tool", number), finding)
    return kept


def said(sha256: str = KEY, **changes: Any) -> bytes:
    """The file of a finding that shows one picture, changed where wanted."""
    image = {"sha256": sha256, "width": 5, "height": 4, "media_type": "image/png"}
    ref = {"name": "", "image": image, "parent": "0", "box": None, "scale": 1.0}
    ref |= {key: changes.pop(key) for key in list(changes) if key in ref}
    finding = {"text": "t", "data": {}, "confidence": 0.5, "backend": "b", "version": "1", "images": [ref]}
    return json.dumps(finding | changes).encode()


def test_copied_folders_are_the_same_cache(tmp_path: Path) -> None:
    there = filled(tmp_path / "gpu")
    shutil.copytree(tmp_path / "gpu", tmp_path / "laptop")
    here = cache(tmp_path / "laptop")
    assert size(here) == size(there)
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


def test_an_unreadable_entry_is_a_miss(tmp_path: Path) -> None:
    kept = filled(tmp_path, 1)
    kept.put(KEY, finding_of(said()))
    assert kept.get(KEY) is None
    next(path for path in entries(kept) if path.stem != KEY).write_bytes(b'{"text": "half')
    assert kept.get(key_of("tool", 0)) is None


@pytest.mark.parametrize(
    "changes",
    [{"confidence": 2.0}, {"data": {"x": float("nan")}}, {"parent": "img:1"}, {"name": "img:1"}, {"scale": 0.0}],
)
def test_a_file_that_is_no_finding_is_refused(changes: dict[str, Any]) -> None:
    finding_of(said())
    with pytest.raises(ValueError):  # noqa: PT011 - each has its own words
        finding_of(said(**changes))


@pytest.mark.parametrize("sha256", ELSEWHERE)
def test_a_finding_whose_image_is_a_path_is_refused_wherever_it_enters(tmp_path: Path, sha256: str) -> None:
    with pytest.raises(ValueError, match="is no sha256 of an image"):
        StoredImage(sha256, 5, 4, "image/png")
    with pytest.raises(ValueError, match="is no sha256 of an image"):
        finding_of(said(sha256))
    with pytest.raises(DataError, match="is no key"):
        cache(tmp_path).put(sha256, finding_of(said()))


def test_no_file_outside_of_the_store_is_removed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    kept = filled(tmp_path, 1)
    there = tmp_path / "findings" / "ab" / f"{KEY}.json"
    there.parent.mkdir()
    there.write_bytes(said(str(victim)))
    assert kept.get(KEY) is None
    assert prune(kept, older_than_days=0) == 2
    assert victim.read_bytes() == b"precious"


def test_links_in_the_store_are_followed_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / f"{KEY}.json").write_bytes(said())
    (outside / "picture").write_bytes(b"precious")
    kept = cache(tmp_path)
    (tmp_path / "findings").mkdir()
    (tmp_path / "findings" / "ab").symlink_to(outside)
    assert list(entries(kept)) == []
    (tmp_path / "findings" / "ab").unlink()
    kept.put(KEY, finding_of(said()))
    kept.store.path(KEY).parent.mkdir(parents=True)
    kept.store.path(KEY).symlink_to(outside / "picture")
    assert prune(kept, older_than_days=0) == 1
    assert (outside / "picture").read_bytes() == b"precious"
