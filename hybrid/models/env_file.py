"""Keys from a file `.env` in the working folder; variables of the environment take precedence.

    load_keys()                      # sets the missing variables of this process
    found_keys()                     # names and where each was found, never a value

Only variables whose name says that they are a secret (`OPENAI_API_KEY`, `HF_TOKEN`) are read. Addresses, proxies and
search paths are not: a folder from somebody else could redirect requests or load code with them. The file is parsed by
python-dotenv without `${NAME}` substitution, and is never written.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from hybrid.core.errors import UsageError
from hybrid.core.secrets import keep_secret
from hybrid.models.credentials import names_a_secret

ENV_FILE: Final = ".env"
# Maximum size of the file in bytes, more than any file of keys has.
MAX_BYTES: Final = 1_000_000
Origin = Literal["environment", ".env", ""]

# Variables that this process has read from the file.
_loaded: set[str] = set()


@dataclass(frozen=True)
class Key:
    """The name of a variable with a key, its provider, and the place where it was found (empty if not found)."""

    variable: str
    provider: str
    origin: Origin


def load_keys(folder: Path | None = None) -> None:
    """Set the keys of `.env` that the environment does not have, and register them as secrets.

    Raises:
        UsageError: the file cannot be read.
    """
    for name, value in read_env_file(folder or Path()).items():
        if names_a_secret(name) and value and name not in os.environ:
            keep_secret(value)
            os.environ[name] = value
            _loaded.add(name)


def read_env_file(folder: Path) -> dict[str, str]:
    """Return the variables of the file in a folder; none if there is no file.

    Raises:
        UsageError: it cannot be read, is not UTF-8, or is larger than `MAX_BYTES`.
    """
    path = folder / ENV_FILE
    # `.env` may also be the folder of a virtual environment.
    if not path.is_file():
        return {}
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UsageError(f"{path} is larger than {MAX_BYTES:,} bytes: it should contain lines NAME=VALUE")
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}; fix its permissions or move it") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text: save it as UTF-8, with lines NAME=VALUE") from error
    from dotenv import dotenv_values

    # Leave out a variable without a value, or with a null character, which the environment cannot hold.
    values = dotenv_values(stream=io.StringIO(text), interpolate=False)
    return {name: value for name, value in values.items() if value is not None and "\0" not in name + value}


def found_keys(folder: Path | None = None) -> tuple[Key, ...]:
    """Return the keys of known providers, then other keys of the file, each with the place where it was found."""
    in_file = read_env_file(folder or Path())
    keys = dict(_known_keys())
    others = {name: "" for name, value in in_file.items() if names_a_secret(name) and value and name not in keys}
    return tuple(Key(name, provider, _origin(name, in_file)) for name, provider in {**keys, **others}.items())


def unread_names(folder: Path | None = None) -> tuple[str, ...]:
    """Return the names in the file that are not read, because they do not name a secret."""
    return tuple(name for name in read_env_file(folder or Path()) if not names_a_secret(name))


def _origin(name: str, in_file: dict[str, str]) -> Origin:
    if os.environ.get(name) and name not in _loaded:
        return "environment"
    # A variable that is empty in the environment stays empty, whatever the file contains.
    return ".env" if in_file.get(name) and (name in _loaded or name not in os.environ) else ""


def _known_keys() -> Iterator[tuple[str, str]]:
    """Yield the name of each variable that may contain a key, and the provider that reads it."""
    from hybrid.models.providers import PROVIDERS

    for provider in PROVIDERS.values():
        yield from ((name, provider.name) for name in provider.key_env)
    yield from (("OLLAMA_API_KEY", "ollama"), ("HF_TOKEN", "the hub of Hugging Face"))
