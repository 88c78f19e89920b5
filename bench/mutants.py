"""Mutation testing of the code that decides numbers: if a line is wrong, a test should fail.

    uv run --with mutmut python -m bench.mutants stats compare     # these subjects; all without a name
    uv run --with mutmut python -m bench.mutants --sample 200      # of each subject 200 mutants at random
    uv run --with mutmut python -m bench.mutants --list

Works on a copy of the checkout in a temporary folder. mutmut mutates each subject and runs only its own tests: those of
the default group and, if the subject needs a network, those that load one. Survivors are printed as a diff with
`--show`: some mutants change nothing that can be observed (a cache, a bound that is never reached).
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench._frame import parser
from hybrid.display.tables import Column, Table, as_text
from hybrid.stats import wilson

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("hybrid", "tools", "graphs", "baselines", "training", "bench", "tests")


@dataclass(frozen=True)
class Subject:
    """Files whose lines are mutated, and the tests that should detect the mutations."""

    sources: Sequence[str]
    tests: Sequence[str]
    system: bool = False


SUBJECTS: Mapping[str, Subject] = {
    name: Subject(**row) for name, row in tomllib.loads(Path(__file__).with_suffix(".toml").read_text()).items()
}


def configuration(subject: Subject) -> str:
    """Return the lines of pyproject.toml that mutmut reads; its lists and numbers are written as in JSON."""
    marks = f"not shared_data and not slow{'' if subject.system else ' and not system'}"
    # Leave out the slow tests and the search for simpler examples, and shorten mutmut's timeout, which is fifteen times
    # the tests' duration.
    quick = ["-n", "0", "-p", "no:cacheprovider", "-m", marks, "--hypothesis-profile", "unshrunk"]
    settings = {"source_paths": subject.sources, "also_copy": [*ROOMS, "pyproject.toml"]}
    settings |= {"pytest_add_cli_args": quick, "pytest_add_cli_args_test_selection": subject.tests}
    settings |= {"timeout_multiplier": 4, "timeout_constant": 5}
    return "\n[tool.mutmut]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items())


@dataclass(frozen=True)
class Outcome:
    """The fate of the mutants of a subject."""

    subject: str
    # Number of all mutants.
    mutants: int
    tried: int
    # Diffs of the tried mutants that no test detected.
    survived: tuple[str, ...]
    # The diff of each mutant that no test reaches; these count as surviving.
    unreached: tuple[str, ...]

    @property
    def unnoticed(self) -> int:
        """Number of mutants that no test detected."""
        return len(self.survived) + len(self.unreached)

    @property
    def share(self) -> float:
        """Return the share, 0..1, of the tried mutants that no test detected."""
        return self.unnoticed / self.tried if self.tried else 0.0

    @property
    def interval(self) -> str:
        """Return the 95 % Wilson interval of the undetected share of all mutants, if only a sample was tried."""
        result = wilson(self.unnoticed, self.tried) if self.tried < self.mutants else None
        return f"{result.low:.3f} to {result.high:.3f}" if result else ""


def copy_of_checkout(folder: Path) -> None:
    """Copy the files of the working tree that are tracked, or untracked but not ignored."""
    # Runs the git that is on the user's PATH.
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)  # noqa: S603
    for name in filter(None, result.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def mutate(name: str, subject: Subject, children: int, sample: int | None, seed: int) -> Outcome:
    """Run mutmut on all mutants of one subject, or on a number of them drawn by `seed`.

    Raises `SystemExit` with mutmut's output if the tests fail without any mutant.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        copy_of_checkout(folder)
        with (folder / "pyproject.toml").open("a") as file:
            file.write(configuration(subject))
        names: list[str] = []
        if sample is not None:
            # mutmut has no command that makes mutants without running them, so run it once without a match to get their
            # names.
            _mutmut(folder, "run", "none")
            ordered = sorted(_states(folder))
            names = random.Random(seed).sample(ordered, min(sample, len(ordered)))
        finished = _mutmut(folder, "run", "--max-children", str(children), *names)
        states = _states(folder)
        tried = {mutant: states[mutant] for mutant in names or states}
        if not tried or "not checked" in tried.values():
            raise SystemExit(f"{name}: mutmut gave no result\n{finished[-3000:]}")
        survived, unreached = (
            tuple(_mutmut(folder, "show", mutant) for mutant, state in tried.items() if state == fate)
            for fate in ("survived", "no tests")
        )
    return Outcome(name, len(states), len(tried), survived, unreached)


def _states(folder: Path) -> dict[str, str]:
    """Return the fate of each mutant, by name."""
    rows = (line.strip().split(": ") for line in _mutmut(folder, "results", "--all", "true").splitlines())
    return {row[0]: row[1] for row in rows if len(row) == 2}


def _mutmut(folder: Path, *words: str) -> str:
    """Return the output of mutmut."""
    result = subprocess.run(  # noqa: S603 - our own words, no shell
        [sys.executable, "-m", "mutmut", *words], cwd=folder, capture_output=True, text=True, check=False
    )
    return result.stdout + result.stderr


def table(outcomes: Sequence[Outcome]) -> Table:
    """Return a table with a row per subject."""
    headings = ("mutants", "tried", "survived", "not reached", "share", "95 %")
    columns = (Column("subject", "left"), *map(Column, headings))
    rows = tuple(
        (o.subject, *map(str, (o.mutants, o.tried, len(o.survived), len(o.unreached))), f"{o.share:.3f}", o.interval)
        for o in outcomes
    )
    notes = (
        "share: of the mutants tried, those that no test noticed, equivalent ones among them.",
        "95 %: where a sample was tried, Wilson's interval of the share among all mutants.",
    )
    return Table("Mutants of the parts that decide numbers", columns, rows, notes)


def main() -> None:
    """Mutate the subjects that were named and print the table."""
    flags = {"subjects...": str, "--list": False, "--children": 2, "--sample": int, "--seed": 0, "--show": False}
    command = parser(__doc__, flags)
    arguments = command.parse_args()
    if arguments.sample is not None and arguments.sample < 1:
        command.error(f"--sample {arguments.sample}: needs a number above 0")
    if unknown := set(arguments.subjects) - set(SUBJECTS):
        command.error(f"no subject {', '.join(sorted(unknown))}; there are: {', '.join(SUBJECTS)}")
    if arguments.list:
        for name, subject in SUBJECTS.items():
            print(f"{name}: {' '.join(subject.sources)}  <-  {' '.join(subject.tests)}")
        return
    outcomes = []
    for name in arguments.subjects or SUBJECTS:
        outcomes.append(mutate(name, SUBJECTS[name], arguments.children, arguments.sample, arguments.seed))
        print(as_text(table(outcomes[-1:])), flush=True)
        if arguments.show:
            print("\n".join(outcomes[-1].survived + outcomes[-1].unreached), flush=True)
    print(as_text(table(outcomes)))


if __name__ == "__main__":
    main()
