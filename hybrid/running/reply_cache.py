"""Model replies that are kept across runs: `hybrid run ... --cache-replies`.

    cache = ReplyCache(home() / "replies", describe_model(model, {}))
    log = ReusingLog(replies, cache)        # a `ReplyLog`: the run's own replies first, then those of other runs

A key covers everything that was sent (by the sha256 of the request, which contains the hashes of images), and the model
with its settings and its server's address. It also covers the place of the call: question, ask, number of the call and
number of the repetition. Repetitions and samples of one question therefore never share a reply, at any temperature. A
reply that contains a secret is not kept. Only calls of solvers are kept: a probe asks what the server does at present,
and captions have their own store. An entry is one file, written atomically.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hybrid.core.files import write_atomic
from hybrid.core.secrets import redact_bytes
from hybrid.models.base import CallKey, ChatModel, ReplyLog, ReusedReply

FOLDER: Final = "replies"


class ReplyCache:
    """A folder with the replies of one model.

    Args:
        folder: the folder of the entries; it is made with the first entry.
        model: the result of `describe_model`.
    """

    def __init__(self, folder: Path, model: str) -> None:
        self.folder = folder
        self._model = model

    def find(self, call: CallKey, request_sha256: str) -> bytes | None:
        """Return the reply to this request of this call in any earlier run, or None."""
        try:
            return self._path(call, request_sha256).read_bytes()
        except OSError:
            return None

    def keep(self, call: CallKey, request_sha256: str, reply: bytes) -> None:
        """Keep a reply. Raises `OSError` if it cannot be written."""
        if redact_bytes(reply) == reply:
            write_atomic(self._path(call, request_sha256), reply)

    def _path(self, call: CallKey, request_sha256: str) -> Path:
        parts = [self._model, call.question, call.ask, call.call, call.repetition, request_sha256]
        name = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        return self.folder / name[:2] / name


class ReusingLog:
    """The `ReplyLog` of a run that also reads and keeps replies across runs. Thread-safe."""

    def __init__(self, log: ReplyLog, cache: ReplyCache) -> None:
        self._log = log
        self._cache = cache
        # The first error that prevented keeping a reply for later runs.
        self.failed: OSError | None = None

    def find_reply(self, call: CallKey, request_sha256: str) -> bytes | None:
        """Return the reply that this run has already paid for, else the reply of an earlier run as a `ReusedReply`."""
        if (reply := self._log.find_reply(call, request_sha256)) is not None:
            return reply
        cached = self._cache.find(call, request_sha256) if _is_solver_call(call) else None
        return None if cached is None else ReusedReply(cached)

    def keep(self, call: CallKey, request_sha256: str, reply: bytes) -> None:
        """Save a reply in the run, and for later runs. Raises `OSError` if the run's own file cannot be written."""
        # If the cache cannot be written, later runs must ask again, but this run is not affected.
        try:
            if _is_solver_call(call):
                self._cache.keep(call, request_sha256, reply)
        except OSError as error:
            self.failed = self.failed or error
        self._log.keep(call, request_sha256, reply)


def _is_solver_call(call: CallKey) -> bool:
    """Return whether a solver makes the call; calls of probes and captions name no solver."""
    return bool(call.solver)


def describe_model(model: ChatModel, server_args: Mapping[str, str]) -> str:
    """Return the model with its settings and its server, as a part of keys."""
    from hybrid.models.served.commands import KINDS

    # Leave out the address of a server that this program starts, because its port differs each time.
    server = dict(server_args) if model.provider in KINDS else model.connection().get("base_url")
    return json.dumps([model.name, model.metadata(), server], sort_keys=True, default=str)
