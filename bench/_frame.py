"""The frame of a command of `bench`: its options, processes and what they cost, rows as text and JSON.

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
    """The command line of a command, which `doc` explains; options.toml has a line for each option.

    What a flag maps to says how it is read: a default gives its type, a type has none, False is a switch, a tuple holds
    the choices, of which the first is the default, a list a type or choices that may be given several times, and `...`
    is a path that must be given. A name that ends in `...` takes several words, a mapping is handed to argparse.
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
    """The text as it stands in the file, and defaults where there are any."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return action.help if action.default in (None, False, [], ()) else super()._get_help_string(action)


def options(doc: str | None, flags: Mapping[str, Any], words: Sequence[str] | None = None) -> argparse.Namespace:
    """What was given of the flags of `parser`."""
    return parser(doc, flags).parse_args(words)


def write_json(path: Path | None, numbers: object) -> None:
    """Write numbers, dataclasses among them, where a file was asked for."""
    if path is not None:
        path.write_text(json.dumps(numbers, indent=1, default=asdict) + "\n")


def table(rows: Sequence[Any]) -> str:
    """Dataclasses as text, a column a field."""
    names = [field.name for field in fields(rows[0])] if rows else []
    values = [[getattr(row, name) for name in names] for row in rows]
    cells = [names, *([f"{item:,.2f}" if isinstance(item, float) else str(item) for item in line] for line in values)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)


def turns(cases: Sequence[Case], repeat: int, once: Callable[[Case], Row]) -> list[Row]:
    """Every case in turn, `repeat` times over; each row is shown on stderr at once."""
    rows = []
    for _ in range(repeat):
        for case in cases:
            rows.append(once(case))
            print(rows[-1], file=sys.stderr, flush=True)
    return rows


def medians(rows: Iterable[Row], *by: str) -> list[Row]:
    """For all rows that have these fields in common one row with the medians of the other fields."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(getattr(row, name) for name in by), []).append(row)
    others = [field.name for field in fields(next(iter(groups.values()))[0]) if field.name not in by] if groups else []
    return [
        replace(group[0], **{name: statistics.median(getattr(row, name) for row in group) for name in others})
        for group in groups.values()
    ]


@dataclass(frozen=True)
class Ended:
    """A process that has ended, or was killed at a moment."""

    # Seconds since the epoch, as `killed`.
    began: float
    killed: float | None
    wall_s: float
    # Processor time of the process and of all that it started and waited for.
    cpu_s: float
    # Resident memory of the largest of these processes.
    largest_mb: float
    # The most that each of the looks at its memory has seen.
    peaks_mb: tuple[float, ...]


def environment(home: Path, **more: str) -> dict[str, str]:
    """A client's environment: its own home, a key that is none, no proxy in the way."""
    plain = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    return {**plain, "HYBRID_HOME": str(home), "OPENAI_API_KEY": "not-a-key", **more}


def family(root: int) -> dict[int, float]:
    """A process and its descendants: the processor time of each, with that of the processes it has waited for."""
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
    """Resident memory of a process and its descendants, in MB; 0 when it is gone."""
    pages = 0
    for item in family(root):
        try:
            pages += int(Path(f"/proc/{item}/statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def used_mb(root: int) -> float:
    """Memory of a process and its descendants, in MB; a page of a file counts once. 0 when they are gone."""
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
) -> Ended:
    """Run a command to its end. Raises `SystemExit` where it fails.

    Args:
        words: the command.
        environment: its environment.
        log: takes its messages, after what it holds.
        looks: take its process id, ten times a second, and tell a memory in MB.
        kill_when: asked again and again, after waiting a while itself; where it says so the command is killed.
        out: takes its output, the log otherwise.
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
                # It may have ended since it was asked.
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
        return Ended(start, killed[0][0], *killed[0][1:], largest, tuple(peaks))
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {process.returncode}:\n{log.read_text()[-3000:]}")
    return Ended(start, None, wall, usage.ru_utime + usage.ru_stime, largest, tuple(peaks))
