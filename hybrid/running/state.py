"""The state of a run while its folder is locked: opened or rejected, finished questions, and an orderly close.

    state = open_folder(run, tell)
    state.solvers["mllm"].finished        # ids; grows with each finished question
    close_folder(run, state, replies, tell)

Every file is read once. The manifest gets the extent of the attempts at the start plus the extent of the appended
lines. The file is not read again at the end, so the next command reports changes that others make while this command
runs.
"""

from __future__ import annotations

import hashlib
import itertools
import platform
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from hybrid.benchmarks.card import labels_of
from hybrid.core.errors import DataError, HybridError, UsageError
from hybrid.core.files import writing
from hybrid.core.images import OUR_JOINT
from hybrid.core.repetitions import word_of
from hybrid.core.types import Attempt, BrokenQuestion, Json
from hybrid.display.terminal import how_many
from hybrid.log.attempts import Recorded
from hybrid.log.folder import QUESTIONS, RunFolder, attempts_of
from hybrid.log.lines import ExtentHasher, FileExtent
from hybrid.log.manifest import MANIFEST, PLUGINS, difference
from hybrid.log.questions import AnyQuestion
from hybrid.models.base import other_models
from hybrid.plugins.discovery import TOOLS, origin_facts
from hybrid.plugins.prompt_texts import text_hash
from hybrid.plugins.registry import package_of_solver
from hybrid.running.data import READ_BY, reading_key
from hybrid.running.engine import Tell
from hybrid.running.identity import invocation
from hybrid.running.object_code import object_code
from hybrid.running.probes import CALL_PROBE, FRAME_PROBE, ORDER_PROBE, RESULT_PROBE, SIGHT_PROBE
from hybrid.running.replies import RunReplies
from hybrid.running.resolve import ResolvedRun, read_data
from hybrid.serving.sources import code_hash_of_plugin
from hybrid.solving.captions import captions_fact
from hybrid.solving.solver import Solver

PACKAGES = ("torch", "transformers", "langgraph", "langchain-core", "opencv-python-headless", "numpy", "pillow")
SIGHT, CALLING, FRAME = "sight", "calling", "probed_frame"
# Manifest key of the models that answered, by solver.
ANSWERED_BY = "answered_by"
TOOL_PICTURE, ORDER = "tool_picture", "picture_order"
# Manifest key of each probe's result.
_PROBED = {
    SIGHT_PROBE: SIGHT,
    CALL_PROBE: CALLING,
    FRAME_PROBE: FRAME,
    RESULT_PROBE: TOOL_PICTURE,
    ORDER_PROBE: ORDER,
}

# Manifest key of the tools for which a tool server has answered.
TOOL_SERVER = "tool_server"
# Other manifest keys that are kept from earlier commands.
CARRIED = ("options", "notices", "reused_replies", TOOL_SERVER)

# Maximum number of changed questions that a message names.
SHOWN_OTHERS = 10
# Matches the hash of an image in a question's line.
_IMAGE = re.compile(rb'"sha256":"([0-9a-f]{64})"')


@dataclass(frozen=True)
class SolverProgress:
    """The progress of one solver."""

    # Ids of finished questions.
    finished: set[str]
    # Extent of the solver's attempts.
    measure: ExtentHasher
    # Whether the attempts begin with those recorded in the manifest.
    sound: bool
    # Number of replies by model, as named by the server.
    answered_by: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class RunState:
    """The attempts that were in a folder when it was opened, and the attempts finished since then."""

    folder: RunFolder
    # Solvers of this command.
    solvers: Mapping[str, SolverProgress]

    def finished(self, solver: str) -> frozenset[str] | set[str]:
        """Return the ids that a solver has finished, in any command; for the solver "", return the finished probes."""
        if not solver:
            manifest = self.folder.manifest
            return frozenset(probe for probe, key in _PROBED.items() if key in manifest)
        progress = self.solvers.get(solver)
        return self.folder.finished(solver) if progress is None else progress.finished


def open_folder(run: ResolvedRun, tell: Tell) -> RunState:
    """Create the run, or check that the folder holds this run intact, repair what can be repaired, and resume it.

    The manifest is written last; until then it describes the earlier state.

    Raises:
        UsageError: the folder holds another run.
        DataError: questions are lost that this command cannot restore.
        OSError: the folder is not writable.
    """
    folder = run.folder
    solvers: dict[str, Json] = {name: _facts(run, name, solver) for name, solver in run.solvers.items()}
    old: dict[str, Any] = {}
    if (folder.path / MANIFEST).exists():
        old = folder.manifest
        _refuse_other(run, old, solvers)
    else:
        folder.refuse_orphans()
    files: dict[str, Json] = dict(old.get("files", {}))
    state = RunState(folder, dict(_taken_up(run, files, old.get(ANSWERED_BY, {}), tell)))
    extent, selection = _write_questions(run, old, tell)
    files[QUESTIONS] = asdict(extent)
    entries: dict[str, Json] = {key: old[key] for key in (*CARRIED, *_PROBED.values()) if key in old}
    if ANSWERED_BY in old:
        # A command writes its counts when it ends; if they are missing, they are counted again.
        entries[ANSWERED_BY] = {name: counts for name, counts in old[ANSWERED_BY].items() if name not in run.solvers}
    if run.config.options_as_used:
        # The options of the last command: together with the defaults they reproduce this configuration.
        entries["options"] = dict(run.config.options_as_used)
    folder.write_manifest(
        {
            "identity": run.identity,
            # Keep the labels of earlier commands, because the run still contains the answers of these commands.
            "labels": list(dict.fromkeys([*old.get("labels", ()), *_labels(run)])),
            "solvers": {**old.get("solvers", {}), **solvers},
            "environment": {
                "python": platform.python_version(),
                "platform": platform.machine(),
                **{package: _version(package) for package in PACKAGES},
            },
            "connection": _connections(run, old.get("connection", ())),
            "commands": [*old.get("commands", ()), asdict(invocation())],
            "files": files,
            **_further(run, old, tell),
            **selection,
            **entries,
        }
    )
    _fill_store(run, state)
    return state


def _refuse_other(run: ResolvedRun, manifest: Mapping[str, Any], solvers: Mapping[str, Json]) -> None:
    """Raise `UsageError` with the difference if the folder holds a run of another configuration.

    Also raises if an answered question has changed; the message names such questions.
    """
    # Changed data files are accepted as long as answered questions keep their words and pictures.
    changes = difference(manifest["identity"], dict(run.identity))
    same_solvers = {name: facts for name, facts in solvers.items() if name in manifest["solvers"]}
    changes += difference({name: manifest["solvers"][name] for name in same_solvers}, same_solvers, "solver ")
    # Whether only the data files differ.
    grown = len(changes) == 1 and changes[0].startswith("data.sha256: ")
    if changes and not grown:
        raise UsageError(
            f"{run.folder.path} holds a run of another configuration:\n  " + "\n  ".join(changes) + "\n"
            "Choose another --out, or omit it: then each configuration has its own folder."
        )
    question_set = run.questions
    recorded, wrong = run.folder.readable_questions()
    if question_set.is_file(run.folder.path / QUESTIONS) or (wrong is not None and not grown):
        return
    answered = {name for solver in manifest["solvers"] for name in run.folder.finished(solver)}
    others = {
        name: part
        for name in recorded.ids
        if name in answered and name in question_set.by_id and recorded.line(name) != question_set.line(name)
        if (part := _other(recorded.by_id[name], question_set.by_id[name]))
    }
    if grown and run.config.limit is None and not run.config.only:
        others |= dict.fromkeys(
            (name for name in recorded.ids if name not in question_set.by_id), "which is no longer in the data"
        )
    if others or (grown and wrong is not None):
        details = "; ".join(f"{name}, {part}" for name, part in itertools.islice(others.items(), SHOWN_OTHERS))
        raise UsageError(
            f"{run.folder.path}: {len(others)} of its questions have changed ({wrong or details}"
            f"{'; ...' if len(others) > SHOWN_OTHERS else ''}), and their answers belong to the old questions. "
            "Restore the files, or choose another --out to ask all of them again"
        )


def _other(old: AnyQuestion, now: AnyQuestion) -> str | None:
    """Describe how a question changed since it was answered.

    Returns None if only fields for reports changed, or if a broken question can be read now.
    """
    if isinstance(old, BrokenQuestion) or isinstance(now, BrokenQuestion):
        return "which can no longer be read" if isinstance(now, BrokenQuestion) else None
    if old.images != now.images:
        return "of which a picture changed"
    # No solver sees annotations, so the stored questions get the new annotation.
    same = replace(old, cluster=now.cluster, groups=now.groups, evidence=now.evidence) == now
    return None if same else "whose text, choices or answer changed"


def _models_before(recorded: Recorded, counts: Mapping[str, int] | None) -> Mapping[str, int]:
    """Return the models that answered in earlier commands; recount if the last command was killed."""
    if counts is not None:
        return counts
    models = Counter[str]()
    for identity in recorded.by_id:
        with suppress(DataError):
            models += models_named(recorded.by_id[identity])
    return models


def _taken_up(
    run: ResolvedRun, files: dict[str, Json], old_counts: Mapping[str, Mapping[str, int]], tell: Tell
) -> Iterator[tuple[str, SolverProgress]]:
    """Yield the finished questions of each solver; report defects in its attempts."""
    # If answers are missing or unreadable, they are requested again, and the manifest's `files` gets the present
    # extent. Attempts that were edited without leaving a gap keep the recorded extent, so every command reports them:
    # nothing shows which answer was changed.
    for name in run.solvers:
        recorded = run.folder.recorded(name)
        for line in recorded.damage:
            tell(f"note: {line}")
        if recorded.index.unreadable:
            run.folder.set_aside(name)
        progress = SolverProgress(set(recorded.by_id), recorded.index.measure, recorded.index.same)
        if run.solvers[name].needs_model:
            progress.answered_by.update(_models_before(recorded, old_counts.get(name)))
        if recorded.index.unreadable or recorded.index.missing:
            measure = run.folder.measure(attempts_of(name))
            progress = replace(progress, measure=measure, sound=True)
            files[attempts_of(name)] = asdict(progress.measure.extent)
            remaining = len(run.questions.without(progress.finished))
            tell(f"note: asking {how_many(remaining)} of {name} again, because their answers are missing or unreadable")
        yield name, progress


def _write_questions(
    run: ResolvedRun, old_manifest: Mapping[str, Any], tell: Tell
) -> tuple[FileExtent, dict[str, Json]]:
    """Write the run's questions if any are missing; return their extent and the selection that they match.

    If the saved questions are unreliable, they are replaced by this command's questions, which come from the same data.

    Raises:
        DataError: some questions are lost, and this command cannot restore them.
    """
    folder, question_set = run.folder, run.questions
    selection = {READ_BY: old_manifest[READ_BY]} if READ_BY in old_manifest else {}
    if question_set.extent is not None and question_set.is_file(folder.path / QUESTIONS):
        return question_set.extent, selection
    recorded, wrong = folder.readable_questions()
    old_questions = recorded.by_id if wrong is None else {}
    if wrong is not None:
        extent = folder.extent(QUESTIONS)
        answered = {identity for name in old_manifest.get("solvers", ()) for identity in folder.finished(name)}
        if answered - question_set.by_id.keys() or (extent is not None and len(question_set) < extent.lines):
            raise DataError(
                f"{wrong}; they can be written again from the data, but not from the {len(question_set)} of this "
                "command: give the largest --limit that the run ever had, or none"
            )
        tell(f"note: {wrong}: written again from the data")
    names = [*old_questions, *(name for name in question_set.by_id if name not in old_questions)]
    same = len(names) == len(old_questions) and all(
        recorded.line(name) == question_set.line(name) for name in question_set.by_id
    )
    if len(names) == len(question_set):
        selection = {READ_BY: reading_key(run.benchmark, run.config.limit, question_set.picture_files, run.config.only)}
    elif not same:
        selection = {}
    if same and recorded.extent is not None:
        return recorded.extent, selection
    lines = (question_set.line(name) if name in question_set.by_id else recorded.line(name) for name in names)
    return folder.write_question_lines(lines), selection


def _fill_store(run: ResolvedRun, state: RunState) -> None:
    """Read the data again if the questions came from the run and the store lacks an image of these questions."""
    if not run.questions.is_file(run.folder.path / QUESTIONS):
        return
    # In a shuffled run any question may supply tool output; otherwise only open questions are needed.
    needed = set(run.questions.by_id)
    if run.config.tool_output != "shuffled":
        needed = {name for name in needed if any(name not in solver.finished for solver in state.solvers.values())}
    # For questions that failed before, damaged images count as missing.
    failed = {name for solver in state.solvers for name in run.folder.recorded(solver).unfinished}
    pairs = ((name, digest.decode()) for name in needed for digest in _IMAGE.findall(run.questions.line(name)))
    for question, sha256 in pairs:
        path = run.mounted.source.store.path(sha256)
        try:
            is_stored = path.is_file() and (
                question not in failed or hashlib.sha256(path.read_bytes()).hexdigest() == sha256
            )
        except OSError:
            is_stored = False
        if not is_stored:
            read_data(run.config, run.benchmark, run.mounted)
            return


def close_folder(run: ResolvedRun, state: RunState, replies: RunReplies, tell: Tell, *, reused: int = 0) -> None:
    """Save the tools' notices and the extent of each solver's attempts, and drop replies no longer needed.

    `reused` is the number of replies of other runs that this command used.
    """
    try:
        with writing(run.folder.path):
            replies.close(state.finished)
            manifest = run.folder.manifest
            for name, progress in state.solvers.items():
                if progress.sound and (run.folder.path / attempts_of(name)).exists():
                    manifest["files"][attempts_of(name)] = asdict(progress.measure.extent)
            manifest["connection"] = _connections(run, manifest["connection"])
            if reused:
                manifest["reused_replies"] = manifest.get("reused_replies", 0) + reused
            if run.service.served:
                manifest[TOOL_SERVER] = sorted({*manifest.get(TOOL_SERVER, []), *run.service.served})
            manifest["notices"] = sorted({*manifest.get("notices", []), *run.service.notices})
            _keep_models(run, state, manifest, tell)
            run.folder.write_manifest(manifest)
    except HybridError as error:
        tell(f"note: {error}")


def _keep_models(run: ResolvedRun, state: RunState, manifest: dict[str, Any], tell: Tell) -> None:
    """Record in the manifest how often each model answered; report models that were not requested."""
    counts = {name: dict(sorted(progress.answered_by.items())) for name, progress in state.solvers.items()}
    manifest[ANSWERED_BY] = {
        **manifest.get(ANSWERED_BY, {}),
        **{name: count for name, count in counts.items() if count},
    }
    model = run.config.model or ""
    total = sum((Counter(count) for count in counts.values()), Counter[str]())
    for name, count in other_models(model, total).items():
        tell(
            f"note: {count} of {total.total()} replies came from another model than {model}: the server reports "
            f"{name!r}"
        )


def models_named(attempt: Attempt) -> Counter[str]:
    """Count the replies of an attempt by model, as the server names the model."""
    steps = (step for exchange in attempt.exchanges for step in exchange.reply.steps if step.kind == "model")
    return Counter(model for step in steps if isinstance(model := step.data.get("model"), str))


def _further(run: ResolvedRun, old_manifest: Mapping[str, Any], tell: Tell) -> dict[str, Json]:
    """Return the manifest entries that only some runs have: supplied texts, corrected labels, MCP servers, plug-ins."""
    further: dict[str, Json] = {}
    if run.config.context is not None:
        lacking = len(run.without_text)
        further["supplied_texts"] = {"with": len(run.sound) - lacking, "without": lacking}
    # Record the labels of corrected tasks; generated questions have none.
    corrections = () if run.mounted.is_sample else run.benchmark.card.corrections
    labels = labels_of(corrections, run.sound) if corrections else {}
    for correction in corrections:
        if labels.get(correction.task) in (correction.older, "neither"):
            tell(
                f"note: {correction.task}: its labels were corrected on {correction.on}; those of this run: "
                f"{labels[correction.task]}"
            )
    if labels:
        further["corrected_labels"] = labels
    # Record the servers of the foreign tools that solvers may call. Keep the servers of earlier commands, because
    # earlier answers may have used them.
    servers: list[Json] = [*old_manifest.get("mcp", ())]
    servers += [server for server in run.tools.foreign.as_json(run.tools.tools) if server not in servers]
    if servers:
        further["mcp"] = servers
    # Record plug-ins so that scoring finds them, including tools, whose rules judge tool output.
    used = [("hybrid.benchmarks", run.benchmark.card.name), *((TOOLS, name) for name in run.tools.tools)]
    words = [word_of(name) for name in run.solvers if word_of(name) not in run.config.objects.solvers]
    used += [(package_of_solver(word), word) for word in words]
    outside: dict[str, Json] = {**old_manifest.get(PLUGINS, {}), **origin_facts(used)}
    for name, tool in run.tools.tools.items():
        if isinstance(facts := outside.get(f"{TOOLS}/{name}"), dict):
            facts["routes"] = sorted(tool.rules)
    if outside:
        further[PLUGINS] = outside
    return further


def _connections(run: ResolvedRun, old_connections: Sequence[Json]) -> list[Json]:
    """Return how the models' servers were reached, without duplicates."""
    used = [*old_connections]
    for model in (run.resources.model, run.resources.captioner):
        now = dict(model.connection()) if model is not None else {}
        if now and model is run.resources.model and (settings := run.config.model_settings).batch:
            now["batch"] = {"wait": settings.batch_wait, "tail": settings.batch_tail}
        if now and now not in used:
            used.append(now)
    return used


def _facts(run: ResolvedRun, name: str, solver: Solver) -> dict[str, Json]:
    """Return a solver's entry in the manifest: its texts, its tools, and how it shows images."""
    tools = run.tools.metadata(name)
    facts: dict[str, Json] = {"texts": text_hash(solver.texts), "tools": tools}
    word = word_of(name)
    handed_in = word in run.config.objects.solvers
    code = object_code(*solver.written_as) if handed_in else code_hash_of_plugin(package_of_solver(word), word)
    if code is not None:
        # The role is saved because the solver may be missing when the run is compared.
        facts |= {"code": code, "role": solver.role}
    if solver.needs_model:
        facts["image_labels"] = run.config.image_labels or solver.names_images
    if run.shows_captions(solver) and run.captioner is not None:
        facts["captions"] = captions_fact(run.captioner)
    if solver.believes_cards:
        facts["reliability"] = run.tools.reliability(name)
    joint = run.resources.joint
    # How pictures are joined is recorded only if it differs from the default, so that default runs keep their facts.
    if solver.needs_model and (solver.images or run.config.images) == "concat" and joint != OUR_JOINT:
        facts["joint"] = {"gap_px": joint.gap_px, "rgb": list(joint.rgb), "at": joint.at}
    # The order of rules is recorded only if tools share a route, so that other runs keep the facts that they had before
    # the option existed.
    if order := [tool for tool in run.tools.rule_order if tool in tools]:
        facts["rule_order"] = list(order)
    if unchecked := [tool for tool in run.tools.unchecked(run.config.service) if tool in tools]:
        facts["unchecked_weights"] = list(unchecked)
    return facts | run.tools.computed_in(name, run.config.service)


def _labels(run: ResolvedRun) -> list[Json]:
    """Return the labels shown next to every number of this run."""
    labels: list[Json] = list(run.opened)
    if run.mounted.is_sample:
        labels.append("generated questions")
    if run.resources.model is not None and run.resources.model.metadata().get("demonstration"):
        labels.append(f"{run.resources.model.name} demonstration model")
    if run.config.tool_output != "real":
        labels.append(f"tool output {run.config.tool_output}")
    if run.config.context is not None:
        labels.append("supplied text" if not run.without_text else "supplied text, some questions without")
    return labels


@cache
def _version(package: str) -> str | None:
    """Return the installed version; None if not installed, as for torch without the extra `local`."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
