"""Questions with the same pictures are one cluster and one fold, unless the data name clusters."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from hybrid.cli import cli
from hybrid.core.image_clusters import SamePictures, shared_pictures
from hybrid.core.images import ImageStore
from hybrid.core.types import Kind, Question, StoredImage
from hybrid.plugins.registry import load
from hybrid.running.data import mount, questions


def question(name: str, *pictures: str, cluster: str = "") -> Question:
    images = tuple(StoredImage(picture * 64, 4, 4, "image/png") for picture in pictures)
    return Question(name, "Task", images, "Which?", Kind.CHOICE, ("x", "y"), "(A)", cluster=cluster)


def clusters(*request: Question) -> dict[str, str]:
    pictures = SamePictures()
    for item in request:
        pictures.add(item)
    return dict(pictures.clusters)


def test_what_shares_a_picture_is_one_cluster_over_any_chain_of_them() -> None:
    values = (question("q1", "a", "b"), question("q2", "c"), question("q3", "b", "d"), question("q4", "d"))
    rest = [question(f"r{n}", str(n)) for n in range(4)]
    assert clusters(*values, *rest) == dict.fromkeys(("q1", "q3", "q4"), "picture of q1")
    assert clusters(question("q1", "a"), question("q1#s2", "a"), question("q2", "b")) == {}


def test_where_the_data_name_clusters_they_hold() -> None:
    assert clusters(question("q1", "a", cluster="pair 1"), question("q2", "a"), question("q3", "b")) == {}


def test_a_picture_of_nearly_all_questions_joins_none_that_differ_in_the_others() -> None:
    legend = [question(f"q{n}", "f", str(n)) for n in range(5)]
    assert clusters(*legend) == {}
    assert clusters(*legend, question("q9", "4", "f")) == dict.fromkeys(("q4", "q9"), "picture of q4")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Six questions about two pictures, and one about a third."""
    rng = np.random.default_rng(0)
    for name in "abc":
        Image.fromarray(rng.integers(0, 255, (32, 32, 3), np.uint8)).save(tmp_path / f"{name}.png")
    string_io = io.StringIO()
    rows = csv.writer(string_io)
    rows.writerow(["id", "question", "image", "answer", "A", "B"])
    for n, name in enumerate("aaabbbc"):
        rows.writerow([f"q{n}", f"Is it {n} or not?", f"{name}.png", "A", "yes it is", "no it is not"])
    (tmp_path / "questions.csv").write_text(string_io.getvalue())
    return tmp_path / "questions.csv"


def test_they_are_read_so_whatever_the_limit_and_data_check_says_it(table: Path, tmp_path: Path) -> None:
    benchmark, store = load("hybrid.benchmarks", "questions"), ImageStore(tmp_path / "store")
    source = mount(
        benchmark, str(table), split=None, tasks=(), settings=benchmark.card.resolve_settings({}), store=store
    ).source
    request = questions(benchmark, source, None)
    assert [item.unit for item in request] == ["picture of q0"] * 3 + ["picture of q3"] * 3 + ["q6"]
    assert len(questions(benchmark, source, 2)) == 2
    assert shared_pictures(entry.cluster for entry in request) == "6 questions show 2 pictures"
    output = CliRunner().invoke(cli, ["data", "check", str(table)]).output
    assert "6 questions show 2 pictures: questions about one picture count as one cluster" in output
