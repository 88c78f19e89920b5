"""`replay:DIR`: recorded answers."""

from __future__ import annotations

from pathlib import Path

from hybrid.config import ModelSettings
from hybrid.core.errors import UsageError
from hybrid.core.images import ImageStore
from hybrid.models.base import ChatModel
from hybrid.models.providers import given_options


def open_model(name: str, settings: ModelSettings, store: ImageStore) -> ChatModel:
    """Open the recordings of a folder.

    Raises:
        UsageError: a name without a folder, a missing folder, or an option that recordings do not have.
        DataError: recordings that cannot be used.
    """
    del store
    if not (folder := name.partition(":")[2]):
        raise UsageError(f"--model {name!r}: write replay:DIR")
    # Reject options that have no effect on recordings, so that no manifest lists them.
    fields = ("base_url", "image_detail", "max_pixels", "reasoning_effort", "tool_calling", "thoughts")
    useless = [*given_options(settings, *fields), *(["--stream"] if settings.stream == "on" else [])]
    useless += [f"--model-arg {key}" for key, value in settings.extra.items() if value is not None]
    if useless:
        raise UsageError(f"{', '.join(useless)}: the model 'replay' has no such option")
    from hybrid.models.replay import ReplayModel

    return ReplayModel(name, Path(folder))


MODEL = open_model
