"""`hybrid.run`: ask a benchmark from Python, with the options of `hybrid run`.

run("blink", data="sample", model="embedded", solvers=["mllm", MySolver()], limit=8)
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, Final, cast

from hybrid.benchmarks.questions.from_python import Question, write
from hybrid.cli._config_file import NO_FILE, open_config
from hybrid.cli._one_question import new_run_folder, refuse_broken, write_question
from hybrid.cli._options import LOGGING, set_up_notes
from hybrid.cli._progress import Bars
from hybrid.cli._run_config import config_of
from hybrid.cli._sources import RunOptions, read_keywords, read_runs
from hybrid.cli.run import scores_of
from hybrid.config import Objects, RunConfig
from hybrid.config.command_options import BENCHMARK, FIELDS, PATH
from hybrid.config.option import OptionField
from hybrid.config.python_words import RENAMED, python_errors
from hybrid.core.errors import UsageError, did_you_mean
from hybrid.core.images import home
from hybrid.core.secrets import redact
from hybrid.display.notes import is_quiet
from hybrid.engines import opener_of
from hybrid.interface.answers import Answers, answers_of
from hybrid.interface.findings import ImageInput, wait_for
from hybrid.models.env_file import load_keys
from hybrid.models.langchain.chat_models import model_name
from hybrid.plugins.discovery import add_search_path, is_word
from hybrid.plugins.registry import described_by, names, solver_names
from hybrid.running.plan import changed
from hybrid.running.resolve import ResolvedRun, prepare
from hybrid.running.run import ask_run
from hybrid.scoring.reports import ScoreReport
from hybrid.serving.described import ProcessDescriber
from hybrid.solving.solver import Solver
from hybrid.tool import Tool

# The keywords of `hybrid.run`, without options that only control printing.
KEYWORDS: Final[Mapping[str, OptionField]] = {
    RENAMED.get(key, key): field for key, field in FIELDS.items() if key not in (BENCHMARK, "dry_run", "tables", "json")
}


def run(
    benchmark: str | RunConfig | None = None,
    *,
    questions: Sequence[Question] | None = None,
    **options: Any,
) -> ScoreReport:
    """Ask the questions of a benchmark, a file or a list and score the answers; the same call again resumes.

    The options are those of `hybrid run`; a `RunConfig` already contains them. An option that a command line repeats is
    a list (`solvers=["mllm", "arbiter"]`) or a mapping (`setting={"hints": "on"}`), a flag is True (`rotate=True`).
    `model` may also be a chat model of LangChain, `solvers` may contain objects of `hybrid.solving.solver.Solver`,
    `tools` objects of `hybrid.tool.Tool`.

    Returns:
        The scores of the solvers that were asked; none if the answers are hidden.

    Raises:
        UsageError: an option that does not exist or is unsuitable, or a folder that contains another run.
        DataError: the data cannot be used.

    Args:
        benchmark: a name as `hybrid benchmarks list` prints it, the path of a file or folder of questions, or the whole
            configuration of a run.
        questions: `hybrid.Question`s, in place of a benchmark.
        options: the options listed below.
    """
    with python_errors():
        return _run(benchmark, questions, options)


def _run(
    benchmark: str | RunConfig | None, questions: Sequence[Question] | None, options: Mapping[str, Any]
) -> ScoreReport:
    """Like `run`, but errors name options as on the command line (`--solver` instead of `solvers`)."""
    load_keys()
    if questions is not None:
        if benchmark is not None:
            raise UsageError("questions=...: they replace a benchmark, so leave the benchmark out")
        benchmark = str(write(questions, home() / "questions"))
    if benchmark is None:
        raise UsageError("hybrid.run takes a benchmark, a path of questions, or questions=[...]")
    full_config = benchmark if isinstance(benchmark, RunConfig) else None
    if full_config is not None and options:
        raise UsageError(f"{next(iter(options))}=...: put it into the RunConfig, which is the whole configuration")
    objects, plain_options = (full_config.objects, {}) if full_config is not None else with_names(options)
    with _notes_and_tools(plain_options, objects):
        if full_config is not None:
            return scores_of(_ask_open(full_config), None, allow_failed=False)
        config, values = _config_of(str(benchmark), plain_options, objects)
        return scores_of(_ask_open(config), values["unanswered"], allow_failed=values["allow_failed"])


@contextmanager
def _notes_and_tools(options: Mapping[str, object], objects: Objects) -> Iterator[None]:
    """Show notes as the options require; describe tools in another process, unless Python code passed a tool object."""
    levels = {name: bool(options.get(name)) for name in LOGGING}
    with set_up_notes(**levels), nullcontext() if objects.tools else described_by(ProcessDescriber):
        yield


def _config_of(benchmark: str, options: Mapping[str, object], objects: Objects) -> tuple[RunConfig, Mapping[str, Any]]:
    """Return the configuration of a run, and the values of all options."""
    solvers = options.get("solvers")
    if isinstance(solvers, list):
        # Only this process knows the objects.
        options = {**options, "solvers": [name for name in solvers if name not in objects.solvers] or None}
    run = resolve(benchmark, options)
    config = replace(config_of(run.values, run.recorded), objects=objects)
    if isinstance(solvers, list):
        # The manifest contains the names of the objects too, so that `--config` with this run is refused.
        config = changed(config, {"solvers": tuple(solvers)})
    return config, run.values


def _ask_open(config: RunConfig, check: Callable[[ResolvedRun], None] = lambda _: None) -> ResolvedRun:
    """Ask the open questions, unless `check` raises; return the run."""
    if config.objects.tools:
        # If a tool is an object, tools run in this process and outputs are not cached. The code of a tool object may
        # have no file, so that its cached outputs could not be distinguished from those of other code.
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
    **options: Any,
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
        _refuse_unknown(options, "hybrid.ask", ("choices", "kind"))
        objects, plain_options = with_names({"solvers": ["controller"], **options})
        folder = write_question(photos, question, choices, kind)
        plain_options = {"out": new_run_folder(), **plain_options, "split": "hidden"}
        with _notes_and_tools(plain_options, objects):
            config, _ = _config_of(str(folder), plain_options, objects)
            return answers_of(_ask_open(config, refuse_broken).folder)


def with_names(options: Mapping[str, object]) -> tuple[Objects, dict[str, object]]:
    """Separate the objects from the options; returns the objects, and the options with a name in place of each object.

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
            raise UsageError(f"model={model_option!r:.80}: write provider:name, or pass a LangChain chat model")
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
                    raise UsageError(
                        f"{key}: {name!r} is not a valid name: use lower-case letters, digits, underscores"
                    )
                if name in used_names() or objects.setdefault(name, entry) is not entry:
                    raise UsageError(
                        f"{key}: another {name!r} already exists: write {name!r} to use that one, or give this "
                        "object another name"
                    )
            entries.append(name)
    return Objects(model, solvers, tools), plain_options


def _solver_name(solver: object) -> str:
    if not isinstance(solver, Solver):
        raise UsageError(f"solvers={solver!r:.80}: write a name, or pass a hybrid.solving.solver.Solver")
    return solver.name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(solver).__name__).lower()


def _tool_name(tool: object) -> str:
    if not isinstance(tool, Tool):
        raise UsageError(f"tools={tool!r:.80}: write a name, or pass a hybrid.tool.Tool")
    return tool.card.name


def resolve(benchmark: str, options: Mapping[str, object]) -> RunOptions:
    """Return the options of a run from keywords, the file that `config` names, the environment, and the defaults.

    Raises:
        UsageError: an unknown option, a value that does not fit, or a file that defines several runs.
    """
    _refuse_unknown(options, "hybrid.run")
    # Other options may name plug-ins from these folders.
    add_search_path(read_keywords({"path": options.get("path")}, KEYWORDS).get("path", ()), PATH.name)
    config = options.get("config")
    file = NO_FILE if config is None else open_config(Path(str(config)))
    run, *others = read_runs({BENCHMARK: benchmark, **read_keywords(options, KEYWORDS)}, file)
    if others:
        raise UsageError(f"{config or benchmark} defines several runs; use `hybrid run` on the command line")
    return run


def _refuse_unknown(options: Iterable[str], function: str, parameters: Collection[str] = ()) -> None:
    """Raise `UsageError` for a keyword that is not an option; the function's own parameters may be suggested."""
    for keyword in options:
        if keyword not in KEYWORDS:
            hint = did_you_mean(keyword, [*KEYWORDS, *parameters])
            raise UsageError(f"{function} has no option {keyword!r}{hint}: it takes those of `hybrid run --help`")


def _signature() -> Signature:
    """Return a signature with the benchmark and every option, all optional."""
    hints = {
        "benchmark": "str | RunConfig | None",
        "questions": "Sequence[hybrid.Question] | None",
        **{keyword: f"{_hint(field)} | None" for keyword, field in KEYWORDS.items()},
    }
    parameters = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=hint) for name, hint in hints.items()
    ]
    parameters[0] = parameters[0].replace(kind=Parameter.POSITIONAL_OR_KEYWORD)
    return Signature(parameters, return_annotation="ScoreReport")


def _hint(field: OptionField) -> str:
    """Return the types of a keyword, as an annotation."""
    if field.is_pairs:
        # The tool's name may be omitted if only one tool loads weights.
        return "str | Mapping[str, Json]" if field.is_keyless else "Mapping[str, Json]"
    if field.words:
        kind = f"Literal[{', '.join(map(repr, field.words))}]"
    elif field.item_type is Path:
        kind = "str | Path"
    else:
        kind = "float" if field.option.form == "GB" else field.item_type.__name__
    item = " | ".join(filter(None, (kind, field.option.python_type)))
    return f"{item} | Sequence[{item}]" if field.is_many else item


def _documented() -> str:
    """Return the docstring of `run` with a line for each option, with the text of its help."""
    lines = [f"    {keyword}: {' '.join(field.option.help.split())}" for keyword, field in KEYWORDS.items()]
    return "\n".join([inspect.cleandoc(run.__doc__ or ""), *lines])


run.__doc__ = _documented()
cast(Any, run).__signature__ = _signature()
