"""Rewords messages about command options for Python, where `--tool-output blank` is `tool_output="blank"`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from hybrid.config.command_options import FIELDS
from hybrid.config.option import OptionField, option_fields
from hybrid.config.run_config import RunConfig
from hybrid.config.words import KEPT, LOCAL
from hybrid.core.errors import UsageError
from hybrid.plugins.discovery import looked_up

# Text in backquotes, or after the program's name, is a command line and is not changed.
_COMMAND = re.compile(r"`[^`]*`|\bhybrid (?:run|tools|data|compare|score|study)\b[^,;]*")
# A value is a word with more than lower-case letters (DIR, openai:gpt-4o, 3, blind-tools), or a word right before a
# colon or comma. Any other word is a value only if the option accepts it; else it belongs to the sentence.
_VALUE = r"(?=\S*[A-Z0-9:/.=_])[\w./:~=-]*[\w/]|[a-z]+(?:-[a-z]+)+|[a-z]+(?=[:,])"
_OPTION = re.compile(rf"--(?P<name>[a-z][a-z-]*)(?:[= ](?:(?P<value>{_VALUE})|(?P<word>[a-z]+)))?(?P<colon>:)?")
# Options that have another name in Python.
RENAMED = {"solver": "solvers", "args": "arguments"}
# The words that options accept besides other values, and those of options that only `hybrid.score`, `compare` and
# `runs` have.
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "data": ("hub", "sample"),
    "device": ("auto", "cpu", "mps", "cuda"),
    "engine": (LOCAL, "ray"),
    "field": ("text", "stored"),
    "keep_pictures": tuple(KEPT),
    "model": ("embedded",),
    "other_labels": ("refuse", "compare"),
    "reasoning_effort": ("none", "minimal", "low", "medium", "high"),
    "sort": ("date", "name", "score", "cost", "n"),
    "split": ("hidden",),
    "tools": ("all", "none", "default"),
    "tool_style": ("auto", "plain"),
    "trace": ("otlp",),
    "verdicts": ("judge",),
}
# The packages whose plug-ins are the values of an option.
_PLUGINS: Final[Mapping[str, tuple[str, ...]]] = {
    "baseline": ("graphs", "baselines"),
    "benchmark": ("hybrid.benchmarks",),
    "solver": ("graphs", "baselines"),
    "tools": ("tools",),
}


def python_words(message: str) -> str:
    """Return the message with each option as an argument of Python; command lines are not changed."""
    parts: list[str] = []
    end = 0
    for command in _COMMAND.finditer(message):
        parts += [_OPTION.sub(_argument, message[end : command.start()]), command[0]]
        end = command.end()
    return "".join([*parts, _OPTION.sub(_argument, message[end:])])


def _argument(match: re.Match[str]) -> str:
    key = match["name"].replace("-", "_")
    name, colon, word = RENAMED.get(key, key), match["colon"] or "", match["word"]
    value = match["value"] or (word if word and word in accepted_words(key) else None)
    if value is None:
        return f"{name}= {word}{colon}" if word else f"{name}{colon}" if colon else f"{name}="
    part, equals, rest = value.partition("=")
    if equals:
        return f'{name}={{"{part}": "{rest}"}}{colon}'
    if key in _KEYS and part in accepted_words(key):
        return f'{name}={{"{part}": ...}}{colon}'
    return f"{name}={value if _is_plain(value) else _quoted(value)}{colon}"


# For the options of KEY=VALUE words, the keys that hybrid itself reads.
_KEYS: Final[Mapping[str, frozenset[str]]] = {
    "setting": frozenset(field.option.name for field in option_fields(RunConfig, "--setting")),
    "model_arg": frozenset(field.option.name for field in option_fields(RunConfig, "--model-arg")),
}


def accepted_words(key: str) -> frozenset[str]:
    """Return the plain words that an option accepts, by the option's key; those of KEY=VALUE words are their keys."""
    field = FIELDS.get(key)
    words: set[str] = set()
    # An error of the search path is reported elsewhere and must not replace the error that is being reworded.
    with suppress(UsageError):
        words.update(name for package in _PLUGINS.get(key, ()) for name in looked_up(package)[0])
    words.update(_WORDS.get(key, ()), _KEYS.get(key, ()), () if field is None else _declared_words(field))
    return frozenset(words)


def _declared_words(field: OptionField) -> tuple[str, ...]:
    """Return the words in the declaration of an option: those of its type, and `on` and `off` of a switch."""
    return ("on", "off") if field.is_switch else field.words


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
