"""The dialogues of ActiView: zoom, shift and mixed, and single prompts with the full image, one view or none.

Each dialogue is a generator that yields prompts and receives replies. So the same code asks a solver (`drive`) and
finds out from recorded replies which parts were shown (`retrace`). A part's picture enters a prompt only after the
protocol has revealed it; solvers and tools have no other access to it. Source: paper section 4.1, appendices G.3 and I;
the released `toolkit/evaluator.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from hybrid.answers.views import (
    official_continue,
    official_keep_shift,
    official_part,
    official_views,
    parse_view_plan,
    parse_views,
)
from hybrid.answers.yes_no import parse_yes_no
from hybrid.benchmarks.actiview.settings import BLIND
from hybrid.benchmarks.actiview.views import place, places, turn
from hybrid.core.off_loop import work_on_text
from hybrid.core.types import LETTERS, Ask, Exchange, ImageRef, Kind, Prompt, Question, Reply, StoredImage

IMAGES = "<images>"

Block = str | StoredImage


@dataclass(frozen=True)
class Trail:
    """The course of a dialogue: the parts shown for the answer, and the numbers of zooms and shifts.

    `answers` is the number of prompts at the end that asked the question itself.
    """

    shown: frozenset[int] = frozenset()
    zooms: int = 0
    shifts: int = 0
    answers: int = 1


Steps = Generator[Prompt, Reply, Trail]
Blocks = Generator[Prompt, Reply, list[Block]]


async def drive(steps: Steps, ask: Ask) -> tuple[Exchange, ...]:
    """Put each prompt of a dialogue to the solver, and send each reply to the dialogue."""
    exchanges: list[Exchange] = []
    prompt: Prompt | None = next(steps)
    while prompt is not None:
        reply = await ask(prompt)
        exchanges.append(Exchange(prompt, reply))
        prompt, _ = await work_on_text(reply.text, _send, steps, reply)
    return tuple(exchanges)


def retrace(steps: Steps, replies: Sequence[Reply]) -> Trail | None:
    """Return the course of the dialogue for recorded replies; None if there are more or fewer replies than prompts."""
    next(steps)
    for number, reply in enumerate(replies, 1):
        prompt, trail = _send(steps, reply)
        if prompt is None:
            return trail if number == len(replies) else None
    return None


def _send(steps: Steps, reply: Reply) -> tuple[Prompt | None, Trail | None]:
    try:
        return steps.send(reply), None
    except StopIteration as end:
        return None, end.value


def dialogue_of(question: Question, texts: Mapping[str, str]) -> Steps:
    """Return the dialogue that the question's protocol names."""
    return MODES[str(question.protocol["mode"])](Script(question, texts))


@dataclass
class Script:
    """Builds prompts from a question's pictures and the `texts`, and remembers the descriptions already requested."""

    question: Question
    texts: Mapping[str, str]
    described: dict[int, str] = field(default_factory=dict)

    @property
    def splits(self) -> int:
        """Number of parts."""
        return cast(int, self.question.protocol["splits"])

    @property
    def official(self) -> bool:
        """Whether replies that steer the dialogue are parsed as in the released code."""
        return self.question.protocol["decisions"] == "official"

    @property
    def start(self) -> int:
        """Number of the part that the modes single and shift show first."""
        return cast(int, self.question.protocol["start"])

    @property
    def form(self) -> str:
        """The form in which several pictures are shown."""
        return str(self.question.protocol["images"])

    def full_image(self, *, lined: bool = False) -> list[Block]:
        """Return a label and the small full image, optionally with dividing lines."""
        return [self.texts["whole"], self.question.images[lined]]

    def parts(self, *numbers: int) -> list[Block]:
        """Return the parts with these numbers, each preceded by its number and position in words."""
        blocks: list[Block] = []
        for number in numbers:
            text = self.texts["part"].format(number=number, place=place(number, self.splits))
            blocks += [text, self.question.images[1 + number]]
        return blocks

    def prompt(self, name: str, kind: Kind, blocks: Sequence[Block], **fields: object) -> Prompt:
        """Return a prompt from a text with the blocks at its marker; pictures are named `img:1`, `img:2`, ..."""
        options = "; ".join(f"{LETTERS[k]}. {choice}" for k, choice in enumerate(self.question.choices))
        fields_known = {
            "question": self.question.text,
            "options": options,
            "count": self.splits,
            "places": places(self.splits),
        }
        head, _, tail = self.texts[name].partition(IMAGES)
        parts: list[str | ImageRef] = []
        for block in (head.format(**fields_known, **fields), *blocks, tail.format(**fields_known, **fields)):
            if isinstance(block, StoredImage):
                count = sum(isinstance(part, ImageRef) for part in parts)
                parts.append(ImageRef(f"img:{count + 1}", block))
            elif block.strip():
                parts.append(block.strip())
        choices = self.question.choices if kind is Kind.CHOICE else ()
        if kind in (Kind.VIEWS, Kind.VIEW_PLAN):
            choices = tuple(place(number, self.splits) for number in range(1, self.splits + 1))
        return Prompt(tuple(parts), kind, choices, route=kind.value)

    def views(self, numbers: Sequence[int], *, with_whole: bool) -> Blocks:
        """Return parts in the form that was set; may first ask for descriptions of all parts but the last."""
        if self.form == "concat" and numbers:
            if len(numbers) == 1:
                return self.parts(numbers[0])
            stitched = cast("Mapping[str, tuple[str, int, int, str]]", self.question.protocol["stitched"])
            caption = self.texts["stitched"].format(numbers=", ".join(map(str, numbers)))
            return [caption, StoredImage(*stitched["-".join(map(str, numbers))])]
        if self.form == "description" and numbers:
            return (yield from self._described(numbers, with_whole=with_whole))
        return [*(self.full_image() if with_whole else []), *self.parts(*numbers)]

    def _described(self, numbers: Sequence[int], *, with_whole: bool) -> Blocks:
        blocks: list[Block] = []
        for number in (*((0,) if with_whole else ()), *numbers[:-1]):
            if number not in self.described:
                picture = self.question.images[0 if number == 0 else 1 + number]
                reply = yield self.prompt("describe", Kind.FREE, [picture])
                self.described[number] = reply.text.strip()
            name = "described_part" if number else "described_whole"
            location = place(number, self.splits) if number else ""
            blocks.append(self.texts[name].format(number=number, place=location, description=self.described[number]))
        return [*blocks, *self.parts(numbers[-1])]


def full(script: Script) -> Steps:
    """Show the small full image and the question, in one prompt."""
    yield script.prompt("question", Kind.CHOICE, script.full_image())
    return Trail()


def blind(script: Script) -> Steps:
    """Ask the question and its options without the picture, in the form of the question's mode (appendix C)."""
    yield script.prompt(str(script.question.protocol["mode"]), Kind.CHOICE, ())
    return Trail()


def single(script: Script) -> Steps:
    """Show only the first part with the question: the paper's "Single View"."""
    yield script.prompt("shifted", Kind.CHOICE, script.parts(script.start))
    return Trail(frozenset({script.start}))


def zoom(script: Script) -> Steps:
    """Ask for parts, without the options; then show the full image and the chosen parts, if any."""
    if "oracle_views" in script.question.protocol:
        views = sorted(cast("Sequence[int]", script.question.protocol["oracle_views"]))
    else:
        reply = yield script.prompt("select", Kind.VIEWS, script.full_image(lined=True))
        read = official_views(reply.text) if script.official else parse_views(reply.text, script.splits)
        views = sorted(view for view in read.value or () if 1 <= view <= script.splits)
    if script.form == "any_view" and views:
        for number in views:
            yield script.prompt("zoomed_part", Kind.CHOICE, script.parts(number))
        return Trail(frozenset(views), zooms=len(views), answers=len(views))
    blocks = yield from script.views(views, with_whole=True)
    yield script.prompt("zoomed" if views else "question", Kind.CHOICE, blocks)
    return Trail(frozenset(views), zooms=len(views))


def shift(script: Script) -> Steps:
    """Show part after part until the solver has seen enough, then ask the question on all parts seen."""
    chooses, order, seen = script.question.protocol["choose"], turn(script.start, script.splits), [script.start]
    # In a fixed order the released code asks once more after all parts are shown, and ignores the reply.
    while len(seen) < script.splits or (script.official and not chooses):
        rest = [number for number in range(1, script.splits + 1) if number not in seen]
        blocks = yield from script.views(seen, with_whole=False)
        if not chooses:
            reply = yield script.prompt("more", Kind.CONTINUE, blocks)
            goes_on = official_continue(reply.text) if script.official else parse_yes_no(reply.text).value != "no"
            if not goes_on or not rest:
                break
            seen.append(order[len(seen)])
            continue
        remaining = "; ".join(f"{number} ({place(number, script.splits)})" for number in rest)
        reply = yield script.prompt("choose", Kind.VIEWS, blocks, remaining=remaining)
        if parse_yes_no(reply.text).value == "no":
            break
        read = official_views(reply.text) if script.official else parse_views(reply.text, script.splits)
        if not (requested := set(read.value or ()) & set(rest)):
            break
        seen = sorted([*seen, *requested])
    blocks = yield from script.views(seen, with_whole=False)
    yield script.prompt("shifted", Kind.CHOICE, blocks)
    return Trail(frozenset(seen), shifts=len(seen) - 1)


def mixed(script: Script) -> Steps:
    """Ask which parts to zoom into, then which of them to keep and which others to show, then the question itself."""
    reply = yield script.prompt("zoom_plan", Kind.VIEW_PLAN, script.full_image(lined=True))
    if script.official:
        zoomed = sorted(set(official_part(reply.text)))
    else:
        plan = parse_view_plan(reply.text, script.splits).value
        zoomed = sorted(plan.part or ()) if plan is not None else []
    if not zoomed:
        yield script.prompt("question", Kind.CHOICE, script.full_image())
        return Trail()
    reply = yield script.prompt("shift_plan", Kind.VIEW_PLAN, [*script.full_image(), *script.parts(*zoomed)])
    current = set(zoomed)
    if script.official:
        decided = official_keep_shift(reply.text, current)
        retained = sorted(current if decided is None else set(decided))
    else:
        plan = parse_view_plan(reply.text, script.splits).value
        keep = current if plan is None or plan.keep is None else set(plan.keep) & current
        retained = sorted(keep | (set(plan.shift or () if plan is not None else ()) - current))
    yield script.prompt("mixed", Kind.CHOICE, [*script.full_image(lined=True), *script.parts(*retained)])
    return Trail(frozenset(retained), zooms=len(zoomed), shifts=len(set(retained) - set(zoomed)))


MODES: Mapping[str, Callable[[Script], Steps]] = {
    **{mode.__name__: mode for mode in (full, single, zoom, shift, mixed)},
    **dict.fromkeys(BLIND, blind),
}
