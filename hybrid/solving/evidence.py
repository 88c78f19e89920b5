"""Tool output as shown to a model, and the names and sizes of the images that it is about.

message = ctx.message(prompt, *evidence(prompt, ctx, finding))      # without a call, for `verify` and `result_only`
image_sizes([*prompt.images, *prompt.derived], ctx.frame)
# "img:1, 640 x 480 px; img:1.1, the left half of img:1 (x 0 to 320), 320 x 480 px"

Questions use fractions and halves, tools use pixels; the sizes allow conversion between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hybrid.config import Show
from hybrid.core.coordinates import at, size_px, unmarked
from hybrid.core.messages import ImagePart, Part, shortened
from hybrid.core.types import Finding, ImageRef, Prompt
from hybrid.solving.coordinates import CoordinateSystem
from hybrid.solving.images import ImageRegistry
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
    `frame`; `registry` has the images that the pictures were made from.
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


def image_sizes(images: Sequence[ImageRef], frame: CoordinateSystem) -> str:
    """Describe each image: name, size in pixels as shown, and the region of the image from which it was copied."""
    by_name = {ref.name: ref for ref in images}
    descriptions = []
    for ref in images:
        width, height = frame.sent_size((ref.image.width, ref.image.height))
        smaller = f", shrunk to {width / ref.image.width:.0%} of its sides" if width < ref.image.width else ""
        descriptions.append(f"{ref.name}, {_region(ref, by_name, frame)}{width} x {height} px{smaller}")
    return "; ".join(descriptions)


def _region(ref: ImageRef, by_name: Mapping[str, ImageRef], frame: CoordinateSystem) -> str:
    """Return the part of its parent that an image shows, followed by a comma; empty for an original image."""
    parent = by_name.get(ref.parent or "")
    if ref.box is None or parent is None:
        return ""
    box, width = ref.box, parent.image.width
    side = {(True, False): "left", (False, True): "right"}.get((box.x0 == 0, box.x1 == width))
    # Whether the box has the full height and, within 1 px, half the width of the parent image; `side` tells which half.
    is_half = (box.y0, box.y1) == (0, parent.image.height) and abs(box.x1 - box.x0 - width / 2) <= 1
    if side is not None and is_half:
        x0, _, x1, _ = frame.say_box(box, parent)
        return f"the {side} half of {ref.parent} (x {x0} to {x1}), "
    return f"{region(ref, parent, frame)}, "


def region(ref: ImageRef, parent: ImageRef, frame: CoordinateSystem) -> str:
    """Describe the part of its parent that an image shows, in the frame."""
    assert ref.box is not None  # noqa: S101 - of an image that is a region
    x0, y0, x1, y1 = frame.say_box(ref.box, parent)
    return f"region ({x0}, {y0}) to ({x1}, {y1}) of {ref.parent}"


def origin(ref: ImageRef, parent: ImageRef | None, frame: CoordinateSystem) -> str:
    """Describe the part of an image that a tool's picture shows."""
    if ref.box is None:
        if ref.parent is None:
            return "a picture of the finding"
        is_overlay = parent is None or (ref.image.width, ref.image.height) == (parent.image.width, parent.image.height)
        return (
            f"{ref.parent} with the finding drawn on it" if is_overlay else f"a picture that was made of {ref.parent}"
        )
    parent = parent or ref
    text, places = unmarked(
        f"scaled by {at('ratio', ref.scale, -1, '.3g')} to {size_px(ref.image.width, ref.image.height, -1)} px"
    )
    return f"{region(ref, parent, frame)}, {frame.say(text, places, [parent], [ref])}"
