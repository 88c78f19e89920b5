#!/usr/bin/env bash
# opencv-python-headless 5.0.0.93 and opencv-contrib-python 5.1.0.95, as two vision packages of one environment require
# them (a matcher and an annotator).
#
# Expected: the installer refuses two distributions that own the same files, or gives a warning.
# Happens: the second distribution is unpacked over the first without a warning, and `uv pip check` reports no problem
# (pip behaves in the same way). The recorded version of the first is then not the version that runs. Removing the
# second also removes the files of the first, which is still listed, and `import cv2` gives an empty module.
# Matters: 5.0 and 5.1 resize and match differently in the last digits; a manifest that records the version of
# "opencv-python-headless" states a version that did not run.
# Seen on 2026-11-28:
#   check: 0, recorded 5.0.0.93, running 5.1.0.95
#   after removing opencv-contrib-python: opencv-python-headless 5.0.0.93 is listed, cv2.resize exists: False
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" opencv-python-headless==5.0.0.93
uv pip install --quiet --python "$dir/env" opencv-contrib-python==5.1.0.95
uv pip check --quiet --python "$dir/env"
"$dir/env/bin/python" - <<'PY'
import importlib.metadata

recorded = importlib.metadata.version("opencv-python-headless")
# The library itself needs a display's libraries, so its version is read from its file.
from pathlib import Path
import sysconfig

text = (Path(sysconfig.get_path("purelib")) / "cv2" / "version.py").read_text()
running = text.partition('opencv_version = "')[2].partition('"')[0]
print(f"check: 0, recorded {recorded}, running {running}")
assert recorded == "5.0.0.93"
assert running.startswith("5.1.0"), "changed: the second wheel does not replace the first"
PY
uv pip uninstall --quiet --python "$dir/env" opencv-contrib-python
"$dir/env/bin/python" - <<'PY'
import importlib.metadata

recorded = importlib.metadata.version("opencv-python-headless")
try:
    import cv2
except ImportError:
    works = False
else:
    works = hasattr(cv2, "resize")
print(f"after removing opencv-contrib-python: opencv-python-headless {recorded} is listed, cv2.resize exists: {works}")
assert not works, "changed: removing one wheel leaves the other whole"
PY
