"""A YAML file that says how a table is read, and for a recipe what a benchmark is: values alone, no code.

    layout_of(Path("questions.yaml"))         # a mapping: the columns, and how a question is asked
    recipe_of(Path("recipes/NAME.yaml"))      # a mapping and more: where the data are, what is counted, who published

The schema is strict: an unknown key, column or word is a `UsageError` with file, line and what is near.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, cast, get_args

from hybrid.benchmarks.questions.options import PATTERNS
from hybrid.benchmarks.questions.parts import Hub, PublishedRow, Samples, SampleScene
from hybrid.benchmarks.questions.statistics import Counted, counted
from hybrid.config.nodes import Node, read_nodes
from hybrid.errors import UsageError, did_you_mean
from hybrid.log.files import read_small
from hybrid.types import Kind

# Bytes of the largest file that is read; a recipe has a few thousand.
LARGEST: Final = 200_000

# The kinds that a row of a table can have.
KINDS: Final = (Kind.CHOICE, Kind.YES_NO, Kind.INTEGER, Kind.NUMBER, Kind.TEXT, Kind.ORDER, Kind.POINT, Kind.BOX)

# The roles that a column can have.
COLUMNS: Final = (
    *("id", "image", "question", "choices", "answer"),
    *("kind", "task", "group", "hint", "tolerance", "cluster"),
)
# Those that can be several columns.
SEVERAL: Final = frozenset({"image", "choices", "group"})

# How an answer names its choice: by its letter (`B`, `(b)`), its text, or its number from 0 or 1.
Answer = Literal["letter", "text", "index0", "index1"]

PLACEHOLDERS: Final = frozenset({"question", "choices", "hint"})
_SHOWN: Final = frozenset({"question", "choices", "unit"})


@dataclass(frozen=True)
class Layout:
    """How the rows of a table become questions. What is not said is guessed where it is certain."""

    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By our name theirs."""
    kind: Kind | None = None
    answer: Answer | None = None
    split_choices: str | None = None
    """The name of a pattern by which one cell holds all options."""
    prompt: str | None = None
    option: str | None = None
    """How one option is written: `({letter}) {text}`."""


@dataclass(frozen=True)
class Recipe:
    """A benchmark without code."""

    name: str
    layout: Layout
    title: str
    citation: str
    licence: str
    hub: Hub
    metrics: tuple[Counted, ...]
    expected: Mapping[str, int] = field(default_factory=dict)
    """Questions of the first split by task; empty where the tasks are those that the data say."""
    cluster_rows: int = 1
    """So many rows that follow one another are one unit."""
    cyclic: bool = False
    """Whether each question is asked once for every cyclic permutation of its options."""
    image_sources: Mapping[str, str] = field(default_factory=dict)
    """Collections that its images come from, each with the place that says so."""
    published: tuple[PublishedRow, ...] = ()
    unchecked: str = ""
    """Facts that could not be checked against the data."""
    samples: Samples | None = None

    @property
    def only_task(self) -> str:
        """The task of all rows where no column says one."""
        return next(iter(self.expected)) if len(self.expected) == 1 else self.name

    @property
    def scenes(self) -> Mapping[str, tuple[SampleScene, ...]]:
        """The scenes of each task that can be generated."""
        (column,) = self.layout.columns.get("task", ("",))
        found: dict[str, tuple[SampleScene, ...]] = {}
        for scene in () if self.samples is None else self.samples.scenes:
            task = scene.cells.get(column, (self.only_task,))[0]
            found[task] = (*found.get(task, ()), scene)
        return found


def layout_of(path: Path) -> Layout:
    """Read a mapping. Raises `UsageError` for a file that is none."""
    return _layout(_Entries(_root(path), "a mapping", _LAYOUT_KEYS))


def recipe_of(path: Path) -> Recipe:
    """Read a recipe, whose name is the file's. Raises `UsageError` for a file that is none."""
    given = _Entries(_root(path), "a recipe", (*_LAYOUT_KEYS, *_RECIPE_KEYS))
    layout, (rows, column) = _layout(given), _cluster(given)
    hub = _hub(given.inner("hub", ("id", "splits", "files", "images")))
    metrics = _metrics(given.node("metrics"), layout)
    if column:
        layout = Layout(**{**vars(layout), "columns": {**layout.columns, "cluster": (column,)}})
    return Recipe(
        name=path.stem,
        layout=layout,
        title=given.text("title"),
        citation=given.text("citation"),
        licence=given.text("licence"),
        hub=hub,
        metrics=metrics,
        expected=given.whole_numbers("expected"),
        cluster_rows=rows,
        cyclic=given.word("variants", ("cyclic", "none"), "none") == "cyclic",
        image_sources=given.words("image_sources"),
        published=_published(given.entries.get("published"), metrics[0].name, hub.splits[0]),
        unchecked=given.text("unchecked", ""),
        samples=_samples(given.inner("samples", _SAMPLES_KEYS)) if "samples" in given.entries else None,
    )


_LAYOUT_KEYS: Final = ("columns", "kind", "answer", "split_choices", "prompt", "option")
_RECIPE_KEYS: Final = (
    *("title", "citation", "licence", "hub", "cluster", "variants", "metrics"),
    *("expected", "image_sources", "published", "unchecked", "samples"),
)
_SAMPLES_KEYS: Final = ("scenes", "rows", "cyclic", "letter", "question")


def _root(path: Path) -> Node:
    try:
        data = read_small(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    if len(data) > LARGEST:
        raise UsageError(f"{path}: {len(data):,} bytes are no mapping of columns: {LARGEST:,} at most")
    try:
        root = read_nodes(path, data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: is not text in UTF-8") from error
    if root is None or root.entries is None:
        raise UsageError(f"{path}: write one entry a line, KEY: VALUE, beginning with columns:")
    return root


class _Entries:
    """The entries of a mapping, each read as what it must be.

    Args:
        node: the mapping.
        what: it is, in messages.
        known: its keys.
    """

    def __init__(self, node: Node, what: str, known: Iterable[str]) -> None:
        self.where, self._what = node.where, what
        if node.entries is None:
            raise UsageError(f"{node.where}: {what} has entries, KEY: VALUE")
        self.entries = node.entries
        names = tuple(known)
        for key, value in self.entries.items():
            if key not in names:
                hint = did_you_mean(key, names)
                raise UsageError(f"{value.where}: {what} has no {key!r}{hint}; there are: {', '.join(names)}")

    def node(self, key: str) -> Node:
        """An entry that must be there."""
        if key not in self.entries:
            raise UsageError(f"{self.where}: {self._what} needs {key}:")
        return self.entries[key]

    def text(self, key: str, default: str | None = None) -> str:
        """A text; the default where there is none."""
        if key not in self.entries and default is not None:
            return default
        return _scalar(self.node(key), key)

    def word(self, key: str, known: Iterable[str], default: str = "") -> str:
        """One of some words; the default where there is none."""
        if key not in self.entries:
            return default
        return _one_of(_scalar(self.entries[key], key), tuple(known), f"{self.entries[key].where}: {key}")

    def inner(self, key: str, known: Iterable[str]) -> _Entries:
        """A mapping that must be there."""
        return _Entries(self.node(key), key, known)

    def words(self, key: str) -> dict[str, str]:
        """A mapping to texts, or nothing."""
        node = self.entries.get(key)
        if node is None:
            return {}
        if node.entries is None:
            raise UsageError(f"{node.where}: {key}: write NAME: TEXT on a line each")
        return {name: _scalar(value, f"{key}: {name}") for name, value in node.entries.items()}

    def whole_numbers(self, key: str) -> dict[str, int]:
        """A mapping to whole numbers from 0, or nothing."""
        found: dict[str, int] = {}
        for name, text in self.words(key).items():
            if not (text.isascii() and text.isdigit()):
                raise UsageError(f"{self.entries[key].where}: {key}: {name}: {text!r:.40} is no number of questions")
            found[name] = int(text)
        return found


def _layout(given: _Entries) -> Layout:
    split = given.word("split_choices", PATTERNS) or None
    kind = given.word("kind", [str(kind) for kind in KINDS])
    return Layout(
        columns=_columns(given),
        kind=Kind(kind) if kind else None,
        answer=cast("Answer | None", given.word("answer", get_args(Answer)) or None),
        split_choices=split,
        prompt=_template(given, "prompt", PLACEHOLDERS),
        option=_template(given, "option", frozenset({"letter", "text"})),
    )


def _columns(given: _Entries) -> dict[str, tuple[str, ...]]:
    if "columns" not in given.entries:
        return {}
    inner = given.inner("columns", COLUMNS)
    found: dict[str, tuple[str, ...]] = {}
    for name, node in inner.entries.items():
        theirs = _listed(node, f"columns: {name}")
        if len(theirs) > 1 and name not in SEVERAL:
            raise UsageError(f"{node.where}: columns: {name}: one column, not {len(theirs)}")
        found[name] = theirs
    return found


def _template(given: _Entries, key: str, known: frozenset[str]) -> str | None:
    if key not in given.entries:
        return None
    where, text = f"{given.entries[key].where}: {key}", _scalar(given.entries[key], key)
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError as error:
        raise UsageError(f"{where}: {error}; a brace that is none of a placeholder is written twice") from error
    for _, name, form, conversion in parts:
        if name is not None and (name not in known or form or conversion):
            there = ", ".join(f"{{{each}}}" for each in sorted(known))
            raise UsageError(f"{where}: {{{name}}} is no placeholder; there are: {there}")
    return text


def _hub(given: _Entries) -> Hub:
    many = {
        key: _listed(given.entries[key], f"hub: {key}") for key in ("splits", "files", "images") if key in given.entries
    }
    for key in ("splits", "files"):
        given.node(key)
    for pattern in (*many["files"], *many.get("images", ())):
        if pattern.startswith("/") or ".." in pattern.split("/"):
            raise UsageError(f"{given.where}: hub: {pattern!r}: a path inside of the data set")
    return Hub(given.text("id"), many["splits"], many["files"], many.get("images", ()))


def _cluster(given: _Entries) -> tuple[int, str]:
    """How many rows that follow one another are one unit, and the column that names units."""
    node = given.entries.get("cluster")
    if node is None:
        return 1, ""
    if node.entries is None:
        return 1, _scalar(node, "cluster")
    return _units(_Entries(node, "cluster", ("rows",)).node("rows"), "cluster: rows"), ""


def _units(node: Node, key: str) -> int:
    rows = _scalar(node, key)
    if not (rows.isascii() and rows.isdigit() and 2 <= int(rows) <= 1000):
        raise UsageError(f"{node.where}: {key}: {rows!r:.40}: a whole number from 2 to 1000")
    return int(rows)


def _metrics(node: Node, layout: Layout) -> tuple[Counted, ...]:
    found: list[Counted] = []
    groups = layout.columns.get("group", ())
    for text in _listed(node, "metrics"):
        try:
            found.append(counted(text))
        except ValueError as error:
            raise UsageError(f"{node.where}: metrics: {error}") from error
        if missing := [name for name in found[-1].groups if name not in groups]:
            hint = did_you_mean(missing[0], groups)
            raise UsageError(f"{node.where}: metrics: {text}: no column {missing[0]!r} in columns: group:{hint}")
    return tuple(found)


def _published(node: Node | None, metric: str, split: str) -> tuple[PublishedRow, ...]:
    if node is None:
        return ()
    if node.kind != "list":
        raise UsageError(f"{node.where}: published: a list of rows, each with who, value and source")
    return tuple(_published_row(_Entries(item, "published", _PUBLISHED_KEYS), metric, split) for item in node.items)


_PUBLISHED_KEYS: Final = ("who", "value", "source", "metric", "n", "split", "kind", "note")


def _published_row(row: _Entries, metric: str, split: str) -> PublishedRow:
    try:
        value = float(row.text("value"))
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise UsageError(f"{row.where}: published: value: {row.text('value')!r:.40}: a number from 0 to 1")
    kind = row.word("kind", ("model", "specialist", "human", "chance"), "model")
    of, on = row.text("metric", metric), row.text("split", split)
    return PublishedRow(
        row.text("who"), value, row.text("source"), of, on, row.text("n", ""), kind, row.text("note", "")
    )


def _samples(given: _Entries) -> Samples:
    node = given.node("scenes")
    if node.kind != "list" or not node.items:
        raise UsageError(f"{node.where}: samples: scenes: a list of scenes, each with scene: NAME")
    return Samples(
        scenes=tuple(_scene(_Entries(item, "a scene", ("scene", "cells", "question"))) for item in node.items),
        rows=_units(given.node("rows"), "samples: rows") if "rows" in given.entries else 1,
        cyclic=given.word("cyclic", ("true", "false"), "false") == "true",
        letter=given.word("letter", ("A", "(A)", "(a)"), "A"),
        question=_template(given, "question", _SHOWN) or "{question}",
    )


def _scene(given: _Entries) -> SampleScene:
    cells = given.entries.get("cells")
    if cells is not None and cells.entries is None:
        raise UsageError(f"{cells.where}: cells: write COLUMN: TEXT on a line each")
    listed = {} if cells is None or cells.entries is None else cells.entries
    return SampleScene(
        given.text("scene"),
        {name: _listed(node, f"cells: {name}") for name, node in listed.items()},
        _template(given, "question", _SHOWN) or "",
    )


def _scalar(node: Node, key: str) -> str:
    if node.kind in ("list", "mapping", "nothing"):
        raise UsageError(
            f"{node.where}: {key}: one value, not {'nothing' if node.kind == 'nothing' else f'a {node.kind}'}"
        )
    return node.text


def _listed(node: Node, key: str) -> tuple[str, ...]:
    """One text, or a list of at least one."""
    texts = tuple(_scalar(item, key) for item in node.items) if node.kind == "list" else (_scalar(node, key),)
    if not texts or "" in texts:
        raise UsageError(f"{node.where}: {key}: a name is empty")
    if len(set(texts)) < len(texts):
        raise UsageError(f"{node.where}: {key}: a name stands there twice")
    return texts


def _one_of(word: str, known: tuple[str, ...], where: str) -> str:
    if word not in known:
        raise UsageError(f"{where}: {word!r:.60} is none{did_you_mean(word, known)}; there are: {', '.join(known)}")
    return word
