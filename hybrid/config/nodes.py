"""A YAML file as plain values with their locations, so that errors in hand-written files name the line.

    root = read_nodes(Path("run.yaml"), "limit: 5")
    root.value["limit"].where       # "run.yaml, line 1"

Tags that create objects are rejected; so are aliases, with which a small file can expand without limit.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid.core.errors import UsageError
from hybrid.core.types import Json

# Largest nesting depth of lists and mappings.
DEEPEST = 20

Scalar = str | int | float | bool | None


@dataclass(frozen=True)
class Node:
    """A value of the file, with its location."""

    value: Scalar | tuple[Node, ...] | dict[str, Node]
    # Location for messages: `run.yaml, line 3`.
    where: str
    # A scalar as it is written: `1e3`, `off`.
    text: str = ""

    def plain(self) -> Json:
        """Return the value as JSON, for values that are passed to a provider unchanged."""
        if isinstance(self.value, tuple):
            return [item.plain() for item in self.value]
        if isinstance(self.value, dict):
            return {key: value.plain() for key, value in self.value.items()}
        return self.value


def of_json(value: Any, location: str) -> Node:
    """Convert values that were parsed already, with one location for all."""
    if isinstance(value, dict):
        return Node({key: of_json(part, location) for key, part in value.items()}, location)
    if isinstance(value, list):
        return Node(tuple(of_json(part, location) for part in value), location)
    return Node(value, location, value if isinstance(value, str) else json.dumps(value))


def read_nodes(path: Path, text: str, option: str = "") -> Node | None:
    """Return the root of the document; None if it is empty.

    Args:
        path: path of the file, for messages.
        text: its content.
        option: prefix of the file's name in errors, such as `--config `.

    Raises:
        UsageError: invalid YAML, an alias, a duplicate key, or too deep nesting.
    """
    import yaml

    depth = 0
    try:
        for event in yaml.parse(text, yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            at = f"{option}{path}{_line(event.start_mark)}"
            if depth > DEEPEST:
                raise UsageError(f"{at}: values are nested more than {DEEPEST} deep")
            if isinstance(event, yaml.AliasEvent):
                raise UsageError(f"{at}: aliases such as *{event.anchor} are not read: write the value itself")
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        return None if root is None else _from_yaml(loader, root, path)
    except yaml.MarkedYAMLError as error:
        at = _line(error.problem_mark or error.context_mark)
        raise UsageError(f"{option}{path}{at}: not valid YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"{option}{path}: not valid YAML: {' '.join(str(error).split())}") from error


def _line(mark: Any) -> str:
    return "" if mark is None else f", line {mark.line + 1}"


def _from_yaml(loader: Any, node: Any, path: Path) -> Node:
    import yaml

    location = f"{path}{_line(node.start_mark)}"
    if isinstance(node, yaml.SequenceNode):
        return Node(tuple(_from_yaml(loader, item, path) for item in node.value), location)
    if isinstance(node, yaml.MappingNode):
        nodes: dict[str, Node] = {}
        for key, value in node.value:
            at = f"{path}{_line(key.start_mark)}"
            if not isinstance(key, yaml.ScalarNode):
                raise UsageError(f"{at}: a key must be a single word")
            if key.value in nodes:
                raise UsageError(f"{at}: {key.value}: given twice")
            nodes[key.value] = _from_yaml(loader, value, path)
        return Node(nodes, location)
    value = loader.construct_object(node)
    # A value of another type, such as a date, stays text.
    return Node(value if isinstance(value, Scalar) else node.value, location, node.value)
