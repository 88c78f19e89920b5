"""The model that answered: a server names it with every reply, and it may differ from the requested one.

others = other_models("openai:gpt-4o", {"gpt-4o-2024-08-06": 40, "gpt-4o-mini": 2})    # {"gpt-4o-mini": 2}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

# Requested names for which the server itself chooses the model.
_CHOOSERS: Final = frozenset({"auto", "default", "model-router", "router", "local", "local-model"})
# At Azure the requested name is the name of a deployment, which does not reveal the deployed model.
_DEPLOYMENTS: Final = frozenset({"azure_openai", "azure_ai", "langchain"})
# A date in a name: 2024-08-06, 20240806, 2025-01, 0806, 05-06, 09-2025; or a year with its month, 2411.
_DATE: Final = re.compile(
    r"[-@_:.]?(?<!\d)(?:20\d\d[-_.]?(?:0[1-9]|1[0-2])(?:[-_.]?[0-3]\d)?|(?:0[1-9]|1[0-2])-?(?:[0-3]\d|20\d\d))(?!\d)"
)
_YEAR_MONTH: Final = re.compile(r"[-@_](?:2[3-9])(?:0[1-9]|1[0-2])(?!\d)")
_VERSION: Final = re.compile(r"[-@:_](?:v\d+(?::\d+)?|00\d)$")
_ALIAS: Final = re.compile(
    r"[-:@](?:latest|preview|exp|experimental|stable|default|free|beta|online|nitro|floor|thinking)(?=$|[-:@])"
)
# Bedrock puts region and vendor before a name.
_MAKER: Final = re.compile(
    r"^(?:(?:us|eu|apac|global|jp|au)\.)?(?:anthropic|amazon|meta|mistral|cohere|deepseek|qwen|openai|ai21)\."
)


def other_models(requested_model: str, counts: Mapping[str, int]) -> dict[str, int]:
    """Return the models that answered, with their number of replies, except the requested `provider:model`."""
    provider, _, model = requested_model.partition(":")
    if provider in _DEPLOYMENTS or not model:
        return {}
    return {name: count for name, count in counts.items() if not is_same_model(model, name)}


def is_same_model(requested_model: str, answered: str) -> bool:
    """Return whether two names differ only in a path, a date, a version or an alias such as `latest`."""
    first, second = _plain(requested_model), _plain(answered)
    if first == second or first in _CHOOSERS:
        return True
    if not re.search(r"latest|preview", requested_model.lower()):
        return False
    # An alias means the newest model of its family: `gemini-flash-latest`, `kimi-latest`.
    parts = set(re.split(r"[-_.]", first)) - {""}
    return parts <= set(re.split(r"[-_.]", second)) or len(parts) == 1


def _plain(name: str) -> str:
    """Return a model's name without its path, dates, versions and aliases."""
    name = name.strip().lower().rstrip("/").removesuffix(".gguf")
    # Files in a hub's cache: .../models--Qwen--Qwen2-VL/snapshots/HASH
    hub = re.search(r"models--[^/]+?--([^/]+)/snapshots/", name)
    name = hub[1] if hub else name.rpartition("/")[2]
    name = _MAKER.sub("", name)
    for pattern in (_DATE, _YEAR_MONTH, _ALIAS, _VERSION):
        name = pattern.sub("", name)
    return name.strip("-_.:@")
