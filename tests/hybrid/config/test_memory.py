"""The memory limit of a control group, from files in the kernel's format."""

import os
from pathlib import Path

import pytest

from hybrid.config import memory
from hybrid.config.memory import memory_to_use


def test_without_control_groups_the_machine_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    monkeypatch.setattr(memory, "OWN_GROUPS", tmp_path / "none")
    assert memory_to_use() == machine
