#!/usr/bin/env bash
# langchain-core 1.8.3.
#
# Expected: `count_tokens_approximately`, on which trimming and summarising of conversations rely, counts a picture as a
# fixed number of tokens, whatever the form of its block. It does so for `image_url` and `image` (85 tokens).
# Happens: a picture in the form of OpenAI's Responses API (`input_image`) is counted by the characters of its base64
# text: the same picture counts as 89 tokens in one form and as 100,020 in the other.
# Matters: an agent that trims its history by this count throws away everything before the first such picture, including
# the question, although the real cost was a few hundred tokens.
# Seen on 2026-11-28:
#   image_url: 89   image: 89   input_image: 100020
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" langchain-core==1.8.3
"$dir/env/bin/python" - <<'PY'
from langchain_core.messages import HumanMessage
from langchain_core.messages.utils import count_tokens_approximately

picture = "A" * 400_000  # base64 of a picture of 300 kB
url = f"data:image/png;base64,{picture}"
blocks = {
    "image_url": {"type": "image_url", "image_url": {"url": url}},
    "image": {"type": "image", "base64": picture, "mime_type": "image/png"},
    "input_image": {"type": "input_image", "image_url": url},
}
counts = {name: count_tokens_approximately([HumanMessage([block])]) for name, block in blocks.items()}
print("   ".join(f"{name}: {count}" for name, count in counts.items()))
assert counts["image_url"] == counts["image"] < 100
assert counts["input_image"] > 99_000, "changed: the Responses form is counted as a picture"
PY
