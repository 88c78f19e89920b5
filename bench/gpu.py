"""Measurements on a GPU, one process per step, collected in one JSON file, and their tables in Markdown.

bash bench/gpu.sh                                          # all steps, each within its limit
python -m bench.gpu --json gpu.json --device cuda speed --network depth_anything_v2_small
python -m bench.gpu --json bench/results/gpu.json page     # the tables of bench/results/gpu.md
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench._frame import parser
from bench._networks import NETWORKS

# For each tool, the network, and the BLINK task whose questions call it.
BUSY = {
    "depth": ("depth_anything_v2_small", "Relative_Depth"),
    "correspondence": ("aliked_lightglue", "Visual_Correspondence"),
    "detection": ("owlv2_base", "Counting"),
}
# The network of correspondence for `--tiny`: LightGlue has one size.
TINY_MATCHER = "efficientloftr"
TIME_UP = 124
# A pytest line about a finished test, from several processes or one.
ENDED = re.compile(
    r"^(?:\[gw\d+\] \[ *\d+%\] (?P<first>PASSED|FAILED|SKIPPED|ERROR) )?(?P<name>tests/\S+::\S+)"
    r"(?(first)| (?P<last>PASSED|FAILED|SKIPPED|ERROR))",
    re.MULTILINE,
)
# Seconds between two samples of the GPU.
LOOK_S = 0.05
PACKAGES = ("torch", "transformers", "timm", "kornia", "numpy")
REAL_REQUESTS, TINY_REQUESTS = 64, 4
NO_CARD = (
    "**No card has been seen.** `bash bench/gpu.sh` measures one within eight minutes, `uv run pytest -m gpu` tests it."
)
Row = Mapping[str, Any]


@dataclass
class GpuSamples:
    """Samples of the GPU during a measurement: busy share in percent, bytes in use; empty without NVML."""

    busy: list[float] = field(default_factory=list)
    used: list[int] = field(default_factory=list)
    bytes_at_start: int = 0


@contextmanager
def watched(device: str) -> Iterator[GpuSamples]:
    """Sample the GPU every `LOOK_S` seconds."""
    looks, event = GpuSamples(), threading.Event()
    try:
        import pynvml

        pynvml.nvmlInit()
        card = pynvml.nvmlDeviceGetHandleByIndex(int(device.partition(":")[2] or 0))
        looks.bytes_at_start = int(pynvml.nvmlDeviceGetMemoryInfo(card).used)
    except Exception as error:
        print(f"no share of time: {type(error).__name__}: {error}", file=sys.stderr)
        yield looks
        return

    def look() -> None:
        while not event.wait(LOOK_S):
            looks.busy.append(float(pynvml.nvmlDeviceGetUtilizationRates(card).gpu))
            looks.used.append(int(pynvml.nvmlDeviceGetMemoryInfo(card).used))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield looks
    finally:
        event.set()
        thread.join()


def machine(options: argparse.Namespace) -> Row:
    """Return GPU, date and versions."""
    from bench._throughput import machine as named

    versions = {"python": sys.version.split()[0], **{package: version(package) for package in PACKAGES}}
    return {"name": named(options.device), "device": options.device, "date": str(datetime.now(UTC).date()), **versions}


def tests(other_options: argparse.Namespace) -> Row:
    """Return the outcomes of the tests marked `gpu` on the device; at the time limit, of those that have finished."""
    root = Path(__file__).resolve().parents[1]
    options = ["-vvv", "-rN", "--tb=short", "-m", "gpu", "-p", "no:cacheprovider", "-p", "no:benchmark"]
    options += ["-n", "auto", "--maxprocesses", "8", "--dist", "loadgroup", "tests"]
    command = [sys.executable, "-m", "pytest", *options]
    started, environment = time.monotonic(), {**os.environ, "HYBRID_TEST_DEVICE": other_options.device}
    with tempfile.TemporaryFile("w+") as message:
        try:
            code = subprocess.run(  # noqa: S603 - this interpreter and the project's tests
                command,
                cwd=root,
                env=environment,
                stdout=message,
                stderr=message,
                check=False,
                timeout=other_options.seconds,
            ).returncode
        except subprocess.TimeoutExpired:
            code = TIME_UP
        message.seek(0)
        text = message.read()
    print(text[-50_000:])
    rows = [(match["name"], match["first"] or match["last"]) for match in ENDED.finditer(text)]
    counts = Counter(outcome.lower() for _, outcome in rows)
    failed = sorted({name for name, outcome in rows if outcome in ("FAILED", "ERROR")})
    return {"seconds": round(time.monotonic() - started, 1), "code": code, **counts, "names": failed}


def speed(options: argparse.Namespace, network: str) -> Row:
    """Compare the service with a bare loop over one network."""
    import torch

    from bench._throughput import Load, measure

    cuda = options.device.startswith("cuda")
    if cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    requests = TINY_REQUESTS if options.tiny else REAL_REQUESTS
    measurement = measure(
        network, Load((), options.device, not options.tiny, requests, 1 + cuda, options.dtype, options.compiled)
    )
    row = {"network": network, "dtype": options.dtype, "compiled": options.compiled}
    row |= {name: getattr(measurement, name) for name in ("requests", "bare", "service", "load_s")}
    peak = torch.cuda.max_memory_allocated() / 1e6 if cuda else None
    return {
        **row,
        "ratio": measurement.service / measurement.bare,
        "pass": statistics.mean(measurement.passes),
        "peak_mb": peak,
    }


def reduced(options: argparse.Namespace, network: str) -> Row:
    """Return the decisions of one network that change at lower precision."""
    from bench._reduced import Comparison, compared

    items = 2 if options.tiny else 16
    (row,) = compared(network, Comparison((), (options.dtype,), options.device, not options.tiny, items, 2000))
    return {"network": network, **asdict(row)}


def busy(options: argparse.Namespace) -> Row:
    """Measure the GPU's busy time and the CPU time of a run with depth, correspondence and detection.

    Cached outputs of weight-free tools are reused: to measure those tools, set `HYBRID_HOME` to an empty folder.
    """
    from hybrid.config import RunConfig, ServiceOptions

    limit = options.questions or (3 if options.tiny else 200)
    with tempfile.TemporaryDirectory() as scratch:
        weights = {}
        for tool, (published, _) in BUSY.items():
            network = TINY_MATCHER if options.tiny and tool == "correspondence" else published
            folder = Path(scratch) / tool
            folder.mkdir()
            NETWORKS[network].build(folder, not options.tiny, options.device)
            weights[tool] = str(folder)
        service = ServiceOptions("auto", weights, options.device, unchecked=True, timeout_s=600.0, isolated=True)
        tasks = tuple(task for _, task in BUSY.values())
        config = RunConfig(
            "blink", solvers=("specialist",), tasks=tasks, data="sample", limit=limit, service=service, concurrency=64
        )
        return _run(config, options.device, Path(scratch))


def study(options: argparse.Namespace) -> Row:
    """Run a full study with the embedded model on the device."""
    from hybrid.config import ModelSettings, RunConfig, ServiceOptions

    config = RunConfig(
        "blink",
        model="embedded",
        solvers=("controller", "mllm", "specialist"),
        data="sample",
        limit=2 if options.tiny else 60,
        service=ServiceOptions(device=options.device, isolated=True),
        model_settings=ModelSettings(device=options.device),
    )
    with tempfile.TemporaryDirectory() as scratch:
        return _run(config, options.device, Path(scratch))


def _run(config: Any, device: str, scratch: Path) -> Row:
    import asyncio
    from dataclasses import replace

    from hybrid.running.resolve import prepare
    from hybrid.running.run import ask_run

    # Generate the sample before the clock starts.
    plan = prepare(replace(config, out=scratch / "run"))
    started, cpu_started = time.monotonic(), _cpu_s()

    def progress(solver: str, count: int, total: int) -> None:
        if count % 10 == 0 or count == total:
            print(f"{solver}: {count} of {total} after {time.monotonic() - started:.1f} s", file=sys.stderr, flush=True)

    with watched(device) as looks:
        failures = asyncio.run(ask_run(plan, progress))
    for failure in failures:
        print(f"{failure.id}: {failure.error}", file=sys.stderr)
    return {
        "questions": len(plan.folder.attempts(config.solvers[0])),
        "failed": len(failures),
        "solvers": list(config.solvers),
        "seconds": round(time.monotonic() - started, 1),
        "cpu_s": round(_cpu_s() - cpu_started, 1),
        "busy": statistics.mean(looks.busy) / 100 if looks.busy else None,
        "working": statistics.mean(look > 0 for look in looks.busy) if looks.busy else None,
        "held_mb": (max(looks.used) - looks.bytes_at_start) / 1e6 if looks.used else None,
    }


def _cpu_s() -> float:
    """Return the CPU time, user and system, of this process and of its processes that have ended, in seconds."""
    import resource  # not on Windows

    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


STEPS: Mapping[str, Callable[..., Row]] = {
    step.__name__: step for step in (machine, tests, speed, reduced, busy, study)
}
# Steps with a row per network.
LISTS = frozenset({"speed", "reduced"})


def read_measurements(path: Path) -> dict[str, Any]:
    """Read the measurements so far."""
    return json.loads(path.read_text()) if path.exists() else {}


def add(path: Path, step: str, row: Row) -> None:
    """Add the measurement of a step to the others."""
    result = read_measurements(path)
    result[step] = [*result.get(step, []), row] if step in LISTS else row
    path.write_text(json.dumps(result, indent=1) + "\n")


def _format_value(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def page(results: Mapping[str, Any]) -> str:
    """Return the measurements as Markdown, with GPU, date, versions and command."""
    if not results:
        return NO_CARD
    of, tested = results["machine"], results.get("tests", {})
    versions = ", ".join(f"{name} {of[name]}" for name in ("torch", "transformers", "python"))
    lines = [f"{of['name']}, {of['date']}, {versions}: `bash bench/gpu.sh`."]
    if tested:
        words = (f"{tested[word]} {word}" for word in ("passed", "failed", "error", "skipped") if tested.get(word))
        cut = " until the time was up" if tested["code"] == TIME_UP else ""
        lines += ["", f"Tests marked `gpu`: {', '.join(words)}{cut}."]
    lines += ["", "| network | numbers | bare images/s | service | ratio | a pass | load s | MB |"]
    lines += ["|---|---|---:|---:|---:|---:|---:|---:|"]
    for item in results.get("speed", []):
        numbers = f"{item['dtype']}{' compiled' if item['compiled'] else ''}"
        rates = (f"{item['bare']:.3g}", f"{item['service']:.3g}", f"{item['ratio']:.2f}", f"{item['pass']:.1f}")
        cells = (
            NETWORKS[item["network"]].title,
            numbers,
            *rates,
            f"{item['load_s']:.1f}",
            _format_value(item["peak_mb"], ".0f"),
        )
        lines.append(f"| {' | '.join(cells)} |")
    if results.get("reduced"):
        lines += ["", "| network | numbers | weights | decisions changed | largest difference |"]
        lines += ["|---|---|---|---:|---:|"]
    for item in results.get("reduced", []):
        cells = (NETWORKS[item["network"]].title, item["dtype"], item["weights"])
        largest = _format_value(item["largest"] if item["of"] else None, ".2g")
        lines.append(f"| {' | '.join(cells)} | {item['changed']} of {item['questions']} | {largest} |")
    for step, what in (("busy", "with depth, correspondence and detection"), ("study", "with the embedded model")):
        if item := results.get(step):
            busy_share, held = _format_value(item["busy"], ".0%"), _format_value(item["held_mb"], ".0f")
            gpu = f"the GPU was busy {busy_share} of the time and held {held} MB"
            failed = f" ({item['failed']} could not be finished)" if item.get("failed") else ""
            cpu = f" and {item['cpu_s']} s of CPU time" if "cpu_s" in item else ""
            lines += ["", f"{item['questions']} questions{failed} {what} took {item['seconds']} s{cpu}; {gpu}."]
    return "\n".join(lines)


def main(words: list[str] | None = None) -> None:
    """Measure one step, or print the tables."""
    flags = {"step": (*STEPS, "page"), "--json": ..., "--device": "cuda", "--tiny": False, "--compiled": False}
    # `--seconds` is the time limit of the tests. `--questions` is the number of questions of `busy`; 0 means 200,
    # or 3 with `--tiny`.
    flags |= {"--dtype": ("auto", "float32", "bfloat16", "float16"), "--seconds": 140.0, "--questions": 0}
    command = parser(__doc__, {**flags, "--network...": (None, *NETWORKS)})
    arguments = command.parse_args(words)
    if arguments.step == "page":
        print(page(read_measurements(arguments.json)))
        return
    if arguments.step in LISTS and arguments.network[0] is None:
        command.error(f"{arguments.step}: --network says which")
    for network in arguments.network:
        row = STEPS[arguments.step](arguments, network) if arguments.step in LISTS else STEPS[arguments.step](arguments)
        # The row is written immediately, so that a later time limit does not lose it.
        add(arguments.json, arguments.step, row)
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
    # Everything is written; threads of libraries that are still running could only abort the process.
    sys.stdout.flush()
    os._exit(0)
