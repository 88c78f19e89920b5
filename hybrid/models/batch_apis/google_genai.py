"""Gemini's batch mode: a file of requests is uploaded, and a long-running operation reads it.

https://ai.google.dev/gemini-api/docs/batch-api
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
from hybrid.models.chat_completions.wire import Address, proxy_for
from hybrid.models.langchain.pools import GOOGLE
from hybrid.models.options import connection
from hybrid.models.providers import PROVIDERS

_ENDED = dict.fromkeys(("SUCCEEDED", "PARTIALLY_SUCCEEDED", "FAILED"), FAILED)
_ENDED |= {"CANCELLED": CANCELLED, "EXPIRED": EXPIRED}
# HTTP status with which a single request reports each code of `google.rpc.Status`.
_STATUS = {1: CANCELLED, 3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 11: 400, 13: 500, 14: 503, 16: 401}
_QUEUE = 8


class GeminiBatches(seam.BatchApi):
    """See `BatchApi`."""

    rules = seam.BatchRules(200_000, 2 * 10**9)

    def __init__(self, name: str, settings: ModelSettings) -> None:
        reached = connection(PROVIDERS["google_genai"], settings)
        self._model = name.partition(":")[2].removeprefix("models/")
        self._base = (reached.base_url or GOOGLE).rstrip("/")
        headers = {"x-goog-api-key": reached.key or "", "Content-Type": "application/json"}
        self._reach(Address(f"{self._base}/v1beta/models", headers, {}, proxy_for(self._base)), settings)

    def request(self, identity: str, body: bytes) -> bytes:
        """See `BatchApi`."""
        return b'{"key":' + dumped(identity) + b',"request":' + body + b"}"

    async def upload(self, file: Path, name: str) -> str:
        """See `BatchApi`."""
        begin = {
            "X-Goog-Upload-Protocol": "resumable",
            "X-Goog-Upload-Command": "start",
            "X-Goog-Upload-Header-Content-Length": str(file.stat().st_size),
            "X-Goog-Upload-Header-Content-Type": "application/jsonl",
        }
        place = f"{self._base}/upload/v1beta/files"
        _, headers = await self.http.exchange("POST", place, {"file": {"display_name": name}}, begin)
        finish = {"X-Goog-Upload-Offset": "0", "X-Goog-Upload-Command": "upload, finalize"}
        with file.open("rb") as stream:
            reply = await self.http.say("POST", headers["x-goog-upload-url"], stream, finish)
        return str(reply["file"]["name"])

    async def create(self, file: Path, name: str, uploaded: str) -> str:
        """See `BatchApi`."""
        body = {"batch": {"displayName": name, "inputConfig": {"fileName": uploaded}}}
        return str((await self.http.say("POST", f"models/{self._model}:batchGenerateContent", body))["name"])

    async def find(self, batch: LoggedBatch, known_ids: Collection[str | None]) -> str | None:
        """See `BatchApi`."""
        reply = await self.http.say("GET", f"batches?pageSize={LISTED}")
        batches = reply.get("operations") or reply.get("batches") or []
        return next(
            (remote_batch["name"] for remote_batch in batches if _of(remote_batch, "displayName") == batch.name), None
        )

    async def look(self, identity: str) -> BatchStatus:
        """See `BatchApi`."""
        operation = await self.http.say("GET", identity)
        state = str(_of(operation, "state") or "").removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")
        counts = _of(operation, "batchStats") or {}
        back = sum(int(counts.get(f"{kind}RequestCount") or 0) for kind in ("successful", "failed"))
        file = (_of(operation, "output") or operation.get("response") or {}).get("responsesFile")
        results = [f"{self._base}/download/v1beta/{file}:download?alt=media"] if file else []
        error = operation.get("error") if state == "FAILED" else None
        errors = [BatchError({"error": error}, is_queue=error.get("code") == _QUEUE)] if error else []
        return BatchStatus(state, back, state in _ENDED, results, errors, _ENDED.get(state, FAILED))

    def read(self, line: bytes) -> BatchResult:
        """See `BatchApi`."""
        record = json.loads(line)
        if (response := record.get("response")) is not None:
            return BatchResult(record["key"], 200, dumped(response))
        error = record.get("error") or record["status"]
        status = error["code"] if error["code"] >= 100 else _STATUS.get(error["code"], FAILED)
        return BatchResult(record["key"], status, dumped({"error": {**error, "code": status}}))

    async def cancel(self, identity: str) -> None:
        """See `BatchApi`."""
        await self.http.say("POST", f"{identity}:cancel")


def _of(operation: dict[str, Any], key: str) -> Any:
    """Return a field of a batch, from the operation's metadata or else from the operation itself."""
    return (operation.get("metadata") or {}).get(key, operation.get(key))


API = GeminiBatches
