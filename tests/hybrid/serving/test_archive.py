"""The cache as a whole: size, pruning, a round trip through an archive, and archives that must not be believed."""

import hashlib
import io
import json
import os
import tarfile
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.errors import DataError
from hybrid.images import ImageStore, encode
from hybrid.serving.archive import Imported, entries, export, import_archive, pictures, prune, size
from hybrid.serving.cache import FindingCache, finding_of, key_of
from hybrid.types import Finding, ImageRef, StoredImage


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
    assert import_archive(here, tmp_path / "findings.tar") == Imported(3, 3, 0)
    assert size(here) == size(there) == exported
    for number in range(3):
        assert here.get(key_of("tool", number)) == there.get(key_of("tool", number)) is not None


def test_an_archive_goes_through_a_pipe_which_stays_one(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    exported = export(filled(tmp_path / "gpu"), pipe)
    assert pipe.is_fifo()
    reader.join(30)
    (tmp_path / "findings.tar").write_bytes(read[0])
    here = cache(tmp_path / "laptop")
    assert import_archive(here, tmp_path / "findings.tar") == Imported(3, 3, 0)
    assert size(here) == exported


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
    assert import_archive(cache(tmp_path / "other"), tmp_path / "a.tar") == Imported(2, 2, 0)


KEY = "ab" * 32
KEPT = f"findings/{KEY}.json"


def picture(level: int = 9) -> bytes:
    return encode(np.full((4, 5, 3), level, dtype=np.uint8))


def said(shown: bytes | None = None, **changes: Any) -> bytes:
    """The file of a finding that shows one picture, changed where wanted."""
    image = {"sha256": digest(shown or picture()), "width": 5, "height": 4, "media_type": "image/png"}
    image |= {key: changes.pop(key) for key in list(changes) if key in image}
    ref = {"name": "", "image": image, "parent": "0", "box": None, "scale": 1.0}
    ref |= {key: changes.pop(key) for key in list(changes) if key in ref}
    finding = {"text": "t", "data": {}, "confidence": 0.5, "backend": "b", "version": "1", "images": [ref]}
    return json.dumps(finding | changes).encode()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def member(name: str, data: bytes = b"", **header: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in header.items():
        setattr(info, key, value)
    return info, data


def whole(shown: bytes | None = None, **changes: Any) -> list[tuple[tarfile.TarInfo, bytes]]:
    """The members of a sound archive of one finding and its picture."""
    image = shown or picture()
    return [member(KEPT, said(image, **changes)), member(f"images/{digest(image)}", image)]


def packed(path: Path, members: Sequence[tuple[tarfile.TarInfo, bytes]], mode: str = "w", form: int = 0) -> Path:
    with tarfile.open(path, mode, format=form) as tar:  # type: ignore[call-overload]
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return path


def refused(root: Path, archive: Path, words: str) -> None:
    """The archive is refused in these words, and nothing of it is anywhere."""
    here = root / "here"
    with pytest.raises(DataError, match=words):
        import_archive(cache(here), archive)
    assert not here.exists()


def test_the_archive_that_the_tests_change_is_taken(tmp_path: Path) -> None:
    assert import_archive(cache(tmp_path), packed(tmp_path / "a.tar", whole())) == Imported(1, 1, 0)


ELSEWHERE = ("../../../etc/passwd", "/etc/passwd", "C:\\boot.ini", "", "AB" * 32, "ab" * 31, "ab" * 32 + "\n", "é" * 64)


@pytest.mark.parametrize("sha256", ELSEWHERE)
def test_a_finding_whose_image_is_a_path_is_refused_wherever_it_enters(tmp_path: Path, sha256: str) -> None:
    with pytest.raises(ValueError, match="is no sha256 of an image"):
        StoredImage(sha256, 5, 4, "image/png")
    with pytest.raises(DataError, match="is no sha256 of an image"):
        cache(tmp_path).store.path(sha256)
    with pytest.raises(DataError, match="is no key"):
        cache(tmp_path).put(sha256, finding_of(said()))
    refused(tmp_path, packed(tmp_path / "a.tar", whole(sha256=sha256)), f"{KEPT} is not a finding .*sha256")


def test_no_file_outside_of_the_store_is_removed_or_packed(tmp_path: Path) -> None:
    """As an archive of an older version may have left it: the finding lies in the cache already."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    kept = filled(tmp_path, 1)
    there = tmp_path / "findings" / "ab" / f"{KEY}.json"
    there.parent.mkdir()
    there.write_bytes(said(sha256=str(victim)))
    assert kept.get(KEY) is None
    assert export(kept, tmp_path / "a.tar").pictures == 1
    with tarfile.open(tmp_path / "a.tar") as tar:
        assert not [info for info in tar if info.size == len(b"precious")]
    assert prune(kept, older_than_days=0) == 2
    assert victim.read_bytes() == b"precious"


def test_links_in_the_store_are_followed_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / f"{KEY}.json").write_bytes(said())
    (outside / "picture").write_bytes(picture())
    kept = cache(tmp_path)
    (tmp_path / "findings").mkdir()
    (tmp_path / "findings" / "ab").symlink_to(outside)
    assert list(entries(kept)) == []
    (tmp_path / "findings" / "ab").unlink()
    kept.put(KEY, finding_of(said()))
    kept.store.path(digest(picture())).parent.mkdir(parents=True)
    kept.store.path(digest(picture())).symlink_to(outside / "picture")
    with pytest.raises(DataError, match="is a link"):
        export(kept, tmp_path / "a.tar")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["findings", "images", "outside"]
    assert prune(kept, older_than_days=0) == 1
    assert (outside / "picture").read_bytes() == picture()


LINK = {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([member("../evil", b"x")], "'../evil' does not belong"),
        ([member("/etc/evil", b"x")], "'/etc/evil' does not belong"),
        ([member(f"findings/../{KEY}.json", b"x")], "does not belong"),
        ([member(f"./{KEPT}", said())], "does not belong"),
        ([member(f"findings/{KEY}.json/", b"")], "does not belong"),
        ([member("images/" + "0" * 64, b"x")], "other bytes"),
        ([member("images/" + digest(b"x"), b"x")], "are not an image"),
        ([member(KEPT, b"{}")], "is not a finding"),
        ([member(KEPT, b"[" * 100_000)], "is not a finding"),
        ([member(KEPT, said()), member(KEPT, said())], f"{KEPT} is in it twice"),
        ([member(KEPT, **LINK)], "not a plain file"),
        ([member(KEPT, type=tarfile.LNKTYPE, linkname="/etc/passwd")], "not a plain file"),
        ([member(KEPT, type=tarfile.FIFOTYPE)], "not a plain file"),
        ([member(KEPT, type=tarfile.CHRTYPE, devmajor=1, devminor=5)], "not a plain file"),
        ([member(KEPT, type=tarfile.DIRTYPE)], "not a plain file"),
        ([member(KEPT, type=tarfile.GNUTYPE_SPARSE)], "not a plain file"),
        (whole()[:1], "shows a picture [0-9a-f]{12} that is not in it"),
        (whole()[1:], "is shown by no finding"),
        (whole(width=6), "not like that"),
        (whole(media_type="image/jpeg"), "not like that"),
        (whole(media_type="text/html"), "is not a finding .*no type of image"),
        (whole(width=0), "is not a finding .*no image has 0 x 4 pixels"),
        (whole(height=10**9), "is not a finding .*no image has"),
        (whole(parent="../1"), "is not a finding .*shows no input"),
        (whole(parent="1000"), "is not a finding .*shows no input"),
        (whole(name="img:1"), "is not a finding .*shows no input"),
        (whole(scale=float("nan")), "is not a finding"),
        (whole(box={"x0": float("inf"), "y0": 0, "x1": 1, "y1": 1}), "is not a finding"),
        (whole(confidence=1.5), "is not a finding .*outside 0..1"),
        (whole(data={"x": float("nan")}), "is not a finding"),
    ],
)
def test_archives_that_lie_are_refused(
    tmp_path: Path, members: list[tuple[tarfile.TarInfo, bytes]], words: str
) -> None:
    refused(tmp_path, packed(tmp_path / "bad.tar", members), words)
    # Before what is wrong there is a whole finding: nothing of it is taken either.
    other = encode(np.full((6, 7, 3), 200, dtype=np.uint8))
    image = {"sha256": digest(other), "width": 7, "height": 6}
    sound = [member(f"findings/{'cd' * 32}.json", said(other, **image)), member(f"images/{digest(other)}", other)]
    refused(tmp_path, packed(tmp_path / "late.tar", [*sound, *members]), words)


def test_pictures_of_tools_are_png_or_jpeg(tmp_path: Path, fakes: Any) -> None:
    pixels = np.full((4, 5, 3), 9, dtype=np.uint8)
    jpeg, webp = encode(pixels, "image/jpeg"), fakes.encoded(pixels, "WEBP")
    taken = packed(tmp_path / "a.tar", whole(jpeg, media_type="image/jpeg"))
    assert import_archive(cache(tmp_path / "other"), taken) == Imported(1, 1, 0)
    other = packed(tmp_path / "b.tar", whole(webp, media_type="image/webp"))
    refused(tmp_path, other, "image/webp, and pictures of tools are PNG or JPEG")


@pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w:xz"])
def test_what_is_compressed_is_not_unpacked(tmp_path: Path, mode: str) -> None:
    refused(tmp_path, packed(tmp_path / "a.tar", whole(), mode), "no plain tar")


def test_headers_that_change_others_are_refused(tmp_path: Path) -> None:
    """With them 3 MB became 3 GB: holes of sparse files, and sizes that the next header does not say."""
    for number, pax in enumerate(
        ({"mtime": "1.5"}, {"GNU.sparse.size": str(10**12)}, {"path": "../evil"}, {"size": "9"})
    ):
        info, data = whole()[0]
        info.pax_headers = pax
        archive = packed(tmp_path / f"{number}.tar", [(info, data)], form=tarfile.PAX_FORMAT)
        refused(tmp_path, archive, "not a plain file .type 'x'")
    long = packed(tmp_path / "long.tar", [member("x" * 200, b"x")], form=tarfile.GNU_FORMAT)
    refused(tmp_path, long, "not a plain file .type 'L'")


@pytest.mark.parametrize("size", [10**12, -1])
def test_a_size_that_the_file_does_not_have(tmp_path: Path, size: int) -> None:
    info = member(KEPT)[0]
    info.size = size
    (tmp_path / "a.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT))
    refused(tmp_path, tmp_path / "a.tar", f"has {size:,} bytes")
    info.size = 1000
    (tmp_path / "b.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + b"short")
    refused(tmp_path, tmp_path / "b.tar", "its end is missing")


@given(st.data())
def test_a_damaged_archive_is_taken_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(packed(tmp_path / "a.tar", whole()).read_bytes()[: 512 * 6])
    for _ in range(data.draw(st.integers(1, 5))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    damaged = tmp_path / "b.tar"
    damaged.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    here = cache(Path(tempfile.mkdtemp(dir=tmp_path)))
    try:
        taken, refusal = import_archive(here, damaged), None
    except DataError as error:
        taken, refusal = Imported(0, 0, 0), str(error)
    assert refusal is None or refusal.startswith(str(damaged))
    # What was taken is whole: every finding can be read, and every picture has the content that it is named by.
    assert (size(here).findings, size(here).pictures) == (taken.findings, taken.pictures)
    assert all(here.get(path.stem) is not None for path in entries(here))
    assert all(digest(here.store.path(sha).read_bytes()) == sha for sha in pictures(here))


def test_an_import_that_fails_half_way_says_what_it_took_and_goes_on(tmp_path: Path) -> None:
    archive = tmp_path / "findings.tar"
    export(filled(tmp_path / "gpu"), archive)
    here = cache(tmp_path / "here")
    last = max(key_of("tool", number) for number in range(3))
    blocked = tmp_path / "here" / "findings" / last[:2] / f"{last}.json"
    # What cannot be replaced by a file.
    blocked.mkdir(parents=True)
    with pytest.raises(DataError, match=r"2 findings and 3 pictures were taken before, whole") as told:
        import_archive(here, archive)
    assert blocked.name in str(told.value)
    assert sum(here.get(key_of("tool", number)) is not None for number in range(3)) == 2
    blocked.rmdir()
    assert import_archive(here, archive) == Imported(1, 1, 2)
    assert size(here).findings == size(here).pictures == 3


def test_what_is_here_is_not_replaced(tmp_path: Path) -> None:
    kept = cache(tmp_path)
    kept.store.put(picture(), "x")
    kept.put(KEY, finding_of(said(text="mine")))
    assert import_archive(kept, packed(tmp_path / "a.tar", whole(text="theirs"))) == Imported(0, 0, 1)
    found = kept.get(KEY)
    assert found is not None
    assert found.text == "mine"


def test_an_archive_names_nobody_and_replaces_as_a_whole(tmp_path: Path) -> None:
    archive = tmp_path / "a.tar"
    archive.write_bytes(b"an older one")
    kept = filled(tmp_path)
    damaged = kept.store.path(min(pictures(kept)))
    before = damaged.read_bytes()
    damaged.write_bytes(b"damaged")
    with pytest.raises(DataError, match="is damaged in the store"):
        export(kept, archive)
    assert archive.read_bytes() == b"an older one"
    damaged.write_bytes(before)
    export(kept, archive)
    with tarfile.open(archive, "r:") as tar:
        assert {(info.uid, info.gid, info.uname, info.gname, info.mode) for info in tar} == {(0, 0, "", "", 0o644)}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar", "findings", "images"]


def test_a_file_that_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(b"not a tar at all")
    with pytest.raises(DataError, match="not an archive"):
        import_archive(cache(tmp_path), tmp_path / "x.tar")
