"""A run before anything is asked: what `hybrid run` was told, resolved and checked.

    run = prepare(RunConfig("blink", data="sample", model="embedded"))

`--dry-run` prints an estimate of it (`estimate.py`), `run.execute` carries it out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from hybrid.benchmarks.base import Benchmark
from hybrid.config import DEFAULT_SOLVERS, REPLAY_SOLVERS, RunConfig, ServiceOptions, folder_name, identity_of
from hybrid.errors import UsageError, did_you_mean, install_extra
from hybrid.images import ImageStore, home
from hybrid.integrations.mcp.foreign import NOTHING_FOREIGN, ForeignTool, ForeignTools
from hybrid.log.folder import RunFolder
from hybrid.log.questions import Questions
from hybrid.models import ChatModel, open_model
from hybrid.models.base import Likelihoods
from hybrid.prompts import REASONING, Wording
from hybrid.registry import load, load_solver, names, plugin, refuse_unknown
from hybrid.repeats import REPEAT, number_of, repeated, word_of
from hybrid.rotation import with_rotations
from hybrid.running import permissions
from hybrid.running.data import Mounted, fingerprint, mount, questions, recorded_questions
from hybrid.running.generated import VERSION as GENERATOR
from hybrid.running.tools_in_use import ToolsInUse, tools_in_use
from hybrid.serving.cache import FindingCache
from hybrid.serving.loader import refuse_absent
from hybrid.serving.service import ToolRunner, ToolService
from hybrid.solving.budgets import RunMeter
from hybrid.solving.captions import captions_fact
from hybrid.solving.context import NOTHING, SuppliedTexts, read_supplied, refuse_missing
from hybrid.solving.controls import Control, Oracle, Perfect, partners
from hybrid.solving.coordinates import CoordinateSystem, frame_named
from hybrid.solving.session import Resources
from hybrid.solving.solver import Solver
from hybrid.solving.trust import read_trust, refuse_other
from hybrid.texts import read_texts, text_hash
from hybrid.tracing import GROUP
from hybrid.types import BrokenQuestion, Json, Kind, Prompt, Question
from hybrid.version import __version__
from hybrid.weights import names_directory

RUNS = Path("runs")
"""Where folders of runs are made, in the working directory."""
EVERY_TOOL = "all"
"""What `--tools` takes for every tool."""
NO_TOOL = "none"
"""What it takes for an empty menu."""
BENCHMARK_TOOLS = "default"
"""What stands in a list of tools for the benchmark's own menu."""


@dataclass(frozen=True)
class ResolvedRun:
    """A resolved run: nothing has been asked yet."""

    benchmark: Benchmark
    mounted: Mounted
    questions: Questions
    """On disk: each is read when it is asked for."""
    solvers: Mapping[str, Solver]
    resources: Resources
    """The configuration, and what its asks share."""
    identity: Mapping[str, Json]
    tools: ToolsInUse
    """What the solvers may call, and what answers."""
    folder: RunFolder
    missing: tuple[str, ...] = ()
    """What a run needs and does not have; only a dry run goes on with it."""
    opened: tuple[str, ...] = ()
    """Labels of what `--allow` and `--unchecked-weights` let in."""
    without_text: tuple[str, ...] = ()
    """The questions that are asked without the text that others have beside them (`--setting context`)."""
    unchecked: tuple[str, ...] = ()
    """The tools whose weights answer without having been asked for known answers."""
    foreign: ForeignTools = NOTHING_FOREIGN
    """The tools of other MCP servers, offered or not."""

    @property
    def config(self) -> RunConfig:
        """The options."""
        return self.resources.config

    @property
    def service(self) -> ToolRunner:
        """Where its tools run."""
        return self.resources.control.service

    @property
    def sound(self) -> Sequence[Question]:
        """The questions that can be asked."""
        return self.questions.sound

    @property
    def captioner(self) -> ChatModel | None:
        """The model that describes images for the solvers of this run; None where none of them is shown captions."""
        if not any(self.shows_captions(solver) for solver in self.solvers.values()):
            return None
        return self.resources.captioner or self.resources.model

    def shows_captions(self, solver: Solver) -> bool:
        """Whether a solver shows a model captions instead of images."""
        return solver.needs_model and (solver.images or self.config.images) == "caption"

    @property
    def broken(self) -> tuple[BrokenQuestion, ...]:
        """The rows that cannot."""
        return self.questions.broken

    def open_questions(self, solver: str) -> Sequence[Question]:
        """What the solver has not finished yet."""
        return self.questions.without(self.folder.finished(solver))


def prepare(config: RunConfig, *, dry: bool = False) -> ResolvedRun:
    """Resolve everything that can be resolved without asking.

    A `dry` preparation goes on without a model or a device that cannot be had and lists why in `missing`.

    Raises:
        UsageError: an option that does not fit, a missing key, a device that is not here, a folder that holds another
            configuration.
        DataError: the data cannot be used.
    """
    _check_trace(config)
    if config.client is not None and config.engine != "local":
        raise UsageError(f"model={config.model}: an object is asked in this process, not by --engine {config.engine}")
    benchmark = _benchmark(config)
    store = ImageStore(home() / "images")
    solvers = _solvers(config)
    model, missing = _model_or_why(config, store, dry=dry)
    captioner, no_captioner = _captioner_or_why(config, store, dry=dry)
    missing += no_captioner
    context = NOTHING if config.context is None else read_supplied(config.context)
    _check_weights(config.service)
    no_device = _absent_device(config, dry=dry)
    foreign = _foreign(config)
    mounted = _mounted(config, benchmark, store)
    tools_offered, named = _tools_offered(config, benchmark, foreign)
    tools = tools_in_use(
        solvers, benchmark.card.name, tools_offered, named, config.service, _routes(benchmark, mounted), foreign
    )
    opened, unchecked = _permitted(config, benchmark, mounted, tools)
    wording = Wording(config.sends_format_line, config.reasoning)
    _check_protocol(config, benchmark, mounted, wording)
    if config.answer == "likelihood" and model is not None and not isinstance(model, Likelihoods):
        raise UsageError(
            f"--setting answer=likelihood: {config.model} gives no likelihoods; a model whose weights are at hand does "
            "(hf:DIR_OR_ID)"
        )
    trust = None if config.trust is None else read_trust(config.trust)
    facts = _facts(config, benchmark, mounted, model, wording)
    facts["trust"] = trust.sha256 if trust else None
    facts["tools_offered"] = list(tools_offered)
    facts["captioner"] = captions_fact(captioner) if captioner else None
    facts["context"] = {"sha256": context.sha256, "missing": config.context_missing}
    identity = {"hybrid": __version__, "pictures": config.service.pictures, **identity_of(config, facts)}
    if trust is not None and config.trust is not None:
        used = {name: facts for solver in solvers for name, facts in tools.metadata(solver).items()}
        refuse_other(trust, config.trust, identity, used, model_known=not missing)
    folder = RunFolder(config.out or RUNS / folder_name(identity))
    found = recorded_questions(folder, identity, benchmark, config.limit)
    found = found or read_data(config, benchmark, mounted)
    without_text = _without_text(config, context, found)
    service = _service(config, store, foreign)
    control = _control(config, benchmark, service, found)
    return ResolvedRun(
        benchmark=benchmark,
        mounted=mounted,
        questions=found,
        solvers=solvers,
        resources=Resources(
            config,
            model,
            control,
            tools.tools_offered,
            trust=trust,
            frame=_frame(config),
            joint=benchmark.card.joint,
            captioner=captioner,
            context=context,
            prior_accuracy=benchmark.card.prior_accuracy,
            run_meter=RunMeter(config.run_limits),
        ),
        identity=identity,
        tools=tools,
        folder=folder,
        missing=(*missing, *no_device),
        opened=(*opened, *(f"unchecked weights: {name}" for name in unchecked)),
        without_text=without_text,
        unchecked=unchecked,
        foreign=foreign,
    )


def _check_trace(config: RunConfig) -> None:
    """Raise `UsageError` where a trace is asked for that cannot be made."""
    if config.tracing is None:
        return
    try:
        plugin(GROUP, config.tracing)
    except ImportError as error:
        told = f"--trace needs OpenTelemetry, which the extra `trace` brings: {install_extra('trace')}"
        raise UsageError(told) from error
    except UsageError as error:
        raise UsageError(f"--trace {config.trace}: {error}") from error


def offered_tools(config: RunConfig) -> ToolsInUse:
    """The tools of a run without its data and without its model: what is offered, and what answers for each.

    Raises `UsageError` as `prepare` does for solvers, tools and weights.
    """
    benchmark = _benchmark(config)
    _check_weights(config.service)
    foreign = _foreign(config)
    tools_offered, named = _tools_offered(config, benchmark, foreign)
    return tools_in_use(_solvers(config), benchmark.card.name, tools_offered, named, config.service, None, foreign)


def read_data(config: RunConfig, benchmark: Benchmark, mounted: Mounted) -> Questions:
    """The questions of the data, whose images are in the store afterwards. Raises `DataError` as `questions` does."""
    if not config.rotate:
        return questions(benchmark, mounted.source, config.limit)
    card = benchmark.card
    return questions(
        benchmark,
        mounted.source,
        config.limit,
        lambda question: with_rotations([question], card.rotatable, in_text=card.options_in_text),
    )


def _benchmark(config: RunConfig) -> Benchmark:
    benchmark: Benchmark = load("hybrid.benchmarks", config.benchmark)
    if config.prompts is not None:
        benchmark = type(benchmark)(read_texts(benchmark.texts_file, config.prompts))
    return benchmark


def _model_or_why(config: RunConfig, store: ImageStore, *, dry: bool) -> tuple[ChatModel | None, tuple[str, ...]]:
    """The model that was named, whether or not these solvers ask it: a run can be extended by one that does.

    In a dry run without one that cannot be had, and why.
    """
    if config.model is None:
        return None, ()
    try:
        return open_model(config.model, config.model_settings, store, config.client), ()
    except UsageError as error:
        if not dry:
            raise
        return None, (str(error),)


def _captioner_or_why(config: RunConfig, store: ImageStore, *, dry: bool) -> tuple[ChatModel | None, tuple[str, ...]]:
    """The second model that describes images, where one was named; in a dry run without one that cannot be had."""
    if config.captioner is None:
        return None, ()
    try:
        return open_model(config.captioner, config.captioner_settings, store), ()
    except UsageError as error:
        told = f"--setting caption-model={config.captioner}: {error}"
        if not dry:
            raise UsageError(told) from error
        return None, (told,)


def _absent_device(config: RunConfig, *, dry: bool) -> tuple[str, ...]:
    """In a dry run why the device cannot be used; else raises `UsageError`. A cluster has the devices of its nodes."""
    if config.engine != "local":
        return ()
    try:
        refuse_absent(config.service.device)
    except UsageError as error:
        if not dry:
            raise
        return (str(error),)
    return ()


def _without_text(config: RunConfig, context: SuppliedTexts, asked: Questions) -> tuple[str, ...]:
    """The questions that have no text of the file. Raises `UsageError` where there are some and they may not be."""
    if config.context is None:
        return ()
    ids = [question.id for question in asked.sound]
    lacking = context.lacking(ids)
    if config.context_missing == "refuse":
        refuse_missing(lacking, len(ids), config.context)
    if len(lacking) == len(ids):
        raise UsageError(f"--setting context={config.context}: not one of its ids is that of a question")
    return lacking


def _mounted(config: RunConfig, benchmark: Benchmark, store: ImageStore) -> Mounted:
    mounted = mount(
        benchmark,
        config.data,
        split=config.split,
        tasks=config.tasks,
        settings={**(benchmark.card.official_settings if config.protocol == "official" else {}), **config.settings},
        store=store,
        limit=config.limit,
        seed=config.seed,
    )
    if config.tool_output == "oracle" and mounted.source.split in benchmark.card.hidden_splits:
        raise UsageError(f"--tool-output oracle: the answers of the split {mounted.source.split} are hidden")
    return mounted


def _check_protocol(config: RunConfig, benchmark: Benchmark, mounted: Mounted, wording: Wording) -> None:
    """Raise `UsageError` where replies would be asked for in one form and read in another."""
    card = benchmark.card
    for key, value in card.official_settings.items():
        if wording.format_line and mounted.source.settings.get(key) == value:
            raise UsageError(
                f"--setting {key}={value} reads replies as the released code does, which cannot read our format line: "
                "give --protocol official, or --format-line off"
            )
    unread = Kind.CHOICE not in card.official_reads
    if config.protocol == "official" and config.answer == "likelihood" and unread:
        raise UsageError(
            f"--setting answer=likelihood writes its choice as our format line does, which the official parse of "
            f"{card.name} does not read: give --protocol strict"
        )


def _foreign(config: RunConfig) -> ForeignTools:
    """The tools of other MCP servers, which are asked for them. Raises `UsageError`."""
    if not config.mcp:
        if config.mcp_images:
            raise UsageError(f"--mcp-image {next(iter(config.mcp_images))}: there is no --mcp")
        return NOTHING_FOREIGN
    if config.engine != "local":
        raise UsageError(
            f"--mcp: the tools of other servers are asked from this process, not by --engine {config.engine}"
        )
    try:
        import mcp  # noqa: F401 - an extra
    except ImportError as error:
        raise UsageError(f"--mcp needs the package mcp: {install_extra('mcp')} ({error})") from error
    from hybrid.integrations.mcp.client import foreign_tools

    return foreign_tools(config.mcp, config.mcp_images, names("tools"))


def _service(config: RunConfig, store: ImageStore, foreign: ForeignTools) -> ToolRunner:
    cache = FindingCache(home() / "findings" if config.cache else None, store)
    if not foreign.servers:
        return ToolService(store, cache, config.service)
    from hybrid.integrations.mcp.client import McpTools

    return McpTools(foreign, store, cache, config.service)


def _control(config: RunConfig, benchmark: Benchmark, service: ToolRunner, asked: Questions) -> Control:
    """What tool calls come to. Targets enter it in an oracle run alone, other questions' images in a shuffled one."""
    oracle: Oracle | None = None
    if config.tool_output == "oracle":

        def told(identity: str, prompt: Prompt) -> Perfect:
            question = asked.by_id[identity]
            assert isinstance(question, Question)  # noqa: S101 - a broken row is never asked
            return Perfect(benchmark.oracle(question, prompt), benchmark.oracle_answer(question, prompt))

        oracle = told
    strangers = partners(asked.sound, config.seed) if config.tool_output == "shuffled" else {}
    return Control(service, config.tool_output, oracle, strangers)


def _frame(config: RunConfig) -> CoordinateSystem:
    """The declared frame; pixels are those of the copy that is sent, when images are scaled down for the model."""
    if config.frame == "probe":
        return CoordinateSystem()
    declared = frame_named(config.frame)
    return CoordinateSystem(declared.name, config.model_settings.max_pixels)


def _solvers(config: RunConfig) -> dict[str, Solver]:
    replayed = (config.model or "").startswith("replay:")
    wanted = config.solvers or (REPLAY_SOLVERS if replayed else DEFAULT_SOLVERS)
    for name in wanted:
        if REPEAT in name:
            raise UsageError(
                f"--solver {name}: repetitions are asked for all together: give --setting repeats="
                f"{max(2, number_of(name))} and --solver {word_of(name)}"
            )
    solvers: dict[str, Solver] = {name: load_solver(name) for name in wanted}
    for name, solver in solvers.items():
        if solver.needs_model and config.model is None:
            raise UsageError(f"--solver {name} needs a model: give one with --model, such as --model openai:gpt-4o")
        if solver.needs_live and replayed:
            raise UsageError(f"--solver {name} needs a live model: it lets it call tools or asks it again")
    if replayed and config.images != "separate":
        raise UsageError(f"--images {config.images}: a recorded model has seen the images as they were recorded")
    return repeated(solvers, config.repeats)


def _check_weights(service: ServiceOptions) -> None:
    """Raise `UsageError` for weights that no tool would load."""
    known = names("tools")
    for name, where in service.weights.items():
        if name not in known:
            hint = did_you_mean(name, known)
            raise UsageError(f"--weights {name}={where}: there is no such tool{hint}; there are: {', '.join(known)}")
        if service.backend == "classical":
            raise UsageError(f"--weights {name}={where}: --backend classical loads no weights")
        if names_directory(where) and not Path(where).expanduser().is_dir():
            raise UsageError(f"--weights {name}={where}: there is no directory {where}")


def _tools_offered(
    config: RunConfig, benchmark: Benchmark, foreign: ForeignTools
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the tools offered to a model, and those of them that somebody named.

    They are those named, all, none, or by default the benchmark's own, which a list may hold too, and the foreign ones
    that take an image. Raises `UsageError` for a name that is no tool's, or a foreign tool's that cannot be offered.
    """
    strangers = foreign.tools
    if config.tools == (NO_TOOL,):
        return (), ()
    everything = config.tools == (EVERY_TOOL,)
    own = benchmark.card.tools_offered or names("tools")
    if everything or config.tools in ((), (BENCHMARK_TOOLS,)):
        if everything:
            return (*names("tools"), *strangers), ()
        return (*own, *(name for name, one in strangers.items() if one.images)), ()
    named = tuple(name for name in config.tools if name != BENCHMARK_TOOLS)
    for name in named:
        if name in foreign.left_out:
            raise UsageError(f"--tools {name}: {foreign.left_out[name].removeprefix(f'{name}: ')}")
        if name not in strangers:
            _refuse_unknown(name, strangers)
    listed = (each for name in config.tools for each in (own if name == BENCHMARK_TOOLS else (name,)))
    return tuple(dict.fromkeys(listed)), named


def _refuse_unknown(name: str, strangers: Mapping[str, ForeignTool]) -> None:
    """Raise `UsageError` for a name that no tool of ours has, with those of its server where it begins as theirs do."""
    server = next((one.server.name for one in strangers.values() if name.startswith(f"{one.server.name}_")), None)
    if server is None:
        try:
            refuse_unknown("tools", name)
        except UsageError as error:
            raise UsageError(f"--tools: {error}") from error
    elif name not in names("tools"):
        there = ", ".join(known for known, one in strangers.items() if one.server.name == server)
        raise UsageError(f"--tools {name}: the MCP server {server} has no such tool; it has: {there}")


def _routes(benchmark: Benchmark, mounted: Mounted) -> tuple[str, ...] | None:
    """The routes of the chosen tasks where a task is a route, so that weights of other tasks' tools are not wanted."""
    return mounted.source.tasks if benchmark.card.routes_are_tasks else None


def _permitted(
    config: RunConfig, benchmark: Benchmark, mounted: Mounted, tools: ToolsInUse
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The labels of what `--allow` let in, and the tools whose weights go unchecked. Raises `UsageError`."""
    called = tuple(tools.tools.values())
    # Nobody has seen generated questions.
    sources = () if mounted.is_sample else benchmark.card.sources_of(mounted.source.tasks)
    found = permissions.closed(called, tools.backends, config.service.weights, sources)
    unchecked = permissions.unchecked(called, tools.backends) if config.service.unchecked else ()
    return permissions.check(found, config.allow), unchecked


def _facts(
    config: RunConfig, benchmark: Benchmark, mounted: Mounted, model: ChatModel | None, wording: Wording
) -> dict[str, Json]:
    """What was resolved of the options that count, by its key in the identity."""
    source = mounted.source
    return {
        "benchmark": benchmark.card.name,
        "split": source.split,
        "tasks": list(source.tasks),
        "settings": dict(source.settings),
        "data": _data(benchmark, mounted),
        "model": dict(model.metadata()) if model else None,
        "prompts": {
            "format_line": wording.format_line,
            "format_lines": wording.sha256,
            "texts": text_hash(benchmark.texts),
            # Only where it was chosen: a run without it is what it was before there was a choice.
            **({"reasoning": REASONING[config.reasoning]} if config.reasoning else {}),
        },
        "limits": asdict(config.limits),
    }


def _data(benchmark: Benchmark, mounted: Mounted) -> dict[str, Json]:
    """What the data is. Generated rows follow from seed and generator alone, so a larger sample is the same data."""
    if mounted.is_sample:
        return {**mounted.origin, "generator": GENERATOR}
    return {**mounted.origin, "sha256": fingerprint(benchmark.files(mounted.source), mounted.source.folder)}
