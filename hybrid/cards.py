"""Facts in a TOML file beside the code, read into frozen dataclasses whose annotations say what fits.

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

from hybrid.errors import DataError, did_you_mean

T = TypeVar("T")
# The keys, and numbers in lists from 0, that lead to a value.
Steps = tuple[str | int, ...]

NO_CODE: Final[Mapping[str, object]] = MappingProxyType({})


def read_card(path: Path, kind: type[T], code: Mapping[str, object] = NO_CODE) -> T:
    """The dataclass that a file holds.

    Args:
        path: the file.
        kind: the dataclass.
        code: functions and classes by the name that the file says in a field whose type is no data.

    Raises:
        DataError: the file cannot be read or does not fit; it names the file, the line and the key.
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
    """The dataclass of data that came from elsewhere, as `as_data` gives it. Raises `DataError` that names the key."""
    try:
        result: T = Reader(code).read_value(kind, data)
    except ValueMismatch as error:
        raise DataError(_format_error(error)) from error
    return result


def as_data(value: Any) -> Any:
    """A dataclass as TOML and JSON hold it: code by its name, and no key for what is None."""
    if is_dataclass(value) and not isinstance(value, type):
        entries = {attribute.name: as_data(getattr(value, attribute.name)) for attribute in fields(value)}
        return {name: item for name, item in entries.items() if item is not None}
    if isinstance(value, Mapping):
        return {key: as_data(item) for key, item in value.items()}
    if isinstance(value, tuple | list | frozenset):
        return [as_data(item) for item in value]
    return getattr(value, "__name__", type(value).__name__) if callable(value) else value


class ValueMismatch(Exception):
    """Why a value does not fit; `steps` lead to it, which the text names itself where it is not `named`."""

    def __init__(self, steps: Steps, message: str, *, is_named: bool = True) -> None:
        super().__init__(message)
        self.steps, self.named = steps, is_named


def _format_error(error: ValueMismatch) -> str:
    path = ".".join(step for step in error.steps if isinstance(step, str))
    return f"{path}: {error}" if path else str(error)


class Reader:
    """Plain values -> what annotations say; those of another notation are read by a subclass.

    A field's metadata may hold a `check`, which takes its value and raises `ValueMismatch` with the steps from there.
    """

    def __init__(self, code: Mapping[str, object] = NO_CODE) -> None:
        self._code = code

    def read_value(self, kind: Any, value: Any, steps: Steps = ()) -> Any:
        """A value as its annotation says. Raises `ValueMismatch`."""
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
            # tuple[X, ...] holds many of one kind, tuple[X, Y] one of each.
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
            raise ValueMismatch(steps, f"{value!r:.60} names nothing that the code gives; there are: {names}")
        return self._code[value]

    def entries(self, kind: Any, value: Any, steps: Steps) -> tuple[Any, ...]:
        """The entries that one item of a list stands for: more than one where dataclasses share their facts."""
        hints = _hints(kind) if isinstance(kind, type) and is_dataclass(kind) else {}
        candidates = self._code.items() if isinstance(value, str) else ()
        shared = {name: item for name, item in candidates if isinstance(item, tuple)}
        if hints and shared:
            return shared[self.word(value, shared, steps)]
        # Sizes of one network differ in their name alone.
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
        """The last step is no key of a dataclass."""
        hint = did_you_mean(str(steps[-1]), names)
        return ValueMismatch(steps, f"{kind.__name__} has no such key{hint}; there are: {', '.join(names)}")

    def needs(self, kind: type, steps: Steps, name: str) -> ValueMismatch:
        """A key must be there."""
        return ValueMismatch(steps, f"{kind.__name__} needs {name}")

    def word(self, value: Any, words: Collection[object], steps: Steps) -> Any:
        """One of some words."""
        if value not in words:
            raise ValueMismatch(steps, f"{value!r:.60} is none of: {', '.join(map(str, words))}")
        return value

    def scalar(self, kind: type, value: Any, steps: Steps) -> Any:
        """A text, a number or a truth value."""
        # A truth value is an int to Python, and a whole number may stand where any number may.
        accepted = (int, float) if kind is float else kind
        if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
            raise ValueMismatch(steps, f"{value!r:.60} is not of type {kind.__name__}")
        return kind(value)

    def table(self, value: Any, steps: Steps) -> Mapping[str, Any]:
        """Values by their keys."""
        if not isinstance(value, dict):
            raise ValueMismatch(steps, f"{value!r:.60} is not a table")
        return value

    def items(self, value: Any, steps: Steps) -> Sequence[Any]:
        """Values one after the other."""
        if not isinstance(value, list):
            raise ValueMismatch(steps, f"{value!r:.60} is not a list")
        return value


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    """Evaluating annotations takes longer than reading a whole card."""
    return get_type_hints(kind)


def _line(text: str, steps: Steps) -> int:
    """The line, from 1, on which a value begins; tomllib tells no places.

    The first lines of the file that can be read alone grow until the value is among them. What they grew by begins
    with it, because lines in the middle of a value cannot be read alone.
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
