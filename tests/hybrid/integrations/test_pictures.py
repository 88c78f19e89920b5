"""External images are accepted as data or as names of files below one folder, and in no other form."""

import base64
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.errors import DataError
from hybrid.integrations import pictures
from hybrid.integrations.pictures import Folder, read_image
from tests.tables import cases

SECRET = b"outside"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A folder with files, links, a pipe and a device's name in it, and a secret next to it."""
    inside = tmp_path / "inside"
    (inside / "deep" / "er").mkdir(parents=True)
    (inside / "one").write_bytes(b"one")
    (inside / "deep" / "er" / "two words.png").write_bytes(b"two")
    (tmp_path / "secret").write_bytes(SECRET)
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "secret").write_bytes(SECRET)
    (inside / "link").symlink_to(tmp_path / "secret")
    (inside / "linked").symlink_to(tmp_path / "beside")
    (inside / "own-link").symlink_to(inside / "one")
    (inside / "deep" / "up").symlink_to(tmp_path)
    os.mkfifo(inside / "pipe")
    return Folder(inside)


def test_an_absolute_path_leads_to_nothing_also_inside(folder: Folder) -> None:
    assert not _reads(str(folder.path / "one"), folder)
    assert not _reads(str(folder.path.parent / "secret"), folder)


def _reads(name: str, folder: Folder) -> bool:
    try:
        read_image(name, folder)
    except DataError:
        return False
    return True


PARTS = st.sampled_from(["..", ".", "", "deep", "er", "up", "link", "linked", "secret", "one", "inside", "beside"])


@given(st.lists(PARTS, max_size=6).map("/".join))
def test_no_name_reads_what_lies_outside(folder: Folder, name: str) -> None:
    try:
        assert read_image(name, folder) == b"one"
    except DataError:
        return


@given(st.binary(max_size=200))
def test_data_comes_as_it_was(data: bytes) -> None:
    text = base64.b64encode(data).decode()
    for output in (
        f"data:image/png;base64,{text}",
        f"DATA:;BASE64,{text}",
        f"data:image/svg+xml;charset=utf-8;base64,{text}",
        {"data": text},
        {"type": "image", "data": f"{text[:7]}\n{text[7:]}", "mimeType": "text/html"},
    ):
        assert read_image(output, None) == data


@pytest.mark.parametrize(*cases(__file__, "test_what_is_no_data_is_refused_in_one_line", list))
def test_what_is_no_data_is_refused_in_one_line(value: object, words: str) -> None:
    with pytest.raises(DataError, match=words) as refused:
        read_image(value, None)
    assert "\n" not in str(refused.value)


def test_too_much_is_refused(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MAX_BYTES", 3)
    assert read_image("one", folder) == b"one"
    assert read_image({"data": base64.b64encode(b"one").decode()}, None) == b"one"
    (folder.path / "one").write_bytes(b"four")
    for text in ("one", {"data": base64.b64encode(b"four").decode()}, {"data": base64.b64encode(b"a lot").decode()}):
        with pytest.raises(DataError, match="more than 3 bytes"):
            read_image(text, folder)
