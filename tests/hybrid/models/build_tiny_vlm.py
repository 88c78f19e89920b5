"""Build a tiny vision language model that really calls a tool and then answers: python build_tiny_vlm.py OUT.

A LLaVA (CLIP vision tower, Llama text model, about 0.2 M parameters, byte-level BPE trained in place) is overfitted on
a few conversations, in a minute or less on two cores. The result is the same each time on one machine, and the tests
cache it.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    CLIPImageProcessorPil,
    CLIPVisionConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedTokenizerFast,
)

from hybrid.models.toolspec import spec
from hybrid.tool import Args, Card, Tool
from tests.tables import stored

SPECIAL = ["<|pad|>", "<|im_start|>", "<|im_end|>", "<image>"]
TEMPLATE = (
    "{%- if tools %}<|im_start|>system\n# Tools\n{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}<|im_end|>\n"
    "{% endif %}{%- for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.content is string %}{{ m.content }}{% else %}{% for c in m.content %}"
    "{% if c.type == 'image' %}<image>{% else %}{{ c.text }}{% endif %}{% endfor %}{% endif %}"
    '{% for t in m.tool_calls or [] %}<tool_call>{"name": "{{ t.function.name }}", '
    '"arguments": {{ t.function.arguments | tojson }}}</tool_call>{% endfor %}<|im_end|>\n{% endfor %}'
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# The form of Qwen's responses: with any other form, neither the server nor the tokenizer distinguishes a call from
# text.
RESPONSE_TEMPLATE = stored(__file__, "RESPONSE_TEMPLATE")

QUESTIONS = ("Which side is red?", "Where is the square?")
ARGUMENTS = {"images": ["img:1"], "zoom": 2}
CALL = f'<tool_call>{{"name": "magnify", "arguments": {json.dumps(ARGUMENTS)}}}</tool_call><|im_end|>'
RESULT = "Image 1 magnified.\n[img:1.1: attached below]"
ANSWER = "The red side is left.\nAnswer: (A)<|im_end|>"


class MagnifyArgs(Args):
    """Arguments of the tool that the model has learnt."""

    zoom: int = 2


def tool() -> Tool:
    """Return the tool that the model has learnt to call; it is never run."""
    return Tool(Card("magnify", "Enlarges an image.", "", backends=()), MagnifyArgs)


def user(question: str, name: str, picture: Image.Image) -> dict[str, Any]:
    """Return a user turn as the project sends it: text, then each image preceded by its name."""
    texts = [{"type": "text", "text": text} for text in (question, f"{name}:") if text]
    return {"role": "user", "content": [*texts, {"type": "image", "image": picture}]}


def conversation(question: str, *, after: bool) -> list[dict[str, Any]]:
    """Return a conversation with the question alone, or with the question, a call, its result and the resulting
    picture."""
    picture = Image.new("RGB", (64, 64), (255, 0, 0))
    turns = [user(question, "img:1", picture)]
    if after:
        function = {"name": "magnify", "arguments": ARGUMENTS}
        call = {"type": "function", "id": "call_0", "function": function}
        turns.append({"role": "assistant", "content": "", "tool_calls": [call]})
        turns.append({"role": "tool", "tool_call_id": "call_0", "content": RESULT})
        turns.append(user("", "img:1.1", Image.new("RGB", (32, 32), (250, 0, 0))))
    return turns


def taught() -> list[str]:
    """Return every text of the conversations."""
    return [*QUESTIONS, CALL, RESULT, ANSWER, json.dumps(spec(tool())), "user assistant tool system # Tools img:1.1:"]


def tokenizer(words: Sequence[str], size: int = 600) -> PreTrainedTokenizerFast:
    """Train byte-level BPE on the words of the conversations, with `size` tokens."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    inner.train_from_iterator(
        [*words] * 4,
        trainers.BpeTrainer(vocab_size=size, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False),
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token=SPECIAL[0],
        eos_token=SPECIAL[2],
        additional_special_tokens=[SPECIAL[1], SPECIAL[3]],
        extra_special_tokens={"image_token": "<image>"},
        clean_up_tokenization_spaces=False,
    )


def untrained(words: PreTrainedTokenizerFast) -> LlavaForConditionalGeneration:
    """Return the model with random weights."""
    image = words.convert_tokens_to_ids("<image>")
    ends = {"eos_token_id": words.eos_token_id, "pad_token_id": words.pad_token_id}
    vision = CLIPVisionConfig(**stored(__file__, "VISION"))
    text = LlamaConfig(vocab_size=len(words), **ends, **stored(__file__, "TEXT"))
    torch.manual_seed(0)
    model = LlavaForConditionalGeneration(
        LlavaConfig(vision_config=vision, text_config=text, image_token_index=image, image_seq_length=16)
    )
    model.generation_config.eos_token_id = words.eos_token_id
    model.generation_config.pad_token_id = words.pad_token_id
    model.generation_config.max_new_tokens = 64
    return model


def processor_of(words: PreTrainedTokenizerFast) -> LlavaProcessor:
    """Return the image processor: images of 56 x 56 pixels, 16 tokens each."""
    return LlavaProcessor(
        image_processor=CLIPImageProcessorPil(size={"shortest_edge": 56}, crop_size={"height": 56, "width": 56}),
        tokenizer=words,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        image_token=SPECIAL[3],
        chat_template=TEMPLATE,
    )


def example(
    processor: LlavaProcessor, turns: list[dict[str, Any]], tools: list[dict[str, Any]], reply: str
) -> tuple[Any, torch.Tensor]:
    """Return inputs and labels of one conversation: only the reply is learnt."""
    prompt = processor.apply_chat_template(turns, tools=tools, add_generation_prompt=True, tokenize=False)
    parts = [part for turn in turns if isinstance(turn["content"], list) for part in turn["content"]]
    pictures = [part["image"] for part in parts if "image" in part]
    full = processor(text=[prompt + reply], images=pictures, return_tensors="pt")
    start = processor(text=[prompt], images=pictures, return_tensors="pt")["input_ids"].shape[1]
    labels = full["input_ids"].clone()
    labels[:, :start] = -100
    return full, labels


def examples(processor: LlavaProcessor) -> list[tuple[Any, torch.Tensor]]:
    """Return the training examples: each question without a call, and each question after the call."""
    return [
        example(processor, conversation(question, after=after), [spec(tool())], reply)
        for question in QUESTIONS
        for after, reply in ((False, CALL), (True, ANSWER))
    ]


def main(out: Path) -> None:
    """Build, train and save the model."""
    words = tokenizer(taught())
    processor = processor_of(words)
    train(untrained(words), processor, examples(processor), out)


def train(
    model: LlavaForConditionalGeneration, processor: LlavaProcessor, data: list[tuple[Any, torch.Tensor]], out: Path
) -> None:
    """Train until every reply is certain, then save."""
    torch.set_num_threads(1)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model.train()
    for step in range(600):
        full, labels = data[step % len(data)]
        loss = model(**full, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        if step % len(data) == 0:
            worst = 0.0
        worst = max(worst, loss.item())
        if step % len(data) == len(data) - 1 and worst < 0.003:
            break
    if worst > 0.05:
        sys.exit(f"the tiny model did not learn its replies: worst loss {worst:.3f} after {step + 1} steps")
    model.eval()
    model.save_pretrained(out)
    processor.tokenizer.response_template = RESPONSE_TEMPLATE
    processor.save_pretrained(out)
    print(step + 1, "steps, worst loss", worst)  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))
