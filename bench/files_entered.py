"""Count the product's files that run for one question, from the command to the printed table.

    python -m bench.files_entered [--list]

Profiles `hybrid run` of one generated question with the embedded model and all solvers, in this process. Counts files
of which a function ran (imports do not count), pairs of files of which one called the other, and calls between files.
`--list` prints each file with its functions that ran. No test depends on these numbers.
"""

from __future__ import annotations

import collections
import sys
import tempfile
import threading
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from types import FrameType

from bench._frame import options
from hybrid.cli import main

ROOT = Path(__file__).parents[1]
FOLDERS = tuple(f"{ROOT / folder}/" for folder in ("hybrid", "tools", "graphs", "baselines"))
ASKED = (
    "run",
    "blink",
    "--data",
    "sample",
    "--task",
    "Relative_Depth",
    "--limit",
    "1",
    "--model",
    "embedded",
    "--quiet",
)


@dataclass
class CallProfile:
    """The calls of functions of the product, by file."""

    functions: dict[str, set[str]] = field(default_factory=lambda: collections.defaultdict(set))
    pairs: collections.Counter[tuple[str, str]] = field(default_factory=collections.Counter)

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Count a call; a function for `sys.setprofile`."""
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(FOLDERS) or _is_import(frame):
            return
        self.functions[name].add(frame.f_code.co_qualname)
        caller = frame.f_back.f_code.co_filename if frame.f_back is not None else ""
        if caller.startswith(FOLDERS) and caller != name:
            self.pairs[caller, name] += 1


def _is_import(frame: FrameType | None) -> bool:
    """Return whether a module of the product is being imported, which runs its class bodies and decorators."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(FOLDERS):
            return True
        frame = frame.f_back
    return False


def profiled(arguments: tuple[str, ...]) -> CallProfile:
    """Run a command of `hybrid` in this process and return its profile. Raises `SystemExit` if the command fails."""
    profile = CallProfile()
    sys.argv = ["hybrid", *arguments]
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        with redirect_stdout(StringIO()):
            main()
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return profile


if __name__ == "__main__":
    flags = options(__doc__, {"--list": False})
    with tempfile.TemporaryDirectory() as folder:
        profile = profiled((*ASKED, "--out", f"{folder}/run"))
    if flags.list:
        for name, functions in sorted(profile.functions.items()):
            print(f"{Path(name).relative_to(ROOT)}: {', '.join(sorted(functions))}")
    print(f"files {len(profile.functions)}, pairs {len(profile.pairs)}, calls {sum(profile.pairs.values())}")
