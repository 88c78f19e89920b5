"""A tool from a function: `@tool(limits=...)` makes the `Tool` that otherwise needs a card and classes.

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

The types that parameters may have are in `hybrid/tool/signature.py`.

A tool around a network, which loads its weights once and takes several requests at a time, is a class (`hybrid/tool/`).
"""

from __future__ import annotations

import hashlib
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from hybrid.core.types import Finding, Json, Prompt
from hybrid.tool.base import BackendCard, Bin, Card, CheckCase, Claims, Evidence, KnownAnswer, Request, Tool
from hybrid.tool.function_rules import FunctionRule
from hybrid.tool.outputs import ToolOutput
from hybrid.tool.signature import CallPlan, output_class, read_docstring, read_signature, type_hints_of

if TYPE_CHECKING:
    from hybrid.core.types import Pixels

VERSION_DIGITS: Final = 8


class FunctionBackend:
    """The backend of a function: it loads nothing and answers one request at a time."""

    def __init__(self, plan: CallPlan) -> None:
        self._plan = plan

    def setup(self, device: str, weights: str | None) -> None:
        """Do nothing, because nothing has to be loaded."""
        del device, weights

    def run(self, requests: Sequence[Request[Any]]) -> list[Evidence]:
        """Return one evidence per request, in order. Raises the errors of the function."""
        return [self._plan.call(request) for request in requests]


class _MakeBackend:
    """Makes the backend; `__wrapped__` is the function, whose code counts as the tool's code."""

    def __init__(self, plan: CallPlan) -> None:
        self._plan = plan
        self.__wrapped__ = plan.function
        self.__module__ = plan.function.__module__

    def __call__(self) -> FunctionBackend:
        return FunctionBackend(self._plan)


@dataclass(frozen=True)
class FunctionTool(Tool):
    """A `Tool` made from a function, which can still be called as a function."""

    source: Callable[..., Any] = field(default=lambda: None, compare=False)
    output_type: type[ToolOutput] = field(default=ToolOutput, compare=False)
    # For each needed tool, the JSON schema of the values that the function reads.
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

    def check(  # type: ignore[misc]  # mypy treats `pose` as one of the keywords of `args`
        self,
        pose: Callable[..., Any] | None = None,
        /,
        *,
        expect: Mapping[str, Any] | None = None,
        within: float = 1e-6,
        outputs: Mapping[str, ToolOutput | Sequence[ToolOutput]] | None = None,
        **args: Json,
    ) -> Any:
        """Add a known answer: the decorated function returns an image, several images, or a whole `CheckCase`.

        Args:
            pose: the decorated function, if the decorator has no arguments.
            expect: for each key, the expected value or a function that tells whether a value is right.
            within: tolerance of a number.
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
        (`hybrid.tool.rules.asks`) is added unchanged.

        Args:
            routes: tasks of a benchmark, or of the user's own questions.
            args: derives the tool's arguments from a prompt; returns None if the prompt's wording does not contain
                them.
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


def tool(
    function: None = None,
    /,
    *,
    limits: str = "",
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
    wording: Sequence[tuple[str, str]] = (),
    gaze: Literal["", "path"] = "",
) -> Callable[[Callable[..., Any]], FunctionTool]:
    """Make a tool of a function; the module's docstring has an example.

    Args:
        function: always None; detects a decorator that is written without arguments.
        limits: where the tool fails, for the model that reads its output; required.
        name: the tool's name; by default the function's.
        summary: description for the model; by default the docstring's first line.
        version: the version of its code; by default a hash of the code.
        measured: measurements, for people.
        backend: how it works, for people; by default the docstring's second paragraph.
        library: import name of a package that it requires.
        claims: what it claims about its pictures (`hybrid.tool.Claims`).
        probe: as in `hybrid.tool.Tool`.
        reliability: as in `hybrid.tool.BackendCard`; needs `counted_on`.
        counted_on: the pictures that `reliability` was counted on.
        wording: a second wording of its texts, as in `hybrid.tool.Tool`.
        gaze: `path` if its output predicts where people look, as in `hybrid.tool.Tool`; a map needs a class whose
            backend has `predict_map`.

    Raises:
        TypeError: the function's signature or docstring lacks what a tool needs; the message says what to write.
    """
    if function is not None or not isinstance(limits, str) or not limits.strip():
        raise TypeError('write @tool(limits="Where it fails."): a model reads the limits together with the summary')

    if gaze not in ("", "path"):
        raise TypeError(f'gaze={gaze!r}: a function can have gaze="path"; a map needs a class with predict_map')
    card = (limits, name, summary, version, measured, backend, library)
    options = _Options(*card, claims, probe, reliability, counted_on, tuple(wording), gaze)
    return lambda function: _compile(function, options)


@dataclass(frozen=True)
class _Options:
    """The arguments of the decorator `tool`."""

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
    wording: tuple[tuple[str, str], ...]
    gaze: Literal["", "path"]


def _compile(function: Callable[..., Any], options: _Options) -> FunctionTool:
    """Return the tool of a function. Raises `TypeError` as described for `tool`."""
    name = options.name or function.__name__
    first, second, described = read_docstring(function)
    summary = options.summary or first
    if not summary:
        raise TypeError(f"{name}: the first line of its docstring must tell the model what it returns")
    hints = type_hints_of(function)
    plan, args, needs, images = read_signature(name, function, hints, described)
    output_type = output_class(hints.get("return"))
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
        wording=options.wording,
        gaze=options.gaze,
        source=function,
        output_type=output_type,
        needed={need.tool: schema for need in plan.needs if (schema := need.kind.schema()) is not None},
    )


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
        namespace = vars(inspect.getmodule(item)) if inspect.getmodule(item) is not None else {}
        for word in sorted({*re.findall(r"[A-Za-z_]\w*", source)}):
            value = namespace.get(word)
            if isinstance(value, str | bytes | bool | int | float | tuple) and not word.startswith("__"):
                total.update(f"{word}={value!r}".encode())
            elif isinstance(value, type | FunctionType) and value.__module__ == function.__module__:
                waiting.append(value)
    return total.hexdigest()[:VERSION_DIGITS]


def _output_of(function: Callable[..., Any], usual: type[ToolOutput]) -> type[ToolOutput]:
    """Return the class of outputs that annotates the first parameter of a rule, else the tool's own."""
    parameters = list(inspect.signature(function).parameters)
    if not parameters:
        raise TypeError(f"a rule takes the output and the prompt: def {function.__name__}(output, prompt)")
    kind = output_class(type_hints_of(function).get(parameters[0]))
    return usual if kind is ToolOutput else kind


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

    # `made_by` (`hybrid.serving.sources`) then takes the code of the decorated function instead of that of `pose`.
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
                expected_name = getattr(expected, "__name__", "") if callable(expected) else f"{expected!r:.80}"
                return f"{key} is {value!r:.80}, and not {expected_name or 'as expected'}"
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
