"""A tool from a function: `@tool(limits=...)` makes the `Tool` that a class form would spell out.

    from hybrid.tool import Image, ToolOutput, tool

    @tool(limits="A dark subject on white looks bright.")
    def brightness(image: Image) -> ToolOutput:
        '''Says how bright an image is as a whole.'''
        mean = image.mean() / 255
        return ToolOutput(f"Mean brightness: {mean:.2f}.", brightness_0_1=mean)

    @brightness.check(expect={"brightness_0_1": 1.0})
    def white():
        return np.full((8, 8, 3), 255, np.uint8)

    @brightness.rule("Lighting")
    def judge(output, prompt):
        return "bright" if output.brightness_0_1 > 0.5 else "dark"

Parameters of the function by their type:

- `Image` is an image (H, W, 3) of 8 bits; the number of images of a call is the number of these parameters, those that
  may be None left out at the least. `list[Image]` and `*images: Image` take 1 to `MOST_IMAGES`; pydantic's
  `Field(min_length=2, max_length=4)` in `Annotated` says otherwise.
- `ToolOutput`, or a class of it, is the output of the tool of the parameter's name about the image; `list[ToolOutput]`
  one for each image. `Annotated[ToolOutput, {"points": []}]` gives that tool arguments, `Annotated[ToolOutput,
  Need("depth", ARGS)]` makes them of one's own.
- `seed: int` is the seed of the question.
- Any other is an argument for the model, which pydantic checks; its description is a text in `Annotated`, or its line
  under `Args:` in the docstring.

A network, whose weights are loaded once and which takes several requests at a time, is a class (`hybrid/tool/`).
"""

from __future__ import annotations

import hashlib
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FunctionType, NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Union, get_args, get_origin, get_type_hints, overload

from hybrid.core.errors import ToolError
from hybrid.core.types import Finding, Json, Kind, Prompt
from hybrid.tool.args import Args
from hybrid.tool.base import BackendCard, Bin, Card, CheckCase, Claims, Evidence, KnownAnswer, Need, Request, Tool
from hybrid.tool.outputs import ToolOutput
from hybrid.tool.rules import Rule, RuleContext, SpecialistAnswer, choose, image_names, say

if TYPE_CHECKING:
    from typing import TypeAlias

    from hybrid.core.types import Pixels

    Image: TypeAlias = Pixels
else:

    class Image:
        """The type of a parameter that is an image: an array (H, W, 3) of 8 bits, RGB."""


# Images of one call of a function that takes a list of them.
MOST_IMAGES: Final = 16
VERSION_DIGITS: Final = 8


@dataclass(frozen=True)
class _ImageParameter:
    name: str
    # Whether it takes all further images.
    several: bool = False
    optional: bool = False
    star: bool = False


@dataclass(frozen=True)
class _NeedParameter:
    name: str
    tool: str
    kind: type[ToolOutput]
    several: bool


@dataclass(frozen=True)
class _Plan:
    """How the parameters of a function are filled from a request."""

    function: Callable[..., Any]
    images: tuple[_ImageParameter, ...]
    needs: tuple[_NeedParameter, ...]
    args: tuple[str, ...]
    seeded: bool

    def call(self, request: Request[Any]) -> Evidence:
        """The evidence of one request. Raises `ToolError` for an output that is none."""
        values: dict[str, Any] = {name: getattr(request.args, name) for name in self.args}
        stars: Sequence[Pixels] = ()
        left = list(request.images)
        for parameter in self.images:
            if parameter.several:
                if parameter.star:
                    stars = left
                else:
                    values[parameter.name] = left
                break
            values[parameter.name] = left.pop(0) if left else None
        for need in self.needs:
            outputs = [need.kind.from_finding(finding, need.tool) for finding in request.needs.get(need.tool, ())]
            if not need.several and not outputs:
                raise ToolError(f"{self.function.__name__}: there is no output of {need.tool}")
            values[need.name] = outputs if need.several else outputs[0]
        if self.seeded:
            values["seed"] = request.seed
        # Images before a star are given by position.
        before = [values.pop(parameter.name) for parameter in self.images if stars and not parameter.several]
        output = self.function(*before, *stars, **values)
        if isinstance(output, ToolOutput):
            return output.evidence
        if isinstance(output, Evidence):
            return output
        name = self.function.__name__
        raise TypeError(f"{name} must return ToolOutput(TEXT, KEY=VALUE, ...), and returns a {type(output).__name__}")


class FunctionBackend:
    """The backend of a function: it loads nothing and answers request by request."""

    def __init__(self, plan: _Plan) -> None:
        self._plan = plan

    def setup(self, device: str, weights: str | None) -> None:
        """Nothing is loaded."""
        del device, weights

    def run(self, requests: Sequence[Request[Any]]) -> list[Evidence]:
        """One evidence per request, in order. Raises as the function does."""
        return [self._plan.call(request) for request in requests]


class _MakeBackend:
    """Makes the backend; `__wrapped__` is the function, whose code counts as that of the tool."""

    def __init__(self, plan: _Plan) -> None:
        self._plan = plan
        self.__wrapped__ = plan.function
        self.__module__ = plan.function.__module__

    def __call__(self) -> FunctionBackend:
        return FunctionBackend(self._plan)


@dataclass(frozen=True)
class FunctionTool(Tool):
    """A `Tool` that was made of a function, which it still is: calling it calls the function."""

    source: Callable[..., Any] = field(default=lambda: None, compare=False)
    output_type: type[ToolOutput] = field(default=ToolOutput, compare=False)
    # By needed tool the JSON schema of the values that the function reads of it.
    needed: Mapping[str, Mapping[str, Json]] = field(default_factory=dict, compare=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.source(*args, **kwargs)

    @overload
    def check(self, pose: Callable[[], Any], /) -> Callable[[], Any]: ...

    @overload
    def check(
        self,
        *,
        expect: Mapping[str, Any] | None = None,
        within: float = 1e-6,
        outputs: Mapping[str, ToolOutput | Sequence[ToolOutput]] | None = None,
        **args: Json,
    ) -> Callable[[Callable[[], Any]], Callable[[], Any]]: ...

    def check(  # type: ignore[misc]  # mypy takes `pose` for one of the keywords of `args`
        self,
        pose: Callable[..., Any] | None = None,
        /,
        *,
        expect: Mapping[str, Any] | None = None,
        within: float = 1e-6,
        outputs: Mapping[str, ToolOutput | Sequence[ToolOutput]] | None = None,
        **args: Json,
    ) -> Any:
        """Add a known answer: the decorated function returns an image, several, or a whole `CheckCase`.

        Args:
            pose: the decorated function, where the decorator has no arguments.
            expect: by key the expected value, or a function that tells whether a value is right.
            within: how far a number may be from the expected one.
            outputs: by name of a needed tool its output about the image, or one for each image.
            args: the tool's arguments.
        """

        def add(function: Callable[[], Any]) -> Callable[[], Any]:
            case = _check_case(self.card.name, function, expect, within, args, _as_findings(outputs or {}))
            name = function.__name__.replace("_", " ").strip()
            object.__setattr__(self, "checks", (*self.checks, KnownAnswer(name, case)))
            return function

        return add if pose is None else add(pose)

    def rule(
        self, *routes: str, args: Callable[[Prompt], Mapping[str, Json] | None] | None = None
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Add a rule for questions of these routes: the decorated function gets the output and the prompt.

        It returns the answer: the text or the letter of a choice, True or False, a number, or None to pass the
        question on. The tool is called once, on all images of the prompt. A rule of several calls
        (`hybrid.tool.rules.asks`) is added as it is.

        Args:
            routes: tasks of a benchmark, or of one's own questions.
            args: makes the tool's arguments of a prompt, or None where its wording does not give them.
        """
        if not routes or not all(isinstance(route, str) for route in routes):
            raise TypeError(f'@{self.card.name}.rule needs the routes it answers: @{self.card.name}.rule("Counting")')

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            if isinstance(getattr(function, "tools", None), tuple):
                object.__setattr__(self, "rules", {**self.rules, **dict.fromkeys(routes, function)})
                return function
            kind = _output_of(function, self.output_type)
            rule = FunctionRule(self.card.name, function, kind, args or (lambda prompt: {}))
            object.__setattr__(self, "rules", {**self.rules, **dict.fromkeys(routes, rule)})
            return function

        return add


@dataclass(frozen=True)
class FunctionRule:
    """A rule that calls its tool once and turns the output into an answer by a function."""

    tool: str
    function: Callable[..., Any]
    output_type: type[ToolOutput]
    args: Callable[[Prompt], Mapping[str, Json] | None]

    @property
    def tools(self) -> tuple[str, ...]:
        """The tool of the rule."""
        return (self.tool,)

    async def __call__(self, prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
        """The answer, or None for an abstention."""
        args = self.args(prompt)
        if args is None:
            ctx.rule("no arguments", "the question does not give the arguments of the tool")
            return None
        finding = await ctx.tool(self.tool, image_names(prompt), args)
        output = self.output_type.from_finding(finding, self.tool)
        takes_prompt = len(inspect.signature(self.function).parameters) > 1
        value = self.function(output, prompt) if takes_prompt else self.function(output)
        return answer_with(value, prompt, ctx, self.tool, finding)


def answer_with(
    value: object, prompt: Prompt, ctx: RuleContext, tool_name: str, finding: Finding
) -> SpecialistAnswer | None:
    """The answer that a value is: of a choice its text, else as it is written; None with a note in the trace.

    Raises:
        TypeError: the value is no text, number or truth value.
    """
    if value is None:
        return None
    if not isinstance(value, str | int | float):
        raise TypeError(f"a rule returns the answer as a text, a number or a truth value, not a {type(value).__name__}")
    words = f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(value, bool):
        words = "yes" if value else "no"
    if prompt.kind is not Kind.CHOICE:
        return say(words, tool_name, finding)
    place = _choice_of(words, prompt.choices)
    if place is None:
        ctx.rule("no choice", f"{words!r:.80} is none of the choices, or several")
        return None
    return choose(place, tool_name, finding)


def _choice_of(words: str, choices: Sequence[str]) -> int | None:
    """The place of the only choice of that text, else of that letter, else of the only one with these words in it."""
    plain = [choice.strip(" .").casefold() for choice in choices]
    wanted = words.strip(" .").casefold()
    if plain.count(wanted) == 1:
        return plain.index(wanted)
    if (letter := re.fullmatch(r"\(?([a-z])\)?", wanted)) and ord(letter[1]) - ord("a") < len(choices):
        return ord(letter[1]) - ord("a")
    inside = [place for place, choice in enumerate(plain) if wanted and re.search(rf"\b{re.escape(wanted)}\b", choice)]
    return inside[0] if len(inside) == 1 else None


def tool(
    *,
    limits: str,
    name: str = "",
    summary: str = "",
    version: str = "",
    measured: str = "",
    backend: str = "",
    library: str | None = None,
    claims: Claims | None = None,
    probe: Callable[[Pixels], CheckCase] | None = None,
    reliability: tuple[Bin, ...] = (),
    counted_on: str = "",
) -> Callable[[Callable[..., Any]], FunctionTool]:
    """Make a function a tool: see the module.

    Args:
        limits: where it fails, for the model that reads its output.
        name: of the tool; the function's.
        summary: what it says, for the model; the docstring's first line.
        version: of its code; a hash of it.
        measured: measurements, for people.
        backend: how it works, for people; the docstring's second paragraph.
        library: package, as it is imported, without which it does not answer.
        claims: what it states of its pictures (`hybrid.tool.Claims`).
        probe: as of `hybrid.tool.Tool`.
        reliability: as of `hybrid.tool.BackendCard`, with `counted_on`.
        counted_on: the pictures that `reliability` was counted on.

    Raises:
        TypeError: the function's signature or docstring lacks what a tool needs; the message says what to write.
    """
    if callable(limits):
        raise TypeError('write @tool(limits="Where it fails.") with the limits, which a model reads')

    options = _Options(
        limits, name, summary, version, measured, backend, library, claims, probe, reliability, counted_on
    )
    return lambda function: _compile(function, options)


@dataclass(frozen=True)
class _Options:
    """The arguments of `tool`."""

    limits: str
    name: str
    summary: str
    version: str
    measured: str
    backend: str
    library: str | None
    claims: Claims | None
    probe: Callable[[Pixels], CheckCase] | None
    reliability: tuple[Bin, ...]
    counted_on: str


def _compile(function: Callable[..., Any], options: _Options) -> FunctionTool:
    """The tool of a function. Raises `TypeError` as `tool`."""
    name = options.name or function.__name__
    first, second, described = read_docstring(function)
    summary = options.summary or first
    if not summary:
        raise TypeError(f"{name}: write what it says, for the model, as the first line of its docstring")
    hints = _hints(function)
    plan, args, needs, images = _read_signature(name, function, hints, described)
    output_type = _output_class(hints.get("return"))
    backend = BackendCard(
        "classical",
        options.version or code_version(function),
        _MakeBackend(plan),
        options.backend or second or f"The Python function {function.__name__}.",
        library=options.library,
        reliability=options.reliability,
        counted_on=options.counted_on,
    )
    return FunctionTool(
        Card(name, summary, options.limits, (backend,), images, needs, options.measured),
        args,
        probe=options.probe,
        claims=options.claims,
        output=output_type.schema(),
        source=function,
        output_type=output_type,
        needed={need.tool: schema for need in plan.needs if (schema := need.kind.schema()) is not None},
    )


def read_docstring(function: Callable[..., Any]) -> tuple[str, str, dict[str, str]]:
    """The first line of a docstring, its second paragraph, and the descriptions under `Args:` by name."""
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


def code_version(function: Callable[..., Any]) -> str:
    """Hash (8 hex digits) of a function's source and of the functions, classes and values of its file that it names."""
    total = hashlib.sha256()
    waiting: list[Any] = [function]
    seen: set[int] = set()
    while waiting:
        item = waiting.pop(0)
        if id(item) in seen:
            continue
        seen.add(id(item))
        try:
            source = textwrap.dedent(inspect.getsource(item))
        except (OSError, TypeError):
            code = getattr(item, "__code__", None)
            source = repr((code.co_code, code.co_consts)) if code is not None else repr(item)
        total.update(source.encode())
        named = vars(inspect.getmodule(item)) if inspect.getmodule(item) is not None else {}
        for word in sorted({*re.findall(r"[A-Za-z_]\w*", source)}):
            value = named.get(word)
            if isinstance(value, str | bytes | bool | int | float | tuple) and not word.startswith("__"):
                total.update(f"{word}={value!r}".encode())
            elif isinstance(value, type | FunctionType) and value.__module__ == function.__module__:
                waiting.append(value)
    return total.hexdigest()[:VERSION_DIGITS]


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of the parameters. Raises `TypeError` for one that cannot be read."""
    # Those of a notebook's cell or of a test may be local.
    names = {**inspect.getclosurevars(function).nonlocals}
    try:
        return get_type_hints(function, localns=names, include_extras=True)
    except NameError as error:
        raise TypeError(f"{function.__name__}: a type of its parameters is not known: {error}") from error


def _output_class(annotation: Any) -> type[ToolOutput]:
    return annotation if isinstance(annotation, type) and issubclass(annotation, ToolOutput) else ToolOutput


def _output_of(function: Callable[..., Any], usual: type[ToolOutput]) -> type[ToolOutput]:
    """The class of outputs that the first parameter of a rule names, else the tool's own."""
    parameters = list(inspect.signature(function).parameters)
    if not parameters:
        raise TypeError(f"a rule takes the output and the prompt: def {function.__name__}(output, prompt)")
    kind = _output_class(_hints(function).get(parameters[0]))
    return usual if kind is ToolOutput else kind


def _read_signature(
    name: str, function: Callable[..., Any], hints: Mapping[str, Any], described: Mapping[str, str]
) -> tuple[_Plan, type[Args], tuple[Need, ...], tuple[int, int]]:
    """Return the plan of a call, the type of the arguments, the needs, and the fewest and most images of a call."""
    images: list[_ImageParameter] = []
    needs: list[tuple[_NeedParameter, Need]] = []
    fields: dict[str, Any] = {}
    fewest = most = 0
    seeded = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            raise TypeError(f"{name}: **{parameter.name} cannot be offered to a model: name each argument")
        if parameter.name not in hints:
            kind = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
            raise TypeError(f"{name}: say the type of {parameter.name}: {kind}{parameter.name}: Image, or another")
        base, several, optional, extras = _unfold(hints[parameter.name])
        star = parameter.kind is parameter.VAR_POSITIONAL
        if star and (fields or needs or seeded):
            raise TypeError(f"{name}: *{parameter.name} comes after the other images, and before all else")
        if base is Image:
            if images and images[-1].several:
                raise TypeError(f"{name}: {parameter.name} comes after all images were taken by {images[-1].name}")
            images.append(_ImageParameter(parameter.name, several or star, optional, star))
            low, high = _bounds(extras) if several or star else (0 if optional else 1, 1)
            fewest, most = fewest + low, most + high
        elif isinstance(base, type) and issubclass(base, ToolOutput):
            need = next((extra for extra in extras if isinstance(extra, Need)), None)
            given = next((extra for extra in extras if isinstance(extra, Mapping)), {})
            need = need or Need(parameter.name, _always(dict(given)))
            needs.append((_NeedParameter(parameter.name, need.tool, base, several), need))
        elif star:
            raise TypeError(f"{name}: *{parameter.name} can only be images: *{parameter.name}: Image")
        elif parameter.name == "seed" and base is int:
            seeded = True
        else:
            fields[parameter.name] = _field(hints[parameter.name], parameter, described)
    if single := next((part.name for part, _ in needs if not part.several and most > 1), ""):
        raise TypeError(f"{name}: it takes several images, so that {single} is a list: {single}: list[ToolOutput]")
    plan = _Plan(function, tuple(images), tuple(part for part, _ in needs), tuple(fields), seeded)
    return plan, _args_type(name, function, fields), tuple(need for _, need in needs), (fewest, most)


def _always(args: Mapping[str, Json]) -> Callable[[Any], Mapping[str, Json]]:
    """The arguments of a needed tool, whatever the own ones are."""
    return lambda _: args


def _unfold(hint: Any) -> tuple[Any, bool, bool, tuple[Any, ...]]:
    """The type in a hint, whether it is a list of it, whether it may be None, and what `Annotated` adds."""
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
    """The fewest and most images of a list, as pydantic's `Field` says."""
    facts = [fact for extra in extras for fact in (extra, *getattr(extra, "metadata", ()))]
    fewest = next((fact.min_length for fact in facts if getattr(fact, "min_length", None) is not None), 1)
    most = next((fact.max_length for fact in facts if getattr(fact, "max_length", None) is not None), MOST_IMAGES)
    return fewest, max(fewest, most)


def _field(hint: Any, parameter: inspect.Parameter, described: Mapping[str, str]) -> tuple[Any, Any]:
    """An argument as pydantic's `create_model` takes it."""
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
    """The type of the arguments. Raises `TypeError` for a type that JSON does not have."""
    from pydantic import create_model
    from pydantic.errors import PydanticUserError

    title = "".join(part.title() for part in name.split("_")) + "Args"
    doc = "No arguments." if not fields else f"Arguments of {name}."
    try:
        model: type[Args] = create_model(title, __base__=Args, __module__=function.__module__, __doc__=doc, **fields)
        model.model_json_schema()
    except PydanticUserError as error:
        raise TypeError(f"{name}: an argument has a type that a model cannot write: {error.message}") from error
    model.__wrapped__ = function  # type: ignore[attr-defined]
    return model


def _as_findings(outputs: Mapping[str, ToolOutput | Sequence[ToolOutput]]) -> dict[str, tuple[Finding, ...]]:
    by_tool = {name: (value,) if isinstance(value, ToolOutput) else tuple(value) for name, value in outputs.items()}
    return {
        name: tuple(Finding(item.text, item.data, item.confidence, "classical", "given") for item in items)
        for name, items in by_tool.items()
    }


def _check_case(
    name: str,
    function: Callable[[], Any],
    expect: Mapping[str, Any] | None,
    within: float,
    args: Mapping[str, Json],
    needs: Mapping[str, tuple[Finding, ...]],
) -> Callable[[], CheckCase]:
    """Return the function that poses a known answer."""

    def pose() -> CheckCase:
        posed = function()
        if isinstance(posed, CheckCase):
            return posed if expect is None else replace(posed, wrong=_Expected(expect, within))
        if expect is None:
            raise TypeError(f'{name}: say what is right: @{name}.check(expect={{"KEY": VALUE}})')
        images = tuple(posed) if isinstance(posed, list | tuple) else (posed,)
        return CheckCase(images, args, _Expected(expect, within), needs=needs)

    # Its code is that of the decorated function (`hybrid.serving.sources.made_by`).
    pose.__wrapped__ = function  # type: ignore[attr-defined]
    return pose


@dataclass(frozen=True)
class _Expected:
    """Compares an evidence with expected values; describes the first difference."""

    values: Mapping[str, Any] = field(hash=False)
    within: float

    def __call__(self, evidence: Evidence) -> str | None:
        for key, expected in self.values.items():
            if key not in evidence.data:
                available = ", ".join(evidence.data) or "nothing"
                return f"there is no {key!r} in its output, which has {available}"
            value: Any = evidence.data[key]
            if not (expected(value) if callable(expected) else _is_close(value, expected, self.within)):
                wanted = getattr(expected, "__name__", "") if callable(expected) else f"{expected!r:.80}"
                return f"{key} is {value!r:.80}, and not {wanted or 'as expected'}"
        return None


def _is_close(value: Any, expected: Any, within: float) -> bool:
    if isinstance(expected, list | tuple):
        same = isinstance(value, list | tuple) and len(value) == len(expected)
        return same and all(_is_close(*pair, within) for pair in zip(value, expected, strict=True))
    if isinstance(expected, Mapping):
        same = isinstance(value, Mapping) and {*value} == {*expected}
        return same and all(_is_close(value[key], expected[key], within) for key in expected)
    numbers = [item for item in (value, expected) if isinstance(item, int | float) and not isinstance(item, bool)]
    return abs(value - expected) <= within if len(numbers) == 2 else bool(value == expected)


__all__ = ["FunctionRule", "FunctionTool", "Image", "Rule", "ToolOutput", "tool"]
