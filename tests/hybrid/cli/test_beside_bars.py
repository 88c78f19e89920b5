"""Messages printed while a run shows a progress bar."""

from typing import Any

import pytest

from hybrid.cli._progress import Bars, format_usage
from hybrid.core.types import Usage
from hybrid.display.notes import OTHER_BARS, loading, loads
from hybrid.running.engine import Progress
from tests.tables import cases


@pytest.mark.parametrize(*cases(__file__, "test_what_is_shown"))
def test_what_is_shown(usage: dict[str, Any], failed: int, retries: int, text: str) -> None:
    assert format_usage(Progress(Usage(**usage), failed, retries)) == text


def test_what_is_loaded_stands_in_the_bar_and_other_libraries_draw_none_meanwhile(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers.utils import logging

    monkeypatch.delenv(OTHER_BARS, raising=False)
    monkeypatch.setattr(logging, "_tqdm_active", True)
    with Bars() as bars:
        bars("mllm", 0, 4)
        assert "loading" not in capsys.readouterr().err
        with loading("the model hf:tiny"):
            loads("process", ("depth", "detection"))
            assert "mllm:   0%" in (err := capsys.readouterr().err)
            assert "loading the model hf:tiny, depth, detection]" in err
            assert not logging.is_progress_bar_enabled()
        assert logging.is_progress_bar_enabled()
        bars("arbiter", 0, 4)
        assert "loading depth, detection]" in capsys.readouterr().err.split("arbiter:")[-1]
        bars.watch("arbiter", Progress(failed=1))
        loads("process", ())
        assert "1 failed]" in (err := capsys.readouterr().err)
        assert "loading" not in err.split("arbiter:")[-1]
    with loading("the model hf:tiny"):
        assert logging.is_progress_bar_enabled(), "nothing of ours is shown"
        assert "loading" not in capsys.readouterr().err


def test_the_bar_says_that_no_answer_has_arrived_yet(capsys: pytest.CaptureFixture[str]) -> None:
    with Bars() as bars:
        bars("mllm", 1, 4)
        with loading("the model hf:tiny"):
            assert "waiting" not in capsys.readouterr().err.split("loading")[-1]
        assert "waiting for the first answer]" in capsys.readouterr().err.splitlines()[-1]
        bars("mllm", 2, 4)
        capsys.readouterr()
        bars.watch("mllm", Progress(waits="one batch"))
        assert "one batch" in (err := capsys.readouterr().err)
        assert "waiting" not in err
        bars("arbiter", 4, 4)
        assert "waiting" not in capsys.readouterr().err.split("arbiter")[-1]
