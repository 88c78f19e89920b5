"""`hybrid rollouts`: questions, answers and rewards one by one, for a program that trains or evaluates a model.

A request is a line of JSON on stdin; each has one line on stdout with its `id`, as soon as it is done:

    {"id": 1, "do": "list"}                                   {"id": 1, "questions": ["val_Jigsaw_1", ...]}
    {"id": 2, "do": "messages", "question": "val_Jigsaw_1"}   {"id": 2, "messages": [{"role": "user", ...}]}
    {"id": 3, "do": "answer", "question": "val_Jigsaw_1", "model": "m", "base_url": "http://...", "key": "..."}
                                                              {"id": 3, "reward": 1.0, "answer": "A", ...}

A failure has `error`. The process ends when its stdin is closed, and unfinished requests then fail: keep stdin open
until all lines have arrived.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any

import click

from hybrid.cli._options import path_option
from hybrid.core.errors import HybridError, UsageError
from hybrid.core.secrets import redact
from hybrid.display.notes import tell

if TYPE_CHECKING:
    from hybrid.running.rollouts import Rollouts


@click.command("rollouts", context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="[BENCHMARK] [OPTIONS OF RUN]...")
@path_option
def command(words: tuple[str, ...]) -> int:
    """Answer and score single questions for a program that trains or evaluates a model.

    The arguments are those of `hybrid run` without a model: the program names one in each request, a line of JSON on
    stdin. The solver is `controller`, the model with tools, unless --solver names another. `hybrid export --to
    verifiers` writes a program that uses this.

    \b
    Example:
      hybrid rollouts blink --data sample --tools depth,crop
    """
    from hybrid.cli._several_runs import prepared
    from hybrid.running.rollouts import Rollouts

    run = prepared(run_config(words))
    with closing(run.service):
        rollouts = Rollouts(run)
        for line in (*run.tools.notes, *rollouts.left_out):
            tell(f"note: {redact(line)}")
        # What a tool prints goes to stderr, not between the answers.
        with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
            os.dup2(2, 1)
            rollouts.solver.warm()
            asyncio.run(serve(rollouts, out))
    return 0


def run_config(words: tuple[str, ...]) -> Any:
    """Return the configuration of `hybrid run WORDS` whose model is not known yet. Raises `UsageError`."""
    from hybrid.cli._configured import runs_of
    from hybrid.cli._run_config import config_of
    from hybrid.cli.run import command as run_command
    from hybrid.running.rollouts import UNKNOWN

    try:
        context = run_command.make_context("run", [*words, *UNKNOWN])
    except click.UsageError as error:
        raise UsageError(error.format_message()) from error
    run, *others = runs_of(context)
    if others:
        raise UsageError("the options define several runs, but rollouts need exactly one")
    config = config_of(run.values, run.recorded)
    return replace(config, solvers=config.solvers or ("controller",))


async def serve(rollouts: Rollouts, out: IO[str]) -> None:
    """Answer the requests on stdin until it ends, several at a time."""

    async def respond(request: Mapping[str, Any]) -> None:
        try:
            response = await answer(rollouts, request)
        except asyncio.CancelledError:
            response = {"error": "stdin ended before this request was answered"}
        out.write(f"{json.dumps({'id': request.get('id'), **response})}\n")
        out.flush()

    tasks: set[asyncio.Task[None]] = set()
    # Read bytes, so that text that is not UTF-8 fails only its own line. A process that was started with its stdin
    # closed has no `sys.stdin`.
    while sys.stdin is not None and (line := await asyncio.to_thread(sys.stdin.buffer.readline)):
        try:
            request = json.loads(line)
        except (ValueError, RecursionError):
            request = None
        if not isinstance(request, dict):
            request = {"do": "a line that is not a JSON object"}
        tasks.add(task := asyncio.create_task(respond(request)))
        task.add_done_callback(tasks.discard)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def answer(rollouts: Rollouts, request: Mapping[str, Any]) -> dict[str, Any]:
    """Answer one request; a failure is an `error`."""
    from hybrid.core.error_text import in_one_line

    try:
        return await _response(rollouts, request)
    except HybridError as error:
        return {"error": redact(str(error))}
    # A failure of one question must not end the others.
    except Exception as error:
        return {"error": redact(in_one_line(error))}


async def _response(rollouts: Rollouts, request: Mapping[str, Any]) -> dict[str, Any]:
    """Answer one request. Raises `UsageError` for an unknown request, or what the rollout raises."""
    from hybrid.running.rollouts import Endpoint

    match request.get("do"):
        case "list":
            return {"questions": list(rollouts.ids)}
        case "messages":
            return {"messages": await rollouts.messages(_text(request, "question"))}
        case "answer":
            endpoint = Endpoint(*(_text(request, name) for name in ("model", "base_url", "key")))
            return await rollouts.answer(_text(request, "question"), endpoint)
        case unknown:
            raise UsageError(f"unknown request {unknown!r}: write list, messages or answer")


def _text(request: Mapping[str, Any], name: str) -> str:
    """Return a text of a request. Raises `UsageError` if it is missing or something else."""
    if not isinstance(text := request.get(name), str) or not text:
        raise UsageError(f"{name}: expected a text that is not empty, found {json.dumps(text):.80}")
    return text
