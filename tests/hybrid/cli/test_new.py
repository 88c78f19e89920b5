"""`hybrid new plugin`: a repository whose tests and continuous integration pass unchanged."""

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from hybrid.plugins import registry as plugins
from tests.finished_runs import Command

ROOT = Path(plugins.__file__).parents[2]


def test_a_new_plugin_repository_is_written_whole(command: Command, tmp_path: Path) -> None:
    """All files of a new plug-in repository are written; the tests of docs/plugins.md run the repository's own
    tests."""
    out = tmp_path / "glow"
    assert command("new", "plugin", "glow", "-o", out).out == f"wrote {out}\nnext: cd {out} && uv run pytest\n"
    assert f'path = "{Path(plugins.__file__).parents[2].as_posix()}"' in (out / "pyproject.toml").read_text()
    for line in (out / "pyproject.toml").read_text().splitlines():
        if line.startswith("glow_"):
            module = line.split('"')[1].replace(".", "/")
            assert (out / f"{module}.py").is_file(), line
    assert "python -m pytest" in (out / ".github" / "workflows" / "ci.yml").read_text()
    assert command("new", "plugin", "glow", "-o", out).err == f"hybrid: {out} already exists\n"
    assert "the name of a plug-in may only have lower-case" in command("new", "plugin", "Glow").err
    for name in ("tools", "json", "class", "tests"):
        assert (
            f"{name!r}: this is a Python keyword, or the name of a module or of the tests"
            in command("new", "plugin", name).err
        )
        assert not (tmp_path / name).exists()
    versions = [tomllib.loads((place / "pyproject.toml").read_text())["project"] for place in (out, ROOT)]
    assert versions[0]["requires-python"] == versions[1]["requires-python"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("uv") is None, reason="uv is not installed")
def test_a_new_plugin_repository_passes_in_environments_of_its_own(command: Command, tmp_path: Path) -> None:
    """Run each command in the README and the CI of a new repository as printed there. uv contacts the package index."""
    out = tmp_path / "glow"
    assert command("new", "plugin", "glow", "-o", out).code == 0
    arguments = ("VIRTUAL_ENV", "UV_PROJECT_ENVIRONMENT", "PYTHONPATH")
    by_value = {
        name: value for name, value in os.environ.items() if name not in arguments and not name.startswith("PYTEST")
    }

    def follow(words: str, folder: Path) -> str:
        result = subprocess.run(
            ["bash", "-ec", words], cwd=folder, env=by_value, capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, f"{words}\n{result.stdout}{result.stderr}"
        return result.stdout

    ci = tmp_path / "runner" / "glow"
    shutil.copytree(out, ci)
    # A repository with the project's current state, as a clone from GitHub would be.
    for room in ("hybrid", "tools", "graphs", "baselines"):
        shutil.copytree(ROOT / room, tmp_path / "hub" / room, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, tmp_path / "hub")
    as_one = "git -c user.name=me -c user.email=me@localhost"
    follow(f"git init -q && git add . && {as_one} commit -qm all", tmp_path / "hub")
    by_value["HYBRID"] = f"file://{tmp_path / 'hub'}"
    values = [follow(words, out) for words in (out / "README.md").read_text().split("```")[1].splitlines()[1:]]
    assert "4 passed" in values[0]
    assert values[1] == "glow_light: keeps the contract\n"
    assert "glow answered" in values[3]
    steps = yaml.safe_load((ci / ".github" / "workflows" / "ci.yml").read_text())["jobs"]["tests"]["steps"]
    assert "4 passed" in [follow(step["run"], ci) for step in steps if "run" in step][-1]
