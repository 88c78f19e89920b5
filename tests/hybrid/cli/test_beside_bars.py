"""The texts beside a progress bar while a run goes on."""

import pytest

from hybrid.cli._progress import Bars, beside
from hybrid.display.loading import OTHER_BARS, loading, loads
from hybrid.running.progress import Progress
from hybrid.types import Usage


@pytest.mark.parametrize(
    ("so_far", "shown"),
    [
        (Progress(), ""),
        (Progress(Usage(input_tokens=900, output_tokens=99)), "999 tokens"),
        (Progress(Usage(input_tokens=12_345), 2), "12.3k tokens, 2 failed"),
        (Progress(Usage(input_tokens=999_949)), "999.9k tokens"),
        (Progress(Usage(output_tokens=999_950)), "1.00M tokens"),
        (Progress(Usage(input_tokens=1, cost_usd=0.0, tool_faults=1)), "1 tokens, $0.00, 1 tool fault"),
        (Progress(Usage(), 1, 1), "1 retry, 1 failed"),
        (Progress(Usage(tool_faults=1), 0, 12), "12 retries, 1 tool fault"),
        (Progress(Usage(cost_usd=1.239, tool_faults=2)), "$1.24, 2 tool faults"),
    ],
)
def test_what_is_shown(so_far: Progress, shown: str) -> None:
    assert beside(so_far) == shown


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
            assert "mllm:   0%" in (shown := capsys.readouterr().err)
            assert "loading the model hf:tiny, depth, detection]" in shown
            assert not logging.is_progress_bar_enabled()
        assert logging.is_progress_bar_enabled()
        bars("arbiter", 0, 4)
        assert "loading depth, detection]" in capsys.readouterr().err.split("arbiter:")[-1]
        bars.watch("arbiter", Progress(failed=1))
        loads("process", ())
        assert "1 failed]" in (shown := capsys.readouterr().err)
        assert "loading" not in shown.split("arbiter:")[-1]
    with loading("the model hf:tiny"):
        assert logging.is_progress_bar_enabled(), "nothing of ours is shown"
        assert "loading" not in capsys.readouterr().err
