"""Counts the calls and tokens of a run before it starts: `hybrid run ... --dry-run`.

Every open question goes through its benchmark's own dialogue with made-up replies, so that each prompt is counted as it
would be sent: text, format line, names and images in the chosen form. Captions are counted separately, because each
image is described once for all solvers. A solver estimates the calls for a prompt (`Solver.call_estimate`); each call
sends the prompt, the offered tools, and everything returned before it. Tokens are estimated with published formulas
(`models/tokens.py`): low, expected and high. A cost is printed only if a price was given.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from hybrid.config import ModelSettings, RunConfig
from hybrid.core.types import LETTERS, Kind, Prompt, Question, Reply, StoredImage
from hybrid.display.terminal import how_many
from hybrid.models.images import fit
from hybrid.models.providers import image_tokens
from hybrid.models.text_protocol import describe
from hybrid.models.tokens import text_tokens, tools_tokens
from hybrid.running.batching import batch_notes, refuse_unbatched
from hybrid.running.before_asking import before_notes
from hybrid.running.cost_estimate import CostEstimate, Levels, SolverEstimate, Spent, summed
from hybrid.running.replies import REPLIES, read_captions
from hybrid.running.resolve import ResolvedRun
from hybrid.solving.call_estimate import CallEstimate, CallPath, certain
from hybrid.solving.captions import CAPTION, captioner_sha256, captions_by
from hybrid.solving.images import STRIP_PX
from hybrid.solving.solver import Solver

# Published replies of GPT4o and GPT4V to BLINK val have 104 and 149 tokens on average (characters / 4). Models that
# answer with a single letter, which are often small models, need a tenth of that. The style of a model is unknown
# before the model is asked.
REPLY_TOKENS = 125
# Assumed tokens for the arguments of one tool call: image names, and a point or a box.
CALL_TOKENS = 30
# Tokens of replies that are a word, some numbers or a small JSON object, for any model.
SHORT_REPLIES: Mapping[Kind, int] = {Kind.CONTINUE: 1, Kind.VIEWS: 4, Kind.VIEW_PLAN: 40}
# Mean tokens of 111 tool outputs of seven weight-free tools on generated questions, including image names.
FINDING_TOKENS = 114
# Pictures per tool output; the 111 outputs of `FINDING_TOKENS` had 1.09 on average, each as large as its source image.
PICTURES = 1
# The prompts of a question's dialogues, one tuple for each way in which it may be answered.
Dialogues = tuple[tuple[Prompt, ...], ...]


async def estimate(run: ResolvedRun) -> CostEstimate:
    """Count open questions solver by solver, and list what is missing. Asks no model and no tool.

    Raises `UsageError` for a model that cannot be asked in batches.
    """
    refuse_unbatched(run)
    # Tokens of the offered tools: of their schemas, or with `--tool-calling text` of the text that describes them.
    tools = run.resources.dressed
    as_text = run.config.model_settings.tool_calling == "text"
    tools_offered = (text_tokens(describe(tools)) if tools else 0) if as_text else tools_tokens(tools)
    prompts: dict[str, Dialogues] = {}
    solvers: dict[str, SolverEstimate] = {}
    for name, solver in run.solvers.items():
        waiting = run.open_questions(name)
        for question in waiting:
            if question.id not in prompts:
                prompts[question.id] = await _dialogues(run, question)
        counter, levels, rounds = _AskCounter(run, solver, tools_offered), list[Levels](), (0, 0)
        for question in waiting:
            dialogues, context = prompts[question.id], run.resources.context.of(question.id) or ""
            # Equal dialogues are estimated only once; most dialogues do not depend on the reply.
            times = Counter(dialogues)
            ask_levels = [summed(counter.ask(prompt, context) for prompt in dialogue) for dialogue in times]
            lows, means, highs = zip(*ask_levels, strict=True)
            shares = (count / len(dialogues) for count in times.values())
            mean = sum((spent.times(share) for spent, share in zip(means, shares, strict=True)), Spent())
            # The cheapest, the mean and the most expensive dialogue of a question.
            levels.append((min(lows, key=_size), mean, max(highs, key=_size)))
            rounds = max(rounds[0], math.ceil(mean.calls)), max(rounds[1], math.ceil(levels[-1][2].calls))
        price = run.config.model_settings.price
        solvers[name] = SolverEstimate(
            len(waiting), *summed(levels), price=price, assumes=tuple(counter.assumed), rounds=rounds
        )
    captions = _captions(run, prompts)
    notes = [*_tool_notes(run), *before_notes(run)]
    if broken := run.questions.broken:
        notes.append(f"{len(broken)} rows of the data cannot be used: {broken[0].error}")
    if (
        any(solver_estimate.high.calls for solver_estimate in solvers.values())
        and run.config.model_settings.price is None
    ):
        notes.append("no cost: give the price with --model-arg price=IN/OUT in USD per million tokens")
    if run.without_text:
        notes.append(f"{len(run.without_text)} of {how_many(len(run.sound))} without text in {run.config.context}")
    if run.config.model_settings.batch:
        notes += batch_notes(run, solvers)
    return CostEstimate(str(run.folder.path), solvers, captions, run.missing, tuple(notes))


def _captions(run: ResolvedRun, prompts: Mapping[str, Dialogues]) -> SolverEstimate | None:
    """Return the estimate for describing every image of an open question that has no caption yet.

    An image that only some dialogues of a question show counts 0 in the low estimate and 1 in the high estimate.
    """
    if run.captioner is None or run.config.model is None:
        return None
    known_images = set(captions_by(captioner_sha256(run.captioner), read_captions(run.folder.path / REPLIES)))
    shares: dict[StoredImage, float] = {}
    asking = [name for name, solver in run.solvers.items() if run.shows_captions(solver)]
    for identity in dict.fromkeys(question.id for name in asking for question in run.open_questions(name)):
        dialogues = prompts[identity]
        image_counts = Counter(
            image for dialogue in dialogues for image in {ref.image for prompt in dialogue for ref in prompt.images}
        )
        for image, count in image_counts.items():
            if image.sha256 not in known_images:
                shares[image] = max(shares.get(image, 0.0), count / len(dialogues))
    settings = run.config.model_settings if run.resources.captioner is None else run.config.captioner_settings
    name = run.config.captioner or run.config.model
    levels = []
    for image, share in shares.items():
        tokens = _image_tokens(name, settings, image.width, image.height)
        spent = Spent(1, None if tokens is None else tokens + text_tokens(CAPTION), _caption_tokens(run.config))
        levels.append((spent.times(float(share == 1)), spent.times(share), spent))
    assumed = f"{name} describes images; this row counts images, not questions"
    return SolverEstimate(len(shares), *summed(levels), price=settings.price, assumes=(assumed,))


def _caption_tokens(config: RunConfig) -> int:
    """Return the tokens of a caption: a typical reply, at most what its model may generate."""
    longest = None if config.captioner else config.model_settings.max_tokens
    return REPLY_TOKENS if longest is None else min(REPLY_TOKENS, longest)


def _image_tokens(model: str, settings: ModelSettings, width: int, height: int) -> int | None:
    """Return the tokens of an image as sent; None if the provider's rule is unknown."""
    if settings.max_pixels is not None:
        width, height = fit(width, height, settings.max_pixels)
    provider, _, name = model.partition(":")
    return image_tokens(provider, name, width, height, settings.image_detail)


async def _dialogues(run: ResolvedRun, question: Question) -> Dialogues:
    """Return the prompts of a question's dialogues: the shortest and the longest one for each choice as the reply."""
    dialogues = []
    for place in range(max(1, len(question.choices))):
        for drawn_out in (False, True):
            prompts: list[Prompt] = []

            async def ask(
                prompt: Prompt, prompts: list[Prompt] = prompts, place: int = place, drawn_out: bool = drawn_out
            ) -> Reply:
                prompts.append(prompt)
                return Reply(_made_up(prompt, place, drawn_out=drawn_out))

            await run.benchmark.dialogue(question.without_target(), ask)
            dialogues.append(tuple(prompts))
    return tuple(dialogues)


def _made_up(prompt: Prompt, place: int, *, drawn_out: bool) -> str:
    """Return a reply that every parser of this prompt reads; with `drawn_out`, the reply asks to see everything."""
    parts = [str(number) for number in range(1, len(prompt.choices) + 1)] if drawn_out else ["1"]
    match prompt.kind:
        case Kind.CONTINUE:
            return "yes" if drawn_out else "no"
        case Kind.VIEWS:
            return ",".join(parts)
        case Kind.VIEW_PLAN:
            views = ",".join(parts)
            return f'{{"part": "{views}", "keep": "{views}", "shift": "none"}}'
        case _:
            return LETTERS[place % len(LETTERS)]


def _size(spent: Spent) -> tuple[float, float]:
    return (spent.calls, spent.input_tokens or 0.0)


@dataclass
class _AskCounter:
    """Counts the calls and tokens that one solver needs for its prompts in one run."""

    run: ResolvedRun
    solver: Solver
    # Tokens of the tool descriptions, sent in every call that offers them.
    tools_offered: int
    # The assumptions of the solver's estimates, without duplicates.
    assumed: dict[str, None] = field(default_factory=dict)

    @property
    def config(self) -> RunConfig:
        return self.run.config

    def ask(self, prompt: Prompt, context: str = "") -> Levels:
        """Return the low, expected and high estimate for one prompt; `context` is the text next to its images."""
        call_estimate: CallEstimate = self.solver.call_estimate(prompt, self.config.limits)
        if self.solver.offers_tools and not self.run.resources.tools_offered:
            call_estimate = certain(CallPath(1))
        if call_estimate.assumes:
            self.assumed[call_estimate.assumes] = None
        samples = 1 if prompt.kind is Kind.FREE else self.config.samples
        call_paths = (call_estimate.low, call_estimate.usual, call_estimate.high)
        low, usual, high = (self._call_path(prompt, context, call_path).times(samples) for call_path in call_paths)
        return low, usual.times(call_estimate.share) + low.times(1 - call_estimate.share), high

    def _call_path(self, prompt: Prompt, context: str, call_path: CallPath) -> Spent:
        """Estimate one path: each call sends a fixed part and, on average, half of what the calls and tools return."""
        if not call_path.calls:
            return Spent()
        if (self.config.model or "").startswith("replay:"):
            # Recorded replies are on disk, so nothing is sent.
            return Spent(call_path.calls)
        reply = SHORT_REPLIES.get(prompt.kind, REPLY_TOKENS)
        if (limit := self.config.model_settings.max_tokens) is not None:
            reply = min(reply, limit)
        between = call_path.findings * CALL_TOKENS if call_path.offered else (call_path.calls - 1) * reply
        opening, images, show = self._opening(prompt, context), prompt.images, self.config.show
        # Count tool output as shown to the model; older pictures are no longer sent.
        texts = 0 if show == "image" else call_path.findings * FINDING_TOKENS
        findings: int | None = texts
        if show != "text" and images and call_path.findings:
            picture = self._image(images[0].image.width, images[0].image.height)
            picture_count = min(call_path.findings, self.config.model_settings.pictures_kept)
            findings = None if picture is None else texts + picture * PICTURES * picture_count
        read: float | None = None
        if opening is not None and findings is not None:
            fixed = opening + text_tokens(call_path.says)
            read = call_path.calls * fixed + call_path.offered * self.tools_offered
            read += (findings + between) * call_path.calls / 2
        return Spent(call_path.calls, read, reply + between)

    def _opening(self, prompt: Prompt, context: str) -> int | None:
        """Return the tokens of the prompt as shown to the model; None if the rule for its images is unknown."""
        closing = self.run.resources.wording.closing(prompt)
        total = sum(text_tokens(part) for part in (prompt.text, context, *closing) if part)
        images, form = prompt.images, self.solver.images or self.config.images
        if form == "none" or not images:
            return total
        is_labelled = self.config.image_labels or self.solver.names_images
        is_joint = form == "concat" and len(images) > 1
        names = ["img:all"] if is_joint else [ref.name for ref in images]
        total += sum(text_tokens(f"{name}:") for name in names) if is_labelled else 0
        if form == "caption":
            return total + len(images) * _caption_tokens(self.config)
        widths, heights = [ref.image.width for ref in images], [ref.image.height for ref in images]
        if is_joint:
            widths = [sum(widths) + self.run.resources.joint.gap_px * (len(images) - 1)]
            heights = [max(heights) + (STRIP_PX if is_labelled else 0)]
        for width, height in zip(widths, heights, strict=True):
            count = self._image(width, height)
            if count is None:
                return None
            total += count
        return total

    def _image(self, width: int, height: int) -> int | None:
        return _image_tokens(self.config.model or "", self.config.model_settings, width, height)


def _tool_notes(run: ResolvedRun) -> list[str]:
    """Return notes on missing weights, and on the tools of each MCP server: those offered, and why others are not."""
    from hybrid.plugins.weights import fetch_command

    notes: list[str] = []
    for name, in_use in sorted(run.tools.backends.items()):
        learned = run.tools.tools[name].backend("learned")
        if in_use == "absent":
            notes.append(f"{name}: no weights, and no weight-free backend: the tool will not answer")
        elif learned is not None and not in_use.startswith("learned") and run.config.service.backend == "auto":
            notes.append(
                f"{name}: {learned.weights or 'its checkpoint'} is not on disk; the weight-free backend will answer "
                f"({fetch_command(name)} fetches it)"
            )
    offered_names = {tool.card.name for tool in run.resources.tools_offered}
    for server in run.tools.foreign.servers:
        server_tools = [name for name, tool in run.tools.foreign.tools.items() if tool.server is server]
        available = ", ".join(name for name in server_tools if name in offered_names) or "none"
        others = ", ".join(name for name in server_tools if name not in offered_names)
        notes.append(
            f"MCP server {server.name} ({server.about}, {server.address}) "
            f"offers: {available}" + (f"; not offered unless named: {others}" if others else "")
        )
    return [*notes, *(f"not offered: {reason}" for reason in run.tools.foreign.left_out.values())]
