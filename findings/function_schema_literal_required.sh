#!/usr/bin/env bash
# function-schema 0.4.5.
#
# Expected: the schema of a tool requires the parameters that have no default value, and no others.
# Happens: a parameter of the type `Literal` is required if Python takes all of its values for true, whether or not it has
# a default. `mode: Literal["nearest", "linear"] = "nearest"` is required, although the schema also states its default.
# `turns: Literal[0, 1, 2, 3]` without a default is optional, because 0 is among its values.
# Matters: a model may leave out what the function needs, and the call fails; and it has to choose what the author of the
# tool had settled by a default. The README recommends `Literal` for choices.
# Seen on 2026-11-30 (required parameters):
#   function: image, turns
#   schema: image, mode
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" function-schema==0.4.5
"$dir/env/bin/python" - <<'PY'
import inspect
from typing import Literal

from function_schema import get_function_schema


def rotate(
    image: str, turns: Literal[0, 1, 2, 3], mode: Literal["nearest", "linear"] = "nearest", crop: bool = False
) -> str:
    """Turn an image by quarters."""
    return f"{image} turned {turns} times"


parameters = inspect.signature(rotate).parameters.values()
function = [one.name for one in parameters if one.default is inspect.Parameter.empty]
parameters = get_function_schema(rotate)["parameters"]
print("function:", ", ".join(function))
print("schema:", ", ".join(sorted(parameters["required"])))
assert "mode" in parameters["required"], "changed: a Literal with a default"
assert parameters["properties"]["mode"]["default"] == "nearest", "changed: the default of a Literal"
assert "turns" not in parameters["required"], "changed: a Literal with 0 and without a default"
assert "crop" not in parameters["required"], "changed: another type with a default"
PY
