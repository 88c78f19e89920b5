"""Rewords messages about command options for Python, where `--tool-output blank` is `tool_output="blank"`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from hybrid.core.errors import UsageError

# Text in backquotes, or after the program's name, is a command line and is not changed.
_COMMAND = re.compile(r"`[^`]*`|\bhybrid (?:run|tools|data|compare|score|study)\b[^,;]*")
# A value is a word with more than lower-case letters (DIR, openai:gpt-4o, 3, blind-tools), or a word right before a
# colon or comma.
_VALUE = r"(?=\S*[A-Z0-9:/.=_])[\w./:~=-]*[\w/]|[a-z]+(?:-[a-z]+)+|[a-z]+(?=[:,])"
_OPTION = re.compile(rf"--(?P<name>[a-z][a-z-]*)(?:[= ](?P<value>{_VALUE}))?(?P<colon>:)?")
# Options that have another name in Python.
RENAMED = {"solver": "solvers", "args": "arguments"}


def python_words(message: str) -> str:
    """Return the message with each option as an argument of Python; command lines are not changed."""
    parts: list[str] = []
    end = 0
    for command in _COMMAND.finditer(message):
        parts += [_OPTION.sub(_argument, message[end : command.start()]), command[0]]
        end = command.end()
    return "".join([*parts, _OPTION.sub(_argument, message[end:])])


def _argument(match: re.Match[str]) -> str:
    name = match["name"].replace("-", "_")
    name = RENAMED.get(name, name)
    colon = match["colon"] or ""
    if match["value"] is None:
        return f"{name}{colon}" if colon else f"{name}="
    key, equals, value = match["value"].partition("=")
    if equals:
        return f'{name}={{"{key}": "{value}"}}{colon}'
    return f"{name}={match['value'] if _is_plain(match['value']) else _quoted(match['value'])}{colon}"


def _is_plain(value: str) -> bool:
    """Return whether a value is a number, or a placeholder for a number."""
    return re.fullmatch(r"[0-9.]+|[A-Z_]+", value) is not None


def _quoted(value: str) -> str:
    return f'"{value}"'


@contextmanager
def python_errors() -> Iterator[None]:
    """Reword a `UsageError` of the `with` block for callers from Python."""
    try:
        yield
    except UsageError as error:
        message = python_words(str(error))
        if message == str(error):
            raise
        raise type(error)(message) from error
