"""`RUN/replies.jsonl`: model replies to unfinished questions, and captions, each saved as soon as it arrives.

    log = RunReplies(path, finished)            # finished ids by solver: their replies are no longer needed
    log.keep(call, request_sha256, reply)       # from any thread; once it returns, a kill does not lose the reply
    log.find_reply(call, request_sha256)        # in the next command: the same bytes
    log.close(finished)                         # removes the file if nothing in it is needed any more

A line of a reply is {solver, question, ask, call, request_sha256, text or base64}, with `text` if the reply is UTF-8.
Replies are returned byte for byte, so a reply that contains a secret is not redacted but not saved at all; after a kill
its call is made again. A line of a caption is {image, prompt, captioner, text}; it stays, so that an extended run
describes an image in the same words.
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

# Maps each solver to the ids of its finished questions.
Finished = Callable[[str], Collection[str]]


# The content of a line: a call, the sha256 of its request and the reply, or a caption.
_Kept = tuple[CallKey, str, bytes] | Caption


class RunReplies:
    """The replies and captions of a run. At most one process may open them; the methods are thread-safe.

    Args:
        path: the file.
        finished: ids of finished questions by solver; replies to them are removed from the file.

    Raises:
        OSError: the file cannot be read or written.
    """

    def __init__(self, path: Path, finished: Finished) -> None:
        self._path = path
        needed = _compacted(path, finished)
        self._known = {record[:2]: record[2] for record in needed if not isinstance(record, Caption)}
        # Captions from earlier commands.
        self.captions = tuple(record for record in needed if isinstance(record, Caption))
        # Ids of the questions with a reply in the file, by solver.
        self._open: dict[str, set[str]] = {}
        for call, _ in self._known:
            self._open.setdefault(call.solver, set()).add(call.question)
        self._journal = Journal(path, durable=False)
        # The first error that prevented saving a reply.
        self.failed: OSError | None = None

    def find_reply(self, call: CallKey, request_sha256: str) -> bytes | None:
        """Return the reply to this request of this call that an earlier command saved, or None."""
        # Lines of the file do not contain the call's prompt, so the key must not contain it.
        key = CallKey(call.question, call.ask, call.call, solver=call.solver)
        return self._known.get((key, request_sha256))

    def earlier(self) -> Iterator[tuple[CallKey, str, bytes]]:
        """Yield what earlier commands saved for open questions: the call, the sha256 of its request, the reply."""
        for (call, request_sha256), reply in self._known.items():
            yield call, request_sha256, reply

    def keep(self, call: CallKey, request_sha256: str, reply: bytes) -> None:
        """Save a reply, unless it contains a secret or becomes a caption. Raises `OSError` if writing fails."""
        if call.question == CAPTION_CALL or redact_bytes(reply) != reply:
            return
        # Register the reply first, because a file without open questions is removed.
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
        """Save a caption. Raises `OSError` if writing fails."""
        self._journal.append(json.dumps(asdict(caption)).encode())
        # Sync to disk, because saved answers depend on the caption's words.
        self._journal.sync()

    def close(self, finished: Finished | None = None) -> None:
        """Close the file. If `finished` shows that no reply is needed any more, keep only the captions."""
        self._journal.close()
        if finished is None or any(not ids <= set(finished(solver)) for solver, ids in self._open.items()):
            return
        if not _compacted(self._path, finished):
            self._path.unlink()


def read_captions(path: Path) -> Iterator[Caption]:
    """Return the captions in a file of replies. Raises `OSError` if the file cannot be read."""
    return (record for _, record in _read_replies(path) if isinstance(record, Caption))


def _compacted(path: Path, finished: Finished) -> list[_Kept]:
    """Return the content of the lines that are still needed, and remove all other lines from the file."""
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
    """Yield every valid line of the file with its content."""
    # An invalid line affects only one call, which is made again.
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
