"""Generated questions in MVP-Bench's official layout, for tests, the quickstart and load tests.

Pictures, wording and meaning of the questions are this project's own, so a score on them is never an MVP-Bench result.
Pair i depends only on (seed, i), so more pairs never change the first pairs. The ids of generated pairs start after the
real ids, so that these pairs belong to no category of the paper. Run: `hybrid run mvp_bench --data sample`.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hybrid.benchmarks._shared.samples import check_request, indices_to_draw
from hybrid.benchmarks.mvp_bench.sample_pairs import EDITS, ImagePair, pair, spare_colours
from hybrid.core.files import write_atomic
from hybrid.core.types import LETTERS
from hybrid.samples.item import jpeg, until
from hybrid.samples.layouts import SHAPES, Name
from hybrid.samples.seeds import Purpose, generator

# Number of rows per pair for each task, not counting rotations.
TASKS: Mapping[str, int] = {"yes_no": 6, "cross": 2, "single": 1}

FIRST_PAIR = 1000
OPTIONS = 5
JPEG_QUALITY = 90
TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
# Ways to edit one picture of a pair into the other, and the aspects that may differ between them.
LOW_EDITS, ASPECTS = TEXTS["low_edits"], TEXTS["aspects"]


@dataclass(frozen=True)
class PairQuestion:
    """A question before it becomes rows.

    `right` is the index of the right one of `options`. A yes-or-no question has the `answer` "yes" or "no" instead.
    """

    kind: str
    level: str
    image: str
    text: str
    options: tuple[str, ...] = ()
    right: int = 0
    answer: str = ""


def write(folder: Path, tasks: Sequence[str], per_task: int, seed: int, purpose: Purpose = "sample") -> None:
    """Write question files and images of enough pairs to give every task at least `per_task` rows.

    Raises `UsageError` like `check_request`; nothing is written then.
    """
    check_request(tasks, TASKS, per_task, seed)
    plain: list[dict[str, object]] = []
    rotated: list[dict[str, object]] = []
    pairs = max(-(-per_task // TASKS[task]) for task in tasks)
    for index in indices_to_draw("the picture pairs", pairs):
        remaining = [task for task in tasks if index * TASKS[task] < per_task]
        pair_made = pair(index, seed, purpose)
        for name, pixels in (
            ("s", pair_made.images[0]),
            ("e", pair_made.images[1]),
            ("concat", np.concatenate(pair_made.images, 1)),
        ):
            below = "Cross_Images" if name == "concat" else "Single_Images"
            path = folder / "Images" / below / f"{FIRST_PAIR + index}_{name}.jpg"
            write_atomic(path, jpeg(pixels, JPEG_QUALITY))
        for question in questions(pair_made, index, seed, purpose):
            if task_of(question) in remaining:
                number = len(plain)
                plain.append(_record(question, number, FIRST_PAIR + index))
                rotated += _rotations(question, number, FIRST_PAIR + index, len({row["mcq_id"] for row in rotated}))
    for name, rows in (("all_questions.json", plain), ("mcq_questions.json", rotated)):
        write_atomic(folder / name, "".join(f"{json.dumps(row)}\n" for row in rows).encode())


def task_of(question: PairQuestion) -> str:
    """Return the task of a question."""
    return {"mcq-cross": "cross", "mcq-e": "single"}.get(question.kind, "yes_no")


def questions(image_pair: ImagePair, index: int, seed: int, purpose: Purpose = "sample") -> Iterator[PairQuestion]:
    """Yield the questions about a pair: six yes/no rows, two about both pictures, one about the manipulated picture."""
    rng = generator(purpose, seed, index, 1)
    for level, text, answers in _statements(image_pair):
        for suffix, answer in zip("se", answers, strict=True):
            yield PairQuestion(f"y/n-{suffix}", level, suffix, text, answer="yes" if answer else "no")
    place = EDITS.index(image_pair.edit)
    edited = "What was done to turn one picture of the pair into the other?"
    yield _choice(rng, "mcq-cross", "low", text=edited, options=LOW_EDITS, right=place)
    aspect = "Which aspect of the group differs between the two images?"
    yield _choice(rng, "mcq-cross", "high", text=aspect, options=ASPECTS, right=place)
    # The options are the true list, the list of the other picture, and lists that are true of neither; all differ.
    lists = [described(image_pair.names[1]), described(image_pair.names[0])]
    while len(lists) < OPTIONS:
        lists.append(until("wrong list", lambda: _draw_wrong_statement(rng, image_pair.names[1], set(lists))))
    listed = "What stands in the picture, from left to right?"
    yield _choice(rng, "mcq-e", "high", text=listed, options=lists, right=0)


def described(names: Sequence[Name]) -> str:
    """List the objects in words, in the given order."""
    return ", ".join(_article(name) for name in names)


def _article(name: Name) -> str:
    return f"{'an' if name.colour[0] in 'aeiou' else 'a'} {name}"


def _statements(image_pair: ImagePair) -> Iterator[tuple[str, str, tuple[bool, bool]]]:
    """Yield the level and text of each question, and its answers on the two pictures; the two answers always differ."""
    first, second = image_pair.names
    if image_pair.edit == "order":
        moved = [k for k, (a, b) in enumerate(zip(first, second, strict=True)) if a != b]
        first_name, second_name = first[moved[0]], first[moved[1]]
        yield "low", f"Is the {first_name} to the left of the {second_name}?", (True, False)
        yield "low", f"Is the {second_name} to the left of the {first_name}?", (False, True)
        text = f"Reading from left to right, would you come to the {first_name} before the {second_name}?"
        yield "high", text, (True, False)
        return
    if image_pair.edit == "count":
        extra = next(name for name in (*first, *second) if (name in first) != (name in second))
        yield "low", f"Is there {_article(extra)} in the image?", (extra in first, extra in second)
        yield "low", f"Are there exactly {len(first)} objects in the image?", (True, False)
        text = "Could three people each take one object home, with none left over?"
        yield "high", text, (len(first) == 3, len(second) == 3)
        return
    gone = next(name for name in first if name not in second)
    come = next(name for name in second if name not in first)
    yield "low", f"Is there {_article(gone)} in the image?", (True, False)
    yield "low", f"Is there {_article(come)} in the image?", (False, True)
    yield "high", f"Would a child who only plays with {_article(come)} find a toy here?", (False, True)


def _draw_wrong_statement(rng: np.random.Generator, names: tuple[Name, ...], excluded: set[str]) -> str | None:
    changed = [names[k] for k in rng.permutation(len(names))]
    place = int(rng.integers(len(changed)))
    old = changed[place]
    if rng.random() < 0.5:
        changed[place] = Name(str(rng.choice(spare_colours(names))), old.shape)
    else:
        changed[place] = Name(old.colour, SHAPES[1 - SHAPES.index(old.shape)])
    text = described(changed)
    return None if text in excluded else text


def _choice(
    rng: np.random.Generator, kind: str, level: str, *, text: str, options: Sequence[str], right: int
) -> PairQuestion:
    order = [int(k) for k in rng.permutation(len(options))]
    image = "e" if kind == "mcq-e" else "concat"
    return PairQuestion(
        kind, level, image=image, text=text, options=tuple(options[k] for k in order), right=order.index(right)
    )


def _text(question: PairQuestion, shift: int = 0) -> tuple[str, str]:
    """Return the full text with the options rotated to the left, and the answer."""
    if not question.options:
        return f"{question.text}\n{TEXTS['ask_yes_no']}", question.answer
    options = (*question.options[shift:], *question.options[:shift])
    lines = "\n".join(f"{LETTERS[k]}. {option}" for k, option in enumerate(options))
    return f"{question.text}\n{lines}\n{TEXTS['ask_letter']}", LETTERS[(question.right - shift) % len(options)]


def _record(question: PairQuestion, number: int, pair_id: int) -> dict[str, object]:
    text, answer = _text(question)
    folder = "Cross_Images" if question.image == "concat" else "Single_Images"
    return {
        "question_id": number,
        "id": pair_id,
        "image": f"{folder}/{pair_id}_{question.image}.jpg",
        "question": text,
        "answer": answer,
        "type": question.kind,
        "level": question.level,
    }


def _rotations(question: PairQuestion, number: int, pair_id: int, mcq_id: int) -> Iterator[dict[str, object]]:
    for shift in range(len(question.options)):
        text, answer = _text(question, shift)
        yield {
            **_record(question, number, pair_id),
            "question_id": f"{number}__{mcq_id}__{shift}",
            "mcq_id": mcq_id,
            "index": f"{shift + 1}/{len(question.options)}",
            "question": text,
            "answer": answer,
            # The published file has this type in every row.
            "type": "mcq-e",
        }
