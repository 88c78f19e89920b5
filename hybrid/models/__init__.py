"""Chat models by name: `open_model("openai:gpt-4o", settings, store)`.

A library package without a command of its own; `hybrid run BENCH --model NAME` uses it. A name is `provider:model` as
LangChain writes it (openai, anthropic, google_genai, ollama), `hf:DIR_OR_ID` for weights in this process, `replay:DIR`
for recordings, or `embedded` for the small stand-in that ships with the project. Nothing is imported from a provider,
connected or loaded before it is needed.
"""

from __future__ import annotations

from hybrid.models._open import open_model
from hybrid.models.base import CallKey, ChatModel, ModelArgs, ModelRefused, ModelSettings, parse_model_args

__all__ = ["CallKey", "ChatModel", "ModelArgs", "ModelRefused", "ModelSettings", "open_model", "parse_model_args"]
