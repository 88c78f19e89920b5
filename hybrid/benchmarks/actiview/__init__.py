"""ActiView (Wang et al., 2024): active perception by zooming into and shifting between parts of a picture.

    hybrid run actiview --data DIR --setting mode=zoom         DIR is a clone of THUNLP-MT/ActiView
    hybrid run actiview --data DIR --setting mode=average      zoom and the four shifts, for model_avg

Protocol (paper section 4.1, released `toolkit/evaluator.py`): only the dialogue reveals parts of the picture; a solver
and its tools get the pictures of the prompt and nothing else. Metrics: accuracy by category and type, Model AVG, recall
of the views with clues, numbers of views, zooms and shifts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from hybrid.answers.letters import parse_letter
from hybrid.benchmarks._shared.scores import score_kept, score_of, score_reply
from hybrid.benchmarks.actiview.data import (
    CLUES,
    DATA,
    STARTS,
    TASKS,
    asset_folder,
    entries,
    picture_paths,
    questions_of,
)
from hybrid.benchmarks.actiview.dialogue import Trail, dialogue_of, drive, retrace
from hybrid.benchmarks.actiview.metrics import hits, hits_as_printed, official_answer
from hybrid.benchmarks.actiview.settings import BLIND, LEVELS, Settings, read_settings
from hybrid.benchmarks.base import AS_PAPERS, Benchmark, ScoreOptions, Source, present
from hybrid.core.errors import DataError
from hybrid.core.types import (
    LETTERS,
    Ask,
    BrokenQuestion,
    Exchange,
    Json,
    Kind,
    Metric,
    Outcome,
    Prompt,
    Question,
    Score,
)

# Matches the end of a reply that declines to answer, which the mode `commonsense` allows.
DECLINED = re.compile(r"\bnone\b[^\w]*$", re.IGNORECASE)


# Names of the values by which a score records that additional information was used, each with the words that follow
# `accuracy` or `model_avg` in the names of metrics.
USED = {"any_view": "any_view_uses_gold", "oracle_views": "oracle_views"}
ACCURACY = re.compile(r"^(accuracy|model_avg)")


class ActiView(Benchmark):
    """The benchmark ActiView; its protocol is described in the module's docstring."""

    def _settings(self, source: Source) -> Settings:
        return read_settings(self.card.resolve_settings(source.settings))

    def tasks(self, source: Source) -> tuple[str, ...]:
        """Return the categories in the data."""
        present = {entry.task for entry in entries(source, self._settings(source))}
        return tuple(task for task in TASKS if task in present)

    def files(self, source: Source) -> tuple[Path, ...]:
        """Return the JSON files, and the pictures of the chosen tasks."""
        settings = self._settings(source)
        folder = asset_folder(source.folder)
        levels = (folder / STARTS,) if settings.starts & LEVELS.keys() else ()
        return (folder / DATA, folder / CLUES, *levels, *picture_paths(source, source.tasks, settings))

    def questions(self, source: Source) -> Iterator[Question | BrokenQuestion]:
        """Yield the rows of the chosen tasks, each in the variants that the settings require."""
        settings = self._settings(source)
        for entry in entries(source, settings):
            if entry.task in source.tasks or not entry.task:
                yield from questions_of(entry, source, settings)

    async def dialogue(self, question: Question, ask: Ask) -> tuple[Exchange, ...]:
        """Run the dialogue of the question's mode."""
        return await drive(dialogue_of(question, self.texts), ask)

    def score(self, question: Question, exchanges: Sequence[Exchange], options: ScoreOptions) -> Score:
        """Score the answer, and record which parts of the picture the dialogue showed.

        A question counts as failed if one of its requests failed.
        """
        trail = retrace(dialogue_of(question, self.texts), [exchange.reply for exchange in exchanges])
        values = _values(question, trail)
        failed = next((exchange.reply.outcome for exchange in exchanges if exchange.reply.outcome.failed), None)
        if failed is not None:
            return score_of(question, 0.0, failed, values=values)
        answers = exchanges[-trail.answers :] if trail is not None else exchanges[-1:]
        gold, choices = _gold(question), question.choices
        judged = [
            score_reply(
                question,
                exchange.reply,
                options,
                right=gold,
                chance=1 / len(choices),
                strict=lambda text: parse_letter(text, choices),
                official=lambda text: official_answer(text, choices, gold),
            )
            for exchange in answers
        ]
        # Prefer a view with a wrong answer to a view without an answer, even if the latter scores more.
        best = max(judged, key=lambda score: (score.answer is not None, score.correct or 0.0))
        if question.protocol["mode"] == "commonsense":
            declined = best.answer is None and DECLINED.search(answers[-1].reply.text) is not None
            outcome = Outcome.ABSTAINED if declined else best.outcome
            return replace(best, values={**values, "declined": float(declined)}, outcome=outcome)
        return replace(best, values=values)

    def score_stored(self, question: Question, stored: str, options: ScoreOptions = AS_PAPERS) -> Score:
        """Compare a stored letter with the gold letter."""
        letter = stored.strip().strip("()").upper()
        offered_letter = letter if len(letter) == 1 and letter in LETTERS[: len(question.choices)] else None
        values = {"chance": 1 / len(question.choices)}
        right = offered_letter == _gold(question)
        score = score_kept(question, offered_letter, right=right, chance=values["chance"], options=options)
        return replace(score, values=values)

    def summarise(self, scores: Sequence[Score]) -> tuple[Metric, ...]:
        """Compute accuracies, recalls and numbers of views.

        The names of accuracies state which additional information was used.
        """
        metrics = super().summarise(scores)
        used = next((key for key in USED if any(key in score.values for score in present(scores))), None)
        if used is None:
            return metrics
        replacement = rf"\1_{USED[used]}"
        return tuple(replace(metric, name=ACCURACY.sub(replacement, metric.name)) for metric in metrics)

    def oracle(self, question: Question, prompt: Prompt) -> str:
        """Return the statement of a perfect tool: the answer, or the parts with the clues."""
        if prompt.kind is Kind.CHOICE:
            return super().oracle(replace(question, target=_gold(question)), replace(prompt, choices=question.choices))
        clues, seen = _clues(question), _find_shown_parts(question, prompt)
        if prompt.kind is Kind.FREE or not clues:
            return "Nothing more can be said about this image."
        if prompt.kind is Kind.CONTINUE:
            missing = clues - seen
            return f"{'Yes' if missing else 'No'}, {'more' if missing else 'nothing more'} has to be seen."
        return f"What the question needs is in the parts {_list_parts(clues)}."

    def oracle_answer(self, question: Question, prompt: Prompt) -> str | None:
        """Return the line with the letter, the parts with the clues, or whether some clue is still to be seen."""
        if prompt.kind is Kind.CHOICE:
            return f"Answer: ({_gold(question)})"
        clues, seen = _clues(question), _find_shown_parts(question, prompt)
        if prompt.kind is Kind.FREE or not clues:
            return None
        if prompt.kind is Kind.CONTINUE:
            return "yes" if clues - seen else "no"
        if prompt.kind is Kind.VIEW_PLAN:
            plan = {"keep": _list_parts(clues & seen), "shift": _list_parts(clues - seen)}
            return json.dumps(plan if seen else {"part": _list_parts(clues)})
        return f"Answer: {_list_parts(clues - seen)}" if clues - seen else "no"


BENCHMARK = ActiView()


def _target(question: Question) -> Mapping[str, Json]:
    if not isinstance(question.target, Mapping):
        raise DataError(f"{question.id}: expected a target with answer and views, found {question.target!r:.80}")
    return question.target


def _clues(question: Question) -> frozenset[int]:
    """Return the numbers of the parts that contain the clues."""
    return frozenset(cast("Sequence[int]", _target(question)["views"] or ()))


def _find_shown_parts(question: Question, prompt: Prompt) -> frozenset[int]:
    """Return the numbers of the parts that a prompt shows."""
    seen = {ref.image.sha256 for ref in prompt.images}
    parts = question.images[2 : 2 + cast(int, question.protocol["splits"])]
    return frozenset(number for number, image in enumerate(parts, 1) if image.sha256 in seen)


def _list_parts(parts: Collection[int]) -> str:
    return ", ".join(map(str, sorted(parts))) or "none"


def _gold(question: Question) -> str:
    return str(_target(question)["answer"])


def _values(question: Question, trail: Trail | None) -> dict[str, float]:
    values = {"chance": 1 / len(question.choices)}
    protocol = question.protocol
    if "oracle_views" in protocol:
        values["oracle_views"] = 1.0
    if protocol["images"] == "any_view":
        values["any_view"] = 1.0
    if trail is None or protocol["mode"] in ("full", "single", *BLIND):
        return values
    values["views"] = float(len(trail.shown))
    if protocol["mode"] in ("zoom", "mixed"):
        values["zooms"] = float(trail.zooms)
    if protocol["mode"] in ("shift", "mixed"):
        values["shifts"] = float(trail.shifts)
    clues = _target(question)["views"]
    if clues and "oracle_views" not in protocol:
        numbers = cast("Sequence[int]", clues)
        values["clues"] = float(len(numbers))
        values["hits"] = float(hits(trail.shown, numbers))
        values["hits_as_printed"] = float(hits_as_printed(trail.shown, numbers))
    return values
