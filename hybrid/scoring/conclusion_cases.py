"""The cases of a conclusion, from `conclusion_cases.toml`: when each sentence is said, and its words.

`gain`, `specialists` and `content` read one paired difference each, b minus a. It is said to be one only where its 95 %
interval excludes 0, by the rule of the output of what a question without a readable answer counts; where the other rule
has another verdict, the last sentence says so.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Case:
    """One thing that a conclusion may say: `id` begins with the sentence that it belongs to."""

    id: str
    condition: str
    words: str  # A format string of the fields that the conclusion fills in


@cache
def cases() -> Mapping[str, Case]:
    """By id, in the order printed."""
    read = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    return {record["id"]: Case(**record) for record in read["case"]}


def worded(case: str, **fields: object) -> str:
    """The words of a case with its fields filled in."""
    return cases()[case].words.format(**fields)
