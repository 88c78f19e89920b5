"""`hybrid tools import-weights FILE OUT`: turns a torch checkpoint into a folder of weights that tools load.

Tensors are read with torch's `weights_only`, which runs no code of the file; names are changed by a table that is read
and never run.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import click

from hybrid.cli import _option_types as types
from hybrid.core.errors import UsageError, WeightsError

WEIGHTS: Final = "model.safetensors"
PREPROCESSOR: Final = "preprocessor_config.json"
# Keys under which checkpoints store their tensors; the first existing one is used.
NESTED: Final = ("state_dict", "model_state_dict", "model", "network", "weights")
# torch's sampling filters by their name in Pillow.
RESAMPLE: Final[Mapping[str, int]] = {"nearest": 0, "bilinear": 2, "bicubic": 3}
# Maximum number of characters in a table of names.
MAX_TABLE: Final = 1_000_000


@click.command("import-weights")
@click.argument("file", type=types.EXISTING_FILE)
@click.argument("out", type=types.ANY_PATH)
@click.option(
    "--key", help="The entry of FILE that contains the tensors.  [default: the file itself, its state_dict or model]"
)
@click.option(
    "--rename",
    type=types.EXISTING_FILE,
    metavar="MAP",
    help="A mapping from regular expressions to the replacement for their match in a name.",
)
@click.option(
    "--size",
    type=types.NUMBER,
    default=224,
    show_default=True,
    help="Width and height of the network's input in px.",
)
@click.option(
    "--mean",
    default="0.485,0.456,0.406",
    show_default=True,
    metavar="R,G,B",
    help="Mean that normalises the input, 0 to 1.",
)
@click.option(
    "--std",
    default="0.229,0.224,0.225",
    show_default=True,
    metavar="R,G,B",
    help="Standard deviation that normalises the input, 0 to 1.",
)
@click.option(
    "--resample",
    type=click.Choice(["bilinear", "bicubic", "nearest"]),
    default="bilinear",
    show_default=True,
    help="How images are resized to the input.",
)
@click.option("--dry-run", is_flag=True, help="Only print names and shapes.")
def import_weights(
    file: Path,
    out: Path,
    key: str | None,
    rename: Path | None,
    size: int,
    mean: str,
    std: str,
    resample: str,
    *,
    dry_run: bool,
) -> int:
    """Write the tensors of a torch checkpoint (.pth, .pt, .bin) into OUT as safetensors, with a preprocessor's config.

    No code in FILE is run: a file with anything but tensors, numbers and texts is refused. Names and shapes of all
    tensors are printed. --rename is a file with one mapping, {"PATTERN": "REPLACEMENT"}, in Python or JSON syntax: the
    regular expressions are applied to the names in order. The file is only read, never run.

    The config describes the preprocessing that the network was trained with: the defaults are ImageNet's, and `hybrid
    tools check` compares it with the network's actual input.

    \b
    Examples:
      hybrid tools import-weights net.pth weights/net --rename map.py --dry-run
      hybrid tools import-weights net.pth weights/net --rename map.py --size 384 --mean 0.5,0.5,0.5 --std 0.5,0.5,0.5
    """
    config = preprocessor(size, numbers("--mean", mean), numbers("--std", std), resample)
    refuse_existing(out)
    renames = () if rename is None else read_renames(rename)
    tensors, other = read_tensors(file, key)
    renamed = rename_tensors(tensors, renames)
    for name, (old, tensor) in renamed.items():
        shape = ", ".join(map(str, tensor.shape))
        renamed_note = "" if old == name else f"  (was {old})"
        click.echo(f"{name}  {str(tensor.dtype).removeprefix('torch.')} [{shape}]{renamed_note}")
    if other:
        click.echo(f"left out, because they are not tensors: {', '.join(other)}", err=True)
    if dry_run:
        click.echo(f"{len(renamed)} tensors; nothing was written (--dry-run)", err=True)
        return 0
    write_weights(out, {name: tensor for name, (_, tensor) in renamed.items()}, config)
    click.echo(f"wrote {len(renamed)} tensors to {out / WEIGHTS}, and {PREPROCESSOR} next to them", err=True)
    return 0


def refuse_existing(out: Path) -> None:
    """Raise `UsageError` if the folder contains anything, or is a file."""
    if out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise UsageError(f"{out} already exists: name a new folder")


def read_tensors(file: Path, key: str | None = None) -> tuple[dict[str, Any], list[str]]:
    """Return the tensors of a checkpoint by name, and the names of its other entries.

    Args:
        file: a checkpoint of `torch.save`, or a .safetensors file.
        key: the entry with the tensors; None for the usual names.

    Raises:
        WeightsError: the file is not a checkpoint, contains code, or has no tensors.
    """
    content = _load(file)
    if key is not None:
        if not isinstance(content, Mapping) or key not in content:
            available = ", ".join(map(str, content)) if isinstance(content, Mapping) else "no entries"
            raise WeightsError(f"{file} has no entry {key!r}; it has: {available:.300}")
        content = content[key]
    elif isinstance(content, Mapping):
        nested = next((name for name in NESTED if isinstance(content.get(name), Mapping)), None)
        content = content if nested is None else content[nested]
    if not isinstance(content, Mapping):
        raise WeightsError(f"{file} contains a {type(content).__name__}, not a mapping from names to tensors")
    import torch

    tensors = {str(name): value for name, value in content.items() if isinstance(value, torch.Tensor)}
    other = [str(name) for name, value in content.items() if not isinstance(value, torch.Tensor)]
    if not tensors:
        raise WeightsError(
            f"{file} has no tensors at this level, only: {', '.join(other):.300}; choose one with --key NAME"
        )
    return tensors, other


def _load(file: Path) -> Any:
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        if file.suffix == ".safetensors":
            return load_file(file)
        return torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:
        # Compare the error by name, because nothing here may import the module that runs code from a file.
        if type(error).__name__ == "UnpicklingError":
            global_name = re.search(r"GLOBAL ([\w.]+)", str(error))
            what = f" ({global_name[1]})" if global_name else ""
            raise WeightsError(
                f"{file} contains more than tensors{what}, and loading that would run code from the file: if you "
                "trust the file, load it and save only the network's state_dict() with torch.save"
            ) from error
        if isinstance(error, OSError | RuntimeError | ValueError | EOFError | KeyError | SafetensorError):
            raise WeightsError(f"{file} cannot be read as a checkpoint of torch ({type(error).__name__})") from error
        raise


def read_renames(path: Path) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Read patterns and replacements from the only mapping in a Python or JSON file, which is not executed.

    Raises:
        UsageError: the file has no such mapping, or a pattern is not a regular expression.
    """
    text = path.read_text("utf-8")
    if len(text) > MAX_TABLE:
        raise UsageError(f"--rename {path}: the file has {len(text):,} characters; at most {MAX_TABLE:,} are read")
    try:
        tables = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Dict)]
        if len(tables) != 1:
            raise UsageError(
                f'--rename {path}: write one mapping, {{"PATTERN": "REPLACEMENT"}}; the file has {len(tables)}'
            )
        table = ast.literal_eval(tables[0])
    except (SyntaxError, ValueError) as error:
        raise UsageError(
            f"--rename {path}: the mapping must contain only string literals ({type(error).__name__})"
        ) from error
    renames = []
    for pattern, replacement in table.items():
        if not (isinstance(pattern, str) and isinstance(replacement, str)):
            raise UsageError(
                f"--rename {path}: {pattern!r}: pattern and replacement must be texts; the replacement is "
                f"{replacement!r:.60}"
            )
        try:
            renames.append((re.compile(pattern), replacement))
        except re.error as error:
            raise UsageError(f"--rename {path}: {pattern!r} is not a regular expression: {error}") from error
    return tuple(renames)


def rename_tensors(
    tensors: Mapping[str, Any], renames: Iterable[tuple[re.Pattern[str], str]]
) -> dict[str, tuple[str, Any]]:
    """Return tensors by new name, with the old name. Raises `UsageError` for a duplicate or empty name."""
    renames = tuple(renames)
    renamed: dict[str, tuple[str, Any]] = {}
    for old, tensor in tensors.items():
        name = old
        for pattern, replacement in renames:
            name = _substitute(pattern, replacement, name)
        if not name:
            raise UsageError(f"--rename: the name {old!r} would become empty")
        if name in renamed:
            raise UsageError(f"--rename: {renamed[name][0]!r} and {old!r} both become {name!r}")
        renamed[name] = (old, tensor)
    unused = [pattern.pattern for pattern, _ in renames if not any(pattern.search(old) for old in tensors)]
    if unused and len(unused) == len(renames):
        raise UsageError(
            f"--rename: no name of a tensor matches {unused[0]!r}; the first name is {next(iter(tensors))!r}"
        )
    return renamed


def _substitute(pattern: re.Pattern[str], replacement: str, name: str) -> str:
    try:
        return pattern.sub(replacement, name)
    except (re.error, IndexError) as error:
        raise UsageError(f"--rename: {replacement!r} does not fit {pattern.pattern!r}: {error}") from error


def numbers(option: str, text: str) -> tuple[float, ...]:
    """Parse three numbers, one for each channel. Raises `UsageError` for anything else."""
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    if len(values) != 3:
        raise UsageError(f"{option} {text}: write three numbers, R,G,B, such as 0.485,0.456,0.406")
    return values


def preprocessor(size: int, mean: Iterable[float], std: Iterable[float], resample: str) -> dict[str, Any]:
    """Return the config of a transformers image processor that resizes to size x size px, rescales and normalises."""
    return {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "size": {"height": size, "width": size},
        "resample": RESAMPLE[resample],
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": list(mean),
        "image_std": list(std),
    }


def write_weights(out: Path, tensors: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """Write the tensors as safetensors and the config as JSON into a new folder."""
    from safetensors.torch import save_file

    out.mkdir(parents=True, exist_ok=True)
    # Copy the tensors: tied tensors share memory, which the format rejects.
    copies = {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}
    save_file(copies, out / WEIGHTS, metadata={"format": "pt"})
    (out / PREPROCESSOR).write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
