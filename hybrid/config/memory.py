"""How much memory the processes of this machine may use: what it has, or less where a control group says so.

A container, a batch job or a service of systemd is a control group with a limit of its own; its processes are killed at
that limit, however much memory the machine has.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")


def memory_to_use() -> int:
    """Bytes of memory that this process and its children may use together."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = group_limit(GROUPS, OWN_GROUPS)
    return machine if limit is None else min(machine, limit)


def group_limit(groups: Path, own_groups: Path) -> int | None:
    """The smallest limit, in bytes, of a process's control group and of those around it; None where there is none.

    Args:
        groups: where the control groups are mounted; version 1 has those of memory in `memory`.
        own_groups: the process's groups, one line each: `0::/GROUP` (version 2), `4:memory:/GROUP` (version 1).
    """
    try:
        lines = own_groups.read_text().splitlines()
    except OSError:
        return None
    files: list[Path] = []
    for line in lines:
        _, controllers, group = line.split(":", maxsplit=2)
        if controllers == "":
            root, name = groups, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = groups / "memory", "memory.limit_in_bytes"
        else:
            continue
        # A container sees its own group as the root, and may be told its path outside of it.
        parts = [part for part in group.split("/") if part not in ("", "..")]
        files += (root.joinpath(*parts[:depth], name) for depth in range(len(parts) + 1))
    limits: list[int] = []
    for path in files:
        # There is no such file, or no limit (`max`).
        with suppress(OSError, ValueError):
            limits.append(int(path.read_text()))
    return min(limits, default=None)
