"""The tokenizer and the chat template of the embedded model.

    words = tokenizer(texts)          # a byte-level BPE that any text can be written in

Numbers, option letters and the words that distinguish answers are always separate tokens, so that they can be copied.
The text between them is merged across spaces, so a fixed sentence becomes one or a few tokens. A menu, an instruction
or a tool output is then a few dozen tokens long.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

PAD: Final = "<|pad|>"
END: Final = "<|end|>"
ASSISTANT: Final = "<|assistant|>"
IMAGE: Final = "<image>"
SPECIAL: Final = (PAD, END, ASSISTANT, IMAGE, "<|system|>", "<|user|>", "<|tool|>", "<|tools|>")
# Tokens that stay in the text, because calls are parsed from it.
CALLS: Final = ("<tool_call>", "</tool_call>")
SIZE: Final = 3600
# Number of times that each number and each deciding word is repeated, which is enough to make it a token.
SAID: Final = 500

# Words that distinguish answers. Plurals are the word and an s.
WORDS: Final = (
    *("red", "green", "blue", "yellow", "purple", "orange", "brown", "white", "black"),
    *("cube", "ball", "square", "circle", "disc", "arrow", "sign"),
    *("left", "right", "above", "below", "north", "south", "east", "west", "upper", "lower"),
    *("first", "second", "third", "fourth", "fifth", "yes", "no", "same", "darker"),
)
NUMBERS: Final = (*(f"{value / 10:.1f}" for value in range(11)), *(f"{value / 100:.2f}" for value in range(101)))
UNITS: Final = rf"[01]\.\d{{1,2}}(?!\d)|\d|[A-H](?=[A-H]*\b)|\b(?:{'|'.join(WORDS)})(?=s?\b)"

# Tools are shown only by name, because the model has learnt their purpose. Decimal numbers have two decimals. A single
# text is rendered the same as a string and as a list of one part, because servers send either.
TEMPLATE: Final = (
    "{%- macro value(v) -%}"
    "{%- if v is mapping -%}{{ '{' }}{%- for k, x in v.items() -%}{{ k | tojson }}: {{ value(x) }}"
    "{%- if not loop.last %}, {% endif -%}{%- endfor -%}{{ '}' }}"
    "{%- elif v is string or v is boolean or v is none or v is integer -%}{{ v | tojson }}"
    "{%- elif v is float -%}{{ '%.2f' | format(v) }}"
    "{%- else -%}[{%- for x in v -%}{{ value(x) }}{%- if not loop.last %}, {% endif -%}{%- endfor -%}]{%- endif -%}"
    "{%- endmacro -%}"
    "{%- if tools %}<|tools|>{% for tool in tools %}{{ tool.function.name }}\n{% endfor %}<|end|>{% endif %}"
    "{%- for m in messages %}<|{{ m.role }}|>"
    "{% if m.content is string %}{{ m.content }}"
    "{% elif m.content | length == 1 and m.content[0].type == 'text' %}{{ m.content[0].text }}"
    "{% else %}{% for c in m.content %}"
    "{% if c.type == 'image' %}<image>{% else %}{{ c.text }}\n{% endif %}{% endfor %}{% endif %}"
    '{% for t in m.tool_calls or [] %}<tool_call>{"name": "{{ t.function.name }}", '
    '"arguments": {{ value(t.function.arguments) }}}</tool_call>{% endfor %}<|end|>{% endfor %}'
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)

# Description, in Qwen's format, of how a server distinguishes a call from text.
RESPONSE_TEMPLATE: Final[dict[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())


def tokenizer(texts: Sequence[str], size: int = SIZE) -> Any:
    """Return a tokenizer of at most `size` tokens, trained on texts; the same texts give the same tokenizer."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(UNITS), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    inner.decoder = decoders.ByteLevel()
    bytes_ = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size - len(CALLS), special_tokens=list(SPECIAL), initial_alphabet=bytes_, show_progress=False
    )
    inner.train_from_iterator([*texts, *(*NUMBERS, *WORDS) * SAID], trainer)
    inner.add_tokens([AddedToken(tag, special=False, normalized=False) for tag in CALLS])
    words = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token=PAD,
        eos_token=END,
        additional_special_tokens=[token for token in SPECIAL if token not in (PAD, END)],
        extra_special_tokens={"image_token": IMAGE},
        clean_up_tokenization_spaces=False,
    )
    words.response_template = RESPONSE_TEMPLATE
    return words
