"""A named model says which offered answer an unreadable reply gives: `hybrid judge RUN --model openai:gpt-4o-mini`.

Only replies whose score is unparsed are put to it, at temperature 0 and without images or the right answer. Each
reading is on disk before it is counted; the same command goes on where it stopped. Scoring never comes here: it takes
the readings from disk, when asked to.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hybrid.answers import parse
from hybrid.answers.base import bare, normalise
from hybrid.benchmarks.base import Benchmark, ScoreOptions
from hybrid.errors import DataError, HybridError, ServerDown, UsageError
from hybrid.log.codec import to_json
from hybrid.log.files import write_redacted, writing
from hybrid.log.folder import RunFolder
from hybrid.log.journal import Journal
from hybrid.log.manifest import difference
from hybrid.messages import user_message
from hybrid.models.base import CallKey, ChatModel, prompt_sha256
from hybrid.registry import load
from hybrid.scoring.readings import VERDICTS, ReplyReading, can_be_judged, read_readings, reply_sha256, unread
from hybrid.scoring.runs import chosen
from hybrid.scoring.tally import tally
from hybrid.texts import read_texts, text_hash
from hybrid.types import LETTERS, Attempt, Exchange, Kind, Outcome, Score

CONFIGURATION = "verdicts.json"
TEXTS = Path(__file__).with_name("judge.toml")


@dataclass(frozen=True)
class UnreadReply:
    """A reply that a judge is to read: the ask's number within its question, and the exchange."""

    id: str
    ask: int
    exchange: Exchange


@dataclass(frozen=True)
class Judged:
    """Counts of a judge's work on one solver's replies. `decided` and `none` count the readings that are on disk."""

    solver: str
    unparsed: int
    asked: int
    decided: int
    none: int
    failed: tuple[str, ...]

    def as_json(self) -> dict[str, int | list[str]]:
        """The object of `hybrid judge --json` for one solver."""
        counts = {"unparsed": self.unparsed, "asked": self.asked, "decided": self.decided, "none": self.none}
        return {**counts, "failed": list(self.failed)}


async def judge_run(
    folder: RunFolder, model: ChatModel, solvers: Sequence[str], options: ScoreOptions, concurrency: int
) -> tuple[Judged, ...]:
    """Judge the solvers of a run, all by default. The model is not closed.

    Raises:
        UsageError: an unknown solver, a run of extracted answers, or readings of another judge.
        ModelRefused: the model cannot be asked at all.
        ServerDown: the server answers no more; readings so far are kept.
    """
    identity = folder.manifest["identity"]
    benchmark: Benchmark = load("hybrid.benchmarks", identity["benchmark"])
    if identity["split"] in benchmark.card.hidden_splits:
        raise UsageError(f"the answers of {benchmark.card.name} {identity['split']} are hidden: nothing is unparsed")
    if identity.get("imported", {}).get("field") == "stored":
        raise UsageError(f"{folder.path} holds extracted answers, not replies: import it with --field text")
    found = []
    with folder.locked():
        asked = folder.questions()
        for solver in chosen(folder, solvers):
            made = tally(folder, benchmark, solver, asked, options)
            wanted = unread_replies(made.scores, folder.recorded(solver).without_steps.values(), options)
            judged = await _judge_solver(folder, solver, model, wanted, concurrency)
            found.append(replace(judged, failed=(*made.damage, *judged.failed)))
    return tuple(found)


async def _judge_solver(
    folder: RunFolder, solver: str, model: ChatModel, wanted: Sequence[UnreadReply], concurrency: int
) -> Judged:
    _keep_configuration(folder, solver, model)
    path = folder.path / solver / VERDICTS
    known = read_readings(path)
    waiting = [one for one in wanted if (one.id, one.ask) not in known]
    failed = await _ask_all(model, waiting, path, concurrency)
    readings = read_readings(path)
    letters = [readings[place].letter for one in wanted if (place := (one.id, one.ask)) in readings]
    decided = sum(letter is not None for letter in letters)
    asked = len(waiting) - len(failed)
    return Judged(solver, len(wanted), asked, decided, len(letters) - decided, tuple(sorted(failed)))


async def _ask_all(model: ChatModel, waiting: Sequence[UnreadReply], path: Path, concurrency: int) -> list[str]:
    """Append a reading of each reply; returns a line for each that the judge did not answer."""
    queue = iter(waiting)
    failed: list[str] = []
    stopped: list[HybridError] = []
    with writing(path.parent):
        journal = Journal(path)

    async def keep(reading: ReplyReading) -> None:
        with writing(path.parent):
            await asyncio.to_thread(journal.append, to_json(ReplyReading, reading))

    async def worker() -> None:
        for one in queue:
            if stopped:
                return
            try:
                await keep(await ask_judge(model, one))
            except (UsageError, ServerDown) as error:
                # No call of this configuration can succeed, no server answers, or nothing can be kept.
                stopped.append(error)
            except Exception as error:
                kind = "" if isinstance(error, HybridError) else f"{type(error).__name__}: "
                failed.append(f"{one.id}, ask {one.ask}: {kind}{error}")

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, len(waiting))):
                group.create_task(worker())
    finally:
        journal.close()
    if stopped:
        raise stopped[0]
    return failed


def unread_replies(
    scores: Sequence[Score], attempts: Iterable[Attempt], options: ScoreOptions
) -> tuple[UnreadReply, ...]:
    """The replies that a judge must read: those of questions that are unparsed, as far as our parser cannot read them.

    Under the official parse, which reads less, every reply of such a question is put to the judge.
    """
    unparsed = {score.id for score in scores if score.outcome is Outcome.UNPARSED}
    return tuple(
        UnreadReply(attempt.id, number, exchange)
        for attempt in attempts
        if attempt.id in unparsed
        for number, exchange in enumerate(attempt.exchanges)
        if can_be_judged(exchange) and (options.parse == "official" or unread(exchange))
    )


async def ask_judge(model: ChatModel, unread_reply: UnreadReply) -> ReplyReading:
    """One reading. Raises what the model raises."""
    text = judge_prompt(unread_reply.exchange, read_texts(TEXTS))
    # The judge's calls are not the question's own: recordings of the run must not answer them.
    call = CallKey(f"judge/{unread_reply.id}", unread_reply.ask, 0, prompt_sha256(text))
    said = (await model.chat([user_message([text])], (), call)).text
    prompt = unread_reply.exchange.prompt
    letter = answer_in(said, prompt.kind, prompt.choices)
    return ReplyReading(
        unread_reply.id, unread_reply.ask, letter, model.name, said, reply_sha256(unread_reply.exchange)
    )


def judge_prompt(exchange: Exchange, texts: Mapping[str, str]) -> str:
    """The judge's whole prompt: question, possible answers, reply, and the form of its answer."""
    prompt = exchange.prompt
    return texts["ask"].format(
        question=prompt.text.strip(),
        options=_options(prompt.kind, prompt.choices),
        reply=exchange.reply.text.strip(),
        form=texts[prompt.kind.value],
    )


def _options(kind: Kind, choices: Sequence[str]) -> str:
    match kind:
        case Kind.YES_NO:
            return "yes\nno"
        case Kind.INTEGER:
            return "a whole number, 0 or more"
        case _:
            return "\n".join(f"({letter}) {text}".rstrip() for letter, text in zip(LETTERS, choices, strict=False))


def answer_in(text: str, kind: Kind, choices: Sequence[str]) -> str | None:
    """The answer in a judge's text, any text: its last line "Answer: ...", else the whole; None for none."""
    lines = [line for line in normalise(text).splitlines() if line.casefold().startswith("answer:")]
    said = lines[-1].partition(":")[2] if lines else text
    if bare(said) == "none":
        return None
    value = parse(said, kind, choices).value
    return None if value is None else str(value)


def _keep_configuration(folder: RunFolder, solver: str, model: ChatModel) -> None:
    """Write next to the readings who made them and with which words. Raises `UsageError` when somebody else did."""
    path = folder.path / solver / CONFIGURATION
    now = {
        "judge": json.loads(json.dumps(dict(model.metadata()))),
        "name": model.name,
        "texts": text_hash(read_texts(TEXTS)),
    }
    if path.exists():
        try:
            before = json.loads(path.read_bytes())
        except ValueError as error:
            raise DataError(f"{path} is not JSON ({error})") from error
        if changes := difference(before, now):
            raise UsageError(
                f"{path.parent} has verdicts of another judge:\n  " + "\n  ".join(changes) + "\n"
                f"Move {VERDICTS} and {CONFIGURATION} away to begin anew."
            )
        return
    with writing(path.parent):
        write_redacted(path, json.dumps(now, indent=1).encode() + b"\n")
