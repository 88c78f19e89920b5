"""`--args JSON` of the commands that call tools."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hybrid.core.errors import UsageError

if TYPE_CHECKING:
    from hybrid.core.types import Json


def arguments_of(text: str) -> dict[str, Json]:
    """Parse the arguments of a call. Raises `UsageError` for anything but a JSON object."""
    try:
        arguments = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--args is not JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise UsageError("--args must be a JSON object")
    return arguments
