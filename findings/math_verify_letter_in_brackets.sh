#!/usr/bin/env bash
# math-verify 0.9.0
#
# Expected: with `StringExtractionConfig()`, whose default is to extract one of the letters A to D, the response "(B)" is the
# answer B. BLINK asks for this form ("Select from the following choices: (A) ... (B) ..."), and models use it.
# Happens: a letter in brackets is not extracted, not even in "The answer is (B)." or in "Answer: (B)". The list is
# empty, and `verify` gives False. A letter with a full stop, in bold or alone is extracted. If a letter in brackets is
# followed by a letter without brackets, the second letter is the answer.
# Matters: right answers count as wrong, more often for the model that follows the prompt's own form.
# Seen on 2026-11-30 (right answer: B):
#   B: ['b', 'B'], right: True
#   B.: ['b', 'B'], right: True
#   **B**: ['b', 'B'], right: True
#   (B): [], right: False
#   The answer is (B).: [], right: False
#   Answer: (B): [], right: False
#   (B), because A is further away: ['a', 'A'], right: False
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" "math-verify[antlr4_13_2]==0.9.0"
"$dir/env/bin/python" -W ignore - <<'PY'
from math_verify import StringExtractionConfig, parse, verify


def letters(text):
    return parse(text, extraction_config=[StringExtractionConfig()])


right = letters("B")
seen = {}
for response in ("B", "B.", "**B**", "(B)", "The answer is (B).", "Answer: (B)", "(B), because A is further away"):
    seen[response] = verify(right, letters(response))
    print(f"{response}: {letters(response)}, right: {seen[response]}")
assert all(seen[response] for response in ("B", "B.", "**B**")), "changed: a letter without brackets"
assert not any(correct for response, correct in seen.items() if "(B)" in response), "changed: a letter in brackets"
PY
