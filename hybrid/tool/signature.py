"""The signature of a tool that is a function (`@tool`): images, arguments, needed outputs and descriptions.

Parameters of the function by their type:

- `Image` is an image (H, W, 3) of 8 bits; the number of images of a call is the number of these parameters, and those
  that may be None can be left out. `list[Image]` and `*images: Image` take 1 to `MOST_IMAGES`; pydantic's
  `Field(min_length=2, max_length=4)` in `Annotated` sets other limits.
- `ToolOutput`, or a subclass, is the output about the image from the tool that has the parameter's name;
  `list[ToolOutput]` has one output for each image. `Annotated[ToolOutput, {"points": []}]` gives that tool arguments;
  `Annotated[ToolOutput, Need("depth", ARGS)]` derives them from the function's own.
- `seed: int` is the seed of the question.
- Any other parameter is an argument for the model, which pydantic checks; its description is a text in `Annotated`, or
  its line under `Args:` in the docstring.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from hybrid.core.errors import ToolError
from hybrid.core.types import Json
from hybrid.tool.args import Args
from hybrid.tool.base import Evidence, Need, Request
from hybrid.tool.outputs import ToolOutput

if TYPE_CHECKING:
    from typing import TypeAlias

    from hybrid.core.types import Pixels

    Image: TypeAlias = Pixels
else:

    class Image:
        """The type of a parameter that is an image: an array (H, W, 3) of 8 bits, RGB."""


# Maximum number of images in a call of a function that takes a list of them.
MOST_IMAGES: Final = 16


@dataclass(frozen=True)
class ImageParameter:
    """A parameter that takes images."""

    name: str
    # Whether the parameter takes all further images.
    several: bool = False
    optional: bool = False
    star: bool = False


@dataclass(frozen=True)
class NeedParameter:
    """A parameter that takes the output of another tool."""

    name: str
    tool: str
    kind: type[ToolOutput]
    several: bool


@dataclass(frozen=True)
class CallPlan:
    """How the parameters of a function are filled from a request."""

    function: Callable[..., Any]
    images: tuple[ImageParameter, ...]
    needs: tuple[NeedParameter, ...]
    args: tuple[str, ...]
    seeded: bool

    def call(self, request: Request[Any]) -> Evidence:
        """Return the evidence for one request. Raises `ToolError` if the function returns no valid output."""
        values: dict[str, Any] = {name: getattr(request.args, name) for name in self.args}
        stars: Sequence[Pixels] = ()
        remaining = list(request.images)
        for parameter in self.images:
            if parameter.several:
                if parameter.star:
                    stars = remaining
                else:
                    values[parameter.name] = remaining
                break
            values[parameter.name] = remaining.pop(0) if remaining else None
        for need in self.needs:
            outputs = [need.kind.from_finding(finding, need.tool) for finding in request.needs.get(need.tool, ())]
            if not need.several and not outputs:
                raise ToolError(f"{self.function.__name__}: the output of {need.tool} is missing")
            values[need.name] = outputs if need.several else outputs[0]
        if self.seeded:
            values["seed"] = request.seed
        # Images before `*images` are passed by position.
        leading = [values.pop(parameter.name) for parameter in self.images if stars and not parameter.several]
        output = self.function(*leading, *stars, **values)
        if isinstance(output, ToolOutput):
            return output.evidence
        if isinstance(output, Evidence):
            return output
        name = self.function.__name__
        raise TypeError(f"{name} must return ToolOutput(TEXT, KEY=VALUE, ...), but returns a {type(output).__name__}")


def read_docstring(function: Callable[..., Any]) -> tuple[str, str, dict[str, str]]:
    """Return the first line of a docstring, its second paragraph, and the descriptions under `Args:` by name."""
    text = inspect.cleandoc(function.__doc__ or "")
    body, _, section = text.partition("\nArgs:")
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", body)]
    second = paragraphs[1] if len(paragraphs) > 1 and not re.match(r"(Returns|Raises|Yields):", paragraphs[1]) else ""
    described: dict[str, str] = {}
    current = ""
    indent = ""
    for line in section.splitlines():
        if line and not line[0].isspace():
            break
        if match := re.match(r"(\s+)\*{0,2}(\w+)(?: \([^)]*\))?:\s*(.*)", line):
            indent = indent or match[1]
            if match[1] == indent:
                current = match[2]
                described[current] = match[3].strip()
                continue
        if current and line.strip():
            described[current] = f"{described[current]} {line.strip()}".strip()
    return paragraphs[0], second, described


def type_hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of the parameters. Raises `TypeError` for a type that cannot be read."""
    # Names in a notebook's cell or a test may be local.
    names = {**inspect.getclosurevars(function).nonlocals}
    try:
        return get_type_hints(function, localns=names, include_extras=True)
    except NameError as error:
        users = (part for part, kind in function.__annotations__.items() if error.name in re.findall(r"\w+", str(kind)))
        parameter = next(users, "a parameter")
        raise TypeError(
            f"{function.__name__}: the type of {parameter} is not known: {error}; import it at the top of the file, "
            "not under TYPE_CHECKING"
        ) from error


def output_class(annotation: Any) -> type[ToolOutput]:
    """Return the class of outputs that an annotation names, else `ToolOutput`."""
    return annotation if isinstance(annotation, type) and issubclass(annotation, ToolOutput) else ToolOutput


def read_signature(
    name: str, function: Callable[..., Any], hints: Mapping[str, Any], described: Mapping[str, str]
) -> tuple[CallPlan, type[Args], tuple[Need, ...], tuple[int, int]]:
    """Return the plan of a call, the type of the arguments, the needs, and the fewest and most images of a call."""
    images: list[ImageParameter] = []
    needs: list[tuple[NeedParameter, Need]] = []
    fields: dict[str, Any] = {}
    fewest = most = 0
    seeded = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            raise TypeError(f"{name}: **{parameter.name} cannot be offered to a model: name each argument")
        if parameter.name not in hints:
            kind = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
            raise TypeError(f"{name}: give the type of {parameter.name}: {kind}{parameter.name}: Image, or another")
        base, several, optional, extras = _unfold(hints[parameter.name])
        star = parameter.kind is parameter.VAR_POSITIONAL
        if star and (fields or needs or seeded):
            raise TypeError(
                f"{name}: *{parameter.name} must come after the other images and before all other parameters"
            )
        if base is Image:
            if images and images[-1].several:
                raise TypeError(
                    f"{name}: {parameter.name} can never get an image, because {images[-1].name} takes all images"
                )
            images.append(ImageParameter(parameter.name, several or star, optional, star))
            low, high = _bounds(extras) if several or star else (0 if optional else 1, 1)
            fewest, most = fewest + low, most + high
        elif isinstance(base, type) and issubclass(base, ToolOutput):
            need = next((extra for extra in extras if isinstance(extra, Need)), None)
            extra = next((extra for extra in extras if isinstance(extra, Mapping)), {})
            need = need or Need(parameter.name, _always(dict(extra)))
            needs.append((NeedParameter(parameter.name, need.tool, base, several), need))
        elif star:
            raise TypeError(f"{name}: *{parameter.name} can only be images: *{parameter.name}: Image")
        elif parameter.name == "seed" and base is int:
            seeded = True
        else:
            _check_argument_type(name, function, parameter.name, hints[parameter.name])
            fields[parameter.name] = _field(hints[parameter.name], parameter, described)
    if single := next((part.name for part, _ in needs if not part.several and most > 1), ""):
        raise TypeError(f"{name}: it takes several images, so {single} must be a list: {single}: list[ToolOutput]")
    plan = CallPlan(function, tuple(images), tuple(part for part, _ in needs), tuple(fields), seeded)
    return plan, _args_type(name, function, fields), tuple(need for _, need in needs), (fewest, most)


def _always(args: Mapping[str, Json]) -> Callable[[Any], Mapping[str, Json]]:
    """Return a function that gives a needed tool these arguments, whatever the tool's own arguments are."""
    return lambda _: args


def _unfold(hint: Any) -> tuple[Any, bool, bool, tuple[Any, ...]]:
    """Return the type in a hint, whether the hint is a list of it or may be None, and what `Annotated` adds."""
    extras: tuple[Any, ...] = ()
    optional = several = False
    while True:
        origin = get_origin(hint)
        if origin is Annotated:
            hint, *further = get_args(hint)
            extras += tuple(further)
        elif origin in (Union, UnionType) and NoneType in get_args(hint) and len(get_args(hint)) == 2:
            optional, hint = True, next(part for part in get_args(hint) if part is not NoneType)
        elif origin in (list, Sequence, tuple) and not several and _is_special(get_args(hint)[0]):
            several, hint = True, get_args(hint)[0]
        else:
            return hint, several, optional, extras


def _is_special(hint: Any) -> bool:
    base = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return base is Image or (isinstance(base, type) and issubclass(base, ToolOutput))


def _bounds(extras: Sequence[Any]) -> tuple[int, int]:
    """Return the fewest and most images of a list, from pydantic's `Field`."""
    facts = [fact for extra in extras for fact in (extra, *getattr(extra, "metadata", ()))]
    fewest = next((fact.min_length for fact in facts if getattr(fact, "min_length", None) is not None), 1)
    most = next((fact.max_length for fact in facts if getattr(fact, "max_length", None) is not None), MOST_IMAGES)
    return fewest, max(fewest, most)


def _field(hint: Any, parameter: inspect.Parameter, described: Mapping[str, str]) -> tuple[Any, Any]:
    """Return an argument as pydantic's `create_model` takes it."""
    from pydantic import Field
    from pydantic.fields import FieldInfo

    extras = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    text = next((extra for extra in extras if isinstance(extra, str)), described.get(parameter.name))
    has_own = any(isinstance(extra, FieldInfo) and extra.description for extra in extras)
    default = ... if parameter.default is parameter.empty else parameter.default
    if text is None or has_own:
        return hint, default
    return Annotated[hint, Field(description=text)], default


def _args_type(name: str, function: Callable[..., Any], fields: Mapping[str, Any]) -> type[Args]:
    """Return the type of the arguments."""
    title = "".join(part.title() for part in name.split("_")) + "Args"
    doc = "No arguments." if not fields else f"Arguments of {name}."
    model = _model(title, function.__module__, doc, fields)
    model.__wrapped__ = function  # type: ignore[attr-defined]
    return model


def _model(title: str, module: str, doc: str, fields: Mapping[str, Any]) -> type[Args]:
    from pydantic import create_model

    model: type[Args] = create_model(title, __base__=Args, __module__=module, __doc__=doc, **fields)
    model.model_json_schema()
    return model


def _check_argument_type(name: str, function: Callable[..., Any], parameter: str, hint: Any) -> None:
    """Raise `TypeError` for an argument whose type JSON does not have; the message says what to write."""
    from pydantic.errors import PydanticUserError

    try:
        _model("Argument", function.__module__, "One argument.", {parameter: (hint, ...)})
    except (PydanticUserError, TypeError) as error:
        if _is_image_like(hint):
            fix = f"for an image write {_image_hint(parameter, hint)} (from hybrid.tool import Image)"
        else:
            fix = "write a type that JSON has: str, int, float, bool, Literal, list, dict or a pydantic model"
        raise TypeError(f"{name}: a model cannot write {parameter}: {_type_name(hint)}; {fix}") from error


# Types that people give to images, by module and name.
IMAGE_LIKE: Final = frozenset(
    {"hybrid.core.types.Pixels", "numpy.ndarray", "PIL.Image", "PIL.Image.Image", "torch.Tensor"}
)


def _is_image_like(hint: Any) -> bool:
    """Return whether a type, or a part of it, is a type that is commonly used for images."""
    parts = (get_origin(hint), *get_args(hint)) if get_origin(hint) is not None else (hint,)
    names = {f"{getattr(part, '__module__', '')}.{getattr(part, '__qualname__', '')}" for part in parts}
    # The annotation may be the module PIL.Image where its class was meant.
    names |= {getattr(part, "__name__", "") for part in parts}
    inner = (part for part in parts if part is not hint and get_origin(part) is not None)
    return bool(names & IMAGE_LIKE) or any(map(_is_image_like, inner))


def _type_name(hint: Any) -> str:
    """Return a type as its file writes it, with its module."""
    if get_origin(hint) is not None or not hasattr(hint, "__name__"):
        return str(hint)
    name = getattr(hint, "__qualname__", hint.__name__)
    module = getattr(hint, "__module__", "builtins")
    return name if module == "builtins" else f"{module}.{name}"


def _image_hint(parameter: str, hint: Any) -> str:
    """Return the parameter as written for an image, a list of images, or an optional image."""
    may_be_none = get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint)
    inner = next(part for part in get_args(hint) if part is not NoneType) if may_be_none else hint
    inner = get_args(inner)[0] if get_origin(inner) is Annotated else inner
    kind = "list[Image]" if get_origin(inner) in (list, Sequence, tuple) else "Image"
    return f"{parameter}: {kind} | None = None" if may_be_none else f"{parameter}: {kind}"
