"""Lessons in seeing: every picture is drawn for training, kept, and told."""

from pathlib import Path

from training.pictures import pictures_of
from training.scenes import look
from training.sight import View

VIEWS: tuple[View, ...] = ("ground", "prominence")


def test_seeds_and_kinds_have_pictures_of_their_own(tmp_path: Path) -> None:
    shown = [pictures_of(each) for view in VIEWS for seed in (0, 1) for each in look(view, 2, seed, tmp_path)]
    assert len(set(shown)) == 8
