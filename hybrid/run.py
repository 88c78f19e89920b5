"""Loop 1: ask every question, append what came back, and continue where an earlier run stopped.

`prepare` resolves a `RunConfig` without asking anything (`--dry-run` prints it); `execute` asks. A question is recorded
when its dialogue is finished; an outage or a crash leaves it open, and the same command takes it up again.
"""

from __future__ import annotations

import asyncio
import logging
import platform
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from hybrid import __version__
from hybrid.asking import Resources, Session
from hybrid.benchmarks.base import Benchmark
from hybrid.cache import FindingCache
from hybrid.config import DEFAULT_SOLVERS, REPLAY_SOLVERS, RunConfig, digest
from hybrid.controls import Control, partners
from hybrid.data import Mounted, fingerprint, mount, questions
from hybrid.errors import Outage, UsageError
from hybrid.images import ImageStore, home
from hybrid.kit import Solver
from hybrid.models import ChatModel, open_model
from hybrid.models.base import ModelRefused
from hybrid.prompts import Wording
from hybrid.records import RunFolder, attempt_line, difference
from hybrid.registry import load, load_solver, names
from hybrid.service import ServiceOptions, ToolService
from hybrid.tool import Tool
from hybrid.trust import read_trust
from hybrid.types import Attempt, BrokenQuestion, Json, Question
from hybrid.weights import backends_in_use

log = logging.getLogger("hybrid.run")

PACKAGES = ("torch", "transformers", "langgraph", "langchain-core", "opencv-python-headless", "numpy", "pillow")

Progress = Callable[[str, int, int], None]
"""Called with solver, finished and total."""


@dataclass(frozen=True)
class Plan:
    """A resolved run: nothing has been asked yet."""

    config: RunConfig
    benchmark: Benchmark
    mounted: Mounted
    questions: tuple[Question | BrokenQuestion, ...]
    solvers: Mapping[str, Solver]
    resources: Resources
    service: ToolService
    identity: Mapping[str, Json]
    tools: Mapping[str, str]
    """Which backend answers for each tool, as it stands in the identity."""
    folder: RunFolder
    missing: tuple[str, ...] = ()
    """What a run needs and does not have; only a dry run goes on with it."""

    @property
    def sound(self) -> tuple[Question, ...]:
        """The questions that can be asked."""
        return tuple(question for question in self.questions if isinstance(question, Question))

    @property
    def broken(self) -> tuple[BrokenQuestion, ...]:
        """The rows that cannot."""
        return tuple(question for question in self.questions if isinstance(question, BrokenQuestion))

    def open_questions(self, solver: str) -> tuple[Question, ...]:
        """What the solver has not finished yet."""
        done = {attempt.id for attempt in self.folder.attempts(solver)}
        return tuple(question for question in self.sound if question.id not in done)


@dataclass(frozen=True)
class Failure:
    """A question that was not finished."""

    solver: str
    id: str
    error: str


def prepare(config: RunConfig, *, dry: bool = False) -> Plan:
    """Resolve everything that can be resolved without asking.

    A `dry` preparation goes on without a model that cannot be had and lists why in `missing`.

    Raises:
        UsageError: an option that does not fit, a missing key, a folder that holds another configuration.
        DataError: the data cannot be used.
    """
    benchmark: Benchmark = load("hybrid.benchmarks", config.benchmark)
    store = ImageStore(home() / "images")
    solvers = _solvers(config)
    missing: list[str] = []
    model: ChatModel | None = None
    try:
        model = _model(config, solvers, store)
    except UsageError as error:
        if not dry:
            raise
        missing.append(str(error))
    mounted = mount(
        benchmark,
        config.data,
        split=config.split,
        tasks=config.tasks,
        settings=config.settings,
        store=store,
        limit=config.limit,
        seed=config.seed,
    )
    menu = _menu(config)
    tools = backends_in_use([load("tools", name) for name in names("tools")], config.backend, config.weights)
    options = ServiceOptions(config.backend, config.weights, _device(config, tools))
    service = ToolService(store, FindingCache(home() / "findings", store), options)
    wording = Wording(config.format_line)
    identity = _identity(config, benchmark, mounted, model, wording, tools)
    found = questions(benchmark, mounted.source, config.limit)
    sound = [question for question in found if isinstance(question, Question)]
    control = Control(service, config.tool_output, benchmark.oracle, partners(sound, config.seed))
    trust = read_trust(config.trust) if config.trust else None
    price = config.model_settings.price
    resources = Resources(model, control, menu, wording, config.limits, trust, price, config.seed, config.show)
    out = config.out or Path("runs") / f"{config.benchmark}-{digest(identity)}"
    return Plan(
        config, benchmark, mounted, found, solvers, resources, service, identity, tools, RunFolder(out), tuple(missing)
    )


async def execute(plan: Plan, progress: Progress) -> tuple[Failure, ...]:
    """Ask what is still open, solver by solver. Returns the questions that could not be finished."""
    failures: list[Failure] = []
    try:
        with plan.folder.locked():
            _open_folder(plan)
            for name, solver in plan.solvers.items():
                failures += await _run_solver(plan, name, solver, progress)
            _note_tools(plan)
    finally:
        plan.service.close()
        if plan.resources.model is not None:
            await plan.resources.model.close()
    return tuple(failures)


async def _run_solver(plan: Plan, name: str, solver: Solver, progress: Progress) -> list[Failure]:
    waiting = plan.open_questions(name)
    total, finished = len(plan.sound), len(plan.sound) - len(waiting)
    progress(name, finished, total)
    failures: list[Failure] = []
    journal = plan.folder.journal(name)
    fatal: list[ModelRefused] = []

    async def one(question: Question) -> None:
        nonlocal finished
        if fatal:
            return
        try:
            attempt = await attempt_question(plan, solver, question)
        except ModelRefused as error:
            # No call of this configuration can succeed: asking the remaining questions would only repeat it.
            fatal.append(error)
            return
        except Exception as error:
            failures.append(Failure(name, question.id, _describe(error)))
            plan.folder.note_error(name, question.id, "".join(traceback.format_exception(error)))
            return
        plan.folder.write_trace(name, attempt)
        journal.append(attempt_line(attempt))
        finished += 1
        progress(name, finished, total)

    try:
        await bounded(waiting, one, plan.config.concurrency)
    finally:
        journal.close()
    if fatal:
        raise fatal[0]
    return failures


async def attempt_question(plan: Plan, solver: Solver, question: Question) -> Attempt:
    """One question by one solver. Raises `Outage`, or whatever a defect raises: then nothing is recorded."""
    started = time.monotonic()
    session = Session(question, solver, plan.resources)
    exchanges = await plan.benchmark.dialogue(question.asked(), session.ask)
    return Attempt(question.id, exchanges, round(time.monotonic() - started, 4))


async def bounded(items: Sequence[Question], work: Callable[[Question], Awaitable[None]], concurrency: int) -> None:
    """Run `work` over the items with at most `concurrency` in flight; each worker takes the next when free."""
    queue = iter(items)

    async def worker() -> None:
        for item in queue:
            await work(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(concurrency, len(items))):
            group.create_task(worker())


def _device(config: RunConfig, tools: Mapping[str, str]) -> str:
    """`auto` is CUDA where torch sees a GPU. Asking torch costs its import, so only when a learned backend is used."""
    if config.device != "auto":
        return config.device
    if not any(in_use.startswith("learned") for in_use in tools.values()):
        return "cpu"
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _describe(error: Exception) -> str:
    kind = "" if isinstance(error, Outage) else f"{type(error).__name__}: "
    return f"{kind}{error}"


def _solvers(config: RunConfig) -> dict[str, Solver]:
    replayed = (config.model or "").startswith("replay:")
    wanted = config.solvers or (REPLAY_SOLVERS if replayed else DEFAULT_SOLVERS)
    solvers: dict[str, Solver] = {name: load_solver(name) for name in wanted}
    for name, solver in solvers.items():
        if solver.needs_model and config.model is None:
            raise UsageError(f"--solver {name} needs a model: give one with --model, such as --model openai:gpt-4o")
        if solver.needs_live and replayed:
            raise UsageError(f"--solver {name} needs a live model: it lets it call tools or asks it again")
    return solvers


def _model(config: RunConfig, solvers: Mapping[str, Solver], store: ImageStore) -> ChatModel | None:
    if config.model is None or not any(solver.needs_model for solver in solvers.values()):
        return None
    return open_model(config.model, config.model_settings, store)


def _menu(config: RunConfig) -> tuple[Tool, ...]:
    return tuple(load("tools", name) for name in config.tools or names("tools"))


def _identity(
    config: RunConfig,
    benchmark: Benchmark,
    mounted: Mounted,
    model: ChatModel | None,
    wording: Wording,
    tools: Mapping[str, str],
) -> dict[str, Json]:
    source = mounted.source
    limits = config.limits
    return {
        "hybrid": __version__,
        "benchmark": benchmark.card.name,
        "split": source.split,
        "tasks": list(source.tasks),
        "settings": dict(source.settings),
        "data": {**mounted.origin, "sha256": fingerprint(benchmark.files(source), source.folder)},
        "model": dict(model.facts()) if model else None,
        "prompts": wording.sha256,
        "tools": dict(tools),
        "menu": list(config.tools),
        "tool_output": config.tool_output,
        "show": config.show,
        "trust": read_trust(config.trust).sha256 if config.trust else None,
        "limits": {
            "tool_calls": limits.tool_calls,
            "turns": limits.turns,
            "seconds": limits.seconds,
            "tokens": limits.tokens,
            "cost_usd": limits.cost_usd,
        },
        "seed": config.seed,
    }


def _open_folder(plan: Plan) -> None:
    """Create the run, or check that it is this one and take it up."""
    folder = plan.folder
    listed: dict[str, Json] = {}
    if (folder.path / "manifest.json").exists():
        manifest = folder.manifest
        changes = difference(manifest["identity"], dict(plan.identity))
        if changes:
            raise UsageError(
                f"{folder.path} holds a run of another configuration:\n  " + "\n  ".join(changes) + "\n"
                "Choose another --out, or leave it out: each configuration then has a folder of its own."
            )
        listed = manifest["solvers"]
        known = {question.id: question for question in folder.questions()}
    else:
        known = {}
    solvers = {**listed, **{name: {} for name in plan.solvers if name not in listed}}
    facts: dict[str, Json] = {"labels": _labels(plan), "solvers": solvers, "environment": _environment()}
    folder.write_manifest({"identity": plan.identity, **facts})
    merged = {**known, **{question.id: question for question in plan.questions}}
    if merged != known:
        folder.write_questions(merged.values())


def _labels(plan: Plan) -> list[Json]:
    """What must stand beside every number of this run."""
    labels: list[Json] = []
    if plan.mounted.is_sample:
        labels.append("generated questions")
    if plan.resources.model is not None and plan.resources.model.facts().get("stand_in"):
        labels.append("scripted stand-in for an MLLM")
    if plan.config.tool_output != "real":
        labels.append(f"tool output {plan.config.tool_output}")
    return labels


def _note_tools(plan: Plan) -> None:
    manifest = plan.folder.manifest
    manifest["notices"] = sorted({*manifest.get("notices", []), *plan.service.notices})
    plan.folder.write_manifest(manifest)


def _environment() -> dict[str, Json]:
    return {
        "python": platform.python_version(),
        "platform": platform.machine(),
        **{package: version(package) for package in PACKAGES},
    }
