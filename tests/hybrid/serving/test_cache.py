"""The cache as a whole: size and pruning, and files in it that cannot be trusted."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid.core.errors import DataError
from hybrid.core.images import ImageStore
from hybrid.core.types import Finding, ImageRef, StoredImage
from hybrid.plugins.registry import load
from hybrid.serving.cache import FindingCache, entries, finding_of, key_of, prune
from hybrid.serving.service import CachedTools

KEY = "ab" * 32
ELSEWHERE = ("../../../etc/passwd", "/etc/passwd", "C:\\boot.ini", "", "AB" * 32, "ab" * 31, "ab" * 32 + "\n", "é" * 64)


def cache(root: Path) -> FindingCache:
    return FindingCache(root / "findings", ImageStore(root / "images"))


def filled(root: Path, count: int = 3) -> FindingCache:
    selected = cache(root)
    for number in range(count):
        picture = selected.store.put_pixels(np.full((4, 5, 3), number, dtype=np.uint8))
        finding = Finding(f"finding {number}", {"n": number}, 0.5, "classical", "1", (ImageRef("", picture, "0"),))
        selected.put(key_of("tool", number), finding)
    return selected


def finding_bytes(sha256: str = KEY, **changes: Any) -> bytes:
    """Return the file of an output that shows one picture, with the given changes."""
    image = {"sha256": sha256, "width": 5, "height": 4, "media_type": "image/png"}
    ref = {"name": "", "image": image, "parent": "0", "box": None, "scale": 1.0}
    ref |= {key: changes.pop(key) for key in list(changes) if key in ref}
    finding = {"text": "t", "data": {}, "confidence": 0.5, "backend": "b", "version": "1", "images": [ref]}
    return json.dumps(finding | changes).encode()


@pytest.mark.parametrize(
    "changes",
    [{"confidence": 2.0}, {"data": {"x": float("nan")}}, {"parent": "img:1"}, {"name": "img:1"}, {"scale": 0.0}],
)
def test_a_file_that_is_no_finding_is_refused(changes: dict[str, Any]) -> None:
    finding_of(finding_bytes())
    with pytest.raises(ValueError):  # noqa: PT011 - each message is different
        finding_of(finding_bytes(**changes))


@pytest.mark.parametrize("sha256", ELSEWHERE)
def test_a_finding_whose_image_is_a_path_is_refused_wherever_it_enters(tmp_path: Path, sha256: str) -> None:
    with pytest.raises(ValueError, match="is not the sha256 of an image"):
        StoredImage(sha256, 5, 4, "image/png")
    with pytest.raises(ValueError, match="is not the sha256 of an image"):
        finding_of(finding_bytes(sha256))
    with pytest.raises(DataError, match="is not a key"):
        cache(tmp_path).put(sha256, finding_of(finding_bytes()))


def test_no_file_outside_of_the_store_is_removed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    selected = filled(tmp_path, 1)
    entry_path = tmp_path / "findings" / "ab" / f"{KEY}.json"
    entry_path.parent.mkdir()
    entry_path.write_bytes(finding_bytes(str(victim)))
    assert selected.get(KEY) is None
    assert prune(selected, older_than_days=0) == 2
    assert victim.read_bytes() == b"precious"


def test_links_in_the_store_are_followed_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / f"{KEY}.json").write_bytes(finding_bytes())
    (outside / "picture").write_bytes(b"precious")
    selected = cache(tmp_path)
    (tmp_path / "findings").mkdir()
    (tmp_path / "findings" / "ab").symlink_to(outside)
    assert list(entries(selected)) == []
    (tmp_path / "findings" / "ab").unlink()
    selected.put(KEY, finding_of(finding_bytes()))
    selected.store.path(KEY).parent.mkdir(parents=True)
    selected.store.path(KEY).symlink_to(outside / "picture")
    assert prune(selected, older_than_days=0) == 1
    assert (outside / "picture").read_bytes() == b"precious"


@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda data: data[:-1] + b"?", lambda _: b""])
async def test_a_damaged_picture_of_a_tool_is_made_again_and_said_once(
    damage: Any, service: CachedTools, store: ImageStore, fakes: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = load("tools", "crop")
    refs = fakes.refs(store, 1)
    calls = [tool.parse({"grid": {"rows": count, "columns": 1}}) for count in (2, 3)]
    values = [await service.call(tool, args, refs) for args in calls]
    computed = service.computed
    paths = [store.path(finding.images[0].image.sha256) for finding in values]
    contents = [path.read_bytes() for path in paths]
    for path in paths:
        path.write_bytes(damage(path.read_bytes()))
    assert [await service.call(tool, args, refs) for args in calls] == values
    assert [path.read_bytes() for path in paths] == contents
    assert service.computed == computed + 2
    err = capsys.readouterr().err
    assert err.count("is no longer the picture that a tool made") == 1
    assert str(paths[0]) in err
    # The output is written again, so it is read from the cache from now on.
    assert [await service.call(tool, args, refs) for args in calls] == values
    assert service.computed == computed + 2


async def test_a_deleted_picture_of_a_tool_is_made_again_without_a_word(
    service: CachedTools, store: ImageStore, fakes: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    tool, refs = load("tools", "crop"), fakes.refs(store, 1)
    args = tool.parse({"grid": {"rows": 2, "columns": 1}})
    finding = await service.call(tool, args, refs)
    store.path(finding.images[0].image.sha256).unlink()
    assert await service.call(tool, args, refs) == finding
    assert capsys.readouterr().err == ""
