"""MVP-Bench (Li et al., Findings of EMNLP 2024): low- and high-level perception on natural and manipulated pictures.

    hybrid run mvp_bench --data DIR        DIR/all_questions.json, mcq_questions.json, Images/{Cross,Single}_Images
    hybrid score GPT4o.jsonl --benchmark mvp_bench --data DIR
    hybrid score mcq_GPT4o.jsonl --benchmark mvp_bench --data DIR

Protocol: one picture and one call a question, zero-shot, the question's own text; a pair is one picture with both side
by side. Yes/no questions are asked of both pictures of a pair. Multiple choice is asked once for every rotation of the
options (`mcq=circular`, ids `462#circ1` ...) or once with the text of the single run (`mcq=vanilla`, id `462`). The
released code puts a line break before a question without a system prompt; it is left out, as in its saved prompts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hybrid.answers.letters import parse_letter
from hybrid.answers.yes_no import parse_yes_no
from hybrid.benchmarks._mvp_data import ROTATIONS, SINGLE_RUN, Row, category, image_of, rotations, single_run
from hybrid.benchmarks._mvp_images import Pictures, halves, image_file
from hybrid.benchmarks._mvp_metrics import metrics
from hybrid.benchmarks._mvp_outputs import Output, read_outputs
from hybrid.benchmarks._mvp_parse import circular_rule, read_options, single_run_rule, yes_no_rule
from hybrid.benchmarks.base import (
    AS_PAPERS,
    BenchmarkCard,
    OwnWords,
    Prediction,
    ScoreOptions,
    Source,
    show,
    unanswered,
)
from hybrid.errors import DataError, UsageError
from hybrid.types import (
    LETTERS,
    Ask,
    BrokenQuestion,
    Exchange,
    Kind,
    Metric,
    Outcome,
    Prompt,
    Question,
    Score,
    StoredImage,
)

YES_NO = ("yes", "no")
VANILLA = ("vanilla.cross_high", "vanilla.cross_low", "vanilla.single")
SETTINGS: Mapping[str, tuple[str, ...]] = {"mcq": ("circular", "vanilla", "both"), "commonsense": ("off", "on")}

CARD = BenchmarkCard(
    name="mvp_bench",
    title="MVP-Bench: Can Large Vision-Language Models Conduct Multi-level Visual Perception Like Humans?",
    citation="Li, Xie and Kan, Findings of EMNLP 2024, arXiv:2410.04345",
    licence="MVP-Bench Community License: research only, images on request, no redistribution",
    image_sources=("EMU (Da et al. 2021)", "pictures manipulated with Stable Diffusion and InstructPix2Pix"),
    hub_id="GZClarence/MVP-Bench",
    splits=("test",),
    tasks={"yes_no": 1000, "cross": 2270, "single": 2089},
    settings={
        "mcq": (
            "circular",
            "circular | vanilla | both: multiple choice with every rotation of its options, as in the single run, both",
        ),
        "commonsense": ("off", "off | on: a sentence before each question that asks for visual commonsense"),
    },
    headline=("mAcc", "circular.cross_high", "circular.cross_low", "circular.single", *VANILLA),
    reported=("qAcc.", "aAcc.", "iAcc.", "mAcc", "circular.", "vanilla.", "first_rotation."),
    sample_tasks=("yes_no", "cross", "single"),
    rotatable=("cross", "single"),
)


class MvpBench(OwnWords):
    """The benchmark; see the module's docstring."""

    card = CARD

    def tasks(self, source: Source) -> tuple[str, ...]:
        """The tasks of `all_questions.json`. Raises `DataError` when the folder has no such file."""
        present = {row.task for row in single_run(_root(source) / SINGLE_RUN)}
        return tuple(task for task in CARD.tasks if task in present)

    def files(self, source: Source) -> tuple[Path, ...]:
        """The question files, and the images of the chosen tasks that are there."""
        root = _root(source)
        images = {row.image for row in _rows(source)}
        found = (image_file(root, image) for image in sorted(images))
        names = [SINGLE_RUN, *([ROTATIONS] if _setting(source, "mcq") != "vanilla" else [])]
        return (*(root / name for name in names), *(path for path in found if path is not None))

    def questions(self, source: Source) -> Iterator[Question | BrokenQuestion]:
        """Stream the questions of the chosen tasks, those of one pair together.

        Raises:
            UsageError: a setting has a value that it does not know.
            DataError: a question file cannot be used, or a whole folder of images is missing.
        """
        rows = _rows(source)
        pictures = Pictures(_root(source), source.store)
        if not source.joining:
            for folder in sorted({row.image.split("/")[0] for row in rows}):
                pictures.require(folder)
        keys = _question_keys(rows)
        before = f"{self.texts['visual_commonsense']}\n" if _setting(source, "commonsense") == "on" else ""
        for row in rows:
            try:
                images = () if source.joining else pictures.of(row)
                yield _question(row, images, keys[row.id], before)
            except DataError as error:
                yield BrokenQuestion(row.id, row.task, str(error), _groups(row, keys[row.id]), f"pair{row.pair}")

    async def dialogue(self, question: Question, ask: Ask) -> tuple[Exchange, ...]:
        """One call with one picture; of a pair picture the whole is shown, and tools may also be given its halves."""
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
        """Right or wrong, by our parser or (`official`) by the authors' rules without their judge."""
        reply = exchanges[-1].reply
        worth = unanswered(reply.outcome, _chance(question), options)
        if reply.outcome is not Outcome.ANSWERED and not reply.text.strip():
            return replace(_verdict(question, None, "none", worth), outcome=reply.outcome)
        if options.parse == "official":
            return _verdict(question, _official(question, reply.text), "official", worth, reply.outcome)
        if question.kind is Kind.YES_NO:
            word = parse_yes_no(reply.text)
            return _verdict(question, word.value, word.rule, worth, reply.outcome)
        letter = parse_letter(reply.text, question.choices)
        return _verdict(question, letter.value, letter.rule, worth, reply.outcome)

    def score_stored(self, question: Question, stored: str, options: ScoreOptions = AS_PAPERS) -> Score:
        """The authors' rules on the reply as they saved it; what only their judge could read is no answer.

        Raises:
            UsageError: the question has no answer, because the predictions were read without the data.
        """
        worth = unanswered(Outcome.UNPARSED, _chance(question), options)
        return _verdict(question, _official(question, stored), "official", worth)

    def summarise(self, scores: Sequence[Score]) -> tuple[Metric, ...]:
        """qAcc, aAcc, iAcc, mAcc, circular, vanilla and pAcc: see `_mvp_metrics.metrics`."""
        return metrics(scores)

    def predictions(self, path: Path) -> tuple[tuple[Question, Prediction], ...] | None:
        """The repository's `MODEL.jsonl` or `mcq_MODEL.jsonl`, or a folder with the two of one model.

        They hold raw replies and no answers: scoring them needs the data. `stored` is the raw reply too, because the
        authors extract by rule when they score.
        """
        recorded = read_outputs(path)
        if recorded is None:
            return None
        return tuple((_asked(output), Prediction(output.text, output.text)) for output in recorded)

    def submission(self, answers: Mapping[str, str | None]) -> str:
        """Nothing to submit. Raises `UsageError`."""
        raise UsageError("MVP-Bench has no hidden answers and takes no submissions")

    def oracle(self, question: Question, prompt: Prompt) -> str:
        """The right word, or the letter and the text of the right option."""
        answer = str(question.target)
        if question.kind is Kind.YES_NO:
            return f"The evidence says that the answer is {answer}."
        return f"The evidence favours ({answer}) {prompt.choices[LETTERS.index(answer)]}."


BENCHMARK = MvpBench()


def _root(source: Source) -> Path:
    for root in (source.folder, source.folder / "data"):
        if (root / SINGLE_RUN).is_file():
            return root
    raise DataError(
        f"{source.folder} holds no MVP-Bench data: expected {SINGLE_RUN} and {ROTATIONS}, "
        "which are in the folder data of https://github.com/GuanzhenLi/MVP-Bench"
    )


def _setting(source: Source, key: str) -> str:
    value = source.settings.get(key, SETTINGS[key][0])
    if value not in SETTINGS[key]:
        raise UsageError(f"mvp_bench has no {key}={value}; there are: {', '.join(SETTINGS[key])}")
    return "both" if key == "mcq" and source.joining else value


def _rows(source: Source) -> list[Row]:
    """The rows of the chosen tasks and settings: by pair, in the order of the file; rotations in order."""
    root, mcq = _root(source), _setting(source, "mcq")
    plain = single_run(root / SINGLE_RUN)
    rows = [row for row in plain if row.task == "yes_no" or mcq != "circular"]
    if mcq != "vanilla" and set(source.tasks or CARD.tasks) != {"yes_no"}:
        rows += rotations(root / ROTATIONS)
    first: dict[int, int] = {}
    for row in rows:
        first.setdefault(row.pair, len(first))
    chosen = [row for row in rows if row.task in (source.tasks or CARD.tasks)]
    return sorted(chosen, key=lambda row: (first[row.pair], row.number, row.rotation))


def _question_keys(rows: Sequence[Row]) -> Mapping[str, str]:
    """For each row the number of the first row with its pair and text: the two rows of a yes/no question share it."""
    first: dict[tuple[int, str], str] = {}
    return {row.id: first.setdefault((row.pair, row.text), str(row.number)) for row in rows}


def _question(row: Row, images: tuple[StoredImage, ...], key: str, before: str) -> Question:
    choices = () if row.task == "yes_no" else read_options(row.text)
    kind, answer = _checked(row, choices)
    return Question(
        id=row.id,
        task=row.task,
        images=images,
        text=before + row.text,
        kind=kind,
        choices=choices,
        target=answer,
        route=row.task,
        groups=_groups(row, key),
        cluster=f"pair{row.pair}",
    )


def _groups(row: Row, key: str) -> dict[str, str]:
    groups = {"level": row.level, "image": row.shown, "pair": str(row.pair), "question": key}
    if row.rotation:
        groups["rotation"] = f"{row.rotation}/{row.rotations}"
    if name := category(row.pair):
        groups["category"] = name
    return groups


def _checked(row: Row, choices: tuple[str, ...]) -> tuple[Kind, str]:
    if row.task == "yes_no":
        if row.answer.lower() not in YES_NO:
            raise DataError(f"{row.where}, field answer: expected yes or no, found {row.answer!r}")
        return Kind.YES_NO, row.answer.lower()
    if len(choices) < 2:
        raise DataError(f"{row.where}, field question: expected at least two options, found {len(choices)}")
    if len(set(choices)) < len(choices):
        raise DataError(f"{row.where}, field question: the options {', '.join(choices)} are not all different")
    if row.answer not in tuple(LETTERS[: len(choices)]):
        raise DataError(f"{row.where}, field answer: {row.answer!r} is none of the {len(choices)} options")
    return Kind.CHOICE, row.answer


def _official(question: Question, text: str) -> str | None:
    if question.kind is Kind.YES_NO:
        return yes_no_rule(text)
    rule = circular_rule if "#circ" in question.id else single_run_rule
    return rule(text, len(question.choices))


def _chance(question: Question) -> float:
    return 0.5 if question.kind is Kind.YES_NO else 1 / len(question.choices)


def _verdict(
    question: Question, answer: str | None, rule: str, worth: float, outcome: Outcome = Outcome.ANSWERED
) -> Score:
    """Right or wrong; `worth` is what no answer counts."""
    if question.target is None:
        raise UsageError(f"{question.id}: MVP-Bench's predictions hold no answers; give the questions with --data DIR")
    return Score(
        question.id,
        question.task,
        float(answer == question.target) if answer is not None else worth,
        outcome if answer is not None else Outcome.UNPARSED,
        answer,
        rule if answer is not None else "none",
        groups=question.groups,
        cluster=question.cluster,
    )


def _asked(output: Output) -> Question:
    """The question of a recorded reply as far as its own row tells it: no answer, no level."""
    place = image_of(output.image)
    choices = read_options(output.prompt)
    task = "cross" if place and place[1] == "concat" else "single" if choices else "yes_no"
    kind = Kind.CHOICE if choices else Kind.YES_NO
    return Question(output.id, task, (), output.prompt, kind, choices, route=task)
