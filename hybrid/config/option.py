"""Declarations of the fields of a configuration, from which command line, files, environment and docs are made.

limit: Annotated[int | None, NOT_IDENTITY, option("--limit")] = None        # the words of "--limit" are in options.toml

for field in option_fields(RunConfig):
    field.option.name, field.type, field.default
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from hybrid.core.errors import UsageError
from hybrid.core.toml_records import read_card

Group = Literal["ask", "model", "tools", "limits", "output"]
# The headings under which options are listed.
GROUPS: Final[Mapping[Group, str]] = {
    "ask": "What to ask",
    "model": "Which model",
    "tools": "Which tools",
    "limits": "Limits",
    "output": "Output",
}
Parent = Literal["", "--setting", "--model-arg"]
# How a value is written on the command line where its type does not say so: `on|off` is a word for a bool, `no` a flag
# that switches off, `A,B` a list in one word, `GB` a number of gigabytes for a field in bytes.
Form = Literal["", "address", "device", "solver", "existing file", "amount", "on|off", "no", "A,B", "GB"]

# Solvers: all of them, those that ask a model, that may call tools, or that offer tools to a model.
Concern = Literal["all", "model", "tools", "tools_offered"]


@dataclass(frozen=True)
class InIdentity:
    """Marks an option that makes two runs different, with the key of the identity that it decides."""

    # Of the fact that was resolved from it; empty where the value itself stands under the option's own name.
    key: str = ""
    # Whether only another value than the default counts, so that older runs keep their identity.
    if_given: bool = False
    # The solvers whose answers it can change.
    of: Concern = "all"


IDENTITY: Final = InIdentity()
IDENTITY_OF_MODEL: Final = InIdentity("model", of="model")
# Marks an option whose effect is recorded with each solver that it concerns.
IDENTITY_OF_SOLVERS: Final = "solvers"
# Marks an option that may change when a run is continued.
NOT_IDENTITY: Final = None


@dataclass(frozen=True)
class Option:
    """How one field is given from outside."""

    # `--max-turns`; a key where it belongs to a `parent`.
    name: str
    # The first sentence is what `--help` shows.
    help: str = ""
    group: Group = "ask"
    # Whether plain `--help` lists it; the others are under `--help-all`.
    common: bool = False
    # A second name of one letter: `-o`.
    short: str = ""
    metavar: str = ""
    at_least: float | None = None
    form: Form = ""
    # The environment variable that holds its default.
    variable: str = ""
    about_variable: str = ""
    # Whether a manifest records it among the options of a run.
    kept: bool = True
    # The option whose KEY=VALUE words hold it.
    parent: Parent = ""
    # The values of a setting in words, where its type does not list them.
    values: tuple[str, ...] = ()
    # A regular expression of a setting's values.
    pattern: str | None = None
    # The word of a setting for None.
    unset: str = ""

    @property
    def key(self) -> str:
        """The name as an identifier: `max_turns`."""
        return self.name.removeprefix("--").replace("-", "_")

    @property
    def brief(self) -> str:
        """The first sentence of the help."""
        return self.help.partition(". ")[0].rstrip(".")


@dataclass(frozen=True)
class _Words:
    option: tuple[Option, ...]


_WORDS: Final = read_card(Path(__file__).with_name("options.toml"), _Words)
_BY_NAME: Final = {(word.parent, word.name): word for word in _WORDS.option}


def option(name: str, parent: Parent = "") -> Option:
    """The option whose words `options.toml` has. Raises `KeyError` for one that is not there."""
    return _BY_NAME[parent, name]


@dataclass(frozen=True)
class SubOptions:
    """On a field that holds a group of options: the fields of the group that have an option here, and which."""

    options: Mapping[str, Option]


@dataclass(frozen=True)
class OptionField:
    """A field with an option, in the configuration or in one of its groups."""

    path: tuple[str, ...]
    option: Option
    # Without `None`, which `optional` says.
    type: Any
    optional: bool
    default: Any
    # Whether it can make two runs different.
    counts: bool

    @property
    def words(self) -> tuple[str, ...]:
        """The values of a `Literal`; empty for any other type."""
        return get_args(self.type) if get_origin(self.type) is Literal else ()

    @property
    def is_pairs(self) -> bool:
        """Whether it is a mapping, written as KEY=VALUE words."""
        return get_origin(self.type) is not None and issubclass(_class(self.type), Mapping)

    @property
    def is_many(self) -> bool:
        """Whether it holds several values."""
        return _class(self.type) is tuple


def option_fields(config: type, parent: Parent = "") -> tuple[OptionField, ...]:
    """The options of a configuration class in the order of its fields, or those that belong to another option."""
    return tuple(field for field in _all_fields(config) if field.option.parent == parent)


@cache
def _all_fields(config: type) -> tuple[OptionField, ...]:
    return tuple(_walk(config, (), None, None, counts=False))


def _walk(
    group: type, above: tuple[str, ...], only: Mapping[str, Option] | None, defaults: object, *, counts: bool
) -> Iterator[OptionField]:
    hints = get_type_hints(group, include_extras=True)
    for group_field in fields(group):
        hint = hints[group_field.name]
        marks = getattr(hint, "__metadata__", ())
        bare = get_args(hint)[0] if marks else hint
        path = (*above, group_field.name)
        default = None if group_field.default is MISSING else group_field.default
        if defaults is not None:
            default = getattr(defaults, group_field.name)
        elif group_field.default_factory is not MISSING:
            default = group_field.default_factory()
        affects_identity = counts or IDENTITY_OF_SOLVERS in marks or any(isinstance(mark, InIdentity) for mark in marks)
        if is_dataclass(bare) and isinstance(bare, type):
            renamed = next((mark.options for mark in marks if isinstance(mark, SubOptions)), None)
            yield from _walk(bare, path, renamed, default, counts=affects_identity)
            continue
        options = [mark for mark in marks if isinstance(mark, Option)] if only is None else [only.get(group_field.name)]
        kind, optional = bare, False
        if get_origin(bare) in (Union, types.UnionType):
            parts = [part for part in get_args(bare) if part is not types.NoneType]
            kind, optional = parts[0], len(parts) < len(get_args(bare))
        for option in options:
            if option is not None:
                yield OptionField(path, option, kind, optional, default, affects_identity)


def _class(hint: Any) -> type:
    kind = get_origin(hint) or hint
    return kind if isinstance(kind, type) else object


def refuse_too_small(group: Any) -> None:
    """Raise `UsageError` for a value of a group of options below the least that its option takes."""
    kind: type = type(group)
    for field in _all_fields(kind):
        least, value = field.option.at_least, getattr(group, field.path[0])
        if least is not None and value is not None and not value >= least:
            name = f"--{field.option.name.removeprefix('--').replace('_', '-')}"
            raise UsageError(f"{name} {value}: must be at least {least:g}")


def nested(values: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    """Values by path as nested mappings: `{("limits", "turns"): 3}` becomes `{"limits": {"turns": 3}}`."""
    fields: dict[str, Any] = {}
    for path, value in values.items():
        inner = fields
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        inner[path[-1]] = value
    return fields


def is_path(field: OptionField) -> bool:
    """Whether the value is a path."""
    return _class(field.type) is Path
