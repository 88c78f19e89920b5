"""A `ReplyLog` in memory."""

from hybrid.models import CallKey


class Pages(dict[tuple[CallKey, str], bytes]):
    """Replies by call and hash of the request."""

    def find_reply(self, call: CallKey, request_sha256: str) -> bytes | None:
        return self.get((call, request_sha256))

    def keep(self, call: CallKey, request_sha256: str, reply: bytes) -> None:
        self[call, request_sha256] = reply
