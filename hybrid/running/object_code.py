"""A hash of the code of Python objects that are passed to a run, so that a run is not continued with changed code.

    object_code(MySolver)               # 12 hex digits of sha256, or "no source"

For an imported module, the hash covers its file and the files that it imports from the same folder. A script or a
notebook also contains the call of the run, which may change; there the hash covers the class or function, with
everything that it names directly or indirectly: classes, functions, plain values. Of installed packages it covers only
the given classes, not their bases.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from hybrid.models.credentials import names_a_secret
from hybrid.serving.sources import CODE_DIGITS, Sources

# Replaces the hash if no source is available: for a graph, a built-in function, a class typed into a shell.
NO_SOURCE: Final = "no source"
# The project's own packages; their version represents them.
OURS: Final = ("hybrid", "tools", "graphs", "baselines")
MAIN: Final = "__main__"
PLAIN: Final = (str, bytes, int, float, bool)


def object_code(*handed_in: Callable[..., Any]) -> str:
    """Return the hash of these classes and functions, or of instances and methods; `NO_SOURCE` without a source."""
    facts = sorted({fact for item in handed_in for fact in _facts(item)})
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:CODE_DIGITS] if facts else NO_SOURCE


def is_installed(kind: Any) -> bool:
    """Return whether a class belongs to an installed package or the project, which are identified by version."""
    return kind.__module__.partition(".")[0] in OURS or _installed(_file(kind.__module__))


def _facts(handed_in: Any) -> Iterator[str]:
    # Unwrap to the class or function that defines the object.
    target = handed_in
    while isinstance(target, partial):
        target = target.func
    if inspect.ismethod(target):
        target = target.__func__
    if not (isinstance(target, type) or inspect.isfunction(target)):
        target = type(target)
    bases = target.__mro__[1:] if isinstance(target, type) else ()
    for kind in (target, *(base for base in bases if not is_installed(base) and base is not object)):
        # Code that was executed outside a module has no module name.
        module = kind.__module__ or MAIN
        if module.partition(".")[0] not in OURS:
            yield from _of_main(kind) if module == MAIN or _file(module) is None else _of_file(kind)


def _of_file(value: Any) -> Iterator[str]:
    file = _file(value.__module__)
    assert file is not None  # noqa: S101 - the caller has checked it
    modules = {name: path for name in tuple(sys.modules) if name != MAIN and (path := _file(name)) is not None}
    # Compare paths as text: `path.parents` takes ten times as long, and this runs for thousands of modules at every
    # start.
    folder = str(file.parent).rstrip(os.sep) + os.sep
    neighbours = {name: path for name, path in modules.items() if str(path).startswith(folder) and not _installed(path)}
    yield Sources({}, {**neighbours, value.__module__: file}).sha256([value.__module__])


def _of_main(root: Any) -> Iterator[str]:
    """Yield the source of a class or function of a script or notebook, and of everything there that it names."""
    main_names = vars(sys.modules[MAIN])
    waiting, seen = [root], set[int]()
    while waiting:
        item = waiting.pop()
        if id(item) in seen or (source := _source(item)) is None:
            continue
        seen.add(id(item))
        text, node = source
        yield text
        for name in sorted({part.id for part in ast.walk(node) if isinstance(part, ast.Name)}):
            value = main_names.get(name)
            if isinstance(value, PLAIN) and not names_a_secret(name):
                yield f"{name} = {value!r}"
            elif not (isinstance(value, type) or inspect.isfunction(value)):
                continue
            elif value.__module__ == MAIN:
                waiting.append(value)
            # This is a helper from one of the user's own files.
            elif _file(value.__module__) is not None and not is_installed(value):
                yield from _of_file(value)


def _source(item: Any) -> tuple[str, ast.AST] | None:
    """Return the source of a class or function, as text and parsed; None if it cannot be read."""
    # A class in a notebook has no file, but its functions refer to the cell that defines the class.
    functions = (
        [value for value in vars(item).values() if inspect.isfunction(value)] if isinstance(item, type) else [item]
    )
    for function in functions:
        try:
            text = "".join(inspect.findsource(function)[0])
            nodes = ast.walk(ast.parse(text))
        except (OSError, TypeError, SyntaxError):
            continue
        kinds = (ast.ClassDef,) if isinstance(item, type) else (ast.FunctionDef, ast.AsyncFunctionDef)
        definition = next((node for node in nodes if isinstance(node, kinds) and node.name == item.__name__), None)
        if definition is not None:
            first = min([definition.lineno, *(node.lineno for node in definition.decorator_list)])
            return "\n".join(text.split("\n")[first - 1 : definition.end_lineno]), definition
    return None


def _file(module: str) -> Path | None:
    """Return the source file of an imported module."""
    name = getattr(sys.modules.get(module), "__file__", None)
    return Path(name) if isinstance(name, str) and name.endswith(".py") else None


def _installed(file: Path | None) -> bool:
    places = {Path(sysconfig.get_path(kind)) for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
    return file is not None and bool(places & {*file.parents})
