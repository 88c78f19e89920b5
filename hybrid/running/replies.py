"""What models said to questions that are not finished, kept as soon as it is said: `RUN/replies.jsonl`.

    log = RunReplies(path, finished)            # by solver: what was said to a finished question is not needed any more
    log.keep(call, request_sha256, reply)       # in any thread; a kill after the return does not lose it
    log.said(call, request_sha256)              # in the next run: the same bytes
    log.close(finished)                         # removes the file where nothing in it belongs to an open question

A line is {solver, question, ask, call, request_sha256, text or base64}: `text` where the reply is UTF-8. Replies are
given back byte for byte, so one that holds a secret is not kept at all rather than kept with a hole: after a kill that
call is made again.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from hybrid.images import write_atomic
from hybrid.journal import Journal
from hybrid.manifest import whole_lines
from hybrid.models.base import CallKey
from hybrid.secrets import redact_bytes

REPLIES = "replies.jsonl"

Finished = Callable[[str], Collection[str]]
"""From a solver the ids of its finished questions."""


class _Said(NamedTuple):
    """One call and one request of it."""

    solver: str
    question: str
    ask: int
    call: int
    request_sha256: str

    @classmethod
    def of(cls, call: CallKey, request_sha256: str) -> _Said:
        return cls(call.solver, call.question, call.ask, call.call, request_sha256)


@dataclass(frozen=True)
class _Kept:
    """One line of the file."""

    said: _Said
    reply: bytes
    line: bytes


class RunReplies:
    """The replies of a run, on disk. At most one process may have it open; its methods are safe in any thread.

    Args:
        path: the file.
        finished: questions that are finished; what was said to them is left out, and taken out of the file.

    Raises:
        OSError: the file cannot be read or written.
    """

    def __init__(self, path: Path, finished: Finished) -> None:
        self._path = path
        self._known = {kept.said: kept.reply for kept in _compacted(path, finished)}
        self._open: dict[str, set[str]] = {}
        """By solver the questions to which something is in the file."""
        for said in self._known:
            self._open.setdefault(said.solver, set()).add(said.question)
        self._journal = Journal(path, durable=False)
        self.failed: OSError | None = None
        """The first error by which a reply could not be kept."""

    def said(self, call: CallKey, request_sha256: str) -> bytes | None:
        """The reply to this request of this call, as it was kept in an earlier run, or None."""
        return self._known.get(_Said.of(call, request_sha256))

    def earlier(self) -> Iterator[tuple[CallKey, str, bytes]]:
        """Every reply of an earlier run to an open question: the call, the sha256 of its request, the reply."""
        for said, reply in self._known.items():
            key = CallKey(said.question, said.ask, said.call, solver=said.solver)
            yield key, said.request_sha256, reply

    def keep(self, call: CallKey, request_sha256: str, reply: bytes) -> None:
        """Keep a reply, unless it holds a secret. Raises `OSError` when it cannot be written."""
        if redact_bytes(reply) != reply:
            return
        # Before the line is there: a file without anything open is removed.
        self._open.setdefault(call.solver, set()).add(call.question)
        try:
            self._journal.append(_line(_Said.of(call, request_sha256), reply))
        except OSError as error:
            self.failed = self.failed or error
            raise

    def close(self, finished: Finished | None = None) -> None:
        """Let go of the file, and remove it where it holds nothing of an open question (None: not asked)."""
        self._journal.close()
        if finished is not None and all(ids <= set(finished(solver)) for solver, ids in self._open.items()):
            self._path.unlink()


def _compacted(path: Path, finished: Finished) -> list[_Kept]:
    """What is needed of the file, which is written anew where it holds more."""
    ids = cache(finished)
    needed = [kept for kept in _read(path) if kept.said.question not in ids(kept.said.solver)]
    if path.exists() and sum(len(kept.line) for kept in needed) != path.stat().st_size:
        write_atomic(path, b"".join(kept.line for kept in needed))
    return needed


def _read(path: Path) -> Iterator[_Kept]:
    """Every reply of the file. A line that is none costs one call, which is made again."""
    for line in whole_lines(path):
        try:
            row = json.loads(line)
            said = _Said(*(row[name] for name in _Said._fields))
            reply = row["text"].encode() if "text" in row else base64.b64decode(row["base64"], validate=True)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
        yield _Kept(said, reply, line)


def _line(said: _Said, reply: bytes) -> bytes:
    try:
        content = {"text": reply.decode()}
    except UnicodeDecodeError:
        content = {"base64": base64.b64encode(reply).decode()}
    return json.dumps({**said._asdict(), **content}).encode()
