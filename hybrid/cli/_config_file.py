"""A configuration of `hybrid run`: a YAML or JSON file, or the manifest of a run, as options with their places.

    file = read_config(Path("run.yaml"))
    file.entries["limit"].line      # where it stands
    file.is_manifest                # whether it tells the options of a run that was made

Only plain values are read: neither tags that make objects nor aliases, which let a small file grow without end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hybrid.errors import UsageError
from hybrid.log.files import read_small
from hybrid.log.manifest import MANIFEST, read_manifest
from hybrid.secrets import REDACTED
from hybrid.types import Json

OPTIONS = "options"
"""The key of a manifest under which the options lie."""
LARGEST = 1_000_000
"""Bytes of the largest file that is read as YAML; a configuration has a few hundred."""
DEEPEST = 20
"""How many lists and mappings may lie in each other."""

Kind = Literal["text", "number", "switch", "nothing", "list", "mapping"]


@dataclass(frozen=True)
class Node:
    """A value of the file: the text of a scalar as it is written, or the values in it; and where it stands."""

    kind: Kind
    where: str
    """`run.yaml, line 3`."""
    text: str = ""
    items: tuple[Node, ...] = ()
    entries: Mapping[str, Node] | None = None

    def plain(self) -> Json:
        """The value as JSON: for what a provider is given as it is."""
        if self.kind == "list":
            return [item.plain() for item in self.items]
        if self.entries is not None:
            return {key: value.plain() for key, value in self.entries.items()}
        if self.kind == "nothing":
            return None
        if self.kind == "switch":
            return self.text.lower() in ("true", "yes", "on")
        return self.text if self.kind == "text" else _number(self.text)


@dataclass(frozen=True)
class ConfigFile:
    """The top level of a configuration."""

    path: Path
    entries: Mapping[str, Node]
    is_manifest: bool = False


def read_config(path: Path) -> ConfigFile:
    """Read a configuration, or the manifest of a run (its file, or the run's folder).

    Raises:
        UsageError: it is neither, or says something twice.
        DataError: a damaged manifest.
    """
    if path.is_dir():
        if not (path / MANIFEST).is_file():
            raise UsageError(f"--config {path}: this folder is no run: it has no {MANIFEST}")
        path = path / MANIFEST
    try:
        if path.name == MANIFEST:
            return _of_manifest(path)
        data = read_small(path)
    except OSError as error:
        raise UsageError(f"--config {path}: cannot be read: {error.strerror or error}") from error
    if path.suffix == ".json" and _is_manifest(data):
        return _of_manifest(path)
    if len(data) > LARGEST:
        raise UsageError(f"--config {path}: {len(data):,} bytes are no configuration: {LARGEST:,} at most")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"--config {path}: is not text in UTF-8") from error
    # Between the values of JSON a tab is a space, in its texts there is none; YAML takes neither.
    root = _read_yaml(path, text.replace("\t", " ") if path.suffix == ".json" else text)
    if root is None or root.entries is None:
        raise UsageError(f"--config {path}: write one option a line, KEY: VALUE")
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
            f"--config {path}: this manifest tells no options: its run is an import, was made from Python without "
            "them, or by an older version"
        )
    if REDACTED in json.dumps(options):
        hidden = next(key for key, value in options.items() if REDACTED in json.dumps(value))
        raise UsageError(f"--config {path}: {hidden} held a secret, which was not written: give it anew in a file")
    options = {**options, **_pinned(content, options)}
    return ConfigFile(path, {key: _from_json(value, str(path)) for key, value in options.items()}, is_manifest=True)


def _pinned(content: Mapping[str, Any], options: Mapping[str, Json]) -> dict[str, Json]:
    """The commit of the data set that was asked, where it was of the hub: a branch may have gone on since then."""
    from hybrid.running.hub import HUB, is_hub

    data = content["identity"].get("data")
    origin = data if isinstance(data, dict) else {}
    revision, named = origin.get("revision"), options.get("data", HUB)
    if origin.get("kind") != HUB or not isinstance(revision, str) or not is_hub(str(named)):
        return {}
    return {"data": f"{HUB}@{revision}"}


def _from_json(value: Json, where: str) -> Node:
    if isinstance(value, dict):
        return Node("mapping", where, entries={key: _from_json(part, where) for key, part in value.items()})
    if isinstance(value, list):
        return Node("list", where, items=tuple(_from_json(part, where) for part in value))
    return Node(_kind(value), where, text=value if isinstance(value, str) else json.dumps(value))


def _kind(value: Any) -> Kind:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "switch"
    return "number" if isinstance(value, int | float) else "text"


def _number(text: str) -> Json:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _read_yaml(path: Path, text: str) -> Node | None:
    """The root of the document; None where it is empty."""
    import yaml

    depth = 0
    try:
        for event in yaml.parse(text, yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                raise UsageError(f"--config {path}{_line(event.start_mark)}: more than {DEEPEST} values in each other")
            if isinstance(event, yaml.AliasEvent):
                raise UsageError(
                    f"--config {path}{_line(event.start_mark)}: an alias (*{event.anchor}): write the value itself"
                )
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        return None if root is None else _from_yaml(loader, root, path)
    except yaml.MarkedYAMLError as error:
        at = _line(error.problem_mark or error.context_mark)
        raise UsageError(f"--config {path}{at}: is no YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"--config {path}: is no YAML: {' '.join(str(error).split())}") from error


def _line(mark: Any) -> str:
    return "" if mark is None else f", line {mark.line + 1}"


def _from_yaml(loader: Any, node: Any, path: Path) -> Node:
    import yaml

    where = f"{path}, line {node.start_mark.line + 1}"
    if isinstance(node, yaml.SequenceNode):
        return Node("list", where, items=tuple(_from_yaml(loader, item, path) for item in node.value))
    if isinstance(node, yaml.MappingNode):
        nodes: dict[str, Node] = {}
        for key, value in node.value:
            at = f"{path}, line {key.start_mark.line + 1}"
            if not isinstance(key, yaml.ScalarNode):
                raise UsageError(f"{at}: a key is one word")
            if key.value in nodes:
                raise UsageError(f"{at}: {key.value}: given twice")
            nodes[key.value] = _from_yaml(loader, value, path)
        return Node("mapping", where, entries=nodes)
    return Node(_kind(loader.construct_object(node)), where, text=node.value)
