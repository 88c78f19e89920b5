"""Pictures of the documentation: each is made by `python -m bench.pictures`, is small, and is used on a page."""

import os
import re
import shutil
from pathlib import Path

import pytest
from PIL import Image

from bench import pictures
from tests.runnable import PAGES, ROOT

FOLDER = ROOT / "docs" / "pictures"
SHOWN = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")


def linked_pictures() -> dict[Path, Path]:
    """Return every picture that a page shows, with one page that shows it."""
    links = [(page, link) for page in PAGES for link in SHOWN.findall(page.read_text())]
    return {(page.parent / link).resolve(): page for page, link in links if not link.startswith("http")}


def test_the_pictures_that_are_there_are_those_that_the_command_makes() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(pictures.PICTURES)


def test_pages_show_what_the_command_makes_and_all_of_it() -> None:
    result = linked_pictures()
    assert {path.parent for path in result} == {FOLDER.resolve()}
    assert {path.name for path in result} == set(pictures.PICTURES)


def test_pictures_are_small_and_wide_enough_to_be_read() -> None:
    sizes = {path.name: path.stat().st_size for path in FOLDER.iterdir()}
    assert max(sizes.values()) < 200_000
    assert sum(sizes.values()) < 1_000_000
    for name in ("quickstart.png", "report.png", "tasks.png", "question.webp"):
        with Image.open(FOLDER / name) as picture:
            assert picture.width >= pictures.WIDTH_PX


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt install chromium, or set CHROMIUM to the path of one")
def test_the_command_makes_them(tmp_path: Path) -> None:
    pytest.importorskip("playwright")
    built = pictures.make_pictures(tmp_path, None)
    assert set(built) == set(pictures.PICTURES) - set(pictures.RECORDED)
    assert find_other_sizes(tmp_path, built) == []


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt install chromium, or set CHROMIUM to the path of one")
def test_the_command_makes_the_one_of_recorded_answers(tmp_path: Path, shared_data: Path) -> None:
    pytest.importorskip("playwright")
    pictures.of_recorded(tmp_path, tmp_path, shared_data)
    assert find_other_sizes(tmp_path, list(pictures.RECORDED)) == []


def find_other_sizes(folder: Path, names: list[str]) -> list[str]:
    """Return the pictures with another width than the committed one or, because fonts differ, by far another height."""
    others = []
    for name in names:
        with Image.open(folder / name) as item, Image.open(FOLDER / name) as other:
            if item.width != other.width or abs(item.height - other.height) > 0.1 * other.height:
                others.append(f"{name}: {item.size}, committed {other.size}")
    return others
