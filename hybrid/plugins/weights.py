"""Find weights: in a directory, or by a hub id that is on disk or may be downloaded.

A folder of weights is untrusted. It is checked before any library opens it: only safetensors are accepted, and no file
may refer to files outside of the folder or to code to run.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from hybrid.core.errors import WeightsError, importable, needs_package
from hybrid.plugins.registry import load
from hybrid.tool import BackendCard, Card, Provenance, Tool

# Prefix of model folders in the hub's cache.
CACHED = "models--"


# Files of a repository that are downloaded: weights, configurations, tokenizers.
FETCHED = ("*.json", "*.safetensors", "*.txt", "*.model", "*.jinja")


def fetch_command(tool: str, source: str | None = None) -> str:
    """Return the command (in backquotes) that downloads a tool's default weights, or those at `source` if given."""
    return f"`hybrid tools fetch {tool}{f' --weights {tool}={source}' if source else ''}`"


def find_weights(source: str, *, download: bool, command: str = "`hybrid tools fetch`") -> Path:
    """Return the local directory of weights.

    Args:
        source: a directory, or a hub id such as `depth-anything/Depth-Anything-V2-Small-hf`.
        download: whether a hub id that is not on disk may be downloaded.
        command: the command that an error suggests (`fetch_command`).

    Raises:
        WeightsError: the directory is missing, the id is not on disk and cannot be downloaded, or `look_through`
            refuses the folder.
    """
    if not source:
        raise WeightsError("no weights were given for it")
    folder = Path(source).expanduser()
    if not folder.is_dir():
        if folder.is_file() or names_directory(source):
            raise WeightsError(f"weights absent: {no_directory(source)}")
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

        try:
            folder = Path(snapshot_download(source, local_files_only=not download, allow_patterns=list(FETCHED)))
        except (LocalEntryNotFoundError, HfHubHTTPError, HFValidationError, OSError) as error:
            reason = unfetched(error) if download else f"is not on disk ({command} fetches it)"
            raise WeightsError(f"weights absent: {source} {reason}") from error
    look_through(folder, source)
    return folder


def look_through(folder: Path, source: str) -> None:
    """Refuse a folder whose files refer to other places: transformers and diffusers would follow such references.

    Symbolic links are followed (the hub's cache consists of them), because the publisher cannot have made them.

    Raises:
        WeightsError: a weight file is not a file; an index (`*.index.json`) names a shard outside of its folder or in
            another format; there are adapters, which need another checkpoint; a config.json names code.
    """
    for path in _files(folder):
        label = f"{source}: {path.relative_to(folder).as_posix()}"
        if not path.is_file():
            raise WeightsError(f"{label} is not a file")
        if path.name.endswith(INDEX):
            _refuse_shards_elsewhere(path, label)
        elif path.name == ADAPTERS:
            raise WeightsError(f"{label}: adapters are not loaded; merge them into their base checkpoint first")
        elif path.name == CONFIG:
            _refuse_code(path, label)


INDEX = ".index.json"
ADAPTERS = "adapter_config.json"
CONFIG = "config.json"


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files to check, sorted; linked folders are not entered."""
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.endswith((".safetensors", INDEX)) or name in (ADAPTERS, CONFIG):
                yield Path(place) / name


def _refuse_shards_elsewhere(path: Path, label: str) -> None:
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise WeightsError(f"{label} is not JSON ({type(error).__name__})") from error
    shards = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(shards, dict):
        raise WeightsError(f"{label} lists no weight files (shards)")
    for shard in set(map(str, shards.values())):
        if not shard.endswith(".safetensors") or Path(shard).name != shard or "\\" in shard:
            raise WeightsError(f"{label} names {shard[:80]!r}, which is not a .safetensors file next to it")


def _refuse_code(path: Path, label: str) -> None:
    """Refuse a hub kernel (`owner/name`), which transformers would download and run; `auto_map` is never followed.

    A file that is not JSON is accepted: the code that loads it raises its own error.
    """
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return
    for key, value in _entries(content):
        if "attn_implementation" in key and "/" in str(value):
            raise WeightsError(f"{label}: {key} names code to download and run ({str(value)[:80]!r})")


def _entries(content: object) -> Iterator[tuple[str, object]]:
    """Yield every key and value of a JSON document, at any depth."""
    pending = [content]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            yield from node.items()
            pending += node.values()
        elif isinstance(node, list):
            pending += node


def names_directory(source: str) -> bool:
    """Return whether a source can only be a directory: a hub id is OWNER/NAME, with exactly one slash."""
    return Path(source).expanduser().is_absolute() or source.startswith((".", "~")) or source.count("/") != 1


def no_directory(source: str) -> str:
    """Explain why a source is not a directory of weights: it is missing, or it is a file."""
    path = Path(source).expanduser()
    if not path.is_file():
        return f"directory {source} not found; a repository of the hub is named OWNER/NAME"
    if path.suffix == ".safetensors":
        return f"{source} is a file; give its folder, with its configuration next to it"
    return f"{source} is a file; `hybrid tools import-weights {source} DIR` writes it as a folder of weights"


def unfetched(error: Exception) -> str:
    """Explain why huggingface_hub could not provide a repository, and the fix; the text follows the repository's id."""
    from huggingface_hub import constants
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
    )

    cause = error.__cause__ if isinstance(error, LocalEntryNotFoundError) and error.__cause__ else error
    if isinstance(cause, GatedRepoError):
        return f"is gated at {constants.ENDPOINT}: accept its conditions there, and set HF_TOKEN to your token"
    if isinstance(cause, RepositoryNotFoundError):
        return f"does not exist at {constants.ENDPOINT}, or is private; if private, set HF_TOKEN to a token with access"
    if isinstance(cause, HFValidationError):
        return "is neither a directory nor an id of the hub (OWNER/NAME)"
    if isinstance(cause, OfflineModeIsEnabled):
        return "is not on disk, and HF_HUB_OFFLINE is set"
    message = " ".join(str(cause).split())[:120]
    return (
        f"cannot be fetched from {constants.ENDPOINT} ({type(cause).__name__}: {message}); set HF_ENDPOINT to a "
        "mirror, or use `hybrid tools fetch --from DIR` with a folder; downloaded files are kept"
    )


def weights_in_use(tool: Tool, learned: BackendCard, weights: Mapping[str, str]) -> str | None:
    """Return the source of a learned backend's weights: a directory, a hub id, or the package that contains them.

    The result is None if the backend itself has no weights.
    """
    override = weights.get(tool.card.name)
    if override is None and learned.package and importable(learned.package):
        return learned.package
    return override or learned.weights


def provenance_of(learned: BackendCard, source: str) -> Provenance | None:
    """Return the provenance of the weights at `source` according to the card; None if unknown.

    A folder is only recognized within the hub's cache (`models--OWNER--NAME`): other folder names prove nothing.
    """
    name = source
    folder = Path(source).expanduser()
    if folder.is_dir():
        cached = next((part for part in folder.resolve().parts if part.startswith(CACHED)), None)
        if cached is None:
            return None
        name = cached.removeprefix(CACHED).replace("--", "/")
    return next((provenance for provenance in learned.provenances if provenance.weights.lower() == name.lower()), None)


# The backend of a tool that has neither weights nor a classical backend.
ABSENT = "absent"


def backends_in_use(tools: Sequence[Tool], backend: str, weights: Mapping[str, str]) -> dict[str, str]:
    """Return the backend that will answer for each tool, with its version, as in the manifest.

    The entry of a learned backend has a hash of its weight files, so that other weights are another configuration.
    """
    return {tool.card.name: _in_use(tool, backend, weights) for tool in tools}


def _in_use(tool: Tool, backend: str, weights: Mapping[str, str]) -> str:
    name = tool.card.name
    learned, classical = tool.backend("learned"), tool.backend("classical")
    if learned is not None and backend != "classical":
        may_download = name in weights or backend == "learned"
        try:
            folder = weights_of(tool, learned, weights, download=may_download)
            return f"learned:{learned.version}:{_identity(folder, learned, backend, weights)}"
        except WeightsError:
            if may_download:
                raise
    return f"classical:{classical.version}" if classical and not missing_library([tool.card]) else ABSENT


def missing_library(cards: Iterable[Card]) -> str | None:
    """Return the message for tools whose classical backend needs a missing library; None if no tool does."""
    by_library: dict[str, list[str]] = {}
    for card in cards:
        classical = card.backend("classical")
        if classical and classical.library and not importable(classical.library):
            by_library.setdefault(classical.library, []).append(card.name)
    lines = (
        needs_package(f"the weight-free backend of {', '.join(names)}", library)
        for library, names in by_library.items()
    )
    return "; ".join(lines) or None


def weights_of(tool: Tool, learned: BackendCard, weights: Mapping[str, str], *, download: bool) -> Path | None:
    """Return the directory of a learned backend's weights; None if the backend itself loads no weights.

    That is the case if a package contains them, or if the backend only uses other tools, which must then have their
    weights.

    Raises:
        WeightsError: like `find_weights`, for this tool or for a tool that it needs.
    """
    name = tool.card.name
    if name not in weights and learned.package and importable(learned.package):
        return None
    if name in weights or learned.weights or not learned.needs:
        override = weights.get(name)
        return find_weights(override or learned.weights or "", download=download, command=fetch_command(name, override))
    for need in learned.needs:
        other: Tool = load("tools", need.tool)
        card = other.backend("learned")
        if card is not None and other.backend("classical") is None:
            weights_of(other, card, weights, download=download or need.tool in weights)
    return None


def _identity(folder: Path | None, learned: BackendCard, backend: str, weights: Mapping[str, str]) -> str:
    """Return the identity of weights: their hash, the package's version, or the backends of the required tools."""
    if folder is not None:
        return weights_sha256(folder)[:12]
    if learned.package:
        return importlib.metadata.version(learned.package)
    others = (load("tools", need.tool) for need in learned.needs)
    return "+".join(f"{other.card.name}={_in_use(other, backend, weights)}" for other in others)


def weights_sha256(folder: Path) -> str:
    """Return a hash of the names and contents of all weight files below a directory."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*.safetensors")):
        with path.open("rb") as file:
            name = path.relative_to(folder).as_posix()
            total.update(f"{name}\x1f{hashlib.file_digest(file, 'sha256').hexdigest()}\x1e".encode())
    return total.hexdigest()
