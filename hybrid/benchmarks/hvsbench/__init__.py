"""HVSBench (Lin et al., 2024): does a model look at pictures as people do? 13 question types in five fields.

    hybrid run hvsbench --data DIR           DIR/data/test-*.parquet, the layout of the hub data set
    hybrid run hvsbench --data sample --task Q9 --setting screen=512x320

Protocol: one call per row, with the image and the verbatim question. Q2 is a count, Q3 an order, Q9 and Q12 ask for a
scanpath, the others for a letter. Metrics: `overall_accuracy` is the share of right answers to all questions but Q9 and
Q12 (micro), `accuracy.FIELD` the same within a field, `mae` and `rmse` are errors of Q2, `m_dir.q9` and the like are
MultiMatch similarities; `m_dir_human.q9`, `m_dir_random.q9` and `m_dir_rescaled_*.q9` are explained in
`hvsbench/metrics.py`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from hybrid.answers.base import Parsed
from hybrid.answers.integers import parse_integer
from hybrid.answers.letters import parse_letter
from hybrid.answers.orders import parse_order
from hybrid.answers.scanpaths import parse_scanpath
from hybrid.benchmarks._shared.paths import inside
from hybrid.benchmarks._shared.rows import DataRow, read_questions, stored_ahead
from hybrid.benchmarks._shared.scores import score_of
from hybrid.benchmarks.base import AS_PAPERS, Benchmark, ScoreOptions, Source, unanswered
from hybrid.benchmarks.hvsbench.data import (
    Subject,
    count,
    files,
    human_paths,
    identity_of,
    letter,
    of_another_image,
    order,
    rows,
    subjects,
    types_present,
)
from hybrid.benchmarks.hvsbench.metrics import (
    CROP,
    FALLBACK_COUNT,
    FALLBACK_PATH,
    FIELDS,
    Rules,
    compare,
    references,
    summarise,
)
from hybrid.benchmarks.hvsbench.question_text import KINDS, options, prompt_facts
from hybrid.core.errors import DataError
from hybrid.core.types import (
    BrokenQuestion,
    Exchange,
    Json,
    Kind,
    Metric,
    Outcome,
    Prompt,
    PromptFacts,
    Question,
    Reply,
    Scanpath,
    Score,
)

# Accuracy of a random guess at Q2, drawn from the true counts (Table 3): the score of an abstention on Q2.
CHANCE_COUNT: Final = 0.1909

# The key in `texts.toml` of the text for each field (appendix E); the two fields of scanpaths share `fixation`.
HINTS: Final = {"prominence": "salient", "subitizing": "salient", "prioritizing": "ranking"}


class HVSBench(Benchmark):
    """The benchmark HVSBench; its protocol is described in the module's docstring."""

    def tasks(self, source: Source) -> tuple[str, ...]:
        """Return the question types in the data. Raises `DataError` if there is no file or no type."""
        paths = files(source.folder, source.split)
        if not paths:
            raise DataError(f"{source.folder} contains no HVSBench data: expected data/{source.split}-*.parquet")
        return types_present(source.folder, paths)

    def files(self, source: Source) -> tuple[Path, ...]:
        """Return the parquet files; each can contain every question type."""
        return tuple(path for path in files(source.folder, source.split) if inside(source.folder, path))

    def hub_files(self, split: str, tasks: Sequence[str]) -> tuple[str, ...]:
        """Return all parquet files of the split: each can contain every question type."""
        return (f"data/{split}-*.parquet",)

    def questions(self, source: Source) -> Iterator[Question | BrokenQuestion]:
        """Yield the rows of the chosen types, one type after the other.

        An unusable file, or a row without a type, counts as missing from each type.
        """
        settings = self.card.resolve_settings(source.settings)
        paths = files(source.folder, source.split)
        for task in source.tasks:
            pool = subjects(source.folder, paths, task) if KINDS[task] is Kind.SCANPATH else {}
            hint = self.texts[HINTS.get(_field(task), "fixation")].strip()
            prefix = f"{hint}\n" if settings["hints"] == "on" else ""

            def read(path: Path, task: str = task) -> Iterator[DataRow]:
                small = rows(source.folder, path, task, images=not source.for_predictions)
                return stored_ahead(small, source.store, ("image",))

            identify = partial(identity_of, task=task, seen=set())
            make = partial(_question, task=task, source=source, settings=settings, pool=pool, prefix=prefix)
            yield from read_questions(paths, task, source.folder, read=read, identify=identify, make=make)

    def score(self, question: Question, exchanges: Sequence[Exchange], options: ScoreOptions) -> Score:
        """Score by the question's kind; the authors' parser is not public, so `--protocol` changes nothing.

        For a count, `values["error"]` is prediction minus truth. For a scanpath, `correct` is None, and the values are
        similarities by names of metrics; they include those of people and of a random path if the data allow it.
        """
        reply = exchanges[-1].reply
        verdict = score_of(question, 0.0, reply.outcome)
        if question.kind is Kind.SCANPATH:
            return _score_scanpath(question, reply, verdict, options)
        if reply.outcome.failed:
            return verdict
        number = len(question.choices)
        parsed: Parsed[int] | Parsed[str]
        if question.kind is Kind.ORDER:
            parsed, chance = parse_order(reply.text, question.choices), 1 / math.factorial(number)
        elif question.kind is Kind.INTEGER:
            parsed, chance = parse_integer(reply.text), CHANCE_COUNT
        else:
            parsed, chance = parse_letter(reply.text, question.choices), 1 / number
        credit = unanswered(reply.outcome, chance, options)
        if question.kind is Kind.INTEGER:
            if not isinstance(question.target, int):
                raise DataError(f"the target {question.target!r:.60} is not that of a counting question")
            value = parsed.value if isinstance(parsed.value, int) else FALLBACK_COUNT
            verdict = replace(verdict, values={"predicted": float(value), "error": value - question.target})
        if reply.outcome is not Outcome.ANSWERED and not reply.text.strip():
            return replace(verdict, correct=credit)
        if parsed.value is None:
            return replace(verdict, correct=credit, outcome=Outcome.UNPARSED)
        answer = str(parsed.value)
        return replace(verdict, correct=float(answer == str(question.target)), answer=answer, rule=parsed.rule)

    def score_stored(self, question: Question, stored: str, options: ScoreOptions = AS_PAPERS) -> Score:
        """Score a stored answer by parsing it like a full reply.

        The authors published no extracted answers whose rule could be used.
        """
        prompt = Prompt((question.text,), question.kind, question.choices)
        return self.score(question, (Exchange(prompt, Reply(stored)),), options)

    def summarise(self, scores: Sequence[Score]) -> tuple[Metric, ...]:
        """Compute the metrics with `hybrid.benchmarks.hvsbench.metrics.summarise`."""
        return summarise(scores)

    def oracle(self, question: Question, prompt: Prompt) -> str:
        """Return the right letter and option, count, order, or the first human scanpath."""
        match question.kind:
            case Kind.INTEGER:
                return f"People see {question.target} salient objects."
            case Kind.ORDER:
                return f"From the most to the least salient the order is {question.target}."
            case Kind.SCANPATH:
                path = _paths(_table(question.target)["paths"])[0]
                return f"A person looked at X = {[*path.x]} Y = {[*path.y]} T = {[round(t) for t in path.t_ms]}"
            case _:
                return super().oracle(question, prompt).replace(" .", ".")

    def oracle_answer(self, question: Question, prompt: Prompt) -> str | None:
        """Return the line with the right letter, count or order, or the first human scanpath as three lists."""
        match question.kind:
            case Kind.INTEGER | Kind.ORDER:
                return f"Answer: {question.target}"
            case Kind.SCANPATH:
                path = _paths(_table(question.target)["paths"])[0]
                return f"X = {[*path.x]}\nY = {[*path.y]}\nT = {[round(t) for t in path.t_ms]}"
            case _:
                return super().oracle_answer(question, prompt)


BENCHMARK = HVSBench()


def _field(task: str) -> str:
    return next(field for field, tasks in FIELDS.items() if task in tasks)


def _question(
    row: DataRow,
    identity: str,
    task: str,
    *,
    source: Source,
    settings: Mapping[str, str],
    pool: Mapping[str, Subject],
    prefix: str,
) -> Question:
    """Make the question of a row. Raises `DataError` naming the row and the column."""
    image = None if source.for_predictions else row.stored_image("image", source.store, identity)
    if image is None and not source.for_predictions:
        raise DataError(f"{row.where}, column image: the question {identity} has no image")
    text, answer = row.text("question"), row.text("answer")
    if not text.strip():
        raise DataError(f"{row.where}, column question: empty")
    try:
        choices = options(text) if KINDS[task] in (Kind.CHOICE, Kind.ORDER) else ()
        # Boxes in the text may be fractions of the image. Saved predictions have no images and need no facts.
        facts = prompt_facts(task, text, (image.width, image.height), settings["boxes"]) if image else PromptFacts()
    except DataError as error:
        raise DataError(f"{row.where}, column question: {error}") from error
    target: Json
    try:
        match KINDS[task]:
            case Kind.INTEGER:
                target = count(answer)
            case Kind.ORDER:
                target = order(answer, choices)
            case Kind.SCANPATH:
                human_paths(answer)
                target = _scanpath_target(row, identity, pool, settings)
            case _:
                target = letter(answer, choices)
    except DataError as error:
        raise DataError(f"{row.where}, column answer: {error}") from error
    groups = {"field": _field(task), "origin": str(row.cell("origin_dataset") or "unknown")}
    path_cell = row.cell("real_image_path")
    if path_cell is not None and not isinstance(path_cell, str):
        raise DataError(f"{row.where}, column real_image_path: expected text, found {type(path_cell).__name__}")
    cluster = f"image-{hashlib.sha256(path_cell.encode()).hexdigest()[:16]}" if path_cell else ""
    asked_as = (prefix + text, KINDS[task], choices, target, task, groups)
    return Question(identity, task, (image,) if image else (), *asked_as, given=facts, cluster=cluster)


def _scanpath_target(
    row: DataRow, identity: str, pool: Mapping[str, Subject], settings: Mapping[str, str]
) -> dict[str, Json]:
    """Return the human scanpaths of a row's image, one of another image, and the rules by which they are compared."""
    other = of_another_image(pool, row.where, identity)
    return {
        "paths": [_path_as_json(path) for path in pool[row.where].paths],
        "other": None if other is None else _path_as_json(other),
        "screen": [int(side) for side in settings["screen"].split("x")],
        "crop": CROP,
        "crop_truth": settings["crop_truth"] == "on",
    }


def _score_scanpath(question: Question, reply: Reply, verdict: Score, options: ScoreOptions) -> Score:
    """Compute similarities with the human paths; an unreadable path is replaced by the fallback or a random path."""
    verdict = replace(verdict, correct=None)
    if reply.outcome.failed:
        return verdict
    target = _table(question.target)
    humans, other = _paths(target["paths"]), _paths([target["other"]] if target["other"] else [])
    width, height = (int(side) for side in target["screen"])
    rules = Rules((width, height), int(target["crop"]), bool(target["crop_truth"]))
    reference_values = references(humans, other[0] if other else None, rules)
    parsed = parse_scanpath(reply.text).value
    if parsed is not None:
        values = compare(Scanpath(parsed.x, parsed.y, parsed.t_ms), humans, rules)
        return replace(
            verdict, answer=f"{len(parsed.x)} fixations", rule="lists", values={**values, **reference_values}
        )
    guessed = options.unanswered == "guess" and other
    values = compare(other[0] if guessed else FALLBACK_PATH, humans, rules)
    outcome = reply.outcome if reply.outcome is not Outcome.ANSWERED else Outcome.UNPARSED
    return replace(verdict, outcome=outcome, values={**values, **reference_values})


def _path_as_json(path: Scanpath) -> dict[str, Json]:
    return {"x": list(path.x), "y": list(path.y), "t_ms": list(path.t_ms)}


def _paths(records: Sequence[Any]) -> tuple[Scanpath, ...]:
    return tuple(Scanpath(tuple(path["x"]), tuple(path["y"]), tuple(path["t_ms"])) for path in records)


def _table(target: Json) -> Mapping[str, Any]:
    if not isinstance(target, Mapping):
        raise DataError(f"the target {target!r:.60} is not that of a scanpath question")
    return target
