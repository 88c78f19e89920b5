"""The limit of open files of this process, which a run with many requests in flight may exceed.

allow_open_files(concurrency, tell)
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

FILES_PER_REQUEST = 2  # Open files per request: a connection and a picture that is being read.
OTHER_FILES = 256  # Other open files: the run's own, tool workers, libraries.


def allow_open_files(concurrency: int, tell: Callable[[str], None]) -> None:
    """Raise the soft limit of open files as far as `concurrency` requests need and the hard limit allows.

    Shells often start with 1,024 or 256. `tell` gets a warning with the remedy if the hard limit is too low.
    """
    try:
        import resource
    except ImportError:
        # Windows has no such limit.
        return
    needed = concurrency * FILES_PER_REQUEST + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    limit = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    # macOS rejects values up to its reported hard limit.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        soft = limit
    if soft < needed:
        most = max(1, (soft - OTHER_FILES) // FILES_PER_REQUEST)
        tell(
            f"warning: --concurrency {concurrency:,} may need {needed:,} open files, and this system allows {soft:,}: "
            f"raise the limit (ulimit -n), or use --concurrency {most}"
        )
