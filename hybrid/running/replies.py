"""`RUN/replies.jsonl`: replies of models to unfinished questions, and captions, each kept as soon as it is there.

    log = RunReplies(path, finished)            # by solver: replies to finished questions are not needed any more
    log.keep(call, request_sha256, reply)       # in any thread; a kill after the return does not lose it
    log.find_reply(call, request_sha256)        # in the next run: the same bytes
    log.close(finished)                         # removes the file where nothing in it is needed any more

A line of a reply is {solver, question, ask, call, request_sha256, text or base64}: `text` where the reply is UTF-8.
Replies are given back byte for byte, so one that holds a secret is not kept at all rather than kept with a hole: after
a kill that call is made again. A line of a caption is {image, prompt, captioner, text}; it stays, as a run that is
extended shows an image by the same words.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path

from hybrid.core.files import write_atomic
from hybrid.core.secrets import redact_bytes
from hybrid.log.journal import Journal
from hybrid.log.lines import whole_lines
from hybrid.models.base import CallKey
from hybrid.solving.captions import CAPTION_CALL, Caption

REPLIES = "replies.jsonl"

# From a solver the ids of its finished questions.
Finished = Callable[[str], Collection[str]]


# What the lines of the file hold: a call, the sha256 of a request of it and the reply, or a caption.
_Kept = tuple[CallKey, str, bytes] | Caption


class RunReplies:
    """The replies and captions of a run. At most one process may have them open; the methods are safe in any thread.

    Args:
        path: the file.
        finished: questions that are finished; replies to them are left out, and taken out of the file.

    Raises:
        OSError: the file cannot be read or written.
    """

    def __init__(self, path: Path, finished: Finished) -> None:
        self._path = path
        needed = _compacted(path, finished)
        self._known = {record[:2]: record[2] for record in needed if not isinstance(record, Caption)}
        # The captions of earlier commands.
        self.captions = tuple(record for record in needed if isinstance(record, Caption))
        # By solver the questions to which there is a reply in the file.
        self._open: dict[str, set[str]] = {}
        for call, _ in self._known:
            self._open.setdefault(call.solver, set()).add(call.question)
        self._journal = Journal(path, durable=False)
        # The first error by which a reply could not be kept.
        self.failed: OSError | None = None

    def find_reply(self, call: CallKey, request_sha256: str) -> bytes | None:
        """The reply to this request of this call, as it was kept in an earlier run, or None."""
        # The file does not have the prompt of a call.
        key = CallKey(call.question, call.ask, call.call, solver=call.solver)
        return self._known.get((key, request_sha256))

    def earlier(self) -> Iterator[tuple[CallKey, str, bytes]]:
        """Every reply of an earlier run to an open question: the call, the sha256 of its request, the reply."""
        for (call, request_sha256), reply in self._known.items():
            yield call, request_sha256, reply

    def keep(self, call: CallKey, request_sha256: str, reply: bytes) -> None:
        """Keep a reply, unless it holds a secret or becomes a caption. Raises `OSError` where it cannot be written."""
        if call.question == CAPTION_CALL or redact_bytes(reply) != reply:
            return
        # Before the line is there: a file without anything open is removed.
        self._open.setdefault(call.solver, set()).add(call.question)
        try:
            try:
                content = {"text": reply.decode()}
            except UnicodeDecodeError:
                content = {"base64": base64.b64encode(reply).decode()}
            key = {"solver": call.solver, "question": call.question, "ask": call.ask, "call": call.call}
            row = {**key, "request_sha256": request_sha256, **content}
            self._journal.append(json.dumps(row).encode())
        except OSError as error:
            self.failed = self.failed or error
            raise

    def keep_caption(self, caption: Caption) -> None:
        """Keep a caption. Raises `OSError` when it cannot be written."""
        self._journal.append(json.dumps(asdict(caption)).encode())
        # Answers that are on disk for good were given by its words.
        self._journal.sync()

    def close(self, finished: Finished | None = None) -> None:
        """Let go of the file. Where no reply in it is needed any more (None: not asked) at most captions stay."""
        self._journal.close()
        if finished is None or any(not ids <= set(finished(solver)) for solver, ids in self._open.items()):
            return
        if not _compacted(self._path, finished):
            self._path.unlink()


def read_captions(path: Path) -> Iterator[Caption]:
    """The captions in a file of replies. Raises `OSError` where it cannot be read."""
    return (record for _, record in _read_replies(path) if isinstance(record, Caption))


def _compacted(path: Path, finished: Finished) -> list[_Kept]:
    """The lines of the file that are still needed; the file is rewritten where it holds more."""
    ids = cache(finished)
    needed = [
        (line, record)
        for line, record in _read_replies(path)
        if isinstance(record, Caption) or record[0].question not in ids(record[0].solver)
    ]
    if path.exists() and sum(len(line) for line, _ in needed) != path.stat().st_size:
        write_atomic(path, b"".join(line for line, _ in needed))
    return [record for _, record in needed]


def _read_replies(path: Path) -> Iterator[tuple[bytes, _Kept]]:
    """Every line of the file with what it holds."""
    # A line that holds neither costs one call, which is made again.
    for line in whole_lines(path):
        try:
            row = json.loads(line)
            if "image" in row:
                values = [row[name] for name in Caption.__dataclass_fields__]
                if all(isinstance(value, str) for value in values):
                    yield line, Caption(*values)
                continue
            call = CallKey(row["question"], row["ask"], row["call"], solver=row["solver"])
            request_sha256 = row["request_sha256"]
            reply = row["text"].encode() if "text" in row else base64.b64decode(row["base64"], validate=True)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
        yield line, (call, request_sha256, reply)
