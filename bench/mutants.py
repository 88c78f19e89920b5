"""Mutation testing of the parts that decide numbers: a test should fail when a line of them is wrong.

    uv run --with mutmut python -m bench.mutants stats compare     # these subjects; all without a name
    uv run --with mutmut python -m bench.mutants --list

Works on a copy of the checkout in a temporary folder. Each subject is mutated by mutmut and only its own tests are run.
Survivors are printed as a diff with `--show`: some mutants change nothing that can be observed (a cache, a
bound that is never reached).
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hybrid.display.tables import Column, Table, as_text

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("hybrid", "tools", "graphs", "baselines", "training", "bench", "tests")


@dataclass(frozen=True)
class Subject:
    """Files whose lines are changed, and the tests that are to notice."""

    sources: tuple[str, ...]
    tests: tuple[str, ...]


SUBJECTS = {
    "stats": Subject(
        tuple(f"hybrid/stats/{name}.py" for name in ("intervals", "contrasts", "planning", "scatter", "linearised")),
        ("tests/hybrid/test_stats.py", "tests/hybrid/stats"),
    ),
    "score": Subject(
        tuple(f"hybrid/scoring/{name}.py" for name in ("score", "runs", "predicted", "tally")),
        (
            "tests/hybrid/scoring/test_score.py",
            "tests/hybrid/scoring/test_tally.py",
            "tests/hybrid/scoring/test_judge.py",
            "tests/hybrid/cli/test_score.py",
        ),
    ),
    "compare": Subject(
        ("hybrid/scoring/compare.py", "hybrid/scoring/pairing.py"),
        ("tests/hybrid/scoring/sections/test_differences.py", "tests/hybrid/scoring/test_pairing.py"),
    ),
    "calibrate": Subject(("hybrid/scoring/calibrate.py",), ("tests/hybrid/scoring/test_calibrate.py",)),
    "trust": Subject(
        ("hybrid/solving/trust.py",), ("tests/hybrid/solving/test_trust.py", "tests/hybrid/scoring/test_calibrate.py")
    ),
    "gates": Subject(
        ("hybrid/running/permissions.py", "hybrid/tool/image_sets.py"),
        ("tests/hybrid/running/test_permissions.py", "tests/hybrid/tool/test_image_sets.py"),
    ),
    "judge": Subject(
        ("hybrid/scoring/judge.py", "hybrid/scoring/readings.py"),
        ("tests/hybrid/scoring/test_judge.py", "tests/hybrid/scoring/test_readings.py"),
    ),
    "answers": Subject(("hybrid/answers",), ("tests/hybrid/answers",)),
    "rules": Subject(("tools/rules",), ("tests/tools/rules",)),
    "networks": Subject(
        ("hybrid/tool/networks.py",),
        ("tests/hybrid/serving/test_seen_pictures.py",),
    ),
    "pictures": Subject(
        ("tools/_shared/whole_picture.py", "tools/_shared/dense_features.py"),
        ("tests/tools/_shared/test_whole_picture.py", "tests/tools/test_semantic_correspondence.py"),
    ),
    "arbiter": Subject(("graphs/arbiter.py",), ("tests/graphs/test_arbiter.py",)),
    "tables": Subject(
        ("hybrid/display/tables.py", "hybrid/scoring/rendering.py"),
        ("tests/hybrid/display/test_tables.py", "tests/hybrid/scoring/test_rendering.py"),
    ),
}

CONFIGURATION = """
[tool.mutmut]
source_paths = {sources}
also_copy = {rooms}
pytest_add_cli_args = ["-n", "0", "-p", "no:cacheprovider", "-m", "not shared_data"]
pytest_add_cli_args_test_selection = {tests}
"""


@dataclass(frozen=True)
class Outcome:
    """The fate of the mutants of a subject."""

    subject: str
    mutants: int
    killed: int
    survived: tuple[str, ...]
    """The diff of each mutant that no test noticed."""
    unreached: int
    """Mutants in lines that no test runs; they count as surviving."""

    @property
    def share(self) -> float:
        """Of all mutants, those that no test noticed, 0..1."""
        return (len(self.survived) + self.unreached) / self.mutants if self.mutants else 0.0


def copy_of_checkout(folder: Path) -> None:
    """Put the files that git tracks or could track there, as they are in the working tree."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607 - the git of the user
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def mutate(name: str, subject: Subject, children: int) -> Outcome:
    """Run mutmut on one subject. Raises `SystemExit` with its output where the tests fail without any mutant."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        copy_of_checkout(folder)
        with (folder / "pyproject.toml").open("a") as file:
            file.write(
                CONFIGURATION.format(
                    sources=json.dumps(subject.sources),
                    rooms=json.dumps([*ROOMS, "pyproject.toml"]),
                    tests=json.dumps(subject.tests),
                )
            )
        done = _mutmut(folder, "run", "--max-children", str(children))
        _mutmut(folder, "export-cicd-stats")
        statistics = folder / "mutants" / "mutmut-cicd-stats.json"
        if not statistics.is_file():
            raise SystemExit(f"{name}: mutmut gave no result\n{done[-3000:]}")
        counts = json.loads(statistics.read_text())
        rows = [line.strip().split(": ") for line in _mutmut(folder, "results").splitlines() if ": " in line]
        survived = tuple(_mutmut(folder, "show", mutant) for mutant, state in rows if state == "survived")
    total = int(counts["total"]) - int(counts.get("skipped", 0))
    return Outcome(
        name, total, int(counts["killed"]) + int(counts.get("timeout", 0)), survived, int(counts["no_tests"])
    )


def _mutmut(folder: Path, *words: str) -> str:
    """The output of mutmut."""
    done = subprocess.run(  # noqa: S603 - our own words, no shell
        [sys.executable, "-m", "mutmut", *words], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def table(outcomes: Sequence[Outcome]) -> Table:
    """A row a subject."""
    columns = (Column("subject", "left"), *map(Column, ("mutants", "killed", "survived", "not reached", "share")))
    rows = tuple(
        (o.subject, str(o.mutants), str(o.killed), str(len(o.survived)), str(o.unreached), f"{o.share:.3f}")
        for o in outcomes
    )
    notes = ("share: mutants that no test noticed, equivalent ones among them.",)
    return Table("Mutants of the parts that decide numbers", columns, rows, notes)


def main() -> None:
    """Mutate the subjects that were named and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=f"of {', '.join(SUBJECTS)}; all without one")
    parser.add_argument("--list", action="store_true", help="print the subjects and their tests")
    parser.add_argument("--children", type=int, default=2, help="mutants at a time")
    parser.add_argument("--show", action="store_true", help="print the surviving mutants as diffs")
    given = parser.parse_args()
    if unknown := set(given.subjects) - set(SUBJECTS):
        parser.error(f"no subject {', '.join(sorted(unknown))}; there are: {', '.join(SUBJECTS)}")
    if given.list:
        for name, subject in SUBJECTS.items():
            print(f"{name}: {' '.join(subject.sources)}  <-  {' '.join(subject.tests)}")
        return
    outcomes = []
    for name in given.subjects or SUBJECTS:
        outcomes.append(mutate(name, SUBJECTS[name], given.children))
        print(as_text(table(outcomes[-1:])), flush=True)
        if given.show:
            print("\n".join(outcomes[-1].survived), flush=True)
    print(as_text(table(outcomes)))


if __name__ == "__main__":
    main()
