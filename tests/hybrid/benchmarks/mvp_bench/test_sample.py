"""Generated pairs: what the answers claim is what was rendered, and the files are MVP-Bench's own layout."""

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from hybrid.benchmarks.mvp_bench.sample import LOW_EDITS, TASKS, PairQuestion, described, questions, write
from hybrid.benchmarks.mvp_bench.sample_pairs import EDITS, HEIGHT, WIDTH, ImagePair, pair
from hybrid.errors import UsageError
from hybrid.samples.layouts import Name
from hybrid.samples.textures import NAMED_COLOURS


@pytest.fixture(scope="module")
def pairs() -> list[ImagePair]:
    return [pair(index, 5) for index in range(12)]


def hue(rgb: tuple[float, float, float]) -> float:
    """Degrees, 0..360, of a linear or encoded RGB colour 0..1."""
    pixel = np.array([[np.power(rgb, 1 / 2.2)]], np.float32)
    return float(cv2.cvtColor(pixel, cv2.COLOR_RGB2HSV)[0, 0, 0])


def seen_colour(image: np.ndarray, rect: tuple[float, float, float, float]) -> str:
    """The name of the colour whose hue is nearest to that of the middle of a rectangle."""
    x, y = (rect[0] + rect[2]) / 2, (rect[1] + rect[3]) / 2
    patch = image[int(y) - 1 : int(y) + 2, int(x) - 1 : int(x) + 2].reshape(-1, 3).mean(axis=0) / 255
    red, green, blue = (float(value) ** 2.2 for value in patch)
    seen = hue((red, green, blue))
    return min(NAMED_COLOURS, key=lambda name: abs((hue(NAMED_COLOURS[name]) - seen + 180) % 360 - 180))


def test_the_pictures_show_the_objects_from_left_to_right(pairs: list[ImagePair]) -> None:
    for made in pairs:
        for image, names, rects in zip(made.images, made.names, made.rects, strict=True):
            assert image.shape == (HEIGHT, WIDTH, 3)
            assert [seen_colour(image, rect) for rect in rects] == [name.colour for name in names]
            assert [rect[0] + rect[2] for rect in rects] == sorted(rect[0] + rect[2] for rect in rects)


def test_a_pair_differs_in_one_attribute(pairs: list[ImagePair]) -> None:
    for index, made in enumerate(pairs):
        first, second = made.names
        assert made.edit == EDITS[index % 4]
        if made.edit == "count":
            shorter, longer = sorted(made.names, key=len)
            assert len(longer) == len(shorter) + 1
            assert set(shorter) < set(longer)
            continue
        changed = [(a, b) for a, b in zip(first, second, strict=True) if a != b]
        if made.edit == "order":
            assert changed == [changed[0], changed[0][::-1]]
        else:
            ((a, b),) = changed
            assert (a.colour == b.colour, a.shape == b.shape) == (made.edit == "shape", made.edit == "colour")


def holds(asked: PairQuestion, names: tuple[Name, ...]) -> bool | None:
    """Whether a yes/no question is true of a list of objects; None for the forms that this test does not read."""
    text, known = asked.text, {str(name): place for place, name in enumerate(names)}
    mentioned = sorted((name for name in map(str, known) if name in text), key=text.index)
    if "exactly" in text:
        return int(text.split("exactly ")[1].split()[0]) == len(names)
    if "three people" in text:
        return len(names) == 3
    if " left " in text:
        return known[mentioned[0]] < known[mentioned[1]]
    return bool(mentioned)


def test_yes_no_answers_are_true_and_differ_within_a_pair(pairs: list[ImagePair]) -> None:
    for index, made in enumerate(pairs):
        asked = [one for one in questions(made, index, 5) if one.kind.startswith("y/n")]
        assert len(asked) == TASKS["yes_no"]
        for one in asked:
            assert holds(one, made.names["se".index(one.image)]) == (one.answer == "yes")
        for natural, manipulated in zip(asked[::2], asked[1::2], strict=True):
            assert natural.text == manipulated.text
            assert {natural.answer, manipulated.answer} == {"yes", "no"}


def test_right_options_are_true_and_the_others_are_not(pairs: list[ImagePair]) -> None:
    for index, made in enumerate(pairs):
        low, high, single = (one for one in questions(made, index, 5) if one.options)
        assert low.options[low.right] == LOW_EDITS[EDITS.index(made.edit)]
        assert (low.level, high.level, single.level) == ("low", "high", "high")
        assert single.options[single.right] == described(made.names[1])
        assert described(made.names[0]) in single.options
        for one in (low, high, single):
            assert len(set(one.options)) == len(one.options) == 5


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_files_have_the_official_form(tmp_path: Path) -> None:
    write(tmp_path, tuple(TASKS), 4, 1)
    plain, rotated = lines(tmp_path / "all_questions.json"), lines(tmp_path / "mcq_questions.json")
    assert [row["question_id"] for row in plain] == list(range(len(plain)))
    choice = {row["question_id"]: row for row in plain if row["type"].startswith("mcq")}
    assert len(rotated) == 5 * len(choice)
    assert {row["type"] for row in rotated} == {"mcq-e"}
    for row in rotated:
        number, mcq_id, shift = map(int, row["question_id"].split("__"))
        assert (row["mcq_id"], row["index"]) == (mcq_id, f"{shift + 1}/5")
        options = choice[number]["question"].split("\n")[1:-1]
        assert row["question"].split("\n")[1][3:] == options[shift][3:]
    for row in plain:
        assert (tmp_path / "Images" / row["image"]).is_file()


def test_files_are_equal_byte_for_byte_and_the_first_pairs_do_not_depend_on_the_number(tmp_path: Path) -> None:
    for name, count, seed in (("a", 3, 2), ("b", 3, 2), ("longer", 4, 2), ("other", 3, 3)):
        write(tmp_path / name, ("single",), count, seed)
    content = {
        name: {path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name).rglob("*.*")}
        for name in ("a", "b", "longer", "other")
    }
    assert content["a"] == content["b"] != content["other"]
    pictures = {path for path in content["a"] if path.suffix == ".jpg"}
    assert pictures < content["longer"].keys()
    assert all(content["longer"][path] == content["a"][path] for path in pictures)
    questions_file = Path("all_questions.json")
    assert content["longer"][questions_file].startswith(content["a"][questions_file])


def test_every_task_gets_as_many_rows_as_asked_for(tmp_path: Path) -> None:
    write(tmp_path, ("yes_no", "cross"), 5, 0)
    types = [row["type"] for row in lines(tmp_path / "all_questions.json")]
    assert sum(kind.startswith("y/n") for kind in types) == 6
    assert types.count("mcq-cross") == 6
    assert "mcq-e" not in types


@pytest.mark.parametrize(
    ("tasks", "per_task", "seed", "message"),
    [(("qa",), 1, 0, "'qa' cannot be generated"), (("cross",), 0, 0, "at least 1"), (("cross",), 1, -1, "negative")],
)
def test_bad_requests_write_nothing(tmp_path: Path, tasks: tuple[str], per_task: int, seed: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        write(tmp_path, tasks, per_task, seed)
    assert not list(tmp_path.iterdir())
