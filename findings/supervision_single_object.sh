#!/usr/bin/env bash
# supervision 0.31.2: `Detections.from_vlm` for Qwen2.5-VL.
#
# Expected: a reply that contains one object as JSON (`{"bbox_2d": [...], "label": "cat"}`) is one detection, or raises
# an error. Qwen writes such a reply when it is asked for one thing.
# Happens: the result is empty, as for "I see no cat."; the same object in a list is a detection. A label in another
# case than the class ("Cat", class "cat") is also dropped silently.
# Matters: a model's right answers become misses, and the fewer objects a question asks for, the more of them do. A
# reply that could not be read cannot be distinguished from a reply that found nothing.
# Seen on 2026-11-28:
#   list of one: 1 detection, object: 0, no object seen: 0, label in upper case: 0
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" supervision==0.31.2
"$dir/env/bin/python" -W ignore - <<'PY'
import json

import supervision as sv

CAT = {"bbox_2d": [10, 20, 110, 220], "label": "cat"}


def detections(text):
    """How many detections supervision reads of a reply."""
    size = {"input_wh": (640, 480), "resolution_wh": (640, 480)}
    return len(sv.Detections.from_vlm(sv.VLM.QWEN_2_5_VL, text, classes=["cat"], **size))


as_list = detections(json.dumps([CAT]))
as_object = detections(json.dumps(CAT))
nothing = detections("I see no cat.")
upper_case = detections(json.dumps([{**CAT, "label": "Cat"}]))
print(
    f"list of one: {as_list} detection, object: {as_object}, no object seen: {nothing}, "
    f"label in upper case: {upper_case}"
)
assert as_list == 1 and nothing == 0
assert as_object == 0, "changed: a single object is read"
assert upper_case == 0, "changed: labels are compared without case"
PY
