"""Load the networks of a checkpoint in diffusers' layout; fail unless every tensor came from the file.

The layout is a folder with `model_index.json` and one subfolder per part (`unet/`, `vae/`, `text_encoder/`,
`tokenizer/`, `scheduler/`). diffusers is an extra: `uv pip install -e '.[diffusers]'`. Only safetensors are read, and
no code from the checkpoint is run.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hybrid.core.errors import WeightsError, install_extra
from hybrid.plugins.weights import find_weights, no_directory
from hybrid.tool.checkpoint import INDICES, first_line, refuse_unfit
from hybrid.tool.networks import Network, announce, normalised

INDEX = "model_index.json"
HALF = (0.5, 0.5, 0.5)
NETWORKS = ("unet", "vae", "text_encoder")
FOLDERS = (*NETWORKS, "tokenizer", "scheduler")


@dataclass(frozen=True)
class Parts:
    """Verified networks in evaluation mode on a device, in float32, with their tokenizer and scheduler.

    `index` is the content of model_index.json; `sha256` covers paths and contents of all weights and configurations.
    """

    unet: Any
    vae: Any
    text_encoder: Any
    tokenizer: Any
    scheduler: Any
    index: Mapping[str, Any]
    sha256: str


def has_index(weights: str) -> bool:
    """Return whether the weights are in diffusers' layout. Raises `WeightsError` if they are missing."""
    return (find_weights(weights, download=False) / INDEX).is_file()


def load_parts(weights: str, device: str, *, pipelines: tuple[str, ...], schedulers: tuple[str, ...]) -> Parts:
    """Load and verify all parts.

    Args:
        weights: a directory in diffusers' layout, or a hub id ("owner/name").
        device: device of the networks, e.g. "cpu", "cuda:0".
        pipelines: accepted values of `_class_name` in model_index.json.
        schedulers: classes that the caller can use; the one named in model_index.json is loaded, else the first.

    Raises:
        WeightsError: diffusers or weights are missing, the pipeline is not an accepted one, or tensors are missing,
            unexpected or of the wrong shape; the one-line message names the part and the tensors.
    """
    folder = find_weights(weights, download=False)
    try:
        index = json.loads((folder / INDEX).read_text("utf-8"))
    except FileNotFoundError as error:
        raise WeightsError(f"weights absent: {weights} has no {INDEX} (a folder in diffusers' layout)") from error
    except ValueError as error:
        raise WeightsError(f"{weights}: {INDEX} is not JSON ({error})") from error
    class_name = index.get("_class_name") if isinstance(index, dict) else None
    if class_name not in pipelines:
        names = ", ".join(pipelines)
        raise WeightsError(f"{weights} cannot be loaded: {INDEX} names {class_name!r}; supported of diffusers: {names}")
    try:
        diffusers = importlib.import_module("diffusers")
    except ImportError as error:
        raise WeightsError(f"{weights} needs the package diffusers: {install_extra('diffusers')} ({error})") from error
    import transformers

    kinds = (diffusers.UNet2DConditionModel, diffusers.AutoencoderKL, transformers.CLIPTextModel)
    unet, vae, text = (
        _network(kind, folder / name, f"{weights}/{name}").to(device).eval()
        for name, kind in zip(NETWORKS, kinds, strict=True)
    )
    # The autoencoder of Stable Diffusion 2 takes -1..1; the other two networks get no image.
    for name, network in zip(NETWORKS, (unet, vae, text), strict=True):
        wants = partial(normalised, HALF, HALF) if name == "vae" else None
        announce(Network(f"{weights}/{name}", network, wants))
    scheduler_name = str((index.get("scheduler") or ("", ""))[1])
    scheduler = getattr(diffusers, scheduler_name if scheduler_name in schedulers else schedulers[0])
    return Parts(
        unet,
        vae,
        text,
        _plain(transformers.CLIPTokenizer, folder / "tokenizer", f"{weights}/tokenizer"),
        _plain(scheduler, folder / "scheduler", f"{weights}/scheduler"),
        index,
        content_hash(folder),
    )


def content_hash(folder: Path) -> str:
    """Hash the weights and the configuration of all parts: their paths and contents."""
    total = hashlib.sha256()
    files = [path for name in FOLDERS for path in (folder / name).rglob("*") if path.suffix in _READ]
    for path in sorted([folder / INDEX, *files]):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        total.update(f"{path.relative_to(folder).as_posix()}\x1f{digest}\x1e".encode())
    return total.hexdigest()


_READ = (".safetensors", ".json", ".txt")


def _network(kind: Any, folder: Path, location: str) -> Any:
    from safetensors import SafetensorError

    if not any(folder.glob("*.safetensors")):
        raise WeightsError(f"weights absent: {location} has no .safetensors file (no other format is read)")
    try:
        model, info = kind.from_pretrained(
            folder,
            local_files_only=True,
            use_safetensors=True,
            output_loading_info=True,
            # Mismatched tensors are listed and rejected by name below.
            ignore_mismatched_sizes=True,
        )
    except (OSError, ValueError, TypeError, RuntimeError, KeyError, SafetensorError) as error:
        raise WeightsError(f"{location} cannot be loaded as {kind.__name__}: {first_line(error)}") from error
    refuse_unfit(location, info, INDICES)
    return model.float()


def _plain(kind: Any, folder: Path, location: str) -> Any:
    """Load a part that has no tensors, such as the tokenizer."""
    if not folder.is_dir():
        raise WeightsError(f"weights absent: {no_directory(location)}")
    try:
        return kind.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, TypeError, RuntimeError, KeyError) as error:
        raise WeightsError(f"{location} cannot be loaded as {kind.__name__}: {first_line(error)}") from error
