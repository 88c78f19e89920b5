"""A run before it starts: the configuration, resolved and checked.

    run = prepare(RunConfig("blink", data="sample", model="embedded"))

`--dry-run` prints its estimate (`estimate.py`), `run.ask_run` carries it out.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from hybrid.benchmarks.base import Benchmark, Source
from hybrid.config import DEFAULT_SOLVERS, LOCAL, REPLAY_SOLVERS, RunConfig, folder_name
from hybrid.core.errors import UsageError, install_extra
from hybrid.core.images import ImageStore, home
from hybrid.core.option_rotation import with_rotations
from hybrid.core.repetitions import REPEAT, number_of, repeated, word_of
from hybrid.core.types import Json, Kind, Prompt, Question
from hybrid.log.folder import RunFolder
from hybrid.log.questions import AnyQuestion, RecordedQuestions
from hybrid.models import ChatModel, open_model
from hybrid.models.base import Likelihoods
from hybrid.plugins.registry import load, load_solver, plugin
from hybrid.running import permissions
from hybrid.running.data import (
    Mounted,
    mount,
    questions,
    recorded_questions,
    refuse_broken,
    refuse_unlike,
    schema_mismatch,
)
from hybrid.running.forked import in_fork
from hybrid.running.identity import resolved_identity
from hybrid.running.tools_in_use import ToolChoice, ToolsInUse, choose_tools, tools_in_use
from hybrid.serving.cache import FindingCache
from hybrid.serving.loader import refuse_absent
from hybrid.serving.service import CachedTools
from hybrid.solving.budgets import RunMeter
from hybrid.solving.context import NOTHING, SuppliedTexts, read_supplied, refuse_missing
from hybrid.solving.controls import Oracle, OracleWords, ToolCondition, partners
from hybrid.solving.rules import rules_in_order, table
from hybrid.solving.session import AskSetup
from hybrid.solving.solver import Solver
from hybrid.solving.styles import style_of
from hybrid.solving.trust import read_trust, refuse_other
from hybrid.tracing import GROUP

# Default parent of run folders, relative to the working directory.
RUNS = Path("runs")


@dataclass(frozen=True)
class ResolvedRun:
    """A resolved run that has not asked anything yet."""

    benchmark: Benchmark
    mounted: Mounted
    # The questions on disk; each is read on access.
    questions: RecordedQuestions
    solvers: Mapping[str, Solver]
    # The configuration and the values resolved from it, shared by all questions and solvers of the run.
    resources: AskSetup
    identity: Mapping[str, Json]
    # The tools that the solvers may call.
    tools: ToolsInUse
    folder: RunFolder
    # Reasons why a model or a device is unavailable; only a dry run continues in spite of them.
    missing: tuple[str, ...] = ()
    # Labels for what `--allow` and `--unchecked-weights` admitted.
    opened: tuple[str, ...] = ()
    # Ids of questions that lack the text which other questions have (`--setting context`).
    without_text: tuple[str, ...] = ()

    @property
    def config(self) -> RunConfig:
        """The options."""
        return self.resources.config

    @property
    def service(self) -> CachedTools:
        """The service that runs the tools."""
        return self.resources.control.service

    @property
    def sound(self) -> Sequence[Question]:
        """The questions that can be asked."""
        return self.questions.sound

    @property
    def captioner(self) -> ChatModel | None:
        """The model that describes images for the solvers of this run; None if no solver uses captions."""
        if not any(self.shows_captions(solver) for solver in self.solvers.values()):
            return None
        return self.resources.captioner or self.resources.model

    def shows_captions(self, solver: Solver) -> bool:
        """Return whether a solver shows a model captions instead of images."""
        return solver.needs_model and (solver.images or self.config.images) == "caption"

    def open_questions(self, solver: str) -> Sequence[Question]:
        """Return the questions that the solver has not finished."""
        return self.questions.without(self.folder.finished(solver))


def prepare(config: RunConfig, *, dry: bool = False, forks: bool = False) -> ResolvedRun:
    """Like `_prepare`, but the rules of tools apply in the order of `--tools`."""
    with rules_in_order(config.tools, config.objects.tools.values()):
        return _prepare(config, dry=dry, forks=forks)


def _prepare(config: RunConfig, *, dry: bool, forks: bool) -> ResolvedRun:
    """Resolve everything that can be resolved without asking a model.

    With `dry`, an unavailable model or device is listed in `missing` instead of raising. With `forks`, another process
    reads the data if the platform permits.

    Raises:
        UsageError: an unsuitable option, a missing key, an unavailable device, or a folder that holds another
            configuration or cannot be used.
        DataError: the data cannot be used.
    """
    _check_options(config)
    style = style_of(config.tool_style, config.model)
    benchmark, solvers = _benchmark(config), _solvers(config)
    store = ImageStore(home() / "images")
    missing: list[str] = []
    model, captioner = open_models(config, store, missing if dry else None)
    models_known = not missing
    context = NOTHING if config.context is None else read_supplied(config.context)
    # Another engine uses the devices of the cluster's nodes, which are not checked here.
    if config.engine == LOCAL:
        with _collecting_refusals(missing if dry else None):
            refuse_absent(config.service.device)
    choice = choose_tools(config, benchmark.card)
    with closing(_reading(config, benchmark, store, forks=forks)) as reading:
        mounted: Mounted = next(reading)
        routes = _routes(benchmark, mounted.source)
        tools = tools_in_use(solvers, benchmark.card.name, choice, config.service, routes)
        _check_wording(config, tools)
        permissions = _permitted(config, benchmark, mounted, tools)
        _check_protocol(config, benchmark, mounted, model)
        trust = None if config.trust is None else read_trust(config.trust)
        frame, control = style.coordinates(config), ToolCondition(_service(config, choice, store))
        setup = AskSetup(config, model, control, trust=trust, captioner=captioner, context=context, frame=frame)
        setup = replace(setup, style=style)
        identity = resolved_identity(setup, benchmark, mounted, choice)
        if trust is not None and config.trust is not None:
            used = {name: entry for solver in solvers for name, entry in tools.metadata(solver).items()}
            refuse_other(trust, config.trust, identity, used, model_known=models_known)
        folder = RunFolder(config.out or RUNS / folder_name(identity))
        question_set = recorded_questions(folder, identity, benchmark, config.limit, config.only) or next(reading)
    if config.strict:
        refuse_broken(question_set.broken, "--strict")
    without_text = _without_text(config, context, question_set)
    resources = _complete_setup(setup, benchmark, question_set, tools)
    resolved = ResolvedRun(
        benchmark, mounted, question_set, solvers, resources, identity=identity, tools=tools, folder=folder
    )
    return replace(resolved, missing=tuple(missing), opened=permissions, without_text=without_text)


def _routes(benchmark: Benchmark, source: Source) -> frozenset[str] | None:
    """Return the routes of a run's questions, None if unknown. Tools for other routes are not needed.

    A task is also a route, unless only the project itself has rules for it (`RuleTable.rules_for`).
    """
    if (routes := benchmark.routes(source)) is None:
        return None
    tasks = tuple(benchmark.task_routes(source))
    if not tasks:
        return frozenset(routes)
    rules = table()
    return frozenset({*routes, *(task for task in tasks if task not in rules.rules or task in rules.outside)})


def _reading(config: RunConfig, benchmark: Benchmark, store: ImageStore, *, forks: bool) -> Generator[Any, None, None]:
    """Yield the mounted data, then its questions."""

    def steps() -> Generator[Any, None, None]:
        official = benchmark.card.official_settings if config.protocol == "official" else {}
        mounted = mount(
            benchmark,
            config.data,
            split=config.split,
            tasks=config.tasks,
            settings={**official, **config.settings},
            store=store,
            limit=config.limit,
            seed=config.seed,
            images_root=config.images_root,
        )
        refuse_unlike(benchmark, mounted, config.data, config.allow)
        if config.tool_output == "oracle" and mounted.source.split in benchmark.card.hidden_splits:
            raise UsageError(f"--tool-output oracle: the answers of the split {mounted.source.split!r} are hidden")
        yield mounted
        yield read_data(config, benchmark, mounted)

    return in_fork(steps()) if forks else steps()


def _check_options(config: RunConfig) -> None:
    """Raise `UsageError` for an unusable folder, an engine that cannot ask the model, or tracing without its extra."""
    if config.out is not None:
        RunFolder(config.out).refuse_impossible()
        RunFolder(config.out).refuse_foreign()
    objects = config.objects
    handed_in = ((objects.model is not None, "model"), (objects.solvers, "solvers"), (objects.tools, "tools"))
    if config.cache_replies and config.objects.model is not None:
        raise UsageError(f"--cache-replies: the replies of model={config.model}, a Python object, may change unnoticed")
    if config.cache_replies and config.engine != LOCAL:
        raise UsageError(f"--cache-replies: they are on the disk of this machine; omit --engine {config.engine}")
    if config.engine != LOCAL and (option := next((name for is_handed_in, name in handed_in if is_handed_in), None)):
        value = getattr(config, option)
        raise UsageError(f"{option}={value}: a Python object runs in this process, not on --engine {config.engine}")
    if config.tracing is None:
        return
    try:
        plugin(GROUP, config.tracing)
    except ImportError as error:
        needs = f"--trace needs OpenTelemetry, which the extra `trace` installs: {install_extra('trace')}"
        raise UsageError(needs) from error
    except UsageError as error:
        raise UsageError(f"--trace {config.trace}: {error}") from error


def offered_tools(config: RunConfig) -> ToolsInUse:
    """Return the tools that a run offers and their backends, without reading its data or opening its model.

    Raises the `UsageError`s that `prepare` raises for solvers, tools and weights.
    """
    card = _benchmark(config).card
    return tools_in_use(_solvers(config), card.name, choose_tools(config, card), config.service)


def read_data(config: RunConfig, benchmark: Benchmark, mounted: Mounted) -> RecordedQuestions:
    """Read the questions of the data and store their images. Raises `DataError` as `questions` does."""
    if not config.rotate:
        return questions(benchmark, mounted.source, config.limit, only=config.only)
    rotate = partial(with_rotations, rotatable=benchmark.card.rotatable, in_text=benchmark.card.options_in_text)
    return questions(benchmark, mounted.source, config.limit, lambda question: rotate([question]), config.only)


def _benchmark(config: RunConfig) -> Benchmark:
    benchmark: Benchmark = load("hybrid.benchmarks", config.benchmark)
    return benchmark if config.prompts is None else benchmark.reworded(config.prompts)


@contextmanager
def _collecting_refusals(missing: list[str] | None, option: str = "") -> Iterator[None]:
    """Append a `UsageError` of the body, prefixed with the option, to `missing`; raise it if `missing` is None."""
    try:
        yield
    except UsageError as error:
        reason = f"{option}{error}"
        if missing is None:
            raise UsageError(reason) from error
        missing.append(reason)


def open_models(
    config: RunConfig, store: ImageStore, missing: list[str] | None = None
) -> tuple[ChatModel | None, ChatModel | None]:
    """Return the requested model and captioner; each is None if it was not requested or is listed in `missing`.

    The model is opened even if no solver of the run asks it, because the run may be extended by a solver that does.
    """
    model = captioner = None
    if config.model is not None:
        with _collecting_refusals(missing):
            model = open_model(config.model, config.model_settings, store, config.objects.model)
    if config.captioner is not None:
        with _collecting_refusals(missing, f"--setting caption-model={config.captioner}: "):
            captioner = open_model(config.captioner, config.captioner_settings, store)
    return model, captioner


def _without_text(config: RunConfig, context: SuppliedTexts, question_set: RecordedQuestions) -> tuple[str, ...]:
    """Return the ids of questions without a supplied text. Raises `UsageError` if there are some, unless allowed."""
    if config.context is None:
        return ()
    ids = [question.id for question in question_set.sound]
    lacking = context.lacking(ids)
    if config.context_missing == "refuse":
        refuse_missing(lacking, len(ids), config.context)
    if len(lacking) == len(ids):
        raise UsageError(f"--setting context={config.context}: none of the ids in this file belongs to a question")
    return lacking


def _check_protocol(config: RunConfig, benchmark: Benchmark, mounted: Mounted, model: ChatModel | None) -> None:
    """Raise `UsageError` if replies would not be parsed in the requested form, or if the model cannot give them."""
    card = benchmark.card
    for key, value in card.official_settings.items():
        if config.sends_format_line and mounted.source.settings.get(key) == value:
            raise UsageError(
                f"--setting {key}={value} reads replies as the released code does, which cannot read hybrid's format "
                "line: give --protocol official, or --format-line off"
            )
    if config.answer != "likelihood":
        return
    if config.protocol == "official" and Kind.CHOICE not in card.official_reads:
        raise UsageError(
            f"--setting answer=likelihood writes its choice as hybrid's format line does, which the official parse of "
            f"{card.name} does not read: give --protocol strict"
        )
    if model is not None and not isinstance(model, Likelihoods):
        raise UsageError(
            f"--setting answer=likelihood: {config.model} returns no likelihoods; a local model does (hf:DIR_OR_ID)"
        )


def oracle_of(benchmark: Benchmark, question_of: Callable[[str], AnyQuestion]) -> Oracle:
    """Return a function that maps a question's id and a prompt to what a perfect tool would report."""

    def perfect(identity: str, prompt: Prompt) -> OracleWords:
        question = question_of(identity)
        assert isinstance(question, Question)  # noqa: S101 - a broken row is never asked
        return OracleWords(benchmark.oracle(question, prompt), benchmark.oracle_answer(question, prompt))

    return perfect


def _solvers(config: RunConfig) -> dict[str, Solver]:
    replayed = (config.model or "").startswith("replay:")
    solver_names = config.solvers or (REPLAY_SOLVERS if replayed else DEFAULT_SOLVERS)
    for name in solver_names:
        if REPEAT in name:
            raise UsageError(
                f"--solver {name}: repetitions can only be requested together: give --setting repeats="
                f"{max(2, number_of(name))} and --solver {word_of(name)}"
            )
    solvers: dict[str, Solver] = {name: config.objects.solvers.get(name) or load_solver(name) for name in solver_names}
    for name, solver in solvers.items():
        if solver.needs_model and config.model is None:
            raise UsageError(f"--solver {name} needs a model: give one with --model, such as --model openai:gpt-4o")
        if solver.runs_own_tools and config.tool_output != "real":
            reason = f"{name} runs its own tools, and hybrid cannot change their output"
            raise UsageError(f"--tool-output {config.tool_output}: {reason}")
        if solver.needs_live and replayed:
            raise UsageError(
                f"--solver {name} needs a live model, because it lets the model call tools or asks it again"
            )
    if replayed and config.images != "separate":
        raise UsageError(
            f"--images {config.images}: a recorded model saw the images in the form in which it was recorded"
        )
    return repeated(solvers, config.repeats)


def _check_wording(config: RunConfig, tools: ToolsInUse) -> None:
    """Raise `UsageError` for paraphrased output of a tool that has no second wording."""
    lacking = tools.without_wording
    if config.tool_output == "paraphrased" and lacking:
        raise UsageError(
            f"--tool-output paraphrased: these tools have no second wording (Tool.wording): {', '.join(lacking)}; "
            "leave them out "
            "with --tools, or declare one: Tool(wording=...), @tool(wording=...)"
        )


def _permitted(config: RunConfig, benchmark: Benchmark, mounted: Mounted, tools: ToolsInUse) -> tuple[str, ...]:
    """Return labels for what `--allow` and `--unchecked-weights` admit; raise `UsageError` for the rest."""
    # Generated questions overlap with no training data.
    sources = () if mounted.is_sample else benchmark.card.sources_of(mounted.source.tasks)
    caveats = permissions.closed(tuple(tools.tools.values()), tools.backends, config.service.weights, sources)
    unchecked = (f"unchecked weights: {name}" for name in tools.unchecked(config.service))
    partial = (f"partial: {reason}" for reason in [schema_mismatch(benchmark, mounted)] if reason)
    return (*permissions.check(caveats, config.allow), *unchecked, *partial)


def _service(config: RunConfig, choice: ToolChoice, store: ImageStore) -> CachedTools:
    cache = FindingCache(home() / "findings" if config.cache else None, store)
    return choice.foreign.runner(store, cache, config.service)


def _complete_setup(
    setup: AskSetup, benchmark: Benchmark, question_set: RecordedQuestions, tools: ToolsInUse
) -> AskSetup:
    """Return the setup with what the questions and the tools determine, including the source of tool output."""
    config = setup.config
    # Only an oracle run knows targets; only a shuffled run knows the images of other questions.
    oracle = oracle_of(benchmark, question_set.by_id.__getitem__) if config.tool_output == "oracle" else None
    others = partners(question_set.sound, config.seed) if config.tool_output == "shuffled" else {}
    return replace(
        setup,
        control=ToolCondition(setup.control.service, config.tool_output, oracle, others),
        tools_offered=tools.tools_offered,
        joint=benchmark.card.joint,
        prior_accuracy=benchmark.card.prior_accuracy,
        run_meter=RunMeter(config.run_limits),
    )
