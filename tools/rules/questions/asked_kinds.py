"""The things that a question can ask of these rules, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tools.relation.relation_names import RelationName
from tools.rules.questions.things import Thing
from tools.rules.questions.values import Attribute, Part

NearestForm = Literal["nearest", "farthest", "nearer than", "farther than", "nearer or farther"]


@dataclass(frozen=True)
class Exists:
    """Whether there is a thing of that name."""

    name: str


@dataclass(frozen=True)
class Counted:
    """How many things of that name there are."""

    name: str


@dataclass(frozen=True)
class Nearest:
    """Which of some things is nearest to the camera or farthest; of two whether the first is nearer, or farther."""

    things: tuple[Thing, ...]
    form: NearestForm
    places: tuple[int, ...] = ()
    """The choice of each thing, or of "nearer" and "farther"; empty where yes or no is asked."""


@dataclass(frozen=True)
class Related:
    """Which relation one thing is in to another, or whether it is in this one."""

    subject: Thing
    reference: Thing
    relation: RelationName | None = None
    """The relation of a question for yes or no."""
    options: tuple[RelationName, ...] = ()
    """The relation of each choice."""


@dataclass(frozen=True)
class Placed:
    """Which part of the picture a thing lies in, or whether it lies in this one."""

    thing: Thing
    part: Part | None = None
    options: tuple[Part, ...] = ()


@dataclass(frozen=True)
class Described:
    """Which value of an attribute a thing has: of each choice its value."""

    thing: Thing
    attribute: Attribute
    values: tuple[str, ...]


@dataclass(frozen=True)
class Written:
    """Which choice is written in the picture."""


Asked = Exists | Counted | Nearest | Related | Placed | Described | Written
