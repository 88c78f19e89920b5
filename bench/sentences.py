"""Test how often a conclusion's claims are true: draw run folders from known truths, compare them, parse the claims.

python -m bench.sentences                 60 draws a design, some minutes on two cores
python -m bench.sentences --design "14 tasks x 6" --draws 400     that one alone
python -m bench.sentences --power         how often the difference of "80 % power" is found
python -m bench.sentences --plan          how often the difference that `hybrid plan` names is found
python -m bench.sentences --worlds        simulations of single numbers and sentences, and how often each is false
python -m bench.sentences --quick --draws 400     only the first sentence, without run folders: a hundredth of the time
python -m bench.sentences --coverage      how often intervals hold a difference of uneven tasks that runs one way
python -m bench.sentences --draws 100     bench/results/sentences.md
"""

from __future__ import annotations

import re
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bench._frame import options
from bench._quick_claims import Answers, claims_of
from bench._review_worlds import REVIEW_WORLDS
from bench._runs import write_run
from bench._sentence_worlds import WORLDS, false_in
from bench._simulations import rejected
from hybrid.benchmarks.blink import TASKS as BLINK_TASKS
from hybrid.core.errors import UsageError
from hybrid.core.repetitions import REPEAT
from hybrid.core.types import (
    Attempt,
    Cell,
    Combine,
    Exchange,
    Fault,
    ImageRef,
    Kind,
    Metric,
    Outcome,
    Prompt,
    Question,
    Reply,
    Step,
    StoredImage,
    Usage,
)
from hybrid.log.attempts import Unfinished
from hybrid.scoring.conclusion import conclusion
from hybrid.scoring.conclusion_cases import Sentence
from hybrid.scoring.reports import compare_paths
from hybrid.stats import Design as Plan
from hybrid.stats import combine, contrast, detectable, detectable_difference

TASKS: Final = tuple(sorted(BLINK_TASKS))
# Share of the questions for which the model with tools calls a tool.
CALLED: Final = 0.7
MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a folder of the system


@dataclass(frozen=True)
class Design:
    """True effects, and the design of the run that is simulated from them.

    `presence` is the effect of blank tools compared with the model alone, and `content` the effect of tool output
    compared with blank tools. An effect is the share of wrong answers that become right or, below 0, of right answers
    that become wrong. `repeat_share` is the share of answers that repeat the previous one instead of being drawn again.
    `silent_alone` and `silent_tools` are the shares of questions that the model refuses alone, and with tools (real or
    blank); `by_task` are the effects of tool output in each task, in place of `content`. `last_task_fails`
    fails every question of the last task; `one_picture` puts all questions in one cluster.
    """

    name: str
    sizes: tuple[int, ...]
    presence: float = 0.0
    content: float = 0.0
    alone: float = 0.5
    repeat_share: float = 0.6
    rows: int = 1
    repeats: int = 1
    specialist: float | None = None
    silent: float = 0.0
    unread: float = 0.0
    failed: float = 0.0
    faults: float = 0.0
    silent_alone: float = 0.0
    silent_tools: float = 0.0
    by_task: tuple[float, ...] = ()
    last_task_fails: bool = False
    one_picture: bool = False

    @property
    def truth(self) -> tuple[float, float, float]:
        """The accuracy alone, with blank tools and with tools."""
        blank = _moved(self.alone, self.presence)
        return self.alone, blank, _moved(blank, self.content)


_DATA: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
# The designs of the second group have no effect: every asserted difference is false.
ARMS, NULLS = (
    tuple(
        Design(**{**row, "sizes": tuple(row["sizes"]), "by_task": tuple(row.get("by_task", ()))}) for row in _DATA[kind]
    )
    for kind in ("arms", "nulls")
)
CLAIMS: Final[Mapping[str, str]] = _DATA["claims"]
# Designs that can be drawn without a run folder: nothing fails, and every question is asked once.
QUICK: Final = tuple(
    design.name
    for design in (*ARMS, *NULLS)
    if not (design.last_task_fails or design.one_picture or design.failed) and design.repeats == 1
)


def _moved(share: float, effect: float) -> float:
    return share + effect * ((1 - share) if effect > 0 else share)


Right = NDArray[np.bool_]


def _after(rng: np.random.Generator, right: Right, share: float, effect: float, value: float) -> Right:
    """Derive answers from earlier ones: draw some again, then apply the effect."""
    after = np.where(rng.random(len(right)) < value, right, rng.random(len(right)) < share)
    hit = rng.random(len(right)) < abs(effect)
    return after | hit if effect > 0 else after & ~hit


def draw_world(design: Design, rng: np.random.Generator) -> tuple[list[Question], dict[str, dict[str, Right]]]:
    """Return the questions and, by control and solver, which answers are right."""
    questions = [
        _question(task, number, design)
        for task, size in zip(TASKS, design.sizes, strict=False)
        for number in range(size)
    ]
    first = {question.cluster: place for place, question in reversed(list(enumerate(questions)))}
    shared = np.array([first[item.cluster] for item in questions])
    copies = (rng.random(len(questions)) < 0.5) & (design.rows > 1)
    alone_share, blank_share, _ = design.truth
    alone = rng.random(len(questions)) < alone_share
    blank = _after(rng, alone, alone_share, design.presence, design.repeat_share)
    tools = _after(rng, blank, blank_share, design.content, design.repeat_share)
    if design.by_task:
        # Use the same draws, so that a task without an effect has the same answers as without tools.
        tasks = np.array([entry.task for entry in questions])
        for task, effect in zip(TASKS, design.by_task, strict=False):
            tools = np.where(tasks == task, _after(rng, blank, blank_share, effect, 1.0), tools)
    values = [_after(rng, alone, alone_share, 0, design.repeat_share) for _ in range(1, design.repeats)]
    real = {"controller": tools, "mllm": alone, **{f"mllm{REPEAT}{n}": current for n, current in enumerate(values, 2)}}
    if design.specialist is not None:
        real["specialist"] = rng.random(len(questions)) < design.specialist
    runs = {"real": real, "blank": {"controller": blank}}
    return questions, {
        output: {name: np.where(copies, solver[shared], solver) for name, solver in solvers.items()}
        for output, solvers in runs.items()
    }


def _question(task: str, number: int, design: Design) -> Question:
    identity = f"val_{task}_{number + 1}"
    image = StoredImage(identity.encode().hex().zfill(64)[-64:], 8, 8, "image/png")
    cluster = "picture" if design.one_picture else f"{task}-{number // design.rows}"
    values = (f"Which is it in {identity}?", Kind.CHOICE, ("one", "other"), "(A)")
    return Question(identity, task, (image,), *values, task, cluster=cluster)


def write(
    path: Path,
    design: Design,
    questions: Sequence[Question],
    output: str,
    solvers: Mapping[str, Right],
    rng: np.random.Generator,
) -> Path:
    """Write a run folder with these right and wrong answers; return its path."""

    def attempts(name: str, right: Right) -> Iterator[Attempt | Unfinished]:
        for question, item in zip(questions, right.tolist(), strict=True):
            reply = _reply(name, design, right=item, draws=rng.random(4))
            last = TASKS[len(design.sizes) - 1]
            if reply is None or (design.last_task_fails and question.task == last):
                yield Unfinished(question.id, "an outage")
                continue
            parts = (question.text, ImageRef("img:1", question.images[0]))
            prompt = Prompt(parts, question.kind, question.choices, route=question.route)
            yield Attempt(question.id, (Exchange(prompt, reply),), 0.5, started=0.0)

    by_solver = {name: attempts(name, right) for name, right in solvers.items()}
    return write_run(path, questions, by_solver, {"model": {"model": "drawn"}, "tool_output": output}).path


def _reply(name: str, design: Design, *, right: bool, draws: Sequence[float]) -> Reply | None:
    """Build a reply; four random numbers in 0..1 decide on failure, silence, readability, and a call with its fault."""
    if draws[0] < design.failed:
        return None
    if name == "specialist" and draws[1] < design.silent:
        return Reply("", Outcome.ABSTAINED)
    refused = {"mllm": design.silent_alone, "controller": design.silent_tools}.get(name.partition(REPEAT)[0], 0.0)
    text = "I cannot tell." if draws[1] < max(design.unread, refused) else f"Answer: ({'A' if right else 'B'})"
    if name != "controller" or draws[2] > CALLED:
        return Reply(text, usage=Usage(1))
    fault = Fault.TOOL_ERROR if draws[3] < design.faults else None
    step = Step("tool", "jigsaw", "a finding", 0.1, fault, {"images": ["img:1"], "args": {}})
    return Reply(text, usage=Usage(2, 1, tool_faults=int(fault is not None)), steps=(step,))


def is_true(design: Design) -> dict[str, bool]:
    """Return for each claim whether it is true of a design whose tasks are alike."""
    alone, blank, tools = design.truth
    presence, content, gain = blank - alone, tools - blank, tools - alone
    # Only questions that both answer count here, so an unanswered question is neither better nor worse.
    ahead = 0.0 if design.specialist is None else tools - design.specialist
    answering = design.silent_alone - design.silent_tools
    effects = design.by_task or (content,) * len(design.sizes)
    mean, count = (np.average(effects, weights=weights) for weights in (None, design.sizes))
    uneven = bool(design.by_task) and mean * count < 0
    gain = 0.0 if uneven else gain
    if design.last_task_fails or design.one_picture:
        # With a task that fails, or a single cluster, no test is possible.
        return dict.fromkeys(CLAIMS, False) | {"not tested": True}
    return {
        "gain": gain > 0,
        "loss": gain < 0,
        "ahead of the specialists": ahead > 1e-9,
        "behind the specialists": ahead < -1e-9,
        "presence adds": presence > 0,
        "presence costs": presence < 0,
        "what the tools say adds": content > 0,
        "what the tools say costs": content < 0,
        "the gain comes from it": gain > 0 and 2 * content > gain,
        "a task is worse": gain < 0 or min(effects) < 0,
        "a task is better": gain > 0 or max(effects) > 0,
        "by answering more": answering > 0,
        # With tools, the model gives no readable answer to some of the specialists' questions.
        "by answering less": answering < 0 or (design.specialist is not None and design.unread > 0),
        "tasks and questions disagree": uneven,
        # Where questions fail by chance, more than the tolerated share may fail in a draw.
        "not tested": design.failed > 0,
    }


def claims(sentences: Iterable[Sentence]) -> set[str]:
    """Return the claims of a conclusion."""
    lines = [f"{sentence.id} {sentence.text}" for sentence in sentences]
    return {name for name, pattern in CLAIMS.items() if any(re.search(pattern, item) for item in lines)}


def asserted(design: Design, seed: int) -> set[str]:
    """Return the claims of one draw."""
    rng = np.random.default_rng([seed, *map(ord, design.name)])
    questions, runs = draw_world(design, rng)
    # Use a folder in memory, because every answer would wait for the disk.
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        paths = [write(Path(folder) / output, design, questions, output, run, rng) for output, run in runs.items()]
        return claims(conclusion(compare_paths(paths).comparison, limits=False))


def quickly_asserted(design: Design, seed: int) -> set[str]:
    """Return the claims of the first sentence for one draw, without a run folder; one row per question, asked once."""
    rng = np.random.default_rng([seed, *map(ord, design.name)])
    questions, runs = draw_world(design, rng)
    answers = []
    for name, silent in (("mllm", design.silent_alone), ("controller", design.silent_tools)):
        read = rng.random(len(questions)) >= max(design.unread, silent)
        answers.append(Answers(runs["real"][name], read))
    return claims_of([question.task for question in questions], [item.cluster for item in questions], *answers)


def sentences(
    draws: int,
    seed: int,
    designs: Sequence[Design] = (*ARMS, *NULLS),
    processes: int | None = None,
    draw: Callable[[Design, int], set[str]] = asserted,
) -> Iterator[str]:
    """Yield a table of designs by claims: the number of draws in which each claim is made, and how often it is true.

    `processes` draw side by side, by default one for each core; `draw` gives the claims of one draw.
    """
    yield f"| design, {draws} draws | {' | '.join(CLAIMS)} |"
    yield "| :--- |" + " ---: |" * len(CLAIMS)
    false, least = Counter[str](), dict.fromkeys(CLAIMS, 1.0)
    with Pool(processes) as pool:
        for design in designs:
            values = pool.map(partial(draw, design), range(seed, seed + draws))
            truth, count = is_true(design), Counter(claim for item in values for claim in item)
            cells = [f"{count[name]}{'' if truth[name] or not count[name] else ' false'}" for name in CLAIMS]
            yield f"| {design.name} | {' | '.join(cells)} |"
            for name, true in truth.items():
                wrong = sum(name in entry for entry in values) * (not true)
                false[name] += wrong
                least[name] = min(least[name], 1 - wrong / draws)
    total = draws * len(designs)
    yield f"| true, all designs | {' | '.join(f'{1 - false[name] / total:.3f}' for name in CLAIMS)} |"
    yield f"| true, in the worst design | {' | '.join(f'{least[name]:.2f}' for name in CLAIMS)} |"


def pair(
    rng: np.random.Generator,
    sizes: Sequence[int],
    discordant: float,
    difference: float | Sequence[float],
    rows: int = 1,
) -> tuple[Metric, Metric]:
    """Return metrics of two solvers, the second better by `difference` in every task, or by its entry for the task.

    At least this share of a task's questions differs. Each question has `rows` equal rows.
    """
    counts = [size // rows for size in sizes]
    strata = [str(task) for task, count in enumerate(counts) for _ in range(count)]
    change = np.repeat(np.broadcast_to(difference, len(sizes)), counts)
    differing = np.maximum(discordant, abs(change))
    draws, sides = rng.random(len(strata)), rng.random(len(strata)) < 0.5
    up, down = (differing + change) / 2, (differing - change) / 2
    better, worse = draws < up, (draws >= up) & (draws < up + down)
    text: Combine = "mean_of_ratios" if len(sizes) > 1 else "ratio"
    results = []
    for right in (worse | (sides & ~better), better | (sides & ~worse)):
        cells = tuple(
            Cell(stratum if len(sizes) > 1 else "", str(place), float(rows * item), float(rows))
            for place, (stratum, item) in enumerate(zip(strata, right.tolist(), strict=True))
        )
        results.append(Metric("accuracy", combine(cells, text), len(cells), text, cells))
    return results[0], results[1]


def power(draws: int, seed: int) -> Iterator[str]:
    """Yield for each design the difference with 80 % power, from draws without an effect, and how often it is found."""
    yield "| tasks | differing | 80 % power from, median | cannot show any | found |"
    yield "| :--- | ---: | ---: | ---: | ---: |"
    for sizes, discordant in _DATA["power"]:
        rng = np.random.default_rng([seed, *sizes])
        values = [detectable(*pair(rng, sizes, discordant, 0.0)) for _ in range(draws)]
        items = [item for item in values if item is not None]
        name = f"14 x {sizes[0]}" if len(sizes) == 14 else " + ".join(map(str, sizes))
        text = size = "-"
        if items:
            least = float(np.median(items))
            p_values = [contrast(*pair(rng, sizes, max(discordant, least), least)).p_value for _ in range(draws)]
            text, size = f"{rejected(p_values):.2f}", f"{least:.3f}"
        yield f"| {name} | {discordant} | {size} | {1 - len(items) / draws:.2f} | {text} |"


def plan(draws: int, seed: int) -> Iterator[str]:
    """Yield for each design the planned difference, and how often `contrast` finds it."""
    yield "| tasks | rows a question | differing | planned | found |"
    yield "| :--- | ---: | ---: | ---: | ---: |"
    for sizes, rows, discordant in _DATA["planned"]:
        rng = np.random.default_rng([seed, *sizes])
        try:
            least = detectable_difference(Plan.of(sizes, rows), discordant)
        except UsageError:
            # Even if all differing questions favoured one solver, the difference would not be detected.
            least, text = discordant, f"none, {discordant} is not"
        else:
            text = f"{least:.3f}"
        p_values = [contrast(*pair(rng, sizes, discordant, least, rows)).p_value for _ in range(draws)]
        yield f"| {' + '.join(map(str, sizes))} | {rows} | {discordant} | {text} | {rejected(p_values):.2f} |"


def worlds(draws: int, seed: int) -> Iterator[str]:
    """Yield for each simulation of `_sentence_worlds` and `_review_worlds` in how many draws the output is false."""
    yield f"| world, {draws} draws | false |"
    yield "| :--- | ---: |"
    payload = {**WORLDS, **REVIEW_WORLDS}
    for name in payload:
        yield f"| {name} | {false_in(name, draws, seed, payload)} |"


def coverage(draws: int, seed: int) -> Iterator[str]:
    """Yield for each design how often the interval of `contrast` contains the difference, or misses on each side."""
    yield f"| tasks | differing | difference | held in {draws} draws | ends below | begins above |"
    yield "| :--- | ---: | ---: | ---: | ---: | ---: |"
    for sizes, discordant, difference in _DATA["coverage"]:
        rng = np.random.default_rng([seed, *sizes])
        intervals = (contrast(*pair(rng, sizes, discordant, difference)).interval for _ in range(draws))
        ends = [(item.low, item.high) for item in intervals if item is not None]
        truth = float(np.mean(difference))
        below = sum(high < truth - 1e-9 for _, high in ends) / draws
        above = sum(low > truth + 1e-9 for low, _ in ends) / draws
        text = " + ".join(map(str, sizes))
        yield f"| {text} | {discordant} | {difference} | {1 - below - above:.3f} | {below:.3f} | {above:.3f} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table in Markdown."""
    by_name = {design.name: design for design in (*ARMS, *NULLS)}
    flags = {
        "--draws": 60,
        "--seed": 0,
        "--processes": int,
        "--design": list(by_name),
        "--power": False,
        "--plan": False,
    }
    flags |= {"--worlds": False, "--coverage": False, "--quick": False}
    values = options(__doc__, flags, arguments)
    items = [by_name[name] for name in values.design or (QUICK if values.quick else by_name)]
    draw = quickly_asserted if values.quick else asserted
    built = partial(sentences, designs=items, processes=values.processes, draw=draw)
    tables = {"power": power, "plan": plan, "worlds": worlds, "coverage": coverage}
    table = next((table for name, table in tables.items() if getattr(values, name)), built)
    for line in table(values.draws, values.seed):
        print(line, flush=True)


if __name__ == "__main__":
    main()
