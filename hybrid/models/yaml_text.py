r"""YAML as models write it in the input of an action, read from the parser's events, within limits.

    read_yaml("image: img:1\nbox: {x0: 1, y0: 2}")  ->  {"image": "img:1", "box": {"x0": "1", "y0": "2"}}

A loader would follow aliases: with them, a few hundred characters can expand to billions of values.
"""

from __future__ import annotations

from typing import Any

from hybrid.core.messages import MAX_CHARACTERS, MAX_DEPTH, MAX_VALUES


def read_yaml(text: str) -> Any:
    """Return the value of a document, with every scalar as its text; None for an empty document.

    The last value of a repeated key counts, as in JSON.

    Raises:
        ValueError: not YAML, more than one document, an anchor, an alias, a key that is not one word, or more than
            `MAX_CHARACTERS` characters, `MAX_VALUES` values or `MAX_DEPTH` levels.
    """
    import yaml

    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"more than {MAX_CHARACTERS:,} characters")
    builder = _Builder()
    try:
        for event in yaml.parse(text, yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader):
            if (anchor := getattr(event, "anchor", None)) is not None:
                kind = "an alias (*" if isinstance(event, yaml.AliasEvent) else "an anchor (&"
                raise ValueError(f"{kind}{anchor}): write the value itself")
            if isinstance(event, yaml.DocumentStartEvent):
                builder.start_document()
            elif isinstance(event, yaml.ScalarEvent):
                builder.add(event.value)
            elif isinstance(event, yaml.CollectionStartEvent):
                builder.open({} if isinstance(event, yaml.MappingStartEvent) else [])
            elif isinstance(event, yaml.CollectionEndEvent):
                builder.close()
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {error}"[:200]) from error
    return builder.root


class _Builder:
    """Assembles the values of a document; each value is added to the innermost open collection."""

    def __init__(self) -> None:
        self.root: Any = None
        self._documents = self._values = 0
        self._open: list[Any] = []
        # For each open mapping, the key of the next value.
        self._keys: list[str | None] = []

    def start_document(self) -> None:
        self._documents += 1
        if self._documents > 1:
            raise ValueError("more than one YAML document")

    def add(self, value: Any) -> None:
        self._values += 1
        if self._values > MAX_VALUES:
            raise ValueError(f"more than {MAX_VALUES:,} values")
        if not self._open:
            self.root = value
        elif isinstance(into := self._open[-1], list):
            into.append(value)
        elif (key := self._keys[-1]) is not None:
            into[key], self._keys[-1] = value, None
        elif isinstance(value, str):
            self._keys[-1] = value
        else:
            raise ValueError("a YAML key must be one word")

    def open(self, collection: Any) -> None:
        if len(self._open) == MAX_DEPTH:
            raise ValueError(f"nested more than {MAX_DEPTH} deep")
        self.add(collection)
        self._open.append(collection)
        self._keys.append(None)

    def close(self) -> None:
        self._open.pop()
        self._keys.pop()
