"""A YAML file that defines how a table is read; a recipe also defines the benchmark. It has only values, no code.

    layout_of(Path("questions.yaml"))         # a mapping: the columns, and how a question is asked
    recipe_of(Path("recipes/NAME.yaml"))      # a mapping, plus the location of the data, the metrics, the sources

The schema is strict: an unknown key, column or word is a `UsageError` with file, line and the closest match.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, cast

from hybrid.benchmarks.questions.options import PATTERNS
from hybrid.benchmarks.questions.parts import Hub, PublishedRow, Samples, SampleScene, check_template, check_units
from hybrid.benchmarks.questions.statistics import MetricSpec, parse_metric
from hybrid.config.nodes import Node, read_nodes
from hybrid.core.errors import UsageError, did_you_mean
from hybrid.core.files import read_small
from hybrid.core.toml_records import Reader, Steps, ValueMismatch
from hybrid.core.types import Kind

T = TypeVar("T")

# Largest size of a file in bytes; a recipe has a few thousand bytes.
MAX_BYTES: Final = 200_000

# Valid kinds of a row in a table.
KINDS: Final = (Kind.CHOICE, Kind.YES_NO, Kind.INTEGER, Kind.NUMBER, Kind.TEXT, Kind.ORDER, Kind.POINT, Kind.BOX)

# All roles of columns, and the roles that several columns can share.
COLUMNS: Final = (
    *("id", "image", "question", "choices", "answer"),
    *("kind", "task", "route", "group", "hint", "tolerance", "cluster", "evidence"),
)
SEVERAL: Final = frozenset({"image", "choices", "group"})

# How an answer names its choice: by its letter (`B`, `(b)`), its text, or its number from 0 or 1.
Answer = Literal["letter", "text", "index0", "index1"]

# Unit of a box or point: pixels, shares of width and height (0 to 1), or thousandths of width and height.
Frame = Literal["pixels", "normalised", "thousandths"]

EvidenceForm = Literal["corners", "xywh"]

PLACEHOLDERS: Final = frozenset({"question", "choices", "hint"})


def _check_columns(columns: Mapping[str, tuple[str, ...]]) -> None:
    for name, column_names in columns.items():
        if name not in COLUMNS:
            hint = did_you_mean(name, COLUMNS)
            raise ValueMismatch(
                (name,), f"columns has no {name!r}{hint}; available: {', '.join(COLUMNS)}", is_named=False
            )
        if len(column_names) > 1 and name not in SEVERAL:
            raise ValueMismatch((name,), f"write one column, not {len(column_names)}")


def _one_of(word: str, words: Collection[str]) -> None:
    if word not in words:
        raise ValueMismatch((), f"{word!r:.60} is unknown{did_you_mean(word, words)}; available: {', '.join(words)}")


@dataclass(frozen=True)
class Layout:
    """How the rows of a table become questions. Missing values are inferred if unambiguous."""

    # The table's column names by role.
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict, metadata={"check": _check_columns})
    kind: Kind | None = None
    answer: Answer | None = None
    # None also means pixels, but `data check` then reports numbers that look like another frame.
    frame: Frame | None = None
    # Boxes in `evidence`: left, top, right, bottom; or left, top, width, height.
    evidence_form: EvidenceForm = "corners"
    # Key of the boxes in the JSON file that is beside a picture and has the picture's name.
    evidence_beside: str | None = None
    # The name of a pattern for splitting all options in one cell.
    split_choices: str | None = field(default=None, metadata={"check": partial(_one_of, words=PATTERNS)})
    prompt: str | None = field(default=None, metadata={"check": partial(check_template, names=PLACEHOLDERS)})
    # Form of one option: `({letter}) {text}`.
    option: str | None = field(default=None, metadata={"check": partial(check_template, names=("letter", "text"))})


@dataclass(frozen=True)
class Units:
    """What forms a unit: rows with equal cells in a column, or a number of consecutive rows."""

    rows: int = field(default=1, metadata={"check": check_units})
    column: str = ""


@dataclass(frozen=True, kw_only=True)
class Recipe(Layout):
    """A benchmark without code, defined by its file."""

    name: str
    title: str
    citation: str
    licence: str
    hub: Hub
    metrics: tuple[MetricSpec, ...]
    cluster: Units = Units()
    # Whether each question is asked once for every cyclic permutation of its options.
    variants: Literal["cyclic", "none"] = "none"
    # Number of questions in the first split, by task; empty if the data define the tasks.
    expected: Mapping[str, int] = field(default_factory=dict)
    # Collections of the benchmark's images, each with its source.
    image_sources: Mapping[str, str] = field(default_factory=dict)
    published: tuple[PublishedRow, ...] = ()
    # Facts that could not be checked against the data.
    unchecked: str = ""
    samples: Samples | None = None

    @property
    def layout(self) -> Layout:
        """The layout of the benchmark's rows."""
        layout = Layout(**{field.name: getattr(self, field.name) for field in fields(Layout)})
        cluster = {"cluster": (self.cluster.column,)} if self.cluster.column else {}
        return replace(layout, columns={**layout.columns, **cluster})

    @property
    def only_task(self) -> str:
        """The task of all rows without a task column."""
        return next(iter(self.expected)) if len(self.expected) == 1 else self.name

    @property
    def scenes(self) -> Mapping[str, tuple[SampleScene, ...]]:
        """The scenes of each task that can be generated."""
        (column,) = self.columns.get("task", ("",))
        by_task: dict[str, tuple[SampleScene, ...]] = {}
        for scene in () if self.samples is None else self.samples.scenes:
            task = scene.cells.get(column, (self.only_task,))[0]
            by_task[task] = (*by_task.get(task, ()), scene)
        return by_task


def layout_of(path: Path) -> Layout:
    """Read a mapping. Raises `UsageError` for an invalid file."""
    return _read(Layout, path)


def recipe_of(path: Path) -> Recipe:
    """Read a recipe, named after its file. Raises `UsageError` for an invalid file."""
    recipe = _read(Recipe, path)
    metric, split = recipe.metrics[0].name, recipe.hub.splits[0]
    rows = (replace(row, metric=row.metric or metric, split=row.split or split) for row in recipe.published)
    return replace(recipe, published=tuple(rows))


def _read(kind: type[T], path: Path) -> T:
    try:
        data = read_small(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    if len(data) > MAX_BYTES:
        raise UsageError(f"{path}: the file has {len(data):,} bytes; a mapping of columns may have {MAX_BYTES:,}")
    try:
        root = read_nodes(path, data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: is not text in UTF-8") from error
    if root is None or not isinstance(root.value, dict):
        raise UsageError(f"{path}: write one entry per line, KEY: VALUE; the first is columns:")
    try:
        return _Yaml().root(kind, _plain(root), path.stem)
    except ValueMismatch as error:
        node = root
        for step in error.steps:
            inner: Any = dict(enumerate(node.value)) if isinstance(node.value, tuple) else node.value
            node = inner.get(step, node) if isinstance(inner, dict) else node
        steps = [step for step in error.steps if isinstance(step, str) and error.named]
        raise UsageError(": ".join((node.where, *steps, str(error)))) from error


def _plain(node: Node) -> Any:
    """Return the values of a file, with each scalar as its text."""
    if isinstance(node.value, dict):
        return {key: _plain(value) for key, value in node.value.items()}
    if isinstance(node.value, tuple):
        return [_plain(item) for item in node.value]
    return None if node.value is None else node.text


class _Yaml(Reader):
    """Reads a file written by people: scalars are texts, and a single text is a list of one."""

    def root(self, kind: type[T], table: Mapping[str, Any], name: str) -> T:
        """Read the content of a file of this name."""
        if kind is not Recipe:
            return cast(T, self.read_value(kind, table))
        if "name" in table:
            raise self.unknown(kind, ("name",), [field.name for field in fields(Recipe)])
        recipe: Any = self.read_value(kind, {"name": name, **table})
        for place, metric in enumerate(recipe.metrics):
            groups = recipe.columns.get("group", ())
            if missing := [group for group in metric.groups if group not in groups]:
                metric_text = self.items(table["metrics"], ())[place]
                hint = did_you_mean(missing[0], groups)
                text = f"{metric_text}: {missing[0]!r} is not a column of `group` under `columns`{hint}"
                raise ValueMismatch(("metrics",), text)
        return cast(T, recipe)

    def read_value(self, kind: Any, value: Any, steps: Steps = ()) -> Any:
        """Read a value. Metrics are words; units are the name of a column or a number of rows."""
        if kind is Kind:
            return Kind(self.word(value, KINDS, steps))
        if kind is Units and not isinstance(value, dict):
            return Units(column=self.scalar(str, value, steps))
        if kind is not MetricSpec:
            return super().read_value(kind, value, steps)
        try:
            return parse_metric(self.scalar(str, value, steps))
        except ValueError as error:
            raise ValueMismatch(steps, str(error)) from error

    def entries(self, kind: Any, value: Any, steps: Steps) -> tuple[Any, ...]:
        """Read an item of a list, which is always a single entry."""
        return (self.read_value(kind, value, steps),)

    def _describe_kind(self, kind: type, steps: Steps) -> str:
        labels = {Layout: "a mapping", Recipe: "a recipe", SampleScene: "a scene"}
        return labels.get(kind) or next(step for step in reversed(steps) if isinstance(step, str))

    def unknown(self, kind: type, steps: Steps, keys: Collection[str]) -> ValueMismatch:
        """Return the error for an unknown key (the last step), in the words of the file format."""
        choices = [key for key in keys if key != "name"]
        hint = did_you_mean(str(steps[-1]), choices)
        message = f"{self._describe_kind(kind, steps[:-1])} has no {steps[-1]!r}{hint}; available: {', '.join(choices)}"
        return ValueMismatch(steps, message, is_named=False)

    def needs(self, kind: type, steps: Steps, name: str) -> ValueMismatch:
        """Return the error for a missing key."""
        return ValueMismatch(steps, f"{self._describe_kind(kind, steps)} needs {name}:", is_named=False)

    def word(self, value: Any, words: Collection[object], steps: Steps) -> Any:
        """Check that a value is one of the words; otherwise suggest the closest."""
        text = self.scalar(str, value, steps)
        try:
            _one_of(text, [str(word) for word in words])
        except ValueMismatch as error:
            raise ValueMismatch(steps, str(error)) from error
        return text

    def scalar(self, kind: type, value: Any, steps: Steps) -> Any:
        """Convert a text to the annotated type."""
        if not isinstance(value, str):
            actual = "nothing" if value is None else "a list" if isinstance(value, list) else "a mapping"
            raise ValueMismatch(steps, f"write one value, not {actual}")
        if kind is bool:
            return self.word(value, ("true", "false"), steps) == "true"
        if kind is int and not (value.isascii() and value.isdigit()):
            raise ValueMismatch(steps, f"{value!r:.40} is not a number of questions or rows")
        try:
            return kind(value)
        except ValueError as error:
            raise ValueMismatch(steps, f"{value!r:.40} is not a number") from error

    def items(self, value: Any, steps: Steps) -> Sequence[Any]:
        """Return a single value as a list of one; a list must not be empty."""
        values = value if isinstance(value, list) else [value]
        texts = [item for item in values if isinstance(item, str)]
        if not values or "" in texts:
            raise ValueMismatch(steps, "a name is empty")
        if len(set(texts)) < len(texts):
            raise ValueMismatch(steps, "a name appears twice")
        return values
