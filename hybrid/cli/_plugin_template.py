"""The files of the repository that `hybrid new plugin NAME` writes, by path; the tool and its test as `tools new` has.

In each `{name}` stands for the name, `{title}` for the same as the beginning of a class, `{hybrid}` for the checkout,
`{python}` for the versions of Python that it asks for.
"""

from __future__ import annotations

from typing import Final

PYPROJECT: Final = """[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "{name}"
version = "0.1.0"
requires-python = "{python}"
dependencies = ["hybrid-perception"]

[project.entry-points."hybrid.tools"]
{name}_light = "{name}.tools.{name}_light"

[project.entry-points."hybrid.baselines"]
{name}_first = "{name}.baselines.{name}_first"

[project.entry-points."hybrid.sections"]
{name}_answered = "{name}.sections.{name}_answered"

[dependency-groups]
dev = ["pytest"]

[tool.setuptools.packages.find]
include = ["{name}*"]

[tool.uv.sources]
# On another machine: its own checkout, or {{ git = "URL" }}.
hybrid-perception = {{ path = "{hybrid}", editable = true }}

[tool.pytest.ini_options]
testpaths = ["tests"]
addopts = "--import-mode=importlib"
"""
README: Final = """# {name}

Plug-ins of `hybrid`: the tool `{name}_light`, the solver `{name}_first` and the statistic `{name}_answered`, found by
the entry points in `pyproject.toml` once this is installed, and without that by `--path {name}`.

```sh
uv run pytest
uv run hybrid tools check {name}_light --contract
uv run hybrid run blink --data sample --task Jigsaw --limit 6 --solver {name}_first --out runs/first
uv run hybrid compare runs/first --only {name}_answered
```

The tests on GitHub need the repository variable `HYBRID`: the URL from which `hybrid` is cloned.
"""
CI: Final = """name: tests
on: [push, pull_request]
jobs:
  tests:
    runs-on: ubuntu-latest
    env:
      HYBRID: ${{{{ vars.HYBRID }}}}
    steps:
      - uses: actions/checkout@v4
      - uses: astral-sh/setup-uv@v6
      - run: git clone --depth 1 "$HYBRID" ../hybrid
      - run: uv venv && uv pip install --no-sources --torch-backend cpu -e ../hybrid -e . pytest
      - run: .venv/bin/python -m pytest
"""
SOLVER: Final = '''"""The first option, whatever it is: an example to be changed.

`hybrid run blink --data sample --solver {name}_first`
"""

from __future__ import annotations

from hybrid.solving.solver import Solver, SolverContext
from hybrid.types import LETTERS, Outcome, Prompt, Reply


class {title}First(Solver):
    """Looks at nothing."""

    role = "chance"

    async def ask(self, prompt: Prompt, ctx: SolverContext) -> Reply:
        """The letter of the first option; an abstention where none are shown."""
        if not prompt.choices:
            return Reply("", Outcome.ABSTAINED)
        ctx.rule("first", "the first option, whatever it is")
        return Reply(f"({{LETTERS[0]}})")


SOLVER = {title}First()
'''
STATISTIC: Final = '''"""The share of questions that each solver answered: an example to be changed.

`hybrid compare RUN --only {name}_answered`
"""

from __future__ import annotations

from collections.abc import Iterator

from hybrid.benchmarks.card import MetricCard
from hybrid.scoring.compare import Comparison
from hybrid.scoring.result import FRACTION, Result, Section
from hybrid.types import Outcome

NAME = "{name}_answered"


def rows(comparison: Comparison) -> Iterator[Result]:
    """One row a solver."""
    for one in comparison.solvers:
        answered = sum(score.outcome is Outcome.ANSWERED for score in one.scores)
        if one.scores:
            yield Result(NAME, "answered", FRACTION, answered / len(one.scores), a=one.solver, n=len(one.scores))


SECTION = Section(
    NAME,
    "Which share of the questions has each solver answered?",
    (MetricCard("answered", "questions with an answer / all questions", "questions", "ours"),),
    rows,
    headings={{"a": "solver"}},
)
'''
CONFTEST: Final = '''"""Where the package is not installed, its things are found in its folder."""

from pathlib import Path

from hybrid.registry import look_also_in, names

if "{name}_light" not in names("tools"):
    look_also_in([Path(__file__).parents[1] / "{name}"], "tests")
'''
TEST_SOLVER: Final = '''"""`{name}_first` answers generated questions, offline."""

import hybrid


def test_it_answers_every_question(tmp_path) -> None:
    report = hybrid.run(
        "blink", data="sample", task="Jigsaw", limit=2, solvers="{name}_first", out=tmp_path / "run", quiet=True
    )
    (solver,) = report.as_json()["solvers"].values()
    assert (solver["n"], solver["failed"]) == (2, 0)
'''
TEST_STATISTIC: Final = '''"""`{name}_answered` counts the answers of a run, offline."""

import hybrid


def test_a_guess_is_an_answer(tmp_path) -> None:
    run = tmp_path / "run"
    hybrid.run("blink", data="sample", task="Jigsaw", limit=2, solvers="chance", out=run, quiet=True)
    (row,) = (row for row in hybrid.compare(run).results if row.section == "{name}_answered")
    assert (row.a, row.quantity, row.value) == ("chance", "answered", 1.0)
'''
FILES: Final = {
    "pyproject.toml": PYPROJECT,
    "README.md": README,
    # The lock has the checkout's place on this machine.
    ".gitignore": ".venv/\nruns/\n__pycache__/\n*.egg-info/\nuv.lock\n",
    ".github/workflows/ci.yml": CI,
    "{name}/__init__.py": '"""Plug-ins of hybrid."""\n',
    "{name}/baselines/{name}_first.py": SOLVER,
    "{name}/sections/{name}_answered.py": STATISTIC,
    "tests/conftest.py": CONFTEST,
    "tests/test_{name}_first.py": TEST_SOLVER,
    "tests/test_{name}_answered.py": TEST_STATISTIC,
}
"""By path in the repository; beside them lie the tool and its test."""
