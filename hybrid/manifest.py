"""What the manifest of a run must hold, so that everything that reads a run can rely on it.

    content = read_manifest(path)
    content["identity"]["benchmark"]

Under `commands` it says by which commands the run was made (`Invocation`), in their order; runs of older versions lack
it. Under `files` it says how much of each file of lines was there when the last command ended in order. A file that is
longer, and begins with just that, grew until a crash; any other difference is damage.

Under `sha256` it has that of its own content (`seal_of`): one that was changed is refused. Runs of older versions have
none: they are read, and every number of theirs has the label `UNSEALED`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hybrid.errors import DataError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

FORMAT = 1
MANIFEST = "manifest.json"
SEAL = "sha256"
UNSEALED = "manifest without a checksum"
MEND = "put back the one that the run was made with, or give another folder"


@dataclass(frozen=True)
class Extent:
    """How much of a file of lines there is: whole lines, their bytes, and the sha256 of these."""

    lines: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Invocation:
    """A command that began or continued a run."""

    at: str
    """When it took the run's folder up, in UTC: `2026-11-23T14:05:09Z`."""
    command: str
    """Its command line, redacted."""
    commit: str | None = None
    """Of the project's code, ending in `-dirty` where it was changed; None where the project was no clone."""


def is_folder_name(name: str) -> bool:
    """Whether a name is that of something inside of a folder, and of nothing else."""
    return bool(name) and name not in (".", "..") and not re.search(r"[/\\\0]", name)


@dataclass(frozen=True)
class _Imported:
    field: Literal["stored", "text"] | None = None


@dataclass(frozen=True)
class _Identity:
    """What readers look at; a run has more, and an import less."""

    benchmark: str
    split: str
    protocol: Literal["strict", "official"] = "strict"
    tool_output: str = "real"
    data: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    prompts: Mapping[str, Any] | None = None
    imported: _Imported | None = None


@dataclass(frozen=True)
class _Solver:
    tools: Mapping[str, Any] = field(default_factory=dict)
    unchecked_weights: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Manifest:
    identity: _Identity
    solvers: Mapping[str, _Solver]
    labels: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    connection: tuple[Mapping[str, Any], ...] = ()
    probed_frame: str = "pixels"
    files: Mapping[str, Extent] = field(default_factory=dict)
    commands: tuple[Invocation, ...] = ()


def read_manifest(path: Path) -> dict[str, Any]:
    """The content of a manifest, without its seal. Raises `DataError`, in one line, for a file that is none or changed.

    The labels of one without a seal hold `UNSEALED`.
    """
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not JSON ({error}): {MEND}") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror})") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DataError(f"{path} is not a manifest of format {FORMAT}: {MEND}")
    try:
        _shape().validate_python(content)
    except ValueError as error:
        raise DataError(f"{path} is damaged: {first_error(error)}; {MEND}") from error
    if odd := [name for name in content["solvers"] if not is_folder_name(name)]:
        raise DataError(f"{path} is damaged: {odd[0]!r} is no name of a solver; {MEND}")
    seal = content.pop(SEAL, None)
    if seal is None:
        content["labels"] = list(dict.fromkeys([*content.get("labels", ()), UNSEALED]))
    elif seal != seal_of(content):
        raise DataError(f"{path} was changed after it was written (its sha256 is not the one that it names): {MEND}")
    return content


def seal_of(content: Mapping[str, Any]) -> str:
    """The hex sha256 of a JSON object, whatever the order of its keys; one that it names already does not count."""
    own = {key: value for key, value in content.items() if key != SEAL}
    return hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()


@cache
def _shape() -> TypeAdapter[_Manifest]:
    from pydantic import TypeAdapter

    return TypeAdapter(_Manifest)


def first_error(error: ValueError) -> str:
    """The first thing that pydantic found wrong, in one line."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return " ".join(str(error).split())
    found = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in found["loc"])
    return f"{place}: {found['msg']}" if place else str(found["msg"])


def whole_lines(path: Path) -> Iterator[bytes]:
    """Every line of a file that has its end; none where there is no file."""
    if not path.exists():
        return
    with path.open("rb") as file:
        yield from (line for line in file if line.endswith(b"\n"))


class Measure:
    """Measures lines as they pass, and compares them with what was there before.

    Args:
        before: what was there; None where nobody knows.
        passed: the hash of just that, where it has passed already.
    """

    def __init__(self, before: Extent | None, passed: hashlib._Hash | None = None) -> None:
        self._before = before
        self._lines = self._bytes = 0
        self._sha256 = passed or hashlib.sha256()
        self._same = before is None or before.bytes == 0
        if before is not None and passed is not None:
            self._lines, self._bytes, self._same = before.lines, before.bytes, True

    def add(self, data: bytes, lines: int = 1) -> None:
        """Count one more line, or several at once."""
        self._lines += lines
        self._bytes += len(data)
        self._sha256.update(data)
        if self._before is not None and self._bytes == self._before.bytes:
            self._same = self._sha256.hexdigest() == self._before.sha256

    @property
    def extent(self) -> Extent:
        """What has passed so far."""
        return Extent(self._lines, self._bytes, self._sha256.hexdigest())

    @property
    def missing(self) -> int:
        """How many of the lines that were there are not."""
        return 0 if self._before is None or self._same else max(0, self._before.lines - self._lines)

    @property
    def changed(self) -> bool:
        """Whether no line is missing, and yet those that were there are others now."""
        return not self._same and not self.missing

    def wrong(self, what: str) -> str | None:
        """What is missing or another, as the end of a sentence; None where all that was there still is."""
        if self._before is None or self._same:
            return None
        if self.missing:
            return f"holds {self._lines} of the {self._before.lines} {what} that were written"
        return f"was changed: its first {self._before.lines} {what} are not those that were written"
