"""Declarations of a configuration's fields, from which command line, files, environment and docs are derived.

limit: int | None = ASK("--limit N", "Number of questions.", None, identity=NOT_IDENTITY, at_least=1)

for option_field in option_fields(RunConfig):
    option_field.option.name, option_field.type, option_field.default
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache, cached_property
from typing import Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

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
# Notation of a value if its type does not determine it: `A,B` is a list in one word, `GB` a number of gigabytes for a
# field in bytes.
Form = Literal["", "address", "device", "solver", "existing file", "A,B", "GB"]

# Groups of solvers: all, those that ask a model, that may call tools, or that offer tools to a model.
Concern = Literal["all", "model", "tools", "tools_offered"]


@dataclass(frozen=True)
class AffectsRunId:
    """Marks an option that distinguishes runs, with its key in the identity."""

    # Key of the fact that the option is resolved to; empty if its own value is stored under its own name.
    key: str = ""
    # Whether only values other than the default count, so that older runs keep their identity.
    only_if_set: bool = False
    # The solvers whose answers the option can change.
    of: Concern = "all"


IDENTITY: Final = AffectsRunId()
IDENTITY_OF_MODEL: Final = AffectsRunId("model", of="model")
# Marks an option whose effect is recorded with each affected solver.
IDENTITY_OF_SOLVERS: Final = "solvers"
# Marks an option that may change when a run is resumed.
NOT_IDENTITY: Final = "no"
# None for a field inside a group of options: the mark is on the field that contains the group.
Identity = AffectsRunId | Literal["solvers", "no"] | None


@dataclass(frozen=True)
class Option:
    """The names and forms under which a field can be set from outside."""

    # The option's flag, such as `--max-turns`; its key if it has a `parent`.
    name: str
    # `--help` shows the first sentence.
    help: str = ""
    group: Group = "ask"
    # Whether `--help` lists the option: in every command, or only in `hybrid run`; `--help-all` lists all.
    common: bool | Literal["run"] = False
    # Another name: `-o`.
    short: str = ""
    metavar: str = ""
    at_least: float | None = None
    form: Form = ""
    # The environment variable that sets its default.
    variable: str = ""
    about_variable: str = ""
    # Whether a manifest records it among the options of a run. An option for one command only is left out, so that
    # `--config RUN` derives a new folder, and does not send data to a trace collector unless asked to.
    in_manifest: bool = True
    # Types that Python code may pass in addition to a name: `BaseChatModel`.
    python_type: str = ""
    # The option whose KEY=VALUE words contain this option.
    parent: Parent = ""
    # The word for None in a setting.
    unset: str = ""

    @cached_property
    def key(self) -> str:
        """The option's name as an identifier: `max_turns`."""
        return self.long.replace("-", "_")

    @cached_property
    def long(self) -> str:
        """The name without dashes, as in a file: `max-turns`."""
        return self.name.removeprefix("--")


T = TypeVar("T")


def declare(option: Option, default: T, identity: Identity) -> T:
    """Return the dataclass field of an option, typed as its value."""
    metadata = {"option": option, "identity": identity}
    if isinstance(default, dict):
        return field(default_factory=lambda: cast(T, default.copy()), metadata=metadata)
    return field(default=default, metadata=metadata)


def part(factory: Callable[[], T], *, identity: Identity, options: Mapping[str, Option] | None = None) -> T:
    """Return the dataclass field of a part of the configuration that is not a single option, typed as its value.

    Args:
        factory: makes the default.
        identity: what the part contributes to the identity of a run.
        options: for a group of options, those that replace its fields' own; None keeps the fields' own options.
    """
    return field(default_factory=factory, metadata={"option": options, "identity": identity})


@dataclass(frozen=True)
class OptionGroup:
    """Declares options under one heading: `LIMITS("--max-turns N", "Model calls per prompt.", 8, at_least=1)`."""

    name: Group

    def __call__(self, words: str, text: str, default: T, *, identity: Identity = None, **more: Any) -> T:
        """Declare an option from its notation on the command line, such as `-o --out DIR`, and its help text.

        `more` are fields of `Option`.
        """
        names = [word for word in words.split() if word.startswith("-")]
        metavar = words.removeprefix(" ".join(names)).strip()
        option = Option(names[-1], text, self.name, short="".join(names[:-1]), metavar=metavar, **more)
        return declare(option, default, identity)


ASK: Final = OptionGroup("ask")
MODEL: Final = OptionGroup("model")
TOOLS: Final = OptionGroup("tools")
LIMITS: Final = OptionGroup("limits")
OUTPUT: Final = OptionGroup("output")


def setting(words: str, text: str, default: T, *, identity: Identity = None, **more: Any) -> T:
    """Declare an option that is a key of `--setting KEY=VALUE`; `words` is `KEY` or `KEY METAVAR`."""
    return declare(setting_option(words, text, **more), default, identity)


def setting_option(words: str, text: str, **more: Any) -> Option:
    """Return the option of a key of `--setting`."""
    key, _, metavar = words.partition(" ")
    return Option(key, text, parent="--setting", metavar=metavar, **more)


def model_arg(key: str, default: T, *, identity: Identity = None, at_least: float | None = None) -> T:
    """Declare an option that is a key of `--model-arg KEY=VALUE`."""
    return declare(Option(key, parent="--model-arg", at_least=at_least), default, identity)


@dataclass(frozen=True)
class OptionField:
    """A field with an option, in the configuration or in one of its groups."""

    path: tuple[str, ...]
    option: Option
    # The type without `None`; `optional` tells whether None is allowed.
    type: Any
    optional: bool
    default: Any
    # The mark of the field, or of the part of the configuration that it is in.
    identity: Identity = None

    @cached_property
    def can_vary(self) -> bool:
        """Whether a list of values in a file starts one run per value: only if the option distinguishes runs."""
        return self.option.in_manifest and self.identity not in (None, NOT_IDENTITY)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The values of a `Literal` type, or of a list of literals; empty for any other type."""
        kind = self.item_type
        return get_args(kind) if get_origin(kind) is Literal else ()

    @cached_property
    def item_type(self) -> Any:
        """The type of a single value; for a list, of an item."""
        return get_args(self.type)[0] if self.is_many else self.type

    @cached_property
    def is_pairs(self) -> bool:
        """Whether the value is a mapping, written as KEY=VALUE words."""
        return get_origin(self.type) is Mapping

    @cached_property
    def is_keyless(self) -> bool:
        """Whether the key of a KEY=VALUE word may be left out, as in `--weights [TOOL=]DIR`."""
        return self.is_pairs and self.option.metavar.startswith("[")

    @cached_property
    def is_many(self) -> bool:
        """Whether the option takes several values."""
        return get_origin(self.type) is tuple

    @cached_property
    def is_negative(self) -> bool:
        """Whether the option's flag disables: `--no-cache` sets `cache` to False."""
        return self.option.name.startswith("--no-")

    @cached_property
    def is_switch(self) -> bool:
        """Whether the option is set with the words `on` and `off`, because it is on by default."""
        return self.type is bool and self.default is True and not self.is_negative

    @cached_property
    def is_flag(self) -> bool:
        """Whether the option is set without a value."""
        return self.type is bool and not self.is_switch

    @cached_property
    def is_repeated(self) -> bool:
        """Whether the option may be given several times."""
        return self.is_pairs or (self.is_many and self.option.form != "A,B")

    @cached_property
    def is_listed(self) -> bool:
        """Whether the option may be given several times, and accepts several values in one word."""
        return self.is_many and self.option.metavar == "A,B" and self.option.form != "A,B"


def option_fields(config: type, parent: Parent = "") -> tuple[OptionField, ...]:
    """Return the options of a configuration class in the order of its fields, or those of a parent option."""
    return tuple(option_field for option_field in _all_fields(config) if option_field.option.parent == parent)


@cache
def _all_fields(config: type) -> tuple[OptionField, ...]:
    return tuple(_walk(config))


def _walk(
    group: type,
    above: tuple[str, ...] = (),
    defaults: object = None,
    overrides: Any = None,
    group_identity: Identity = None,
) -> Iterator[OptionField]:
    """Yield the options of a group and of the groups in it.

    Args:
        group: a dataclass.
        above: names of the fields that contain the group.
        defaults: the default value of the group in its container.
        overrides: options that replace those of the group's fields in this container; None keeps the fields' own.
        group_identity: the mark of the field that contains the group.
    """
    hints = get_type_hints(group)
    for part in fields(group):
        hint, path, option = hints[part.name], (*above, part.name), part.metadata.get("option")
        identity: Identity = part.metadata.get("identity") or group_identity
        if defaults is not None:
            default = getattr(defaults, part.name)
        else:
            default = part.default if part.default_factory is MISSING else part.default_factory()
        if isinstance(hint, type) and is_dataclass(hint):
            yield from _walk(hint, path, default, option, identity)
            continue
        option = option if overrides is None else overrides.get(part.name)
        if option is not None:
            of_union = get_origin(hint) in (Union, types.UnionType)
            kinds = [kind for kind in get_args(hint) if kind is not types.NoneType] if of_union else [hint]
            yield OptionField(path, option, kinds[0], types.NoneType in get_args(hint), default, identity)


def check_values(group: Any) -> None:
    """Raise `UsageError` if a value in a group of options is below its option's minimum or not among its words."""
    kind: type = type(group)
    for option_field in _all_fields(kind):
        option, value = option_field.option, getattr(group, option_field.path[0])
        least, words = option.at_least, option_field.words
        if least is not None and value is not None and not value >= least:
            raise UsageError(f"--{option.long.replace('_', '-')} {value}: must be at least {least:g}")
        if words and value not in words:
            written = f"{option.parent} {option.name}={value}" if option.parent else f"{option.name} {value}"
            raise UsageError(f"{written}: choose {', '.join(words)}")


def nested(values: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    """Convert values by path to nested mappings: `{("limits", "turns"): 3}` becomes `{"limits": {"turns": 3}}`."""
    fields: dict[str, Any] = {}
    for path, value in values.items():
        inner = fields
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        inner[path[-1]] = value
    return fields
