"""Runs on disk with seeded random answers: all that a comparison needs, without a model, a tool or an image.

    made = synthetic_runs.write(tmp_path, "blink", size=40, seed=3)
    made.real        # controller, mllm and specialist
    made.blank       # the controller with blank tools
    made.shuffled    # the controller with outputs about other questions

Everything is written as `hybrid run` writes it: manifest, questions, attempts. The controller of the real run mostly
adopts the specialist's answer, and the controller with blank tools mostly answers as the MLLM alone. The specialist
abstains on some questions, some replies of the MLLM cannot be read, and `failed` questions were not finished. Tools
mostly return what the specialist's rules read; some questions are answered without a call, after a call of another
tool, or after a call that ended in a fault. With `samples` the MLLM's reply was voted on.
"""

import json
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench._runs import write_run as write_attempts
from hybrid.benchmarks.base import UnansweredRule
from hybrid.core.types import (
    Attempt,
    Exchange,
    Fault,
    ImageRef,
    Json,
    Kind,
    Outcome,
    Prompt,
    Question,
    Reply,
    Step,
    StoredImage,
    Usage,
)
from hybrid.log.attempts import Unfinished
from hybrid.log.folder import RunFolder
from hybrid.scoring.score import Scored

# Answers a question; None if it is not finished.
Solver = Callable[[Question], Reply | None]

MODEL = "made:up"
ABSTAINS, UNREADABLE, REFUSED = 0.15, 0.04, 0.1
# A reply that no parser can read.
UNREAD = "I cannot tell."
ALONE, SPECIALIST = {"Counting": 0.7, "Jigsaw": 0.5}, {"Counting": 0.5, "Jigsaw": 0.95}
# Probabilities that a tool output decides the controller's answer, and that offering tools changes it.
ADOPTED, MOVED = 0.8, 0.15
# By route, the tool of the specialist's rule.
TOOLS = {"Counting": "detection", "Jigsaw": "jigsaw", "Relative_Depth": "depth", "yes_no": "detection"}
THING = "cup"
# By answer, how many things detection counts: choices are numbers, or a thing is present or not.
COUNTS = {"(A)": 1, "(B)": 2, "(C)": 3, "(D)": 4, "yes": 1, "no": 0}


@dataclass(frozen=True)
class MadeUp:
    """Folders of three runs over the same questions."""

    real: Path
    blank: Path
    shuffled: Path

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.real, self.blank, self.shuffled)


def write(
    folder: Path,
    benchmark: str = "blink",
    *,
    size: int = 40,
    seed: int = 0,
    failed: int = 0,
    repeats: int = 1,
    samples: int = 1,
    model: str = MODEL,
    unreadable: float = UNREADABLE,
) -> MadeUp:
    """Write the three runs.

    Args:
        folder: parent of the runs `BENCHMARK`, `BENCHMARK-blank` and `BENCHMARK-shuffled`.
        benchmark: `blink`, with `size` questions in each of three tasks, or `mvp_bench`, with `size` pairs of pictures
            and two yes/no questions about each.
        size: number of questions per task, or of pairs; see `benchmark`.
        seed: seed of everything that is random.
        failed: number of questions that the controller of the real run did not finish.
        repeats: how often the MLLM alone was asked everything, as `mllm`, `mllm@2`, ...
        samples: number of samples of each reply of the MLLM alone that were voted on.
        model: the name of the MLLM.
        unreadable: the share of replies of the MLLM alone that cannot be read.
    """
    rng = random.Random(seed)
    built = Drawn.by(rng, tuple(QUESTIONS_OF[benchmark](size)), seed, repeats, samples, unreadable)
    ids = {question.id for question in rng.sample(built.questions, failed)}
    repeated = {("mllm" if n == 0 else f"mllm@{n + 1}"): built.mllm(n) for n in range(repeats)}
    runs: dict[str, dict[str, Solver]] = {
        "real": {"controller": built.controller(built.tool_answers, ids), **repeated, "specialist": built.specialist},
        "blank": {"controller": built.controller(None)},
        "shuffled": {"controller": built.controller(built.other)},
    }
    paths = {}
    for output, solvers in runs.items():
        paths[output] = folder / (benchmark if output == "real" else f"{benchmark}-{output}")
        voted = samples if output == "real" else 1
        write_run(paths[output], benchmark, built.questions, solvers, output, voted, model)
    return MadeUp(**paths)


@dataclass(frozen=True)
class Drawn:
    """Random values of each question, by its id: answers of the MLLM and of the tools, and how the solvers use them."""

    questions: tuple[Question, ...]
    seed: int
    samples: int
    # The MLLM's answers, by repetition.
    alone: Sequence[Mapping[str, str]]
    tool_answers: Mapping[str, str]
    # Outputs about other questions.
    other: Mapping[str, str]
    adopts: Mapping[str, bool]
    # The MLLM's answers when it is offered tools.
    moved: Mapping[str, str]
    silent: frozenset[str]
    unread: frozenset[str]

    @classmethod
    def by(
        cls,
        rng: random.Random,
        questions: tuple[Question, ...],
        seed: int,
        repeats: int,
        samples: int,
        unreadable: float,
    ) -> "Drawn":
        """Draw everything, always in this order."""
        alone, result, other = ({q.id: _draw_answer(q, of, rng) for q in questions} for of in (ALONE, SPECIALIST, {}))
        values = [
            {q.id: alone[q.id] if rng.random() < 0.8 else _draw_answer(q, ALONE, rng) for q in questions}
            for _ in range(repeats)
        ]
        adopts = {q.id: rng.random() < ADOPTED for q in questions}
        moved = {q.id: _draw_answer(q, ALONE, rng) if rng.random() < MOVED else alone[q.id] for q in questions}
        silent, unread = (
            frozenset(q.id for q in questions if rng.random() < share) for share in (ABSTAINS, unreadable)
        )
        return cls(questions, seed, samples, [alone, *values[1:]], result, other, adopts, moved, silent, unread)

    def mllm(self, number: int) -> Solver:
        """Return the MLLM's reply in this repetition."""

        def ask(q: Question) -> Reply:
            answer = self.alone[number][q.id]
            text = UNREAD if q.id in self.unread else f"Answer: {answer}"
            if self.samples == 1:
                return reply_with_usage(text, _model(answer))
            return _voted(q, text, self.samples, random.Random(f"{self.seed}/{number}/{q.id}"))

        return ask

    def specialist(self, q: Question) -> Reply:
        """Return the reply of the tools alone."""
        answer = None if q.id in self.silent else self.tool_answers[q.id]
        steps = (_tool(q, answer), _specialist_answer(answer))
        if answer is None:
            return Reply("", Outcome.ABSTAINED, Usage(tool_calls=1), steps)
        return Reply(f"Answer: {answer}", usage=Usage(tool_calls=1), steps=steps)

    def controller(self, findings: Mapping[str, str] | None, names: Collection[str] = ()) -> Solver:
        """Return a controller whose tools return these outputs, or no output if `findings` is None.

        It leaves the questions with the ids `names` unfinished.
        """

        def ask(q: Question) -> Reply | None:
            if q.id in names:
                return None
            finding = None if findings is None or q.id in self.silent else findings[q.id]
            answer = finding if finding is not None and self.adopts[q.id] else self.moved[q.id]
            calls = _calls(q, finding, random.Random(f"{self.seed}/calls/{q.id}"))
            return reply_with_usage(
                f"Answer: {answer}", *(_model("", is_called=True) for _ in calls), *calls, _model(answer)
            )

        return ask


def write_run(
    path: Path,
    benchmark: str,
    questions: Sequence[Question],
    solvers: Mapping[str, Solver],
    tool_output: str = "real",
    samples: int = 1,
    model: str = MODEL,
    show: str | None = None,
) -> RunFolder:
    """Write a run of these solvers, asked in this order; `show` is the form of tool outputs, if it is recorded."""

    def attempts(ask: Solver) -> Iterator[Attempt | Unfinished]:
        for second, question in enumerate(questions):
            reply = ask(question)
            if reply is None:
                yield Unfinished(question.id, "the model did not answer")
            else:
                yield Attempt(question.id, (Exchange(_prompt(question), reply),), 0.5, started=float(second))

    identity: dict[str, Json] = {"benchmark": benchmark, "model": {"model": model}, "tool_output": tool_output}
    identity |= {**({"samples": samples} if samples > 1 else {}), **({"show": show} if show else {})}
    return write_attempts(path, questions, {name: attempts(ask) for name, ask in solvers.items()}, identity)


def from_letters(
    path: Path,
    said_by: Mapping[str, Mapping[str, str]],
    tool_output: str = "real",
    show: str | None = None,
    costing: Callable[[str, Question, Reply], Reply] = lambda solver, question, reply: reply,
    *,
    puzzles: bool = False,
) -> RunFolder:
    """Write a run of BLINK with a letter for each answer, by solver and task: `{"mllm": {"Jigsaw": "rwauf"}}`.

    `r` is right, `w` wrong, `a` abstained, `u` unreadable, `f` not finished; the question `val_Jigsaw_2` is the second
    of Jigsaw. Every question has two choices. `costing` adds its cost to each solver's reply. The choices of `puzzles`
    are pieces, which the rule of the puzzle tool reads.
    """
    tasks = next(iter(said_by.values()))
    questions = [
        _question(f"val_{task}_{n}", task, choices=("one", "other"), target="(A)")
        for task, letters in tasks.items()
        for n in range(1, len(letters) + 1)
    ]
    if puzzles:
        questions = [replace(question, images=question.images * 3, choices=CHOICES["Jigsaw"]) for question in questions]
    replies = {
        "r": Reply("Answer: (A)"),
        "w": Reply("Answer: (B)"),
        "a": Reply("", Outcome.ABSTAINED),
        "u": Reply("I cannot tell."),
        "f": None,
    }

    def solver_from_letters(name: str, letters: Mapping[str, str]) -> Solver:
        def ask(q: Question) -> Reply | None:
            reply = replies[letters[q.task][int(q.id.rsplit("_", 1)[1]) - 1]]
            return None if reply is None else costing(name, q, reply)

        return ask

    solvers = {name: solver_from_letters(name, value) for name, value in said_by.items()}
    return write_run(path, "blink", questions, solvers, tool_output, show=show)


def calling(solver: str, question: Question, reply: Reply) -> Reply:
    """A `costing` that adds a call of a tool, which answers, to the replies of solvers with tools."""
    if not solver.startswith("controller"):
        return reply
    step = Step("tool", "jigsaw", "a finding", 0.1, data={"images": ["img:1"], "args": {}})
    return replace(reply, usage=Usage(tool_calls=1), steps=(step,))


def with_picture(solver: str, question: Question, reply: Reply) -> Reply:
    """A `costing` that adds a call of a tool, which makes a picture, to the replies of every solver but the model
    alone."""
    picture = (ImageRef("tool:1", question.images[0]),)
    step = Step("tool", "jigsaw", "a finding", 0.1, None, {"images": ["img:1"], "args": {}}, picture)
    return reply if solver == "mllm" else replace(reply, steps=(step,))


def answering(scored: Scored, letters: str) -> Scored:
    """Return the scored solver with other answers: letters as in `from_letters`, in the order of its questions. No file
    is written."""
    mapping: Mapping[UnansweredRule, float] = {"guess": 0.5, "wrong": 0.0}
    read = {
        "r": (Outcome.ANSWERED, "A", 1.0),
        "w": (Outcome.ANSWERED, "B", 0.0),
        "a": (Outcome.ABSTAINED, None, None),
        "u": (Outcome.UNPARSED, None, None),
        "f": (Outcome.OUTAGE, None, 0.0),
    }
    results = {}
    for rule, old in scored.counted.items():
        scores = []
        for score, letter in zip(old.scores, letters, strict=True):
            outcome, answer, correct = read[letter]
            value = mapping[rule] if correct is None else correct
            scores.append(replace(score, outcome=outcome, answer=answer, correct=value))
        results[rule] = replace(old, scores=tuple(scores))
    return replace(scored, counted=results)


def reply_with_usage(text: str, *steps: Step) -> Reply:
    """Return a reply with its cost: a call for each step of a model and of a tool."""
    models, tools = (sum(step.kind == kind for step in steps) for kind in ("model", "tool"))
    total = sum(step.fault in (Fault.TIMEOUT, Fault.TOOL_ERROR) for step in steps)
    usage = Usage(models, tools, 100 * models, 10 * models, seconds=0.25, tool_faults=total)
    return Reply(text, usage=usage, steps=steps)


def _blink(size: int) -> Iterator[Question]:
    """Yield tasks of two and of four choices; the right letter cycles."""
    for task, count in (("Counting", 4), ("Jigsaw", 2), ("Relative_Depth", 2)):
        for number in range(1, size + 1):
            letter = "ABCD"[number % count]
            groups = {"granularity": "crop" if number % 3 else "image"}
            request = _question(
                f"val_{task}_{number}", task, choices=CHOICES[task], target=f"({letter})", groups=groups
            )
            images = request.images * 3 if task == "Jigsaw" else request.images
            yield replace(request, text=TEXTS.get(task, request.text), images=images)


def _mvp_bench(size: int) -> Iterator[Question]:
    """Yield pairs of a natural and a manipulated picture, with two yes/no questions, of a low and a high level."""
    row = 0
    for pair in range(size):
        for place, level in enumerate(("low", "high")):
            for image, target in (("natural", "yes"), ("manipulated", "no")):
                groups = {"level": level, "image": image, "pair": str(pair), "question": str(2 * pair + place)}
                built = _question(
                    str(row), "yes_no", kind=Kind.YES_NO, target=target, groups=groups, cluster=f"pair{pair}"
                )
                yield replace(built, text=f"Is there a {THING} in the image?")
                row += 1


CHOICES = {
    "Counting": ("1", "2", "3", "4"),
    "Jigsaw": ("the second image", "the third image"),
    "Relative_Depth": ("A is closer", "B is closer"),
}
TEXTS = {"Counting": f"How many {THING}s are there in the image?"}
QUESTIONS_OF: Mapping[str, Callable[[int], Iterator[Question]]] = {"blink": _blink, "mvp_bench": _mvp_bench}


def _question(identity: str, task: str, **rest: object) -> Question:
    image = StoredImage(identity.encode().hex().zfill(64)[-64:], 8, 8, "image/png")
    plain = Question(identity, task, (image,), f"Which is it in {identity}?", Kind.CHOICE, route=task)
    return replace(plain, **rest)  # type: ignore[arg-type]  # fields of a question, given by name


def _prompt(question: Question) -> Prompt:
    images = [ImageRef(f"img:{n}", image) for n, image in enumerate(question.images, 1)]
    return Prompt((question.text, *images), question.kind, question.choices, route=question.route)


def _draw_answer(question: Question, chances: Mapping[str, float], rng: random.Random) -> str:
    """Draw the right answer with the probability of its task (0.65 by default), else a wrong one."""
    right = str(question.target)
    others = (
        ["yes", "no"] if question.kind is Kind.YES_NO else [f"({letter})" for letter in "ABCD"[: len(question.choices)]]
    )
    wrong = [answer for answer in others if answer != right]
    return right if rng.random() < chances.get(question.task, 0.65) else rng.choice(wrong)


def _model(text: str, *, is_called: bool = False) -> Step:
    calls: Json = [{"tool": "jigsaw", "args": {"images": ["img:1"]}}] if is_called else []
    return Step("model", MODEL, text, 0.1, data={"tool_calls": calls} if is_called else {})


def _calls(question: Question, finding: str | None, rng: random.Random) -> tuple[Step, ...]:
    """Usually draw the one call that the rule would make, and sometimes one of the deviations."""
    right = _tool(question, finding)
    return rng.choices(
        (
            (right,),
            (),
            (_other(0.2),),
            (_failed(question, Fault.TIMEOUT, 2.0), right),
            (_failed(question, Fault.TOOL_ERROR, 0.5),),
            (replace(_failed(question, Fault.UNKNOWN_TOOL, 0.0), name="oracle"), right, _other(0.3)),
        ),
        (0.6, 0.1, 0.1, 0.08, 0.06, 0.06),
    )[0]


def _tool(question: Question, answer: str | None) -> Step:
    """Return a tool call from whose output the specialist's rule derives this answer.

    If `answer` is None, the output reports nothing.
    """
    tool = TOOLS[question.route]
    args, data = _asked_and_found(tool, None if answer is None else COUNTS[answer])
    images: list[Json] = [ref.name for ref in _prompt(question).parts if isinstance(ref, ImageRef)]
    mapping: dict[str, Json] = {"images": images, "args": args, "data": data, "confidence": 0.9}
    return Step("tool", tool, answer or "", 0.05, data={**mapping, "backend": "classical", "version": "made-up-1"})


def _asked_and_found(tool: str, count: int | None) -> tuple[dict[str, Json], dict[str, Json]]:
    """Return arguments and data of a call; positions count from 1, None is nothing found."""
    if tool == "detection":
        return {"names": [THING]}, {"counts": {} if count is None else {THING: count}}
    if tool == "depth":
        return {"labels": ["A", "B"]}, {"nearer": None if count is None else " AB"[count]}
    return {}, {"best": None if count is None else count - 1}


def _other(seconds: float) -> Step:
    """Return a call of a tool that no rule uses."""
    data: dict[str, Json] = {"images": ["img:1"], "args": {}, "data": {"best": 0, "nearer": "A"}, "confidence": 0.5}
    return Step("tool", "crop", "a part", seconds, data={**data, "backend": "classical", "version": "made-up-1"})


def _failed(question: Question, fault: Fault, seconds: float) -> Step:
    return Step("tool", TOOLS[question.route], "", seconds, fault, {"images": ["img:1"], "args": {}})


def _voted(question: Question, text: str, samples: int, rng: random.Random) -> Reply:
    """Return a reply that most of the readable samples gave, as `hybrid run --setting samples=K` writes it."""
    wrong = f"Answer: {_draw_answer(question, {question.task: 0.3}, rng)}"
    others = rng.choices((text, wrong, UNREAD), (0.5, 0.3, 0.2), k=samples)
    most = samples // 2 + 1
    said_by = [UNREAD] * samples if text == UNREAD else [*[text] * most, *others[most:]]
    rng.shuffle(said_by)
    ballots = [None if item == UNREAD else json.dumps(item.removeprefix("Answer: ").strip("()")) for item in said_by]
    steps = [
        Step(
            "rule", "sample", entry, data={"sample": n, "answer": ballot and json.loads(ballot), "outcome": "answered"}
        )
        for n, (entry, ballot) in enumerate(zip(said_by, ballots, strict=True))
    ]
    votes = Counter(ballot for ballot in ballots if ballot is not None)
    guess = 1 / (len(question.choices) or 2)
    confident = (max(votes.values()) + guess) / (votes.total() + 1) if votes else None
    options: dict[str, Json] = {"samples": samples, "refused": int(rng.random() < REFUSED), "readable": votes.total()}
    vote = Step("rule", "vote", "the most", data={**options, "votes": dict(votes), "confidence": confident})
    return reply_with_usage(text, *(_model(value) for value in said_by), *steps, vote)


def _specialist_answer(answer: str | None) -> Step:
    said_so: dict[str, Json] = {
        "answer": f"Answer: {answer}",
        "tool": "jigsaw",
        "backend": "classical",
        "confidence": 0.9,
    }
    return Step(
        "rule", "specialist", f"jigsaw says {answer}", data={"specialist_answer": None if answer is None else said_so}
    )
