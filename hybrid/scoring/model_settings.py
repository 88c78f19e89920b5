"""The settings with which a model was asked, as saved in a run's manifest.

    settings_of(identity)["temperature"]      # 0.0

Models behind a server save what was sent under `options`; models in this process save it next to their name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

# Names that servers use for the maximum length of a reply.
MAX_TOKENS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")
# Options that hold further options; clients send these in place of options of the same name beside them.
NESTED: Final = ("model_kwargs", "generation_config", "extra_body")
# Values at which only the most likely token can follow.
GREEDY: Final[Mapping[str, float]] = {"temperature": 0, "top_k": 1, "top_p": 0}


def settings_of(identity: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of the run's model by name; empty without a model.

    The maximum length of a reply, if set, is also under `max_tokens`, whatever the server calls it.
    """
    model = identity.get("model")
    if not isinstance(model, Mapping):
        return {}
    options = model.get("options")
    settings = {**model, **(options if isinstance(options, Mapping) else {})}
    settings.pop("options", None)
    for name in NESTED:
        if isinstance(inner := settings.pop(name, None), Mapping):
            settings.update(inner)
    for name in MAX_TOKENS:
        if settings.get(name) is not None:
            settings["max_tokens"] = settings[name]
            break
    return settings


def draws_answers(identity: Mapping[str, Any]) -> bool:
    """Return whether the model may answer differently when asked again.

    False at temperature 0, at `top_k` 1 or `top_p` 0, also if saved as text ("0"), and with `do_sample` false.
    An unknown temperature may be above 0. Whether a choice was not generated but rated by its likelihood is a matter of
    `rates_choices`.
    """
    settings = settings_of(identity)
    if settings.get("do_sample") is False:
        return False
    return not any(_number(settings.get(name)) == value for name, value in GREEDY.items())


def _number(value: object) -> float | None:
    try:
        return float(value)  # type: ignore[arg-type]  # anything else raises
    except (TypeError, ValueError):
        return None


def rates_choices(identity: Mapping[str, Any]) -> bool:
    """Return whether the run took the most likely option of a choice, which is the same whenever it is asked."""
    return identity.get("answer") == "likelihood"
