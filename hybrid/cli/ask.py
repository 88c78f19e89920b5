"""`hybrid ask`: ask one question about pictures and show every step to the answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hybrid.cli import _options as shared
from hybrid.cli._configured import options_of_a_question, run_config
from hybrid.cli._help import Grouped
from hybrid.cli._options import logging_options_of, path_option
from hybrid.core.errors import UsageError
from hybrid.core.files import write_atomic
from hybrid.core.secrets import redact
from hybrid.display.notes import tell

if TYPE_CHECKING:
    from hybrid.running.resolve import ResolvedRun

# Options that only `--help-all` shows.
RARE: Final = ("setting", "backend", "weights", "tool_output", "max_turns", "max_tokens", "path", "kind")
PAGE_FILE: Final = "answer.html"


@click.command("ask", cls=Grouped, params=options_of_a_question(), rare=RARE)
@click.argument("words", nargs=-1, required=True, metavar='PHOTO... "QUESTION"')
@click.option(
    "--choice",
    multiple=True,
    metavar="TEXT",
    help="An option of a multiple-choice question. Repeat it for each option.",
)
@click.option(
    "--kind",
    type=click.Choice(["choice", "order", "yes_no", "integer", "number", "text", "point", "box"]),
    help="The form of the answer.  [default: choice with --choice, else text]",
)
@click.option(
    "--open", "open_browser", is_flag=True, help="Also write a page with the pictures and open it in a browser."
)
@shared.as_json
@path_option
@logging_options_of
@click.pass_context
def command(
    context: click.Context,
    /,
    words: tuple[str, ...],
    choice: tuple[str, ...],
    kind: str | None,
    open_browser: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Ask one question about pictures: PHOTO... "QUESTION".

    Prints each step to the answer: the model's calls, each tool's output, the pictures, the cost. The solver is
    `controller`, the model with tools, unless --solver names others. Each command makes a separate run in the cache
    folder, or in --out.

    \b
    Examples:
      hybrid ask photo.jpg "Is the cup left of the plate?" --model openai:gpt-4o
      hybrid ask a.png b.png "Which is sharper?" --choice "the first" --choice "the second" --model ollama:qwen2.5vl
    """
    from hybrid.cli._one_question import new_run_folder, refuse_broken, write_question
    from hybrid.cli._several_runs import ask_and_show, prepared
    from hybrid.engines import opener_of

    images, question = split_words(words)
    if len(choice) == 1:
        raise UsageError("--choice: a multiple-choice question needs at least two options: give --choice once for each")
    folder = write_question(images, question, choice, kind or "")
    fixed = {"solver": given["solver"] or ("controller",), "out": given["out"] or new_run_folder()}
    config = run_config(context, {**fixed, "benchmark": str(folder), "split": "hidden"})
    opener_of(config)
    run = prepared(config)
    refuse_broken(run)
    for line in [*run.tools.foreign.left_out.values(), *run.tools.left_out]:
        tell(f"note: not offered: {redact(line)}")
    for line in run.tools.notes:
        tell(f"note: {redact(line)}")

    def show(_results: object) -> Sequence[str]:
        return show_answers(run, as_json=as_json, open_browser=open_browser)

    return ask_and_show({"": lambda: run}, config.run_limits, [run.folder.path], show)


def split_words(words: Sequence[str]) -> tuple[list[str], str]:
    """Return the pictures and the question, which is the last word. Raises `UsageError` if either is missing."""
    *images, question = words
    example = 'write `hybrid ask photo.jpg "What is left of the cup?"`'
    if Path(question).is_file():
        raise UsageError(f"{question} is a file; the question is missing: {example}")
    if not images:
        raise UsageError(f"no picture before the question: {example}")
    for image in images:
        if not Path(image).expanduser().is_file():
            reason = "is a folder" if Path(image).expanduser().is_dir() else "picture not found"
            raise UsageError(f"{image}: {reason}; put the question into quotation marks, as its last word: {example}")
    return [str(Path(image).expanduser()) for image in images], question


def show_answers(run: ResolvedRun, *, as_json: bool, open_browser: bool) -> Sequence[str]:
    """Print the answers; with `open_browser` write a page and open it. Returns a line for each unanswered question."""
    from hybrid.interface.answers import answers_of

    answers = answers_of(run.folder)
    click.echo(json.dumps(answers.as_json(), ensure_ascii=False) if as_json else str(answers))
    if open_browser:
        import webbrowser

        page = run.folder.path / PAGE_FILE
        write_atomic(page, answers.as_page().encode("utf-8", "replace"))
        if not webbrowser.open(page.resolve().as_uri()):
            tell(f"no browser could be started: open {page}")
    return [f"{answer.solver}: {answer.error}" for answer in answers if answer.attempt is None and answer.error]
