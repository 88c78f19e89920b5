"""The identity of a run, its digest, and the name of the folder derived from it.

Options for the amount and speed of work (limit, concurrency, engine, the list of solvers) do not count, so a run can be
extended with other values. All others do: they are in the manifest, and resuming a run with another value is an error.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import fields
from functools import cache
from typing import Final

from hybrid.config.option import AffectsRunId, Concern
from hybrid.config.run_config import RunConfig
from hybrid.core.types import Json

# Maximum length of a model's name in a folder's name.
MAX_MODEL_LENGTH = 40


@cache
def counting(config: type) -> Mapping[str, AffectsRunId]:
    """Return the fields of a configuration that distinguish runs, with their marks."""
    marks = {option_field.name: option_field.metadata["identity"] for option_field in fields(config)}
    return {name: mark for name, mark in marks.items() if isinstance(mark, AffectsRunId)}


def identity_of(config: RunConfig, facts: Mapping[str, Json]) -> dict[str, Json]:
    """Return every option that distinguishes runs, under its key, in the order of the fields.

    Args:
        config: the options.
        facts: resolved values, by the keys that the options name; others are ignored.

    Raises:
        KeyError: an option names a fact that was not resolved.
    """
    kind: type = type(config)
    return {
        counts.key or name: facts[counts.key] if counts.key else getattr(config, name)
        for name, counts in counting(kind).items()
        if not (counts.only_if_set and getattr(config, name) == getattr(_PLAIN, name))
    }


def concerning(identity: Mapping[str, Json], concerns: Collection[Concern]) -> dict[str, Json]:
    """Return the part of an identity that can change the answers of a solver that depends on these `concerns`.

    Facts about the tools of these solvers are not part of an identity; they are recorded with each solver.
    """
    kind: type = RunConfig
    of = {counts.key or name: counts.of for name, counts in counting(kind).items()}
    part = {key: value for key, value in identity.items() if of.get(key, "all") in concerns}
    if isinstance(limits := part.get("limits"), Mapping) and "tools" not in concerns:
        part["limits"] = {name: limit for name, limit in limits.items() if name != "tool_calls"}
    return part


# Every option at its default.
_PLAIN: Final = RunConfig("")


def folder_name(identity: Mapping[str, Json]) -> str:
    """Return the default name of a run's folder: benchmark, model and control, then a digest of the identity.

    `blink-gpt-4o-1a2b3c4d5e`, `blink-gpt-4o-blank-1a2b3c4d5e`, and `blink-1a2b3c4d5e` without a model.
    """
    model = identity["model"]
    name = model.get("model") if isinstance(model, Mapping) else None
    control = identity["tool_output"]
    parts = (
        identity["benchmark"],
        short_name(name) if isinstance(name, str) else "",
        "" if control == _PLAIN.tool_output else control,
        digest(identity),
    )
    return "-".join(str(part) for part in parts if part)


def short_name(model: str) -> str:
    """Return the model's part of a folder's name: `gpt-4o` for `openai:gpt-4o`.

    For a path or `owner/name` it is the last part. Letters, digits and `._-` stay; it has at most 40 characters.
    """
    provider, colon, rest = model.partition(":")
    last = (rest if colon else provider).rstrip("/").rpartition("/")[2]
    return re.sub(r"[^A-Za-z0-9._-]+", "-", last)[:MAX_MODEL_LENGTH].strip("-._")


def digest(identity: Mapping[str, Json]) -> str:
    """Return a short hash of a configuration, from which the default `--out` is derived."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:10]
