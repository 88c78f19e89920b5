"""Conversations in a folder as lessons: token ids, what each weighs as a target, pictures, and what these show.

Where no tool helps, what is seen is said before the answer (`sight.py`), and pictures are learnt part by part besides:
each of a picture's tokens is to read as colour, shape and place of the thing that it shows.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from hybrid.images import ImageStore
from hybrid.models.embedded.training.architecture import IMAGE_TOKENS, MEAN, PATCH, SIDE, SPREAD
from hybrid.models.embedded.training.drills import drill
from hybrid.models.embedded.training.policy import VIEWS
from hybrid.models.embedded.training.scenes import SCENES
from hybrid.models.embedded.training.sight import Thing, View, patches, said
from hybrid.models.embedded.training.vocabulary import ASSISTANT, END, IMAGE, SPECIAL, TEMPLATE, tokenizer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from hybrid.tool import Pixels

WEIGHTS: Final[Mapping[str, float]] = {"plain": 0.4, "tools": 0.52, "text": 0.08}
"""How often a conversation without tools, with native calls and with calls as text is drawn, of all conversations."""
FIRST: Final[Mapping[str, float]] = {"drill": 0.3, "scene": 0.5}
LAST: Final[Mapping[str, float]] = {"drill": 0.05, "scene": 0.08}
EARLY: Final = 0.15
"""Shares of drills and of lessons in seeing, at first and in the end, and the share of the steps after which it is the
end."""
UNTOLD: Final = 0.1
"""Share of the conversations with tools that are learnt without their system message."""
ANSWER_WEIGHT: Final = 3.0
"""Of a token of the last reply, against 1 for one of a call: an answer is a few tokens, a call many."""
SAID_WEIGHT: Final = 0.6
"""Of a token of what is seen."""
ANSWER_TOTAL: Final = 24.0
CALL_TOTAL: Final = 60.0
"""The most that the tokens of an answer, or of a call, weigh together: a scanpath is long, and hardly to be guessed."""
NOTHING: Final = "\n"
"""What a part without a thing reads as."""
LONGEST: Final = 1100
"""Tokens beyond which a conversation is left out."""
POOL: Final = 20
"""Batches that are drawn together and sorted by length."""


@dataclass(frozen=True)
class Lesson:
    """A conversation as token ids, the weight of each as a target (0: not learnt), and its pictures."""

    kind: tuple[str, str, str]
    ids: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]
    pictures: tuple[str, ...]
    view: View | None = None
    """How its one picture is looked at."""


def rows(folder: Path) -> list[dict[str, Any]]:
    """The conversations of every file of the folder, in the order of their names."""
    return [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]


class Eyes:
    """What is said of the pictures of a folder, and what their parts read as; each is looked at once."""

    def __init__(self, folder: Path) -> None:
        self._store = ImageStore(folder / "images")
        self._said: dict[tuple[View, str], str] = {}
        self._parts: dict[str, list[Thing | None]] = {}

    def told(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """The conversation with what is seen before its answer, where its kind wants that and no tool was called."""
        view = view_of(row)
        if view is None or row["benchmark"] == SCENES:
            return row
        *before, last = row["turns"]
        name = pictures_of(row)[-1]
        if (view, name) not in self._said:
            self._said[view, name] = said(view, self._pixels(name))
        return {**row, "turns": [*before, {**last, "content": f"{self._said[view, name]}\n{last['content']}"}]}

    def parts(self, name: str) -> list[Thing | None]:
        """Of a picture, what each of its tokens is of."""
        if name not in self._parts:
            self._parts[name] = patches(self._pixels(name), SIDE // PATCH)
        return self._parts[name]

    def _pixels(self, name: str) -> Pixels:
        import numpy as np
        from PIL import Image

        with Image.open(self._store.path(name)) as picture:
            return np.asarray(picture.convert("RGB"))


def view_of(row: Mapping[str, Any]) -> View | None:
    """How the picture of a conversation is looked at; None where nothing is said of it."""
    if row["benchmark"] == SCENES:
        return cast(View, row["task"])
    calls = sum(turn["role"] == "assistant" for turn in row["turns"]) > 1
    return None if calls else VIEWS.get((row["benchmark"], row["task"]))


def pictures_of(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The sha256 of each picture of a conversation."""
    contents = (turn["content"] for turn in row["turns"] if isinstance(turn["content"], list))
    return tuple(part["image"] for content in contents for part in content if part["type"] == "image")


def vocabulary(conversations: Sequence[Mapping[str, Any]], template: Any, each: int = 60) -> Any:
    """The tokenizer of what is said, of every kind as much."""
    kinds: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in conversations:
        kinds.setdefault((row["benchmark"], row["task"], row["form"]), []).append(row)
    rng = random.Random(0)
    chosen = [row for kind in sorted(kinds) for row in rng.sample(kinds[kind], min(each, len(kinds[kind])))]
    return tokenizer([piece for row in chosen for piece in _pieces(template(row))])


def _pieces(text: str) -> list[str]:
    """The text without special tokens, which are never part of another."""
    for token in SPECIAL:
        text = text.replace(token, "\0")
    return [piece for piece in text.split("\0") if piece]


def rendered(row: Mapping[str, Any]) -> str:
    """A conversation in the words of the chat template."""
    from transformers.utils.chat_template_utils import render_jinja_template

    tools = [{"type": "function", "function": {"name": name}} for name in row["tools"]] or None
    texts, _ = render_jinja_template([row["turns"]], tools=tools, chat_template=TEMPLATE)
    return str(texts[0])


def lesson(row: Mapping[str, Any], words: Any) -> Lesson:
    """A conversation as tokens, with each picture as many as it takes."""
    import numpy as np

    text = rendered(row).replace(IMAGE, IMAGE * IMAGE_TOKENS)
    ids = np.array(words(text, add_special_tokens=False)["input_ids"], dtype=np.int32)
    begin, end = words.convert_tokens_to_ids([ASSISTANT, END])
    weights = np.zeros(len(ids), dtype=np.float32)
    starts = np.flatnonzero(ids == begin)
    for number, start in enumerate(starts, 1):
        stop = start + 1 + int(np.flatnonzero(ids[start:] == end)[0])
        each, total = (ANSWER_WEIGHT, ANSWER_TOTAL) if number == len(starts) else (1.0, CALL_TOTAL)
        weights[start + 1 : stop] = min(each, total / (stop - start - 1))
    view = view_of(row)
    if view is not None:
        seen, _, answer = row["turns"][-1]["content"].rpartition("\n")
        answered = len(words(answer, add_special_tokens=False)["input_ids"]) + 1 if seen else 0
        weights[start + 1 : stop - answered] = SAID_WEIGHT
        weights[stop - answered : stop] = ANSWER_WEIGHT
    return Lesson((row["benchmark"], row["task"], row["form"]), ids, weights, pictures_of(row), view)


class Pictures:
    """The pictures as the network takes them, by sha256: uint8 (3, side, side) before their mean is taken off."""

    def __init__(self, folder: Path, processor: Any) -> None:
        self._store = ImageStore(folder / "images")
        self._processor = processor.image_processor
        self._made: dict[str, npt.NDArray[np.uint8]] = {}

    def __getitem__(self, sha256: str) -> npt.NDArray[np.uint8]:
        if sha256 not in self._made:
            from PIL import Image

            with Image.open(self._store.path(sha256)) as picture:
                made = self._processor(
                    picture.convert("RGB"), do_rescale=False, do_normalize=False, return_tensors="np"
                )["pixel_values"][0]
            self._made[sha256] = made.astype("uint8")
        return self._made[sha256]

    def batch(self, names: Sequence[str]) -> Any:
        """The normalised pictures as one tensor (n, 3, side, side)."""
        import numpy as np
        import torch

        pixels = torch.from_numpy(np.stack([self[name] for name in names])).float() / 255
        mean, spread = (torch.tensor(values).view(1, 3, 1, 1) for values in (MEAN, SPREAD))
        return (pixels - mean) / spread


class Lessons:
    """The conversations as lessons, each made when it is first drawn; some of them without their system message."""

    def __init__(self, conversations: Sequence[Mapping[str, Any]], words: Any, eyes: Eyes, seed: int) -> None:
        self._rows = conversations
        self.words = words
        self.eyes = eyes
        self._untold = random.Random(f"untold/{seed}")
        self._made: dict[int, Lesson] = {}
        self._tokens: dict[str, int] = {}
        self.forms: dict[str, dict[tuple[str, str], list[int]]] = {}
        for place, row in enumerate(conversations):
            tasks = self.forms.setdefault(row["form"], {})
            tasks.setdefault((row["benchmark"], row["task"]), []).append(place)

    def __getitem__(self, place: int) -> Lesson:
        if place not in self._made:
            row = self._rows[place]
            told = row["turns"][0]["role"] == "system" and row["form"] == "tools"
            if told and self._untold.random() < UNTOLD:
                row = {**row, "turns": row["turns"][1:]}
            self._made[place] = lesson(self.eyes.told(row), self.words)
        return self._made[place]

    def scenes(self) -> list[tuple[str, View]]:
        """The pictures of the lessons in seeing, each with how it is looked at."""
        found = [row for row in self._rows if row["benchmark"] == SCENES]
        return [(name, cast("View", row["task"])) for row in found for name in pictures_of(row)]

    def read_as(self, name: str, view: View) -> list[tuple[int, ...]]:
        """The tokens that each of a picture's tokens is to read as: colour, shape and place of a thing, or nothing."""
        shapes = ("ball", "cube") if view == "ground" else ("circle", "square")
        read = []
        for thing in self.eyes.parts(name):
            said = (NOTHING,) * 4 if thing is None else (thing.colour, shapes[not thing.round], *thing.place)
            read.append(tuple(map(self._token, said)))
        return read

    def _token(self, word: str) -> int:
        if word not in self._tokens:
            (self._tokens[word],) = self.words(word, add_special_tokens=False)["input_ids"]
        return self._tokens[word]


def share(kind: str, spent: float) -> float:
    """The share of drills or of lessons in seeing by the share of the steps that are over."""
    return max(LAST[kind], FIRST[kind] * (1 - spent / EARLY))


def drawn(lessons: Lessons, steps: int, tokens: int, seed: int) -> Iterator[list[Lesson]]:
    """The batches of all steps: forms by weight, tasks of a form by their number, batches of like length.

    `tokens` is the size of a batch, what shorter lessons are filled up with among them.
    """
    rng = random.Random(seed)
    forms = lessons.forms
    names = sorted(WEIGHTS.keys() & forms.keys())
    weights = [WEIGHTS[name] for name in names]
    given = 0
    while given < steps:
        pool: list[Lesson] = []
        spent = given / steps
        while sum(len(each.ids) for each in pool) < POOL * tokens:
            chance = rng.random() - share("drill", spent)
            if chance < 0:
                pool.append(lesson(drill(rng), lessons.words))
                continue
            form = "scene" if chance < share("scene", spent) and "scene" in forms else rng.choices(names, weights)[0]
            tasks = forms[form]
            # A task with many questions has more to teach, though not in proportion to their number.
            task = rng.choices(list(tasks), [math.sqrt(len(each)) for each in tasks.values()])[0]
            chosen = lessons[rng.choice(tasks[task])]
            if len(chosen.ids) <= LONGEST:
                pool.append(chosen)
        pool.sort(key=lambda each: len(each.ids))
        batches: list[list[Lesson]] = [[]]
        for each in pool:
            if batches[-1] and (len(batches[-1]) + 1) * len(each.ids) > tokens:
                batches.append([])
            batches[-1].append(each)
        rng.shuffle(batches)
        batches = batches[: steps - given]
        given += len(batches)
        yield from batches
