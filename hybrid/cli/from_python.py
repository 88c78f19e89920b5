"""`hybrid.run`: ask a benchmark from Python, with the options of `hybrid run`.

run("blink", data="sample", model="embedded", solvers=["mllm", MySolver()], limit=8)
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from inspect import Parameter, Signature
from typing import Any, ForwardRef, Unpack, cast

import click

from hybrid.benchmarks.base import UnansweredRule
from hybrid.benchmarks.questions.from_python import Question, write
from hybrid.cli._configured import options_of, variants_of
from hybrid.cli._keywords import RENAMED, RunKeywords
from hybrid.cli._logging_options import telling
from hybrid.cli._one_question import new_run_folder, refuse_broken, write_question
from hybrid.cli._progress import Bars
from hybrid.cli._run_options import config_of
from hybrid.cli.run import command, scores_of
from hybrid.config import Objects, RunConfig
from hybrid.core.errors import UsageError, did_you_mean
from hybrid.core.images import home
from hybrid.core.python_words import python_errors
from hybrid.core.secrets import redact
from hybrid.display.notes import is_quiet
from hybrid.engines import opener_of
from hybrid.interface.answers import Answers, answers_of
from hybrid.interface.findings import ImageInput, wait_for
from hybrid.models.env_file import load_keys
from hybrid.models.langchain.chat_models import model_name
from hybrid.plugins.registry import described_by, is_word, names, solver_names
from hybrid.running.plan import changed
from hybrid.running.resolve import ResolvedRun, prepare
from hybrid.running.run import ask_run
from hybrid.scoring.reports import ScoreReport
from hybrid.serving.described import ProcessDescriber
from hybrid.solving.solver import Solver
from hybrid.tool import Tool


def run(
    benchmark: str | RunConfig | None = None,
    *,
    questions: Sequence[Question] | None = None,
    **options: Unpack[RunKeywords],
) -> ScoreReport:
    """Ask the questions of a benchmark, a file or a list and score the answers; the same call again goes on.

    The options are those of `hybrid run`, none beside a `RunConfig`. What a command line repeats is a list
    (`solvers=["mllm", "arbiter"]`) or a mapping (`setting={"hints": "on"}`), a flag is True (`rotate=True`). `model` is
    also a chat model of LangChain's, `solvers` takes objects of `hybrid.solving.solver.Solver`, `tools` of
    `hybrid.tool.Tool`.

    Returns:
        The scores of the solvers that were asked; of none where the answers are hidden.

    Raises:
        UsageError: an option that is not there or does not fit, or a folder that holds another run.
        DataError: the data cannot be used.

    Args:
        benchmark: a name as `hybrid benchmarks list` prints it, the path of a file or folder of questions, or the whole
            configuration of a run.
        questions: `hybrid.Question`s, in place of a benchmark.
    """
    with python_errors():
        return _run(benchmark, questions, options)


def _run(
    benchmark: str | RunConfig | None, questions: Sequence[Question] | None, options: Mapping[str, Any]
) -> ScoreReport:
    """As `run`, with the words of the command in errors."""
    load_keys()
    if questions is not None:
        if benchmark is not None:
            raise UsageError("questions=...: they are asked in place of a benchmark; leave it out")
        benchmark = str(write(questions, home() / "questions"))
    if benchmark is None:
        raise UsageError("hybrid.run takes a benchmark, a path of questions, or questions=[...]")
    full_config = benchmark if isinstance(benchmark, RunConfig) else None
    if full_config is not None and options:
        raise UsageError(f"{next(iter(options))}=...: put it into the RunConfig, which is the whole configuration")
    objects, plain_options = (full_config.objects, {}) if full_config is not None else with_names(options)
    log_options = {name: bool(plain_options.get(name)) for name in ("verbose", "quiet", "debug")}
    # A tool given as an object runs in this process, and so do all other tools then.
    with telling(**log_options), nullcontext() if objects.tools else described_by(ProcessDescriber):
        if full_config is not None:
            return _scored(full_config, None, allow_failed=False)
        return _run_benchmark(str(benchmark), plain_options, objects)


def _run_benchmark(benchmark: str, options: Mapping[str, object], objects: Objects) -> ScoreReport:
    config, params = _config_of(benchmark, options, objects)
    return _scored(config, params["unanswered"], allow_failed=params["allow_failed"])


def _config_of(benchmark: str, options: Mapping[str, object], objects: Objects) -> tuple[RunConfig, Mapping[str, Any]]:
    """Return the configuration of a run, and all options of the command as it parsed them."""
    solvers = options.get("solvers")
    # The command knows solvers only by name.
    by_name = [name for name in solvers if name not in objects.solvers] if isinstance(solvers, list) else solvers
    options = {**options, "solvers": by_name or None}
    try:
        values = values_of(options)
        file = ["--config", values.pop("config")] if "config" in values else []
        context = command.make_context("run", [benchmark, *file], default_map=values)
    except click.ClickException as error:
        raise UsageError(error.format_message()) from error
    if len(variants_of(context)) > 1:
        raise UsageError(f"{options.get('config', benchmark)} asks for several runs: `hybrid run` makes them")
    params = context.params
    config = replace(config_of(params, options_of(context)), objects=objects)
    if isinstance(solvers, list):
        # The manifest contains the names of the objects too, so that `--config` with this run is refused.
        config = changed(config, {"solvers": tuple(solvers)})
    return config, params


def _scored(config: RunConfig, unanswered: UnansweredRule | None, *, allow_failed: bool) -> ScoreReport:
    """Ask the open questions and score the solvers that were asked; no scores if the answers are hidden."""
    return scores_of(_asked(config), unanswered, allow_failed=allow_failed)


def _asked(config: RunConfig, check: Callable[[ResolvedRun], None] = lambda _: None) -> ResolvedRun:
    """Ask the open questions, unless `check` raises; return the run."""
    if config.objects.tools:
        # Tools then run in this process, and outputs are not cached: the code of a tool object may have no file, so
        # that its cached outputs could not be told apart from those of other code.
        config = replace(config, service=replace(config.service, isolated=False), cache=False)
    opener = opener_of(config)
    with Bars(quiet=is_quiet()) as bars:
        run = prepare(config)
        check(run)
        for line in run.tools.notes:
            bars.tell(f"note: {redact(line)}")
        try:
            wait_for(ask_run(run, bars, opener, bars.watch, bars.tell))
        finally:
            if (served := sys.modules.get("hybrid.models.served.process")) is not None:
                served.stop_servers()
    return run


def ask(
    photos: ImageInput | Sequence[ImageInput],
    question: str,
    *,
    choices: Sequence[str] = (),
    kind: str = "",
    **options: Unpack[RunKeywords],
) -> Answers:
    """Ask one question about one or several images, and return what each solver answered, with its steps.

    Args:
        photos: paths, bytes of image files, Pillow images or RGB arrays (H, W, 3) of 8 bits.
        question: its text.
        choices: the options of a multiple-choice question.
        kind: the form of the answer, as in a file of questions; text if neither it nor `choices` is given.
        options: those of `hybrid.run`; `solvers` is `controller` if it is not given.

    Raises:
        UsageError: an invalid option, or an image that cannot be read.
        DataError: an image that does not decode.
    """
    with python_errors():
        load_keys()
        objects, plain_options = with_names({"solvers": ["controller"], **options})
        folder = write_question(photos, question, choices, kind)
        plain_options = {"out": new_run_folder(), **plain_options, "split": "hidden"}
        log_options = {name: bool(plain_options.get(name)) for name in ("verbose", "quiet", "debug")}
        with telling(**log_options), nullcontext() if objects.tools else described_by(ProcessDescriber):
            config, _ = _config_of(str(folder), plain_options, objects)
            return answers_of(_asked(config, refuse_broken).folder)


def with_names(options: Mapping[str, object]) -> tuple[Objects, dict[str, object]]:
    """Separate the objects from the options; returns both, with the name of each object in its place.

    Raises:
        UsageError: an object has a wrong type, or a name that is already used.
    """
    solvers: dict[str, Any] = {}
    tools: dict[str, Any] = {}
    plain_options = dict(options)
    model, model_option = None, options.get("model")
    if model_option is not None and not isinstance(model_option, str):
        from langchain_core.language_models import BaseChatModel

        if not isinstance(model_option, BaseChatModel):
            raise UsageError(f"model={model_option!r:.80}: write provider:name, or hand in a chat model of LangChain's")
        model = model_option
        plain_options["model"] = model_name(model)
    for key, objects, name_of, used_names in (
        ("solvers", solvers, _solver_name, solver_names),
        ("tools", tools, _tool_name, lambda: names("tools")),
    ):
        value = options.get(key)
        if value is None or isinstance(value, str):
            continue
        plain_options[key] = entries = []
        for entry in value if isinstance(value, Sequence) else [value]:
            name = entry if isinstance(entry, str) else name_of(entry)
            if not isinstance(entry, str):
                if not is_word(name):
                    raise UsageError(f"{key}: {name!r} is no name: give one of lower-case letters, digits, underscores")
                if name in used_names() or objects.setdefault(name, entry) is not entry:
                    raise UsageError(f"{key}: there is another {name!r} already: give this one another name")
            entries.append(name)
    return Objects(model, solvers, tools), plain_options


def _solver_name(solver: object) -> str:
    if not isinstance(solver, Solver):
        raise UsageError(f"solvers={solver!r:.80}: write a name, or hand in a hybrid.solving.solver.Solver")
    return solver.name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(solver).__name__).lower()


def _tool_name(tool: object) -> str:
    if not isinstance(tool, Tool):
        raise UsageError(f"tools={tool!r:.80}: write a name, or hand in a hybrid.tool.Tool")
    return tool.card.name


def values_of(options: Mapping[str, object]) -> dict[str, Any]:
    """Return the options in the form of click's defaults, by the command's names."""
    by_name = {option.name: option for option in command.params if isinstance(option, click.Option)}
    values: dict[str, Any] = {}
    for key, value in options.items():
        if key not in RunKeywords.__annotations__:
            hint = did_you_mean(key, list(RunKeywords.__annotations__))
            raise UsageError(f"hybrid.run has no option {key!r}{hint}: it takes those of `hybrid run --help`")
        option = by_name[RENAMED.get(key, key)]
        # A flag that is off is left out, as on a command line.
        if value is None or (option.is_flag and not value):
            continue
        if isinstance(value, bool):
            click_value: Any = option.is_flag or ("on" if value else "off")
        elif isinstance(value, Mapping):
            click_value = [f"{name}={part}" for name, part in value.items()]
        elif isinstance(value, Sequence) and not isinstance(value, str):
            click_value = [str(item) for item in value] if option.multiple else ",".join(map(str, value))
        else:
            # Text, because click would truncate a float for an option that takes an integer.
            click_value = [str(value)] if option.multiple else str(value)
        values[RENAMED.get(key, key)] = click_value
    return values


def _signature() -> Signature:
    """Return a signature with the benchmark and every option of `RunKeywords`, all optional."""
    hints = RunKeywords.__annotations__
    words = {name: hint.__forward_arg__ if isinstance(hint, ForwardRef) else str(hint) for name, hint in hints.items()}
    words = {"benchmark": "str | RunConfig | None", "questions": "Sequence[hybrid.Question] | None", **words}
    kinds = {"benchmark": Parameter.POSITIONAL_OR_KEYWORD}
    parameters = [
        Parameter(name, kinds.get(name, Parameter.KEYWORD_ONLY), default=None, annotation=hint)
        for name, hint in words.items()
    ]
    return Signature(parameters, return_annotation="ScoreReport")


def _documented() -> str:
    """Return the docstring of `run` with a line for each option, in the words of its help."""
    helps = {option.name: option.help for option in command.params if isinstance(option, click.Option)}
    texts = {name: str(helps[RENAMED.get(name, name)]) for name in RunKeywords.__annotations__}
    lines = [f"    {name}: {' '.join(text.split())}" for name, text in texts.items()]
    return "\n".join([inspect.cleandoc(run.__doc__ or ""), *lines])


run.__doc__ = _documented()
cast(Any, run).__signature__ = _signature()
