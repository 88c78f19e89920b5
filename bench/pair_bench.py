"""Shared code of the benches of `correspondence` and `motion`: sets of pairs, matchers, counts by confidence.

Options of `parse`: `--set`, `--pairs`, `--seed`, `--photos`, `--half`, `--fit`, `--backend`, `--weights`, `--device`,
`--matches`, `--json`. The same seed gives both benches the same pairs, so both can use the cached matches.
"""

from __future__ import annotations

import hashlib
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import cv2
import numpy as np

from bench._frame import options
from bench.light_change import DIFFICULTIES, Difficulty
from bench.warped_pairs import KINDS, Kind, WarpedPair, photographs, picture, warped_pair
from hybrid.core.types import Json
from hybrid.samples.seeds import generator
from hybrid.stats import wilson
from hybrid.tool import Tool
from hybrid.tool.backends import Learned
from tools._shared.reflection import match_either_hand
from tools._shared.view_matches import Matches, MatchView

Question = TypeVar("Question")
Answer = TypeVar("Answer")

# Distance, in photographs, between successive pairs of a set: neighbours in a folder are often similar.
STRIDE = 7


@dataclass(frozen=True)
class PairSet:
    """A kind of pairs, and how hard they are."""

    kind: Kind
    difficulty: Difficulty

    @property
    def name(self) -> str:
        """Return a name such as `parallax-extreme`."""
        return f"{self.kind}-{self.difficulty}"


SETS = tuple(PairSet(kind, difficulty) for kind in KINDS for difficulty in DIFFICULTIES)


@dataclass(frozen=True)
class Matcher:
    """Matches two views, in pixels of the original images; `version` identifies its network, if any."""

    name: str
    version: str
    match: Callable[[tuple[MatchView, MatchView]], Matches]


@dataclass(frozen=True)
class Judged:
    """An answer to a pair: whether it is right (None: undecided), its confidence 0..1, the seconds of matching."""

    right: bool | None
    confidence: float
    seconds: float


def matcher_of(name: str, tool: Tool, device: str, weights: str | None) -> Matcher:
    """Return the matcher: RootSIFT and ORB, or the network of the learned backend. Raises `WeightsError`."""
    if name == "classical":
        return Matcher(name, "features-3", lambda views: match_either_hand(*views))
    card = tool.backend("learned")
    backend = None if card is None else card.make()
    if not isinstance(backend, Learned):
        raise SystemExit(f"{tool.card.name} has no learned backend")
    backend.setup(device, weights)
    model = backend.model
    # The network of the backend prepares and matches the views.
    return Matcher(name, f"either hand, {model.version}", lambda views: model.predict([model.prepare(views)])[0])


@dataclass(frozen=True, eq=False)
class Matched:
    """Matches of two views and the seconds needed to find them."""

    matches: Matches
    seconds: float


@dataclass(frozen=True)
class MatchStore:
    """Caches matches in a folder, if one is given, by the pixels of both views and the matcher's version.

    With cached matches, the geometry can be measured again without the network.
    """

    folder: Path | None

    def match(self, matcher: Matcher, views: tuple[MatchView, MatchView]) -> Matched:
        """Return the cached matches with their seconds, or run the matcher."""
        digest = hashlib.sha256(matcher.version.encode())
        for view in views:
            digest.update(repr((view.pixels.shape, view.scale_x, view.scale_y)).encode() + view.pixels.tobytes())
        path = None if self.folder is None else self.folder / f"{digest.hexdigest()}.npz"
        if path is not None and path.is_file():
            with np.load(path) as selected:
                matches = Matches(
                    selected["first"],
                    selected["second"],
                    selected["scores"],
                    str(selected["matcher"]),
                    bool(selected["mirrored"]),
                )
                return Matched(matches, float(selected["seconds"]))
        started = time.perf_counter()
        result = matcher.match(views)
        seconds = time.perf_counter() - started
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            kept_as = {**vars(result), "matcher": np.array(result.matcher), "seconds": np.array(seconds)}
            np.savez(path, **kept_as)
        return Matched(result, seconds)


def parse(doc: str | None, tool: Tool, names: Sequence[str], default: Sequence[str]) -> Namespace:
    """Parse the command line: `names` are the existing sets, `default` those used if none is named.

    The result also contains the chosen `photos`, encoded, the `sets`, the `purpose` of their seeds, the `matchers`, and
    the `store` of matches.
    """
    flags = {"--set": list(names), "--pairs": 30, "--seed": 1000, "--photos": Path, "--fit": False, "--weights": str}
    flags |= {"--half": (None, "first", "second"), "--backend...": ("classical", "learned"), "--device": "cpu"}
    arguments = options(doc, {**flags, "--matches": Path, "--json": Path})
    cv2.setNumThreads(1)
    photos = tuple(photographs(arguments.photos)) if arguments.photos else ()
    start, step = {"first": (0, 2), "second": (1, 2), None: (0, 1)}[arguments.half]
    arguments.photos = photos[start::step]
    arguments.sets = tuple(arguments.set or default)
    arguments.purpose = "fit" if arguments.fit else "evaluate"
    arguments.matchers = tuple(
        matcher_of(name, tool, arguments.device, arguments.weights) for name in dict.fromkeys(arguments.backend)
    )
    arguments.store = MatchStore(arguments.matches)
    return arguments


def pairs_of(options: Namespace, name: str) -> Iterator[tuple[WarpedPair, np.random.Generator]]:
    """Yield the pairs of a set, each with the generator that also draws its points."""
    place = [item.name for item in SETS].index(name)
    selected = SETS[place]
    for index in range(options.pairs):
        rng = generator(options.purpose, options.seed, place, index)
        pixels = picture(options.photos, index * STRIDE + place, rng)
        yield warped_pair(rng, pixels, selected.kind, selected.difficulty), rng


def side_by_side(
    options: Namespace,
    questions: Callable[[Namespace, str], Iterable[Question]],
    answer: Callable[[Namespace, Matcher, Question], Answer],
) -> Iterator[tuple[str, Matcher, list[Answer]]]:
    """Yield each matcher's answers to the questions of each set, which are drawn once for all matchers.

    Args:
        options: the parsed options.
        questions: the questions of a set, by its name.
        answer: answers a question with a matcher.
    """
    for name in options.sets:
        answers: dict[str, list[Answer]] = {matcher.name: [] for matcher in options.matchers}
        for question in questions(options, name):
            for matcher in options.matchers:
                answers[matcher.name].append(answer(options, matcher, question))
        for matcher in options.matchers:
            yield name, matcher, answers[matcher.name]


def row_of(name: str, matcher: Matcher, answers: Sequence[Judged]) -> dict[str, Json]:
    """Return the numbers of a set that both benches have in common."""
    right, n = sum(bool(answer.right) for answer in answers), len(answers)
    around = wilson(right, n)
    return {
        "set": name,
        "backend": matcher.name,
        "version": matcher.version,
        "n": n,
        "right": right,
        "undecided": sum(item.right is None for item in answers),
        "interval": None if around is None else [around.low, around.high],
        "seconds": float(np.mean([entry.seconds for entry in answers])),
    }
