"""The settings that a model was asked with, as the manifest of a run has them.

    settings_of(identity)["temperature"]      # 0.0

A model behind a server keeps what it was sent under `options`, a model in this process beside its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

# Names by which servers take the greatest length of a reply.
MAX_TOKENS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")


def settings_of(identity: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings of the run's model by name, `max_tokens` under this name; empty for a run without a model."""
    model = identity.get("model")
    if not isinstance(model, Mapping):
        return {}
    options = model.get("options")
    settings = {**model, **(options if isinstance(options, Mapping) else {})}
    settings.pop("options", None)
    for name in MAX_TOKENS:
        if settings.get(name) is not None:
            settings["max_tokens"] = settings[name]
            break
    return settings


def draws_answers(identity: Mapping[str, Any]) -> bool:
    """Whether the model may answer otherwise when it is asked again: at any temperature but 0, or one not recorded."""
    return settings_of(identity).get("temperature") != 0
