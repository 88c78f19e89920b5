"""MM-SAP (Wang et al., ACL 2024): does a model know what it can and cannot perceive? 1,150 questions in three sets.

    hybrid run mm_sap --data DIR                                parquet files of BasicVisQA, KnowVisQA, BeyondVisQA
    hybrid run mm_sap --data DIR --setting refusal_prompt=on    with the instruction of the paper's section 4.5

Protocol: five options, one of them a refusal, in five seeded orders (`ID#s0` to `ID#s4`). After a refusal the question
is asked once more without that option. The paper does so only on KnowVisQA, but a dialogue must not know the set,
because it reveals the answer; only KnowVisQA's second pass is counted. Metrics: section 4.1 and 4.4, as fractions of 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from hybrid.answers.base import Parsed, undecided
from hybrid.benchmarks._shared.paths import inside
from hybrid.benchmarks._shared.rows import check_one, lost, rows
from hybrid.benchmarks._shared.scores import score_of
from hybrid.benchmarks.base import AS_PAPERS, Benchmark, ScoreOptions, Source, present, show
from hybrid.benchmarks.card import ratios
from hybrid.benchmarks.mm_sap.columns import SETS, set_in, set_of
from hybrid.benchmarks.mm_sap.data import columns_of, paths, variants_of
from hybrid.benchmarks.mm_sap.metrics import (
    NOTHING,
    SHUFFLED,
    Values,
    read_answer,
    spreads,
    terms,
    values_at_chance,
)
from hybrid.core.errors import DataError
from hybrid.core.types import LETTERS, Ask, BrokenQuestion, Exchange, Kind, Metric, Outcome, Prompt, Question, Score


class MmSap(Benchmark):
    """The benchmark MM-SAP; its protocol is described in the module's docstring."""

    searches_subfolders = True

    def tasks(self, source: Source) -> tuple[str, ...]:
        """Return the sets in the data, in the paper's order.

        The first row of a file determines its set, unless a column names sets; the name of an unusable file determines
        which set is missing. Raises `DataError` if no file is usable, or no row names its set.
        """
        folder, present, unread = source.folder, set[str](), set[str | None]()

        def check(path: Path) -> None:
            columns = columns_of(folder, path)
            for number, row in enumerate(rows(folder, path, columns.read)):
                try:
                    present.add(set_of(path, folder, row, columns))
                except DataError:
                    # Reject the table only if its first row names no set.
                    if not number:
                        raise
                if not columns.set:
                    return

        for path in paths(folder):
            try:
                check(path)
            except DataError:
                unread.add(set_in(str(path.relative_to(folder))))
        if not present:
            check_one(paths(folder), check)
        return tuple(name for name in SETS if name in present | unread)

    def files(self, source: Source) -> tuple[Path, ...]:
        """Return all parquet files under the folder: ids are numbered across them."""
        return tuple(path for path in paths(source.folder) if inside(source.folder, path))

    def questions(self, source: Source) -> Iterator[Question | BrokenQuestion]:
        """Yield the rows of the chosen sets, each in its orders of the options. Ids number the rows of a set from 1.

        An unusable file, or a row that does not name its set, counts as missing from every chosen set to which it may
        belong.
        """
        settings, counts = self.card.resolve_settings(source.settings), dict.fromkeys(SETS, 0)
        for path in paths(source.folder):
            try:
                columns = columns_of(source.folder, path)
                for row in rows(source.folder, path, columns.read):
                    try:
                        name = set_of(path, source.folder, row, columns)
                    except DataError as error:
                        yield from (lost(task, source.folder, row.where, error) for task in source.tasks)
                        continue
                    counts[name] += 1
                    if name not in source.tasks:
                        continue
                    identity = f"{SETS[name]}_{counts[name]:04d}"
                    try:
                        yield from variants_of(identity, name, row, columns=columns, source=source, settings=settings)
                    except DataError as error:
                        yield BrokenQuestion(identity, name, str(error))
            except DataError as error:
                # The path of the file may name its set; otherwise the file may contain any set.
                question_set = set_in(str(path.relative_to(source.folder)))
                for name in source.tasks if question_set is None else {question_set} & {*source.tasks}:
                    yield lost(name, source.folder, str(path), error)

    async def dialogue(self, question: Question, ask: Ask) -> tuple[Exchange, ...]:
        """Ask with five options; if either parser reads a refusal, ask once more with the other four."""
        with_prompt = question.protocol["refusal_prompt"] is True
        first = self._prompt(question, question.choices, "refusal" if with_prompt else "plain")
        reply = await ask(first)
        # Use both parsers, so that a run can be scored with either.
        read = {read_answer(reply.text, question.choices, parse).value for parse in ("strict", "official")}
        if _refusal(question) not in read:
            return (Exchange(first, reply),)
        second = self._prompt(question, _without_refusal(question), "second")
        return (Exchange(first, reply), Exchange(second, await ask(second)))

    def _prompt(self, question: Question, choices: Sequence[str], instruction: str) -> Prompt:
        sentence = question.choices[_refusal(question)]
        options = "\n".join(f"{letter}. {choice}" for letter, choice in zip(LETTERS, choices, strict=False))
        text = self.texts["question"].format(
            question=question.text, options=options, instruction=self.texts[instruction].format(sentence=sentence)
        )
        return Prompt((*show(question.images), text.strip()), Kind.CHOICE, tuple(choices), route="choice")

    def score(self, question: Question, exchanges: Sequence[Exchange], options: ScoreOptions) -> Score:
        """Score right answers and right refusals.

        An unreadable first reply counts as answered and wrong, or as a guess (`unanswered=guess`); an unreadable second
        reply counts as wrong.
        """
        failed = next((exchange.reply.outcome for exchange in exchanges if exchange.reply.outcome.failed), None)
        if failed is not None:
            return _score(question, failed, NOTHING)
        reply = exchanges[0].reply
        if reply.outcome is not Outcome.ANSWERED and not reply.text.strip():
            return _score(question, reply.outcome, _worth(question, options) or NOTHING)
        first = read_answer(reply.text, question.choices, options.parse)
        second, correct = None, _correct(question)
        if len(exchanges) > 1:
            # Check whether the second pass chose the correct option; an unreadable reply did not.
            choices = _without_refusal(question)
            place = read_answer(exchanges[1].reply.text, choices, options.parse).value
            second = correct is not None and place is not None and choices[place] == question.choices[correct]
        return _judged(question, first, second, reply.outcome, options)

    def score_stored(self, question: Question, stored: str, options: ScoreOptions = AS_PAPERS) -> Score:
        """Score a stored letter; there is no second pass, so a refusal on KnowVisQA never counts as right."""
        letter = stored.strip().strip("().")
        letters = tuple(LETTERS[: len(question.choices)])
        parsed: Parsed[int] = Parsed(letters.index(letter), "stored") if letter in letters else undecided()
        return _judged(question, parsed, None, Outcome.ANSWERED, options)

    def summarise(self, scores: Sequence[Score]) -> tuple[Metric, ...]:
        """Compute scores in total, by set and by type of question, the refusals, and statistics over the shuffles."""
        counts = [score if score.values else replace(score, values=NOTHING) for score in present(scores)]
        types = dict.fromkeys(score.groups.get("type", "") for score in counts)
        metrics = tuple(ratios(self.card.metrics, counts, {"task": SETS, "type": types}))
        return (*(metric for metric in metrics if SHUFFLED not in metric.name), *spreads(metrics))

    def oracle(self, question: Question, prompt: Prompt) -> str:
        """Return the letter and text of the right choice, or say that the image does not show what is asked."""
        correct = _correct(question)
        if correct is None:
            return "The image does not show what the question asks for."
        text = question.choices[correct]
        return f"The evidence favours ({LETTERS[prompt.choices.index(text)]}) {text}."

    def oracle_answer(self, question: Question, prompt: Prompt) -> str | None:
        """Return the line with the right letter: the refusal's letter if the image does not show what is asked."""
        correct = _correct(question)
        text = question.choices[_refusal(question) if correct is None else correct]
        return f"Answer: ({LETTERS[prompt.choices.index(text)]})" if text in prompt.choices else None


BENCHMARK = MmSap()


def _correct(question: Question) -> int | None:
    if not isinstance(question.target, Mapping):
        raise DataError(f"{question.id}: expected a target with correct and refusal, found {question.target!r:.80}")
    return cast("int | None", question.target["correct"])


def _refusal(question: Question) -> int:
    return cast(int, question.protocol["refusal"])


def _without_refusal(question: Question) -> tuple[str, ...]:
    return tuple(choice for place, choice in enumerate(question.choices) if place != _refusal(question))


def _worth(question: Question, options: ScoreOptions) -> Values | None:
    """Return the values of a question without a readable answer if it counts as a guess."""
    return values_at_chance(question.task, len(question.choices)) if options.unanswered == "guess" else None


def _judged(
    question: Question, first: Parsed[int], second: bool | None, outcome: Outcome, options: ScoreOptions
) -> Score:
    # An unreadable reply counts as answered and wrong.
    correct, refused = _correct(question), first.value == _refusal(question)
    right = correct is not None and first.value == correct
    knew = question.task == "KnowVisQA" and refused and second is True
    unknown = question.task == "BeyondVisQA" or (question.task == "KnowVisQA" and second is False)
    values = terms(float(right), float(refused and unknown), float(refused), float(knew))
    if first.value is None:
        return _score(question, Outcome.UNPARSED, _worth(question, options) or values)
    return replace(_score(question, outcome, values), answer=LETTERS[first.value], rule=first.rule)


def _score(question: Question, outcome: Outcome, values: Values) -> Score:
    return score_of(question, values["sa"], outcome, values=values)
