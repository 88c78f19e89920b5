"""Lessons in seeing: every picture is drawn for training, kept, and told."""

from pathlib import Path

import pytest

from hybrid.images import ImageStore
from hybrid.models.embedded.training.scenes import QUESTION, SCENES, look
from hybrid.models.embedded.training.sight import View

VIEWS: tuple[View, ...] = ("ground", "prominence")


@pytest.mark.parametrize("view", VIEWS)
def test_a_lesson_shows_a_picture_and_says_what_is_there(view: View, tmp_path: Path) -> None:
    lessons = list(look(view, 3, 0, tmp_path))
    assert lessons == list(look(view, 3, 0, tmp_path))
    assert [(each["benchmark"], each["task"], each["form"]) for each in lessons] == [(SCENES, view, "scene")] * 3
    for each in lessons:
        asked, told = each["turns"]
        shown, question = asked["content"]
        assert question["text"] == QUESTION
        assert ImageStore(tmp_path / "images").path(shown["image"]).is_file()
        assert told["content"].startswith("1 ")


def test_seeds_and_kinds_have_pictures_of_their_own(tmp_path: Path) -> None:
    shown = [
        each["turns"][0]["content"][0]["image"]
        for view in VIEWS
        for seed in (0, 1)
        for each in look(view, 2, seed, tmp_path)
    ]
    assert len(set(shown)) == 8
