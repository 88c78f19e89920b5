"""Facts in a TOML file beside the code, read into frozen dataclasses whose annotations say what fits.

read_card(Path(__file__).with_name("card.toml"), BenchmarkCard)
read_card(Path(__file__).with_name("card.toml"), Card, {"Seams": Seams})     # make = "Seams"
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from hybrid.errors import DataError, did_you_mean

T = TypeVar("T")
Steps = tuple[str | int, ...]
"""The keys, and numbers in lists from 0, that lead to a value."""

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
        made: T = _made(kind, data, (), code)
    except _Unfit as error:
        raise DataError(f"{path}, line {_line(text, error.steps)}: {error}") from error
    return made


class _Unfit(Exception):
    def __init__(self, steps: Steps, said: str) -> None:
        named = ".".join(step for step in steps if isinstance(step, str))
        super().__init__(f"{named}: {said}" if named else said)
        self.steps = steps


def _made(kind: Any, value: Any, steps: Steps, code: Mapping[str, object]) -> Any:
    """A value of TOML as its annotation says."""
    origin, parts = get_origin(kind) or kind, get_args(kind)
    if origin in (Union, UnionType):
        # TOML has no null, so the key of an optional value is left out instead.
        (kind,) = (part for part in parts if part is not NoneType)
        return _made(kind, value, steps, code)
    if isinstance(origin, type) and issubclass(origin, Enum):
        return origin(_word(value, [each.value for each in origin], steps))
    if origin is Literal:
        return _word(value, parts, steps)
    if is_dataclass(origin):
        return _dataclass(origin, _checked(value, dict, "a table", steps), steps, code)
    if origin is Mapping:
        table = _checked(value, dict, "a table", steps)
        return {key: _made(parts[1], one, (*steps, key), code) for key, one in table.items()}
    if origin in (tuple, frozenset):
        items = _checked(value, list, "a list", steps)
        # tuple[X, ...] holds many of one kind, tuple[X, Y] one of each.
        kinds = parts if origin is tuple and parts[-1] is not ... else parts[:1] * len(items)
        if len(kinds) != len(items):
            raise _Unfit(steps, f"has {len(items)} entries, not {len(kinds)}")
        return origin(
            _made(of, one, (*steps, place), code) for place, (of, one) in enumerate(zip(kinds, items, strict=True))
        )
    if origin in (str, int, float, bool):
        return _scalar(origin, value, steps)
    if not isinstance(value, str) or value not in code:
        known = ", ".join(code) or "none"
        raise _Unfit(steps, f"{value!r:.60} names nothing that the code gives; there are: {known}")
    return code[value]


def _dataclass(kind: Any, table: Mapping[str, Any], steps: Steps, code: Mapping[str, object]) -> Any:
    hints = _hints(kind)
    known = {one.name: one for one in fields(kind) if one.init}
    for key in table:
        if key not in known:
            hint = did_you_mean(key, known)
            raise _Unfit((*steps, key), f"{kind.__name__} has no such key{hint}; there are: {', '.join(known)}")
    read = {key: _made(hints[key], one, (*steps, key), code) for key, one in table.items()}
    for name, one in known.items():
        if name not in read and one.default is MISSING and one.default_factory is MISSING:
            if NoneType not in get_args(hints[name]):
                raise _Unfit(steps, f"{kind.__name__} needs {name}")
            read[name] = None
    return kind(**read)


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    """Evaluating annotations takes longer than reading a whole card."""
    return get_type_hints(kind)


def _word(value: Any, words: Collection[object], steps: Steps) -> Any:
    if value not in words:
        raise _Unfit(steps, f"{value!r:.60} is none of: {', '.join(map(str, words))}")
    return value


def _scalar(kind: type, value: Any, steps: Steps) -> Any:
    # A truth value is an int to Python, and a whole number may stand where any number may.
    accepted = (int, float) if kind is float else kind
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise _Unfit(steps, f"{value!r:.60} is not of type {kind.__name__}")
    return kind(value)


def _checked(value: Any, kind: type, name: str, steps: Steps) -> Any:
    if not isinstance(value, kind):
        raise _Unfit(steps, f"{value!r:.60} is not {name}")
    return value


def _line(text: str, steps: Steps) -> int:
    """The line, from 1, on which a value begins; tomllib tells no places.

    The first lines of the file that can be read alone grow until the value is among them. What they grew by begins
    with it, because lines in the middle of a value cannot be read alone.
    """
    lines, without = text.splitlines(keepends=True), 0
    for end in range(1, len(lines) + 1):
        try:
            found: Any = tomllib.loads("".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue
        try:
            for step in steps:
                found = found[step]
        except (KeyError, IndexError):
            without = end
            continue
        return without + 1
    return 1
