"""A Qwen2.5-VL with a million weights, trained to think, to call `crop` and to name the colours of its images.

    python -m bench._tiny_qwen FOLDER          writes a checkpoint for transformers, vLLM and llama.cpp; takes minutes

If its template shows tools and no result, it writes a call in the dialect that `chat_template_kwargs` names; otherwise
it answers. Thinking comes first unless `enable_thinking` is false, as in Qwen3.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from PIL import Image
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

CALL = '{"images": ["img:1"], "box": {"x0": 10, "y0": 10, "x1": 50, "y1": 50}}'
HERMES = f'<tool_call>\n{{"name": "crop", "arguments": {CALL}}}\n</tool_call>'
BOX = '{"x0": 10, "y0": 10, "x1": 50, "y1": 50}'
# The same call in other formats; `two` is two calls, `cut` a call without its end.
DIALECTS = {
    "hermes": HERMES,
    "two": f"{HERMES}\n{HERMES.replace('50', '40')}",
    "cut": HERMES[:56],
    "qwen": '<tool_call>\n<function=crop>\n<parameter=images>\n["img:1"]\n</parameter>\n<parameter=box>\n'
    f"{BOX}\n</parameter>\n</function>\n</tool_call>",
    "pythonic": f'[crop(images=["img:1"], box={BOX})]',
    "mistral": f"[TOOL_CALLS]crop[ARGS]{CALL}",
}
THOUGHT = "I look closer first."
COLOURS = {"red": (220, 20, 20), "green": (20, 180, 40), "blue": (30, 40, 220), "mixed": (0, 0, 0)}
SPECIAL = ("<|im_end|>", "<|endoftext|>", "<|im_start|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>")
SPECIAL = (*SPECIAL, "<|video_pad|>")
MARKS = ("<tool_call>", "</tool_call>", "<think>", "</think>")
# The template truncates texts and removes those after an image: the network only needs the roles, the images and the
# cue. llama.cpp joins the parts of a message into one text, with its own placeholder for each image.
TEMPLATE = Path(__file__).with_name("tiny_qwen.jinja").read_text()
STEPS, BATCH, RATE = 700, 8, 4e-3


def tokenizer() -> Any:
    """Return a tokenizer of bytes and of strings that are frequent in the replies."""
    built = Tokenizer(models.BPE())
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    texts = [*DIALECTS.values(), THOUGHT, "\nassistant\nuser\ntool\nsystem\nTools in Seen: Answer: (A)", *COLOURS]
    built.train_from_iterator(
        texts * 3, trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    )
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=built, eos_token=SPECIAL[0], pad_token=SPECIAL[1])
    fast.add_tokens(list(SPECIAL), special_tokens=True)
    fast.add_tokens(list(MARKS))
    fast.chat_template, fast.model_max_length = TEMPLATE, 8192
    return fast


def network(tokens: Any) -> Any:
    """Return a network with random weights, in sizes that vLLM's CPU attention supports: heads of 64."""
    end, pad, _, vision_start, vision_end, image, video = tokens.convert_tokens_to_ids(list(SPECIAL))
    text = {"hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 3, "num_attention_heads": 2}
    text |= {"num_key_value_heads": 2, "vocab_size": len(tokens), "max_position_embeddings": 32768}
    text |= {"rope_scaling": {"type": "mrope", "mrope_section": [8, 12, 12]}, "tie_word_embeddings": False}
    sight = {"depth": 2, "hidden_size": 128, "intermediate_size": 256, "num_heads": 2, "out_hidden_size": 128}
    sight |= {"window_size": 112, "fullatt_block_indexes": [1]}
    config = transformers.Qwen2_5_VLConfig(
        text_config={**text, "bos_token_id": pad, "eos_token_id": end},
        vision_config=sight,
        image_token_id=image,
        video_token_id=video,
        vision_start_token_id=vision_start,
        vision_end_token_id=vision_end,
    )
    generation = transformers.Qwen2_5_VLForConditionalGeneration(config)
    generation.generation_config = transformers.GenerationConfig(eos_token_id=end, pad_token_id=pad, do_sample=False)
    return generation


def conversations(seed: int) -> Iterator[tuple[list[dict[str, Any]], dict[str, Any], str, list[Image.Image]]]:
    """Yield random conversations: messages, extra arguments of the template, the right reply, and images."""
    draw = random.Random(seed)
    words = "which of these is the nearer point left right picture answer question image img:1: img:2: 12 (A) (B)"

    def content(most: int) -> tuple[list[dict[str, Any]], list[str]]:
        colours = draw.choices(list(COLOURS), k=draw.randint(0, most))
        parts = [{"type": "image"} for _ in colours]
        for _ in range(draw.randint(1, 3)):
            text = " ".join(draw.choices(words.split(), k=draw.randint(1, 6)))
            parts.insert(draw.randint(0, len(parts)), {"type": "text", "text": text})
        return parts, colours

    while True:
        dialect = draw.choice(list(DIALECTS))
        request, seen = content(2)
        messages: list[dict[str, Any]] = [{"role": "user", "content": request}]
        tools, thinks, calls = draw.random() < 0.7, draw.random() < 0.5, draw.random() < 0.35
        if calls:
            call = {"function": {"name": "crop", "arguments": {"images": ["img:1"]}}}
            thought = {"reasoning_content": THOUGHT} if draw.random() < 0.5 else {}
            messages += [{"role": "assistant", "content": "", "tool_calls": [call], **thought}]
            messages += [{"role": "tool", "content": " ".join(draw.choices(words.split(), k=4))}]
            if draw.random() < 0.7:
                rendered, more = content(2)
                messages, seen = [*messages, {"role": "user", "content": rendered}], seen + more
        options = {"tools": [{"function": {"name": "crop"}}] if tools else None, "dialect": dialect}
        options |= {} if thinks else {"enable_thinking": False}
        message = DIALECTS[dialect] if tools and not calls else f"Seen: {' '.join(seen) or 'none'}. Answer: (A)"
        pictures = [_picture(name, 56 * draw.choice((1, 1, 2, 4)), draw) for name in seen]
        yield (
            messages,
            options,
            (f"<think>\n{THOUGHT}\n</think>\n\n" if thinks else "") + message + SPECIAL[0],
            pictures,
        )


def _picture(name: str, side: int, draw: random.Random) -> Image.Image:
    """Return an image of one colour, or of a few dozen colours, like a photograph."""
    if name != "mixed":
        return Image.new("RGB", (side, side), COLOURS[name])
    few = Image.frombytes("RGB", (6, 6), draw.randbytes(108))
    return few.resize((side, side), draw.choice((Image.Resampling.NEAREST, Image.Resampling.BICUBIC)))


def teach(folder: Path, steps: int = STEPS) -> float:
    """Train and write the checkpoint; return the mean loss of the last steps."""
    torch.manual_seed(0)
    tokens = tokenizer()
    model = network(tokens)
    sizes = {"shortest_edge": 56 * 56, "longest_edge": 224 * 224}
    images, videos = transformers.Qwen2VLImageProcessor(size=sizes), transformers.Qwen2VLVideoProcessor()
    processor = transformers.Qwen2_5_VLProcessor(images, tokens, videos, chat_template=TEMPLATE)
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=steps)
    stream, losses, start = conversations(0), [], time.monotonic()
    for step in range(steps):
        texts, replies, pictures = [], [], []
        for _, (messages, options, text, rendered) in zip(range(BATCH), stream, strict=False):
            request = tokens.apply_chat_template(messages, add_generation_prompt=True, tokenize=False, **options)
            texts.append(request + text)
            replies.append(text)
            pictures += rendered
        batch = processor(text=texts, images=pictures or None, padding=True, padding_side="right", return_tensors="pt")
        labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
        ends = batch["attention_mask"].sum(1).tolist()
        for row, (end, reply) in enumerate(zip(ends, replies, strict=True)):
            labels[row, : end - len(tokens(reply).input_ids)] = -100
        logits = model(**batch).logits[:, :-1].transpose(1, 2)
        wrong = torch.nn.functional.cross_entropy(logits, labels[:, 1:], reduction="none")
        # Every reply has the same weight, because long calls would outweigh the colour names in answers.
        loss = (wrong.sum(1) / (labels[:, 1:] != -100).sum(1)).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad()
        losses.append(loss.item())
        if step % 25 == 24:
            print(f"step {step + 1}: loss {sum(losses[-25:]) / 25:.4f}, {time.monotonic() - start:.0f} s", flush=True)
            model.save_pretrained(folder)
    # Save here too, because training may have fewer steps than the saving interval.
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return sum(losses[-50:]) / len(losses[-50:])


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(teach(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else STEPS))
