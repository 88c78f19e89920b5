"""`hybrid tools measure`: recorded fixations in common formats, and messages about rows that cannot be used."""

import csv
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from PIL import Image
from scipy.io import savemat

from hybrid.cli import cli
from hybrid.core.errors import UsageError
from hybrid.plugins.registry import load
from hybrid.scoring import gaze
from hybrid.scoring import gaze_metrics as metrics
from hybrid.scoring.fixations import read_fixations
from hybrid.scoring.gaze import PATH_METRICS, GazeScores, gaze_table, measure_maps, measure_paths

SIZE = (160, 120)
SQUARES = ((30, 30), (120, 40), (40, 90), (110, 80))


@pytest.fixture(scope="module")
def eyes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write four grey pictures, each with a red square at which three viewers look, and rows that cannot be used;
    return the folder."""
    folder, rng, rows = tmp_path_factory.mktemp("eyes"), np.random.default_rng(0), ["image,x,y,t,subject"]
    for number, (x, y) in enumerate(SQUARES):
        pixels = np.full((SIZE[1], SIZE[0], 3), 120, np.uint8)
        pixels[y - 12 : y + 12, x - 12 : x + 12] = (220, 40, 40)
        Image.fromarray(pixels).save(folder / f"p{number}.png")
        for subject in range(3):
            for _ in range(4):
                at = np.clip(rng.normal((x, y), 6), 0, 110).round(1)
                rows.append(f"p{number}.png,{at[0]},{at[1]},{rng.integers(150, 400)},s{subject}")
    rows += ["p0.png,500,3,100,s0", "none.png,5,3,100,s0", "p0.png,a,3,100,s0", ",5,3,100,s0", "p0.png,5,3,-1,s0"]
    (folder / "fixations.csv").write_text("\n".join([*rows, ""]))
    (folder / "empty.csv").write_text("")
    return folder


def run_measure(*words: str) -> Result:
    return CliRunner().invoke(cli, ["tools", "measure", *words])


def test_saliency_next_to_people(eyes: Path) -> None:
    result = run_measure("saliency", "--fixations", str(eyes), "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    rows = {row["metric"]: row for row in report["rows"]}
    assert (report["pictures"], report["paths"], report["backend"]) == (4, 12, "classical")
    chance = {"NSS": 0, "AUC-Judd": 0.5, "shuffled AUC": 0.5, "CC": 0}
    assert {name: rows[name]["chance"] for name in chance} == chance
    assert rows["information gain"]["chance"] <= 1e-9
    assert rows["NSS"]["value"] > 2
    assert rows["KL"]["value"] < rows["KL"]["chance"]
    assert rows["NSS"]["low"] < rows["NSS"]["value"] < rows["NSS"]["high"]
    reasons = {
        "empty.csv: no column for picture and x and y",
        "fixations.csv:50: (500, 3) is outside p0.png of 160 x 120 px",
        "fixations.csv:51: no picture 'none.png'",
        "fixations.csv:52: x: 'a' is not a number",
        "fixations.csv:53: the row names no picture",
        "fixations.csv:54: t -1 is below 0",
    }
    assert len(report["skipped"]) == len(reasons)
    for reason in reasons:
        assert any(line.startswith(reason) for line in report["skipped"]), reason


@pytest.mark.system
def test_scanpaths_next_to_people(eyes: Path) -> None:
    result = run_measure("scanpath", "--fixations", str(eyes), "--tables", "wide")
    assert result.exit_code == 0, result.output
    lines = {line[:22].strip(): line.split() for line in result.stdout.splitlines()}
    assert set(PATH_METRICS) <= set(lines)
    assert "skipped: empty.csv" in result.stderr
    report = json.loads(run_measure("scanpath", "--fixations", str(eyes), "--json", "--limit", "3").stdout)
    rows = {row["metric"]: row for row in report["rows"]}
    assert report["pictures"] == 3
    assert rows["sequence score"]["value"] > rows["sequence score"]["chance"]
    assert rows["MultiMatch position"]["people"] > rows["MultiMatch position"]["chance"]


def test_what_cannot_be_measured(eyes: Path, tmp_path: Path) -> None:
    for words, reason in (
        (("crop", "--fixations", str(eyes)), "these do: saliency, scanpath"),
        (("saliency", "--fixations", str(tmp_path)), "the folder has no usable fixations; the files that are read are"),
        (("saliency", "--fixations", str(eyes), "--screen", "big"), "--screen big: write WIDTHxHEIGHT"),
        (("saliency", "--fixations", str(eyes), "--args", "[1]"), "--args: expected an object"),
        (("saliency", "--fixations", str(eyes), "--args", "{"), "--args: is not JSON"),
        (("scanpath", "--fixations", str(eyes), "--args", '{"fixations": 2}'), "--args: fixations 2 is below 3"),
    ):
        error = run_measure(*words).exception
        assert isinstance(error, UsageError)
        assert reason in str(error)


def test_a_map_that_fails_costs_its_picture(eyes: Path) -> None:
    fixations, calls = read_fixations(eyes), []

    def predict(pixels: Any) -> Any:
        calls.append(pixels)
        if len(calls) == 2:
            raise UsageError("too elongated")
        return np.zeros(pixels.shape[:2])

    measured = measure_maps(fixations, predict)
    assert measured.pictures == 3
    assert "p1.png: too elongated" in measured.skipped
    values = {row.metric: (row.value, row.chance) for row in measured.rows}
    assert all(value == pytest.approx(chance) for value, chance in values.values()), "a constant map scores chance"


def test_a_path_that_is_a_viewers_own_is_perfect(eyes: Path) -> None:
    fixations = read_fixations(eyes)
    own_paths = [path for path in fixations.paths if path.subject == "s0"]
    fixations.paths[:] = own_paths
    order = iter(sorted(own_paths, key=lambda path: path.picture))
    measured: GazeScores = measure_paths(fixations, lambda _, number: next(order).points)
    assert [row.value for row in measured.rows] == pytest.approx([1.0] * len(PATH_METRICS))
    assert all((row.people, row.people_pictures) == (None, 0) for row in measured.rows)
    assert "people" not in " ".join(gaze_table("", measured).names)


def picture(folder: Path, name: str = "a.png", size: tuple[int, int] = SIZE) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (90, 90, 90)).save(folder / name)


def test_lists_of_paths_on_a_screen(tmp_path: Path) -> None:
    """Paths are recorded on a screen of 1680 x 1050 px. It shows pictures of 160 x 120 px enlarged 8.75 times, with 140
    px of border left and right."""
    picture(tmp_path, "images/000000001.jpg")
    path = {
        "name": "000000001.jpg",
        "subject": 4,
        "task": "cup",
        "X": [140, 840, 20],
        "Y": [0, 525, 9],
        "T": [200, 300, 9],
    }
    broken = [{"name": "no.jpg", "X": [1], "Y": [1]}, {"name": "000000001.jpg", "X": [1, 2], "Y": [1]}, 7]
    (tmp_path / "paths.json").write_text(json.dumps([path, *broken]))
    fixations = read_fixations(tmp_path, screen=(1680, 1050))
    (read,) = fixations.paths
    assert read.picture == "images/000000001.jpg"
    assert (read.subject, read.ordered) == ("4 cup", True)
    assert read.points.tolist() == [[0, 0, 200], [0.5, 0.5, 300]]
    assert [line.split(":")[0] for line in fixations.skipped] == [
        "paths.json, path 1, fixation 3",
        "paths.json, path 2",
        "paths.json, path 3",
        "paths.json, path 4",
    ]


def test_matrices_of_fixations(tmp_path: Path) -> None:
    picture(tmp_path, "Action/001.png")
    picture(tmp_path, "b.png")
    cells = np.zeros((120, 160))
    cells[30, 40] = 1
    (tmp_path / "locs").mkdir()
    savemat(tmp_path / "locs" / "001.mat", {"fixLocs": cells})
    savemat(tmp_path / "locs" / "b.mat", {"other": cells})
    Image.fromarray((cells * 255).astype(np.uint8)).save(tmp_path / "b_fixPts.png")
    fixations = read_fixations(tmp_path)
    assert [path.picture for path in fixations.paths] == ["b.png", "Action/001.png"]
    assert [path.points.tolist() for path in fixations.paths] == [[[40.5 / 160, 30.5 / 120, 0]]] * 2
    assert fixations.skipped == ["b.mat: no variable fixLocs"]
    with pytest.raises(UsageError, match="is used for saliency only"):
        measure_paths(fixations, lambda *_: np.zeros((3, 3)))


def test_a_matrix_of_another_size_and_without_fixation(tmp_path: Path) -> None:
    picture(tmp_path)
    picture(tmp_path, "b.png")
    picture(tmp_path, "c.png")
    savemat(tmp_path / "a.mat", {"fixLocs": np.ones((10, 10))})
    savemat(tmp_path / "b.mat", {"fixLocs": np.zeros((120, 160))})
    (tmp_path / "c.mat").write_bytes(b"no matrix")
    (tmp_path / "c.tsv").write_text("name\tx\ty\nc\t5\t6\nc\t7\t8\n")
    fixations = read_fixations(tmp_path)
    assert [(path.picture, path.ordered, len(path.points)) for path in fixations.paths] == [("c.png", False, 2)]
    assert [line.split(":")[0] for line in fixations.skipped] == ["a.mat", "b.mat", "c.mat"]


def test_pictures_of_one_name_are_not_guessed(tmp_path: Path) -> None:
    picture(tmp_path, "x/a.png")
    picture(tmp_path, "y/a.png")
    (tmp_path / "f.csv").write_text("image,x,y\na.png,1,2\nx/a.png,3,4\n")
    fixations = read_fixations(tmp_path)
    assert [path.picture for path in fixations.paths] == ["x/a.png"]
    assert fixations.skipped == [f"f.csv:2: 2 pictures have the name 'a.png' in {tmp_path}"]


def table(folder: Path, *rows: str, columns: str = "image,x,y,t,subject") -> Any:
    picture(folder)
    picture(folder, "b.png")
    (folder / "f.csv").write_text("\n".join([columns, *rows, ""]))
    return read_fixations(folder)


def test_a_path_ends_where_picture_or_viewer_changes(tmp_path: Path) -> None:
    rows = ["a.png,1,1,200,s", "a.png,2,1,200,s", "a.png,999,1,200,s", "a.png,3,1,200,s", "none.png,1,1,200,s"]
    rows += ["a.png,4,1,200,s", "a.png,5,1,200,u", "b.png,6,1,200,u", "a.png,7,1,200,u"]
    fixations = table(tmp_path, *rows)
    xs = [(path.picture, path.subject, [round(x * SIZE[0]) for x in path.points[:, 0]]) for path in fixations.paths]
    assert xs == [
        ("a.png", "s", [1, 2, 3]),
        ("a.png", "s", [4]),
        ("a.png", "u", [5]),
        ("b.png", "u", [6]),
        ("a.png", "u", [7]),
    ]
    assert all(path.ordered for path in fixations.paths)
    assert fixations.notes == []
    assert [line.split(": ")[0] for line in fixations.skipped] == ["f.csv:4", "f.csv:6"]


def test_rows_without_a_subject_have_no_order(tmp_path: Path) -> None:
    fixations = table(tmp_path, *["a.png,1,1,200"] * 4, columns="image,x,y,t")
    assert [path.ordered for path in fixations.paths] == [False]
    assert "f.csv: 4 rows without a subject" in fixations.notes[0]
    with pytest.raises(UsageError, match="a column subject to give them an order"):
        measure_paths(fixations, lambda *_: np.zeros((3, 3)))
    fixations = table(tmp_path, "a.png,1,1,200,", "a.png,1,1,200,s")
    assert [path.ordered for path in fixations.paths] == [False, True]


@pytest.mark.parametrize(("t", "reason"), [("0.31", "multiply seconds by 1000"), ("40000", "not clock times")])
def test_times_that_are_no_durations_in_ms(tmp_path: Path, t: str, reason: str) -> None:
    fixations = table(tmp_path, *[f"a.png,1,1,{t},s"] * 3)
    (tmp_path / "p.json").write_text(json.dumps([{"name": "b.png", "X": [1], "Y": [1], "T": [float(t)]}]))
    (note,) = fixations.notes
    assert note.startswith("f.csv: the median of t")
    assert reason in note
    assert [path.ordered for path in fixations.paths] == [False]
    assert [note.split(":")[0] for note in read_fixations(tmp_path).notes] == ["f.csv", "p.json"]


def test_a_time_of_the_clock_costs_its_row_and_a_path_of_hours_its_order(tmp_path: Path) -> None:
    fixations = table(tmp_path, "a.png,1,1,1700000000000,s", *["a.png,2,1,200,s"] * 3)
    assert [len(path.points) for path in fixations.paths] == [3]
    assert fixations.skipped[0].startswith("f.csv:2: t 1.7e+12 is above 600,000 ms")
    fixations = table(tmp_path, *["a.png,2,1,200,u"] * 5, *["a.png,1,1,500000,s"] * 2)
    assert [path.ordered for path in fixations.paths] == [True, False]
    assert "the path of 's' on a.png lasts 1,000,000 ms" in fixations.notes[0]


@pytest.fixture
def default_field_limit() -> Iterator[None]:
    """Restore the csv module's field limit, which readers of tables with images raise for the whole process."""
    limit = csv.field_size_limit(131_072)
    yield
    csv.field_size_limit(limit)


def test_what_cannot_be_a_number_or_a_field_is_named(tmp_path: Path, default_field_limit: None) -> None:
    del default_field_limit
    picture(tmp_path)
    good = {"name": "a.png", "X": [5], "Y": [3], "T": [200]}
    huge = f'{{"name": "a.png", "X": [1{"0" * 400}, 5], "Y": [3, 3], "T": [200, 200]}}'
    bad = ['{"name": "a.png", "X": 5, "Y": 3}', '{"name": "a.png"}', huge]
    (tmp_path / "p.json").write_text(f"[{', '.join([*bad, json.dumps(good)])}]")
    (tmp_path / "t.csv").write_text(f"image,x,y\na.png,1,2\n{'a' * 131_073},1,2\na.png,3,4\n")
    (tmp_path / "u.csv").write_text("i" * 131_073 + ",x,y\n")
    fixations = read_fixations(tmp_path)
    assert [len(path.points) for path in fixations.paths] == [1, 1, 2]
    starts = ["p.json, path 1: X, Y and T must be", "p.json, path 2: X, Y and T", "p.json, path 3, fixation 1: 1000"]
    starts += ["t.csv:3: cannot be read (field larger", "u.csv: cannot be read (field larger"]
    assert len(fixations.skipped) == len(starts)
    for line, start in zip(fixations.skipped, starts, strict=True):
        assert line.startswith(start)


STRAIGHT = np.array([[0.1, 0.1, 200], [0.3, 0.1, 200], [0.5, 0.1, 200]])


def recorded(folder: Path, *pictures: tuple[str, Sequence[str]]) -> Any:
    """Write a horizontal path for each viewer of each picture, and read the paths."""
    rows = [
        f"{name},{x * SIZE[0]},{y * SIZE[1]},{t:g},{viewer}"
        for name, viewers in pictures
        for viewer in viewers
        for x, y, t in STRAIGHT
    ]
    return table(folder, *rows)


def test_paths_are_compared_in_pixels_of_the_picture(tmp_path: Path) -> None:
    falling = np.array([[0.1, 0.1, 200], [0.3, 0.3, 200], [0.5, 0.5, 200]])
    measured = measure_paths(recorded(tmp_path, ("a.png", "s")), lambda *_: falling)
    rows = {row.metric: row.value for row in measured.rows}
    # The angle is 45 degrees on a square, and less on a picture that is wider than high.
    assert rows["MultiMatch direction"] == pytest.approx(1 - math.atan2(SIZE[1], SIZE[0]) / math.pi)
    # The saccades are 32 and 40 px long, and the diagonal is 200 px.
    assert rows["MultiMatch length"] == pytest.approx(1 - 8 / 200)
    assert gaze.as_json(measured)["multimatch_frames_px"] == {"160x120": 1}
    assert "MultiMatch in pixels of each picture: 160x120 (1)" in gaze_table("", measured).notes


def test_people_are_counted_on_pictures_with_two_viewers(tmp_path: Path) -> None:
    measured = measure_paths(recorded(tmp_path, ("a.png", "s"), ("b.png", "su")), lambda *_: STRAIGHT)
    assert {(row.pictures, row.people_pictures) for row in measured.rows} == {(2, 1)}
    assert [row.people for row in measured.rows] == pytest.approx([1.0] * len(PATH_METRICS))
    scores = gaze_table("", measured)
    assert scores.names[-1] == "people, n = 1"
    assert any("over the 1 pictures with two or more viewers" in note for note in scores.notes)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (STRAIGHT[:, :2], "its path has the shape (3, 2), not (fixations, 3)"),
        (STRAIGHT[:2], "its path has 2 fixations; MultiMatch needs 3"),
        (STRAIGHT * math.nan, "its path has numbers that are not finite"),
        (STRAIGHT * 9, "its path has positions outside of 0..1"),
        (STRAIGHT * (1, 1, 9e9), "its path has durations below 0, or of more than 600,000 ms together"),
        (KeyError("x_0_1"), "KeyError: 'x_0_1'"),
    ],
)
def test_a_path_that_is_none_costs_its_picture(tmp_path: Path, path: Any, reason: str) -> None:
    calls: list[Any] = []

    def predict(pixels: Any, number: int) -> Any:
        calls.append(pixels)
        if len(calls) > 1:
            return STRAIGHT
        if isinstance(path, Exception):
            raise path
        return path

    measured = measure_paths(recorded(tmp_path, ("a.png", "s"), ("b.png", "s")), predict)
    assert (measured.pictures, measured.skipped) == (1, [f"a.png: {reason}"])


def test_a_map_that_is_none_costs_its_picture(eyes: Path) -> None:
    flat = np.zeros((120, 160))
    maps: Iterator[Any] = iter([np.zeros(3), flat + np.inf, "no map", flat])
    measured = measure_maps(read_fixations(eyes), lambda _: next(maps))
    assert measured.pictures == 1
    reasons = [
        "its map has the shape (3,), not (height, width)",
        "its map has values that are not finite",
        "ValueError: ",
    ]
    for number, reason in enumerate(reasons):
        assert any(line.startswith(f"p{number}.png: {reason}") for line in measured.skipped)


def test_work_grows_with_the_pictures_and_not_with_their_square(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work: list[int] = []
    count = metrics.count_fixations

    def count_cells(cells: Any, shape: tuple[int, int]) -> Any:
        work.append(len(cells))
        return count(cells, shape)

    monkeypatch.setattr(metrics, "count_fixations", count_cells)
    sums = []
    for pictures in (4, 8):
        names = [f"n{number}.png" for number in range(pictures)]
        for name in names:
            picture(tmp_path, name)
        work.clear()
        measure_maps(recorded(tmp_path, *((name, "s") for name in names)), lambda pixels: pixels[:, :, 0] / 255)
        sums.append(sum(work))
    assert sums[1] == 2 * sums[0]


def test_weights_for_a_tool_without_a_learned_backend(eyes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = load("tools", "saliency")
    card = replace(tool.card, backends=tuple(backend for backend in tool.card.backends if backend.name != "learned"))
    monkeypatch.setattr("hybrid.plugins.registry.load", lambda *_: replace(tool, card=card))
    error = run_measure("saliency", "--fixations", str(eyes), "--weights", str(eyes)).exception
    assert isinstance(error, UsageError)
    assert str(error) == "--weights: saliency has no learned backend; leave the option out"


def test_a_picture_that_cannot_be_decoded_costs_its_rows(tmp_path: Path) -> None:
    (tmp_path / "c.png").write_bytes(b"no picture")
    fixations = table(tmp_path, "c.png,1,1,200,s", "a.png,1,1,200,s")
    assert [path.picture for path in fixations.paths] == ["a.png"]
    (line,) = fixations.skipped
    assert line.startswith("f.csv:2: c.png cannot be read")
