"""Batches of OpenAI and compatible servers: a file of requests is uploaded, and a batch is created from the file.

https://platform.openai.com/docs/api-reference/batch
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from hybrid.config import ModelSettings
from hybrid.log.batches import LoggedBatch
from hybrid.models import batch_apis as seam
from hybrid.models.batch_apis import CANCELLED, EXPIRED, FAILED, LISTED, BatchError, BatchResult, BatchStatus, dumped
from hybrid.models.chat_completions.client import address
from hybrid.models.options import connection
from hybrid.models.providers import PROVIDERS

NAME = "hybrid_batch"  # Key in the batch's metadata under which the run stores its own name of the batch.
_ENDED = {"completed": FAILED, "failed": FAILED, "expired": EXPIRED, "cancelled": CANCELLED}
_STATUS = {"batch_expired": EXPIRED, "batch_cancelled": CANCELLED}
_QUEUE = frozenset({"token_limit_exceeded", "rate_limit_exceeded"})


class OpenAIBatches(seam.BatchApi):
    """See `BatchApi`."""

    rules = seam.BatchRules(50_000, 200 * 10**6)

    def __init__(self, name: str, settings: ModelSettings) -> None:
        self._reach(address(connection(PROVIDERS["openai"], settings), settings.extra), settings)
        # Whatever the path of the server's base URL, the endpoints of batches begin with the version.
        self._endpoint = f"/v1/{'responses' if settings.extra.get('api') == 'responses' else 'chat/completions'}"

    def request(self, identity: str, body: bytes) -> bytes:
        """See `BatchApi`."""
        head = {"custom_id": identity, "method": "POST", "url": self._endpoint}
        return dumped(head)[:-1] + b',"body":' + body + b"}"

    async def upload(self, file: Path, name: str) -> str:
        """See `BatchApi`."""
        import aiohttp

        form = aiohttp.FormData({"purpose": "batch"})
        with file.open("rb") as stream:
            form.add_field("file", stream, filename=f"{name}.jsonl", content_type="application/jsonl")
            return f"files/{(await self.http.say('POST', 'files', form, {'Content-Type': ''}))['id']}"

    async def create(self, file: Path, name: str, uploaded: str) -> str:
        """See `BatchApi`."""
        body: dict[str, Any] = {"input_file_id": uploaded.removeprefix("files/"), "endpoint": self._endpoint}
        # This is the only completion window that is supported.
        body |= {"completion_window": "24h", "metadata": {NAME: name}}
        return str((await self.http.say("POST", "batches", body))["id"])

    async def find(self, batch: LoggedBatch, known_ids: Collection[str | None]) -> str | None:
        """See `BatchApi`."""
        batches = (await self.http.say("GET", f"batches?limit={LISTED}"))["data"]
        return next(
            (
                remote_batch["id"]
                for remote_batch in batches
                if (remote_batch.get("metadata") or {}).get(NAME) == batch.name
            ),
            None,
        )

    async def look(self, identity: str) -> BatchStatus:
        """See `BatchApi`."""
        reply = await self.http.say("GET", f"batches/{identity}")
        state, counts = reply["status"], reply.get("request_counts") or {}
        files = filter(None, (reply.get("output_file_id"), reply.get("error_file_id")))
        errors = (reply.get("errors") or {}).get("data") or [] if state == "failed" else []
        return BatchStatus(
            state,
            (counts.get("completed") or 0) + (counts.get("failed") or 0),
            state in _ENDED,
            [f"files/{file}/content" for file in files],
            [BatchError({"error": error}, error.get("line"), error.get("code") in _QUEUE) for error in errors],
            _ENDED.get(state, FAILED),
        )

    def read(self, line: bytes) -> BatchResult:
        """See `BatchApi`."""
        record = json.loads(line)
        if (response := record.get("response")) is not None:
            return BatchResult(record["custom_id"], response["status_code"], dumped(response["body"]))
        error = record["error"]
        return BatchResult(record["custom_id"], _STATUS.get(error.get("code"), FAILED), dumped({"error": error}))

    async def cancel(self, identity: str) -> None:
        """See `BatchApi`."""
        await self.http.say("POST", f"batches/{identity}/cancel")


API = OpenAIBatches
