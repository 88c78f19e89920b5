"""Pages of synthetic runs, for tests and for inspection: every kind of chart, conversation and hostile text."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image, ImageDraw

from hybrid.core.images import ImageStore
from hybrid.display.tables import Column, Table
from hybrid.report.payload import (
    AskEntry,
    BenchmarkPages,
    Chart,
    Fact,
    Overview,
    OverviewSection,
    Pages,
    PicturePayload,
    QuestionPage,
    SolverCard,
    SolverEntry,
    StepEntry,
    Tag,
)
from hybrid.scoring.reference import ReferenceKind, ReferenceLine
from hybrid.scoring.result import FRACTION, QUESTIONS, Result
from tests.image_bytes import saved

if TYPE_CHECKING:
    from playwright.sync_api import Page

DESK = {"width": 1280, "height": 800}
# Window sizes in which the pages are shown.
PHONE = {"width": 390, "height": 844}
TAGS = (Tag("blink", "val_Counting_0", "mllm", "counts wrongly", "one too few"),)
HARM = "window.pwned = true"
# Texts that must be shown as text only.
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
class RowVerdict:
    """A solver's verdict on a question, and the tools that it called."""

    correct: float | None
    outcome: str
    answer: str
    tools: tuple[str, ...]


@dataclass(frozen=True)
class QuestionRow:
    """A question and the verdicts of all solvers, in their order."""

    id: str
    task: str
    text: str
    verdicts: tuple[RowVerdict, ...]
    sampled: bool = False


@dataclass(frozen=True)
class Shown:
    """The stored pictures of a report."""

    store: ImageStore
    photos: tuple[PicturePayload, ...]
    overlays: tuple[PicturePayload, ...]


def draw_shapes(seed: int, *, overlay: bool, side: int = 320) -> bytes:
    """Return a PNG of some shapes; an overlay has boxes around them."""
    rng = random.Random(seed)
    picture = Image.new("RGB", (side, side * 3 // 4), (224, 228, 220))
    pen = ImageDraw.Draw(picture)
    for _ in range(6):
        x, y, size = rng.randrange(side - 60), rng.randrange(side * 3 // 4 - 60), rng.randrange(24, 60)
        colour = rng.choice(((190, 70, 60), (70, 120, 180), (80, 150, 90), (220, 170, 60)))
        (pen.ellipse if rng.random() < 0.5 else pen.rectangle)((x, y, x + size, y + size), fill=colour)
        if overlay:
            pen.rectangle((x - 3, y - 3, x + size + 3, y + size + 3), outline=(255, 0, 200), width=3)
    return saved(picture)


def stored_pictures(root: Path) -> Shown:
    """Store six photographs and an overlay of each."""
    store = ImageStore(root)
    photos, overlays = [], []
    for seed in range(6):
        for overlay, result in ((False, photos), (True, overlays)):
            image = store.put(draw_shapes(seed, overlay=overlay), "made up")
            result.append(
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


def says(verdict: RowVerdict) -> str:
    """Return an answer as the list shows it."""
    if verdict.outcome != "answered":
        return "failed" if verdict.outcome == "outage" else "none"
    return {0.0: "wrong", 1.0: "right"}.get(verdict.correct or 0.0, "partly")


def rows_of(n: int = 60, solvers: Sequence[SolverCard] = SOLVERS, seed: int = 0) -> list[QuestionRow]:
    """Return rows with answers of each outcome; three of each task are sampled."""
    rng = random.Random(seed)
    sampled: dict[str, int] = {}
    rows = []
    for number in range(n):
        task = TASKS[number % len(TASKS)]
        verdicts = tuple(verdict(rng, solver) for solver in solvers)
        wrong = any(item.correct == 0 for item in verdicts)
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
    """Draw a verdict at random; solvers that may call tools call some."""
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


def question_page(row: QuestionRow, solvers: Sequence[SolverCard], text: Shown | None, number: int) -> QuestionPage:
    """Return the page of a row: one entry per solver, with the calls of its tools."""
    photo = () if text is None else (text.photos[number % len(text.photos)],)
    overlay = () if text is None else (text.overlays[number % len(text.overlays)],)
    return QuestionPage(
        row.id,
        row.task,
        (Fact("split", "val"),),
        row.text + "\nSelect from the following choices.\n(A) A is closer\n(B) B is closer",
        ("A is closer", "B is closer"),
        "(A) A is closer",
        photo,
        tuple(entry(solver, verdict, overlay) for solver, verdict in zip(solvers, row.verdicts, strict=True)),
        sampled=row.sampled,
    )


def entry(solver: SolverCard, verdict: RowVerdict, overlay: tuple[PicturePayload, ...]) -> SolverEntry:
    """Return a solver's steps to its answer: a call and an output for each tool, then a message."""
    steps = []
    for place, tool in enumerate(verdict.tools):
        if solver.role == "hybrid":
            rows: list[dict[str, object]] = [{"tool": tool, "args": {"image": "img:1"}}]
            steps.append(StepEntry("model", "gpt-4o", "", 1.31, None, {"tool_calls": rows}, ()))
        fault = "tool_error" if place else None
        data = {
            "images": ["img:1"],
            "args": {"image": "img:1", "labels": ["A", "B"]},
            "backend": "learned",
            "version": "depth-anything-v2-small",
            "confidence": 0.83,
            "data": {"points": [{"label": "A", "depth_0_1": 0.61}, {"label": "B", "depth_0_1": 0.32}]},
        }
        text = f"{tool}: weights absent" if fault else "A has depth 0.61 and B 0.32 (larger is nearer).\nA is nearer."
        steps.append(StepEntry("tool", tool, text, 0.42, fault, {} if fault else data, () if fault else overlay))
    reply = f"The point that looks larger is closer.\nAnswer: {verdict.answer}" if verdict.answer else "I cannot tell."
    if solver.role == "specialist":
        steps.append(StepEntry("rule", "specialist", f"{(*verdict.tools, 'depth')[0]} says {reply}", 0.0, None, {}, ()))
    else:
        steps.append(StepEntry("model", "gpt-4o", reply, 1.7, None, {}, ()))
    ask = AskEntry((), tuple(steps), reply, verdict.outcome, 2, len(verdict.tools), 1234, 87, 0.0042, 3.4)
    rule = "letter in brackets" if verdict.answer else ""
    message = "the server gave no answer after 5 tries" if verdict.outcome == "outage" else ""
    asks = () if verdict.outcome == "outage" else (ask,)
    return SolverEntry(
        solver.name, verdict.correct, verdict.outcome, verdict.answer, rule, message, 3.62 + len(verdict.tools), asks
    )


def counts_of(rows: Sequence[QuestionRow]) -> tuple[Result, ...]:
    """Count the questions by the verdicts of the second and the first solver (right or wrong), with the questions'
    ids."""
    results = []
    for text in ("right", "wrong"):
        for after in ("right", "wrong"):
            ids = tuple(
                row.id
                for row in rows
                if row.verdicts[1].outcome == row.verdicts[0].outcome == "answered"
                and row.verdicts[1].correct == float(text == "right")
                and row.verdicts[0].correct == float(after == "right")
            )
            name, n = f"{text} -> {after}", float(len(ids))
            results.append(Result("harm", name, QUESTIONS, n, "mllm", "controller", ids=ids))
    return tuple(results)


AGAIN = "hybrid compare runs/blink --json"
DOTS = "Each dot is a difference on the same questions; a line that crosses 0 may be chance."


def sections_of(rows: Sequence[QuestionRow], solvers: Sequence[SolverCard]) -> tuple[OverviewSection, ...]:
    """Return a section for each kind of chart, with a table in one."""
    return (
        accuracy_section(rows, solvers),
        OverviewSection(
            "differences", "Does the MLLM gain from specialists?", DOTS, (differences_of(rows, solvers),), (), AGAIN
        ),
        OverviewSection("harm", "Where is help?", "", (Chart("counts", "Counts", counts_of(rows)),), (), AGAIN),
        cost_section(rows, solvers),
        outcome_section(rows, solvers),
        OverviewSection("steps", "Where does the gain come from?", "", (steps_of(rows, solvers),), (), AGAIN),
    )


def tasks_of(rows: Sequence[QuestionRow]) -> tuple[str, ...]:
    """Return the tasks in the order of the rows."""
    return tuple(dict.fromkeys(row.task for row in rows))


def share_of(rows: Sequence[QuestionRow], place: int, task: str | None = None) -> tuple[float, int]:
    """Return a solver's accuracy and number of questions, for one task or for all."""
    corrects = [
        row.verdicts[place].correct
        for row in rows
        if task in (None, row.task) and row.verdicts[place].correct is not None
    ]
    return sum(item or 0.0 for item in corrects) / max(1, len(corrects)), len(corrects)


def value(section: str, solver: str, of: tuple[float, int], **more: str) -> Result:
    """Return a value with an interval."""
    number, n = of
    ends = {"low": max(0, number - 0.08), "high": min(1, number + 0.08)}
    return Result(section, "value", FRACTION, number, solver, n=n, **ends, **more)  # type: ignore[arg-type]


def values_of(rows: Sequence[QuestionRow], solvers: Sequence[SolverCard]) -> Chart:
    """Return the first chart: the value of each solver."""
    values = [
        value("metrics", solver.name, share_of(rows, place), metric="accuracy") for place, solver in enumerate(solvers)
    ]
    marks = (("uniform guess", "chance", 0.5), ("Human", "human", 0.95), ("GPT-4o", "published", 0.6))
    return Chart("bars", "accuracy, 95 % intervals", tuple(values), tuple(mark("accuracy", *item) for item in marks))


def mark(task: str, label: str, kind: ReferenceKind, number: float, note: str = "") -> ReferenceLine:
    """Return a reference line."""
    return ReferenceLine(task, label, kind, number, note)


def accuracy_section(rows: Sequence[QuestionRow], solvers: Sequence[SolverCard]) -> OverviewSection:
    """Return values by task with every kind of mark, and a table of the first solver."""
    tasks, rng = tasks_of(rows), random.Random(1)
    values = [
        value("accuracy", solver.name, share_of(rows, place, task), group=task)
        for task in tasks
        for place, solver in enumerate(solvers)
    ]
    marks = [mark(task, "chance", "chance", 0.5) for task in tasks]
    marks += [mark(task, "human", "human", 0.95 + rng.random() / 20) for task in tasks]
    marks += [mark(task, "GPT-4o", "published", 0.6 + rng.random() / 5, "another checkpoint") for task in tasks]
    lines = []
    for task in (*tasks, None):
        share, n = share_of(rows, 0, task)
        lines.append((task or "all", str(n), f"{share:.3f}", f"[{share - 0.08:.3f}, {share + 0.08:.3f}]"))
    columns = (Column("task", "left"), Column("n"), Column("accuracy"), Column("95 % interval"))
    table = Table("controller by task", columns, tuple(lines), ("Intervals are Wilson's, at 95 %.",))
    lead = "Accuracy by task, next to chance, people and what papers printed."
    charts = (Chart("bars", "Values", tuple(values), tuple(marks)),)
    return OverviewSection("accuracy", "How right is each solver?", lead, charts, (table,), AGAIN)


def differences_of(rows: Sequence[QuestionRow], solvers: Sequence[SolverCard]) -> Chart:
    """Compare the first solver with each other one, by task."""
    rng = random.Random(1)
    results = []
    for solver in solvers[1:]:
        for task in tasks_of(rows):
            share, n = share_of(rows, solvers.index(solver), task)
            distance, p = share_of(rows, 0, task)[0] - share, rng.choice((0.0004, 0.03, 0.4, None))
            ends = {"low": distance - 0.07, "high": distance + 0.07, "p_holm": p}
            pair = (solver.name, solvers[0].name)
            results.append(Result("differences", "difference", FRACTION, distance, *pair, group=task, n=n, **ends))  # type: ignore[arg-type]
    return Chart("intervals", "Difference by task", tuple(results))


def steps_of(rows: Sequence[QuestionRow], solvers: Sequence[SolverCard]) -> Chart:
    """Return gains and harms from the second solver to the first, with a tool and without."""
    pairs = [(row, item, other) for row in rows for item, other, *_ in [[v.correct for v in row.verdicts]]]
    values = [
        (row, first_item, other) for row, first_item, other in pairs if first_item is not None and other is not None
    ]
    pair, n = (solvers[1].name, solvers[0].name), len(values)
    items = [Result("steps", "alone", FRACTION, sum(other for _, _, other in values) / n, *pair, n=n)]
    for name, sign, call in (
        ("gain with a call", 1, True),
        ("gain without a call", 1, False),
        ("harm with a call", -1, True),
    ):
        current = [
            (row.id, sign * (item_value - other))
            for row, item_value, other in values
            if bool(row.verdicts[0].tools) is call
        ]
        ids = tuple(id_ for id_, moved in current if moved > 0)
        share = sum(moved for _, moved in current if moved > 0) / n
        items.append(Result("steps", name, FRACTION, share, *pair, n=n, low=share / 2, high=share * 2, ids=ids))
    title = f"From {pair[0]} to {pair[1]} (no answer counts as wrong)"
    return Chart("waterfall", title, tuple(items), signs=(0, 1, 1, -1))


def cost_section(rows: Sequence[QuestionRow], solvers: Sequence[SolverCard]) -> OverviewSection:
    """Return the section of costs, with a dot for each of the first six solvers."""
    dots = []
    for place, (solver, cost) in enumerate(zip(solvers, (4.2, 1.1, 0.0, 2.2, 3.1, 0.4), strict=False)):
        dots.append(Result("cost", "USD per question", "USD", cost, solver.name))
        dots.append(value("cost", solver.name, share_of(rows, place)))
    charts = (Chart("scatter", "accuracy by what it cost", tuple(dots)),)
    lead = "Further up is better, further left is cheaper."
    return OverviewSection("cost", "What does it cost?", lead, charts, (), AGAIN)


def outcome_section(rows: Sequence[QuestionRow], solvers: Sequence[SolverCard]) -> OverviewSection:
    """Return the number of questions of each solver by outcome."""
    parts = [
        Result("outcomes", outcome, QUESTIONS, float(n), solver.name)
        for place, solver in enumerate(solvers)
        for outcome in ("answered", "abstained", "unparsed", "budget", "outage")
        if (n := sum(row.verdicts[place].outcome == outcome for row in rows))
    ]
    charts = (Chart("stack", "Parts, in questions", tuple(parts)),)
    return OverviewSection("outcomes", "How did the asks end?", "", charts, (), "hybrid score runs/blink")


SENTENCES = (
    "Accuracy is 0.740 with tools (controller), 0.620 alone (mllm): +12 points (95 % CI 4 to 20).",
    "The specialists alone get 68 of 100 right; no difference shown: the 95 % CI, -1 to 13 points, holds 0.",
    "The gain comes from what the tools say (+11 points, 95 % CI 3 to 19).",
    "After adjustment (Holm) over 3 tasks: worse on Counting (-9 points, -16 to -2).",
    "Limits: 3 of 100 answers failed and are left out; 80 % power from about 9 points on (100 questions).",
)


def headline_of(rows: Sequence[QuestionRow], solvers: Sequence[SolverCard]) -> Table:
    """Return the numbers of the first chart."""
    lines = []
    for place, solver in enumerate(solvers):
        share, n = share_of(rows, place)
        lines.append((solver.name, f"{share:.3f}", str(n)))
    return Table("", (Column("solver", "left"), Column("accuracy"), Column("n")), tuple(lines))


def benchmark_pages(
    key: str, rows: Sequence[QuestionRow], text: Shown | None, solvers: Sequence[SolverCard] = SOLVERS
) -> BenchmarkPages:
    """Return the pages of one benchmark; its questions are made on demand."""
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
        conclusion=SENTENCES,
        front=(steps_of(rows, solvers), values_of(rows, solvers), differences_of(rows, solvers)),
        headline=(headline_of(rows, solvers),),
    )

    def questions() -> Iterator[QuestionPage]:
        for number, row in enumerate(rows):
            yield question_page(row, solvers, text, number)

    return BenchmarkPages(key, overview, len(rows), questions())


def five_benchmarks(root: Path, n: int = 60, *, live: bool = False, tags: tuple[Tag, ...] = ()) -> Pages:
    """Return a report over five benchmarks; their images are stored below `root`."""
    text = stored_pictures(root)
    benchmarks = [benchmark_pages(key, rows_of(n, SOLVERS, seed), text) for seed, key in enumerate(TITLES)]
    made_by = "hybrid report runs/* -o site, 2026-11-23"
    return Pages("Five perception benchmarks", made_by, benchmarks, root, tags, live)


def differences(root: Path, lines: int) -> Pages:
    """Return a benchmark with one pair of solvers in its overview, and a difference for each of `lines` tasks."""
    rows = rows_of(2, SOLVERS)
    built = benchmark_pages("blink", rows, None)
    items = tuple(
        Result("d", "difference", FRACTION, 0.1, "mllm", "controller", group=f"task {n}", low=-0.1, high=0.3, n=9)
        for n in range(lines)
    )
    front = (values_of(rows, SOLVERS), Chart("intervals", "Difference by task", items))
    return Pages("A report", "hybrid report", [replace(built, overview=replace(built.overview, front=front))], root)


BAD = HOSTILE[0]
ATTACKED = (*SOLVERS, SolverCard(HOSTILE[1], "hybrid", HOSTILE[2], HOSTILE[0], 0, 0, 0))


def hostile_rows() -> list[QuestionRow]:
    """Return a question per text; two solvers reply with the text, one with a long word, one with the text reversed."""
    rows = []
    for number, text in enumerate(HOSTILE):
        answers = (text, "x" * 3000, text[::-1], text)
        verdicts = tuple(RowVerdict(float(number % 2), "answered", answer, (text,)) for answer in answers)
        rows.append(QuestionRow(f"{number} {text}", text, text, verdicts, sampled=True))
    return rows


def hostile_question(number: int, row: QuestionRow, other_shown: Shown) -> QuestionPage:
    """Return a page whose fields all contain the row's text or a text of a million characters."""
    text = row.text
    photo = replace(other_shown.photos[0], caption=text, name=text)
    overlay = replace(other_shown.overlays[0], caption=text, over=text)
    long = ("A" * 1_000_000, "word " * 200_000, "\n" * 100_000)[number % 3]
    data = {"args": {text: text, "__proto__": {"a": 1}}, text: float("nan"), "tool_calls": [text, {"tool": text}]}
    steps = (
        StepEntry("model", text, text, 1.0, text, data, ()),
        StepEntry("tool", text, text, 1.0, None, data, (overlay, replace(photo, file=None))),
        StepEntry("rule", text, long, 1.0, None, [text], ()),
    )
    ask = AskEntry((text, photo), steps, long, text, 1, 1, 1, 1, None, 1.0)
    entries = tuple(
        SolverEntry(solver.name, item.correct, item.outcome, item.answer, text, text, 1.0, (ask, ask))
        for solver, item in zip(ATTACKED, row.verdicts, strict=True)
    )
    facts = (Fact(text, text),)
    return QuestionPage(row.id, text, facts, text, (text, text), text, (photo,), entries, text, sampled=True)


def hostile_charts(first: str) -> tuple[Chart, ...]:
    """Return a chart of each kind; `first` is the question behind every count."""
    names = [solver.name for solver in ATTACKED]
    pairs = [(name, HOSTILE[1]) for name in names]
    differences = tuple(
        Result(BAD, text, FRACTION, 0.1, a, b, text, text, 5, 0.0, 0.2, p_holm=0.01)
        for text in HOSTILE
        for a, b in pairs
    )
    values = tuple(value(BAD, name, (0.5, 5), group=text) for text in HOSTILE for name in names)
    steps = tuple(Result(BAD, text, FRACTION, 0.1, *pairs[0], n=5, low=0.0, high=0.2) for text in HOSTILE)
    costs = (
        item for name in names for item in (value(BAD, name, (0.5, 5)), Result(BAD, HOSTILE[-1], "USD", 1.0, name))
    )
    return (
        Chart("intervals", BAD, differences),
        Chart("bars", BAD, values, tuple(mark(text, text, "published", 0.4, text) for text in HOSTILE)),
        Chart("counts", BAD, tuple(Result(BAD, text, text, 3.0, BAD, text, ids=(first,)) for text in HOSTILE)),
        Chart("scatter", BAD, tuple(costs)),
        Chart("stack", BAD, tuple(Result(BAD, text, BAD, 4.0, name) for name in names for text in HOSTILE)),
        Chart("waterfall", BAD, steps, signs=tuple(min(place, 1) for place in range(len(HOSTILE)))),
    )


def hostile_pages(root: Path) -> Pages:
    """Return a benchmark in which every text from a model or a data set is one of `HOSTILE`; one reply is very long."""
    rendered, rows = stored_pictures(root), hostile_rows()
    charts = hostile_charts(rows[0].id)
    table = Table(BAD, (Column(BAD), Column(HOSTILE[5])), tuple((text, text) for text in HOSTILE), HOSTILE)
    sections = tuple(
        OverviewSection(f"s{number}", text, text, (), (table,) if number == 0 else (), text)
        for number, text in enumerate(HOSTILE)
    )
    sections = (*sections, OverviewSection("charts", BAD, BAD, charts, (), BAD))
    facts = tuple(Fact(text, text) for text in HOSTILE)
    tested = tuple((ATTACKED[1].name, ATTACKED[place].name) for place in (0, 3))
    overall = tuple(value(BAD, solver.name, (0.5, 5), metric=BAD) for solver in ATTACKED)
    front = (charts[-1], Chart("bars", BAD, overall), charts[0])
    overview = Overview(BAD, BAD, facts, HOSTILE, ATTACKED, tested, sections, HOSTILE[:5], front, (table,), BAD)
    tags = tuple(Tag(BAD, row.id, ATTACKED[3].name, text, text) for row, text in zip(rows, HOSTILE, strict=True))
    pages = (hostile_question(number, row, rendered) for number, row in enumerate(rows))
    return Pages(BAD, HOSTILE[3], [BenchmarkPages("bad", overview, len(rows), pages)], root, tags)


def many_questions(n: int) -> BenchmarkPages:
    """Return a benchmark of `n` questions without images."""
    return benchmark_pages("blink", rows_of(n, SOLVERS), None)


def unfold(page: Page) -> None:
    """Open all folded parts of a page, and wait until they are filled."""
    page.evaluate("document.querySelectorAll('details.fold').forEach((one) => { one.open = true; })")
    page.wait_for_function(
        """() => [...document.querySelectorAll('details.fold')].every((one) =>
             one.classList.contains('section') ? one.dataset.filled : one.children.length > 1) &&
             [...document.querySelectorAll('.plot')].every((one) => one.firstChild)"""
    )
