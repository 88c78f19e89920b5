"""The output of a tool with named values: `ToolOutput`, and subclasses that declare the types of their values.

    class Brightness(ToolOutput):
        brightness_0_1: float

    Brightness("Mean brightness: 0.50.", brightness_0_1=0.5).brightness_0_1        # 0.5
    Brightness.schema()          # the JSON schema of its data

Without a subclass, values are passed to `ToolOutput` by name. Numbers are counts, or their name ends with the unit
(`_px`, `_0_1`, `_deg`, `_m`; `hybrid/serving/contract.py` lists all).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, Self, get_type_hints

from hybrid.core.errors import ToolError, did_you_mean
from hybrid.core.types import Finding, Json
from hybrid.tool.base import Evidence, Picture

if TYPE_CHECKING:
    from pydantic import BaseModel

    from hybrid.core.types import Pixels

# Attributes of every output; no value can have these names.
RESERVED = frozenset({"confidence", "pictures", "data", "schema", "from_finding", "evidence"})


class ToolOutput:
    """The output of a tool: a text for models, values for rules and other tools, and pictures.

    Args:
        text: what a model reads, at most 6 lines and 450 characters.
        confidence: probability that it is right, 0..1.
        pictures: overlays, as arrays (H, W, 3) with the size of the first image, or as `hybrid.tool.Picture`s.
        values: numbers, texts, booleans, and lists and mappings of these; numpy types are converted.

    Raises:
        TypeError: a subclass gets undeclared values, too few values, or values of a wrong type.
    """

    def __init__(
        self,
        text: str,
        /,
        *,
        confidence: float = 1.0,
        pictures: Iterable[Picture | Pixels] = (),
        **values: Any,
    ) -> None:
        if not isinstance(text, str):
            raise TypeError(f"{type(self).__name__}: the first value is the text for models, not {text!r:.60}")
        self.text = text
        self.confidence = float(confidence)
        self.pictures = tuple(item if isinstance(item, Picture) else Picture(item) for item in pictures)
        self.data: Mapping[str, Json] = _checked(type(self), {key: plain_json(value) for key, value in values.items()})

    def __init_subclass__(cls) -> None:
        if conflicts := sorted(RESERVED & {*vars(cls).get("__annotations__", ())}):
            raise TypeError(f"{cls.__name__}: a value cannot be named {conflicts[0]!r}, which every output has")

    def __getattr__(self, name: str) -> Any:
        """Return the value of that name."""
        data: Mapping[str, Any] = self.__dict__.get("data", {})
        if name not in data:
            available = f"{did_you_mean(name, list(data))}; it has: {', '.join(data) or 'none'}" if data else ""
            raise AttributeError(f"{type(self).__name__} has no value {name!r}{available}")
        return data[name]

    def __repr__(self) -> str:
        values = "".join(f", {key}={value!r:.60}" for key, value in self.data.items())
        return f"{type(self).__name__}({self.text!r}, confidence={self.confidence:g}{values})"

    @property
    def evidence(self) -> Evidence:
        """The output as backends return it."""
        return Evidence(self.text, self.data, self.confidence, self.pictures)

    @classmethod
    def schema(cls) -> dict[str, Json] | None:
        """Return the JSON schema of the values; None if the class declares none."""
        return model_schema(model) if (model := _model(cls)) is not None else None

    @classmethod
    def from_finding(cls, finding: Finding, tool: str) -> Self:
        """Return the output of another tool, including values that the class does not declare.

        Raises:
            ToolError: the output lacks a value that the class names.
        """
        output = cls.__new__(cls)
        try:
            data = {**finding.data, **_checked(cls, finding.data, exact=False)}
        except TypeError as error:
            raise ToolError(f"{tool}: its output is not as expected: {error}") from error
        output.text, output.confidence, output.pictures = finding.text, finding.confidence, ()
        output.data = data
        return output


def plain_json(value: Any) -> Any:
    """Convert to plain JSON types: numpy values, tuples and dataclasses become numbers, lists and mappings."""
    # Some numpy numbers are also Python numbers.
    if hasattr(value, "dtype"):
        return value.tolist()
    if isinstance(value, str | int | float) or value is None:
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {name: plain_json(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, Mapping):
        return {str(key): plain_json(inner) for key, inner in value.items()}
    if isinstance(value, Sequence | set | frozenset):
        return [plain_json(inner) for inner in (sorted(value) if isinstance(value, set | frozenset) else value)]
    return value


def schema_of(annotation: Any) -> dict[str, Json]:
    """JSON schema of a subclass of `ToolOutput`, of a pydantic model, of a `TypedDict` or of a dataclass.

    Raises:
        TypeError: the class declares no fields.
    """
    if isinstance(annotation, type) and issubclass(annotation, ToolOutput):
        schema = annotation.schema()
        if schema is None:
            raise TypeError(
                f"{annotation.__name__} declares no fields: return a subclass of ToolOutput with fields, each written "
                "as NAME: TYPE"
            )
        return schema
    from pydantic import TypeAdapter

    return dict(_without_titles(TypeAdapter(annotation).json_schema()))


def _checked(kind: type[ToolOutput], values: Mapping[str, Json], *, exact: bool = True) -> dict[str, Any]:
    """Return the values of an output. Raises `TypeError` for unknown names and wrong types."""
    model = _model(kind)
    if model is None:
        if conflicts := sorted(RESERVED & {*values}):
            raise TypeError(f"a value cannot be named {conflicts[0]!r}, which every output has")
        return dict(values)
    names = list(model.model_fields)
    if exact and (extra := [name for name in values if name not in names]):
        hint = did_you_mean(extra[0], names)
        raise TypeError(f"{kind.__name__} has no value {extra[0]!r}{hint}; it has: {', '.join(names)}")
    from pydantic import ValidationError

    try:
        checked = model.model_validate({name: values[name] for name in names if name in values})
    except ValidationError as error:
        wrong = error.errors()[0]
        raise TypeError(f"{kind.__name__}, {'.'.join(map(str, wrong['loc']))}: {wrong['msg']}") from error
    return checked.model_dump(mode="json")


# The pydantic model of the values of each output class.
_MODELS: dict[type[ToolOutput], type[BaseModel] | None] = {}


def _model(kind: type[ToolOutput]) -> type[BaseModel] | None:
    """Return the pydantic model of the values that a class declares, or None if it declares none."""
    if kind not in _MODELS:
        _MODELS[kind] = _make_model(kind)
    return _MODELS[kind]


def _make_model(kind: type[ToolOutput]) -> type[BaseModel] | None:
    from pydantic import ConfigDict, create_model

    hints = get_type_hints(kind, include_extras=True)
    if not hints:
        return None
    fields: dict[str, Any] = {name: (hint, getattr(kind, name, ...)) for name, hint in hints.items()}
    return create_model(kind.__name__, __config__=ConfigDict(extra="forbid"), **fields)


def model_schema(model: type[BaseModel]) -> dict[str, Json]:
    """JSON schema of a pydantic model, without the titles that repeat its names."""
    return dict(_without_titles(model.model_json_schema(mode="serialization")))


def _without_titles(node: Any) -> Any:
    if isinstance(node, Mapping):
        has_title = isinstance(node.get("title"), str)
        return {key: _without_titles(value) for key, value in node.items() if not (has_title and key == "title")}
    return [_without_titles(item) for item in node] if isinstance(node, list) else node
