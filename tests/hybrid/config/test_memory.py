"""The memory that a control group leaves, from files as the kernel lays them out."""

import os
from pathlib import Path

import pytest

from hybrid.config import ServiceOptions, memory
from hybrid.config.memory import group_limit, memory_to_use

GROUP = {"2": "0::/jobs/17\n", "1": "5:cpu,cpuacct:/jobs/17\n4:memory:/jobs/17\n0::/\n"}
NO_LIMIT = {"2": "max\n", "1": "9223372036854771712\n"}


class Groups:
    """`/sys/fs/cgroup` and `/proc/self/cgroup` of one version in a folder."""

    def __init__(self, folder: Path, version: str) -> None:
        self.version, self.own = version, folder / "self"
        self.mounted = folder / "cgroup"
        self.own.write_text(GROUP[version])

    def write(self, group: str, limit: str) -> None:
        name = {"2": "memory.max", "1": "memory.limit_in_bytes"}[self.version]
        root = self.mounted if self.version == "2" else self.mounted / "memory"
        (root / group).mkdir(parents=True, exist_ok=True)
        (root / group / name).write_text(limit)

    def limit(self) -> int | None:
        return group_limit(self.mounted, self.own)


@pytest.fixture(params=["1", "2"])
def groups(tmp_path: Path, request: pytest.FixtureRequest) -> Groups:
    return Groups(tmp_path, request.param)


def test_the_limit_of_a_group_or_of_one_around_it_holds(groups: Groups) -> None:
    assert groups.limit() is None
    groups.write("jobs/17", "3000000000\n")
    groups.write("jobs", NO_LIMIT[groups.version])
    assert groups.limit() == 3_000_000_000
    groups.write("jobs", "2000000000\n")
    assert groups.limit() == 2_000_000_000


def test_a_container_that_is_told_the_path_outside_of_it_has_the_limit_of_its_root(groups: Groups) -> None:
    groups.write("", "1000000000\n")
    assert groups.limit() == 1_000_000_000


def test_without_control_groups_the_machine_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    monkeypatch.setattr(memory, "OWN_GROUPS", tmp_path / "none")
    assert memory_to_use() == machine


def test_the_process_of_the_tools_gets_four_fifths_of_what_its_group_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = Groups(tmp_path, "2")
    groups.write("jobs/17", "1000000000\n")
    monkeypatch.setattr(memory, "OWN_GROUPS", groups.own)
    monkeypatch.setattr(memory, "GROUPS", groups.mounted)
    assert ServiceOptions().process_bytes == 800_000_000
