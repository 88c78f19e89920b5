"""Declarations of a configuration's fields, from which command line, files, environment and docs are derived.

limit: Annotated[int | None, NOT_IDENTITY, ASK("--limit N", "Number of questions.", at_least=1)] = None

for field in option_fields(RunConfig):
    field.option.name, field.type, field.default
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from hybrid.core.errors import UsageError

Group = Literal["ask", "model", "tools", "limits", "output"]
# Headings for lists of options.
GROUPS: Final[Mapping[Group, str]] = {
    "ask": "What to ask",
    "model": "Which model",
    "tools": "Which tools",
    "limits": "Limits",
    "output": "Output",
}
Parent = Literal["", "--setting", "--model-arg"]
# Notation of a value on the command line if its type does not determine it: `on|off` is a word for a bool, `no` a flag
# that disables, `A,B` a list in one word, `GB` a number of gigabytes for a field in bytes.
Form = Literal["", "address", "device", "solver", "existing file", "amount", "on|off", "no", "A,B", "GB"]

# Groups of solvers: all, those that ask a model, that may call tools, or that offer tools to a model.
Concern = Literal["all", "model", "tools", "tools_offered"]


@dataclass(frozen=True)
class AffectsRunId:
    """Marks an option that distinguishes runs, with its key in the identity."""

    # Key of the fact that the option is resolved to; empty if its own value is stored under its own name.
    key: str = ""
    # Whether only values other than the default count, so that older runs keep their identity.
    if_given: bool = False
    # The solvers whose answers the option can change.
    of: Concern = "all"


IDENTITY: Final = AffectsRunId()
IDENTITY_OF_MODEL: Final = AffectsRunId("model", of="model")
# Marks an option whose effect is recorded with each affected solver.
IDENTITY_OF_SOLVERS: Final = "solvers"
# Marks an option that may change when a run is resumed.
NOT_IDENTITY: Final = None


@dataclass(frozen=True)
class Option:
    """The names and forms under which a field can be set from outside."""

    # `--max-turns`, or a key if it has a `parent`.
    name: str
    # `--help` shows the first sentence.
    help: str = ""
    group: Group = "ask"
    # Whether `--help` lists the option: in every command, or only in `hybrid run`; `--help-all` lists all.
    common: bool | Literal["run"] = False
    # A short name: `-o`.
    short: str = ""
    metavar: str = ""
    at_least: float | None = None
    form: Form = ""
    # The environment variable that sets its default.
    variable: str = ""
    about_variable: str = ""
    # Whether a manifest records it among the options of a run.
    kept: bool = True
    # Whether a list of values in a file starts one run per value.
    varied: bool = True
    # Types that Python code may pass in addition to a name: `BaseChatModel`.
    python_type: str = ""
    # The option whose KEY=VALUE words contain it.
    parent: Parent = ""
    # Description of a setting's values, if its type does not list them.
    values: tuple[str, ...] = ()
    # Regular expression for a setting's values.
    pattern: str | None = None
    # The word for None in a setting.
    unset: str = ""

    @property
    def key(self) -> str:
        """The option's name as an identifier: `max_turns`."""
        return self.long.replace("-", "_")

    @property
    def long(self) -> str:
        """The name without dashes, as in a file: `max-turns`."""
        return self.name.removeprefix("--")

    @property
    def brief(self) -> str:
        """The first sentence of the help."""
        return self.help.partition(". ")[0].rstrip(".")


def option(group: Group, words: str, text: str, **more: Any) -> Option:
    """Return an option from its notation on the command line, such as `-o --out DIR`, and its help text.

    `more` are fields of `Option`.
    """
    names = [word for word in words.split() if word.startswith("-")]
    metavar = words.removeprefix(" ".join(names)).strip()
    return Option(names[-1], text, group, short="".join(names[:-1]), metavar=metavar, **more)


ASK: Final = partial(option, "ask")
MODEL: Final = partial(option, "model")
TOOLS: Final = partial(option, "tools")
LIMITS: Final = partial(option, "limits")
OUTPUT: Final = partial(option, "output")


def setting(key: str, text: str, **more: Any) -> Option:
    """Return an option that is a key of `--setting KEY=VALUE`."""
    return Option(key, text, parent="--setting", **more)


def model_arg(key: str, **more: Any) -> Option:
    """Return an option that is a key of `--model-arg KEY=VALUE`."""
    return Option(key, parent="--model-arg", **more)


@dataclass(frozen=True)
class SubOptions:
    """Marks a field that holds a group of options: which fields of the group have an option here, and its notation."""

    options: Mapping[str, Option]


@dataclass(frozen=True)
class OptionField:
    """A field with an option, in the configuration or in one of its groups."""

    path: tuple[str, ...]
    option: Option
    # The type without `None`; `optional` tells whether None is allowed.
    type: Any
    optional: bool
    default: Any
    # Whether it can distinguish runs.
    counts: bool

    @property
    def words(self) -> tuple[str, ...]:
        """The values of a `Literal` type, or of a list of literals; empty for any other type."""
        kind = self.item_type
        return get_args(kind) if get_origin(kind) is Literal else ()

    @property
    def item_type(self) -> Any:
        """The type of a single value; for a list, of an item."""
        return get_args(self.type)[0] if self.is_many else self.type

    @property
    def noun(self) -> str:
        """The kind of the option's values, for messages."""
        if self.option.form in ("amount", "GB"):
            return "float"
        if is_path(self):
            return "path"
        if self.type is int:
            return "integer" if self.option.at_least is None else "integer range"
        return "text"

    @property
    def is_pairs(self) -> bool:
        """Whether it is a mapping, written as KEY=VALUE words."""
        return get_origin(self.type) is not None and issubclass(_class(self.type), Mapping)

    @property
    def is_keyless(self) -> bool:
        """Whether the key of a KEY=VALUE word may be left out, as in `--weights [TOOL=]DIR`."""
        return self.is_pairs and self.option.metavar.startswith("[")

    @property
    def is_many(self) -> bool:
        """Whether it has several values."""
        return _class(self.type) is tuple

    @property
    def is_flag(self) -> bool:
        """Whether it is set without a value."""
        return self.type is bool and self.option.form != "on|off"

    @property
    def is_repeated(self) -> bool:
        """Whether the option may be given several times."""
        return self.is_pairs or (self.is_many and self.option.form != "A,B")

    @property
    def is_listed(self) -> bool:
        """Whether the option may be given several times, and accepts several values in one word."""
        return self.is_many and self.option.metavar == "A,B" and self.option.form != "A,B"


def option_fields(config: type, parent: Parent = "") -> tuple[OptionField, ...]:
    """Return the options of a configuration class in the order of its fields, or those of a parent option."""
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
        affects_identity = (
            counts or IDENTITY_OF_SOLVERS in marks or any(isinstance(mark, AffectsRunId) for mark in marks)
        )
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
    """Raise `UsageError` for a value in a group of options below the option's minimum."""
    kind: type = type(group)
    for field in _all_fields(kind):
        least, value = field.option.at_least, getattr(group, field.path[0])
        if least is not None and value is not None and not value >= least:
            name = f"--{field.option.long.replace('_', '-')}"
            raise UsageError(f"{name} {value}: must be at least {least:g}")


def nested(values: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    """Convert values by path to nested mappings: `{("limits", "turns"): 3}` becomes `{"limits": {"turns": 3}}`."""
    fields: dict[str, Any] = {}
    for path, value in values.items():
        inner = fields
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        inner[path[-1]] = value
    return fields


def is_path(field: OptionField) -> bool:
    """Return whether its values are paths."""
    return field.item_type is Path
