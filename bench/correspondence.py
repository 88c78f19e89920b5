"""Measure the correspondence tool on pairs with known truth, backends side by side.

    python -m bench.correspondence [--pairs 30] [--seed 1000] [--set parallax-extreme]... [--photos DIR] [--json FILE]
    python -m bench.correspondence --backend classical learned [--weights DIR_OR_ID] [--matches DIR]

Pairs are photographs (`--photos`; otherwise rendered scenes) warped by a homography or by a plausible depth, in another
light, blurred, cropped and noisy: `bench/warped_pairs.py`. Each pair is used twice for one point: to choose among four
candidates, and to locate the point without candidates (PCK@1, 2, 5 %: within that share of image 2's longer side; no
answer is a miss). `bench.reliability --task Visual_Correspondence` asks about images with drawn marks. Constants of the
tool were set with `--fit` on the `second` half of the photographs, so report the `first` half.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bench._accuracy import bins, by_confidence, format_share
from bench._frame import write_json
from bench.pair_bench import SETS, Judged, Matcher, pairs_of, parse, row_of, side_by_side
from bench.warped_pairs import points_of
from hybrid.core.types import Json
from hybrid.stats import wilson
from hybrid.tool import Pixels, Request
from tools._shared.args import CandidateArg, PointArg
from tools.correspondence import TOOL, CorrespondenceArgs, solve, views_of

SHARES = (0.01, 0.02, 0.05)
LETTERS = "ABCD"
HARD = tuple(item.name for item in SETS if item.kind != "straight")


@dataclass(frozen=True, eq=False)
class PointCase:
    """One question: the images, the true point in image 2, the right letter, and the arguments."""

    images: tuple[Pixels, Pixels]
    target_xy: tuple[float, float]
    letter: str
    choice_request: Request[CorrespondenceArgs]
    point_request: Request[CorrespondenceArgs]


@dataclass(frozen=True)
class Answer(Judged):
    """The tool's answer; `right` is None if no candidate was chosen.

    `off` is the distance of the point from the true one, as a share of image 2's longer side; infinite if no point was
    given.
    """

    off: float
    place_confidence: float


def cases(options: Namespace, name: str) -> Iterator[PointCase]:
    """Yield the questions of a set."""
    for number, (pair, rng) in enumerate(pairs_of(options, name)):
        (x, y), spots = points_of(rng, pair)
        right = number % len(spots)
        order = [*spots[1 : right + 1], spots[0], *spots[right + 1 :]]
        candidates = tuple(CandidateArg(x=a, y=b, label=letter) for (a, b), letter in zip(order, LETTERS, strict=True))
        args = CorrespondenceArgs(point=PointArg(x=x, y=y), candidates=candidates)
        placed = CorrespondenceArgs(point=PointArg(x=x, y=y))
        yield PointCase(pair.images, spots[0], LETTERS[right], Request(pair.images, args), Request(pair.images, placed))


def answer(options: Namespace, matcher: Matcher, case: PointCase) -> Answer:
    """Return the tool's answer to a question, using a matcher's matches."""
    views = views_of(case.choice_request)
    match = options.store.match(matcher, views)
    selected = solve(case.choice_request, views, match.matches)
    best = selected.data["best"]
    right = None if best is None else best == case.letter
    placed = solve(case.point_request, views, match.matches)
    point, off = placed.data["transferred_px"], np.inf
    if isinstance(point, dict):
        longer = max(case.images[1].shape[:2])
        off = float(np.hypot(point["x"] - case.target_xy[0], point["y"] - case.target_xy[1])) / longer
    return Answer(right, selected.confidence, match.seconds, off, placed.confidence)


def report(name: str, matcher: Matcher, answers: Sequence[Answer]) -> dict[str, Json]:
    """Print the results of one set and one backend; return the numbers."""
    row, n = row_of(name, matcher, answers), len(answers)
    text = (
        f"choice {format_share(int(str(row['right'])), n)}, undecided {row['undecided']}, {row['seconds']:.2f} s a pair"
    )
    print(f"{name:17s} {matcher.name:9s} {text}")
    within = {share: sum(item.off <= share for item in answers) for share in SHARES}
    text = ", ".join(f"@{100 * share:g} % {format_share(right, n)}" for share, right in within.items())
    print(f"{'':28s}PCK {text}", flush=True)
    for share, right in within.items():
        limits = wilson(right, n)
        row[f"pck_{share:g}"] = right / n
        row[f"pck_{share:g}_interval"] = None if limits is None else [limits.low, limits.high]
    return row


def main() -> None:
    """Print the requested tables."""
    options = parse(__doc__, TOOL, HARD, HARD)
    messages: dict[str, list[Answer]] = {matcher.name: [] for matcher in options.matchers}
    rows: list[dict[str, Json]] = []
    for name, matcher, answers in side_by_side(options, cases, answer):
        rows.append(report(name, matcher, answers))
        messages[matcher.name] += answers
    for matcher in options.matchers:
        decided = [(item.confidence, item.right) for item in messages[matcher.name] if item.right is not None]
        placed = [
            (entry.place_confidence, entry.off <= SHARES[1])
            for entry in messages[matcher.name]
            if np.isfinite(entry.off)
        ]
        print(f"{matcher.name}, choices by confidence: {bins(decided)}")
        print(f"{matcher.name}, places within 2 % by confidence: {bins(placed)}")
        values: list[Json] = [[value.low, value.right, value.n] for value in by_confidence(decided)]
        rows.append({"backend": matcher.name, "version": matcher.version, "bins": values})
    write_json(options.json, rows)


if __name__ == "__main__":
    main()
