"""The memory that processes may use on this machine: its total, or a control group's lower limit.

A container, a batch job or a systemd service is a control group with its own limit, at which its processes are killed,
however much memory the machine has.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")


def memory_to_use() -> int:
    """Return the bytes of memory that this process and its children may use together."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = group_limit(GROUPS, OWN_GROUPS)
    return machine if limit is None else min(machine, limit)


def group_limit(groups: Path, own_groups: Path) -> int | None:
    """Return the smallest limit, in bytes, of a process's control group and its parents; None without a limit.

    Args:
        groups: mount point of the control groups; version 1 has those for memory in `memory`.
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
        # A container sees its own group as the root, but may be given the group's path outside the container.
        parts = [part for part in group.split("/") if part not in ("", "..")]
        files += (root.joinpath(*parts[:depth], name) for depth in range(len(parts) + 1))
    limits: list[int] = []
    for path in files:
        # Skip missing files and groups without a limit (`max`).
        with suppress(OSError, ValueError):
            limits.append(int(path.read_text()))
    return min(limits, default=None)
