"""OpenAI's batches, and those of servers that have the same: a file of requests is uploaded, a batch made of it."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

from hybrid.config import ModelSettings
from hybrid.models.batch_apis import (
    CANCELLED,
    EXPIRED,
    FAILED,
    LISTED,
    BatchError,
    BatchRules,
    Look,
    Result,
    dumped,
)
from hybrid.models.batching.http import Http
from hybrid.models.chat_completions.client import address
from hybrid.models.options import connection
from hybrid.models.providers import PROVIDERS

WINDOW = "24h"
"""The only one that there is."""
NAME = "hybrid_batch"
"""The key of the batch's metadata that holds our name."""
_ENDED = frozenset({"completed", "expired", "cancelled", "failed"})
_STATUS = {"batch_expired": EXPIRED, "batch_cancelled": CANCELLED}
_QUEUE = frozenset({"token_limit_exceeded", "rate_limit_exceeded"})


class OpenAIBatches:
    """https://platform.openai.com/docs/api-reference/batch."""

    rules = BatchRules(requests=50_000, size=200 * 10**6)

    def __init__(self, name: str, settings: ModelSettings) -> None:
        del name
        self.http = Http(address(connection(PROVIDERS["openai"], settings), settings.extra), settings.timeout_s)
        self._endpoint = ""

    def request(self, identity: str, path: str, body: bytes) -> bytes:
        """See `BatchApi`."""
        # However the server's base is called, the endpoints of batches begin with the version.
        self._endpoint = f"/v1/{'responses' if path.endswith('/responses') else 'chat/completions'}"
        head = {"custom_id": identity, "method": "POST", "url": self._endpoint}
        return dumped(head)[:-1] + b',"body":' + body + b"}"

    async def create(self, file: Path, name: str) -> str:
        """See `BatchApi`."""
        with file.open("rb") as stream:
            said = await self.http.upload("files", {"purpose": "batch"}, f"{name}.jsonl", stream)
        asked = {
            "input_file_id": said["id"],
            "endpoint": self._endpoint,
            "completion_window": WINDOW,
            "metadata": {NAME: name},
        }
        return str((await self.http.say("POST", "batches", asked))["id"])

    async def find(self, name: str, count: int, since: float, known: Collection[str]) -> str | None:
        """See `BatchApi`."""
        listed = (await self.http.say("GET", f"batches?limit={LISTED}"))["data"]
        return next((one["id"] for one in listed if (one.get("metadata") or {}).get(NAME) == name), None)

    async def look(self, identity: str) -> Look:
        """See `BatchApi`."""
        said = await self.http.say("GET", f"batches/{identity}")
        state, counts = said["status"], said.get("request_counts") or {}
        files = filter(None, (said.get("output_file_id"), said.get("error_file_id")))
        errors = (said.get("errors") or {}).get("data") or [] if state == "failed" else []
        return Look(
            state,
            (counts.get("completed") or 0) + (counts.get("failed") or 0),
            state in _ENDED,
            tuple(f"files/{file}/content" for file in files),
            tuple(BatchError({"error": one}, one.get("line"), one.get("code") in _QUEUE) for one in errors),
            {"expired": EXPIRED, "cancelled": CANCELLED}.get(state, FAILED),
            f"files/{file}" if (file := said.get("input_file_id")) else None,
        )

    def read(self, line: bytes) -> Result:
        """See `BatchApi`."""
        said = json.loads(line)
        if (response := said.get("response")) is not None:
            return Result(said["custom_id"], response["status_code"], dumped(response["body"]))
        error = said["error"]
        return Result(said["custom_id"], _STATUS.get(error.get("code"), FAILED), dumped({"error": error}))

    async def cancel(self, identity: str) -> None:
        """See `BatchApi`."""
        await self.http.say("POST", f"batches/{identity}/cancel")


API = OpenAIBatches
