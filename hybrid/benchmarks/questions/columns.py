"""Determines the role of each column in a table: from a mapping, else from unambiguous names.

The names are hybrid's, and those of VLMEvalKit's TSV files (`index`, `image` or `image_path`, `A` to `Z`, `category`):
https://github.com/open-compass/VLMEvalKit, vlmeval/dataset/image_base.py and image_mcq.py at e8e78f05.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hybrid.benchmarks.questions.schema import Layout
from hybrid.core.errors import DataError, did_you_mean
from hybrid.core.types import LETTERS

FACTS: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
NAMES: Final[Mapping[str, Sequence[str]]] = FACTS["names"]
GROUPS: Final[Sequence[str]] = FACTS["groups"]
_NUMBERED: Final = re.compile(r"image_?([0-9]{1,2})")
# VLMEvalKit's column of ids: in a data set for circular evaluation `index + k * 10^6` is rotation k of `index`.
CIRCULAR_ID: Final = "index"


@dataclass(frozen=True)
class Columns:
    """The column of a table for each role; a role is empty if the table has no such column."""

    question: str
    answer: str
    image: tuple[str, ...] = ()
    id: str = ""
    choices: tuple[str, ...] = ()
    kind: str = ""
    task: str = ""
    route: str = ""
    hint: str = ""
    tolerance: str = ""
    cluster: str = ""
    evidence: str = ""
    groups: tuple[str, ...] = ()
    from_mapping: frozenset[str] = field(default_factory=frozenset)

    @property
    def circular(self) -> bool:
        """Return whether ids of a million and more belong to rotations."""
        return self.id == CIRCULAR_ID and "id" not in self.from_mapping

    @property
    def indexed(self) -> tuple[str, ...]:
        """Columns that the first pass over a table needs."""
        content = (self.question, *self.choices) if self.circular else ()
        return tuple(dict.fromkeys(name for name in (self.id, self.task, self.route, self.cluster, *content) if name))


def resolve(names: Sequence[str], layout: Layout, location: str, *, hidden: bool = False) -> Columns:
    """Return the columns of a table; with `hidden` answers, a column of answers is not read.

    Raises:
        DataError: a required column, or a column that a mapping names, is missing.
    """
    chosen_columns = {role: _choose_columns(role, names, layout, location) for role in (*NAMES, "group")}
    for role in ("question", "answer"):
        if chosen_columns[role] or (hidden and role == "answer"):
            continue
        unlabelled = ", or ask without answers with --split hidden" if role == "answer" else ""
        raise DataError(
            f"{location}: no column is certain to be the {role}; write a mapping (`columns: {{{role}: NAME}}`)"
            f"{unlabelled}; available: {', '.join(names)}"
        )
    single = {role: (chosen_columns[role] or ("",))[0] for role in NAMES if role not in ("image", "choices")}
    groups = chosen_columns["group"]
    if "task" not in layout.columns and single["task"] == "task" and "category" in names:
        groups = (*groups, "category")
    return Columns(
        **single,
        image=chosen_columns["image"],
        choices=chosen_columns["choices"],
        groups=groups,
        from_mapping=frozenset(layout.columns),
    )


def _choose_columns(role: str, names: Sequence[str], layout: Layout, location: str) -> tuple[str, ...]:
    if role in layout.columns:
        own_names = layout.columns[role]
        for name in own_names:
            if name not in names:
                hint = did_you_mean(name, names)
                raise DataError(
                    f"{location}: the mapping's {role}: no column {name!r}{hint}; available: {', '.join(names)}"
                )
        return own_names
    if role == "group":
        return tuple(name for name in GROUPS if name in names)
    column_name = next(((name,) for name in NAMES[role] if name in names), ())
    if column_name or role not in ("image", "choices"):
        return column_name
    return _numbered(names) if role == "image" else _lettered(names)


def _numbered(names: Sequence[str]) -> tuple[str, ...]:
    """Return `image_1`, `image_2`, ... in the order of their numbers."""
    numbers = {name: int(match[1]) for name in names if (match := _NUMBERED.fullmatch(name))}
    return tuple(sorted(numbers, key=lambda name: numbers[name]))


def _lettered(names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns `A`, `B`, ... up to the first gap; none without B."""
    run: list[str] = []
    for letter in LETTERS:
        if letter not in names:
            break
        run.append(letter)
    return tuple(run) if len(run) > 1 else ()


def unread(names: Sequence[str], layout: Layout) -> tuple[str, ...]:
    """Return the columns that certainly belong to a question but that a recipe does not read."""
    used = {name for column in layout.columns.values() for name in column}
    parts = ("image", "question", "choices", "answer", "kind", "tolerance")
    certain = {name for part in parts for name in NAMES[part]} | {*_numbered(names), *_lettered(names)}
    return tuple(name for name in names if name in certain - used)
