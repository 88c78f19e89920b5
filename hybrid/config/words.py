"""The words that options take where they are one of a few."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

ToolCalling = Literal["native", "text", "auto"]
Thoughts = Literal["keep", "drop"]
"""Whether a model is sent its own earlier thoughts with the conversation."""
Streaming = Literal["auto", "on", "off"]
Backends = Literal["auto", "learned", "classical"]
FLOAT32: Final = "float32"
Dtypes = Literal["auto", "float32", "bfloat16", "float16"]
"""In which numbers the networks of tools compute (`hybrid/serving/precision.py`)."""
Pictures = Literal["auto", "png"]
"""How a crop or an overlay is stored: `auto` as JPEG where the image that it was made from is one, else as PNG."""
LOCAL: Final = "local"
"""The engine that is the process of the run itself."""
Parse = Literal["official", "strict"]
Show = Literal["text", "image", "both"]
"""The parts of a finding that a model is shown."""
ImageForm = Literal["separate", "concat", "caption", "none"]
"""In which form a model gets a prompt's images (`hybrid/solving/image_forms.py`)."""
ToolOutput = Literal["real", "blank", "shuffled", "oracle"]
"""Whether tools return their findings or a control."""
AnswerForm = Literal["text", "likelihood"]
"""Whether a choice is answered in words, or as the option that the model finds most likely."""
Reasoning = Literal["first", "none"]
Missing = Literal["refuse", "without"]
"""The treatment of questions for which a file of texts has none."""
Gate = Literal["overlap", "non-commercial", "blind", "toolless", "partial"]
"""Reasons to refuse a run unless `--allow` names them."""
KEPT: Final[Mapping[str, int]] = {"all": 1_000_000, "latest": 1, "asked": 0}
"""Pictures of tools that stay in the dialogue, by the word of `--keep-pictures`."""
