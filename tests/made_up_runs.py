"""Runs on disk whose answers are drawn by a seed: what a comparison needs, without a model, a tool or an image.

    made = made_up_runs.write(tmp_path, "blink", size=40, seed=3)
    made.real        # controller, mllm and specialist
    made.blank       # the controller with blank tools
    made.shuffled    # the controller with findings about other questions

Everything is written as `hybrid run` writes it: manifest, questions, attempts, traces, errors. The controller of the
real run mostly adopts what the specialist found, the one with blank tools mostly answers as the MLLM alone. The
specialist abstains on some questions, the MLLM's reply cannot be read now and then, and `failed` questions were not
finished.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from hybrid.run_folder import QUESTIONS, RunFolder, attempt_line, attempts_of, error_line
from hybrid.types import (
    Attempt,
    Exchange,
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

Solver = Callable[[Question], Reply]

MODEL = "made:up"
ABSTAINS, UNREADABLE = 0.15, 0.04
ALONE, SPECIALIST = {"Counting": 0.7, "Jigsaw": 0.5}, {"Counting": 0.5, "Jigsaw": 0.95}
ADOPTED, MOVED = 0.8, 0.15
"""How often a finding decides the controller's answer, and how often being offered tools changes it."""


@dataclass(frozen=True)
class MadeUp:
    """Three runs over the same questions."""

    real: Path
    blank: Path
    shuffled: Path

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.real, self.blank, self.shuffled)


def write(
    folder: Path, benchmark: str = "blink", *, size: int = 40, seed: int = 0, failed: int = 0, repeats: int = 1
) -> MadeUp:
    """Write the three runs.

    Args:
        folder: where the runs are written, `BENCHMARK`, `BENCHMARK-blank` and `BENCHMARK-shuffled`.
        benchmark: `blink`, with `size` questions in each of three tasks, or `mvp_bench`, with `size` pairs of pictures
            and two yes/no questions about each.
        size: see there.
        seed: of everything that is drawn.
        failed: so many of the questions were not finished by the controller of the real run.
        repeats: how often the MLLM alone was asked all, as `mllm`, `mllm@2`, ...
    """
    questions = tuple(QUESTIONS_OF[benchmark](size))
    rng = random.Random(seed)
    alone, found, other = ({q.id: _drawn(q, of, rng) for q in questions} for of in (ALONE, SPECIALIST, {}))
    again = [
        {q.id: alone[q.id] if rng.random() < 0.8 else _drawn(q, ALONE, rng) for q in questions} for _ in range(repeats)
    ]
    adopts = {q.id: rng.random() < ADOPTED for q in questions}
    moved = {q.id: _drawn(q, ALONE, rng) if rng.random() < MOVED else alone[q.id] for q in questions}
    silent = {q.id for q in questions if rng.random() < ABSTAINS}
    unread = {q.id for q in questions if rng.random() < UNREADABLE}

    def mllm(answers: Mapping[str, str]) -> Solver:
        return lambda q: said("I cannot tell." if q.id in unread else f"Answer: {answers[q.id]}", _model(answers[q.id]))

    def specialist(q: Question) -> Reply:
        if q.id in silent:
            return Reply("", Outcome.ABSTAINED, Usage(tool_calls=1), (_testimony(None),))
        return Reply(f"Answer: {found[q.id]}", usage=Usage(tool_calls=1), steps=(_testimony(found[q.id]),))

    def controller(findings: Mapping[str, str] | None) -> Solver:
        def ask(q: Question) -> Reply:
            finding = None if findings is None or q.id in silent else findings[q.id]
            answer = finding if finding is not None and adopts[q.id] else moved[q.id]
            return said(f"Answer: {answer}", _model("", called=True), _tool(finding), _model(answer))

        return ask

    lost = {q.id for q in rng.sample(questions, failed)}
    repeated = {("mllm" if n == 0 else f"mllm@{n + 1}"): mllm(alone if n == 0 else again[n]) for n in range(repeats)}
    runs: dict[str, dict[str, Solver]] = {
        "real": {"controller": controller(found), **repeated, "specialist": specialist},
        "blank": {"controller": controller(None)},
        "shuffled": {"controller": controller(other)},
    }
    paths = {}
    for output, solvers in runs.items():
        paths[output] = folder / (benchmark if output == "real" else f"{benchmark}-{output}")
        write_run(paths[output], benchmark, questions, solvers, output, lost if output == "real" else ())
    return MadeUp(**paths)


def write_run(
    path: Path,
    benchmark: str,
    questions: Sequence[Question],
    solvers: Mapping[str, Solver],
    tool_output: str = "real",
    lost: Sequence[str] | set[str] = (),
) -> RunFolder:
    """A run of these solvers; the first did not finish the questions `lost`."""
    folder = RunFolder(path)
    with folder.locked():
        folder.write_questions(questions)
        for place, (name, ask) in enumerate(solvers.items()):
            journal = folder.journal(name)
            for second, question in enumerate(questions):
                if place == 0 and question.id in lost:
                    errors = folder.errors(name)
                    errors.append(error_line(question.id, "the model did not answer"))
                    errors.close()
                    continue
                attempt = Attempt(
                    question.id, (Exchange(_prompt(question), ask(question)),), 0.5, started=float(second)
                )
                journal.append(attempt_line(attempt))
                folder.write_trace(name, attempt)
            journal.close()
        labels: list[Json] = [] if tool_output == "real" else [f"tool output {tool_output}"]
        identity: dict[str, Json] = {
            "benchmark": benchmark,
            "split": "val",
            "settings": {},
            "data": {"kind": "folder", "sha256": "a" * 64},
            "model": {"model": MODEL},
            "protocol": "strict",
            "tool_output": tool_output,
            "seed": 0,
        }
        parts = (QUESTIONS, *map(attempts_of, solvers))
        files: dict[str, Json] = {part: asdict(folder.measure(part, None).extent) for part in parts}
        named: dict[str, Json] = {name: {} for name in solvers}
        folder.write_manifest({"identity": identity, "labels": labels, "solvers": named, "files": files})
    return folder


def said(text: str, *steps: Step) -> Reply:
    """A reply with what it cost: a call for each step of a model and of a tool."""
    models, tools = (sum(step.kind == kind for step in steps) for kind in ("model", "tool"))
    return Reply(text, usage=Usage(models, tools, 100 * models, 10 * models, seconds=0.25), steps=steps)


def _blink(size: int) -> Iterator[Question]:
    """Tasks of two and of four choices; the right letter goes round."""
    for task, count in (("Counting", 4), ("Jigsaw", 2), ("Relative_Depth", 2)):
        for number in range(1, size + 1):
            choices = tuple(f"{task} {place}" for place in range(count))
            letter = "ABCD"[number % count]
            groups = {"granularity": "crop" if number % 3 else "image"}
            yield _question(f"val_{task}_{number}", task, choices=choices, target=f"({letter})", groups=groups)


def _mvp_bench(size: int) -> Iterator[Question]:
    """Pairs of a natural and a manipulated picture, two yes/no questions about both, of a low and a high level."""
    row = 0
    for pair in range(size):
        for place, level in enumerate(("low", "high")):
            for image, target in (("natural", "yes"), ("manipulated", "no")):
                groups = {"level": level, "image": image, "pair": str(pair), "question": str(2 * pair + place)}
                yield _question(
                    str(row), "yes_no", kind=Kind.YES_NO, target=target, groups=groups, cluster=f"pair{pair}"
                )
                row += 1


QUESTIONS_OF: Mapping[str, Callable[[int], Iterator[Question]]] = {"blink": _blink, "mvp_bench": _mvp_bench}


def _question(identity: str, task: str, **rest: object) -> Question:
    image = StoredImage(identity.encode().hex().zfill(64)[-64:], 8, 8, "image/png")
    plain = Question(identity, task, (image,), f"Which is it in {identity}?", Kind.CHOICE, route=task)
    return replace(plain, **rest)  # type: ignore[arg-type]  # fields of a question, given by name


def _prompt(question: Question) -> Prompt:
    images = [ImageRef(f"img:{n}", image) for n, image in enumerate(question.images, 1)]
    return Prompt((question.text, *images), question.kind, question.choices, route=question.route)


def _drawn(question: Question, chances: Mapping[str, float], rng: random.Random) -> str:
    """The right answer with the chance of its task (0.65 where none is given), else a wrong one."""
    right = str(question.target)
    others = (
        ["yes", "no"] if question.kind is Kind.YES_NO else [f"({letter})" for letter in "ABCD"[: len(question.choices)]]
    )
    wrong = [answer for answer in others if answer != right]
    return right if rng.random() < chances.get(question.task, 0.65) else rng.choice(wrong)


def _model(text: str, *, called: bool = False) -> Step:
    calls: Json = [{"tool": "jigsaw", "args": {"images": ["img:1"]}}] if called else []
    return Step("model", MODEL, text, 0.1, data={"tool_calls": calls} if called else {})


def _tool(finding: str | None) -> Step:
    """A finding that names the answer; a blank one says nothing."""
    data: dict[str, Json] = {"images": ["img:1"], "args": {}, "data": {"best": finding}, "confidence": 0.9}
    return Step("tool", "jigsaw", finding or "", 0.05, data={**data, "backend": "classical", "version": "made-up-1"})


def _testimony(answer: str | None) -> Step:
    said_so: dict[str, Json] = {
        "answer": f"Answer: {answer}",
        "tool": "jigsaw",
        "backend": "classical",
        "confidence": 0.9,
    }
    return Step("rule", "testify", f"jigsaw says {answer}", data={"testimony": None if answer is None else said_so})
