"""The facts about the runs at the top of a benchmark's page.

facts(solvers)          # Fact("model", "openai:gpt-4o (temperature 0.0)"), ...
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from hybrid.core.errors import DataError
from hybrid.log.folder import RunFolder
from hybrid.plugins.registry import load
from hybrid.report.payload import Fact, SolverCard
from hybrid.scoring.groups import control, model_of, role
from hybrid.scoring.model_settings import settings_of
from hybrid.scoring.score import Scored

# Keys of a model's settings that are hashes of its files, omitted for readers.
HASHES = ("weights_sha256", "configuration_sha256")
RUN = "run"  # The fact that names the run; its value differs from run to run

# Facts that are copied from the manifest, with their keys there.
SAID = {"protocol": "protocol", "tool output": "tool_output", "findings shown as": "show", "images": "images"}


def card(scored: Scored) -> SolverCard:
    """Return the facts about a solver that the pages show."""
    return SolverCard(
        scored.solver,
        role(scored),
        model=model_of(scored),
        control=control(scored),
        n=len(scored.scores),
        failed=scored.failed,
        open=scored.open,
    )


def facts(solvers: Sequence[Scored]) -> tuple[Fact, ...]:
    """Return data, model, settings, tools, controls, dates and version; differing facts name their run."""
    runs: dict[object, list[Scored]] = {}
    for solver in solvers:
        runs.setdefault(solver.folder.path.resolve() if solver.folder else solver.solver, []).append(solver)
    by_run = {}
    for members in runs.values():
        first = members[0]
        if first.folder is None:
            # These predictions were scored directly from their file.
            origin = " ".join(first.origin.lines()) if first.origin else ""
            name, record = first.solver, {"data": str(first.data), "predictions": origin}
        else:
            run_details = run_facts(first.folder, [member.recorded for member in members])
            name, record = first.folder.path.as_posix(), {fact.name: fact.value for fact in run_details}
        counts = {member.solver: len(member.scores) for member in members}
        same = len(set(counts.values())) == 1
        record["questions"] = str(len(first.scores)) if same else ", ".join(f"{name} {n}" for name, n in counts.items())
        by_run[name] = {fact: value for fact, value in record.items() if value}
    common_facts: list[Fact] = []
    for name in dict.fromkeys(name for record in by_run.values() for name in record):
        values = {origin: record.get(name, "") for origin, record in by_run.items()}
        if name == RUN:
            common_facts.append(Fact("runs" if len(values) > 1 else RUN, ", ".join(filter(None, values.values()))))
        elif len(set(values.values())) == 1:
            common_facts.append(Fact(name, next(iter(values.values()))))
        else:
            common_facts += [Fact(f"{name} ({origin})", value) for origin, value in values.items() if value]
    return tuple(common_facts)


def run_facts(folder: RunFolder, solvers: Sequence[str] = ()) -> tuple[Fact, ...]:
    """Return the manifest's facts about a run and these solvers."""
    manifest = folder.manifest
    identity: Mapping[str, Any] = manifest["identity"]
    # The tools of the solvers, each with its backends: `depth classical:cues-2`.
    solver_records, backends = manifest.get("solvers", {}), dict[str, dict[str, None]]()
    for name in solvers or solver_records:
        for tool, facts_of_tool in solver_records.get(name, {}).get("tools", {}).items():
            backends.setdefault(tool, {})[str(facts_of_tool.get("backend", ""))] = None
    record: dict[str, str] = {
        "benchmark": load("hybrid.benchmarks", identity["benchmark"]).card.title,
        RUN: folder.path.as_posix(),
        "model": _describe_record(settings_of(identity), "model"),
        "data": _describe_record(identity.get("data"), "kind"),
        "split": str(identity.get("split", "")),
        "settings": _join_settings(identity.get("settings", {})),
        **{name: str(identity.get(key, "")) for name, key in SAID.items()},
        "limits": _join_settings(identity.get("limits", {})),
        "tools": ", ".join(
            f"{tool} {' or '.join(backend_names)}".strip() for tool, backend_names in sorted(backends.items())
        ),
        "imported": _describe_record(identity.get("imported"), "name"),
        "asked": _asked_when(folder, solvers),
        "hybrid": str(identity.get("hybrid", "")),
    }
    return tuple(Fact(name, value) for name, value in record.items() if value)


def _describe_record(record: Mapping[str, Any] | None, name: str) -> str:
    """Return, for example, `embedded (temperature 0.0, seed 0)`: the value of `name`, then the other settings."""
    record = record or {}
    left_out = (name, *HASHES)
    rest = {key: value for key, value in record.items() if key not in left_out and not isinstance(value, Mapping)}
    return f"{record.get(name, '')} ({_join_settings(rest)})" if rest else str(record.get(name, ""))


def _join_settings(record: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in record.items() if value is not None)


def _asked_when(folder: RunFolder, solvers: Sequence[str]) -> str:
    """Return when the first and the last answers were requested, in UTC; empty if not recorded."""
    times: list[float] = []
    for name in solvers:
        attempts = folder.recorded(name).without_steps
        ids = tuple(attempts)
        try:
            started = [attempts[identity].started for identity in (*ids[:1], *ids[-1:])]
        except DataError:
            continue
        times += [time for time in started if time is not None]
    if not times:
        return ""
    first, last = (datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M") for time in (min(times), max(times)))
    return f"{first} UTC" if first == last else f"{first} to {last} UTC"
