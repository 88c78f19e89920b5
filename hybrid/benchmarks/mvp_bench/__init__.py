"""MVP-Bench (Li et al., Findings of EMNLP 2024): low- and high-level perception on natural and manipulated pictures.

    hybrid run mvp_bench --data DIR        DIR/all_questions.json, mcq_questions.json, Images/{Cross,Single}_Images
    hybrid score GPT4o.jsonl --benchmark mvp_bench --data DIR
    hybrid score mcq_GPT4o.jsonl --benchmark mvp_bench --data DIR

Protocol: one picture and one call per question, zero-shot, with the question's own text; a question about a pair shows
one picture in which the two are side by side. Yes/no questions are asked of both pictures of a pair. Multiple choice is
asked once for every rotation of the options (`mcq=circular`, ids `462#circ1` ...) or once with the text of the single
run (`mcq=vanilla`, id `462`). The released code puts a line break before a question without a system prompt; hybrid
omits it, as the authors' saved prompts do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from hybrid.answers.letters import parse_letter
from hybrid.answers.yes_no import parse_yes_no
from hybrid.benchmarks._shared.paths import inside
from hybrid.benchmarks._shared.rows import lost
from hybrid.benchmarks._shared.scores import score_kept, score_reply
from hybrid.benchmarks.base import AS_PAPERS, Benchmark, Prediction, ScoreOptions, Source, show
from hybrid.benchmarks.card import ratios
from hybrid.benchmarks.mvp_bench.data import (
    ROTATIONS,
    SINGLE_RUN,
    BadLine,
    PairRow,
    QuestionFile,
    category,
    question_file,
)
from hybrid.benchmarks.mvp_bench.images import BELOW, GATED, PairImages, halves, image_file
from hybrid.benchmarks.mvp_bench.metrics import CATEGORIES, with_runs
from hybrid.benchmarks.mvp_bench.outputs import read_outputs
from hybrid.benchmarks.mvp_bench.parse import circular_rule, read_options, single_run_rule, yes_no_rule
from hybrid.core.errors import DataError, UsageError
from hybrid.core.types import LETTERS, Ask, BrokenQuestion, Exchange, Kind, Metric, Prompt, Question, Score, StoredImage

YES_NO = ("yes", "no")


class MvpBench(Benchmark):
    """The benchmark MVP-Bench; its protocol is described in the module's docstring."""

    def tasks(self, source: Source) -> tuple[str, ...]:
        """Return the tasks of `all_questions.json`. Raises `DataError` if the folder has no such file."""
        root = _root(source)
        present = {row.task for row in question_file(root, root / SINGLE_RUN).rows}
        return tuple(task for task in self.card.tasks if task in present)

    def files(self, source: Source) -> tuple[Path, ...]:
        """Return the question files, and the existing images of the chosen tasks."""
        root = _root(source)
        images = {row.image for row in self._rows(source).rows}
        paths = (image_file(root, image) for image in sorted(images))
        names = [SINGLE_RUN, *([ROTATIONS] if self._setting(source, "mcq") != "vanilla" else [])]
        tables = (root / name for name in names)
        return (*(path for path in tables if inside(root, path)), *(path for path in paths if path is not None))

    def questions(self, source: Source) -> Iterator[Question | BrokenQuestion]:
        """Yield the rows of the chosen tasks, pair by pair. Raises `DataError` if a full folder of images is missing.

        A line that is not a question comes last, as a broken question of each task to which it may belong.
        """
        table = self._rows(source)
        rows = table.rows
        pictures = PairImages(_root(source), source.store)
        for folder in () if source.for_predictions else sorted({row.image.split("/")[0] for row in rows}):
            if not any((_root(source) / base / folder).is_dir() for base in BELOW):
                raise DataError(f"{_root(source)} has no folder Images/{folder}. {GATED}")
        # Rows with the same pair and text, such as the two rows of a yes/no question, share the number of the first of
        # them.
        first: dict[tuple[int, str], str] = {}
        keys = {row.id: first.setdefault((row.pair, row.text), str(row.number)) for row in rows}
        prefix = f"{self.texts['visual_commonsense']}\n" if self._setting(source, "commonsense") == "on" else ""
        for row in rows:
            try:
                images = () if source.for_predictions else pictures.of(row)
                yield _question(row, images, keys[row.id], prefix)
            except DataError as error:
                yield BrokenQuestion(row.id, row.task, str(error), _groups(row, keys[row.id]), f"pair{row.pair}")
        for line in table.bad:
            for task in source.tasks if line.task is None else {line.task} & set(source.tasks):
                yield lost(task, source.folder, line.where, line.error)

    def _setting(self, source: Source, key: str) -> str:
        value = self.card.resolve_settings(source.settings)[key]
        return "both" if key == "mcq" and source.for_predictions else value

    def _rows(self, source: Source) -> QuestionFile:
        """Return the rows of the chosen tasks and settings, pair by pair as in the file, with rotations in order.

        Without a usable file of rotations, the multiple choice of the chosen tasks is missing, and the rest is asked.
        """
        root, mcq = _root(source), self._setting(source, "mcq")
        tasks = source.tasks or tuple(self.card.tasks)
        plain = question_file(root, root / SINGLE_RUN)
        rows = [row for row in plain.rows if row.task == "yes_no" or mcq != "circular"]
        bad = list(plain.bad)
        if mcq != "vanilla" and set(tasks) != {"yes_no"}:
            path = root / ROTATIONS
            try:
                rotated_file = question_file(root, path, rotations=True)
                rows += rotated_file.rows
                bad += rotated_file.bad
            except DataError as error:
                bad += (BadLine(str(path), str(error), "cross"), BadLine(str(path), str(error), "single"))
        first: dict[int, int] = {}
        for row in rows:
            first.setdefault(row.pair, len(first))
        selected = sorted(
            (row for row in rows if row.task in tasks), key=lambda row: (first[row.pair], row.number, row.rotation)
        )
        return QuestionFile(tuple(selected), tuple(bad))

    async def dialogue(self, question: Question, ask: Ask) -> tuple[Exchange, ...]:
        """Make one call with one picture. For a pair, this is the full pair picture; tools may also get its halves."""
        prompt = Prompt(
            parts=(question.text, *show(question.images[:1])),
            kind=question.kind,
            choices=question.choices,
            given=question.given,
            route=question.route,
            derived=halves(question.images),
        )
        return (Exchange(prompt, await ask(prompt)),)

    def score(self, question: Question, exchanges: Sequence[Exchange], options: ScoreOptions) -> Score:
        """Score right or wrong, by hybrid's parser or (`official`) by the authors' rules without their judge model."""
        choices = question.choices
        return score_reply(
            question,
            exchanges[-1].reply,
            options,
            right=_right(question),
            chance=_chance(question),
            strict=parse_yes_no if question.kind is Kind.YES_NO else lambda text: parse_letter(text, choices),
            official=lambda text: _official(question, text),
        )

    def score_stored(self, question: Question, stored: str, options: ScoreOptions = AS_PAPERS) -> Score:
        """Apply the authors' rules to a saved reply; replies that only their judge could read have no answer.

        Raises:
            UsageError: the question has no answer because the predictions were read without the data.
        """
        answer, right = _official(question, stored), _right(question)
        return score_kept(
            question, answer, right=answer == right, chance=_chance(question), options=options, rule="official"
        )

    def summarise(self, scores: Sequence[Score]) -> tuple[Metric, ...]:
        """Compute qAcc, aAcc, iAcc, mAcc, circular, vanilla, first_rotation and pAcc, if there are units for them."""
        return tuple(ratios(self.card.metrics, tuple(with_runs(scores)), {"category": CATEGORIES}))

    def predictions(self, path: Path) -> tuple[tuple[Question, Prediction], ...] | None:
        """Read a `MODEL.jsonl` or `mcq_MODEL.jsonl` of MVP-Bench's repository, or a folder with these two files.

        They contain raw replies and no answers, so scoring them needs the data. `stored` is the raw reply, like `text`,
        because the authors extract answers by rule only when they score.
        """
        recorded = read_outputs(path)
        if recorded is None:
            return None
        # Build the question as far as its row defines it, without an answer and a level.
        kinds = [Kind.CHOICE if row.choices else Kind.YES_NO for row in recorded]
        return tuple(
            (
                Question(str(row.id), str(row.task), (), row.text or "", kind, row.choices, route=str(row.task)),
                Prediction(row.reply, row.reply),
            )
            for row, kind in zip(recorded, kinds, strict=True)
        )

    def oracle(self, question: Question, prompt: Prompt) -> str:
        """Return the right word, or the letter and text of the right option."""
        if question.kind is Kind.YES_NO:
            return f"The evidence says that the answer is {question.target}."
        return super().oracle(question, prompt)

    def oracle_answer(self, question: Question, prompt: Prompt) -> str | None:
        """Return the line with the right word or letter."""
        if question.kind is Kind.YES_NO:
            return f"Answer: {question.target}"
        return super().oracle_answer(question, prompt)


BENCHMARK = MvpBench()


def _root(source: Source) -> Path:
    for root in (source.folder, source.folder / "data"):
        if (root / SINGLE_RUN).is_file():
            return root
    raise DataError(
        f"{source.folder} contains no MVP-Bench data: expected {SINGLE_RUN} and {ROTATIONS}, "
        "which are in the folder data of https://github.com/GuanzhenLi/MVP-Bench"
    )


def _question(row: PairRow, images: tuple[StoredImage, ...], key: str, prefix: str) -> Question:
    choices = () if row.task == "yes_no" else read_options(row.text)
    kind, answer = Kind.YES_NO, row.answer.lower()
    if row.task != "yes_no":
        kind, answer = Kind.CHOICE, row.answer
        if len(choices) < 2:
            raise DataError(f"{row.where}, field question: expected at least two options, found {len(choices)}")
        if len(set(choices)) < len(choices):
            raise DataError(f"{row.where}, field question: the options {', '.join(choices)} are not all different")
        if answer not in tuple(LETTERS[: len(choices)]):
            raise DataError(f"{row.where}, field answer: {answer!r} is not one of the {len(choices)} options")
    elif answer not in YES_NO:
        raise DataError(f"{row.where}, field answer: expected yes or no, found {row.answer!r}")
    return Question(
        id=row.id,
        task=row.task,
        images=images,
        text=prefix + row.text,
        kind=kind,
        choices=choices,
        target=answer,
        route=row.task,
        groups=_groups(row, key),
        cluster=f"pair{row.pair}",
    )


def _groups(row: PairRow, key: str) -> dict[str, str]:
    groups = {"level": row.level, "image": row.image_side, "pair": str(row.pair), "question": key}
    if row.rotation:
        groups["rotation"] = f"{row.rotation}/{row.rotations}"
    if name := category(row.pair):
        groups["category"] = name
    return groups


def _official(question: Question, text: str) -> str | None:
    if question.kind is Kind.YES_NO:
        return yes_no_rule(text)
    rule = circular_rule if "#circ" in question.id else single_run_rule
    return rule(text, len(question.choices))


def _chance(question: Question) -> float:
    return 0.5 if question.kind is Kind.YES_NO else 1 / len(question.choices)


def _right(question: Question) -> str:
    if question.target is None:
        raise UsageError(
            f"{question.id}: MVP-Bench's predictions contain no right answers; give the questions with --data DIR"
        )
    return str(question.target)
