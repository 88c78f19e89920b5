"""A judge model reads unreadable replies and names the offered answer: `hybrid judge RUN --model openai:gpt-4o-mini`.

The judge gets the replies that were scored as unparsed, at temperature 0 and without images or the right answer. Some
replies that the parser can read are mixed in, to measure agreement. Each reading is saved before it is counted, so that
the same command resumes after an interruption. Scoring never calls the judge; it uses saved readings on request.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path

from hybrid.answers import parse
from hybrid.answers.base import bare, normalise
from hybrid.benchmarks.base import Benchmark, ScoreOptions
from hybrid.core.errors import DataError, HybridError, ServerDown, UsageError
from hybrid.core.files import write_redacted, writing
from hybrid.core.messages import user_message
from hybrid.core.off_loop import work_on_text
from hybrid.core.types import LETTERS, Attempt, Exchange, Kind, Outcome, Score
from hybrid.log.codec import to_json
from hybrid.log.folder import RunFolder
from hybrid.log.journal import Journal
from hybrid.log.manifest import difference
from hybrid.models.base import CallKey, ChatModel, prompt_sha256
from hybrid.plugins.prompt_texts import read_texts, text_hash
from hybrid.plugins.registry import load
from hybrid.scoring.readings import (
    AGREEMENT,
    VERDICTS,
    ReplyReading,
    agreement,
    can_be_judged,
    read_readings,
    reply_sha256,
    unread,
)
from hybrid.scoring.runs import select_solvers
from hybrid.scoring.tally import tally

CONFIGURATION = "verdicts.json"
TEXTS = Path(__file__).with_name("judge.toml")
# Number of readable replies that are mixed in, to test whether the judge agrees with the parser.
MIXED = 20


@dataclass(frozen=True)
class UnreadReply:
    """A reply for a judge to read.

    `ask` is the number of its prompt within the question `id`, and `exchange` has the prompt and the reply.
    """

    id: str
    ask: int
    exchange: Exchange
    # The parser's answer, if this is one of the readable replies that are mixed in.
    known: str | None = None


@dataclass(frozen=True)
class Judged:
    """Counts of a judge's readings of one solver's replies; all except `asked` count readings on disk.

    `none` counts the replies that give no answer according to the judge, `unreadable` counts those whose reading cannot
    be parsed, and `letters` counts replies by the answer that the judge read. `alike` is the number of the `mixed`
    readable replies that the judge reads as the parser does.
    """

    solver: str
    unparsed: int
    asked: int
    decided: int
    none: int
    failed: tuple[str, ...]
    unreadable: int = 0
    letters: Mapping[str, int] = field(default_factory=dict)
    alike: int = 0
    mixed: int = 0

    @property
    def refused(self) -> bool:
        """Whether the judge cannot be trusted, because it agrees with the parser on too few replies."""
        return self.alike < AGREEMENT * self.mixed


async def judge_run(
    folder: RunFolder,
    model: ChatModel,
    solvers: Sequence[str],
    options: ScoreOptions,
    concurrency: int,
    mixed: int = MIXED,
) -> tuple[Judged, ...]:
    """Judge the solvers of a run (default: all), with `mixed` readable replies mixed in. Does not close the model.

    Raises:
        UsageError: an unknown solver, a run of extracted answers, or readings of another judge.
        ModelRefused: the model cannot be asked at all.
        ServerDown: the server no longer answers; earlier readings are kept.
    """
    identity = folder.manifest["identity"]
    benchmark: Benchmark = load("hybrid.benchmarks", identity["benchmark"])
    if identity["split"] in benchmark.card.hidden_splits:
        split = identity["split"]
        raise UsageError(f"the answers of the split {split!r} of {benchmark.card.name} are hidden: nothing is unparsed")
    if identity.get("imported", {}).get("field") == "stored":
        raise UsageError(f"{folder.path} holds extracted answers, not replies: import it with --field text")
    results = []
    with folder.locked():
        questions = folder.questions()
        for solver in select_solvers(folder, solvers):
            solver_tally = tally(folder, benchmark, solver, questions, options)
            attempts = tuple(folder.recorded(solver).without_steps.values())
            unparsed = unread_replies(solver_tally.scores, attempts, options)
            readable = readable_replies(attempts, {reply.id for reply in unparsed}, mixed if unparsed else 0)
            # Spread the unread and the readable replies evenly over the order in which they are judged.
            places = [
                ((place + 0.5) / len(replies), reply)
                for replies in (unparsed, readable)
                for place, reply in enumerate(replies)
            ]
            order = [reply for _, reply in sorted(places, key=lambda entry: entry[0])]
            judged = await _judge_solver(folder, solver, model, order, concurrency)
            results.append(replace(judged, failed=(*solver_tally.damage, *judged.failed)))
    return tuple(results)


async def _judge_solver(
    folder: RunFolder, solver: str, model: ChatModel, replies: Sequence[UnreadReply], concurrency: int
) -> Judged:
    _keep_configuration(folder, solver, model)
    path = folder.path / solver / VERDICTS
    earlier = read_readings(path)
    waiting = [reply for reply in replies if (reply.id, reply.ask) not in earlier]
    failed = await _ask_all(model, waiting, path, concurrency)
    readings = read_readings(path)
    selected = [
        readings[place] for reply in replies if reply.known is None and (place := (reply.id, reply.ask)) in readings
    ]
    letters = Counter(reading.letter for reading in selected if reading.letter is not None)
    none = sum(reading.letter is None and says_none(reading.text) for reading in selected)
    unparsed, read_count = sum(reply.known is None for reply in replies), len(waiting) - len(failed)
    alike, mixed = agreement(readings)
    return Judged(
        solver,
        unparsed=unparsed,
        asked=read_count,
        decided=letters.total(),
        none=none,
        failed=tuple(sorted(failed)),
        unreadable=len(selected) - letters.total() - none,
        letters=dict(sorted(letters.items())),
        alike=alike,
        mixed=mixed,
    )


async def _ask_all(model: ChatModel, waiting: Sequence[UnreadReply], path: Path, concurrency: int) -> list[str]:
    """Append a reading of each reply; return a line for each that the judge did not answer."""
    queue = iter(waiting)
    failed: list[str] = []
    stopped: list[HybridError] = []
    with writing(path.parent):
        journal = Journal(path)

    async def keep(reading: ReplyReading) -> None:
        with writing(path.parent):
            await asyncio.to_thread(journal.append, to_json(ReplyReading, reading))

    async def worker() -> None:
        for reply in queue:
            if stopped:
                return
            try:
                await keep(await ask_judge(model, reply))
            except (UsageError, ServerDown) as error:
                # No further call can succeed: wrong configuration, no server, or a failed write.
                stopped.append(error)
            except Exception as error:
                kind = "" if isinstance(error, HybridError) else f"{type(error).__name__}: "
                failed.append(f"{reply.id}, ask {reply.ask}: {kind}{error}")

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
    """Return the replies that a judge should read: replies to unparsed questions that hybrid's parser cannot read.

    With the official parser, a judge reads every reply to such a question, because that parser leaves more replies
    unread.
    """
    unparsed = {score.id for score in scores if score.outcome is Outcome.UNPARSED}
    return tuple(
        UnreadReply(attempt.id, number, exchange)
        for attempt in attempts
        if attempt.id in unparsed
        for number, exchange in enumerate(attempt.exchanges)
        if can_be_judged(exchange) and (options.parse == "official" or unread(exchange))
    )


def readable_replies(attempts: Iterable[Attempt], without: Collection[str], count: int) -> tuple[UnreadReply, ...]:
    """Return up to `count` parsed replies to other questions, spread evenly over the answers, in a fixed order.

    The even spread gives a judge that always names the same answer a low agreement.
    """
    by_answer = defaultdict[str, list[UnreadReply]](list)
    for attempt in (attempt for attempt in attempts if count and attempt.id not in without):
        for number, exchange in enumerate(attempt.exchanges):
            if can_be_judged(exchange) and not unread(exchange):
                answer = str(parse(exchange.reply.text, exchange.prompt.kind, exchange.prompt.choices).value)
                by_answer[answer].append(UnreadReply(attempt.id, number, exchange, answer))
    order = (
        sorted(replies, key=lambda reply: hashlib.sha256(reply.id.encode()).digest()) for replies in by_answer.values()
    )
    return tuple(reply for row in zip_longest(*order) for reply in row if reply is not None)[:count]


async def ask_judge(model: ChatModel, unread_reply: UnreadReply) -> ReplyReading:
    """Ask the judge about one reply and return its reading. Raises the model's exceptions."""
    reply, prompt = unread_reply, unread_reply.exchange.prompt
    text = judge_prompt(reply.exchange, read_texts(TEXTS))
    # Use a separate call key: recordings of the run must not answer the judge's calls.
    call = CallKey(f"judge/{reply.id}", reply.ask, 0, prompt_sha256(text))
    response = (await model.chat([user_message([text])], (), call)).text
    letter = await work_on_text(response, answer_in, response, prompt.kind, prompt.choices)
    return ReplyReading(
        reply.id,
        reply.ask,
        letter=letter,
        model=model.name,
        text=response,
        reply_sha256=reply_sha256(reply.exchange),
        known=reply.known,
    )


def judge_prompt(exchange: Exchange, texts: Mapping[str, str]) -> str:
    """Return the judge's full prompt: question, possible answers, reply, and the form of the answer."""
    prompt = exchange.prompt
    choices = [f"({letter}) {text}".rstrip() for letter, text in zip(LETTERS, prompt.choices, strict=False)]
    options = {Kind.YES_NO: "yes\nno", Kind.INTEGER: "a whole number, 0 or more"}.get(prompt.kind, "\n".join(choices))
    question, reply, form = prompt.text.strip(), exchange.reply.text.strip(), texts[prompt.kind.value]
    return texts["ask"].format(question=question, options=options, reply=reply, form=form)


def answer_in(text: str, kind: Kind, choices: Sequence[str]) -> str | None:
    """Parse a judge's answer: the last line "Answer: ...", else the whole text; None if there is no answer."""
    if says_none(text):
        return None
    value = parse(_answer_part(text), kind, choices).value
    return None if value is None else str(value)


def says_none(text: str) -> bool:
    """Return whether a judge says that a reply gives no answer."""
    return bare(_answer_part(text)) == "none"


def _answer_part(text: str) -> str:
    lines = [line for line in normalise(text).splitlines() if line.casefold().startswith("answer:")]
    return lines[-1].partition(":")[2] if lines else text


def _keep_configuration(folder: RunFolder, solver: str, model: ChatModel) -> None:
    """Save the judge's model and prompt texts next to its readings. Raises `UsageError` if another judge made them."""
    path = folder.path / solver / CONFIGURATION
    metadata = json.loads(json.dumps(dict(model.metadata())))
    now = {"judge": metadata, "name": model.name, "texts": text_hash(read_texts(TEXTS))}
    if path.exists():
        try:
            previous = json.loads(path.read_bytes())
        except ValueError as error:
            raise DataError(f"{path} is not JSON ({error})") from error
        if changes := difference(previous, now):
            raise UsageError(
                f"{path.parent} has verdicts of another judge:\n  " + "\n  ".join(changes) + "\n"
                f"Move {VERDICTS} and {CONFIGURATION} away to start again."
            )
        return
    with writing(path.parent):
        write_redacted(path, json.dumps(now, indent=1).encode() + b"\n")
