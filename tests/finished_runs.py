"""Runs the command line as a user calls it: the program's own `main`, in this process."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from hybrid.cli import main


@dataclass(frozen=True)
class Ended:
    """Exit code, stdout and stderr of one command."""

    code: int
    out: str
    err: str

    @property
    def report(self) -> dict[str, Any]:
        """Return the object that `--json` printed for the command's only solver."""
        (solver,) = json.loads(self.out)["solvers"].values()
        return dict(solver)


# Types of the fixture `command` and of a command's words.
Command = Callable[..., Ended]
Words = tuple[str, ...]


def run_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: object, code: int | None = None
) -> Ended:
    """Run `hybrid` with these words until it exits; fail if `code` is given and the exit code differs."""
    monkeypatch.setattr(sys, "argv", ["hybrid", *map(str, words)])
    capsys.readouterr()
    with pytest.raises(SystemExit) as exited:
        main()
    out, err = capsys.readouterr()
    exit_code = exited.value.code
    finished = Ended(exit_code if isinstance(exit_code, int) else 0 if exit_code is None else 1, out, err)
    assert code in (None, finished.code), finished
    # Refusals are printed to stderr only.
    assert code != 2 or not out, finished
    return finished
