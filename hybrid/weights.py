"""Where weights come from: a directory, or a hub id that is already on disk or may be fetched."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from hybrid.errors import WeightsError
from hybrid.tool import Tool


def find_weights(where: str, *, download: bool) -> Path:
    """The local directory of some weights.

    Args:
        where: a directory, or a hub id such as `depth-anything/Depth-Anything-V2-Small-hf`.
        download: whether a hub id that is not on disk may be fetched.

    Raises:
        WeightsError: there is no such directory, or the id is not on disk and cannot be fetched.
    """
    if not where:
        raise WeightsError("no weights are named for it")
    folder = Path(where).expanduser()
    if folder.is_dir():
        return folder
    if folder.is_absolute() or where.startswith((".", "~")) or where.count("/") != 1:
        raise WeightsError(f"weights absent: there is no directory {where}")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(
            snapshot_download(
                where,
                local_files_only=not download,
                allow_patterns=["*.json", "*.safetensors", "*.txt", "*.model"],
            )
        )
    except (LocalEntryNotFoundError, HfHubHTTPError, HFValidationError, OSError) as error:
        why = "cannot be fetched" if download else "is not on disk (--backend learned fetches it)"
        raise WeightsError(f"weights absent: {where} {why}") from error


def backends_in_use(tools: Sequence[Tool], backend: str, weights: Mapping[str, str]) -> dict[str, str]:
    """For each tool which backend will answer and in which version, as it stands in the manifest.

    A learned backend is named with a hash over its weight files, so that other weights are another configuration.
    """
    return {tool.card.name: _in_use(tool, backend, weights) for tool in tools}


def _in_use(tool: Tool, backend: str, weights: Mapping[str, str]) -> str:
    name = tool.card.name
    learned, classical = tool.backend("learned"), tool.backend("classical")
    if learned is not None and backend != "classical":
        asked = name in weights or backend == "learned"
        try:
            folder = find_weights(weights.get(name, learned.weights or ""), download=asked)
            return f"learned:{learned.version}:{weights_sha256(folder)[:12]}"
        except WeightsError:
            if asked:
                raise
    return f"classical:{classical.version}" if classical else "absent"


def weights_sha256(folder: Path) -> str:
    """One hash over the weight files of a directory, by name and content."""
    total = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb") as file:
            total.update(f"{path.name}\x1f{hashlib.file_digest(file, 'sha256').hexdigest()}\x1e".encode())
    return total.hexdigest()
