"""CITATION.cff and CHANGELOG.md: in their formats, and of the version that the project has."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_citation_has_what_the_format_requires() -> None:
    yaml = pytest.importorskip("yaml")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    # Required by version 1.2.0 of the format: https://github.com/citation-file-format/citation-file-format
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    assert cited["cff-version"] == "1.2.0"
    assert all(isinstance(cited[name], str) and cited[name] for name in ("message", "title", "abstract"))
    assert cited["authors"]
    # A person has given or family names, an entity has a name.
    assert all({"name", "family-names", "given-names", "alias"} & set(author) for author in cited["authors"])
    known = {"cff-version", "message", "title", "authors", "type", "version", "license", "abstract", "keywords"}
    assert set(cited) <= known
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
