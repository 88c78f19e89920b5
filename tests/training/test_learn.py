"""Training itself, on a few questions."""

from pathlib import Path

import pytest

from training.conversations import Batch, write
from training.learn import Schedule, train
from training.scenes import SCENES


@pytest.mark.slow
def test_a_little_training_makes_the_loss_fall_and_repeats_exactly(tmp_path: Path) -> None:
    """A few steps on conversations of one task and some scenes make the loss fall, and repeat exactly. Run with `uv run
    pytest -m slow tests/training`."""
    write([Batch("blink", "Jigsaw", 6, 0), Batch(SCENES, "ground", 8, 0)], tmp_path / "data", 1)
    schedule = Schedule(70, seeing=10, tokens=1500)
    losses = train(tmp_path / "data", tmp_path / "out", schedule)
    assert len(losses) == 70
    assert sum(losses[-3:]) / 3 < losses[0] / 2
    assert (tmp_path / "out" / "model.safetensors").is_file()
    assert train(tmp_path / "data", tmp_path / "again", schedule) == losses
