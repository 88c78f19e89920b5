"""The arbiter next to its two parts and to simpler rules, on real items with recorded and with simulated MLLMs.

    uv run python -m bench.arbiter --data ../shared/data/blink --recorded ../shared/data/blink_outputs
        [--task Relative_Depth]... [--half first|second] [--simulated 15 [--likeness 0.5]] [--seed 0] [--json FILE]

    uv run python -m bench.arbiter --rivals 20 --data ../shared/data/blink --recorded ../shared/data/blink_outputs

DATA is BLINK's official layout; DIR holds a folder of saved outputs a model. The weight-free tools are asked once, and
every model is weighed against what they said. `--rivals` sets the rule next to simpler ones, so many draws of each
simulated tool (`bench/_rivals.py`). No readable answer counts as a guess. Columns:

- `mllm`, `specialist`: the parts alone.
- `testified`: the tool whenever it answers, else the MLLM.
- `default`: the arbiter's rule without a trust file.
- `trust`: with what `hybrid calibrate` would measure on the other four folds of five, of tool and model.
- `other half`: with what was measured on the other half of the items (by the first byte of SHA-256 of the id, even or
  odd) and nothing of this one.

A row `mean` is over models; under it stand how many models are below the better of their two parts, and the differences
to the specialist and to `testified`, each item's mean over models taken as one observation.

A simulated model is the gold answers corrupted: right with its accuracy (0.50 to 0.95 in equal steps), else one of the
other choices. With `--likeness` L its errors are drawn to where the recorded models err: the odds of an item are
multiplied by exp(L * (log-odds of the recorded models' mean on the item, shrunk - that on average)). Simulated models
say how the rule behaves, and nothing of any real model; they are labelled.
"""

from __future__ import annotations

import hashlib
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any, Final, Literal, TypeVar

from bench._frame import options, write_json
from bench._rivals import designs, out_of_fold, recorded_pairs
from bench._rivals import table as rivals
from bench._runs import finished
from graphs._model_and_specialist import Proposal
from graphs.arbiter import ruling
from hybrid.benchmarks.base import Benchmark, ScoreOptions
from hybrid.benchmarks.card import metric_of
from hybrid.config import RunConfig, ServiceOptions
from hybrid.display.tables import Column, Table, as_markdown, as_text, bounds
from hybrid.log.folder import RunFolder
from hybrid.registry import load
from hybrid.scoring.calibrate import CountedAnswer, cases, measurements
from hybrid.scoring.tally import recorded_of
from hybrid.solving.answer_confidence import AnswerConfidence, log_odds, probability
from hybrid.solving.trust import MODEL, Trust, fold_of
from hybrid.stats import contrast
from hybrid.tool.rules import SpecialistAnswer
from hybrid.types import LETTERS, Cell, Exchange, Finding, Metric, Outcome, Prompt, Question, Reply

Half = Literal["all", "first", "second"]
Part = TypeVar("Part", int, Half)

TASKS: Final = ("Relative_Depth", "Jigsaw", "Spatial_Relation")
RULES: Final = ("mllm", "specialist", "testified", "default", "trust", "other half")
PARTS: Final = ("mllm", "specialist")
FOLDS: Final = 5
HALVES: Final[tuple[Half, Half]] = ("first", "second")
CREDIT: Final = ScoreOptions(abstain="chance")


@dataclass(frozen=True)
class Item:
    """One question and the specialist's answer to it."""

    question: Question
    prompt: Prompt
    specialist_answer: SpecialistAnswer | None

    @property
    def half(self) -> Half:
        """The half of the items that it belongs to."""
        return "second" if hashlib.sha256(self.question.unit.encode()).digest()[0] % 2 else "first"


@dataclass(frozen=True)
class Model:
    """The replies of one MLLM by id, and what a calibration would count of them."""

    name: str
    said: Mapping[str, str]
    counted: tuple[CountedAnswer, ...]


@dataclass(frozen=True)
class SpecialistRun:
    """The items of a run, and the counted answers of the specialist."""

    benchmark: Benchmark
    items: tuple[Item, ...]
    counted: tuple[CountedAnswer, ...]


def run_of(data: Path, tasks: Sequence[str], solver: str, out: Path, model: str | None = None) -> RunFolder:
    """A finished run of one solver."""
    config = RunConfig(
        "blink",
        solvers=(solver,),
        model=model,
        data=str(data),
        tasks=tuple(tasks),
        service=ServiceOptions("classical"),
        concurrency=4,
        out=out,
    )
    return finished(config)


def heard(folder: RunFolder) -> SpecialistRun:
    """Collect the specialist's answers of a run."""
    benchmark: Benchmark = load("hybrid.benchmarks", folder.manifest["identity"]["benchmark"])
    questions = folder.questions()
    items = []
    for attempt in recorded_of(folder, "specialist", questions).by_id.values():
        question, asked = questions.by_id[attempt.id], attempt.exchanges[-1]
        if isinstance(question, Question):
            answers = [step.data["specialist_answer"] for step in asked.reply.steps if "specialist_answer" in step.data]
            items.append(Item(question, asked.prompt, _specialist_answer(answers[0]) if answers else None))
    return SpecialistRun(benchmark, tuple(items), cases(folder))


def _specialist_answer(data: Any) -> SpecialistAnswer:
    finding = Finding("", {}, data["confidence"], data["backend"], "")
    place = None if data["letter"] is None else LETTERS.index(data["letter"])
    return SpecialistAnswer(data["answer"], data["tool"], finding, place, data["confidence"], data["on_card"])


def recorded(folder: RunFolder, name: str) -> Model:
    """The model of a run with the solver mllm."""
    attempts = recorded_of(folder, "mllm", folder.questions()).by_id.values()
    return Model(name, {one.id: one.exchanges[-1].reply.text for one in attempts}, cases(folder))


def simulated(
    specialist: SpecialistRun, number: int, likeness: float, models: Sequence[Model], seed: int
) -> list[Model]:
    """Gold answers corrupted: see the module's docstring."""
    ease = _ease(specialist, models) if likeness else {}
    made = []
    for place in range(number):
        accuracy = 0.5 + 0.45 * place / max(1, number - 1)
        draw = random.Random(f"{seed}/{place}")
        said, counted = {}, []
        for item in specialist.items:
            question = item.question
            right = draw.random() < probability(log_odds(accuracy) + likeness * ease.get(question.id, 0.0))
            gold = str(question.target).strip("()")
            others = [letter for letter in LETTERS[: len(question.choices)] if letter != gold]
            said[question.id] = f"Answer: ({gold if right else draw.choice(others)})"
            claimed = AnswerConfidence(specialist.benchmark.card.prior_accuracy.usual(item.prompt))
            counted.append(
                CountedAnswer(question.id, question.unit, (*MODEL, question.route), None, float(right), claimed)
            )
        made.append(Model(f"simulated {accuracy:.2f}", said, tuple(counted)))
    return made


def _ease(specialist: SpecialistRun, models: Sequence[Model]) -> dict[str, float]:
    """Log-odds of the recorded models' mean on each item, one right and one wrong added, less the mean of its task."""
    raw = {}
    for item in specialist.items:
        right = [credit(specialist.benchmark, item, model.said.get(item.question.id, "")) for model in models]
        raw[item.question.id] = log_odds((sum(right) + 1) / (len(right) + 2))
    by_task = {
        task: mean(raw[i.question.id] for i in specialist.items if i.question.task == task)
        for task in _tasks(specialist)
    }
    return {item.question.id: raw[item.question.id] - by_task[item.question.task] for item in specialist.items}


def _tasks(specialist: SpecialistRun) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item.question.task for item in specialist.items))


def credit(benchmark: Benchmark, item: Item, text: str, outcome: Outcome = Outcome.ANSWERED) -> float:
    """The score of a reply, 0..1."""
    score = benchmark.score(item.question, (Exchange(item.prompt, Reply(text, outcome)),), CREDIT)
    assert score.correct is not None  # noqa: S101 - BLINK's answers are right or wrong
    return score.correct


def trust_of(specialist: SpecialistRun, model: Model, part_of: Callable[[str], Part], without: Part) -> Trust:
    """The trust measured on all units but those of one part."""
    counted = (*specialist.counted, *model.counted)
    return Trust(dict(measurements(case for case in counted if part_of(case.unit) != without)))


def replies(specialist: SpecialistRun, model: Model) -> dict[str, dict[str, float]]:
    """Per rule the worth of its reply to each item."""
    halves = {item.question.unit: item.half for item in specialist.items}
    by_fold = [trust_of(specialist, model, lambda unit: fold_of(unit, FOLDS), fold) for fold in range(FOLDS)]
    by_half = {half: trust_of(specialist, model, halves.__getitem__, half) for half in HALVES}
    worths: dict[str, dict[str, float]] = {rule: {} for rule in RULES}
    prior_accuracy = specialist.benchmark.card.prior_accuracy
    for item in specialist.items:
        said, unit = model.said.get(item.question.id, ""), item.question.unit
        trusts = {"default": Trust(), "trust": by_fold[fold_of(unit, FOLDS)], "other half": by_half[item.half]}
        abstains = item.specialist_answer is None
        tool = (
            credit(specialist.benchmark, item, item.specialist_answer.answer)
            if item.specialist_answer
            else credit(specialist.benchmark, item, "", Outcome.ABSTAINED)
        )
        own = credit(specialist.benchmark, item, said)
        worth = {"mllm": own, "specialist": tool, "testified": own if abstains else tool}
        for rule, trust in trusts.items():
            adopted = ruling(item.prompt, trust, prior_accuracy, Proposal(said), item.specialist_answer).rule == "adopt"
            worth[rule] = tool if adopted else own
        for rule, value in worth.items():
            worths[rule][item.question.id] = value
    return worths


@dataclass(frozen=True)
class Measured:
    """Accuracies of some models on the items of one task and half."""

    task: str
    items: tuple[str, ...]
    by_model: Mapping[str, Mapping[str, Mapping[str, float]]]
    """Model, rule, item."""

    def accuracy(self, model: str, rule: str) -> float:
        """The replies of one model under one rule."""
        return mean(self.by_model[model][rule][item] for item in self.items)

    def mean(self, rule: str) -> float:
        """Over models."""
        return mean(self.accuracy(model, rule) for model in self.by_model)

    def below(self, rule: str) -> int:
        """How many models are below the better of their two parts."""
        return sum(
            self.accuracy(model, rule) < max(self.accuracy(model, part) for part in PARTS) - 1e-9
            for model in self.by_model
        )

    def metric(self, rule: str) -> Metric:
        """Each item's mean over models."""
        worth = {item: mean(self.by_model[model][rule][item] for model in self.by_model) for item in self.items}
        return metric_of(rule, (Cell("", item, value, 1.0) for item, value in worth.items()))

    def against(self, rule: str, other: str) -> str:
        """The difference of a rule to another with its interval."""
        if rule == other:
            return ""
        difference = contrast(self.metric(other), self.metric(rule))
        return f"{self.mean(rule) - self.mean(other):+.3f} {bounds(difference.interval, 3)}"

    def table(self, label: str) -> Table:
        """A row a model, and what they come to."""
        rows: list[tuple[str, ...]] = [
            (model, *(f"{self.accuracy(model, rule):.3f}" for rule in RULES)) for model in self.by_model
        ]
        rows.append(("mean", *(f"{self.mean(rule):.3f}" for rule in RULES)))
        rows.append((f"below the better part, of {len(self.by_model)}", *(str(self.below(rule)) for rule in RULES)))
        rows += [(f"less {other}", *(self.against(rule, other) for rule in RULES)) for other in RULES[1:3]]
        columns = (Column("model", "left"), *(Column(rule) for rule in RULES))
        return Table(f"{self.task}, {label}, {len(self.items)} items", columns, tuple(rows))

    def as_json(self) -> dict[str, Any]:
        """The numbers of the table."""
        return {
            "task": self.task,
            "n": len(self.items),
            "models": {model: {rule: self.accuracy(model, rule) for rule in RULES} for model in self.by_model},
            "mean": {rule: self.mean(rule) for rule in RULES},
            "below": {rule: self.below(rule) for rule in RULES},
        }


def measured(specialist: SpecialistRun, models: Sequence[Model], half: Half) -> list[Measured]:
    """One table a task."""
    worth = {model.name: replies(specialist, model) for model in models}
    tables = []
    for task in _tasks(specialist):
        chosen = [item for item in specialist.items if item.question.task == task and half in ("all", item.half)]
        tables.append(Measured(task, tuple(item.question.id for item in chosen), worth))
    return tables


def against_rivals(folder: Path, repeats: int) -> None:
    """Print the two tables of `_rivals.py`."""
    benchmark: Benchmark = load("hybrid.benchmarks", "blink")
    pairs = recorded_pairs(folder, benchmark.card.prior_accuracy)
    print(as_markdown(rivals("recorded", {name: [out_of_fold(duels)] for name, duels in pairs.items()})))
    print(as_markdown(rivals("simulated", dict(designs(repeats)))))


def main() -> None:
    """Print the tables."""
    flags = {"--data": ..., "--recorded": ..., "--task": [str], "--half": ("all", *HALVES), "--simulated": 0}
    given = options(__doc__, {**flags, "--likeness": 0.0, "--seed": 0, "--rivals": 0, "--json": Path})
    if given.rivals:
        against_rivals(given.recorded, given.rivals)
        return
    tasks = tuple(given.task or TASKS)
    with tempfile.TemporaryDirectory() as folder:
        specialist = heard(run_of(given.data, tasks, "specialist", Path(folder) / "specialist"))
        models = []
        for path in sorted(each for each in given.recorded.iterdir() if each.is_dir()):
            ran = run_of(given.data, tasks, "mllm", Path(folder) / path.name, f"replay:{path}")
            models.append(recorded(ran, path.name))
    made = simulated(specialist, given.simulated, given.likeness, models, given.seed)
    groups = {"recorded models": models, "simulated models": made}
    kept: dict[str, list[dict[str, Any]]] = {}
    for name, group in groups.items():
        found = measured(specialist, group, given.half) if group else []
        for one in found:
            print(as_text(one.table(f"{name}, half: {given.half}")))
        kept[name] = [one.as_json() for one in found]
    write_json(given.json, {"half": given.half, **kept})


if __name__ == "__main__":
    main()
