"""The meaning of each exit code, for the documentation; `hybrid.cli.main` and the commands return them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

EXIT_CODES: Final[Mapping[int, str]] = {
    0: "Nothing failed.",
    1: "A defect of the program: a traceback is printed.",
    2: "A usage error, or a file, folder or connection that cannot be used; one line says which. Nothing was asked.",
    3: "Some questions failed, were not asked or lost answers; the output names them. Repeat the command to resume.",
    129: "The terminal was closed (SIGHUP); finished answers are saved, as for 130.",
    130: "Interrupted. Finished answers are saved, and the same command resumes the run.",
    141: "The reader of the output closed it early, as `head` does.",
    143: "Ended by SIGTERM; finished answers are saved, as for 130.",
}
