"""`hybrid models`: check a model and its server before a run."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from typing import Any

import click

from hybrid.cli import _options as shared
from hybrid.cli._configured import given_options, options_of_a_question
from hybrid.cli._help import Grouped
from hybrid.cli._options import path_option, tables_option
from hybrid.cli._run_config import MODEL_FIELDS, settings_of
from hybrid.cli._sources import resolve
from hybrid.config.command_options import FIELDS
from hybrid.config.groups import CPU
from hybrid.display.terminal import TEXT, Shape, pasteable


@click.group("models")
def command() -> None:
    """Find out what a model and its server can do."""


@command.command("check", cls=Grouped, params=options_of_a_question(MODEL_FIELDS))
@click.argument("model")
@path_option
@tables_option
@shared.as_json
@click.pass_context
def check(context: click.Context, /, model: str, tables: Shape, as_json: bool, **_options: Any) -> int:
    """Ask MODEL about 20 small questions: what it sees, how it calls tools, what its server accepts.

    The last line is a command for a run. Exit code 3 if a run without the options in this command would be refused.

    \b
    Example:
      hybrid models check openai:qwen3-vl --base-url http://127.0.0.1:8000/v1
    """
    from hybrid.core.images import ImageStore, home
    from hybrid.display.tables import RENDERERS, Column, Table
    from hybrid.running.model_check import check_model

    given = given_options(context)
    # This command has no `--device`, so a wrong value of HYBRID_DEVICE is no error here.
    settings = settings_of(resolve({**given, "model": model, "device": CPU})[0])
    checked = asyncio.run(check_model(model, settings, ImageStore(home() / "images")))
    solvers = "controller,mllm" if checked.calls else "mllm"
    words = ["hybrid", "run", "blink", "--data", "sample", "--limit", "4", "--solver", solvers, "--model", model]
    for key, value in given.items():
        values = [f"{name}={part}" for name, part in value.items()] if isinstance(value, dict) else [value]
        words += [word for item in values for word in (FIELDS[key].option.name, str(item))]
    words += checked.options
    if as_json:
        click.echo(json.dumps({**asdict(checked), "model": model, "command": words}))
    else:
        columns = tuple(Column(name, "left") for name in ("asked", "came", "means"))
        rows = tuple((check.asked, check.came, check.means) for check in checked.found)
        click.echo(RENDERERS[TEXT[tables]](Table("", columns, rows)))
        if checked.requests:
            click.echo(f"{checked.requests} requests in {checked.seconds:.1f} s; to run with:\n")
            click.echo(pasteable(words, tables))
    return 3 if any(check.refused for check in checked.found) else 0


@command.command("serve")
@click.argument("model")
@click.option(
    "--server-arg",
    multiple=True,
    metavar="KEY=VALUE",
    help="An argument of the server, without dashes; for a flag, KEY=on or KEY=off. May be given several times.",
)
def serve(model: str, server_arg: tuple[str, ...]) -> int:
    """Start the server of MODEL and keep it up for other commands. Ctrl-C ends it.

    MODEL is vllm:NAME, sglang:NAME or llamacpp:FILE_OR_REPO. The address is printed once it answers.

    \b
    Example:
      hybrid models serve vllm:Qwen/Qwen2.5-VL-7B-Instruct --server-arg max-model-len=16384
    """
    from hybrid.config.values import pairs
    from hybrid.config.words import STARTED
    from hybrid.core.errors import UsageError
    from hybrid.models.served.commands import command_of
    from hybrid.models.served.process import server_for
    from hybrid.running.process import Interrupted, until_signal

    if model.partition(":")[0] not in STARTED:
        kinds = " or ".join(f"{kind}:" for kind in STARTED)
        raise UsageError(f"{model}: hybrid can only start a server for a model whose name begins with {kinds}")
    server = server_for(command_of(model, pairs("--server-arg", server_arg)))

    async def keep_up() -> None:
        await server.wait_until_ready()
        click.echo(f"--model openai:{model.partition(':')[2]} --base-url {server.base_url}")
        click.echo("Ctrl-C ends the server", err=True)
        await server.wait_until_ended()

    try:
        asyncio.run(until_signal(keep_up()))
    except Interrupted:
        click.echo("ended; the server was stopped", err=True)
    return 0
