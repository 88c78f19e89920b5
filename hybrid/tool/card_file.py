"""The card of a tool as a file: `card.toml` beside its `__init__.py`, or `NAME.toml` beside its `NAME.py`.

    TOOL = Tool(card=tool_card(__file__, DepthCues, LearnedDepth), args=DepthArgs)      # make = "DepthCues"

`provenances` may name a family from `_shared/provenances.toml`, which is in the folder of the tools.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from hybrid.core.toml_records import read_card
from hybrid.tool import Card, Provenance

FAMILIES = Path("_shared", "provenances.toml")


def tool_card(module: str, *code: Callable[..., Any]) -> Card:
    """Return the card of a tool, read from the card file next to its module.

    Args:
        module: its `__file__`.
        code: the classes and functions that the card names.

    Raises:
        DataError: the card cannot be read or does not fit; it names the file, the line and the key.
    """
    from hybrid.tool.backends import Learned

    by_name = {**families_of(Path(module)), **{definition.__name__: definition for definition in code}}
    card = read_card(card_file(Path(module)), Card, by_name)
    for backend in card.backends:
        if isinstance(backend.make, type) and issubclass(backend.make, Learned):
            backend.make.identity = (card.name, backend.version, backend.weights)
    return card


def card_file(module: Path) -> Path:
    """Return the path of a tool's card file, derived from the file of its module; the card file need not exist."""
    return module.with_name("card.toml") if module.name == "__init__.py" else module.with_suffix(".toml")


def card_alone(module: Path) -> Card | None:
    """Return the card of a tool without importing the tool; None if it has no card file.

    Every reference to code in the card is replaced by the function `elsewhere`, which raises an error.

    Raises:
        DataError: as for `tool_card`.
    """
    file = card_file(module)
    return read_card(file, Card, CodeElsewhere(families_of(module))) if file.is_file() else None


def families_of(module: Path) -> Mapping[str, tuple[Provenance, ...]]:
    """Return the families of weights that several of the tools in one folder load."""
    tools = module.parents[1] if module.name == "__init__.py" else module.parent
    if not (file := tools / FAMILIES).is_file():
        return {}
    return read_card(file, Mapping[str, tuple[Provenance, ...]])  # type: ignore[type-abstract]


class CodeElsewhere(dict[str, Any]):
    """Maps every name that it does not contain to `elsewhere`.

    The code with this name is in another process, or in a module that is not imported.
    """

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> Callable[..., NoReturn]:
        return elsewhere


def elsewhere(*_: object) -> NoReturn:
    """Raise an error. This function stands in for code that cannot be called in this process."""
    raise RuntimeError("the code of this tool only exists in the tools' worker process")
