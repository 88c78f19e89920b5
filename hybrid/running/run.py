"""Loop 1: ask every question, append what came back, and continue where an earlier run stopped.

`resolve.prepare` resolves what is to be asked; `execute` asks. A question is recorded when its dialogue is finished; an
outage or a crash leaves it open, and the same command takes it up again.
"""

from __future__ import annotations

import asyncio
import platform
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version

from hybrid.errors import HybridError, Outage, ServerDown, UsageError, WeightsError
from hybrid.messages import human, text_of
from hybrid.models.base import CallKey, ModelRefused
from hybrid.run_folder import attempt_line, difference
from hybrid.running.resolve import ResolvedRun
from hybrid.solving.budgets import RunBudgetSpent
from hybrid.solving.frames import PROBE_TEXT, Frame, frame_named, probe_target, read_probe
from hybrid.solving.kit import Solver
from hybrid.solving.session import Session
from hybrid.texts import text_hash
from hybrid.types import Attempt, BrokenQuestion, ImageRef, Json, Question

PACKAGES = ("torch", "transformers", "langgraph", "langchain-core", "opencv-python-headless", "numpy", "pillow")

Progress = Callable[[str, int, int], None]
"""Called with solver, finished and total."""


@dataclass(frozen=True)
class UnfinishedQuestion:
    """A question that was not finished."""

    solver: str
    id: str
    error: str


async def execute(run: ResolvedRun, progress: Progress) -> tuple[UnfinishedQuestion, ...]:
    """Ask what is still open, solver by solver. Returns the questions that could not be finished."""
    failures: list[UnfinishedQuestion] = []
    try:
        with run.folder.locked():
            _open_folder(run)
            run = await _with_frame(run)
            for name, solver in run.solvers.items():
                failures += await _run_solver(run, name, solver, progress)
            _note_tools(run)
    finally:
        run.service.close()
        if run.resources.model is not None:
            await run.resources.model.close()
    return tuple(failures)


async def _run_solver(run: ResolvedRun, name: str, solver: Solver, progress: Progress) -> list[UnfinishedQuestion]:
    waiting = run.open_questions(name)
    total, finished = len(run.sound), len(run.sound) - len(waiting)
    progress(name, finished, total)
    failures: list[UnfinishedQuestion] = []
    journal = run.folder.journal(name)
    fatal: list[HybridError] = []

    async def one(question: Question) -> None:
        nonlocal finished
        if fatal or (solver.needs_model and run.resources.run_meter.spent()):
            return
        try:
            attempt = await attempt_question(run, solver, question)
        except RunBudgetSpent:
            return
        except (ModelRefused, ServerDown, WeightsError) as error:
            # No call of this configuration can succeed: asking the remaining questions would only repeat it.
            fatal.append(error)
            return
        except Exception as error:
            failures.append(UnfinishedQuestion(name, question.id, _describe(error)))
            run.folder.note_error(name, question.id, "".join(traceback.format_exception(error)))
            return
        try:
            run.folder.write_trace(name, attempt)
            journal.append(attempt_line(attempt))
        except OSError as error:
            fatal.append(UsageError(f"{run.folder.path} cannot be written: {error.strerror or error}"))
            return
        finished += 1
        progress(name, finished, total)

    try:
        await bounded(waiting, one, run.config.concurrency)
    finally:
        journal.close()
    if fatal:
        raise fatal[0]
    return failures


async def attempt_question(run: ResolvedRun, solver: Solver, question: Question) -> Attempt:
    """One question by one solver. Raises `Outage`, or whatever a defect raises: then nothing is recorded."""
    began, started = time.time(), time.monotonic()
    asked = question.asked()
    session = Session(asked, solver, run.resources)
    exchanges = await run.benchmark.dialogue(asked, session.ask)
    return Attempt(question.id, exchanges, round(time.monotonic() - started, 4), started=round(began, 3))


async def bounded(items: Sequence[Question], work: Callable[[Question], Awaitable[None]], concurrency: int) -> None:
    """Run `work` over the items with at most `concurrency` in flight; each worker takes the next when free."""
    queue = iter(items)

    async def worker() -> None:
        for item in queue:
            await work(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(concurrency, len(items))):
            group.create_task(worker())


async def _with_frame(run: ResolvedRun) -> ResolvedRun:
    """The run with the model's coordinate frame: probed once for a run, then read from its manifest."""
    model = run.resources.model
    if run.config.frame != "probe" or model is None:
        return run
    manifest = run.folder.manifest
    sent_pixels = run.config.model_settings.max_pixels
    if "probed_frame" in manifest:
        frame: Frame = replace(frame_named(manifest["probed_frame"]), sent_pixels=sent_pixels)
    else:
        target = run.service.store.put_pixels(probe_target())
        message = human([PROBE_TEXT, ImageRef("img:1", target)])
        frame = read_probe(text_of(await model.chat([message], (), CallKey("frame-probe"))), sent_pixels)
        run.folder.write_manifest({**manifest, "probed_frame": frame.name})
    return replace(run, resources=replace(run.resources, frame=frame))


def _describe(error: Exception) -> str:
    kind = "" if isinstance(error, Outage) else f"{type(error).__name__}: "
    return f"{kind}{error}"


def _open_folder(run: ResolvedRun) -> None:
    """Create the run, or check that it is this one and take it up."""
    folder = run.folder
    asked: dict[str, Json] = {name: _facts(run, solver) for name, solver in run.solvers.items()}
    listed: dict[str, Json] = {}
    kept: dict[str, Json] = {}
    known: dict[str, Question | BrokenQuestion] = {}
    if (folder.path / "manifest.json").exists():
        manifest = folder.manifest
        changes = difference(manifest["identity"], dict(run.identity))
        again = {name: facts for name, facts in asked.items() if name in manifest["solvers"]}
        changes += difference({name: manifest["solvers"][name] for name in again}, again, "solver ")
        if changes:
            raise UsageError(
                f"{folder.path} holds a run of another configuration:\n  " + "\n  ".join(changes) + "\n"
                "Choose another --out, or leave it out: each configuration then has a folder of its own."
            )
        listed = manifest["solvers"]
        kept = {key: manifest[key] for key in ("probed_frame", "notices") if key in manifest}
        known = {question.id: question for question in folder.questions()}
    solvers = {**listed, **asked}
    facts: dict[str, Json] = {"labels": _labels(run), "solvers": solvers, "environment": _environment()}
    folder.write_manifest({"identity": run.identity, **facts, **kept})
    merged = {**known, **{question.id: question for question in run.questions}}
    if merged != known:
        folder.write_questions(merged.values())


def _facts(run: ResolvedRun, solver: Solver) -> dict[str, Json]:
    """What the manifest says of a solver: its words, and whether it shows a model images under their names."""
    facts: dict[str, Json] = {"texts": text_hash(solver.texts)}
    if solver.needs_model:
        facts["image_labels"] = run.config.image_labels or solver.names_images
    return facts


def _labels(run: ResolvedRun) -> list[Json]:
    """What must be said next to every number of this run."""
    labels: list[Json] = list(run.opened)
    if run.mounted.is_sample:
        labels.append("generated questions")
    if run.resources.model is not None and run.resources.model.facts().get("stand_in"):
        labels.append("scripted stand-in for an MLLM")
    if run.config.tool_output != "real":
        labels.append(f"tool output {run.config.tool_output}")
    return labels


def _note_tools(run: ResolvedRun) -> None:
    manifest = run.folder.manifest
    manifest["notices"] = sorted({*manifest.get("notices", []), *run.service.notices})
    run.folder.write_manifest(manifest)


def _environment() -> dict[str, Json]:
    return {
        "python": platform.python_version(),
        "platform": platform.machine(),
        **{package: version(package) for package in PACKAGES},
    }
