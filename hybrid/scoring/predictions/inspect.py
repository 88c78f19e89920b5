"""Logs of Inspect AI, `.eval` (a zip of JSON) and `.json`, including those from `hybrid export --to inspect`.

Inspect need not be installed: the reader uses `samples` of a `.json` file, or `samples/ID_epoch_N.json` of a `.eval`
file. It reads a sample's `id`, `epoch`, `target`, `choices`, last reply (`output`, else the assistant's last message),
`metadata.task` and `metadata.cluster`.
"""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hybrid.benchmarks.base import PredictedRow
from hybrid.core.errors import DataError, needed_by
from hybrid.display.terminal import how_many
from hybrid.scoring.predictions.base import UNREADABLE, Recognised, first, letter_of

# Zip compression method number of zstd.
ZSTD = 93
# The entry with what is known of all samples, and the package by which a log from `hybrid export` is known.
HEADER, PACKAGE = "header.json", "hybrid-perception"
# Maximum size in bytes of one sample, and of a full `.json`; both include pictures.
MAX_SAMPLE, MAX_LOG = 200_000_000, 2_000_000_000
# Maximum number of entries of a `.eval`: one per sample, plus a few for the log.
MAX_ENTRIES = 1_000_000


def read(path: Path) -> Recognised | None:
    """Return the first epoch of every sample; None if `path` is no Inspect log. Raises `DataError` for a broken log."""
    if not path.is_file():
        return None
    named = ("", "")
    if path.suffix.lower() == ".eval":
        samples = _of_zip(path, "samples/")
        named = next((_solver_of(header) for header, _ in _of_zip(path, HEADER)), named)
    elif path.suffix.lower() == ".json":
        log = _log(path)
        if log is None:
            return None
        named = _solver_of(log)
        samples = ((sample, f"{path}, sample {number}") for number, sample in enumerate(log.get("samples") or (), 1))
    else:
        return None
    rows, repeated, failed = [], set[int](), []
    for sample, location in samples:
        if not isinstance(sample, dict) or "id" not in sample or "messages" not in sample:
            raise DataError(f"{location}: expected a sample with id and messages")
        if (epoch := sample.get("epoch", 1)) != 1:
            repeated.add(epoch)
        elif sample.get("error"):
            failed.append(str(sample["id"]))
        else:
            rows.append(_row(sample, location))
    notes = []
    if repeated:
        notes.append(f"{len(repeated) + 1} epochs: the first is scored, the others are not")
    if failed:
        notes.append(f"{how_many(len(failed), 'sample')} ended in an error, left out: {first(failed)}")
    about = f"Inspect log ({path.suffix.lower()[1:]}, {how_many(len(rows), 'sample')})"
    return Recognised(about, tuple(rows), tuple(notes), *named)


def _solver_of(header: Any) -> tuple[str, str]:
    """Return the solver and the model of a log from `hybrid export`; empty texts for other logs.

    Every repetition of a solver has a log of its own, whose name says nothing.
    """
    spec = header.get("eval") if isinstance(header, dict) else None
    if not isinstance(spec, dict) or PACKAGE not in (spec.get("packages") or {}):
        return "", ""
    return str(spec.get("solver") or ""), str(spec.get("model") or "")


def _log(path: Path) -> Mapping[str, Any] | None:
    if path.stat().st_size > MAX_LOG:
        raise DataError(f"{path}: more than {MAX_LOG:,} bytes; write it as .eval")
    try:
        log = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    return log if isinstance(log, dict) and {"eval", "samples"} <= log.keys() else None


def _of_zip(path: Path, prefix: str) -> Iterator[tuple[Any, str]]:
    """Yield the JSON of every entry whose name begins with `prefix`, and its location."""
    try:
        with zipfile.ZipFile(path) as file:
            if len(file.infolist()) > MAX_ENTRIES:
                raise DataError(f"{path}: {len(file.infolist()):,} entries; at most {MAX_ENTRIES:,} are read")
            for entry in file.infolist():
                if not (entry.filename.startswith(prefix) and entry.filename.endswith(".json")):
                    continue
                location = f"{path}, {entry.filename}"
                if entry.file_size > MAX_SAMPLE:
                    raise DataError(
                        f"{location}: a sample of {entry.file_size:,} bytes; at most {MAX_SAMPLE:,} are read"
                    )
                data = _unzstd(path, entry) if entry.compress_type == ZSTD else file.read(entry)
                yield json.loads(data), location
    except UNREADABLE as error:
        raise DataError(f"{path} is not a log of Inspect that can be read ({error})") from error


def _unzstd(path: Path, entry: zipfile.ZipInfo) -> bytes:
    """Return the content of a zstd-compressed entry, which `zipfile` cannot read before Python 3.14."""
    with needed_by(f"{path} (compressed with zstd; a .json log needs no extra package)"):
        import pyarrow as pa

    with path.open("rb") as file:
        file.seek(entry.header_offset)
        # A local header has 30 bytes; its last two numbers are the lengths of the name and of the extra field.
        name_length, more_length = struct.unpack("<HH", file.read(30)[26:])
        file.seek(name_length + more_length, 1)
        packed = file.read(entry.compress_size)
    try:
        data: bytes = pa.Codec("zstd").decompress(packed, decompressed_size=entry.file_size, asbytes=True)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}, {entry.filename}: cannot be unpacked ({error})") from error
    return data


def _row(sample: Mapping[str, Any], location: str) -> PredictedRow:
    target, metadata, choices = sample.get("target"), sample.get("metadata"), sample.get("choices")
    task, cluster = map(metadata.get, ("task", "cluster")) if isinstance(metadata, dict) else (None, None)
    return PredictedRow(
        where=location,
        reply=_reply(sample),
        id=str(sample["id"]),
        task=task if isinstance(task, str) else None,
        choices=tuple(map(str, choices)) if isinstance(choices, list) else (),
        answer=letter_of(target) if isinstance(target, str) else None,
        cluster=cluster if isinstance(cluster, str) else "",
    )


def _reply(sample: Mapping[str, Any]) -> str:
    output = sample.get("output")
    choices = output.get("choices") if isinstance(output, dict) else None
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return words_of(choices[0].get("message"))
    replies = [
        message for message in sample["messages"] if isinstance(message, dict) and message.get("role") == "assistant"
    ]
    return words_of(replies[-1]) if replies else ""


def words_of(message: Any) -> str:
    """Return the text of a message, whose content is text or a list of parts; reasoning is left out."""
    content = message.get("content") if isinstance(message, dict) else message
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and part.get("type") == "text")
