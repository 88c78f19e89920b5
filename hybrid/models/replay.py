"""`replay:DIR`: a model that answers from recordings, by (question id with variant, ask, model call).

Run: `hybrid run blink --model replay:DIR`. Three layouts are supported; add a function to `readers` for another one:

- `*.json`, outputs that a benchmark published in its own layout (`Benchmark.recordings`);
- `*.jsonl`, one call per line: `{"id", "ask", "call", "text"}` and, optionally, `prompt_sha256` or `prompt` (the text);
- `RUN/SOLVER` of a run of hybrid: the model's steps in its attempts with their prompts; prompts with tools are left
  out.

A recording that has only an id answers the first call for the first prompt of exactly that id, never of a variant.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid.core.errors import DataError, NotRecorded, UsageError
from hybrid.core.files import read_small
from hybrid.core.messages import AssistantMessage, Message
from hybrid.core.types import Json
from hybrid.log.lines import json_lines
from hybrid.models.base import CallKey, prompt_sha256
from hybrid.plugins.registry import load_each
from hybrid.tool import Tool

ATTEMPTS = "attempts.jsonl"
MAX_BYTES = 512 * 2**20  # Largest size of a file of recordings, which is read into memory.
Place = tuple[str, int, int]  # Question id with variant, ask, call.


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded reply, verbatim. `prompt_sha256` is None if the recording does not contain the prompt."""

    place: Place
    text: str
    where: str
    prompt_sha256: str | None = None


# Converts a file (its path for messages, its bytes) to recordings. Raises `DataError` naming file and row.
Reader = Callable[[Path, bytes], Iterator[Recording]]


def read_published(path: Path, data: bytes) -> Iterator[Recording]:
    """Read a file of a benchmark's published outputs, in that benchmark's layout, which contains no prompts."""
    del data
    for _, benchmark in load_each("hybrid.benchmarks"):
        rows: Sequence[Any] | None = benchmark.recordings(path)
        if rows is not None:
            return (Recording((str(row.id), 0, 0), row.reply, row.where) for row in rows)
    raise DataError(f"{path}: this is not the layout in which the benchmark's authors published saved outputs")


def read_lines(path: Path, data: bytes) -> Iterator[Recording]:
    """Read a file with one call per line."""
    for row, location in json_lines(path, data):
        for key in ("id", "text"):
            if not isinstance(row.get(key), str):
                raise DataError(f"{location}: {key!r} is missing or not text")
        for key in ("ask", "call"):
            value = row.setdefault(key, 0)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise DataError(f"{location}: {key!r} is {value!r}, not a whole number of at least 0")
        sha, prompt = row.get("prompt_sha256"), row.get("prompt")
        for key in ("prompt_sha256", "prompt"):
            if not isinstance(row.get(key), str | None):
                raise DataError(f"{location}: {key!r} is not text")
        of_prompt = sha if prompt is None else prompt_sha256(prompt)
        if sha not in (None, of_prompt):
            raise DataError(f"{location}: 'prompt_sha256' is not the sha256 of 'prompt'")
        yield Recording((row["id"], row["ask"], row["call"]), row["text"], location, of_prompt)


def read_attempts(path: Path, data: bytes) -> Iterator[Recording]:
    """Read the attempts of a run: for each prompt, the model's steps in order, with the hash of the prompt."""
    from hybrid.log.folder import RunFolder

    del data
    run, solver = path.absolute().parents[1], path.absolute().parent.name
    recorded = RunFolder(run).recorded(solver)
    if recorded.damage:
        raise DataError(recorded.damage[0])
    for attempt in recorded.by_id.values():
        for ask, exchange in enumerate(attempt.exchanges):
            steps = [step for step in exchange.reply.steps if step.kind == "model"]
            if any(step.data.get("tool_calls") or step.fault for step in steps):
                continue
            sha = prompt_sha256(exchange.prompt.text)
            for call, step in enumerate(steps):
                location = f"{path}: {attempt.id}, exchange {ask}, call {call}"
                yield Recording((attempt.id, ask, call), step.text, location, sha)


def readers(folder: Path) -> list[tuple[Path, Reader]]:
    """Return the files of a folder with recordings, sorted, each with its reader; other files are ignored."""
    if (folder / ATTEMPTS).is_file():
        return [(folder / ATTEMPTS, read_attempts)]
    by_suffix: dict[str, Reader] = {".json": read_published, ".jsonl": read_lines}
    return [(path, by_suffix[path.suffix]) for path in sorted(folder.iterdir()) if path.suffix in by_suffix]


def read_folder(folder: Path) -> tuple[dict[Place, Recording], dict[str, str]]:
    """Return all recordings of a folder by place, and the sha256 of each file by file name.

    Raises:
        UsageError: the folder does not exist or has no recordings.
        DataError: a file, row or field that cannot be used, or two recordings of one call.
        OSError: a file cannot be read, or has more than `MAX_BYTES`.
    """
    if not folder.is_dir():
        raise UsageError(f"--model replay:{folder}: folder not found; give one with recorded answers")
    recordings: dict[Place, Recording] = {}
    hashes: dict[str, str] = {}
    for path, reader in readers(folder):
        data = read_small(path, MAX_BYTES)
        hashes[path.relative_to(folder).as_posix()] = hashlib.sha256(data).hexdigest()
        for recording in reader(path, data):
            earlier = recordings.setdefault(recording.place, recording)
            if earlier is not recording:
                raise DataError(
                    f"{recording.where}: {_describe_place(recording.place)} already appears in {earlier.where}"
                )
    if not recordings:
        inside = sorted(path.name for path in folder.iterdir() if path.is_dir())
        hint = f"; it contains the folders {', '.join(inside)}: give one of them" if inside else ""
        raise UsageError(f"--model replay:{folder}: no recordings (*.json, *.jsonl) in it{hint}")
    return recordings, hashes


def _describe_place(place: Place) -> str:
    question, ask, call = place
    return f"question {question!r}, ask {ask}, call {call}"


class ReplayModel:
    """A `ChatModel` that replays recordings; it reads its folder once, at construction.

    Raises on construction what `read_folder` raises.
    """

    provider = "replay"

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = folder
        self._recordings, self._hashes = read_folder(folder)

    def metadata(self) -> Mapping[str, Json]:
        """Return the folder's name, its number of calls and files, and one sha256 over all of them; not its path."""
        total = hashlib.sha256()
        for name, sha in sorted(self._hashes.items()):
            total.update(f"{name}\x1f{sha}\x1e".encode())
        return {
            "model": f"replay:{self._folder.resolve().name}",
            "recordings": len(self._recordings),
            "files": len(self._hashes),
            "files_sha256": total.hexdigest(),
        }

    def connection(self) -> Mapping[str, Json]:
        """Return nothing: there is no server."""
        return {}

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> AssistantMessage:
        """Return the recorded reply, verbatim; `messages` are ignored.

        Raises:
            NotRecorded: tools are offered, there is no recording of this call, or the recording is of another prompt.
        """
        del messages
        if tools:
            raise NotRecorded(f"{self.name}: recorded models cannot call tools ({call.question!r})")
        place = (call.question, call.ask, call.call)
        recording = self._recordings.get(place)
        if recording is None:
            raise NotRecorded(f"{self.name}: no recording of {_describe_place(place)}")
        if recording.prompt_sha256 not in (None, call.prompt_sha256):
            raise NotRecorded(f"{self.name}: the recording of {_describe_place(place)} is for another prompt")
        return AssistantMessage(recording.text)

    async def close(self) -> None:
        """Do nothing, because no resource is open."""
