"""Anthropic's message batches: all requests in one body, results in any order.

https://platform.claude.com/docs/en/api/creating-message-batches
"""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime
from pathlib import Path

from hybrid.config import ModelSettings
from hybrid.log.batches import LoggedBatch
from hybrid.models import batch_apis as seam
from hybrid.models.batch_apis import CANCELLED, EXPIRED, FAILED, LISTED, BatchResult, BatchStatus, dumped
from hybrid.models.chat_completions.wire import Address, proxy_for
from hybrid.models.failures import TABLES
from hybrid.models.options import connection
from hybrid.models.providers import PROVIDERS

OFFICIAL = "https://api.anthropic.com"
CLOCKS_S = 300.0  # Seconds by which the provider's clock may be behind.
_NO_RESULT = {"expired": EXPIRED, "canceled": CANCELLED}


class AnthropicBatches(seam.BatchApi):
    """See `BatchApi`."""

    rules = seam.BatchRules(100_000, 256 * 10**6, b'{"requests":[', b",\n", b"]}")

    def __init__(self, name: str, settings: ModelSettings) -> None:
        reached = connection(PROVIDERS["anthropic"], settings)
        base = (reached.base_url or OFFICIAL).rstrip("/")
        headers = {"x-api-key": reached.key or "", "anthropic-version": "2023-06-01"}
        headers["Content-Type"] = "application/json"
        if isinstance(betas := settings.extra.get("betas"), list):
            headers["anthropic-beta"] = ",".join(map(str, betas))
        self._reach(Address(f"{base}/v1/messages", headers, {}, proxy_for(base)), settings)

    def request(self, identity: str, body: bytes) -> bytes:
        """See `BatchApi`."""
        return b'{"custom_id":' + dumped(identity) + b',"params":' + body + b"}"

    async def create(self, file: Path, name: str, uploaded: str) -> str:
        """See `BatchApi`."""
        with file.open("rb") as stream:
            return str((await self.http.say("POST", "messages/batches", stream))["id"])

    async def find(self, batch: LoggedBatch, known_ids: Collection[str | None]) -> str | None:
        """See `BatchApi`."""
        # Anthropic's batches have no names, so search by the number of requests. The results show whether the batch is
        # the right one.
        for remote_batch in (await self.http.say("GET", f"messages/batches?limit={LISTED}"))["data"]:
            created_at = datetime.fromisoformat(remote_batch["created_at"]).timestamp()
            size = sum(remote_batch["request_counts"].values())
            if size == len(batch.calls) and created_at > batch.at - CLOCKS_S and remote_batch["id"] not in known_ids:
                return str(remote_batch["id"])
        return None

    async def look(self, identity: str) -> BatchStatus:
        """See `BatchApi`."""
        reply = await self.http.say("GET", f"messages/batches/{identity}")
        counts, has_ended = reply["request_counts"], reply["processing_status"] == "ended"
        back = sum(counts.values()) - counts.get("processing", 0)
        # The URL of the results in the reply is not used: the key is sent only to the configured host.
        results = [f"messages/batches/{identity}/results"] if has_ended and reply.get("results_url") else []
        return BatchStatus(reply["processing_status"], back, has_ended, results)

    def read(self, line: bytes) -> BatchResult:
        """See `BatchApi`."""
        record = json.loads(line)
        identity, result = record["custom_id"], record["result"]
        if result["type"] == "succeeded":
            return BatchResult(identity, 200, dumped(result["message"]))
        if (status := _NO_RESULT.get(result["type"])) is not None:
            error = {"type": "error", "error": {"type": "timeout_error", "message": f"the batch {result['type']}"}}
            return BatchResult(identity, status, dumped(error))
        error = result["error"]
        kind = (error.get("error") or error)["type"]
        return BatchResult(identity, TABLES["anthropic"].get(kind, FAILED), dumped(error))

    async def cancel(self, identity: str) -> None:
        """See `BatchApi`."""
        await self.http.say("POST", f"messages/batches/{identity}/cancel")


API = AnthropicBatches
