"""`hybrid.run`: ask a benchmark from Python, with the options of `hybrid run`.

run("blink", data="sample", model="embedded", solvers=["mllm", MySolver()], limit=8)
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, Final, cast

from hybrid.benchmarks.base import UnansweredRule
from hybrid.benchmarks.questions.from_python import Question, write
from hybrid.cli._config_file import ConfigFile, file_options, read_config, with_choice
from hybrid.cli._field_options import BENCHMARK, FIELDS_BY_KEY, value_of_environment
from hybrid.cli._one_question import new_run_folder, refuse_broken, write_question
from hybrid.cli._options import set_up_notes
from hybrid.cli._progress import Bars
from hybrid.cli._run_options import config_of
from hybrid.cli.run import scores_of
from hybrid.config import Objects, RunConfig
from hybrid.config.command_options import PATH
from hybrid.config.option import OptionField, is_path
from hybrid.config.values import as_written, merged_pairs, read_values
from hybrid.core.errors import UsageError, did_you_mean
from hybrid.core.images import home
from hybrid.core.python_words import python_errors
from hybrid.core.secrets import redact
from hybrid.core.types import Json
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

# Options whose name in Python differs from the command line.
RENAMED: Final = {"solver": "solvers"}
# The keywords of `hybrid.run`, without options that only control printing.
KEYWORDS: Final[Mapping[str, OptionField]] = {
    RENAMED.get(key, key): field for key, field in FIELDS_BY_KEY.items() if key not in ("dry_run", "tables", "json")
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
    """Like `run`, but errors use the names of the command line."""
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
    log_options = {name: bool(plain_options.get(name)) for name in ("verbose", "quiet", "debug")}
    # If a tool is given as an object, all tools run in this process.
    with set_up_notes(**log_options), nullcontext() if objects.tools else described_by(ProcessDescriber):
        if full_config is not None:
            return _scored(full_config, None, allow_failed=False)
        return _run_benchmark(str(benchmark), plain_options, objects)


def _run_benchmark(benchmark: str, options: Mapping[str, object], objects: Objects) -> ScoreReport:
    config, values = _config_of(benchmark, options, objects)
    return _scored(config, values["unanswered"], allow_failed=values["allow_failed"])


def _config_of(benchmark: str, options: Mapping[str, object], objects: Objects) -> tuple[RunConfig, Mapping[str, Any]]:
    """Return the configuration of a run, and the values of all options."""
    add_search_path(values_of({"path": options.get("path")}).get("path", ()), PATH.name)
    solvers = options.get("solvers")
    if isinstance(solvers, list):
        # Only this process knows the objects.
        options = {**options, "solvers": [name for name in solvers if name not in objects.solvers] or None}
    values, recorded = resolve(benchmark, options)
    add_search_path(values["path"], PATH.name)
    config = replace(config_of(values, recorded), objects=objects)
    if isinstance(solvers, list):
        # The manifest contains the names of the objects too, so that `--config` with this run is refused.
        config = changed(config, {"solvers": tuple(solvers)})
    return config, values


def _scored(config: RunConfig, unanswered: UnansweredRule | None, *, allow_failed: bool) -> ScoreReport:
    """Ask the open questions and score the solvers that were asked; no scores if the answers are hidden."""
    return scores_of(_ask_open(config), unanswered, allow_failed=allow_failed)


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
        objects, plain_options = with_names({"solvers": ["controller"], **options})
        folder = write_question(photos, question, choices, kind)
        plain_options = {"out": new_run_folder(), **plain_options, "split": "hidden"}
        log_options = {name: bool(plain_options.get(name)) for name in ("verbose", "quiet", "debug")}
        with set_up_notes(**log_options), nullcontext() if objects.tools else described_by(ProcessDescriber):
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
        raise UsageError(f"solvers={solver!r:.80}: write a name, or hand in a hybrid.solving.solver.Solver")
    return solver.name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(solver).__name__).lower()


def _tool_name(tool: object) -> str:
    if not isinstance(tool, Tool):
        raise UsageError(f"tools={tool!r:.80}: write a name, or hand in a hybrid.tool.Tool")
    return tool.card.name


def resolve(benchmark: str, options: Mapping[str, object]) -> tuple[dict[str, Any], dict[str, Json]]:
    """Return the values of every option by key, and those that a manifest records by long name.

    A keyword overrides the file that `config` names, the file overrides the environment, and the environment the
    default.

    Raises:
        UsageError: an unknown option, a value that does not fit, or a file that defines several runs.
    """
    overrides = values_of(options)
    config = options.get("config")
    file = ConfigFile(Path(), {}) if config is None else read_config(Path(str(config)))
    fixed, axes = file_options(file, overrides)
    several = "," in benchmark and not Path(benchmark).exists()
    if several or any(len(choices) > 1 for choices in axes.values()):
        raise UsageError(f"{config or benchmark} asks for several runs: `hybrid run` makes them")
    texts = with_choice(fixed, {key: choices[0] for key, choices in axes.items()})
    values: dict[str, Any] = {BENCHMARK: benchmark}
    recorded: dict[str, Json] = {BENCHMARK: benchmark}
    for key, field in FIELDS_BY_KEY.items():
        items, source = texts.get(field.option.long, ()), ""
        if not items and key not in overrides and not file.is_manifest:
            variable = value_of_environment(field, benchmark, values.get("model"))
            items, source = (() if variable is None else (variable,)), f" (env var: {field.option.variable!r})"
        values[key] = field.default
        if items:
            values[key] = _read(field, items, source)
        if key in overrides:
            values[key] = _merge(field, values[key], overrides[key])
        # A flag that is off is recorded only if it overrides the file.
        is_off = field.is_flag and not items and values[key] == field.default
        if field.option.in_manifest and (items or key in overrides) and not is_off:
            recorded[field.option.long] = as_written(field, values[key])
    return values, recorded


def _merge(field: OptionField, below: Any, override: Any) -> Any:
    """Return the value from Python. A mapping also gets the keys that only the file sets."""
    if field.is_keyless:
        return merged_pairs(below, override)
    return {**below, **override} if field.is_pairs else override


def _read(field: OptionField, items: Sequence[object], source: str = "") -> Any:
    """Return the value of a field. Raises `UsageError` for a value that does not fit."""
    try:
        return read_values(field, items)
    except ValueError as error:
        raise UsageError(f"Invalid value for '{field.option.name}'{source}: {error}") from error


def values_of(options: Mapping[str, object]) -> dict[str, Any]:
    """Return the keywords as values of their fields, by key; those that are None are left out.

    Raises:
        UsageError: an unknown option, or a value that does not fit.
    """
    values: dict[str, Any] = {}
    for keyword, value in options.items():
        if keyword not in KEYWORDS:
            hint = did_you_mean(keyword, list(KEYWORDS))
            raise UsageError(f"hybrid.run has no option {keyword!r}{hint}: it takes those of `hybrid run --help`")
        field = KEYWORDS[keyword]
        if value is None:
            continue
        if isinstance(value, Mapping) and field.is_pairs:
            items: list[object] = [
                f"{name}={_text(part, as_json=keyword == 'model_arg')}" for name, part in value.items()
            ]
        else:
            items = list(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes) else [value]
            if isinstance(value, Mapping) or not (field.is_many or field.is_pairs or len(items) == 1):
                raise UsageError(f"{field.option.name}: {value!r:.80} is not one value")
        values[field.option.key] = _read(field, items)
    return values


def _text(value: object, *, as_json: bool) -> str:
    """Return a value of a mapping as the text after `KEY=` on a command line."""
    if isinstance(value, bool) and not as_json:
        return "on" if value else "off"
    is_plain = value is None or isinstance(value, int | float | list | tuple | dict)
    return json.dumps(value, default=str) if is_plain else str(value)


def _signature() -> Signature:
    """Return a signature with the benchmark and every option, all optional."""
    hints = {
        "benchmark": "str | RunConfig | None",
        "questions": "Sequence[hybrid.Question] | None",
        **{keyword: f"{_hint(field)} | None" for keyword, field in KEYWORDS.items()},
    }
    kinds = {"benchmark": Parameter.POSITIONAL_OR_KEYWORD}
    parameters = [
        Parameter(name, kinds.get(name, Parameter.KEYWORD_ONLY), default=None, annotation=hint)
        for name, hint in hints.items()
    ]
    return Signature(parameters, return_annotation="ScoreReport")


def _hint(field: OptionField) -> str:
    """Return the types of a keyword, as an annotation."""
    if field.is_pairs:
        # The tool's name may be omitted if only one tool loads weights.
        return "str | Mapping[str, Json]" if field.is_keyless else "Mapping[str, Json]"
    if field.words:
        kind = f"Literal[{', '.join(map(repr, field.words))}]"
    else:
        kind = "str | Path" if is_path(field) else "float" if field.option.form == "GB" else field.item_type.__name__
    item = " | ".join(filter(None, (kind, field.option.python_type)))
    return f"{item} | Sequence[{item}]" if field.is_many else item


def _documented() -> str:
    """Return the docstring of `run` with a line for each option, with the text of its help."""
    lines = [f"    {keyword}: {' '.join(field.option.help.split())}" for keyword, field in KEYWORDS.items()]
    return "\n".join([inspect.cleandoc(run.__doc__ or ""), *lines])


run.__doc__ = _documented()
cast(Any, run).__signature__ = _signature()
