"""A network as the programs of `bench.peers` use it: read files, prepare a batch, run it, read each answer.

    network = PeerNetwork("owlv2_base", checkpoint)
    values = network.answers([(Path("1.jpg"),), (Path("2.jpg"),)])

An answer is one number per request, so that the programs can be compared: the range of a depth map, the highest score
of a detection, or the number of matches of a pair of images.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from bench._bare_loops import prepare_batch
from bench._networks import NETWORKS
from hybrid.tool import Pixels

# The networks, by kind of work. Each has a pipeline in transformers and a tool of this project.
WORK: Mapping[str, str] = {
    "depth": "depth_anything_v2_small",
    "detection": "owlv2_base",
    "matching": "efficientloftr",
}
# Requests per forward pass of the programs that form batches; a request for matching has two images.
BATCH = 8


def decode(data: bytes) -> Pixels:
    """Return the pixels (H, W, 3) of an image file."""
    # Copy the array: PyTorch does not share the memory of an array that cannot be written.
    return np.array(Image.open(io.BytesIO(data)).convert("RGB"))


def read_images(request: Mapping[str, Any]) -> list[Pixels]:
    """Return the images of a server's request, which contains them in base64."""
    return [decode(base64.b64decode(data)) for data in request["images"]]


def spread(depth: Any) -> float:
    """Return the range of a depth map of the image's size."""
    return float(depth.max() - depth.min())


def read_requests(work: str, folder: Path) -> list[tuple[Path, ...]]:
    """Return the images of each request, in order: one, or two neighbours for matching."""
    files = sorted(folder.glob("*.jpg"))
    size = 2 if work == "matching" else 1
    return [tuple(files[start : start + size]) for start in range(0, len(files), size)]


class PeerNetwork:
    """A network with its processor, in evaluation mode on the CPU."""

    def __init__(self, name: str, checkpoint: Path) -> None:
        import transformers

        self.row = NETWORKS[name].loop
        self.model = getattr(transformers, self.row["model"]).from_pretrained(checkpoint, dtype="float32").eval()
        self.processor = getattr(transformers, self.row["processor"]).from_pretrained(checkpoint)

    def prepare(self, group: Sequence[Sequence[Pixels]]) -> tuple[Mapping[str, Any], list[Any]]:
        """Return the network's inputs for a batch of requests, and the image sizes (height, width) of each request."""
        sizes = [[image.shape[:2] for image in request] for request in group]
        return prepare_batch(self.row, self.processor, [image for request in group for image in request]), sizes

    def run(self, inputs: Mapping[str, Any], sizes: Sequence[Any]) -> list[float]:
        """Run the network on a batch and return an answer per request."""
        import torch

        with torch.inference_mode():
            outputs = self.model(**inputs, **self.row.get("asked", {}))
        if self.row.get("pairs"):
            rows = self.processor.post_process_keypoint_matching(outputs, sizes, threshold=0.0)
            return [float(len(row["matching_scores"])) for row in rows]
        first = [size for (size,) in sizes]
        if "depth" in self.row["reads"]:
            rows = self.processor.post_process_depth_estimation(outputs, target_sizes=first)
            return [spread(row["predicted_depth"]) for row in rows]
        rows = self.processor.post_process_grounded_object_detection(outputs, threshold=0.0, target_sizes=first)
        return [float(row["scores"].max()) for row in rows]

    def answers(self, requests: Sequence[Sequence[Path]]) -> list[float]:
        """Read the files of a batch of requests, and return an answer per request."""
        return self.run(*self.prepare([[decode(path.read_bytes()) for path in request] for request in requests]))
