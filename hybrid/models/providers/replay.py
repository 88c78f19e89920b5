"""`replay:DIR`: recorded answers."""

from __future__ import annotations

from pathlib import Path

from hybrid.config import ModelSettings
from hybrid.errors import UsageError
from hybrid.images import ImageStore
from hybrid.models.base import ChatModel


def open_model(name: str, settings: ModelSettings, store: ImageStore) -> ChatModel:
    """The recordings of a folder.

    Raises:
        UsageError: a name without a folder, a folder that is not there, or an option that recordings do not have.
        DataError: recordings that cannot be used.
    """
    del store
    if not (folder := name.partition(":")[2]):
        raise UsageError(f"--model {name!r}: write replay:DIR")
    # Options that would change nothing are refused: a manifest must not claim them.
    given = {
        "--base-url": settings.base_url,
        "--image-detail": settings.image_detail,
        "--max-pixels": settings.max_pixels,
        "--reasoning-effort": settings.reasoning_effort,
        "--tool-calling": settings.tool_calling if settings.tool_calling != "auto" else None,
        "--reasoning": settings.thoughts if settings.thoughts != "keep" else None,
        "--stream": "on" if settings.stream == "on" else None,
        **{f"--model-arg {key}": value for key, value in settings.extra.items()},
    }
    useless = [option for option, value in given.items() if value is not None]
    if useless:
        raise UsageError(f"{', '.join(useless)}: the model 'replay' has no such option")
    from hybrid.models.replay import ReplayModel

    return ReplayModel(name, Path(folder))


MODEL = open_model
