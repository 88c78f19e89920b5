"""Weights in a run: refused, labelled everywhere, or used without a note, depending on their card."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.finished_runs import Command, Words

pytestmark = pytest.mark.system


@pytest.fixture
def words(blink: Words, tmp_path: Path) -> Callable[[Path], list[str]]:
    """Function that returns the words of a run of one jigsaw by the specialist, with weights for `depth` and
    `detection`."""

    def with_weights(folder: Path) -> list[str]:
        places = (f"depth={folder}", f"detection={tmp_path / 'detector'}")
        for place in (folder, tmp_path / "detector"):
            place.mkdir(parents=True, exist_ok=True)
            (place / "model.safetensors").write_bytes(b"never loaded: the question is a puzzle")
        values = [word if word != "classical" else "auto" for word in blink]
        weights = [word for place in places for word in ("--weights", place)]
        return ["run", *values, "--solver", "specialist", *weights, "--limit", "1", "--device", "cpu"]

    return with_weights


def test_known_weights_that_saw_the_images_are_refused_by_name(
    command: Command, words: Callable[[Path], list[str]], tmp_path: Path
) -> None:
    # A folder of the hub's cache is recognised by its name; the large model is not for commercial use.
    folder = tmp_path / "models--depth-anything--Depth-Anything-V2-Large-hf" / "snapshots" / "1"
    refused = command(*words(folder), "--dry-run", code=2)
    assert "depth: licence CC-BY-NC-4.0 (--allow non-commercial)" in refused.err
    assert "overlap" not in refused.err, "the jigsaws and relations come from TARA and VSR"
    result = command(*words(folder), "--allow", "non-commercial", "--json", code=0)
    assert "note: non-commercial: depth\n" in result.err


@pytest.mark.parametrize(("samples", "is_said"), [(2, True), (3, False)])
def test_two_samples_are_said_to_change_no_vote(command: Command, samples: int, is_said: bool) -> None:
    arguments = (
        "run",
        "blink",
        "--data",
        "sample",
        "--model",
        "embedded",
        "--solver",
        "mllm",
        "--limit",
        "1",
        "--dry-run",
    )
    result = command(*arguments, "--setting", f"samples={samples}", code=0)
    assert ("note: --setting samples=2 doubles the calls but changes no answer" in result.err) == is_said
