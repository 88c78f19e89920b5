"""Long commands show progress at short intervals on a terminal, at long intervals in a log, and not with `--quiet`."""

import sys
from collections.abc import Sequence

import pytest

from hybrid.display import progress_bar
from hybrid.display.notes import quietly
from hybrid.display.progress_bar import with_progress

ITEMS = range(50)


def states(capsys: pytest.CaptureFixture[str]) -> Sequence[str]:
    """Return the states of a bar over the items."""
    assert list(with_progress(iter(ITEMS), "controller", len(ITEMS))) == list(ITEMS)
    return [state for state in capsys.readouterr().err.split("\r") if "/50" in state]


@pytest.mark.parametrize(("terminal", "name"), [(True, "BAR_S"), (False, "LOG_S")])
def test_the_interval_depends_on_the_stream(
    terminal: bool, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for interval in ("BAR_S", "LOG_S"):
        monkeypatch.setattr(progress_bar, interval, 0.0 if interval == name else 1000.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    lines = states(capsys)
    assert len(lines) > 40
    assert "controller" in lines[-1]
    assert "50/50" in lines[-1]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: not terminal)
    assert len(states(capsys)) <= 2


def test_nothing_is_shown_if_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    with quietly():
        assert states(capsys) == []


def test_nothing_is_shown_before_the_delay(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(with_progress(iter(ITEMS), "controller", len(ITEMS), delay_s=1000.0)) == list(ITEMS)
    assert capsys.readouterr().err == ""
