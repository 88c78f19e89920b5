"""A configuration of `hybrid run`: a YAML or JSON file, or a run's manifest, as options with their locations.

    file = read_config(Path("run.yaml"))
    file.entries["limit"].where     # its location
    file.is_manifest                # whether it contains the options of an existing run

Only plain values are read. Tags that create objects are rejected; so are aliases, with which a small file can expand
without limit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hybrid.config.nodes import Node, of_json, read_nodes
from hybrid.core.errors import UsageError
from hybrid.core.files import read_small
from hybrid.core.secrets import REDACTED
from hybrid.log.manifest import MANIFEST, read_manifest

# The manifest's key for the options.
OPTIONS = "options"
# Largest size of a YAML file in bytes; a typical configuration has a few hundred.
MAX_BYTES = 1_000_000


@dataclass(frozen=True)
class ConfigFile:
    """The top level of a configuration."""

    path: Path
    entries: Mapping[str, Node]
    is_manifest: bool = False


def read_config(path: Path) -> ConfigFile:
    """Read a configuration, or the manifest of a run (its file, or the run's folder).

    Raises:
        UsageError: the file is neither of these, or has a duplicate key.
        DataError: a damaged manifest.
    """
    if path.is_dir():
        if not (path / MANIFEST).is_file():
            raise UsageError(f"--config {path}: this folder is not a run, because it has no {MANIFEST}")
        path = path / MANIFEST
    try:
        if path.name == MANIFEST:
            return _of_manifest(path)
        data = read_small(path)
    except OSError as error:
        raise UsageError(f"--config {path}: cannot be read: {error.strerror or error}") from error
    if path.suffix == ".json" and _is_manifest(data):
        return _of_manifest(path)
    if len(data) > MAX_BYTES:
        raise UsageError(
            f"--config {path}: {len(data):,} bytes are too many for a configuration (at most {MAX_BYTES:,})"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"--config {path}: is not text in UTF-8") from error
    # Between JSON values a tab equals a space, and JSON texts contain none; YAML rejects tabs.
    root = read_nodes(path, text.replace("\t", " ") if path.suffix == ".json" else text, "--config ")
    if root is None or root.entries is None:
        raise UsageError(f"--config {path}: write one option per line, KEY: VALUE")
    return ConfigFile(path, root.entries)


def _is_manifest(data: bytes) -> bool:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(content, dict) and {"format", "identity"} <= content.keys()


def _of_manifest(path: Path) -> ConfigFile:
    content = read_manifest(path)
    options = content.get(OPTIONS)
    if not isinstance(options, dict):
        raise UsageError(
            f"--config {path}: this manifest records no options: the run was imported, or was made from Python "
            "without options or by an older version"
        )
    if REDACTED in json.dumps(options):
        hidden = next(key for key, value in options.items() if REDACTED in json.dumps(value))
        raise UsageError(f"--config {path}: {hidden} contained a secret, which was not saved: give it again in a file")
    from hybrid.running.hub import HUB, is_hub

    # For data from the hub, use the commit of the run: a branch may have changed since then.
    data = content["identity"].get("data")
    origin = data if isinstance(data, dict) else {}
    revision = origin.get("revision")
    if origin.get("kind") == HUB and isinstance(revision, str) and is_hub(str(options.get("data", HUB))):
        options = {**options, "data": f"{HUB}@{revision}"}
    return ConfigFile(path, {key: of_json(value, str(path)) for key, value in options.items()}, is_manifest=True)
