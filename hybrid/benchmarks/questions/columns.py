"""Which column of a table is what: as a mapping says, else by names that leave no doubt.

The names are our own, and those of VLMEvalKit's TSV files (`index`, `image` or `image_path`, `A` to `Z`, `category`):
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
from hybrid.errors import DataError, did_you_mean
from hybrid.types import LETTERS

FACTS: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
NAMES: Final[Mapping[str, Sequence[str]]] = FACTS["names"]
GROUPS: Final[Sequence[str]] = FACTS["groups"]
_NUMBERED: Final = re.compile(r"image_?([0-9]{1,2})")
# VLMEvalKit's column of ids: in a set for circular evaluation `index + k * 10^6` is the k-th rotation of `index`.
CIRCULAR_ID: Final = "index"


@dataclass(frozen=True)
class Columns:
    """The columns of a table by what they are to us; empty for what it has not."""

    question: str
    answer: str
    image: tuple[str, ...] = ()
    id: str = ""
    choices: tuple[str, ...] = ()
    kind: str = ""
    task: str = ""
    hint: str = ""
    tolerance: str = ""
    cluster: str = ""
    groups: tuple[str, ...] = ()
    from_mapping: frozenset[str] = field(default_factory=frozenset)

    @property
    def circular(self) -> bool:
        """Whether ids of a million and more are those of rotations."""
        return self.id == CIRCULAR_ID and "id" not in self.from_mapping

    @property
    def indexed(self) -> tuple[str, ...]:
        """Those that the first pass over a table needs."""
        content = (self.question, *self.choices) if self.circular else ()
        return tuple(dict.fromkeys(name for name in (self.id, self.task, self.cluster, *content) if name))


def resolve(names: Sequence[str], layout: Layout, where: str) -> Columns:
    """The columns of a table. Raises `DataError` for one that a mapping names and is not there, or that must be."""
    found = {ours: _chosen(ours, names, layout, where) for ours in (*NAMES, "group")}
    for ours in ("question", "answer"):
        if not found[ours]:
            raise DataError(
                f"{where}: no column is certain to be the {ours}; write a mapping (`columns: {{{ours}: NAME}}`); "
                f"there are: {', '.join(names)}"
            )
    one = {ours: (found[ours] or ("",))[0] for ours in NAMES if ours not in ("image", "choices")}
    groups = found["group"]
    if "task" not in layout.columns and one["task"] == "task" and "category" in names:
        groups = (*groups, "category")
    return Columns(
        **one, image=found["image"], choices=found["choices"], groups=groups, from_mapping=frozenset(layout.columns)
    )


def _chosen(ours: str, names: Sequence[str], layout: Layout, where: str) -> tuple[str, ...]:
    if ours in layout.columns:
        theirs = layout.columns[ours]
        for name in theirs:
            if name not in names:
                hint = did_you_mean(name, names)
                raise DataError(
                    f"{where}: the mapping's {ours}: no column {name!r}{hint}; there are: {', '.join(names)}"
                )
        return theirs
    if ours == "group":
        return tuple(name for name in GROUPS if name in names)
    known = next(((name,) for name in NAMES[ours] if name in names), ())
    if known or ours not in ("image", "choices"):
        return known
    return _numbered(names) if ours == "image" else _lettered(names)


def _numbered(names: Sequence[str]) -> tuple[str, ...]:
    """`image_1`, `image_2`, ... by number."""
    numbers = {name: int(match[1]) for name in names if (match := _NUMBERED.fullmatch(name))}
    return tuple(sorted(numbers, key=lambda name: numbers[name]))


def _lettered(names: Sequence[str]) -> tuple[str, ...]:
    """`A`, `B`, ... as far as they go; none where there is no B."""
    run: list[str] = []
    for letter in LETTERS:
        if letter not in names:
            break
        run.append(letter)
    return tuple(run) if len(run) > 1 else ()


def unread(names: Sequence[str], layout: Layout) -> tuple[str, ...]:
    """The columns that are certain to be a part of a question and that a recipe does not read."""
    used = {name for theirs in layout.columns.values() for name in theirs}
    parts = ("image", "question", "choices", "answer", "kind", "tolerance")
    certain = {name for ours in parts for name in NAMES[ours]} | {*_numbered(names), *_lettered(names)}
    return tuple(name for name in names if name in certain - used)
