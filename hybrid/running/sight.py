"""Whether the model behind a server sees at all: a server may take images and give none to its model.

    await check_sight(run, state)       # once a run, before its questions; the manifest keeps what was found

The model is shown a number in a picture. One that reads it sees; so does one whose input grows with the picture,
however badly it reads. Only where neither holds is it blind, and then it is no MLLM that is measured. Models in this
process and recordings are not asked: what they are given is known.
"""

from __future__ import annotations

import io
import logging
import re
from dataclasses import asdict, dataclass
from typing import Final, Literal

from hybrid.errors import NotRecorded, Outage, UsageError
from hybrid.images import MEDIA_TYPES, PNG
from hybrid.log.manifest import MANIFEST
from hybrid.messages import AssistantMessage, user_message
from hybrid.models.base import CallKey, ChatModel
from hybrid.models.prices import cost_usd
from hybrid.running.resolve import ResolvedRun
from hybrid.running.state import SIGHT_PROBE, RunState
from hybrid.solving.solver import Solver
from hybrid.types import ImageRef, Usage

log = logging.getLogger(__name__)

Verdict = Literal["sees", "blind", "unknown"]

PROBE_TEXT: Final = "Which number is written in the picture? Write its digits and nothing else."
PROBE_NUMBER: Final = "7306"
PROBE_SIZE = (448, 224)
MOST_WORDS = 16
"""Tokens by which the input of a model without eyes may grow: some servers put a word in the place of an image."""
BLIND: Final = "blind model"
"""The label of a run whose model was let in all the same."""


@dataclass(frozen=True)
class Sight:
    """The verdict on a model, and its reply; tokens are None where the server counts none or was not asked."""

    verdict: Verdict
    said: str
    input_tokens: int | None = None
    without_image: int | None = None


def to_be_asked(run: ResolvedRun, solver: Solver) -> bool:
    """Whether a solver shows images to a model behind a server."""
    model, form = run.resources.model, solver.images or run.config.images
    shows = form in ("separate", "concat") or (form == "caption" and run.resources.captioner is None)
    return solver.needs_model and shows and model is not None and bool(model.connection())


async def check_sight(run: ResolvedRun, state: RunState) -> None:
    """Ask the model once, where a solver with open questions shows it images; label a run whose model is blind.

    Where no reply comes it is left to the questions.

    Raises:
        UsageError: the model is blind, and `--allow blind` was not given.
        ModelRefused: the configuration cannot work.
    """
    waiting = (run.questions.without(state.solvers[name].finished) for name in _showing(run))
    model = run.resources.model
    if model is None or not any(waiting):
        return
    manifest = run.folder.manifest
    if "sight" not in manifest:
        try:
            sight, used = await look(run, model)
        except (NotRecorded, Outage) as error:
            log.info("whether %s sees is not known: %s", model.name, error)
            return
        manifest |= {"sight": {**asdict(sight), "usage": asdict(used)}}
        run.folder.write_manifest(manifest)
    if manifest["sight"]["verdict"] == "blind":
        _refuse_or_label(run, model.name)


def sight_notes(run: ResolvedRun) -> list[str]:
    """For a dry run: that the model will be asked, where it will."""
    manifest = run.folder.manifest if (run.folder.path / MANIFEST).is_file() else {}
    if "sight" in manifest or not any(run.open_questions(name) for name in _showing(run)):
        return []
    return ["the model is first asked whether it sees, with one small picture: one call or two"]


def _showing(run: ResolvedRun) -> list[str]:
    return [name for name, solver in run.solvers.items() if to_be_asked(run, solver)]


def _refuse_or_label(run: ResolvedRun, name: str) -> None:
    manifest = run.folder.manifest
    sight = manifest["sight"]
    if "blind" not in run.config.allow:
        raise UsageError(
            f"--model {name} does not see: it cannot read the number in a picture (it said {sight['said']!r}), and its "
            f"input is {sight['input_tokens']} tokens with the picture and {sight['without_image']} without. Choose a "
            "model that takes images, or say --images none; --allow blind measures it all the same, labelled"
        )
    if BLIND not in manifest["labels"]:
        run.folder.write_manifest({**manifest, "labels": [*manifest["labels"], BLIND]})


async def look(run: ResolvedRun, model: ChatModel) -> tuple[Sight, Usage]:
    """Whether the model sees the picture, in one call or two, and their usage. Raises as `ChatModel.chat` does."""
    # Some servers take one type of file and drop another: the picture is of the type that the questions' are.
    media_type = next((image.media_type for question in run.sound for image in question.images), PNG)
    picture = ImageRef("img:1", run.service.store.put(probe_picture(media_type), "the picture with a number"))
    first = CallKey(SIGHT_PROBE)
    with_image, used = await _ask(run, model, (PROBE_TEXT, picture), first)
    reply_text = with_image.text.strip()[:80]
    read = PROBE_NUMBER in re.sub(r"[\s.,]", "", with_image.text)
    tokens = with_image.usage.input_tokens if with_image.usage else None
    if read or not tokens:
        return Sight("sees" if read else "unknown", reply_text, tokens), used
    without, more = await _ask(run, model, (PROBE_TEXT,), first.following())
    fewer = without.usage.input_tokens if without.usage else None
    if not fewer:
        return Sight("unknown", reply_text, tokens), used + more
    return Sight("sees" if tokens - fewer > MOST_WORDS else "blind", reply_text, tokens, fewer), used + more


async def _ask(
    run: ResolvedRun, model: ChatModel, parts: tuple[str | ImageRef, ...], key: CallKey
) -> tuple[AssistantMessage, Usage]:
    meter, used = run.resources.run_meter, Usage()
    meter.begin()
    try:
        reply = await model.chat([user_message(parts, labelled=False)], (), key)
        usage = reply.usage
        used = Usage(
            model_calls=1,
            input_tokens=usage.input_tokens if usage else 0,
            output_tokens=usage.output_tokens if usage else 0,
            cost_usd=cost_usd(usage, run.config.model_settings.price),
        )
    finally:
        meter.end(used)
    return reply, used


def probe_picture(media_type: str = PNG) -> bytes:
    """The number in black on white, 448 x 224 px. Drawn with Pillow, as a run without tools loads no arrays."""
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("RGB", PROBE_SIZE, "white")
    draw = ImageDraw.Draw(picture)
    centre = (PROBE_SIZE[0] / 2, PROBE_SIZE[1] / 2)
    draw.text(centre, PROBE_NUMBER, "black", ImageFont.load_default(150), anchor="mm")
    data = io.BytesIO()
    picture.save(data, next(form for form, known in MEDIA_TYPES.items() if known == media_type))
    return data.getvalue()
