"""The code of what Python code hands in, as one hash: a run is not continued with other code under the same name.

    object_code(MySolver)               # 12 hex digits of sha256, or "no source"

Of a module that is imported its file counts, and what it imports from the same folder. A script or a notebook holds the
call of the run as well, which may change: of it count the class or the function, and what it names there, directly or
not: classes, functions, plain values. Of installed packages count the classes that were handed in, never their bases.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import sys
import sysconfig
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from hybrid.models.credentials import names_a_secret
from hybrid.serving.sources import CODE_DIGITS, Sources

# Stands for the hash where no code can be read: of a graph, a built-in function, a class typed into a shell.
NO_SOURCE: Final = "no source"
# The packages of the project, whose version stands for them.
OURS: Final = ("hybrid", "tools", "graphs", "baselines")
MAIN: Final = "__main__"
PLAIN: Final = (str, bytes, int, float, bool)


def object_code(*handed_in: Callable[..., Any]) -> str:
    """The hash of these classes and functions, instances and methods included; `NO_SOURCE` where none has a source."""
    facts = sorted({fact for one in handed_in for fact in _facts(one)})
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:CODE_DIGITS] if facts else NO_SOURCE


def is_installed(kind: Any) -> bool:
    """Whether a class is of an installed package or of the project: a version stands for it."""
    return kind.__module__.partition(".")[0] in OURS or _installed(_file(kind.__module__))


def _facts(handed_in: Any) -> Iterator[str]:
    # The class or function in which it is written.
    one = handed_in
    while isinstance(one, partial):
        one = one.func
    if inspect.ismethod(one):
        one = one.__func__
    if not (isinstance(one, type) or inspect.isfunction(one)):
        one = type(one)
    bases = one.__mro__[1:] if isinstance(one, type) else ()
    for each in (one, *(base for base in bases if not is_installed(base) and base is not object)):
        # Code that was executed without a module has none.
        module = each.__module__ or MAIN
        if module.partition(".")[0] not in OURS:
            yield from _of_main(each) if module == MAIN or _file(module) is None else _of_file(each)


def _of_file(one: Any) -> Iterator[str]:
    file = _file(one.__module__)
    assert file is not None  # noqa: S101 - the caller has looked
    modules = {name: path for name in tuple(sys.modules) if name != MAIN and (path := _file(name)) is not None}
    beside = {name: path for name, path in modules.items() if file.parent in path.parents and not _installed(path)}
    yield Sources({}, {**beside, one.__module__: file}).sha256([one.__module__])


def _of_main(root: Any) -> Iterator[str]:
    """The sources of a class or function of a script or notebook, and of all that they name there."""
    there = vars(sys.modules[MAIN])
    waiting, seen = [root], set[int]()
    while waiting:
        one = waiting.pop()
        if id(one) in seen or (source := _source(one)) is None:
            continue
        seen.add(id(one))
        text, node = source
        yield text
        for name in sorted({part.id for part in ast.walk(node) if isinstance(part, ast.Name)}):
            value = there.get(name)
            if isinstance(value, PLAIN) and not names_a_secret(name):
                yield f"{name} = {value!r}"
            elif not (isinstance(value, type) or inspect.isfunction(value)):
                continue
            elif value.__module__ == MAIN:
                waiting.append(value)
            # A helper of a file of the user's.
            elif _file(value.__module__) is not None and not is_installed(value):
                yield from _of_file(value)


def _source(one: Any) -> tuple[str, ast.AST] | None:
    """The source of a class or function, as text and parsed; None where it cannot be read."""
    # A class of a notebook has no file: its functions know the cell in which both are.
    functions = [value for value in vars(one).values() if inspect.isfunction(value)] if isinstance(one, type) else [one]
    for function in functions:
        try:
            text = "".join(inspect.findsource(function)[0])
            nodes = ast.walk(ast.parse(text))
        except (OSError, TypeError, SyntaxError):
            continue
        kinds = (ast.ClassDef,) if isinstance(one, type) else (ast.FunctionDef, ast.AsyncFunctionDef)
        found = next((node for node in nodes if isinstance(node, kinds) and node.name == one.__name__), None)
        if found is not None:
            first = min([found.lineno, *(node.lineno for node in found.decorator_list)])
            return "\n".join(text.split("\n")[first - 1 : found.end_lineno]), found
    return None


def _file(module: str) -> Path | None:
    """The source file of a module that is imported."""
    name = getattr(sys.modules.get(module), "__file__", None)
    return Path(name) if isinstance(name, str) and name.endswith(".py") else None


def _installed(file: Path | None) -> bool:
    places = {Path(sysconfig.get_path(kind)) for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
    return file is not None and bool(places & {*file.parents})
