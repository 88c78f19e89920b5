"""`hybrid tools check depth` runs the tool's known-answer images on the backend that would answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import click

from hybrid.cli import _option_types as types
from hybrid.cli import _options as shared
from hybrid.cli._help import Grouped
from hybrid.cli._options import check_name_conflict, logging_options_of, path_option
from hybrid.cli._tool_args import arguments_of
from hybrid.core.errors import HybridError, UsageError

if TYPE_CHECKING:
    from hybrid.config import BackendChoice, ServiceOptions
    from hybrid.serving.empty_questions import EmptyAnswer
    from hybrid.tool import Tool


@click.command("check", cls=Grouped)
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=types.tools)
@shared.weights
@shared.backend
@shared.device
@click.option(
    "--contract", is_flag=True, help="Check the contract that every tool must keep, instead of the known answers."
)
@click.option("--args", "args_json", help="With --contract: the arguments of the call that is checked, as JSON.")
@path_option
@logging_options_of
def check(
    names: tuple[str, ...],
    weights: tuple[str, ...],
    backend: Literal["auto", "learned", "classical"],
    device: str,
    contract: bool,
    args_json: str | None,
) -> int:
    """Check the backend that would answer, for each tool NAME. Exit code 3 if anything is wrong.

    The backend must answer the tool's questions with known answers; of a series, enough must be right. The colours that
    its networks get are compared with the output of the checkpoint's own processor.

    The first run with learned weights makes this check by itself and refuses weights that fail.

    Then the backend gets questions that the pictures cannot answer (one colour, noise, a single pixel, all points at
    one place): an answer with any confidence is an error.

    --contract checks instead that the card is complete, equal questions get byte-identical output, unusual images and
    arguments get an output or a clear refusal, texts are short, and numbers are finite and named with units. A plain
    call uses the arguments of the first known answer, unless --args gives others.

    \b
    Examples:
      hybrid tools check depth --weights depth-anything/Depth-Anything-V2-Small-hf
      hybrid tools check similarity --backend classical
      hybrid tools check my_tool --path my_tools --contract
    """
    from hybrid.config import ServiceOptions
    from hybrid.plugins.registry import load
    from hybrid.plugins.weights_option import weights_by_tool

    if args_json is not None and not contract:
        raise UsageError("--args is for --contract: known answers have their own arguments")
    tools: dict[str, Tool] = {}
    for name in names:
        check_name_conflict("tools", name)
        # A custom tool is first imported in another process. If that fails, the tool is not imported in this process.
        load("tools", name)
        tools[name] = load("tools", name, in_process=True)
    weight_options = weights_by_tool(weights, [*tools.values()])
    options = ServiceOptions(backend, weight_options, device, unchecked=True)
    for tool in tools.values():
        check_learned(tool, weight_options, device)
    if contract:
        return _check_each(tools, lambda name: _contract(name, tools[name], options, args_json))
    return _check_each(tools, lambda name: _known_answers(name, tools[name], options))


def _check_each(names: Collection[str], check_one: Callable[[str], int]) -> int:
    """Check tools one after the other. Return the highest exit code."""
    codes = []
    for name in names:
        try:
            codes.append(check_one(name))
        except HybridError as error:
            if len(names) == 1:
                raise
            # The other tools are checked even if this tool has damaged weights or nothing to check.
            click.echo(f"hybrid: {error}", err=True)
            codes.append(3)
    return max(codes)


def _contract(name: str, tool: Tool, options: ServiceOptions, args_json: str | None) -> int:
    """Print how a tool breaks the contract. Return the exit code."""
    from hybrid.serving.contract import breaches

    wrong = breaches(name, tool, options, None if args_json is None else arguments_of(args_json))
    for line in wrong:
        click.echo(f"BROKEN {line}")
    click.echo(f"{name}: {'keeps the contract' if not wrong else f'breaks the contract in {len(wrong)} ways'}")
    return 3 if wrong else 0


def check_learned(tool: Tool, weights: Mapping[str, str], device: str) -> None:
    """Raise `UsageError` if no backend of the tool would load its weights, or the device is missing."""
    from hybrid.serving.loader import refuse_absent

    source = weights.get(tool.card.name)
    if source is not None and tool.backend("learned") is None:
        raise UsageError(f"--weights {source}: {tool.card.name} has no learned backend to load them")
    refuse_absent(device)


def _print_empty(tool: Tool, empty: Sequence[EmptyAnswer]) -> None:
    """Print a line for each picture that contains nothing; without `claims`, the tool's answers share one note."""
    # Without `claims` it is unknown whether an answer is wrong; a count of 0, for example, is right for a blank
    # picture.
    answered = [reply for reply in empty if reply.claim] if tool.claims is None else []
    for reply in empty:
        if reply in answered:
            continue
        verdict = f"claims {reply.claim}" if reply.claim else f"refused: {reply.refusal}"[:90]
        verdict = verdict if reply.claim or reply.refusal else "no claim"
        click.echo(f"{'WRONG' if reply.claim else 'ok':6} {reply.name:32} {reply.seconds:6.2f} s  {verdict}")
    if answered:
        click.echo(
            f"note   it answers {len(answered)} of {len(empty)} pictures that contain nothing ({answered[0].name}, ...)"
            "; if that is wrong, declare it with `claims` (docs/add-a-tool.md)"
        )


def _known_answers(name: str, tool: Tool, options: BackendChoice) -> int:
    """Print a line for each known answer. Return the exit code."""
    from hybrid.serving.empty_questions import ask_empty
    from hybrid.serving.input_check import run_probes
    from hybrid.serving.known_answers import failures, questions, run_checks, series_counts
    from hybrid.serving.loader import Loader

    loader = Loader(options)
    if not tool.checks and tool.claims is None and tool.backend("learned") is None:
        raise UsageError(
            f"{name} has no network and no images with known answers: add an image (@{name}.check, docs/add-a-tool.md)"
        )
    ready = loader.load(tool)
    checked, seen = run_checks(tool, ready.backend), run_probes(tool, ready.backend)
    empty = ask_empty(tool, ready.backend)
    if not checked and not seen and not empty:
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
        mark = "ok" if answer.wrong is None else "WRONG" if answer.series is None else "missed"
        click.echo(f"{mark:6} {answer.name:32} {answer.seconds:6.2f} s  {verdict}")
    for line in series_counts(checked):
        click.echo(line)
    for check in seen:
        click.echo(
            f"{'ok' if check.wrong is None else 'WRONG':6} {'colours of its input':32} {check.wrong or check.network}"
        )
    _print_empty(tool, empty)
    for line in failed:
        click.echo(f"failed: {line}")
    wrong_seen = any(check.wrong is not None for check in seen) or (
        tool.claims is not None and any(reply.claim for reply in empty)
    )
    return 3 if failed or wrong_seen else 0
