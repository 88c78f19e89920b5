#!/usr/bin/env bash
# litdata 0.2.76, mosaicml-streaming 0.13.0 (both with Pillow 13.0.0).
#
# Expected: an image that is written into a shard as a PIL image has the same colours when it is read back.
# Happens: both libraries store the mode, the size and the pixels, but not the palette. An image of mode "P" comes back
# with a palette that is black: converted to RGB, every pixel is (0, 0, 0). Screenshots and diagrams are often saved in
# this mode, because the file is smaller. There is no warning. Streaming's encoding "png" keeps the colours.
# Matters: a multimodal model is then asked about a black picture, and its wrong answers count like any others.
# Seen on 2026-11-30 (a red and a blue pixel):
#   file: P [(255, 0, 0), (0, 0, 255)]
#   litdata: P [(0, 0, 0), (0, 0, 0)]
#   streaming, pil: P [(0, 0, 0), (0, 0, 0)]
#   streaming, png: P [(255, 0, 0), (0, 0, 255)]
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" litdata==0.2.76 mosaicml-streaming==0.13.0 pillow==13.0.0
cat >"$dir/shards.py" <<'PY'
import sys
from pathlib import Path

from PIL import Image
from litdata import StreamingDataset as LitDataset
from litdata import optimize
from streaming import MDSWriter
from streaming import StreamingDataset as MosaicDataset

FOLDER = Path(sys.argv[1])
FILE = FOLDER / "flag.png"


def read(path):
    return {"image": Image.open(path)}


def colours(name, image):
    pixels = image.convert("RGB")
    row = [pixels.getpixel((x, 0)) for x in range(image.width)]
    print(f"{name}: {image.mode} {row}")
    return row


def through_streaming(encoding):
    folder = str(FOLDER / encoding)
    with MDSWriter(out=folder, columns={"image": encoding}) as writer:
        writer.write(read(FILE))
    return MosaicDataset(local=folder, shuffle=False, batch_size=1)[0]["image"]


if __name__ == "__main__":
    flag = Image.new("P", (2, 1))
    flag.putpalette([255, 0, 0, 0, 0, 255])
    flag.putpixel((1, 0), 1)
    flag.save(FILE)
    expected = colours("file", read(FILE)["image"])
    optimize(read, [str(FILE)], str(FOLDER / "lit"), chunk_bytes="1MB", num_workers=1)
    black = [(0, 0, 0)] * 2
    assert colours("litdata", LitDataset(str(FOLDER / "lit"))[0]["image"]) == black, "changed: litdata"
    assert colours("streaming, pil", through_streaming("pil")) == black, "changed: streaming, encoding pil"
    assert colours("streaming, png", through_streaming("png")) == expected, "changed: streaming, encoding png"
PY
"$dir/env/bin/python" -W ignore "$dir/shards.py" "$dir" 2>"$dir/progress" | grep -E "^(file|litdata|streaming)" || {
  tail -20 "$dir/progress" >&2
  exit 1
}
