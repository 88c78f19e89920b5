"""The keys of `--setting` that every benchmark takes: they say how a model is asked, and are no part of a protocol."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hybrid.benchmarks.base import Setting
from hybrid.errors import UsageError
from hybrid.models.base import ModelSettings
from hybrid.models.prices import parse_price

SETTINGS = (
    Setting(
        "answer", "text", ("text", "likelihood"), "how a choice is answered; likelihood needs weights at hand (hf:)"
    ),
    Setting("samples", "1", ("1 or more",), "ask an MLLM so often and take the vote", r"0*[1-9][0-9]*"),
    Setting(
        "repeats", "1", ("1 or more",), "ask every solver all questions so often: mllm, mllm@2, ...", r"0*[1-9][0-9]*"
    ),
    Setting(
        "reasoning",
        "unsaid",
        ("unsaid", "first", "none"),
        "a sentence at the prompt's end: reason in writing first, or answer at once; --max-tokens is the same for both",
    ),
    Setting(
        "caption-model",
        "",
        ("PROVIDER:NAME",),
        "who describes images for --solver caption and --images caption; the model itself where none is named",
        r"\S+",
    ),
    Setting("caption-url", "", ("URL",), "its OpenAI-compatible server, as --base-url is the model's", r"\S+"),
    Setting("caption-price", "", ("IN/OUT",), "its price in USD per million tokens, for budgets of cost", r"\S+"),
    Setting(
        "context",
        "",
        ("FILE.jsonl",),
        'a text shown beside the images, one {"id": ..., "text": ...} a line, by question id or base id',
        r".+",
    ),
    Setting(
        "context-missing",
        "refuse",
        ("refuse", "without"),
        "questions that have no text: nothing is asked, or they are asked without one and counted",
    ),
)
KEYS = frozenset(setting.name for setting in SETTINGS)


def checked(settings: Mapping[str, str]) -> dict[str, str]:
    """Those of the settings that every benchmark takes. Raises `UsageError` for a value that one does not take."""
    return {setting.name: setting.check(settings[setting.name]) for setting in SETTINGS if setting.name in settings}


def asking(given: Mapping[str, str], model: ModelSettings) -> dict[str, Any]:
    """The checked settings as options of a `RunConfig`.

    The second model is sent images as the first one is (`--image-detail`, `--max-pixels`), with the same seed and on
    the same device; what else is said of a model is said of the first.

    Raises `UsageError` for a price that is none, and for what belongs to a second model where none is named.
    """
    reasoning, context = given.get("reasoning", "unsaid"), given.get("context")
    found: dict[str, Any] = {
        "answer": given.get("answer", "text"),
        "samples": int(given.get("samples", "1")),
        "repeats": int(given.get("repeats", "1")),
        "reasoning": None if reasoning == "unsaid" else reasoning,
        "context": None if context is None else Path(context),
        "context_missing": given.get("context-missing", "refuse"),
    }
    url, price = given.get("caption-url"), given.get("caption-price")
    if name := given.get("caption-model"):
        found["captioner"] = name
        found["captioner_settings"] = ModelSettings(
            base_url=url,
            image_detail=model.image_detail,
            max_pixels=model.max_pixels,
            seed=model.seed,
            device=model.device,
            price=None if price is None else parse_price(price),
        )
    elif url is not None or price is not None:
        raise UsageError("--setting caption-url and caption-price are of a second model: give caption-model as well")
    return found
