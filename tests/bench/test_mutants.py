"""The script that mutates the code that computes results: its targets exist, and it parses mutmut's counts."""

import tomllib
from pathlib import Path

import pytest

from bench import mutants

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", list(mutants.SUBJECTS))
def test_every_subject_and_its_tests_are_there(name: str) -> None:
    subject = mutants.SUBJECTS[name]
    missing = [place for place in (*subject.sources, *subject.tests) if not (ROOT / place).exists()]
    assert not missing


def test_of_a_sample_the_share_has_an_interval() -> None:
    outcome = mutants.Outcome("x", 1000, 10, ("a diff",), ())
    assert outcome.interval == "0.018 to 0.404"  # by method 3 of Newcombe, Statistics in Medicine 17 (1998)
    assert mutants.table([outcome]).rows == (("x", "1000", "10", "1", "0", "0.100", "0.018 to 0.404"),)


def arguments(name: str) -> list[str]:
    """Return the arguments with which mutmut calls pytest for a target."""
    names: list[str] = tomllib.loads(mutants.configuration(mutants.SUBJECTS[name]))["tool"]["mutmut"][
        "pytest_add_cli_args"
    ]
    return names


def test_a_network_is_held_against_the_tests_that_load_it() -> None:
    assert "not shared_data and not slow and not system" in arguments("stats")
    assert "not shared_data and not slow" in arguments("networks")


@pytest.mark.system
def test_the_copy_is_what_git_would_track(tmp_path: Path) -> None:
    mutants.copy_of_checkout(tmp_path)
    assert (tmp_path / "hybrid" / "stats" / "linearised.py").read_bytes() == (
        ROOT / "hybrid" / "stats" / "linearised.py"
    ).read_bytes()
    assert not (tmp_path / ".git").exists()
    assert not (tmp_path / ".venv").exists()
