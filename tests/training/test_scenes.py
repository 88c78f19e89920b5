"""Lessons in seeing: every picture is drawn for training, kept, and told."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hybrid.images import ImageStore
from training import scenes
from training.pictures import Eyes, pictures_of
from training.scenes import QUESTION, SCENES, look
from training.sight import View, said

VIEWS: tuple[View, ...] = ("ground", "prominence")


@pytest.mark.parametrize("view", VIEWS)
def test_a_lesson_shows_a_picture_and_says_what_is_there(view: View, tmp_path: Path) -> None:
    lessons = list(look(view, 3, 0, tmp_path))
    assert lessons == list(look(view, 3, 0, tmp_path))
    assert [(each["benchmark"], each["task"], each["form"]) for each in lessons] == [(SCENES, view, "scene")] * 3
    for each in lessons:
        (shown,) = pictures_of(each)
        assert each["turns"][0]["content"][1]["text"] == QUESTION
        with Image.open(ImageStore(tmp_path / "images").path(shown)) as picture:
            there = said(view, np.asarray(picture.convert("RGB")))
        assert there.startswith("1 ")
        assert Eyes(tmp_path).told(each)["turns"][-1] == {"role": "assistant", "content": there}


def test_seeds_and_kinds_have_pictures_of_their_own(tmp_path: Path) -> None:
    shown = [pictures_of(each) for view in VIEWS for seed in (0, 1) for each in look(view, 2, seed, tmp_path)]
    assert len(set(shown)) == 8


def test_all_of_it_is_drawn_for_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def recording(purpose: str, *key: int) -> np.random.Generator:
        asked.append(purpose)
        return np.random.default_rng(list(key))

    monkeypatch.setattr(scenes, "generator", recording)
    list(look("prominence", 2, 0, tmp_path))
    assert asked == ["train", "train"]
