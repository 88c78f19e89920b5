"""Removes paths of this machine from published output: pages, exports, their commands and errors.

    hide_paths("--data /home/ada/BLINK: no such folder")      # "--data BLINK: no such folder"

A path below the working directory becomes relative, so that a printed command still runs there; any other path is
reduced to its last part. Only hybrid's own text is changed, never that of a question, a reply or a tool.
"""

from __future__ import annotations

import os
import re
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Final

from hybrid.core.types import Step

_PART: Final = r"[^\s\\/'\"`<>|*?:;,()\[\]{}]+"
# Matches a path of at least two parts, but no URL, closing tag or server route (`/v1/chat/completions`).
_ABSOLUTE: Final = re.compile(
    rf"(?<![\w/.<~\\])(?:file://)?(?:~\w*|[A-Za-z]:)?[\\/](?!v\d+\w*/|api/)(?:{_PART}[\\/])+(?:{_PART})?"
)
# Within quotation marks a path may contain spaces.
_QUOTED: Final = re.compile(
    r"(?P<quote>['\"])(?P<path>(?:~\w*|[A-Za-z]:)?[\\/](?!v\d+\w*/|api/)(?:(?!(?P=quote))[^\n\\/])+[\\/]"
    r"(?:(?!(?P=quote))[^\n])*)(?P=quote)"
)


def hide_paths(text: str) -> str:
    """Shorten all absolute paths in a text, including tracebacks."""
    # Nearly all texts of a report contain neither a slash nor a backslash, hence no path, and return here.
    if "/" not in text and "\\" not in text:
        return text
    text = _QUOTED.sub(lambda match: f"{match['quote']}{_shorten(match['path'])}{match['quote']}", text)
    return _ABSOLUTE.sub(lambda match: _shorten(match[0].removeprefix("file://")), text)


def hide_paths_in(value: Any) -> Any:
    """Shorten the paths in all strings of a JSON value or dataclass."""
    if isinstance(value, str):
        return hide_paths(value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value,
            **{
                attribute.name: hide_paths_in(getattr(value, attribute.name))
                for attribute in fields(value)
                if attribute.init
            },
        )
    if isinstance(value, dict):
        return {key: hide_paths_in(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return tuple(hide_paths_in(part) for part in value)
    return [hide_paths_in(part) for part in value] if isinstance(value, list) else value


def hide_paths_in_step(step: Step) -> Step:
    """Shorten the paths in the name of a step's model and in its error; arguments, replies and tool output stay."""
    if step.kind != "model" and step.fault is None:
        return step
    name = hide_paths(step.name) if step.kind == "model" else step.name
    # Most steps of a model need no change, and this check is faster than copying such a step.
    if step.fault is None and name == step.name and "model" not in step.data:
        return step
    data = dict(step.data)
    if step.kind == "model" and "model" in data:
        data["model"] = hide_paths_in(data["model"])
    if step.fault is not None:
        data = {key: value if key == "args" else hide_paths_in(value) for key, value in data.items()}
    return replace(step, name=name, data=data, text=step.text if step.fault is None else hide_paths(step.text))


def _shorten(path: str) -> str:
    full = os.path.normpath(os.path.expanduser(path))
    cwd = os.getcwd()
    if full.startswith(f"{cwd}{os.sep}"):
        return Path(full).relative_to(cwd).as_posix()
    return re.split(r"[\\/]", path.rstrip("\\/"))[-1]
