"""Vision lessons: every picture is drawn for training, stored, and described."""

from pathlib import Path

from training.pictures import pictures_of
from training.scenes import look
from training.sight import View

VIEWS: tuple[View, ...] = ("ground", "prominence")


def test_seeds_and_kinds_have_pictures_of_their_own(tmp_path: Path) -> None:
    values = [pictures_of(item) for view in VIEWS for seed in (0, 1) for item in look(view, 2, seed, tmp_path)]
    assert len(set(values)) == 8
