"""Shared code of the commands in `bench`: options, processes and their cost, rows as text and JSON.

given = options(__doc__, {"--questions": 1000, "--solver": ("mllm", "controller"), "--json": Path})
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

# A frozen dataclass.
Row = TypeVar("Row", bound=Any)
Case = TypeVar("Case")

SAMPLE_S = 0.1


HELP: Mapping[str, str] = tomllib.loads(Path(__file__).with_name("options.toml").read_text())


def parser(doc: str | None, flags: Mapping[str, Any]) -> argparse.ArgumentParser:
    """Build the command line of a command with the help text `doc`; options.toml has a line for each option.

    The value of a flag in the mapping defines how it is parsed: a default also sets the type; a type means no default;
    False is a switch; a tuple lists the choices, the default first; a list of a type or of choices may be given several
    times; and `...` is a required path. A name that ends in `...` takes several words; a mapping is passed to argparse.
    """
    argument_parser = argparse.ArgumentParser(description=doc, formatter_class=_Formatter)
    for flag, value in flags.items():
        mapping: dict[str, Any]
        match value:
            case dict():
                mapping = value
            case False:
                mapping = {"action": "store_true"}
            case type():
                mapping = {"type": value}
            case tuple():
                mapping = {"choices": tuple(item for item in value if item is not None), "default": value[0]}
            case [type() as one]:
                mapping = {"type": one, "action": "append"}
            case list():
                mapping = {"choices": value, "action": "append"}
            case _ if value is ...:
                mapping = {"type": Path, "required": True}
            case _:
                mapping = {"type": type(value), "default": value}
        if flag.endswith("..."):
            mapping = {"nargs": "+" if flag.startswith("-") else "*", **mapping}
            mapping |= {"default": value[:1]} if isinstance(value, tuple) else {}
        names = flag.removesuffix("...").split()
        variant = HELP[names[-1].removeprefix("--")].replace("%", "%%")
        argument_parser.add_argument(*names, **{"help": variant, **mapping})
    return argument_parser


class _Formatter(argparse.RawDescriptionHelpFormatter, argparse.ArgumentDefaultsHelpFormatter):
    """Keeps the help text as written in the file, and shows defaults if there are any."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return action.help if action.default in (None, False, [], ()) else super()._get_help_string(action)


def options(doc: str | None, flags: Mapping[str, Any], words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the flags of `parser`."""
    return parser(doc, flags).parse_args(words)


def write_json(path: Path | None, numbers: object) -> None:
    """Write numbers, including dataclasses, as JSON if a file was requested."""
    if path is not None:
        path.write_text(json.dumps(numbers, indent=1, default=asdict) + "\n")


def table(rows: Sequence[Any]) -> str:
    """Format dataclasses as a text table with one column per field."""
    names = [field.name for field in fields(rows[0])] if rows else []
    values = [[getattr(row, name) for name in names] for row in rows]
    cells = [names, *([f"{item:,.2f}" if isinstance(item, float) else str(item) for item in line] for line in values)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)


def turns(cases: Sequence[Case], repeat: int, once: Callable[[Case], Row]) -> list[Row]:
    """Run all cases in turn, `repeat` times over; each row is printed on stderr immediately."""
    rows = []
    for _ in range(repeat):
        for case in cases:
            rows.append(once(case))
            print(rows[-1], file=sys.stderr, flush=True)
    return rows


def medians(rows: Iterable[Row], *by: str) -> list[Row]:
    """Group rows that agree in the fields `by`, and return a row per group with the medians of the other fields."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(getattr(row, name) for name in by), []).append(row)
    others = [field.name for field in fields(next(iter(groups.values()))[0]) if field.name not in by] if groups else []
    return [
        replace(group[0], **{name: statistics.median(getattr(row, name) for row in group) for name in others})
        for group in groups.values()
    ]


@dataclass(frozen=True)
class FinishedProcess:
    """A process that has ended, or was killed."""

    # Start in seconds since the epoch, like `killed`.
    started: float
    killed: float | None
    wall_s: float
    # CPU time of the process and of all its descendants that were waited for.
    cpu_s: float
    # Resident memory of the largest process: the command's, or a descendant's that was waited for.
    largest_mb: float
    # The highest memory that each function in `looks` has measured.
    peaks_mb: tuple[float, ...]


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return a client's environment: a separate home, an invalid key, no proxy, and compiled modules that are kept.

    Without kept modules, each start compiles every module, which takes seconds.
    """
    dropped = {name for name in os.environ if name.lower().endswith("_proxy") or name == "PYTHONDONTWRITEBYTECODE"}
    plain = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**plain, "HYBRID_HOME": str(home), "OPENAI_API_KEY": "not-a-key", **more}


def family(root: int) -> dict[int, float]:
    """Return a process and its descendants, with the CPU time of each, including children that it waited for."""
    parents, spent = dict[int, int](), dict[int, float]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            pid = int(entry.name)
            parents[pid], spent[pid] = int(words[1]), sum(map(int, words[11:15])) / os.sysconf("SC_CLK_TCK")
    result, waiting = dict[int, float](), [root]
    while waiting:
        value = waiting.pop()
        result[value] = spent.get(value, 0.0)
        waiting += [child for child, parent in parents.items() if parent == value and child not in result]
    return result


def resident_mb(root: int) -> float:
    """Return the resident memory of a process and its descendants, in MB; 0 if it has ended."""
    pages = 0
    for item in family(root):
        try:
            pages += int(Path(f"/proc/{item}/statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def used_mb(root: int) -> float:
    """Return the memory of a process and its descendants, in MB, counting shared file pages once; 0 if it has ended."""
    own_bytes, shared = 0, dict[tuple[str, str, str], int]()
    for item in family(root):
        try:
            lines = Path(f"/proc/{item}/smaps").read_text().splitlines()
        except OSError:
            continue
        place, resident = ("", "", ""), 0
        for line in lines:
            name, *rest = line.split()
            match name:
                case "Rss:":
                    resident = int(rest[0])
                case "Anonymous:":
                    own_bytes += int(rest[0])
                    shared[place] = max(shared.get(place, 0), resident - int(rest[0]))
                case _ if not name.endswith(":"):
                    _, offset, device, inode = rest[:4]
                    place = device, inode, offset
    return (own_bytes + sum(shared.values())) * 1024 / 1e6


def measured(
    words: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    *,
    looks: Sequence[Callable[[int], float]] = (),
    kill_when: Callable[[], bool] | None = None,
    out: Path | None = None,
    cwd: Path | None = None,
) -> FinishedProcess:
    """Run a command to its end. Raises `SystemExit` if it fails.

    Args:
        words: the command.
        environment: its environment.
        log: file to which its messages are appended.
        looks: functions from its process id to a memory in MB, called ten times a second.
        kill_when: called repeatedly, and waits by itself; if it returns true, the command is killed.
        out: file for its output; by default the log.
        cwd: its working directory.
    """
    start, started = time.time(), time.monotonic()
    with log.open("ab") as messages, (out or log).open("wb" if out else "ab") as output:
        process = subprocess.Popen(  # noqa: S603
            words, env=dict(environment), cwd=cwd, stdout=output, stderr=messages, start_new_session=True
        )
    peaks, over = [0.0] * len(looks), threading.Event()
    killed: list[tuple[float, float, float]] = []

    def watch() -> None:
        while not over.wait(0.0 if kill_when else SAMPLE_S):
            peaks[:] = [max(peak, look(process.pid)) for peak, look in zip(peaks, looks, strict=True)]
            if kill_when is not None and kill_when() and not over.is_set():
                wall, spent = time.monotonic() - started, sum(family(process.pid).values())
                # The process may have ended since the check.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                    killed.append((time.time(), wall, spent))
                return

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    finally:
        wall = time.monotonic() - started
        over.set()
        watcher.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    largest = usage.ru_maxrss / 1024
    if killed:
        return FinishedProcess(start, killed[0][0], *killed[0][1:], largest, tuple(peaks))
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {process.returncode}:\n{log.read_text()[-3000:]}")
    return FinishedProcess(start, None, wall, usage.ru_utime + usage.ru_stime, largest, tuple(peaks))
