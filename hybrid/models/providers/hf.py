"""`hf:DIR_OR_ID`: models whose weights are loaded into this process."""

from __future__ import annotations

from pathlib import Path

from hybrid.config import ModelSettings
from hybrid.core.errors import UsageError
from hybrid.core.images import ImageStore
from hybrid.models.base import ChatModel
from hybrid.models.in_process.chat import HuggingFaceChat, refuse_without_local
from hybrid.plugins.weights import names_directory, no_directory


def open_model(name: str, settings: ModelSettings, store: ImageStore) -> ChatModel:
    """Create the model without loading it.

    Raises:
        UsageError: a name without a directory or id, a missing directory, a directory without a model, or torch is not
            installed.
    """
    location = name.partition(":")[2]
    if not location:
        raise UsageError(f"--model {name!r}: write hf:DIR, or hf:OWNER/NAME for a repository of the hub")
    folder = Path(location).expanduser()
    # Checked before any data are read; whether a repository of the hub is on disk is known only when it is loaded.
    if not folder.is_dir() and names_directory(location):
        raise UsageError(f"--model {name}: {no_directory(location)}")
    if folder.is_dir() and not (folder / "config.json").is_file():
        raise UsageError(
            f"--model {name}: the directory contains no config.json; give one that save_pretrained wrote, "
            "or a repository of the hub as hf:OWNER/NAME"
        )
    refuse_without_local(name)
    return HuggingFaceChat(name, settings, store)


MODEL = open_model
