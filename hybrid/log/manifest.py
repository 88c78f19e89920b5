"""The manifest of a run, and the seal of JSON files: the sha256 of their own content.

    content = read_manifest(path)
    content["identity"]["benchmark"]

`commands` lists the commands that made the run (`Invocation`) in order. `files` has the extent of each file of lines
when the last command ended normally: a file that is longer and starts with exactly that content was extended before a
crash; any other difference is damage. `sha256` is the hash of the content (`seal_of`): a modified manifest is refused.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hybrid.core.errors import DataError
from hybrid.core.files import write_atomic
from hybrid.core.secrets import redact_bytes
from hybrid.log.codec import codec, first_error
from hybrid.log.lines import FileExtent

FORMAT = 2
MANIFEST = "manifest.json"
SEAL = "sha256"
# The entry with the plug-ins that a run used (`hybrid.plugins.discovery.origin_facts`).
PLUGINS = "plugins"
MEND = "restore the original manifest of the run, or give another folder"


@dataclass(frozen=True)
class Invocation:
    """A command that started or resumed a run."""

    # Time at which the command opened the run's folder, in UTC: `2026-11-23T14:05:09Z`.
    at: str
    # The command line, redacted.
    command: str
    # Git commit of the project, ending in `-dirty` if it was modified; None if the project is not a clone.
    commit: str | None = None


@dataclass(frozen=True)
class _Imported:
    field: Literal["stored", "text"] | None = None


@dataclass(frozen=True)
class _Identity:
    """The manifest entries that are read again. The manifest of a run has more entries, that of an import fewer."""

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
class _Sight:
    verdict: Literal["sees", "blind", "unknown"]


@dataclass(frozen=True)
class _Calling:
    verdict: Literal["calls", "unreadable", "refused", "none"]


@dataclass(frozen=True)
class _ToolPicture:
    verdict: Literal["sees", "blind", "refused", "unknown"]
    place: Literal["inside", "beside"] = "beside"
    thinking: Literal["none", "kept", "switched", "lost", "unknown"] = "none"
    switch: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _PictureOrder:
    verdict: Literal["in order", "out of order", "missing", "refused", "unknown"]


@dataclass(frozen=True)
class _Manifest:
    identity: _Identity
    solvers: Mapping[str, _Solver]
    labels: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    connection: tuple[Mapping[str, Any], ...] = ()
    probed_frame: str = "pixels"
    sight: _Sight | None = None
    calling: _Calling | None = None
    tool_picture: _ToolPicture | None = None
    picture_order: _PictureOrder | None = None
    files: Mapping[str, FileExtent] = field(default_factory=dict)
    commands: tuple[Invocation, ...] = ()
    plugins: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def read_manifest(path: Path) -> dict[str, Any]:
    """Read the content of a manifest, without its seal.

    Raises:
        DataError: it is not a manifest, was modified, or has another format.
    """
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not JSON ({error}): {MEND}") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror})") from error
    if not isinstance(content, dict) or not isinstance(content.get("format"), int):
        raise DataError(f"{path} is not a manifest: {MEND}")
    if content["format"] != FORMAT:
        raise DataError(
            f"{path} has format {content['format']} but this version reads format {FORMAT}: "
            f"run it again with this version, in another folder than {path.parent}"
        )
    try:
        codec(_Manifest).validate_python(content)
    except ValueError as error:
        raise DataError(f"{path} is damaged: {first_error(error)}; {MEND}") from error
    if odd := [name for name in content["solvers"] if name in ("", ".", "..") or re.search(r"[/\\\0]", name)]:
        raise DataError(f"{path} is damaged: {odd[0]!r} is not a solver name; {MEND}")
    if content.pop(SEAL, None) != seal_of(content):
        raise DataError(f"{path} was changed after it was written (its sha256 is not the one recorded in it): {MEND}")
    return content


def write_sealed(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Replace a file with a JSON object without secrets, sealed with the sha256 of its content (`seal_of`)."""
    content = json.loads(redact_bytes(data))
    text = json.dumps({**content, SEAL: seal_of(content)}, indent=1, ensure_ascii=False)
    write_atomic(path, text.encode() + b"\n", durable=durable)


def difference(recorded: Mapping[str, Any], current: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return one line `key: old -> new` per value that differs between two configurations."""
    lines = []
    for key in sorted({*recorded, *current}):
        old, new, name = recorded.get(key), current.get(key), f"{prefix}{key}"
        if isinstance(old, dict) and isinstance(new, dict):
            lines += difference(old, new, f"{name}.")
        elif old != new:
            lines.append(f"{name}: {json.dumps(old)} -> {json.dumps(new)}")
    return lines


def seal_of(content: Mapping[str, Any]) -> str:
    """Return the hex sha256 of a JSON object, independent of the order of keys and of an existing seal."""
    sealed = {key: value for key, value in content.items() if key != SEAL}
    return hashlib.sha256(json.dumps(sealed, sort_keys=True).encode()).hexdigest()
