"""Tool output as shown to a model: after its tool call, or, for the solvers `verify` and `result_only`, without a call.

message = ctx.message(prompt, *evidence(prompt, ctx, finding))
"""

from __future__ import annotations

from collections.abc import Sequence

from hybrid.config import Show
from hybrid.core.messages import ImagePart, Part, shortened
from hybrid.core.types import Finding, ImageRef, Prompt
from hybrid.solving.coordinates import CoordinateSystem
from hybrid.solving.image_registry import ImageRegistry
from hybrid.solving.image_sizes import image_sizes, origin
from hybrid.solving.solver import SolverContext

EVIDENCE = "A specialist tool looked at the image{plural}: {sizes}. What it found:"
PIXELS, NO_IMAGES = CoordinateSystem(), ImageRegistry(())


def evidence(prompt: Prompt, ctx: SolverContext, finding: Finding) -> list[str | ImageRef]:
    """Return the sizes of the prompt's images, then text and pictures of the output, as `--show` allows."""
    names = [image.name for image in prompt.images]
    heading = EVIDENCE.format(plural="s" if len(names) > 1 else "", sizes=image_sizes(prompt.images, ctx.frame))
    parts = finding_parts(finding, names, ctx.show, ctx.frame, ctx.image_registry)
    return [heading, *(part if isinstance(part, str) else part.ref for part in parts)]


def finding_parts(
    finding: Finding,
    images: Sequence[str],
    show: Show,
    frame: CoordinateSystem = PIXELS,
    registry: ImageRegistry = NO_IMAGES,
) -> tuple[Part, ...]:
    """Return tool output for a model: the images it is about, the text, then each picture after its name and origin.

    `show` omits the text or the pictures; if nothing else is left, one line says so. Positions of pictures are in the
    `frame`; `registry` has the images that they were made from.
    """
    # The tool's text names its first image "image 1"; add a mapping if the images have other names.
    same = all(name == f"img:{place}" for place, name in enumerate(images, 1))
    labels = (name if same else f"{name} (here called image {place})" for place, name in enumerate(images, 1))
    on = f"on {', '.join(labels)}:" if images else ""
    lines = [shortened(finding.text)] if show != "image" and finding.text else []
    visible = finding.images if show != "text" else ()
    parents = (registry.find(ref.parent or "") for ref in visible)
    pictures = [f"{ref.name}: {origin(ref, parent, frame)}" for ref, parent in zip(visible, parents, strict=True)]
    if not lines and not pictures:
        lines = ["the tool returned nothing that can be shown"]
    return "\n".join(filter(None, [on, *lines, *pictures])), *map(ImagePart, visible)
