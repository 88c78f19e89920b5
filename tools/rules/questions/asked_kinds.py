"""The things that a question can ask of these rules, as values."""

from __future__ import annotations

from typing import Literal, NamedTuple

from tools.relation.relation_names import RelationName
from tools.rules.questions.things import Thing
from tools.rules.questions.values import Attribute, Part

NearestForm = Literal["nearest", "farthest", "nearer than", "farther than", "nearer or farther"]


class Exists(NamedTuple):
    """Whether there is a thing of that name."""

    name: str


class Counted(NamedTuple):
    """How many things of that name there are."""

    name: str


class Nearest(NamedTuple):
    """Which of some things is nearest to the camera or farthest; of two whether the first is nearer, or farther."""

    things: tuple[Thing, ...]
    form: NearestForm
    # The choice of each thing, or of "nearer" and "farther"; empty where yes or no is asked.
    places: tuple[int, ...] = ()


class Related(NamedTuple):
    """Which relation one thing is in to another, or whether it is in this one."""

    subject: Thing
    reference: Thing
    # The relation of a question for yes or no.
    relation: RelationName | None = None
    # The relation of each choice.
    options: tuple[RelationName, ...] = ()


class Placed(NamedTuple):
    """Which part of the picture a thing lies in, or whether it lies in this one."""

    thing: Thing
    part: Part | None = None
    options: tuple[Part, ...] = ()


class Described(NamedTuple):
    """Which value of an attribute a thing has: of each choice its value."""

    thing: Thing
    attribute: Attribute
    values: tuple[str, ...]


class Written(NamedTuple):
    """Which choice is written in the picture."""


Asked = Exists | Counted | Nearest | Related | Placed | Described | Written
