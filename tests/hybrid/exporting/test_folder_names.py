"""Model names in paths of exports: each becomes one path component that cannot lead to another folder."""

from pathlib import Path

import pytest

from hybrid.exporting.base import MAX_FOLDER_NAME, folder_part


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("gpt-4o", "gpt-4o"),
        ("Qwen/Qwen3-VL-8B", "Qwen-Qwen3-VL-8B"),
        ("..", "unnamed"),
        (".", "unnamed"),
        ("", "unnamed"),
        ("../../etc", "etc"),
        (".hidden", "hidden"),
        ("C:\\models\\x", "C-models-x"),
        ("a\0b\nc", "a-b-c"),
        ("模型 8B", "模型-8B"),
        ("x" * 300, "x" * MAX_FOLDER_NAME),
        ("ends. ", "ends"),
    ],
)
def test_a_name_is_one_part_of_a_path(name: str, part: str) -> None:
    assert folder_part(name) == part
    assert Path(part).parts == (part,)


def test_the_joint_is_that_of_the_format() -> None:
    assert folder_part("openai/gpt-4o", "__") == "openai__gpt-4o"
