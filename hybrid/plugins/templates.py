"""The output of `hybrid new` and `hybrid tools new`: the files of `hybrid/templates` under the user's names."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from hybrid.core.errors import UsageError
from hybrid.core.files import complete_or_absent, write_atomic

FOLDER: Final = Path(__file__).parents[1] / "templates"
# Files that would take effect in this repository under their real names.
PLACES: Final = {"gitignore": ".gitignore", "ci.yml": ".github/workflows/ci.yml"}
SUFFIXES: Final = (".py", ".toml", ".md", ".yml", ".yaml", "")


def filled(kind: str, names: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of a template's files by path, with the user's names in texts and paths.

    Args:
        kind: the folder of the template.
        names: the user's word for each word of the template, such as `my_tool`; `MyTool` is derived.
    """
    files = {}
    for file in sorted((FOLDER / kind).rglob("*")):
        if file.is_file() and file.suffix in SUFFIXES and "__pycache__" not in file.parts:
            path = file.relative_to(FOLDER / kind).as_posix()
            files[PLACES.get(path, path)] = file.read_text()
    return {_renamed(path, names): _renamed(text, names) for path, text in files.items()}


def write(files: Mapping[Path, str]) -> None:
    """Write new files. Raises `UsageError` for an existing file."""
    for path in files:
        if path.exists():
            raise UsageError(f"{path} already exists")
    with ExitStack() as stack:
        for path, text in files.items():
            stack.enter_context(complete_or_absent(path))
            write_atomic(path, text.encode())


def _renamed(text: str, names: Mapping[str, str]) -> str:
    for old, new in names.items():
        text = text.replace(old, new)
        if old.isidentifier():
            text = text.replace(_class_name(old), _class_name(new))
    return text


def _class_name(word: str) -> str:
    return "".join(part.capitalize() for part in word.split("_"))
