#!/usr/bin/env bash
# autogen-core 0.7.5, pillow 13.0.0; haystack-ai 3.4.1 for comparison.
#
# Expected: an image with a transparent background reaches the model with that background, or on white, as viewers show it.
# Happens: `autogen_core.Image` drops the transparency. The transparent area takes the colour that the file happens to
# store there, which is mostly black, so dark lines on a transparent ground (a drawing, a diagram, a rendered formula)
# become dark lines on black. There is no warning. Haystack's `ImageContent` sends the file unchanged.
# Matters: the question is about a picture in which almost nothing can be seen.
# Seen on 2026-11-30 (one pixel of the ground, one of a dark line; red, green, blue and opacity):
#   file: ground (0, 0, 0, 0), line (20, 20, 20, 255)
#   autogen: ground (0, 0, 0, 255), line (20, 20, 20, 255)
#   haystack: ground (0, 0, 0, 0), line (20, 20, 20, 255)
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" autogen-core==0.7.5 haystack-ai==3.4.1 pillow==13.0.0
"$dir/env/bin/python" -W ignore - "$dir/drawing.png" <<'PY'
import base64
import io
import sys

from autogen_core import Image as AutogenImage
from haystack.dataclasses import ImageContent
from PIL import Image

drawing = Image.new("RGBA", (9, 9), (0, 0, 0, 0))
drawing.paste((20, 20, 20, 255), (0, 4, 9, 5))
drawing.save(sys.argv[1])


def pixels(name, data):
    image = Image.open(io.BytesIO(data)).convert("RGBA")
    found = image.getpixel((0, 0)), image.getpixel((0, 4))
    print(f"{name}: ground {found[0]}, line {found[1]}")
    return found


with open(sys.argv[1], "rb") as file:
    original = pixels("file", file.read())
autogen = pixels("autogen", base64.b64decode(AutogenImage.from_pil(Image.open(sys.argv[1])).to_base64()))
haystack = pixels("haystack", base64.b64decode(ImageContent.from_file_path(sys.argv[1]).base64_image))
assert autogen == ((0, 0, 0, 255), (20, 20, 20, 255)), "changed: autogen"
assert haystack == original, "changed: haystack"
PY
