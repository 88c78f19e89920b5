"""Facts in TOML are converted to the declared types; an invalid value is refused with its file, line and key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Literal

import pytest

from hybrid.core.errors import DataError
from hybrid.core.toml_records import read_card
from tests.tables import cases


class Sort(StrEnum):
    WEIGHTS = "weights"
    RULES = "rules"


@dataclass(frozen=True)
class Part:
    make: Callable[[], str]
    sort: Sort = Sort.RULES
    weights: str | None = None


@dataclass(frozen=True)
class Facts:
    name: str
    size: tuple[int, float]
    hub: str | None
    parts: tuple[Part, ...] = ()
    words: frozenset[str] = frozenset()
    by_task: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    at: Literal["top", "middle"] = "top"
    public: bool = True


HEAD = 'name = "a"\nsize = [1, 2]\n'
CODE = {"Seams": str}


def test_a_file_becomes_the_dataclass_that_its_annotations_describe(tmp_path: Path) -> None:
    path = tmp_path / "card.toml"
    path.write_text(
        HEAD + 'words = ["x", "y"]\nat = "middle"\npublic = false\n[by_task]\nQ1 = ["s"]\n'
        '[[parts]]\nmake = "Seams"\nsort = "weights"\nweights = "hub/id"\n[[parts]]\nmake = "Seams"\n'
    )
    parts = (Part(str, Sort.WEIGHTS, "hub/id"), Part(str))
    assert read_card(path, Facts, CODE) == Facts(
        "a", (1, 2.0), None, parts, frozenset({"x", "y"}), {"Q1": ("s",)}, "middle", public=False
    )


@pytest.mark.parametrize(*cases(__file__, "test_what_does_not_fit_is_refused_by_file_line_and_key"))
def test_what_does_not_fit_is_refused_by_file_line_and_key(tmp_path: Path, text: str, line: int, message: str) -> None:
    path = tmp_path / "card.toml"
    path.write_text(text)
    with pytest.raises(DataError) as refused:
        read_card(path, Facts, CODE)
    assert str(refused.value).startswith(f"{path}, line {line}: ")
    assert message in str(refused.value)


@pytest.mark.parametrize("content", [b'name = "a"\nname = "b"\n', b"name = \xff\n", None])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "card.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=r"card\.toml: "):
        read_card(path, Facts)
