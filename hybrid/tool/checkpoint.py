"""Load a transformers checkpoint and refuse it unless every tensor came from the file.

`from_pretrained` fills missing tensors with random numbers and only logs it, so a
damaged checkpoint answers like a working one. Here, anything but an exact match raises a `WeightsError` that names the
tensors. Only safetensors are read, and no code in a checkpoint is run.

Every checkpoint is announced with `hybrid.tool.networks.announce`, together with what its own processor does to a
picture (`picture_input`). Checks of weights compare this with the tensor that the network gets.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hybrid.core.errors import WeightsError
from hybrid.plugins.weights import find_weights, weights_sha256
from hybrid.tool.networks import Network, PictureInput, announce

CONFIGURATION = ("config.json", "preprocessor_config.json", "processor_config.json")
# Position indices, which older files of text models contain although the model computes them itself. Callers pass them
# to `load_verified` as `harmless`.
INDICES = ("position_ids",)
# Maximum number of tensor names in an error.
SHOWN = 5


@dataclass(frozen=True)
class Checkpoint:
    """A verified model in evaluation mode on `device`, its processor, and a hash that identifies both.

    `sha256` covers the weight files and the configuration of model and processor, by content, not by path.
    """

    model: Any
    processor: Any
    model_type: str
    sha256: str
    device: str

    @property
    def version(self) -> str:
        """Family and content: `depth_anything@0123456789ab`."""
        return f"{self.model_type}@{self.sha256[:12]}"

    def process(self, **inputs: Any) -> Any:
        """Return the processor's tensors of images (and words), computed on the CPU.

        On a GPU, torchvision rounds some pixels of a resized picture differently, which would change the network's
        outputs by some thousandths.
        """
        return self.processor(**{"return_tensors": "pt", **inputs})


def load_verified(
    auto_class: str,
    weights: str,
    *,
    device: str = "cpu",
    processor_class: str = "AutoImageProcessor",
    model_types: Sequence[str] = (),
    harmless: Sequence[str] = (),
    full_pictures: bool = True,
    download: bool = False,
) -> Checkpoint:
    """Load and verify a model with its processor, in float32.

    Args:
        auto_class: name of the transformers class, e.g. "AutoModelForDepthEstimation".
        weights: a directory in transformers' layout, or a hub id ("owner/name").
        device: device of the model, e.g. "cpu", "cuda:0".
        processor_class: name of the transformers class of the processor.
        model_types: model families that the caller supports; empty means any.
        harmless: parts of tensor names. A tensor in the file whose name contains one of them is accepted even if the
            model does not use it.
        full_pictures: whether the network is given full pictures, or large parts of them; False for one that only reads
            small parts (lines of text), whose correct input no check can know.
        download: whether a hub id that is not on disk may be fetched.

    Raises:
        WeightsError: weights absent or not safetensors, another architecture, or tensors missing, unexpected or of
            another shape; one line that names the file or the tensors.
    """
    folder = find_checkpoint(weights, download=download)
    model_type = model_type_of(folder, weights, model_types)
    sha256 = content_hash(folder)
    model, processor = _load(auto_class, processor_class, folder, weights, harmless)
    wants = partial(picture_input, processor_class, folder, weights) if full_pictures else None
    announce(Network(weights, model, wants))
    return Checkpoint(model.to(device).eval(), processor, model_type, sha256, device)


def load_module(model: Any, weights: str, *, device: str = "cpu", download: bool = False) -> Checkpoint:
    """Load and verify a user's torch module, with the image processor that is next to its weights.

    Args:
        model: the module, built with any weights, because all are replaced.
        weights: a directory, or a hub id, with `.safetensors` files of tensors named as in its `state_dict`, and a
            `preprocessor_config.json` in transformers' form, which describes how to prepare pictures for the network.
        device: device of the model, e.g. "cpu", "cuda:0".
        download: whether a hub id that is not on disk may be fetched.

    Raises:
        WeightsError: one of these files is missing or unreadable, or the tensors are not exactly those of the module.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file
    from transformers import AutoImageProcessor

    folder = find_weights(weights, download=download)
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise WeightsError(f"weights absent: {weights} has no .safetensors file (no other format is read)")
    _check_preprocessor(folder / "preprocessor_config.json", weights)
    try:
        tensors = {name: tensor for file in files for name, tensor in load_file(file).items()}
        processor = AutoImageProcessor.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, TypeError, KeyError, SafetensorError) as error:
        raise WeightsError(f"{weights} cannot be loaded: {first_line(error)}") from error
    fill(model, tensors, weights, partial(picture_input, "AutoImageProcessor", folder, weights))
    kind, sha256 = type(model).__name__.lower(), content_hash(folder)
    return Checkpoint(model.to(device).eval(), processor, kind, sha256, device)


def _check_preprocessor(path: Path, weights: str) -> None:
    """Raise `WeightsError` if no image processor is named: transformers' own message is about something else."""
    if not path.is_file():
        raise WeightsError(f"weights absent: {weights} has no {path.name}")
    try:
        settings = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise WeightsError(f"{weights}: {path.name} is not JSON ({first_line(error)})") from error
    if not isinstance(settings, dict) or not isinstance(settings.get("image_processor_type"), str):
        raise WeightsError(
            f'{weights}: {path.name} names no image processor: add "image_processor_type": "ViTImageProcessor", or the '
            "class of transformers by which the network was trained"
        )


def find_checkpoint(weights: str, *, download: bool = False) -> Path:
    """Return the directory of a checkpoint in transformers' layout. Raises `WeightsError` naming the absent part."""
    folder = find_weights(weights, download=download)
    if not (folder / "config.json").is_file():
        raise WeightsError(f"weights absent: {weights} has no config.json")
    if not any(folder.glob("*.safetensors")):
        raise WeightsError(f"weights absent: {weights} has no .safetensors file (no other format is read)")
    return folder


def content_hash(folder: Path) -> str:
    """Sha256 over the weight files and the configurations of model and processor, by name and content."""
    # The configuration decides input size and normalisation: with another configuration the same weights answer
    # differently.
    digest = hashlib.sha256(weights_sha256(folder).encode())
    for name in CONFIGURATION:
        if (folder / name).is_file():
            digest.update(f"\n{name}:".encode() + hashlib.sha256((folder / name).read_bytes()).digest())
    return digest.hexdigest()


def model_type_of(folder: Path, weights: str, allowed: Sequence[str]) -> str:
    """Return the family that config.json names. Raises `WeightsError` if `allowed` is not empty and lacks it."""
    try:
        model_type = json.loads((folder / "config.json").read_text("utf-8"))["model_type"]
    except (ValueError, KeyError, TypeError) as error:
        raise WeightsError(f"{weights}: config.json has no model_type ({type(error).__name__})") from error
    if not isinstance(model_type, str):
        raise WeightsError(f"{weights}: config.json has no usable model_type (found {model_type!r})")
    if allowed and model_type not in allowed:
        raise WeightsError(f"{weights} is a {model_type!r} checkpoint; expected one of: {', '.join(allowed)}")
    return model_type


PRIMARIES = ((0, 0, 0), (255, 0, 0), (0, 255, 0), (0, 0, 255))
FLAT_PX = 96


def picture_input(processor_class: str, folder: Path, weights: str) -> PictureInput:
    """Measure how the processor of a checkpoint, read again from its folder, maps the colours of a picture.

    The processor is given a black, a red, a green and a blue picture: its output reflects all that is configured
    (rescaling, mean and standard deviation, channel order, grey), but not how it resizes or pads.

    Raises:
        WeightsError: the processor does not accept RGB pictures, or its output is not finite.
    """
    import numpy as np
    import transformers

    processor = getattr(transformers, processor_class).from_pretrained(
        folder, local_files_only=True, trust_remote_code=False
    )
    reader = getattr(processor, "image_processor", processor)
    answers = [_colour(reader, colour, weights) for colour in PRIMARIES]
    black, *others = (np.asarray(answer, np.float64) for answer in answers)
    if not all(np.isfinite(answer).all() and answer.shape == black.shape for answer in (black, *others)):
        raise WeightsError(f"{weights}: its image processor does not give one finite value per channel")
    columns = np.stack([other - black for other in others], axis=1)
    rows = tuple((float(red), float(green), float(blue)) for red, green, blue in columns)
    return PictureInput(rows, tuple(float(value) for value in black))


def _colour(reader: Any, colour: tuple[int, int, int], weights: str) -> Any:
    """Return the values (channels) that a processor gives to a picture of one colour."""
    import numpy as np

    flat = np.full((FLAT_PX, FLAT_PX, 3), colour, np.uint8)
    try:
        values = reader(images=[flat], return_tensors="pt", input_data_format="channels_last")["pixel_values"]
    except (ValueError, TypeError, KeyError):
        # Processors of matching networks accept only pairs.
        try:
            pair = [[flat, flat]]
            values = reader(images=pair, return_tensors="pt", input_data_format="channels_last")["pixel_values"]
        except (ValueError, TypeError, KeyError) as error:
            raise WeightsError(
                f"{weights}: its image processor does not accept an RGB picture ({first_line(error)})"
            ) from error
    if values.ndim == 3:
        # The output is a row of patches, (1, patches, side * side * channels), with the channels last.
        values = values[0].reshape(-1, 3).T[None, :, :, None]
    return values.reshape(-1, *values.shape[-3:])[0].flatten(1).float().median(dim=1).values.numpy()


def _load(auto: str, processor: str, folder: Path, weights: str, harmless: Sequence[str]) -> tuple[Any, Any]:
    import transformers
    from huggingface_hub.errors import StrictDataclassError
    from safetensors import SafetensorError

    try:
        model, info = getattr(transformers, auto).from_pretrained(
            folder,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            # Mismatches are listed and rejected by name below; transformers would report the whole model.
            ignore_mismatched_sizes=True,
            dtype="float32",
        )
        refuse_unfit(weights, info, harmless)
        # Without an explicit value, transformers would ask at the terminal about a processor with custom code.
        loader = getattr(transformers, processor)
        return model, loader.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except WeightsError:
        raise
    except (OSError, ValueError, TypeError, RuntimeError, KeyError, StrictDataclassError, SafetensorError) as error:
        raise WeightsError(f"{weights} cannot be loaded as {auto}: {first_line(error)}") from error


def fill(
    model: Any, tensors: Mapping[str, Any], location: str, wants: Callable[[], PictureInput] | None = None
) -> None:
    """Load tensors by name into a torch module, and announce it with the picture input that it expects (`wants`).

    Raises:
        WeightsError: the tensors are not exactly those of the module.
    """
    put_tensors(model, tensors, location)
    announce(Network(location, model, wants))


def put_tensors(model: Any, tensors: Mapping[str, Any], location: str) -> None:
    """Load tensors by name into a torch module whose parts are announced separately.

    Raises:
        WeightsError: the tensors are not exactly those of the module.
    """
    expected = model.state_dict()
    info = {
        # A count of batches is not a weight: old files lack it, and torch starts it at 0.
        "missing_keys": [name for name in expected.keys() - tensors.keys() if not name.endswith("num_batches_tracked")],
        "unexpected_keys": tensors.keys() - expected.keys(),
        "mismatched_keys": [
            (name,) for name in expected.keys() & tensors.keys() if expected[name].shape != tensors[name].shape
        ],
    }
    refuse_unfit(location, info)
    model.load_state_dict(tensors)


def refuse_unfit(location: str, info: Mapping[str, Any], harmless: Sequence[str] = ()) -> None:
    """Raise `WeightsError`, naming the tensors, unless a checkpoint fits its architecture exactly.

    Args:
        location: the checkpoint, or its part, for the error.
        info: the result of `from_pretrained(output_loading_info=True)` in transformers and diffusers.
        harmless: parts of the names of tensors that may be in the file although the model does not have them.
    """
    wrong = {
        "missing": info["missing_keys"],
        "of another shape": [key[0] for key in info["mismatched_keys"]],
        "unexpected": [key for key in info["unexpected_keys"] if not any(part in key for part in harmless)],
        "unreadable": info.get("error_msgs", ()),
    }
    complaints = []
    for what, keys in wrong.items():
        if names := sorted(keys):
            more = ", ..." if len(names) > SHOWN else ""
            complaints.append(f"{len(names)} {what} ({', '.join(names[:SHOWN])}{more})")
    if complaints:
        raise WeightsError(f"{location} does not fit its architecture: tensors {'; '.join(complaints)}")


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, at most 200 characters; without a message, its class name."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[:200]
