"""BLINK (Fu et al., ECCV 2024): 14 visual perception tasks as multiple choice, 1,901 val questions.

    hybrid run blink --data DIR            DIR/TASK/val-*.parquet, the layout of the hub data set
    hybrid score OUTPUTS --benchmark blink --field stored

Protocol (official `eval/test_benchmark.py`): one call, the text first, then the images in order. Metric: exact letter,
the unweighted mean over the 14 tasks (macro), and the share of all questions (micro). The answers of the test split are
hidden; it runs, is never scored, and `hybrid score` writes the file that the challenge server takes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hybrid.answers.letters import parse_letter
from hybrid.benchmarks._blink_marks import redrawing
from hybrid.benchmarks._blink_outputs import read_outputs
from hybrid.benchmarks._parquet import Row, rows
from hybrid.benchmarks.base import (
    AS_PAPERS,
    BenchmarkCard,
    OwnWords,
    Prediction,
    ScoreOptions,
    Source,
    accuracy,
    ask_once,
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

HIDDEN = "hidden"
OFFERABLE = ("(A)", "(B)", "(C)", "(D)", "(E)")

IMAGES = ("the first image", "the second image", "the third image", "the fourth image")
POINTS = ("Point A", "Point B", "Point C", "Point D")

# Questions in val; what the question is about; how it is marked; wording of the choices (appendix D; empty: varies).
TASKS: Mapping[str, tuple[int, str, str, tuple[str, ...]]] = {
    "Art_Style": (117, "image", "none", IMAGES[1:3]),
    "Counting": (120, "image", "none", ("", "", "", "")),
    "Forensic_Detection": (132, "image", "none", IMAGES),
    "Functional_Correspondence": (130, "pixel", "circle", POINTS),
    "IQ_Test": (150, "image", "none", ("picture A", "picture B", "picture C", "picture D")),
    "Jigsaw": (150, "crop", "mask", IMAGES[1:3]),
    "Multi-view_Reasoning": (133, "image", "none", ("left", "right")),
    "Object_Localization": (122, "crop", "box", ("Box A", "Box B")),
    "Relative_Depth": (124, "pixel", "circle", ("A is closer", "B is closer")),
    "Relative_Reflectance": (134, "pixel", "circle", ("A is darker", "B is darker", "About the same")),
    "Semantic_Correspondence": (139, "pixel", "circle", POINTS),
    "Spatial_Relation": (143, "image", "none", ("yes", "no")),
    "Visual_Correspondence": (172, "pixel", "circle", POINTS),
    "Visual_Similarity": (135, "image", "none", IMAGES[1:3]),
}

DISCLAIMED = ("Forensic_Detection", "Jigsaw", "Art_Style")
MARKED_POINTS = tuple(task for task, facts in TASKS.items() if facts[2] == "circle")

COLUMNS = ("idx", "prompt", "choices", "answer", "image_1")

CARD = BenchmarkCard(
    name="blink",
    title="BLINK: Multimodal Large Language Models Can See but Not Perceive",
    citation="Fu et al., ECCV 2024, arXiv:2404.12390",
    licence="Apache-2.0",
    image_sources=("DIW", "IIW", "HPatches", "Wild6D", "LVIS", "SPair-71k", "FunKPoint", "TARA", "VSR", "WikiArt"),
    hub_id="BLINK-Benchmark/BLINK",
    splits=("val", "test"),
    tasks={task: facts[0] for task, facts in TASKS.items()},
    settings={
        "disclaimer": (
            "on",
            "on | off: the sentence before Forensic_Detection, Jigsaw and Art_Style that nobody need be named",
        ),
        "marks": ("drawn", "drawn | radius:N,color:red|white|gray: the drawn points taken off and drawn anew"),
    },
    hidden_splits=("test",),
    rotatable=(
        "Art_Style",
        "Counting",
        "Forensic_Detection",
        "Jigsaw",
        "Multi-view_Reasoning",
        "Spatial_Relation",
        "Visual_Similarity",
    ),
    headline=("accuracy_macro",),
    sample_tasks=(
        "Counting",
        "Jigsaw",
        "Multi-view_Reasoning",
        "Object_Localization",
        "Relative_Depth",
        "Relative_Reflectance",
        "Spatial_Relation",
        "Visual_Correspondence",
    ),
)


class Blink(OwnWords):
    """The benchmark; see the module's docstring."""

    card = CARD

    def tasks(self, source: Source) -> tuple[str, ...]:
        """The tasks with a parquet file of the split under the folder."""
        found = tuple(task for task in TASKS if _files(source, task))
        if not found:
            raise DataError(f"{source.folder} holds no BLINK data: expected TASK/{source.split}-*.parquet")
        return found

    def files(self, source: Source) -> tuple[Path, ...]:
        """The parquet files of the chosen tasks."""
        return tuple(path for task in source.tasks for path in _files(source, task))

    def questions(self, source: Source) -> Iterator[Question | BrokenQuestion]:
        """Stream the questions of the chosen tasks; a row that cannot be used becomes a `BrokenQuestion`.

        Raises:
            DataError: a file is not parquet, lacks a column, or repeats an id.
            UsageError: a setting has a value that it does not take.
        """
        check_settings(source.settings)
        seen: set[str] = set()
        for path in self.files(source):
            for row in rows(path, COLUMNS):
                identity = row.text("idx")
                if identity in seen:
                    raise DataError(f"{row.where}: the id {identity!r} stands there for the second time")
                seen.add(identity)
                task = identity.removeprefix(f"{source.split}_").rsplit("_", 1)[0]
                if task not in TASKS:
                    raise DataError(f"{row.where}: the id {identity!r} names no BLINK task of the split {source.split}")
                if task != path.parent.name:
                    raise DataError(
                        f"{row.where}: the id {identity!r} does not belong into the folder {path.parent.name}"
                    )
                try:
                    yield _question(row, identity, task, source, self.texts)
                except DataError as error:
                    yield BrokenQuestion(identity, task, str(error))

    async def dialogue(self, question: Question, ask: Ask) -> tuple[Exchange, ...]:
        """One call: the text, then the images in order."""
        return await ask_once(question, ask)

    def score(self, question: Question, exchanges: Sequence[Exchange], options: ScoreOptions) -> Score:
        """Exact letter. Raises `UsageError` where the answer is hidden."""
        if question.target == HIDDEN:
            raise UsageError(f"the answers of this split are hidden ({question.id}): it can be submitted, not scored")
        reply = exchanges[-1].reply
        worth = unanswered(reply.outcome, 1 / len(question.choices), options)
        verdict = Score(
            question.id, question.task, worth, reply.outcome, groups=question.groups, cluster=question.cluster
        )
        if reply.outcome is not Outcome.ANSWERED and not reply.text.strip():
            return verdict
        if options.parse == "official":
            answer, rule = analyze_answer(reply.text, len(question.choices)), "official"
            correct = f"({answer})" == question.target
        else:
            parsed = parse_letter(reply.text, question.choices)
            answer, rule = parsed.value, parsed.rule
            correct = f"({answer})" == question.target
        if answer is None:
            return replace(verdict, outcome=Outcome.UNPARSED, rule="none")
        return replace(verdict, correct=float(correct), answer=answer, rule=rule)

    def score_stored(self, question: Question, stored: str, options: ScoreOptions = AS_PAPERS) -> Score:
        """Equality with the stored string: "(C) Point C" is not "(C)", and "(Z)" is no answer."""
        letter = stored[1:2] if stored[:3] in OFFERABLE else None
        worth = unanswered(Outcome.UNPARSED, 1 / len(question.choices), options)
        return Score(
            question.id,
            question.task,
            float(stored == question.target) if letter else worth,
            Outcome.ANSWERED if letter else Outcome.UNPARSED,
            letter,
            "stored" if letter else "none",
            groups=question.groups,
            cluster=question.cluster,
        )

    def summarise(self, scores: Sequence[Score]) -> tuple[Metric, ...]:
        """`accuracy_macro` (Total of the paper's tables) and `accuracy_micro`."""
        return (accuracy("accuracy_macro", scores, macro=True), accuracy("accuracy_micro", scores))

    def predictions(self, path: Path) -> tuple[tuple[Question, Prediction], ...] | None:
        """The repository's `saved_outputs/MODEL` folder, or one of its files."""
        recorded = read_outputs(path)
        if recorded is None:
            return None
        found = []
        for row in recorded:
            choices = TASKS[row.task][3]
            if row.gold != HIDDEN and row.gold not in _offered(len(choices)):
                raise DataError(f"{row.where}: the answer {row.gold!r} is none of the {len(choices)} choices")
            question = Question(
                row.id, row.task, (), "", Kind.CHOICE, choices, row.gold, row.task, _groups(row.task, None)
            )
            found.append((question, Prediction(row.text, row.stored)))
        return tuple(found)

    def submission(self, answers: Mapping[str, str | None]) -> str:
        """The challenge server's JSON: id to "(A)"; "(Z)" where there is no answer."""
        return json.dumps({identity: f"({letter or 'Z'})" for identity, letter in sorted(answers.items())}, indent=1)

    def oracle(self, question: Question, prompt: Prompt) -> str:
        """The letter and the text of the right choice."""
        letter = str(question.target).strip("()")
        return f"The evidence favours ({letter}) {prompt.choices[LETTERS.index(letter)]}."


BENCHMARK = Blink()


def analyze_answer(text: str, choices: int) -> str | None:
    """The official extraction by rule (`eval/test_benchmark.py`), without its call to GPT-3.5: a letter or None.

    A bare letter or "(X)" is itself; otherwise the "(X)" among the tokens of the whole reply or of its last paragraph,
    when one of the two holds exactly one. Tokens are split at white space, so "(A)." and "**(A)**" do not count.
    """
    if text in ("A", "B", "C", "D", "E"):
        return text
    if text in OFFERABLE:
        return text[1]
    offered = _offered(choices)
    whole = offered & set(text.split())
    last = offered & set(text.rsplit("\n\n", maxsplit=1)[-1].split())
    if len(last) == 1:
        return next(iter(last))[1]
    if len(whole) == 1:
        return next(iter(whole))[1]
    return None


def _offered(choices: int) -> set[str]:
    return {f"({letter})" for letter in LETTERS[:choices]}


def check_settings(settings: Mapping[str, str]) -> None:
    """Raise `UsageError` for a value that a setting does not take."""
    if settings.get("disclaimer", "on") not in ("on", "off"):
        raise UsageError(f"--setting disclaimer={settings['disclaimer']}: write on or off")
    redrawing(settings.get("marks", "drawn"))


def _files(source: Source, task: str) -> tuple[Path, ...]:
    return tuple(sorted((source.folder / task).glob(f"{source.split}-*.parquet")))


def _groups(task: str, images: int | None) -> Mapping[str, str]:
    _, granularity, marks, _ = TASKS[task]
    known = {"granularity": granularity, "visual_prompt": marks}
    return known if images is None else known | {"images": str(images)}


def _question(row: Row, identity: str, task: str, source: Source, texts: Mapping[str, str]) -> Question:
    choices = row.texts("choices")
    if len(set(choices)) < len(choices):
        raise DataError(f"{row.where}, column choices: a choice stands there twice: {choices!r:.80}")
    answer = row.text("answer")
    if answer != HIDDEN and answer not in _offered(len(choices)):
        raise DataError(f"{row.where}, column answer: {answer!r} is none of the {len(choices)} choices")
    images: list[StoredImage] = []
    for column in ("image_1", "image_2", "image_3", "image_4"):
        data = row.image(column)
        if data is not None:
            images.append(source.store.put(data, f"{row.where}, question {identity}, column {column}"))
    if not images:
        raise DataError(f"{row.where}, column image_1: the question {identity} has no image")
    if task in MARKED_POINTS and (again := redrawing(source.settings.get("marks", "drawn"))):
        images = list(again.apply(images, choices, source.store))
    text = row.text("prompt")
    if task in DISCLAIMED and source.settings.get("disclaimer", "on") == "on":
        text = f"{texts['disclaimer'].strip()}\n{text}"
    return Question(identity, task, tuple(images), text, Kind.CHOICE, choices, answer, task, _groups(task, len(images)))
