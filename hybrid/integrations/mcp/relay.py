"""Runs the command of an MCP server and passes its output on, until a message is too long. Imports nothing of hybrid.

    python relay.py LIMIT COMMAND...

The package `mcp` joins the chunks of a line without a limit, so an endless line takes more and more memory and time.
"""

from __future__ import annotations

import os
import subprocess
import sys

CHUNK_BYTES = 2**16


def main() -> int:
    """Return the exit code of the server, or 1 after a message of more than LIMIT bytes."""
    limit, command = int(sys.argv[1]), sys.argv[2:]
    try:
        server = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603 - the command that the user gave
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return 127
    assert server.stdout is not None  # noqa: S101 - a pipe
    length = 0
    while chunk := os.read(server.stdout.fileno(), CHUNK_BYTES):
        start, _, rest = chunk.rpartition(b"\n")
        length = length + len(chunk) if start == b"" and rest == chunk else len(rest)
        if length > limit:
            server.kill()
            sys.stderr.write(f"a message of more than {limit:,} bytes\n")
            return 1
        try:
            write_all(chunk)
        except BrokenPipeError:
            break
    return server.wait()


def write_all(data: bytes) -> None:
    """Write all data to stdout. A single call of `os.write` may write only a part of it."""
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    sys.exit(main())
