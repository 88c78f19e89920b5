"""A vision language model of transformers in this process: verified loading, generation, tool calls, likelihoods.

Everything here is synchronous and meant for one thread. Only safetensors are read, and no code of a checkpoint is run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hybrid.config import ModelSettings
from hybrid.core.errors import WeightsError
from hybrid.core.thinking import marks_in

DEFAULT_MAX_TOKENS = 512
DTYPES = ("auto", "float32", "bfloat16", "float16")


@dataclass(frozen=True)
class GeneratedReply:
    """A generated reply: its text, the calls that the checkpoint's response template finds, and token counts."""

    text: str  # The text without special tokens, except those around thoughts.
    marked: str  # The text with special tokens, which enclose calls in many dialects.
    calls: list[Any]  # The calls in OpenAI's form, not parsed.
    input_tokens: int
    output_tokens: int
    cut: bool  # Whether the reply ended at the token limit.


@dataclass(frozen=True)
class ChatInput:
    """One request in the form of a chat template: dictionaries with PIL images, and tools in OpenAI's format."""

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Loaded:
    """A model with its processor, in evaluation mode."""

    model: Any
    processor: Any

    @property
    def takes_tools(self) -> bool:
        """Whether the chat template writes tools into the prompt."""
        template = getattr(self.processor, "chat_template", None) or getattr(self._tokenizer, "chat_template", None)
        return "tools" in json.dumps(template)

    @property
    def _tokenizer(self) -> Any:
        return self.processor.tokenizer

    def generate(self, conversations: Sequence[ChatInput], settings: ModelSettings, seed: int) -> list[GeneratedReply]:
        """Generate one reply to each conversation, in order: greedy at temperature 0, else sampled from `seed`.

        All conversations of one call must offer the same tools.
        """
        import torch

        inputs = self._inputs(conversations)
        limit = settings.max_tokens or self.model.generation_config.max_new_tokens or DEFAULT_MAX_TOKENS
        decoding: dict[str, Any] = {}
        if settings.temperature == 0:
            # The sampling values of a checkpoint's configuration would only cause warnings.
            decoding = {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
        elif settings.temperature is not None:
            decoding = {"do_sample": True, "temperature": settings.temperature}
        torch.manual_seed(seed)
        with torch.inference_mode():
            out = self.model.generate(**inputs, max_new_tokens=limit, **decoding)
        length = inputs["input_ids"].shape[1]
        rows = []
        for index, conversation in enumerate(conversations):
            mask = inputs["attention_mask"][index].bool()
            prompt = inputs["input_ids"][index][mask]
            tokens = out[index, length:].tolist()
            # Keep the tokens up to and including the first end-of-sequence token.
            end = next((place for place, token in enumerate(tokens, 1) if token in self._ends), None)
            rows.append(self._read(prompt, tokens[:end], conversation.tools, limit))
        return rows

    def _inputs(self, conversations: Sequence[ChatInput]) -> Any:
        """Tokenise the batch, padded on the left so that every prompt ends where generation starts."""
        self._tokenizer.padding_side = "left"
        inputs = self.processor.apply_chat_template(
            [conversation.messages for conversation in conversations],
            tools=conversations[0].tools or None,
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            processor_kwargs={"padding": len(conversations) > 1},
        )
        return inputs.to(self.model.device, dtype=self.model.dtype)

    @property
    def _ends(self) -> set[int]:
        eos = self.model.generation_config.eos_token_id
        return set(eos if isinstance(eos, list) else [eos])

    def _read(self, prompt: Any, ids: list[int], tools: list[dict[str, Any]], limit: int) -> GeneratedReply:
        tokenizer = self._tokenizer
        stopped = bool(ids) and ids[-1] in self._ends
        marked = tokenizer.decode(ids[:-1] if stopped else ids, skip_special_tokens=False)
        text, calls = self.plain(marked), list[Any]()
        # If no tools were offered, a call in the reply is ordinary text.
        if tools and (template := getattr(tokenizer, "response_template", None)):
            # A template raises an error for text that it cannot parse; the text is still usable.
            with suppress(ValueError):
                parsed = tokenizer.parse_response(ids, template, prefix=tokenizer.decode(prompt), tools=tools)
                if calls := list(parsed.get("tool_calls") or ()):
                    text = parsed.get("content") or ""
        return GeneratedReply(text.strip(), marked, calls, len(prompt), len(ids), not stopped and len(ids) >= limit)

    def plain(self, marked: str) -> str:
        """Remove special tokens from a text, except those around thoughts, so that no thought is read as an answer."""
        added = {token.content for token in self._tokenizer.added_tokens_decoder.values() if token.special}
        special = sorted((added | set(self._tokenizer.all_special_tokens)) - set(marks_in(marked)), key=len)
        return re.sub("|".join(map(re.escape, reversed(special))), "", marked) if special else marked

    def likelihood(self, conversation: ChatInput, prefix: str, options: Sequence[str]) -> dict[str, float]:
        """Return the probability of each option, given that the reply is `prefix` followed by one of the options.

        It is the softmax over the summed log-probabilities of the tokens of prefix + option. Joining before tokenising
        gives every option the tokens that the model would write.
        """
        import torch

        inputs = self._inputs([conversation])
        scores = []
        for option in options:
            ids = self._tokenizer(prefix + option, add_special_tokens=False, return_tensors="pt")["input_ids"]
            ids = ids.to(self.model.device)
            joined = dict(inputs)
            joined["input_ids"] = torch.cat([inputs["input_ids"], ids], dim=1)
            joined["attention_mask"] = torch.cat([inputs["attention_mask"], torch.ones_like(ids)], dim=1)
            for name in ("token_type_ids", "mm_token_type_ids"):
                if name in joined:
                    joined[name] = torch.cat([inputs[name], torch.zeros_like(ids)], dim=1)
            with torch.inference_mode():
                logits = self.model(**joined).logits[0, -ids.shape[1] - 1 : -1].double()
            scores.append(float(torch.log_softmax(logits, -1).gather(1, ids[0, :, None]).sum()))
        return dict(zip(options, torch.softmax(torch.tensor(scores), 0).tolist(), strict=True))


def load(folder: Path, device: str, dtype: str) -> Loaded:
    """Load and verify a model with its processor onto `device`.

    Raises:
        WeightsError: no safetensors, another architecture, or tensors missing, unexpected or of another shape.
    """
    import torch
    from safetensors import SafetensorError
    from transformers import AutoModelForImageTextToText, AutoProcessor

    name = folder.name
    try:
        processor = AutoProcessor.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        model, info = AutoModelForImageTextToText.from_pretrained(
            folder,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
            # Accept mismatched tensors here; they are rejected by name below.
            ignore_mismatched_sizes=True,
            dtype=dtype if dtype == "auto" else getattr(torch, dtype),
        )
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, SafetensorError) as error:
        first = (str(error).strip().splitlines() or ["no message"])[0]
        raise WeightsError(f"{name} does not load: {type(error).__name__}: {first[:300]}") from error
    verify(name, info)
    if getattr(processor, "tokenizer", None) is None:
        raise WeightsError(f"{name} has no tokenizer")
    return Loaded(model.to(device).eval(), processor)


def verify(name: str, info: Mapping[str, Any]) -> None:
    """Reject a checkpoint that transformers would complete with random weights. Raises `WeightsError`."""
    problems = []
    for key in ("missing_keys", "mismatched_keys", "unexpected_keys", "error_msgs"):
        # A mismatch is (name, shape in the file, shape in the model).
        names = sorted(str(item[0]) if isinstance(item, tuple) else str(item) for item in info.get(key) or ())
        if names:
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            problems.append(f"{key.replace('_', ' ')}: {', '.join(names[:5])}{more}")
    if problems:
        raise WeightsError(f"{name} is not a complete checkpoint of its architecture; {'; '.join(problems)}")
