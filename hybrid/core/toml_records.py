"""Reads TOML files of facts into frozen dataclasses, and validates them against the annotations.

read_card(Path(__file__).with_name("card.toml"), BenchmarkCard)
read_card(Path(__file__).with_name("card.toml"), Card, {"Seams": Seams})     # make = "Seams"
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from hybrid.core.errors import DataError, did_you_mean

T = TypeVar("T")
# Path to a value: keys, and list indices from 0.
Steps = tuple[str | int, ...]

NO_CODE: Final[Mapping[str, object]] = MappingProxyType({})


def read_card(path: Path, kind: type[T], code: Mapping[str, object] = NO_CODE) -> T:
    """Read a dataclass from a TOML file.

    Args:
        path: the file.
        kind: the dataclass.
        code: functions and classes by name, for fields that contain code instead of data.

    Raises:
        DataError: the file cannot be read or is not valid; the message names the file, the line and the key.
    """
    try:
        text = path.read_text("utf-8")
        data = tomllib.loads(text)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error
    try:
        result: T = Reader(code).read_value(kind, data)
    except ValueMismatch as error:
        raise DataError(f"{path}, line {_line(text, error.steps)}: {_format_error(error)}") from error
    return result


def made_of(data: Any, kind: type[T], code: Mapping[str, object] = NO_CODE) -> T:
    """Build a dataclass from plain data, as `as_data` returns it. Raises a `DataError` that names the key."""
    try:
        result: T = Reader(code).read_value(kind, data)
    except ValueMismatch as error:
        raise DataError(_format_error(error)) from error
    return result


def as_data(value: Any) -> Any:
    """Convert a dataclass to plain data for TOML or JSON; code is replaced by its name, and None values are omitted."""
    if is_dataclass(value) and not isinstance(value, type):
        entries = {attribute.name: as_data(getattr(value, attribute.name)) for attribute in fields(value)}
        return {name: item for name, item in entries.items() if item is not None}
    if isinstance(value, Mapping):
        return {key: as_data(item) for key, item in value.items()}
    if isinstance(value, tuple | list | frozenset):
        return [as_data(item) for item in value]
    return getattr(value, "__name__", type(value).__name__) if callable(value) else value


class ValueMismatch(Exception):
    """The reason why a value is not valid. `steps` is the path to the value."""

    def __init__(self, steps: Steps, message: str, *, is_named: bool = True) -> None:
        super().__init__(message)
        self.steps, self.named = steps, is_named


def _format_error(error: ValueMismatch) -> str:
    path = ".".join(step for step in error.steps if isinstance(step, str))
    return f"{path}: {error}" if path else str(error)


class Reader:
    """Converts plain values to the annotated types; subclasses read other notations.

    A field's metadata may have a `check`, which gets the value and raises `ValueMismatch` with relative steps.
    """

    def __init__(self, code: Mapping[str, object] = NO_CODE) -> None:
        self._code = code

    def read_value(self, kind: Any, value: Any, steps: Steps = ()) -> Any:
        """Convert a value to the type `kind`. Raises `ValueMismatch`."""
        origin, parts = get_origin(kind) or kind, get_args(kind)
        if origin in (Union, UnionType):
            # TOML has no null, so the key of an optional value is left out instead.
            (kind,) = (part for part in parts if part is not NoneType)
            return self.read_value(kind, value, steps)
        if isinstance(origin, type) and issubclass(origin, Enum):
            return origin(self.word(value, [member.value for member in origin], steps))
        if origin is Literal:
            return self.word(value, parts, steps)
        if is_dataclass(origin):
            return self._dataclass(origin, self.table(value, steps), steps)
        if origin is Mapping:
            return {
                key: self.read_value(parts[1], item, (*steps, key)) for key, item in self.table(value, steps).items()
            }
        if origin in (tuple, frozenset):
            items = self.items(value, steps)
            # tuple[X, ...] holds any number of items of one type, tuple[X, Y] one item of each type.
            if origin is frozenset or parts[-1] is ...:
                several = (self.entries(parts[0], item, (*steps, place)) for place, item in enumerate(items))
                return origin(entry for entries in several for entry in entries)
            if len(parts) != len(items):
                raise ValueMismatch(steps, f"has {len(items)} entries, not {len(parts)}")
            pairs = enumerate(zip(parts, items, strict=True))
            return tuple(self.read_value(of, item, (*steps, place)) for place, (of, item) in pairs)
        if origin in (str, int, float, bool):
            return self.scalar(origin, value, steps)
        if not isinstance(value, str) or value not in self._code:
            names = ", ".join(self._code) or "none"
            raise ValueMismatch(steps, f"{value!r:.60} is not a name that the code defines; available: {names}")
        return self._code[value]

    def entries(self, kind: Any, value: Any, steps: Steps) -> tuple[Any, ...]:
        """Convert an item of a list to one or more entries: an item may state the facts of several dataclasses."""
        hints = _hints(kind) if isinstance(kind, type) and is_dataclass(kind) else {}
        candidates = self._code.items() if isinstance(value, str) else ()
        shared = {name: item for name, item in candidates if isinstance(item, tuple)}
        if hints and shared:
            return shared[self.word(value, shared, steps)]
        # An item may list several names instead of one, such as the sizes of a network, which share all other facts.
        lists = [key for key, item in value.items() if isinstance(item, list)] if isinstance(value, dict) else []
        if (key := next((key for key in lists if hints.get(key) is str), None)) is not None:
            return tuple(self.read_value(kind, {**value, key: item}, steps) for item in value[key])
        return (self.read_value(kind, value, steps),)

    def _dataclass(self, kind: Any, table: Mapping[str, Any], steps: Steps) -> Any:
        hints = _hints(kind)
        by_name = {attribute.name: attribute for attribute in fields(kind) if attribute.init}
        read = {}
        for key, value in table.items():
            if key not in by_name:
                raise self.unknown(kind, (*steps, key), by_name)
            read[key] = self.read_value(hints[key], value, (*steps, key))
            try:
                by_name[key].metadata.get("check", lambda _: None)(read[key])
            except ValueMismatch as error:
                raise ValueMismatch((*steps, key, *error.steps), str(error), is_named=error.named) from error
        for name, attribute in by_name.items():
            if name not in read and attribute.default is MISSING and attribute.default_factory is MISSING:
                if NoneType not in get_args(hints[name]):
                    raise self.needs(kind, steps, name)
                read[name] = None
        return kind(**read)

    def unknown(self, kind: type, steps: Steps, names: Collection[str]) -> ValueMismatch:
        """Return the error for a key that the dataclass does not have; the key is the last of `steps`."""
        hint = did_you_mean(str(steps[-1]), names)
        return ValueMismatch(steps, f"{kind.__name__} has no such key{hint}; available: {', '.join(names)}")

    def needs(self, kind: type, steps: Steps, name: str) -> ValueMismatch:
        """Return the error for a missing key."""
        return ValueMismatch(steps, f"{kind.__name__} needs {name}")

    def word(self, value: Any, words: Collection[object], steps: Steps) -> Any:
        """Check that a value is one of `words`."""
        if value not in words:
            raise ValueMismatch(steps, f"{value!r:.60} is not one of: {', '.join(map(str, words))}")
        return value

    def scalar(self, kind: type, value: Any, steps: Steps) -> Any:
        """Convert a string, a number or a bool."""
        # In Python a bool is also an int, but it is accepted only as a bool. An int is also accepted as a float.
        accepted = (int, float) if kind is float else kind
        if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
            raise ValueMismatch(steps, f"{value!r:.60} is not of type {kind.__name__}")
        return kind(value)

    def table(self, value: Any, steps: Steps) -> Mapping[str, Any]:
        """Check that a value is a table."""
        if not isinstance(value, dict):
            raise ValueMismatch(steps, f"{value!r:.60} is not a table")
        return value

    def items(self, value: Any, steps: Steps) -> Sequence[Any]:
        """Check that a value is a list."""
        if not isinstance(value, list):
            raise ValueMismatch(steps, f"{value!r:.60} is not a list")
        return value


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    """Return cached type hints: evaluating them takes longer than reading a whole card."""
    return get_type_hints(kind)


def _line(text: str, steps: Steps) -> int:
    """Return the line (from 1) on which a value starts; tomllib does not report positions.

    Parses growing prefixes of the file until the value appears. The lines added last start with the value, because a
    prefix that ends inside a value cannot be parsed.
    """
    lines, without = text.splitlines(keepends=True), 0
    for end in range(1, len(lines) + 1):
        try:
            node: Any = tomllib.loads("".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue
        try:
            for step in steps:
                node = node[step]
        except (KeyError, IndexError):
            without = end
            continue
        return without + 1
    return 1
