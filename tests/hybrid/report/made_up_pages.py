"""Pages of runs that never were, for tests and for looking at: every kind of chart, conversation and harm."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from PIL import Image, ImageDraw

from hybrid.images import ImageStore
from hybrid.report.payload import (
    AskEntry,
    BarRow,
    Bars,
    BenchmarkPages,
    Fact,
    Forest,
    ForestRow,
    Mark,
    Matrix,
    MatrixCell,
    Overview,
    OverviewSection,
    Pages,
    PicturePayload,
    QuestionPage,
    QuestionRow,
    RowVerdict,
    Scatter,
    ScatterDot,
    SolverCard,
    SolverEntry,
    Stack,
    StackPart,
    StepEntry,
    Tag,
)
from hybrid.tables import Column, Table

HARM = "window.pwned = true"
HOSTILE = (
    f"<script>{HARM}</script>",
    f'<img src=x onerror="{HARM}">',
    f'<svg onload="{HARM}"><script>{HARM}</script></svg>',
    f'</script><script>{HARM}</script><a href="javascript:{HARM}">here</a>',
    f"'\"><iframe srcdoc='<script>parent.{HARM}</script>'></iframe>",
    "Donaudampfschifffahrtsgesellschaft" * 40,
    "\u202eright to left override \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "null \0 byte, bell \a, escape \x1b[31m red, half a pair \ud800, line separators \u2028 and \u2029",
    "${" + HARM + "} `" + HARM + "` {{ " + HARM + " }} \\u003cscript\\u003e --> <!-- ]]>",
    "__proto__",
)
"""Texts that must be shown and nothing else."""

TITLES = {
    "blink": "BLINK",
    "actiview": "ActiView",
    "mvp_bench": "MVP-Bench",
    "mm_sap": "MM-SAP",
    "hvsbench": "HVSBench",
}
TASKS = ("Counting", "Relative_Depth", "Jigsaw", "Spatial_Relation", "Multi-view_Reasoning", "Visual_Correspondence")
SOLVERS = (
    SolverCard("controller", "hybrid", "openai:gpt-4o", None, 0, 0, 0),
    SolverCard("mllm", "mllm", "openai:gpt-4o", None, 0, 0, 0),
    SolverCard("specialist", "specialist", None, None, 0, 0, 0),
)
TOOLS = ("depth", "detection", "jigsaw", "crop")


@dataclass(frozen=True)
class Shown:
    """The pictures of a report, stored."""

    store: ImageStore
    photos: tuple[PicturePayload, ...]
    overlays: tuple[PicturePayload, ...]


def drawn(seed: int, *, overlay: bool, side: int = 320) -> bytes:
    """A PNG of some shapes; an overlay has boxes around them."""
    rng = random.Random(seed)
    picture = Image.new("RGB", (side, side * 3 // 4), (224, 228, 220))
    pen = ImageDraw.Draw(picture)
    for _ in range(6):
        x, y, size = rng.randrange(side - 60), rng.randrange(side * 3 // 4 - 60), rng.randrange(24, 60)
        colour = rng.choice(((190, 70, 60), (70, 120, 180), (80, 150, 90), (220, 170, 60)))
        (pen.ellipse if rng.random() < 0.5 else pen.rectangle)((x, y, x + size, y + size), fill=colour)
        if overlay:
            pen.rectangle((x - 3, y - 3, x + size + 3, y + size + 3), outline=(255, 0, 200), width=3)
    data = io.BytesIO()
    picture.save(data, "PNG")
    return data.getvalue()


def stored_pictures(root: Path) -> Shown:
    """Six photographs and an overlay of each, in a store."""
    store = ImageStore(root)
    photos, overlays = [], []
    for seed in range(6):
        for overlay, found in ((False, photos), (True, overlays)):
            image = store.put(drawn(seed, overlay=overlay), "made up")
            found.append(
                PicturePayload(
                    "img:1.1" if overlay else "img:1",
                    f"images/{image.sha256[:2]}/{image.sha256}.png",
                    image.width,
                    image.height,
                    "boxes drawn over img:1" if overlay else "img:1 of the question",
                    "img:1" if overlay else None,
                )
            )
    return Shown(store, tuple(photos), tuple(overlays))


def rows_of(n: int, solvers: Sequence[SolverCard], seed: int = 0) -> list[QuestionRow]:
    """Rows with answers of each outcome; three of each task are sampled."""
    rng = random.Random(seed)
    sampled: dict[str, int] = {}
    rows = []
    for number in range(n):
        task = TASKS[number % len(TASKS)]
        verdicts = tuple(verdict(rng, solver) for solver in solvers)
        wrong = any(one.correct == 0 for one in verdicts)
        sampled[task] = sampled.get(task, 0) + wrong
        rows.append(
            QuestionRow(
                f"val_{task}_{number}",
                task,
                f"Which of the two points, A or B, is closer to the camera in picture {number % 500}?",
                verdicts,
                wrong and sampled[task] <= 3,
            )
        )
    return rows


def verdict(rng: random.Random, solver: SolverCard) -> RowVerdict:
    """A verdict as chance has it; solvers that may call tools call some."""
    tools = tuple(rng.sample(TOOLS, rng.randrange(1, 3))) if solver.role in ("hybrid", "specialist") else ()
    draw = rng.random()
    if draw < 0.05:
        return RowVerdict(0.25, rng.choice(("abstained", "unparsed", "budget")), "", tools)
    if draw < 0.06:
        return RowVerdict(None, "outage", "", ())
    if draw < 0.08:
        return RowVerdict(0.5, "answered", "(A), (C)", tools)
    right = rng.random() < {"hybrid": 0.74, "mllm": 0.62, "specialist": 0.68}.get(solver.role, 0.25)
    return RowVerdict(float(right), "answered", rng.choice(("(A)", "(B)")), tools)


def question_page(row: QuestionRow, solvers: Sequence[SolverCard], shown: Shown | None, number: int) -> QuestionPage:
    """The page of a row: one ask a solver, with calls where the row says so."""
    photo = () if shown is None else (shown.photos[number % len(shown.photos)],)
    overlay = () if shown is None else (shown.overlays[number % len(shown.overlays)],)
    return QuestionPage(
        row.id,
        row.task,
        (Fact("split", "val"),),
        row.text + "\nSelect from the following choices.\n(A) A is closer\n(B) B is closer",
        ("A is closer", "B is closer"),
        "(A) A is closer",
        photo,
        tuple(entry(solver, verdict, overlay) for solver, verdict in zip(solvers, row.verdicts, strict=True)),
    )


def entry(solver: SolverCard, verdict: RowVerdict, overlay: tuple[PicturePayload, ...]) -> SolverEntry:
    """A solver's way to its answer: a call and a finding for each tool, then a message."""
    steps = []
    for place, tool in enumerate(verdict.tools):
        if solver.role == "hybrid":
            called: list[dict[str, object]] = [{"tool": tool, "args": {"image": "img:1"}}]
            steps.append(StepEntry("model", "gpt-4o", "", 1.31, None, {"tool_calls": called}, ()))
        fault = "tool_error" if place else None
        data = {
            "images": ["img:1"],
            "args": {"image": "img:1", "labels": ["A", "B"]},
            "backend": "learned",
            "version": "depth-anything-v2-small",
            "confidence": 0.83,
            "data": {"points": [{"label": "A", "depth_0_1": 0.61}, {"label": "B", "depth_0_1": 0.32}]},
        }
        said = f"{tool}: weights absent" if fault else "A has depth 0.61 and B 0.32 (larger is nearer).\nA is nearer."
        steps.append(StepEntry("tool", tool, said, 0.42, fault, {} if fault else data, () if fault else overlay))
    reply = f"The point that looks larger is closer.\nAnswer: {verdict.answer}" if verdict.answer else "I cannot tell."
    if solver.role == "specialist":
        steps.append(StepEntry("rule", "specialist", f"{(*verdict.tools, 'depth')[0]} says {reply}", 0.0, None, {}, ()))
    else:
        steps.append(StepEntry("model", "gpt-4o", reply, 1.7, None, {}, ()))
    ask = AskEntry((), tuple(steps), reply, verdict.outcome, 2, len(verdict.tools), 1234, 87, 0.0042, 3.4)
    rule = "letter in brackets" if verdict.answer else ""
    why = "the server gave no answer after 5 tries" if verdict.outcome == "outage" else ""
    asks = () if verdict.outcome == "outage" else (ask,)
    return SolverEntry(solver.name, verdict.correct, verdict.outcome, verdict.answer, rule, why, 3.62, asks)


def cells_of(rows: Sequence[QuestionRow]) -> tuple[MatrixCell, ...]:
    """The MLLM alone right or wrong, by the first solver right or wrong, with the ids."""
    cells = []
    for before in ("right", "wrong"):
        for after in ("right", "wrong"):
            ids = tuple(
                row.id
                for row in rows
                if row.verdicts[1].outcome == row.verdicts[0].outcome == "answered"
                and row.verdicts[1].correct == float(before == "right")
                and row.verdicts[0].correct == float(after == "right")
            )
            name = {("wrong", "right"): "helped", ("right", "wrong"): "harmed"}.get((before, after), "")
            cells.append(
                MatrixCell("mllm to controller", f"alone {before}", f"with tools {after}", len(ids), ids, name)
            )
    return tuple(cells)


AGAIN = "hybrid compare runs/blink --json"


def sections_of(rows: Sequence[QuestionRow], solvers: Sequence[SolverCard]) -> tuple[OverviewSection, ...]:
    """A section for each kind of chart, with a table in one."""
    return (
        accuracy_section(rows, solvers),
        difference_section(rows, solvers),
        OverviewSection(
            "harm", "Where is help, where is harm?", "", (Matrix(cells_of(rows)),), (), "hybrid compare runs/blink"
        ),
        cost_section(rows, solvers),
        outcome_section(rows, solvers),
    )


def tasks_of(rows: Sequence[QuestionRow]) -> tuple[str, ...]:
    """The tasks in the order of the rows."""
    return tuple(dict.fromkeys(row.task for row in rows))


def share_of(rows: Sequence[QuestionRow], place: int, task: str | None = None) -> tuple[float, int]:
    """How right the solver at a place is, and over how many questions: of one task, or of all."""
    found = [
        row.verdicts[place].correct
        for row in rows
        if task in (None, row.task) and row.verdicts[place].correct is not None
    ]
    return sum(one or 0.0 for one in found) / max(1, len(found)), len(found)


def accuracy_section(rows: Sequence[QuestionRow], solvers: Sequence[SolverCard]) -> OverviewSection:
    """Bars by task with every kind of mark, and a table of the first solver."""
    tasks, rng = tasks_of(rows), random.Random(1)
    bars = []
    for task in tasks:
        for place, solver in enumerate(solvers):
            value, n = share_of(rows, place, task)
            bars.append(BarRow(task, solver.name, value, max(0, value - 0.08), min(1, value + 0.08), n))
    marks = [Mark(task, "chance", "chance", 0.5, "") for task in tasks]
    marks += [Mark(task, "human", "human", 0.95 + rng.random() / 20, "") for task in tasks]
    marks += [Mark(task, "GPT-4o, paper", "published", 0.6 + rng.random() / 5, "another checkpoint") for task in tasks]
    lines = []
    for task in (*tasks, None):
        value, n = share_of(rows, 0, task)
        lines.append((task or "all", str(n), f"{value:.3f}", f"[{value - 0.08:.3f}, {value + 0.08:.3f}]"))
    columns = (Column("task", "left"), Column("n"), Column("accuracy"), Column("95 % interval"))
    table = Table("controller by task", columns, tuple(lines), ("Intervals are Wilson's, at 95 %.",))
    lead = "Accuracy by task, next to chance, people and what papers printed."
    charts = (Bars(tuple(bars), tuple(marks)),)
    return OverviewSection("accuracy", "How right is each solver?", lead, charts, (table,), AGAIN)


def difference_section(rows: Sequence[QuestionRow], solvers: Sequence[SolverCard]) -> OverviewSection:
    """The first solver against each other one, by task and over all."""
    rng = random.Random(1)
    found = []
    for task in (*tasks_of(rows), None):
        for place, solver in enumerate(solvers[1:], 1):
            value, n = share_of(rows, place, task)
            apart = share_of(rows, 0, task)[0] - value
            p = rng.choice((0.0004, 0.03, 0.4, None))
            found.append(ForestRow(solver.name, "controller", task or "all", apart, apart - 0.07, apart + 0.07, p, n))
    lead = "Each dot is a difference on the same questions; a line that crosses 0 may be chance."
    charts = (Forest(tuple(found)),)
    return OverviewSection("differences", "Does the MLLM gain from specialists?", lead, charts, (), AGAIN)


def cost_section(rows: Sequence[QuestionRow], solvers: Sequence[SolverCard]) -> OverviewSection:
    """A dot for each of the first six solvers."""
    dots = []
    for place, (solver, cost) in enumerate(zip(solvers, (4.2, 1.1, 0.0, 2.2, 3.1, 0.4), strict=False)):
        value, _ = share_of(rows, place)
        dots.append(ScatterDot(solver.name, cost, value, value - 0.03, value + 0.03))
    charts = (Scatter(tuple(dots), "cost in USD", "accuracy"),)
    lead = "Further up is better, further left is cheaper."
    return OverviewSection("cost", "What does it cost?", lead, charts, (), AGAIN)


def outcome_section(rows: Sequence[QuestionRow], solvers: Sequence[SolverCard]) -> OverviewSection:
    """How many questions of each solver ended in which way."""
    outcomes = [
        StackPart(solver.name, outcome, sum(row.verdicts[place].outcome == outcome for row in rows))
        for place, solver in enumerate(solvers)
        for outcome in ("answered", "abstained", "unparsed", "budget", "outage")
    ]
    charts = (Stack(tuple(outcomes), "questions"),)
    return OverviewSection("outcomes", "How did the asks end?", "", charts, (), "hybrid score runs/blink")


def benchmark_pages(
    key: str, rows: Sequence[QuestionRow], shown: Shown | None, solvers: Sequence[SolverCard] = SOLVERS
) -> BenchmarkPages:
    """The pages of one benchmark, its questions made as they are asked for."""
    cards = tuple(
        replace(
            solver,
            n=len(rows),
            failed=sum(row.verdicts[place].outcome == "outage" for row in rows),
            open=sum(row.verdicts[place].outcome == "open" for row in rows),
        )
        for place, solver in enumerate(solvers)
    )
    names = [solver.name for solver in solvers]
    overview = Overview(
        benchmark=key,
        title=TITLES.get(key, key),
        facts=(
            Fact("run", f"runs/{key}"),
            Fact("data", "hub, split val, fingerprint 4b825dc6"),
            Fact("seed", "0"),
            Fact("tools", ", ".join(TOOLS)),
            Fact("prompts", "3f1c9a77"),
        ),
        warnings=("3 questions failed: nobody answered them, and they are in no accuracy.",),
        solvers=cards,
        pairs=tuple((other, names[0]) for other in names[1:]),
        sections=sections_of(rows, solvers),
    )

    def questions() -> Iterator[QuestionPage]:
        for number, row in enumerate(rows):
            yield question_page(row, solvers, shown, number)

    return BenchmarkPages(key, overview, rows, questions())


def five_benchmarks(root: Path, n: int = 60, *, live: bool = False, tags: tuple[Tag, ...] = ()) -> Pages:
    """A report over five benchmarks; their images are stored below `root`."""
    shown = stored_pictures(root)
    benchmarks = [benchmark_pages(key, rows_of(n, SOLVERS, seed), shown) for seed, key in enumerate(TITLES)]
    made_by = "hybrid report runs/* -o site, 2026-11-23"
    return Pages("Five perception benchmarks", made_by, benchmarks, root, tags, live)


def differences(root: Path, lines: int) -> Pages:
    """A benchmark whose overview has one pair of solvers and a difference for each of so many tasks."""
    rows = rows_of(2, SOLVERS)
    made = benchmark_pages("blink", rows, None)
    forest = Forest(tuple(ForestRow("mllm", "controller", f"task {n}", 0.1, -0.1, 0.3, 0.2, 9) for n in range(lines)))
    section = OverviewSection("differences", "Does the MLLM gain from specialists?", "", (forest,), (), AGAIN)
    return Pages(
        "A report", "hybrid report", [replace(made, overview=replace(made.overview, sections=(section,)))], root
    )


def hostile_pages(root: Path) -> Pages:
    """Every text that a model or a data set may have said is one of `HOSTILE`; one reply has a million characters."""
    shown = stored_pictures(root)
    solvers = (*SOLVERS, SolverCard(HOSTILE[1], "hybrid", HOSTILE[2], HOSTILE[0], 0, 0, 0))
    rows, pages = [], []
    for number, text in enumerate(HOSTILE):
        answers = (text, "x" * 3000, text[::-1], text)
        verdicts = tuple(RowVerdict(float(number % 2), "answered", answer, (text,)) for answer in answers)
        rows.append(QuestionRow(f"{number} {text}", text, text, verdicts, sampled=True))
    for number, (row, text) in enumerate(zip(rows, HOSTILE, strict=True)):
        photo = replace(shown.photos[0], caption=text, name=text)
        overlay = replace(shown.overlays[0], caption=text, over=text)
        long = ("A" * 1_000_000, "word " * 200_000, "\n" * 100_000)[number % 3]
        data = {"args": {text: text, "__proto__": {"a": 1}}, text: float("nan"), "tool_calls": [text, {"tool": text}]}
        steps = (
            StepEntry("model", text, text, 1.0, text, data, ()),
            StepEntry("tool", text, text, 1.0, None, data, (overlay, replace(photo, file=None))),
            StepEntry("rule", text, long, 1.0, None, [text], ()),
        )
        ask = AskEntry((text, photo), steps, long, text, 1, 1, 1, 1, None, 1.0)
        entries = tuple(
            SolverEntry(solver.name, one.correct, one.outcome, one.answer, text, text, 1.0, (ask, ask))
            for solver, one in zip(solvers, row.verdicts, strict=True)
        )
        facts = (Fact(text, text),)
        pages.append(QuestionPage(row.id, text, facts, text, (text, text), text, (photo,), entries, text))
    bad = HOSTILE[0]
    table = Table(bad, (Column(bad), Column(HOSTILE[5])), tuple((text, text) for text in HOSTILE), HOSTILE)
    sections = tuple(
        OverviewSection(f"s{number}", text, text, (), (table,) if number == 0 else (), text)
        for number, text in enumerate(HOSTILE)
    )
    charts = (
        Forest(tuple(ForestRow(text, HOSTILE[1], text, 0.1, 0.0, 0.2, 0.01, 5) for text in HOSTILE)),
        Bars(
            tuple(BarRow(text, solver.name, 0.5, 0.4, 0.6, 5) for text in HOSTILE for solver in solvers),
            tuple(Mark(text, text, "published", 0.4, text) for text in HOSTILE),
        ),
        Matrix(tuple(MatrixCell(bad, text, "column", 3, (rows[0].id,), text) for text in HOSTILE)),
        Scatter(tuple(ScatterDot(solver.name, 1.0, 0.5, None, None) for solver in solvers), HOSTILE[5], bad),
        Stack(tuple(StackPart(solver.name, text, 4) for solver in solvers for text in HOSTILE), bad),
    )
    sections = (*sections, OverviewSection("charts", bad, bad, charts, (), bad))
    facts = tuple(Fact(text, text) for text in HOSTILE)
    pairs = ((solvers[1].name, solvers[0].name), (solvers[1].name, solvers[3].name))
    overview = Overview(bad, bad, facts, HOSTILE, solvers, pairs, sections)
    tags = tuple(Tag(bad, row.id, solvers[3].name, text, text) for row, text in zip(rows, HOSTILE, strict=True))
    return Pages(bad, HOSTILE[3], [BenchmarkPages("bad", overview, rows, iter(pages))], root, tags)


def many_questions(n: int) -> BenchmarkPages:
    """A benchmark of `n` questions without images."""
    return benchmark_pages("blink", rows_of(n, SOLVERS), None)
