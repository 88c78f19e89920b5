"""Measure every tool on generated questions (accuracy, time, backend), and how fast networks are served.

    uv run python bench/tools.py [--items 40] [--seed 2000] [--tool NAME]... [--weights TOOL=DIR_OR_ID]...
    uv run python bench/tools.py --device cuda --backend learned --weights random [--network NAME]... [--requests 200]
    uv run python bench/tools.py --dtypes bfloat16 --items 8 [--network NAME]...

The first table has a row per tool (`_known_questions.py`): all questions at once, an empty cache, a seed that no
constant was set on. `--weights random` prints the second table instead: the tool service compared with a bare loop
(`_throughput.py`), on networks of real size with random weights, which only measure speed. `--device cuda` without it
prints both. `--dtypes` prints the changes at lower precision (`_reduced.py`).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# If run as a file (`python bench/tools.py`), its folder comes first on the path, and this file would be `tools`.
HERE = Path(__file__).resolve().parent
sys.path[:] = [str(HERE.parent), *(entry for entry in sys.path if Path(entry or ".").resolve() != HERE)]

from bench import _reduced, _throughput
from bench._frame import parser
from bench._known_questions import KNOWN, Question
from bench._networks import NETWORKS
from hybrid.config import ServiceOptions
from hybrid.core.errors import NoBackend, ToolError, UsageError, WeightsError
from hybrid.core.images import ImageStore
from hybrid.core.types import Finding, ImageRef
from hybrid.display.tables import Column, Table, accuracy, as_text, bounds, share
from hybrid.plugins.registry import load, names
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import CachedTools
from hybrid.stats import wilson
from hybrid.tool import Tool

RANDOM = "random"
# Exit code of a usage error, as in `hybrid`.
USAGE = 2


@dataclass(frozen=True)
class Options:
    """Parameters of the measurement of the tools."""

    tools: tuple[str, ...]
    items: int
    seed: int
    backend: Any
    device: str
    weights: Mapping[str, str]


async def ask(service: CachedTools, tool: Tool, question: Question) -> Finding | None:
    """Return the tool's output; None if it cannot answer. Raises `NoBackend` without a backend."""
    refs = [ImageRef(f"img:{place}", service.store.put(data, "made")) for place, data in enumerate(question.files, 1)]
    try:
        return await service.call(tool, tool.parse(question.args), refs)
    except NoBackend:
        raise
    except ToolError as error:
        print(f"{tool.card.name}: {error}", file=sys.stderr)
        return None


async def measure(service: CachedTools, name: str, options: Options) -> tuple[str, ...]:
    """Return the row of one tool."""
    tool: Tool = load("tools", name)
    if name not in KNOWN:
        return (name, "-", "-", "-", "-", "-", "no questions are generated for it")
    expected_values = KNOWN[name]
    try:
        # Excludes loading and first use from the time of a question.
        first = await ask(service, tool, expected_values.make(options.items, options.seed))
    except (NoBackend, WeightsError) as error:
        # The last clause of the message states the fix; the service's own messages name the missing part.
        return (name, "-", "-", "-", "-", "-", str(error).rsplit("; ", maxsplit=1)[-1])
    questions = [expected_values.make(index, options.seed) for index in range(options.items)]
    started = time.perf_counter()
    findings = await asyncio.gather(*(ask(service, tool, question) for question in questions))
    text = f"{1000 * (time.perf_counter() - started) / len(questions):.0f} ms"
    backend = next((finding.backend for finding in (first, *findings) if finding is not None), "-")
    if expected_values.rule is None:
        return (name, backend, "-", "-", "-", text, "not known for a generated picture; only time is measured")
    verdicts = (
        None if finding is None else question.right(finding, service.store)
        for question, finding in zip(questions, findings, strict=True)
    )
    decided = [verdict for verdict in verdicts if verdict is not None]
    right = share(len(decided), len(questions))
    if not decided:
        return (name, backend, right, "-", "-", text, expected_values.rule)
    limits = bounds(wilson(sum(decided), len(decided)))
    return (name, backend, right, accuracy(sum(decided) / len(decided)), limits, text, expected_values.rule)


async def rows(options: Options) -> list[tuple[str, ...]]:
    """Return a row for each tool, in the given order."""
    results = []
    for name in options.tools:
        with tempfile.TemporaryDirectory() as folder:
            # A separate cache, because cached outputs take no time.
            store = ImageStore(Path(folder) / "images")
            choice = ServiceOptions(options.backend, options.weights, options.device)
            service = CachedTools(store, FindingCache(Path(folder) / "findings", store), choice)
            try:
                results.append(await measure(service, name, options))
            finally:
                service.close()
        print(f"{name}: done", file=sys.stderr, flush=True)
    return results


def accuracies(options: Options) -> Table:
    """Return the table of all tools."""
    heads = ("tool", "backend", "decided", "right", "95 %", "a question", "what is right")
    columns = tuple(Column(head, "left" if place in {0, 1, 6} else "right") for place, head in enumerate(heads))
    machine = _throughput.machine_and_date(options.device)
    title = f"{options.items} generated questions a tool, seed {options.seed}, on {machine}"
    return Table(title, columns, tuple(asyncio.run(rows(options))))


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of the command line. Raises `SystemExit` with code 2 for an unknown one."""
    flags = {"--items": 40, "--seed": 2000, "--backend": ("auto", "learned", "classical"), "--device": "cpu"}
    flags |= {"--tool": list(names("tools")), "--network": list(NETWORKS), "--dtypes": ["bfloat16", "float16"]}
    weights = {"action": "append", "default": [], "metavar": "TOOL=DIR_OR_ID|random"}
    flags |= {"--weights": weights, "--size": ("real", "tiny"), "--requests": 200, "--repeats": 5}
    command = parser(__doc__, flags)
    arguments = command.parse_args(words)
    if min(arguments.items, arguments.requests, arguments.repeats) < 1:
        command.error("--items, --requests and --repeats must be at least 1")
    if bad := [pair for pair in arguments.weights if pair != RANDOM and "=" not in pair]:
        command.error(f"--weights {bad[0]}: write TOOL=DIR_OR_ID, or random")
    return arguments


def quiet() -> None:
    """Hide progress bars of loaded checkpoints, and warnings about what random weights cannot do."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()


def main(words: Sequence[str] | None = None) -> None:
    """Print the tables."""
    result = parsed(words)
    try:
        # Checked before anything is loaded, because an error about a missing device should not come an hour later.
        _throughput.machine(result.device)
        quiet()
        if result.dtypes:
            items, real = tuple(result.network or NETWORKS), result.size == "real"
            setting = (items, tuple(result.dtypes), result.device, real, result.items, result.seed)
            print(as_text(_reduced.table(_reduced.Comparison(*setting))))
            return
        random_only = result.weights == [RANDOM]
        if not random_only:
            weights = dict(pair.split("=", 1) for pair in result.weights if pair != RANDOM)
            items = tuple(result.tool or names("tools"))
            options = Options(items, result.items, result.seed, result.backend, result.device, weights)
            print(as_text(accuracies(options)))
        if random_only or result.device != "cpu":
            networks = tuple(result.network or NETWORKS)
            load_ = _throughput.Load(networks, result.device, result.size == "real", result.requests, result.repeats)
            print(as_text(_throughput.table(load_)))
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(USAGE) from None


if __name__ == "__main__":
    main()
