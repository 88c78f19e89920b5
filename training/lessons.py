"""Conversations as lessons: token ids, the weight of each as a target, pictures, and the labels of their tokens.

Lessons(conversations, words, eyes, seed=0)[5] is the sixth lesson.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from training.architecture import IMAGE_TOKENS
from training.pictures import Eyes, pictures_of, view_of
from training.scenes import SCENES
from training.sight import SHAPES, View
from training.vocabulary import ASSISTANT, CALLS, END, IMAGE, SPECIAL, TEMPLATE, tokenizer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Share of the conversations with tools that are learnt without their system message.
UNTOLD: Final = 0.1
# Weight of a token of the last reply, relative to 1 for a token of a call: an answer has few tokens, a call many.
ANSWER_WEIGHT: Final = 3.0
# Weight of a token of a description.
SAID_WEIGHT: Final = 0.6
ANSWER_TOTAL: Final = 24.0
# Largest total weight of a call, like `ANSWER_TOTAL` for an answer: a scanpath is long and nearly unpredictable.
CALL_TOTAL: Final = 60.0
# Label of a picture part that shows nothing.
NOTHING: Final = "\n"
# Number of conversations per task and form from which the tokenizer is made.
OF_A_KIND: Final = 60


@dataclass(frozen=True)
class Lesson:
    """A conversation as token ids, the weight of each as a target (0: not learnt), and its pictures."""

    ids: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]
    pictures: tuple[str, ...]
    # The description of its only picture; None if there is no description.
    view: View | None = None


def rows(folder: Path) -> list[dict[str, Any]]:
    """Return the conversations of every file of the folder, in the order of their names."""
    return [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]


def tokenizer_of(conversations: Sequence[Mapping[str, Any]], eyes: Eyes) -> Any:
    """Return the tokenizer of the texts of conversations, with equal shares of every kind."""
    kinds: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in conversations:
        kinds.setdefault((row["benchmark"], row["task"], row["form"]), []).append(row)
    rng = random.Random(0)
    values = [row for kind in sorted(kinds) for row in rng.sample(kinds[kind], min(OF_A_KIND, len(kinds[kind])))]
    # Split the texts at the tokens that are never part of another token.
    differences = re.compile("|".join(map(re.escape, (*SPECIAL, *CALLS))))
    return tokenizer(
        [piece for row in values for piece in differences.split(rendered(eyes.conversation(row))) if piece]
    )


def rendered(row: Mapping[str, Any]) -> str:
    """Return a conversation rendered by the chat template."""
    from transformers.utils.chat_template_utils import render_jinja_template

    tools = [{"type": "function", "function": {"name": name}} for name in row["tools"]] or None
    texts, _ = render_jinja_template([row["turns"]], tools=tools, chat_template=TEMPLATE)
    return str(texts[0])


def lesson(row: Mapping[str, Any], words: Any) -> Lesson:
    """Return a conversation as tokens, including those of its pictures."""
    import numpy as np

    text = rendered(row).replace(IMAGE, IMAGE * IMAGE_TOKENS)
    ids = np.array(words(text, add_special_tokens=False)["input_ids"], dtype=np.int32)
    begin, end = words.convert_tokens_to_ids([ASSISTANT, END])
    weights = np.zeros(len(ids), dtype=np.float32)
    starts = np.flatnonzero(ids == begin)
    for number, start in enumerate(starts, 1):
        stop = start + 1 + int(np.flatnonzero(ids[start:] == end)[0])
        item, total = (ANSWER_WEIGHT, ANSWER_TOTAL) if number == len(starts) else (1.0, CALL_TOTAL)
        weights[start + 1 : stop] = min(item, total / (stop - start - 1))
    view = view_of(row)
    if view is not None or row.get("given"):
        previous, _, answer = row["turns"][-1]["content"].rpartition("\n")
        answered = len(words(answer, add_special_tokens=False)["input_ids"]) + 1 if previous else 0
        # A drill's text is random, so the question does not determine it, and only the answer is learnt.
        weights[start + 1 : stop - answered] = 0.0 if row.get("given") else SAID_WEIGHT
        weights[stop - answered : stop] = ANSWER_WEIGHT
    return Lesson(ids, weights, pictures_of(row), view)


class Lessons:
    """The conversations as lessons, some without their system message; each lesson is made when it is first drawn."""

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
            instructed = row["turns"][0]["role"] == "system" and row["form"] == "tools"
            if instructed and self._untold.random() < UNTOLD:
                row = {**row, "turns": row["turns"][1:]}
            self._made[place] = lesson(self.eyes.conversation(row), self.words)
        return self._made[place]

    def scenes(self) -> list[tuple[str, View]]:
        """Return the pictures of the vision lessons, each with its view."""
        values = [row for row in self._rows if row["benchmark"] == SCENES]
        return [(name, cast("View", row["task"])) for row in values for name in pictures_of(row)]

    def read_as(self, name: str, view: View) -> list[tuple[int, ...]]:
        """Return the target tokens of each picture token: colour, shape and place of a thing, or nothing."""
        shapes = SHAPES[view]
        words = (
            (NOTHING,) * 4 if part is None else (part.colour, shapes[not part.round], *part.place)
            for part in self.eyes.parts(name)
        )
        return [tuple(map(self._token, word)) for word in words]

    def _token(self, word: str) -> int:
        if word not in self._tokens:
            (self._tokens[word],) = self.words(word, add_special_tokens=False)["input_ids"]
        return self._tokens[word]
