"""A new recipe is one file in a folder of `--path`; a recipe of the project also needs a line on the page of
recipes."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from hybrid.samples.named import SCENES
from tests.runnable import forked
from tests.tables import stored

ROOT = Path(__file__).parents[4]
RECIPES = sorted(path.stem for path in (ROOT / "hybrid/benchmarks/recipes").glob("*.yaml"))
PAGE = (ROOT / "docs/recipes.md").read_text()

MINE = stored(__file__, "MINE")


def hybrid(*words: object) -> tuple[int, str]:
    command = [*forked(), "-m", "hybrid", *map(str, words)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.returncode, result.stdout + result.stderr


@pytest.mark.system
def test_one_file_is_a_benchmark_that_runs_and_is_scored(tmp_path: Path) -> None:
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks/mine.yaml").write_text(MINE)
    words = ("mine", "--path", tmp_path, "--data", "sample", "--limit", 4, "--solver", "chance", "--json")
    code, text = hybrid("run", *words, "--out", tmp_path / "run")
    assert code == 0, text
    data = json.loads(text[text.index("\n{") if not text.startswith("{") else 0 : text.rindex("}") + 1])
    scored = data.get("solvers", {}).get("chance", data)
    assert scored["n"] == 4
    assert {"all_right", "accuracy_macro"} <= set(scored["metrics"])


def test_every_recipe_has_a_line_of_its_page() -> None:
    assert sorted(re.findall(r"^\| `(\w+)`", PAGE, flags=re.MULTILINE)) == RECIPES


def test_the_page_names_every_scene() -> None:
    assert sorted(re.findall(r"`(\w+)`", PAGE.partition("`samples:`")[2])) == sorted(SCENES)
