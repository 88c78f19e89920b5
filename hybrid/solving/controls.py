"""The output that a tool call returns: the real one, or a control that rules out another cause of a gain.

    real      the tool's output
    blank     output of the same form without information: a fixed line and a grey picture of the input's size
    shuffled  the same tool and arguments on the images of a seeded partner question of the same route; blank if a call
              has no image
    paraphrased  the tool's output in its second fixed wording, with the same numbers and names
    oracle    the output of a perfect tool: one sentence for a model, and the answer itself for the rules, as
              `oracle_answer` in the data

Controls are applied after the cache: their output is never cached. In a shuffled run, the true output for a partner's
image is cached under that image. A run with a control is labelled wherever it is shown. Only an oracle run knows
targets, and only inside the oracle function.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hybrid.config import ToolOutput
from hybrid.core.errors import NoBackend, UsageError
from hybrid.core.timing import CallTime
from hybrid.core.types import Finding, ImageRef, Json, Prompt, Question, StoredImage
from hybrid.serving.service import CachedTools
from hybrid.solving.paraphrase import paraphrased
from hybrid.tool import Tool, json_of_args

if TYPE_CHECKING:
    from hybrid.tool import Args

BLANK_TEXT = "The tool returned no information about this image."
GREY = 128


def partners(questions: Sequence[Question], seed: int) -> Mapping[str, tuple[StoredImage, ...]]:
    """Return, by question id, the images of a partner question with the same route and number of images.

    A seeded cycle selects the partners. A question that is alone in its route has no partner.
    """
    kinds = defaultdict[tuple[str, int], list[AskedQuestion]](list)
    for question in questions:
        entry = AskedQuestion(question.id, question.unit, question.images)
        kinds[question.route, len(question.images)].append(entry)
    partner_images: dict[str, tuple[StoredImage, ...]] = {}
    for (route, count), members in sorted(kinds.items()):
        order = sorted(members, key=lambda member: member.id)
        random.Random(f"{seed}/{route}/{count}").shuffle(order)
        for place, member in enumerate(order):
            # A variant of the same base question shows the same images, so it cannot be a partner.
            others = (other.images for other in (*order[place + 1 :], *order[:place]) if other.unit != member.unit)
            if (images := next(others, None)) is not None:
                partner_images[member.id] = images
    return partner_images


@dataclass(frozen=True)
class AskedQuestion:
    """What the controls know about a question while it is asked, which includes neither its text nor its target.

    `id` includes the variant, and `unit` is the unit to which the question belongs.
    """

    id: str
    unit: str
    images: tuple[StoredImage, ...]


@dataclass(frozen=True)
class OracleWords:
    """The output of a perfect tool for a prompt.

    `answer` is the complete reply in the format of the prompt's kind; None if there is no answer to give.
    """

    sentence: str
    answer: str | None = None


# Returns the output for the id of a question and one of its prompts.
Oracle = Callable[[str, Prompt], OracleWords]

# The backend name of oracle output.
ORACLE = "oracle"
# The key of the answer in the data of oracle output.
ORACLE_ANSWER = "oracle_answer"


@dataclass(frozen=True)
class ToolCondition:
    """Produces the tool output of a run; `oracle` is used only in mode `oracle`, `partners` only in `shuffled`."""

    service: CachedTools
    mode: ToolOutput = "real"
    oracle: Oracle | None = None
    partners: Mapping[str, tuple[StoredImage, ...]] = field(default_factory=dict)

    def warm(self) -> None:
        """Warm up the tools that are likely to be called (`CachedTools.warm`)."""
        if self.mode in ("real", "shuffled", "paraphrased"):
            self.service.warm()

    async def find(
        self,
        tool: Tool,
        args: Args,
        images: Sequence[ImageRef],
        subject: AskedQuestion,
        prompt: Prompt,
        seed: int,
        spent: CallTime | None = None,
        *,
        overlays: bool = True,
    ) -> Finding:
        """Return the output for the solver and add the time to `spent`. Raises the exceptions of `CachedTools.call`."""
        if self.mode == "oracle":
            perfect = self.oracle(subject.id, prompt) if self.oracle else OracleWords("")
            data: dict[str, Json] = {} if perfect.answer is None else {ORACLE_ANSWER: perfect.answer}
            return Finding(perfect.sentence, data, 1.0, ORACLE, ORACLE)
        if self.mode in ("real", "paraphrased"):
            finding = await self.service.call(tool, args, images, seed, spent, overlays=overlays)
            is_real = self.mode == "real"
            return finding if is_real else paraphrased(finding, tool.wording, args.model_dump(mode="json"))
        partner = self.partners.get(subject.id) if self.mode == "shuffled" else None
        if not images:
            return Finding(BLANK_TEXT, {}, 0.0, "blank", "blank")
        if partner is None:
            import numpy as np

            first = images[0]
            grey = np.full((first.image.height, first.image.width, 3), GREY, dtype=np.uint8)
            try:
                picture = ImageRef("", self.service.store.put_pixels(grey), parent=first.name)
            except UsageError as error:
                # Without OpenCV the tool itself has no backend either.
                raise NoBackend(str(error)) from error
            return Finding(BLANK_TEXT, {}, 0.0, backend="blank", version="blank", images=(picture,))
        # Image k of the question is replaced by image k of the partner; a derived image is replaced by its parent's
        # replacement.
        places = [_place(ref, subject) % len(partner) for ref in images]
        others = [replace(ref, image=partner[place]) for ref, place in zip(images, places, strict=True)]
        clipped = clip(args, [(ref.image.width, ref.image.height) for ref in others])
        finding = await self.service.call(tool, clipped, others, seed, spent, overlays=overlays)
        # Keep the backend: rules weigh output by its backend, and a control must be treated like real output.
        return replace(finding, version=f"shuffled:{finding.version}")


def _place(ref: ImageRef, subject: AskedQuestion) -> int:
    for place, image in enumerate(subject.images):
        if image.sha256 == ref.image.sha256:
            return place
    digits = "".join(char for char in ref.name.split(".")[0] if char.isdigit())
    return int(digits or 1) - 1


def clip(args: Args, sizes: Sequence[tuple[int, int]]) -> Args:
    """Return the arguments with every point and box moved inside its image; `sizes` are (width, height) in pixels.

    Coordinates belong to the first image, or to the image that the point's own `image` (from 1) names. Fields are
    recognised by name only, because the fields of a foreign tool have no types here.
    """
    if not sizes:
        return args
    return type(args).model_validate(_clipped(json_of_args(args), sizes))


def _clipped(node: Json, sizes: Sequence[tuple[int, int]]) -> Any:
    if isinstance(node, list | tuple):
        return [_clipped(item, sizes) for item in node]
    if not isinstance(node, Mapping):
        return node
    moved: dict[str, Any] = {name: _clipped(value, sizes) for name, value in node.items()}
    number = node.get("image", 1)
    size = sizes[number - 1] if isinstance(number, int) and 1 <= number <= len(sizes) else sizes[0]
    for axis, most in zip("xy", size, strict=True):
        for name, least, last in ((axis, 0, most - 1), (f"{axis}0", 0, most - 1), (f"{axis}1", 1, most)):
            if isinstance(value := moved.get(name), int | float) and not isinstance(value, bool):
                # A box keeps at least one pixel after its first corner was moved.
                first = moved.get(f"{axis}0") if least else None
                moved[name] = max(min(value, last), least if not isinstance(first, int | float) else first + 1)
    return moved
