#!/usr/bin/env bash
# langchain-google-genai 4.4.3.
#
# Expected: everything that a tool's schema states about its arguments reaches Gemini. Its own `Schema` type has fields
# for all of it: minimum, maximum, min_items, max_items, pattern, default.
# Happens: all six are dropped without a warning. A box of exactly four numbers (`tuple[float, float, float, float]`)
# becomes an array without a length and without a type of its items. `Literal[1, 2, 4]` raises a ValidationError,
# because enumerations of integers are passed on unchanged while the API's enumerations are texts.
# Matters: Gemini gets less information about the same tool than every other provider, so it makes more calls that the
# tool refuses (a region of two numbers, a zoom of 50). This distorts a comparison of models that claims to give them
# equal tools.
# Seen on 2026-11-28:
#   zoom: sent {'type': 'INTEGER'}
#   image: sent {'type': 'STRING'}
#   points: sent {'type': 'ARRAY', 'items': {'type': 'NUMBER'}}
#   box: sent {'type': 'ARRAY'}
#   Literal[1, 2, 4]: ValidationError
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" langchain-google-genai==4.4.3
"$dir/env/bin/python" - <<'PY'
from typing import Literal

from google.genai.types import Schema
from langchain_core.tools import StructuredTool
from langchain_google_genai._function_utils import convert_to_genai_function_declarations
from pydantic import BaseModel, Field, ValidationError


class Crop(BaseModel):
    zoom: int = Field(2, ge=1, le=8)
    image: str = Field("img:1", pattern=r"^img:\d+$")
    points: list[float] = Field([0.5], min_length=1, max_length=16)
    box: tuple[float, float, float, float]


class Zoom(BaseModel):
    factor: Literal[1, 2, 4] = 2


def declare(arguments):
    """The parameters that the client sends for a tool with these arguments."""
    tool = StructuredTool.from_function(lambda **values: "", name="crop", description="Crop.", args_schema=arguments)
    declared = convert_to_genai_function_declarations([tool])
    declared = declared[0] if isinstance(declared, list) else declared
    return declared.function_declarations[0].model_dump(mode="json", exclude_none=True)["parameters"]["properties"]


assert {"minimum", "maximum", "min_items", "max_items", "pattern", "default"} <= set(Schema.model_fields)
sent = declare(Crop)
for name in ("zoom", "image", "points", "box"):
    print(f"{name}: sent {sent[name]}")
assert sent["zoom"] == {"type": "INTEGER"}, "changed: bounds and defaults are sent"
assert sent["image"] == {"type": "STRING"}, "changed: patterns are sent"
assert sent["points"] == {"type": "ARRAY", "items": {"type": "NUMBER"}}, "changed: lengths are sent"
assert sent["box"] == {"type": "ARRAY"}, "changed: fixed-length arrays are described"
try:
    declare(Zoom)
except ValidationError as error:
    print(f"Literal[1, 2, 4]: {type(error).__name__}")
else:
    raise SystemExit("changed: enumerations of integers are accepted")
PY
